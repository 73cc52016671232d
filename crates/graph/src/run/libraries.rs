//! Libraries of a device's vendor: which of them computes which step of a plan.

use super::cached_op::{CachedOp, CompiledBody};
use super::device_plan::DevicePlan;
use crate::compile::interrupt::Interrupter;
use crate::compile::report::PlanReport;
use mxrt_engine::OpError;
use mxrt_ops::{check_device_kernels, device_has_libraries};
use mxrt_tensor::{Context, TensorType};

impl CachedOp {
    /// Notes which steps of the plan libraries compute in calls with arrays of a context and these
    /// types, and which of the steps that they might compute have kernels of mxrt.
    pub(super) fn note_libraries(
        &self,
        report: &mut PlanReport,
        context: Context,
        types: &[TensorType],
    ) -> Result<(), OpError> {
        let (CompiledBody::Plan(segment), Some(device)) = (&self.body, context.device()) else { return Ok(()) };
        let open = self.engine().device(device)?;
        if open.backend().host_addressable() || !device_has_libraries(open) {
            return Ok(());
        }
        check_device_kernels(open)?;
        let build = || DevicePlan::build(segment.graph(), types, &self.options, &segment.device_constants, device);
        let plan = segment.plan_of_all(types, &mut Interrupter::never())?.native(device.kind(), build)?;
        for (library, [theirs, ours]) in plan.libraries(open)? {
            if !theirs.is_empty() {
                report.note(format!("{context}: {library} computes {}", theirs.join(", ")));
            }
            if !ours.is_empty() {
                report.note(format!("{context}: mxrt's kernels, in place of {library}, compute {}", ours.join(", ")));
            }
        }
        Ok(())
    }
}
