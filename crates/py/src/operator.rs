//! Operators: their descriptions, and calls of one.

use crate::ndarray::{Class, NDArrayBase, wrap_result};
use crate::runtime;
use crate::{convert, errors};
use mxrt::internal::Process;
use mxrt_engine::{FailureKind, OpError, WaitError};
use mxrt_graph::{Interrupter, Started, symbol};
use mxrt_ops::{CallAttrs, Inputs, Invocation, OpDef, registry};
use mxrt_tensor::{Context, NDArray};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Description of an operator.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct Operator {
    pub(crate) def: &'static OpDef,
}

#[pymethods]
impl Operator {
    /// Canonical name, as files spell it.
    #[getter]
    fn name(&self) -> &'static str {
        self.def.name
    }

    /// Other names.
    #[getter]
    fn aliases(&self) -> Vec<&'static str> {
        self.def.aliases.to_vec()
    }

    /// Documentation.
    #[getter]
    fn doc(&self) -> &'static str {
        self.def.doc
    }

    /// Names of all inputs that the operator can take. Empty for one that takes any number.
    #[getter]
    fn inputs(&self) -> Vec<Cow<'static, str>> {
        self.def.possible_inputs()
    }

    /// Name of the attribute that counts the inputs, for operators that take any number. `None` for
    /// others.
    #[getter]
    fn variadic(&self) -> Option<&'static str> {
        self.def.input_count()
    }

    /// Attributes: name, type, default as files spell it (`None` if the attribute is required),
    /// documentation.
    #[getter]
    fn attrs(&self) -> Vec<(&'static str, String, Option<&'static str>, &'static str)> {
        self.def.attrs.iter().map(|a| (a.name, a.type_name(), a.default, a.doc)).collect()
    }

    /// Names of the attributes that hold an element type.
    #[getter]
    fn dtype_attrs(&self) -> Vec<&'static str> {
        self.def.dtype_attrs().collect()
    }

    /// Whether a call always has one result.
    #[getter]
    fn single_output(&self) -> bool {
        self.def.has_single_output()
    }

    /// Whether MXNet has names for the outputs. Where it has none, it counts them.
    #[getter]
    fn names_outputs(&self) -> bool {
        symbol::names_outputs(self.def)
    }

    /// Whether the operator ever computes something else in training.
    #[getter]
    fn may_differ_in_training(&self) -> bool {
        symbol::may_differ_in_training(self.def)
    }

    /// Whether the operator with these attributes computes something else in training.
    fn differs_in_training(&self, py: Python<'_>, attrs: &Bound<'_, PyDict>) -> PyResult<bool> {
        let given = attr_pairs(Some(attrs))?;
        let parsed = self.def.parse_attrs(given.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        Ok(symbol::differs_in_training(self.def, &parsed.map_err(|error| errors::from_op(py, &error))?))
    }

    fn __repr__(&self) -> String {
        format!("<Operator {}>", self.def.name)
    }
}

pub(crate) fn find(name: &str) -> Result<&'static OpDef, OpError> {
    registry().get(name).filter(|def| !def.internal).ok_or_else(|| {
        if mxrt_ops::belongs_to_training(name) {
            return OpError::new(FailureKind::Training, mxrt_ops::training_message(name));
        }
        let message = format!("Operator {name} is not registered: this build of mxrt does not have it");
        OpError::new(FailureKind::NotImplemented, message)
    })
}

/// Finds the operator with this name. `None` if this build does not have it.
#[pyfunction]
pub(crate) fn get_operator(name: &str) -> Option<Operator> {
    find(name).ok().map(|def| Operator { def })
}

/// Whether an operator belongs to training, as those that compute gradients do.
#[pyfunction]
pub(crate) fn belongs_to_training(name: &str) -> bool {
    mxrt_ops::belongs_to_training(name)
}

/// The names of all operators, aliases included, in alphabetical order, as MXNet lists them.
#[pyfunction]
pub(crate) fn operator_names() -> Vec<&'static str> {
    let public = registry().ops().iter().filter(|def| !def.internal);
    let names = public.flat_map(|def| std::iter::once(def.name).chain(def.aliases.iter().copied()));
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

/// Names of attributes and text.
pub(crate) type AttrPairs = SmallVec<[(String, String); 4]>;

/// Attributes as text, in the order given.
pub(crate) fn attr_pairs(attrs: Option<&Bound<'_, PyDict>>) -> PyResult<AttrPairs> {
    let Some(attrs) = attrs else { return Ok(SmallVec::new()) };
    attrs
        .iter()
        .map(|(key, value)| Ok((key.cast::<PyString>()?.to_str()?.to_owned(), convert::attr_text(&value)?)))
        .collect()
}

fn extract_arrays(inputs: &Bound<'_, PyAny>) -> PyResult<SmallVec<[NDArray; 4]>> {
    inputs.try_iter()?.map(|item| Ok(one_array(&item?)?.get().array(inputs.py())?.clone())).collect()
}

pub(crate) fn one_array<'a, 'py>(item: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, NDArrayBase>> {
    item.cast::<NDArrayBase>().map_err(|_| {
        let class = item.get_type().name().map_or_else(|_| "?".to_owned(), |n| n.to_string());
        PyTypeError::new_err(format!("expected an NDArray, got {class}; make one with mx.nd.array(...)"))
    })
}

/// Arrays given as `out=`: one, or a list of them.
pub(crate) fn out_arrays(out: Option<&Bound<'_, PyAny>>) -> PyResult<Option<SmallVec<[NDArray; 4]>>> {
    match out {
        None => Ok(None),
        Some(one) if one.is_instance_of::<NDArrayBase>() => {
            Ok(Some(smallvec::smallvec![one_array(one)?.get().array(one.py())?.clone()]))
        }
        Some(several) => extract_arrays(several).map(Some),
    }
}

/// Returns one array as itself, several as a list, and `out` if it was given.
pub(crate) fn results<'py>(
    py: Python<'py>,
    made: Started,
    out: Option<&Bound<'py, PyAny>>,
    class: Class,
) -> PyResult<Bound<'py, PyAny>> {
    match out {
        Some(out) => Ok(out.clone()),
        None => one_or_list(py, made.into_iter().map(|result| wrap_result(py, class, result))),
    }
}

fn one_or_list<'py>(
    py: Python<'py>,
    mut wrapped: impl ExactSizeIterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyAny>> {
    match (wrapped.next(), wrapped.len()) {
        (Some(one), 0) => one,
        (first, _) => Ok(PyList::new(py, first.into_iter().chain(wrapped).collect::<PyResult<Vec<_>>>()?)?.into_any()),
    }
}

/// Begins a call that may take long, while other threads of Python run. The main thread runs signal
/// handlers meanwhile, which may abandon the call.
pub(crate) fn begin_waiting(
    py: Python<'_>,
    begin: impl FnOnce(&mut Interrupter<'_>) -> Result<Started, OpError> + Send,
) -> PyResult<Started> {
    let started = runtime::wait_for_value(py, |poll| {
        let mut stopped = false;
        let mut ask = poll.map(|poll| {
            || {
                stopped |= !poll();
                !stopped
            }
        });
        let mut interrupter = match &mut ask {
            Some(ask) => Interrupter::by(ask),
            None => Interrupter::never(),
        };
        let started = begin(&mut interrupter);
        if stopped && started.is_err() { Err(WaitError::Interrupted) } else { Ok(started) }
    })?;
    started.map_err(|error| errors::from_op(py, &error))
}

/// A call of an operator that was looked up.
pub(crate) struct OperatorCall<'a> {
    pub(crate) runtime: &'static Process,
    pub(crate) def: &'static OpDef,
    pub(crate) given: CallAttrs<'a>,
    /// context of the result if there is no input
    pub(crate) context: Context,
}

impl OperatorCall<'_> {
    /// Pushes the operator. With the naive engine it has run then, and its failure is raised.
    pub(crate) fn push(&self, py: Python<'_>, inputs: &[&NDArray], outputs: Option<&[&NDArray]>) -> PyResult<Started> {
        let runtime = self.runtime;
        if mxrt_ops::knows_storage(self.def, self.given, inputs, outputs) {
            crate::sparse::warn_of_dense_copies(py, self.def, self.given, inputs, outputs, self.context)?;
        }
        let _site = runtime::push_site(py)?;
        let (engine, random) = (runtime.engine, &*runtime.random);
        let call = Invocation { engine, context: self.context, options: runtime.plans.kernel, random };
        let push = |interrupter: &mut Interrupter<'_>| {
            mxrt_graph::invoke(&call, &runtime.bound, self.def, self.given, inputs, outputs, interrupter)
        };
        // The naive engine computes in this thread, and arrays of the caller wait for shapes that
        // follow from contents. Other threads run meanwhile.
        if engine.is_naive() || (self.def.is_data_dependent() && outputs.is_some()) {
            return begin_waiting(py, push);
        }
        push(&mut Interrupter::never()).map_err(|error| errors::from_op(py, &error))
    }
}

/// Calls an operator by name.
///
/// `inputs` are arrays in order; `attrs` maps names to values; `out` is an array or a list to be
/// overwritten; `device` is where the result lives when there is no input to tell. Shape, type and
/// attribute errors are raised here, others when the result is awaited.
#[pyfunction]
#[pyo3(signature = (name, inputs, attrs = None, out = None, device = None))]
pub(crate) fn invoke<'py>(
    py: Python<'py>,
    name: &str,
    inputs: &Bound<'py, PyTuple>,
    attrs: Option<&Bound<'py, PyDict>>,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<(String, i32)>,
) -> PyResult<Bound<'py, PyAny>> {
    call(py, name, inputs, attrs, out, device, Class::Nd)
}

/// Calls an operator by name as `invoke` does. Its results are of class `mxrt.np.ndarray`.
#[pyfunction]
#[pyo3(signature = (name, inputs, attrs = None, out = None, device = None))]
pub(crate) fn invoke_np<'py>(
    py: Python<'py>,
    name: &str,
    inputs: &Bound<'py, PyTuple>,
    attrs: Option<&Bound<'py, PyDict>>,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<(String, i32)>,
) -> PyResult<Bound<'py, PyAny>> {
    call(py, name, inputs, attrs, out, device, Class::Np)
}

fn call<'py>(
    py: Python<'py>,
    name: &str,
    inputs: &Bound<'py, PyTuple>,
    attrs: Option<&Bound<'py, PyDict>>,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<(String, i32)>,
    class: Class,
) -> PyResult<Bound<'py, PyAny>> {
    let runtime = runtime::runtime()?;
    let arrays = extract_arrays(inputs)?;
    let mut pairs = attr_pairs(attrs)?;
    let outputs = out_arrays(out)?;
    let (def, context) = find(name)
        .and_then(|def| Ok((def, complete(def, &mut pairs, arrays.len(), device)?)))
        .map_err(|e| errors::from_op(py, &e))?;
    let inputs: SmallVec<[&NDArray; 4]> = arrays.iter().collect();
    let outputs: Option<SmallVec<[&NDArray; 2]>> = outputs.as_ref().map(|out| out.iter().collect());
    let call = OperatorCall { runtime, def, given: CallAttrs::Text(&pairs), context };
    results(py, call.push(py, &inputs, outputs.as_deref())?, out, class)
}

/// Takes the context out of the attributes, unless the operator declares it, and adds the number of
/// inputs where the operator counts them.
fn complete(
    def: &OpDef,
    pairs: &mut AttrPairs,
    inputs: usize,
    device: Option<(String, i32)>,
) -> Result<Context, OpError> {
    let context = match pairs.iter().find(|(key, _)| key == "ctx") {
        Some((_, text)) => parse_ctx(text)?,
        None => device.map_or(Ok(Context::default()), |(kind, number)| convert::context((&kind, number)))?,
    };
    if !declares(def, "ctx") {
        pairs.retain(|(key, _)| key != "ctx");
    }
    if let Inputs::Variadic { count, .. } = def.inputs
        && !pairs.iter().any(|(key, _)| key == count)
    {
        pairs.push((count.to_owned(), inputs.to_string()));
    }
    Ok(context)
}

fn declares(def: &OpDef, attr: &str) -> bool {
    def.attrs.iter().any(|a| a.name == attr)
}

/// The `ctx` attribute of operators that make arrays: `cpu(0)`.
fn parse_ctx(text: &str) -> Result<Context, OpError> {
    match Context::parse(text) {
        Some(context) => convert::context((&context.device_type.name(), context.device_id)),
        None => convert::context((text, 0)),
    }
}
