//! `Pooling_v1`: the pooling of MXNet's first versions, which differs from `Pooling` at edges.

use super::pooling::infer_shape;
use crate::prelude::*;
use mxrt_kernels::par::{chunk_by_work, par_chunks_mut};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Pooling_v1",
    doc: "The largest, mean or sum of sliding windows over two spatial axes, as MXNet's first \
          versions compute it.\n\nPadding takes part as zeros, in the largest too, and the mean is \
          over the whole window, even where it reaches beyond the padding.",
    attrs: &[
        AttrDef::new("kernel", AttrKind::Shape, "()", "Window: (height, width)."),
        AttrDef::new("pool_type", AttrKind::Enum(&["avg", "max", "sum"]), "max", "What is computed from a window."),
        AttrDef::new("global_pool", AttrKind::Bool, "False", "One window as large as the input; kernel is ignored."),
        AttrDef::new(
            "pooling_convention",
            AttrKind::Enum(&["full", "valid"]),
            "valid",
            "Whether the number of windows is rounded up (full) or down.",
        ),
        AttrDef::new("stride", AttrKind::Shape, "()", "Distances between windows; 1 if not given."),
        AttrDef::new("pad", AttrKind::Shape, "()", "Zeros on both sides; 0 if not given."),
    ],
    infer_shape: |shapes| {
        if shapes.rank(0).is_some_and(|rank| rank != 4) {
            return Err(shape_error(format!(
                "data has shape {}; expected (batch, channels, height, width)",
                shapes.inputs[0]
            )));
        }
        infer_shape(shapes)
    },
    bind,
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

#[derive(Clone, Copy, PartialEq)]
enum Reduction {
    Max,
    Mean,
    Sum,
}

/// The windows of an axis: the first pixel of each, counted in the padded image, and the end.
#[derive(Clone, Copy)]
struct Axis {
    size: usize,
    kernel: usize,
    stride: usize,
    pad: usize,
}

impl Axis {
    /// The pixels of a window, and whether it has padding as well.
    fn window(&self, i: usize) -> (std::ops::Range<usize>, bool) {
        let start = i * self.stride;
        let end = (start + self.kernel).min(self.size + 2 * self.pad);
        // With strides longer than windows the last one may begin after the image.
        let behind = end.saturating_sub(self.pad).min(self.size);
        let inside = (start.max(self.pad) - self.pad).min(behind)..behind;
        let padded = inside.len() < end.saturating_sub(start);
        (inside, padded)
    }
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (shape, out) = (&signature.inputs[0].shape, &signature.outputs[0].shape);
    let [_, _, rows, columns] = out[..] else { return Err(wrong_arity()) };
    let global = attrs.bool("global_pool");
    let axis = |i: usize| {
        let given = |name: &str, default: usize| {
            attrs.ints(name).get(i).and_then(|v| usize::try_from(*v).ok()).filter(|_| !global).unwrap_or(default)
        };
        Axis {
            size: shape[2 + i],
            kernel: given("kernel", shape[2 + i]),
            stride: given("stride", 1),
            pad: given("pad", 0),
        }
    };
    let [down, across] = [axis(0), axis(1)];
    let reduction = match attrs.str("pool_type") {
        "max" => Reduction::Max,
        "avg" => Reduction::Mean,
        _ => Reduction::Sum,
    };
    let plane = shape[2] * shape[3];
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let x = elements::<T>(&call.inputs[0])?;
        let band = chunk_by_work(columns.saturating_mul(down.kernel).saturating_mul(across.kernel));
        par_chunks_mut(call.par, elements_mut(&mut call.outputs[0])?, band * columns, |chunk, out| {
            for (i, out) in out.chunks_exact_mut(columns).enumerate() {
                let row = chunk * band + i;
                let x = &x[row / rows * plane..][..plane];
                for (column, out) in out.iter_mut().enumerate() {
                    let window = [down.window(row % rows), across.window(column)];
                    *out = reduce(reduction, x, [down, across], window);
                }
            }
        });
        Ok(())
    })))
}

fn reduce<T: Element>(
    reduction: Reduction,
    x: &[T],
    [down, across]: [Axis; 2],
    [(rows, above), (columns, beside)]: [(std::ops::Range<usize>, bool); 2],
) -> T {
    let pixels = rows.flat_map(|row| &x[row * across.size..][columns.clone()]);
    if reduction == Reduction::Max {
        let start = if above || beside { T::ZERO } else { T::BOTTOM };
        // A NaN, which alone is not equal to itself, is the largest of all.
        #[expect(clippy::eq_op, reason = "is_nan for all types of elements")]
        return pixels.fold(start, |max, v| if *v > max || *v != *v { *v } else { max });
    }
    let mut sum = <T::Acc as Element>::ZERO;
    pixels.for_each(|v| sum += v.acc());
    let scale = if reduction == Reduction::Mean { 1.0 / (down.kernel as f64 * across.kernel as f64) } else { 1.0 };
    T::from_acc(sum * T::Acc::from_f64(scale))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn pooled(attrs: &[(&str, &str)]) -> OpTest {
        let x: Vec<f32> = (0..16).map(|v| v as f32 - 20.0).collect();
        OpTest::new("Pooling_v1").attrs(attrs).f32([1, 1, 4, 4], &x)
    }

    #[test]
    fn padding_takes_part_as_zeros() {
        let three = [("kernel", "(3, 3)"), ("stride", "(2, 2)"), ("pad", "(1, 1)")];
        let of = |more: &[(&str, &str)]| pooled(&[&three[..], more].concat()).run();
        assert_close(&f32s(&of(&[]), [1, 1, 2, 2]), &[0.0, 0.0, 0.0, -5.0]);
        // The last windows reach beyond the padding, but are divided by nine all the same.
        let mean = of(&[("pool_type", "avg"), ("pooling_convention", "full")]);
        assert_close(&f32s(&mean, [1, 1, 3, 3])[..3], &[-70.0 / 9.0, -96.0 / 9.0, -30.0 / 9.0]);
        assert_close(&f32s(&mean, [1, 1, 3, 3])[6..], &[-15.0 / 9.0, -18.0 / 9.0, -5.0 / 9.0]);
        let sum = pooled(&[("pool_type", "sum"), ("global_pool", "True")]).run();
        assert_close(&f32s(&sum, [1, 1, 1, 1]), &[-200.0]);
    }

    /// MXNet 1.9.1 computes this.
    #[test]
    fn infinities_and_nan_take_part() {
        let of = |x: [f32; 4], pad: &str, outputs: usize| {
            let test = OpTest::new("Pooling_v1").attr("kernel", "(2, 2)").attr("pad", pad);
            f32s(&test.f32([1, 1, 2, 2], &x).run(), [1, 1, outputs, outputs])
        };
        let inf = f32::INFINITY;
        assert_eq!(of([-inf; 4], "(0, 0)", 1), [-inf]);
        assert_eq!(of([-inf; 4], "(1, 1)", 3), [0.0, 0.0, 0.0, 0.0, -inf, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(of([1.0, inf, 2.0, 3.0], "(1, 1)", 3), [1.0, inf, inf, 2.0, inf, inf, 2.0, 3.0, 3.0]);
        let nan = of([f32::NAN, 1.0, 2.0, 3.0], "(1, 1)", 3);
        assert_eq!(
            nan.iter().map(|v| v.is_nan()).collect::<Vec<_>>(),
            [true, true, false, true, true, false, false, false, false]
        );
        assert_eq!(nan[5..], [3.0, 2.0, 3.0, 3.0]);
    }

    #[test]
    fn windows_behind_the_image_have_no_pixels() {
        let far = [("kernel", "(1, 1)"), ("stride", "(7, 7)"), ("pooling_convention", "full"), ("pool_type", "sum")];
        assert_close(&f32s(&pooled(&far).run(), [1, 1, 2, 2]), &[-20.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn what_it_cannot_pool_is_refused() {
        assert!(pooled(&[("kernel", "(5, 5)")]).error().message.contains("kernel size (5) exceeds input (4"));
        let flat = OpTest::new("Pooling_v1").attr("kernel", "2").f32([1, 1, 2], &[0.0; 2]).error();
        assert!(flat.message.contains("(batch, channels, height, width)"), "{}", flat.message);
    }
}
