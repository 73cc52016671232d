//! How much second-level cache a core has, in three classes: with the instruction set and its units,
//! all that selection knows of a machine.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// Classes of second-level caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheClass {
    /// Less than 768 KiB a core, taken for 512 KiB; also where nothing is known.
    Small,
    /// About 1 MiB.
    Medium,
    /// Caches of 1.5 MiB or more, treated as 2 MiB.
    Large,
}

impl CacheClass {
    /// Every class, from the smallest.
    pub const ALL: [CacheClass; 3] = [CacheClass::Small, CacheClass::Medium, CacheClass::Large];

    /// The class of this machine; asked of the processor once.
    pub fn detect() -> CacheClass {
        static CLASS: OnceLock<CacheClass> = OnceLock::new();
        *CLASS.get_or_init(|| CacheClass::of(second_level_bytes()))
    }

    /// The class of a cache of `bytes` bytes.
    pub fn of(bytes: usize) -> CacheClass {
        match bytes {
            0..0xC_0000 => CacheClass::Small,
            0xC_0000..0x18_0000 => CacheClass::Medium,
            _ => CacheClass::Large,
        }
    }

    /// Bytes that kernels of this class may count on.
    pub fn bytes(self) -> usize {
        match self {
            CacheClass::Small => 512 << 10,
            CacheClass::Medium => 1 << 20,
            CacheClass::Large => 2 << 20,
        }
    }

    /// Lower-case name, as in tables of measured convolutions.
    pub fn name(self) -> &'static str {
        match self {
            CacheClass::Small => "small",
            CacheClass::Medium => "medium",
            CacheClass::Large => "large",
        }
    }
}

impl fmt::Display for CacheClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CacheClass {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let found = CacheClass::ALL.into_iter().find(|class| class.name() == s);
        found.ok_or_else(|| format!("`{s}` is not a class of caches: small, medium or large"))
    }
}

/// Bytes of the second-level data cache of a core; 0 where the processor does not say.
#[cfg(target_arch = "x86_64")]
fn second_level_bytes() -> usize {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // Leaf 4 describes the caches of Intel's processors, leaf 0x8000001D in the same form those of
    // AMD's; a processor answers zeros to the one it does not have. Reading a leaf beyond the last
    // one is avoided.
    let (basic, extended) = (__cpuid(0).eax, __cpuid(0x8000_0000).eax);
    for (leaf, last) in [(4, basic), (0x8000_001D, extended)] {
        for index in (0..8).take_while(|_| leaf <= last) {
            let cache = __cpuid_count(leaf, index);
            let (kind, level) = (cache.eax & 31, cache.eax >> 5 & 7);
            if kind == 0 {
                break;
            }
            // Kind 2 holds instructions only.
            if level == 2 && kind != 2 {
                let field = |shift: u32, bits: u32| (cache.ebx >> shift & ((1 << bits) - 1)) as usize + 1;
                return field(22, 10) * field(12, 10) * field(0, 12) * (cache.ecx as usize + 1);
            }
        }
    }
    0
}

#[cfg(not(target_arch = "x86_64"))]
fn second_level_bytes() -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_belongs_to_the_class_whose_size_is_nearest() {
        let classes = [0, 256 << 10, 512 << 10, 1 << 20, 1280 << 10, 2 << 20, 3 << 20].map(CacheClass::of);
        let [small, medium, large] = CacheClass::ALL;
        assert_eq!(classes, [small, small, small, medium, medium, large, large]);
        for class in CacheClass::ALL {
            assert_eq!(CacheClass::of(class.bytes()), class);
            assert_eq!(class.name().parse(), Ok(class));
        }
        assert!("huge".parse::<CacheClass>().unwrap_err().contains("medium"));
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn the_processor_says_what_the_system_says() {
        let path = "/sys/devices/system/cpu/cpu0/cache/index2/";
        let read = |name: &str| std::fs::read_to_string(format!("{path}{name}")).ok();
        let (Some(level), Some(size)) = (read("level"), read("size")) else { return };
        if let (2, Some(kib)) = (level.trim().parse().unwrap_or(0), size.trim().strip_suffix('K')) {
            let bytes = kib.parse::<usize>().expect("a number of KiB") << 10;
            assert_eq!(CacheClass::detect(), CacheClass::of(bytes));
        }
    }
}
