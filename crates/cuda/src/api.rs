//! The driver's functions: resolved once, all at once, by name, through cudarc's handle of the
//! library. Types are cudarc's. Results are numbers and not its enums, so a driver that is newer
//! than this program may return a code that was unknown when it was written.

#![allow(non_snake_case)]

use crate::errors::words;
use crate::fork;
use cudarc::driver::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUdevice, CUdeviceptr, CUevent,
    CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUhostFn, CUmodule, CUstream,
};
use mxrt_engine::ForkSafeMutex;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

macro_rules! table {
    ($($(#[$doc:meta])* $name:ident($($type:ty),*) $(or $other:ident)?;)*) => {
        /// The functions that every driver from CUDA 11.4 on has.
        pub(crate) struct Api {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($type),*) -> i32,)*
            /// The stand-in of the tests says whether the host can address its memory; no driver
            /// has this function.
            pub host_memory: bool,
        }

        impl Api {
            /// Looks all functions up; an error names those that are missing.
            fn load() -> Result<Api, String> {
                // SAFETY: the library was opened once already.
                let library = unsafe { sys::culib() };
                let mut missing: Vec<&str> = Vec::new();
                $(
                    // SAFETY: the signature is that of the driver's headers.
                    let $name = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }.map(|f| *f);
                    $(
                        // SAFETY: as above.
                        let $name = $name.or_else(|_| unsafe {
                            library.get(concat!(stringify!($other), "\0").as_bytes()).map(|f| *f)
                        });
                    )?
                    if $name.is_err() {
                        missing.push(stringify!($name));
                    }
                )*
                // SAFETY: the signature is that of the stand-in.
                let host_memory = unsafe { library.get::<unsafe extern "C" fn() -> i32>(b"mxrt_standin_host_memory\0") };
                // SAFETY: a function without arguments.
                let host_memory = host_memory.is_ok_and(|f| unsafe { f() } != 0);
                match ($($name,)*) {
                    ($(Ok($name),)*) => Ok(Api { $($name,)* host_memory }),
                    _ => Err(missing.join(", ")),
                }
            }
        }
    };
}

table! {
    cuInit(c_uint);
    cuDriverGetVersion(*mut c_int);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut CUdevice, c_int);
    cuDeviceGetName(*mut c_char, c_int, CUdevice);
    cuDeviceGetAttribute(*mut c_int, c_int, CUdevice);
    cuDeviceTotalMem_v2(*mut usize, CUdevice);
    cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
    cuDeviceCanAccessPeer(*mut c_int, CUdevice, CUdevice);
    cuCtxGetCurrent(*mut CUcontext);
    cuCtxSetCurrent(CUcontext);
    cuCtxSynchronize();
    cuCtxEnablePeerAccess(CUcontext, c_uint);
    cuCtxGetStreamPriorityRange(*mut c_int, *mut c_int);
    cuStreamCreateWithPriority(*mut CUstream, c_uint, c_int);
    cuStreamDestroy_v2(CUstream);
    cuStreamWaitEvent(CUstream, CUevent, c_uint);
    cuStreamIsCapturing(CUstream, *mut c_uint);
    cuStreamBeginCapture_v2(CUstream, c_uint);
    cuStreamEndCapture(CUstream, *mut CUgraph);
    cuThreadExchangeStreamCaptureMode(*mut c_uint);
    cuGraphCreate(*mut CUgraph, c_uint);
    /// The older function takes what the fields have in common.
    cuGraphAddKernelNode_v2(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const CUDA_KERNEL_NODE_PARAMS)
        or cuGraphAddKernelNode;
    cuGraphAddMemcpyNode(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const CUDA_MEMCPY3D, CUcontext);
    cuGraphAddMemsetNode(
        *mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const CUDA_MEMSET_NODE_PARAMS, CUcontext
    );
    cuGraphAddChildGraphNode(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, CUgraph);
    cuGraphInstantiateWithFlags(*mut CUgraphExec, CUgraph, u64);
    cuGraphLaunch(CUgraphExec, CUstream);
    cuGraphDestroy(CUgraph);
    cuGraphExecDestroy(CUgraphExec);
    cuEventCreate(*mut CUevent, c_uint);
    cuEventDestroy_v2(CUevent);
    cuEventRecord(CUevent, CUstream);
    cuEventQuery(CUevent);
    /// Milliseconds between two timing events. Headers of CUDA 13 have the second name only.
    cuEventElapsedTime(*mut f32, CUevent, CUevent) or cuEventElapsedTime_v2;
    cuMemAlloc_v2(*mut CUdeviceptr, usize);
    cuMemFree_v2(CUdeviceptr);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost(*mut c_void);
    cuMemcpyAsync(CUdeviceptr, CUdeviceptr, usize, CUstream);
    cuMemsetD8Async(CUdeviceptr, u8, usize, CUstream);
    cuLaunchHostFunc(CUstream, CUhostFn, *mut c_void);
    cuModuleLoadData(*mut CUmodule, *const c_void);
    cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
    cuFuncSetAttribute(CUfunction, c_int, c_int);
    cuLaunchKernel(
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void
    );
}

/// How long a driver that cannot be used is not asked again: its GPUs may be just starting.
pub(crate) const AGAIN: Duration = Duration::from_secs(1);

static API: OnceLock<Api> = OnceLock::new();
/// The time of the last attempt, and why it failed. A fork waits until the driver is open or known
/// to be absent.
static OPENING: ForkSafeMutex<Option<(Instant, String)>> = ForkSafeMutex::new(None);

/// The driver, opened by the first call, or by a later one if that failed; an error says why there
/// is none.
pub(crate) fn api() -> Result<&'static Api, String> {
    if fork::in_child() {
        return Err(fork::CHILD.to_owned());
    }
    if let Some(api) = API.get() {
        return Ok(api);
    }
    let mut refused = OPENING.lock();
    if API.get().is_none() {
        if let Some((at, why)) = &*refused
            && at.elapsed() < AGAIN
        {
            return Err(why.clone());
        }
        match open() {
            Ok(api) => drop(API.set(api)),
            Err(why) => *refused = Some((Instant::now(), why)),
        }
    }
    API.get().ok_or_else(|| refused.as_ref().map_or_else(String::new, |(_, why)| why.clone()))
}

fn open() -> Result<Api, String> {
    // SAFETY: opening the driver's library runs its initialisers, as in every program that uses it.
    if !unsafe { sys::is_culib_present() } {
        return Err("no NVIDIA driver: libcuda.so.1 was not found".to_owned());
    }
    let loaded = Api::load();
    let api =
        loaded.map_err(|missing| format!("the NVIDIA driver is too old: it lacks {missing}; update the driver"))?;
    fork::watch();
    // SAFETY: no arguments that matter.
    match unsafe { (api.cuInit)(0) } {
        0 => Ok(api),
        code => Err(refused(code)),
    }
}

/// The reason why `cuInit` did not succeed.
fn refused(code: i32) -> String {
    let reason = match code {
        100 => match hidden() {
            Some(variable) => return variable,
            None => "the driver finds no GPU",
        },
        34 => "a stub library of the CUDA toolkit was found instead of the driver; remove it from LD_LIBRARY_PATH",
        803 | 804 => "the driver's library and its kernel module are of different versions; restart the machine",
        802 => "the system is not ready, as while its NVSwitch service starts",
        _ => "the driver cannot be initialised",
    };
    format!("{reason} (cuInit: {})", words(code))
}

/// The environment's part in there being no GPU.
pub(crate) fn hidden() -> Option<String> {
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok()?;
    Some(format!("all GPUs are hidden by CUDA_VISIBLE_DEVICES='{visible}'"))
}
