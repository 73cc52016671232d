//! Matrix products on the tiles of AMX, which Intel's server processors have since 2023: bf16, and
//! float32 put together from six products of bf16.
//!
//! A float32 is the sum of three bf16 (8 + 8 + 8 bits). The product of two such numbers is the sum
//! of the six products of parts that matter; the other three are below the last bit. A tile sums 32
//! products before it adds them to the accumulator, so the result is nearer to the exact one than
//! that of a float32 product by fused multiply-adds.
//!
//! Kernels are written once for the trait `Tiles`: `hardware` is the processor's instructions, and
//! the tests' model computes the same bits in memory on any machine.

/// Calls a method on the tiles of the processor.
macro_rules! on_tiles {
    ($this:ident.$method:ident($($arg:expr),*)) => {{
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        $this.$method::<$crate::amx::hardware::Hardware>($($arg),*);
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        {
            let _ = ($this, $($arg),*);
            unreachable!("there is no product on tiles where the processor has none");
        }
    }};
}

pub(crate) mod attention;
mod finish;
mod gemm;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod hardware;
mod job;
pub(crate) mod lines;
#[cfg(test)]
pub(crate) mod model;
pub(crate) mod parts;
pub(crate) mod tiles;

pub use finish::{Target, TileEpilogue};
pub use gemm::AmxGemm;
pub(crate) use gemm::number_in_parts;
pub use lines::Lines;

/// Whether the processor and the system have tiles for bf16. Asks nothing of the system.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub fn is_available() -> bool {
    use std::sync::OnceLock;
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| hardware::probe() && crate::isa::has_bf16())
}

/// Whether tiles multiply bytes, too, as those of all processors so far do.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) fn has_bytes() -> bool {
    use std::sync::OnceLock;
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| is_available() && hardware::probe_bytes())
}

/// Whether the system lets this process use tiles, for which it is asked once. It says no where a
/// thread has a signal stack too small for the tiles' content.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub fn is_permitted() -> bool {
    use std::sync::atomic::{AtomicU8, Ordering};
    const NO: u8 = 1;
    const YES: u8 = 2;
    // No lock, for which a forked child would wait if another thread asked just then. The first
    // answer counts.
    static ANSWER: AtomicU8 = AtomicU8::new(0);
    match ANSWER.load(Ordering::Relaxed) {
        0 => {
            let answer = if is_available() && hardware::ask() { YES } else { NO };
            let first = ANSWER.compare_exchange(0, answer, Ordering::Relaxed, Ordering::Relaxed).err();
            first.unwrap_or(answer) == YES
        }
        first => first == YES,
    }
}

/// Whether the processor and the system have tiles for bf16.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub fn is_available() -> bool {
    false
}

/// Whether tiles multiply bytes.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) fn has_bytes() -> bool {
    false
}

/// Whether the system lets this process use tiles.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub fn is_permitted() -> bool {
    false
}
