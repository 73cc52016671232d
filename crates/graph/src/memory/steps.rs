//! The operands of steps of the host: which piece of the arena each is, and which step waits for
//! which.

use super::arena::{Arena, StepMemory, StepUse};
use super::join::Joined;
use super::offsets::aligned;
use crate::ir::{Value, ValueMap};
use crate::plan::{ArenaPiece, OperandPlace, PackedPlace, Step, StepNeed};
use std::ops::Range;

/// A step before memory is laid out.
pub(crate) struct StepDraft {
    pub step: Step,
    pub inputs: Vec<Value>,
    pub outputs: Vec<Value>,
}

impl StepDraft {
    fn uses(&self) -> StepUse<'_> {
        let (step, outputs) = (&self.step, self.outputs.iter().zip(&self.step.outputs));
        let packing = match (step.packed, step.kernel.packing()) {
            (Some(PackedPlace::Arena(_)), Some(packing)) => Some(packing.bytes()),
            _ => None,
        };
        StepUse {
            inputs: &self.inputs,
            outputs: outputs.map(|(value, operand)| (*value, operand.tensor.bytes())).collect(),
            workspace: step.kernel.workspace(),
            packing,
            overwrites: step.kernel.in_place(),
        }
    }
}

/// Facts that the places of operands follow from.
pub(crate) struct StepLayout<'a> {
    pub values_inside: &'a Joined,
    /// results that steps make in place
    pub results: &'a ValueMap<usize>,
    /// whether steps may overwrite inputs
    pub overwrite: bool,
    /// bytes of a value
    pub bytes_of: &'a dyn Fn(Value) -> Option<usize>,
    /// the slot of a value that is constant
    pub constant: &'a dyn Fn(Value) -> Option<usize>,
}

impl StepLayout<'_> {
    /// Turns drafts into steps; returns them and the bytes of the arena.
    pub fn place(&self, drafts: Vec<StepDraft>) -> (Vec<Step>, usize) {
        let uses: Vec<StepUse<'_>> = drafts.iter().map(StepDraft::uses).collect();
        let arena = Arena::new(&uses, self.values_inside, self.results, self.overwrite, self.bytes_of);
        let piece = |i: usize, written| {
            let (offset, bytes) = arena.place(i);
            ArenaPiece { offset, bytes, written }
        };
        let mut steps: Vec<Step> = Vec::with_capacity(drafts.len());
        let mut written = WrittenBytes::default();
        for (draft, memory) in drafts.into_iter().zip(&arena.steps) {
            let StepMemory { shared, workspace, packing } = *memory;
            let StepDraft { mut step, inputs, outputs } = draft;
            let range = |value: &Value, bytes: usize| {
                let (around, offset) = self.values_inside.place_of(*value);
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
                let (around, offset) = self.values_inside.place_of(*value);
                let whole = piece(arena.number[&around], written);
                ArenaPiece { offset: whole.offset + offset, bytes, written }
            };
            let packed: Vec<bool> = (0..inputs.len()).map(|i| step.is_packed(i)).collect();
            for (i, (value, operand)) in inputs.iter().zip(&mut step.inputs).enumerate() {
                let bytes = operand.tensor.bytes();
                operand.place = match value {
                    _ if packed[i] => OperandPlace::Packed,
                    _ if shared == Some(i) => OperandPlace::Shared,
                    Value::Input(i) => OperandPlace::Input(*i),
                    Value::Node(..) if let Some(slot) = (self.constant)(*value) => OperandPlace::Const(slot),
                    Value::Node(..) => match self.results.get(value) {
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
                operand.place = match self.results.get(value) {
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
        (steps, aligned(arena.bytes))
    }
}

/// Steps by the bytes of values that they have written.
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
