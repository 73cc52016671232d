//! Values on their way between Python and Rust.

use crate::errors;
use half::f16;
use mxrt::internal::devices;
use mxrt_engine::{FailureKind, OpError, reserve};
use mxrt_tensor::{Context, DType, DeviceType};
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Bytes of a text whose copies may be refused memory.
const LONG_TEXT: usize = reserve::LARGEST / 8;

/// Lists inside lists go no deeper in an attribute.
const MAX_NESTING: usize = 32;

/// An attribute value as files spell it: `True`, `0.5`, `(3, 3)`, `None`.
#[pyfunction]
pub(crate) fn attr_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    nested_text(value, MAX_NESTING)
}

/// The text of a value that may hold lists nested to this depth: a list that holds itself has no
/// text.
fn nested_text(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_str()?;
        if text.len() > LONG_TEXT {
            // It is copied a few times, and into messages.
            reserve::check_room(text.len().saturating_mul(8)).map_err(|e| errors::from_op(value.py(), &e.into()))?;
        }
        return Ok(text.to_owned());
    }
    if value.is_none() || value.is_exact_instance_of::<PyBool>() || value.is_exact_instance_of::<PyInt>() {
        return Ok(value.str()?.to_str()?.to_owned());
    }
    if let Ok(items) = value.cast::<PyTuple>() {
        let comma = if items.len() == 1 { "," } else { "" };
        return Ok(format!("({}{comma})", items_text(items.iter(), depth)?));
    }
    if let Ok(items) = value.cast::<PyList>() {
        return Ok(format!("[{}]", items_text(items.iter(), depth)?));
    }
    if value.is_exact_instance_of::<PyFloat>() {
        return Ok(value.repr()?.to_str()?.to_owned());
    }
    // numpy scalars print as plain numbers
    Ok(value.str()?.to_str()?.to_owned())
}

fn items_text<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize) -> PyResult<String> {
    let Some(depth) = depth.checked_sub(1) else {
        let message = format!("an attribute has lists inside lists, more than {MAX_NESTING} deep");
        return Err(errors::plain(FailureKind::Value, &message));
    };
    Ok(items.map(|item| nested_text(&item, depth)).collect::<PyResult<Vec<_>>>()?.join(", "))
}

/// Device type and number, as `mxrt.context` passes them. A negative number of a CPU is 0, as in
/// MXNet; other devices have no such number.
pub(crate) fn context(device: (&str, i32)) -> Result<Context, OpError> {
    let (kind, number) = device;
    let known = |device_type| !matches!(device_type, DeviceType::Device(kind) if !devices::is_known(kind));
    match Context::parse(kind).filter(|context| known(context.device_type)) {
        Some(Context { device_type: DeviceType::Device(kind), .. }) => {
            Ok(Context { device_type: DeviceType::Device(kind), device_id: number })
        }
        Some(context) => Ok(Context { device_id: number.max(0), ..context }),
        None => {
            let kinds = devices::kinds().map(|kind| kind.to_string()).collect::<Vec<_>>().join(", ");
            let message = format!("unknown device type '{kind}'; known: cpu, cpu_pinned, cpu_shared, {kinds}");
            Err(OpError::new(FailureKind::Value, message))
        }
    }
}

pub(crate) fn dtype(name: &str) -> PyResult<DType> {
    name.parse().map_err(|e: mxrt_tensor::UnknownDType| PyTypeError::new_err(e.to_string()))
}

macro_rules! for_numpy_types {
    ($do:ident) => {
        $do!(f32 => F32, f64 => F64, f16 => F16, u8 => U8, i32 => I32, i8 => I8, i64 => I64, i16 => I16, u16 => U16,
             u32 => U32, u64 => U64);
    };
}

/// Gives the bytes of a C-contiguous numpy array to `use_bytes`.
pub(crate) fn with_bytes<R>(
    array: &Bound<'_, PyUntypedArray>,
    use_bytes: impl FnOnce(DType, &[u8]) -> PyResult<R>,
) -> PyResult<R> {
    macro_rules! try_types {
        ($($t:ty => $d:ident),*) => { $(
            if let Ok(typed) = array.cast::<PyArrayDyn<$t>>() {
                let readonly = typed.try_readonly().map_err(|e| PyValueError::new_err(e.to_string()))?;
                let slice = readonly.as_slice().map_err(|_| PyValueError::new_err("the array is not C-contiguous"))?;
                return use_bytes(DType::$d, bytemuck::cast_slice(slice));
            }
        )* };
    }
    for_numpy_types!(try_types);
    if let Ok(typed) = array.cast::<PyArrayDyn<bool>>() {
        let readonly = typed.try_readonly().map_err(|e| PyValueError::new_err(e.to_string()))?;
        let slice = readonly.as_slice().map_err(|_| PyValueError::new_err("the array is not C-contiguous"))?;
        return use_bytes(DType::Bool, bytemuck::cast_slice(slice));
    }
    let name = array.dtype().str()?;
    Err(PyTypeError::new_err(format!(
        "numpy arrays of dtype {name} cannot become NDArrays; known: float32, float64, float16, uint8, int32, int8, int64, \
         bool, int16, uint16, uint32, uint64 (in the machine's byte order)"
    )))
}

/// MXNet's number of an element type.
#[pyfunction]
pub(crate) fn dtype_code(name: &str) -> PyResult<i32> {
    dtype(name).map(DType::code)
}

/// The name of the element type with this number, as attributes spell it.
#[pyfunction]
pub(crate) fn dtype_of_code(code: &str) -> PyResult<&'static str> {
    let found = code.trim().parse().ok().and_then(DType::from_code);
    found.map(DType::name).ok_or_else(|| {
        crate::errors::plain(FailureKind::Data, &format!("there is no element type with the number {code}"))
    })
}
