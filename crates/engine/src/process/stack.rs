//! The stack that a thread has left.

use std::cell::Cell;

/// Bytes of stack that a thread must have left when it calls mxrt: a plan is built in the caller.
pub const STACK_NEEDED: usize = 44 << 10;

thread_local! {
    /// The usable addresses of the stack of this thread, once they are known; none: they are not.
    static STACK: Cell<Option<Option<(usize, usize)>>> = const { Cell::new(None) };
}

/// Whether this thread has stack enough left for a call. True where the stack is not known, such as
/// that of a coroutine.
#[inline]
pub fn has_stack() -> bool {
    let bounds = STACK.try_with(|known| {
        known.get().unwrap_or_else(|| {
            let bounds = bounds();
            known.set(Some(bounds));
            bounds
        })
    });
    let Ok(Some((low, high))) = bounds else { return true };
    let here = std::ptr::from_ref(&bounds).addr();
    !(low..high).contains(&here) || here - low >= STACK_NEEDED
}

/// The lowest usable address of the stack of this thread, and its end.
#[cfg(target_os = "linux")]
#[cold]
fn bounds() -> Option<(usize, usize)> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the calls fill in the attributes of this thread, which are read and destroyed once.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let (mut start, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
        let known = libc::pthread_attr_getstack(attributes.as_ptr(), &mut start, &mut size) == 0
            && libc::pthread_attr_getguardsize(attributes.as_ptr(), &mut guard) == 0;
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        let low = start.addr().checked_add(guard)?;
        let high = start.addr().checked_add(size)?;
        #[cfg(target_env = "musl")]
        let low = grown(low, high)?;
        (known && low < high).then_some((low, high))
    }
}

/// The lowest address that the stack may grow to. musl tells of the first thread only what of its
/// stack is mapped at the time, about 128 KiB; none: there is no limit.
#[cfg(all(target_os = "linux", target_env = "musl"))]
fn grown(low: usize, high: usize) -> Option<usize> {
    // The kernel puts these bytes above the first frame of the first thread, and no other stack
    // within so many below it. In a child the first thread is the one that forked, on its stack.
    // SAFETY: a value that the kernel gave.
    let first = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
    if !(high.saturating_sub(64 << 10)..high.saturating_add(64 << 20)).contains(&first) {
        return Some(low);
    }
    let mut limit = std::mem::MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the call fills in the limit, which is read where it did.
    let limit = unsafe {
        if libc::getrlimit(libc::RLIMIT_STACK, limit.as_mut_ptr()) != 0 {
            return None;
        }
        limit.assume_init().rlim_cur
    };
    (limit != libc::RLIM_INFINITY).then(|| high.saturating_sub(limit as usize).min(low))
}

#[cfg(not(target_os = "linux"))]
fn bounds() -> Option<(usize, usize)> {
    None
}
