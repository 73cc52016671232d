//! `_image_flip_left_right` and related operators: mirrored images.

use super::one_image;
use crate::prelude::*;
use crate::random::key;
use mxrt_kernels::image::layout::mirror;
use mxrt_kernels::random::Stream;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_image_flip_left_right",
        aliases: &["_npx__image_flip_left_right"],
        doc: "Mirrors left and right of (height, width, channels).",
        bind: |_, signature| bind(signature, Side::LeftRight, false),
        form: |_, signature| Ok(Some(form(signature, Side::LeftRight))),
        ..FLIP
    },
    OpDef {
        name: "_image_flip_top_bottom",
        aliases: &["_npx__image_flip_top_bottom"],
        doc: "Mirrors top and bottom of (height, width, channels).",
        bind: |_, signature| bind(signature, Side::TopBottom, false),
        form: |_, signature| Ok(Some(form(signature, Side::TopBottom))),
        ..FLIP
    },
    OpDef {
        name: "_image_random_flip_left_right",
        aliases: &["_npx__image_random_flip_left_right"],
        doc: "Mirrors left and right of (height, width, channels), with the probability one half.",
        bind: |_, signature| bind(signature, Side::LeftRight, true),
        random: true,
        ..FLIP
    },
    OpDef {
        name: "_image_random_flip_top_bottom",
        aliases: &["_npx__image_random_flip_top_bottom"],
        doc: "Mirrors top and bottom of (height, width, channels), with the probability one half.",
        bind: |_, signature| bind(signature, Side::TopBottom, true),
        random: true,
        ..FLIP
    },
];

const FLIP: OpDef = OpDef { ignores_unknown_attrs: true, infer_shape: one_image, ..OpDef::BASE };

#[derive(Clone, Copy)]
enum Side {
    LeftRight,
    TopBottom,
}

/// The blocks whose order is reversed, and the elements of one.
fn blocks(signature: &Signature<'_>, side: Side) -> [usize; 2] {
    let shape = &signature.inputs[0].shape;
    match side {
        Side::LeftRight => [shape[1], shape[2]],
        Side::TopBottom => [shape[0], shape[1] * shape[2]],
    }
}

fn form(signature: &Signature<'_>, side: Side) -> KernelForm {
    let [count, block] = blocks(signature, side);
    let rows = signature.inputs[0].shape.size().checked_div(count * block).unwrap_or(0);
    let steps = [(count * block) as isize, -(block as isize), 1];
    let moved = KernelForm::strided(0, &[rows, count, block], count.saturating_sub(1) * block, &steps);
    KernelForm::Move { fill: None, moves: vec![moved] }
}

fn bind(signature: &Signature<'_>, side: Side, random: bool) -> BoundKernel {
    let blocks = blocks(signature, side);
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        if random {
            let RandomKey { seed, position } = key(call)?;
            if Stream::new(seed, position, 0).next_u32() & 1 == 0 {
                return copy_first(call);
            }
        }
        mirror::<T>(call.par, blocks, elements(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn images_are_mirrored() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let y = OpTest::new("_image_flip_left_right").f32([2, 3, 1], &x).run();
        assert_eq!(f32s(&y, [2, 3, 1]), [3.0, 2.0, 1.0, 6.0, 5.0, 4.0]);
        let y = OpTest::new("_image_flip_top_bottom").f32([2, 1, 3], &x).run();
        assert_eq!(f32s(&y, [2, 1, 3]), [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
        assert!(OpTest::new("_image_flip_top_bottom").f32([3, 1, 2], &x).error().message.contains("either 1 or 3"));
    }
}
