//! State of the process: random numbers, switches, devices, features of the build.

use crate::border::{Error, c_functions};
use crate::pointers::{StaticText, count, get_variable, put, set_variable, text};
use crate::runtime::{engine, runtime, settings};
use mxrt::internal::{DeviceId, DeviceKind, FailureKind, ForkSafeLazy};
use mxrt::internal::{NpShapeScope, np_shape_scope, set_np_shape_scope};
use mxrt::params::NpShape;
use std::ffi::{c_char, c_int};

/// Whether zero axes are a scalar, for this thread or all.
pub(crate) fn np_shape() -> NpShape {
    match np_shape_scope() {
        NpShapeScope::Off => NpShape::Off,
        NpShapeScope::Thread => NpShape::ThreadLocal,
        NpShapeScope::Process => NpShape::Global,
    }
}

fn np_code() -> c_int {
    match np_shape() {
        NpShape::Off => 0,
        NpShape::ThreadLocal => 1,
        NpShape::Global => 2,
    }
}

/// A property of the build, as MXNet's `LibFeature`.
#[repr(C)]
pub struct LibFeature {
    name: *const c_char,
    enabled: bool,
}

/// Address and number of the features, which live as long as the process.
static FEATURES: ForkSafeLazy<(usize, usize)> = ForkSafeLazy::new(|| {
    let of = |(name, enabled): (&str, bool)| LibFeature { name: StaticText::new(name).as_ptr(), enabled };
    let has_gpus = settings().is_ok_and(|settings| settings.device_count(DeviceKind::GPU) > 0);
    let features: Vec<LibFeature> = mxrt::internal::mxnet_features(has_gpus).into_iter().map(of).collect();
    let number = features.len();
    (Box::leak(features.into_boxed_slice()).as_ptr().expose_provenance(), number)
});

/// Free and total bytes of a GPU.
fn gpu_memory(dev: c_int) -> Result<(usize, usize), Error> {
    let number = u16::try_from(dev).map_err(|_| Error::value(format!("the argument dev is {dev}: no GPU's number")))?;
    let stats = engine()?.device_stats(DeviceId::new(DeviceKind::GPU, number))?;
    Ok((stats.free, stats.total))
}

/// A name that an environment variable can have.
fn variable(name: &str) -> Result<&str, Error> {
    if name.is_empty() || name.contains('=') {
        return Err(Error::value(format!("the argument name is {name:?}, which no environment variable can have")));
    }
    Ok(name)
}

c_functions! {
    /// Starts the stream of random numbers again.
    fn MXRandomSeed(seed: c_int) {
        runtime()?.random.seed(seed as u64);
        Ok(())
    }

    /// Variant of `MXRandomSeed`: all devices share one stream.
    fn MXRandomSeedContext(seed: c_int, dev_type: c_int, dev_id: c_int) {
        if let Some(device) = crate::ndarray::context(dev_type, dev_id)?.device()
            && usize::from(device.index()) >= settings()?.device_count(device.kind())
        {
            return Err(Error::of_kind(FailureKind::Device, format!("{device}: there is no such device")));
        }
        runtime()?.random.seed(seed as u64);
        Ok(())
    }

    /// Fails asynchronous functions that were not completed, and waits for all pending work. The
    /// library stays usable; the end of the process needs no call.
    fn MXNotifyShutdown() {
        crate::engine::drop_pending();
        // Failures stay with their arrays; a program that ends does not ask for them.
        let _ = engine()?.wait_all();
        Ok(())
    }

    /// Accepted without effect: `MXRT_CORES` or `OMP_NUM_THREADS` decide at the first use.
    fn MXSetNumOMPThreads(thread_num: c_int) {
        count(thread_num, "thread_num").map(drop)
    }

    /// Sets how many small operators of this thread run as one piece of work.
    fn MXEngineSetBulkSize(bulk_size: c_int, prev_bulk_size: *mut c_int) {
        let size = count(bulk_size, "bulk_size")?;
        put(prev_bulk_size, 0, "prev_bulk_size")?;
        let before = engine()?.set_bulk_size(size);
        put(prev_bulk_size, before as c_int, "prev_bulk_size")
    }

    /// Number of GPUs. Starts no engine.
    fn MXGetGPUCount(out: *mut c_int) {
        put(out, 0, "out")?;
        put(out, settings()?.device_count(DeviceKind::GPU) as c_int, "out")
    }

    /// Free and total memory of a GPU in bytes, as far as `int` goes.
    fn MXGetGPUMemoryInformation(dev: c_int, free_mem: *mut c_int, total_mem: *mut c_int) {
        put(free_mem, 0, "free_mem")?;
        put(total_mem, 0, "total_mem")?;
        let (free, total) = gpu_memory(dev)?;
        put(free_mem, c_int::try_from(free).unwrap_or(c_int::MAX), "free_mem")?;
        put(total_mem, c_int::try_from(total).unwrap_or(c_int::MAX), "total_mem")
    }

    /// Free and total memory of a GPU in bytes.
    fn MXGetGPUMemoryInformation64(dev: c_int, free_mem: *mut u64, total_mem: *mut u64) {
        put(free_mem, 0, "free_mem")?;
        put(total_mem, 0, "total_mem")?;
        let (free, total) = gpu_memory(dev)?;
        put(free_mem, free as u64, "free_mem")?;
        put(total_mem, total as u64, "total_mem")
    }

    /// Gives memory that is kept for later arrays back to the system.
    fn MXStorageEmptyCache(dev_type: c_int, dev_id: c_int) {
        match crate::ndarray::context(dev_type, dev_id)?.device() {
            Some(device) => engine()?.trim_device(device)?,
            None => engine()?.memory().trim(),
        }
        Ok(())
    }

    /// Whether zero axes are a scalar: 0 no, 1 for this thread, 2 for all.
    fn MXIsNumpyShape(curr: *mut c_int) {
        put(curr, np_code(), "curr")
    }

    /// Sets whether zero axes are a scalar: 0 no, 1 for this thread, 2 for all.
    fn MXSetIsNumpyShape(is_np_shape: c_int, prev: *mut c_int) {
        let scope = match is_np_shape {
            0 => NpShapeScope::Off,
            1 => NpShapeScope::Thread,
            2 => NpShapeScope::Process,
            _ => return Err(Error::value(format!("the argument is_np_shape is {is_np_shape}; expected 0, 1 or 2"))),
        };
        put(prev, np_code(), "prev")?;
        set_np_shape_scope(scope);
        Ok(())
    }

    /// 1: this process is no server.
    fn MXKVStoreIsWorkerNode(ret: *mut c_int) {
        put(ret, 1, "ret")
    }

    /// 0, as the process is a worker.
    fn MXKVStoreIsServerNode(ret: *mut c_int) {
        put(ret, 0, "ret")
    }

    /// 0, as the process is a worker.
    fn MXKVStoreIsSchedulerNode(ret: *mut c_int) {
        put(ret, 0, "ret")
    }

    /// The value of an environment variable, in memory of the environment; null if there is none.
    fn MXGetEnv(name: *const c_char, value: *mut *const c_char) {
        put(value, std::ptr::null(), "value")?;
        variable(text(name, "name")?)?;
        put(value, get_variable(name), "value")
    }

    /// Sets an environment variable, or removes it if `value` is null. No other thread may read or
    /// write the environment at the same time. Settings that were read before do not change.
    fn MXSetEnv(name: *const c_char, value: *const c_char) {
        let name = variable(text(name, "name")?)?;
        let value = if value.is_null() { None } else { Some(text(value, "value")?) };
        set_variable(name, value);
        Ok(())
    }

    /// Takes denormal numbers for zeros in operators on the CPU (1), or computes with them (0).
    /// `*prev` is what was set before.
    fn MXRTSetFlushDenormals(flush: c_int, prev: *mut c_int) {
        // The environment is read first: it would change the setting later.
        engine()?;
        put(prev, c_int::from(mxrt::engine::flushes_denormals()), "prev")?;
        mxrt::engine::set_flush_denormals(flush != 0).map(drop).map_err(Error::absent)
    }

    /// Properties of the build. They live as long as the process.
    fn MXLibInfoFeatures(lib_feature: *mut *const LibFeature, size: *mut usize) {
        put(size, FEATURES.1, "size")?;
        put(lib_feature, std::ptr::with_exposed_provenance(FEATURES.0), "libFeature")
    }
}
