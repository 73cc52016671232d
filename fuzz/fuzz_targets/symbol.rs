//! Symbol files: any text gives an error or a symbol that is written as it is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mxrt::Symbol;

fuzz_target!(|text: &str| {
    let Ok(loaded) = Symbol::load_json(text) else { return };
    let symbol = loaded.symbol;
    symbol.list_inputs();
    symbol.list_outputs();
    let _ = symbol.infer_shape(&[], true);
    let written = symbol.to_json();
    let again = Symbol::load_json(&written).expect("loaded again").symbol;
    assert_eq!(again.to_json(), written);
});
