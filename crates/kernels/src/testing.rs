//! Ways of running chunks that tests compare with [`Serial`](crate::par::Serial).

use crate::par::{Par, Serial};
use std::ops::Range;

/// Runs chunks last to first.
pub(crate) struct Reverse;

impl Par for Reverse {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        Serial.run(chunks, scratch_bytes, &|i, scratch| {
            scratch.fill(0xa5);
            body(chunks - 1 - i, scratch);
        });
    }

    fn parallelism(&self) -> usize {
        5
    }
}

/// Runs chunks on this many threads, interleaved.
pub(crate) struct Threads(pub usize);

impl Par for Threads {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        std::thread::scope(|scope| {
            for t in 0..self.0 {
                scope.spawn(move || {
                    let mine = (chunks + self.0 - 1 - t) / self.0;
                    Serial.run(mine, scratch_bytes, &|i, scratch| body(t + i * self.0, scratch));
                });
            }
        });
    }

    fn parallelism(&self) -> usize {
        self.0
    }
}

/// Shares units among this many, last to first, as unevenly as may be: the first have one each, the
/// last twice an even part.
pub(crate) struct Uneven(pub usize);

impl Par for Uneven {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        Reverse.run(chunks, scratch_bytes, body);
    }

    fn run_static(&self, units: usize, scratch_bytes: usize, body: &(dyn Fn(Range<usize>, &mut [u8]) + Sync)) {
        let parallelism = self.parallelism().min(units);
        if parallelism == 0 {
            return;
        }
        let most = 2 * units.div_ceil(parallelism);
        self.run(parallelism, scratch_bytes, &|part, scratch| {
            let ends = |part: usize| {
                (0..parallelism - 1 - part).fold(units, |end, i| end - most.min(end - (parallelism - 1 - i)))
            };
            let begin = if part == 0 { 0 } else { ends(part - 1) };
            body(begin..ends(part), scratch);
        });
    }

    fn parallelism(&self) -> usize {
        self.0
    }
}

/// Reproducible numbers in -1..1.
pub(crate) fn random(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / 8388608.0 - 1.0
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Random numbers like those of [`random`], in double precision.
pub(crate) fn random64(len: usize, seed: u64) -> Vec<f64> {
    random(len, seed).into_iter().map(f64::from).collect()
}

/// Fails unless `got` is within `tolerance` of `want`, relative to the largest of `want` (or a
/// thousandth).
#[track_caller]
pub(crate) fn assert_close(got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    let scale = want.iter().fold(1e-3f64, |m, v| m.max(v.abs()));
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        assert!((g as f64 - w).abs() <= tolerance * scale, "element {i} is {g}, expected {w}");
    }
}
