//! The time that a thread has computed: other programs on the machine do not lengthen it.

use std::time::Duration;

/// Processor time of the calling thread.
#[cfg(unix)]
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the time. It fails for clocks only that the system does not have.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Time since the first call: elsewhere the system is not asked for the time of threads.
#[cfg(not(unix))]
pub(crate) fn processor_time() -> Duration {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_a_thread_waits_for_another_does_not_count() {
        let before = processor_time();
        let other = std::thread::spawn(|| {
            let begin = processor_time();
            while processor_time() - begin < Duration::from_millis(50) {}
        });
        other.join().expect("the other thread ends");
        assert!(processor_time() - before < Duration::from_millis(25));
    }
}
