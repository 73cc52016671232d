//! [`Process`]: what the borders to other languages share in a process.

mod shared_weights;

use crate::engine::EngineKind;
use crate::settings::Settings;
use mxrt_engine::Engine;
use mxrt_engine::{ForkSafeLazy, ForkSafeMutex as Mutex, ForkSafeOnce};
use mxrt_graph::BuildOptions;
use mxrt_ops::{BoundOperatorCache, RandomState};
use std::sync::Arc;

/// One engine with what belongs to it, made of the environment at its first use. The Python module
/// and the C interface both use it, also where they are one library.
pub struct Process {
    /// runs everything
    pub engine: &'static Engine,
    /// options for [`CachedOp::compile`](mxrt_graph::CachedOp::compile)
    pub plans: BuildOptions,
    /// state of random operators
    pub random: Arc<RandomState>,
    /// operators as late calls have bound them
    pub bound: BoundOperatorCache,
    /// nodes that a symbol may have
    pub max_nodes: Option<usize>,
    /// borders note where their callers push operators
    pub debug: bool,
}

static SETTINGS: ForkSafeOnce<Result<Settings, String>> = ForkSafeOnce::new();
static PROCESS: ForkSafeOnce<Result<Process, String>> = ForkSafeOnce::new();
/// The kind of engine that the program asked for before it was started.
static KIND: Mutex<Option<EngineKind>> = Mutex::new(None);

/// Least size of the stack of a thread that calls mxrt, in KiB, as the documentation says.
const STACK_KIB: usize = 64;

static NO_STACK: ForkSafeLazy<String> = ForkSafeLazy::new(|| {
    format!(
        "this thread has less than {} KiB of its stack left; a thread that calls mxrt needs a stack of {STACK_KIB} KiB \
         or more: in Python call threading.stack_size({}) before it starts",
        mxrt_engine::STACK_NEEDED >> 10,
        STACK_KIB << 10
    )
});

impl Process {
    /// The settings from the environment, which is read this once.
    pub fn settings() -> Result<&'static Settings, &'static String> {
        SETTINGS.get_or_init(|| Settings::from_environment(&|name| std::env::var(name).ok())).as_ref()
    }

    /// The shared state. The first call starts the engine, and prints warnings about the
    /// environment. An error, instead of the end of the process, in a thread that has too little
    /// stack left.
    pub fn get() -> Result<&'static Process, &'static String> {
        if !mxrt_engine::has_stack() {
            return Err(&NO_STACK);
        }
        PROCESS.get_or_init(Process::start).as_ref()
    }

    /// The engine, if something has used it.
    pub fn started() -> Option<&'static Engine> {
        PROCESS.get()?.as_ref().ok().map(|process| process.engine)
    }

    /// Chooses the kind of engine, before anything uses it. An engine that runs already, as another
    /// kind, is returned.
    pub fn choose_engine(kind: EngineKind) -> Result<(), &'static Engine> {
        match Process::started() {
            Some(engine) if engine.kind() != kind => Err(engine),
            _ => {
                *KIND.lock() = Some(kind);
                Ok(())
            }
        }
    }

    fn start() -> Result<Process, String> {
        let mut settings = Process::settings()?.clone();
        settings.warnings.iter().for_each(|line| eprintln!("mxrt: {line}"));
        if let Some(kind) = *KIND.lock() {
            settings.engine.kind = kind;
        }
        let engine = Engine::start(settings.engine).map_err(|error| error.to_string())?;
        if settings.flush_denormals {
            mxrt_engine::set_flush_denormals(true).map_err(|error| format!("MXRT_FLUSH_DENORMALS: {error}"))?;
        }
        if settings.debug {
            mxrt_engine::dump_on_sigusr1().map_err(|e| format!("MXRT_DEBUG: listening for SIGUSR1: {e}"))?;
        }
        if let Some(most) = settings.shared_weights {
            shared_weights::begin(&settings.devices, most).map_err(|why| format!("MXRT_SHARED_WEIGHTS_MB: {why}"))?;
        }
        let (random, bound) = (Arc::new(RandomState::new(0)), BoundOperatorCache::default());
        let Settings { plans, max_nodes, debug, .. } = settings;
        Ok(Process { engine, plans, random, bound, max_nodes, debug })
    }
}
