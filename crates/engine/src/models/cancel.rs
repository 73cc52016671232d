//! Models of cancelling.

use super::*;
use crate::op::cancel::every_write_cancelled;
use crate::sched::queue::Queues;
use crate::sync::Mutex;

/// Kills `cancelling-reaches-later-writes`.
#[test]
fn a_cancellation_spares_what_is_pushed_after_it() {
    model(|| {
        let var = Var::new();
        let first = held(&var, Access::Write, nothing());
        let finisher = thread::spawn(move || finish(first));
        // Meanwhile the write ends, or does not.
        var.cancel_pushed_writes();
        finisher.join().unwrap();
        let later = held(&var, Access::Write, nothing());
        // SAFETY: a granted op of this thread.
        unsafe {
            let later = std::ptr::with_exposed_provenance_mut(later);
            assert!(!every_write_cancelled(later), "a later write was cancelled");
            run(later);
        }
        assert_eq!(var.version(), 2);
    });
}

/// Kills `waiter-is-a-write-to-cancel`.
#[test]
fn a_waiter_for_writing_is_no_write_to_cancel() {
    model(|| {
        let var = Var::new();
        let op = held(&var, Access::Write, nothing());
        let waiter = thread::spawn(move || {
            let mut ready = Chain::new();
            let op: *mut OpBlock = std::ptr::with_exposed_provenance_mut(op);
            // SAFETY: a granted op of this thread; completed as a waiter is, without a version.
            unsafe {
                drop(OpBlock::closure(op).cast::<ModelBody>().read());
                release(op, &Verdict { all: None, single: &[] }, false, &mut ready);
                OpBlock::clear(op);
                drop(Box::from_raw(op.cast::<MaybeUninit<OpBlock>>()));
            }
        });
        var.cancel_pushed_writes();
        waiter.join().unwrap();
        let later = held(&var, Access::Write, nothing());
        // SAFETY: a granted op of this thread.
        unsafe {
            let later = std::ptr::with_exposed_provenance_mut(later);
            assert!(!every_write_cancelled(later), "the waiter was taken for a write");
            run(later);
        }
    });
}

#[test]
fn an_op_is_cancelled_only_when_all_its_results_are() {
    model(|| {
        let (a, b) = (Var::new(), Var::new());
        let op = granted(&[(&a, Access::Write), (&b, Access::Write)]);
        let other = {
            let a = a.clone();
            thread::spawn(move || a.cancel_pushed_writes())
        };
        // SAFETY: a granted op of this thread.
        let looks = || unsafe { every_write_cancelled(std::ptr::with_exposed_provenance_mut(op)) };
        assert!(!looks(), "one result is still wanted");
        other.join().unwrap();
        assert!(!looks());
        b.cancel_pushed_writes();
        assert!(looks());
        complete(op, &[]);
    });
}

#[test]
fn a_queued_op_is_taken_by_a_core_or_by_who_cancels_it() {
    model(|| {
        let var = Var::new();
        let mut ready = Chain::new();
        let op = granted(&[(&var, Access::Write)]);
        let queues = Arc::new(Mutex::new(Queues::new(false)));
        // SAFETY: a granted op of this thread, which goes to the queue.
        unsafe {
            ready.add(std::ptr::with_exposed_provenance_mut(op));
            queues.lock().push(ready);
        }
        let core = {
            let queues = queues.clone();
            thread::spawn(move || {
                let op = queues.lock().pop();
                op.map(|op| complete(op.expose_provenance(), &[])).is_some()
            })
        };
        var.cancel_pushed_writes();
        // SAFETY: all accesses of a queued op are granted.
        let mut gone = queues.lock().take_out(|op| unsafe { every_write_cancelled(op) });
        let mut cancelled = 0;
        while let Some(op) = gone.take() {
            complete(op.expose_provenance(), &[]);
            cancelled += 1;
        }
        let ran = core.join().unwrap();
        assert_eq!(cancelled + ran as u32, 1);
        assert_eq!((var.version(), queues.lock().len()), (1, 0));
    });
}
