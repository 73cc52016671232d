//! Symbols as text for people, in MXNet's words.

use crate::border::{Error, c_functions};
use crate::handles::{SymbolHandle, get};
use crate::pointers::put;
use crate::returned::{self, ResultPlace};
use crate::symbol::{State, SymbolCell};
use mxrt::internal::symbol::described;
use std::ffi::c_char;

fn text_of(handle: SymbolHandle) -> Result<String, Error> {
    Ok(match get::<SymbolCell>(handle)?.state() {
        State::Graph(symbol) => described(&symbol),
        State::Operator { def, .. } => format!("AtomicFunctor  Op:{}\n", def.name),
    })
}

c_functions! {
    /// The graph as text, in memory that belongs to the thread.
    fn MXSymbolPrint(symbol: SymbolHandle, out_str: *mut *const c_char) {
        put(out_str, returned::text(ResultPlace::of("MXSymbolPrint"), text_of(symbol)?)?, "out_str")
    }

    /// Alias of `MXSymbolPrint`.
    fn NNSymbolPrint(symbol: SymbolHandle, out_str: *mut *const c_char) {
        put(out_str, returned::text(ResultPlace::of("NNSymbolPrint"), text_of(symbol)?)?, "out_str")
    }
}
