//! The state that all objects of the process share.

use crate::border::{Error, guard};
use crate::pointers::put;
use mxrt::{BoundOperatorCache, BuildOptions, Engine, RandomState, Settings};
use std::ffi::{c_char, c_int};
use std::sync::{Arc, OnceLock};

/// The version of MXNet whose interface this is: 1.9.1.
const MXNET_VERSION: c_int = 10901;

/// The state that the first use starts.
pub(crate) struct Runtime {
    pub(crate) engine: &'static Engine,
    pub(crate) plans: BuildOptions,
    pub(crate) random: Arc<RandomState>,
    /// operators as late calls have bound them
    pub(crate) bound: BoundOperatorCache,
    /// nodes that a symbol may have
    pub(crate) max_nodes: Option<usize>,
}

/// What the environment says, read once.
pub(crate) fn settings() -> Result<&'static Settings, Error> {
    static SETTINGS: OnceLock<Result<Settings, String>> = OnceLock::new();
    SETTINGS.get_or_init(|| Settings::from_environment(&|name| std::env::var(name).ok())).as_ref().map_err(Error::value)
}

/// The shared state. The first call makes it.
pub(crate) fn runtime() -> Result<&'static Runtime, Error> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let settings = settings()?;
    let start = || {
        settings.warnings.iter().for_each(|line| eprintln!("mxrt: {line}"));
        let engine = Engine::start(settings.engine.clone()).map_err(|error| error.to_string())?;
        let random = Arc::new(RandomState::new(0));
        let bound = BoundOperatorCache::default();
        Ok(Runtime { engine, plans: settings.plans, random, bound, max_nodes: settings.max_nodes })
    };
    RUNTIME.get_or_init(start).as_ref().map_err(Error::value)
}

/// The engine of the process.
pub(crate) fn engine() -> Result<&'static Engine, Error> {
    runtime().map(|runtime| runtime.engine)
}

/// The version of MXNet whose interface this is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXGetVersion(out: *mut c_int) -> c_int {
    // SAFETY: the caller promises a place for the number.
    guard(|| unsafe { put(out, MXNET_VERSION, "out") })
}

/// The version of mxrt, as static text.
#[unsafe(no_mangle)]
pub extern "C" fn MXRTGetVersion() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
