//! Addresses from C callers. The only checks possible are for null and for alignment; the rest is
//! promised by the caller, as `include/mxrt.h` says.

use crate::border::Error;
use crate::handles::{definition, hold};
use mxrt::internal::dlpack::{CPU, Device, ElementType, Managed, Tensor};
use mxrt::internal::{Engine, Shared, WatchCallback};
use mxrt::types::TensorType;
use mxrt::{Context, NDArray};
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

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

/// Borrows an array of texts. Null is an array of none.
///
/// # Safety
/// `first` is null, or points to `count` texts that stay unchanged while the result is used.
pub(crate) unsafe fn texts<'a>(first: *const *const c_char, count: usize, name: &str) -> Result<Vec<&'a str>, Error> {
    // SAFETY: the caller promises `count` texts.
    let pointers = unsafe { list(first, count, name)? };
    // SAFETY: as above.
    pointers.iter().map(|pointer| unsafe { text(*pointer, name) }).collect()
}

/// Reads texts like [`texts`], for the names of a list's entries: a name that occurs twice is an
/// error.
///
/// # Safety
/// As for [`texts`].
pub(crate) unsafe fn distinct<'a>(
    first: *const *const c_char,
    count: usize,
    name: &str,
) -> Result<Vec<&'a str>, Error> {
    // SAFETY: contract.
    let keys = unsafe { texts(first, count, name)? };
    let twice = (1..keys.len()).find(|i| keys[..*i].contains(&keys[*i]));
    match twice {
        Some(i) => Err(Error::value(format!("the argument {name} names {} twice", keys[i]))),
        None => Ok(keys),
    }
}

/// The value of an environment variable in the memory of the environment; null if there is none.
///
/// # Safety
/// `name` points to a text. No other thread writes the environment.
pub(crate) unsafe fn get_variable(name: *const c_char) -> *const c_char {
    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *mut c_char;
    }
    // SAFETY: contract.
    unsafe { getenv(name) }.cast_const()
}

/// Sets an environment variable, or removes it.
///
/// # Safety
/// No other thread reads or writes the environment; `name` is not empty and has no `=`.
pub(crate) unsafe fn set_variable(name: &str, value: Option<&str>) {
    // SAFETY: contract.
    unsafe {
        match value {
            Some(value) => std::env::set_var(name, value),
            None => std::env::remove_var(name),
        }
    }
}

/// The descriptor of a file that a caller has opened.
#[derive(Clone, Copy)]
pub(crate) struct OpenFile(RawFd);

impl OpenFile {
    pub(crate) fn new(descriptor: RawFd, name: &str) -> Result<OpenFile, Error> {
        count(descriptor, name).map(|_| OpenFile(descriptor))
    }

    /// # Safety
    /// The file stays open while the result is used.
    pub(crate) unsafe fn borrow<'a>(self) -> BorrowedFd<'a> {
        // SAFETY: contract; the number is not negative.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }

    /// # Safety
    /// No other code uses or closes the file.
    pub(crate) unsafe fn close(self) {
        // SAFETY: contract.
        drop(unsafe { OwnedFd::from_raw_fd(self.0) });
    }
}

/// A function of the caller that is told names and arrays. The array belongs to the function, which
/// frees it.
pub type MonitorCallback = Option<unsafe extern "C" fn(*const c_char, *mut c_void, *mut c_void)>;

/// Such a function with the pointer that the caller wants back.
pub(crate) struct Monitor {
    function: unsafe extern "C" fn(*const c_char, *mut c_void, *mut c_void),
    data: usize,
}

impl Monitor {
    pub(crate) fn new(callback: MonitorCallback, data: *mut c_void) -> Option<Monitor> {
        callback.map(|function| Monitor { function, data: data.expose_provenance() })
    }

    /// The callback in the form of the library's own code: the function is given handles.
    pub(crate) fn callback(self) -> Arc<WatchCallback> {
        Arc::new(move |name: &str, array: &NDArray| self.tell(name, hold(array.clone())))
    }

    /// Calls the function with a name and the handle of an array.
    fn tell(&self, name: &str, array: *mut c_void) {
        let name = CString::new(name.replace('\0', "\\0")).unwrap_or_default();
        // SAFETY: the caller promises a function of this type that may be called with its pointer
        // from any thread.
        unsafe { (self.function)(name.as_ptr(), array, std::ptr::with_exposed_provenance_mut(self.data)) };
    }
}

/// A function of the caller for an array that is ready: `data`, then null twice, or kind and message
/// of the failure.
pub type MXRTReadyCallback = Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char)>;

/// Such a function with the pointer that the caller wants back.
pub(crate) struct OnReady {
    function: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char),
    data: usize,
}

impl OnReady {
    pub(crate) fn new(callback: MXRTReadyCallback, data: *mut c_void) -> Option<OnReady> {
        callback.map(|function| OnReady { function, data: data.expose_provenance() })
    }

    /// Calls the function: without a failure, or with kind and message of one.
    pub(crate) fn call(self, failure: Option<(&str, &str)>) {
        let c_text = |text: &str| CString::new(text.replace('\0', "\\0")).unwrap_or_default();
        let texts = failure.map(|(kind, message)| (c_text(kind), c_text(message)));
        let of = |text: Option<&CString>| text.map_or(std::ptr::null(), |text| text.as_ptr());
        let (kind, message) = (of(texts.as_ref().map(|t| &t.0)), of(texts.as_ref().map(|t| &t.1)));
        // SAFETY: the caller promises a function of this type that may be called with its pointer
        // from any thread.
        unsafe { (self.function)(std::ptr::with_exposed_provenance_mut(self.data), kind, message) };
    }
}

/// Text that lives as long as the process.
#[derive(Clone, Copy)]
pub(crate) struct StaticText(usize);

impl StaticText {
    pub(crate) fn new(text: &str) -> StaticText {
        let text = CString::new(text.replace('\0', "")).unwrap_or_default();
        StaticText(text.into_raw().expose_provenance())
    }

    pub(crate) fn as_ptr(self) -> *const c_char {
        std::ptr::with_exposed_provenance(self.0)
    }
}

/// An array of such texts.
#[derive(Clone, Copy)]
pub(crate) struct StaticTexts(usize);

impl StaticTexts {
    pub(crate) fn new(texts: Vec<String>) -> StaticTexts {
        let [texts] = StaticTexts::lists([texts]);
        texts
    }

    /// Several lists, one after the other in memory, as MXNet has them. A list without entries is
    /// null.
    pub(crate) fn lists<const N: usize>(lists: [Vec<String>; N]) -> [StaticTexts; N] {
        let lengths = lists.each_ref().map(Vec::len);
        let pointers: Vec<*const c_char> =
            lists.into_iter().flatten().map(|text| StaticText::new(&text).as_ptr()).collect();
        let base = Box::leak(pointers.into_boxed_slice()).as_mut_ptr();
        let mut start = 0;
        lengths.map(|length| {
            let list = if length == 0 { std::ptr::null_mut() } else { base.wrapping_add(start) };
            start += length;
            StaticTexts(list.expose_provenance())
        })
    }

    pub(crate) fn as_ptr(self) -> *mut *const c_char {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

/// An array of all handles of a kind of definitions, which lives as long as the process.
pub(crate) struct Definitions(usize);

impl Definitions {
    pub(crate) fn new(kind: usize, number: usize) -> Definitions {
        let handles: Box<[*mut c_void]> = (0..number).map(|place| definition(kind, place)).collect();
        Definitions(Box::leak(handles).as_mut_ptr().expose_provenance())
    }

    pub(crate) fn as_ptr(&self) -> *mut *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

/// The argument of a function of the caller, which is freed when this is dropped.
pub(crate) struct ExternalParam {
    address: usize,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl ExternalParam {
    pub(crate) fn new(param: *mut c_void, deleter: Option<unsafe extern "C" fn(*mut c_void)>) -> ExternalParam {
        ExternalParam { address: param.expose_provenance(), deleter }
    }
}

impl Drop for ExternalParam {
    fn drop(&mut self) {
        if let Some(deleter) = self.deleter {
            // SAFETY: the caller promises a function that frees its argument, from any thread.
            unsafe { deleter(std::ptr::with_exposed_provenance_mut(self.address)) };
        }
    }
}

/// A function of the caller that the engine runs.
#[derive(Clone, Copy)]
pub(crate) enum ExternalFunction {
    Sync(unsafe extern "C" fn(*mut c_void, *mut c_void)),
    Async(unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void)),
}

impl ExternalFunction {
    /// Calls it with its argument; `on_complete` ends an asynchronous one.
    pub(crate) fn call(self, on_complete: *mut c_void, param: &ExternalParam) {
        /// Memory that functions get as the context of their run.
        static RUN_CONTEXT: [u64; 16] = [0; 16];
        let context = RUN_CONTEXT.as_ptr().cast_mut().cast::<c_void>();
        let param = std::ptr::with_exposed_provenance_mut(param.address);
        // SAFETY: the caller promises functions of these types that may be called from any thread.
        unsafe {
            match self {
                ExternalFunction::Sync(function) => function(context, param),
                ExternalFunction::Async(function) => function(context, on_complete, param),
            }
        }
    }
}

/// The extents of a tensor, and its strides if it has any.
type Layout<'a> = (&'a [i64], Option<&'a [i64]>);

/// The array that a tensor of another library describes.
///
/// # Safety
/// `managed` points to a `DLManagedTensor`, whose parts stay while the result is used.
pub(crate) unsafe fn tensor<'a>(managed: *mut Managed) -> Result<(Tensor, Layout<'a>), Error> {
    // SAFETY: the caller promises a tensor.
    let tensor = unsafe { read(managed, "dlpack")? }.tensor;
    let ndim = count(tensor.ndim, "ndim of the tensor")?;
    // SAFETY: the tensor has one extent for each axis.
    let extents = unsafe { list(tensor.shape, ndim, "shape of the tensor")? };
    // SAFETY: as above, unless there are no strides.
    let strides = if tensor.strides.is_null() { None } else { Some(unsafe { list(tensor.strides, ndim, "strides")? }) };
    Ok((tensor, (extents, strides)))
}

/// A tensor of another library. Its deleter is called when this is dropped, in any thread.
pub(crate) struct Foreign {
    managed: usize,
    /// whether the struct of the tensor does not stay
    copy: bool,
}

impl Foreign {
    /// Takes a tensor over. `transient`: its struct does not stay.
    ///
    /// # Safety
    /// `managed` points to a `DLManagedTensor` whose deleter is not called by other code.
    pub(crate) unsafe fn take(managed: *mut Managed, transient: bool) -> Foreign {
        let managed = match transient {
            // SAFETY: contract.
            true => Box::into_raw(Box::new(unsafe { managed.read() })),
            false => managed,
        };
        Foreign { managed: managed.expose_provenance(), copy: transient }
    }

    /// An array in the memory of the tensor.
    ///
    /// # Safety
    /// As for [`NDArray::from_shared`], until the deleter is called.
    pub(crate) unsafe fn share(
        self,
        engine: &'static Engine,
        context: Context,
        tensor: TensorType,
        start: *mut u8,
    ) -> Result<NDArray, Error> {
        // SAFETY: contract; the owner calls the deleter when it is dropped.
        Ok(unsafe { NDArray::from_shared(engine, context, tensor, (start, true), Box::new(self))? })
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let managed: *mut Managed = std::ptr::with_exposed_provenance_mut(self.managed);
        // SAFETY: the tensor was taken over, so that its deleter is called here alone. A copy of the
        // struct is ours.
        unsafe {
            if let Some(delete) = (*managed).deleter {
                delete(managed);
            }
            if self.copy {
                drop(Box::from_raw(managed));
            }
        }
    }
}

/// A tensor for another library, and what it needs. The first field is the one that crosses.
#[repr(C)]
struct Exported {
    managed: Managed,
    shared: Shared,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
}

/// # Safety
/// `managed` is what [`export`] returned, and is not used any more.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: contract; the struct is laid out as in C, so its address is that of its first field.
    drop(unsafe { Box::from_raw(managed.cast::<Exported>()) });
}

/// Gives memory away.
pub(crate) fn export(shared: Shared) -> *mut Managed {
    let array = shared.array();
    let shape: Box<[i64]> = array.shape().iter().map(|n| *n as i64).collect();
    let strides: Box<[i64]> = array.shape().strides().iter().map(|n| *n as i64).collect();
    let tensor = Tensor {
        data: shared.address().cast(),
        device: Device { kind: CPU, number: 0 },
        ndim: shape.len() as i32,
        dtype: ElementType::of(array.dtype()),
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed = Managed { tensor, context: std::ptr::null_mut(), deleter: Some(delete) };
    let mut exported = Box::new(Exported { managed, shared, shape, strides });
    exported.managed.tensor.shape = exported.shape.as_mut_ptr();
    exported.managed.tensor.strides = exported.strides.as_mut_ptr();
    Box::into_raw(exported).cast()
}
