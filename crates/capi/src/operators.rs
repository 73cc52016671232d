//! Operators by name: what is known about them, and calling one.

use crate::arguments::{arguments, columns, counting_argument};
use crate::border::{Error, c_functions};
use crate::cached_op::borrow;
use crate::handles::{NDArrayHandle, OPERATOR, OpHandle, STEP, all, defined, definition};
use crate::ndarray::named_context;
use crate::outputs::{fill, give_made, give_storage_types};
use crate::pointers::{Definitions, StaticText, StaticTexts, count, distinct, list, put, read, text, texts};
use crate::returned::ResultPlace;
use crate::runtime::runtime;
use crate::training::{self, trains};
use mxrt::internal::symbol::CUSTOM_TRAINS;
use mxrt::internal::{
    CallAttrs, FailureKind, ForkSafeLazy, ForkSafeOnce, Inputs, Interrupter, Invocation, OpDef, OpError, Region,
    convert_into, copy_region, registry,
};
use mxrt::{Context, NDArray};
use std::collections::HashMap;
use std::ffi::{c_char, c_int};

/// The operators, in the order of their handles.
static OPERATORS: ForkSafeLazy<Vec<&'static OpDef>> =
    ForkSafeLazy::new(|| registry().ops().iter().copied().filter(|def| !def.internal).collect());

/// Operators of `mx.np` that MXNet's Python package looks for while it is imported. They are
/// listed, and refuse to be used.
const OF_NUMPY: [&str; 1] = ["_np__random_shuffle"];

/// Absent operators in the order of their handles, which follow those of operators.
static ABSENT: ForkSafeLazy<Vec<&'static str>> =
    ForkSafeLazy::new(|| OF_NUMPY.into_iter().filter(|name| by_name(name).is_err()).collect());

/// The names of all operators, aliases included, in alphabetical order, as MXNet lists them.
static NAMES: ForkSafeLazy<(u32, StaticTexts)> = ForkSafeLazy::new(|| {
    let real = OPERATORS.iter().flat_map(|def| std::iter::once(def.name).chain(def.aliases.iter().copied()));
    let mut names: Vec<String> = real.chain(ABSENT.iter().copied()).map(str::to_owned).collect();
    names.sort_unstable();
    (names.len() as u32, StaticTexts::new(names))
});

/// The description of an operator for callers, in memory that lives as long as the process.
struct Info {
    name: StaticText,
    doc: StaticText,
    number: u32,
    /// names, types and descriptions of the arguments
    args: [StaticTexts; 3],
    count: StaticText,
}

/// The operator that a handle stands for.
pub(crate) fn operator(handle: OpHandle) -> Result<&'static OpDef, Error> {
    match absent(handle) {
        Some(name) => Err(Error::absent(format!("the operator {name} is not part of mxrt: it belongs to mx.np"))),
        None => defined(&OPERATORS, OPERATOR, handle, "an operator"),
    }
}

/// The name of an absent operator that a handle stands for.
fn absent(handle: OpHandle) -> Option<&'static str> {
    let first = definition(OPERATOR, OPERATORS.len()).addr();
    let place = handle.addr().checked_sub(first)? / STEP;
    ABSENT.get(place).copied().filter(|_| definition(OPERATOR, OPERATORS.len() + place) == handle)
}

/// The handle of an operator, or of an absent one.
fn handle_of(name: &str) -> Result<OpHandle, Error> {
    match ABSENT.iter().position(|absent| *absent == name) {
        Some(place) => Ok(definition(OPERATOR, OPERATORS.len() + place)),
        None => by_name(name).map(|def| definition(OPERATOR, place(def))),
    }
}

/// The operator of a name or alias.
pub(crate) fn by_name(name: &str) -> Result<&'static OpDef, Error> {
    registry().get(name).filter(|def| !def.internal).ok_or_else(|| {
        let message = format!("Operator {name} is not registered: this build of mxrt does not have it");
        OpError::new(FailureKind::NotImplemented, message).into()
    })
}

/// Copies an array into another, which may have other elements.
pub(crate) fn copy(source: &NDArray, target: &NDArray) -> Result<(), Error> {
    let convert = [("dtype".to_owned(), target.dtype().name().to_owned())];
    let (name, attrs) = if source.dtype() == target.dtype() { ("_copyto", &[][..]) } else { ("Cast", &convert[..]) };
    if source.context().device() == target.context().device() {
        return push(by_name(name)?, attrs, Context::default(), &[source], Some(&[target])).map(drop);
    }
    let converted = match attrs {
        [] => source.clone(),
        _ => push(by_name(name)?, attrs, Context::default(), &[source], None)?.swap_remove(0),
    };
    if converted.is_sparse() || target.is_sparse() {
        return Ok(convert_into(&converted, target)?);
    }
    let (into, from) = (Region::whole(target.shape()), Region::whole(converted.shape()));
    Ok(copy_region(target, into, &converted, from)?)
}

fn info(handle: OpHandle) -> Result<&'static Info, Error> {
    static INFOS: ForkSafeLazy<Vec<ForkSafeOnce<Info>>> =
        ForkSafeLazy::new(|| OPERATORS.iter().map(|_| ForkSafeOnce::new()).collect());
    static OF_ABSENT: ForkSafeLazy<Vec<Info>> = ForkSafeLazy::new(|| ABSENT.iter().map(|name| nothing(name)).collect());
    if let Some(info) = absent(handle).and_then(|name| OF_ABSENT.get(ABSENT.iter().position(|n| *n == name)?)) {
        return Ok(info);
    }
    let def = operator(handle)?;
    Ok(INFOS[place(def)].get_or_init(|| describe(def)))
}

/// Place of a public operator in the list.
fn place(def: &'static OpDef) -> usize {
    static PLACES: ForkSafeLazy<HashMap<&str, usize>> =
        ForkSafeLazy::new(|| OPERATORS.iter().enumerate().map(|(i, def)| (def.name, i)).collect());
    PLACES.get(def.name).copied().unwrap_or(0)
}

/// The description of an absent operator.
fn nothing(name: &str) -> Info {
    Info {
        name: StaticText::new(name),
        doc: StaticText::new("Not part of mxrt: a call is an error."),
        number: 0,
        args: StaticTexts::lists([Vec::new(), Vec::new(), Vec::new()]),
        count: StaticText::new(""),
    }
}

fn describe(def: &OpDef) -> Info {
    let args = arguments(def);
    Info {
        name: StaticText::new(def.name),
        doc: StaticText::new(def.doc),
        number: args.len() as u32,
        args: columns(args),
        count: StaticText::new(counting_argument(def)),
    }
}

/// # Safety
/// The pointers are null or point to places.
unsafe fn names(out_size: *mut u32, out_array: *mut *mut *const c_char) -> Result<(), Error> {
    // SAFETY: contract.
    unsafe { put(out_size, NAMES.0, "out_size")? };
    // SAFETY: contract.
    unsafe { put(out_array, NAMES.1.as_ptr(), "out_array") }
}

/// # Safety
/// As above.
unsafe fn creators(out_size: *mut u32, out_array: *mut *mut OpHandle) -> Result<(), Error> {
    static HANDLES: ForkSafeLazy<Definitions> = ForkSafeLazy::new(|| Definitions::new(OPERATOR, OPERATORS.len()));
    // SAFETY: contract.
    unsafe { put(out_size, OPERATORS.len() as u32, "out_size")? };
    // SAFETY: contract.
    unsafe { put(out_array, HANDLES.as_ptr(), "out_array") }
}

/// One call of an operator.
struct Call {
    /// name of the function, which is the place of new results
    function: &'static str,
    creator: OpHandle,
    num_inputs: c_int,
    inputs: *const NDArrayHandle,
    num_outputs: *mut c_int,
    outputs: *mut *mut NDArrayHandle,
    num_params: c_int,
    keys: *const *const c_char,
    vals: *const *const c_char,
}

impl Call {
    /// # Safety
    /// As for `MXImperativeInvoke`.
    unsafe fn run(self) -> Result<(), Error> {
        let def = operator(self.creator)?;
        // SAFETY: the caller promises `num_inputs` handles.
        let handles = unsafe { list(self.inputs, count(self.num_inputs, "num_inputs")?, "inputs")? };
        let inputs = all::<NDArray>(handles)?;
        // SAFETY: contract.
        let mut attrs = unsafe { self.attrs()? };
        let context = complete(def, &mut attrs, inputs.len())?;
        // SAFETY: contract.
        let outputs = unsafe { self.given_outputs()? };
        if !outputs.is_empty() {
            show_hidden(def, &mut attrs, outputs.len());
            let invocation = Prepared { def, attrs: &attrs, context, inputs: &borrow(&inputs) };
            return fill(outputs, |outputs| invocation.write(outputs));
        }
        let made = push(def, &attrs, context, &borrow(&inputs), None)?;
        // SAFETY: the caller promises places, which have been read.
        unsafe { give_made(self.function, made, self.num_outputs, self.outputs) }
    }

    /// # Safety
    /// The contract of `MXImperativeInvoke`.
    unsafe fn attrs(&self) -> Result<Vec<(String, String)>, Error> {
        let params = count(self.num_params, "num_params")?;
        // SAFETY: the caller promises as many names.
        let keys = unsafe { distinct(self.keys, params, "param_keys")? };
        // SAFETY: the caller promises as many texts.
        let values = unsafe { texts(self.vals, params, "param_vals")? };
        Ok(keys.into_iter().zip(values).map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// The handles of arrays to write; none if the operator makes its outputs.
    ///
    /// # Safety
    /// The contract of `MXImperativeInvoke`. The handles stay what they are while the slice is
    /// used.
    unsafe fn given_outputs<'a>(&self) -> Result<&'a [NDArrayHandle], Error> {
        // SAFETY: the caller promises a number.
        let given = unsafe { read(self.num_outputs, "num_outputs")? };
        // SAFETY: the caller promises a pointer, null or to as many handles.
        let places = unsafe { read(self.outputs, "outputs")? };
        match places.is_null() {
            true => Ok(&[]),
            // SAFETY: as above.
            false => unsafe { list(places.cast_const(), count(given, "num_outputs")?, "outputs") },
        }
    }
}

/// An operator with its attributes and inputs, ready to be pushed.
struct Prepared<'a> {
    def: &'static OpDef,
    attrs: &'a [(String, String)],
    context: Context,
    inputs: &'a [&'a NDArray],
}

impl Prepared<'_> {
    fn write(&self, outputs: Option<&[&NDArray]>) -> Result<Vec<NDArray>, Error> {
        match (self.def.name, self.inputs, outputs) {
            // As in MXNet, a copy converts.
            ("_copyto", [from], Some([to])) => copy(from, to).map(|()| Vec::new()),
            _ => push(self.def, self.attrs, self.context, self.inputs, outputs),
        }
    }
}

/// Asks an operator for its mean and deviation where the caller has arrays for them: MXNet computes
/// them in any case, and `output_mean_var` only says whether they are visible.
fn show_hidden(def: &OpDef, attrs: &mut Vec<(String, String)>, outputs: usize) {
    const VISIBLE: &str = "output_mean_var";
    if outputs == 3 && def.attrs.iter().any(|attr| attr.name == VISIBLE) {
        attrs.retain(|(key, _)| key != VISIBLE);
        attrs.push((VISIBLE.to_owned(), "True".to_owned()));
    }
}

fn push(
    def: &'static OpDef,
    attrs: &[(String, String)],
    context: Context,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
) -> Result<Vec<NDArray>, Error> {
    let runtime = runtime()?;
    if def.name == "Custom" {
        let told = trains().then(|| (CUSTOM_TRAINS.to_owned(), "True".to_owned()));
        let attrs = attrs.iter().cloned().chain(told).collect();
        let arrays = inputs.iter().map(|array| (None, (*array).clone())).collect();
        let never = &mut Interrupter::never();
        let started = mxrt::internal::invoke_custom(runtime.engine, def, attrs, arrays, outputs, runtime.plans, never)?;
        return Ok(started.arrays()?.into_iter().collect());
    }
    if let Some(made) = training::call(def, attrs, inputs, outputs)? {
        return Ok(made);
    }
    let call = Invocation { engine: runtime.engine, context, options: runtime.plans.kernel, random: &runtime.random };
    let (attrs, never) = (CallAttrs::Text(attrs), &mut Interrupter::never());
    let started = mxrt::internal::invoke(&call, &runtime.bound, def, attrs, inputs, outputs, never)?;
    // An array of C has a shape: the call waits for those that contents decide.
    Ok(started.arrays()?.into_iter().collect())
}

/// Takes the context out of the attributes, unless the operator declares it, and adds the number of
/// inputs where the operator counts them.
fn complete(def: &OpDef, attrs: &mut Vec<(String, String)>, inputs: usize) -> Result<Context, Error> {
    let context = match attrs.iter().find(|(key, _)| key == "ctx") {
        Some((_, text)) => named_context(text)?,
        None => Context::default(),
    };
    if !def.attrs.iter().any(|attr| attr.name == "ctx") {
        attrs.retain(|(key, _)| key != "ctx");
    }
    if let Inputs::Variadic { count, .. } = def.inputs
        && !attrs.iter().any(|(key, _)| key == count)
    {
        attrs.push((count.to_owned(), inputs.to_string()));
    }
    Ok(context)
}

c_functions! {
    /// The names of all operators, aliases included, and some of `mx.np` that refuse to be used:
    /// MXNet's Python package looks for them. They live as long as the process.
    fn MXListAllOpNames(out_size: *mut u32, out_array: *mut *mut *const c_char) {
        names(out_size, out_array)
    }

    /// Alias of `MXListAllOpNames`.
    fn NNListAllOpNames(out_size: *mut u32, out_array: *mut *mut *const c_char) {
        names(out_size, out_array)
    }

    /// The handle of an operator, by name or alias.
    fn NNGetOpHandle(op_name: *const c_char, op_out: *mut OpHandle) {
        put(op_out, handle_of(text(op_name, "op_name")?)?, "op_out")
    }

    /// Handles of all operators, each once. They live as long as the process.
    fn MXSymbolListAtomicSymbolCreators(out_size: *mut u32, out_array: *mut *mut OpHandle) {
        creators(out_size, out_array)
    }

    /// Alias of `MXSymbolListAtomicSymbolCreators`.
    fn NNListUniqueOps(out_size: *mut u32, out_array: *mut *mut OpHandle) {
        creators(out_size, out_array)
    }

    /// The name of an operator, which lives as long as the process.
    fn MXSymbolGetAtomicSymbolName(creator: OpHandle, name: *mut *const c_char) {
        put(name, info(creator)?.name.as_ptr(), "name")
    }

    /// Describes an operator: documentation, inputs and attributes with their types and defaults,
    /// and the attribute that counts the inputs, if there is one. `*return_type` becomes null, as
    /// in MXNet; `return_type` may be null. All text lives as long as the process.
    fn MXSymbolGetAtomicSymbolInfo(
        creator: OpHandle,
        name: *mut *const c_char,
        description: *mut *const c_char,
        num_args: *mut u32,
        arg_names: *mut *mut *const c_char,
        arg_type_infos: *mut *mut *const c_char,
        arg_descriptions: *mut *mut *const c_char,
        key_var_num_args: *mut *const c_char,
        return_type: *mut *const c_char,
    ) {
        let info = info(creator)?;
        put(name, info.name.as_ptr(), "name")?;
        put(description, info.doc.as_ptr(), "description")?;
        put(num_args, info.number, "num_args")?;
        put(arg_names, info.args[0].as_ptr(), "arg_names")?;
        put(arg_type_infos, info.args[1].as_ptr(), "arg_type_infos")?;
        put(arg_descriptions, info.args[2].as_ptr(), "arg_descriptions")?;
        put(key_var_num_args, info.count.as_ptr(), "key_var_num_args")?;
        if return_type.is_null() { Ok(()) } else { put(return_type, std::ptr::null(), "return_type") }
    }

    /// Alias of `MXSymbolGetAtomicSymbolInfo`.
    fn NNGetOpInfo(
        op: OpHandle,
        real_name: *mut *const c_char,
        description: *mut *const c_char,
        num_doc_args: *mut u32,
        arg_names: *mut *mut *const c_char,
        arg_type_infos: *mut *mut *const c_char,
        arg_descriptions: *mut *mut *const c_char,
        return_type: *mut *const c_char,
    ) {
        let info = info(op)?;
        put(real_name, info.name.as_ptr(), "real_name")?;
        put(description, info.doc.as_ptr(), "description")?;
        put(num_doc_args, info.number, "num_doc_args")?;
        put(arg_names, info.args[0].as_ptr(), "arg_names")?;
        put(arg_type_infos, info.args[1].as_ptr(), "arg_type_infos")?;
        put(arg_descriptions, info.args[2].as_ptr(), "arg_descriptions")?;
        if return_type.is_null() { Ok(()) } else { put(return_type, std::ptr::null(), "return_type") }
    }

    /// Calls an operator. Returns at once; the results are computed in the background.
    ///
    /// If `*outputs` is null or `*num_outputs` is 0, arrays are made for the results. Otherwise the
    /// results go into the given arrays; those of `MXNDArrayCreateNone` get their shape and type.
    /// An operator whose shapes follow from contents, such as a boolean mask, has run before.
    fn MXImperativeInvoke(
        creator: OpHandle,
        num_inputs: c_int,
        inputs: *const NDArrayHandle,
        num_outputs: *mut c_int,
        outputs: *mut *mut NDArrayHandle,
        num_params: c_int,
        param_keys: *const *const c_char,
        param_vals: *const *const c_char,
    ) {
        let (keys, vals) = (param_keys, param_vals);
        let function = "MXImperativeInvoke";
        let call = Call { function, creator, num_inputs, inputs, num_outputs, outputs, num_params, keys, vals };
        call.run()
    }

    /// Variant of `MXImperativeInvoke` that also returns the storage types of the results (0
    /// dense, 1 row_sparse, 2 csr).
    fn MXImperativeInvokeEx(
        creator: OpHandle,
        num_inputs: c_int,
        inputs: *const NDArrayHandle,
        num_outputs: *mut c_int,
        outputs: *mut *mut NDArrayHandle,
        num_params: c_int,
        param_keys: *const *const c_char,
        param_vals: *const *const c_char,
        out_stypes: *mut *const c_int,
    ) {
        // The place is tried before there are handles to lose.
        put(out_stypes, std::ptr::null(), "out_stypes")?;
        let (keys, vals) = (param_keys, param_vals);
        let function = "MXImperativeInvokeEx";
        let call = Call { function, creator, num_inputs, inputs, num_outputs, outputs, num_params, keys, vals };
        call.run()?;
        give_storage_types(ResultPlace::of("MXImperativeInvokeEx types"), num_outputs, outputs, out_stypes)
    }
}
