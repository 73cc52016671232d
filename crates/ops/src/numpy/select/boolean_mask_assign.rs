//! `_npi_boolean_mask_assign_scalar`, `_npi_boolean_mask_assign_tensor`: elements replaced where a
//! mask is not 0.

use super::{places_of, spread};
use crate::index::where_op::{check_truths, truths};
use crate::prelude::*;
use mxrt_kernels::Par;
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_boolean_mask_assign_scalar",
        doc: "The data with a number where the mask is not 0; the axes of the mask are those of the \
              data from start_axis on.",
        inputs: Inputs::Fixed(&["data", "mask"]),
        attrs: &[
            AttrDef::required("value", AttrKind::Float, "The number.").wide(),
            AttrDef::new("start_axis", AttrKind::IntFrom(0), "0", "The first axis of the mask."),
        ],
        bind: bind_assign,
        ..ASSIGN
    },
    OpDef {
        name: "_npi_boolean_mask_assign_tensor",
        doc: "The data with the elements of value, in order, where the mask is not 0; the axes of the \
              mask are those of the data from start_axis on.",
        inputs: Inputs::Fixed(&["data", "mask", "value"]),
        attrs: &[AttrDef::new("start_axis", AttrKind::IntFrom(0), "0", "The first axis of the mask.")],
        bind: bind_assign,
        ..ASSIGN
    },
];

const ASSIGN: OpDef = OpDef {
    infer_shape: |shapes| {
        let attrs = shapes.attrs;
        if let (Some(data), Some(mask)) = (shapes.input(0), shapes.input(1)) {
            let start = attrs.count("start_axis");
            if data.get(start..).is_none_or(|axes| !axes.starts_with(&mask)) {
                return Err(shape_error(format!(
                    "the mask has shape {mask}, which is not that of the data {data} from axis {start} on"
                )));
            }
        }
        shapes.same_as_first()
    },
    infer_dtype: |dtypes| {
        let Some(dtype) = dtypes.inputs[0].or(dtypes.outputs[0]) else { return Ok(()) };
        dtypes.set_input(0, "data", dtype)?;
        dtypes.set_output(0, dtype)
    },
    ..OpDef::BASE
};

fn bind_assign(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    check_truths(signature.inputs[1].dtype)?;
    let start = attrs.count("start_axis");
    let number = attrs.declares("value").then(|| attrs.float("value"));
    let dtype = signature.inputs[0].dtype;
    if let Some(value) = signature.inputs.get(2)
        && value.dtype != dtype
    {
        return crate::execution::in_dtypes(
            signature,
            |i| if i == 2 { dtype } else { signature.inputs[i].dtype },
            |_| dtype,
            |signature| bind_assign(attrs, signature),
        );
    }
    dispatch!(dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let (data, mask) = (&call.inputs[0], truths(call.par, &call.inputs[1])?);
        let mask: &[u8] = &mask;
        let outer = data.shape[..start].iter().product::<usize>();
        let inner = data.shape[start + call.inputs[1].shape.len()..].iter().product::<usize>();
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        out.copy_from_slice(elements::<T>(data)?);
        let chosen = places_of(call.par, mask);
        let values = match (number, call.inputs.get(2)) {
            (Some(number), _) => {
                ReadElements::Made(Scratch::filled(call.par, outer * chosen.len() * inner, T::from_f64(number)))
            }
            (None, Some(value)) => values_for(call.par, value, data.shape, start, chosen.len(), call.inputs[1].shape.len())?,
            (None, None) => return Err(wrong_arity()),
        };
        let places = (0..outer).flat_map(|block| chosen.iter().map(move |place| (block, place)));
        for (i, (block, place)) in places.enumerate() {
            let to = (block * mask.len() + place) * inner;
            out[to..to + inner].copy_from_slice(&values[i * inner..(i + 1) * inner]);
        }
        Ok(())
    })))
}

/// The values broadcast to the elements that the mask picks.
fn values_for<'a, T: Element>(
    par: &dyn Par,
    value: &TensorRef<'a>,
    data: &[usize],
    start: usize,
    chosen: usize,
    mask_axes: usize,
) -> Result<ReadElements<'a, T>, OpError> {
    let picked: Shape =
        data[..start].iter().copied().chain([chosen]).chain(data[start + mask_axes..].iter().copied()).collect();
    let fits = value.shape.len() <= picked.len()
        && value.shape.iter().rev().zip(picked.iter().rev()).all(|(n, want)| n == want || *n == 1);
    if !fits {
        return Err(shape_error(format!(
            "value has shape {}, but the mask picks elements of shape {picked}",
            value.shape
        )));
    }
    spread(par, elements::<T>(value)?, value.shape, &picked)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

    #[test]
    fn a_mask_picks_what_is_assigned() {
        let data = |op: &str| OpTest::new(op).f32([2, 2], &X).i32([2], &[0, 1]);
        let y = data("_npi_boolean_mask_assign_scalar").attr("value", "9").run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 2.0, 9.0, 9.0]);
        let y = data("_npi_boolean_mask_assign_tensor").f32([1, 2], &[8.0, 9.0]).run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 2.0, 8.0, 9.0]);
        let y = data("_npi_boolean_mask_assign_tensor").attr("start_axis", "1").f32([2, 1], &[8.0, 9.0]).run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 8.0, 3.0, 9.0]);
        let error = data("_npi_boolean_mask_assign_tensor").f32([3], &[0.0; 3]).error();
        assert!(error.message.contains("(1, 2)"), "{}", error.message);
    }
}
