//! A thread that waits for what is cancelled or late is notified at once, and not when its turn
//! comes.

use crate::common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Keeps the only core of an engine busy until the returned sender is used or dropped.
fn occupy(engine: &'static Engine) -> std::sync::mpsc::Sender<()> {
    let (started, go_on) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    engine.push(OpSpec::new("busy", &[]), move |_| {
        started.0.send(()).unwrap();
        _ = go_on.1.recv();
        Ok(())
    });
    started.1.recv_timeout(Duration::from_secs(60)).unwrap();
    go_on.0
}

/// Fresh engines with one core, which is busy.
fn occupied() -> impl Iterator<Item = (&'static Engine, std::sync::mpsc::Sender<()>)> {
    let one_core = pooled_kinds().filter(|engine| engine.cores() == 1);
    one_core.map(|engine| (engine, occupy(engine)))
}

#[test]
fn what_is_cancelled_in_the_queue_is_notified_before_a_core_is_free() {
    let _guard = watchdog(60);
    for (engine, busy) in occupied() {
        let ran = Arc::default();
        let vars: Vec<Var> = (0..50).map(|_| engine.new_var()).collect();
        for (i, var) in vars.iter().enumerate() {
            engine.push(OpSpec::new("queued", &[(var, Access::Write)]).priority(i as i32 % 3 - 1), adds(&ran));
        }
        let (last, after) = (&vars[49], engine.new_var());
        engine.push(OpSpec::new("dependant", &[(last, Access::Read), (&after, Access::Write)]), adds(&ran));
        for var in [last, &vars[0], &vars[20]] {
            engine.cancel(var);
            assert_eq!(kind_of(engine.wait_to_read(var)), Some(FailureKind::Cancelled));
        }
        assert_eq!(kind_of(engine.wait_to_read(&after)), Some(FailureKind::Cancelled), "dependants are notified, too");
        assert_eq!(ran.load(SeqCst), 0, "the core was busy all the time");
        drop(busy);
        engine.wait_all().unwrap();
        assert_eq!(ran.load(SeqCst), 47);
    }
}

#[test]
fn a_long_chain_behind_a_cancelled_op_is_notified_at_once() {
    let _guard = watchdog(60);
    for (engine, busy) in occupied() {
        let (var, ran) = (engine.new_var(), Arc::default());
        engine.push(OpSpec::new("first", &[(&var, Access::Write)]), adds(&ran));
        for _ in 0..20_000 {
            engine.push(OpSpec::new("next", &[(&var, Access::Update)]), adds(&ran));
        }
        engine.cancel(&var);
        assert_eq!(kind_of(engine.wait_to_read(&var)), Some(FailureKind::Cancelled));
        drop(busy);
        engine.wait_all().unwrap();
        assert_eq!((ran.load(SeqCst), var.version()), (0, 20_001));
    }
}

#[test]
fn who_waits_for_a_result_is_notified_when_its_deadline_has_passed_and_not_when_a_core_is_free() {
    let _guard = watchdog(60);
    for (engine, busy) in occupied() {
        let ran = Arc::default();
        let vars: Vec<Var> = (0..50).map(|_| engine.new_var()).collect();
        for var in &vars {
            engine.push(OpSpec::new("queued", &[(var, Access::Write)]), adds(&ran));
        }
        for priority in [-1, 0, 1] {
            let (late, other) = (engine.new_var(), engine.new_var());
            let deadline = Instant::now() + Duration::from_millis(20);
            let spec = |var| [(var, Access::Write)];
            engine.push(OpSpec::new("late", &spec(&late)).priority(priority).deadline(deadline), adds(&ran));
            let far = deadline + Duration::from_secs(1000);
            engine.push(OpSpec::new("in time", &spec(&other)).deadline(far), adds(&ran));
            // A waiter with a poll hook looks at the clock of its own accord.
            let result = match priority {
                0 => engine.wait_to_read_with(&late, &mut || true),
                _ => engine.wait_to_read(&late),
            };
            assert_eq!(kind_of(result), Some(FailureKind::Deadline));
            assert!(Instant::now() > deadline);
            assert!(!engine.is_ready(&other));
        }
        assert_eq!(ran.load(SeqCst), 0, "the core was busy all the time");
        drop(busy);
        assert!(engine.wait_all().is_ok(), "every failure was observed");
        assert_eq!(ran.load(SeqCst), 53);
    }
}

/// The next deadline, after late ops have been taken out, is the soonest of the rest, at whatever
/// position.
#[test]
fn of_what_stays_in_the_queue_the_soonest_deadline_counts() {
    let _guard = watchdog(60);
    for (engine, busy) in occupied() {
        let vars: Vec<Var> = (0..4).map(|_| engine.new_var()).collect();
        let begin = Instant::now();
        for (var, millis) in vars.iter().zip([10, 1_000_000, 60, 2_000_000]) {
            let deadline = begin + Duration::from_millis(millis);
            engine.push(OpSpec::new("queued", &[(var, Access::Write)]).deadline(deadline), |_| Ok(()));
        }
        for late in [0, 2] {
            assert_eq!(kind_of(engine.wait_to_read(&vars[late])), Some(FailureKind::Deadline));
        }
        drop(busy);
        for in_time in [1, 3] {
            engine.wait_to_read(&vars[in_time]).unwrap();
        }
    }
}

#[test]
fn a_core_that_becomes_free_tells_first_who_is_late() {
    let _guard = watchdog(60);
    for (engine, busy) in occupied() {
        let (order, deadline) = (Arc::new(std::sync::Mutex::new(Vec::new())), Instant::now());
        for i in 0..50 {
            let order = order.clone();
            engine.push(OpSpec::new("queued", &[]), move |_| {
                order.lock().unwrap().push(i);
                Ok(())
            });
        }
        let late = engine.new_var();
        engine.push(OpSpec::new("late", &[(&late, Access::Write)]).deadline(deadline), |_| panic!("ran late"));
        let notified = order.clone();
        engine.on_ready(&late, move |result| {
            result.unwrap_err().mark_observed();
            notified.lock().unwrap().push(-1);
        });
        drop(busy);
        engine.wait_all().unwrap();
        assert_eq!(order.lock().unwrap()[..2], [-1, 0]);
    }
}

/// Pushes an op on `var` whose token the returned sender uses from a thread that is no core.
fn hold_back(engine: &'static Engine, var: &Var) -> OnComplete {
    let (send, token) = std::sync::mpsc::channel();
    engine.push_async(OpSpec::new("input", &[(var, Access::Write)]), move |_, token| send.send(token).unwrap());
    token.recv_timeout(Duration::from_secs(60)).unwrap()
}

/// Ops of which no thread could know that they will not run while they were in the queue.
#[test]
fn what_becomes_ready_when_it_is_late_or_cancelled_waits_for_no_core() {
    let _guard = watchdog(60);
    for engine in pooled_kinds().filter(|engine| engine.cores() == 1) {
        let (input, ran) = (engine.new_var(), Arc::default());
        let token = hold_back(engine, &input);
        let busy = occupy(engine);
        let (late, cancelled, wanted) = (engine.new_var(), engine.new_var(), engine.new_var());
        let of_late = engine.new_var();
        let from_input = |var| [(&input, Access::Read), (var, Access::Write)];
        let spec = from_input(&late);
        engine.push(OpSpec::new("late", &spec).deadline(Instant::now()), adds(&ran));
        engine.push(OpSpec::new("dependant", &[(&late, Access::Read), (&of_late, Access::Write)]), adds(&ran));
        engine.push(OpSpec::new("cancelled", &from_input(&cancelled)), adds(&ran));
        engine.push(OpSpec::new("wanted", &from_input(&wanted)), adds(&ran));
        engine.cancel(&cancelled);
        assert!(!engine.is_ready(&late) && !engine.is_ready(&cancelled));
        token.complete(Ok(()));
        // Known when the token has been used, whether any thread waits or not.
        assert!(engine.is_ready(&late) && engine.is_ready(&of_late) && engine.is_ready(&cancelled));
        assert_eq!(kind_of(engine.wait_to_read(&late)), Some(FailureKind::Deadline));
        assert_eq!(kind_of(engine.wait_to_read(&of_late)), Some(FailureKind::Deadline));
        assert_eq!(kind_of(engine.wait_to_read(&cancelled)), Some(FailureKind::Cancelled));
        assert!(!engine.is_ready(&wanted) && ran.load(SeqCst) == 0, "the core was busy all the time");
        drop(busy);
        engine.wait_to_read(&wanted).unwrap();
        engine.wait_all().unwrap();
        assert_eq!(ran.load(SeqCst), 1);
    }
}

/// Cancelling threads, deadlines, waiters and cores at once: every op is complete once, run or not.
#[test]
fn nothing_is_lost_or_completed_twice_while_many_cancel_and_are_late() {
    let _guard = watchdog(120);
    for engine in pooled_kinds() {
        let (ran, unrun) = (AtomicUsize::new(0), AtomicUsize::new(0));
        const THREADS: usize = 4;
        const ROUNDS: usize = 600;
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (ran, unrun) = (&ran, &unrun);
                scope.spawn(move || {
                    let mut random = Random(thread as u64 + 1);
                    for _ in 0..ROUNDS {
                        let (first, second) = (engine.new_var(), engine.new_var());
                        let accesses = [(&first, Access::Write)];
                        let mut spec = OpSpec::new("first", &accesses).priority(random.below(3) as i32 - 1);
                        if random.below(2) == 0 {
                            spec = spec.deadline(Instant::now() + Duration::from_micros(random.below(200)));
                        }
                        engine.push(spec, |_| {
                            (0..200).for_each(|_| std::hint::spin_loop());
                            Ok(())
                        });
                        engine.push(OpSpec::new("second", &[(&first, Access::Read), (&second, Access::Write)]), |_| {
                            Ok(())
                        });
                        if random.below(2) == 0 {
                            engine.cancel(if random.below(2) == 0 { &first } else { &second });
                        }
                        for var in [&second, &first] {
                            let counter = if engine.wait_to_read(var).is_ok() { ran } else { unrun };
                            counter.fetch_add(1, SeqCst);
                            assert_eq!(var.version(), 1, "complete once");
                        }
                    }
                });
            }
        });
        engine.wait_all().unwrap();
        assert_eq!(ran.load(SeqCst) + unrun.load(SeqCst), 2 * THREADS * ROUNDS);
    }
}
