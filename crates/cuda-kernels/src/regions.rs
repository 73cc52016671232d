//! Regions of interest: `regions.h`.

use crate::arguments::RegionsArgument;
use crate::indexing::{REPORTED, out_of_range};
use crate::launch::{Bound, code, each, launch, of_floats, small};
use mxrt_engine::{FailureKind, OpError};
use mxrt_kernels::vision::roi::{LONG_BINS, NO_SIDES, Regions};
use mxrt_ops::{KernelForm, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first()?;
    let (names, regions, align) = match form {
        KernelForm::RoiAlign(align) => ([c"roi_align_f32", c"roi_align_f64"], &align.regions, Some(align)),
        KernelForm::RoiMaxima(regions) => ([c"roi_maxima_f32", c"roi_maxima_f64"], regions, None),
        _ => return None,
    };
    let name = of_floats(output.dtype, names)?;
    let Regions { data: [images, planes, height, width], pooled, scale } = *regions;
    let n = output.shape.size();
    let argument = RegionsArgument {
        to: 0,
        from: 0,
        regions: 0,
        status: 0,
        n: n as i64,
        images: images as i64,
        planes: planes as i64,
        channels: output.shape[1] as i64,
        size: small([height, width])?,
        bins: small(pooled)?,
        scale,
        samples: i32::try_from(align.and_then(|align| align.samples).unwrap_or(0)).ok()?,
        aligned: i32::from(align.is_some_and(|align| align.aligned)),
        position_sensitive: i32::from(align.is_some_and(|align| align.position_sensitive)),
        dtype: code(output.dtype),
    };
    // The kernel numbers the bins of a region in 32 bits.
    small([pooled[0].checked_mul(pooled[1])?])?;
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = each(n) else { return Ok(()) };
        let status = ctx.status_word(move |said| refusal(said, images))?.0;
        let (to, from, regions) = (at.outputs[0].0, at.inputs[0].0, at.inputs[1].0);
        launch(ctx, name, grid, &RegionsArgument { to, from, regions, status, ..argument })
    }))
}

/// The error of what a kernel reports.
pub(crate) fn refusal(said: u64, images: usize) -> OpError {
    if said >= REPORTED {
        return out_of_range(said, 0, images);
    }
    let reason = if (said - 1).is_multiple_of(2) { NO_SIDES } else { LONG_BINS };
    OpError::new(FailureKind::Value, format!("region {} cannot be pooled: {reason}", (said - 1) / 2))
}
