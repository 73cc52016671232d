//! Arrays: the base class of `mxrt.nd.NDArray`, and functions that make, copy and index arrays.

use crate::arithmetic::{Sign, apply, assign};
use crate::convert;
use crate::imported::Imported;
use crate::settable::Settable;
use crate::{errors, new_numpy, runtime};
use mxrt_engine::{Engine, EngineKind, FailureKind, OpError, Var};
use mxrt_tensor::index::{self, Region};
use mxrt_tensor::{Context, DType, NDArray, ResultArray, Shape, StorageType, TensorRef, TensorType};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyTuple, PyType};
use std::borrow::Cow;

/// Copies of up to this many bytes are made without giving the interpreter's lock back.
const QUICK_COPY: usize = 64 * 1024;

/// An array whose content the engine computes. Python code uses the subclass `mxrt.nd.NDArray`.
#[pyclass(frozen, subclass, module = "mxrt._mxrt")]
pub(crate) struct NDArrayBase {
    held: Settable<ResultArray>,
}

impl NDArrayBase {
    /// The array. Waits where its shape is still to come; raises the failure of what should make
    /// it.
    pub(crate) fn array(&self, py: Python<'_>) -> PyResult<&NDArray> {
        match self.held.get() {
            Some(array) => Ok(array),
            None => runtime::wait_for_value(py, |poll| self.held.wait(poll)),
        }
    }

    fn view(&self, py: Python<'_>, start: usize, shape: Vec<usize>) -> PyResult<NDArray> {
        let view = self.array(py)?.view(start, Shape::from(shape));
        view.ok_or_else(|| PyIndexError::new_err("the view lies outside of the array"))
    }

    /// The variable that tells when the value is there; does not wait.
    pub(crate) fn var(&self) -> &Var {
        self.held.var()
    }

    /// The engine that computes the array; does not wait.
    pub(crate) fn engine(&self) -> &'static Engine {
        self.held.engine()
    }

    /// The context of the array; does not wait.
    pub(crate) fn context(&self) -> Context {
        self.held.context()
    }
}

/// The Python class of an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// `mxrt.nd.NDArray`
    Nd,
    /// `mxrt.np.ndarray`
    Np,
}

/// The Python object of an array, of class `mxrt.nd.NDArray`.
pub(crate) fn wrap(py: Python<'_>, array: NDArray) -> PyResult<Bound<'_, PyAny>> {
    wrap_as(py, Class::Nd, array)
}

/// The Python object of an array.
pub(crate) fn wrap_as(py: Python<'_>, class: Class, array: NDArray) -> PyResult<Bound<'_, PyAny>> {
    wrap_result(py, class, array.into())
}

/// An array without elements.
fn nothing(py: Python<'_>) -> PyResult<NDArray> {
    let tensor = TensorType::new(DType::F32, [0].as_slice());
    NDArray::new(runtime::runtime()?.engine, Context::cpu(0), tensor).map_err(|e| errors::from_op(py, &e))
}

static ND: Imported<PyType> = Imported::new();
static NP: Imported<PyType> = Imported::new();
const NP_MODULE: &str = "mxrt.numpy.multiarray";

/// Whether an array is of class `mxrt.np.ndarray`. Loads no module: before that of the class is
/// loaded, there is no such array.
pub(crate) fn is_np(array: &Bound<'_, NDArrayBase>) -> PyResult<bool> {
    let (py, class) = (array.py(), array.get_type());
    if NP.get(py).is_some_and(|np| class.is(np)) {
        return Ok(true);
    }
    if ND.get(py).is_some_and(|nd| class.is(nd)) {
        return Ok(false);
    }
    if NP.get(py).is_none() && !PyModule::import(py, "sys")?.getattr("modules")?.contains(NP_MODULE)? {
        return Ok(false);
    }
    class.is_subclass(np_class(py)?)
}

/// The class `mxrt.np.ndarray`. Its package is loaded first, in a turn with other threads that load
/// something.
fn np_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    if NP.get(py).is_none() {
        PyModule::import(py, "mxrt._imports")?.call_method1("load", ("mxrt.numpy",))?;
    }
    NP.import(py, NP_MODULE, "ndarray")
}

/// The Python object of a result.
pub(crate) fn wrap_result(py: Python<'_>, class: Class, result: ResultArray) -> PyResult<Bound<'_, PyAny>> {
    static CSR: Imported<PyType> = Imported::new();
    static ROW_SPARSE: Imported<PyType> = Imported::new();
    const SPARSE: &str = "mxrt.ndarray._sparse_arrays";
    // No array whose shape follows from contents is sparse.
    let storage = result.get().map_or(StorageType::Default, NDArray::storage_type);
    let class = match (storage, class) {
        (StorageType::Default, Class::Nd) => ND.import(py, "mxrt.ndarray.ndarray", "NDArray")?,
        (StorageType::Default, Class::Np) => np_class(py)?,
        (StorageType::Csr, _) => CSR.import(py, SPARSE, "CSRNDArray")?,
        (StorageType::RowSparse, _) => ROW_SPARSE.import(py, SPARSE, "RowSparseNDArray")?,
    };
    class.call1((Bound::new(py, NDArrayBase { held: Settable::new(result) })?,))
}

/// The array of a `ctypes` handle; TypeError or ValueError for anything else.
fn of_handle<'py>(handle: &Bound<'py, PyAny>) -> PyResult<Bound<'py, NDArrayBase>> {
    let array = PyModule::import(handle.py(), "mxrt.ndarray._handles")?.getattr("array_of")?.call1((handle,))?;
    Ok(array.cast_into::<NDArrayBase>()?)
}

#[pymethods]
impl NDArrayBase {
    /// Another handle to the same array: how subclasses are made. Without one an array of no
    /// elements, which `_become` fills: what pickles of MXNet begin with. Callbacks written for
    /// MXNet give a `ctypes` handle.
    #[new]
    #[pyo3(signature = (source = None, writable = true))]
    fn new(py: Python<'_>, source: Option<&Bound<'_, PyAny>>, writable: bool) -> PyResult<NDArrayBase> {
        let _ = writable;
        let held = match source {
            Some(source) => match source.cast::<NDArrayBase>() {
                Ok(array) => (*array.get().held).clone(),
                Err(_) => (*of_handle(source)?.get().held).clone(),
            },
            None => nothing(py)?.into(),
        };
        Ok(NDArrayBase { held: Settable::new(held) })
    }

    /// Takes the place of an array of no elements, once: RuntimeError the second time.
    fn _become(&self, other: &Bound<'_, NDArrayBase>) -> PyResult<()> {
        if self.held.set((*other.get().held).clone()) {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("this array has become another one already; assign to its elements instead"))
    }

    /// Extents.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array(py)?.shape().iter())
    }

    /// Number of elements.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.array(py)?.shape().size())
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.array(py)?.shape().len())
    }

    /// Name of the element type.
    #[getter]
    fn _dtype_name(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.array(py)?.dtype().name())
    }

    /// Name of the storage type.
    #[getter]
    fn _stype(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.array(py)?.storage_type().name())
    }

    /// Device type and number.
    #[getter]
    fn _device(&self) -> (Cow<'static, str>, i32) {
        let context = self.context();
        (context.device_type.name(), context.device_id)
    }

    /// Waits until the value is there; raises the failure of the operator that should have made it.
    fn wait_to_read(&self, py: Python<'_>) -> PyResult<()> {
        let array = self.array(py)?;
        let engine = array.engine();
        if engine.is_ready(array.var()) && array.var().failure().is_none() {
            return Ok(());
        }
        runtime::wait_for_value(py, |poll| match poll {
            Some(poll) => engine.wait_to_read_with(array.var(), poll),
            None => engine.wait_to_read(array.var()),
        })
    }

    /// Waits until all readers and writers of the value are done.
    fn wait_to_write(&self, py: Python<'_>) -> PyResult<()> {
        let array = self.array(py)?;
        let engine = array.engine();
        runtime::wait_for_value(py, |poll| match poll {
            Some(poll) => engine.wait_to_write_with(array.var(), poll),
            None => engine.wait_to_write(array.var()),
        })
    }

    /// A copy of the elements as a numpy array, after waiting for them.
    fn _to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.array(py)?;
        let (made, place) = match new_numpy::array(py, &array.tensor_type()) {
            Ok(made) => made,
            // The failure of the operator comes first: perhaps there was no memory for it, either.
            Err(error) => return self.wait_to_read(py).and(Err(error)),
        };
        // The copy belongs to the caller; its size is bounded like that of an array.
        let copied = |value: TensorRef<'_>| -> Result<(), OpError> {
            let _charge = array.engine().memory().charge(value.bytes().len())?;
            // SAFETY: `made` lives to the end of this method, and nobody else has it before.
            unsafe { place.fill(&value) };
            Ok(())
        };
        // The naive engine may run an operator here that waited for the end of the read, and this
        // thread has the interpreter's lock.
        let briefly = array.engine().kind() != EngineKind::Naive;
        let done = match briefly.then(|| array.read_briefly(copied)).flatten() {
            Some(done) => done,
            None => runtime::wait_for_value(py, |poll| {
                let value = match poll {
                    Some(poll) => array.read_with(poll)?,
                    None => array.read()?,
                };
                Ok(copied(value.tensor()))
            })?,
        };
        done.map_err(|e| errors::from_op(py, &e))?;
        Ok(made)
    }

    /// An array over the same elements: `shape` of them, the first one at position `start`.
    fn _view<'py>(&self, py: Python<'py>, start: usize, shape: Vec<usize>) -> PyResult<Bound<'py, PyAny>> {
        wrap(py, self.view(py, start, shape)?)
    }

    /// Such an array as `mxrt.np.ndarray`.
    fn _view_np<'py>(&self, py: Python<'py>, start: usize, shape: Vec<usize>) -> PyResult<Bound<'py, PyAny>> {
        wrap_as(py, Class::Np, self.view(py, start, shape)?)
    }

    /// True when both are views of one storage.
    fn _shares_storage(&self, py: Python<'_>, other: &NDArrayBase) -> PyResult<bool> {
        Ok(self.array(py)?.same_storage(other.array(py)?))
    }

    // ---- signs

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        apply(slf, other, Sign::Add)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        apply(slf, other, Sign::Add)
    }

    fn __iadd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(slf, other, Sign::Add)
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        apply(slf, other, Sign::Sub)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        apply(slf, other, Sign::ReflectedSub)
    }

    fn __isub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(slf, other, Sign::Sub)
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        apply(slf, other, Sign::Mul)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        apply(slf, other, Sign::Mul)
    }

    fn __imul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(slf, other, Sign::Mul)
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        apply(slf, other, Sign::Div)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        apply(slf, other, Sign::ReflectedDiv)
    }

    fn __itruediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(slf, other, Sign::Div)
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        apply(slf, other, Sign::Mod)
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        apply(slf, other, Sign::ReflectedMod)
    }

    fn __imod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(slf, other, Sign::Mod)
    }

    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        no_modulo(modulo)?;
        apply(slf, other, Sign::Power)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        no_modulo(modulo)?;
        apply(slf, other, Sign::ReflectedPower)
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        compare: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        apply(slf, other, Sign::from(compare))
    }
}

/// `pow` with three arguments is for whole numbers.
fn no_modulo(modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulo {
        None => Ok(()),
        Some(_) => Err(PyTypeError::new_err("pow() of arrays takes no third argument")),
    }
}

type Axes = Vec<(usize, isize)>;

fn region(start: usize, axes: Axes) -> Region {
    Region { start, axes: axes.into_iter().collect() }
}

/// A new array of this shape and dtype. Its content is zero.
#[pyfunction]
pub(crate) fn zeroed<'py>(
    py: Python<'py>,
    shape: Vec<usize>,
    dtype: &str,
    device: (&str, i32),
) -> PyResult<Bound<'py, PyAny>> {
    let context = convert::context(device).map_err(|e| errors::from_op(py, &e))?;
    let tensor = TensorType::new(convert::dtype(dtype)?, Shape::from(shape));
    let array = NDArray::new(runtime::runtime()?.engine, context, tensor).map_err(|e| errors::from_op(py, &e))?;
    wrap(py, array)
}

/// A new array with the elements of a C-contiguous numpy array.
#[pyfunction]
pub(crate) fn from_numpy<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyUntypedArray>,
    device: (&str, i32),
) -> PyResult<Bound<'py, PyAny>> {
    let context = convert::context(device).map_err(|e| errors::from_op(py, &e))?;
    let engine = runtime::runtime()?.engine;
    let shape = Shape::new(source.shape());
    let array = convert::with_bytes(source, |dtype, bytes| {
        let tensor = TensorType::new(dtype, shape);
        let made = if bytes.len() <= QUICK_COPY {
            NDArray::from_bytes(engine, context, tensor, bytes)
        } else {
            py.detach(|| NDArray::from_bytes(engine, context, tensor, bytes))
        };
        made.map_err(|e| errors::from_op(py, &e))
    })?;
    wrap(py, array)
}

/// Copies elements at regular distances; a region is a first position, and length and distance of
/// each axis.
#[pyfunction]
pub(crate) fn copy_region(
    py: Python<'_>,
    target: &NDArrayBase,
    into: (usize, Axes),
    source: &NDArrayBase,
    from_: (usize, Axes),
) -> PyResult<()> {
    let _site = runtime::push_site(py)?;
    index::copy_region(target.array(py)?, region(into.0, into.1), source.array(py)?, region(from_.0, from_.1))
        .map_err(|e| errors::from_op(py, &e))
}

/// The positions of a C-contiguous int64 numpy array.
fn positions(array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<usize>> {
    convert::with_bytes(array, |dtype, bytes| {
        if dtype != mxrt_tensor::DType::I64 {
            return Err(errors::plain(FailureKind::Type, &format!("positions must be int64, not {dtype}")));
        }
        let numbers: &[i64] = bytemuck::cast_slice(bytes);
        numbers.iter().map(|n| usize::try_from(*n).map_err(|e| PyIndexError::new_err(e.to_string()))).collect()
    })
}

/// A new array of the elements at these positions, in the shape of `at`.
#[pyfunction]
pub(crate) fn gather<'py>(
    py: Python<'py>,
    source: &NDArrayBase,
    at: &Bound<'py, PyUntypedArray>,
) -> PyResult<Bound<'py, PyAny>> {
    let _site = runtime::push_site(py)?;
    let shape = Shape::new(at.shape());
    let made = index::gather(source.array(py)?, positions(at)?, shape).map_err(|e| errors::from_op(py, &e))?;
    wrap(py, made)
}

/// Stores the elements of `source` at these positions of `target`.
#[pyfunction]
pub(crate) fn scatter(
    py: Python<'_>,
    target: &NDArrayBase,
    at: &Bound<'_, PyUntypedArray>,
    source: &NDArrayBase,
) -> PyResult<()> {
    let _site = runtime::push_site(py)?;
    index::scatter(target.array(py)?, positions(at)?, source.array(py)?).map_err(|e| errors::from_op(py, &e))
}
