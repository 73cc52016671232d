//! Functions of C programs that make up an operator (`MXCustomOpRegister`): each is an address
//! without arguments in a list, called with those that its place in the list says.

use crate::pointers::{list, text};
use std::ffi::{CString, c_char, c_int, c_void};

type CallbackFunction = unsafe extern "C" fn() -> c_int;
type Delete = unsafe extern "C" fn(*mut c_void) -> c_int;
type Names = unsafe extern "C" fn(*mut *mut *mut c_char, *mut c_void) -> c_int;
type InferShape = unsafe extern "C" fn(c_int, *mut c_int, *mut *mut c_int, *mut c_void) -> c_int;
type InferType = unsafe extern "C" fn(c_int, *mut c_int, *mut c_void) -> c_int;
type Create = unsafe extern "C" fn(
    *const c_char,
    c_int,
    *mut *mut u32,
    *const c_int,
    *const c_int,
    *mut MXCallbackList,
    *mut c_void,
) -> c_int;
type Forward = unsafe extern "C" fn(c_int, *mut *mut c_void, *mut c_int, *const c_int, c_int, *mut c_void) -> c_int;

/// Functions with their arguments, as C programs fill them in.
#[repr(C)]
pub struct MXCallbackList {
    num_callbacks: c_int,
    callbacks: *mut Option<CallbackFunction>,
    contexts: *mut *mut c_void,
}

/// Fills in the functions of an operator, for its name and attributes. 0: it cannot be made.
pub type CustomOpPropCreator = Option<
    unsafe extern "C" fn(
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
        *mut MXCallbackList,
    ) -> c_int,
>;

/// Such a function of the program.
#[derive(Clone, Copy)]
pub(crate) struct Creator(
    unsafe extern "C" fn(
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
        *mut MXCallbackList,
    ) -> c_int,
);

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

fn empty() -> MXCallbackList {
    MXCallbackList { num_callbacks: 0, callbacks: std::ptr::null_mut(), contexts: std::ptr::null_mut() }
}

impl Creator {
    pub(crate) fn new(creator: CustomOpPropCreator) -> Option<Creator> {
        creator.map(Creator)
    }

    /// The functions of an operator. None: the program cannot make it.
    pub(crate) fn call(self, op_type: &str, attrs: &[(&str, &str)]) -> Option<CallbackList> {
        let name = c_text(op_type);
        let texts: Vec<(CString, CString)> = attrs.iter().map(|(key, value)| (c_text(key), c_text(value))).collect();
        let keys: Vec<*const c_char> = texts.iter().map(|(key, _)| key.as_ptr()).collect();
        let values: Vec<*const c_char> = texts.iter().map(|(_, value)| value.as_ptr()).collect();
        let mut made = empty();
        // SAFETY: the program promises a function of this type.
        let done = unsafe { (self.0)(name.as_ptr(), keys.len() as c_int, keys.as_ptr(), values.as_ptr(), &mut made) };
        CallbackList::of(done, &made)
    }
}

/// Functions of the program with their arguments.
pub(crate) struct CallbackList(Vec<(Option<CallbackFunction>, usize)>);

impl CallbackList {
    fn of(done: c_int, made: &MXCallbackList) -> Option<CallbackList> {
        let number = usize::try_from(made.num_callbacks).ok().filter(|_| done != 0)?;
        // SAFETY: the program has filled in as many functions and arguments.
        let (functions, contexts) =
            unsafe { (list(made.callbacks, number, "callbacks").ok()?, list(made.contexts, number, "contexts").ok()?) };
        let pairs = functions.iter().zip(contexts).map(|(function, data)| (*function, data.expose_provenance()));
        Some(CallbackList(pairs.collect()))
    }

    pub(crate) fn has(&self, place: usize) -> bool {
        self.at(place).is_some()
    }

    /// A function and its argument.
    fn at(&self, place: usize) -> Option<(CallbackFunction, *mut c_void)> {
        let (function, data) = self.0.get(place)?;
        Some(((*function)?, std::ptr::with_exposed_provenance_mut(*data)))
    }

    /// Tells the program that the functions are not used any more.
    pub(crate) fn delete(&self, place: usize) {
        if let Some((function, data)) = self.at(place) {
            // SAFETY: the function at this place has this type.
            unsafe { std::mem::transmute::<CallbackFunction, Delete>(function)(data) };
        }
    }

    /// The names that a function lists.
    pub(crate) fn names(&self, place: usize) -> Option<Vec<String>> {
        let (function, data) = self.at(place)?;
        let mut first: *mut *mut c_char = std::ptr::null_mut();
        // SAFETY: the function at this place has this type.
        let done = unsafe { std::mem::transmute::<CallbackFunction, Names>(function)(&mut first, data) };
        if done == 0 || first.is_null() {
            return None;
        }
        // SAFETY: the program gives texts up to a null pointer.
        let pointers = (0..).map(|i| unsafe { *first.add(i) }).take_while(|pointer| !pointer.is_null());
        // SAFETY: as above.
        pointers.map(|pointer| unsafe { text(pointer, "name") }.ok().map(str::to_owned)).collect()
    }

    /// The shapes that a function gives for those of the first arguments; others are empty.
    pub(crate) fn infer_shape(&self, place: usize, shapes: &mut [Vec<c_int>]) -> Option<Vec<Vec<c_int>>> {
        let (function, data) = self.at(place)?;
        let mut ranks: Vec<c_int> = shapes.iter().map(|shape| shape.len() as c_int).collect();
        let mut pointers: Vec<*mut c_int> = shapes.iter_mut().map(Vec::as_mut_ptr).collect();
        let number = ranks.len() as c_int;
        // SAFETY: the function at this place has this type.
        let done = unsafe {
            std::mem::transmute::<CallbackFunction, InferShape>(function)(
                number,
                ranks.as_mut_ptr(),
                pointers.as_mut_ptr(),
                data,
            )
        };
        // SAFETY: the program gives as many extents, which it keeps.
        let shape = |(rank, first): (&c_int, &*mut c_int)| unsafe {
            list(*first, usize::try_from(*rank).ok()?, "shape").ok().map(<[c_int]>::to_vec)
        };
        if done == 0 { None } else { ranks.iter().zip(&pointers).map(shape).collect() }
    }

    /// Fills in element types.
    pub(crate) fn infer_type(&self, place: usize, codes: &mut [c_int]) -> bool {
        let Some((function, data)) = self.at(place) else { return false };
        let number = codes.len() as c_int;
        // SAFETY: the function at this place has this type.
        unsafe { std::mem::transmute::<CallbackFunction, InferType>(function)(number, codes.as_mut_ptr(), data) != 0 }
    }

    /// The functions that run an operator on such inputs.
    pub(crate) fn create(
        &self,
        place: usize,
        context: &str,
        shapes: &[Vec<u32>],
        codes: &[c_int],
    ) -> Option<CallbackList> {
        let (function, data) = self.at(place)?;
        let context = c_text(context);
        let mut shapes = shapes.to_vec();
        let ranks: Vec<c_int> = shapes.iter().map(|shape| shape.len() as c_int).collect();
        let mut pointers: Vec<*mut u32> = shapes.iter_mut().map(Vec::as_mut_ptr).collect();
        let (number, mut made) = (codes.len() as c_int, empty());
        // SAFETY: the function at this place has this type.
        let done = unsafe {
            std::mem::transmute::<CallbackFunction, Create>(function)(
                context.as_ptr(),
                number,
                pointers.as_mut_ptr(),
                ranks.as_ptr(),
                codes.as_ptr(),
                &mut made,
                data,
            )
        };
        CallbackList::of(done, &made)
    }

    /// Runs an operator. The handles belong to the function.
    pub(crate) fn forward(
        &self,
        place: usize,
        mut handles: Vec<*mut c_void>,
        tags: &[c_int],
        requests: &[c_int],
        is_train: bool,
    ) -> bool {
        let Some((function, data)) = self.at(place) else { return false };
        let (number, mut tags) = (handles.len() as c_int, tags.to_vec());
        let (handles, tags) = (handles.as_mut_ptr(), tags.as_mut_ptr());
        // SAFETY: the function at this place has this type.
        unsafe {
            std::mem::transmute::<CallbackFunction, Forward>(function)(
                number,
                handles,
                tags,
                requests.as_ptr(),
                c_int::from(is_train),
                data,
            ) != 0
        }
    }
}
