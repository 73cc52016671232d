//! Arrays whose address a program has: it may write there at any time, without telling the engine.

use crate::NDArray;
use mxrt_engine::WaitError;
use std::sync::atomic::{AtomicU64, Ordering};

/// The digest of the content that was last noticed, of an array whose address was lent;
/// [`NOT_LENT`], or [`NOT_NOTICED`] before the first.
pub(crate) type LentDigest = AtomicU64;

const NOT_LENT: u64 = 0;
const NOT_NOTICED: u64 = 1;

/// Odd, with bits that look random.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Words that are digested side by side, so that a multiplication need not wait for the last one.
const LANES: usize = 4;

/// A digest of bytes, which is neither [`NOT_LENT`] nor [`NOT_NOTICED`]. Every step is a bijection
/// of the word and of the state: a change of one word is always seen, and other changes with near
/// certainty.
fn digest(bytes: &[u8]) -> u64 {
    let step = |state: u64, word: u64| (state.rotate_left(29) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    let (groups, last) = words.as_chunks::<LANES>();
    let mut lanes = [FACTOR; LANES];
    for group in groups {
        for (lane, word) in lanes.iter_mut().zip(group) {
            *lane = step(*lane, u64::from_le_bytes(*word));
        }
    }
    let tail = last.iter().map(|word| u64::from_le_bytes(*word)).chain(rest.iter().map(|byte| u64::from(*byte)));
    lanes.into_iter().chain(tail).fold(bytes.len() as u64, step).max(NOT_NOTICED + 1)
}

impl NDArray {
    /// The address of the first element, once the value is there, for a program that keeps it and
    /// may write there. [`NDArray::notice_outside_writes`] sees what it wrote. `poll` as for
    /// [`NDArray::read`].
    pub fn lend_address(&self, poll: &mut dyn FnMut() -> bool) -> Result<*mut u8, WaitError> {
        let shared = self.share(false, poll)?;
        // One that was noticed before stays.
        let _ = self.chunk.lent.compare_exchange(NOT_LENT, NOT_NOTICED, Ordering::AcqRel, Ordering::Acquire);
        Ok(shared.address())
    }

    /// Makes a new version of an array that was written through a lent address since the last such
    /// call, so that what was computed from the old content counts no more. Reads the whole array,
    /// in this thread; costs nothing if no address was lent.
    pub fn notice_outside_writes(&self) {
        let noticed = self.chunk.lent.load(Ordering::Acquire);
        // A writer that is under way makes a new version anyway.
        if noticed == NOT_LENT || !self.is_ready() {
            return;
        }
        let found = match self.read() {
            Ok(_granted) => self.chunk.block().map(|memory| {
                // SAFETY: the memory holds as many bytes, and the grant to read keeps operators from
                // writing them; what the program does there meanwhile is its affair.
                digest(unsafe { std::slice::from_raw_parts(memory.as_ptr(), self.storage_bytes()) })
            }),
            // Whoever reads it next gets the failure.
            Err(_) => return,
        };
        let Ok(found) = found else { return };
        if noticed != found {
            // First the version: another thread that finds the new digest may rely on it.
            self.written_outside();
            self.chunk.lent.store(found, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NOT_NOTICED, digest};

    #[test]
    fn a_digest_depends_on_every_byte_and_on_the_length() {
        for length in [0, 1, 7, 8, 31, 32, 33, 100] {
            let mut bytes = vec![0u8; length];
            let before = digest(&bytes);
            assert!(before > NOT_NOTICED);
            assert_ne!(before, digest(&vec![0u8; length + 1]));
            for i in 0..length {
                bytes[i] = 1;
                assert_ne!(before, digest(&bytes), "byte {i} of {length}");
                bytes[i] = 0;
            }
        }
    }
}
