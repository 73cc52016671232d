//! The instructions that multiply bytes.

use crate::amx;
use crate::isa::{Isa, has_dotprod, has_i8mm, has_vnni};

/// Instructions for products of bytes, from the least to the most capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Plain Rust.
    Portable,
    /// DotProd of 64-bit ARM: four products of signed bytes for each sum.
    DotProd,
    /// I8MM of 64-bit ARM: four products of unsigned and signed bytes for each sum.
    I8mm,
    /// AVX2 on values widened to 16 bits, whose pairs of products need 32 bits.
    Avx2,
    /// AVX512-VNNI: four products for each sum.
    Vnni,
    /// Tiles of AMX: 16 x 16 sums of 64 products each; AVX512-VNNI for what suits no tile.
    Tiles,
    /// The model of tiles in memory, for tests on every machine.
    #[cfg(test)]
    Modelled,
}

impl Level {
    /// Every level of this architecture, from the least to the most capable; in tests the model of
    /// tiles as well.
    pub const ALL: &[Level] = &[
        Level::Portable,
        #[cfg(target_arch = "aarch64")]
        Level::DotProd,
        #[cfg(target_arch = "aarch64")]
        Level::I8mm,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2,
        #[cfg(target_arch = "x86_64")]
        Level::Vnni,
        #[cfg(target_arch = "x86_64")]
        Level::Tiles,
        #[cfg(test)]
        Level::Modelled,
    ];

    /// The best level of an instruction set on this machine. With `tiles`, tiles are used where
    /// the system permits them, for which it is asked.
    pub fn of(isa: Isa, tiles: bool) -> Level {
        match isa.or_best() {
            Isa::Neon if has_i8mm() => Level::I8mm,
            Isa::Neon if has_dotprod() => Level::DotProd,
            Isa::Portable | Isa::Neon => Level::Portable,
            Isa::Avx512 if has_vnni() && tiles && amx::has_bytes() && amx::is_permitted() => Level::Tiles,
            Isa::Avx512 if has_vnni() => Level::Vnni,
            Isa::Avx2 | Isa::Avx512 => Level::Avx2,
        }
    }

    /// Itself where the machine can run it, else the best that it can.
    pub fn or_best(self) -> Level {
        match self {
            #[cfg(test)]
            Level::Modelled => self,
            _ => {
                let best = Level::of(Isa::detect(), self == Level::Tiles);
                if Level::ALL.contains(&self) { self.min(best) } else { best }
            }
        }
    }

    /// The level of what is not made of tiles.
    pub(super) fn without_tiles(self) -> Level {
        match self {
            Level::Tiles => Level::Vnni,
            #[cfg(test)]
            Level::Modelled => Level::of(Isa::detect(), false),
            _ => self,
        }
    }

    /// Whether its sums can become bytes in registers.
    pub(super) fn makes_bytes(self) -> bool {
        matches!(self, Level::DotProd | Level::I8mm | Level::Vnni)
    }

    /// Whether its sums can become bytes in vectors, in registers or after them.
    pub(super) fn finishes_in_vectors(self) -> bool {
        self == Level::Avx2 || self.makes_bytes()
    }

    /// Lower-case name, as it appears in plans.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::DotProd => "dotprod",
            Level::I8mm => "i8mm",
            Level::Avx2 => "avx2",
            Level::Vnni => "vnni",
            Level::Tiles => "amx",
            #[cfg(test)]
            Level::Modelled => "model",
        }
    }
}
