//! Addresses from C callers. The only checks possible are for null and for alignment; the rest is
//! promised by the caller, as `include/mxrt.h` says.

use crate::border::Error;
use std::ffi::{CStr, c_char};

fn usable<T>(pointer: *const T, name: &str) -> Result<(), Error> {
    if pointer.is_null() {
        return Err(Error::value(format!("the argument {name} is a null pointer")));
    }
    if !pointer.is_aligned() {
        return Err(Error::value(format!("the argument {name} is not aligned for its type")));
    }
    Ok(())
}

/// Writes a result.
///
/// # Safety
/// `to` is null, or valid for writing a `T`.
pub(crate) unsafe fn put<T>(to: *mut T, value: T, name: &str) -> Result<(), Error> {
    usable(to, name)?;
    // SAFETY: not null and aligned as just checked, otherwise valid as the caller promises.
    unsafe { to.write(value) };
    Ok(())
}

/// Reads an argument.
///
/// # Safety
/// `from` is null, or points to a `T`.
pub(crate) unsafe fn read<T: Copy>(from: *const T, name: &str) -> Result<T, Error> {
    usable(from, name)?;
    // SAFETY: not null and aligned as just checked, otherwise valid as the caller promises.
    Ok(unsafe { from.read() })
}

/// Borrows an array of `count` elements. Null is an array of none.
///
/// # Safety
/// `first` is null, or points to `count` elements that stay unchanged while the result is used.
pub(crate) unsafe fn list<'a, T>(first: *const T, count: usize, name: &str) -> Result<&'a [T], Error> {
    if count == 0 {
        return Ok(&[]);
    }
    usable(first, name)?;
    if count.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Error::value(format!("the argument {name} cannot have {count} elements")));
    }
    // SAFETY: not null and aligned as just checked, of a size that can be, otherwise valid as the
    // caller promises.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// Borrows an array of `count` elements for writing. Null is an array of none.
///
/// # Safety
/// `first` is null, or points to `count` elements that no other code uses while the result is used.
pub(crate) unsafe fn list_mut<'a, T>(first: *mut T, count: usize, name: &str) -> Result<&'a mut [T], Error> {
    if count == 0 {
        return Ok(&mut []);
    }
    usable(first, name)?;
    if count.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Error::value(format!("the argument {name} cannot have {count} elements")));
    }
    // SAFETY: not null and aligned as just checked, of a size that can be, otherwise valid as the
    // caller promises.
    Ok(unsafe { std::slice::from_raw_parts_mut(first, count) })
}

/// Borrows a text.
///
/// # Safety
/// `text` is null, or points to bytes that end in a zero and stay unchanged while the result is
/// used.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Error> {
    usable(text, name)?;
    // SAFETY: not null as just checked, otherwise valid as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Error::value(format!("the argument {name}, {text:?}, is not UTF-8")))
}

/// A count that C passes as a signed or shorter integer.
pub(crate) fn count(number: impl TryInto<usize> + std::fmt::Display + Copy, name: &str) -> Result<usize, Error> {
    number.try_into().map_err(|_| Error::value(format!("the argument {name} is {number}; expected 0 or more")))
}
