//! `_contrib_calibrate_entropy`: the range of a layer whose rounding to steps loses least.

use crate::prelude::*;
use mxrt_kernels::par::{Par, par_chunks_mut_scratch};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_calibrate_entropy",
    doc: "Finds the magnitude beyond which values are clipped, so that a histogram and its values in \
        num_quantized_bins steps differ least. hist holds an odd number of counts, hist_edges the ends of its bins, \
        one more. Returns this magnitude and the divergence of Kullback and Leibler, both float32 of the shape (1,). \
        Time grows with the square of the number of bins.",
    inputs: Inputs::Fixed(&["hist", "hist_edges"]),
    attrs: &[AttrDef::new(
        "num_quantized_bins",
        AttrKind::IntFrom(1),
        "255",
        "Number of steps, 1 to the number of bins.",
    )],
    outputs: Outputs::Named(|_| &["threshold", "divergence"]),
    infer_shape: |shapes| infer_shape(shapes),
    infer_dtype: |dtypes| {
        dtypes.set_input(0, "hist", DType::F32)?;
        dtypes.set_input(1, "hist_edges", DType::F32)?;
        dtypes.set_output(0, DType::F32)?;
        dtypes.set_output(1, DType::F32)
    },
    bind: |attrs, signature| {
        let (steps, bins) = (attrs.count("num_quantized_bins"), signature.inputs[0].shape.size() as u64);
        Ok(costed_kernel_fn("calibrate", bins.saturating_mul(bins).saturating_mul(3), move |call| {
            let counts = elements::<f32>(&call.inputs[0])?;
            if let Some(bin) = counts.iter().position(|count| !(count.is_finite() && *count >= 0.0)) {
                let count = counts[bin];
                return Err(value_error(format!(
                    "hist[{bin}] is {count}; expected finite counts that are not negative"
                )));
            }
            let (half, divergence) = best_half(call.par, counts, steps);
            let edges = elements::<f32>(&call.inputs[1])?;
            elements_mut(&mut call.outputs[0])?[0] = edges[counts.len() / 2 + half + 1];
            elements_mut(&mut call.outputs[1])?[0] = divergence;
            Ok(())
        }))
    },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let one = PartialShape::from_dims([Some(1)]);
    shapes.set_output(0, one.clone())?;
    shapes.set_output(1, one)?;
    let (Some(counts), Some(edges)) = (shapes.input(0), shapes.input(1)) else { return Ok(()) };
    let (bins, ends) = (counts.size(), edges.size());
    if bins % 2 == 0 {
        return Err(shape_error(format!(
            "hist has {bins} bins (shape {counts}); the number must be odd, so that one bin has zero in its middle"
        )));
    }
    if ends != bins + 1 {
        return Err(shape_error(format!(
            "hist_edges has {ends} elements (shape {edges}); the {bins} bins of hist have {} ends",
            bins + 1
        )));
    }
    let steps = shapes.attrs.count("num_quantized_bins");
    if steps > bins {
        return Err(value_error(format!(
            "num_quantized_bins is {steps}, but hist has {bins} bins; it must be from 1 to that"
        )));
    }
    Ok(())
}

/// Ranges around zero that a thread tries one after the other.
const TOGETHER: usize = 16;

/// The number of bins on each side of zero that lose least, and the divergence. The largest number
/// stands for a divergence that no range has.
///
/// All sums are those of MXNet, in float32 and in its order, so that near ties end as there.
fn best_half(par: &dyn Par, counts: &[f32], steps: usize) -> (usize, f32) {
    let least = steps / 2;
    let mut found = Scratch::filled(par, counts.len() / 2 + 1 - least, f32::MAX);
    let bytes = 3 * size_of_val(counts);
    par_chunks_mut_scratch(par, &mut found, TOGETHER, bytes, |chunk, found, scratch| {
        let buffers: &mut [f32] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
        for (i, divergence) in found.iter_mut().enumerate() {
            *divergence = loss(counts, least + chunk * TOGETHER + i, steps, buffers);
        }
    });
    let first = (least, f32::MAX);
    found.iter().enumerate().fold(first, |best, (i, d)| if *d < best.1 { (least + i, *d) } else { best })
}

/// The divergence with `half` bins on each side of zero.
fn loss(counts: &[f32], half: usize, steps: usize, buffers: &mut [f32]) -> f32 {
    let bins = 2 * half + 1;
    let (inner, rest) = buffers.split_at_mut(bins);
    let (clipped, rest) = rest.split_at_mut(bins);
    let stepped = &mut rest[..bins];
    clip(counts, half, inner, clipped);
    step(inner, clipped, steps, stepped);
    match (smooth(clipped), smooth(stepped)) {
        (true, true) => divergence(clipped, stepped),
        _ => f32::INFINITY,
    }
}

/// Keeps the middle of the counts in `clipped`, whose ends get what lies outside. `inner` gets whole
/// counts without those, and nothing in its first bin.
fn clip(counts: &[f32], half: usize, inner: &mut [f32], clipped: &mut [f32]) {
    let zero = counts.len() / 2;
    let (start, stop) = (zero - half, zero + half + 1);
    clipped.copy_from_slice(&counts[start..stop]);
    inner.iter_mut().zip(&*clipped).for_each(|(inner, count)| *inner = count.trunc());
    inner[0] = 0.0;
    clipped[0] = counts[..=start].iter().fold(0.0, |sum, count| sum + count);
    let last = &mut clipped[2 * half];
    *last = counts[stop..].iter().fold(*last, |sum, count| sum + count);
}

/// Merges neighbouring bins into `steps` steps, each of which shares its sum among its bins that hold
/// something.
fn step(inner: &[f32], clipped: &[f32], steps: usize, stepped: &mut [f32]) {
    let merged = inner.len() / steps;
    stepped.fill(0.0);
    for j in 0..steps {
        let (start, end) = (j * merged, (j + 1) * merged);
        let stop = if j + 1 == steps { inner.len() } else { end };
        let sum = whole_sum(&inner[start..end]) + whole_sum(&inner[end..stop]);
        let filled = inner[start..stop].iter().filter(|count| **count != 0.0).count();
        let mean = if filled == 0 { 0.0 } else { sum / filled as f32 };
        let bins = stepped[start..stop].iter_mut().zip(&clipped[start..stop]);
        bins.filter(|(_, count)| **count != 0.0).for_each(|(bin, _)| *bin = mean);
    }
}

/// The sum of whole numbers, without rounding before its end.
fn whole_sum(counts: &[f32]) -> f32 {
    counts.iter().map(|count| f64::from(*count)).sum::<f64>() as f32
}

/// Takes a little from the bins that have something for those that have nothing. Returns whether
/// that is possible.
fn smooth(bins: &mut [f32]) -> bool {
    const LITTLE: f32 = 0.0001;
    let empty = bins.iter().filter(|bin| **bin == 0.0).count();
    let full = bins.len() - empty;
    let taken = LITTLE * empty as f32 / full as f32;
    if full == 0 || taken >= 1.0 {
        return false;
    }
    bins.iter_mut().for_each(|bin| *bin = if *bin == 0.0 { LITTLE } else { *bin - taken });
    bins.iter().all(|bin| *bin > 0.0)
}

/// The divergence of Kullback and Leibler of two distributions that need not sum to one.
fn divergence(p: &[f32], q: &[f32]) -> f32 {
    let sum = |bins: &[f32]| bins.iter().fold(0.0_f32, |sum, bin| sum + bin);
    let (all_p, all_q) = (sum(p), sum(q));
    p.iter().zip(q).fold(0.0, |sum, (p, q)| {
        let (p, q) = (p / all_p, q / all_q);
        sum + p * (p / q).ln()
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    fn of(counts: &[f32], edges: usize, steps: &str) -> OpTest {
        let ends: Vec<f32> = (0..edges).map(|i| (2 * i) as f32 - counts.len() as f32).collect();
        let test = OpTest::new("_contrib_calibrate_entropy").attr("num_quantized_bins", steps);
        test.f32([counts.len()], counts).f32([edges], &ends)
    }

    #[test]
    fn as_many_steps_as_bins_lose_nothing() {
        let y = of(&[0.0, 2.0, 9.0, 4.0, 7.0, 3.0, 0.0], 8, "7").run_all();
        assert_eq!((f32s(&y[0], [1]), f32s(&y[1], [1])), (vec![7.0], vec![0.0]));
    }

    #[test]
    fn a_lone_value_far_away_is_clipped() {
        let mut counts = [0.0; 101];
        (45..56).for_each(|i| counts[i] = if i % 2 == 0 { 1000.0 } else { 10.0 });
        counts[100] = 1.0;
        let y = of(&counts, 102, "11").run_all();
        assert!(f32s(&y[0], [1])[0] < 31.0, "{:?}", f32s(&y[0], [1]));
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        for (test, words) in [
            (of(&[1.0; 4], 5, "3"), "the number must be odd"),
            (of(&[1.0; 5], 5, "3"), "the 5 bins of hist have 6 ends"),
            (of(&[1.0; 5], 6, "7"), "num_quantized_bins is 7, but hist has 5 bins"),
            (of(&[1.0, f32::NAN, 1.0], 4, "3"), "hist[1] is NaN; expected finite counts"),
            (of(&[1.0, 2.0, -1.0], 4, "3"), "hist[2] is -1; expected finite counts"),
        ] {
            let error = &test.error().message;
            assert!(error.contains(words), "{error}");
        }
    }
}
