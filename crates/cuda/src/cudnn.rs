//! Convolutions of planes by cuDNN. Its heuristics choose an algorithm for each convolution once, by
//! extents, types and layouts; all calls use that one, so their bits are the same.
//!
//! A handle of the library holds a stream, so each stream has its own. Numbers are those of the
//! library's headers.

#![allow(non_snake_case)]

use crate::device::{CudaDevice, lock, raw_stream};
use crate::library::functions;
use crate::provider::Provider;
use cudarc::driver::sys::CUstream;
use mxrt_engine::device::{DeviceError, ErrorClass, StreamHandle};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

type DnnHandle = *mut c_void;
type Data = *const c_void;

/// Algorithm, as the heuristics rate it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Rated {
    algorithm: c_int,
    status: c_int,
    time: f32,
    memory: usize,
    determinism: c_int,
    math: c_int,
    reserved: [c_int; 3],
}

functions! {
    cudnnCreate(*mut DnnHandle);
    cudnnSetStream(DnnHandle, CUstream);
    cudnnCreateTensorDescriptor(*mut DnnHandle);
    cudnnDestroyTensorDescriptor(DnnHandle);
    cudnnSetTensor4dDescriptor(DnnHandle, c_int, c_int, c_int, c_int, c_int, c_int);
    cudnnCreateFilterDescriptor(*mut DnnHandle);
    cudnnDestroyFilterDescriptor(DnnHandle);
    cudnnSetFilter4dDescriptor(DnnHandle, c_int, c_int, c_int, c_int, c_int, c_int);
    cudnnCreateConvolutionDescriptor(*mut DnnHandle);
    cudnnDestroyConvolutionDescriptor(DnnHandle);
    cudnnSetConvolution2dDescriptor(DnnHandle, c_int, c_int, c_int, c_int, c_int, c_int, c_int, c_int);
    cudnnSetConvolutionGroupCount(DnnHandle, c_int);
    cudnnSetConvolutionMathType(DnnHandle, c_int);
    cudnnCreateActivationDescriptor(*mut DnnHandle);
    cudnnDestroyActivationDescriptor(DnnHandle);
    cudnnSetActivationDescriptor(DnnHandle, c_int, c_int, f64);
    cudnnGetConvolutionForwardAlgorithm_v7(DnnHandle, DnnHandle, DnnHandle, DnnHandle, DnnHandle, c_int, *mut c_int, *mut Rated);
    cudnnGetConvolutionForwardWorkspaceSize(DnnHandle, DnnHandle, DnnHandle, DnnHandle, DnnHandle, c_int, *mut usize);
    cudnnConvolutionForward(
        DnnHandle, Data, DnnHandle, Data, DnnHandle, Data, DnnHandle, c_int, *mut c_void, usize, Data, DnnHandle, *mut c_void
    );
    cudnnConvolutionBiasActivationForward(
        DnnHandle, Data, DnnHandle, Data, DnnHandle, Data, DnnHandle, c_int, *mut c_void, usize, Data, DnnHandle, Data, DnnHandle, Data,
        DnnHandle, DnnHandle, *mut c_void
    );
}

/// Types of elements.
const FLOAT: c_int = 0;
const HALF: c_int = 2;
/// Layouts.
const CHANNELS_FIRST: c_int = 0;
const CHANNELS_LAST: c_int = 1;
/// Sums of products without turning the kernel around.
const CROSS_CORRELATION: c_int = 1;
/// Ways of multiplying.
const DEFAULT_MATH: c_int = 0;
const TENSOR_CORES: c_int = 1;
const EXACT: c_int = 3;
/// Activations.
const RELU: c_int = 1;
const IDENTITY: c_int = 5;
const KEEP_NAN: c_int = 1;
/// The algorithm that has an epilogue without an activation.
const PRECOMPUTED_GEMM: c_int = 1;
/// Algorithms that there are.
const ALGORITHMS: usize = 8;
const DETERMINISTIC: c_int = 1;
/// Memory that an algorithm may use.
const WORKSPACE: usize = 64 << 20;

/// A convolution of planes of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlaneConvolution {
    /// whether elements are of float16, else of float32
    pub half: bool,
    /// whether factors of float32 may be rounded to TF32
    pub tf32: bool,
    /// whether channels are the last axis of images, and of weights `[filter, kernel, channel]`
    pub channels_last: bool,
    /// images, channels, rows, columns
    pub input: [i32; 4],
    /// images, filters, rows, columns
    pub output: [i32; 4],
    /// rows and columns of a kernel
    pub kernel: [i32; 2],
    /// distances between kernels
    pub stride: [i32; 2],
    /// padding before and after
    pub pad: [i32; 2],
    /// distances within a kernel
    pub dilate: [i32; 2],
    /// groups of channels
    pub groups: i32,
    /// whether something is added to the channels
    pub bias: bool,
    /// whether something is added to the result; only with a bias
    pub residual: bool,
    /// whether negative numbers become 0; only with a bias
    pub relu: bool,
}

/// The operands of a call. Addresses of what the convolution does not have are 0.
#[derive(Clone, Copy, Debug)]
pub struct ConvolutionOperands {
    /// address of the images
    pub input: u64,
    /// address of the weights
    pub weight: u64,
    /// address of what is added to the channels
    pub bias: u64,
    /// address of what is added to the result
    pub residual: u64,
    /// factor of the residual
    pub factor: f32,
    /// address of the result
    pub output: u64,
    /// address of as many bytes as the plan says
    pub workspace: u64,
}

/// A convolution with its algorithm.
pub struct ConvolutionPlan {
    convolution: PlaneConvolution,
    descriptors: Descriptors,
    algorithm: c_int,
    workspace: usize,
}

// SAFETY: descriptors are read alone once they are made, and the library's functions may be called
// from any thread.
unsafe impl Send for ConvolutionPlan {}
// SAFETY: as above.
unsafe impl Sync for ConvolutionPlan {}

impl ConvolutionPlan {
    /// Bytes of memory that each call needs.
    pub fn workspace(&self) -> usize {
        self.workspace
    }
}

struct Descriptors {
    input: Descriptor,
    weight: Descriptor,
    output: Descriptor,
    bias: Descriptor,
    activation: Descriptor,
    convolution: Descriptor,
}

struct Descriptor {
    handle: DnnHandle,
    destroy: unsafe extern "C" fn(DnnHandle) -> c_int,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made by the library, and not used again.
        unsafe { (self.destroy)(self.handle) };
    }
}

impl Descriptor {
    fn new(
        create: unsafe extern "C" fn(*mut DnnHandle) -> c_int,
        destroy: unsafe extern "C" fn(DnnHandle) -> c_int,
    ) -> Result<Descriptor, DeviceError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        check(unsafe { create(&mut handle) })?;
        Ok(Descriptor { handle, destroy })
    }
}

/// A handle of a stream, which no two threads use concurrently.
struct OfStream(DnnHandle);

// SAFETY: a handle of the library, which any thread may use, but no two concurrently.
unsafe impl Send for OfStream {}

/// The library on a device. It stays open until the process ends.
pub(crate) struct Cudnn {
    functions: &'static Functions,
    streams: Mutex<HashMap<StreamHandle, Arc<Mutex<OfStream>>>>,
    /// `None`: the library has no algorithm
    known: Mutex<HashMap<PlaneConvolution, Option<Arc<ConvolutionPlan>>>>,
}

fn name_of(code: c_int) -> &'static str {
    match code {
        1001 => "CUDNN_STATUS_NOT_INITIALIZED",
        1002 => "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
        1008 => "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED",
        2000..3000 => "CUDNN_STATUS_BAD_PARAM",
        3000..4000 => "CUDNN_STATUS_NOT_SUPPORTED",
        4000..5000 => "CUDNN_STATUS_INTERNAL_ERROR",
        5000..6000 => "CUDNN_STATUS_EXECUTION_FAILED",
        _ => "an unknown status",
    }
}

/// Statuses of what the library does not have, and of a lack of memory of the device.
const NOT_SUPPORTED: std::ops::Range<c_int> = 3000..4000;
const NO_MEMORY: c_int = 4004;

/// A status of the library.
fn check(code: c_int) -> Result<(), DeviceError> {
    let class = match code {
        0 => return Ok(()),
        NO_MEMORY => ErrorClass::OutOfMemory,
        _ => ErrorClass::Recoverable,
    };
    Err(DeviceError::new(class, code, format!("cuDNN returned {code}, {}", name_of(code))))
}

impl Cudnn {
    /// Opens the library for the current context, and tries it.
    fn open() -> Result<Cudnn, DeviceError> {
        let refused = |why: String| Provider::Cudnn.refused(&why);
        let library = Provider::Cudnn.find().map_err(refused)?;
        let functions: &'static Functions = Box::leak(Box::new(Functions::load(&library).map_err(refused)?));
        let made = Cudnn { functions, streams: Mutex::default(), known: Mutex::default() };
        // The default stream's, which asks the heuristics.
        let tried = made.of_stream(StreamHandle(0), std::ptr::null_mut());
        tried.map_err(|error| refused(format!("{}: no handle: {}", library.path, error.message)))?;
        Ok(made)
    }

    /// The handle of a stream, made by its first use. The stream is not captured.
    fn of_stream(&self, stream: StreamHandle, raw: CUstream) -> Result<Arc<Mutex<OfStream>>, DeviceError> {
        let mut streams = lock(&self.streams);
        if let Some(known) = streams.get(&stream) {
            return Ok(known.clone());
        }
        let mut handle = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        check(unsafe { (self.functions.cudnnCreate)(&mut handle) })?;
        // SAFETY: a handle that was just made, and a stream of the device.
        check(unsafe { (self.functions.cudnnSetStream)(handle, raw) })?;
        let made = Arc::new(Mutex::new(OfStream(handle)));
        streams.insert(stream, made.clone());
        Ok(made)
    }

    fn tensor(&self, of: &PlaneConvolution, [n, c, h, w]: [i32; 4]) -> Result<Descriptor, DeviceError> {
        let f = self.functions;
        let made = Descriptor::new(f.cudnnCreateTensorDescriptor, f.cudnnDestroyTensorDescriptor)?;
        // SAFETY: a descriptor that was just made.
        check(unsafe { (f.cudnnSetTensor4dDescriptor)(made.handle, layout(of), elements(of), n, c, h, w) })?;
        Ok(made)
    }

    fn weights(&self, of: &PlaneConvolution) -> Result<Descriptor, DeviceError> {
        let f = self.functions;
        let made = Descriptor::new(f.cudnnCreateFilterDescriptor, f.cudnnDestroyFilterDescriptor)?;
        let ([filters, channels], [h, w]) = ([of.output[1], of.input[1] / of.groups], of.kernel);
        // SAFETY: a descriptor that was just made.
        check(unsafe {
            (f.cudnnSetFilter4dDescriptor)(made.handle, elements(of), layout(of), filters, channels, h, w)
        })?;
        Ok(made)
    }

    fn activation(&self, of: &PlaneConvolution) -> Result<Descriptor, DeviceError> {
        let f = self.functions;
        let made = Descriptor::new(f.cudnnCreateActivationDescriptor, f.cudnnDestroyActivationDescriptor)?;
        let kind = if of.relu { RELU } else { IDENTITY };
        // SAFETY: a descriptor that was just made.
        check(unsafe { (f.cudnnSetActivationDescriptor)(made.handle, kind, KEEP_NAN, 0.0) })?;
        Ok(made)
    }

    fn windows(&self, of: &PlaneConvolution) -> Result<Descriptor, DeviceError> {
        let f = self.functions;
        let made = Descriptor::new(f.cudnnCreateConvolutionDescriptor, f.cudnnDestroyConvolutionDescriptor)?;
        let ([ph, pw], [sh, sw], [dh, dw]) = (of.pad, of.stride, of.dilate);
        let math = match (of.half, of.tf32) {
            (true, _) => TENSOR_CORES,
            (false, true) => DEFAULT_MATH,
            (false, false) => EXACT,
        };
        // SAFETY: a descriptor that was just made. Sums are floats.
        unsafe {
            let set = f.cudnnSetConvolution2dDescriptor;
            check(set(made.handle, ph, pw, sh, sw, dh, dw, CROSS_CORRELATION, FLOAT))?;
            check((f.cudnnSetConvolutionGroupCount)(made.handle, of.groups))?;
            check((f.cudnnSetConvolutionMathType)(made.handle, math))?;
        }
        Ok(made)
    }

    /// Asks the heuristics; `None`: there is no algorithm that is deterministic and takes no more
    /// memory than it may.
    fn plan(&self, of: &PlaneConvolution) -> Result<Option<ConvolutionPlan>, DeviceError> {
        let descriptors = Descriptors {
            input: self.tensor(of, of.input)?,
            weight: self.weights(of)?,
            output: self.tensor(of, of.output)?,
            bias: self.tensor(of, [1, of.output[1], 1, 1])?,
            activation: self.activation(of)?,
            convolution: self.windows(of)?,
        };
        let handle = self.of_stream(StreamHandle(0), std::ptr::null_mut())?;
        let handle = lock(&handle);
        let d = &descriptors;
        let (x, w, c, y) = (d.input.handle, d.weight.handle, d.convolution.handle, d.output.handle);
        let (mut rated, mut count) = ([Rated::default(); ALGORITHMS], 0);
        let ask = self.functions.cudnnGetConvolutionForwardAlgorithm_v7;
        // SAFETY: descriptors of the library, and as many results as it may write.
        let code = unsafe { ask(handle.0, x, w, c, y, ALGORITHMS as c_int, &mut count, rated.as_mut_ptr()) };
        if NOT_SUPPORTED.contains(&code) {
            return Ok(None);
        }
        check(code)?;
        let fits = |one: &&Rated| {
            let plain = of.bias && !of.relu;
            one.status == 0 && one.determinism == DETERMINISTIC && (!plain || one.algorithm == PRECOMPUTED_GEMM)
        };
        let count = usize::try_from(count).unwrap_or_default().min(ALGORITHMS);
        for Rated { algorithm, math, .. } in rated[..count].iter().filter(fits) {
            let mut workspace = 0;
            // SAFETY: as above.
            let sized = unsafe {
                // An exact convolution stays exact.
                let math = if of.half || of.tf32 { *math } else { EXACT };
                check((self.functions.cudnnSetConvolutionMathType)(c, math))?;
                (self.functions.cudnnGetConvolutionForwardWorkspaceSize)(
                    handle.0,
                    x,
                    w,
                    c,
                    y,
                    *algorithm,
                    &mut workspace,
                )
            };
            if sized == 0 && workspace <= WORKSPACE {
                return Ok(Some(ConvolutionPlan { convolution: *of, descriptors, algorithm: *algorithm, workspace }));
            }
        }
        Ok(None)
    }

    /// # Safety
    /// The contract of [`CudaDevice::convolve`].
    unsafe fn convolve(
        &self,
        handle: DnnHandle,
        plan: &ConvolutionPlan,
        at: &ConvolutionOperands,
    ) -> Result<(), DeviceError> {
        let place = |at: u64| std::ptr::with_exposed_provenance_mut::<c_void>(at as usize);
        let (d, of) = (&plan.descriptors, &plan.convolution);
        let (one, zero) = (1.0f32, 0.0f32);
        let (one, zero) = ((&raw const one).cast(), (&raw const zero).cast());
        let (x, w, y) = (place(at.input), place(at.weight), place(at.output));
        let (of_x, of_w, of_c, of_y) = (d.input.handle, d.weight.handle, d.convolution.handle, d.output.handle);
        let (memory, bytes) = (place(at.workspace), plan.workspace);
        if !of.bias {
            let call = self.functions.cudnnConvolutionForward;
            // SAFETY: descriptors of the library, numbers of the host that it reads before it returns,
            // and the addresses of the contract.
            return check(unsafe {
                call(handle, one, of_x, x, of_w, w, of_c, plan.algorithm, memory, bytes, zero, of_y, y)
            });
        }
        let (z, factor) = if of.residual { (place(at.residual), (&raw const at.factor).cast()) } else { (y, zero) };
        let call = self.functions.cudnnConvolutionBiasActivationForward;
        let (of_b, of_a) = (d.bias.handle, d.activation.handle);
        // SAFETY: as above.
        check(unsafe {
            call(
                handle,
                one,
                of_x,
                x,
                of_w,
                w,
                of_c,
                plan.algorithm,
                memory,
                bytes,
                factor,
                of_y,
                z,
                of_b,
                place(at.bias),
                of_a,
                of_y,
                y,
            )
        })
    }
}

fn layout(of: &PlaneConvolution) -> c_int {
    if of.channels_last { CHANNELS_LAST } else { CHANNELS_FIRST }
}

fn elements(of: &PlaneConvolution) -> c_int {
    if of.half { HALF } else { FLOAT }
}

impl CudaDevice {
    /// The library on this device, opened by the first call.
    pub(crate) fn cudnn(&self) -> Result<&Cudnn, DeviceError> {
        let providers = &self.providers;
        providers.kept(&providers.cudnn, || self.with(|_| Cudnn::open())?)
    }

    /// The algorithm for a convolution, which the first call chooses; `None`: cuDNN has none.
    pub fn convolution_plan(&self, of: &PlaneConvolution) -> Result<Option<Arc<ConvolutionPlan>>, DeviceError> {
        let library = self.cudnn()?;
        // Other threads that want the same one wait.
        let mut known = lock(&library.known);
        if let Some(plan) = known.get(of) {
            return Ok(plan.clone());
        }
        let plan = self.with(|_| library.plan(of))??.map(Arc::new);
        known.insert(*of, plan.clone());
        Ok(plan)
    }

    /// Submits a convolution.
    ///
    /// # Safety
    /// The addresses belong to this device until the work on the stream is done, and hold what the
    /// convolution of the plan says, which is one of this device.
    pub unsafe fn convolve(
        &self,
        stream: StreamHandle,
        plan: &ConvolutionPlan,
        at: &ConvolutionOperands,
    ) -> Result<(), DeviceError> {
        let library = self.cudnn()?;
        // Making a handle takes memory, so it comes before a capture.
        let handle = self.with(|_| library.of_stream(stream, raw_stream(stream)))??;
        let handle = lock(&handle);
        // SAFETY: contract.
        self.submit_foreign(stream, |_| unsafe { library.convolve(handle.0, plan, at) })
    }
}
