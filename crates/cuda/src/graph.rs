//! CUDA graphs, built node by node, each node after the previous one. Capturing a stream would be
//! less work. But while any stream of a context captures, the driver refuses calls that wait for
//! the whole context: calls of other libraries in the process would fail, as was observed for
//! `torch.cuda.synchronize()`. What a library submits can only be captured: its stream captures
//! during that call alone, and the result is one node.

use crate::api::Api;
use crate::context::{Context, RELAXED};
use crate::errors::check;
use crate::module::{Function, Grid};
use cudarc::driver::sys::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUgraph, CUgraphExec, CUgraphNode, CUmemorytype,
    CUstream,
};
use mxrt_engine::device::DeviceError;
use std::ffi::c_void;

/// A graph that is being built.
pub(crate) struct Builder {
    graph: CUgraph,
    last: CUgraphNode,
}

// SAFETY: handles of the driver, which may be used from any thread.
unsafe impl Send for Builder {}

impl Builder {
    pub fn new(api: &Api) -> Result<Builder, DeviceError> {
        let mut graph = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        check(unsafe { (api.cuGraphCreate)(&mut graph, 0) })?;
        Ok(Builder { graph, last: std::ptr::null_mut() })
    }

    /// Adds a node after the last one: `add` gets places for the node and for its dependencies, and
    /// the number of these.
    fn add(&mut self, add: impl FnOnce(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize) -> i32) -> i32 {
        let mut node = std::ptr::null_mut();
        let code = add(&mut node, self.graph, &self.last, usize::from(!self.last.is_null()));
        if code == 0 {
            self.last = node;
        }
        code
    }

    /// # Safety
    /// As for `cuLaunchKernel`, whenever the graph is launched.
    pub unsafe fn kernel(&mut self, api: &Api, function: Function, grid: Grid, arguments: *mut *mut c_void) -> i32 {
        let [x, y, z] = grid.blocks;
        let node = CUDA_KERNEL_NODE_PARAMS {
            func: function.0,
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: grid.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: grid.shared_bytes,
            kernelParams: arguments,
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        };
        // SAFETY: the driver copies the arguments before it returns; contract for the rest.
        self.add(|made, graph, behind, count| unsafe {
            (api.cuGraphAddKernelNode_v2)(made, graph, behind, count, &node)
        })
    }

    /// # Safety
    /// As for `cuMemcpyAsync`, whenever the graph is launched.
    pub unsafe fn copy(&mut self, api: &Api, context: Context, to: u64, from: u64, bytes: usize) -> i32 {
        let copy = CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            // Unified addresses say which memory it is.
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            srcHost: std::ptr::null(),
            srcDevice: from,
            srcArray: std::ptr::null_mut(),
            reserved0: std::ptr::null_mut(),
            srcPitch: bytes,
            srcHeight: 1,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            dstHost: std::ptr::null_mut(),
            dstDevice: to,
            dstArray: std::ptr::null_mut(),
            reserved1: std::ptr::null_mut(),
            dstPitch: bytes,
            dstHeight: 1,
            WidthInBytes: bytes,
            Height: 1,
            Depth: 1,
        };
        let add = api.cuGraphAddMemcpyNode;
        // SAFETY: contract.
        self.add(|made, graph, behind, count| unsafe { add(made, graph, behind, count, &copy, context.0) })
    }

    /// # Safety
    /// As for `cuMemsetD8Async`, whenever the graph is launched.
    pub unsafe fn clear(&mut self, api: &Api, context: Context, at: u64, bytes: usize) -> i32 {
        let clear =
            CUDA_MEMSET_NODE_PARAMS { dst: at, pitch: bytes, value: 0, elementSize: 1, width: bytes, height: 1 };
        let add = api.cuGraphAddMemsetNode;
        // SAFETY: contract.
        self.add(|made, graph, behind, count| unsafe { add(made, graph, behind, count, &clear, context.0) })
    }

    /// Adds what `submit` submits to a stream as one node.
    pub fn captured(
        &mut self,
        api: &Api,
        stream: CUstream,
        submit: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        // SAFETY: a stream of the device.
        check(unsafe { (api.cuStreamBeginCapture_v2)(stream, RELAXED) })?;
        let submitted = submit();
        let mut part: CUgraph = std::ptr::null_mut();
        // SAFETY: as above, and a variable for the result.
        let ended = check(unsafe { (api.cuStreamEndCapture)(stream, &mut part) });
        let added = submitted.and(ended).and_then(|()| {
            let add = api.cuGraphAddChildGraphNode;
            // SAFETY: a whole graph, which the driver copies.
            check(self.add(|made, graph, behind, count| unsafe { add(made, graph, behind, count, part) }))
        });
        if !part.is_null() {
            // SAFETY: the graph of the capture, which nothing uses any more.
            let _ = unsafe { (api.cuGraphDestroy)(part) };
        }
        added
    }

    /// The graph in launchable form.
    pub fn finish(self, api: &Api) -> Result<CUgraphExec, DeviceError> {
        let mut instance = std::ptr::null_mut();
        // SAFETY: a variable for the result; a graph is not used any more once it is instantiated.
        unsafe {
            let made = check((api.cuGraphInstantiateWithFlags)(&mut instance, self.graph, 0));
            let _ = (api.cuGraphDestroy)(self.graph);
            made.map(|()| instance)
        }
    }
}
