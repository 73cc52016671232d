//! `_blocked_elementwise`: a chain of element-wise operators on blocked operands.

use super::{infer_from_layout, shape_of};
use crate::graph::fused_elementwise::{FusedChain, NUM_ARGS, PROGRAM, REPEATED, whole_inputs};
use crate::prelude::*;
use mxrt_kernels::blocked::{BLOCK, BlockedShape};
use mxrt_kernels::par::par_chunks_mut;
use mxrt_tensor::TensorType;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_blocked_elementwise",
    doc: "`_fused_elementwise` on blocked data.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg", named: |_| None },
    attrs: &[NUM_ARGS, PROGRAM, REPEATED, LAYOUTS, OUT_LAYOUT],
    infer_shape: |shapes| infer_from_layout(shapes),
    bind,
    internal: true,
    ..OpDef::BASE
}];

/// The offer of a chain on images. What repeats over these stays plain.
pub(crate) fn form(attrs: &Attrs, signature: &Signature<'_>) -> Option<BlockedForm> {
    super::pointwise::form("_blocked_elementwise", signature, whole_inputs(attrs, signature.inputs.len()))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (layouts, output) = layouts(attrs)?;
    let y = shape_of(Some(&output), signature)?;
    let chain = FusedChain::new(attrs, &plain_shapes(&layouts, signature, y.n))?;
    let whole = layouts.iter().take(chain.whole).map(|l| shape_of(Some(l), signature));
    let inputs: Vec<BlockedShape> = whole.collect::<Result<_, _>>()?;
    let repeated_blocked = layouts.iter().skip(chain.whole).any(|l| l.blocked().is_some());
    if inputs.iter().any(|x| !x.same_size(&y) || x.block != BLOCK) || y.block != BLOCK || repeated_blocked {
        return Err(value_error("the operands of an element-wise operator differ in size or layout"));
    }
    // Halos are written as well: what is overwritten has to lie like the output.
    let in_place = (0..inputs.len()).filter(|i| inputs[*i] == y).collect();
    Ok(in_place_kernel_fn(chain.describe(), chain.cost_ns(signature), in_place, move |call| {
        let data = call.inputs.iter().map(elements::<f32>).collect::<Result<Vec<_>, _>>()?;
        let [out] = &mut *call.outputs else { return Err(wrong_arity()) };
        if y.len() == 0 {
            return Ok(());
        }
        let (row, width) = (y.row_stride(), y.w * BLOCK);
        // One block of channels is a chunk.
        par_chunks_mut(call.par, &mut elements_mut(out)?[..y.len()], y.block_stride(), |index, out| {
            let (image, block) = (index / y.blocks(), index % y.blocks());
            let mut scratch = chain.scratch();
            let channels = (block * BLOCK..y.c).take(BLOCK);
            chain.broadcast(&mut scratch, &data, |lanes, value| {
                repeat(lanes, channels.clone().map(|c| value(image, c)))
            });
            out[..y.halo.top * row].fill(0.0);
            out[(y.halo.top + y.h) * row..].fill(0.0);
            for (r, line) in out[y.halo.top * row..].chunks_exact_mut(row).take(y.h).enumerate() {
                let left = y.halo.left * BLOCK;
                line[..left].fill(0.0);
                line[left + width..].fill(0.0);
                let from = |i: usize| data[i].get(offset(&inputs[i], image, block, r)..).unwrap_or(&[]);
                chain.run(&mut scratch, from, call.shared, &mut line[left..left + width]);
            }
        });
        Ok(())
    }))
}

/// The shapes that operands have without blocks.
fn plain_shapes(layouts: &[Layout], signature: &Signature<'_>, n: usize) -> Vec<Shape> {
    let plain = |(layout, tensor): (&Layout, &TensorType)| match layout {
        Layout::Plain => tensor.shape.clone(),
        Layout::Blocked(layout) => layout.logical(n),
    };
    layouts.iter().zip(signature.inputs).map(plain).collect()
}

/// The values of the channels of a block for pixel after pixel; zeros beyond the last channel,
/// which is never read.
fn repeat(pixels: &mut [f32], values: impl Iterator<Item = f32>) {
    let mut lanes = [0.0; BLOCK];
    lanes.iter_mut().zip(values).for_each(|(lane, value)| *lane = value);
    pixels.chunks_exact_mut(BLOCK).for_each(|pixel| pixel.copy_from_slice(&lanes));
}

/// The offset of the first pixel of a row of a block of channels.
fn offset(x: &BlockedShape, image: usize, block: usize, row: usize) -> usize {
    image * x.image_stride + block * x.block_stride() + (x.halo.top + row) * x.row_stride() + x.halo.left * x.block
}
