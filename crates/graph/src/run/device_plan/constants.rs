//! Constants of a device: values that depend on parameters alone (folded and packed weights), in
//! one array for each device and set of parameters.
//!
//! An op computes the array before the first call that reads it, and again after a parameter was
//! written. Plans of one graph for other shapes of data share constants that are made in the
//! same way.

use super::step::DeviceStep;
use super::{DevicePlan, OperandAddresses, run};
use mxrt_engine::{DeviceCtx, DeviceId, DevicePtr, Engine, ForkSafeMutex, OpError};
use mxrt_tensor::{Context, DType, DeviceLaunch, NDArray, Shape, TensorType, launch_native};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Limit of the arrays of constants that are kept on a device, one for each set of parameters.
const CONSTANT_SETS: usize = 4;

/// The constants of the plans of one graph.
#[derive(Default)]
pub(crate) struct DeviceConstants(ForkSafeMutex<Vec<Weak<ConstantSets>>>);

/// Constants that the same steps make, by set of parameters.
#[derive(Default)]
pub(super) struct ConstantSets {
    /// the steps that make the constants, with types and places, as text
    recipe: String,
    sets: ForkSafeMutex<Vec<Arc<ConstantSet>>>,
}

/// Constants of one set of parameters.
pub(super) struct ConstantSet {
    pub array: NDArray,
    /// the device of the array; plans without parameters have the same constants on all
    device: DeviceId,
    /// variables and offsets of the parameters
    of: Vec<(u64, usize)>,
    /// versions of the parameters when the constants were computed; set before any call that reads
    /// the constants is enqueued
    versions: OnceLock<Vec<u64>>,
    /// whether a call met other versions
    pub stale: AtomicBool,
}

impl DeviceConstants {
    /// The constants that these steps make.
    pub(super) fn made_by(&self, steps: &[DeviceStep], bytes: usize) -> Arc<ConstantSets> {
        let mut recipe = format!("{bytes}");
        for DeviceStep { node, inputs, outputs, .. } in steps {
            let _ = write!(recipe, "\n{} {:?} {:?} {inputs:?} {outputs:?}", node.op, node.attrs, node.inputs);
        }
        let mut all = self.0.lock();
        all.retain(|sets| sets.strong_count() > 0);
        if let Some(known) = all.iter().filter_map(Weak::upgrade).find(|sets| sets.recipe == recipe) {
            return known;
        }
        let made = Arc::new(ConstantSets { recipe, ..ConstantSets::default() });
        all.push(Arc::downgrade(&made));
        made
    }
}

impl ConstantSets {
    /// Keeps a set for later calls, in the place of an older one of the same parameters.
    fn keep(&self, set: Arc<ConstantSet>) -> Arc<ConstantSet> {
        let mut sets = self.sets.lock();
        let replaced = |other: &Arc<ConstantSet>| other.device == set.device && other.of == set.of;
        let mut old: Vec<Arc<ConstantSet>> = sets.extract_if(.., |other| replaced(other)).collect();
        sets.insert(0, set.clone());
        let mut of_device = 0;
        old.extend(sets.extract_if(.., |other| {
            of_device += usize::from(other.device == set.device);
            other.device == set.device && of_device > CONSTANT_SETS
        }));
        // Arrays are freed under no lock.
        drop(sets);
        drop(old);
        set
    }

    /// Drops the sets of a device that no call reads.
    pub fn give_up(&self, device: DeviceId) {
        let idle = |set: &Arc<ConstantSet>| set.device == device && Arc::strong_count(set) == 1;
        let gone: Vec<Arc<ConstantSet>> = self.sets.lock().extract_if(.., |set| idle(set)).collect();
        // Arrays are freed under no lock.
        drop(gone);
    }
}

impl ConstantSet {
    /// Whether the constants were computed from these versions of the parameters.
    pub fn is_of(&self, versions: &[u64]) -> bool {
        self.versions.get().is_some_and(|own| own == versions)
    }
}

impl DevicePlan {
    /// The constants for these parameters, perhaps still to be computed. `None` if the plan has
    /// none. `arrays` are those of the call, and `place` gives the position in them of an input of
    /// the graph.
    pub(super) fn constants(
        self: &Arc<DevicePlan>,
        engine: &'static Engine,
        device: DeviceId,
        arrays: &[&NDArray],
        place: &impl Fn(usize) -> usize,
    ) -> Result<Option<Arc<ConstantSet>>, OpError> {
        if self.lowered.constant_steps.is_empty() {
            return Ok(None);
        }
        let read = || self.lowered.constant_inputs.iter().filter_map(|input| arrays.get(place(*input)).copied());
        let keys = || read().map(NDArray::place_key);
        let known = |set: &&Arc<ConstantSet>| {
            set.device == device && !set.stale.load(Ordering::Relaxed) && set.of.iter().copied().eq(keys())
        };
        if let Some(set) = self.constants.sets.lock().iter().find(known) {
            return Ok(Some(set.clone()));
        }
        let (of, read): (Vec<(u64, usize)>, Vec<&NDArray>) = (keys().collect(), read().collect());
        let context = arrays.first().map_or_else(Context::default, |array| array.context());
        let tensor = TensorType::new(DType::U8, Shape::new(&[self.lowered.constant_bytes]));
        let array = NDArray::new(engine, context, tensor)?;
        engine.freeze(array.var());
        engine.device(device)?.add_spare(self);
        let (versions, stale) = (OnceLock::new(), AtomicBool::new(false));
        let set = Arc::new(ConstantSet { array, device, of, versions, stale });
        self.push_constants(engine, device, &set, &read)?;
        Ok(Some(self.constants.keep(set)))
    }

    /// Pushes the op that computes the constants from these parameters.
    fn push_constants(
        self: &Arc<DevicePlan>,
        engine: &'static Engine,
        device: DeviceId,
        set: &Arc<ConstantSet>,
        read: &[&NDArray],
    ) -> Result<(), OpError> {
        let (plan, made) = (self.clone(), Arc::downgrade(set));
        let outputs = [&set.array];
        launch_native(engine, &DeviceLaunch::new(device, "constants", read, &outputs), move |ctx, at| {
            let position = |input: usize| plan.lowered.constant_inputs.iter().position(|read| *read == input);
            let position = |input: usize| position(input).unwrap_or(usize::MAX);
            if let Some(set) = made.upgrade() {
                let _ = set.versions.set(plan.versions(ctx, &position));
            }
            let places = OperandAddresses {
                inputs: &|input| at.inputs.get(position(input)).copied().unwrap_or(DevicePtr(0)),
                outputs: &[],
                arena: DevicePtr(0),
                constants: at.outputs[0],
            };
            run(&plan.lowered.constant_steps, ctx, &places, &[], None)
        })
    }

    /// Versions of the parameters from which the constants are made, in an op that reads them.
    pub(super) fn versions(&self, ctx: &DeviceCtx<'_>, place: &impl Fn(usize) -> usize) -> Vec<u64> {
        self.lowered.constant_inputs.iter().map(|input| ctx.version_of(place(*input))).collect()
    }
}
