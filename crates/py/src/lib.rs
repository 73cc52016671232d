//! The Python module `mxrt._mxrt`: a thin border over the crates of mxrt.
//!
//! This crate translates values and decides nothing else. Three rules keep threads safe: no Rust
//! lock is held while Python code may run; every wait gives the interpreter's lock back and checks
//! for signals periodically (`runtime::wait`); threads of the engine never attach to Python.

mod arithmetic;
#[cfg(feature = "serve")]
mod batcher;
mod cached_op;
mod control;
mod convert;
mod custom;
mod devices;
mod dlpack;
mod errors;
mod exit;
mod files;
#[cfg(feature = "serve")]
mod hooks;
mod images;
mod imported;
mod iterators;
mod ndarray;
mod new_numpy;
mod no_object;
mod notify;
mod np_shape;
mod numpy_calls;
mod operator;
mod plan_report;
mod profiler;
mod records;
mod runtime;
#[cfg(feature = "serve")]
mod serve;
mod settable;
mod sparse;
mod symbol;
mod testing;
mod tune;

// The module exports the C interface too, so that extensions in C and C++ share its engine. The
// allocator, which keeps a reserve for small pieces, is the one of that crate.
use mxrt_capi as _;
use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _mxrt {
    #[cfg(feature = "serve")]
    #[pymodule_export]
    use crate::batcher::Batcher;
    #[pymodule_export]
    use crate::cached_op::check_flags;
    #[pymodule_export]
    use crate::cached_op::{BoundOp, CachedOp};
    #[pymodule_export]
    use crate::control::{cancel, dump_engine, is_ready, set_bulk_size, set_engine_type, set_flush_denormals};
    #[pymodule_export]
    use crate::convert::{attr_text, dtype_code, dtype_of_code};
    #[pymodule_export]
    use crate::custom::{
        custom_calls_after_fork, custom_thread_refused, custom_thread_starts, finish_custom_call, invoke_custom,
        next_custom_call, take_custom_call,
    };
    #[pymodule_export]
    use crate::devices::{
        cache_folder, device_count, device_kinds, device_stats, gpu_kernels, gpu_libraries, gpu_status,
        set_device_limit, set_library_roots, trim_device,
    };
    #[pymodule_export]
    use crate::dlpack::{dlpack_device, export_dlpack, import_dlpack, share_numpy};
    #[pymodule_export]
    use crate::errors::failure_kinds;
    #[pymodule_export]
    use crate::exit::ExitHook;
    #[pymodule_export]
    use crate::files::{
        find_model, load_arrays, load_buffer, own_name_of_model, read_file, recognise, save_arrays, unpack_archive,
        write_file,
    };
    #[pymodule_export]
    use crate::images::{decode_image, encode_image, image_size};
    #[pymodule_export]
    use crate::iterators::{BatchReader, iterators};
    #[pymodule_export]
    use crate::ndarray::{NDArrayBase, copy_region, from_numpy, gather, scatter, zeroed};
    #[pymodule_export]
    use crate::notify::{next_notices, notify_when_ready};
    #[pymodule_export]
    use crate::np_shape::{is_np_shape, set_np_shape};
    #[pymodule_export]
    use crate::numpy_calls::{NumpyBinary, NumpyUnary};
    #[pymodule_export]
    use crate::operator::{Operator, belongs_to_training, get_operator, invoke, invoke_np, operator_names};
    #[pymodule_export]
    use crate::profiler::{
        profiler_events, profiler_finish, profiler_inside, profiler_now, profiler_switch, profiler_thread,
        profiler_totals,
    };
    #[pymodule_export]
    use crate::records::{RecordFile, RecordWriter};
    #[pymodule_export]
    use crate::runtime::{features, info, model_options, seed, set_memory_limit, settings, wait_all};
    #[cfg(feature = "serve")]
    #[pymodule_export]
    use crate::serve::{HttpServer, ServeConfig, serve_line, serve_settings};
    #[pymodule_export]
    use crate::sparse::{convert_into, from_parts, sparse_part, to_storage, zeroed_stored};
    #[pymodule_export]
    use crate::symbol::{SymbolBase, create, group, load_json, set_max_nodes, variable, watched};
    #[pymodule_export]
    use crate::testing::{SimStream, sim_check, sim_fail, sim_pending, sim_reseed, sim_stream};
    #[pymodule_export]
    use crate::tune::{measure_convolution, tuned_table};
    use pyo3::prelude::*;

    /// Version of this package, from the workspace's Cargo.toml.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// An attribute of Custom nodes that compute as in training.
    #[pymodule_export]
    const CUSTOM_TRAINS: &str = mxrt_graph::symbol::CUSTOM_TRAINS;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::custom::register();
        crate::no_object::set_up(module)?;
        // The crate looks numpy's interface up at its first use, and panics if Ctrl-C comes then.
        drop(numpy::dtype::<f32>(module.py()));
        module.add("__version__", VERSION)
    }
}
