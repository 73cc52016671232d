//! A plan as data and as text: the steps, with their kernels, memory and times.

use super::float_steps;
use crate::ir::GraphNode;
use crate::plan::{Plan, Step};
use std::borrow::Cow;
use std::fmt;

/// Properties of a step and its times in several runs.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct StepReport {
    /// name of the operator
    pub op: &'static str,
    /// name of the node
    pub node: String,
    /// types of the results
    pub output: String,
    /// description of the kernel, as in the text of the plan
    pub kernel: String,
    /// bytes of the arena that the step uses: operands, workspace, weights that each run packs
    pub arena_bytes: usize,
    /// bytes of packed weights that the step reads
    pub packed_bytes: usize,
    /// estimated time on one core
    pub estimated_ns: u64,
    /// multiply-adds by definition, of layers that have them
    pub multiply_adds: Option<u64>,
    /// bytes of its operands, packed weights in place of weights
    pub bytes: usize,
    /// nanoseconds of every run; empty if nothing was measured
    pub ns: Vec<u64>,
}

impl StepReport {
    /// The shortest of several runs, in nanoseconds.
    pub fn measured_ns(&self) -> Option<u64> {
        self.ns.iter().min().copied()
    }
}

/// A batch that is run in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct BatchParts {
    /// rows of the batch
    pub rows: usize,
    /// rows of a part
    pub each: usize,
    /// whether parts run concurrently, each on one core
    pub side_by_side: bool,
}

/// A plan as data. As text it has a line for every step. For a batch in parts it describes one
/// part.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PlanReport {
    /// types of the data, and how many parameters there are
    pub title: String,
    /// how a large batch is divided
    pub parts: Option<BatchParts>,
    /// steps in the order in which they run
    pub steps: Vec<StepReport>,
    /// remarks on the choice of kernels
    pub notes: Vec<Cow<'static, str>>,
    /// number of constants that steps read: parameters that are unchanged, folded or packed
    pub constants: usize,
    /// bytes of scratch memory that a running request takes
    pub arena_bytes: usize,
}

impl PlanReport {
    /// Adds the steps of a later segment of the graph.
    pub(crate) fn append(&mut self, later: PlanReport) {
        self.steps.extend(later.steps);
        later.notes.into_iter().for_each(|note| self.note(note));
        self.constants += later.constants;
        self.arena_bytes = self.arena_bytes.max(later.arena_bytes);
    }

    /// Adds a remark, unless the report has it already.
    pub(crate) fn note(&mut self, note: impl Into<Cow<'static, str>>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds an operator that is a stage of its own.
    pub(crate) fn note_stage(&mut self, node: &GraphNode, kernel: &str) {
        self.steps.push(StepReport {
            op: node.stands_for,
            node: node.name.to_string(),
            output: "-".to_owned(),
            kernel: kernel.to_owned(),
            arena_bytes: 0,
            packed_bytes: 0,
            estimated_ns: 0,
            multiply_adds: None,
            bytes: 0,
            ns: Vec::new(),
        });
    }

    /// Adds the times of the steps in one more run.
    pub(crate) fn add_run(&mut self, run: &[u64]) {
        self.steps.iter_mut().zip(run).for_each(|(step, ns)| step.ns.push(*ns));
    }

    /// Bytes of packed weights.
    pub fn packed_bytes(&self) -> usize {
        self.steps.iter().map(|step| step.packed_bytes).sum()
    }

    /// Estimated time on one core.
    pub fn estimated_ns(&self) -> u64 {
        self.steps.iter().map(|step| step.estimated_ns).sum()
    }

    /// Sum of the shortest times of all steps, if they were measured.
    pub fn measured_ns(&self) -> Option<u64> {
        self.steps.iter().map(StepReport::measured_ns).sum()
    }
}

impl Plan {
    /// Describes the plan, without times.
    pub(crate) fn report(&self) -> PlanReport {
        let of_floats = float_steps::notes(&self.steps).into_iter().map(Cow::Owned);
        PlanReport {
            title: self.title(),
            parts: None,
            steps: self.steps.iter().map(report).collect(),
            notes: self.notes.iter().map(|note| Cow::Borrowed(*note)).chain(of_floats).collect(),
            constants: self.with_inner().iter().map(|plan| plan.consts.slots.len()).sum(),
            arena_bytes: self.arena_bytes,
        }
    }
}

fn report(step: &Step) -> StepReport {
    let replaced = step.kernel.packing().map_or(&[][..], |packing| packing.inputs());
    let read = step.inputs.iter().enumerate().filter(|(i, _)| !replaced.contains(i)).map(|(_, o)| o);
    let outputs: Vec<String> = step.outputs.iter().map(|o| o.tensor.to_string()).collect();
    StepReport {
        op: step.op,
        node: step.name.to_string(),
        output: outputs.join(", "),
        kernel: step.kernel.describe(),
        arena_bytes: step.pieces.iter().map(|p| p.bytes).sum(),
        packed_bytes: step.packed_bytes(),
        estimated_ns: step.kernel.cost_ns(),
        multiply_adds: step.kernel.multiply_adds(),
        bytes: read.chain(&step.outputs).map(|o| o.tensor.bytes()).sum::<usize>() + step.packed_bytes(),
        ns: Vec::new(),
    }
}

impl fmt::Display for PlanReport {
    /// Writes one step per line: operator, node, result, kernel, bytes of the arena that it uses,
    /// bytes of packed weights, estimated time and, if there is one, measured time. Then come the
    /// totals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(BatchParts { rows, each, side_by_side }) = self.parts {
            let how = if side_by_side { "several at a time, each on one core" } else { "each on all idle cores" };
            writeln!(f, "{rows} rows in parts of {each}, {how}; of a part:")?;
        }
        writeln!(f, "{}", self.title)?;
        let rows: Vec<Vec<String>> = self.steps.iter().enumerate().map(|(i, step)| row(i, step)).collect();
        f.write_str(&table(&rows))?;
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        write!(
            f,
            "{} steps, {} constants, arena {}, packed {}, estimated {} on one core",
            self.steps.len(),
            self.constants,
            size(self.arena_bytes),
            size(self.packed_bytes()),
            time(self.estimated_ns())
        )?;
        match self.measured_ns() {
            Some(ns) if !self.steps.is_empty() => writeln!(f, ", measured {}", time(ns)),
            _ => writeln!(f),
        }
    }
}

fn row(number: usize, step: &StepReport) -> Vec<String> {
    let mut row = vec![
        number.to_string(),
        step.op.to_owned(),
        step.node.clone(),
        step.output.clone(),
        step.kernel.clone(),
        format!("arena {}", size(step.arena_bytes)),
        format!("packed {}", size(step.packed_bytes)),
        format!("~{}", time(step.estimated_ns)),
    ];
    row.extend(step.measured_ns().map(time));
    row
}

fn time(ns: u64) -> String {
    format!("{:.1} us", ns as f64 / 1e3)
}

/// Formats rows as columns. A column is as wide as its longest cell.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(t, w)| format!("{t:<w$}", w = *w)).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Formats a number of bytes in a readable unit.
fn size(bytes: usize) -> String {
    match bytes {
        0 => "0".to_owned(),
        b if b < 10_000 => format!("{b} B"),
        b if b < 10_000_000 => format!("{:.1} KB", b as f64 / 1e3),
        b => format!("{:.1} MB", b as f64 / 1e6),
    }
}
