//! CUDA devices: the engine's [`Device`](mxrt_engine::device::Device) over the functions of the
//! CUDA driver.
//!
//! Nothing of CUDA is needed to build this crate or to load a program with it. The driver's library
//! is opened by the first question about GPUs ([`CudaDriver`]), and every reason why there is no
//! GPU is a text ([`status`]). Counting GPUs makes no context, so a process may fork after it.
//!
//! | file | content |
//! | --- | --- |
//! | `api.rs` | the driver's functions by name, with results as numbers |
//! | `context.rs` | a call with the device's context, and the caller's put back |
//! | `driver.rs` | the GPUs of the machine |
//! | `device.rs` | streams, events, memory, copies |
//! | `peers.rs` | GPUs that reach each other's memory |
//! | `graph.rs` | CUDA graphs, built node by node |
//! | `completion.rs`, `thread.rs` | the thread that waits for events, and its calls |
//! | `errors.rs` | what the driver's numbers mean |
//! | `fork.rs` | whether this process is a child of the one that opened the driver |
//! | `module.rs` | kernels from images |
//! | `library.rs` | the optional libraries: path and version |
//! | `nvrtc.rs` | kernels compiled at run time |
//! | `cache.rs` | these on the disk |
//! | `provider.rs` | libraries that compute in place of mxrt's kernels, if the settings name them |
//! | `cublaslt.rs`, `cudnn.rs` | products by cuBLASLt, convolutions by cuDNN |

mod api;
mod cache;
mod completion;
mod context;
mod cublaslt;
mod cudnn;
mod device;
mod driver;
mod errors;
mod fork;
mod graph;
mod library;
mod module;
mod nvrtc;
mod peers;
mod provider;
mod thread;

pub use cache::set_cache_folder;
pub use cublaslt::{Factor, MatrixProduct, ProductMath, ProductOperands, ProductPlan};
pub use cudnn::{ConvolutionOperands, ConvolutionPlan, PlaneConvolution};
pub use device::CudaDevice;
pub use driver::{CudaDriver, DriverStatus, GpuFacts, status};
pub use errors::{classify, error_name};
pub use library::{LibraryStatus, libraries, set_library_roots};
pub use module::{Function, Grid, Image};
pub use nvrtc::{KernelSource, compile};
pub use provider::{Provider, ProviderSettings, provider_settings, set_providers};
