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

impl RandomKey {
    /// Piece `position` of the stream that belongs to this piece: what the random operators inside
    /// a loop draw, one piece for each of them in each iteration.
    pub fn inner(self, position: u64) -> RandomKey {
        let mixed = |n: u64| {
            let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            n ^ (n >> 31)
        };
        RandomKey { seed: mixed(self.seed ^ mixed(self.position.wrapping_add(0x9e37_79b9_7f4a_7c15))), position }
    }
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
