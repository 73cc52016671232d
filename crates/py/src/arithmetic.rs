//! `+`, `<` and the like: an operator for two arrays and one for an array and a number, chosen by
//! the operand.

use crate::exit::PythonCall;
use crate::imported::Imported;
use crate::ndarray::{Class, NDArrayBase, is_np};
use crate::operator::{self, OperatorCall};
use crate::{errors, numpy_calls, runtime};
use mxrt_engine::ForkSafeOnce;
use mxrt_ops::{CallAttrs, OpDef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyFloat, PyInt, PyString};

/// A sign with its two operators.
#[derive(Clone, Copy)]
pub(crate) enum Sign {
    Add,
    Sub,
    ReflectedSub,
    Mul,
    Div,
    ReflectedDiv,
    Mod,
    ReflectedMod,
    Power,
    ReflectedPower,
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Lesser,
    LesserEqual,
}

/// Names by sign: the operator of two arrays, and that of an array and a number. An array on the
/// left is never reflected.
const NAMES: [(&str, &str); 16] = [
    ("broadcast_add", "_plus_scalar"),
    ("broadcast_sub", "_minus_scalar"),
    ("broadcast_sub", "_rminus_scalar"),
    ("broadcast_mul", "_mul_scalar"),
    ("broadcast_div", "_div_scalar"),
    ("broadcast_div", "_rdiv_scalar"),
    ("broadcast_mod", "_mod_scalar"),
    ("broadcast_mod", "_rmod_scalar"),
    ("broadcast_power", "_power_scalar"),
    ("broadcast_power", "_rpower_scalar"),
    ("broadcast_equal", "_equal_scalar"),
    ("broadcast_not_equal", "_not_equal_scalar"),
    ("broadcast_greater", "_greater_scalar"),
    ("broadcast_greater_equal", "_greater_equal_scalar"),
    ("broadcast_lesser", "_lesser_scalar"),
    ("broadcast_lesser_equal", "_lesser_equal_scalar"),
];

impl Sign {
    /// The operator of a sparse array and one of the same shape.
    fn of_one_shape(self) -> Option<&'static str> {
        match self {
            Sign::Add => Some("elemwise_add"),
            Sign::Sub => Some("elemwise_sub"),
            Sign::Mul => Some("elemwise_mul"),
            _ => None,
        }
    }
}

impl From<CompareOp> for Sign {
    fn from(compare: CompareOp) -> Sign {
        match compare {
            CompareOp::Lt => Sign::Lesser,
            CompareOp::Le => Sign::LesserEqual,
            CompareOp::Eq => Sign::Equal,
            CompareOp::Ne => Sign::NotEqual,
            CompareOp::Gt => Sign::Greater,
            CompareOp::Ge => Sign::GreaterEqual,
        }
    }
}

type Operators = Vec<(&'static OpDef, &'static OpDef)>;

fn operators(py: Python<'_>, sign: Sign) -> PyResult<(&'static OpDef, &'static OpDef)> {
    static FOUND: ForkSafeOnce<Operators> = ForkSafeOnce::new();
    if let Some(found) = FOUND.get() {
        return Ok(found[sign as usize]);
    }
    let both = |(arrays, number): &(&str, &str)| Ok((operator::find(arrays)?, operator::find(number)?));
    let found = NAMES.iter().map(both).collect::<Result<Operators, _>>().map_err(|e| errors::from_op(py, &e))?;
    Ok(FOUND.get_or_init(|| found)[sign as usize])
}

/// The number that stands for all elements of an array: Python's and numpy's numbers. `None` for
/// what is none.
pub(crate) fn number_of(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    if value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>() {
        return value.extract().map(Some);
    }
    static IS_NUMBER: Imported<PyAny> = Imported::new();
    let py = value.py();
    let _call = PythonCall::enter(py);
    if IS_NUMBER.import(py, "mxrt.base", "is_number")?.call1((value,))?.is_truthy()? {
        return py.get_type::<PyFloat>().call1((value,))?.extract().map(Some);
    }
    Ok(None)
}

fn number(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    if let Some(number) = number_of(value)? {
        return Ok(number);
    }
    let text = format!("type {} not supported", value.get_type().str()?);
    let advice = match value.hasattr("__len__")? && !value.is_instance_of::<PyString>() {
        true => ": make an NDArray of it by mx.nd.array(x), or numpy's array of the other one by y.asnumpy()",
        false => "",
    };
    Err(PyTypeError::new_err(text + advice))
}

fn run<'py>(
    array: &Bound<'py, NDArrayBase>,
    other: &Bound<'py, PyAny>,
    sign: Sign,
    out: Option<&Bound<'py, NDArrayBase>>,
) -> PyResult<Bound<'py, PyAny>> {
    let right = other.cast::<NDArrayBase>().ok();
    if is_np(array)? || right.is_some_and(|right| matches!(is_np(right), Ok(true))) {
        return numpy_calls::by_sign(array, other, sign, out);
    }
    let py = array.py();
    let (with_array, with_number) = operators(py, sign)?;
    let left = array.get().array(py)?;
    let outputs: Option<&[_]> = if out.is_some() { Some(&[left]) } else { None };
    let call = |def, given, inputs: &[_]| {
        let call = OperatorCall { runtime: runtime::runtime()?, def, given, context: left.context() };
        operator::results(py, call.push(py, inputs, outputs)?, out.map(|out| out.as_any()), Class::Nd)
    };
    match right {
        Some(right) => {
            let right = right.get().array(py)?;
            let def = match sign.of_one_shape().filter(|_| left.is_sparse() && left.shape() == right.shape()) {
                Some(name) => operator::find(name).map_err(|e| errors::from_op(py, &e))?,
                None => with_array,
            };
            call(def, CallAttrs::Text(&[]), &[left, right])
        }
        None => call(with_number, CallAttrs::Scalar(number(other)?), &[left]),
    }
}

/// The result as a new array.
pub(crate) fn apply<'py>(
    array: &Bound<'py, NDArrayBase>,
    other: &Bound<'py, PyAny>,
    sign: Sign,
) -> PyResult<Bound<'py, PyAny>> {
    run(array, other, sign, None)
}

/// The result in the place of the array.
pub(crate) fn assign<'py>(array: &Bound<'py, NDArrayBase>, other: &Bound<'py, PyAny>, sign: Sign) -> PyResult<()> {
    run(array, other, sign, Some(array)).map(drop)
}
