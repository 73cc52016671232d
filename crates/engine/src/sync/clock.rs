//! A clock for stamps on the hot path: the processor's counter where there is one that all cores
//! share.

use std::sync::OnceLock;
use std::time::Instant;

/// A moment, in ticks of unknown length.
#[inline(always)]
pub(crate) fn now() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction exists on every x86-64 processor and touches nothing.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        base().1.elapsed().as_nanos() as u64
    }
}

/// The first pair of ticks and time, taken together.
fn base() -> (u64, Instant) {
    static BASE: OnceLock<(u64, Instant)> = OnceLock::new();
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return *BASE.get_or_init(|| (now(), Instant::now()));
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    return *BASE.get_or_init(|| (0, Instant::now()));
}

/// Translates ticks: the longer since the first call, the more exactly.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    zero: u64,
    nanos_per_tick: f64,
}

impl Scale {
    /// The scale as of now.
    pub fn measure() -> Self {
        let (zero, began) = base();
        // Two readings that are too close say nothing about the rate.
        while began.elapsed().as_micros() < 500 {
            std::hint::spin_loop();
        }
        let (ticks, nanos) = (now().saturating_sub(zero), began.elapsed().as_nanos() as f64);
        Scale { zero, nanos_per_tick: if ticks == 0 { 1.0 } else { nanos / ticks as f64 } }
    }

    /// Microseconds since the clock was first used; negative before that.
    pub fn micros(self, ticks: u64) -> f64 {
        ticks.wrapping_sub(self.zero) as i64 as f64 * self.nanos_per_tick / 1e3
    }

    /// Seconds between a moment and now.
    pub fn seconds_since(self, ticks: u64) -> f64 {
        (now().saturating_sub(ticks)) as f64 * self.nanos_per_tick / 1e9
    }
}

/// Starts comparing ticks with time.
pub(crate) fn start() {
    base();
}
