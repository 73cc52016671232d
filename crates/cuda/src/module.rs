//! Modules of kernels, loaded when the first of them is asked for.

use crate::api::Api;
use crate::device::lock;
use crate::errors::check;
use crate::nvrtc::{Digested, KernelSource};
use cudarc::driver::sys::{CUfunction, CUmodule};
use mxrt_engine::device::{DeviceError, ErrorClass};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, OnceLock};

/// The code of a module for a compute capability, or why there is none.
pub type Image = fn((i32, i32)) -> Result<Vec<u8>, String>;

/// "No kernel image is available for execution on the device".
const NO_BINARY: i32 = 209;
/// Shared memory that a block gets without asking, and the number of the attribute that asks.
const PLAIN_SHARED: u32 = 48 << 10;
const MAX_DYNAMIC_SHARED: i32 = 8;

/// A kernel of a loaded module: valid as long as its device, which is never closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function(pub(crate) CUfunction);

// SAFETY: a handle of the driver, whose functions may be called from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// blocks along each axis
    pub blocks: [u32; 3],
    /// threads of a block
    pub threads: u32,
    /// bytes of shared memory that each block gets
    pub shared_bytes: u32,
}

/// The modules of a device.
#[derive(Default)]
pub(crate) struct Modules {
    images: Mutex<HashMap<usize, LoadedModule>>,
    /// kernels that were compiled at run time
    texts: Mutex<HashMap<Digested, Arc<OnceLock<Option<Function>>>>>,
}

struct LoadedModule {
    module: CUmodule,
    functions: HashMap<&'static CStr, Function>,
}

// SAFETY: handles of the driver, whose functions may be called from any thread.
unsafe impl Send for LoadedModule {}

impl Modules {
    fn of_text(&self, text: &KernelSource) -> Arc<OnceLock<Option<Function>>> {
        lock(&self.texts).entry(text.digest()).or_default().clone()
    }

    /// The only kernel of a text, if `prepare` got it.
    pub fn prepared(&self, text: &KernelSource) -> Option<Function> {
        self.of_text(text).get().copied().flatten()
    }

    /// Gets the only kernel of a text by `load`, once; other threads that want it wait.
    pub fn prepare(&self, text: &KernelSource, load: impl FnOnce() -> Option<Function>) {
        self.of_text(text).get_or_init(load);
    }

    /// Called with the device's context.
    pub fn load(&self, api: &Api, capability: (i32, i32), image: Image) -> Result<(), DeviceError> {
        loaded(&mut lock(&self.images), api, capability, image).map(|_| ())
    }

    /// Finds a kernel whose blocks use `shared_bytes` of shared memory, the same in each call. Called
    /// with the device's context.
    pub fn function(
        &self,
        api: &Api,
        capability: (i32, i32),
        image: Image,
        (name, shared_bytes): (&'static CStr, u32),
    ) -> Result<Function, DeviceError> {
        let mut modules = lock(&self.images);
        let loaded = loaded(&mut modules, api, capability, image)?;
        if let Some(function) = loaded.functions.get(name) {
            return Ok(*function);
        }
        let function = function_of(api, loaded.module, name)?;
        if shared_bytes > PLAIN_SHARED {
            // SAFETY: a function that was just found.
            check(unsafe { (api.cuFuncSetAttribute)(function.0, MAX_DYNAMIC_SHARED, shared_bytes as i32) })?;
        }
        loaded.functions.insert(name, function);
        Ok(function)
    }
}

/// Called with the device's context. The module stays loaded.
pub(crate) fn load_function(api: &Api, code: &[u8], name: &CStr) -> Result<Function, DeviceError> {
    function_of(api, module_of(api, code)?, name)
}

fn module_of(api: &Api, code: &[u8]) -> Result<CUmodule, DeviceError> {
    let mut module = std::ptr::null_mut();
    // SAFETY: a variable for the result, and a whole image.
    check(unsafe { (api.cuModuleLoadData)(&mut module, code.as_ptr().cast()) })?;
    Ok(module)
}

fn function_of(api: &Api, module: CUmodule, name: &CStr) -> Result<Function, DeviceError> {
    let mut function = std::ptr::null_mut();
    // SAFETY: a variable for the result, and a name that ends.
    check(unsafe { (api.cuModuleGetFunction)(&mut function, module, name.as_ptr()) })?;
    Ok(Function(function))
}

fn loaded<'a>(
    modules: &'a mut HashMap<usize, LoadedModule>,
    api: &Api,
    capability: (i32, i32),
    image: Image,
) -> Result<&'a mut LoadedModule, DeviceError> {
    match modules.entry(image as usize) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(place) => {
            let code = image(capability).map_err(|why| DeviceError::new(ErrorClass::Recoverable, NO_BINARY, why))?;
            let module = module_of(api, &code)?;
            Ok(place.insert(LoadedModule { module, functions: HashMap::new() }))
        }
    }
}
