//! Symbol files: any text gives an error or a symbol that is written as it is read.

use mxrt::Symbol;

pub(super) fn run(bytes: &[u8]) {
    let Some(text) = bytes.utf8_chunks().next() else { return };
    let Ok(loaded) = Symbol::load_json(text.valid()) else { return };
    let symbol = loaded.symbol;
    symbol.list_inputs();
    symbol.list_outputs();
    let _ = symbol.infer_shape(&[], true);
    let written = symbol.to_json();
    let again = Symbol::load_json(&written).expect("loaded again").symbol;
    assert_eq!(again.to_json(), written);
}
