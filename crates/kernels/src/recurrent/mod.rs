//! Recurrent layers: simple ones, LSTM (Hochreiter and Schmidhuber, 1997) with projection (Sak et
//! al., 2014), and GRU (Cho et al., 2014) in the form whose reset gate acts after the product.
//!
//! The products of a layer with its inputs are one product for all steps; each step then multiplies
//! the state.

mod step;
mod weights;

use crate::element::Float;
use crate::elementwise::Unary;
use crate::error::check_len;
use crate::par::{Par, ReusedScratch, chunk_by_work, par_chunks_mut, par_chunks_mut2};

use step::StepOperands;
pub use weights::PackedRecurrent;
use weights::{PlainWeights, Weights};

/// The computation of a layer at each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// The positive part of a sum.
    Relu,
    /// The hyperbolic tangent of a sum.
    Tanh,
    /// Gates i, f, g, o and a cell state.
    Lstm,
    /// Gates r, z, n.
    Gru,
}

impl Cell {
    /// Blocks of rows in the weights.
    pub fn gates(self) -> usize {
        match self {
            Cell::Relu | Cell::Tanh => 1,
            Cell::Lstm => 4,
            Cell::Gru => 3,
        }
    }
}

/// A stack of recurrent layers over sequences `[steps, batch, inputs]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recurrent {
    /// Computation of each layer.
    pub cell: Cell,
    /// Layers.
    pub layers: usize,
    /// Whether a second pass goes through the steps backwards; its outputs follow those of the
    /// first.
    pub bidirectional: bool,
    /// Steps.
    pub steps: usize,
    /// Sequences.
    pub batch: usize,
    /// Numbers of an input.
    pub inputs: usize,
    /// Numbers of a state.
    pub size: usize,
    /// Numbers that the state of an LSTM is projected to.
    pub projection: Option<usize>,
}

/// First elements of the parameters of a pass.
#[derive(Clone, Copy, Debug)]
pub struct PassPlaces {
    /// Weights of the inputs, `[rows, inputs]`.
    pub of_inputs: usize,
    /// Weights of the state, `[rows, hidden]`.
    pub of_state: usize,
    /// Weights of the projection, `[hidden, size]`.
    pub projection: usize,
    /// Added to the products of the inputs, `[rows]`.
    pub input_bias: usize,
    /// Added to the products of the state, `[rows]`.
    pub state_bias: usize,
}

/// The results of a stack.
pub struct RecurrentOutputs<'a, T> {
    /// `[steps, batch, directions * hidden]`.
    pub sequence: &'a mut [T],
    /// The last states, `[layers * directions, batch, hidden]`.
    pub hidden: Option<&'a mut [T]>,
    /// The last cell states of an LSTM, `[layers * directions, batch, size]`.
    pub cell: Option<&'a mut [T]>,
}

impl Recurrent {
    /// Passes of a layer.
    pub fn directions(&self) -> usize {
        1 + usize::from(self.bidirectional)
    }

    /// Passes of all layers.
    pub fn passes(&self) -> usize {
        self.layers * self.directions()
    }

    /// Numbers that a step hands on: of the projection, or of the state.
    pub fn hidden(&self) -> usize {
        self.projection.unwrap_or(self.size)
    }

    /// Numbers that a layer reads at each step.
    pub fn inputs_of(&self, layer: usize) -> usize {
        if layer == 0 { self.inputs } else { self.hidden() * self.directions() }
    }

    /// Rows of a matrix of weights: for each gate the size of the state.
    pub fn rows(&self) -> usize {
        self.cell.gates() * self.size
    }

    /// Weights of a pass: of the inputs, of the state, of the projection.
    fn weights_of(&self, layer: usize) -> [usize; 3] {
        let projected = self.projection.map_or(0, |p| p * self.size);
        [self.rows() * self.inputs_of(layer), self.rows() * self.hidden(), projected]
    }

    /// The beginnings of the parameters of pass `at`, one direction of a layer, in the vector of
    /// all: the weights of all passes, then their biases.
    pub fn parameters_of(&self, at: usize) -> PassPlaces {
        let (layer, direction) = (at / self.directions(), at % self.directions());
        let size = |layer: usize| self.weights_of(layer).iter().sum::<usize>();
        // All layers but the first are of one size.
        let before = |layers: usize| match layers.checked_sub(1) {
            Some(later) => (size(0) + later * size(1)) * self.directions(),
            None => 0,
        };
        let [inputs, state, _] = self.weights_of(layer);
        let of_inputs = before(layer) + direction * size(layer);
        let of_state = of_inputs + inputs;
        let input_bias = before(self.layers) + at * 2 * self.rows();
        PassPlaces {
            of_inputs,
            of_state,
            projection: of_state + state,
            input_bias,
            state_bias: input_bias + self.rows(),
        }
    }

    /// Length of the vector of parameters: the weights of all passes, then their biases. `None` if
    /// that is no number.
    pub fn parameter_len(&self) -> Option<usize> {
        let (gates, directions) = (self.cell.gates(), self.directions());
        let rows = gates.checked_mul(self.size)?;
        let hidden = self.hidden();
        let of_layer = |inputs: usize| {
            let weights = rows.checked_mul(inputs.checked_add(hidden)?.checked_add(2)?)?;
            let projected = self.projection.map_or(Some(0), |p| p.checked_mul(self.size))?;
            weights.checked_add(projected)?.checked_mul(directions)
        };
        let later = of_layer(hidden.checked_mul(directions)?)?;
        of_layer(self.inputs)?.checked_add(later.checked_mul(self.layers.checked_sub(1)?)?)
    }

    /// Numbers of memory for [`run`](Self::run). `None` if that is no number.
    pub fn workspace_len(&self) -> Option<usize> {
        let [sequence, pass] = self.workspace_parts()?;
        sequence.checked_mul(2)?.checked_add(pass.checked_mul(self.directions())?)
    }

    /// Numbers for the outputs of a layer between others, and for a pass.
    fn workspace_parts(&self) -> Option<[usize; 2]> {
        let rows = self.cell.gates().checked_mul(self.size)?;
        let sequences = self.steps.checked_mul(self.batch)?;
        let outputs = sequences.checked_mul(self.hidden())?;
        let gates = sequences.checked_add(2 * self.batch)?.checked_mul(rows)?;
        let states = self.batch.checked_mul(self.hidden().checked_add(self.size.checked_mul(2)?)?)?;
        Some([outputs.checked_mul(self.directions())?, gates.checked_add(states)?.checked_add(outputs)?])
    }

    /// Whether both directions of a layer are computed at once, each by one thread: then a thread
    /// finds its weights in its cache again at every step.
    fn has_small_passes(&self) -> bool {
        self.rows() * self.hidden() * size_of::<f32>() <= 1 << 20
    }

    /// Runs all layers over `x`. The first states are `hidden`, `[layers * directions, batch,
    /// hidden]`, and for an LSTM `cell`, `[layers * directions, batch, size]`.
    ///
    /// # Panics
    /// If a length contradicts the sizes.
    pub fn run<T: Float>(
        &self,
        par: &dyn Par,
        x: &[T],
        parameters: &[T],
        hidden: &[T],
        cell: &[T],
        mut out: RecurrentOutputs<'_, T>,
        workspace: &mut [T],
    ) {
        self.check(x, hidden, cell, &out);
        assert_eq!(Some(parameters.len()), self.parameter_len(), "the parameters have another length");
        self.run_on(par, &PlainWeights { layers: *self, parameters }, x, hidden, cell, &mut out, workspace);
    }

    /// Checks all lengths but that of the parameters.
    fn check<T>(&self, x: &[T], hidden: &[T], cell: &[T], out: &RecurrentOutputs<'_, T>) {
        let width = self.hidden() * self.directions();
        check_len("the input", x.len(), self.steps * self.batch * self.inputs);
        check_len("the state", hidden.len(), self.passes() * self.batch * self.hidden());
        check_len("the cell state", cell.len(), self.passes() * self.cell_len());
        check_len("the output", out.sequence.len(), self.steps * self.batch * width);
    }

    /// Runs all layers on weights in some form. Lengths are checked.
    fn run_on<T: Float>(
        &self,
        par: &dyn Par,
        weights: &dyn Weights<T>,
        x: &[T],
        hidden: &[T],
        cell: &[T],
        out: &mut RecurrentOutputs<'_, T>,
        workspace: &mut [T],
    ) {
        let (directions, rows) = (self.directions(), self.rows());
        let Some([sequence, pass_len]) = self.workspace_parts() else { panic!("{self:?} is larger than memory") };
        let (between, rest) = workspace.split_at_mut(2 * sequence);
        let passes = &mut rest[..directions * pass_len];
        let (mut source, mut target) = between.split_at_mut(sequence);
        let gates = self.steps * self.batch * rows;
        for layer in 0..self.layers {
            let input = if layer == 0 { x } else { &*source };
            let output = if layer + 1 == self.layers { &mut *out.sequence } else { &mut *target };
            for (direction, memory) in passes.chunks_exact_mut(pass_len.max(1)).enumerate() {
                let at = layer * directions + direction;
                weights.of_inputs(
                    par,
                    at,
                    &input[..self.steps * self.batch * self.inputs_of(layer)],
                    &mut memory[..gates],
                );
                self.enter(at, hidden, cell, self.memory(memory));
            }
            if directions == 2 && self.has_small_passes() {
                par_chunks_mut(par, passes, pass_len, |direction, memory| {
                    let at = layer * directions + direction;
                    self.run_pass(&ReusedScratch::default(), weights, at, self.memory(memory));
                });
            } else {
                for (direction, memory) in passes.chunks_exact_mut(pass_len.max(1)).enumerate() {
                    self.run_pass(par, weights, layer * directions + direction, self.memory(memory));
                }
            }
            for (direction, memory) in passes.chunks_exact_mut(pass_len.max(1)).enumerate() {
                self.leave(
                    layer * directions + direction,
                    self.memory(memory),
                    output,
                    out.hidden.as_deref_mut(),
                    out.cell.as_deref_mut(),
                );
            }
            std::mem::swap(&mut source, &mut target);
        }
    }

    /// The parts of the memory of a pass.
    fn memory<'a, T>(&self, memory: &'a mut [T]) -> StepMemory<'a, T> {
        let (batch, rows) = (self.batch, self.rows());
        let (of_inputs, rest) = memory.split_at_mut(self.steps * batch * rows);
        let (of_state, rest) = rest.split_at_mut(batch * rows);
        let (activated, rest) = rest.split_at_mut(batch * rows);
        let (state, rest) = rest.split_at_mut(batch * self.hidden());
        let (cell, rest) = rest.split_at_mut(batch * self.size);
        let (unprojected, outputs) = rest.split_at_mut(batch * self.size);
        StepMemory { of_inputs, of_state, activated, state, cell, unprojected, outputs }
    }

    /// Numbers of a cell state.
    fn cell_len(&self) -> usize {
        if self.cell == Cell::Lstm { self.batch * self.size } else { 0 }
    }

    /// Sets the first states of pass `at`.
    fn enter<T: Float>(&self, at: usize, hidden: &[T], cell: &[T], memory: StepMemory<'_, T>) {
        let (state_len, cell_len) = (self.batch * self.hidden(), self.cell_len());
        memory.state.copy_from_slice(&hidden[at * state_len..][..state_len]);
        memory.cell[..cell_len].copy_from_slice(&cell[at * cell_len..][..cell_len]);
    }

    /// Copies outputs and last states of pass `at` to their places.
    fn leave<T: Float>(
        &self,
        at: usize,
        memory: StepMemory<'_, T>,
        output: &mut [T],
        hidden: Option<&mut [T]>,
        cell: Option<&mut [T]>,
    ) {
        let (width, part) = (self.hidden() * self.directions(), self.hidden());
        let direction = at % self.directions();
        for (to, from) in output.chunks_exact_mut(width).zip(memory.outputs.chunks_exact(part)) {
            to[direction * part..][..part].copy_from_slice(from);
        }
        let (state_len, cell_len) = (self.batch * part, self.cell_len());
        if let Some(hidden) = hidden {
            hidden[at * state_len..][..state_len].copy_from_slice(memory.state);
        }
        if let Some(cell) = cell {
            cell[at * cell_len..][..cell_len].copy_from_slice(&memory.cell[..cell_len]);
        }
    }

    /// One pass through all steps, whose products with the inputs are there.
    fn run_pass<T: Float>(&self, par: &dyn Par, weights: &dyn Weights<T>, at: usize, memory: StepMemory<'_, T>) {
        let StepMemory { of_inputs, of_state, activated, state, cell, unprojected, outputs } = memory;
        let gates = self.batch * self.rows();
        for i in 0..self.steps {
            let step = if at.is_multiple_of(self.directions()) { i } else { self.steps - 1 - i };
            let of_inputs = &of_inputs[step * gates..][..gates];
            let new = &mut outputs[step * state.len()..][..state.len()];
            if weights.step(par, at, StepOperands { of_inputs, previous: state, state: new, cell }).is_none() {
                state.copy_from_slice(new);
                continue;
            }
            weights.of_state(par, at, state, of_state);
            if self.projection.is_some() {
                self.step(par, of_inputs, of_state, activated, unprojected, cell);
                weights.project(par, at, unprojected, state);
            } else {
                self.step(par, of_inputs, of_state, activated, state, cell);
            }
            outputs[step * state.len()..][..state.len()].copy_from_slice(state);
        }
    }

    /// One step of all sequences: new states, and for an LSTM new cell states, out of the products.
    fn step<T: Float>(
        &self,
        par: &dyn Par,
        of_inputs: &[T],
        of_state: &[T],
        activated: &mut [T],
        state: &mut [T],
        cell: &mut [T],
    ) {
        let (rows, size) = (self.rows(), self.size);
        let band = chunk_by_work(16 * rows);
        // Activations first, for their own loops are vectors.
        par_chunks_mut(par, activated, band * rows, |chunk, activated| {
            for (i, activated) in activated.chunks_exact_mut(rows).enumerate() {
                let at = (chunk * band + i) * rows;
                self.activate(&of_inputs[at..][..rows], &of_state[at..][..rows], activated);
            }
        });
        let activated = &*activated;
        par_chunks_mut2(par, state, band * size, cell, band * size, |chunk, state, cell| {
            let rows_of_chunk = state.chunks_exact_mut(size).zip(cell.chunks_exact_mut(size));
            for (i, (state, cell)) in rows_of_chunk.enumerate() {
                let gates = &activated[(chunk * band + i) * rows..][..rows];
                self.combine(gates, state, cell);
            }
        });
    }

    /// The activated gates of one sequence.
    fn activate<T: Float>(&self, of_inputs: &[T], of_state: &[T], activated: &mut [T]) {
        let mut sums = [T::ZERO; 64];
        let mut run = |function: Unary, range: std::ops::Range<usize>, reset: bool, activated: &mut [T]| {
            for start in range.clone().step_by(64) {
                let n = 64.min(range.end - start);
                for i in 0..n {
                    // The reset gate stands two blocks before the gate that it acts on.
                    let factor = if reset { activated[start + i - 2 * self.size] } else { T::ONE };
                    sums[i] = of_inputs[start + i] + factor * of_state[start + i];
                }
                T::unary_block(function, &sums[..n], &mut activated[start..start + n]);
            }
        };
        let size = self.size;
        match self.cell {
            Cell::Relu => run(Unary::Relu, 0..size, false, activated),
            Cell::Tanh => run(Unary::Tanh, 0..size, false, activated),
            Cell::Lstm => {
                run(Unary::Sigmoid, 0..2 * size, false, activated);
                run(Unary::Tanh, 2 * size..3 * size, false, activated);
                run(Unary::Sigmoid, 3 * size..4 * size, false, activated);
            }
            Cell::Gru => {
                run(Unary::Sigmoid, 0..2 * size, false, activated);
                run(Unary::Tanh, 2 * size..3 * size, true, activated);
            }
        }
    }

    /// New state and cell state of one sequence.
    fn combine<T: Float>(&self, gates: &[T], state: &mut [T], cell: &mut [T]) {
        let size = self.size;
        match self.cell {
            Cell::Relu | Cell::Tanh => state.copy_from_slice(gates),
            Cell::Gru => {
                let (update, new) = (&gates[size..2 * size], &gates[2 * size..]);
                for ((state, z), n) in state.iter_mut().zip(update).zip(new) {
                    *state = (T::ONE - *z) * *n + *z * *state;
                }
            }
            Cell::Lstm => {
                for i in 0..size {
                    cell[i] = cell[i] * gates[size + i] + gates[i] * gates[2 * size + i];
                }
                T::unary_block(Unary::Tanh, cell, state);
                state.iter_mut().zip(&gates[3 * size..]).for_each(|(state, o)| *state = *state * *o);
            }
        }
    }
}

/// Memory of a pass.
struct StepMemory<'a, T> {
    /// Products with inputs, with the state, and activated gates.
    of_inputs: &'a mut [T],
    of_state: &'a mut [T],
    activated: &'a mut [T],
    state: &'a mut [T],
    cell: &'a mut [T],
    /// The state before it is projected.
    unprojected: &'a mut [T],
    /// Outputs of all steps.
    outputs: &'a mut [T],
}

#[cfg(test)]
mod tests;
