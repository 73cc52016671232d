//! Models with their parameters, which calls name the data of: what `mxrt.hpp` is made of.

use crate::border::{Error, c_functions};
use crate::cached_op::{borrow, deliver, report};
use crate::handles::{ModelHandle, NDArrayHandle, all, free, get, hold};
use crate::ndarray::context;
use crate::pointers::{count, list, put, read, text, texts};
use crate::process::np_shape;
use crate::returned;
use crate::runtime::runtime;
use mxrt::params::Params;
use mxrt::{BoundOp, CachedOp, CachedOpFlags, CallOptions, Context, LoadOptions, NDArray, Symbol};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Names that a message lists at most.
const MAX_LISTED: usize = 10;

/// A compiled symbol with its parameters.
pub(crate) struct Model {
    bound: BoundOp,
    inputs: Vec<String>,
    outputs: Vec<String>,
    /// by input of the graph: which of the caller's inputs it is
    order: Vec<usize>,
}

/// How a call is made. `size` is that of the struct; all other fields zero are an ordinary call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MXRTCallOptions {
    size: usize,
    deadline: f64,
    priority: i32,
    cancel_on_drop: i32,
}

/// What both functions that make models are given beside symbol and parameters.
struct Wanted {
    inputs: (u32, *const *const c_char),
    device: (c_int, c_int),
    flags: (u32, *const *const c_char, *const *const c_char),
}

fn listed(names: &[&str]) -> String {
    let more = names.len().saturating_sub(MAX_LISTED);
    let first = names[..names.len() - more].join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

fn load_symbol(json: &str) -> Result<Symbol, Error> {
    let options = LoadOptions { max_nodes: runtime()?.max_nodes, ..LoadOptions::default() };
    Ok(Symbol::load_json_with(json, options)?.symbol)
}

/// The arrays of a file by the names of a symbol's inputs, without `arg:` and `aux:`.
fn by_name(params: Params) -> Result<HashMap<String, NDArray>, Error> {
    match params {
        Params::Named(named) => {
            let bare = |name: String| match name.split_once(':') {
                Some(("arg" | "aux", bare)) => bare.to_owned(),
                _ => name,
            };
            Ok(named.into_iter().map(|(name, array)| (bare(name), array)).collect())
        }
        Params::List(arrays) if arrays.is_empty() => Ok(HashMap::new()),
        Params::List(_) => Err(Error::value("the arrays of the parameter file have no names")),
    }
}

impl Model {
    fn new(
        symbol: &Symbol,
        params: Params,
        inputs: Vec<String>,
        place: Context,
        flags: Vec<(&str, &str)>,
    ) -> Result<Model, Error> {
        let runtime = runtime()?;
        let names = symbol.list_inputs();
        let mut params = by_name(params)?;
        if let Some(name) = inputs.iter().find(|name| !names.contains(name)) {
            let free: Vec<&str> = names.iter().map(String::as_str).filter(|n| !params.contains_key(*n)).collect();
            let message = format!(
                "the model has no input '{name}'; its inputs without a value in the parameter file are {}",
                listed(&free)
            );
            return Err(Error::value(message));
        }
        let (mut arrays, mut order, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for name in &names {
            let given = inputs.iter().position(|input| input == name);
            let array = if given.is_none() { params.remove(name) } else { None };
            match (given, array) {
                (Some(place), _) => order.push(place),
                (None, None) => missing.push(name.as_str()),
                (None, Some(array)) => {
                    let here = if array.context() == place { array } else { array.copy_to_context(place)? };
                    arrays.push(Some(here));
                    continue;
                }
            }
            arrays.push(None);
        }
        if !missing.is_empty() {
            let message = format!(
                "the parameter file has no value for {}: name them as inputs, or give the file that belongs to the symbol",
                listed(&missing)
            );
            return Err(Error::value(message));
        }
        if let Some(twice) = (1..inputs.len()).find(|i| inputs[..*i].contains(&inputs[*i])) {
            return Err(Error::value(format!("the input '{}' is named twice", inputs[twice])));
        }
        let of_params: String = (0..names.len()).filter(|i| arrays[*i].is_some()).map(|i| format!("{i},")).collect();
        let of_data: String = (0..names.len()).filter(|i| arrays[*i].is_none()).map(|i| format!("{i},")).collect();
        let (of_params, of_data) = (format!("({of_params})"), format!("({of_data})"));
        let known = [("param_indices", of_params.as_str()), ("data_indices", of_data.as_str())];
        let flags = CachedOpFlags::parse(flags.into_iter().chain(known))?;
        let op = CachedOp::compile(runtime.engine, symbol, &flags, runtime.plans)?.with_random(runtime.random.clone());
        let arrays: Vec<Option<&NDArray>> = arrays.iter().map(Option::as_ref).collect();
        let bound = BoundOp::new(Arc::new(op), &arrays)?;
        Ok(Model { bound, inputs, outputs: symbol.list_outputs(), order })
    }

    /// The caller's inputs in the order of the graph.
    fn in_order<'a>(&self, inputs: &[&'a NDArray]) -> Result<Vec<&'a NDArray>, Error> {
        if inputs.len() != self.inputs.len() {
            let names: Vec<&str> = self.inputs.iter().map(String::as_str).collect();
            let message = format!(
                "the model takes {} inputs ({}), but {} were given",
                self.inputs.len(),
                listed(&names),
                inputs.len()
            );
            return Err(Error::value(message));
        }
        Ok(self.order.iter().map(|place| inputs[*place]).collect())
    }
}

impl Wanted {
    /// # Safety
    /// The pointers are null or point to what their names say.
    unsafe fn make(self, symbol: &Symbol, params: Params, out: *mut ModelHandle) -> Result<(), Error> {
        // SAFETY: contract.
        let inputs = unsafe { texts(self.inputs.1, count(self.inputs.0, "num_inputs")?, "input_names")? };
        let number = count(self.flags.0, "num_flags")?;
        // SAFETY: contract.
        let keys = unsafe { texts(self.flags.1, number, "flag_keys")? };
        // SAFETY: contract.
        let vals = unsafe { texts(self.flags.2, number, "flag_vals")? };
        let place = context(self.device.0, self.device.1)?;
        let inputs = inputs.into_iter().map(str::to_owned).collect();
        let model = Model::new(symbol, params, inputs, place, keys.into_iter().zip(vals).collect())?;
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
        let symbol = load_symbol(&mxrt::io::read_text(text(symbol_file, "symbol_file")?)?)?;
        let params = match param_file.is_null() {
            true => Params::List(Vec::new()),
            false => mxrt::params::load(runtime()?.engine, text(param_file, "param_file")?, np_shape())?,
        };
        let flags = (num_flags, flag_keys, flag_vals);
        Wanted { inputs: (num_inputs, input_names), device: (dev_type, dev_id), flags }.make(&symbol, params, out)
    }

    /// As `MXRTModelLoad`, for the content of the files. Without parameters `param_size` is 0.
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
        let symbol = load_symbol(text(symbol_json_str, "symbol_json_str")?)?;
        let bytes = list(param_bytes.cast::<u8>(), param_size, "param_bytes")?;
        let params = match bytes {
            [] => Params::List(Vec::new()),
            bytes => mxrt::params::load_from_bytes(runtime()?.engine, bytes, np_shape())?,
        };
        let flags = (num_flags, flag_keys, flag_vals);
        Wanted { inputs: (num_inputs, input_names), device: (dev_type, dev_id), flags }.make(&symbol, params, out)
    }

    /// Names of the inputs of a call, in order.
    fn MXRTModelListInputs(handle: ModelHandle, out_size: *mut u32, out_str_array: *mut *mut *const c_char) {
        let model = get::<Model>(handle)?;
        put(out_size, model.inputs.len() as u32, "out_size")?;
        put(out_str_array, returned::texts(model.inputs.clone())?, "out_str_array")
    }

    /// Names of the outputs, in order.
    fn MXRTModelListOutputs(handle: ModelHandle, out_size: *mut u32, out_str_array: *mut *mut *const c_char) {
        let model = get::<Model>(handle)?;
        put(out_size, model.outputs.len() as u32, "out_size")?;
        put(out_str_array, returned::texts(model.outputs.clone())?, "out_str_array")
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
        let inputs = borrow(&inputs);
        let inputs = model.in_order(&inputs)?;
        let options = call_options(options)?;
        let call = |outputs: Option<&[&NDArray]>| {
            let made = model.bound.call_with(&inputs, outputs, &options)?;
            report(made.iter())?;
            Ok(made)
        };
        deliver(num_outputs, outputs, call).map(drop)
    }

    /// Frees a model. Calls that run go on.
    fn MXRTModelFree(handle: ModelHandle) {
        free::<Model>(handle)
    }
}
