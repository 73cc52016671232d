//! Kernels of devices whose memory the host cannot address. A crate of a device offers them by
//! form; nothing else here knows one.

use super::{KernelForm, KernelOptions, RandomKey, Signature, bind_kernel, form_of};
use crate::definition::{Attrs, OpDef};
use mxrt_engine::device::OpenDevice;
use mxrt_engine::{DeviceCtx, DeviceId, DeviceKind, DevicePtr, ForkSafeOnce, OpError};
use mxrt_tensor::{TensorType, no_device_kernel};

/// The kernels of one kind of device.
pub trait DeviceKernels: Send + Sync {
    /// Whether they run on this device at all; the error says why not.
    fn check(&self, device: &OpenDevice) -> Result<(), OpError>;

    /// A kernel for a form; `None`: there is none for these types.
    fn bind(&self, form: &KernelForm, signature: &Signature<'_>) -> Option<Box<dyn DeviceKernel>>;

    /// Whether a device prefers a convolution of images with channels last with weights `[filter, kernel,
    /// channel of a group]`.
    fn wants_filters_first(&self, _device: DeviceId, _form: &KernelForm, _signature: &Signature<'_>) -> bool {
        false
    }

    /// Whether libraries of the device's vendor may compute in place of kernels.
    fn has_libraries(&self) -> bool {
        false
    }
}

/// A library that may compute in place of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryUse {
    /// name of the library
    pub library: &'static str,
    /// whether it computes this; if not, the kernel does
    pub used: bool,
}

/// A form bound to types, for one kind of device. Immutable; enqueued any number of times.
pub trait DeviceKernel: Send + Sync {
    /// Does what takes long and is done once for each device, as compiling does. Plans call it before
    /// their first call there. Nothing depends on it but speed.
    fn prepare(&self, _device: &OpenDevice) {}

    /// A library that may compute this, and whether it does on this device.
    fn library(&self, _device: &OpenDevice) -> Result<Option<LibraryUse>, OpError> {
        Ok(None)
    }

    /// Submits its work to the op's stream and returns.
    fn enqueue(&self, ctx: &DeviceCtx<'_>, operands: &DeviceOperands<'_>) -> Result<(), OpError>;
}

/// Addresses of whole, dense arrays.
#[derive(Clone, Copy, Debug)]
pub struct DeviceOperands<'a> {
    /// addresses of the inputs
    pub inputs: &'a [DevicePtr],
    /// addresses of the outputs
    pub outputs: &'a [DevicePtr],
    /// this execution's piece of the random stream, for random operators
    pub random: Option<RandomKey>,
}

/// Kernels by kind of device.
pub type DeviceKernelTable = Vec<(DeviceKind, &'static dyn DeviceKernels)>;

static KERNELS: ForkSafeOnce<DeviceKernelTable> = ForkSafeOnce::new();

/// Says which kinds of devices have kernels of their own. The first call counts.
pub fn set_device_kernels(table: DeviceKernelTable) {
    KERNELS.get_or_init(|| table);
}

fn kernels_of(device: DeviceId) -> Option<&'static dyn DeviceKernels> {
    KERNELS.get()?.iter().find(|(kind, _)| *kind == device.kind()).map(|(_, kernels)| *kernels)
}

/// Whether kernels run on this device at all. An error: nothing was enqueued.
pub fn check_device_kernels(device: &OpenDevice) -> Result<(), OpError> {
    kernels_of(device.id()).map_or(Ok(()), |kernels| kernels.check(device))
}

/// Whether a device prefers weights of a convolution with the filters first.
pub(super) fn wants_filters_first(device: DeviceId, form: &KernelForm, signature: &Signature<'_>) -> bool {
    kernels_of(device).is_some_and(|kernels| kernels.wants_filters_first(device, form, signature))
}

/// Whether libraries of its vendor may compute on a device.
pub fn device_has_libraries(device: &OpenDevice) -> bool {
    kernels_of(device.id()).is_some_and(|kernels| kernels.has_libraries())
}

/// A device's kernel for an operator and complete types. If there is none, the error names the
/// device and the operator by this name, and says what works instead.
pub fn bind_device_kernel(
    (device, name): (DeviceId, &str),
    def: &OpDef,
    attrs: &Attrs,
    inputs: &[TensorType],
    outputs: &[TensorType],
    options: KernelOptions,
) -> Result<Box<dyn DeviceKernel>, OpError> {
    let signature = Signature { inputs, outputs, options };
    let bound = form_of(def, attrs, &signature)?.and_then(|form| bind_form(device, &form, &signature));
    bound.ok_or_else(|| no_kernel((device, name), def, attrs, &signature))
}

/// Says that a device has no kernel for an operator and these types, and what works instead; where
/// the host has none either, that.
pub fn no_kernel((device, name): (DeviceId, &str), def: &OpDef, attrs: &Attrs, signature: &Signature<'_>) -> OpError {
    match bind_kernel(def, attrs, signature) {
        Ok(_) => no_device_kernel(name, device),
        Err(error) => error,
    }
}

/// A device's kernel for a form and complete types, if it has one.
pub fn bind_form(device: DeviceId, form: &KernelForm, signature: &Signature<'_>) -> Option<Box<dyn DeviceKernel>> {
    kernels_of(device)?.bind(form, signature)
}
