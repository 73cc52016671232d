//! Regions of interest with own channels, moved bins or angles: `region_means.h`.

use crate::arguments::RegionMeansArgument;
use crate::indexing::out_of_range;
use crate::launch::{Bound, code, each, launch, of_floats, small};
use crate::regions::refusal;
use mxrt_engine::OpError;
use mxrt_kernels::vision::roi::Regions;
use mxrt_ops::{KernelForm, Signature};
use std::ffi::CStr;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let dtype = signature.outputs.first()?.dtype;
    let single_and_double = |names| of_floats(dtype, names);
    match form {
        KernelForm::RoiMeans(pool) => {
            let name = single_and_double([c"region_groups_f32", c"region_groups_f64"])?;
            let [groups] = small([pool.groups])?;
            let argument = RegionMeansArgument { groups, ..argument(&pool.regions, signature)? };
            let images = pool.regions.data[0];
            Some(bound(name, argument, move |said| out_of_range(said, 0, images)))
        }
        KernelForm::RoiMoved(pool) => {
            let name = single_and_double([c"region_moved_f32", c"region_moved_f64"])?;
            let [groups, parts, samples] = small([pool.groups, pool.parts, pool.samples])?;
            let classes = signature.inputs.get(2).map_or(1, |offsets| offsets.shape[1] / 2).max(1);
            let argument = RegionMeansArgument {
                classes: classes as i64,
                per_class: (pool.channels / classes).max(1) as i64,
                deviation: pool.deviation,
                groups,
                parts,
                samples,
                ..argument(&pool.regions, signature)?
            };
            let images = pool.regions.data[0];
            Some(bound(name, argument, move |said| out_of_range(said, 0, images)))
        }
        KernelForm::RoiTurned(align) => {
            let name = single_and_double([c"region_turned_f32", c"region_turned_f64"])?;
            let [samples] = small([align.samples.unwrap_or(0)])?;
            let argument = RegionMeansArgument { samples, ..argument(&align.regions, signature)? };
            let images = align.regions.data[0];
            Some(bound(name, argument, move |said| refusal(said, images)))
        }
        _ => None,
    }
}

/// The argument for plain regions, without addresses; `None` if a number does not fit.
fn argument(regions: &Regions, signature: &Signature<'_>) -> Option<RegionMeansArgument> {
    let output = signature.outputs.first()?;
    let Regions { data: [images, planes, height, width], pooled, scale } = *regions;
    // The kernels number the bins of a region in 32 bits.
    small([pooled[0].checked_mul(pooled[1])?])?;
    Some(RegionMeansArgument {
        to: 0,
        from: 0,
        regions: 0,
        offsets: 0,
        status: 0,
        n: output.shape.size() as i64,
        images: images as i64,
        planes: planes as i64,
        channels: output.shape[1] as i64,
        classes: 1,
        per_class: 1,
        scale,
        deviation: 0.0,
        size: small([height, width])?,
        bins: small(pooled)?,
        groups: 1,
        parts: 1,
        samples: 0,
        dtype: code(output.dtype),
    })
}

/// The kernel for an argument, and what its reports mean.
fn bound(
    name: &'static CStr,
    argument: RegionMeansArgument,
    explain: impl Fn(u64) -> OpError + Clone + Send + Sync + 'static,
) -> Bound {
    Bound::new(move |ctx, at| {
        let Some(grid) = each(argument.n as usize) else { return Ok(()) };
        let status = ctx.status_word(explain.clone())?.0;
        let (to, from, regions) = (at.outputs[0].0, at.inputs[0].0, at.inputs[1].0);
        let offsets = at.inputs.get(2).map_or(0, |offsets| offsets.0);
        launch(ctx, name, grid, &RegionMeansArgument { to, from, regions, offsets, status, ..argument })
    })
}
