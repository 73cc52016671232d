//! Libraries of NVIDIA in place of kernels: a file and a row for each. A kernel is bound in any case,
//! and computes what the library has no algorithm for.

use crate::{cublaslt, cudnn};
use mxrt_cuda::{CudaDevice, Provider, provider_settings};
use mxrt_engine::device::DeviceError;
use mxrt_engine::{DeviceCtx, OpError};
use mxrt_ops::{DeviceOperands, KernelForm, Signature};

/// A form bound to types, for a library.
pub(crate) trait LibraryStep: Send + Sync {
    /// The library.
    fn provider(&self) -> Provider;

    /// Whether the library has an algorithm for it on this device.
    fn serves(&self, device: &CudaDevice) -> Result<bool, DeviceError>;

    /// Submits the work of the library; false: it has no algorithm, and nothing was submitted.
    fn enqueue(&self, ctx: &DeviceCtx<'_>, operands: &DeviceOperands<'_>) -> Result<bool, OpError>;
}

/// Makes a step of forms that the library may compute.
type Offer = fn(&KernelForm, &Signature<'_>) -> Option<Box<dyn LibraryStep>>;

const OFFERS: &[(Provider, Offer)] = &[(Provider::CublasLt, cublaslt::offer), (Provider::Cudnn, cudnn::offer)];

/// The step of a library that the settings name, for a form that it may compute.
pub(crate) fn offer(form: &KernelForm, signature: &Signature<'_>) -> Option<Box<dyn LibraryStep>> {
    let chosen = &provider_settings().chosen;
    OFFERS.iter().filter(|(provider, _)| chosen.contains(provider)).find_map(|(_, offer)| offer(form, signature))
}
