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
        (known && low < high).then_some((low, high))
    }
}

#[cfg(not(target_os = "linux"))]
fn bounds() -> Option<(usize, usize)> {
    None
}
