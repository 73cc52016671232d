//! Compiled graphs that any number of threads call.

use crate::operator::{attr_pairs, one_array, out_arrays, raise_if_naive, results};
use crate::symbol::SymbolBase;
use crate::{errors, runtime};
use mxrt_engine::OpError;
use mxrt_graph::CachedOpFlags;
use mxrt_tensor::NDArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

type Arrays = SmallVec<[NDArray; 16]>;

/// A compiled symbol. Calls take arrays in the order of the symbol's `list_inputs()` and return at once.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct CachedOp {
    op: mxrt_graph::CachedOp,
}

impl CachedOp {
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: Arrays,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let outputs = out_arrays(out)?;
        let runtime = runtime::runtime()?;
        let _site = runtime.push_site(py)?;
        // A first call of a signature compiles, which takes long enough for others to go on meanwhile.
        let made = runtime::detached(py, || self.call(&inputs, outputs.as_deref()))?;
        let made = made.map_err(|e| errors::from_op(py, &e))?;
        raise_if_naive(py, runtime, &made)?;
        results(py, made, out)
    }

    fn call(&self, inputs: &[NDArray], outputs: Option<&[NDArray]>) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let inputs: SmallVec<[&NDArray; 16]> = inputs.iter().collect();
        match outputs {
            None => self.op.call(&inputs),
            Some(outputs) => {
                self.op.call_into(&inputs, &outputs.iter().collect::<SmallVec<[&NDArray; 2]>>())?;
                Ok(outputs.iter().cloned().collect())
            }
        }
    }
}

fn arrays<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Arrays> {
    items.map(|item| Ok(one_array(&item)?.get().array.clone())).collect()
}

#[pymethods]
impl CachedOp {
    /// Compiles a symbol. `flags` are pairs of a name and a value.
    #[new]
    #[pyo3(signature = (sym, flags = None))]
    fn new(py: Python<'_>, sym: &Bound<'_, SymbolBase>, flags: Option<&Bound<'_, PyDict>>) -> PyResult<CachedOp> {
        let runtime = runtime::runtime()?;
        let pairs = attr_pairs(flags)?;
        let symbol = &sym.get().symbol;
        let compiled = runtime::detached(py, || {
            let flags = CachedOpFlags::parse(pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())))?;
            mxrt_graph::CachedOp::compile(runtime.engine, symbol, &flags, runtime.plans)
        })?;
        let op = compiled.map_err(|e| errors::from_op(py, &e))?;
        Ok(CachedOp { op: op.with_random(runtime.random.clone()) })
    }

    /// Number of inputs.
    #[getter]
    fn num_inputs(&self) -> usize {
        self.op.num_inputs()
    }

    /// Number of results.
    #[getter]
    fn num_outputs(&self) -> usize {
        self.op.num_outputs()
    }

    /// Runs the graph. One result is returned as itself, several as a list.
    #[pyo3(signature = (*inputs, out = None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.run(py, arrays(inputs.iter())?, out)
    }

    /// The compiled form for arrays like these, as text; with `measure` also how long each step takes on them.
    #[pyo3(signature = (*inputs, measure = false))]
    fn plan(&self, py: Python<'_>, inputs: &Bound<'_, PyTuple>, measure: bool) -> PyResult<String> {
        let inputs = arrays(inputs.iter())?;
        let text = if measure {
            runtime::wait(py, |poll| {
                let inputs: SmallVec<[&NDArray; 16]> = inputs.iter().collect();
                self.op.measured_plan_text(&inputs, poll).map_or_else(|e| Ok(Err(e)), |text| text.map(Ok))
            })?
        } else {
            let types: Vec<_> = inputs.iter().map(NDArray::tensor_type).collect();
            runtime::detached(py, || self.op.plan_text(&types))?
        };
        text.map_err(|e| errors::from_op(py, &e))
    }

    /// State of the plan cache: plans, built, evicted, plan_bytes, constant_bytes, max_plans, max_bytes.
    fn plan_cache_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.op.stats();
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
        format!("<CachedOp {} inputs, {} outputs>", self.op.num_inputs(), self.op.num_outputs())
    }
}
