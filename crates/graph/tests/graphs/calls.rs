//! Calls and what may happen to them: parameters behind a gate, inputs and nodes that fail,
//! priorities, deadlines, results that no caller wants.

use crate::common::Calls as _;
use mxrt_engine::{Config, Cost, Engine, EngineKind, FailureKind, OpError, OpSpec, WaitError};
use mxrt_graph::{BoundOp, CachedOp, CachedOpFlags, CallOptions, Interrupter, Symbol};
use mxrt_ops::registry;
use mxrt_tensor::{Context, Launch, NDArray, launch};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

pub(crate) fn start(kind: EngineKind, cores: usize) -> &'static Engine {
    Engine::start(Config { kind, cores: Some(cores), ..Config::default() }).expect("the engine starts")
}

/// Engines whose calls return before their failures are known.
fn threaded_engines() -> impl Iterator<Item = &'static Engine> {
    every_engine().filter(|engine| !engine.is_naive())
}

fn every_engine() -> impl Iterator<Item = &'static Engine> {
    EngineKind::ALL.into_iter().flat_map(|kind| [1, 2, 4].map(|cores| start(kind, cores)))
}

pub(crate) fn var(name: &str) -> Symbol {
    Symbol::variable(name, BTreeMap::new())
}

pub(crate) fn apply(op: &str, name: &str, attrs: &[(&str, &str)], inputs: &[&Symbol]) -> Symbol {
    let op = registry().get(op).expect("the operator is registered");
    let attrs = attrs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let inputs = inputs.iter().map(|s| (None, (*s).clone())).collect();
    Symbol::create(op, name.to_owned(), attrs, inputs).expect("the symbol composes")
}

pub(crate) fn array(engine: &'static Engine, shape: &[usize], values: &[f32]) -> NDArray {
    NDArray::from_slice(engine, Context::cpu(0), shape, values).expect("the array is made")
}

pub(crate) fn values(array: &NDArray) -> Vec<f32> {
    let bytes = array.to_bytes().expect("the array has a value");
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

pub(crate) fn compile(engine: &'static Engine, symbol: &Symbol) -> Arc<CachedOp> {
    Arc::new(CachedOp::new(engine, symbol, &CachedOpFlags::default()).expect("the symbol compiles"))
}

pub(crate) fn failure(array: &NDArray) -> (FailureKind, String, Option<String>) {
    match array.wait_to_read() {
        Err(WaitError::Failed(f)) => (f.kind(), f.message().to_owned(), f.node().map(str::to_owned)),
        other => panic!("a failure was expected: {other:?}"),
    }
}

pub(crate) fn spoil(engine: &'static Engine, array: &NDArray) {
    launch(engine, Launch { name: "spoil".into(), inputs: &[], outputs: &[array], cost: Cost::Small }, |_, _, _| {
        Err(OpError::new(FailureKind::Value, "spoilt on purpose"))
    });
}

fn set(engine: &'static Engine, target: &NDArray, value: f32) {
    launch(
        engine,
        Launch { name: "set".into(), inputs: &[], outputs: &[target], cost: Cost::Small },
        move |_, _, out| {
            out[0].as_mut_slice::<f32>()?.fill(value);
            Ok(())
        },
    );
}

/// Keeps all cores of an engine busy until it is dropped.
pub(crate) struct Busy {
    _cores: Vec<mpsc::Sender<()>>,
}

pub(crate) fn occupy(engine: &'static Engine) -> Busy {
    let hold = |_| {
        let (release, held) = mpsc::channel::<()>();
        let (started, running) = mpsc::channel();
        let held = Mutex::new(held);
        engine.push(OpSpec::new("occupy", &[]), move |_| {
            let _ = started.send(());
            let _ = held.lock().map(|held| held.recv());
            Ok(())
        });
        running.recv().expect("the core is busy");
        release
    };
    Busy { _cores: (0..engine.cores()).map(hold).collect() }
}

// ---- parameters
// -------------------------------------------------------------------------------------------------

/// x + a - b, where a and b are equal whenever no thread writes them
fn difference() -> Symbol {
    let sum = apply("elemwise_add", "sum", &[], &[&var("x"), &var("a")]);
    apply("elemwise_sub", "difference", &[], &[&sum, &var("b")])
}

#[test]
fn a_bound_graph_sees_every_change_of_its_parameters_in_the_order_of_the_calls() {
    for engine in every_engine() {
        let (a, b) = (array(engine, &[2], &[1.0; 2]), array(engine, &[2], &[10.0; 2]));
        let op = BoundOp::new(compile(engine, &difference()), &[None, Some(&a), Some(&b)]).expect("it binds");
        let x = array(engine, &[2], &[0.0; 2]);
        let mut results = Vec::new();
        for round in 0..50 {
            set(engine, &a, round as f32);
            results.push(op.run_with(&[&x], None, &CallOptions::default()).expect("the call is accepted"));
            set(engine, &b, 2.0 * round as f32);
            results.push(op.run_with(&[&x], None, &CallOptions::default()).expect("the call is accepted"));
        }
        for (i, result) in results.iter().enumerate() {
            let (round, b) = ((i / 2) as f32, if i == 0 { 10.0 } else { 2.0 * ((i - 1) / 2) as f32 });
            assert_eq!(values(&result[0]), [round - b; 2], "call {i} on {engine:?}");
        }
    }
}

#[test]
fn parameters_that_one_operation_writes_change_together_for_all_callers() {
    let engine = start(EngineKind::ThreadedPerDevice, 4);
    let (a, b) = (array(engine, &[64], &[0.0; 64]), array(engine, &[64], &[0.0; 64]));
    let op = compile(engine, &difference());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Every caller has a binding of his own: the parameters have several gates.
            let bound = BoundOp::new(op.clone(), &[None, Some(&a), Some(&b)]).expect("it binds");
            let done = &done;
            scope.spawn(move || {
                let x = array(engine, &[64], &[0.5; 64]);
                while !done.load(SeqCst) {
                    let result = bound.run_with(&[&x], None, &CallOptions::default()).expect("the call is accepted");
                    assert_eq!(values(&result[0]), [0.5; 64], "old and new values are mixed");
                }
            });
        }
        for i in 0..300 {
            let both = Launch { name: "set".into(), inputs: &[], outputs: &[&a, &b], cost: Cost::Small };
            launch(engine, both, move |_, _, out| {
                for out in out {
                    out.as_mut_slice::<f32>()?.fill(i as f32);
                }
                Ok(())
            });
            if i % 10 == 0 {
                a.wait_to_read().expect("nothing failed");
            }
        }
        done.store(true, SeqCst);
    });
}

#[test]
fn binding_while_others_write_misses_no_write() {
    for _ in 0..20 {
        let engine = start(EngineKind::ThreadedPerDevice, 2);
        let (a, b) = (array(engine, &[8], &[0.0; 8]), array(engine, &[8], &[0.0; 8]));
        let op = compile(engine, &difference());
        std::thread::scope(|scope| {
            let (a, b) = (&a, &b);
            scope.spawn(move || (1..=200).for_each(|i| set(engine, a, i as f32)));
            scope.spawn(move || {
                let x = array(engine, &[8], &[0.0; 8]);
                for _ in 0..50 {
                    let bound = BoundOp::new(op.clone(), &[None, Some(a), Some(b)]).expect("it binds");
                    let result = bound.run_with(&[&x], None, &CallOptions::default()).expect("the call is accepted");
                    let seen = values(&result[0]);
                    assert!(seen.iter().all(|v| *v == seen[0]), "half of a write: {seen:?}");
                }
            });
        });
        assert_eq!(values(&a), [200.0; 8]);
    }
}

#[test]
fn a_result_may_overwrite_a_parameter() {
    for engine in every_engine() {
        let (a, b) = (array(engine, &[2], &[1.0, 2.0]), array(engine, &[2], &[0.0; 2]));
        let op = BoundOp::new(compile(engine, &difference()), &[None, Some(&a), Some(&b)]).expect("it binds");
        let x = array(engine, &[2], &[10.0; 2]);
        for _ in 0..3 {
            op.run_with(&[&x], Some(&[&a]), &CallOptions::default()).expect("the call is accepted");
        }
        assert_eq!(values(&a), [31.0, 32.0]);
    }
}

#[test]
fn a_gate_is_gone_with_its_graph() {
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let (a, b) = (array(engine, &[2], &[1.0; 2]), array(engine, &[2], &[1.0; 2]));
    let x = array(engine, &[2], &[0.0; 2]);
    let op = compile(engine, &difference());
    let mut vars = Vec::new();
    for round in 0..100 {
        let bound = BoundOp::new(op.clone(), &[None, Some(&a), Some(&b)]).expect("it binds");
        let result = bound.run_with(&[&x], None, &CallOptions::default()).expect("the call is accepted");
        drop(bound);
        set(engine, &a, 1.0);
        assert_eq!(values(&result[0]), [0.0; 2]);
        drop(result);
        engine.wait_all().expect("nothing failed");
        if round % 50 == 49 {
            vars.push(mxrt_engine::live_vars());
        }
    }
    // Other tests of this process make variables too; gates that stay would be a hundred.
    assert!(vars[1] < vars[0] + 40, "{vars:?}");
}

// ---- failures
// -------------------------------------------------------------------------------------------------

/// relu(x) + w, and y * 2; w is a parameter
fn two_branches() -> Symbol {
    let relu = apply("Activation", "relu", &[("act_type", "relu")], &[&var("x")]);
    let left = apply("elemwise_add", "left", &[], &[&relu, &var("w_weight")]);
    let right = apply("_mul_scalar", "right", &[("scalar", "2")], &[&var("y")]);
    Symbol::group(&[left, right])
}

#[test]
fn a_failed_input_fails_the_results_that_depend_on_it_and_no_other() {
    for engine in threaded_engines() {
        let op = compile(engine, &two_branches());
        let (x, y) = (array(engine, &[2], &[-1.0, 3.0]), array(engine, &[2], &[4.0; 2]));
        let w = array(engine, &[2], &[1.0; 2]);
        let call = |x: &NDArray, w: &NDArray, y: &NDArray| op.run(&[x, w, y]).expect("the call is accepted");
        for bad in 0..3 {
            let arrays = [x.clone(), w.clone(), y.clone()];
            let spoilt = array(engine, &[2], &[0.0; 2]);
            spoil(engine, &spoilt);
            let pick = |i: usize| if i == bad { &spoilt } else { &arrays[i] };
            let out = call(pick(0), pick(1), pick(2));
            let (failed, good, right): (usize, usize, [f32; 2]) =
                if bad < 2 { (0, 1, [8.0, 8.0]) } else { (1, 0, [1.0, 4.0]) };
            assert_eq!(failure(&out[failed]).1, "spoilt on purpose", "input {bad} on {engine:?}");
            assert_eq!(values(&out[good]), right, "input {bad} on {engine:?}");
            assert!(failure(&spoilt).1.contains("on purpose"));
        }
        let out = call(&x, &w, &y);
        assert_eq!((values(&out[0]), values(&out[1])), (vec![1.0, 4.0], vec![8.0, 8.0]));
        engine.wait_all().expect("everything was observed");
    }
}

#[test]
fn a_failed_parameter_fails_what_depends_on_it_until_it_is_written_again() {
    for engine in threaded_engines() {
        let w = array(engine, &[2], &[1.0; 2]);
        let op = BoundOp::new(compile(engine, &two_branches()), &[None, Some(&w), None]).expect("it binds");
        let (x, y) = (array(engine, &[2], &[-1.0, 3.0]), array(engine, &[2], &[4.0; 2]));
        let call = || op.run_with(&[&x, &y], None, &CallOptions::default()).expect("the call is accepted");
        let before = call();
        spoil(engine, &w);
        let during = call();
        set(engine, &w, 5.0);
        let after = call();
        assert_eq!(values(&before[0]), [1.0, 4.0]);
        assert_eq!(failure(&during[0]).1, "spoilt on purpose");
        assert_eq!(values(&during[1]), [8.0; 2], "this result does not depend on the parameter");
        assert_eq!(values(&after[0]), [5.0, 8.0]);
        engine.wait_all().expect("everything was observed");
    }
}

/// take(x, index) with an error for indices out of range, and relu(x)
fn picking() -> Symbol {
    let (x, index) = (var("x"), var("index"));
    let picked = apply("take", "picked", &[("mode", "raise")], &[&x, &index]);
    let relu = apply("Activation", "relu", &[("act_type", "relu")], &[&picked]);
    let other = apply("_plus_scalar", "other", &[("scalar", "1")], &[&x]);
    Symbol::group(&[relu, other])
}

#[test]
fn a_node_that_fails_is_named_and_other_results_are_right() {
    for engine in threaded_engines() {
        let op = compile(engine, &picking());
        let x = array(engine, &[3], &[1.0, -2.0, 3.0]);
        let out = op.run(&[&x, &array(engine, &[1], &[9.0])]).expect("the call is accepted");
        let (kind, message, node) = failure(&out[0]);
        assert_eq!((kind, node.as_deref()), (FailureKind::Index, Some("picked")), "{message}");
        assert_eq!(values(&out[1]), [2.0, -1.0, 4.0]);
        let good = op.run(&[&x, &array(engine, &[1], &[2.0])]).expect("the call is accepted");
        assert_eq!(values(&good[0]), [3.0]);
        engine.wait_all().expect("everything was observed");
    }
}

#[test]
fn a_call_of_the_naive_engine_is_over_and_reports_its_failure() {
    for engine in every_engine().filter(|engine| engine.is_naive()) {
        let op = compile(engine, &picking());
        let x = array(engine, &[3], &[1.0, -2.0, 3.0]);
        let error = op.run(&[&x, &array(engine, &[1], &[9.0])]).expect_err("the index is out of range");
        assert_eq!((error.kind, error.node.as_deref()), (FailureKind::Index, Some("picked")));
        let index = array(engine, &[1], &[2.0]);
        let started = op.call(&[&x, &index], None, &CallOptions::default(), &mut Interrupter::never());
        assert!(started.expect("the index is in range").is_ready());
        engine.wait_all().expect("everything was observed");
    }
}

#[test]
fn a_constant_that_cannot_be_computed_fails_what_reads_it() {
    for engine in threaded_engines() {
        let (x, w, index) = (var("x"), var("w_weight"), var("i_weight"));
        let picked = apply("take", "picked", &[("mode", "raise")], &[&w, &index]);
        let sum = apply("elemwise_add", "sum", &[], &[&x, &picked]);
        let other = apply("_plus_scalar", "other", &[("scalar", "1")], &[&x]);
        let flags = CachedOpFlags::parse([("data_indices", "(0,)"), ("param_indices", "(1, 2)")]).expect("they parse");
        let symbol = Symbol::group(&[sum, other]);
        assert_eq!(symbol.list_inputs(), ["x", "w_weight", "i_weight"]);
        let op = CachedOp::new(engine, &symbol, &flags).expect("the symbol compiles");
        let (x, w) = (array(engine, &[1], &[1.0]), array(engine, &[2], &[10.0, 20.0]));
        let index = array(engine, &[1], &[5.0]);
        for _ in 0..2 {
            let out = op.run(&[&x, &w, &index]).expect("the call is accepted");
            assert_eq!(failure(&out[0]).2.as_deref(), Some("picked"));
            assert_eq!(values(&out[1]), [2.0]);
        }
        set(engine, &index, 1.0);
        let out = op.run(&[&x, &w, &index]).expect("the call is accepted");
        assert_eq!(values(&out[0]), [21.0]);
        engine.wait_all().expect("everything was observed");
    }
}

// ---- place in the queue
// ---------------------------------------------------------------------------------------------

/// Large enough to go through the queue.
pub(crate) fn slow_net() -> Symbol {
    let attrs = [("num_filter", "256"), ("kernel", "(3, 3)"), ("pad", "(1, 1)"), ("no_bias", "True")];
    apply("Convolution", "conv", &attrs, &[&var("x")])
}

pub(crate) fn slow_inputs(engine: &'static Engine, rows: usize) -> (NDArray, NDArray) {
    let fill = |shape: &[usize]| {
        let count = shape.iter().product::<usize>();
        array(engine, shape, &(0..count).map(|i| ((i * 7 + i / 31) % 13) as f32 * 0.1 - 0.6).collect::<Vec<_>>())
    };
    (fill(&[rows, 32, 56, 56]), fill(&[256, 32, 3, 3]))
}

#[test]
fn calls_with_a_higher_priority_are_served_first() {
    for kind in [EngineKind::Threaded, EngineKind::ThreadedPerDevice] {
        let engine = start(kind, 1);
        let op = compile(engine, &slow_net());
        let (x, w) = slow_inputs(engine, 1);
        values(&op.run(&[&x, &w]).expect("the call is accepted")[0]);
        let order: Arc<Mutex<Vec<i32>>> = Arc::default();
        let busy = occupy(engine);
        for priority in [0, -1, 2, 0, 1] {
            let options = CallOptions { priority, ..CallOptions::default() };
            let out = op.run_with(&[&x, &w], None, &options).expect("the call is accepted");
            let order = order.clone();
            engine.on_ready(out[0].var(), move |_| order.lock().expect("no thread panicked").push(priority));
        }
        drop(busy);
        engine.wait_all().expect("nothing failed");
        assert_eq!(*order.lock().expect("no thread panicked"), [2, 1, 0, 0, -1]);
    }
}

#[test]
fn a_call_past_its_deadline_fails_with_its_own_kind_and_one_in_time_does_not() {
    for engine in threaded_engines() {
        let op = compile(engine, &slow_net());
        let (x, w) = slow_inputs(engine, 1);
        let busy = occupy(engine);
        let within = |seconds| {
            let deadline = Some(Instant::now() + Duration::from_secs(seconds));
            let options = CallOptions { deadline, ..CallOptions::default() };
            op.run_with(&[&x, &w], None, &options).expect("the call is accepted")
        };
        let (late, early) = (within(0), within(3600));
        drop(busy);
        assert_eq!(failure(&late[0]).0, FailureKind::Deadline);
        early[0].wait_to_read().expect("there was time");
        engine.wait_all().expect("everything was observed");
    }
}

#[test]
fn only_results_that_nobody_wants_any_more_are_not_computed() {
    for kind in [EngineKind::Threaded, EngineKind::ThreadedPerDevice] {
        let engine = start(kind, 2);
        let op = compile(engine, &picking());
        let (x, bad) = (array(engine, &[3], &[0.0; 3]), array(engine, &[1], &[9.0]));
        let call = |cancel_on_drop| {
            let options = CallOptions { cancel_on_drop, ..CallOptions::default() };
            op.run_with(&[&x, &bad], None, &options).expect("the call is accepted")
        };
        // This call fails whenever it runs: so it is seen whether it did.
        let failed = || engine.wait_all().is_err();
        let busy = occupy(engine);
        drop(call(true));
        drop(busy);
        assert!(!failed(), "it ran although its result was dropped");
        let busy = occupy(engine);
        drop(call(false));
        drop(busy);
        assert!(failed(), "an ordinary result may be dropped");
        let busy = occupy(engine);
        let kept = call(true)[1].clone();
        drop(busy);
        assert!(failed(), "one result is still wanted");
        assert_eq!(values(&kept), [1.0; 3]);
        let busy = occupy(engine);
        let view = call(true)[1].view(1, [2].as_slice().into()).expect("it fits");
        drop(busy);
        assert!(failed(), "a view wants the result as well");
        assert_eq!(values(&view), [1.0; 2]);
    }
}

/// Inputs that graphs usually have as parameters may be passed by calls, in addition to parameters
/// that are bound.
#[test]
fn weights_that_a_call_passes_are_those_of_this_call() {
    let dense =
        |x: &Symbol| apply("FullyConnected", "dense", &[("num_hidden", "2")], &[x, &var("weight"), &var("bias")]);
    // In the middle of stages as well.
    let staged = apply("_contrib_boolean_mask", "mask", &[], &[&dense(&var("data")), &var("index")]);
    for engine in every_engine() {
        let array = |shape: &[usize], values: &[f32]| array(engine, shape, values);
        let (data, bias) = (array(&[1, 2], &[1.0, 10.0]), array(&[2], &[100.0, 200.0]));
        let weights = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]].map(|values| array(&[2, 2], &values));
        let wanted = [[121.0, 243.0], [165.0, 287.0]];
        let plain = BoundOp::new(compile(engine, &dense(&var("data"))), &[None, None, Some(&bias)]).expect("it binds");
        let index = array(&[1], &[1.0]);
        let staged =
            BoundOp::new(compile(engine, &staged), &[None, None, Some(&bias), Some(&index)]).expect("it binds");
        for which in [0, 0, 1, 0, 1, 1] {
            for op in [&plain, &staged] {
                let made = op.run(&[&data, &weights[which]]).expect("the call is accepted");
                assert_eq!(values(&made[0]), wanted[which], "{op:?}");
            }
        }
    }
}

/// Results that failed, in an array that is a parameter of another graph.
#[test]
fn a_parameter_that_a_call_failed_to_write_fails_every_call_until_it_is_whole() {
    for engine in threaded_engines() {
        let (x, p) = (array(engine, &[2], &[1.0, 2.0]), array(engine, &[2], &[10.0, 20.0]));
        let reads = apply("elemwise_add", "sum", &[], &[&var("data"), &var("p")]);
        let reads = BoundOp::new(compile(engine, &reads), &[None, Some(&p)]).expect("it binds");
        let writes = compile(engine, &apply("relu", "relu", &[], &[&var("data")]));
        let call = || reads.run(&[&x]).expect("the call is accepted")[0].clone();
        assert_eq!(values(&call()), [11.0, 22.0]);
        let bad = array(engine, &[2], &[0.0, 0.0]);
        spoil(engine, &bad);
        writes.run_into(&[&bad], &[&p]).expect("the call is accepted");
        let spoilt = failure(&p);
        for _ in 0..3 {
            assert_eq!(failure(&call()).1, spoilt.1);
        }
        writes.run_into(&[&x], &[&p]).expect("the call is accepted");
        assert_eq!(values(&call()), [2.0, 4.0]);
    }
}
