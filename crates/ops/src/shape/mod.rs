//! Shapes and places: reshaping, slicing, joining, repeating.

use crate::prelude::*;
use mxrt_kernels::shape::copy_strided;
use smallvec::SmallVec;

pub mod broadcast_axis;
pub mod broadcast_like;
pub mod broadcast_to;
pub mod concat;
pub mod crop;
pub mod depth_to_space;
pub mod diag;
pub mod expand_dims;
pub mod flatten;
pub mod pad;
pub mod repeat;
pub mod reshape;
pub mod reshape_like;
pub mod reverse;
pub mod rnn_param_concat;
pub mod shape_array;
pub mod slice;
pub mod slice_assign;
pub mod slice_axis;
pub mod slice_channel;
pub mod slice_like;
pub mod space_to_depth;
pub mod split_v2;
pub mod squeeze;
pub mod stack;
pub(crate) mod stretches;
pub mod swap_axis;
pub mod tile;
pub mod transpose;

/// Extents of which some are not known yet.
pub(crate) type PartialDims = SmallVec<[Option<usize>; 6]>;

/// The elements of input 0 in another order or number: where to start and how far to step along
/// each axis.
pub(crate) struct Strided {
    /// element that the first output element is
    pub offset: usize,
    /// steps in elements, one for each entry of `shape`
    pub strides: Vec<isize>,
    /// extents; their product is the size of the output
    pub shape: Vec<usize>,
}

impl Strided {
    /// The move for a device: the elements fill output `output`.
    pub fn moved(&self, output: usize) -> Move {
        KernelForm::strided(output, &self.shape, self.offset, &self.strides)
    }
}

/// A kernel that changes the shape only.
pub(crate) fn bind_copy(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    Ok(costed_kernel_fn("copy", elementwise_ns(signature, 0), copy_first))
}

/// A kernel that reads input 0 in steps.
pub(crate) fn bind_strided(view: Strided, signature: &Signature<'_>) -> BoundKernel {
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let x = elements::<T>(&call.inputs[0])?;
        let out = elements_mut(&mut call.outputs[0])?;
        copy_strided(call.par, x, view.offset, &view.strides, &view.shape, out).map_err(kernel_error)
    })))
}

/// The form of [`bind_strided`].
pub(crate) fn strided_form(view: &Strided) -> MaybeForm {
    Ok(Some(KernelForm::Move { fill: None, moves: vec![view.moved(0)] }))
}

/// The form of a matrix of zeros with input 0 as a diagonal, which begins in this row and column.
pub(crate) fn placed_form((row, column): (usize, usize), signature: &Signature<'_>) -> MaybeForm {
    let (input, edge) = (&signature.inputs[0], signature.outputs[0].shape.last().copied().unwrap_or(0));
    let into = (row * edge + column, vec![edge as isize + 1]);
    let moves = vec![Move { input: 0, output: 0, shape: vec![input.shape.size()], from: (0, vec![1]), into }];
    Ok(Some(KernelForm::Move { fill: Some(0.0), moves }))
}

/// The form of inputs with these extents, one after the other along the middle of three joined
/// axes.
pub(crate) fn joined(outer: usize, inner: usize, extents: impl Iterator<Item = usize> + Clone) -> KernelForm {
    let row = (extents.clone().sum::<usize>() * inner) as isize;
    let mut start = 0;
    let moves = extents.enumerate().map(|(input, extent)| {
        let own = (extent * inner) as isize;
        let into = (start * inner, vec![row, 1]);
        start += extent;
        Move { input, output: 0, shape: vec![outer, extent * inner], from: (0, vec![own, 1]), into }
    });
    KernelForm::Move { fill: None, moves: moves.collect() }
}

/// Product of the extents, if all are known.
pub(crate) fn known_product(dims: &[Option<usize>]) -> Option<usize> {
    dims.iter().try_fold(1usize, |n, d| n.checked_mul((*d)?))
}
