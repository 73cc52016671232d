//! Functions of C programs under the engine's order.

use crate::border::{Error, c_functions};
use crate::cached_op::borrow;
use crate::handles::{NDArrayHandle, all, hold, take};
use crate::pointers::{ExternalFunction, ExternalParam, count, list, read, text};
use crate::runtime::engine;
use mxrt::internal::{Engine, External, FailureKind, ForkSafeMutex, OnComplete, OpError};
use mxrt::types::TensorType;
use mxrt::{Context, DType, NDArray};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// A function that is done when its argument is used.
pub type EngineAsyncFunc = Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void)>;
/// A function that is done when it returns.
pub type EngineSyncFunc = Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>;
/// Frees the argument of a function.
pub type EngineFuncParamDeleter = Option<unsafe extern "C" fn(*mut c_void)>;

/// The state by which an asynchronous function ends.
pub(crate) struct Pending {
    token: ForkSafeMutex<Option<OnComplete>>,
    /// stays until the function is done
    _param: Arc<ExternalParam>,
}

/// Device of a function, as MXNet's `Context` begins.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ContextFields {
    dev_type: i32,
    dev_id: i32,
}

/// The arguments that both forms share.
struct Push {
    ctx: *const ContextFields,
    reads: (*const NDArrayHandle, c_int),
    writes: (*const NDArrayHandle, c_int),
    priority: c_int,
    name: *const c_char,
}

impl Push {
    /// Checks everything and hands it to `push`.
    ///
    /// # Safety
    /// The pointers are null or point to what their names say.
    unsafe fn run(self, push: impl FnOnce(&External<'_>) -> Result<(), Error>) -> Result<(), Error> {
        // SAFETY: contract.
        let ctx = unsafe { read(self.ctx, "ctx_handle")? };
        crate::ndarray::context(ctx.dev_type, ctx.dev_id)?;
        // SAFETY: contract.
        let reads = unsafe { list(self.reads.0, count(self.reads.1, "num_const_nds")?, "const_nds_handle")? };
        // SAFETY: contract.
        let writes = unsafe { list(self.writes.0, count(self.writes.1, "num_mutable_nds")?, "mutable_nds_handle")? };
        let (reads, writes) = (all::<NDArray>(reads)?, all::<NDArray>(writes)?);
        let (reads, writes) = (borrow(&reads), borrow(&writes));
        if let Some(array) = reads.iter().chain(&writes).find(|array| array.context().device().is_some()) {
            let message = format!("{array:?} is on {}: a function of the program runs on the host", array.context());
            return Err(Error::of_kind(FailureKind::Device, message));
        }
        for (i, array) in writes.iter().enumerate() {
            if reads.iter().chain(&writes[..i]).any(|other| other.same_storage(array)) {
                return Err(Error::value(format!("mutable_nds_handle: {array:?} is named twice")));
            }
        }
        // SAFETY: contract.
        let name = if self.name.is_null() { "C function" } else { unsafe { text(self.name, "opr_name")? } };
        push(&External { name: name.to_owned().into(), reads: &reads, writes: &writes, priority: self.priority })
    }
}

/// Pushes a function that completes later, and writes `done`, too.
fn push_async(
    engine: &'static Engine,
    external: &External<'_>,
    done: Option<&NDArray>,
    function: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void),
    param: Arc<ExternalParam>,
) -> Result<(), OpError> {
    let writes: Vec<&NDArray> = external.writes.iter().copied().chain(done).collect();
    let (name, reads, priority) = (external.name.clone(), external.reads, external.priority);
    External { name, reads, writes: &writes, priority }.push_async(engine, move |_, token| {
        let pending = hold(Pending { token: ForkSafeMutex::new(Some(token)), _param: param.clone() });
        ExternalFunction::Async(function).call(pending, &param);
    })
}

/// Fails what was never completed: nothing that depends on it may wait for ever.
pub(crate) fn drop_pending() {
    crate::handles::drain::<Pending>();
}

c_functions! {
    /// Runs `sync_func(run_context, func_param)` when the arrays that it reads are complete and no
    /// operator uses those that it writes. `deleter`, null or a function, frees `func_param` exactly
    /// once, also when the function never runs. `ctx_handle` points to a device type and number;
    /// `prop_handle` is accepted without effect; `opr_name` may be null.
    fn MXEnginePushSyncND(
        sync_func: EngineSyncFunc,
        func_param: *mut c_void,
        deleter: EngineFuncParamDeleter,
        ctx_handle: *const ContextFields,
        const_nds_handle: *const NDArrayHandle,
        num_const_nds: c_int,
        mutable_nds_handle: *const NDArrayHandle,
        num_mutable_nds: c_int,
        prop_handle: *const c_void,
        priority: c_int,
        opr_name: *const c_char,
    ) {
        let _ = prop_handle;
        let param = ExternalParam::new(func_param, deleter);
        let Some(function) = sync_func else {
            return Err(Error::value("the argument sync_func is a null pointer"));
        };
        let push = Push {
            ctx: ctx_handle,
            reads: (const_nds_handle, num_const_nds),
            writes: (mutable_nds_handle, num_mutable_nds),
            priority,
            name: opr_name,
        };
        let engine = engine()?;
        push.run(|external| {
            external.push(engine, move |_| {
                ExternalFunction::Sync(function).call(std::ptr::null_mut(), &param);
                Ok(())
            });
            Ok(())
        })
    }

    /// Variant of `MXEnginePushSyncND` for `async_func(run_context, on_complete, func_param)`,
    /// which is done when `MXRTEngineComplete` gets `on_complete`, from any thread. `wait` waits
    /// for that.
    fn MXEnginePushAsyncND(
        async_func: EngineAsyncFunc,
        func_param: *mut c_void,
        deleter: EngineFuncParamDeleter,
        ctx_handle: *const ContextFields,
        const_nds_handle: *const NDArrayHandle,
        num_const_nds: c_int,
        mutable_nds_handle: *const NDArrayHandle,
        num_mutable_nds: c_int,
        prop_handle: *const c_void,
        priority: c_int,
        opr_name: *const c_char,
        wait: u8,
    ) {
        let _ = prop_handle;
        let param = Arc::new(ExternalParam::new(func_param, deleter));
        let Some(function) = async_func else {
            return Err(Error::value("the argument async_func is a null pointer"));
        };
        let push = Push {
            ctx: ctx_handle,
            reads: (const_nds_handle, num_const_nds),
            writes: (mutable_nds_handle, num_mutable_nds),
            priority,
            name: opr_name,
        };
        let engine = engine()?;
        push.run(|external| {
            // The function may write no array: who waits for it has one of its own.
            let done = match wait {
                0 => None,
                _ => Some(NDArray::new(engine, Context::cpu(0), TensorType::new(DType::U8, &[0][..]))?),
            };
            push_async(engine, external, done.as_ref(), function, param)?;
            Ok(done.map_or(Ok(()), |done| done.wait_to_read())?)
        })
    }

    /// Ends an asynchronous function: `on_complete` is what the function was given. `error` is null,
    /// or a text that becomes the failure of the arrays that the function writes. Works once, from
    /// any thread.
    fn MXRTEngineComplete(on_complete: *mut c_void, error: *const c_char) {
        let message = if error.is_null() { None } else { Some(text(error, "error")?.to_owned()) };
        let pending: Arc<Pending> = take::<Pending>(on_complete)?;
        let token = pending.token.lock().take();
        let Some(token) = token else { return Err(Error::value("the function was completed before")) };
        token.complete(match message {
            None => Ok(()),
            Some(message) => Err(OpError::new(FailureKind::Operator, message)),
        });
        Ok(())
    }
}
