//! Writing parameter lists, byte for byte as MXNet does.

use super::format::{LIST_MAGIC, RECORD_V2, RECORD_V3};
use super::sparse::write_sparse;
use super::{NpShape, Params, ParamsError};
use crate::FileError;
use crate::whole::write_whole;
use mxrt_engine::{DeviceKind, WaitError};
use mxrt_tensor::{Context, DeviceType, NDArray};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Saves arrays to a file, waiting for each.
///
/// The file appears whole or not at all: it is written under another name in the same directory and
/// then renamed. (A device such as `/dev/stdout` is written directly.) Under np-shape records are
/// of version 3, otherwise 2. `poll` is called periodically while waiting; when it returns false
/// the save is abandoned.
pub fn save(
    path: impl AsRef<Path>,
    params: &Params,
    np_shape: NpShape,
    poll: &mut dyn FnMut() -> bool,
) -> Result<(), ParamsError> {
    let path = path.as_ref();
    let shown = path.to_string_lossy();
    write_whole(path, |file| write_file(file, &shown, params, np_shape, poll))
}

/// The bytes of a parameter file.
pub fn save_to_bytes(
    params: &Params,
    np_shape: NpShape,
    poll: &mut dyn FnMut() -> bool,
) -> Result<Vec<u8>, ParamsError> {
    let mut bytes = Vec::new();
    write_list(&mut bytes, "<buffer>", params, np_shape, poll)?;
    Ok(bytes)
}

fn arrays(params: &Params) -> Box<dyn Iterator<Item = &NDArray> + '_> {
    match params {
        Params::List(arrays) => Box::new(arrays.iter()),
        Params::Named(arrays) => Box::new(arrays.iter().map(|(_, array)| array)),
    }
}

fn write_file(
    file: File,
    path: &str,
    params: &Params,
    np_shape: NpShape,
    poll: &mut dyn FnMut() -> bool,
) -> Result<File, ParamsError> {
    let mut out = BufWriter::with_capacity(1 << 16, file);
    write_list(&mut out, path, params, np_shape, poll)?;
    Ok(out.into_inner().map_err(|e| FileError::io("writing", path, e.error()))?)
}

fn write_list(
    out: &mut impl Write,
    path: &str,
    params: &Params,
    np_shape: NpShape,
    poll: &mut dyn FnMut() -> bool,
) -> Result<(), ParamsError> {
    let failed = |error: io::Error| FileError::io("writing", path, &error);
    for field in [LIST_MAGIC, 0, params.len() as u64] {
        out.write_all(&field.to_le_bytes()).map_err(failed)?;
    }
    for (i, array) in arrays(params).enumerate() {
        let name = || match params {
            Params::List(arrays) => format!("array {i} of {}", arrays.len()),
            Params::Named(arrays) => format!("array '{}'", arrays[i].0),
        };
        let head = record_head(array, np_shape).map_err(|problem| ParamsError::Unsavable {
            path: path.to_owned(),
            array: name(),
            problem,
        })?;
        if array.is_sparse() {
            write_sparse(out, array, &head, poll, &failed)?;
            continue;
        }
        out.write_all(&head).map_err(failed)?;
        // One array at a time: holding two read grants while a write waits between them would block
        // both.
        let guard = array.read_with(poll).map_err(ParamsError::Wait)?;
        out.write_all(guard.tensor().bytes()).map_err(failed)?;
    }
    let named: &[(String, NDArray)] = if let Params::Named(named) = params { named } else { &[] };
    out.write_all(&(named.len() as u64).to_le_bytes()).map_err(failed)?;
    for (name, _) in named {
        out.write_all(&(name.len() as u64).to_le_bytes()).map_err(failed)?;
        out.write_all(name.as_bytes()).map_err(failed)?;
    }
    Ok(())
}

/// Everything of a record in front of its elements; of a sparse array the part from its shape to its
/// element type.
fn record_head(array: &NDArray, np_shape: NpShape) -> Result<Vec<u8>, String> {
    let shape = array.shape();
    if shape.is_empty() && !np_shape.is_on() {
        return Err("is a scalar (shape ()), which this format holds only under np-shape: save it with npx.save, or \
                    as an array of shape (1,)"
            .to_owned());
    }
    let mut head = Vec::with_capacity(24 + 8 * shape.len());
    if array.is_sparse() {
        if np_shape.is_on() {
            return Err("is sparse, and np-shape has dense arrays only: save array.tostype('default')".to_owned());
        }
    } else {
        let magic = if np_shape.is_on() { RECORD_V3 } else { RECORD_V2 };
        head.extend(magic.to_le_bytes());
        head.extend(0i32.to_le_bytes());
    }
    put_shape(&mut head, shape)?;
    // Kinds of devices that MXNet does not have would mean nothing to it.
    let context = match array.context() {
        Context { device_type: DeviceType::Device(kind), .. } if kind != DeviceKind::GPU => Context::cpu(0),
        context => context,
    };
    head.extend(context.device_type.code().to_le_bytes());
    head.extend(context.device_id.to_le_bytes());
    head.extend(array.dtype().code().to_le_bytes());
    Ok(head)
}

/// Appends a shape.
pub(super) fn put_shape(to: &mut Vec<u8>, shape: &[usize]) -> Result<(), String> {
    let rank = i32::try_from(shape.len()).map_err(|_| format!("has too many axes ({})", shape.len()))?;
    to.extend(rank.to_le_bytes());
    for extent in shape {
        let extent = i64::try_from(*extent).map_err(|_| format!("has too large an axis ({extent})"))?;
        to.extend(extent.to_le_bytes());
    }
    Ok(())
}

/// Interruption is not a property of the file.
impl From<WaitError> for ParamsError {
    fn from(error: WaitError) -> Self {
        ParamsError::Wait(error)
    }
}
