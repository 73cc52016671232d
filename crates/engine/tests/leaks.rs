//! Nothing is left behind: variables, closures of ops that do not run, waiters that left.

mod common;
use common::*;
use mxrt_engine::*;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The number of live variables is one of the process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn dropped_variables_are_freed_when_their_work_is_done() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for engine in every_kind() {
        let before = live_vars();
        for i in 0..300 {
            let (x, y) = (engine.new_var(), engine.new_var());
            engine.push(OpSpec::new("first", &[(&x, Access::Write)]), |_| {
                std::thread::yield_now();
                Ok(())
            });
            engine.push(OpSpec::new("read", &[(&x, Access::Read), (&y, Access::Write)]), move |_| {
                if i % 3 == 0 { Err(error("kept by a variable")) } else { Ok(()) }
            });
            // The last access of one is a read, of the other a callback.
            engine.on_ready(&y, |_| ());
            assert!(live_vars() > before, "variables with handles are counted");
        }
        let _ = engine.wait_all();
        assert_eq!(live_vars(), before, "{:?}", engine.kind());
    }
}

#[test]
fn a_wait_given_up_frees_its_variable_when_the_value_arrives() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for engine in every_kind() {
        let before = live_vars();
        let var = engine.new_var();
        let (send, receive) = std::sync::mpsc::channel();
        engine.push_async(OpSpec::new("held", &[(&var, Access::Write)]), move |_, token| send.send(token).unwrap());
        let token = receive.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(matches!(engine.wait_to_read_with(&var, &mut || false), Err(WaitError::Interrupted)));
        drop(var);
        assert_eq!(live_vars(), before + 1);
        token.complete(Ok(()));
        engine.wait_all().unwrap();
        assert_eq!(live_vars(), before);
    }
}

#[test]
fn closures_of_ops_that_do_not_run_are_dropped() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for engine in every_kind() {
        let (bad, out, kept) = (engine.new_var(), engine.new_var(), Arc::new(()));
        engine.push(OpSpec::new("bad", &[(&bad, Access::Write)]), |_| Err(error("input")));
        let push_all = |vars: &[(&Var, Access)]| {
            let (small, large, token) = (kept.clone(), kept.clone(), kept.clone());
            let payload = [0u64; 32];
            engine.push(OpSpec::new("small", vars), move |_| unreachable!("{small:?}"));
            engine.push(OpSpec::new("large", vars), move |_| unreachable!("{large:?} {payload:?}"));
            engine.push_async(OpSpec::new("async", vars), move |_, _| unreachable!("{token:?}"));
        };
        push_all(&[(&bad, Access::Read), (&out, Access::Write)]);
        assert!(raised(engine.wait_to_read(&out)).is_some());
        assert_eq!(Arc::strong_count(&kept), 1, "{:?}: closures of skipped ops", engine.kind());
        engine.close();
        push_all(&[(&out, Access::Write)]);
        // A closed engine does not sleep until the waiter above has given the variable back in its
        // worker.
        while matches!(engine.wait_to_read(&out), Err(WaitError::Closed)) {
            std::thread::yield_now();
        }
        assert!(raised(engine.wait_to_read(&out)).is_some());
        assert_eq!(Arc::strong_count(&kept), 1, "{:?}: closures of ops pushed after closing", engine.kind());
    }
}
