//! Parameter files: any bytes give an error or arrays that can be read and saved again.

use crate::support::ENGINE;
use mxrt::params::{NpShape, Params, load_from_bytes, save_to_bytes};

pub(super) fn run(bytes: &[u8]) {
    for flag in [NpShape::Off, NpShape::ThreadLocal, NpShape::Global] {
        let Ok(params) = load_from_bytes(*ENGINE, bytes, flag) else { continue };
        // Under np-shape everything that can be loaded can be saved.
        let saved = save_to_bytes(&params, NpShape::Global, &mut || true).expect("saved");
        let again = load_from_bytes(*ENGINE, &saved, NpShape::Global).expect("loaded again");
        assert_eq!(again.len(), params.len());
        assert_eq!(matches!(again, Params::List(_)), matches!(params, Params::List(_)));
    }
}
