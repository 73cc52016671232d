//! Common parts of the libraries of NVIDIA that this library is too, for tests: calls that fail when
//! they are told to, a list of calls, and work in streams.

use crate::capture;
use crate::graph::Node;
use crate::state::here;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::io::Write as _;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Defines functions of a library: each is a `Result` inside, and a status outside. `$begin` notes the
/// call.
macro_rules! library {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of the library.")]
        ///
        /// # Safety
        /// Pointers are as the library's documentation says.
        #[unsafe(no_mangle)]
        #[allow(private_interfaces, clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> std::ffi::c_int {
            let body = || -> Result<(), std::ffi::c_int> {
                $crate::libraries::fault(stringify!($name))?;
                $body
            };
            body().err().unwrap_or(0)
        }
    )*};
}
pub(crate) use library;

/// Calls of each function that `STANDIN_LIBRARY_FAULTS` names, so far.
static CALLS: LazyLock<Mutex<HashMap<&'static str, usize>>> = LazyLock::new(Mutex::default);

/// The status that a call was told to return.
///
/// # Panics
/// If a fault is not of the form that the crate's documentation shows.
pub(crate) fn fault(function: &'static str) -> Result<(), c_int> {
    let Ok(faults) = std::env::var("STANDIN_LIBRARY_FAULTS") else { return Ok(()) };
    for planned in faults.split(',') {
        let parts: Vec<&str> = planned.split(':').collect();
        let [name, after, status] = parts[..] else { panic!("STANDIN_LIBRARY_FAULTS: {planned}") };
        if name != function {
            continue;
        }
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        let number = calls.entry(function).or_insert(0);
        *number += 1;
        let (after, all) = after.strip_suffix('+').map_or((after, false), |after| (after, true));
        match (after.parse::<usize>(), status.parse()) {
            (Ok(after), Ok(status)) if *number == after + 1 || (all && *number > after) => return Err(status),
            (Ok(_), Ok(_)) => {}
            _ => panic!("STANDIN_LIBRARY_FAULTS: {planned}"),
        }
    }
    Ok(())
}

/// Adds a line to the list of calls.
pub(crate) fn note(line: &str) {
    if let Ok(path) = std::env::var("STANDIN_LIBRARY_CALLS") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        if let Err(error) = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())) {
            panic!("STANDIN_LIBRARY_CALLS: {error}");
        }
    }
}

/// Submits work to a stream, or to the capture that it takes part in.
pub(crate) fn submit(stream: usize, work: impl Fn() + Send + Sync + 'static) -> Result<(), i32> {
    let here = here()?;
    let Some(Node::Library(work)) = capture::add(stream, Node::Library(Arc::new(work)))? else { return Ok(()) };
    here.launch(stream, "a library's kernel", move || work())
}

/// Elements of a float type in memory that the host can address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FakeElements {
    Single,
    Half,
}

impl FakeElements {
    /// # Safety
    /// An array of these elements at `at`, with an element of this number.
    pub unsafe fn read(self, at: usize, number: i64) -> f32 {
        let place = std::ptr::with_exposed_provenance::<c_void>(at);
        // SAFETY: contract.
        unsafe {
            match self {
                FakeElements::Single => place.cast::<f32>().offset(number as isize).read(),
                FakeElements::Half => place.cast::<half::f16>().offset(number as isize).read().to_f32(),
            }
        }
    }

    /// # Safety
    /// The contract of `read`.
    pub unsafe fn write(self, at: usize, number: i64, value: f32) {
        let place = std::ptr::with_exposed_provenance_mut::<c_void>(at);
        // SAFETY: contract.
        unsafe {
            match self {
                FakeElements::Single => place.cast::<f32>().offset(number as isize).write(value),
                FakeElements::Half => {
                    place.cast::<half::f16>().offset(number as isize).write(half::f16::from_f32(value));
                }
            }
        }
    }
}

/// Makes what a library's function makes: an object that the caller holds by its address.
///
/// # Safety
/// A variable for the result.
pub(crate) unsafe fn make<T>(to: *mut *mut T, made: T) -> Result<(), c_int> {
    // SAFETY: contract.
    unsafe { to.write(Box::into_raw(Box::new(made))) };
    Ok(())
}

/// Drops an object.
///
/// # Safety
/// Made by `make`, and not used again.
pub(crate) unsafe fn destroy<T>(at: *mut T) -> Result<(), c_int> {
    // SAFETY: contract.
    drop(unsafe { Box::from_raw(at) });
    Ok(())
}
