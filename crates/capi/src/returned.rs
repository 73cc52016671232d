//! Memory behind the pointers that functions return. It belongs to the calling thread and stays
//! unchanged until the thread calls the same function again, or the same function of the same
//! object. Where MXNet promises that much or less, programs of MXNet find what they expect. A list
//! without entries is a null pointer, as in MXNet.

use crate::border::Error;
use crate::handles::kind_of;
use mxrt::Shape;
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};

thread_local! {
    static KEPT: RefCell<HashMap<ResultPlace, Box<dyn Any>>> = RefCell::default();
}

/// Bytes of a list whose memory may stay longer than the list.
const SHORT: usize = 4096;

/// The place of one result in a thread: which result, and of which object where each has its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ResultPlace {
    result: &'static str,
    object: Option<usize>,
}

impl ResultPlace {
    /// A place for this result of any object.
    pub(crate) const fn of(result: &'static str) -> ResultPlace {
        ResultPlace { result, object: None }
    }

    /// A place for this result of the object of a handle.
    pub(crate) fn of_object(result: &'static str, handle: *mut c_void) -> ResultPlace {
        ResultPlace { result, object: Some(handle.addr()) }
    }
}

/// Stores what pointers point to, in place of what was there. Memory of objects that were freed goes.
fn keep(place: ResultPlace, content: impl Any) -> Result<(), Error> {
    let gone = |_| Error::plain("this thread is ending: nothing can be returned to it any more");
    let before = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if place.object.is_some() && !kept.contains_key(&place) {
            let there = |object| kind_of(std::ptr::without_provenance_mut(object)).is_some();
            kept.retain(|place, _| place.object.is_none_or(there));
        }
        kept.insert(place, Box::new(content))
    });
    before.map(drop).map_err(gone)
}

/// The address of the first entry; null where there is none.
fn first<T>(entries: &mut [T]) -> *mut T {
    if entries.is_empty() { std::ptr::null_mut() } else { entries.as_mut_ptr() }
}

/// Stores a list of numbers or of handles. The objects of handles belong to the caller. Memory of a
/// short list before is used again if it is large enough, as in MXNet: a pointer that a program
/// keeps too long shows the new list.
pub(crate) fn list<T: 'static>(place: ResultPlace, mut entries: Vec<T>) -> Result<*mut T, Error> {
    let reused = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        let space = entries.len()..=SHORT / size_of::<T>();
        let list = kept.get_mut(&place)?.downcast_mut::<Vec<T>>().filter(|list| space.contains(&list.capacity()))?;
        list.clear();
        list.append(&mut entries);
        Some(first(list))
    });
    if let Ok(Some(pointer)) = reused {
        return Ok(pointer);
    }
    let pointer = first(&mut entries);
    keep(place, entries)?;
    Ok(pointer)
}

/// Stores several lists one after the other in one piece of memory, and returns their addresses.
pub(crate) fn lists<T: 'static, const N: usize>(place: ResultPlace, lists: [Vec<T>; N]) -> Result<[*mut T; N], Error> {
    let lengths = lists.each_ref().map(Vec::len);
    let base = list(place, lists.into_iter().flatten().collect())?;
    let mut start = 0;
    Ok(lengths.map(|length| {
        let pointer = if length == 0 { std::ptr::null_mut() } else { base.wrapping_add(start) };
        start += length;
        pointer
    }))
}

/// Stores ranks and extents of several shapes. The extents of all are one piece of memory: clients
/// of MXNet read them from the address of the first.
pub(crate) fn shapes<R: 'static, T: 'static>(
    place: ResultPlace,
    mut ranks: Vec<R>,
    rows: Vec<Vec<T>>,
) -> Result<(*const R, *mut *const T), Error> {
    let lengths: Vec<usize> = rows.iter().map(Vec::len).collect();
    let mut extents: Vec<T> = rows.into_iter().flatten().collect();
    let base = first(&mut extents).cast_const();
    let mut start = 0;
    let row = |length: usize| {
        let before = start;
        start += length;
        base.wrapping_add(before)
    };
    let mut pointers: Vec<*const T> = lengths.into_iter().map(row).collect();
    let places = (first(&mut ranks).cast_const(), first(&mut pointers));
    keep(place, (ranks, extents, pointers))?;
    Ok(places)
}

/// Stores texts and returns an array of pointers to them.
pub(crate) fn texts(place: ResultPlace, texts: Vec<String>) -> Result<*mut *const c_char, Error> {
    let owned = texts.into_iter().map(c_text).collect::<Result<Vec<CString>, Error>>()?;
    let mut pointers: Vec<*const c_char> = owned.iter().map(|text| text.as_ptr()).collect();
    let pointer = first(&mut pointers);
    keep(place, (owned, pointers))?;
    Ok(pointer)
}

/// Stores one text.
pub(crate) fn text(place: ResultPlace, text: String) -> Result<*const c_char, Error> {
    let text = c_text(text)?;
    let pointer = text.as_ptr();
    keep(place, text)?;
    Ok(pointer)
}

/// Extents in the integers of a function.
pub(crate) fn extents<T: TryFrom<usize>>(shape: &Shape) -> Result<Vec<T>, Error> {
    let too_large = |dim: usize| Error::value(format!("the extent {dim} does not fit the integers of this function"));
    shape.iter().map(|dim| T::try_from(*dim).map_err(|_| too_large(*dim))).collect()
}

fn c_text(text: String) -> Result<CString, Error> {
    CString::new(text).map_err(|error| {
        let text = String::from_utf8_lossy(&error.into_vec()).into_owned();
        Error::value(format!("{text:?} contains a zero byte and cannot be given to C"))
    })
}
