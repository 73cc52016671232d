//! Futures of calls and arrays, under tokio and under an executor of thirty lines; deadlines,
//! priorities, cancelling.

use super::{digits, digits_by, image};
use mxrt::internal::{Cost, Engine, Launch, launch};
use mxrt::types::TensorType;
use mxrt::{CallOptions, Context, DType, ErrorKind, Model, NDArray};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

/// An executor: the thread sleeps until its task is woken.
struct Sleeper {
    woken: Mutex<bool>,
    changed: Condvar,
    wakes: AtomicUsize,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        *self.woken.lock().expect("no thread panicked") = true;
        self.changed.notify_one();
    }
}

/// Runs a future to its end. Returns how often it was woken, too.
fn block_on<F: Future>(future: F) -> (F::Output, usize) {
    let sleeper = Arc::new(Sleeper { woken: Mutex::new(false), changed: Condvar::new(), wakes: AtomicUsize::new(0) });
    let waker = Waker::from(sleeper.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            return (output, sleeper.wakes.load(Ordering::SeqCst));
        }
        let woken = sleeper.woken.lock().expect("no thread panicked");
        *sleeper.changed.wait_while(woken, |woken| !*woken).expect("no thread panicked") = false;
    }
}

/// Keeps every core of an engine busy until it is dropped.
struct Busy {
    _cores: Vec<mpsc::Sender<()>>,
}

fn occupy(engine: &'static Engine) -> Busy {
    let hold = |_| {
        let ((release, held), (started, running)) = (mpsc::channel::<()>(), mpsc::channel());
        let held = Mutex::new(held);
        let none = NDArray::new(engine, Context::cpu(0), TensorType::new(DType::U8, [0])).expect("an array");
        let what = Launch { name: "occupy".into(), inputs: &[], outputs: &[&none], cost: Cost::Large };
        launch(engine, what, move |_, _, _| {
            let _ = started.send(());
            let _ = held.lock().map(|held| held.recv());
            Ok(())
        });
        running.recv().expect("the core is busy");
        release
    };
    Busy { _cores: (0..engine.cores()).map(hold).collect() }
}

/// A model whose calls take long enough to be handed to the engine's threads, on an engine of its
/// own.
fn slow() -> (Model, Vec<f32>) {
    let json = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
        {"op": "Convolution", "name": "conv", "attrs": {"kernel": "(3, 3)", "num_filter": "64", "no_bias": "True"},
        "inputs": [[0, 0, 0], [1, 0, 0]]}], "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}"#;
    let engine = Engine::start(mxrt::internal::Config { cores: Some(1), ..Default::default() }).expect("an engine");
    let symbol = mxrt::Symbol::load_json(json).expect("a symbol").symbol;
    let weight = NDArray::from_slice(engine, Context::cpu(0), [64, 32, 3, 3], &[0.01f32; 64 * 32 * 9]);
    let params = vec![("w".to_owned(), weight.expect("an array"))];
    let model = Model::builder().engine(engine).from_symbol(symbol, mxrt::params::Params::Named(params));
    let model = model.expect("the model loads");
    let x: Vec<f32> = (0..32 * 56 * 56).map(|i| (i % 13) as f32 / 13.0).collect();
    model.run([("x", ([1, 32, 56, 56], &x))]).expect("an answer");
    (model, x)
}

const X: [usize; 4] = [1, 32, 56, 56];

#[test]
fn an_executor_of_thirty_lines_runs_calls() {
    let (model, x) = slow();
    let wanted = model.run([("x", (X, &x))]).expect("an answer")[0].to_vec::<f32>().expect("elements");
    let busy = occupy(model.engine());
    let pending = model.run_async([("x", (X, &x))]).expect("the call is accepted");
    assert!(!pending.is_ready());
    let release = std::thread::spawn(move || drop(busy));
    let (made, wakes) = block_on(pending);
    release.join().expect("the thread ends");
    assert_eq!(made.expect("an answer")[0].to_vec::<f32>().expect("elements"), wanted);
    assert!(wakes <= 1, "woken {wakes} times");
    // What is there at once needs no wake, and a future may be waited for instead.
    let small = digits();
    let pending = small.run_async([("data", ([1, 1, 8, 8], &image(1)))]).expect("the call is accepted");
    assert_eq!(pending.wait().expect("an answer").len(), 1);
}

#[test]
fn tokio_runs_many_calls_on_two_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let model = digits();
    let ask = |number: usize| model.run([("data", ([1, 1, 8, 8], &image(number)))]).expect("an answer")[0].to_vec();
    let alone: Vec<Vec<f32>> = (0..100).map(|number| ask(number).expect("elements")).collect();
    let answers = runtime.expect("a runtime").block_on(async {
        let tasks: Vec<_> = (0..100)
            .map(|number| {
                let model = model.clone();
                tokio::spawn(async move {
                    let made = model.run_async([("data", ([1, 1, 8, 8], &image(number)))])?.await?;
                    Ok::<_, mxrt::Error>(made[0].to_vec::<f32>()?)
                })
            })
            .collect();
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.expect("the task ends").expect("an answer"));
        }
        answers
    });
    assert_eq!(answers, alone);
}

#[test]
fn a_timeout_of_tokio_cancels_the_call() {
    let (model, x) = slow();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let busy = occupy(model.engine());
    let late = runtime.block_on(async {
        let call = model.run_async([("x", (X, &x))]).expect("the call is accepted");
        tokio::time::timeout(Duration::from_millis(5), call).await
    });
    assert!(late.is_err());
    drop(busy);
    assert!(model.run([("x", (X, &x))]).is_ok());
}

#[test]
fn a_dropped_call_does_not_run() {
    let json = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "i", "inputs": []},
        {"op": "take", "name": "picked", "attrs": {"mode": "raise"}, "inputs": [[0, 0, 0], [1, 0, 0]]}],
        "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}"#;
    let engine = Engine::start(mxrt::internal::Config { cores: Some(1), ..Default::default() }).expect("an engine");
    let symbol = mxrt::Symbol::load_json(json).expect("a symbol").symbol;
    let none = mxrt::params::Params::default();
    let model = Model::builder().engine(engine).from_symbol(symbol, none).expect("the model loads");
    // The call fails whenever it runs, so that it is seen whether it did. It waits for its input.
    let call = |wanted: bool| {
        let (x, index) = (model.array([2], &[1f32, 2.0]).expect("an array"), [9f32]);
        let (release, held) = mpsc::channel::<()>();
        let held = Mutex::new(held);
        let what = Launch { name: "hold".into(), inputs: &[], outputs: &[&x], cost: Cost::Large };
        launch(engine, what, move |_, _, _| {
            let _ = held.lock().map(|held| held.recv());
            Ok(())
        });
        let index = model.array([1], &index).expect("an array");
        let mut pending = Some(model.run_async([("x", &x), ("i", &index)]).expect("the call is accepted"));
        if !wanted {
            drop(pending.take());
        }
        drop(release);
        let failed = pending.map(|pending| pending.wait().unwrap_err().kind());
        (failed, engine.wait_all().is_err())
    };
    assert_eq!(call(false), (None, false), "it ran although it was dropped");
    assert_eq!(call(true).0, Some(ErrorKind::Index));
}

/// Notes when its task is woken.
struct Noting {
    priority: i32,
    order: Arc<Mutex<Vec<i32>>>,
}

impl Wake for Noting {
    fn wake(self: Arc<Self>) {
        self.order.lock().expect("no thread panicked").push(self.priority);
    }
}

#[test]
fn deadlines_and_priorities_are_options_of_a_call() {
    let (model, x) = slow();
    let busy = occupy(model.engine());
    let within = |seconds| {
        let options = CallOptions::default().within(Duration::from_secs(seconds));
        model.run_async_with([("x", (X, &x))], &options).expect("the call is accepted")
    };
    let (late, early) = (within(0), within(3600));
    let order: Arc<Mutex<Vec<i32>>> = Arc::default();
    let call = |priority| {
        let options = CallOptions::default().priority(priority);
        let mut pending = model.run_async_with([("x", (X, &x))], &options).expect("the call is accepted");
        let waker = Waker::from(Arc::new(Noting { priority, order: order.clone() }));
        assert!(pin!(&mut pending).poll(&mut TaskContext::from_waker(&waker)).is_pending());
        pending
    };
    let calls: Vec<_> = [0, -1, 2, 1].map(call).into_iter().collect();
    drop(busy);
    let error = block_on(late).0.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline, "{error}");
    early.wait().expect("there was time");
    calls.into_iter().for_each(|call| drop(call.wait().expect("an answer")));
    assert_eq!(*order.lock().expect("no thread panicked"), [2, 1, 0, -1]);
    model.engine().wait_all().expect("the failure was seen");
}

#[test]
fn arrays_are_futures_and_have_callbacks() {
    let model = digits_by(Model::builder().threads(1));
    let engine = model.engine();
    let array = NDArray::new(engine, Context::cpu(0), TensorType::new(DType::F32, [2])).expect("an array");
    assert!(array.is_ready());
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let what = Launch { name: "fill".into(), inputs: &[], outputs: &[&array], cost: Cost::Large };
    launch(engine, what, move |_, _, outputs| {
        let _ = held.lock().map(|held| held.recv());
        outputs[0].as_mut_slice::<f32>()?.fill(2.5);
        Ok(())
    });
    assert!(!array.is_ready());
    let (tell, told) = mpsc::channel();
    array.on_ready(move |result| tell.send(result.is_ok()).expect("the test waits"));
    assert!(told.try_recv().is_err());
    let ready = array.ready();
    let release = std::thread::spawn(move || drop(release));
    block_on(ready).0.expect("the array is filled");
    release.join().expect("the thread ends");
    assert_eq!(told.recv(), Ok(true));
    assert_eq!(array.to_vec::<f32>().expect("elements"), [2.5; 2]);
    let what = Launch { name: "fail".into(), inputs: &[], outputs: &[&array], cost: Cost::Small };
    launch(engine, what, |_, _, _| Err(mxrt::internal::OpError::new(ErrorKind::Data, "broken")));
    let error = mxrt::Error::from(block_on(array.ready()).0.unwrap_err());
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Data, "fail: broken [MX-DATA]"));
    engine.wait_all().expect("the failure was seen");
}

#[test]
fn only_the_last_waker_of_a_future_is_woken() {
    let (model, x) = slow();
    let busy = occupy(model.engine());
    let mut pending = model.run_async([("x", (X, &x))]).expect("the call is accepted");
    let sleeper =
        || Arc::new(Sleeper { woken: Mutex::new(false), changed: Condvar::new(), wakes: AtomicUsize::new(0) });
    let (first, last) = (sleeper(), sleeper());
    for waker in [Waker::from(first.clone()), Waker::from(last.clone())] {
        let poll = pin!(&mut pending).poll(&mut TaskContext::from_waker(&waker));
        assert!(poll.is_pending());
    }
    drop(busy);
    block_on(&mut pending).0.expect("an answer");
    assert_eq!(first.wakes.load(Ordering::SeqCst), 0);
}
