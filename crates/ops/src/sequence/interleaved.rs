//! Projections that are interleaved by head, and products of them.

use crate::prelude::*;
use crate::shape::Strided;
use mxrt_kernels::Float;
use mxrt_kernels::gemm::{BatchProduct, Matrices, MatricesMut, Places};
use mxrt_kernels::par::Par;
use mxrt_kernels::shape::copy_strided;
use mxrt_tensor::TensorRef;

pub(super) const HEADS: &[AttrDef] = &[AttrDef::required("heads", AttrKind::IntFrom(1), "Number of heads.")];

/// The position of a projection: input, projections in it, and its place among them.
pub(super) type ProjectionIndex = (usize, usize, usize);

/// Time, batch and dimension of a head of an input with `parts` projections.
pub(super) fn head(shape: &Shape, heads: usize, parts: usize) -> Result<[usize; 3], OpError> {
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
pub(super) fn extents(shapes: &Shapes<'_>, input: usize) -> Option<[Option<usize>; 3]> {
    shapes.inputs.get(input)?.dims()?.try_into().ok()
}

/// The projection of every head as a matrix (time, dim), one after another.
pub(super) fn heads_of(shape: &Shape, heads: usize, (_, parts, part): ProjectionIndex) -> Result<Strided, OpError> {
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
    pub(super) fn matrix(&self, array: usize, transposed: bool) -> MatrixSteps {
        let [batch, head, row, column] = self.strides[..] else {
            return MatrixSteps { array, first: 0, steps: [0; 4] };
        };
        let steps = if transposed { [batch, head, column, row] } else { [batch, head, row, column] };
        MatrixSteps { array, first: self.offset, steps }
    }
}

/// Places of a form's matrices in the array.
pub(super) fn places(steps: &MatrixSteps) -> Places {
    let [outer, inner, row, column] = steps.steps.map(|step| step as usize);
    Places { first: steps.first, batch: [outer, inner], row, column }
}

/// The products in float32, read and written where the operands are.
pub(super) fn bind_in_place(form: &KernelForm, signature: &Signature<'_>) -> Option<BoundKernel> {
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

pub(super) fn gather<T: Float>(par: &dyn Par, x: &TensorRef<'_>, view: &Strided) -> Result<Scratch<T>, OpError> {
    let mut out = Scratch::new(par, checked_product(&view.shape)?);
    copy_strided(par, elements(x)?, view.offset, &view.strides, &view.shape, &mut out).map_err(kernel_error)?;
    Ok(out)
}
