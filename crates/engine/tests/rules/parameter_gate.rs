//! Parameters behind one gate.

use crate::common::*;
use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

fn parameters(engine: &'static Engine, n: usize) -> Vec<Var> {
    (0..n).map(|_| engine.new_var()).collect()
}

#[test]
fn requests_see_all_parameters_of_one_moment() {
    let _guard = watchdog(120);
    for engine in every_kind() {
        let vars = parameters(engine, 100);
        let gate = ParameterGate::new(engine, &vars);
        let values: Arc<Vec<AtomicU64>> = Arc::new((0..100).map(|_| AtomicU64::new(0)).collect());
        let (seen, together) = (Arc::new(AtomicUsize::new(0)), Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]));
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    for _ in 0..60 {
                        let output = engine.new_var();
                        let (values, seen, together) = (values.clone(), seen.clone(), together.clone());
                        engine.push(OpSpec::new("request", &[gate.read(), (&output, Access::Write)]), move |_| {
                            let inside = together[0].fetch_add(1, SeqCst) + 1;
                            together[1].fetch_max(inside, SeqCst);
                            let first = values[0].load(SeqCst);
                            assert!(values.iter().all(|v| v.load(SeqCst) == first), "a mixture of old and new");
                            seen.fetch_add(1, SeqCst);
                            together[0].fetch_sub(1, SeqCst);
                            Ok(())
                        });
                        engine.wait_to_read(&output).unwrap();
                    }
                });
            }
            s.spawn(|| {
                for i in 1..=30 {
                    let values = values.clone();
                    let accesses: Vec<_> = vars.iter().map(|v| (v, Access::Write)).collect();
                    gate.push(OpSpec::new("load", &accesses), move |_| {
                        values.iter().for_each(|v| v.store(i, SeqCst));
                        Ok(())
                    });
                }
            });
        });
        engine.wait_all().unwrap();
        assert_eq!((seen.load(SeqCst), vars[7].version(), gate.var().version()), (180, 30, 31));
    }
}

#[test]
fn readers_share_the_gate() {
    let _guard = watchdog(60);
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let gate = ParameterGate::new(engine, &parameters(engine, 3));
    let meet = Arc::new(std::sync::Barrier::new(2));
    let outputs = parameters(engine, 2);
    for output in &outputs {
        let meet = meet.clone();
        engine.push(OpSpec::new("request", &[gate.read(), (output, Access::Write)]), move |_| {
            meet.wait();
            Ok(())
        });
    }
    outputs.iter().for_each(|o| engine.wait_to_read(o).unwrap());
}

#[test]
fn a_request_finishes_on_what_it_started_with() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let vars = parameters(engine, 2);
        let gate = ParameterGate::new(engine, &vars);
        let value = Arc::new(AtomicU64::new(1));
        let (running, go_on) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
        let (output, late) = (engine.new_var(), engine.new_var());
        let results: Arc<[AtomicU64; 2]> = Arc::default();
        let (now, result) = (value.clone(), results.clone());
        engine.push(OpSpec::new("early", &[gate.read(), (&output, Access::Write)]), move |_| {
            running.0.send(()).unwrap();
            go_on.1.recv().unwrap();
            result[0].store(now.load(SeqCst), SeqCst);
            Ok(())
        });
        running.1.recv().unwrap();
        let set = value.clone();
        gate.push(OpSpec::new("set_data", &[(&vars[0], Access::Write)]).cost(Cost::Small), move |_| {
            set.store(2, SeqCst);
            Ok(())
        });
        let (now, result) = (value.clone(), results.clone());
        engine.push(OpSpec::new("late", &[gate.read(), (&late, Access::Write)]), move |_| {
            result[1].store(now.load(SeqCst), SeqCst);
            Ok(())
        });
        go_on.0.send(()).unwrap();
        engine.wait_to_read(&late).unwrap();
        assert_eq!((results[0].load(SeqCst), results[1].load(SeqCst)), (1, 2));
    }
}

#[test]
fn the_gate_is_failed_exactly_while_a_parameter_is() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let vars = parameters(engine, 3);
        engine.push(OpSpec::new("bad start", &[(&vars[2], Access::Write)]), |_| Err(error("start")));
        let gate = ParameterGate::new(engine, &vars);
        let request = |fails: bool| {
            let output = engine.new_var();
            engine.push(OpSpec::new("request", &[gate.read(), (&output, Access::Write)]), move |_| {
                if fails { Err(error("request")) } else { Ok(()) }
            });
            raised(engine.wait_to_read(&output))
        };
        let write = |i: usize, message: Option<&'static str>| {
            gate.push(OpSpec::new("write", &[(&vars[i], Access::Write)]), move |_| {
                message.map_or(Ok(()), |m| Err(error(m)))
            });
        };
        assert_eq!(request(false).as_deref(), Some("start"));
        write(0, Some("first"));
        assert_eq!(request(false).as_deref(), Some("first"));
        write(0, None);
        assert_eq!(request(false).as_deref(), Some("start"), "another parameter is still failed");
        write(2, None);
        assert_eq!(request(false), None);
        assert_eq!(request(true).as_deref(), Some("request"));
        assert_eq!(request(false), None, "a request does not poison parameters");
        // A partial write does not heal, here either.
        write(1, Some("second"));
        gate.push(OpSpec::new("partial", &[(&vars[1], Access::Update)]), |_| Ok(()));
        assert_eq!(request(false).as_deref(), Some("second"));
        write(1, None);
        assert_eq!(request(false), None);
        let _ = engine.wait_all();
    }
}

/// A selective op succeeds although single writes of it have failed.
#[test]
fn a_gate_is_failed_by_the_single_writes_that_an_op_fails() {
    let _guard = watchdog(60);
    for engine in every_kind() {
        let vars = parameters(engine, 3);
        let (first, second) = (ParameterGate::new(engine, &vars[..2]), ParameterGate::new(engine, &vars[1..]));
        let gates = [first, second];
        let request = |gate: usize| {
            let output = engine.new_var();
            engine.push(OpSpec::new("request", &[gates[gate].read(), (&output, Access::Write)]), |_| Ok(()));
            raised(engine.wait_to_read(&output))
        };
        let push = |vars: &[(&Var, Access)], fails: Option<usize>| {
            let spec = OpSpec::new("selective", vars).kind(OpKind::Selective);
            ParameterGate::push_through(&gates, engine, spec, move |ctx| {
                let failure = ctx.failure(error("single"));
                fails.into_iter().for_each(|i| ctx.fail_write(i, failure.clone()));
                Ok(())
            });
        };
        let other = engine.new_var();
        let both = [(&other, Access::Write), (&vars[0], Access::Write)];
        push(&both, Some(0));
        assert_eq!((request(0), request(1)), (None, None), "what failed is no parameter");
        push(&both, Some(1));
        for _ in 0..2 {
            assert_eq!((request(0).as_deref(), request(1)), (Some("single"), None), "of the first gate alone");
        }
        // With a read of the same variable the write keeps what was there.
        push(&[(&vars[0], Access::Read), (&vars[0], Access::Write)], None);
        assert_eq!((raised(engine.wait_to_read(&vars[0])), request(0)), (Some("single".into()), Some("single".into())));
        push(&both, None);
        assert_eq!((request(0), request(1)), (None, None));
        push(&[(&vars[1], Access::Update)], Some(0));
        assert_eq!((request(0).as_deref(), request(1).as_deref()), (Some("single"), Some("single")));
        push(&[(&vars[1], Access::Write)], None);
        assert_eq!((request(0), request(1)), (None, None));
        let _ = engine.wait_all();
    }
}

#[test]
fn a_gate_waits_for_the_writes_before_it_and_leaves_nothing_behind() {
    let _guard = watchdog(60);
    for engine in pooled_kinds() {
        let vars = parameters(engine, 2);
        let loaded = Arc::new(AtomicU64::new(0));
        let set = loaded.clone();
        engine.push(OpSpec::new("load", &[(&vars[1], Access::Write)]), move |_| {
            std::thread::sleep(std::time::Duration::from_millis(3));
            set.store(1, SeqCst);
            Ok(())
        });
        let gate = ParameterGate::new(engine, &vars);
        engine.wait_to_read(gate.var()).unwrap();
        assert_eq!(loaded.load(SeqCst), 1);
        assert_eq!(gate.parameters().len(), 2);
    }
}
