//! Kernels for CUDA devices, by the form of what they compute ([`KernelForm`]).
//!
//! The text in `cuda/` is compiled for GPUs when a wheel is made (`scripts/cuda_images.py`), and for
//! the host in tests. Each file here turns a form and shapes into the argument of a kernel and its
//! grid. `KERNELS.md` has the map.

mod arguments;
mod box_pairs;
mod chain;
mod columns;
mod correlation;
mod counting;
mod ctc;
mod cublaslt;
mod cudnn;
mod deformable;
mod density;
mod detection;
mod draws;
mod elementwise;
mod image;
mod images;
mod indexing;
mod int8;
mod launch;
mod linalg;
#[cfg(test)]
#[path = "../build/listed.rs"]
mod listed;
mod matching;
mod moving;
mod multibox_target;
mod nms;
mod order;
mod padding;
mod places;
mod pooling;
mod product;
mod proposals;
mod providers;
mod random;
mod recurrent;
mod reduce;
mod region_means;
mod regions;
mod resample;
mod rows;
mod sampler;
mod scatter;
mod sequence;
mod source;
mod tiles;
mod turning;
mod warpgroup;

use launch::Bound;
use mxrt_engine::device::OpenDevice;
use mxrt_engine::{DeviceCtx, DeviceId, DevicePtr, OpError};
use mxrt_ops::{DeviceKernel, DeviceKernels, DeviceOperands, KernelForm, Signature};
use mxrt_tensor::RegionKernels;
use mxrt_tensor::index::Region;

/// The kernels of CUDA devices.
pub struct CudaKernels;

/// A row for each group of forms: it binds what it knows.
type Group = fn(&KernelForm, &Signature<'_>) -> Option<Bound>;

/// Adding a kernel is a file and a row.
const GROUPS: &[Group] = &[
    moving::bind,
    elementwise::bind,
    indexing::bind,
    reduce::bind,
    rows::bind,
    pooling::bind,
    random::bind,
    draws::bind,
    density::bind,
    product::bind,
    order::bind,
    detection::bind,
    nms::bind,
    box_pairs::bind,
    matching::bind,
    proposals::bind,
    multibox_target::bind,
    columns::bind,
    correlation::bind,
    deformable::bind,
    regions::bind,
    region_means::bind,
    recurrent::bind,
    resample::bind,
    images::bind,
    sampler::bind,
    sequence::bind,
    ctc::bind,
    scatter::bind,
    counting::bind,
    linalg::bind,
    places::bind,
    int8::bind,
    each_by_itself,
];

/// Kernels for arrays that are converted one by one.
fn each_by_itself(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::CastEach = form else { return None };
    let arrays = 0..signature.inputs.len();
    let bound = arrays.map(|i| {
        let one = Signature { inputs: &signature.inputs[i..=i], outputs: signature.outputs.get(i..=i)?, ..*signature };
        let form = if one.inputs[0].dtype == one.outputs[0].dtype { KernelForm::Copy } else { KernelForm::Cast };
        GROUPS.iter().find_map(|group| group(&form, &one))
    });
    let bound: Vec<Bound> = bound.collect::<Option<_>>()?;
    Some(Bound::new(move |ctx, at| {
        bound.iter().enumerate().try_for_each(|(i, kernel)| {
            kernel.enqueue(ctx, &DeviceOperands { inputs: &at.inputs[i..=i], outputs: &at.outputs[i..=i], ..*at })
        })
    }))
}

/// The kernel of mxrt for a form.
fn own_kernel(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    GROUPS.iter().find_map(|group| group(form, signature))
}

/// The kernels that GPUs of a compute capability have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelStatus {
    /// The reason why there are no kernels.
    pub kernels: Result<(), String>,
    /// The reason why chains of functions are not compiled, but interpreted by a kernel.
    pub chains: Result<(), String>,
}

/// Finds out by getting the kernels, and by compiling a chain.
pub fn kernel_status(capability: (i32, i32)) -> KernelStatus {
    let chains = mxrt_cuda::compile(&elementwise::example(), capability).map(drop);
    KernelStatus { kernels: image::image(capability).map(drop), chains }
}

impl DeviceKernels for CudaKernels {
    fn check(&self, device: &OpenDevice) -> Result<(), OpError> {
        launch::load(device)?;
        launch::open_libraries(device)
    }

    fn bind(&self, form: &KernelForm, signature: &Signature<'_>) -> Option<Box<dyn DeviceKernel>> {
        let own = own_kernel(form, signature).or_else(|| cudnn::bind_filters_first(form, signature, own_kernel))?;
        Some(Box::new(own.or_library(providers::offer(form, signature))))
    }

    fn wants_filters_first(&self, device: DeviceId, form: &KernelForm, signature: &Signature<'_>) -> bool {
        cudnn::wants_filters_first(device, form, signature)
    }

    fn has_libraries(&self) -> bool {
        !mxrt_cuda::provider_settings().chosen.is_empty()
    }
}

impl RegionKernels for CudaKernels {
    fn check(&self, device: &OpenDevice) -> Result<(), OpError> {
        launch::load(device)
    }

    fn copy(
        &self,
        ctx: &DeviceCtx<'_>,
        to: (DevicePtr, &Region),
        from: (DevicePtr, &Region),
        size: usize,
    ) -> Result<(), OpError> {
        moving::copy_region(ctx, to, from, size)
    }

    fn copy_places(
        &self,
        ctx: &DeviceCtx<'_>,
        to: DevicePtr,
        from: DevicePtr,
        places: DevicePtr,
        count: usize,
        size: usize,
    ) -> Result<(), OpError> {
        moving::copy_places(ctx, to, from, places, count, size)
    }
}
