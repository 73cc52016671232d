//! Diagonals, matrices made of them, and triangles.

use crate::prelude::*;
use crate::shape::{Strided, bind_strided, placed_form, strided_form};
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_kernels::strides::contiguous;
use mxrt_tensor::{DType, Shape};

const OFFSET: AttrDef =
    AttrDef::new("offset", AttrKind::Int, "0", "Which diagonal: above the main one if positive, below if negative.");
const K: AttrDef =
    AttrDef::new("k", AttrKind::Int, "0", "Which diagonal: above the main one if positive, below if negative.");
const AXIS1: AttrDef = AttrDef::new("axis1", AttrKind::Int, "0", "First axis of the plane.");
const AXIS2: AttrDef = AttrDef::new("axis2", AttrKind::Int, "1", "Second axis of the plane.");

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_np_diag",
        doc: "The k-th diagonal of a matrix; of a vector, the square matrix that has it as its k-th \
              diagonal.",
        attrs: &[K],
        infer_shape: |shapes| {
            let Some(data) = shapes.input(0) else { return Ok(()) };
            let k = shapes.attrs.int("k");
            match data[..] {
                [n] => shapes.set_output(0, square(n, k)?),
                [_, _] => shapes.set_output(0, Shape::new(&[diagonal(&data, (0, 1), k)?.shape[0]])),
                _ => Err(shape_error(format!("the input has shape {data}; expected one axis or two"))),
            }
        },
        bind: |attrs, signature| match signature.inputs[0].shape[..] {
            [_] => bind_placed(attrs.int("k"), signature),
            _ => bind_strided(diagonal(&signature.inputs[0].shape, (0, 1), attrs.int("k"))?, signature),
        },
        form: |attrs, signature| match signature.inputs[0].shape[..] {
            [_] => placed_form(start(attrs.int("k")), signature),
            _ => strided_form(&diagonal(&signature.inputs[0].shape, (0, 1), attrs.int("k"))?),
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_np_diagflat",
        doc: "The square matrix that has the flattened array as its k-th diagonal.",
        attrs: &[K],
        infer_shape: |shapes| {
            let Some(data) = shapes.input(0) else { return Ok(()) };
            shapes.set_output(0, square(data.size(), shapes.attrs.int("k"))?)
        },
        bind: |attrs, signature| bind_placed(attrs.int("k"), signature),
        form: |attrs, signature| placed_form(start(attrs.int("k")), signature),
        ..OpDef::BASE
    },
    OpDef {
        name: "_np_diagonal",
        doc: "A diagonal of the plane of two axes, as the last axis.",
        attrs: &[OFFSET, AXIS1, AXIS2],
        infer_shape: |shapes| {
            let Some(data) = shapes.input(0) else { return Ok(()) };
            shapes.set_output(0, Shape::from(of_plane(shapes.attrs, &data)?.shape))
        },
        bind: |attrs, signature| bind_strided(of_plane(attrs, &signature.inputs[0].shape)?, signature),
        form: |attrs, signature| strided_form(&of_plane(attrs, &signature.inputs[0].shape)?),
        ..OpDef::BASE
    },
    OpDef {
        name: "_np_trace",
        doc: "The sum over a diagonal of the plane of two axes.",
        attrs: &[OFFSET, AXIS1, AXIS2],
        infer_shape: |shapes| {
            let Some(data) = shapes.input(0) else { return Ok(()) };
            let mut left = of_plane(shapes.attrs, &data)?.shape;
            left.pop();
            shapes.set_output(0, Shape::from(left))
        },
        bind: bind_trace,
        form: |attrs, signature| {
            let Strided { offset, strides, shape } = of_plane(attrs, &signature.inputs[0].shape)?;
            for_all(signature.inputs[0].dtype, KernelForm::SumsOfPart { first: offset, shape, steps: strides })
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_npi_tril",
        doc: "Matrices in the last two axes with 0 above the k-th diagonal; of a vector, the square \
              matrix whose rows it is, with 0 there.",
        attrs: &[K],
        infer_shape: |shapes| {
            let Some(data) = shapes.input(0) else { return Ok(()) };
            match data[..] {
                [] => Err(shape_error("the input is a scalar; expected one axis at least")),
                [n] => shapes.set_output(0, Shape::new(&[n, n])),
                _ => shapes.set_output(0, data),
            }
        },
        bind: bind_tril,
        form: |attrs, _| Ok(Some(KernelForm::LeftOf { right: attrs.int("k") })),
        ..OpDef::BASE
    },
    OpDef {
        name: "_npi_diag_indices_from",
        doc: "The indices of the main diagonal of an array whose axes all have one length: as many \
              rows of indices as it has axes.",
        infer_shape: |shapes| {
            let Some(data) = shapes.input(0) else { return Ok(()) };
            match (data.first(), data.len()) {
                (Some(n), rank) if rank > 1 && data.iter().all(|d| d == n) => {
                    shapes.set_output(0, Shape::new(&[rank, *n]))
                }
                _ => Err(shape_error(format!("the input has shape {data}; expected two equal axes or more"))),
            }
        },
        infer_dtype: |dtypes| dtypes.set_output(0, DType::I64),
        bind: |_, signature| {
            Ok(kernel_fn(signature, |call| {
                let n = call.outputs[0].shape.get(1).copied().unwrap_or(0).max(1);
                let out = elements_mut::<i64>(&mut call.outputs[0])?;
                out.iter_mut().enumerate().for_each(|(i, out)| *out = (i % n) as i64);
                Ok(())
            }))
        },
        ..OpDef::BASE
    },
];

/// Row and column where a diagonal begins.
fn start(k: i64) -> (usize, usize) {
    let far = usize::try_from(k.unsigned_abs()).unwrap_or(usize::MAX);
    if k < 0 { (far, 0) } else { (0, far) }
}

/// The shape of the square matrix that has `n` elements on its k-th diagonal.
fn square(n: usize, k: i64) -> Result<Shape, OpError> {
    let edge = usize::try_from(k.unsigned_abs()).ok().and_then(|far| n.checked_add(far));
    let edge = edge.ok_or_else(|| value_error(format!("k={k} is too large")))?;
    checked_product(&[edge, edge])?;
    Ok(Shape::new(&[edge, edge]))
}

/// The diagonal of a plane; without elements where it is outside.
fn diagonal(shape: &[usize], (a, b): (usize, usize), k: i64) -> Result<Strided, OpError> {
    let (row, column) = start(k);
    let n = shape[a].saturating_sub(row).min(shape[b].saturating_sub(column));
    let steps = contiguous(shape);
    let rest = (0..shape.len()).filter(|axis| *axis != a && *axis != b);
    let (mut strides, mut extents): (Vec<isize>, Vec<usize>) = rest.map(|axis| (steps[axis], shape[axis])).unzip();
    strides.push(steps[a] + steps[b]);
    extents.push(n);
    let offset = if n == 0 { 0 } else { row * steps[a] as usize + column * steps[b] as usize };
    Ok(Strided { offset, strides, shape: extents })
}

fn of_plane(attrs: &Attrs, shape: &[usize]) -> Result<Strided, OpError> {
    if shape.len() < 2 {
        return Err(shape_error(format!("the input has {} axes; a diagonal needs two at least", shape.len())));
    }
    let axes = (resolve_axis(attrs.int("axis1"), shape.len())?, resolve_axis(attrs.int("axis2"), shape.len())?);
    if axes.0 == axes.1 {
        return Err(value_error("axis1 and axis2 cannot be the same"));
    }
    diagonal(shape, axes, attrs.int("offset"))
}

/// A matrix of zeros with the input as its k-th diagonal.
fn bind_placed(k: i64, signature: &Signature<'_>) -> BoundKernel {
    let (row, column) = start(k);
    let edge = signature.outputs[0].shape[0];
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
        out.fill(0);
        let places = out.iter_mut().skip(row * edge + column).step_by(edge + 1);
        places.zip(x).for_each(|(out, x)| *out = *x);
        Ok(())
    })))
}

fn bind_trace(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let view = of_plane(attrs, &signature.inputs[0].shape)?;
    let n = view.shape.last().copied().unwrap_or(0);
    let signature = &Signature { inputs: signature.inputs, outputs: signature.outputs, options: signature.options };
    dispatch!(signature.inputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let x = elements::<T>(&call.inputs[0])?;
        let mut picked = Scratch::<T>::new(call.par, view.shape.iter().product());
        mxrt_kernels::shape::copy_strided(call.par, x, view.offset, &view.strides, &view.shape, &mut picked)
            .map_err(kernel_error)?;
        for (i, out) in elements_mut::<T>(&mut call.outputs[0])?.iter_mut().enumerate() {
            let row = &picked[i * n..(i + 1) * n];
            *out = match T::FLOAT {
                true => T::from_f64(row.iter().fold(0.0, |sum, v| sum + v.to_f64())),
                false => T::from_i64(row.iter().fold(0i64, |sum, v| sum.wrapping_add(v.to_i64()))),
            };
        }
        Ok(())
    })))
}

fn bind_tril(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let [.., rows, columns] = signature.outputs[0].shape[..] else { return Err(wrong_arity()) };
    let (k, vector) = (attrs.int("k"), signature.inputs[0].shape.len() == 1);
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
        for (i, out) in out.chunks_mut(columns.max(1)).enumerate() {
            let from = if vector { 0 } else { i * columns };
            let kept = (((i % rows.max(1)) as i64).saturating_add(k).saturating_add(1)).clamp(0, columns as i64) as usize;
            out[..kept].copy_from_slice(&x[from..from + kept]);
            out[kept..].fill(0);
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_diagonal_is_taken_or_made() {
        let x: Vec<f32> = (0..6).map(|v| v as f32).collect();
        let y = OpTest::new("_np_diag").attr("k", "1").f32([2, 3], &x).run();
        assert_eq!(f32s(&y, [2]), [1.0, 5.0]);
        assert_eq!(f32s(&OpTest::new("_np_diag").attr("k", "7").f32([2, 3], &x).run(), [0]), [0.0; 0]);
        let y = OpTest::new("_np_diag").attr("k", "-1").f32([1], &[3.0]).run();
        assert_eq!(f32s(&y, [2, 2]), [0.0, 0.0, 3.0, 0.0]);
        let y = OpTest::new("_np_trace").f32([2, 3], &x).run();
        assert_eq!(f32s(&y, []), [4.0]);
        let y = OpTest::new("_np_trace").f32([0, 3], &[]).run();
        assert_eq!(f32s(&y, [])[0].to_bits(), 0, "of no elements");
        let y = OpTest::new("_npi_tril").attr("k", "-1").f32([2, 2], &x[..4]).run();
        assert_eq!(f32s(&y, [2, 2]), [0.0, 0.0, 2.0, 0.0]);
        assert!(
            OpTest::new("_np_diagonal").attr("axis2", "0").f32([2, 3], &x).error().message.contains("axis1 and axis2")
        );
        let y = OpTest::new("_npi_diag_indices_from").f32([2, 2], &x[..4]).run();
        assert_eq!(y.values::<i64>(), [0, 1, 0, 1]);
    }
}
