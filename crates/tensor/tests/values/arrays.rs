//! Arrays without operators: storage, views, order, copies of parts, parameters behind a gate, and
//! calls. Values are counted by hand.

use mxrt_engine::{Config, Cost, Engine, Failure, FailureKind, OpError};
use mxrt_tensor::index::{Region, copy_region, gather, scatter};
use mxrt_tensor::{
    CallLaunch, CallProgress, Context, DType, Launch, NDArray, ParameterSet, Shape, TensorType, launch, launch_call,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock, mpsc};
use std::time::Duration;

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<&'static Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::start(Config { cores: Some(2), ..Config::default() }).expect("an engine"))
}

fn array(shape: &[usize], values: &[f32]) -> NDArray {
    NDArray::from_slice(engine(), Context::cpu(0), Shape::new(shape), values).expect("an array")
}

fn empty(shape: &[usize]) -> NDArray {
    NDArray::new(engine(), Context::cpu(0), TensorType::new(DType::F32, shape)).expect("an array")
}

fn values(array: &NDArray) -> Vec<f32> {
    array.read().expect("a value").tensor().as_slice::<f32>().expect("floats").to_vec()
}

/// Adds 1 to every element of the input.
fn plus_one(input: &NDArray, output: &NDArray) {
    let (inputs, outputs) = ([input], [output]);
    let work = Launch { name: "plus_one".into(), inputs: &inputs, outputs: &outputs, cost: Cost::Large };
    launch(engine(), work, |_, ins, outs| {
        let from = ins[0].as_slice::<f32>()?;
        let to = outs[0].as_mut_slice::<f32>()?;
        // Backwards: an output that lies where the input does would read what it has written.
        for i in (0..to.len()).rev() {
            to[i] = from[i] + 1.0;
        }
        Ok(())
    });
}

/// Makes pushed work wait until the sender is dropped or sends.
fn hold(array: &NDArray) -> mpsc::Sender<()> {
    let (go_on, wait) = mpsc::channel::<()>();
    let (inputs, outputs) = ([], [array]);
    launch(
        engine(),
        Launch { name: "hold".into(), inputs: &inputs, outputs: &outputs, cost: Cost::Large },
        move |_, _, outs| {
            let _ = wait.recv_timeout(Duration::from_secs(120));
            outs[0].as_mut_slice::<f32>()?.fill(7.0);
            Ok(())
        },
    );
    go_on
}

#[test]
fn what_no_thread_has_written_reads_as_zeros() {
    // The pool gives blocks again, and what they held.
    for round in 0..4 {
        let dirty = array(&[500], &[9.0; 500]);
        drop(dirty);
        let fresh = empty(&[500]);
        assert_eq!(values(&fresh), [0.0; 500], "round {round}");
        let part = fresh.view(100, Shape::new(&[2])).expect("it fits");
        plus_one(&array(&[2], &[1.0, 2.0]), &part);
        assert_eq!(values(&fresh)[98..104], [0.0, 0.0, 2.0, 3.0, 0.0, 0.0]);
        // Also where the first thing that happens is a write of a part.
        drop((fresh, part, array(&[500], &[9.0; 500])));
        let other = empty(&[500]);
        plus_one(&array(&[2], &[1.0, 2.0]), &other.view(100, Shape::new(&[2])).expect("it fits"));
        assert_eq!(values(&other)[98..104], [0.0, 0.0, 2.0, 3.0, 0.0, 0.0], "round {round}");
    }
}

#[test]
fn views_share_storage_and_order() {
    let whole = array(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let row = whole.view(3, Shape::new(&[3])).expect("it fits");
    assert_eq!(values(&row), [4.0, 5.0, 6.0]);
    assert!(row.same_storage(&whole) && row.overlaps(&whole) && !row.covers_storage() && whole.covers_storage());
    let first = whole.view(0, Shape::new(&[3])).expect("it fits");
    assert!(!first.overlaps(&row) && !row.overlaps(&first), "neighbours share nothing");
    let middle = whole.view(2, Shape::new(&[2])).expect("it fits");
    assert!(middle.overlaps(&row) && middle.overlaps(&first) && row.overlaps(&middle));
    // A view of a view counts from its own first element.
    let last = row.view(1, Shape::new(&[2, 1])).expect("it fits");
    assert_eq!((values(&last), last.nbytes()), (vec![5.0, 6.0], 8));
    for (start, shape) in [(4, vec![3]), (0, vec![7]), (6, vec![1]), (usize::MAX, vec![2]), (1, vec![usize::MAX, 2])] {
        assert!(whole.view(start, Shape::new(&shape)).is_none(), "{shape:?} from {start}");
    }
    assert!(whole.view(6, Shape::new(&[0])).is_some(), "nothing fits everywhere");
    // Writing a part keeps the rest, in the order of pushes.
    plus_one(&array(&[3], &[10.0, 20.0, 30.0]), &row);
    plus_one(&whole, &whole);
    assert_eq!(values(&whole), [2.0, 3.0, 4.0, 12.0, 22.0, 32.0]);
}

#[test]
fn an_output_that_lies_over_an_input_is_computed_aside() {
    let whole = array(&[5], &[0.0, 1.0, 2.0, 3.0, 4.0]);
    let (low, high) = (whole.view(0, Shape::new(&[4])).expect("it fits"), whole.view(1, Shape::new(&[4])).expect("it"));
    plus_one(&low, &high);
    assert_eq!(values(&whole), [0.0, 1.0, 2.0, 3.0, 4.0]);
    plus_one(&high, &low);
    assert_eq!(values(&whole), [2.0, 3.0, 4.0, 5.0, 4.0]);
    // Two outputs in one place: the later one stands.
    let (inputs, outputs) = ([&whole], [&low, &high]);
    launch(
        engine(),
        Launch { name: "two".into(), inputs: &inputs, outputs: &outputs, cost: Cost::Small },
        |_, ins, outs| {
            outs[0].as_mut_slice::<f32>()?.fill(ins[0].as_slice::<f32>()?[0]);
            outs[1].as_mut_slice::<f32>()?.fill(8.0);
            Ok(())
        },
    );
    assert_eq!(values(&whole), [2.0, 8.0, 8.0, 8.0, 8.0]);
}

#[test]
fn many_outputs_that_lie_over_others_are_computed_aside() {
    let whole = array(&[101], &(0..101).map(|i| i as f32).collect::<Vec<_>>());
    // Each lies over half of the next one, and the first over the input.
    let views: Vec<NDArray> = (0..50).map(|i| whole.view(2 * i, Shape::new(&[3])).expect("it fits")).collect();
    let (inputs, outputs) = ([&whole], views.iter().collect::<Vec<_>>());
    launch(
        engine(),
        Launch { name: "many".into(), inputs: &inputs, outputs: &outputs, cost: Cost::Small },
        |_, ins, outs| {
            for (i, out) in outs.iter_mut().enumerate() {
                let from = ins[0].as_slice::<f32>()?;
                out.as_mut_slice::<f32>()?.copy_from_slice(&[from[i] * 10.0, from[i + 50] * 10.0, -1.0]);
            }
            Ok(())
        },
    );
    let want = |i: usize| match (i % 2, i) {
        (_, 100) => -1.0,
        (0, _) => 10.0 * (i / 2) as f32,
        (_, _) => 10.0 * (i / 2 + 50) as f32,
    };
    assert_eq!(values(&whole), (0..101).map(want).collect::<Vec<_>>());
}

#[test]
fn a_failure_heals_when_all_is_overwritten_and_stays_when_a_part_is() {
    let (inputs, whole) = ([], empty(&[4]));
    let fail = || {
        let outputs = [&whole];
        launch(
            engine(),
            Launch { name: "bad".into(), inputs: &inputs, outputs: &outputs, cost: Cost::Small },
            |_, _, _| Err(OpError::new(FailureKind::Value, "no")),
        );
    };
    fail();
    let part = whole.view(1, Shape::new(&[2])).expect("it fits");
    plus_one(&array(&[2], &[1.0, 2.0]), &part);
    assert!(whole.wait_to_read().is_err() && part.wait_to_read().is_err(), "the rest has no value");
    let after = empty(&[4]);
    plus_one(&whole, &after);
    assert!(after.wait_to_read().is_err(), "what reads it inherits the failure");
    plus_one(&array(&[4], &[1.0; 4]), &whole);
    assert_eq!(values(&whole), [2.0; 4]);
    assert_eq!(values(&part), [2.0; 2]);
}

#[test]
fn sizes_are_checked_before_anything_is_allocated() {
    let kind = |shape: &[usize]| {
        NDArray::new(engine(), Context::cpu(0), TensorType::new(DType::F64, shape)).map(drop).map_err(|e| e.kind)
    };
    assert_eq!(kind(&[usize::MAX, 2]), Err(FailureKind::Memory));
    assert_eq!(kind(&[1 << 60]), Err(FailureKind::Memory), "bytes that no address reaches");
    assert_eq!(kind(&[1 << 61, 0]), Ok(()));
    let few = NDArray::from_bytes(engine(), Context::cpu(0), TensorType::new(DType::F32, [2]), &[0; 7]);
    assert_eq!(few.map(drop).map_err(|e| e.kind), Err(FailureKind::Value));
}

#[test]
fn a_copy_of_a_region_is_in_order_with_what_was_pushed_before() {
    let from = array(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let to = empty(&[6]);
    let go_on = hold(&to);
    // The columns backwards: 3 6 2 5 1 4.
    let columns = Region { start: 2, axes: [(3, -1), (2, 3)].into_iter().collect() };
    let target = Region { start: 0, axes: [(3, 2), (2, 1)].into_iter().collect() };
    copy_region(&to, target, &from, columns.clone()).expect("it fits");
    go_on.send(()).expect("it waits");
    assert_eq!(values(&to), [3.0, 6.0, 2.0, 5.0, 1.0, 4.0]);
    // One element over all of a row; the other row stays.
    let one = Region { start: 4, axes: [(3, 0)].into_iter().collect() };
    let row = Region { start: 0, axes: [(3, 1)].into_iter().collect() };
    copy_region(&from, row, &from, one).expect("it fits");
    assert_eq!(values(&from), [5.0, 5.0, 5.0, 4.0, 5.0, 6.0]);
    let backwards = Region { start: 5, axes: [(6, -1)].into_iter().collect() };
    let forwards = Region { start: 0, axes: [(6, 1)].into_iter().collect() };
    copy_region(&from, backwards, &from, forwards).expect("it fits");
    assert_eq!(values(&from), [6.0, 5.0, 4.0, 5.0, 5.0, 5.0], "it reads what was there before");
    for (start, axis) in [(1, (3, 3)), (1, (3, -1)), (7, (1, 1)), (0, (2, isize::MIN))] {
        let wrong = Region { start, axes: [axis].into_iter().collect() };
        let into = Region { start: 0, axes: [(axis.0, 0)].into_iter().collect() };
        let error = copy_region(&to, into, &from, wrong).expect_err("it lies outside");
        assert_eq!(error.kind, FailureKind::Index, "{start} {axis:?}");
    }
    let nothing = Region { start: 99, axes: [(0, 1)].into_iter().collect() };
    assert!(copy_region(&to, nothing.clone(), &from, nothing).is_ok(), "no element lies outside");
}

#[test]
fn elements_are_gathered_and_scattered_by_position() {
    let from = array(&[4], &[10.0, 11.0, 12.0, 13.0]);
    let picked = gather(&from, vec![3, 0, 3], Shape::new(&[3, 1])).expect("positions inside");
    assert_eq!(values(&picked), [13.0, 10.0, 13.0]);
    scatter(&from, vec![1, 2, 1], &picked).expect("positions inside");
    assert_eq!(values(&from), [10.0, 13.0, 10.0, 13.0], "of two values for a place the later one stands");
    assert_eq!(gather(&from, vec![4], Shape::new(&[1])).map(drop).map_err(|e| e.kind), Err(FailureKind::Index));
    assert_eq!(gather(&from, vec![1], Shape::new(&[2])).map(drop).map_err(|e| e.kind), Err(FailureKind::Shape));
    let ints = NDArray::from_slice(engine(), Context::cpu(0), [1], &[1i32]).expect("an array");
    assert_eq!(scatter(&from, vec![0], &ints).map_err(|e| e.kind), Err(FailureKind::Type));
}

#[test]
fn one_block_is_made_when_threads_touch_an_array_for_the_first_time_together() {
    for _ in 0..200 {
        let fresh = empty(&[1000]);
        let both = Barrier::new(2);
        let addresses: Vec<usize> = std::thread::scope(|scope| {
            let read = || {
                both.wait();
                fresh.read().expect("zeros").tensor().bytes().as_ptr().addr()
            };
            let threads = [scope.spawn(read), scope.spawn(read)];
            threads.map(|t| t.join().expect("it reads")).to_vec()
        });
        assert_eq!(addresses[0], addresses[1]);
    }
}

#[test]
fn memory_of_others_that_may_not_be_written_is_left_alone() {
    static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);
    struct Owner(Vec<f32>);
    impl Drop for Owner {
        fn drop(&mut self) {
            GIVEN_BACK.fetch_add(1, Ordering::SeqCst);
        }
    }
    for partly in [true, false] {
        let mut owner = Box::new(Owner(vec![1.0, 2.0, 3.0]));
        let start = owner.0.as_mut_ptr().cast();
        let content = owner.0.as_ptr();
        let tensor = TensorType::new(DType::F32, [3]);
        // SAFETY: the numbers stay until the owner is dropped, and this thread only reads them.
        let shared = unsafe { NDArray::from_shared(engine(), Context::cpu(0), tensor, (start, false), owner) };
        let shared = shared.expect("an array");
        assert_eq!(values(&shared), [1.0, 2.0, 3.0]);
        let target = if partly { shared.view(1, Shape::new(&[1])).expect("it fits") } else { shared.clone() };
        plus_one(&array(&target.shape().clone(), &vec![4.0; target.shape().size()]), &target);
        assert_eq!(values(&shared), if partly { [1.0, 5.0, 3.0] } else { [5.0; 3] });
        // SAFETY: the array holds the owner.
        assert_eq!(unsafe { std::slice::from_raw_parts(content, 3) }, [1.0, 2.0, 3.0]);
    }
    engine().wait_all().expect("nothing fails");
    assert_eq!(GIVEN_BACK.load(Ordering::SeqCst), 2);
}

/// A call that adds the parameter to the data, with the keys that it sees.
fn call(data: &NDArray, set: &Arc<ParameterSet>, output: &NDArray, seen: mpsc::Sender<(u64, u64)>) {
    let (inputs, outputs) = ([data], [output]);
    let work = CallLaunch { params: Some(set), ..CallLaunch::new("call".into(), &inputs, &outputs, Cost::Large) };
    launch_call(engine(), work, move |part| {
        if part.inputs.any_failed() {
            let failure = part.inputs.failure(0).or(part.inputs.param_failure(0)).expect("one of them").clone();
            return Ok(CallProgress::Done(vec![(0, failure)]));
        }
        let (data, weight) = (part.inputs.input(0)?, part.inputs.param(0)?);
        for (i, to) in part.outputs[0].as_mut_slice::<f32>()?.iter_mut().enumerate() {
            *to = data.as_slice::<f32>()?[i] + weight.as_slice::<f32>()?[i];
        }
        let _ = seen.send(part.inputs.params_key().expect("there is a set"));
        Ok(CallProgress::Done(Vec::new()))
    });
}

#[test]
fn calls_see_parameters_as_they_are_at_their_place_in_the_order() {
    let (weight, data) = (array(&[2], &[1.0, 2.0]), array(&[2], &[10.0, 20.0]));
    let set = ParameterSet::new(engine(), vec![weight.clone()]);
    let (send, keys) = mpsc::channel();
    let results: Vec<NDArray> = (0..4).map(|_| empty(&[2])).collect();
    let go_on = hold(&data);
    call(&data, &set, &results[0], send.clone());
    // While the first call waits, the weight changes: whole, then in part.
    plus_one(&array(&[2], &[4.0, 4.0]), &weight);
    call(&data, &set, &results[1], send.clone());
    plus_one(&array(&[1], &[8.0]), &weight.view(1, Shape::new(&[1])).expect("it fits"));
    call(&data, &set, &results[2], send.clone());
    call(&data, &set, &results[3], send.clone());
    go_on.send(()).expect("it waits");
    assert_eq!(results.iter().map(values).collect::<Vec<_>>(), [[8.0, 9.0], [12.0, 12.0], [12.0, 16.0], [12.0, 16.0]]);
    drop(send);
    let mut keys: Vec<_> = keys.iter().collect();
    keys.sort_unstable();
    assert!(keys[0] != keys[1] && keys[1] != keys[2], "another content has another key: {keys:?}");
    assert_eq!(keys[2], keys[3], "the same content has the same key");
    // A parameter that fails fails the calls after it, until it is whole again.
    let (inputs, outputs) = ([], [&weight]);
    launch(
        engine(),
        Launch { name: "bad".into(), inputs: &inputs, outputs: &outputs, cost: Cost::Small },
        |_, _, _| Err(OpError::new(FailureKind::Value, "no weight")),
    );
    let (send, _keys) = mpsc::channel();
    call(&data, &set, &results[0], send.clone());
    assert!(results[0].wait_to_read().expect_err("it fails").to_string().contains("no weight"));
    plus_one(&array(&[2], &[0.0, 0.0]), &weight);
    call(&data, &set, &results[0], send);
    assert_eq!(values(&results[0]), [8.0, 8.0]);
}

#[test]
fn a_call_in_parts_fails_the_outputs_that_it_names() {
    let data = array(&[1], &[3.0]);
    let outputs: Vec<NDArray> = (0..3).map(|_| empty(&[1])).collect();
    let (inputs, all) = ([&data], outputs.iter().collect::<Vec<_>>());
    let work = CallLaunch { in_parts: true, ..CallLaunch::new("parts".into(), &inputs, &all, Cost::Large) };
    let mut part_number = 0;
    launch_call(engine(), work, move |part| {
        let value = part.inputs.input(0)?.as_slice::<f32>()?[0];
        part.outputs[part_number].as_mut_slice::<f32>()?[0] = value * part_number as f32;
        part_number += 1;
        if part_number < 3 {
            return Ok(CallProgress::Again);
        }
        let error = OpError::new(FailureKind::Value, "only this one");
        Ok(CallProgress::Done(vec![(1, Failure::new((*error).clone()))]))
    });
    assert_eq!((values(&outputs[0]), values(&outputs[2])), (vec![0.0], vec![6.0]));
    assert!(outputs[1].wait_to_read().expect_err("it fails").to_string().contains("only this one"));
}

#[test]
fn work_for_an_array_that_nobody_holds_is_cancelled_and_other_work_is_not() {
    let ran = Arc::new(AtomicUsize::new(0));
    let blocker = empty(&[1]);
    let go_on = hold(&blocker);
    let count = |result: &NDArray| {
        let (ran, inputs, outputs) = (ran.clone(), [&blocker], [result]);
        launch(
            engine(),
            Launch { name: "count".into(), inputs: &inputs, outputs: &outputs, cost: Cost::Large },
            move |_, _, outs| {
                ran.fetch_add(1, Ordering::SeqCst);
                outs[0].as_mut_slice::<f32>()?.fill(1.0);
                Ok(())
            },
        );
    };
    let (lost, held, plain) = (empty(&[1]).cancel_on_drop(), empty(&[1]).cancel_on_drop(), empty(&[1]));
    for result in [&lost, &held, &plain] {
        count(result);
    }
    let (lost_interest, held_interest) = (lost.interest().expect("it may"), held.interest().expect("it may"));
    let view = held.view(0, Shape::new(&[1])).expect("it fits");
    assert!(plain.interest().is_none());
    drop((lost, held, plain));
    assert!(lost_interest.is_lost() && !held_interest.is_lost(), "a view keeps the result wanted");
    go_on.send(()).expect("it waits");
    assert_eq!(values(&view), [1.0]);
    let _ = engine().wait_all();
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}

#[test]
fn filling_keeps_the_order_of_pushes_and_copies_at_once() {
    let bytes = |values: [f32; 2]| values.map(f32::to_ne_bytes).concat();
    let (small, reader) = (array(&[2], &[1.0, 2.0]), empty(&[2]));
    small.fill_with(&bytes([3.0, 4.0])).expect("idle: filled at once");
    assert_eq!(small.read_briefly(|tensor| tensor.bytes().to_vec()), Some(bytes([3.0, 4.0])));
    // Behind what was pushed before, in front of what comes after.
    let go_on = hold(&small);
    small.fill_with(&bytes([5.0, 6.0])).expect("pushed");
    plus_one(&small, &reader);
    assert_eq!(small.read_briefly(|_| ()), None);
    drop(go_on);
    let mut out = vec![0; 8];
    reader.copy_out(&mut out).expect("a value");
    assert_eq!(out, bytes([6.0, 7.0]));
    // A part of a storage, and one that a gate stands in front of.
    let part = small.view(1, Shape::new(&[1])).expect("a view");
    part.fill_with(&9.0f32.to_ne_bytes()).expect("filled");
    assert_eq!((values(&small), values(&part)), (vec![5.0, 9.0], vec![9.0]));
    let set = ParameterSet::new(engine(), vec![small.clone()]);
    small.fill_with(&bytes([7.0, 8.0])).expect("filled through the gate");
    assert_eq!(values(&set.arrays()[0]), [7.0, 8.0]);
    drop(set);
    // A failed value is overwritten; a wrong number of bytes changes nothing.
    let outputs = [&small];
    let work = Launch { name: "bad".into(), inputs: &[], outputs: &outputs, cost: Cost::Small };
    launch(engine(), work, |_, _, _| Err(OpError::new(FailureKind::Operator, "no value")));
    assert!(small.copy_out(&mut out).is_err());
    let wrong = small.fill_with(&[0; 4]).expect_err("half of the bytes");
    assert_eq!((wrong.kind, wrong.message.contains("4 bytes")), (FailureKind::Value, true), "{wrong}");
    small.fill_with(&bytes([1.0, 1.0])).expect("filled");
    assert_eq!(values(&small), [1.0, 1.0]);
    // Larger than what the calling thread copies itself.
    let large = empty(&[100_000]);
    large.fill_with(&1.5f32.to_ne_bytes().repeat(100_000)).expect("filled");
    assert_eq!(large.read_briefly(|_| ()), None);
    let mut out = vec![0; 400_000];
    large.copy_out(&mut out).expect("a value");
    assert_eq!(out[399_996..], 1.5f32.to_ne_bytes());
}
