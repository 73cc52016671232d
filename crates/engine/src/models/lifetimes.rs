//! Models of what is freed by which thread: variables without handles, ops that are shared by their
//! run and their token.

use super::*;
use crate::op::ctx::{RUN_RETURNED, TOKEN_USED, second_to_leave};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::var::live_vars;

#[test]
fn a_variable_dropped_while_its_last_access_completes_is_freed_once() {
    model(|| {
        let before = live_vars();
        let (var, cell) = (Var::new(), Watched::new());
        let other = {
            let (var, cell) = (var.clone(), cell.clone());
            thread::spawn(move || push(&[(&var, Access::Write)], adds(&cell)))
        };
        push(&[(&var, Access::Read)], Box::new(|| None));
        drop(var);
        other.join().unwrap();
        assert_eq!((live_vars(), cell.get()), (before, 1));
    });
}

/// Kills `async-completes-twice`.
#[test]
fn of_run_and_token_exactly_one_completes_the_op() {
    model(|| {
        let block = Arc::new(Block::new());
        let completed = Arc::new(AtomicUsize::new(0));
        let leave = |state| {
            let (block, completed) = (block.clone(), completed.clone());
            move || {
                // SAFETY: the block outlives both.
                if unsafe { second_to_leave(block.0, state) } {
                    completed.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let token = thread::spawn(leave(TOKEN_USED));
        leave(RUN_RETURNED)();
        token.join().unwrap();
        assert_eq!(completed.load(Ordering::Relaxed), 1);
    });
}

struct Block(*mut OpBlock);

// SAFETY: only its counter is used, which is atomic.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    fn new() -> Self {
        let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
        // SAFETY: a fresh block that is ours.
        unsafe { OpBlock::fill(op, &OpSpec::new("async", &[]), Class::Async) };
        Block(op)
    }
}

#[test]
fn the_last_handle_may_go_while_two_accesses_complete() {
    model(|| {
        let before = live_vars();
        let var = Var::new();
        let readers = [granted(&[(&var, Access::Read)]), granted(&[(&var, Access::Read)])];
        let other = thread::spawn(move || complete(readers[0], &[]));
        drop(var);
        complete(readers[1], &[]);
        other.join().unwrap();
        assert_eq!(live_vars(), before);
    });
}

/// Kills `handles-not-atomic`.
#[test]
fn of_two_last_handles_one_frees_the_variable() {
    model(|| {
        let before = live_vars();
        let var = Var::new();
        let other = {
            let var = var.clone();
            thread::spawn(move || drop(var))
        };
        drop(var);
        other.join().unwrap();
        assert_eq!(live_vars(), before);
    });
}

/// Kills `orphan-leaks`.
#[test]
fn a_dropped_variable_with_a_queue_is_freed_by_its_last_op() {
    model(|| {
        let before = live_vars();
        let (var, cell) = (Var::new(), Watched::new());
        let first = held(&var, Access::Read, nothing());
        push(&[(&var, Access::Write)], adds(&cell));
        let finisher = thread::spawn(move || finish(first));
        drop(var);
        finisher.join().unwrap();
        assert_eq!((live_vars(), cell.get()), (before, 1));
    });
}

/// Kills `async-completes-twice`, `async-completes-with-its-run` and `async-handover-relaxed`.
#[test]
fn an_async_op_gives_its_variable_back_when_run_and_token_have_left() {
    model(|| {
        let (var, by_run, by_token) = (Var::new(), Watched::new(), Watched::new());
        let op = held(&var, Access::Write, nothing());
        let (run_part, token_part) = (by_run.clone(), by_token.clone());
        let next = Box::new(move || {
            assert_eq!((run_part.get(), token_part.get()), (1, 1), "the op was complete too early");
            None
        });
        push(&[(&var, Access::Update)], next);
        // SAFETY: the op is granted; its counter now belongs to run and token.
        unsafe { (*std::ptr::with_exposed_provenance_mut::<OpBlock>(op)).wait.store(0, Ordering::Relaxed) };
        let leave = move |part: Arc<Watched>, state: u32| {
            part.add(1);
            let op = std::ptr::with_exposed_provenance_mut::<OpBlock>(op);
            // SAFETY: run and token leave once each; the second owns the op.
            unsafe {
                if second_to_leave(op, state) {
                    let mut ready = Chain::new();
                    drop(OpBlock::closure(op).cast::<ModelBody>().read());
                    release(op, &Verdict { all: None, single: &[] }, true, &mut ready);
                    OpBlock::clear(op);
                    drop(Box::from_raw(op.cast::<MaybeUninit<OpBlock>>()));
                    while let Some(op) = ready.take() {
                        run(op);
                    }
                }
            }
        };
        let part = by_token.clone();
        let token = thread::spawn(move || leave(part, TOKEN_USED));
        leave(by_run, RUN_RETURNED);
        token.join().unwrap();
        assert_eq!(var.version(), 2, "the op was completed twice, or never");
    });
}
