//! Sparse arrays: made of numpy arrays, their parts, and conversion.

use crate::convert;
use crate::exit::PythonCall;
use crate::imported::Imported;
use crate::ndarray::{NDArrayBase, wrap};
use crate::{errors, runtime};
use mxrt_engine::{FailureKind, OpError, WaitError};
use mxrt_ops::{CallAttrs, OpDef};
use mxrt_tensor::{Context, DType, NDArray, Shape, SparseContent, StorageType, TensorType, copied};
use numpy::PyUntypedArray;
use pyo3::prelude::*;

fn storage(name: &str) -> PyResult<StorageType> {
    StorageType::from_name(name).ok_or_else(|| {
        let message = format!("unknown storage type '{name}'; known: default, row_sparse, csr");
        errors::plain(FailureKind::Value, &message)
    })
}

fn new_array(py: Python<'_>, stype: &str, tensor: TensorType, device: (&str, i32)) -> PyResult<NDArray> {
    let context = convert::context(device).map_err(|e| errors::from_op(py, &e))?;
    NDArray::new_stored(runtime::runtime()?.engine, context, tensor, storage(stype)?)
        .map_err(|e| errors::from_op(py, &e))
}

/// A new array of this storage type. Its elements are zero.
#[pyfunction]
pub(crate) fn zeroed_stored<'py>(
    py: Python<'py>,
    stype: &str,
    shape: Vec<usize>,
    dtype: &str,
    device: (&str, i32),
) -> PyResult<Bound<'py, PyAny>> {
    let tensor = TensorType::new(convert::dtype(dtype)?, Shape::from(shape));
    wrap(py, new_array(py, stype, tensor, device)?)
}

/// The numbers of a C-contiguous int64 numpy array.
fn numbers(array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<i64>> {
    convert::with_bytes(array, |dtype, bytes| {
        if dtype != DType::I64 {
            return Err(errors::plain(FailureKind::Type, &format!("positions must be int64, not {dtype}")));
        }
        copied(bytemuck::cast_slice(bytes)).map_err(|e| errors::from_op(array.py(), &e))
    })
}

/// A new sparse array of C-contiguous numpy arrays: values, columns or row numbers, and for csr row
/// pointers. Positions that are not those of such an array are a failure that the array holds.
#[pyfunction]
pub(crate) fn from_parts<'py>(
    py: Python<'py>,
    stype: &str,
    shape: Vec<usize>,
    parts: (Bound<'py, PyUntypedArray>, Bound<'py, PyUntypedArray>, Option<Bound<'py, PyUntypedArray>>),
    device: (&str, i32),
) -> PyResult<Bound<'py, PyAny>> {
    let (dtype, values) =
        convert::with_bytes(&parts.0, |dtype, bytes| Ok((dtype, copied(bytes).map_err(|e| errors::from_op(py, &e))?)))?;
    let indices = numbers(&parts.1)?;
    let pointers = parts.2.as_ref().map(numbers).transpose()?.unwrap_or_default();
    let array = new_array(py, stype, TensorType::new(dtype, Shape::from(shape)), device)?;
    let _site = runtime::push_site(py)?;
    let filled = array.fill_stored("sparse array", move |engine, storage, tensor| {
        let content = SparseContent::new(engine, storage, tensor, &values, &indices, &pointers);
        content.map_err(|e| e.op(storage.name()))
    });
    filled.map_err(|e| errors::from_op(py, &e))?;
    wrap(py, array)
}

/// A copy of a part of a sparse array, after waiting for it: 0 the values, 1 the columns or row
/// numbers, 2 the row pointers.
#[pyfunction]
pub(crate) fn sparse_part<'py>(py: Python<'py>, array: &NDArrayBase, part: usize) -> PyResult<Bound<'py, PyAny>> {
    let array = array.array(py)?;
    let made = runtime::wait_for_value(py, |poll| {
        let guard = array.read_stored(poll)?;
        Ok::<_, WaitError>(copy_part(array, &guard, part))
    })?;
    wrap(py, made.map_err(|e| errors::from_op(py, &e))?)
}

fn copy_part(array: &NDArray, guard: &mxrt_tensor::StoredGuard<'_>, part: usize) -> Result<NDArray, OpError> {
    let Some(content) = guard.parts()? else {
        return Err(OpError::new(FailureKind::Value, "a dense array has no parts; make it sparse by tostype first"));
    };
    let make = |tensor, bytes: &[u8]| NDArray::from_bytes(array.engine(), array.context(), tensor, bytes);
    let numbers = |numbers: &[i64]| make(TensorType::new(DType::I64, [numbers.len()]), bytemuck::cast_slice(numbers));
    match part {
        0 => {
            let values = guard.content()?.values();
            make(TensorType::new(values.dtype, values.shape.clone()), values.bytes())
        }
        1 => numbers(content.indices()),
        _ => numbers(content.pointers()),
    }
}

/// A copy of an array in another storage, or in its own.
#[pyfunction]
pub(crate) fn to_storage<'py>(py: Python<'py>, array: &NDArrayBase, stype: &str) -> PyResult<Bound<'py, PyAny>> {
    let _site = runtime::push_site(py)?;
    let made = mxrt_ops::to_storage(array.array(py)?, storage(stype)?).map_err(|e| errors::from_op(py, &e))?;
    wrap(py, made)
}

/// Overwrites an array with the elements of another one, in the storage that it has.
#[pyfunction]
pub(crate) fn convert_into(py: Python<'_>, source: &NDArrayBase, target: &NDArrayBase) -> PyResult<()> {
    let _site = runtime::push_site(py)?;
    mxrt_ops::convert_into(source.array(py)?, target.array(py)?).map_err(|e| errors::from_op(py, &e))
}

/// Warns, as MXNet does, of a call that copies sparse arrays densely.
pub(crate) fn warn_of_dense_copies(
    py: Python<'_>,
    def: &'static OpDef,
    given: CallAttrs<'_>,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
    context: Context,
) -> PyResult<()> {
    mxrt_ops::fallback_warning(def, given, inputs, outputs, context).map_or(Ok(()), |text| warn(py, text))
}

/// Warns of dense copies, once of each kind of call.
pub(crate) fn warn(py: Python<'_>, text: String) -> PyResult<()> {
    if runtime::environment().is_ok_and(|settings| settings.hide_dense_copies) {
        return Ok(());
    }
    static WARN: Imported<PyAny> = Imported::new();
    let _call = PythonCall::enter(py);
    WARN.import(py, "mxrt.ndarray._sparse_arrays", "warn_of_dense_copies")?.call1((text,))?;
    Ok(())
}
