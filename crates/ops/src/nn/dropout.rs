//! `Dropout`: the identity at inference, unless it is to drop elements there, too.

use crate::prelude::*;
use crate::random::key;
use mxrt_kernels::random::{Stream, fill};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Dropout",
    aliases: &["_npx_dropout"],
    doc: "The input unchanged. With mode=always each element becomes zero with probability p, and the \
        others are divided by 1 - p; along axes one decision serves all elements.",
    hidden_outputs: |_| 1,
    attrs: &[
        AttrDef::new("p", AttrKind::FloatIn(0.0, 1.0), "0.5", "Probability that an element is dropped."),
        AttrDef::new("mode", AttrKind::Enum(&["always", "training"]), "training", "When elements are dropped."),
        AttrDef::new("axes", AttrKind::Shape, "()", "Axes along which one decision is shared."),
        AttrDef::new("cudnn_off", AttrKind::OptBool, "0", "Without effect here."),
    ],
    infer_shape: |shapes| {
        if let Some(rank) = shapes.rank(0) {
            shared_axes(shapes.attrs, rank)?;
        }
        shapes.all_same()
    },
    bind,
    random: true,
    rewrites: &Rewrites { is_identity: |attrs| !drops(attrs), ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn drops(attrs: &Attrs) -> bool {
    attrs.str("mode") == "always" && attrs.float("p") > 0.0
}

fn shared_axes(attrs: &Attrs, rank: usize) -> Result<Vec<usize>, OpError> {
    attrs.ints("axes").iter().map(|axis| resolve_axis(*axis, rank)).collect()
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    if !drops(attrs) {
        return Ok(costed_kernel_fn("copy", elementwise_ns(signature, 0), copy_first));
    }
    let shape = signature.inputs[0].shape.to_vec();
    // How far decisions of neighbours along an axis lie apart.
    let mut apart = vec![0; shape.len()];
    let shared = shared_axes(attrs, shape.len())?;
    let mut decisions = 1;
    for axis in (0..shape.len()).rev().filter(|axis| !shared.contains(axis)) {
        apart[axis] = decisions;
        decisions *= shape[axis];
    }
    let decision = move |mut element: usize| {
        let mut at = 0;
        for (extent, apart) in shape.iter().zip(&apart).rev() {
            at += element % extent * apart;
            element /= extent;
        }
        at
    };
    let dropped = attrs.float("p");
    let alone = shared.is_empty();
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let RandomKey { seed, position } = key(call)?;
        let x = elements::<T>(&call.inputs[0])?;
        fill(call.par, seed, position, elements_mut::<T>(&mut call.outputs[0])?, |element, stream| {
            let keep = match alone {
                true => stream.uniform() >= dropped,
                false => Stream::new(seed, position, decision(element) as u64).uniform() >= dropped,
            };
            if keep { x[element].to_f64() / (1.0 - dropped) } else { 0.0 }
        });
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    fn ones(axes: &str, p: &str) -> Vec<f32> {
        let ones = vec![1.0f32; 4000];
        let test = OpTest::new("Dropout").attr("mode", "always").attr("p", p).attr("axes", axes);
        f32s(&test.f32([40, 100], &ones).run(), [40, 100])
    }

    #[test]
    fn a_part_is_dropped_and_the_rest_makes_up_for_it() {
        let out = ones("()", "0.2");
        let kept = out.iter().filter(|x| **x == 1.25).count();
        assert_eq!(kept + out.iter().filter(|x| **x == 0.0).count(), 4000);
        assert!((3100..3300).contains(&kept), "{kept} of 4000 were kept");
    }

    #[test]
    fn along_axes_one_decision_is_shared() {
        for (axes, same) in [("(0,)", 100), ("(-1,)", 1)] {
            let out = ones(axes, "0.5");
            let (rows, columns) = (40, 100);
            for (at, x) in out.iter().enumerate() {
                let first = if same == 1 { at / columns * columns } else { at % columns };
                assert_eq!(*x, out[first], "axes {axes}, element {at} of {rows} x {columns}");
            }
            assert!(out.contains(&0.0) && out.contains(&2.0));
        }
    }

    #[test]
    fn an_axis_that_does_not_exist_is_an_error_where_nothing_is_dropped_too() {
        let error = OpTest::new("Dropout").attr("axes", "(2,)").f32([1, 2], &[1.0, 2.0]).error().message.clone();
        assert!(error.contains("axis 2"), "{error}");
    }

    #[test]
    fn all_may_be_dropped() {
        assert!(ones("()", "1").iter().all(|x| *x == 0.0));
    }
}
