//! Sparse arrays that are filled part by part: parts that do not make a content yet.

use crate::border::Error;
use crate::handles::{NDArrayHandle, get, is_held_elsewhere};
use mxrt::internal::{ForkSafeMutex, SparseContent, StorageType};
use mxrt::{NDArray, Shape};
use std::collections::HashMap;
use std::sync::Arc;

/// Extents and bytes of a part.
type Part = Arc<(Shape, Vec<u8>)>;

/// Parts of a sparse array: values, then positions as MXNet numbers them.
#[derive(Clone, Default)]
struct Parts {
    parts: [Option<Part>; 3],
    /// the parts that the caller gave; others are those of the array's last content
    given: [bool; 3],
    /// the version of the array that they belong to
    version: u64,
}

/// Parts by the number of their array's variable, which all handles of the array share.
static UNFINISHED: ForkSafeMutex<Option<HashMap<u64, Parts>>> = ForkSafeMutex::new(None);

/// Numbers of the variable and of the present version of an array that nothing writes.
fn key(array: &NDArray) -> (u64, u64) {
    let (variable, version, _) = array.value_key();
    (variable, version)
}

/// Place of a part among [`Parts`].
fn place(part: Option<usize>) -> usize {
    part.map_or(0, |position| position + 1)
}

/// The bytes of positions.
pub(crate) fn bytes_of(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn numbers_of(bytes: &[u8]) -> Vec<i64> {
    let (numbers, _) = bytes.as_chunks::<8>();
    numbers.iter().map(|number| i64::from_ne_bytes(*number)).collect()
}

impl Parts {
    /// The parts of what an array holds. Where it stores nothing, or has failed, all are missing.
    fn of(array: &NDArray) -> Parts {
        let version = key(array).1;
        let Some(parts) = stored(array) else { return Parts { version, ..Parts::default() } };
        Parts { parts: parts.map(Some), version, ..Parts::default() }
    }

    /// Whether no part of an array of that storage type is missing.
    fn all(&self, storage: StorageType) -> bool {
        self.parts[..=storage.positions()].iter().all(Option::is_some)
    }

    /// Whether the caller gave every part.
    fn all_given(&self, storage: StorageType) -> bool {
        self.given[..=storage.positions()].iter().all(|given| *given)
    }

    /// The content that the parts make, if they agree.
    fn content(&self, array: &NDArray) -> Result<SparseContent, mxrt::internal::OpError> {
        let numbers = |place: usize| self.parts[place].as_ref().map_or_else(Vec::new, |part| numbers_of(&part.1));
        let (indices, pointers) = match array.storage_type() {
            StorageType::Csr => (numbers(2), numbers(1)),
            _ => (numbers(1), Vec::new()),
        };
        let values = self.parts[0].as_ref().map_or(&[][..], |part| &part.1);
        SparseContent::new(array.engine(), array.storage_type(), &array.tensor_type(), values, &indices, &pointers)
    }
}

/// The parts of what an array stores; none where it stores nothing or has failed.
fn stored(array: &NDArray) -> Option<[Part; 3]> {
    let guard = array.read_stored(None).ok()?;
    let content = guard.parts().ok()??;
    let values = guard.content().ok()?.values();
    let of = |numbers: &[i64]| Arc::new(([numbers.len()].into(), bytes_of(numbers)));
    let (first, second) = match array.storage_type() {
        StorageType::Csr => (content.pointers(), content.indices()),
        _ => (content.indices(), content.pointers()),
    };
    (content.stored() > 0).then(|| [Arc::new((values.shape.clone(), values.bytes().to_vec())), of(first), of(second)])
}

/// Changes the parts of an array; what they were made for may be older than its content.
fn with<R>(array: &NDArray, change: impl FnOnce(&mut HashMap<u64, Parts>, u64) -> R) -> R {
    let (variable, version) = key(array);
    let mut unfinished = UNFINISHED.lock();
    let all = unfinished.get_or_insert_default();
    let old =
        if all.get(&variable).is_some_and(|parts| parts.version != version) { all.remove(&variable) } else { None };
    let result = change(all, variable);
    drop(unfinished);
    drop(old);
    result
}

/// A part that was given and belongs to no content yet.
pub(crate) fn part_of(array: &NDArray, part: Option<usize>) -> Option<(Shape, Vec<u8>)> {
    // Its failure, if it has one, comes from reading it.
    let _ = array.wait_to_read();
    let part = with(array, |all, variable| all.get(&variable)?.parts[place(part)].clone())?;
    Some((*part).clone())
}

/// Sets a part of an array. With the other parts it is the content at once if they agree. Otherwise
/// reading an array that had a content is an error until the caller has given the parts that fit.
pub(crate) fn set_part(array: &NDArray, part: Option<usize>, shape: Shape, bytes: Vec<u8>) -> Result<(), Error> {
    let storage = array.storage_type();
    // A failure is replaced with the content.
    let _ = array.wait_to_read();
    let known = with(array, |all, variable| all.contains_key(&variable));
    let present = if known { Parts::default() } else { Parts::of(array) };
    let (place, given) = (place(part), Some(Arc::new((shape, bytes))));
    let (parts, replaced) = with(array, |all, variable| {
        let parts = all.entry(variable).or_insert(present);
        parts.given[place] = true;
        let replaced = std::mem::replace(&mut parts.parts[place], given);
        (parts.clone(), replaced)
    });
    drop(replaced);
    if !parts.all(storage) {
        return Ok(());
    }
    let made = parts.content(array);
    let wrong = made.as_ref().err().map(|error| Error::from(error.clone()));
    if made.is_ok() || parts.all_given(storage) {
        drop(with(array, |all, variable| all.remove(&variable)));
    }
    array.fill_stored("sparse array", move |_, _, _| made)?;
    let written = array.wait_to_read();
    match wrong {
        None => Ok(written?),
        Some(error) if parts.all_given(storage) => Err(error),
        Some(_) => {
            // The parts belong to the failure that was written.
            let (variable, version) = key(array);
            if let Some(parts) = UNFINISHED.lock().as_mut().and_then(|all| all.get_mut(&variable)) {
                parts.version = version;
            }
            Ok(())
        }
    }
}

/// Forgets the parts of an array whose last handle is freed.
pub(crate) fn forget(handle: NDArrayHandle) {
    if UNFINISHED.lock().as_ref().is_none_or(HashMap::is_empty) {
        return;
    }
    let Ok(array) = get::<NDArray>(handle) else { return };
    if array.is_sparse() && !is_held_elsewhere(handle, &array) {
        let mut unfinished = UNFINISHED.lock();
        let parts = unfinished.as_mut().and_then(|all| all.remove(&key(&array).0));
        drop(unfinished);
        drop(parts);
    }
}
