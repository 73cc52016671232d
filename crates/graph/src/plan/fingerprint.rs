//! Names of contents.

use sha2::{Digest, Sha256};
use std::hash::{Hash, Hasher};

/// A name of a content: 256 bits, equal in all processes of a build. Different contents have
/// different fingerprints, also where they were chosen to collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a content.
    pub fn of(content: impl Hash) -> Fingerprint {
        let mut digester = Digester(Sha256::new());
        content.hash(&mut digester);
        Fingerprint(digester.0.finalize().into())
    }

    /// The fingerprint as bytes.
    pub fn bytes(self) -> [u8; 32] {
        self.0
    }
}

/// Passes what values say of themselves to the digest.
struct Digester(Sha256);

impl Hasher for Digester {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        u64::from_le_bytes(digest[..8].try_into().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_contents_have_equal_fingerprints_and_others_differ() {
        assert_eq!(Fingerprint::of(("relu", 1)), Fingerprint::of(("relu", 1)));
        let mut all: Vec<Fingerprint> = (0..1000).map(Fingerprint::of).collect();
        all.extend([Fingerprint::of(("ab", "c")), Fingerprint::of(("a", "bc")), Fingerprint::of("abc")]);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_fingerprint_is_the_sha_256_of_what_a_value_says_of_itself() {
        let digest: [u8; 32] = Sha256::digest(7u32.to_ne_bytes()).into();
        assert_eq!(Fingerprint::of(7u32).bytes(), digest, "other processes find the same");
    }
}
