//! Files of settings of `mxrt serve`: any text gives an error, or settings whose print says the
//! same again.

use mxrt_serve::Configuration;
use std::path::Path;

pub(super) fn run(bytes: &[u8]) {
    let Some(text) = bytes.utf8_chunks().next() else { return };
    let text = text.valid();
    let mut read = Configuration::default();
    if read.text(Path::new("settings.toml"), text).is_err() {
        return;
    }
    let printed = read.print().expect("a text");
    let mut again = Configuration::default();
    again.text(Path::new("settings.toml"), &printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(format!("{:?}", again.server), format!("{:?}", read.server), "{printed}");
    for model in read.models() {
        // The last field says in which line a value stood, which the print moves.
        let of = |configuration: &Configuration| {
            let text = format!("{:?}", configuration.settings(&model));
            text.split(", said_by: ").next().map(str::to_owned)
        };
        assert_eq!(of(&again), of(&read), "{printed}");
    }
}
