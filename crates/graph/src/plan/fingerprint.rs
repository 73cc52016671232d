//! Fingerprints: short names of contents.

use mxrt_engine::ForkSafeOnce;
use std::hash::{BuildHasher, Hash, RandomState};

/// A name of a content: 128 bits of two hashes with secret keys, which differ from process to
/// process. Different contents have different fingerprints, also where they were chosen to collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u64; 2]);

impl Fingerprint {
    /// The fingerprint of a content.
    pub fn of(content: impl Hash) -> Fingerprint {
        static KEYS: ForkSafeOnce<[RandomState; 2]> = ForkSafeOnce::new();
        let keys = KEYS.get_or_init(Default::default);
        Fingerprint(keys.each_ref().map(|key| key.hash_one(&content)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_contents_have_equal_fingerprints_and_others_differ_in_both_halves() {
        assert_eq!(Fingerprint::of(("relu", 1)), Fingerprint::of(("relu", 1)));
        let all: Vec<Fingerprint> = (0..1000).map(Fingerprint::of).collect();
        for half in 0..2 {
            let mut seen: Vec<u64> = all.iter().map(|f| f.0[half]).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 1000);
        }
        assert!(all.iter().all(|f| f.0[0] != f.0[1]), "the halves have keys of their own");
    }
}
