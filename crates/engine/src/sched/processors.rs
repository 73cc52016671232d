//! The processors on which threads run. Linux sometimes lets two of the engine's threads share a
//! processor while another processor is idle, and leaves them there for longer than most requests
//! take. This module separates them.

/// A thread as the system knows it.
pub(crate) type ThreadNumber = i32;
pub(crate) const NO_THREAD: ThreadNumber = 0;

#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) use linux::{SleepingPlace, here, keep_away, number, this_thread};

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use super::ThreadNumber;
    use crate::sync::global::Mutex;
    use libc::{CPU_CLR, CPU_COUNT, CPU_ISSET, CPU_SETSIZE, cpu_set_t};

    /// Held while sets of processors are looked at and changed: what one thread takes away for a
    /// moment, another must not take for all there is. Locked inside the fork gate only.
    static CHANGING: Mutex<()> = Mutex::new(());

    pub(crate) fn this_thread() -> ThreadNumber {
        // glibc has a function for it from 2.30 on; the library for older systems needs 2.17.
        // SAFETY: a plain query.
        unsafe { libc::syscall(libc::SYS_gettid) as ThreadNumber }
    }

    /// The processor that this thread runs on.
    pub(crate) fn here() -> Option<usize> {
        // SAFETY: a plain query.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// How many processors there may be.
    pub(crate) fn number() -> usize {
        // SAFETY: a plain query.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).unwrap_or(1).max(1)
    }

    /// Moves another thread of this process away if it waits for the processor that this one runs
    /// on, and may run elsewhere.
    pub(crate) fn keep_away(thread: ThreadNumber) {
        let _changing = CHANGING.lock();
        if let Some((all, others)) = without_here(thread) {
            set(thread, &others);
            set(thread, &all);
        }
    }

    /// The processors on which a sleeping thread may wake up.
    pub(crate) struct SleepingPlace {
        thread: ThreadNumber,
        /// The full set, to be restored.
        all: Mutex<Option<cpu_set_t>>,
    }

    impl SleepingPlace {
        pub fn of_this_thread() -> Self {
            SleepingPlace { thread: this_thread(), all: Mutex::new(None) }
        }

        /// Moves it away as [`keep_away`] does.
        pub fn keep_away(&self) {
            keep_away(self.thread);
        }

        /// Excludes the processor of this thread from those on which the sleeper may wake up, if it
        /// may run on another one.
        pub fn leave_out_here(&self) {
            let _changing = CHANGING.lock();
            if let Some((all, others)) = without_here(self.thread) {
                *self.all.lock() = Some(all);
                set(self.thread, &others);
            }
        }

        /// Restores the full set, called by the thread itself when it is awake.
        pub fn allow_all(&self) {
            let all = self.all.lock().take();
            if let Some(all) = all {
                let _changing = CHANGING.lock();
                set(0, &all);
            }
        }
    }

    /// The processors that a thread may run on, and those without the one that this thread runs on,
    /// unless these are none.
    fn without_here(thread: ThreadNumber) -> Option<(cpu_set_t, cpu_set_t)> {
        // SAFETY: a plain query; sets are plain memory of the size passed, and the number is below
        // their size.
        unsafe {
            let processor = here().filter(|p| *p < CPU_SETSIZE as usize)?;
            let mut all: cpu_set_t = std::mem::zeroed();
            let known = libc::sched_getaffinity(thread, size_of_val(&all), &mut all) == 0;
            if !known || CPU_COUNT(&all) < 2 || !CPU_ISSET(processor, &all) {
                return None;
            }
            let mut others = all;
            CPU_CLR(processor, &mut others);
            Some((all, others))
        }
    }

    /// Binds a thread to a set of processors. If the system refuses, the thread stays where it is.
    fn set(thread: ThreadNumber, processors: &cpu_set_t) {
        // SAFETY: the set is plain memory of the size passed.
        unsafe { libc::sched_setaffinity(thread, size_of_val(processors), processors) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) use elsewhere::{SleepingPlace, here, keep_away, number, this_thread};

/// Systems that are not asked.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod elsewhere {
    use super::ThreadNumber;

    pub(crate) fn this_thread() -> ThreadNumber {
        0
    }

    pub(crate) fn here() -> Option<usize> {
        None
    }

    pub(crate) fn number() -> usize {
        1
    }

    pub(crate) fn keep_away(_: ThreadNumber) {}

    pub(crate) struct SleepingPlace;

    impl SleepingPlace {
        pub fn of_this_thread() -> Self {
            SleepingPlace
        }

        pub fn keep_away(&self) {}

        pub fn leave_out_here(&self) {}

        pub fn allow_all(&self) {}
    }
}

#[cfg(all(test, target_os = "linux", not(miri), not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn allowed(thread: ThreadNumber) -> Vec<usize> {
        // SAFETY: the set is plain memory of the size passed, and numbers are below its size.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            assert_eq!(libc::sched_getaffinity(thread, size_of_val(&set), &mut set), 0);
            (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
        }
    }

    /// Stays on one processor, as the narrowed masks are about the one where this thread is.
    fn stay_on(processor: usize) {
        // SAFETY: as above.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(processor, &mut set);
            assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
        }
    }

    #[test]
    fn a_thread_wakes_up_elsewhere_and_may_run_everywhere_then() {
        let all = allowed(0);
        let (places, made) = mpsc::channel();
        let (wake, woken) = mpsc::channel::<()>();
        std::thread::scope(|s| {
            let sleeper = s.spawn(move || {
                let place = std::sync::Arc::new(SleepingPlace::of_this_thread());
                places.send((place.clone(), this_thread())).unwrap();
                woken.recv().unwrap();
                // SAFETY: a plain query.
                let at = unsafe { libc::sched_getcpu() } as usize;
                place.allow_all();
                (at, allowed(0))
            });
            let (place, thread) = made.recv().unwrap();
            let here = all[0];
            stay_on(here);
            place.leave_out_here();
            let others: Vec<usize> = all.iter().copied().filter(|cpu| *cpu != here).collect();
            assert_eq!(allowed(thread), if others.is_empty() { all.clone() } else { others });
            wake.send(()).unwrap();
            let (at, then) = sleeper.join().unwrap();
            assert!(at != here || all.len() == 1, "it woke up on processor {at}");
            assert_eq!(then, all);
        });
    }

    /// Calls `act` with the number of a thread that sleeps, and says where that may run afterwards.
    fn afterwards(act: impl FnOnce(ThreadNumber)) -> Vec<usize> {
        let (numbers, number) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        std::thread::scope(|s| {
            s.spawn(move || {
                numbers.send(this_thread()).unwrap();
                ended.recv().unwrap();
            });
            let thread = number.recv().unwrap();
            act(thread);
            let found = allowed(thread);
            end.send(()).unwrap();
            found
        })
    }

    #[test]
    fn who_is_kept_away_may_still_run_everywhere() {
        let all = allowed(0);
        let found = afterwards(|thread| {
            stay_on(all[0]);
            keep_away(thread);
            keep_away(0x7fff_fff0); // There is no such thread.
        });
        assert_eq!(found, all);
    }

    #[test]
    fn what_one_takes_away_for_a_moment_another_does_not_take_for_all_there_is() {
        let all = allowed(0);
        let found = afterwards(|thread| {
            std::thread::scope(|s| {
                (0..4).for_each(|_| _ = s.spawn(move || (0..500).for_each(|_| keep_away(thread))));
            });
        });
        assert_eq!(found, all);
    }
}
