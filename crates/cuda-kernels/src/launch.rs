//! Bound kernels, and how they are launched.

use crate::arguments::{AXES, AxesArgument};
use crate::image::image;
use crate::providers::LibraryStep;
use mxrt_cuda::{CudaDevice, Function, Grid, KernelSource};
use mxrt_engine::device::{Device, DeviceError, ErrorClass, OpenDevice};
use mxrt_engine::{DeviceCtx, OpError};
use mxrt_ops::{DeviceKernel, DeviceOperands, LibraryUse};
use mxrt_tensor::{DType, TensorType};
use std::ffi::CStr;
use std::sync::{Arc, OnceLock};

/// Threads of a block of kernels that take elements one by one.
pub(crate) const THREADS: u32 = 256;
/// Blocks of such a kernel at most; the threads continue with further elements.
const BLOCKS: usize = 4096;
/// Threads of a block that works on a row (`ROW_THREADS` of the text).
pub(crate) const ROW_THREADS: u32 = 128;
/// Blocks of such a kernel at most.
const ROW_BLOCKS: usize = 1 << 16;

/// The name of the kernel of a text that is compiled at run time.
pub(crate) const COMPILED: &CStr = c"compiled";

type Enqueue = dyn Fn(&DeviceCtx<'_>, &DeviceOperands<'_>) -> Result<(), OpError> + Send + Sync;

/// A form bound to types.
pub(crate) struct Bound {
    enqueue: Box<Enqueue>,
    compiled: Option<Arc<Compiled>>,
    /// a library that computes it where it has an algorithm
    library: Option<Box<dyn LibraryStep>>,
}

/// A text that is made when a plan prepares it; without that there is none.
struct Compiled {
    text: OnceLock<KernelSource>,
    make: Box<dyn Fn() -> KernelSource + Send + Sync>,
}

impl Bound {
    /// A kernel that is a function.
    pub fn new(
        enqueue: impl Fn(&DeviceCtx<'_>, &DeviceOperands<'_>) -> Result<(), OpError> + Send + Sync + 'static,
    ) -> Bound {
        Bound { enqueue: Box::new(enqueue), compiled: None, library: None }
    }

    /// One kernel whose argument is made of addresses; nothing for arrays without elements.
    pub fn kernel<T: Copy + 'static>(
        name: &'static CStr,
        grid: Option<Grid>,
        argument: impl Fn(&DeviceOperands<'_>) -> T + Send + Sync + 'static,
    ) -> Bound {
        Bound::new(move |ctx, at| match grid {
            Some(grid) => launch(ctx, name, grid, &argument(at)),
            None => Ok(()),
        })
    }

    /// Finds a kernel like `kernel`; if possible, plans compile the source to an equivalent kernel
    /// with the same argument.
    pub fn or_compiled<T: Copy + 'static>(
        name: &'static CStr,
        grid: Option<Grid>,
        argument: impl Fn(&DeviceOperands<'_>) -> T + Send + Sync + 'static,
        make: impl Fn() -> KernelSource + Send + Sync + 'static,
    ) -> Bound {
        let compiled = Arc::new(Compiled { text: OnceLock::new(), make: Box::new(make) });
        let known = compiled.clone();
        let enqueue = move |ctx: &DeviceCtx<'_>, at: &DeviceOperands<'_>| match grid {
            Some(grid) => submit(ctx, grid, &argument(at), |device| {
                let prepared = known.text.get().and_then(|text| device.prepared(text));
                prepared.map_or_else(|| device.function(image, (name, grid.shared_bytes)), Ok)
            }),
            None => Ok(()),
        };
        Bound { enqueue: Box::new(enqueue), compiled: Some(compiled), library: None }
    }
}

impl Bound {
    /// Submits its own work.
    pub fn run(&self, ctx: &DeviceCtx<'_>, operands: &DeviceOperands<'_>) -> Result<(), OpError> {
        (self.enqueue)(ctx, operands)
    }

    /// Adds a library, which computes it where it has an algorithm.
    pub fn or_library(self, library: Option<Box<dyn LibraryStep>>) -> Bound {
        Bound { library, ..self }
    }
}

impl DeviceKernel for Bound {
    fn prepare(&self, device: &OpenDevice) {
        if let (Some(Compiled { text, make }), Ok(backend)) = (self.compiled.as_deref(), cuda(&**device.backend())) {
            backend.prepare(text.get_or_init(make), COMPILED);
        }
    }

    fn enqueue(&self, ctx: &DeviceCtx<'_>, operands: &DeviceOperands<'_>) -> Result<(), OpError> {
        match &self.library {
            Some(library) if library.enqueue(ctx, operands)? => Ok(()),
            _ => self.run(ctx, operands),
        }
    }

    fn library(&self, device: &OpenDevice) -> Result<Option<LibraryUse>, OpError> {
        let Some(step) = &self.library else { return Ok(None) };
        let library = step.provider().name();
        let used = cuda(&**device.backend()).and_then(|backend| step.serves(backend));
        let used = used.map_err(|error| device.op_error(&error, &format!("choosing an algorithm of {library}")))?;
        Ok(Some(LibraryUse { library, used }))
    }
}

/// Threads for `elements` elements; none for none.
pub(crate) fn each(elements: usize) -> Option<Grid> {
    let blocks = elements.div_ceil(THREADS as usize).min(BLOCKS) as u32;
    (elements > 0).then_some(Grid { blocks: [blocks, 1, 1], threads: THREADS, shared_bytes: 0 })
}

/// A block for each row; each gets a number of 8 bytes for every warp.
pub(crate) fn each_row(rows: usize) -> Option<Grid> {
    let blocks = rows.min(ROW_BLOCKS) as u32;
    (rows > 0).then_some(Grid { blocks: [blocks, 1, 1], threads: ROW_THREADS, shared_bytes: 8 * (ROW_THREADS / 32) })
}

/// A block of `THREADS` for each group that a block works through.
pub(crate) fn each_group(groups: usize) -> Option<Grid> {
    let blocks = groups.min(ROW_BLOCKS) as u32;
    (groups > 0).then_some(Grid { blocks: [blocks, 1, 1], threads: THREADS, shared_bytes: 0 })
}

/// Numbers that kernels count in 32 bits; none if one is too large.
pub(crate) fn small<const N: usize>(values: [usize; N]) -> Option<[i32; N]> {
    let mut made = [0; N];
    for (made, value) in made.iter_mut().zip(values) {
        *made = i32::try_from(value).ok()?;
    }
    Some(made)
}

/// The GPU that a backend is.
pub(crate) fn cuda(backend: &dyn Device) -> Result<&CudaDevice, DeviceError> {
    let other = || DeviceError::new(ErrorClass::Recoverable, 101, "the kernels of CUDA on a device of another kind");
    backend.as_any().downcast_ref::<CudaDevice>().ok_or_else(other)
}

/// The GPU of an op.
pub(crate) fn device<'a>(ctx: &DeviceCtx<'a>) -> Result<&'a CudaDevice, OpError> {
    let open = ctx.engine().device(ctx.device())?;
    cuda(&**open.backend()).map_err(|error| open.op_error(&error, "choosing a kernel"))
}

/// Loads the module for this GPU, unless it is loaded.
pub(crate) fn load(device: &OpenDevice) -> Result<(), OpError> {
    let loaded = cuda(&**device.backend()).and_then(|backend| backend.load(image));
    loaded.map_err(|error| device.op_error(&error, "loading the kernels"))
}

/// Opens the libraries that the settings name for this GPU, unless they are open.
pub(crate) fn open_libraries(device: &OpenDevice) -> Result<(), OpError> {
    let opened = cuda(&**device.backend()).and_then(CudaDevice::check_providers);
    opened.map_err(|error| device.op_error(&error, "opening libraries"))
}

/// Submits a kernel whose argument is of the layout that its text declares.
pub(crate) fn launch<T: Copy>(
    ctx: &DeviceCtx<'_>,
    name: &'static CStr,
    grid: Grid,
    argument: &T,
) -> Result<(), OpError> {
    submit(ctx, grid, argument, |device| device.function(image, (name, grid.shared_bytes)))
}

fn submit<T: Copy>(
    ctx: &DeviceCtx<'_>,
    grid: Grid,
    argument: &T,
    function: impl FnOnce(&CudaDevice) -> Result<Function, DeviceError>,
) -> Result<(), OpError> {
    ctx.submit(|backend, stream| {
        let device = cuda(backend)?;
        let function = function(device)?;
        // SAFETY: the layouts are those of the text, kernel by kernel; the addresses are those of
        // arrays of the running op.
        unsafe { device.launch_kernel(stream, function, grid, argument) }
    })
}

/// The numbers that kernels compute in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Computes {
    Single,
    Double,
    Whole,
}

/// The type in which elements of a type are computed; none for types without kernels.
pub(crate) fn computes(dtype: DType) -> Option<Computes> {
    match dtype {
        DType::F32 | DType::F16 => Some(Computes::Single),
        DType::F64 => Some(Computes::Double),
        DType::U8 | DType::I8 | DType::I32 | DType::I64 | DType::Bool => Some(Computes::Whole),
        _ => None,
    }
}

/// Whether elements of a type, when they are read for a computation in another one, are what a
/// conversion makes of them.
pub(crate) fn reads(from: DType, within: DType) -> bool {
    match (computes(from), computes(within)) {
        (Some(Computes::Whole), Some(Computes::Single)) => within == DType::F32 || from.size() == 1,
        (Some(Computes::Whole | Computes::Single), Some(Computes::Double)) => true,
        (from, within) => from.is_some() && from == within,
    }
}

/// The value for single or for double precision; none for integers.
pub(crate) fn of_floats<T>(dtype: DType, [single, double]: [T; 2]) -> Option<T> {
    match computes(dtype)? {
        Computes::Single => Some(single),
        Computes::Double => Some(double),
        Computes::Whole => None,
    }
}

/// Whether kernels can read and write elements of this type.
pub(crate) fn known(tensor: &TensorType) -> bool {
    computes(tensor.dtype).is_some()
}

/// A type's number in the text.
pub(crate) fn code(dtype: DType) -> i32 {
    dtype as i32
}

/// An index space and the steps of `K` arrays in it, its axes joined where all arrays allow it; none
/// if there are too many left.
pub(crate) fn axes<const K: usize>(shape: &[usize], steps: [&[isize]; K]) -> Option<(AxesArgument, [[i64; AXES]; K])> {
    let mut joined: Vec<(usize, [isize; K])> = Vec::new();
    for (axis, n) in shape.iter().enumerate().filter(|(_, n)| **n != 1) {
        let step: [isize; K] = std::array::from_fn(|k| steps[k][axis]);
        match joined.last_mut() {
            Some((before, outer)) if (0..K).all(|k| outer[k] == step[k].wrapping_mul(*n as isize)) => {
                *before *= n;
                *outer = step;
            }
            _ => joined.push((*n, step)),
        }
    }
    if joined.len() > AXES {
        return None;
    }
    let mut axes = AxesArgument { rank: joined.len() as i32, unused: 0, shape: [1; AXES] };
    let mut all = [[0; AXES]; K];
    for (axis, (n, step)) in joined.into_iter().enumerate() {
        axes.shape[axis] = n as i64;
        (0..K).for_each(|k| all[k][axis] = step[k] as i64);
    }
    Some((axes, all))
}
