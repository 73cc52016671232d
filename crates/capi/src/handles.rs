//! The objects that C callers hold through handles.

use crate::border::Error;
use mxrt::ForkSafeRwLock as RwLock;
use mxrt::{CachedOp, NDArray, Symbol};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// Handle of an array.
pub type NDArrayHandle = *mut c_void;
/// Handle of a symbol.
pub type SymbolHandle = *mut c_void;
/// Handle of a callable graph.
pub type CachedOpHandle = *mut c_void;

/// Parts of a table, so that threads that look up different objects do not contend.
const SHARDS: usize = 16;
/// A handle is a multiple of this plus the code of its kind. Small numbers are no handles.
const STEP: usize = 16;

/// A kind of object that can be held through a handle.
pub(crate) trait Held: Sized + 'static {
    /// Its name in messages.
    const NAME: &'static str;
    /// The code that distinguishes its handles from those of other kinds; below [`STEP`].
    const CODE: usize;
    /// All objects of the kind.
    fn table() -> &'static Table<Self>;
}

macro_rules! held {
    ($type:ty, $name:literal, $code:literal) => {
        impl Held for $type {
            const NAME: &'static str = $name;
            const CODE: usize = $code;
            fn table() -> &'static Table<$type> {
                static TABLE: LazyLock<Table<$type>> = LazyLock::new(Table::default);
                &TABLE
            }
        }
    };
}
held!(NDArray, "an NDArray", 1);
held!(Symbol, "a Symbol", 2);
held!(CachedOp, "a CachedOp", 3);

/// The objects of one kind.
pub(crate) struct Table<T>([RwLock<HashMap<usize, Arc<T>>>; SHARDS]);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table(std::array::from_fn(|_| RwLock::default()))
    }
}

impl<T> Table<T> {
    fn shard(&self, number: usize) -> &RwLock<HashMap<usize, Arc<T>>> {
        &self.0[number / STEP % SHARDS]
    }
}

/// Stores an object and returns its handle, which is never reused.
pub(crate) fn hold<T: Held>(object: T) -> *mut c_void {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed) * STEP + T::CODE;
    T::table().shard(number).write().insert(number, Arc::new(object));
    std::ptr::without_provenance_mut(number)
}

/// The object of a handle.
pub(crate) fn get<T: Held>(handle: *mut c_void) -> Result<Arc<T>, Error> {
    let number = handle.addr();
    T::table().shard(number).read().get(&number).cloned().ok_or_else(|| unknown::<T>(number))
}

/// Removes an object. Work that uses it goes on.
pub(crate) fn free<T: Held>(handle: *mut c_void) -> Result<(), Error> {
    let number = handle.addr();
    let object = T::table().shard(number).write().remove(&number);
    object.map(drop).ok_or_else(|| unknown::<T>(number))
}

fn unknown<T: Held>(number: usize) -> Error {
    let what = match number % STEP {
        _ if number == 0 => "it is null",
        code if code == T::CODE => "it was freed before",
        1 => "it is the handle of an NDArray",
        2 => "it is the handle of a Symbol",
        3 => "it is the handle of a CachedOp",
        _ => "it was never made by this library",
    };
    Error::value(format!("{number:#x} is not the handle of {}: {what}", T::NAME))
}
