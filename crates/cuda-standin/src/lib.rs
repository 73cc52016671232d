//! The part of the CUDA driver that mxrt uses, over simulated devices (`crates/sim`), for tests on
//! machines without a GPU. Streams run in threads of their own with random delays, and calls fail
//! on demand. Its file is found through `LD_LIBRARY_PATH` under the names `libcuda.so` and
//! `libcuda.so.1`.
//!
//! It is as strict as the driver's documentation: an event belongs to a device and cannot be
//! recorded on a stream of another one; a function of the host that runs in a stream may call
//! nothing; nor may a thread that did not say otherwise make calls that might wait while another
//! library captures (`mxrt_standin_foreign_capture`); work of a captured stream becomes a graph,
//! and what its documentation forbids meanwhile spoils that (`capture.rs`); after an error that
//! loses the context every call about the device returns it, as a GPU's driver was seen to do; a
//! forked child may call nothing; after the process began to end, every call fails, and kernels
//! have stopped before the process takes their library down.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `STANDIN_DEVICES` | how many GPUs (1) |
//! | `STANDIN_MEMORY_MB` | memory of each (4096) |
//! | `STANDIN_MODE` | `threaded` (the default), or `scheduled`: nothing is done but by `mxrt_standin_step` |
//! | `STANDIN_SEED`, `STANDIN_DELAY_US` | random delays, at most so long (0, 100) |
//! | `STANDIN_INIT`, `STANDIN_CONTEXT` | what `cuInit` and `cuDevicePrimaryCtxRetain` return (0) |
//! | `STANDIN_PEERS` | 0: no GPU reaches the memory of another one (1) |
//! | `STANDIN_GRAPHS` | what `cuGraphInstantiateWithFlags` returns (0) |
//! | `STANDIN_GRAPH_LAUNCHES` | what `cuGraphLaunch` returns (0) |
//! | `STANDIN_OTHERS_MB` | memory of each GPU that other processes use (0) |
//! | `STANDIN_FAULTS` | `call:after:code` or `device/call:after:code`, separated by commas |
//! | `STANDIN_KERNELS` | a library of kernels compiled for the host, which stand in for those of any image |
//! | `STANDIN_BLOCKS` | blocks of a grid along its first axis at most (0: any number) |
//! | `STANDIN_LAUNCHED` | a file for the names of kernels that are asked for |
//! | `STANDIN_NVRTC`, `STANDIN_NVRTC_FAILS` | the version of its NVRTC times ten (129), and what compiling returns (0) |
//! | `STANDIN_COMPILED` | a file for the names of texts that are compiled, and what for |
//! | `STANDIN_CUBLASLT`, `STANDIN_CUDNN` | the versions of its cuBLASLt (130100) and its cuDNN (91300) |
//! | `STANDIN_LIBRARY_FAULTS` | `function:after:status`, separated by commas: a call of a library's function fails after this number of calls; with `after+` all later ones, too |
//! | `STANDIN_LIBRARY_CALLS` | a file for the functions of libraries that are called, and what for |
//! | `STANDIN_CAPABILITY` | the compute capability of the GPUs, times ten (90) |
//! | `STANDIN_HOST_MEMORY` | 1: the host can address the memory of the GPUs, so that kernels of the host run there as functions in streams, which may ask for events then |
#![allow(non_snake_case)]

mod capture;
mod cublaslt;
mod cudnn;
mod elf;
mod graph;
mod kernels;
mod libraries;
mod nvrtc;
mod state;

use cudarc::driver::sys::{CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS};
use graph::{Graph, LAUNCHES, Node, exchange_mode, foreign_capture, might_wait};
use mxrt_engine::device::{ClearJob, DevicePtr, EventHandle, MemoryPlace, StreamKind};
use mxrt_sim::Call;
use state::*;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

type Ptr = *mut c_void;

/// Defines functions of the driver: each is a `Result` inside, and a number outside.
macro_rules! api {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $body:block)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of the CUDA driver.")]
        ///
        /// # Safety
        /// Pointers are as the driver's documentation says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> Code {
            let body = || -> Result<(), Code> { $body };
            body().err().unwrap_or(0)
        }
    )*};
}

api! {
    fn cuInit(_flags: c_uint) { start() }
    fn cuDriverGetVersion(version: *mut c_int) { put(version, number("STANDIN_VERSION", 13000) as c_int) }
    fn cuDeviceGetCount(count: *mut c_int) { put(count, driver()?.devices.len() as c_int) }
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) {
        driver()?.device(ordinal)?;
        put(device, ordinal)
    }
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) {
        driver()?.device(device)?;
        let text = c"simulated GPU".to_bytes_with_nul();
        if (length as usize) < text.len() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller's memory of that length.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, text.len()) };
        Ok(())
    }
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) {
        driver()?.device(device)?;
        // Threads of a block, multiprocessors, unified addresses, compute capability 9.0.
        put(value, match attribute { 1 => 1024, 16 => 132, 41 => 1, 75 => state::number("STANDIN_CAPABILITY", 90) as c_int / 10, 76 => state::number("STANDIN_CAPABILITY", 90) as c_int % 10, _ => 0 })
    }
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) {
        put(bytes, driver()?.device(device)?.total_memory())
    }
    fn cuDevicePrimaryCtxRetain(context: *mut Ptr, device: c_int) {
        driver()?.device(device)?;
        match number("STANDIN_CONTEXT", 0) {
            0 => put(context, std::ptr::without_provenance_mut(device as usize + 1)),
            code => Err(code as Code),
        }
    }
    fn cuCtxGetCurrent(context: *mut Ptr) {
        driver()?;
        put(context, std::ptr::without_provenance_mut(CURRENT.get()))
    }
    fn cuCtxSetCurrent(context: Ptr) {
        driver()?;
        CURRENT.set(context.addr());
        Ok(())
    }
    fn cuCtxSynchronize() {
        might_wait()?;
        let here = here()?;
        capture::synchronize(here.index)?;
        here.device.synchronize().map_err(|e| e.code)
    }
    fn cuDeviceCanAccessPeer(reaches: *mut c_int, device: c_int, peer: c_int) {
        let driver = driver()?;
        driver.device(device)?;
        driver.device(peer)?;
        put(reaches, (device != peer && number("STANDIN_PEERS", 1) != 0) as c_int)
    }
    fn cuCtxEnablePeerAccess(peer: Ptr, flags: c_uint) {
        let here = here()?;
        let peer = peer.addr().checked_sub(1).filter(|peer| *peer < here.driver.devices.len()).ok_or(INVALID_CONTEXT)?;
        if flags != 0 || peer == here.index {
            return Err(INVALID_VALUE);
        }
        here.driver.add_peer(here.index, peer)
    }
    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        here()?;
        put(least, 0)?;
        put(greatest, -5)
    }

    fn cuStreamCreateWithPriority(made: *mut Ptr, flags: c_uint, _priority: c_int) {
        let stream = here()?.device.new_stream(StreamKind::Compute).map_err(|e| e.code)?;
        capture::made(stream.0, flags);
        STREAMS.fetch_add(1, Ordering::Relaxed);
        put(made, std::ptr::with_exposed_provenance_mut(stream.0 as usize))
    }
    fn cuStreamDestroy_v2(at: Ptr) {
        here()?.device.foreign_stream(at.addr() as u64).map_err(|e| e.code)?;
        STREAMS.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
    fn cuStreamWaitEvent(at: Ptr, event: Ptr, _flags: c_uint) {
        let (here, event) = (here()?, event.addr() as u64);
        let recorded = here.driver.event(event)?.recorded;
        // An event that was never recorded is complete.
        if capture::wait(at.addr(), event, recorded)? || !recorded {
            return Ok(());
        }
        here.device.stream_wait(here.stream(at.addr()), EventHandle(event), 0).map_err(|e| e.code)
    }
    fn cuStreamIsCapturing(at: Ptr, status: *mut c_uint) {
        here()?.device.foreign_stream(at.addr().max(1) as u64).map_err(|e| e.code)?;
        put(status, capture::status(at.addr())?)
    }
    fn cuStreamBeginCapture_v2(at: Ptr, mode: c_uint) { capture::begin(&here()?, at.addr(), mode) }
    fn cuStreamEndCapture(at: Ptr, graph: *mut Ptr) {
        here()?;
        put(graph, Box::into_raw(Box::new(capture::end(at.addr())?)).cast())
    }
    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_uint) {
        driver()?;
        // SAFETY: the caller's variable.
        put(mode, exchange_mode(unsafe { mode.read() })?)
    }
    fn cuGraphCreate(graph: *mut Ptr, _flags: c_uint) {
        put(graph, Box::into_raw(Box::new(Graph::new(here()?.index))).cast())
    }
    fn cuGraphAddKernelNode_v2(
        made: *mut Ptr, graph: Ptr, behind: *const Ptr, count: usize, node: *const CUDA_KERNEL_NODE_PARAMS
    ) {
        here()?;
        // SAFETY: the caller's structure.
        let node = unsafe { node.as_ref() }.ok_or(INVALID_VALUE)?;
        let grid = [node.gridDimX, node.gridDimY, node.gridDimZ];
        let block = [node.blockDimX, node.blockDimY, node.blockDimZ];
        let kernel = launched(node.func.cast(), grid, block, node.sharedMemBytes)?;
        let (arguments, shared) = (kernel.arguments(node.kernelParams), node.sharedMemBytes as usize);
        add_node(made, graph, (behind, count), Node::Kernel { kernel, grid, block, shared, arguments })
    }
    fn cuGraphAddMemcpyNode(
        made: *mut Ptr, graph: Ptr, behind: *const Ptr, count: usize, copy: *const CUDA_MEMCPY3D, _context: Ptr
    ) {
        here()?;
        // SAFETY: the caller's structure.
        let copy = unsafe { copy.as_ref() }.ok_or(INVALID_VALUE)?;
        if (copy.Height, copy.Depth) != (1, 1) {
            return Err(INVALID_VALUE);
        }
        let node = Node::Copy { to: copy.dstDevice, from: copy.srcDevice, bytes: copy.WidthInBytes };
        add_node(made, graph, (behind, count), node)
    }
    fn cuGraphAddMemsetNode(
        made: *mut Ptr, graph: Ptr, behind: *const Ptr, count: usize, clear: *const CUDA_MEMSET_NODE_PARAMS, _context: Ptr
    ) {
        here()?;
        // SAFETY: the caller's structure.
        let clear = unsafe { clear.as_ref() }.ok_or(INVALID_VALUE)?;
        if (clear.value, clear.elementSize, clear.height) != (0, 1, 1) {
            return Err(INVALID_VALUE);
        }
        add_node(made, graph, (behind, count), Node::Clear { at: clear.dst, bytes: clear.width })
    }
    fn cuGraphAddChildGraphNode(made: *mut Ptr, graph: Ptr, behind: *const Ptr, count: usize, part: Ptr) {
        here()?;
        // SAFETY: a graph of the caller's.
        let part: &Graph = unsafe { part.cast::<Graph>().as_ref() }.ok_or(INVALID_VALUE)?;
        add_node(made, graph, (behind, count), part.as_node())
    }
    fn cuGraphInstantiateWithFlags(made: *mut Ptr, graph: Ptr, _flags: u64) {
        here()?;
        // SAFETY: a graph of the caller's.
        let graph: &Graph = unsafe { graph.cast::<Graph>().as_ref() }.ok_or(INVALID_VALUE)?;
        match number("STANDIN_GRAPHS", 0) {
            0 => put(made, Box::into_raw(Box::new(graph.instance())).cast()),
            code => Err(code as Code),
        }
    }
    fn cuGraphLaunch(graph: Ptr, at: Ptr) {
        let here = here()?;
        capture::refuse(at.addr())?;
        match number("STANDIN_GRAPH_LAUNCHES", 0) {
            0 => {}
            code => return Err(code as Code),
        }
        // SAFETY: an instance that was not destroyed.
        unsafe { graph.cast::<Graph>().as_ref() }.ok_or(INVALID_VALUE)?.launch(&here, at.addr())
    }
    fn cuGraphDestroy(graph: Ptr) {
        here()?;
        // SAFETY: the caller's graph, which it does not use again.
        drop(unsafe { Box::from_raw(graph.cast::<Graph>()) });
        Ok(())
    }
    fn cuGraphExecDestroy(graph: Ptr) {
        driver()?;
        // SAFETY: the caller's instance, which it does not use again.
        let graph = unsafe { Box::from_raw(graph.cast::<Graph>()) };
        graph.check_unused();
        Ok(())
    }

    fn cuEventCreate(made: *mut Ptr, flags: c_uint) {
        let here = here()?;
        let event = here.device.new_event(flags & 2 == 0).map_err(|e| e.code)?;
        here.driver.set_event(event.0, Event { device: here.index, timing: flags & 2 == 0, recorded: false });
        put(made, std::ptr::with_exposed_provenance_mut(event.0 as usize))
    }
    fn cuEventDestroy_v2(event: Ptr) {
        let (driver, event) = (driver()?, event.addr() as u64);
        let known = driver.forget_event(event)?;
        driver.devices[known.device].free_event(EventHandle(event));
        Ok(())
    }
    fn cuEventRecord(event: Ptr, at: Ptr) {
        let (here, event) = (here()?, event.addr() as u64);
        let known = here.driver.event(event)?;
        if known.device != here.index {
            return Err(INVALID_HANDLE);
        }
        if capture::record(at.addr(), event)? {
            return Ok(());
        }
        here.device.record(here.stream(at.addr()), EventHandle(event), 0).map_err(|e| e.code)?;
        here.driver.set_event(event, Event { recorded: true, ..known });
        Ok(())
    }
    fn cuEventQuery(event: Ptr) {
        might_wait()?;
        let (driver, event) = (driver()?, event.addr() as u64);
        let known = driver.event(event)?;
        driver.usable(known.device)?;
        capture::query(event)?;
        if !known.recorded || driver.devices[known.device].query(EventHandle(event)).map_err(|e| e.code)? {
            return Ok(());
        }
        Err(NOT_READY)
    }
    fn cuEventElapsedTime(ms: *mut f32, from: Ptr, to: Ptr) {
        let here = here()?;
        let time = |event: Ptr| {
            let event = event.addr() as u64;
            let known = here.driver.event(event)?;
            match known.timing && known.recorded {
                true => here.device.time_of(EventHandle(event)).ok_or(NOT_READY),
                false => Err(INVALID_HANDLE),
            }
        };
        put(ms, ((time(to)? as f64 - time(from)? as f64) / 1e6) as f32)
    }

    fn cuMemAlloc_v2(made: *mut u64, bytes: usize) {
        might_wait()?;
        put(made, here()?.device.alloc(bytes).map_err(|e| e.code)?.0)
    }
    fn cuMemFree_v2(at: u64) {
        might_wait()?;
        let here = here()?;
        // It waits for the device, as the driver's does.
        here.device.synchronize().map_err(|e| e.code)?;
        here.device.free(DevicePtr(at));
        Ok(())
    }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let here = here()?;
        let (all, others) = (here.device.total_memory(), number("STANDIN_OTHERS_MB", 0) as usize * (1 << 20));
        put(free, all.saturating_sub(here.driver.world.used_bytes(here.index) + others))?;
        put(total, all)
    }
    fn cuMemHostAlloc(made: *mut Ptr, bytes: usize, _flags: c_uint) {
        might_wait()?;
        let here = here()?;
        let at = here.device.alloc_pinned(bytes).map_err(|e| e.code)?;
        here.driver.set_pinned(at.expose_provenance(), here.index);
        put(made, at.cast())
    }
    fn cuMemFreeHost(at: Ptr) {
        might_wait()?;
        let driver = driver()?;
        let owner = driver.forget_pinned(at.addr())?;
        driver.devices[owner].free_pinned(at.cast());
        Ok(())
    }
    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, at: Ptr) {
        let here = here()?;
        if capture::add(at.addr(), Node::Copy { to, from, bytes })?.is_none() {
            return Ok(());
        }
        let (to, from) = (MemoryPlace::Device(DevicePtr(to)), MemoryPlace::Device(DevicePtr(from)));
        here.copy(at.addr(), to, from, bytes)
    }
    fn cuMemsetD8Async(to: u64, value: u8, bytes: usize, at: Ptr) {
        let here = here()?;
        if value != 0 {
            return Err(INVALID_VALUE);
        }
        if capture::add(at.addr(), Node::Clear { at: to, bytes })?.is_none() {
            return Ok(());
        }
        let job = ClearJob { at: DevicePtr(to), bytes, tag: here.tag("clear") };
        // SAFETY: the caller's promise to the driver.
        unsafe { here.device.clear(here.stream(at.addr()), job) }.map_err(|e| e.code)
    }
    // NVRTC asks for it, whichever driver there is.
    fn cuGetExportTable(_table: *mut *const c_void, _id: *const c_void) { Err(NOT_SUPPORTED) }
    fn cuModuleLoadData(module: *mut Ptr, image: *const c_void) {
        might_wait()?;
        here()?;
        put(module, std::ptr::with_exposed_provenance_mut(kernels::load(image)?))
    }
    fn cuModuleGetFunction(function: *mut Ptr, module: Ptr, name: *const c_char) {
        here()?;
        let kernel: *const kernels::HostKernel = kernels::function(module.expose_provenance(), name)?;
        put(function, kernel.cast_mut().cast())
    }
    fn cuFuncSetAttribute(function: Ptr, attribute: c_int, value: c_int) {
        here()?;
        // Bytes of shared memory, of which a block of compute capability 9.0 has so many at most.
        match (function.is_null(), attribute, value) {
            (false, 8, 0..=232_448) => {
                // SAFETY: made by `cuModuleGetFunction`, and never freed.
                let kernel: &kernels::HostKernel = unsafe { &*function.cast() };
                kernel.shared.store(value as u32, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(INVALID_VALUE),
        }
    }
    fn cuLaunchKernel(
        function: Ptr, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        at: Ptr, arguments: *mut Ptr, _extra: *mut Ptr
    ) {
        let here = here()?;
        let (grid, block) = ([gx, gy, gz], [bx, by, bz]);
        let kernel = launched(function, grid, block, shared)?;
        let (arguments, shared) = (kernel.arguments(arguments), shared as usize);
        let node = Node::Kernel { kernel, grid, block, shared, arguments };
        let Some(Node::Kernel { arguments, .. }) = capture::add(at.addr(), node)? else { return Ok(()) };
        here.launch(at.addr(), "kernel", move || kernel.run(grid, block, shared, arguments))
    }
    fn cuLaunchHostFunc(at: Ptr, function: Option<unsafe extern "C" fn(Ptr)>, data: Ptr) {
        let (function, data) = (function.ok_or(INVALID_VALUE)?, data.expose_provenance());
        let here = here()?;
        capture::refuse(at.addr())?;
        here.launch(at.addr(), "host function", move || {
            // SAFETY: the caller's promise to the driver.
            in_host_function(|| unsafe { function(std::ptr::with_exposed_provenance_mut(data)) });
        })
    }

    // For the tests that load this library, by name.
    fn mxrt_standin_fail(device: c_int, call: c_int, after: u64, code: Code) {
        let call = *CALLS.get(call as usize).ok_or(INVALID_VALUE)?;
        driver()?.fail(device as usize, call.1, after, code);
        Ok(())
    }
    fn mxrt_standin_restart(seed: u64) {
        driver()?.world.restart(seed);
        Ok(())
    }
    fn mxrt_standin_step() { if driver()?.world.step() { Ok(()) } else { Err(NOT_READY) } }
    fn mxrt_standin_order(order: c_uint) { kernels::ORDER.store(order, Ordering::Relaxed); Ok(()) }
    fn mxrt_standin_foreign_capture(begins: c_int, forbidden: *mut usize) {
        put(forbidden, foreign_capture(begins != 0))
    }
    fn mxrt_standin_pending(pieces: *mut usize) { put(pieces, driver()?.world.pending()) }
    fn mxrt_standin_peers(pairs: *mut usize) { put(pairs, driver()?.peers()) }
    fn mxrt_standin_graph_launches(launches: *mut usize) { put(launches, LAUNCHES.load(Ordering::Relaxed)) }
    fn mxrt_standin_streams(streams: *mut usize) { put(streams, STREAMS.load(Ordering::Relaxed)) }
    fn mxrt_standin_live_events(events: *mut usize) { put(events, driver()?.world.live_events()) }
}

/// The kernel of a function, if it may be launched so: the limits are those of a GPU.
fn launched(
    function: Ptr,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
) -> Result<&'static kernels::HostKernel, Code> {
    let [_, gy, gz] = grid;
    let threads: c_uint = block.iter().product();
    if function.is_null() || grid.contains(&0) || gy > 65535 || gz > 65535 || threads > 1024 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: made by `cuModuleGetFunction`, and never freed.
    let kernel: &kernels::HostKernel = unsafe { &*function.cast() };
    if shared <= kernel.shared.load(Ordering::Relaxed) { Ok(kernel) } else { Err(INVALID_VALUE) }
}

/// Adds a node to a graph, after the nodes whose numbers `behind` holds.
fn add_node(made: *mut Ptr, graph: Ptr, (behind, count): (*const Ptr, usize), node: Node) -> Result<(), Code> {
    // SAFETY: the caller's array, and its graph, which no other thread uses.
    let (behind, graph) = unsafe { (std::slice::from_raw_parts(behind, count), graph.cast::<Graph>().as_mut()) };
    let behind: Vec<usize> = behind.iter().map(|node| node.addr()).collect();
    put(made, std::ptr::without_provenance_mut(graph.ok_or(INVALID_VALUE)?.add(&behind, node)?))
}

/// Whether the host can address the memory of the GPUs.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mxrt_standin_host_memory() -> c_int {
    number("STANDIN_HOST_MEMORY", 0) as c_int
}

/// Streams that were made and not destroyed.
static STREAMS: AtomicUsize = AtomicUsize::new(0);

/// The words of `STANDIN_FAULTS`, and the numbers of `mxrt_standin_fail`.
pub(crate) const CALLS: [(&str, Call); 9] = [
    ("launch", Call::Launch),
    ("copy", Call::Copy),
    ("record", Call::Record),
    ("wait", Call::Wait),
    ("query", Call::Query),
    ("host_wait", Call::HostWait),
    ("alloc", Call::Alloc),
    ("execute", Call::Execute),
    ("stream", Call::Stream),
];
