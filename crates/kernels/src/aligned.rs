//! Memory on cache-line boundaries: a vector load that straddles two lines costs as much as two.

use std::ops::{Deref, DerefMut};

/// One cache line.
#[derive(Clone, Copy, Debug, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// A fixed number of elements starting on a 64-byte boundary.
#[derive(Clone, Debug)]
pub struct AlignedVec {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedVec {
    /// `len` zeros.
    pub fn zeroed(len: usize) -> AlignedVec {
        AlignedVec { lines: vec![Line([0.0; 16]); len.div_ceil(16)], len }
    }

    /// `len` zeros, or nothing where there is no memory for them.
    pub fn try_zeroed(len: usize) -> Option<AlignedVec> {
        let mut lines = Vec::new();
        lines.try_reserve_exact(len.div_ceil(16)).ok()?;
        lines.resize(len.div_ceil(16), Line([0.0; 16]));
        Some(AlignedVec { lines, len })
    }
}

impl Deref for AlignedVec {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }
}

impl DerefMut for AlignedVec {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_start_on_a_line_and_are_as_many_as_asked_for() {
        for len in [0, 1, 16, 17, 1000] {
            for mut v in [Some(AlignedVec::zeroed(len)), AlignedVec::try_zeroed(len)].into_iter().flatten() {
                v.fill(1.0);
                assert_eq!(v.iter().sum::<f32>(), len as f32);
                assert_eq!(v.as_ptr() as usize % 64, 0);
            }
        }
        assert!(AlignedVec::try_zeroed(usize::MAX / 8).is_none());
    }
}
