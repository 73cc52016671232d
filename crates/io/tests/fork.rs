//! A data iterator in a forked process. The only test of its file, so that nothing else runs while
//! it forks.

mod common;

use common::{Csv, Directory, values};
use mxrt_io::iterators::batch::BatchIter;
use std::time::{Duration, Instant};

/// The work of the child; it returns the exit code.
fn child(iter: BatchIter) -> i32 {
    match iter.next() {
        Err(error) if error.to_string().contains("forked") => {}
        _ => return 1,
    }
    if iter.reset().is_err() {
        return 2;
    }
    let Ok(Some(batch)) = iter.next() else { return 3 };
    if values(&batch.data) != [0.0, 1.0] {
        return 4;
    }
    drop(iter);
    0
}

#[test]
fn a_forked_process_is_told_and_can_begin_a_new_epoch() {
    let directory = Directory::new();
    let path = directory.file("data.csv", "0\n1\n2\n3\n4\n5\n");
    let iter = Csv::new(&path, "1", 2).iter();
    iter.next().expect("a batch");
    // SAFETY: the child only runs code that is written for being forked, and leaves by `_exit`.
    let process = unsafe { libc::fork() };
    if process == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| child(iter))).unwrap_or(9);
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(code) };
    }
    let start = Instant::now();
    let mut status = 0;
    // SAFETY: our own child, and a place for its status.
    while unsafe { libc::waitpid(process, &mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > Duration::from_secs(60) {
            // SAFETY: our own child, which was not waited for yet.
            unsafe { libc::kill(process, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "the child ended with status {status:#x}");
    // The parent goes on where it was.
    let batch = iter.next().expect("a batch").expect("a batch");
    assert_eq!(values(&batch.data), [2.0, 3.0]);
}
