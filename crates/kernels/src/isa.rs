//! The instruction set for which a kernel is compiled.
//!
//! Kernels take an [`Isa`] as a value, so that tests and the border (which reads the environment)
//! can force one. The choice is a function of the machine and of that override alone, never of a
//! measurement: the same machine gives the same bits.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// An instruction set the fast kernels are instantiated for, from the least to the most capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Plain Rust that the compiler vectorises for the target's baseline.
    Portable,
    /// NEON of 64-bit ARM processors: four 128-bit registers per block of 16.
    Neon,
    /// AVX2 with FMA: two 256-bit registers per block of 16.
    Avx2,
    /// AVX-512F: one 512-bit register per block of 16.
    Avx512,
}

impl Isa {
    /// Every instruction set of this architecture, from the least to the most capable.
    #[cfg(target_arch = "x86_64")]
    pub const ALL: [Isa; 3] = [Isa::Portable, Isa::Avx2, Isa::Avx512];
    /// Every instruction set of this architecture, from the least to the most capable.
    #[cfg(target_arch = "aarch64")]
    pub const ALL: [Isa; 2] = [Isa::Portable, Isa::Neon];
    /// Every instruction set of this architecture.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub const ALL: [Isa; 1] = [Isa::Portable];

    /// Every instruction set of any architecture: names in files may be those of another machine.
    const NAMED: [Isa; 4] = [Isa::Portable, Isa::Neon, Isa::Avx2, Isa::Avx512];

    /// The best instruction set of this machine; probed once.
    pub fn detect() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(probe)
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        Isa::ALL.contains(&self) && self <= Isa::detect()
    }

    /// Itself where the machine can run it, else the best that it can.
    ///
    /// Every kernel goes through this before it enters machine-specific code, so that a forced
    /// value is never unsound.
    pub fn or_best(self) -> Isa {
        if self.is_available() { self } else { Isa::detect() }
    }

    /// Lower-case name, as it appears in kernel names and is parsed by [`FromStr`].
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Neon => "neon",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }
}

/// Whether this machine multiplies pairs of bf16 (AVX512-BF16, which goes with [`Isa::Avx512`]).
pub fn has_bf16() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| Isa::detect() == Isa::Avx512 && probe_bf16())
}

/// Whether this machine moves bytes within vectors of 64 (AVX512-VBMI, which goes with
/// [`Isa::Avx512`]).
pub(crate) fn has_vbmi() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| Isa::detect() == Isa::Avx512 && probe_vbmi())
}

/// Whether this machine sums products of bytes by four (AVX512-VNNI, which goes with
/// [`Isa::Avx512`]).
pub(crate) fn has_vnni() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| Isa::detect() == Isa::Avx512 && probe_vnni())
}

/// Whether this machine sums products of bytes of the same type by four (DotProd, which goes with
/// [`Isa::Neon`]).
pub(crate) fn has_dotprod() -> bool {
    // The standard library caches what it detects.
    #[cfg(target_arch = "aarch64")]
    let found = std::arch::is_aarch64_feature_detected!("dotprod");
    #[cfg(not(target_arch = "aarch64"))]
    let found = false;
    found
}

/// Whether this machine also sums products of unsigned and signed bytes by four (I8MM).
pub(crate) fn has_i8mm() -> bool {
    #[cfg(target_arch = "aarch64")]
    let found = has_dotprod() && std::arch::is_aarch64_feature_detected!("i8mm");
    #[cfg(not(target_arch = "aarch64"))]
    let found = false;
    found
}

/// Whether products of pairs of bf16 (AVX512-BF16) are faster than those of float32. By the kind of
/// the processor: AMD's do 1.85 times as many multiply-adds, Intel's half as many.
pub fn pairs_are_fast() -> bool {
    static FAST: OnceLock<bool> = OnceLock::new();
    *FAST.get_or_init(|| has_bf16() && !is_intel())
}

fn is_intel() -> bool {
    is_made_by(b"GenuineIntel")
}

/// Whether the processor gives this name of its vendor.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_made_by(name: &[u8; 12]) -> bool {
    let vendor = std::arch::x86_64::__cpuid(0);
    [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == name
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn is_made_by(_: &[u8; 12]) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn probe_bf16() -> bool {
    is_x86_feature_detected!("avx512bf16")
}

#[cfg(target_arch = "x86_64")]
fn probe_vbmi() -> bool {
    is_x86_feature_detected!("avx512vbmi")
}

#[cfg(target_arch = "x86_64")]
fn probe_vnni() -> bool {
    is_x86_feature_detected!("avx512vnni")
}

#[cfg(not(target_arch = "x86_64"))]
fn probe_vnni() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn probe_bf16() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn probe_vbmi() -> bool {
    false
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Isa::NAMED
            .into_iter()
            .find(|isa| isa.name() == s)
            .ok_or_else(|| format!("choosing an instruction set: `{s}` is not one of portable, neon, avx2, avx512"))
    }
}

#[cfg(target_arch = "x86_64")]
fn probe() -> Isa {
    // AVX-512 machines all have AVX2 and FMA; asking for all keeps the order of the enum true on
    // any hypervisor.
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    match (avx2, is_x86_feature_detected!("avx512f")) {
        (true, true) => Isa::Avx512,
        (true, false) => Isa::Avx2,
        _ => Isa::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn probe() -> Isa {
    if cfg!(target_arch = "aarch64") { Isa::Neon } else { Isa::Portable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_parses_back_to_its_instruction_set_and_others_are_refused() {
        for isa in Isa::NAMED {
            assert_eq!(isa.name().parse::<Isa>(), Ok(isa));
        }
        assert!("avx1024".parse::<Isa>().unwrap_err().contains("portable, neon, avx2, avx512"));
    }

    #[test]
    fn a_forced_instruction_set_never_exceeds_the_machine() {
        for isa in Isa::NAMED {
            assert!(isa.or_best().is_available());
            assert_eq!(isa.or_best() == isa, isa.is_available());
        }
    }
}
