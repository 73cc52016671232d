//! Symbols.

use crate::border::{Error, guard};
use crate::handles::{SymbolHandle, free, get, hold};
use crate::pointers::{put, text};
use crate::returned::{self, ResultPlace};
use crate::runtime::runtime;
use mxrt::Symbol;
use mxrt::internal::{ForkSafeRwLock, LoadOptions, NpShapeScope, OpDef, np_shape_scope};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};

/// The target of a symbol's handle: composing changes the symbol that the handle refers to.
pub(crate) struct SymbolCell(ForkSafeRwLock<State>);

/// A graph, or an operator that has no inputs yet.
#[derive(Clone)]
pub(crate) enum State {
    Graph(Symbol),
    Operator { def: &'static OpDef, attrs: BTreeMap<String, String> },
}

impl From<Symbol> for SymbolCell {
    fn from(symbol: Symbol) -> SymbolCell {
        SymbolCell(ForkSafeRwLock::new(State::Graph(symbol)))
    }
}

impl SymbolCell {
    /// An operator without inputs.
    pub(crate) fn operator(def: &'static OpDef, attrs: BTreeMap<String, String>) -> SymbolCell {
        SymbolCell(ForkSafeRwLock::new(State::Operator { def, attrs }))
    }

    pub(crate) fn state(&self) -> State {
        self.0.read().clone()
    }

    pub(crate) fn set(&self, state: State) {
        let before = std::mem::replace(&mut *self.0.write(), state);
        drop(before);
    }

    /// The graph. An operator without inputs gets variables.
    pub(crate) fn symbol(&self) -> Result<Symbol, Error> {
        match self.state() {
            State::Graph(symbol) => Ok(symbol),
            State::Operator { def, attrs } => Ok(Symbol::create(def, String::new(), attrs, Vec::new())?),
        }
    }
}

/// The graph of a handle.
pub(crate) fn of(handle: SymbolHandle) -> Result<Symbol, Error> {
    get::<SymbolCell>(handle)?.symbol()
}

/// Stores a symbol.
///
/// # Safety
/// `out` is null or points to a place for the handle.
pub(crate) unsafe fn give(symbol: impl Into<SymbolCell>, out: *mut SymbolHandle) -> Result<(), Error> {
    // SAFETY: the caller promises a place for the handle. It is tried before there is a handle to
    // lose.
    unsafe { put(out, std::ptr::null_mut(), "out")? };
    // SAFETY: as above.
    unsafe { put(out, hold::<SymbolCell>(symbol.into()), "out") }
}

/// The symbol of a JSON text.
pub(crate) fn parse(json: &str) -> Result<Symbol, Error> {
    let runtime = runtime()?;
    let memory = Some(runtime.engine.memory());
    let options = LoadOptions { max_nodes: runtime.max_nodes, memory, np_shape: np_shape_scope() != NpShapeScope::Off };
    Ok(Symbol::load_json_with(json, options)?.symbol)
}

/// # Safety
/// `out` is null or points to a place for the handle.
unsafe fn load(json: &str, out: *mut SymbolHandle) -> Result<(), Error> {
    // SAFETY: contract.
    unsafe { give(parse(json)?, out) }
}

/// Loads a symbol from a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXSymbolCreateFromFile(fname: *const c_char, out: *mut SymbolHandle) -> c_int {
    guard(|| {
        // SAFETY: the caller promises a text.
        let path = unsafe { text(fname, "fname")? };
        let json = mxrt::internal::io::read_text_within(path, runtime()?.engine.memory())?;
        // SAFETY: the caller promises a place for the handle.
        unsafe { load(&json, out) }
    })
}

/// Loads a symbol from its JSON text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXSymbolCreateFromJSON(json: *const c_char, out: *mut SymbolHandle) -> c_int {
    guard(|| {
        // SAFETY: the caller promises a text.
        let json = unsafe { text(json, "json")? };
        // SAFETY: the caller promises a place for the handle.
        unsafe { load(json, out) }
    })
}

/// The JSON text of a symbol, in memory that belongs to the thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXSymbolSaveToJSON(symbol: SymbolHandle, out_json: *mut *const c_char) -> c_int {
    guard(|| {
        let json = of(symbol)?.to_json();
        // SAFETY: the caller promises a place for the pointer.
        unsafe { put(out_json, returned::text(ResultPlace::of("json"), json)?, "out_json") }
    })
}

/// Stores names that a symbol lists, in the place of `function`.
///
/// # Safety
/// The pointers are null or point to places for the results.
pub(crate) unsafe fn names(
    function: &'static str,
    symbol: SymbolHandle,
    out_size: *mut u32,
    out_str_array: *mut *mut *const c_char,
    list: fn(&Symbol) -> Vec<String>,
) -> Result<(), Error> {
    let place = ResultPlace::of(function);
    let names = list(&self::of(symbol)?);
    // SAFETY: the caller promises a place for the number.
    unsafe { put(out_size, names.len() as u32, "out_size")? };
    // SAFETY: the caller promises a place for the pointer.
    unsafe { put(out_str_array, returned::texts(place, names)?, "out_str_array") }
}

/// Names of the arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXSymbolListArguments(
    symbol: SymbolHandle,
    out_size: *mut u32,
    out_str_array: *mut *mut *const c_char,
) -> c_int {
    // SAFETY: the caller keeps the promises of the header.
    guard(|| unsafe { names("MXSymbolListArguments", symbol, out_size, out_str_array, Symbol::list_arguments) })
}

/// Names of the auxiliary states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXSymbolListAuxiliaryStates(
    symbol: SymbolHandle,
    out_size: *mut u32,
    out_str_array: *mut *mut *const c_char,
) -> c_int {
    let (name, list) = ("MXSymbolListAuxiliaryStates", Symbol::list_auxiliary_states);
    // SAFETY: the caller keeps the promises of the header.
    guard(|| unsafe { names(name, symbol, out_size, out_str_array, list) })
}

/// Names of the outputs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXSymbolListOutputs(
    symbol: SymbolHandle,
    out_size: *mut u32,
    out_str_array: *mut *mut *const c_char,
) -> c_int {
    // SAFETY: the caller keeps the promises of the header.
    guard(|| unsafe { names("MXSymbolListOutputs", symbol, out_size, out_str_array, Symbol::list_outputs) })
}

/// Names of all inputs, arguments and auxiliary states, in the order in which a CachedOp takes
/// them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NNSymbolListInputNames(
    symbol: SymbolHandle,
    option: c_int,
    out_size: *mut u32,
    out_str_array: *mut *mut *const c_char,
) -> c_int {
    guard(|| {
        let list = match option {
            0 => Symbol::list_inputs,
            1 => Symbol::list_arguments,
            2 => Symbol::list_auxiliary_states,
            other => {
                let message =
                    format!("the argument option is {other}; expected 0 (all), 1 (read only) or 2 (auxiliary)");
                return Err(Error::value(message));
            }
        };
        // SAFETY: the caller keeps the promises of the header.
        unsafe { names("NNSymbolListInputNames", symbol, out_size, out_str_array, list) }
    })
}

/// Frees a symbol. A CachedOp made from it stays valid.
#[unsafe(no_mangle)]
pub extern "C" fn MXSymbolFree(symbol: SymbolHandle) -> c_int {
    guard(|| free::<SymbolCell>(symbol))
}
