//! The objects that C callers hold through handles.

use crate::border::Error;
use crate::engine::Pending;
use crate::iterators::Iteration;
use crate::predict::NDList;
use crate::profiler_objects::ProfileObject;
use crate::records::{Reader, Writer};
use crate::symbol::SymbolCell;
use crossbeam_utils::CachePadded;
use mxrt::internal::ForkSafeRwLock as RwLock;
use mxrt::internal::{Executor, ForkSafeLazy, Predictor, TwoModeOp};
use mxrt::{Model, NDArray};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Handle of an array.
pub type NDArrayHandle = *mut c_void;
/// Handle of a symbol.
pub type SymbolHandle = *mut c_void;
/// Handle of a callable graph.
pub type CachedOpHandle = *mut c_void;
/// Handle of an operator's definition.
pub type OpHandle = *mut c_void;
/// Handle of a data iterator.
pub type DataIterHandle = *mut c_void;
/// Handle of a file of records.
pub type RecordIOHandle = *mut c_void;
/// Handle of an executor.
pub type ExecutorHandle = *mut c_void;
/// Handle of a predictor.
pub type PredictorHandle = *mut c_void;
/// Handle of a list of arrays of a file.
pub type NDListHandle = *mut c_void;
/// Handle of a model with its parameters.
pub type ModelHandle = *mut c_void;

/// Parts of a table, so that threads that look up different objects do not contend.
const SHARDS: usize = 16;
/// A thread that looks an object up more often than this, and no other one between, remembers it:
/// then threads that look up one object contend for nothing but the count of its users.
const OFTEN: u32 = 2;
/// A handle is a multiple of this plus the code of its kind. Small numbers are no handles.
pub(crate) const STEP: usize = 16;

/// Codes of definitions, which are numbers in lists that never change.
pub(crate) const OPERATOR: usize = 14;
/// Code of handles of iterators.
pub(crate) const ITERATOR: usize = 15;

/// The handle of entry `index` of a list of definitions.
pub(crate) fn definition(code: usize, index: usize) -> *mut c_void {
    std::ptr::without_provenance_mut((index + 1) * STEP + code)
}

/// The entry that a handle of a definition stands for.
pub(crate) fn defined<T: Copy>(list: &[T], code: usize, handle: *mut c_void, name: &str) -> Result<T, Error> {
    let number = handle.addr();
    let entry = (number % STEP == code).then(|| list.get((number / STEP).wrapping_sub(1)).copied()).flatten();
    entry.ok_or_else(|| {
        let what = match name_of(number % STEP) {
            _ if number == 0 => "it is null".to_owned(),
            Some(other) if number % STEP != code => format!("it is the handle of {other}"),
            _ => "it was never made by this library".to_owned(),
        };
        Error::value(format!("{number:#x} is not the handle of {name}: {what}"))
    })
}

/// A kind of object that can be held through a handle.
pub(crate) trait Held: Sized + 'static {
    /// The name of the kind in messages.
    const NAME: &'static str;
    /// The code that distinguishes its handles from those of other kinds; below [`STEP`].
    const CODE: usize;
    /// All objects of the kind.
    fn table() -> &'static Table<Self>;
    /// The place where this thread remembers one; none at its end.
    fn with_recent<R>(look: impl FnOnce(&RecentCell<Self>) -> R) -> Option<R>;
}

type RecentCell<T> = Cell<Option<Recent<T>>>;

/// The object that a thread looked up last.
pub(crate) struct Recent<T> {
    number: usize,
    /// how many objects of its part of the table were freed before
    freed: usize,
    /// number of successive lookups
    times: u32,
    /// the object, from the third time on
    object: Weak<T>,
}

macro_rules! held {
    ($($type:ty, $name:literal, $code:literal;)*) => {
        $(impl Held for $type {
            const NAME: &'static str = $name;
            const CODE: usize = $code;
            fn table() -> &'static Table<$type> {
                static TABLE: ForkSafeLazy<Table<$type>> = ForkSafeLazy::new(Table::default);
                &TABLE
            }

            fn with_recent<R>(look: impl FnOnce(&RecentCell<$type>) -> R) -> Option<R> {
                thread_local!(static RECENT: RecentCell<$type> = const { Cell::new(None) });
                RECENT.try_with(look).ok()
            }
        })*

        /// The kind of object that a handle stands for, if it is one and was not freed.
        pub(crate) fn kind_of(handle: *mut c_void) -> Option<&'static str> {
            $(if <$type>::table().has(handle.addr()) {
                return Some($name);
            })*
            None
        }

        /// The kind of object that handles with this code stand for.
        fn name_of(code: usize) -> Option<&'static str> {
            match code {
                $($code => Some($name),)*
                OPERATOR => Some("an operator"),
                ITERATOR => Some("an iterator's definition"),
                _ => None,
            }
        }
    };
}
held! {
    NDArray, "an NDArray", 1;
    SymbolCell, "a Symbol", 2;
    TwoModeOp, "a CachedOp", 3;
    Predictor, "a Predictor", 4;
    NDList, "an NDList", 5;
    Executor, "an Executor", 6;
    Pending, "a function to be completed", 7;
    Iteration, "a data iterator", 8;
    Writer, "a writer of records", 9;
    Reader, "a reader of records", 10;
    Model, "a model", 11;
    ProfileObject, "an object of the profiler", 12;
}

/// Spreads the numbers of handles, which the library chose itself, over a table.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, number: usize) {
        // The table takes some bits from the top and some from the bottom.
        self.0 = (self.0 ^ number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

type Objects<T> = HashMap<usize, Arc<T>, BuildHasherDefault<NumberHasher>>;

/// The objects of one kind.
pub(crate) struct Table<T>([Shard<T>; SHARDS]);

struct Shard<T> {
    objects: RwLock<Objects<T>>,
    /// how many were freed; changed under the lock
    freed: CachePadded<AtomicUsize>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table(std::array::from_fn(|_| Shard { objects: RwLock::default(), freed: CachePadded::default() }))
    }
}

impl<T> Shard<T> {
    fn look_up(&self, number: usize) -> Option<Arc<T>> {
        self.objects.read().get(&number).cloned()
    }

    fn remove(&self, number: usize) -> Option<Arc<T>> {
        let mut objects = self.objects.write();
        let object = objects.remove(&number)?;
        // Who remembers an object of this part looks it up again.
        self.freed.fetch_add(1, Ordering::Release);
        Some(object)
    }
}

impl<T> Table<T> {
    fn has(&self, number: usize) -> bool {
        self.shard(number).objects.read().contains_key(&number)
    }

    fn shard(&self, number: usize) -> &Shard<T> {
        &self.0[number / STEP % SHARDS]
    }
}

/// A number that no handle had before.
fn next(code: usize) -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed) * STEP + code
}

/// Stores an object and returns its handle, which is never reused.
pub(crate) fn hold<T: Held>(object: T) -> *mut c_void {
    let number = next(T::CODE);
    T::table().shard(number).objects.write().insert(number, Arc::new(object));
    std::ptr::without_provenance_mut(number)
}

/// The object of a handle.
pub(crate) fn get<T: Held>(handle: *mut c_void) -> Result<Arc<T>, Error> {
    let number = handle.addr();
    let shard = T::table().shard(number);
    // Looked at first: what is freed meanwhile is looked up again next time.
    let freed = shard.freed.load(Ordering::Acquire);
    T::with_recent(|place| {
        let recent = place.take().filter(|recent| recent.number == number && recent.freed == freed);
        let object = recent.as_ref().and_then(|recent| recent.object.upgrade());
        if object.is_some() {
            place.set(recent);
            return object;
        }
        let object = shard.look_up(number);
        let times = recent.map_or(0, |recent| recent.times) + 1;
        let often = object.as_ref().filter(|_| times > OFTEN);
        place.set(Some(Recent { number, freed, times, object: often.map_or_else(Weak::new, Arc::downgrade) }));
        object
    })
    .unwrap_or_else(|| shard.look_up(number))
    .ok_or_else(|| unknown::<T>(number))
}

/// The objects of several handles.
pub(crate) fn all<T: Held>(handles: &[*mut c_void]) -> Result<Vec<Arc<T>>, Error> {
    handles.iter().map(|handle| get::<T>(*handle)).collect()
}

/// Handles of arrays that have no value yet.
static UNSET: ForkSafeLazy<Table<()>> = ForkSafeLazy::new(Table::default);

/// A handle for an array that is to come.
pub(crate) fn hold_unset() -> *mut c_void {
    let number = next(NDArray::CODE);
    UNSET.shard(number).objects.write().insert(number, Arc::new(()));
    std::ptr::without_provenance_mut(number)
}

/// Whether a handle waits for its array.
pub(crate) fn is_unset(handle: *mut c_void) -> bool {
    let number = handle.addr();
    UNSET.has(number)
}

/// Gives such a handle its array.
pub(crate) fn set(handle: *mut c_void, array: NDArray) -> Result<(), Error> {
    free_unset(handle).then_some(()).ok_or_else(|| unknown::<NDArray>(handle.addr()))?;
    NDArray::table().shard(handle.addr()).objects.write().insert(handle.addr(), Arc::new(array));
    Ok(())
}

/// Removes such a handle. False if it is none.
pub(crate) fn free_unset(handle: *mut c_void) -> bool {
    let number = handle.addr();
    UNSET.shard(number).remove(number).is_some()
}

/// Whether another handle stands for the same storage.
pub(crate) fn is_held_elsewhere(handle: *mut c_void, array: &NDArray) -> bool {
    let other = |(number, held): (&usize, &Arc<NDArray>)| *number != handle.addr() && held.same_storage(array);
    NDArray::table().0.iter().any(|shard| shard.objects.read().iter().any(other))
}

/// Removes an object. Work that uses it continues. Null is no object, as in MXNet and for `free`.
pub(crate) fn free<T: Held>(handle: *mut c_void) -> Result<(), Error> {
    if handle.is_null() { Ok(()) } else { take::<T>(handle).map(drop) }
}

/// Removes an object and returns it.
pub(crate) fn take<T: Held>(handle: *mut c_void) -> Result<Arc<T>, Error> {
    let number = handle.addr();
    T::table().shard(number).remove(number).ok_or_else(|| unknown::<T>(number))
}

/// Removes all objects of a kind.
pub(crate) fn drain<T: Held>() {
    for shard in &T::table().0 {
        let mut objects = shard.objects.write();
        let gone = std::mem::take(&mut *objects);
        shard.freed.fetch_add(1, Ordering::Release);
        drop(objects);
        drop(gone);
    }
}

fn unknown<T: Held>(number: usize) -> Error {
    let what: Cow<'_, str> = match number % STEP {
        _ if number == 0 => "it is null".into(),
        1 if T::CODE == 1 && is_unset(std::ptr::without_provenance_mut(number)) => {
            "it has no value yet (MXNDArrayCreateNone): give it to an operator as its output first".into()
        }
        code if code == T::CODE => "it was freed before".into(),
        code => match name_of(code) {
            Some(name) => format!("it is the handle of {name}").into(),
            None => "it was never made by this library".into(),
        },
    };
    Error::value(format!("{number:#x} is not the handle of {}: {what}", T::NAME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxrt::internal::Process;
    use mxrt::types::TensorType;
    use mxrt::{Context, DType, Shape};

    fn array() -> *mut c_void {
        let engine = Process::get().expect("a process").engine;
        hold(NDArray::new(engine, Context::cpu(0), TensorType::new(DType::F32, Shape::new(&[2]))).expect("an array"))
    }

    fn is_held(handle: *mut c_void) -> bool {
        get::<NDArray>(handle).is_ok()
    }

    /// Whoever else uses the object: a freed handle is none.
    #[test]
    fn a_remembered_handle_ends_when_it_is_freed_although_the_object_lives() {
        let (handle, other) = (array(), array());
        let users: Vec<Arc<NDArray>> = (0..8).filter_map(|_| get::<NDArray>(handle).ok()).collect();
        assert!(users.len() == 8 && users.iter().all(|user| Arc::ptr_eq(user, &users[0])));
        assert!(get::<NDArray>(other).is_ok_and(|found| !Arc::ptr_eq(&found, &users[0])));
        assert!((0..8).all(|_| is_held(handle)));
        assert!(free::<NDArray>(handle).is_ok());
        assert!(!is_held(handle) && free::<NDArray>(handle).is_err() && is_held(other));
        assert!(free::<NDArray>(other).is_ok());
    }
}
