//! Operators written in Python. Threads of the engine leave a number for each call; threads of
//! Python take the numbers and run the calls (`mxrt/_custom.py`).

use crate::exit::PythonCall;
use crate::ndarray::{Class, NDArrayBase, wrap};
use crate::operator::{attr_pairs, begin_waiting, find, out_arrays, results};
use crate::runtime;
use mxrt_engine::{FailureKind, ForkSafeMutex, ForkSafeOnce, OpError, set_inside_call};
use mxrt_ops::{CustomCall, CustomOperator, CustomOperators, CustomTypes, Question, register_custom_operators};
use mxrt_tensor::{DType, NDArray, PartialShape, UnknownDType};
use pyo3::exceptions::PyBaseException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Time after which all idle threads except one end.
const REST: Duration = Duration::from_secs(10);

/// Work for a thread of Python.
#[derive(Clone)]
enum PythonWork {
    Call(Arc<CustomCall>, Arc<Adapter>),
    Question(Question),
}

/// Work that has not ended.
struct OpenWork {
    work: PythonWork,
    /// whether a thread has taken the work; a forked child may lack that thread
    taken: bool,
}

static NEXT: AtomicU64 = AtomicU64::new(1);
static OPEN: ForkSafeMutex<Option<HashMap<u64, OpenWork>>> = ForkSafeMutex::new(None);

/// The place where threads of Python wait for calls.
#[derive(Default)]
struct Hall {
    process: u32,
    state: Mutex<HallState>,
    arrived: Condvar,
}

#[derive(Default)]
struct HallState {
    numbers: VecDeque<u64>,
    /// threads that wait here, and threads that are being started
    idle: usize,
    starting: usize,
}

static HALL: AtomicPtr<Hall> = AtomicPtr::new(std::ptr::null_mut());

/// The hall of this process. A forked child gets its own, because its copy of the lock may be held
/// by a thread that it lacks.
fn hall() -> &'static Hall {
    let process = std::process::id();
    let known = HALL.load(Ordering::Acquire);
    // SAFETY: halls are never freed.
    if let Some(hall) = unsafe { known.as_ref() }
        && hall.process == process
    {
        return hall;
    }
    let fresh: &'static Hall = Box::leak(Box::new(Hall { process, ..Hall::default() }));
    match HALL.compare_exchange(known, std::ptr::from_ref(fresh).cast_mut(), Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => fresh,
        // SAFETY: as above; another thread of this process was first.
        Err(theirs) => unsafe { &*theirs },
    }
}

impl Hall {
    fn change<R>(&self, change: impl FnOnce(&mut HallState) -> R) -> R {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn announce(&self, number: u64) {
        self.change(|state| state.numbers.push_back(number));
        self.arrived.notify_one();
    }
}

/// An instance of `mxrt._custom.Adapter`.
struct Adapter(Py<PyAny>);

/// The Rust side of an operator written in Python.
struct PythonOperator {
    adapter: Arc<Adapter>,
    arguments: Vec<String>,
    states: Vec<String>,
    outputs: Vec<String>,
}

struct PythonOperators;

/// Registers the operators of Python with graphs.
pub(crate) fn register() {
    static ONCE: ForkSafeOnce<()> = ForkSafeOnce::new();
    ONCE.get_or_init(|| register_custom_operators(Arc::new(PythonOperators)));
}

/// Converts an exception of the program to an error of an operator.
fn program_error(py: Python<'_>, error: PyErr) -> OpError {
    let value = error.value(py);
    let class = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    let text = value.str().map_or_else(|_| "?".to_owned(), |text| text.to_string());
    let message = if text.is_empty() { class } else { format!("{class}: {text}") };
    OpError::new(kind_of(py, value.as_any()), message).cause(Arc::new(error.into_value(py)))
}

/// The kind of an error of mxrt that says what is wrong with arguments or data. Other exceptions of
/// the program are failures of the operator, also a lost device or a limit of time in a call of its
/// own.
fn kind_of(py: Python<'_>, error: &Bound<'_, PyAny>) -> FailureKind {
    use FailureKind::{Data, FileNotFound, Index, NotImplemented, Operator, Shape, Type, Value};
    let class = PyModule::import(py, "mxrt.base").and_then(|base| base.getattr("MXNetError"));
    if !class.and_then(|class| error.is_instance(&class)).unwrap_or(false) {
        return Operator;
    }
    let Ok(name) = error.getattr("kind").and_then(|kind| kind.extract::<String>()) else { return Operator };
    let known = [Value, Type, Shape, Index, NotImplemented, Data, FileNotFound];
    known.into_iter().find(|kind| kind.name() == name).unwrap_or(Operator)
}

/// The exception that is the cause of an error, if it came from Python.
pub(crate) fn cause<'py>(py: Python<'py>, details: &mxrt_engine::Details) -> Option<Bound<'py, PyBaseException>> {
    let cause = details.cause.as_ref()?.0.downcast_ref::<Py<PyBaseException>>()?;
    Some(cause.bind(py).clone())
}

/// Runs Python code that may raise.
fn call<R>(run: impl FnOnce(Python<'_>) -> PyResult<R>) -> Result<R, OpError> {
    Python::attach(|py| {
        let _call = PythonCall::enter(py);
        run(py).map_err(|error| program_error(py, error))
    })
}

impl CustomOperators for PythonOperators {
    fn make(&self, op_type: &str, attrs: &[(&str, &str)]) -> Result<Option<Arc<dyn CustomOperator>>, OpError> {
        call(|py| {
            let kwargs = PyDict::new(py);
            attrs.iter().try_for_each(|(key, value)| kwargs.set_item(key, value))?;
            let made = py.import("mxrt._custom")?.getattr("make")?.call1((op_type, kwargs))?;
            if made.is_none() {
                return Ok(None);
            }
            let names = |attribute: &str| made.getattr(attribute)?.extract();
            let (arguments, states, outputs) = (names("arguments")?, names("states")?, names("outputs")?);
            let adapter = Arc::new(Adapter(made.unbind()));
            let operator: Arc<dyn CustomOperator> = Arc::new(PythonOperator { adapter, arguments, states, outputs });
            Ok(Some(operator))
        })
    }
}

type ThreeLists<T> = (Vec<T>, Vec<T>, Vec<T>);

impl CustomOperator for PythonOperator {
    fn arguments(&self) -> Vec<String> {
        self.arguments.clone()
    }

    fn states(&self) -> Vec<String> {
        self.states.clone()
    }

    fn outputs(&self) -> Vec<String> {
        self.outputs.clone()
    }

    fn infer_shape(&self, arguments: &[PartialShape]) -> Result<CustomTypes<PartialShape>, OpError> {
        let whole = arguments.iter().all(PartialShape::is_complete);
        let known: Vec<Vec<usize>> =
            arguments.iter().map(|s| s.dims().unwrap_or(&[]).iter().map(|d| d.unwrap_or(0)).collect()).collect();
        let (arguments, outputs, states): ThreeLists<Vec<usize>> =
            call(|py| self.adapter.0.bind(py).call_method1("infer_shape", (known.clone(),))?.extract())?;
        // Where the arguments are known and one is empty, a 0 stands for itself.
        let empty = whole && known.iter().flatten().any(|extent| *extent == 0);
        let shapes = |lists: Vec<Vec<usize>>| {
            let known = |dims: &Vec<usize>| match dims.is_empty() {
                true => PartialShape::UNKNOWN,
                false if empty => PartialShape::from_dims(dims.iter().map(|extent| Some(*extent))),
                false => PartialShape::from_zero_unknown(dims),
            };
            lists.iter().map(known).collect()
        };
        Ok(CustomTypes { arguments: shapes(arguments), states: shapes(states), outputs: shapes(outputs) })
    }

    fn infer_dtype(&self, arguments: &[Option<DType>]) -> Result<CustomTypes<Option<DType>>, OpError> {
        let known: Vec<Option<&str>> = arguments.iter().map(|dtype| dtype.map(DType::name)).collect();
        let (arguments, outputs, states): ThreeLists<Option<String>> =
            call(|py| self.adapter.0.bind(py).call_method1("infer_type", (known,))?.extract())?;
        let dtypes = |names: Vec<Option<String>>| -> Result<Vec<Option<DType>>, OpError> {
            let unknown = |e: UnknownDType| OpError::new(FailureKind::Type, format!("infer_type: {e}"));
            let parse = |name: Option<String>| name.map(|name| name.parse().map_err(unknown)).transpose();
            names.into_iter().map(parse).collect()
        };
        Ok(CustomTypes { arguments: dtypes(arguments)?, states: dtypes(states)?, outputs: dtypes(outputs)? })
    }

    fn begin(&self, call: CustomCall) {
        announce(PythonWork::Call(Arc::new(call), self.adapter.clone()));
    }

    fn ask(&self, question: Question) {
        announce(PythonWork::Question(question));
    }
}

fn announce(work: PythonWork) {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    OPEN.lock().get_or_insert_default().insert(number, OpenWork { work, taken: false });
    hall().announce(number);
}

/// Counts a thread that is about to be started.
#[pyfunction]
pub(crate) fn custom_thread_starts() {
    hall().change(|state| state.starting += 1);
}

/// Takes back the count of a thread that could not be started.
#[pyfunction]
pub(crate) fn custom_thread_refused() {
    hall().change(|state| state.starting = state.starting.saturating_sub(1));
}

/// Waits for a call. Returns its number, and whether the caller must start another thread, which is
/// already counted. `None` means that the thread is not needed any more. `first` says that the
/// thread has just been started. Where Python has no memory for the answer this is a MemoryError,
/// and as if the thread had not asked.
#[pyfunction]
pub(crate) fn next_custom_call(py: Python<'_>, first: bool) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some((number, alone)) = py.detach(|| next_number(first)) else { return Ok(None) };
    // SAFETY: the calls return a new object or null with an error, and borrow what they are given.
    let answer = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromUnsignedLongLong(number)).and_then(|number| {
            let alone = if alone { ffi::Py_True() } else { ffi::Py_False() };
            Bound::from_owned_ptr_or_err(py, ffi::PyTuple_Pack(2, number.as_ptr(), alone))
        })
    };
    answer.map(Some).inspect_err(|_| {
        hall().change(|state| {
            state.numbers.push_front(number);
            state.starting += usize::from(first);
            state.starting = state.starting.saturating_sub(usize::from(alone));
        });
    })
}

fn next_number(first: bool) -> Option<(u64, bool)> {
    let hall = hall();
    let mut state = hall.state.lock().unwrap_or_else(PoisonError::into_inner);
    if first {
        state.starting = state.starting.saturating_sub(1);
    }
    state.idle += 1;
    loop {
        if let Some(number) = state.numbers.pop_front() {
            state.idle -= 1;
            let alone = state.idle + state.starting == 0;
            state.starting += usize::from(alone);
            return Some((number, alone));
        }
        let waited = hall.arrived.wait_timeout(state, REST).unwrap_or_else(PoisonError::into_inner);
        state = waited.0;
        if waited.1.timed_out() && state.numbers.is_empty() && state.idle > 1 {
            state.idle -= 1;
            return None;
        }
    }
}

/// Takes a call: its adapter, inputs, outputs and states. `None` if the call has ended. Also
/// answers questions, and then returns `None`.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "it is a tuple of Python")]
pub(crate) fn take_custom_call<'py>(
    py: Python<'py>,
    number: u64,
) -> PyResult<Option<(Py<PyAny>, Bound<'py, PyList>, Bound<'py, PyList>, Bound<'py, PyList>)>> {
    let taken = OPEN.lock().as_mut().and_then(|open| {
        let found = open.get_mut(&number)?;
        found.taken = true;
        Some(found.work.clone())
    });
    let (call, operator) = match taken {
        None => return Ok(None),
        Some(PythonWork::Question(question)) => {
            py.detach(|| question());
            return Ok(None);
        }
        Some(PythonWork::Call(call, operator)) => (call, operator),
    };
    let list = |arrays: &[NDArray]| {
        let made = arrays.iter().map(|array| wrap(py, array.clone())).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, made)
    };
    let arrays = call.arrays();
    set_inside_call(true);
    Ok(Some((operator.0.clone_ref(py), list(&arrays.inputs)?, list(&arrays.outputs)?, list(&arrays.states)?)))
}

/// Ends a call: with an exception, or with the contents of its outputs and states when they are
/// written.
#[pyfunction]
#[pyo3(signature = (number, error))]
pub(crate) fn finish_custom_call(py: Python<'_>, number: u64, error: Option<Bound<'_, PyBaseException>>) {
    set_inside_call(false);
    let result = match error {
        None => Ok(()),
        Some(error) => Err(program_error(py, PyErr::from_value(error.into_any()))),
    };
    py.detach(|| {
        let call = OPEN.lock().as_ref().and_then(|open| match &open.get(&number)?.work {
            PythonWork::Call(call, _) => Some(call.clone()),
            PythonWork::Question(_) => None,
        });
        if let Some(call) = call {
            call.finish(result);
        }
        // Not before: a child that is forked meanwhile looks here for what its threads cannot end.
        let gone = OPEN.lock().as_mut().and_then(|open| open.remove(&number));
        drop(gone);
    });
}

/// Cleans up in a forked child. Calls that threads of the parent run fail here, except those with
/// the numbers in `own`; the others wait for a thread. Questions are asked again.
#[pyfunction]
pub(crate) fn custom_calls_after_fork(py: Python<'_>, own: Vec<u64>) {
    py.detach(|| {
        let (mut lost, mut waiting) = (Vec::new(), Vec::new());
        if let Some(open) = OPEN.lock().as_ref() {
            for (number, entry) in open.iter().filter(|(number, _)| !own.contains(number)) {
                match &entry.work {
                    PythonWork::Call(call, _) if entry.taken => lost.push(call.clone()),
                    PythonWork::Call(..) | PythonWork::Question(_) => waiting.push(*number),
                }
            }
        }
        for call in lost {
            let message = "the process was forked while the operator ran; its thread exists in the parent only. Call \
                           the model again";
            call.finish(Err(OpError::new(FailureKind::NotCompleted, message)));
        }
        waiting.sort_unstable();
        waiting.into_iter().for_each(|number| hall().announce(number));
    });
}

/// Calls a callback operator on arrays, each with the name of its input or None.
#[pyfunction]
#[pyo3(signature = (arrays, attrs, out = None))]
pub(crate) fn invoke_custom<'py>(
    py: Python<'py>,
    arrays: Vec<(Option<String>, Bound<'py, NDArrayBase>)>,
    attrs: &Bound<'py, PyDict>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let runtime = runtime::runtime()?;
    let attrs = attr_pairs(Some(attrs))?.into_iter().collect();
    let arrays = arrays.into_iter().map(|(name, array)| Ok((name, array.get().array(py)?.clone())));
    let arrays = arrays.collect::<PyResult<_>>()?;
    let outputs = out_arrays(out)?;
    let outputs: Option<SmallVec<[&NDArray; 4]>> = outputs.as_ref().map(|list| list.iter().collect());
    let _site = runtime::push_site(py)?;
    let made = begin_waiting(py, |interrupter| {
        let def = find("Custom")?;
        mxrt_graph::invoke_custom(runtime.engine, def, attrs, arrays, outputs.as_deref(), runtime.plans, interrupter)
    })?;
    results(py, made, out, Class::Nd)
}
