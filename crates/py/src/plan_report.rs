//! Plans as Python data.

use mxrt_graph::{BatchParts, PlanReport, StepReport};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A plan with a dictionary for every step. Times are in microseconds, measured ones None where
/// nothing was measured.
pub(crate) fn as_dict<'py>(py: Python<'py>, plan: &PlanReport) -> PyResult<Bound<'py, PyDict>> {
    let steps = plan.steps.iter().enumerate().map(|(i, step)| step_dict(py, i, step)).collect::<PyResult<Vec<_>>>()?;
    let facts = PyDict::new(py);
    facts.set_item("title", &plan.title)?;
    facts.set_item("parts", plan.parts.map(|parts| parts_dict(py, parts)).transpose()?)?;
    facts.set_item("steps", PyList::new(py, steps)?)?;
    facts.set_item("notes", &plan.notes)?;
    facts.set_item("constants", plan.constants)?;
    facts.set_item("arena_bytes", plan.arena_bytes)?;
    facts.set_item("packed_bytes", plan.packed_bytes())?;
    facts.set_item("estimated_us", microseconds(plan.estimated_ns()))?;
    facts.set_item("measured_us", plan.measured_ns().map(microseconds))?;
    facts.set_item("text", plan.to_string())?;
    Ok(facts)
}

fn step_dict<'py>(py: Python<'py>, number: usize, step: &StepReport) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("step", number)?;
    facts.set_item("operator", step.op)?;
    facts.set_item("node", &step.node)?;
    facts.set_item("output", &step.output)?;
    facts.set_item("kernel", &step.kernel)?;
    facts.set_item("arena_bytes", step.arena_bytes)?;
    facts.set_item("packed_bytes", step.packed_bytes)?;
    facts.set_item("estimated_us", microseconds(step.estimated_ns))?;
    facts.set_item("measured_us", step.measured_ns().map(microseconds))?;
    Ok(facts)
}

fn parts_dict(py: Python<'_>, parts: BatchParts) -> PyResult<Bound<'_, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("rows", parts.rows)?;
    facts.set_item("rows_of_a_part", parts.each)?;
    facts.set_item("side_by_side", parts.side_by_side)?;
    Ok(facts)
}

fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1e3
}
