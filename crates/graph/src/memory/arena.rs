//! The arena of a plan: which values lie where, and which step waits for which.

use super::offsets::{Lifetime, aligned, assign};
use crate::compile::build::PlanBuilder;
use crate::compile::step::{ArenaPiece, OperandPlace, PackedPlace, Step, StepNeed};
use crate::ir::{Value, ValueMap};
use crate::passes::OVERWRITE;
use std::ops::Range;

/// A step before memory is laid out.
pub(crate) struct StepDraft {
    pub step: Step,
    pub inputs: Vec<Value>,
    pub outputs: Vec<Value>,
}

/// Lays the arena out and turns drafts into steps.
pub(crate) struct ArenaLayout<'a> {
    builder: &'a PlanBuilder<'a>,
    drafts: Vec<StepDraft>,
    in_place: &'a ValueMap<usize>,
    lifetimes: Vec<Lifetime>,
    /// arena values
    value_at: ValueMap<usize>,
    /// by step: the input that its output overwrites
    shared: Vec<Option<usize>>,
    /// workspace and per-request packing of each step
    extra: Vec<(Option<usize>, Option<usize>)>,
}

impl<'a> ArenaLayout<'a> {
    pub fn new(builder: &'a PlanBuilder<'a>, drafts: Vec<StepDraft>, in_place: &'a ValueMap<usize>) -> ArenaLayout<'a> {
        let mut layout = ArenaLayout {
            builder,
            drafts,
            in_place,
            lifetimes: Vec::new(),
            value_at: ValueMap::default(),
            shared: Vec::new(),
            extra: Vec::new(),
        };
        layout.lifetimes();
        layout
    }

    fn lifetimes(&mut self) {
        let last_read = self.last_reads();
        for s in 0..self.drafts.len() {
            let shared = self.overwritten(s, &last_read);
            self.shared.push(shared);
            let draft = &self.drafts[s];
            if let (Some(i), Some(output)) = (shared, draft.outputs.first())
                && let Some(at) = self.value_at.get(&draft.inputs[i]).copied()
            {
                self.value_at.insert(*output, at);
            }
            for value in &draft.inputs {
                if let Some(i) = self.value_at.get(&self.builder.joined.place_of(*value).0) {
                    self.lifetimes[*i].last = s;
                }
            }
            for (value, operand) in draft.outputs.iter().zip(&draft.step.outputs) {
                if self.in_place.contains_key(value) {
                    continue;
                }
                // A joined value is alive from the first of its parts on.
                let (around, _) = self.builder.joined.place_of(*value);
                match self.value_at.get(&around) {
                    Some(i) => self.lifetimes[*i].last = s,
                    None => {
                        let whole = if around == *value { None } else { self.builder.types.get(&around) };
                        let bytes = whole.unwrap_or(&operand.tensor).bytes();
                        self.value_at.insert(around, self.lifetimes.len());
                        self.lifetimes.push(Lifetime { bytes, first: s, last: s });
                    }
                }
            }
            let mut only_here = |bytes: usize| {
                self.lifetimes.push(Lifetime { bytes, first: s, last: s });
                self.lifetimes.len() - 1
            };
            let step = &draft.step;
            let workspace = (step.kernel.workspace() > 0).then(|| only_here(step.kernel.workspace()));
            let packing = match (step.packed, step.kernel.packing()) {
                (Some(PackedPlace::Arena(_)), Some(packing)) => Some(only_here(packing.bytes())),
                _ => None,
            };
            self.extra.push((workspace, packing));
        }
    }

    /// For every value in the arena, the last step that reads it or a part of it.
    fn last_reads(&self) -> ValueMap<usize> {
        let reads = self.drafts.iter().enumerate().flat_map(|(s, draft)| draft.inputs.iter().map(move |v| (v, s)));
        reads.map(|(value, s)| (self.builder.joined.place_of(*value).0, s)).collect()
    }

    /// The input that the output of a step can overwrite: no later step reads it, and both lie in
    /// the arena alone.
    fn overwritten(&self, s: usize, last_read: &ValueMap<usize>) -> Option<usize> {
        let draft = &self.drafts[s];
        let (output, operand) = (draft.outputs.first()?, draft.step.outputs.first()?);
        let alone =
            |value: &Value| self.builder.joined.place_of(*value) == (*value, 0) && !self.in_place.contains_key(value);
        if !self.builder.options.passes.runs(OVERWRITE) || !alone(output) || self.value_at.contains_key(output) {
            return None;
        }
        let dies = |i: &usize| {
            draft.inputs.get(*i).is_some_and(|value| {
                let reads = draft.inputs.iter().filter(|v| self.builder.joined.place_of(**v).0 == *value).count();
                let bytes = self.value_at.get(value).map(|at| self.lifetimes[*at].bytes);
                alone(value) && reads == 1 && last_read.get(value) == Some(&s) && bytes == Some(operand.tensor.bytes())
            })
        };
        draft.step.kernel.in_place().iter().copied().find(|i| dies(i))
    }

    pub fn finish(self) -> (Vec<Step>, usize) {
        let (offsets, arena_bytes) = assign(&self.lifetimes);
        let ArenaLayout { builder, drafts, in_place, lifetimes, value_at, shared, extra } = self;
        let piece = |i: usize, written| ArenaPiece { offset: offsets[i], bytes: lifetimes[i].bytes, written };
        let mut steps: Vec<Step> = Vec::with_capacity(drafts.len());
        let mut written = WrittenBytes::default();
        for ((draft, shared), (workspace, packing)) in drafts.into_iter().zip(shared).zip(extra) {
            let StepDraft { mut step, inputs, outputs } = draft;
            let range = |value: &Value, bytes: usize| {
                let (around, offset) = builder.joined.place_of(*value);
                (around, offset..offset + bytes)
            };
            let mut pieces: Vec<ArenaPiece> = Vec::new();
            let mut part_of = |wanted: ArenaPiece, written: bool| match pieces.iter().position(|p| *p == wanted) {
                Some(at) if !written => at,
                _ => {
                    pieces.push(wanted);
                    pieces.len() - 1
                }
            };
            let value_piece = |value: &Value, bytes: usize, written: bool| {
                let (around, offset) = builder.joined.place_of(*value);
                let whole = piece(value_at[&around], written);
                ArenaPiece { offset: whole.offset + offset, bytes, written }
            };
            let packed: Vec<bool> = (0..inputs.len()).map(|i| step.is_packed(i)).collect();
            for (i, (value, operand)) in inputs.iter().zip(&mut step.inputs).enumerate() {
                let bytes = operand.tensor.bytes();
                operand.place = match value {
                    _ if packed[i] => OperandPlace::Packed,
                    _ if shared == Some(i) => OperandPlace::Shared,
                    Value::Input(i) => OperandPlace::Input(*i),
                    Value::Node(n, _) if builder.constant[*n] => OperandPlace::Const(builder.slot_of_value(*value)),
                    Value::Node(..) => match in_place.get(value) {
                        Some(j) => OperandPlace::Output(*j),
                        None => OperandPlace::Arena(part_of(value_piece(value, bytes, false), false)),
                    },
                };
                match operand.place {
                    OperandPlace::Input(i) => step.needs.push(StepNeed::Input(i)),
                    OperandPlace::Const(slot) => step.needs.push(StepNeed::Const(slot)),
                    OperandPlace::Packed => {}
                    _ => {
                        let (around, bytes) = range(value, bytes);
                        step.needs.extend(written.by(around, &bytes).map(StepNeed::Step));
                    }
                }
            }
            if let Some(PackedPlace::Const(slot)) = step.packed {
                step.needs.push(StepNeed::Const(slot));
            }
            for (value, operand) in outputs.iter().zip(&mut step.outputs) {
                let bytes = operand.tensor.bytes();
                operand.place = match in_place.get(value) {
                    Some(j) => OperandPlace::Output(*j),
                    None => OperandPlace::Arena(part_of(value_piece(value, bytes, true), true)),
                };
                let (around, bytes) = range(value, bytes);
                written.add(around, bytes, steps.len());
            }
            step.workspace = workspace.map(|i| part_of(piece(i, true), true));
            if let Some(i) = packing {
                step.packed = Some(PackedPlace::Arena(part_of(piece(i, true), true)));
            }
            sort_pieces(&mut step, pieces);
            steps.push(step);
        }
        (steps, aligned(arena_bytes))
    }
}

/// Which steps have written which bytes of values.
#[derive(Default)]
struct WrittenBytes(ValueMap<Vec<(Range<usize>, usize)>>);

impl WrittenBytes {
    fn add(&mut self, value: Value, bytes: Range<usize>, step: usize) {
        self.0.entry(value).or_default().push((bytes, step));
    }

    /// The steps that have written any of these bytes; of an empty value, all.
    fn by(&self, value: Value, bytes: &Range<usize>) -> impl Iterator<Item = usize> {
        let meets = |other: &Range<usize>| other.start < bytes.end && bytes.start < other.end || bytes.is_empty();
        self.0.get(&value).into_iter().flatten().filter(move |(other, _)| meets(other)).map(|(_, step)| *step)
    }
}

/// Orders the pieces of a step by offset and renumbers its operands.
fn sort_pieces(step: &mut Step, pieces: Vec<ArenaPiece>) {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    // Empty values may share an offset with their neighbour: they come first.
    order.sort_by_key(|i| (pieces[*i].offset, pieces[*i].bytes));
    let mut new_number = vec![0; pieces.len()];
    for (new, old) in order.iter().enumerate() {
        new_number[*old] = new;
    }
    step.pieces = order.iter().map(|i| pieces[*i]).collect();
    for operand in step.inputs.iter_mut().chain(&mut step.outputs) {
        if let OperandPlace::Arena(i) = &mut operand.place {
            *i = new_number[*i];
        }
    }
    step.workspace = step.workspace.map(|i| new_number[i]);
    if let Some(PackedPlace::Arena(i)) = &mut step.packed {
        *i = new_number[*i];
    }
}
