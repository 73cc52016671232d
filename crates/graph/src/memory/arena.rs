//! An arena: from which step to which step each value is needed, and where it is stored.

use super::join::Joined;
use super::offsets::{Lifetime, assign};
use crate::ir::{Value, ValueMap};

/// Needs of a step in an arena.
pub(crate) struct StepUse<'a> {
    pub inputs: &'a [Value],
    /// values that it makes, and their bytes
    pub outputs: Vec<(Value, usize)>,
    /// bytes of scratch memory
    pub workspace: usize,
    /// bytes of weights that it packs for itself
    pub packing: Option<usize>,
    /// inputs any one of which its first output may overwrite
    pub overwrites: &'a [usize],
}

/// Memory of a step in an arena, apart from values.
#[derive(Clone, Copy, Default)]
pub(crate) struct StepMemory {
    /// the input that its output overwrites
    pub shared: Option<usize>,
    /// numbers of its scratch memory, and of its own packing
    pub workspace: Option<usize>,
    pub packing: Option<usize>,
}

/// An arena that is laid out.
pub(crate) struct Arena {
    lifetimes: Vec<Lifetime>,
    offsets: Vec<usize>,
    /// values in the arena, by number
    pub number: ValueMap<usize>,
    pub steps: Vec<StepMemory>,
    pub bytes: usize,
}

impl Arena {
    /// Lays out what steps use. Values in `elsewhere` are not stored in the arena. `whole` gives the
    /// bytes of a value that others are inside of.
    pub fn new(
        uses: &[StepUse<'_>],
        joined: &Joined,
        elsewhere: &ValueMap<usize>,
        overwrite: bool,
        whole: &dyn Fn(Value) -> Option<usize>,
    ) -> Arena {
        let (lifetimes, number, steps) = (Vec::new(), ValueMap::default(), Vec::with_capacity(uses.len()));
        let mut arena = Arena { lifetimes, offsets: Vec::new(), number, steps, bytes: 0 };
        let last_read = last_reads(uses, joined);
        for (s, step) in uses.iter().enumerate() {
            let alone = |value: &Value| joined.place_of(*value) == (*value, 0) && !elsewhere.contains_key(value);
            let shared = if overwrite { arena.overwritten((s, step), joined, &last_read, &alone) } else { None };
            if let (Some(i), Some((output, _))) = (shared, step.outputs.first())
                && let Some(at) = arena.number.get(&step.inputs[i]).copied()
            {
                arena.number.insert(*output, at);
            }
            for value in step.inputs {
                if let Some(i) = arena.number.get(&joined.place_of(*value).0) {
                    arena.lifetimes[*i].last = s;
                }
            }
            for (value, bytes) in step.outputs.iter().filter(|(value, _)| !elsewhere.contains_key(value)) {
                arena.add_output((*value, *bytes), s, joined, whole);
            }
            let workspace = (step.workspace > 0).then(|| arena.add(step.workspace, s));
            let packing = step.packing.map(|bytes| arena.add(bytes, s));
            arena.steps.push(StepMemory { shared, workspace, packing });
        }
        (arena.offsets, arena.bytes) = assign(&arena.lifetimes);
        arena
    }

    /// Offset and bytes, by number.
    pub fn place(&self, number: usize) -> (usize, usize) {
        (self.offsets[number], self.lifetimes[number].bytes)
    }

    /// Offset of each value.
    pub fn offsets(&self) -> impl Iterator<Item = (Value, usize)> {
        self.number.iter().map(|(value, number)| (*value, self.offsets[*number]))
    }

    /// Adds a value that a step makes. A joined value is alive from the first of its parts on.
    fn add_output(
        &mut self,
        (value, bytes): (Value, usize),
        step: usize,
        joined: &Joined,
        whole: &dyn Fn(Value) -> Option<usize>,
    ) {
        let (around, _) = joined.place_of(value);
        match self.number.get(&around) {
            Some(i) => self.lifetimes[*i].last = step,
            None => {
                let whole = if around == value { None } else { whole(around) };
                let number = self.add(whole.unwrap_or(bytes), step);
                self.number.insert(around, number);
            }
        }
    }

    fn add(&mut self, bytes: usize, step: usize) -> usize {
        self.lifetimes.push(Lifetime { bytes, first: step, last: step });
        self.lifetimes.len() - 1
    }

    /// The input that the output of a step can overwrite: no later step reads it, and both are
    /// stored in the arena alone.
    fn overwritten(
        &self,
        (s, step): (usize, &StepUse<'_>),
        joined: &Joined,
        last_read: &ValueMap<usize>,
        alone: &dyn Fn(&Value) -> bool,
    ) -> Option<usize> {
        let (output, output_bytes) = step.outputs.first()?;
        if !alone(output) || self.number.contains_key(output) {
            return None;
        }
        let dies = |i: &usize| {
            step.inputs.get(*i).is_some_and(|value| {
                let reads = step.inputs.iter().filter(|v| joined.place_of(**v).0 == *value).count();
                let bytes = self.number.get(value).map(|at| self.lifetimes[*at].bytes);
                alone(value) && reads == 1 && last_read.get(value) == Some(&s) && bytes == Some(*output_bytes)
            })
        };
        step.overwrites.iter().copied().find(|i| dies(i))
    }
}

/// Finds the last step that reads each value or a part of it.
fn last_reads(uses: &[StepUse<'_>], joined: &Joined) -> ValueMap<usize> {
    let reads = uses.iter().enumerate().flat_map(|(s, step)| step.inputs.iter().map(move |v| (v, s)));
    reads.map(|(value, s)| (joined.place_of(*value).0, s)).collect()
}
