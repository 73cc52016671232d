//! The operands of steps of the host: which piece of the arena each is, and which step waits for
//! which.

use super::arena::{Arena, StepMemory, StepUse};
use super::join::Joined;
use super::offsets::{aligned, ordered};
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
        let mut steps: Vec<Step> = Vec::with_capacity(drafts.len());
        let mut written = WrittenBytes::default();
        for (draft, memory) in drafts.into_iter().zip(&arena.steps) {
            let StepMemory { shared, workspace, packing } = *memory;
            let StepDraft { mut step, inputs, outputs } = draft;
            let mut pieces = StepPieces { layout: self, arena: &arena, pieces: Vec::new() };
            self.place_inputs(&mut step, &inputs, shared, &mut pieces, &written);
            if let Some(PackedPlace::Const(slot)) = step.packed {
                step.needs.push(StepNeed::Const(slot));
            }
            for (value, operand) in outputs.iter().zip(&mut step.outputs) {
                let bytes = operand.tensor.bytes();
                operand.place = match self.results.get(value) {
                    Some(j) => OperandPlace::Output(*j),
                    None => OperandPlace::Arena(pieces.of_value(*value, bytes, true)),
                };
                let (around, bytes) = self.range(*value, bytes);
                written.add(around, bytes, steps.len());
            }
            step.workspace = workspace.map(|i| pieces.scratch(i));
            if let Some(i) = packing {
                step.packed = Some(PackedPlace::Arena(pieces.scratch(i)));
            }
            sort_pieces(&mut step, pieces.pieces);
            steps.push(step);
        }
        (steps, aligned(arena.bytes))
    }

    /// Places the inputs of a step, and notes what it needs for them.
    fn place_inputs(
        &self,
        step: &mut Step,
        inputs: &[Value],
        shared: Option<usize>,
        pieces: &mut StepPieces<'_>,
        written: &WrittenBytes,
    ) {
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
                    None => OperandPlace::Arena(pieces.of_value(*value, bytes, false)),
                },
            };
            match operand.place {
                OperandPlace::Input(i) => step.needs.push(StepNeed::Input(i)),
                OperandPlace::Const(slot) => step.needs.push(StepNeed::Const(slot)),
                OperandPlace::Packed => {}
                _ => {
                    let (around, bytes) = self.range(*value, bytes);
                    step.needs.extend(written.by(around, &bytes).map(StepNeed::Step));
                }
            }
        }
    }

    /// The value that a value is inside of, and its bytes there.
    fn range(&self, value: Value, bytes: usize) -> (Value, Range<usize>) {
        let (around, offset) = self.values_inside.place_of(value);
        (around, offset..offset + bytes)
    }
}

/// The pieces of the arena that a step uses.
struct StepPieces<'a> {
    layout: &'a StepLayout<'a>,
    arena: &'a Arena,
    pieces: Vec<ArenaPiece>,
}

impl StepPieces<'_> {
    /// The number of the piece that a value is.
    fn of_value(&mut self, value: Value, bytes: usize, written: bool) -> usize {
        let (around, offset) = self.layout.values_inside.place_of(value);
        let (start, _) = self.arena.place(self.arena.number[&around]);
        self.add(ArenaPiece { offset: start + offset, bytes, written })
    }

    /// The number of a piece that is memory of the step alone.
    fn scratch(&mut self, i: usize) -> usize {
        let (offset, bytes) = self.arena.place(i);
        self.add(ArenaPiece { offset, bytes, written: true })
    }

    /// Adds a piece, unless it is one that is read already.
    fn add(&mut self, wanted: ArenaPiece) -> usize {
        match self.pieces.iter().position(|piece| *piece == wanted) {
            Some(at) if !wanted.written => at,
            _ => {
                self.pieces.push(wanted);
                self.pieces.len() - 1
            }
        }
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
    // Empty values may share an offset with their neighbour: they come first.
    let order = ordered(pieces.len(), |i| [pieces[i].offset, pieces[i].bytes]);
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
