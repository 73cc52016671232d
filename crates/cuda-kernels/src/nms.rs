//! Non-maximum suppression: `nms.h`.

use crate::arguments::NmsArgument;
use crate::launch::{Bound, code, each, each_group, launch, of_floats};
use mxrt_kernels::vision::boxes::BoxFormat;
use mxrt_kernels::vision::nms::BoxNms;
use mxrt_ops::{KernelForm, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Suppress(nms) = form else { return None };
    let output = signature.outputs.first()?;
    let single = [c"nms_order_f32", c"nms_suppress_f32", c"nms_store_f32"];
    let double = [c"nms_order_f64", c"nms_suppress_f64", c"nms_store_f64"];
    let [order, suppress, store] = of_floats(output.dtype, [single, double])?;
    let BoxNms { width, count, .. } = *nms;
    let rows = output.shape.size().checked_div(width)?;
    let groups = rows.checked_div(count).unwrap_or(0);
    let argument = argument(nms, groups, code(output.dtype))?;
    Some(Bound::new(move |ctx, at| {
        let (Some(grid), Some(of_groups)) = (each(rows), each_group(groups)) else { return Ok(()) };
        let memory = ctx.scratch(2 * rows * size_of::<i32>())?;
        let argument = NmsArgument {
            to: at.outputs[0].0,
            from: at.inputs[0].0,
            order: memory.0,
            stays: memory.offset(rows * size_of::<i32>()).0,
            ..argument
        };
        launch(ctx, c"nms_clear", grid, &argument)?;
        launch(ctx, order, grid, &argument)?;
        launch(ctx, suppress, of_groups, &argument)?;
        launch(ctx, store, grid, &argument)
    }))
}

/// The argument without addresses; `None` if a number does not fit.
fn argument(nms: &BoxNms, groups: usize, dtype: i32) -> Option<NmsArgument> {
    let BoxNms { width, count, .. } = *nms;
    i32::try_from(count).ok()?;
    Some(NmsArgument {
        to: 0,
        from: 0,
        order: 0,
        stays: 0,
        groups: groups as i64,
        count: count as i64,
        width: width as i64,
        limit: nms.limit.unwrap_or(count).min(count) as i64,
        coordinates: i32::try_from(nms.coordinates).ok()?,
        score: i32::try_from(nms.score).ok()?,
        classes: nms.class.map_or(Some(-1), |class| i32::try_from(class).ok())?,
        across_classes: i32::from(nms.across_classes),
        center: i32::from(nms.from == BoxFormat::Center),
        to_center: i32::from(nms.to == BoxFormat::Center),
        dtype,
        unused: 0,
        overlap: nms.overlap,
        valid: nms.valid,
        background: nms.background,
    })
}
