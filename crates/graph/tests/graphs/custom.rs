//! Callback operators: functions in threads that the engine does not know.

use crate::common::Calls as _;
use crate::common::{apply, attrs, op, var};
use mxrt_engine::{Config, Engine, EngineKind, FailureKind, OpError, WaitError};
use mxrt_graph::{CachedOp, CachedOpFlags, Symbol};
use mxrt_ops::{CustomCall, CustomOperator, CustomOperators, CustomTypes, register_custom_operators};
use mxrt_tensor::{Context, DType, NDArray, PartialShape, TensorType};
use std::sync::{Arc, Once};

/// Behaviour of an operator when it is called, in a thread of its own.
#[derive(Clone, Copy)]
enum Does {
    /// output = input + state, state += 1; fails where the first number is negative
    Counts,
    /// fails where the first number is negative
    Fails,
    /// ends without an answer
    Forgets,
}

struct Function(Does);

impl CustomOperator for Function {
    fn arguments(&self) -> Vec<String> {
        vec!["data".into()]
    }

    fn states(&self) -> Vec<String> {
        if matches!(self.0, Does::Counts) { vec!["count".into()] } else { Vec::new() }
    }

    fn outputs(&self) -> Vec<String> {
        vec!["output".into()]
    }

    fn infer_shape(&self, arguments: &[PartialShape]) -> Result<CustomTypes<PartialShape>, OpError> {
        let states = vec![PartialShape::from_dims([Some(1)]); self.states().len()];
        Ok(CustomTypes { arguments: arguments.into(), states, outputs: arguments.into() })
    }

    fn infer_dtype(&self, arguments: &[Option<DType>]) -> Result<CustomTypes<Option<DType>>, OpError> {
        let states = vec![Some(DType::F32); self.states().len()];
        Ok(CustomTypes { arguments: arguments.into(), states, outputs: arguments.into() })
    }

    fn begin(&self, call: CustomCall) {
        let does = self.0;
        std::thread::spawn(move || match does {
            Does::Counts => {
                let arrays = call.arrays();
                let (input, count) = (values(&arrays.inputs[0]), values(&arrays.states[0])[0]);
                write(&arrays.outputs[0], input.iter().map(|x| x + count).collect());
                write(&arrays.states[0], vec![count + 1.0]);
                call.finish(if input[0] < 0.0 { Err(negative()) } else { Ok(()) });
            }
            Does::Fails => {
                let input = values(&call.arrays().inputs[0]);
                write(&call.arrays().outputs[0], input.clone());
                call.finish(if input[0] < 0.0 { Err(negative().cause(Arc::new(input[0]))) } else { Ok(()) });
            }
            Does::Forgets => drop(call),
        });
    }
}

fn negative() -> OpError {
    OpError::new(FailureKind::Value, "it is negative")
}

/// Finds the operators by name.
struct Functions;

impl CustomOperators for Functions {
    fn make(&self, op_type: &str, attrs: &[(&str, &str)]) -> Result<Option<Arc<dyn CustomOperator>>, OpError> {
        assert!(attrs.iter().all(|(key, _)| *key == "note"));
        let does = match op_type {
            "counts" => Does::Counts,
            "fails" => Does::Fails,
            "forgets" => Does::Forgets,
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(Function(does))))
    }
}

fn values(array: &NDArray) -> Vec<f32> {
    let bytes = array.to_bytes().expect("the array has a value");
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn write(array: &NDArray, values: Vec<f32>) {
    let launch =
        mxrt_tensor::Launch { name: "write".into(), inputs: &[], outputs: &[array], cost: mxrt_engine::Cost::Large };
    mxrt_tensor::launch(array.engine(), launch, move |_, _, out| {
        out[0].as_mut_slice::<f32>()?.copy_from_slice(&values);
        Ok(())
    });
}

fn array(engine: &'static Engine, values: &[f32]) -> NDArray {
    NDArray::from_slice(engine, Context::cpu(0), [values.len()], values).expect("the array is made")
}

fn engines() -> impl Iterator<Item = &'static Engine> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register_custom_operators(Arc::new(Functions)));
    EngineKind::ALL.into_iter().flat_map(|kind| {
        [1, 2].map(|cores| {
            Engine::start(Config { kind, cores: Some(cores), ..Config::default() }).expect("the engine starts")
        })
    })
}

/// Engines whose calls return before their failures are known.
fn threaded_engines() -> impl Iterator<Item = &'static Engine> {
    engines().filter(|engine| !engine.is_naive())
}

fn custom(op_type: &str, input: &Symbol) -> Symbol {
    apply("Custom", "mine", &[("op_type", op_type), ("note", "kept")], &[input])
}

fn compile(engine: &'static Engine, symbol: &Symbol) -> CachedOp {
    CachedOp::new(engine, symbol, &CachedOpFlags::default()).expect("the symbol compiles")
}

#[test]
fn states_pass_from_call_to_call_in_the_order_of_the_calls() {
    for engine in engines() {
        let doubled = apply("_mul_scalar", "doubled", &[("scalar", "2")], &[&var("x")]);
        let net = apply("_plus_scalar", "more", &[("scalar", "0.5")], &[&custom("counts", &doubled)]);
        assert_eq!((net.list_arguments(), net.list_auxiliary_states()), (vec!["x".into()], vec!["mine_count".into()]));
        let op = compile(engine, &net);
        assert_eq!(op.num_outputs(), 1);
        let (x, count) = (array(engine, &[1.0, 2.0]), array(engine, &[0.0]));
        let called: Vec<NDArray> = (0..20).flat_map(|_| op.run(&[&x, &count]).expect("it is called")).collect();
        for (i, out) in called.iter().enumerate() {
            assert_eq!(values(out), [2.5 + i as f32, 4.5 + i as f32]);
        }
        assert_eq!(values(&count), [20.0]);
        let given = array(engine, &[0.0, 0.0]);
        op.run_into(&[&x, &count], &[&given]).expect("it is called");
        assert_eq!((values(&given), values(&count)), (vec![22.5, 24.5], vec![21.0]));
        engine.wait_all().expect("nothing has failed");
    }
}

#[test]
fn a_failed_request_leaves_states_as_they_are() {
    for engine in threaded_engines() {
        let op = compile(engine, &custom("counts", &var("x")));
        let count = array(engine, &[5.0]);
        for (x, wanted) in [(1.0, Some(6.0)), (-1.0, None), (2.0, Some(8.0))] {
            let out = op.run(&[&array(engine, &[x]), &count]).expect("it is called");
            match (out[0].wait_to_read(), wanted) {
                (Ok(()), Some(wanted)) => assert_eq!(values(&out[0]), [wanted]),
                (Err(WaitError::Failed(failure)), None) => assert_eq!(failure.message(), "it is negative"),
                (result, _) => panic!("of {x}: {result:?}"),
            }
        }
        assert_eq!(values(&count), [7.0], "the failed request is not counted");
    }
}

#[test]
fn a_failure_spares_the_steps_that_do_not_need_the_operator() {
    for engine in threaded_engines() {
        let x = var("x");
        let other = apply("_mul_scalar", "doubled", &[("scalar", "2")], &[&x]);
        let behind = apply("negative", "behind", &[], &[&custom("fails", &x)]);
        let op = compile(engine, &Symbol::group(&[behind, other]));
        for value in [1.0, -1.0, 2.0, -2.0] {
            let out = op.run(&[&array(engine, &[value])]).expect("it is called");
            assert_eq!(values(&out[1]), [value * 2.0]);
            match out[0].wait_to_read() {
                Ok(()) => assert_eq!(values(&out[0]), [-value]),
                Err(WaitError::Failed(failure)) => {
                    assert!(value < 0.0);
                    assert_eq!((failure.op(), failure.node()), ("Custom", Some("mine")));
                    assert_eq!(failure.message(), "it is negative");
                    assert_eq!(failure.attrs().len(), 2);
                    let cause = failure.details().cause.as_ref().and_then(|cause| cause.0.downcast_ref::<f32>());
                    assert_eq!(cause, Some(&value));
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_call_that_is_given_up_fails() {
    for engine in threaded_engines() {
        let op = compile(engine, &custom("forgets", &var("x")));
        let out = op.run(&[&array(engine, &[1.0])]).expect("it is called");
        match out[0].wait_to_read() {
            Err(WaitError::Failed(failure)) => assert_eq!(failure.kind(), FailureKind::NotCompleted),
            other => panic!("a failure was expected: {other:?}"),
        }
    }
}

#[test]
fn threads_call_one_model_beside_each_other() {
    for engine in engines() {
        let op = compile(engine, &custom("fails", &apply("negative", "n", &[], &[&var("x")])));
        std::thread::scope(|scope| {
            for thread in 0..16 {
                let op = &op;
                scope.spawn(move || {
                    for i in 0..20 {
                        let value = -((thread * 20 + i + 1) as f32);
                        let out = op.run(&[&array(engine, &[value])]).expect("it is called");
                        assert_eq!(values(&out[0]), [-value]);
                    }
                });
            }
        });
    }
}

/// A node that runs graphs.
fn node(op_name: &str, name: &str, pairs: &[(&str, &str)], inputs: &[&Symbol], graphs: &[Symbol]) -> Symbol {
    let inputs = inputs.iter().map(|s| (None, (*s).clone())).collect();
    let made = Symbol::create_with_subgraphs(op(op_name), name.to_owned(), attrs(pairs), inputs, graphs.to_vec());
    made.unwrap_or_else(|e| panic!("{}", e.message))
}

/// The rows that a mask picks.
fn masked(rows: &Symbol, mask: &Symbol) -> Symbol {
    apply("_contrib_boolean_mask", "masked", &[], &[rows, mask])
}

#[test]
fn states_change_from_iteration_to_iteration_and_from_call_to_call() {
    for engine in engines() {
        let places = [("in_data_locs", "[0]"), ("in_state_locs", "[]"), ("remain_locs", "[1]")];
        let counts = [("num_outputs", "1"), ("num_out_data", "1")];
        let pairs = [&places[..], &counts[..]].concat();
        let body = custom("counts", &var("row"));
        assert_eq!(body.list_inputs(), ["row", "mine_count"]);
        let net = node("_foreach", "each", &pairs, &[&var("x"), &var("mine_count")], &[body]);
        let op = compile(engine, &net);
        assert_eq!(op.num_outputs(), 1);
        let (x, count) = (array(engine, &[10.0, 20.0, 30.0]), array(engine, &[0.0]));
        for call in 0..3 {
            let out = op.run(&[&x, &count]).expect("it is called");
            let first = 3.0 * call as f32;
            assert_eq!(values(&out[0]), [10.0 + first, 21.0 + first, 32.0 + first]);
        }
        assert_eq!(values(&count), [9.0]);
        let nothing = NDArray::from_slice(engine, Context::cpu(0), [0], &[0.0f32; 0]).expect("the array is made");
        assert_eq!(values(&op.run(&[&nothing, &count]).expect("it is called")[0]), [0.0f32; 0]);
        assert_eq!(values(&count), [9.0], "without iterations the state stays");
    }
}

#[test]
fn states_change_beside_a_mask() {
    for engine in engines() {
        let (x, mask) = (var("x"), var("mask"));
        let net = Symbol::group(&[masked(&custom("counts", &x), &mask), apply("negative", "n", &[], &[&x])]);
        let op = compile(engine, &net);
        let order = net.list_inputs();
        let count = array(engine, &[5.0]);
        for call in 0..3 {
            let arrays = [
                ("x", array(engine, &[1.0, 2.0, 3.0])),
                ("mask", array(engine, &[1.0, 0.0, 1.0])),
                ("mine_count", count.clone()),
            ];
            let of = |name: &String| &arrays.iter().find(|(known, _)| known == name).expect("it has an array").1;
            let out = op.run(&order.iter().map(of).collect::<Vec<_>>()).expect("it is called");
            let first = 5.0 + call as f32;
            assert_eq!(values(&out[0]), [1.0 + first, 3.0 + first]);
            assert_eq!(values(&out[1]), [-1.0, -2.0, -3.0]);
        }
        assert_eq!(values(&count), [8.0]);
    }
}

#[test]
fn a_batch_beside_an_operator_is_divided_as_any_other() {
    let engine = engines().find(|engine| !engine.is_naive()).expect("there is one");
    let pairs = [("num_hidden", "64"), ("no_bias", "True")];
    let dense = apply("FullyConnected", "fc", &pairs, &[&custom("fails", &var("x"))]);
    let flags = CachedOpFlags::parse([("data_indices", "[0]"), ("param_indices", "[1]")]).expect("they parse");
    let op = CachedOp::new(engine, &dense, &flags).expect("the symbol compiles");
    let (rows, width) = (4096, 512);
    let types = [TensorType::new(DType::F32, &[rows, width][..]), TensorType::new(DType::F32, &[64, width][..])];
    let report = op.plan(&types).expect("there is a plan");
    assert!(report.to_string().contains("in a thread of the program"), "{report}");
    let filled = |n: usize, shape: [usize; 2], value: f32| {
        NDArray::from_slice(engine, Context::cpu(0), shape, &vec![value; n]).expect("the array is made")
    };
    let (x, w) = (filled(rows * width, [rows, width], 1.0), filled(64 * width, [64, width], 0.5));
    let out = op.run(&[&x, &w]).expect("it is called");
    assert!(values(&out[0]).iter().all(|x| *x == 256.0));
}
