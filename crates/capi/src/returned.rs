//! Memory behind the pointers that functions return. It belongs to the calling thread and stays
//! unchanged until the thread calls a function that returns the same sort of thing.

use crate::border::Error;
use mxrt::Shape;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};

thread_local! {
    static BUFFERS: RefCell<ReturnBuffers> = RefCell::default();
}

#[derive(Default)]
struct ReturnBuffers {
    shape_u32: Vec<u32>,
    shape_int: Vec<c_int>,
    shape_i64: Vec<i64>,
    handles: Vec<*mut c_void>,
    states: Vec<*mut c_void>,
    grads: Vec<*mut c_void>,
    bytes: Vec<u8>,
    index: Vec<u64>,
    storage_types: Vec<c_int>,
    texts: Texts,
    text: CString,
    /// up to three lists of one call
    shapes: [Option<Box<dyn Any>>; 3],
}

#[derive(Default)]
struct Texts {
    owned: Vec<CString>,
    pointers: Vec<*const c_char>,
}

fn keep<R>(set: impl FnOnce(&mut ReturnBuffers) -> R) -> Result<R, Error> {
    let gone = |_| Error::plain("this thread is ending: nothing can be returned to it any more");
    BUFFERS.try_with(|buffers| set(&mut buffers.borrow_mut())).map_err(gone)
}

/// Extents in the integers of a function.
pub(crate) fn extents<T: TryFrom<usize>>(shape: &Shape) -> Result<Vec<T>, Error> {
    let too_large = |dim: usize| Error::value(format!("the extent {dim} does not fit the integers of this function"));
    shape.iter().map(|dim| T::try_from(*dim).map_err(|_| too_large(*dim))).collect()
}

/// Stores a shape as unsigned numbers.
pub(crate) fn shape_u32(shape: Vec<u32>) -> Result<*const u32, Error> {
    keep(|buffers| {
        buffers.shape_u32 = shape;
        buffers.shape_u32.as_ptr()
    })
}

/// Stores a shape as signed numbers.
pub(crate) fn shape_int(shape: Vec<c_int>) -> Result<*const c_int, Error> {
    keep(|buffers| {
        buffers.shape_int = shape;
        buffers.shape_int.as_ptr()
    })
}

/// Stores ranks and extents of several shapes, as list number `which` of a call.
pub(crate) fn shapes<R: 'static, T: 'static>(
    which: usize,
    ranks: Vec<R>,
    rows: Vec<Vec<T>>,
) -> Result<(*const R, *mut *const T), Error> {
    keep(|buffers| {
        let mut pointers: Vec<*const T> = rows.iter().map(|row| row.as_ptr()).collect();
        let places = (ranks.as_ptr(), pointers.as_mut_ptr());
        buffers.shapes[which] = Some(Box::new((ranks, rows, pointers)));
        places
    })
}

/// Stores a shape as numbers of 64 bits.
pub(crate) fn shape_i64(shape: Vec<i64>) -> Result<*const i64, Error> {
    keep(|buffers| {
        buffers.shape_i64 = shape;
        buffers.shape_i64.as_ptr()
    })
}

/// Stores numbers of rows.
pub(crate) fn index(index: Vec<u64>) -> Result<*mut u64, Error> {
    keep(|buffers| {
        buffers.index = index;
        buffers.index.as_mut_ptr()
    })
}

/// Stores bytes.
pub(crate) fn bytes(bytes: Vec<u8>) -> Result<*const u8, Error> {
    keep(|buffers| {
        buffers.bytes = bytes;
        buffers.bytes.as_ptr()
    })
}

/// Stores the handles of an executor's auxiliary states, in addition to those of its arguments.
pub(crate) fn states(handles: Vec<*mut c_void>) -> Result<*mut *mut c_void, Error> {
    keep(|buffers| {
        buffers.states = handles;
        buffers.states.as_mut_ptr()
    })
}

/// Stores as many null handles: arguments without gradients.
pub(crate) fn grads(count: usize) -> Result<*mut *mut c_void, Error> {
    keep(|buffers| {
        buffers.grads = vec![std::ptr::null_mut(); count];
        buffers.grads.as_mut_ptr()
    })
}

/// Stores an array of handles. The objects themselves belong to the caller.
pub(crate) fn handles(handles: Vec<*mut c_void>) -> Result<*mut *mut c_void, Error> {
    keep(|buffers| {
        buffers.handles = handles;
        buffers.handles.as_mut_ptr()
    })
}

/// Stores the storage types of `count` arrays, all of which are dense.
pub(crate) fn dense(count: usize) -> Result<*const c_int, Error> {
    keep(|buffers| {
        buffers.storage_types = vec![0; count];
        buffers.storage_types.as_ptr()
    })
}

/// Stores texts and returns an array of pointers to them.
pub(crate) fn texts(texts: Vec<String>) -> Result<*mut *const c_char, Error> {
    let owned = texts.into_iter().map(c_text).collect::<Result<Vec<CString>, Error>>()?;
    keep(|buffers| {
        buffers.texts.pointers = owned.iter().map(|text| text.as_ptr()).collect();
        buffers.texts.owned = owned;
        buffers.texts.pointers.as_mut_ptr()
    })
}

/// Stores one text.
pub(crate) fn text(text: String) -> Result<*const c_char, Error> {
    let text = c_text(text)?;
    keep(|buffers| {
        buffers.text = text;
        buffers.text.as_ptr()
    })
}

fn c_text(text: String) -> Result<CString, Error> {
    CString::new(text).map_err(|error| {
        let text = String::from_utf8_lossy(&error.into_vec()).into_owned();
        Error::value(format!("{text:?} contains a zero byte and cannot be given to C"))
    })
}
