//! Random streams: counter-based, so that bits depend on the seed and the order of pushes alone.

use mxrt_engine::ForkSafeMutex as Mutex;

/// A piece of a random stream: key and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomKey {
    /// seed of the stream
    pub seed: u64,
    /// number of the draw in the stream
    pub position: u64,
}

/// The stream that random operators draw from. The position is drawn when an operation is pushed.
#[derive(Debug)]
pub struct RandomState {
    next: Mutex<RandomKey>,
}

impl RandomState {
    /// A stream with this seed, at its beginning.
    pub fn new(seed: u64) -> RandomState {
        RandomState { next: Mutex::new(RandomKey { seed, position: 0 }) }
    }

    /// Starts again with another seed.
    pub fn seed(&self, seed: u64) {
        *self.next.lock() = RandomKey { seed, position: 0 };
    }

    /// The next piece.
    pub fn draw(&self) -> RandomKey {
        let mut next = self.next.lock();
        let key = *next;
        next.position += 1;
        key
    }
}
