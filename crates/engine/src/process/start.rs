//! The start of the pool's threads, which may fail and ends no process.
//!
//! The first use of a library's thread-local variables in a thread allocates them, and glibc ends
//! the process where it cannot. A thread of the standard library uses them before anything else.
//! The thread that starts here first asks whether there is memory, and says so to its starter.

/// Starts a thread that runs `body`; false if the system has none.
#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
pub(crate) fn start(name: String, body: impl FnOnce() + Send + 'static) -> bool {
    std::thread::Builder::new().name(name).spawn(body).is_ok()
}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub(crate) use linux::start;

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
mod linux {
    use crate::process::slot;
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Bytes of stack: what threads of the standard library have.
    const STACK: usize = 2 << 20;
    /// Bytes that a thread must be able to allocate at its start. Its thread-local variables take
    /// one to two thousand, and the entry of each of their destructors a few more.
    const NEEDED: usize = 32 << 10;
    /// Longest name of a thread, with the zero at its end.
    const NAME: usize = 16;

    const ASKED: u32 = 0;
    const STARTED: u32 = 1;
    const REFUSED: u32 = 2;

    /// Data that the starter shares with the new thread until that has answered.
    struct Start<F> {
        body: Cell<Option<F>>,
        name: [u8; NAME],
        answer: AtomicU32,
    }

    /// Starts a thread that runs `body`; false if the system has no thread or no memory for it.
    pub(crate) fn start<F: FnOnce() + Send + 'static>(name: String, body: F) -> bool {
        let start = Start { body: Cell::new(Some(body)), name: cut(&name), answer: AtomicU32::new(ASKED) };
        if !create(run::<F>, (&raw const start).cast_mut().cast()) {
            return false;
        }
        // The thread has its processor soon, and answers at once.
        let mut answer = start.answer.load(Ordering::Acquire);
        while answer == ASKED {
            // SAFETY: the word exists, and the call reads it.
            unsafe { libc::syscall(libc::SYS_futex, start.answer.as_ptr(), FUTEX_WAIT, ASKED, null_mut::<c_void>()) };
            answer = start.answer.load(Ordering::Acquire);
        }
        answer == STARTED
    }

    const FUTEX_WAIT: i32 = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    const FUTEX_WAKE: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;

    fn cut(name: &str) -> [u8; NAME] {
        let mut bytes = [0; NAME];
        let length = name.floor_char_boundary(NAME - 1);
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        bytes
    }

    fn create(run: extern "C" fn(*mut c_void) -> *mut c_void, argument: *mut c_void) -> bool {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        let mut thread = std::mem::MaybeUninit::<libc::pthread_t>::uninit();
        // SAFETY: the attributes are made before they are changed and used, and are destroyed once.
        unsafe {
            let attributes = attributes.as_mut_ptr();
            if libc::pthread_attr_init(attributes) != 0 {
                return false;
            }
            let created = libc::pthread_attr_setstacksize(attributes, STACK) == 0
                && libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED) == 0
                && libc::pthread_create(thread.as_mut_ptr(), attributes, run, argument) == 0;
            libc::pthread_attr_destroy(attributes);
            created
        }
    }

    /// The life of a thread. Before [`has_memory`] nothing here may use a thread-local variable.
    extern "C" fn run<F: FnOnce() + Send + 'static>(argument: *mut c_void) -> *mut c_void {
        let asked = argument.cast::<Start<F>>();
        // SAFETY: the starter keeps it until this thread has answered, and does not touch the body.
        let start = unsafe { &*asked };
        if !has_memory() {
            answer(&start.answer, REFUSED);
            return null_mut();
        }
        let body = start.body.take();
        // SAFETY: the name ends with a zero.
        unsafe { libc::pthread_setname_np(libc::pthread_self(), start.name.as_ptr().cast()) };
        slot::prepare();
        answer(&start.answer, STARTED);
        // As a thread of the standard library: a panic ends the thread.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body.map(|body| body())));
        null_mut()
    }

    /// Ends the starter's waiting; `word` is gone afterwards.
    fn answer(word: &AtomicU32, said: u32) {
        let place = word.as_ptr();
        word.store(said, Ordering::Release);
        // SAFETY: the call does not touch the word; of a place without memory it says so.
        unsafe { libc::syscall(libc::SYS_futex, place, FUTEX_WAKE, 1) };
    }

    /// Whether what is allocated next in this thread will be there: glibc takes it from the memory
    /// that is freed here.
    fn has_memory() -> bool {
        // SAFETY: the block is freed once.
        unsafe {
            let block = std::hint::black_box(libc::malloc(NEEDED));
            libc::free(block);
            !block.is_null()
        }
    }
}
