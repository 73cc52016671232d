//! Reading the content: one array after the other, straight into its own memory.

use super::index::{ArrayRecord, array_name, index};
use super::source::ListSource;
use super::sparse::read_sparse;
use super::{NpShape, Params, ParamsError};
use crate::FileError;
use crate::file::local_path;
use mxrt_engine::{Engine, OpError};
use mxrt_tensor::{Context, NDArray};
use std::collections::HashMap;
use std::path::Path;

/// Name of a buffer in messages.
const BUFFER: &str = "<buffer>";

/// The arrays of a file to load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    All,
    LastOfEachName,
}

/// Loads a parameter file into arrays on `cpu(0)` (devices named in the file are not restored).
///
/// If a name occurs more than once, its last array counts. Bytes after the names are ignored.
pub fn load(engine: &'static Engine, path: impl AsRef<Path>, np_shape: NpShape) -> Result<Params, ParamsError> {
    load_file(engine, path.as_ref(), np_shape, Wanted::LastOfEachName)
}

/// [`load`] with all arrays of the file, also those of equal names.
pub fn load_all(engine: &'static Engine, path: impl AsRef<Path>, np_shape: NpShape) -> Result<Params, ParamsError> {
    load_file(engine, path.as_ref(), np_shape, Wanted::All)
}

/// Loads a parameter list from the bytes of such a file.
pub fn load_from_bytes(engine: &'static Engine, bytes: &[u8], np_shape: NpShape) -> Result<Params, ParamsError> {
    load_from(engine, &ListSource::Bytes(bytes), BUFFER, np_shape, Wanted::LastOfEachName)
}

/// [`load_from_bytes`] with all arrays of the list, also those of equal names.
pub fn load_all_from_bytes(engine: &'static Engine, bytes: &[u8], np_shape: NpShape) -> Result<Params, ParamsError> {
    load_from(engine, &ListSource::Bytes(bytes), BUFFER, np_shape, Wanted::All)
}

fn load_file(engine: &'static Engine, path: &Path, np_shape: NpShape, wanted: Wanted) -> Result<Params, ParamsError> {
    let source = ListSource::open(path)?;
    load_from(engine, &source, &local_path(path).to_string_lossy(), np_shape, wanted)
}

fn load_from(
    engine: &'static Engine,
    source: &ListSource<'_>,
    path: &str,
    np_shape: NpShape,
    wanted: Wanted,
) -> Result<Params, ParamsError> {
    let contents = index(engine, source, path, np_shape)?;
    let count = contents.records.len();
    let chosen = match wanted {
        Wanted::All => (0..count).collect(),
        Wanted::LastOfEachName => last_of_each_name(&contents.names, count),
    };
    let mut arrays = Vec::with_capacity(chosen.len());
    for i in &chosen {
        let record = &contents.records[*i];
        let name = || array_name(*i, count, &contents.names);
        arrays.push(match &record.sparse {
            Some(parts) => read_sparse(engine, source, (path, &name), record, parts)?,
            None => read_dense(engine, source, (path, &name), record)?,
        });
    }
    if contents.names.is_empty() {
        return Ok(Params::List(arrays));
    }
    let names = chosen.iter().map(|i| contents.names[*i].clone());
    Ok(Params::Named(names.zip(arrays).collect()))
}

/// Numbers of the records to load, of `count`: the last one of each name, at the place of the first,
/// and all those without a name.
fn last_of_each_name(names: &[String], count: usize) -> Vec<usize> {
    // Position of each name in the result.
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut chosen: Vec<usize> = Vec::new();
    for i in 0..count {
        match names.get(i) {
            None => chosen.push(i),
            Some(name) => match places.get(name.as_str()) {
                Some(place) => chosen[*place] = i,
                None => {
                    places.insert(name, chosen.len());
                    chosen.push(i);
                }
            },
        }
    }
    chosen
}

/// Reads the elements of a dense array into its own memory.
fn read_dense(
    engine: &'static Engine,
    source: &ListSource<'_>,
    (path, name): (&str, &dyn Fn() -> String),
    record: &ArrayRecord,
) -> Result<NDArray, ParamsError> {
    let memory = |error: OpError| ParamsError::Memory { path: path.to_owned(), array: name(), source: error };
    let bytes = record.tensor.bytes();
    let mut block = engine.memory().alloc(bytes).map_err(|refusal| memory(refusal.into()))?;
    source
        .read_at(record.offset, &mut block.as_mut_slice()[..bytes])
        .map_err(|error| FileError::io("reading", path, &error))?;
    NDArray::from_block(engine, Context::cpu(0), record.tensor.clone(), block).map_err(memory)
}
