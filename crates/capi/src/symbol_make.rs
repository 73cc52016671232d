//! Making symbols, taking them apart, and their attributes.

use crate::border::{Error, c_functions};
use crate::handles::{NDArrayHandle, OpHandle, SymbolHandle, free, get, hold};
use crate::operators::operator;
use crate::pointers::{count, distinct, list, put, text, texts};
use crate::returned::{self, ResultPlace};
use crate::symbol::{State, SymbolCell, give, names, of};
use mxrt::Symbol;
use mxrt::internal::{NodeEntry, number_of_graphs};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};

/// Attributes as callers give them.
///
/// # Safety
/// `number` texts each.
unsafe fn attributes(
    number: u32,
    keys: *const *const c_char,
    vals: *const *const c_char,
) -> Result<BTreeMap<String, String>, Error> {
    let number = count(number, "num_param")?;
    // SAFETY: contract.
    let (keys, vals) = unsafe { (distinct(keys, number, "keys")?, texts(vals, number, "vals")?) };
    Ok(keys.into_iter().zip(vals).map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

/// # Safety
/// As for `MXSymbolCreateAtomicSymbol`.
unsafe fn create(
    op: OpHandle,
    number: u32,
    keys: *const *const c_char,
    vals: *const *const c_char,
    out: *mut SymbolHandle,
) -> Result<(), Error> {
    let def = operator(op)?;
    // SAFETY: contract.
    let attrs = unsafe { attributes(number, keys, vals)? };
    Symbol::check_attributes(def, &attrs)?;
    // SAFETY: contract.
    unsafe { give(SymbolCell::operator(def, attrs), out) }
}

/// # Safety
/// As for `MXSymbolCompose`.
unsafe fn compose(
    sym: SymbolHandle,
    name: *const c_char,
    number: u32,
    keys: *const *const c_char,
    args: *const SymbolHandle,
) -> Result<(), Error> {
    let cell = get::<SymbolCell>(sym)?;
    // SAFETY: the caller promises a text, or null for none.
    let name = if name.is_null() { None } else { Some(unsafe { text(name, "name")? }) };
    let number = count(number, "num_args")?;
    // SAFETY: the caller promises `number` names, or null for none.
    let keys = if keys.is_null() { None } else { Some(unsafe { distinct(keys, number, "keys")? }) };
    // SAFETY: the caller promises `number` handles.
    let args = unsafe { list(args, number, "args")? };
    let mut arguments = Vec::with_capacity(number);
    for (i, arg) in args.iter().enumerate() {
        let key = keys.as_ref().map(|keys| keys[i].to_owned());
        arguments.push((key, of(*arg)?));
    }
    let made = match cell.state() {
        State::Graph(symbol) => symbol.compose(name, arguments)?,
        State::Operator { def, attrs } => {
            // Graphs that a loop or branch runs come before its inputs.
            let inputs = arguments.split_off(number_of_graphs(def).min(arguments.len()));
            let graphs = arguments.into_iter().map(|(_, graph)| graph).collect();
            Symbol::create_with_subgraphs(def, name.unwrap_or("").to_owned(), attrs, inputs, graphs)?
        }
    };
    cell.set(State::Graph(made));
    Ok(())
}

/// # Safety
/// As for `MXSymbolGetAttr`.
unsafe fn one_attr(
    place: ResultPlace,
    value: Option<String>,
    out: *mut *const c_char,
    success: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: contract.
    unsafe { put(success, c_int::from(value.is_some()), "success")? };
    let pointer = match value {
        Some(value) => returned::text(place, value)?,
        None => std::ptr::null(),
    };
    // SAFETY: contract.
    unsafe { put(out, pointer, "out") }
}

/// An attribute of the node, which `of_graph` finds in a symbol that has inputs.
fn attr(
    handle: SymbolHandle,
    key: &str,
    of_graph: fn(&Symbol, &str) -> Option<String>,
) -> Result<Option<String>, Error> {
    Ok(match get::<SymbolCell>(handle)?.state() {
        State::Graph(symbol) => of_graph(&symbol, key),
        State::Operator { attrs, .. } => attrs.get(key).cloned(),
    })
}

fn set_attr(handle: SymbolHandle, key: &str, value: &str) -> Result<(), Error> {
    let cell = get::<SymbolCell>(handle)?;
    match cell.state() {
        State::Graph(symbol) => Ok(symbol.set_attr(key, value)?),
        State::Operator { def, mut attrs } => {
            attrs.insert(key.to_owned(), value.to_owned());
            cell.set(State::Operator { def, attrs });
            Ok(())
        }
    }
}

/// Attributes of all nodes, with the nodes' names in front.
fn of_all_nodes(attrs: BTreeMap<String, BTreeMap<String, String>>) -> Vec<(String, String)> {
    let of_node = |(node, attrs): (String, BTreeMap<String, String>)| {
        attrs.into_iter().map(move |(key, value)| (format!("{node}${key}"), value))
    };
    attrs.into_iter().flat_map(of_node).collect()
}

/// Stores names and values in turn, in the place of the function.
///
/// # Safety
/// The pointers are null or point to places.
unsafe fn give_attrs(
    place: ResultPlace,
    pairs: impl IntoIterator<Item = (String, String)>,
    out_size: *mut u32,
    out: *mut *mut *const c_char,
) -> Result<(), Error> {
    let pairs: Vec<(String, String)> = pairs.into_iter().collect();
    let number = pairs.len() as u32;
    // SAFETY: contract.
    unsafe { put(out_size, number, "out_size")? };
    let flat = pairs.into_iter().flat_map(|(key, value)| [key, value]).collect();
    // SAFETY: contract.
    unsafe { put(out, returned::texts(place, flat)?, "out") }
}

/// # Safety
/// `symbols` points to `number` handles; `out` to a place.
unsafe fn group(number: u32, symbols: *const SymbolHandle, out: *mut SymbolHandle) -> Result<(), Error> {
    // SAFETY: contract.
    let handles = unsafe { list(symbols, count(number, "num_symbols")?, "symbols")? };
    let symbols = handles.iter().map(|handle| of(*handle)).collect::<Result<Vec<Symbol>, Error>>()?;
    // SAFETY: contract.
    unsafe { give(Symbol::group(&symbols), out) }
}

fn output(symbol: SymbolHandle, index: u32) -> Result<Symbol, Error> {
    let symbol = of(symbol)?;
    symbol.output(index as usize).ok_or_else(|| {
        let number = symbol.outputs().len();
        Error::value(format!("the argument index is {index}, but the symbol has {number} outputs"))
    })
}

/// The inputs of the nodes; a symbol without outputs where there are none.
fn children(symbol: SymbolHandle) -> Result<Symbol, Error> {
    Ok(of(symbol)?.get_children().unwrap_or_else(|| Symbol::from_entries(Vec::new())))
}

/// A copy with nodes of its own.
fn copy(symbol: SymbolHandle) -> Result<SymbolCell, Error> {
    Ok(match get::<SymbolCell>(symbol)?.state() {
        State::Graph(symbol) => symbol.deep_copy().into(),
        State::Operator { def, attrs } => SymbolCell::operator(def, attrs),
    })
}

/// Refuses backends that MXNet's build lacks.
fn check_backend(name: &str) -> Result<(), Error> {
    if ["MKLDNN", "MKLDNN_QUANTIZE"].contains(&name) {
        return Ok(());
    }
    Err(Error::value(format!("SubgraphProperty {name} is not found; the backends are MKLDNN, MKLDNN_QUANTIZE")))
}

/// Leaves the nodes of the subgraph that the first output belongs to, and returns what they read
/// from outside.
fn cut(symbol: SymbolHandle) -> Result<Vec<Symbol>, Error> {
    let cell = get::<SymbolCell>(symbol)?;
    let whole = cell.symbol()?;
    let name = whole.outputs().first().and_then(|entry| entry.node.attr(Symbol::SUBGRAPH_NAME));
    let Some(name) = name else { return Ok(Vec::new()) };
    let (inner, outside) = whole.cut_subgraph(&name);
    cell.set(State::Graph(inner));
    Ok(outside.into_iter().map(|entry| Symbol::from_entries(vec![entry])).collect())
}

c_functions! {
    /// Leaves the nodes of a subgraph in a symbol: those whose attribute `__subgraph_name__` is that
    /// of the first output. What they read from outside are variables of the symbol now, and
    /// returned as symbols, which belong to the caller; the array of handles belongs to the thread.
    fn MXSymbolCutSubgraph(sym: SymbolHandle, input_symbols: *mut *mut SymbolHandle, input_size: *mut c_int) {
        put(input_symbols, std::ptr::null_mut(), "input_symbols")?;
        put(input_size, 0, "input_size")?;
        let cut: Vec<SymbolHandle> = cut(sym)?.into_iter().map(|symbol| hold::<SymbolCell>(symbol.into())).collect();
        put(input_size, cut.len() as c_int, "input_size")?;
        put(input_symbols, returned::list(ResultPlace::of("cut inputs"), cut)?, "input_symbols")
    }

    /// A copy whose operators read what `amp_cast` and `amp_multicast` would convert.
    fn MXSymbolRemoveAmpCast(sym_handle: SymbolHandle, ret_sym_handle: *mut SymbolHandle) {
        give(of(sym_handle)?.without_amp_casts(), ret_sym_handle)
    }

    /// An operator with these attributes, which `MXSymbolCompose` gives its inputs.
    fn MXSymbolCreateAtomicSymbol(
        creator: OpHandle,
        num_param: u32,
        keys: *const *const c_char,
        vals: *const *const c_char,
        out: *mut SymbolHandle,
    ) {
        create(creator, num_param, keys, vals, out)
    }

    /// Alias of `MXSymbolCreateAtomicSymbol`.
    fn NNSymbolCreateAtomicSymbol(
        op: OpHandle,
        num_param: u32,
        keys: *const *const c_char,
        vals: *const *const c_char,
        out: *mut SymbolHandle,
    ) {
        create(op, num_param, keys, vals, out)
    }

    /// A variable.
    fn MXSymbolCreateVariable(name: *const c_char, out: *mut SymbolHandle) {
        give(Symbol::variable(text(name, "name")?, BTreeMap::new()), out)
    }

    /// Alias of `MXSymbolCreateVariable`.
    fn NNSymbolCreateVariable(name: *const c_char, out: *mut SymbolHandle) {
        give(Symbol::variable(text(name, "name")?, BTreeMap::new()), out)
    }

    /// One symbol with the outputs of several.
    fn MXSymbolCreateGroup(num_symbols: u32, symbols: *const SymbolHandle, out: *mut SymbolHandle) {
        group(num_symbols, symbols, out)
    }

    /// Alias of `MXSymbolCreateGroup`.
    fn NNSymbolCreateGroup(num_symbols: u32, symbols: *const SymbolHandle, out: *mut SymbolHandle) {
        group(num_symbols, symbols, out)
    }

    /// Gives a symbol its inputs, in order, or by names where `keys` is not null; the symbol behind
    /// the handle changes. Inputs that are missing become variables. `name` may be null.
    fn MXSymbolCompose(
        sym: SymbolHandle,
        name: *const c_char,
        num_args: u32,
        keys: *const *const c_char,
        args: *const SymbolHandle,
    ) {
        compose(sym, name, num_args, keys, args)
    }

    /// Alias of `MXSymbolCompose`.
    fn NNSymbolCompose(
        sym: SymbolHandle,
        name: *const c_char,
        num_args: u32,
        keys: *const *const c_char,
        args: *const SymbolHandle,
    ) {
        compose(sym, name, num_args, keys, args)
    }

    /// A copy with nodes of its own.
    fn MXSymbolCopy(symbol: SymbolHandle, out: *mut SymbolHandle) {
        give(copy(symbol)?, out)
    }

    /// Alias of `MXSymbolCopy`.
    fn NNSymbolCopy(symbol: SymbolHandle, out: *mut SymbolHandle) {
        give(copy(symbol)?, out)
    }

    /// The graph that a backend makes of a symbol: a copy, as every graph is optimised when it is
    /// compiled. The backends are those of MXNet's build, `MKLDNN` and `MKLDNN_QUANTIZE`; another name
    /// is an error. No parameter is added or taken out.
    fn MXOptimizeForBackend(
        sym_handle: SymbolHandle,
        backend_name: *const c_char,
        _dev_type: c_int,
        ret_sym_handle: *mut SymbolHandle,
        _args_len: u32,
        _in_args_handle: *mut NDArrayHandle,
        _aux_len: u32,
        _in_aux_handle: *mut NDArrayHandle,
        _num_options: u32,
        _keys: *const *const c_char,
        _vals: *const *const c_char,
        _num_input_shapes: u32,
        _input_shape_names: *const *const c_char,
        _input_shape_data: *const i64,
        _input_shape_idx: *const u32,
        _num_input_dtypes: u32,
        _input_dtype_names: *const *const c_char,
        _input_dtypes: *const c_int,
        _num_input_stypes: u32,
        _input_stype_names: *const *const c_char,
        _input_stypes: *const c_int,
        _skip_infer: bool,
        new_args_cnt: *mut c_int,
        _new_args_handle: *mut *mut NDArrayHandle,
        _new_arg_names_handle: *mut *mut *const c_char,
        new_aux_cnt: *mut c_int,
        _new_aux_handle: *mut *mut NDArrayHandle,
        _new_aux_names_handle: *mut *mut *const c_char,
    ) {
        check_backend(text(backend_name, "backend_name")?)?;
        put(new_args_cnt, 0, "new_args_cnt")?;
        put(new_aux_cnt, 0, "new_aux_cnt")?;
        give(copy(sym_handle)?, ret_sym_handle)
    }

    /// The graph that a backend makes of a symbol, as for `MXOptimizeForBackend`.
    fn MXGenBackendSubgraph(
        sym_handle: SymbolHandle,
        backend: *const c_char,
        ret_sym_handle: *mut SymbolHandle,
    ) {
        check_backend(text(backend, "backend")?)?;
        give(copy(sym_handle)?, ret_sym_handle)
    }

    /// Another handle of the same nodes.
    fn MXShallowCopySymbol(src: SymbolHandle, out: *mut SymbolHandle) {
        give(of(src)?, out)
    }

    /// Frees a symbol, as `MXSymbolFree`.
    fn NNSymbolFree(symbol: SymbolHandle) {
        free::<SymbolCell>(symbol)
    }

    /// Writes the JSON text of a symbol to a file.
    fn MXSymbolSaveToFile(symbol: SymbolHandle, fname: *const c_char) {
        let json = of(symbol)?.to_json();
        Ok(mxrt::internal::io::write_file(text(fname, "fname")?, json.as_bytes()).map_err(mxrt::internal::io::DataError::from)?)
    }

    /// The name of the symbol's node; `*success` is 0 where there are several.
    fn MXSymbolGetName(symbol: SymbolHandle, out: *mut *const c_char, success: *mut c_int) {
        one_attr(ResultPlace::of("name"), of(symbol)?.name(), out, success)
    }

    /// An attribute of the node; `*success` is 0 where it has none of this name.
    fn MXSymbolGetAttr(symbol: SymbolHandle, key: *const c_char, out: *mut *const c_char, success: *mut c_int) {
        one_attr(ResultPlace::of("MXSymbolGetAttr"), attr(symbol, text(key, "key")?, Symbol::attr)?, out, success)
    }

    /// Variant of `MXSymbolGetAttr` that knows the keys of the node alone: `__lr_mult__` is not there
    /// as `lr_mult` too.
    fn NNSymbolGetAttr(symbol: SymbolHandle, key: *const c_char, out: *mut *const c_char, success: *mut c_int) {
        one_attr(ResultPlace::of("NNSymbolGetAttr"), attr(symbol, text(key, "key")?, Symbol::kept_attr)?, out, success)
    }

    /// Sets an attribute of the node.
    fn MXSymbolSetAttr(symbol: SymbolHandle, key: *const c_char, value: *const c_char) {
        set_attr(symbol, text(key, "key")?, text(value, "value")?)
    }

    /// Sets attributes of the node.
    fn NNSymbolSetAttrs(
        symbol: SymbolHandle,
        num_param: u32,
        keys: *const *const c_char,
        values: *const *const c_char,
    ) {
        attributes(num_param, keys, values)?.iter().try_for_each(|(key, value)| set_attr(symbol, key, value))
    }

    /// Attributes of all nodes: `node$key` and value in turn; `*out_size` counts the pairs.
    fn MXSymbolListAttr(symbol: SymbolHandle, out_size: *mut u32, out: *mut *mut *const c_char) {
        give_attrs(ResultPlace::of("MXSymbolListAttr"), of_all_nodes(of(symbol)?.attr_dict()), out_size, out)
    }

    /// Attributes of the node: key and value in turn; `*out_size` counts the pairs.
    fn MXSymbolListAttrShallow(symbol: SymbolHandle, out_size: *mut u32, out: *mut *mut *const c_char) {
        give_attrs(ResultPlace::of("MXSymbolListAttrShallow"), of(symbol)?.list_attr(), out_size, out)
    }

    /// Variant of `MXSymbolListAttr` (option 0) or `MXSymbolListAttrShallow` (1) with the keys as they
    /// are kept: `__lr_mult__` is not listed as `lr_mult` too.
    fn NNSymbolListAttrs(
        symbol: SymbolHandle,
        recursive_option: c_int,
        out_size: *mut u32,
        out: *mut *mut *const c_char,
    ) {
        let place = ResultPlace::of("NNSymbolListAttrs");
        match recursive_option {
            0 => give_attrs(place, of_all_nodes(of(symbol)?.kept_attr_dict()), out_size, out),
            _ => give_attrs(place, of(symbol)?.kept_attrs(), out_size, out),
        }
    }

    /// Names of the outputs.
    fn NNSymbolListOutputNames(symbol: SymbolHandle, out_size: *mut u32, out_str_array: *mut *mut *const c_char) {
        names("NNSymbolListOutputNames", symbol, out_size, out_str_array, Symbol::list_outputs)
    }

    /// Number of outputs.
    fn MXSymbolGetNumOutputs(symbol: SymbolHandle, output_count: *mut u32) {
        put(output_count, of(symbol)?.outputs().len() as u32, "output_count")
    }

    /// Alias of `MXSymbolGetNumOutputs`.
    fn NNSymbolGetNumOutputs(symbol: SymbolHandle, output_count: *mut u32) {
        put(output_count, of(symbol)?.outputs().len() as u32, "output_count")
    }

    /// One output.
    fn MXSymbolGetOutput(symbol: SymbolHandle, index: u32, out: *mut SymbolHandle) {
        give(output(symbol, index)?, out)
    }

    /// Alias of `MXSymbolGetOutput`.
    fn NNSymbolGetOutput(symbol: SymbolHandle, index: u32, out: *mut SymbolHandle) {
        give(output(symbol, index)?, out)
    }

    /// All outputs of all nodes.
    fn MXSymbolGetInternals(symbol: SymbolHandle, out: *mut SymbolHandle) {
        give(of(symbol)?.get_internals(), out)
    }

    /// Alias of `MXSymbolGetInternals`.
    fn NNSymbolGetInternals(symbol: SymbolHandle, out: *mut SymbolHandle) {
        give(of(symbol)?.get_internals(), out)
    }

    /// The inputs of the nodes that make the outputs; no outputs where there are none.
    fn MXSymbolGetChildren(symbol: SymbolHandle, out: *mut SymbolHandle) {
        give(children(symbol)?, out)
    }

    /// Alias of `MXSymbolGetChildren`.
    fn NNSymbolGetChildren(symbol: SymbolHandle, out: *mut SymbolHandle) {
        give(children(symbol)?, out)
    }

    /// The variables that operators read, each as a symbol that belongs to the caller: one for every
    /// input of an operator, as in MXNet.
    fn MXSymbolGetInputSymbols(sym: SymbolHandle, inputs: *mut *mut SymbolHandle, input_size: *mut c_int) {
        let nodes = of(sym)?.topo();
        let read: Vec<&NodeEntry> =
            nodes.iter().flat_map(|node| &node.inputs).filter(|entry| entry.node.is_variable()).collect();
        put(input_size, read.len() as c_int, "input_size")?;
        put(inputs, std::ptr::null_mut(), "inputs")?;
        let cell = |entry: &NodeEntry| SymbolCell::from(Symbol::from_entries(vec![entry.clone()]));
        let handles = read.into_iter().map(|entry| hold(cell(entry))).collect();
        put(inputs, returned::list(ResultPlace::of("input symbols"), handles)?, "inputs")
    }
}
