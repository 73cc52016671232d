//! Ways of running chunks that tests compare with [`Serial`](crate::par::Serial).

use crate::par::{Par, Serial};

/// Runs chunks last to first.
pub(crate) struct Reverse;

impl Par for Reverse {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        Serial.run(chunks, scratch_bytes, &|i, scratch| {
            scratch.fill(0xa5);
            body(chunks - 1 - i, scratch);
        });
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
}
