//! The short path of `mx.np`: signs and functions of arrays and numbers, without Python code.
//!
//! What is neither an array of `mx.np` nor a number goes to the function of `mx.np`, which knows
//! symbols and words the errors.

use crate::arithmetic::{Sign, number_of};
use crate::ndarray::{Class, NDArrayBase, is_np};
use crate::operator::{self, OperatorCall};
use crate::{errors, runtime};
use mxrt_engine::ForkSafeOnce;
use mxrt_ops::{CallAttrs, OpDef};
use mxrt_tensor::NDArray;
use pyo3::prelude::*;
use pyo3::types::PyModule;

/// A sign: the operators of two arrays, and of an array and a number; the function of `mx.np`, and
/// whether its operands are exchanged.
type Row = (&'static str, &'static str, &'static str, bool);

/// Rows by [`Sign`]. An array on the left is never reflected.
const ROWS: [Row; 16] = [
    ("_npi_add", "_npi_add_scalar", "add", false),
    ("_npi_subtract", "_npi_subtract_scalar", "subtract", false),
    ("_npi_subtract", "_npi_rsubtract_scalar", "subtract", true),
    ("_npi_multiply", "_npi_multiply_scalar", "multiply", false),
    ("_npi_true_divide", "_npi_true_divide_scalar", "divide", false),
    ("_npi_true_divide", "_npi_rtrue_divide_scalar", "divide", true),
    ("_npi_mod", "_npi_mod_scalar", "mod", false),
    ("_npi_mod", "_npi_rmod_scalar", "mod", true),
    ("_npi_power", "_npi_power_scalar", "power", false),
    ("_npi_power", "_npi_rpower_scalar", "power", true),
    ("_npi_equal", "_npi_equal_scalar", "equal", false),
    ("_npi_not_equal", "_npi_not_equal_scalar", "not_equal", false),
    ("_npi_greater", "_npi_greater_scalar", "greater", false),
    ("_npi_greater_equal", "_npi_greater_equal_scalar", "greater_equal", false),
    ("_npi_less", "_npi_less_scalar", "less", false),
    ("_npi_less_equal", "_npi_less_equal_scalar", "less_equal", false),
];

fn found(py: Python<'_>, name: &str) -> PyResult<&'static OpDef> {
    operator::find(name).map_err(|e| errors::from_op(py, &e))
}

fn operators(py: Python<'_>, sign: Sign) -> PyResult<(&'static OpDef, &'static OpDef)> {
    static FOUND: ForkSafeOnce<Vec<(&'static OpDef, &'static OpDef)>> = ForkSafeOnce::new();
    if let Some(known) = FOUND.get() {
        return Ok(known[sign as usize]);
    }
    let both = |(arrays, number, ..): &Row| Ok((found(py, arrays)?, found(py, number)?));
    let all = ROWS.iter().map(both).collect::<PyResult<Vec<_>>>()?;
    Ok(FOUND.get_or_init(|| all)[sign as usize])
}

/// An operand as an array of `mx.np`.
fn np_array<'a, 'py>(value: &'a Bound<'py, PyAny>) -> PyResult<Option<&'a Bound<'py, NDArrayBase>>> {
    match value.cast::<NDArrayBase>() {
        Ok(array) if is_np(array)? => Ok(Some(array)),
        _ => Ok(None),
    }
}

/// Calls an operator. With `out`, an array of `mx.np`, the result is stored there.
fn push<'py>(
    py: Python<'py>,
    def: &'static OpDef,
    given: CallAttrs<'_>,
    inputs: &[&NDArray],
    out: Option<&Bound<'py, NDArrayBase>>,
) -> PyResult<Bound<'py, PyAny>> {
    let stored = out.map(|out| out.get().array(py)).transpose()?;
    let outputs = stored.as_ref().map(std::slice::from_ref);
    let call = OperatorCall { runtime: runtime::runtime()?, def, given, context: inputs[0].context() };
    operator::results(py, call.push(py, inputs, outputs)?, out.map(|out| out.as_any()), Class::Np)
}

/// The result of a sign whose left operand is an array: of `mx.np`, or the other one is.
pub(crate) fn by_sign<'py>(
    array: &Bound<'py, NDArrayBase>,
    other: &Bound<'py, PyAny>,
    sign: Sign,
    out: Option<&Bound<'py, NDArrayBase>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    if is_np(array)? {
        let (with_array, with_number) = operators(py, sign)?;
        let left = array.get().array(py)?;
        if let Some(right) = np_array(other)? {
            return push(py, with_array, CallAttrs::Text(&[]), &[left, right.get().array(py)?], out);
        }
        if let Some(number) = number_of(other)? {
            return push(py, with_number, CallAttrs::Scalar(number), &[left], out);
        }
    }
    let (.., name, reflected) = ROWS[sign as usize];
    let function = PyModule::import(py, "mxrt.numpy")?.getattr(name)?;
    let (left, right) = if reflected { (other, array.as_any()) } else { (array.as_any(), other) };
    function.call1((left, right, out))
}

/// `out` of a call, if it is an array of `mx.np`; `Err(())` for anything else.
fn out_array<'a, 'py>(out: Option<&'a Bound<'py, PyAny>>) -> PyResult<Result<Option<&'a Bound<'py, NDArrayBase>>, ()>> {
    match out {
        None => Ok(Ok(None)),
        Some(out) => Ok(np_array(out)?.map(Some).ok_or(())),
    }
}

/// A function of `mx.np` of each element: its operator.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct NumpyUnary(&'static OpDef);

#[pymethods]
impl NumpyUnary {
    #[new]
    fn new(py: Python<'_>, operator: &str) -> PyResult<NumpyUnary> {
        Ok(NumpyUnary(found(py, operator)?))
    }

    /// The result for an array of `mx.np`. None for other operands, which this path does not know.
    #[pyo3(signature = (x, out = None))]
    fn call<'py>(&self, x: &Bound<'py, PyAny>, out: Option<&Bound<'py, PyAny>>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (Some(x), Ok(out)) = (np_array(x)?, out_array(out)?) else { return Ok(None) };
        let py = x.py();
        push(py, self.0, CallAttrs::Text(&[]), &[x.get().array(py)?], out).map(Some)
    }
}

/// A function of `mx.np` of two elements: its operators.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct NumpyBinary {
    arrays: &'static OpDef,
    number: Option<(&'static OpDef, &'static OpDef)>,
}

#[pymethods]
impl NumpyBinary {
    /// `arrays` is the operator of two arrays, `number` that of an array and a number, and
    /// `reflected` that of a number on the left.
    #[new]
    fn new(py: Python<'_>, arrays: &str, number: Option<&str>, reflected: Option<&str>) -> PyResult<NumpyBinary> {
        let number = match number.zip(reflected) {
            Some((right, left)) => Some((found(py, right)?, found(py, left)?)),
            None => None,
        };
        Ok(NumpyBinary { arrays: found(py, arrays)?, number })
    }

    /// The result for arrays of `mx.np`, or one and a number. None for other operands, which this
    /// path does not know.
    #[pyo3(signature = (x1, x2, out = None))]
    fn call<'py>(
        &self,
        x1: &Bound<'py, PyAny>,
        x2: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Ok(out) = out_array(out)? else { return Ok(None) };
        let py = x1.py();
        let (array, other, left) = match (np_array(x1)?, np_array(x2)?) {
            (Some(a), Some(b)) => {
                let inputs = [a.get().array(py)?, b.get().array(py)?];
                return push(py, self.arrays, CallAttrs::Text(&[]), &inputs, out).map(Some);
            }
            (Some(array), None) => (array, x2, false),
            (None, Some(array)) => (array, x1, true),
            (None, None) => return Ok(None),
        };
        let (Some((on_right, on_left)), Some(number)) = (self.number, number_of(other)?) else { return Ok(None) };
        let def = if left { on_left } else { on_right };
        push(py, def, CallAttrs::Scalar(number), &[array.get().array(py)?], out).map(Some)
    }
}
