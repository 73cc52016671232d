//! `_npi_delete`: parts removed along an axis.

use super::{AXIS, INT_IND, START, STEP, STOP, attribute_places, has_places, like_first, out_of_bounds, place};
use crate::prelude::*;
use mxrt_kernels::Par;
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_delete",
    doc: "Without the parts along an axis that an index, a slice or an array of indices names.",
    inputs: Inputs::ByAttrs(|attrs| if has_places(attrs) { &["arr"] } else { &["arr", "obj"] }),
    attrs: &[START, STOP, STEP, INT_IND, AXIS],
    infer_shape: |shapes| {
        let Some(dims) = shapes.dims(0) else { return Ok(()) };
        let mut left: Vec<Option<usize>> = match shapes.attrs.opt_int("axis") {
            None => vec![None],
            Some(_) => dims.to_vec(),
        };
        if let (Some(axis), false) = (shapes.attrs.opt_int("axis"), left.is_empty()) {
            let axis = resolve_axis(axis, left.len())?;
            left[axis] = None;
        }
        // One index that is out of range is an error of the call.
        let extent = match shapes.attrs.opt_int("axis") {
            None => shapes.input(0).map(|shape| shape.size()),
            Some(_) if dims.is_empty() => None,
            Some(axis) => dims[resolve_axis(axis, dims.len())?],
        };
        if let (Some(index), Some(n)) = (shapes.attrs.opt_int("int_ind"), extent) {
            existing(index, n)?;
        }
        shapes.set_output(0, PartialShape::from_dims(left))
    },
    infer_dtype: like_first,
    bind: |attrs, signature| {
        let attrs = attrs.clone();
        dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
            let ([outer, n, inner], kept) = kept_places(call.par, &attrs, call.inputs)?;
            let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
            if out.len() != outer * kept.len() * inner {
                return Err(value_error("the indices remove another number of parts than are left out"));
            }
            let parts = (0..outer).flat_map(|block| kept.iter().map(move |place| block * n + place));
            for (i, part) in parts.enumerate() {
                out[i * inner..(i + 1) * inner].copy_from_slice(&x[part * inner..(part + 1) * inner]);
            }
            Ok(())
        })))
    },
    rewrites: &Rewrites {
        shapes_of_contents: Some(|par, attrs, inputs| {
            let Some(array) = inputs.first() else { return Err(wrong_arity()) };
            let (_, kept) = kept_places(par, attrs, inputs)?;
            let Some(axis) = attrs.opt_int("axis") else { return Ok(vec![Shape::new(&[kept.len()])]) };
            let mut shape = array.shape.clone();
            if !shape.is_empty() {
                let axis = resolve_axis(axis, shape.len())?;
                shape.dims_mut()[axis] = kept.len();
            }
            Ok(vec![shape])
        }),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// The index of an element, counted from the front.
fn existing(index: i64, n: usize) -> Result<usize, OpError> {
    n.checked_sub(1).map_or_else(|| Err(out_of_bounds(index, n)), |last| place(index, n, last))
}

/// The axis as three joined ones, and the places along it that stay.
fn kept_places(
    par: &dyn Par,
    attrs: &Attrs,
    inputs: &[TensorRef<'_>],
) -> Result<([usize; 3], Scratch<usize>), OpError> {
    let Some(array) = inputs.first() else { return Err(wrong_arity()) };
    let axis = attrs.opt_int("axis");
    if axis.is_some() && array.shape.is_empty() {
        return Ok(([1, 1, 1], Scratch::filled(par, 1, 0)));
    }
    let split = split_or_all(axis, array.shape)?;
    let n = split[1];
    let mut stays = Scratch::filled(par, n, true);
    match inputs.get(1) {
        None => match attrs.opt_int("int_ind") {
            Some(index) => stays[existing(index, n)?] = false,
            None => attribute_places(attrs, n, n)?.0.for_each(|i| stays[i] = false),
        },
        Some(obj) if obj.dtype == DType::Bool && obj.len() == n => {
            stays.iter_mut().zip(elements::<u8>(obj)?).for_each(|(stays, mark)| *stays = *mark == 0);
        }
        Some(obj) => {
            check_integers("obj", obj.dtype)?;
            for i in integers(par, obj)?.iter() {
                stays[existing(*i, n)?] = false;
            }
        }
    }
    let left = stays.iter().filter(|stays| **stays).count();
    Ok((split, Scratch::collect(par, left, (0..n).filter(|i| stays[*i]))))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn parts_are_removed_by_index_slice_and_array() {
        let x = |t: OpTest| t.f32([2, 3], &X);
        let y = x(OpTest::new("_npi_delete").attr("int_ind", "-1").attr("axis", "1")).run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 2.0, 4.0, 5.0]);
        let y = x(OpTest::new("_npi_delete").attr("step", "2").attr("start", "0")).run();
        assert_eq!(f32s(&y, [3]), [2.0, 4.0, 6.0]);
        let y = x(OpTest::new("_npi_delete").attr("axis", "0")).i32([2], &[0, 0]).run();
        assert_eq!(f32s(&y, [1, 3]), [4.0, 5.0, 6.0]);
        let error = x(OpTest::new("_npi_delete").attr("int_ind", "3").attr("axis", "1")).error();
        assert!(error.message.contains("index 3 is out of bounds"), "{}", error.message);
    }
}
