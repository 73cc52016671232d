//! `_linalg_gemm`, `_linalg_gemm2`: scaled products of matrices.

use crate::execution::in_single;
use crate::math::dot::matrix;
use crate::prelude::*;
use crate::shape::{PartialDims, known_product};
use mxrt_kernels::gemm_plain::{Gemm, gemm};
use mxrt_kernels::{Float, Par, shape::copy_strided};
use smallvec::SmallVec;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_linalg_gemm",
        aliases: &["linalg_gemm"],
        doc: "alpha * A B + beta * C for matrices whose columns are the last axis, and whose rows \
              are the axis before it or another.",
        inputs: Inputs::Fixed(&["A", "B", "C"]),
        attrs: &[
            AttrDef::new("transpose_a", AttrKind::Bool, "False", "Transpose A."),
            AttrDef::new("transpose_b", AttrKind::Bool, "False", "Transpose B."),
            AttrDef::new("alpha", AttrKind::Float, "1", "Scale of the product.").wide(),
            AttrDef::new("beta", AttrKind::Float, "1", "Scale of C.").wide(),
            AttrDef::new("axis", AttrKind::Int, "-2", "The axis of rows; columns are the last one."),
        ],
        infer_shape: |shapes| {
            infer_shape(shapes)?;
            let product = shapes.outputs[0].clone();
            shapes.set_input(2, "C", product)
        },
        bind: |attrs, signature| bind(attrs, attrs.float("beta"), signature),
        form: |attrs, signature| form(attrs, attrs.float("beta"), signature),
        ..OpDef::BASE
    },
    OpDef {
        name: "_linalg_gemm2",
        aliases: &["linalg_gemm2"],
        doc: "alpha * A B for matrices whose columns are the last axis, and whose rows are the \
              axis before it or another.",
        inputs: Inputs::Fixed(&["A", "B"]),
        attrs: &[
            AttrDef::new("transpose_a", AttrKind::Bool, "False", "Transpose A."),
            AttrDef::new("transpose_b", AttrKind::Bool, "False", "Transpose B."),
            AttrDef::new("alpha", AttrKind::Float, "1", "Scale of the product.").wide(),
            AttrDef::new("axis", AttrKind::Int, "-2", "The axis of rows; columns are the last one."),
        ],
        infer_shape,
        bind: |attrs, signature| bind(attrs, 0.0, signature),
        form: |attrs, signature| form(attrs, 0.0, signature),
        ..OpDef::BASE
    },
];

/// The axis of rows, which is not the last one.
fn row_axis(attrs: &Attrs, rank: usize) -> Result<usize, OpError> {
    let axis = resolve_axis(attrs.int("axis"), rank)?;
    if axis + 1 == rank {
        return Err(value_error(format!("axis={axis} is the axis of columns, so it cannot be that of rows")));
    }
    Ok(axis)
}

/// Extents with those of the rows before the last one.
fn rows_inward<T: Copy>(dims: &[T], axis: usize) -> SmallVec<[T; 6]> {
    let mut moved = SmallVec::from_iter(dims.iter().copied());
    moved[axis..dims.len() - 1].rotate_left(1);
    moved
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(a), Some(b)) = (shapes.dims(0), shapes.dims(1)) else { return Ok(()) };
    let misfit = || shape_error(format!("A {} and B {} cannot be multiplied", shapes.inputs[0], shapes.inputs[1]));
    if a.len() != b.len() || a.len() < 2 {
        return Err(misfit());
    }
    let axis = row_axis(shapes.attrs, a.len())?;
    let (a, b) = (rows_inward(&a, axis), rows_inward(&b, axis));
    let (Some((batch, m, ka)), Some((other, kb, n))) =
        (matrix(&a, shapes.attrs.bool("transpose_a")), matrix(&b, shapes.attrs.bool("transpose_b")))
    else {
        return Err(misfit());
    };
    let differ = |(a, b): (&Option<usize>, &Option<usize>)| a.is_some() && b.is_some() && a != b;
    if batch.iter().zip(&other).any(differ) || differ((&ka, &kb)) {
        return Err(misfit());
    }
    let mut out: PartialDims = batch.iter().zip(&other).map(|(a, b)| a.or(*b)).collect();
    out.insert(axis, m);
    out.push(n);
    shapes.set_output(0, PartialShape::from_dims(out))
}

/// The product, and the axis of rows.
fn product(attrs: &Attrs, beta: f64, signature: &Signature<'_>) -> Result<(Gemm, usize), OpError> {
    let (transpose_a, transpose_b) = (attrs.bool("transpose_a"), attrs.bool("transpose_b"));
    let axis = row_axis(attrs, signature.inputs[0].shape.len())?;
    let partial = |shape: &Shape| rows_inward(shape, axis).into_iter().map(Some).collect::<PartialDims>();
    let a = matrix(&partial(&signature.inputs[0].shape), transpose_a);
    let b = matrix(&partial(&signature.inputs[1].shape), transpose_b);
    let (Some((batch, Some(m), Some(k))), Some((_, _, Some(n)))) = (a, b) else { return Err(wrong_arity()) };
    let Some(batch) = known_product(&batch) else { return Err(wrong_arity()) };
    let alpha = attrs.float("alpha");
    Ok((Gemm { batch, transpose_a, transpose_b, alpha, beta, ..Gemm::new(m, n, k) }, axis))
}

fn bind(attrs: &Attrs, beta: f64, signature: &Signature<'_>) -> BoundKernel {
    let (product, axis) = product(attrs, beta, signature)?;
    let inward = axis + 2 == signature.inputs[0].shape.len();
    in_single(signature, |signature| {
        let product = product.on(signature.options.isa);
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
            let ([a, b, c @ ..], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
            let (a_shape, b_shape, out_shape) = (a.shape, b.shape, out.shape);
            let (a, b) = (elements::<T>(a)?, elements::<T>(b)?);
            let out = elements_mut::<T>(out)?;
            if let Some(c) = c.first() {
                out.copy_from_slice(elements(c)?);
            }
            if inward {
                gemm(call.par, product, a, b, out);
                return Ok(());
            }
            let a = move_rows(call.par, a, a_shape, axis, Move::Inward)?;
            let b = move_rows(call.par, b, b_shape, axis, Move::Inward)?;
            let mut c = move_rows(call.par, out, out_shape, axis, Move::Inward)?;
            gemm(call.par, product, &a, &b, &mut c);
            out.copy_from_slice(&move_rows(call.par, &c, out_shape, axis, Move::Outward)?);
            Ok(())
        })))
    })
}

/// The form of the product. With factor 0 the added array is not read.
fn form(attrs: &Attrs, beta: f64, signature: &Signature<'_>) -> MaybeForm {
    let (product, axis) = product(attrs, beta, signature)?;
    let Gemm { batch, m, n, k, transpose_a, transpose_b, alpha, .. } = product;
    // Inner batches are between rows and columns.
    let between = &signature.inputs[0].shape[axis + 1..signature.inputs[0].shape.len() - 1];
    let inner = checked_product(between)?;
    let matrix = |array: usize, rows: usize, columns: usize, transposed: bool| {
        let stored = if transposed { [columns, rows] } else { [rows, columns] };
        let [row, column] = [(inner * stored[1]) as isize, 1];
        let steps = if transposed { [column, row] } else { [row, column] };
        let of_inner = if inner == 1 { 0 } else { stored[1] as isize };
        MatrixSteps { array, first: 0, steps: [stored[0] as isize * row, of_inner, steps[0], steps[1]] }
    };
    let operands = [matrix(0, m, k, transpose_a), matrix(1, k, n, transpose_b), matrix(0, m, n, false)];
    let residual = (signature.inputs.len() > 2 && beta != 0.0).then_some(2);
    let factor = residual.and((beta != 1.0).then_some(beta));
    let epilogue = SumEpilogue { residual, factor, ..SumEpilogue::default() };
    let batch = [batch.checked_div(inner).unwrap_or(0), inner];
    let form = KernelForm::Product { batch, size: [m, n, k], operands, alpha, epilogue };
    for_floats(signature.inputs[0].dtype, form)
}

/// Whether the axis of rows goes before the last one, or from there to its own place.
#[derive(Clone, Copy, PartialEq)]
enum Move {
    Inward,
    Outward,
}

/// The elements of an array of this shape (outward: that it will have), the axis of rows moved.
fn move_rows<T: Float>(par: &dyn Par, x: &[T], shape: &[usize], axis: usize, to: Move) -> Result<Scratch<T>, OpError> {
    let mut extents = rows_inward(shape, axis);
    let mut strides = vec![1isize; shape.len()];
    let from: &[usize] = if to == Move::Inward { shape } else { &extents };
    for i in (0..from.len() - 1).rev() {
        strides[i] = strides[i + 1] * from[i + 1] as isize;
    }
    let moved = &mut strides[axis..shape.len() - 1];
    match to {
        Move::Inward => moved.rotate_left(1),
        Move::Outward => {
            moved.rotate_right(1);
            extents = SmallVec::from_slice(shape);
        }
    }
    let mut out = Scratch::new(par, x.len());
    copy_strided(par, x, 0, &strides, &extents, &mut out).map_err(kernel_error)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f16s, f32s};

    fn numbers(n: usize) -> Vec<f32> {
        (0..n).map(|v| v as f32).collect()
    }

    #[test]
    fn rows_may_be_any_axis_but_the_last() {
        let product = |axis: &str| {
            let test = OpTest::new("linalg_gemm2").attr("axis", axis);
            test.f32([2, 2, 3], &numbers(12)).f32([3, 2, 2], &numbers(12))
        };
        // The first matrices are [[0, 1, 2], [6, 7, 8]] and [[0, 1], [4, 5], [8, 9]].
        let want = [20.0, 23.0, 80.0, 92.0, 92.0, 113.0, 188.0, 218.0];
        assert_close(&f32s(&product("0").run(), [2, 2, 2]), &want);
        let c = OpTest::new("linalg_gemm").attr("axis", "-3").attr("beta", "2").attr("alpha", "0.5");
        let c = c.f32([2, 2, 3], &numbers(12)).f32([3, 2, 2], &numbers(12)).f32([2, 2, 2], &[1.0; 8]);
        assert_close(&f32s(&c.run(), [2, 2, 2]), &want.map(|v| v * 0.5 + 2.0));
        assert!(product("2").error().message.contains("axis of columns"));
        assert!(product("-4").error().message.contains("axis -4"));
        assert!(product("-2").error().message.contains("cannot be multiplied"));
    }

    #[test]
    fn half_precision_is_summed_in_single_precision() {
        let ones = vec![1.0; 5000];
        let product = OpTest::new("linalg_gemm2").f16([1, 5000], &ones).f16([5000, 1], &ones);
        assert_eq!(f16s(&product.run(), [1, 1]), [5000.0]);
        let added = OpTest::new("linalg_gemm").attr("alpha", "0.5").f16([1, 5000], &ones).f16([5000, 1], &ones);
        assert_eq!(f16s(&added.f16([1, 1], &[4.0]).run(), [1, 1]), [2504.0]);
    }
}
