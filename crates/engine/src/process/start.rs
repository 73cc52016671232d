//! The start of threads, which may fail and ends no process.
//!
//! The first use of a library's thread-local variables in a thread allocates them, and glibc ends
//! the process where it cannot. A thread of the standard library uses them before anything else.
//! The thread that starts here first asks whether there is memory, and says so to its starter.

use crate::process::slot;

/// Starts a thread with a name, which runs `body`. None if the system has no thread, or no memory
/// for what the thread needs at its start; the body is dropped then.
pub fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Option<StartedThread> {
    let own = name.to_owned();
    start(name.to_owned(), move || {
        slot::set_name(slot::current(), own);
        body();
    })
}

#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
mod other {
    use std::thread::{Builder, JoinHandle};

    /// A thread that was started. Dropping this lets it run on.
    #[must_use]
    pub struct StartedThread(JoinHandle<()>);

    impl StartedThread {
        /// Waits for the end of the thread.
        pub fn join(self) {
            let _ = self.0.join();
        }
    }

    /// Starts a thread that runs `body`; none if the system has none.
    pub(crate) fn start(name: String, body: impl FnOnce() + Send + 'static) -> Option<StartedThread> {
        Builder::new().name(name).spawn(body).ok().map(StartedThread)
    }
}

#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
pub use other::StartedThread;
#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
pub(crate) use other::start;

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub use linux::StartedThread;
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub(crate) use linux::{has_memory, start};

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
mod linux {
    use crate::process::slot;
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::mem::{MaybeUninit, forget};
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

    /// A thread that was started. Dropping this lets it run on.
    #[must_use]
    pub struct StartedThread(libc::pthread_t);

    // SAFETY: any thread may wait for a thread, or leave it to itself; this is done once. In musl
    // the name of a thread is a pointer.
    unsafe impl Send for StartedThread {}
    // SAFETY: a shared reference does nothing.
    unsafe impl Sync for StartedThread {}

    impl StartedThread {
        /// Waits for the end of the thread.
        pub fn join(self) {
            // SAFETY: the thread can be joined, and is so once: the drop does not follow.
            unsafe { libc::pthread_join(self.0, null_mut()) };
            forget(self);
        }
    }

    impl Drop for StartedThread {
        fn drop(&mut self) {
            // SAFETY: nobody has joined the thread.
            unsafe { libc::pthread_detach(self.0) };
        }
    }

    /// Starts a thread that runs `body`; none if the system has no thread or no memory for it.
    pub(crate) fn start<F: FnOnce() + Send + 'static>(name: String, body: F) -> Option<StartedThread> {
        let start = Start { body: Cell::new(Some(body)), name: cut(&name), answer: AtomicU32::new(ASKED) };
        let thread = create(run::<F>, (&raw const start).cast_mut().cast())?;
        // The thread has its processor soon, and answers at once.
        let mut answer = start.answer.load(Ordering::Acquire);
        while answer == ASKED {
            // SAFETY: the word exists, and the call reads it.
            unsafe { libc::syscall(libc::SYS_futex, start.answer.as_ptr(), FUTEX_WAIT, ASKED, null_mut::<c_void>()) };
            answer = start.answer.load(Ordering::Acquire);
        }
        (answer == STARTED).then_some(thread)
    }

    const FUTEX_WAIT: i32 = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    const FUTEX_WAKE: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;

    fn cut(name: &str) -> [u8; NAME] {
        let mut bytes = [0; NAME];
        let length = name.floor_char_boundary(NAME - 1);
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        bytes
    }

    fn create(run: extern "C" fn(*mut c_void) -> *mut c_void, argument: *mut c_void) -> Option<StartedThread> {
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
        // SAFETY: the attributes are made before they are changed and used, and are destroyed once;
        // the thread is read where it was made.
        unsafe {
            let attributes = attributes.as_mut_ptr();
            if libc::pthread_attr_init(attributes) != 0 {
                return None;
            }
            let created = libc::pthread_attr_setstacksize(attributes, STACK) == 0
                && libc::pthread_create(thread.as_mut_ptr(), attributes, run, argument) == 0;
            libc::pthread_attr_destroy(attributes);
            created.then(|| StartedThread(thread.assume_init()))
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
    pub(crate) fn has_memory() -> bool {
        // SAFETY: the block is freed once.
        unsafe {
            let block = std::hint::black_box(libc::malloc(NEEDED));
            libc::free(block);
            !block.is_null()
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_thread_has_its_name_and_ends_before_it_is_joined() {
        let (say, heard) = mpsc::channel();
        let thread = start_thread("a name", move || say.send(slot::name(slot::current().number)).unwrap());
        thread.unwrap().join();
        assert_eq!(heard.try_recv().unwrap().as_deref(), Some("a name"));
    }

    #[test]
    fn a_panic_ends_the_thread_alone() {
        let (held, dropped) = mpsc::channel::<()>();
        let panics = move || {
            let _held = held;
            panic!("on purpose");
        };
        start_thread("panics", panics).unwrap().join();
        assert_eq!(dropped.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }
}
