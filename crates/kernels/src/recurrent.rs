//! Recurrent layers: simple ones, LSTM (Hochreiter and Schmidhuber, 1997) with projection (Sak et
//! al., 2014), and GRU (Cho et al., 2014) in the form whose reset gate acts after the product.
//!
//! The products of a layer with its inputs are one product for all steps; each step then multiplies
//! the state.

use crate::element::Float;
use crate::elementwise::Unary;
use crate::error::check_len;
use crate::gemm_plain::{Gemm, gemm};
use crate::par::{Par, chunk_by_work, par_chunks_mut, par_chunks_mut2};

/// What a layer computes at each step.
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
#[derive(Clone, Copy, Debug)]
pub struct Recurrent {
    /// What each layer computes.
    pub cell: Cell,
    /// Layers.
    pub layers: usize,
    /// Whether a second pass goes through the steps backwards; its outputs come behind those of the
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

/// What a stack writes.
pub struct RecurrentOutputs<'a, T> {
    /// `[steps, batch, directions * hidden]`.
    pub sequence: &'a mut [T],
    /// The last states, `[layers * directions, batch, hidden]`.
    pub hidden: Option<&'a mut [T]>,
    /// The last cell states of an LSTM, `[layers * directions, batch, size]`.
    pub cell: Option<&'a mut [T]>,
}

/// The parameters of one pass.
struct Pass<'a, T> {
    of_inputs: &'a [T],
    of_state: &'a [T],
    projection: &'a [T],
    input_bias: &'a [T],
    state_bias: &'a [T],
}

impl Recurrent {
    fn directions(&self) -> usize {
        1 + usize::from(self.bidirectional)
    }

    /// Numbers that a step hands on: of the projection, or of the state.
    pub fn hidden(&self) -> usize {
        self.projection.unwrap_or(self.size)
    }

    /// Numbers that a layer reads at each step.
    fn inputs_of(&self, layer: usize) -> usize {
        if layer == 0 { self.inputs } else { self.hidden() * self.directions() }
    }

    fn rows(&self) -> usize {
        self.cell.gates() * self.size
    }

    /// Weights of a pass: of the inputs, of the state, of the projection.
    fn weights_of(&self, layer: usize) -> [usize; 3] {
        let projected = self.projection.map_or(0, |p| p * self.size);
        [self.rows() * self.inputs_of(layer), self.rows() * self.hidden(), projected]
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
        let [sequence, gates, states] = self.workspace_parts()?;
        sequence.checked_mul(2)?.checked_add(gates)?.checked_add(states)
    }

    /// Numbers for the outputs of a layer between others, for products with inputs and state, and
    /// for states.
    fn workspace_parts(&self) -> Option<[usize; 3]> {
        let rows = self.cell.gates().checked_mul(self.size)?;
        let sequences = self.steps.checked_mul(self.batch)?;
        let sequence = sequences.checked_mul(self.hidden())?.checked_mul(self.directions())?;
        let gates = sequences.checked_add(2 * self.batch)?.checked_mul(rows)?;
        let states = self.batch.checked_mul(self.hidden().checked_add(self.size.checked_mul(2)?)?)?;
        Some([sequence, gates, states])
    }

    /// The parameters of pass `direction` of a layer.
    fn pass<'a, T>(&self, parameters: &'a [T], layer: usize, direction: usize) -> Pass<'a, T> {
        let size = |layer: usize| self.weights_of(layer).iter().sum::<usize>();
        let earlier: usize = (0..layer).map(|l| size(l) * self.directions()).sum();
        let weights = &parameters[earlier + direction * size(layer)..][..size(layer)];
        let [inputs, state, _] = self.weights_of(layer);
        let (of_inputs, rest) = weights.split_at(inputs);
        let (of_state, projection) = rest.split_at(state);
        let passes = self.layers * self.directions();
        let biases = &parameters[parameters.len() - passes * 2 * self.rows()..];
        let biases = &biases[(layer * self.directions() + direction) * 2 * self.rows()..][..2 * self.rows()];
        let (input_bias, state_bias) = biases.split_at(self.rows());
        Pass { of_inputs, of_state, projection, input_bias, state_bias }
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
        let (passes, width) = (self.layers * self.directions(), self.hidden() * self.directions());
        let state_len = self.batch * self.hidden();
        let cell_len = if self.cell == Cell::Lstm { self.batch * self.size } else { 0 };
        check_len("the input", x.len(), self.steps * self.batch * self.inputs);
        check_len("the state", hidden.len(), passes * state_len);
        check_len("the cell state", cell.len(), passes * cell_len);
        check_len("the output", out.sequence.len(), self.steps * self.batch * width);
        assert_eq!(Some(parameters.len()), self.parameter_len(), "the parameters have another length");
        let Some([sequence, gates, _]) = self.workspace_parts() else { panic!("{self:?} is larger than memory") };
        let (between, rest) = workspace.split_at_mut(2 * sequence);
        let (gates, states) = rest.split_at_mut(gates);
        let (mut source, mut target) = between.split_at_mut(sequence);
        for layer in 0..self.layers {
            let input = if layer == 0 { x } else { &*source };
            let output = if layer + 1 == self.layers { &mut *out.sequence } else { &mut *target };
            for direction in 0..self.directions() {
                let at = layer * self.directions() + direction;
                let (state, rest) = states.split_at_mut(state_len);
                let (cell_state, scratch) = rest.split_at_mut(self.batch * self.size);
                state.copy_from_slice(&hidden[at * state_len..][..state_len]);
                cell_state[..cell_len].copy_from_slice(&cell[at * cell_len..][..cell_len]);
                let pass = self.pass(parameters, layer, direction);
                let memory = StepMemory { gates, state, cell: cell_state, unprojected: scratch };
                self.run_pass(par, self.inputs_of(layer), input, &pass, memory, direction, output);
                if let Some(last) = &mut out.hidden {
                    last[at * state_len..][..state_len].copy_from_slice(&states[..state_len]);
                }
                if let Some(last) = &mut out.cell {
                    last[at * cell_len..][..cell_len].copy_from_slice(&states[state_len..][..cell_len]);
                }
            }
            std::mem::swap(&mut source, &mut target);
        }
    }

    /// One pass through all steps; it writes its part of every output.
    fn run_pass<T: Float>(
        &self,
        par: &dyn Par,
        inputs: usize,
        x: &[T],
        pass: &Pass<'_, T>,
        memory: StepMemory<'_, T>,
        direction: usize,
        out: &mut [T],
    ) {
        let (rows, sequences) = (self.rows(), self.steps * self.batch);
        let StepMemory { gates, state, cell, unprojected } = memory;
        let (of_inputs, rest) = gates.split_at_mut(sequences * rows);
        let (of_state, activated) = rest.split_at_mut(self.batch * rows);
        let product = Gemm { transpose_b: true, ..Gemm::new(sequences, rows, inputs) };
        gemm(par, product, x, pass.of_inputs, of_inputs);
        let add_bias = |values: &mut [T], bias: &[T]| {
            let band = chunk_by_work(rows);
            par_chunks_mut(par, values, band * rows, |_, values| {
                for row in values.chunks_exact_mut(rows) {
                    row.iter_mut().zip(bias).for_each(|(v, b)| *v += *b);
                }
            });
        };
        add_bias(of_inputs, pass.input_bias);
        let (hidden, width) = (self.hidden(), self.hidden() * self.directions());
        let product = Gemm { transpose_b: true, ..Gemm::new(self.batch, rows, hidden) };
        for i in 0..self.steps {
            let step = if direction == 0 { i } else { self.steps - 1 - i };
            gemm(par, product, state, pass.of_state, of_state);
            add_bias(of_state, pass.state_bias);
            let of_inputs = &of_inputs[step * self.batch * rows..][..self.batch * rows];
            match self.projection {
                None => self.step(par, of_inputs, of_state, activated, state, cell),
                Some(projection) => {
                    let unprojected = &mut unprojected[..self.batch * self.size];
                    self.step(par, of_inputs, of_state, activated, unprojected, cell);
                    let product = Gemm { transpose_b: true, ..Gemm::new(self.batch, projection, self.size) };
                    gemm(par, product, unprojected, pass.projection, state);
                }
            }
            let out = &mut out[step * self.batch * width..][..self.batch * width];
            for (out, state) in out.chunks_exact_mut(width).zip(state.chunks_exact(hidden)) {
                out[direction * hidden..][..hidden].copy_from_slice(state);
            }
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
    gates: &'a mut [T],
    state: &'a mut [T],
    cell: &'a mut [T],
    /// The state before it is projected.
    unprojected: &'a mut [T],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, random64};

    /// The definition of each cell, number by number.
    fn reference(r: Recurrent, x: &[f64], parameters: &[f64], hidden: &[f64], cell: &[f64]) -> Vec<f64> {
        let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
        let (n, rows) = (r.batch, r.rows());
        let mut input = x.to_vec();
        for layer in 0..r.layers {
            let width = r.hidden() * r.directions();
            let mut output = vec![0.0; r.steps * n * width];
            for direction in 0..r.directions() {
                let at = layer * r.directions() + direction;
                let p = r.pass(parameters, layer, direction);
                let inputs = r.inputs_of(layer);
                for b in 0..n {
                    let mut h = hidden[(at * n + b) * r.hidden()..][..r.hidden()].to_vec();
                    let mut c = if cell.is_empty() { vec![] } else { cell[(at * n + b) * r.size..][..r.size].to_vec() };
                    for i in 0..r.steps {
                        let t = if direction == 0 { i } else { r.steps - 1 - i };
                        let x = &input[(t * n + b) * inputs..][..inputs];
                        let dot = |w: &[f64], v: &[f64], row: usize| -> f64 {
                            w[row * v.len()..][..v.len()].iter().zip(v).map(|(w, v)| w * v).sum()
                        };
                        let gx: Vec<f64> = (0..rows).map(|j| dot(p.of_inputs, x, j) + p.input_bias[j]).collect();
                        let gh: Vec<f64> = (0..rows).map(|j| dot(p.of_state, &h, j) + p.state_bias[j]).collect();
                        let s = r.size;
                        let new: Vec<f64> = (0..s)
                            .map(|j| match r.cell {
                                Cell::Relu => (gx[j] + gh[j]).max(0.0),
                                Cell::Tanh => (gx[j] + gh[j]).tanh(),
                                Cell::Gru => {
                                    let (rt, z) = (sigmoid(gx[j] + gh[j]), sigmoid(gx[s + j] + gh[s + j]));
                                    (1.0 - z) * (gx[2 * s + j] + rt * gh[2 * s + j]).tanh() + z * h[j]
                                }
                                Cell::Lstm => {
                                    let gate = |g: usize| gx[g * s + j] + gh[g * s + j];
                                    c[j] = c[j] * sigmoid(gate(1)) + sigmoid(gate(0)) * gate(2).tanh();
                                    sigmoid(gate(3)) * c[j].tanh()
                                }
                            })
                            .collect();
                        h = match r.projection {
                            None => new,
                            Some(size) => (0..size).map(|j| dot(p.projection, &new, j)).collect(),
                        };
                        output[(t * n + b) * width + direction * r.hidden()..][..r.hidden()].copy_from_slice(&h);
                    }
                }
            }
            input = output;
        }
        input
    }

    #[test]
    fn every_cell_follows_its_definition_on_any_number_of_threads() {
        for (cell, projection) in
            [(Cell::Relu, None), (Cell::Tanh, None), (Cell::Lstm, None), (Cell::Lstm, Some(3)), (Cell::Gru, None)]
        {
            for (layers, bidirectional, steps, batch) in [(1, false, 4, 1), (2, true, 3, 2), (3, false, 5, 70)] {
                let r = Recurrent { cell, layers, bidirectional, steps, batch, inputs: 5, size: 67, projection };
                let passes = layers * r.directions();
                let x = random64(steps * batch * 5, 1);
                let parameters: Vec<f64> = random64(r.parameter_len().unwrap(), 2).iter().map(|v| v * 0.2).collect();
                let hidden = random64(passes * batch * r.hidden(), 3);
                let cell_state = if cell == Cell::Lstm { random64(passes * batch * r.size, 4) } else { vec![] };
                let want = reference(r, &x, &parameters, &hidden, &cell_state);
                let mut first: Option<Vec<f64>> = None;
                for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
                    let mut sequence = vec![0.0; want.len()];
                    let mut last = vec![0.0; hidden.len()];
                    let mut memory = vec![f64::NAN; r.workspace_len().unwrap()];
                    let out = RecurrentOutputs { sequence: &mut sequence, hidden: Some(&mut last), cell: None };
                    r.run(par, &x, &parameters, &hidden, &cell_state, out, &mut memory);
                    let worst = sequence.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(worst < 1e-9, "{r:?}: off by {worst}");
                    // The last state of the last layer, forwards, is the last output.
                    let at = (passes - r.directions()) * batch * r.hidden();
                    let width = r.hidden() * r.directions();
                    assert_eq!(last[at..][..r.hidden()], sequence[(steps - 1) * batch * width..][..r.hidden()]);
                    assert_eq!(*first.get_or_insert(sequence.clone()), sequence);
                }
            }
        }
    }

    #[test]
    fn sizes_that_overflow_are_none() {
        let r = Recurrent {
            cell: Cell::Lstm,
            layers: 2,
            bidirectional: true,
            steps: 1,
            batch: 1,
            inputs: 1,
            size: usize::MAX / 8,
            projection: None,
        };
        assert_eq!(r.parameter_len(), None);
        assert_eq!(Recurrent { layers: 0, size: 1, ..r }.parameter_len(), None);
    }
}
