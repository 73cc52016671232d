//! One array as bytes: a record of a parameter file without the list around it.

use super::{NpShape, Params, ParamsError, load_from_bytes, save_to_bytes};
use crate::params::format::LIST_MAGIC;
use mxrt_engine::Engine;
use mxrt_tensor::NDArray;

/// Bytes in front of the records: magic number, a zero, and the number of records.
const HEADER: usize = 24;
/// Bytes after the records if there are no names: their number.
const NAMES: usize = 8;

/// The bytes of one array, as `MXNDArraySaveRawBytes` gives them, after waiting for it.
pub fn save_raw(array: &NDArray, np_shape: NpShape, poll: &mut dyn FnMut() -> bool) -> Result<Vec<u8>, ParamsError> {
    let mut bytes = save_to_bytes(&Params::List(vec![array.clone()]), np_shape, poll)?;
    bytes.truncate(bytes.len().saturating_sub(NAMES));
    bytes.drain(..HEADER.min(bytes.len()));
    Ok(bytes)
}

/// The array of such bytes.
pub fn load_raw(engine: &'static Engine, bytes: &[u8], np_shape: NpShape) -> Result<Option<NDArray>, ParamsError> {
    let mut list = Vec::with_capacity(HEADER + bytes.len() + NAMES);
    for field in [LIST_MAGIC, 0, 1] {
        list.extend_from_slice(&field.to_le_bytes());
    }
    list.extend_from_slice(bytes);
    list.extend_from_slice(&[0; NAMES]);
    Ok(match load_from_bytes(engine, &list, np_shape)? {
        Params::List(arrays) => arrays.into_iter().next(),
        Params::Named(arrays) => arrays.into_iter().next().map(|(_, array)| array),
    })
}
