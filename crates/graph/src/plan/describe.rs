//! A plan as text: what runs, with which kernel, in how much memory, how long.

use super::build::Plan;
use super::step::{Packed, Step};
use std::fmt;

/// Measured times of a plan: the shortest of several runs of each step, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTimes(pub Vec<u64>);

impl StepTimes {
    /// Takes over the times of one more run.
    pub fn merge(&mut self, run: &[u64]) {
        if self.0.len() != run.len() {
            self.0 = run.to_vec();
        }
        for (best, time) in self.0.iter_mut().zip(run) {
            *best = (*best).min(*time);
        }
    }
}

/// What a step does, and what it took in several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// its node
    pub node: String,
    /// its kernel, as in the plan's text
    pub kernel: String,
    /// multiply-adds by definition, of layers that have them
    pub multiply_adds: Option<u64>,
    /// bytes of its operands, packed weights in place of weights
    pub bytes: usize,
    /// nanoseconds of every run
    pub ns: Vec<u64>,
}

impl Plan {
    /// The steps, with no times yet.
    pub(super) fn reports(&self) -> Vec<StepReport> {
        let one = |step: &Step| {
            let replaced = step.kernel.packing().map_or(&[][..], |packing| packing.inputs());
            let read = step.inputs.iter().enumerate().filter(|(i, _)| !replaced.contains(i)).map(|(_, o)| o);
            StepReport {
                node: step.name.to_string(),
                kernel: step.kernel.describe(),
                multiply_adds: step.kernel.multiply_adds(),
                bytes: read.chain(&step.outputs).map(|o| o.tensor.bytes()).sum::<usize>() + packed_bytes(step),
                ns: Vec::new(),
            }
        };
        self.steps.iter().map(one).collect()
    }

    /// One step a line: operator, node, result, kernel, bytes of the arena that it works on, bytes of packed weights,
    /// estimated and, if given, measured time. Then the totals.
    pub fn text(&self, times: Option<&StepTimes>) -> String {
        let mut rows = Vec::with_capacity(self.steps.len());
        for (i, step) in self.steps.iter().enumerate() {
            let outputs: Vec<String> = step.outputs.iter().map(|o| o.tensor.to_string()).collect();
            let mut row = vec![
                i.to_string(),
                step.op.to_owned(),
                step.name.to_string(),
                outputs.join(", "),
                step.kernel.describe(),
                format!("arena {}", size(arena_bytes(step))),
                format!("packed {}", size(packed_bytes(step))),
                format!("~{:.1} us", step.kernel.cost_ns() as f64 / 1e3),
            ];
            row.extend(times.and_then(|t| t.0.get(i)).map(|ns| format!("{:.1} us", *ns as f64 / 1e3)));
            rows.push(row);
        }
        let packed: usize = self.steps.iter().map(packed_bytes).sum();
        let mut text = self.title() + "\n" + &table(&rows);
        text.extend(self.notes.iter().map(|note| format!("{note}\n")));
        text += &format!(
            "{} steps, {} constants, arena {}, packed {}, estimated {:.1} us on one core",
            self.steps.len(),
            self.consts.slots.len(),
            size(self.arena_bytes),
            size(packed),
            self.cost_ns() as f64 / 1e3
        );
        if let Some(times) = times {
            text += &format!(", measured {:.1} us", times.0.iter().sum::<u64>() as f64 / 1e3);
        }
        text + "\n"
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(None))
    }
}

/// Columns side by side; numbers and other short things need no more room than the longest of them.
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

/// What a step touches in the arena: operands, workspace, weights packed anew.
fn arena_bytes(step: &Step) -> usize {
    step.pieces.iter().map(|p| p.bytes).sum()
}

fn packed_bytes(step: &Step) -> usize {
    match (step.packed, step.kernel.packing()) {
        (Some(Packed::Const(_)), Some(packing)) => packing.bytes(),
        _ => 0,
    }
}

/// Bytes, in a unit that a reader takes in.
fn size(bytes: usize) -> String {
    match bytes {
        0 => "0".to_owned(),
        b if b < 10_000 => format!("{b} B"),
        b if b < 10_000_000 => format!("{:.1} KB", b as f64 / 1e3),
        b => format!("{:.1} MB", b as f64 / 1e6),
    }
}
