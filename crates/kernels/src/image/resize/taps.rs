//! Pixels of an axis that make a pixel of the output.

use std::ops::Range;

/// The pixels of an axis that each pixel of the output is made of, neighbours all, with their
/// shares.
pub(super) struct Taps {
    /// places where the taps of each output begin in the two lists below; one more at the end
    pub(super) starts: Vec<usize>,
    pub(super) sources: Vec<u32>,
    pub(super) shares: Vec<f32>,
}

impl Taps {
    pub(super) fn of(&self, output: usize) -> impl Iterator<Item = (usize, f32)> {
        let range = self.starts[output]..self.starts[output + 1];
        self.sources[range.clone()].iter().map(|s| *s as usize).zip(self.shares[range].iter().copied())
    }

    /// Most taps of one output.
    pub(super) fn most(&self) -> usize {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    fn new(from: usize, range: Range<usize>, mut taps: impl FnMut(usize, &mut dyn FnMut(i64, f32))) -> Taps {
        let mut made = Taps { starts: vec![0], sources: Vec::new(), shares: Vec::new() };
        for i in range {
            taps(i, &mut |source, share| {
                made.sources.push(source.clamp(0, from as i64 - 1) as u32);
                made.shares.push(share);
            });
            made.starts.push(made.sources.len());
        }
        made
    }

    pub(super) fn nearest(from: usize, to: usize, range: Range<usize>) -> Taps {
        let scale = 1.0 / (to as f64 / from as f64);
        Taps::new(from, range, |i, add| add((i as f64 * scale).floor() as i64, 1.0))
    }

    /// The position of an output: the pixel before it, and the way to the next one.
    fn position(from: usize, to: usize, i: usize) -> (i64, f32) {
        let scale = 1.0 / (to as f64 / from as f64);
        let at = ((i as f64 + 0.5) * scale - 0.5) as f32;
        (at.floor() as i64, at - at.floor())
    }

    pub(super) fn linear(from: usize, to: usize, range: Range<usize>) -> Taps {
        Taps::new(from, range, |i, add| {
            let (before, part) = Taps::position(from, to, i);
            add(before, 1.0 - part);
            add(before + 1, part);
        })
    }

    /// Linear interpolation with shares of 8 bits.
    pub(super) fn linear_exact(from: usize, to: usize, range: Range<usize>) -> Taps {
        let scale = 1.0 / (to as f64 / from as f64);
        Taps::new(from, range, |i, add| {
            let at = (i as f64 + 0.5) * scale - 0.5;
            let part = ((at - at.floor()) * 256.0).round_ties_even() as f32 / 256.0;
            add(at.floor() as i64, 1.0 - part);
            add(at.floor() as i64 + 1, part);
        })
    }

    /// Linear interpolation for the axes that grow when the mean of areas is asked for.
    pub(super) fn linear_area(from: usize, to: usize, range: Range<usize>) -> Taps {
        let inverse = to as f64 / from as f64;
        let scale = 1.0 / inverse;
        Taps::new(from, range, |i, add| {
            let before = (i as f64 * scale).floor() as i64;
            let part = ((i + 1) as f64 - (before + 1) as f64 * inverse) as f32;
            let part = if part <= 0.0 || before >= from as i64 - 1 { 0.0 } else { part - part.floor() };
            add(before, 1.0 - part);
            add(before + 1, part);
        })
    }

    pub(super) fn cubic(from: usize, to: usize, range: Range<usize>) -> Taps {
        const A: f32 = -0.75;
        Taps::new(from, range, |i, add| {
            let (before, x) = Taps::position(from, to, i);
            let outer = ((A * (x + 1.0) - 5.0 * A) * (x + 1.0) + 8.0 * A) * (x + 1.0) - 4.0 * A;
            let inner = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
            let shares = [outer, inner(x), inner(1.0 - x)];
            let rest = shares.iter().fold(1.0, |rest, share| rest - share);
            for (k, share) in shares.into_iter().chain([rest]).enumerate() {
                add(before - 1 + k as i64, share);
            }
        })
    }

    pub(super) fn lanczos(from: usize, to: usize, range: Range<usize>) -> Taps {
        Taps::new(from, range, |i, add| {
            let (before, x) = Taps::position(from, to, i);
            let mut shares = [0.0; 8];
            if x < f32::EPSILON {
                shares[3] = 1.0;
            } else {
                // The sine of each distance follows from that of the first, as in OpenCV.
                let quarter = std::f64::consts::FRAC_PI_4;
                let part = std::f64::consts::FRAC_1_SQRT_2;
                let turns = [(1.0, 0.0), (-part, -part), (0.0, 1.0), (part, -part)];
                let (sine, cosine) = (f64::from(x + 3.0) * -quarter).sin_cos();
                for (k, share) in shares.iter_mut().enumerate() {
                    let y = f64::from(x + 3.0 - k as f32) * -quarter;
                    let ((a, b), sign) = (turns[k % 4], if k < 4 { 1.0 } else { -1.0 });
                    *share = (sign * (a * sine + b * cosine) / (y * y)) as f32;
                }
                let scale = 1.0 / shares.iter().sum::<f32>();
                shares.iter_mut().for_each(|share| *share *= scale);
            }
            for (k, share) in shares.into_iter().enumerate() {
                add(before - 3 + k as i64, share);
            }
        })
    }

    /// The pixels that an output covers, for axes that shrink.
    pub(super) fn area(from: usize, to: usize, range: Range<usize>) -> Taps {
        let scale = 1.0 / (to as f64 / from as f64);
        Taps::new(from, range, |i, add| {
            let begin = i as f64 * scale;
            let end = begin + scale;
            let cell = scale.min(from as f64 - begin);
            let last = (end.floor() as i64).min(from as i64 - 1);
            let first = (begin.ceil() as i64).min(last);
            if first as f64 - begin > 1e-3 {
                add(first - 1, ((first as f64 - begin) / cell) as f32);
            }
            for source in first..last {
                add(source, (1.0 / cell) as f32);
            }
            if end - last as f64 > 1e-3 {
                add(last, ((end - last as f64).min(1.0).min(cell) / cell) as f32);
            }
        })
    }
}
