//! The instructions that multiply bytes.

use crate::isa::{Isa, has_vnni};

/// Instructions for products of bytes, from the least to the most capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Plain Rust.
    Portable,
    /// AVX2 on values widened to 16 bits, whose pairs of products need 32 bits.
    Avx2,
    /// AVX512-VNNI: four products for each sum.
    Vnni,
}

impl Level {
    /// Every level, from the least to the most capable.
    pub const ALL: [Level; 3] = [Level::Portable, Level::Avx2, Level::Vnni];

    /// The best level of an instruction set on this machine.
    pub fn of(isa: Isa) -> Level {
        match isa.or_best() {
            Isa::Portable | Isa::Neon => Level::Portable,
            Isa::Avx512 if has_vnni() => Level::Vnni,
            Isa::Avx2 | Isa::Avx512 => Level::Avx2,
        }
    }

    /// Itself where the machine can run it, else the best that it can.
    pub fn or_best(self) -> Level {
        self.min(Level::of(Isa::detect()))
    }

    /// Lower-case name, as it appears in plans.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Vnni => "vnni",
        }
    }
}
