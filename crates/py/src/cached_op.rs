//! Compiled graphs that any number of threads call.

use crate::ndarray::{Class, NDArrayBase};
use crate::operator::{attr_pairs, begin_waiting, one_array, out_arrays, results};
use crate::symbol::SymbolBase;
use crate::{convert, errors, plan_report, runtime, sparse};
use mxrt_engine::{FailureKind, OpError};
use mxrt_graph::{CALL_OPTIONS, CachedOpFlags, CallOption, CallOptions, CallValue, Interrupter, PlanReport};
use mxrt_tensor::{Context, NDArray};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

type Arrays = SmallVec<[NDArray; 4]>;

/// A compiled symbol. Calls take arrays in the order of the symbol's `list_inputs()` and return at
/// once.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct CachedOp {
    unbound: mxrt_graph::BoundOp,
    class: Class,
}

/// A compiled symbol with arrays for some of its inputs. Calls take the others.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct BoundOp {
    pub(crate) op: Arc<mxrt_graph::BoundOp>,
    pub(crate) class: Class,
}

fn run<'py>(
    py: Python<'py>,
    op: &mxrt_graph::BoundOp,
    inputs: &Bound<'py, PyTuple>,
    out: Option<&Bound<'py, PyAny>>,
    options: CallOptions,
    class: Class,
) -> PyResult<Bound<'py, PyAny>> {
    let inputs = arrays(inputs.iter())?;
    let outputs = out_arrays(out)?;
    let inputs: SmallVec<[&NDArray; 4]> = inputs.iter().collect();
    let outputs: Option<SmallVec<[&NDArray; 4]>> = outputs.as_ref().map(|list| list.iter().collect());
    let _site = runtime::push_site(py)?;
    // Another call of a known signature takes some microseconds. The first one compiles, which
    // takes long enough for other threads to run meanwhile, and for Ctrl-C.
    let mut quick = Interrupter::quick();
    let started = match op.call(&inputs, outputs.as_deref(), &options, &mut quick) {
        Err(_) if quick.gave_up() => {
            let started = begin_waiting(py, |interrupter| op.call(&inputs, outputs.as_deref(), &options, interrupter))?;
            warn(py, op.op().take_notice())?;
            op.op().take_storage_warnings().into_iter().try_for_each(|text| sparse::warn(py, text))?;
            started
        }
        started => started.map_err(|error| errors::from_op(py, &error))?,
    };
    results(py, started, out, class)
}

/// Raises a warning about a graph, if there is one.
fn warn(py: Python<'_>, notice: Option<&str>) -> PyResult<()> {
    let Some(text) = notice.and_then(|notice| CString::new(notice).ok()) else { return Ok(()) };
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

/// The options of a call, from its keywords.
pub(crate) fn call_options(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<CallOptions> {
    let mut options = CallOptions::default();
    for (name, value) in keywords.into_iter().flatten() {
        let name: String = name.extract()?;
        let option = CallOption::find(&name).ok_or_else(|| unknown_option(&name))?;
        option
            .apply(&mut options, &Keyword(&value))
            .map_err(|kind| wrong_argument(&name, &value, kind, option.expects))?;
    }
    Ok(options)
}

/// The value of a keyword.
struct Keyword<'a, 'py>(&'a Bound<'py, PyAny>);

impl CallValue for Keyword<'_, '_> {
    fn is_none(&self) -> bool {
        self.0.is_none()
    }

    fn integer(&self) -> Result<i64, FailureKind> {
        let too_large = self.0.is_instance_of::<PyInt>();
        self.0.extract().map_err(|_| if too_large { FailureKind::Value } else { FailureKind::Type })
    }

    fn number(&self) -> Result<f64, FailureKind> {
        self.0.extract().map_err(|_| FailureKind::Type)
    }

    fn boolean(&self) -> Result<bool, FailureKind> {
        self.0.extract().map_err(|_| FailureKind::Type)
    }
}

fn unknown_option(name: &str) -> PyErr {
    let known: Vec<&str> = CALL_OPTIONS.iter().map(|option| option.name).collect();
    let message = format!("a call got the unknown keyword '{name}'; known: {}", known.join(", "));
    errors::plain(FailureKind::Type, &message)
}

fn wrong_argument(name: &str, value: &Bound<'_, PyAny>, kind: FailureKind, expected: &str) -> PyErr {
    let shown = value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
    let class = value.get_type();
    let class = class.name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    errors::plain(kind, &format!("{name}={shown} ({class}): expected {expected}"))
}

pub(crate) fn arrays<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Arrays> {
    items.map(|item| Ok(one_array(&item)?.get().array(item.py())?.clone())).collect()
}

/// Refuses names and values that are not flags of a compiled symbol.
#[pyfunction]
pub(crate) fn check_flags(py: Python<'_>, flags: &Bound<'_, PyDict>) -> PyResult<()> {
    let pairs = attr_pairs(Some(flags))?;
    let parsed = CachedOpFlags::parse(pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())));
    parsed.map(drop).map_err(|e| errors::from_op(py, &e))
}

#[pymethods]
impl CachedOp {
    /// Compiles a symbol. `flags` are pairs of a name and a value. `groups` gives some nodes
    /// contexts by their names; the others run on `rest`. With `np_arrays` results are of class
    /// `mxrt.np.ndarray`.
    #[new]
    #[pyo3(signature = (sym, flags = None, rest = None, groups = None, np_arrays = false))]
    fn new(
        py: Python<'_>,
        sym: &Bound<'_, SymbolBase>,
        flags: Option<&Bound<'_, PyDict>>,
        rest: Option<(String, i32)>,
        groups: Option<HashMap<String, (String, i32)>>,
        np_arrays: bool,
    ) -> PyResult<CachedOp> {
        let runtime = runtime::runtime()?;
        let pairs = attr_pairs(flags)?;
        let symbol = &sym.get().symbol;
        let compiled = py.detach(|| {
            let flags = CachedOpFlags::parse(pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())))?;
            let op = mxrt_graph::CachedOp::compile(runtime.engine, symbol, &flags, runtime.plans)?;
            let Some(groups) = groups else { return Ok(op) };
            let context = |(kind, number): &(String, i32)| convert::context((kind, *number));
            let rest = rest.as_ref().map(context).transpose()?.unwrap_or_default();
            let placed = groups.iter().map(|(name, of)| Ok((name.clone(), context(of)?)));
            Ok(op.with_groups(rest, &placed.collect::<Result<HashMap<String, Context>, OpError>>()?))
        });
        let op = compiled.map_err(|e| errors::from_op(py, &e))?;
        let unbound = mxrt_graph::BoundOp::unbound(Arc::new(op.with_random(runtime.random.clone())));
        Ok(CachedOp { unbound, class: if np_arrays { Class::Np } else { Class::Nd } })
    }

    /// Number of inputs.
    #[getter]
    fn num_inputs(&self) -> usize {
        self.op().num_inputs()
    }

    /// Number of results.
    #[getter]
    fn num_outputs(&self) -> usize {
        self.op().num_outputs()
    }

    /// Runs the graph. One result is returned as itself, several as a list. `options` are those of
    /// the table [`CALL_OPTIONS`].
    #[pyo3(signature = (*inputs, out = None, **options))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        run(py, &self.unbound, inputs, out, call_options(options)?, self.class)
    }

    /// Binds arrays to some of the inputs. `None` marks an input that calls pass.
    fn bind(&self, py: Python<'_>, arrays: Vec<Option<Bound<'_, NDArrayBase>>>) -> PyResult<BoundOp> {
        let array = |given: &Option<Bound<'_, NDArrayBase>>| match given {
            Some(given) => Ok(Some(given.get().array(py)?.clone())),
            None => Ok(None),
        };
        let held = arrays.iter().map(array).collect::<PyResult<Vec<Option<NDArray>>>>()?;
        let bound = py.detach(|| {
            let arrays: Vec<Option<&NDArray>> = held.iter().map(Option::as_ref).collect();
            mxrt_graph::BoundOp::new(self.op().clone(), &arrays)
        });
        Ok(BoundOp { op: Arc::new(bound.map_err(|e| errors::from_op(py, &e))?), class: self.class })
    }

    /// Returns the plan for arrays like these, as text. With `measure` it includes the time that
    /// each step takes on them.
    #[pyo3(signature = (*inputs, measure = true))]
    fn plan(&self, py: Python<'_>, inputs: &Bound<'_, PyTuple>, measure: bool) -> PyResult<String> {
        Ok(self.report(py, inputs, measure)?.to_string())
    }

    /// Returns the plan as data, and as `text`.
    #[pyo3(signature = (*inputs, measure = true))]
    fn plan_report<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyTuple>,
        measure: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        plan_report::as_dict(py, &self.report(py, inputs, measure)?)
    }

    /// Returns the distinct convolutions of the plan for arrays like these, under their names in
    /// tables of measured ones.
    #[pyo3(signature = (*inputs))]
    fn convolutions(&self, py: Python<'_>, inputs: &Bound<'_, PyTuple>) -> PyResult<Vec<String>> {
        let types: Vec<_> = arrays(inputs.iter())?.iter().map(NDArray::tensor_type).collect();
        let found = py.detach(|| self.op().convolutions(&types));
        Ok(found.map_err(|e| errors::from_op(py, &e))?.iter().map(ToString::to_string).collect())
    }

    /// State of the plan cache: plans, built, evicted, plan_bytes, constant_bytes, max_plans,
    /// max_bytes.
    fn plan_cache_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.op().stats();
        let facts = PyDict::new(py);
        facts.set_item("plans", stats.plans)?;
        facts.set_item("built", stats.built)?;
        facts.set_item("evicted", stats.evicted)?;
        facts.set_item("plan_bytes", stats.plan_bytes)?;
        facts.set_item("constant_bytes", stats.constant_bytes)?;
        facts.set_item("max_plans", stats.max_plans)?;
        facts.set_item("max_bytes", stats.max_bytes)?;
        Ok(facts)
    }

    fn __repr__(&self) -> String {
        format!("<CachedOp {} inputs, {} outputs>", self.op().num_inputs(), self.op().num_outputs())
    }
}

impl CachedOp {
    fn op(&self) -> &Arc<mxrt_graph::CachedOp> {
        self.unbound.op()
    }

    fn report(&self, py: Python<'_>, inputs: &Bound<'_, PyTuple>, measure: bool) -> PyResult<PlanReport> {
        let inputs = arrays(inputs.iter())?;
        let report = if measure {
            runtime::wait(py, |poll| {
                let inputs: SmallVec<[&NDArray; 4]> = inputs.iter().collect();
                self.op().measured_plan(&inputs, poll).map_or_else(|e| Ok(Err(e)), |report| report.map(Ok))
            })?
        } else {
            let inputs: SmallVec<[&NDArray; 4]> = inputs.iter().collect();
            py.detach(|| self.op().plan_for(&inputs))
        };
        report.map_err(|e| errors::from_op(py, &e))
    }
}

#[pymethods]
impl BoundOp {
    /// Runs the graph on the inputs that are not bound, as `CachedOp` does on all.
    #[pyo3(signature = (*inputs, out = None, **options))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        run(py, &self.op, inputs, out, call_options(options)?, self.class)
    }

    fn __repr__(&self) -> String {
        let op = self.op.op();
        format!("<BoundOp {} inputs, {} outputs>", op.num_inputs(), op.num_outputs())
    }
}
