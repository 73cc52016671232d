//! `_contrib_interleaved_matmul_*`: the products of attention, on projections that are interleaved
//! by head.

use crate::prelude::*;
use crate::shape::Strided;
use mxrt_engine::OpError;
use mxrt_kernels::Float;
use mxrt_kernels::gemm::{BatchProduct, Matrices, MatricesMut, Places};
use mxrt_kernels::gemm_plain::{Gemm, gemm};
use mxrt_kernels::par::Par;
use mxrt_kernels::shape::copy_strided;
use mxrt_tensor::{DType, PartialShape, Shape, TensorRef};

const HEADS: &[AttrDef] = &[AttrDef::required("heads", AttrKind::IntFrom(1), "Number of heads.")];

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_contrib_interleaved_matmul_selfatt_qk",
        doc: "Scaled products of queries and keys: (time, batch, heads * 3 * dim) gives (batch * \
            heads, time, time).",
        inputs: Inputs::Fixed(&["queries_keys_values"]),
        attrs: HEADS,
        infer_shape: |shapes| infer_scores(shapes, 3, None),
        bind: |attrs, signature| bind_scores(attrs, signature, [(0, 3, 0), (0, 3, 1)]),
        form: |attrs, signature| scores_form(attrs, signature, [(0, 3, 0), (0, 3, 1)]),
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_interleaved_matmul_selfatt_valatt",
        doc: "Values weighted by attention: (time, batch, heads * 3 * dim) and (batch * heads, \
            time, time) give (time, batch, heads * dim).",
        inputs: Inputs::Fixed(&["queries_keys_values", "attention"]),
        attrs: HEADS,
        infer_shape: |shapes| infer_values(shapes, 3),
        bind: |attrs, signature| bind_values(attrs, signature, (0, 3, 2)),
        form: |attrs, signature| values_form(attrs, signature, (0, 3, 2)),
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_interleaved_matmul_encdec_qk",
        doc: "Scaled products of queries (time, batch, heads * dim) and keys (other time, batch, \
            heads * 2 * dim).",
        inputs: Inputs::Fixed(&["queries", "keys_values"]),
        attrs: HEADS,
        infer_shape: |shapes| infer_scores(shapes, 1, Some(2)),
        bind: |attrs, signature| bind_scores(attrs, signature, [(0, 1, 0), (1, 2, 0)]),
        form: |attrs, signature| scores_form(attrs, signature, [(0, 1, 0), (1, 2, 0)]),
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_interleaved_matmul_encdec_valatt",
        doc: "Values (other time, batch, heads * 2 * dim) weighted by attention: (time, batch, \
            heads * dim).",
        inputs: Inputs::Fixed(&["keys_values", "attention"]),
        attrs: HEADS,
        infer_shape: |shapes| infer_values(shapes, 2),
        bind: |attrs, signature| bind_values(attrs, signature, (0, 2, 1)),
        form: |attrs, signature| values_form(attrs, signature, (0, 2, 1)),
        ..OpDef::BASE
    },
];

/// The position of a projection: input, projections in it, and its place among them.
type ProjectionIndex = (usize, usize, usize);

/// Time, batch and dimension of a head of an input with `parts` projections.
fn head(shape: &Shape, heads: usize, parts: usize) -> Result<[usize; 3], OpError> {
    let columns = checked_product(&[heads, parts])?;
    match shape[..] {
        [time, batch, width] if width % columns == 0 => Ok([time, batch, width / columns]),
        _ => Err(shape_error(format!(
            "an input has shape {shape}; needed is (time, batch, heads * {parts} * dim) with heads={heads}: three \
             axes, the last a multiple of {columns}"
        ))),
    }
}

/// The known extents of an input of three axes.
fn extents(shapes: &Shapes<'_>, input: usize) -> Option<[Option<usize>; 3]> {
    shapes.inputs.get(input)?.dims()?.try_into().ok()
}

fn infer_scores(shapes: &mut Shapes<'_>, parts: usize, other: Option<usize>) -> Result<(), OpError> {
    let heads = shapes.attrs.count("heads");
    if let Some([time, batch, _]) = extents(shapes, 0)
        && let Some([keys, ..]) = extents(shapes, usize::from(other.is_some()))
    {
        let rows = batch.and_then(|batch| batch.checked_mul(heads));
        shapes.set_output(0, PartialShape::from_dims([rows, time, keys]))?;
    }
    let Some(queries) = shapes.input(0) else { return Ok(()) };
    let [time, batch, dim] = head(&queries, heads, parts)?;
    let keys = match other {
        None => time,
        Some(parts) => {
            let Some(keys) = shapes.input(1) else { return Ok(()) };
            let [keys_time, keys_batch, keys_dim] = head(&keys, heads, parts)?;
            if (keys_batch, keys_dim) != (batch, dim) {
                return Err(shape_error(format!("queries {queries} and keys_values {keys} do not fit")));
            }
            keys_time
        }
    };
    shapes.set_output(0, Shape::new(&[checked_product(&[batch, heads])?, time, keys]))
}

fn infer_values(shapes: &mut Shapes<'_>, parts: usize) -> Result<(), OpError> {
    let heads = shapes.attrs.count("heads");
    if let (Some([_, batch, width]), Some([_, queries, _])) = (extents(shapes, 0), extents(shapes, 1)) {
        let columns = checked_product(&[heads, parts])?;
        let width = width.filter(|width| width % columns == 0).map(|width| width / parts);
        shapes.set_output(0, PartialShape::from_dims([queries, batch, width]))?;
    }
    let (Some(values), Some(attention)) = (shapes.input(0), shapes.input(1)) else { return Ok(()) };
    let [time, batch, dim] = head(&values, heads, parts)?;
    let needed = checked_product(&[batch, heads])?;
    match attention[..] {
        [rows, queries, keys] if rows == needed && keys == time => {
            shapes.set_output(0, Shape::new(&[queries, batch, heads * dim]))
        }
        _ => Err(shape_error(format!("attention has shape {attention}; needed is ({needed}, time, {time})"))),
    }
}

/// The projection of every head as a matrix (time, dim), one after another.
fn heads_of(shape: &Shape, heads: usize, (_, parts, part): ProjectionIndex) -> Result<Strided, OpError> {
    let [time, batch, dim] = head(shape, heads, parts)?;
    let width = heads * parts * dim;
    Ok(Strided {
        offset: part * dim,
        strides: vec![width as isize, (parts * dim) as isize, (batch * width) as isize, 1],
        shape: vec![batch, heads, time, dim],
    })
}

impl Strided {
    /// A view (batch, heads, rows, columns) as a matrix for each of the first two.
    fn matrix(&self, array: usize, transposed: bool) -> MatrixSteps {
        let [batch, head, row, column] = self.strides[..] else {
            return MatrixSteps { array, first: 0, steps: [0; 4] };
        };
        let steps = if transposed { [batch, head, column, row] } else { [batch, head, row, column] };
        MatrixSteps { array, first: self.offset, steps }
    }
}

/// Places of a form's matrices in the array.
fn places(steps: &MatrixSteps) -> Places {
    let [outer, inner, row, column] = steps.steps.map(|step| step as usize);
    Places { first: steps.first, batch: [outer, inner], row, column }
}

/// The products in float32, read and written where the operands are.
fn bind_in_place(form: &KernelForm, signature: &Signature<'_>) -> Option<BoundKernel> {
    let KernelForm::Product { batch, size, operands, alpha, .. } = form else { return None };
    if signature.inputs.iter().any(|input| input.dtype != DType::F32) {
        return None;
    }
    let product = BatchProduct::new(*batch, *size, signature.options.isa).scaled(*alpha as f32, 0.0);
    let [left, right] = [operands[0].array, operands[1].array];
    let at = [places(&operands[0]), places(&operands[1]), places(&operands[2])];
    Some(Ok(kernel_fn(signature, move |call| {
        let a = Matrices { data: elements(&call.inputs[left])?, at: at[0] };
        let b = Matrices { data: elements(&call.inputs[right])?, at: at[1] };
        let c = MatricesMut { data: elements_mut(&mut call.outputs[0])?, at: at[2] };
        product.run(call.par, a, b, c);
        Ok(())
    })))
}

fn gather<T: Float>(par: &dyn Par, x: &TensorRef<'_>, view: &Strided) -> Result<Scratch<T>, OpError> {
    let mut out = Scratch::new(par, checked_product(&view.shape)?);
    copy_strided(par, elements(x)?, view.offset, &view.strides, &view.shape, &mut out).map_err(kernel_error)?;
    Ok(out)
}

/// The factor of the products of vectors of `dim` numbers.
fn score_scale(dim: usize) -> f64 {
    1.0 / (dim.max(1) as f64).sqrt()
}

/// The scaled products of `bind_scores`.
fn scores_form(attrs: &Attrs, signature: &Signature<'_>, places: [ProjectionIndex; 2]) -> MaybeForm {
    let heads = attrs.count("heads");
    let [queries, keys] = places;
    let view = |place: ProjectionIndex| heads_of(&signature.inputs[place.0].shape, heads, place);
    let (left, right) = (view(queries)?, view(keys)?);
    let [batch, m, n] = signature.outputs[0].shape[..] else { return Err(wrong_arity()) };
    let k = left.shape[3];
    let form = KernelForm::Product {
        batch: [batch / heads.max(1), heads],
        size: [m, n, k],
        operands: [
            left.matrix(queries.0, false),
            right.matrix(keys.0, true),
            MatrixSteps { array: 0, first: 0, steps: [(heads * m * n) as isize, (m * n) as isize, n as isize, 1] },
        ],
        alpha: score_scale(k),
        epilogue: SumEpilogue::default(),
    };
    Ok(Some(form))
}

fn bind_scores(
    attrs: &Attrs,
    signature: &Signature<'_>,
    places: [ProjectionIndex; 2],
) -> Result<Box<dyn Kernel>, OpError> {
    let heads = attrs.count("heads");
    let [queries, keys] = places;
    let view = |place: ProjectionIndex| heads_of(&signature.inputs[place.0].shape, heads, place);
    let (left, right) = (view(queries)?, view(keys)?);
    let [batch, m, n] = signature.outputs[0].shape[..] else { return Err(wrong_arity()) };
    let k = left.shape[3];
    let product = Gemm { batch, transpose_b: true, alpha: score_scale(k), ..Gemm::new(m, n, k) };
    let form = scores_form(attrs, signature, places)?;
    in_single(signature, |signature| {
        if let Some(kernel) = form.and_then(|form| bind_in_place(&form, signature)) {
            return kernel;
        }
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
            let a = gather::<T>(call.par, &call.inputs[queries.0], &left)?;
            let b = gather::<T>(call.par, &call.inputs[keys.0], &right)?;
            gemm(call.par, product, &a, &b, elements_mut(&mut call.outputs[0])?);
            Ok(())
        })))
    })
}

/// The sums of `bind_values`.
fn values_form(attrs: &Attrs, signature: &Signature<'_>, place: ProjectionIndex) -> MaybeForm {
    let heads = attrs.count("heads");
    let view = heads_of(&signature.inputs[place.0].shape, heads, place)?;
    let [batch, m, k] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    let n = view.shape[3];
    let form = KernelForm::Product {
        batch: [batch / heads.max(1), heads],
        size: [m, n, k],
        operands: [
            MatrixSteps { array: 1, first: 0, steps: [(heads * m * k) as isize, (m * k) as isize, k as isize, 1] },
            view.matrix(0, false),
            MatrixSteps { array: 0, first: 0, steps: [(heads * n) as isize, n as isize, (batch * n) as isize, 1] },
        ],
        alpha: 1.0,
        epilogue: SumEpilogue::default(),
    };
    Ok(Some(form))
}

fn bind_values(attrs: &Attrs, signature: &Signature<'_>, place: ProjectionIndex) -> Result<Box<dyn Kernel>, OpError> {
    let heads = attrs.count("heads");
    let view = heads_of(&signature.inputs[place.0].shape, heads, place)?;
    let [batch, m, k] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    let n = view.shape[3];
    let product = Gemm { batch, ..Gemm::new(m, n, k) };
    // From (batch * heads, time, dim) to (time, batch * heads, dim).
    let back = [n as isize, (m * n) as isize, 1];
    let form = values_form(attrs, signature, place)?;
    in_single(signature, |signature| {
        if let Some(kernel) = form.and_then(|form| bind_in_place(&form, signature)) {
            return kernel;
        }
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
            let values = gather::<T>(call.par, &call.inputs[0], &view)?;
            let mut mixed = Scratch::new(call.par, batch * m * n);
            gemm(call.par, product, elements(&call.inputs[1])?, &values, &mut mixed);
            let out = elements_mut(&mut call.outputs[0])?;
            copy_strided(call.par, &mixed, 0, &back, &[m, batch, n], out).map_err(kernel_error)
        })))
    })
}
