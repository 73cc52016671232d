//! The origin of ops: the request they belong to, and the place in the program that pushed them. A
//! failure and a record of the profiler name both.
//!
//! Both are properties of the pushing thread for a while, so that nothing between a border and the
//! engine has to hand them on. Debug builds note the place of every push; others note it where a
//! border says it, for example in Python.

use crate::failure::{Failure, OpError};
use crate::op::block::OpBlock;
use crate::process::slot::{self, Slot};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
#[cfg(debug_assertions)]
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place in a program, as stored in an op.
#[derive(Clone)]
pub(crate) enum Site {
    /// A place in Rust code, noted in debug builds.
    #[cfg(debug_assertions)]
    Code(&'static Location<'static>),
    /// A place described by a border.
    Text(Arc<String>),
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(debug_assertions)]
            Site::Code(place) => write!(f, "{}:{}", place.file(), place.line()),
            Site::Text(text) => f.write_str(text),
        }
    }
}

/// The place of a push's caller, in debug builds.
#[cfg(debug_assertions)]
#[inline(always)]
#[track_caller]
pub(crate) fn caller() -> Option<Site> {
    Some(Site::Code(Location::caller()))
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn caller() -> Option<Site> {
    None
}

/// The origin of the ops that a thread pushes now.
#[derive(Default)]
pub(crate) struct OpOrigin {
    request: Cell<Option<NonZeroU64>>,
    site: RefCell<Option<Arc<String>>>,
    /// One of them is set: what a push looks at.
    known: Cell<bool>,
}

impl OpOrigin {
    fn note(&self) {
        self.known.set(self.request.get().is_some() || self.site.borrow().is_some());
    }
}

/// Writes into a new op where it comes from.
///
/// # Safety
/// `op` is filled and belongs to the caller.
#[inline(always)]
pub(crate) unsafe fn stamp(slot: &Slot, op: *mut OpBlock, caller: Option<Site>) {
    if caller.is_some() || slot.origin.known.get() {
        let said = slot.origin.site.borrow().clone().map(Site::Text);
        // SAFETY: contract.
        unsafe { OpBlock::set_origin(op, slot.origin.request.get(), said.or(caller)) };
    }
}

/// A scope in which all ops pushed by this thread belong to one request. Requests are numbered in
/// the order of their beginnings in the process. A request inside another one is the same request.
#[derive(Debug)]
pub struct RequestScope {
    began_here: bool,
    id: NonZeroU64,
    _thread: PhantomData<*const ()>,
}

impl RequestScope {
    /// Begins a request, or joins the one that this thread is in.
    pub fn begin() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let origin = &slot::current().origin;
        if let Some(id) = origin.request.get() {
            return RequestScope { began_here: false, id, _thread: PhantomData };
        }
        let id = NonZeroU64::MIN.saturating_add(LAST.fetch_add(1, Ordering::Relaxed));
        origin.request.set(Some(id));
        origin.note();
        RequestScope { began_here: true, id, _thread: PhantomData }
    }

    /// The number of the request.
    pub fn id(&self) -> u64 {
        self.id.get()
    }
}

impl Drop for RequestScope {
    fn drop(&mut self) {
        if self.began_here {
            let origin = &slot::current().origin;
            origin.request.set(None);
            origin.note();
        }
    }
}

/// A scope in which ops pushed by this thread carry this place of the program.
#[derive(Debug)]
pub struct PushSite {
    before: Option<Arc<String>>,
    _thread: PhantomData<*const ()>,
}

impl PushSite {
    /// Names the place, usually as `file:line`.
    pub fn new(place: String) -> Self {
        let origin = &slot::current().origin;
        let before = origin.site.replace(Some(Arc::new(place)));
        origin.note();
        PushSite { before, _thread: PhantomData }
    }
}

impl Drop for PushSite {
    fn drop(&mut self) {
        let origin = &slot::current().origin;
        origin.site.replace(self.before.take());
        origin.note();
    }
}

/// The failure that an error of the op becomes: it names the op and its origin.
///
/// # Safety
/// `op` is filled and belongs to the caller, or to its run and token.
#[cold]
pub(crate) unsafe fn failure_from(op: *mut OpBlock, error: OpError) -> Failure {
    error.into_failure(|details| {
        // SAFETY: contract.
        unsafe {
            details.op.get_or_insert_with(|| (*op).name.to_string());
            details.device.get_or_insert_with(|| OpBlock::place(op).to_string());
            details.pushed_at = details.pushed_at.take().or_else(|| OpBlock::site(op));
            details.request = details.request.or_else(|| OpBlock::request(op).map(NonZeroU64::get));
        }
    })
}
