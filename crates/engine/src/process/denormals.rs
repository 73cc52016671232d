//! Denormal numbers as zeros, while a thread runs operators: a processor computes with denormal
//! numbers a hundred times slower than with others.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

static FLUSH: AtomicBool = AtomicBool::new(false);

/// Whether this build can take denormal numbers for zeros.
const KNOWN: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Takes denormal inputs and results of operators for zeros from now on, or computes with them
/// again. It concerns all threads that run operators, and callers only while they do. Returns what
/// was set before; an error where the processor is none that mxrt knows the switch of.
pub fn set_flush_denormals(flush: bool) -> Result<bool, &'static str> {
    if flush && !KNOWN {
        return Err("denormal numbers can be taken for zeros on x86-64 and AArch64 only");
    }
    Ok(FLUSH.swap(flush, Ordering::Relaxed))
}

/// Whether denormal numbers are taken for zeros.
pub fn flushes_denormals() -> bool {
    FLUSH.load(Ordering::Relaxed)
}

/// Computes with denormal numbers in this thread, which a thread that did not may have started: the
/// switch is inherited.
pub(crate) fn compute_with_them() {
    control::set(control::get() & !control::FLUSH);
}

/// The state of the thread before, which comes back when this is dropped.
pub(crate) struct Flushing {
    before: u64,
    /// marker: the state belongs to the thread
    _thread: PhantomData<*const ()>,
}

impl Flushing {
    /// Takes denormal numbers for zeros in this thread, if that is set.
    #[inline(always)]
    pub fn begin() -> Option<Flushing> {
        flushes_denormals().then(Flushing::switch)
    }

    #[cold]
    fn switch() -> Flushing {
        let before = control::get();
        control::set(before | control::FLUSH);
        Flushing { before, _thread: PhantomData }
    }
}

impl Drop for Flushing {
    fn drop(&mut self) {
        control::set(self.before);
    }
}

#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    /// Results and inputs of vector instructions.
    pub const FLUSH: u64 = 0x8000 | 0x40;

    pub fn get() -> u64 {
        let mut register = 0u32;
        // SAFETY: stores the register in the variable.
        unsafe { asm!("stmxcsr [{}]", in(reg) &mut register, options(nostack, preserves_flags)) };
        register.into()
    }

    pub fn set(register: u64) {
        let register = register as u32;
        // SAFETY: a value of this register with no other bits than those that were there and the
        // two above. Compiled code does not depend on these two: it folds no denormal constants
        // into different branches.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &register, options(nostack, readonly, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    /// Inputs and results in single and double precision.
    pub const FLUSH: u64 = 1 << 24;

    pub fn get() -> u64 {
        let register: u64;
        // SAFETY: reads the register.
        unsafe { asm!("mrs {}, fpcr", out(reg) register, options(nomem, nostack, preserves_flags)) };
        register
    }

    pub fn set(register: u64) {
        // SAFETY: a value of this register with no other bits than those that were there and the
        // one above.
        unsafe { asm!("msr fpcr, {}", in(reg) register, options(nomem, nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    pub const FLUSH: u64 = 0;

    pub fn get() -> u64 {
        0
    }

    pub fn set(_: u64) {}
}
