//! How wide the units that execute an instruction set are: with the set itself and the class of
//! caches, all that selection knows of a machine.

use crate::isa::Isa;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// How a core executes an instruction on the longest vectors of its instruction set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VectorUnits {
    /// All of a vector together.
    #[default]
    Whole,
    /// One half after the other: AVX-512 on AMD's Zen 4, at half the multiply-adds of Zen 5, while
    /// memory is as far.
    Halves,
}

impl VectorUnits {
    /// Every kind.
    pub const ALL: [VectorUnits; 2] = [VectorUnits::Whole, VectorUnits::Halves];

    /// The units of this machine for an instruction set; the processor is asked once.
    pub fn detect(isa: Isa) -> VectorUnits {
        static HALVES: OnceLock<bool> = OnceLock::new();
        let halves = *HALVES.get_or_init(|| family() == ZEN_3_AND_4);
        if isa == Isa::Avx512 && halves { VectorUnits::Halves } else { VectorUnits::Whole }
    }

    /// The word after the instruction set in tables of measured convolutions.
    pub fn suffix(self) -> &'static str {
        match self {
            VectorUnits::Whole => "",
            VectorUnits::Halves => "-halves",
        }
    }
}

/// The instruction set and units of a word such as `avx512` or `avx512-halves`.
pub(crate) fn parse_isa(word: &str) -> Result<(Isa, VectorUnits), String> {
    let halves = word.strip_suffix(VectorUnits::Halves.suffix()).filter(|isa| *isa == Isa::Avx512.name());
    let units = if halves.is_some() { VectorUnits::Halves } else { VectorUnits::Whole };
    Ok((Isa::from_str(halves.unwrap_or(word))?, units))
}

impl fmt::Display for VectorUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.suffix())
    }
}

/// AMD's family of Zen 3, which has no AVX-512, and Zen 4.
const ZEN_3_AND_4: Option<u32> = Some(0x19);

/// The family of an AMD processor; none of another vendor's.
#[cfg(target_arch = "x86_64")]
fn family() -> Option<u32> {
    let signature = std::arch::x86_64::__cpuid(1).eax;
    crate::isa::is_made_by(b"AuthenticAMD").then_some((signature >> 8 & 15) + (signature >> 20 & 255))
}

#[cfg(not(target_arch = "x86_64"))]
fn family() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_table_names_an_instruction_set_and_its_units() {
        for isa in Isa::ALL {
            assert_eq!(parse_isa(isa.name()), Ok((isa, VectorUnits::Whole)));
        }
        assert_eq!(parse_isa("avx512-halves"), Ok((Isa::Avx512, VectorUnits::Halves)));
        for wrong in ["avx2-halves", "-halves", "avx512-quarters"] {
            assert!(parse_isa(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn the_processor_is_the_one_that_the_system_names() {
        let Ok(text) = std::fs::read_to_string("/proc/cpuinfo") else { return };
        let field = |name: &str| {
            let line = text.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
            line.and_then(|line| line.split(':').nth(1)).map(|value| value.trim().to_owned())
        };
        let zen_4 =
            field("vendor_id").as_deref() == Some("AuthenticAMD") && field("cpu family").as_deref() == Some("25");
        let expected = if zen_4 { VectorUnits::Halves } else { VectorUnits::Whole };
        assert_eq!(VectorUnits::detect(Isa::Avx512), expected);
        assert_eq!(VectorUnits::detect(Isa::Avx2), VectorUnits::Whole);
    }
}
