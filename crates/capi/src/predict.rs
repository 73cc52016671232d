//! Predictors: the functions of `c_predict_api.h`.

use crate::border::{Error, guard};
use crate::handles::{NDListHandle, PredictorHandle, free, get, hold};
use crate::ndarray::{context, element_type};
use crate::pointers::{Monitor, MonitorCallback, count, distinct, list, list_mut, put, text, texts};
use crate::process::np_shape;
use crate::returned::{self, ResultPlace};
use crate::runtime::{engine, runtime};
use mxrt::internal::{Predictor, PredictorInputs};
use mxrt::params::Params;
use mxrt::{DType, NDArray, Shape, Symbol};
use std::ffi::{CString, c_char, c_int, c_void};

/// Names and shapes as callers give them.
#[derive(Clone, Copy)]
struct PredictorShapes {
    number: u32,
    keys: *const *const c_char,
    indptr: *const u32,
    data: *const u32,
}

impl PredictorShapes {
    /// # Safety
    /// `number` names, one position more, and as many extents as the last position says.
    unsafe fn read(self) -> Result<Vec<(String, Shape)>, Error> {
        let number = count(self.number, "num_input_nodes")?;
        if number == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: the caller promises `number` names.
        let keys = unsafe { distinct(self.keys, number, "input_keys")? };
        // SAFETY: the caller promises one position more.
        let ends = unsafe { list(self.indptr, number + 1, "input_shape_indptr")? };
        if let Some(pair) = ends.windows(2).find(|pair| pair[0] > pair[1]) {
            let message = format!("the argument input_shape_indptr goes down, from {} to {}", pair[0], pair[1]);
            return Err(Error::value(message));
        }
        // SAFETY: the caller promises as many extents.
        let dims = unsafe { list(self.data, ends[number] as usize, "input_shape_data")? };
        let shape = |i: usize| dims[ends[i] as usize..ends[i + 1] as usize].iter().map(|d| *d as usize).collect();
        Ok(keys.into_iter().enumerate().map(|(i, key)| (key.to_owned(), shape(i))).collect())
    }
}

/// The arguments of all functions that make predictors.
struct PredictorSource {
    symbol: *const c_char,
    params: *const c_void,
    param_size: c_int,
    dev_type: c_int,
    dev_id: c_int,
    shapes: PredictorShapes,
}

impl PredictorSource {
    /// # Safety
    /// The pointers are null or point to what their names say.
    unsafe fn open(self, outputs: &[&str], dtypes: Vec<(String, DType)>) -> Result<Predictor, Error> {
        let runtime = runtime()?;
        // SAFETY: the caller promises a text.
        let json = unsafe { text(self.symbol, "symbol_json_str")? };
        let size = count(self.param_size, "param_size")?;
        // SAFETY: the caller promises as many bytes.
        let bytes = unsafe { list(self.params.cast::<u8>(), size, "param_bytes")? };
        // SAFETY: the caller keeps the promises of the header.
        let shapes = unsafe { self.shapes.read()? };
        let context = context(self.dev_type, self.dev_id)?;
        let mut symbol = crate::symbol::parse(json)?;
        if !outputs.is_empty() {
            symbol = inner(&symbol, outputs)?;
        }
        let params = mxrt::params::load_from_bytes(runtime.engine, bytes, np_shape())?;
        let inputs = PredictorInputs { shapes, dtypes };
        Ok(Predictor::new(runtime.engine, symbol, params, inputs, context, runtime.plans)?)
    }
}

/// The outputs of these nodes.
fn inner(symbol: &Symbol, keys: &[&str]) -> Result<Symbol, Error> {
    let internals = symbol.get_internals();
    let find = |key: &&str| {
        let found = internals.output_named(&format!("{key}_output")).or_else(|| internals.output_named(key));
        found.ok_or_else(|| Error::value(format!("didn't find node name: {key}_output, as output_keys asks for")))
    };
    Ok(Symbol::group(&keys.iter().map(find).collect::<Result<Vec<Symbol>, Error>>()?))
}

/// Stores predictors; the places have been tried before there are handles to lose.
///
/// # Safety
/// `out` is null or points to a place.
unsafe fn give(predictor: Predictor, out: *mut PredictorHandle) -> Result<(), Error> {
    // SAFETY: the caller promises a place for the handle.
    unsafe { put(out, std::ptr::null_mut(), "out")? };
    // SAFETY: as above.
    unsafe { put(out, hold(predictor), "out") }
}

/// Makes a predictor: a symbol's JSON text, the bytes of a parameter file, and the shapes of the
/// inputs, where those of input `i` are `input_shape_data[indptr[i] .. indptr[i + 1]]`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXPredCreate(
    symbol_json_str: *const c_char,
    param_bytes: *const c_void,
    param_size: c_int,
    dev_type: c_int,
    dev_id: c_int,
    num_input_nodes: u32,
    input_keys: *const *const c_char,
    input_shape_indptr: *const u32,
    input_shape_data: *const u32,
    out: *mut PredictorHandle,
) -> c_int {
    let shapes = PredictorShapes {
        number: num_input_nodes,
        keys: input_keys,
        indptr: input_shape_indptr,
        data: input_shape_data,
    };
    let source = PredictorSource { symbol: symbol_json_str, params: param_bytes, param_size, dev_type, dev_id, shapes };
    // SAFETY: the caller keeps the promises of the header.
    guard(|| unsafe { give(source.open(&[], Vec::new())?, out) })
}

/// Variant of `MXPredCreate` with element types of some arguments; others are float32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXPredCreateEx(
    symbol_json_str: *const c_char,
    param_bytes: *const c_void,
    param_size: c_int,
    dev_type: c_int,
    dev_id: c_int,
    num_input_nodes: u32,
    input_keys: *const *const c_char,
    input_shape_indptr: *const u32,
    input_shape_data: *const u32,
    num_provided_arg_dtypes: u32,
    provided_arg_dtype_names: *const *const c_char,
    provided_arg_dtypes: *const c_int,
    out: *mut PredictorHandle,
) -> c_int {
    let shapes = PredictorShapes {
        number: num_input_nodes,
        keys: input_keys,
        indptr: input_shape_indptr,
        data: input_shape_data,
    };
    let source = PredictorSource { symbol: symbol_json_str, params: param_bytes, param_size, dev_type, dev_id, shapes };
    guard(|| {
        let number = count(num_provided_arg_dtypes, "num_provided_arg_dtypes")?;
        // SAFETY: the caller promises as many names.
        let names = unsafe { distinct(provided_arg_dtype_names, number, "provided_arg_dtype_names")? };
        // SAFETY: the caller promises as many codes.
        let codes = unsafe { list(provided_arg_dtypes, number, "provided_arg_dtypes")? };
        let dtype = |(name, code): (&str, &c_int)| Ok((name.to_owned(), element_type(*code)?));
        let dtypes = names.into_iter().zip(codes).map(dtype).collect::<Result<Vec<_>, Error>>()?;
        // SAFETY: the caller keeps the promises of the header.
        unsafe { give(source.open(&[], dtypes)?, out) }
    })
}

/// Variant of `MXPredCreate` with the outputs of these nodes instead of the symbol's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXPredCreatePartialOut(
    symbol_json_str: *const c_char,
    param_bytes: *const c_void,
    param_size: c_int,
    dev_type: c_int,
    dev_id: c_int,
    num_input_nodes: u32,
    input_keys: *const *const c_char,
    input_shape_indptr: *const u32,
    input_shape_data: *const u32,
    num_output_nodes: u32,
    output_keys: *const *const c_char,
    out: *mut PredictorHandle,
) -> c_int {
    let shapes = PredictorShapes {
        number: num_input_nodes,
        keys: input_keys,
        indptr: input_shape_indptr,
        data: input_shape_data,
    };
    let source = PredictorSource { symbol: symbol_json_str, params: param_bytes, param_size, dev_type, dev_id, shapes };
    guard(|| {
        // SAFETY: the caller promises as many names.
        let keys = unsafe { texts(output_keys, count(num_output_nodes, "num_output_nodes")?, "output_keys")? };
        // SAFETY: the caller keeps the promises of the header.
        unsafe { give(source.open(&keys, Vec::new())?, out) }
    })
}

/// Makes `num_threads` predictors of one model. They share the parameters; each has inputs and
/// outputs of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXPredCreateMultiThread(
    symbol_json_str: *const c_char,
    param_bytes: *const c_void,
    param_size: c_int,
    dev_type: c_int,
    dev_id: c_int,
    num_input_nodes: u32,
    input_keys: *const *const c_char,
    input_shape_indptr: *const u32,
    input_shape_data: *const u32,
    num_threads: c_int,
    out: *mut PredictorHandle,
) -> c_int {
    let shapes = PredictorShapes {
        number: num_input_nodes,
        keys: input_keys,
        indptr: input_shape_indptr,
        data: input_shape_data,
    };
    let source = PredictorSource { symbol: symbol_json_str, params: param_bytes, param_size, dev_type, dev_id, shapes };
    guard(|| {
        let number = count(num_threads, "num_threads")?;
        // SAFETY: the caller promises a place for each handle.
        let places = unsafe { list_mut(out, number, "out")? };
        if places.is_empty() {
            return Err(Error::value("the argument num_threads is 0; expected 1 or more"));
        }
        places.fill(std::ptr::null_mut());
        // SAFETY: the caller keeps the promises of the header.
        let first = unsafe { source.open(&[], Vec::new())? };
        let mut made = (1..number).map(|_| first.another()).collect::<Result<Vec<Predictor>, _>>()?;
        made.push(first);
        places.iter_mut().zip(made).for_each(|(place, predictor)| *place = hold(predictor));
        Ok(())
    })
}

/// A predictor for other shapes that shares the parameters. The given one stays valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXPredReshape(
    num_input_nodes: u32,
    input_keys: *const *const c_char,
    input_shape_indptr: *const u32,
    input_shape_data: *const u32,
    handle: PredictorHandle,
    out: *mut PredictorHandle,
) -> c_int {
    let shapes = PredictorShapes {
        number: num_input_nodes,
        keys: input_keys,
        indptr: input_shape_indptr,
        data: input_shape_data,
    };
    guard(|| {
        let predictor = get::<Predictor>(handle)?;
        // SAFETY: the caller keeps the promises of the header.
        unsafe { give(predictor.reshape(shapes.read()?)?, out) }
    })
}

/// The shape of an output, in memory that belongs to the thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXPredGetOutputShape(
    handle: PredictorHandle,
    index: u32,
    shape_data: *mut *mut u32,
    shape_ndim: *mut u32,
) -> c_int {
    guard(|| {
        let predictor = get::<Predictor>(handle)?;
        let dims = returned::extents::<u32>(&predictor.check_output(index as usize)?.shape)?;
        // SAFETY: the caller promises a place for the number.
        unsafe { put(shape_ndim, dims.len() as u32, "shape_ndim")? };
        // SAFETY: the caller promises a place for the pointer.
        unsafe {
            put(shape_data, returned::list(ResultPlace::of_object("shape of an output", handle), dims)?, "shape_data")
        }
    })
}

/// The code of the element type of an output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXPredGetOutputType(handle: PredictorHandle, out_index: u32, out_dtype: *mut c_int) -> c_int {
    guard(|| {
        let predictor = get::<Predictor>(handle)?;
        // SAFETY: the caller promises a place for the number.
        unsafe { put(out_dtype, predictor.check_output(out_index as usize)?.dtype.code(), "out_dtype") }
    })
}

fn sizes_match(have: usize, given: u32) -> Result<(), Error> {
    if have == given as usize {
        return Ok(());
    }
    Err(Error::value(format!("Memory size do not match ({have} vs. {given}): the argument size must be {have}")))
}

/// Sets an input: `size` elements of the input's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXPredSetInput(
    handle: PredictorHandle,
    key: *const c_char,
    data: *const f32,
    size: u32,
) -> c_int {
    guard(|| {
        let predictor = get::<Predictor>(handle)?;
        // SAFETY: the caller promises a text.
        let key = unsafe { text(key, "key")? };
        let tensor = predictor.input(key)?;
        sizes_match(tensor.shape.size(), size)?;
        // SAFETY: the caller promises `size` elements of the input's type.
        let bytes = unsafe { list(data.cast::<u8>(), tensor.bytes(), "data")? };
        Ok(predictor.set_input(key, bytes)?)
    })
}

/// Runs the model on the inputs.
#[unsafe(no_mangle)]
pub extern "C" fn MXPredForward(handle: PredictorHandle) -> c_int {
    guard(|| Ok(get::<Predictor>(handle)?.forward()?))
}

/// One step of a run; `*step_left` says how many follow. The results are there after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXPredPartialForward(handle: PredictorHandle, step: c_int, step_left: *mut c_int) -> c_int {
    guard(|| {
        let predictor = get::<Predictor>(handle)?;
        // SAFETY: the caller promises a place for the number. It is tried before the step runs.
        unsafe { put(step_left, 0, "step_left")? };
        let left = predictor.partial_forward(i64::from(step))?;
        // SAFETY: as above.
        unsafe { put(step_left, c_int::try_from(left).unwrap_or(c_int::MAX), "step_left") }
    })
}

/// Waits for an output and copies its `size` elements, which are of the output's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXPredGetOutput(handle: PredictorHandle, index: u32, data: *mut f32, size: u32) -> c_int {
    guard(|| {
        let predictor = get::<Predictor>(handle)?;
        let tensor = predictor.check_output(index as usize)?;
        sizes_match(tensor.shape.size(), size)?;
        let array = predictor.output(index as usize)?;
        // SAFETY: the caller promises room for `size` elements.
        let to = unsafe { list_mut(data.cast::<u8>(), tensor.bytes(), "data")? };
        to.copy_from_slice(array.read()?.tensor().bytes());
        Ok(())
    })
}

/// Frees a predictor. Running calls continue.
#[unsafe(no_mangle)]
pub extern "C" fn MXPredFree(handle: PredictorHandle) -> c_int {
    guard(|| free::<Predictor>(handle))
}

/// Calls a function with every operator's result at each run, with `monitor_all` with the inputs of
/// operators too; a null function ends that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXPredSetMonitorCallback(
    handle: PredictorHandle,
    callback: MonitorCallback,
    callback_handle: *mut c_void,
    monitor_all: u8,
) -> c_int {
    guard(|| {
        let predictor = get::<Predictor>(handle)?;
        let monitor = Monitor::new(callback, callback_handle).map(Monitor::callback);
        Ok(predictor.set_monitor(monitor, monitor_all != 0)?)
    })
}

/// The arrays of a file, in memory that lives as long as the list.
pub(crate) struct NDList {
    entries: Vec<Entry>,
    /// elements of all arrays, one after the other
    values: Vec<f32>,
}

struct Entry {
    key: CString,
    shape: Vec<u32>,
    /// place of the first element
    start: usize,
}

impl NDList {
    fn push(&mut self, key: String, array: &NDArray) -> Result<(), Error> {
        let cannot = || Error::value(format!("the name {key:?} contains a zero byte and cannot be given to C"));
        let name = CString::new(key.as_str()).map_err(|_| cannot())?;
        let guard = array.read()?;
        let Ok(values) = guard.tensor().as_slice::<f32>() else {
            let message = format!("the array '{key}' is {}; an NDList gives float32 only", array.dtype());
            return Err(Error::value(message));
        };
        let entry = Entry { key: name, shape: returned::extents(array.shape())?, start: self.values.len() };
        self.entries.push(entry);
        self.values.extend_from_slice(values);
        Ok(())
    }
}

/// Loads the bytes of a file of arrays, such as a mean image.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDListCreate(
    nd_file_bytes: *const c_char,
    nd_file_size: c_int,
    out: *mut NDListHandle,
    out_length: *mut u32,
) -> c_int {
    guard(|| {
        let size = count(nd_file_size, "nd_file_size")?;
        // SAFETY: the caller promises as many bytes.
        let bytes = unsafe { list(nd_file_bytes.cast::<u8>(), size, "nd_file_bytes")? };
        let named = match mxrt::params::load_all_from_bytes(engine()?, bytes, np_shape())? {
            Params::Named(named) => named,
            Params::List(arrays) => arrays.into_iter().map(|array| (String::new(), array)).collect(),
        };
        let mut made = NDList { entries: Vec::new(), values: Vec::new() };
        named.into_iter().try_for_each(|(key, array)| made.push(key, &array))?;
        // SAFETY: the caller promises places for the results.
        unsafe { put(out_length, made.entries.len() as u32, "out_length")? };
        // SAFETY: as above.
        unsafe { put(out, std::ptr::null_mut(), "out")? };
        // SAFETY: as above.
        unsafe { put(out, hold(made), "out") }
    })
}

/// Name, content and shape of one array, valid until the list is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDListGet(
    handle: NDListHandle,
    index: u32,
    out_key: *mut *const c_char,
    out_data: *mut *const f32,
    out_shape: *mut *const u32,
    out_ndim: *mut u32,
) -> c_int {
    guard(|| {
        let made = get::<NDList>(handle)?;
        let outside =
            || Error::value(format!("the argument index is {index}, but the list has {} arrays", made.entries.len()));
        let entry = made.entries.get(index as usize).ok_or_else(outside)?;
        // SAFETY: the caller promises places for the results.
        unsafe { put(out_key, entry.key.as_ptr(), "out_key")? };
        // SAFETY: as above.
        unsafe { put(out_data, made.values[entry.start..].as_ptr(), "out_data")? };
        // SAFETY: as above.
        unsafe { put(out_shape, entry.shape.as_ptr(), "out_shape")? };
        // SAFETY: as above.
        unsafe { put(out_ndim, entry.shape.len() as u32, "out_ndim") }
    })
}

/// Frees a list.
#[unsafe(no_mangle)]
pub extern "C" fn MXNDListFree(handle: NDListHandle) -> c_int {
    guard(|| free::<NDList>(handle))
}
