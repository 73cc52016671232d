//! Models with their parameters, which calls name the data of: what `mxrt.hpp` is made of.

use crate::border::{Error, c_functions};
use crate::cached_op::borrow;
use crate::handles::{ModelHandle, NDArrayHandle, all, free, get, hold};
use crate::ndarray::context;
use crate::outputs::deliver;
use crate::pointers::{count, distinct, list, put, read, text, texts};
use crate::process::np_shape;
use crate::returned::{self, ResultPlace};
use crate::runtime::runtime;
use crate::symbol;
use mxrt::params::Params;
use mxrt::{CallOptions, Model, NDArray, Symbol, ValueInfo};
use std::ffi::{c_char, c_int, c_void};
use std::time::{Duration, Instant};

/// How a call is made. `size` is that of the struct; all other fields zero are an ordinary call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MXRTCallOptions {
    size: usize,
    deadline: f64,
    priority: i32,
    cancel_on_drop: i32,
}

/// The arguments of both functions that make models, besides symbol and parameters.
struct Wanted {
    inputs: (u32, *const *const c_char),
    device: (c_int, c_int),
    flags: (u32, *const *const c_char, *const *const c_char),
}

impl Wanted {
    /// # Safety
    /// The pointers are null or point to what their names say.
    unsafe fn make(self, symbol: Symbol, params: Params, out: *mut ModelHandle) -> Result<(), Error> {
        // SAFETY: contract.
        let inputs = unsafe { texts(self.inputs.1, count(self.inputs.0, "num_inputs")?, "input_names")? };
        let number = count(self.flags.0, "num_flags")?;
        // SAFETY: contract.
        let keys = unsafe { distinct(self.flags.1, number, "flag_keys")? };
        // SAFETY: contract.
        let vals = unsafe { texts(self.flags.2, number, "flag_vals")? };
        let runtime = runtime()?;
        let builder = Model::builder().engine(runtime.engine).build_options(runtime.plans);
        let builder = builder.random(runtime.random.clone()).device(context(self.device.0, self.device.1)?);
        let flags = keys.into_iter().zip(vals);
        let builder = flags.fold(builder.inputs(inputs), |builder, (key, value)| builder.flag(key, value));
        let model = builder.from_symbol(symbol, params)?;
        // SAFETY: contract.
        unsafe { put(out, std::ptr::null_mut(), "out")? };
        // SAFETY: contract.
        unsafe { put(out, hold(model), "out") }
    }
}

/// # Safety
/// `options` is null or points to such a struct, of the size that it says.
unsafe fn call_options(options: *const MXRTCallOptions) -> Result<CallOptions, Error> {
    if options.is_null() {
        return Ok(CallOptions::default());
    }
    // SAFETY: contract; every version of the struct begins with its size.
    let size = unsafe { read(options.cast::<usize>(), "options")? };
    if size != size_of::<MXRTCallOptions>() {
        let wanted = size_of::<MXRTCallOptions>();
        return Err(Error::value(format!("options->size is {size}; expected sizeof(MXRTCallOptions), {wanted}")));
    }
    // SAFETY: contract.
    let given = unsafe { read(options, "options")? };
    let mut made =
        CallOptions { priority: given.priority, cancel_on_drop: given.cancel_on_drop != 0, ..CallOptions::default() };
    if given.deadline != 0.0 {
        let wait = Duration::try_from_secs_f64(given.deadline).map_err(|_| {
            Error::value(format!("options->deadline is {}; expected seconds, more than 0, or 0", given.deadline))
        })?;
        // What lies beyond the clock never comes.
        made.deadline = Instant::now().checked_add(wait);
    }
    Ok(made)
}

/// Names of inputs or outputs.
///
/// # Safety
/// The pointers are null or point to places for the results.
unsafe fn names(
    place: ResultPlace,
    values: &[ValueInfo],
    out_size: *mut u32,
    out_str_array: *mut *mut *const c_char,
) -> Result<(), Error> {
    // SAFETY: contract.
    unsafe { put(out_size, values.len() as u32, "out_size")? };
    let names = values.iter().map(|value| value.name.clone()).collect();
    // SAFETY: contract.
    unsafe { put(out_str_array, returned::texts(place, names)?, "out_str_array") }
}

c_functions! {
    /// Loads a model from its files. `input_names` are the inputs of a call, in order; all other
    /// inputs of the symbol are parameters. Without parameters `param_file` is null. Flags are those
    /// of `MXCreateCachedOpEx`.
    fn MXRTModelLoad(
        symbol_file: *const c_char,
        param_file: *const c_char,
        num_inputs: u32,
        input_names: *const *const c_char,
        dev_type: c_int,
        dev_id: c_int,
        num_flags: u32,
        flag_keys: *const *const c_char,
        flag_vals: *const *const c_char,
        out: *mut ModelHandle,
    ) {
        let memory = runtime()?.engine.memory();
        let symbol = symbol::parse(&mxrt::internal::io::read_text_within(text(symbol_file, "symbol_file")?, memory)?)?;
        let params = match param_file.is_null() {
            true => Params::default(),
            false => mxrt::params::load(runtime()?.engine, text(param_file, "param_file")?, np_shape())?,
        };
        let flags = (num_flags, flag_keys, flag_vals);
        Wanted { inputs: (num_inputs, input_names), device: (dev_type, dev_id), flags }.make(symbol, params, out)
    }

    /// Variant of `MXRTModelLoad` for the content of the files. Without parameters `param_size` is
    /// 0.
    fn MXRTModelCreate(
        symbol_json_str: *const c_char,
        param_bytes: *const c_void,
        param_size: usize,
        num_inputs: u32,
        input_names: *const *const c_char,
        dev_type: c_int,
        dev_id: c_int,
        num_flags: u32,
        flag_keys: *const *const c_char,
        flag_vals: *const *const c_char,
        out: *mut ModelHandle,
    ) {
        let symbol = symbol::parse(text(symbol_json_str, "symbol_json_str")?)?;
        let bytes = list(param_bytes.cast::<u8>(), param_size, "param_bytes")?;
        let params = match bytes {
            [] => Params::default(),
            bytes => mxrt::params::load_from_bytes(runtime()?.engine, bytes, np_shape())?,
        };
        let flags = (num_flags, flag_keys, flag_vals);
        Wanted { inputs: (num_inputs, input_names), device: (dev_type, dev_id), flags }.make(symbol, params, out)
    }

    /// Names of the inputs of a call, in order.
    fn MXRTModelListInputs(handle: ModelHandle, out_size: *mut u32, out_str_array: *mut *mut *const c_char) {
        names(ResultPlace::of("inputs of models"), get::<Model>(handle)?.inputs(), out_size, out_str_array)
    }

    /// Names of the outputs, in order.
    fn MXRTModelListOutputs(handle: ModelHandle, out_size: *mut u32, out_str_array: *mut *mut *const c_char) {
        names(ResultPlace::of("outputs of models"), get::<Model>(handle)?.outputs(), out_size, out_str_array)
    }

    /// Calls a model. Returns at once; the results are computed in the background. `options` may be
    /// null. `num_outputs` and `outputs` are as for `MXInvokeCachedOp`.
    fn MXRTModelCall(
        handle: ModelHandle,
        num_inputs: c_int,
        inputs: *const NDArrayHandle,
        options: *const MXRTCallOptions,
        num_outputs: *mut c_int,
        outputs: *mut *mut NDArrayHandle,
    ) {
        let model = get::<Model>(handle)?;
        let inputs = all::<NDArray>(list(inputs, count(num_inputs, "num_inputs")?, "inputs")?)?;
        let options = call_options(options)?;
        deliver("MXRTModelCall", num_outputs, outputs, |outputs| Ok(model.call(&borrow(&inputs), outputs, &options)?))
    }

    /// Frees a model. Running calls continue.
    fn MXRTModelFree(handle: ModelHandle) {
        free::<Model>(handle)
    }
}
