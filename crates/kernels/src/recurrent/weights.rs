//! The weights of recurrent layers: unpacked, and packed for products in single precision.

use super::step::{StepOperands, StepWeights};
use super::{Recurrent, RecurrentOutputs};
use crate::element::Float;
use crate::error::check_len;
use crate::gemm::{Epilogue, Matrix, Sgemm, SmallWeights};
use crate::gemm_plain::{Gemm, gemm};
use crate::isa::Isa;
use crate::par::{Par, chunk_by_work, par_chunks_mut};

/// The factors of passes. Pass `at` is one direction of a layer.
pub(super) trait Weights<T>: Sync {
    /// Products of the inputs of all steps, with their bias.
    fn of_inputs(&self, par: &dyn Par, at: usize, x: &[T], out: &mut [T]);
    /// Products of the state, with their bias.
    fn of_state(&self, par: &dyn Par, at: usize, state: &[T], out: &mut [T]);
    /// A whole step, if these weights are for that; the operands otherwise.
    fn step<'a>(&self, _: &dyn Par, _: usize, operands: StepOperands<'a, T>) -> Option<StepOperands<'a, T>> {
        Some(operands)
    }
    /// The projected state.
    fn project(&self, par: &dyn Par, at: usize, unprojected: &[T], out: &mut [T]);
}

/// The parameters of one pass.
pub(super) struct PassWeights<'a, T> {
    pub of_inputs: &'a [T],
    pub of_state: &'a [T],
    pub projection: &'a [T],
    pub input_bias: &'a [T],
    pub state_bias: &'a [T],
}

impl<'a, T> PassWeights<'a, T> {
    /// Finds them in the vector of all parameters.
    pub fn of(layers: &Recurrent, parameters: &'a [T], at: usize) -> PassWeights<'a, T> {
        let places = layers.parameters_of(at);
        let [inputs, state, projection] = layers.weights_of(at / layers.directions());
        PassWeights {
            of_inputs: &parameters[places.of_inputs..][..inputs],
            of_state: &parameters[places.of_state..][..state],
            projection: &parameters[places.projection..][..projection],
            input_bias: &parameters[places.input_bias..][..layers.rows()],
            state_bias: &parameters[places.state_bias..][..layers.rows()],
        }
    }
}

/// Unpacked parameters.
pub(super) struct PlainWeights<'a, T> {
    pub layers: Recurrent,
    pub parameters: &'a [T],
}

impl<T: Float> PlainWeights<'_, T> {
    fn pass(&self, at: usize) -> PassWeights<'_, T> {
        PassWeights::of(&self.layers, self.parameters, at)
    }

    fn multiply(&self, par: &dyn Par, x: &[T], weights: &[T], bias: &[T], out: &mut [T]) {
        let rows = self.layers.rows();
        let product = Gemm { transpose_b: true, ..Gemm::new(out.len() / rows, rows, weights.len() / rows) };
        gemm(par, product, x, weights, out);
        let band = chunk_by_work(rows);
        par_chunks_mut(par, out, band * rows, |_, values| {
            for row in values.chunks_exact_mut(rows) {
                row.iter_mut().zip(bias).for_each(|(v, b)| *v += *b);
            }
        });
    }
}

impl<T: Float> Weights<T> for PlainWeights<'_, T> {
    fn of_inputs(&self, par: &dyn Par, at: usize, x: &[T], out: &mut [T]) {
        let pass = self.pass(at);
        self.multiply(par, x, pass.of_inputs, pass.input_bias, out);
    }

    fn of_state(&self, par: &dyn Par, at: usize, state: &[T], out: &mut [T]) {
        let pass = self.pass(at);
        self.multiply(par, state, pass.of_state, pass.state_bias, out);
    }

    fn project(&self, par: &dyn Par, at: usize, unprojected: &[T], out: &mut [T]) {
        let Recurrent { batch, size, .. } = self.layers;
        let product = Gemm { transpose_b: true, ..Gemm::new(batch, out.len() / batch.max(1), size) };
        gemm(par, product, unprojected, self.pass(at).projection, out);
    }
}

/// Layers in single precision on packed weights.
#[derive(Clone, Copy, Debug)]
pub struct PackedRecurrent {
    layers: Recurrent,
    isa: Isa,
    /// The form of the weights of inputs, state and projection, if they take fewer bytes.
    small: [Option<SmallWeights>; 3],
}

/// Elements of a cache line.
const LINE: usize = 16;

impl PackedRecurrent {
    /// Makes the packed form of these layers. `small` says in which form of fewer bytes weights are
    /// stored, given the number of rows that meet them.
    pub fn new(layers: Recurrent, isa: Isa, small: &dyn Fn(usize) -> Option<SmallWeights>) -> PackedRecurrent {
        let (all, step) = (small(layers.steps.saturating_mul(layers.batch)), small(layers.batch));
        PackedRecurrent { layers, isa: isa.or_best(), small: [all, step, step] }
    }

    /// The form of the weights of the state, if they take fewer bytes.
    pub fn small_weights(&self) -> Option<SmallWeights> {
        self.small[1]
    }

    /// The products with inputs, state and unprojected state of a pass.
    fn products(&self, at: usize) -> [Sgemm; 3] {
        let Recurrent { steps, batch, size, .. } = self.layers;
        let (rows, hidden) = (self.layers.rows(), self.layers.hidden());
        let inputs = self.layers.inputs_of(at / self.layers.directions());
        let projected = self.layers.projection.unwrap_or(0);
        let sizes = [(steps * batch, rows, inputs), (batch, rows, hidden), (batch, projected, size)];
        let mut forms = self.small.iter();
        sizes.map(|(m, n, k)| match forms.next() {
            Some(Some(small)) => Sgemm::with_small_weights(m, n, k, self.isa, *small),
            _ => Sgemm::new(m, n, k, self.isa),
        })
    }

    /// Elements of the packed form of a pass: of its three weights and of its biases.
    fn parts(&self, at: usize) -> [usize; 4] {
        let [inputs, state, projection] = self.products(at).map(|product| product.packed_len());
        [inputs, state, projection, 2 * self.layers.rows()].map(|len| len.next_multiple_of(LINE))
    }

    /// Elements of the packed weights. `None` if that is no number.
    pub fn packed_len(&self) -> Option<usize> {
        // Packing rounds up to panels, which are no wider than four lines.
        self.layers.parameter_len()?.checked_mul(8 * LINE)?;
        let (directions, of_pass) = (self.layers.directions(), |at| self.parts(at).iter().sum::<usize>());
        // Layers after the first are alike.
        Some(directions * (of_pass(0) + (self.layers.layers - 1) * of_pass(directions)))
    }

    /// Names the packed form.
    pub fn form(&self) -> String {
        let Recurrent { cell, layers, bidirectional, inputs, size, projection, .. } = self.layers;
        let directions = if bidirectional { " in both directions" } else { "" };
        let small = self.small.map(|small| small.map_or("float32", SmallWeights::name)).join(", ");
        format!("{cell:?} {} {layers} of {inputs} to {size} to {projection:?}{directions} on {small}", self.isa)
    }

    /// Packs the vector of parameters.
    ///
    /// # Panics
    /// If a length contradicts the sizes.
    pub fn pack(&self, par: &dyn Par, parameters: &[f32], mut out: &mut [f32]) {
        assert_eq!(Some(parameters.len()), self.layers.parameter_len(), "the parameters have another length");
        for at in 0..self.layers.passes() {
            let pass = PassWeights::of(&self.layers, parameters, at);
            let [inputs, state, projection, biases] = split(&mut out, self.parts(at));
            let products = self.products(at);
            let weights = [(pass.of_inputs, inputs), (pass.of_state, state), (pass.projection, projection)];
            for (product, (weights, out)) in products.iter().zip(weights) {
                if !weights.is_empty() {
                    let columns = Matrix::rows(weights, product.depth()).transposed();
                    product.pack_in_parallel(par, columns, out);
                }
            }
            let (input_bias, state_bias) = biases.split_at_mut(self.layers.rows());
            input_bias.copy_from_slice(pass.input_bias);
            state_bias[..self.layers.rows()].copy_from_slice(pass.state_bias);
        }
    }

    /// Runs like [`Recurrent::run`], on the output of [`pack`](Self::pack).
    ///
    /// # Panics
    /// If a length contradicts the sizes.
    pub fn run(
        &self,
        par: &dyn Par,
        x: &[f32],
        packed: &[f32],
        hidden: &[f32],
        cell: &[f32],
        mut out: RecurrentOutputs<'_, f32>,
        workspace: &mut [f32],
    ) {
        self.layers.check(x, hidden, cell, &out);
        check_len("the packed weights", packed.len(), self.packed_len().unwrap_or(usize::MAX));
        let mut rest = packed;
        let passes = (0..self.layers.passes()).map(|at| split_ref(&mut rest, self.parts(at)));
        let weights = PackedWeights { layers: self, passes: passes.collect() };
        self.layers.run_on(par, &weights, x, hidden, cell, &mut out, workspace);
    }
}

/// Takes parts of these lengths from the front.
fn split<'a>(memory: &mut &'a mut [f32], parts: [usize; 4]) -> [&'a mut [f32]; 4] {
    parts.map(|len| {
        let (part, rest) = std::mem::take(memory).split_at_mut(len);
        *memory = rest;
        part
    })
}

fn split_ref<'a>(memory: &mut &'a [f32], parts: [usize; 4]) -> [&'a [f32]; 4] {
    parts.map(|len| {
        let (part, rest) = memory.split_at(len);
        *memory = rest;
        part
    })
}

/// Packed parameters, by pass: the weights of inputs, state and projection, and the biases.
struct PackedWeights<'a> {
    layers: &'a PackedRecurrent,
    passes: Vec<[&'a [f32]; 4]>,
}

impl PackedWeights<'_> {
    fn multiply(&self, par: &dyn Par, at: usize, which: usize, bias: Option<usize>, x: &[f32], out: &mut [f32]) {
        let (pass, product, rows) = (&self.passes[at], self.layers.products(at)[which], self.layers.layers.rows());
        let epilogue = Epilogue { bias: bias.map(|b| &pass[3][b * rows..][..rows]), ..Epilogue::default() };
        product.run(Matrix::rows(x, product.depth()), pass[which], epilogue, out, product.columns(), &mut [], par);
    }
}

impl Weights<f32> for PackedWeights<'_> {
    fn of_inputs(&self, par: &dyn Par, at: usize, x: &[f32], out: &mut [f32]) {
        self.multiply(par, at, 0, Some(0), x, out);
    }

    fn of_state(&self, par: &dyn Par, at: usize, state: &[f32], out: &mut [f32]) {
        self.multiply(par, at, 1, Some(1), state, out);
    }

    fn step<'a>(&self, par: &dyn Par, at: usize, operands: StepOperands<'a, f32>) -> Option<StepOperands<'a, f32>> {
        let (layers, pass) = (self.layers.layers, &self.passes[at]);
        let product = self.layers.products(at)[1];
        let weights = StepWeights { layers, product, packed: pass[1], bias: &pass[3][layers.rows()..] };
        if !weights.fit() {
            return Some(operands);
        }
        weights.run(par, operands);
        None
    }

    fn project(&self, par: &dyn Par, at: usize, unprojected: &[f32], out: &mut [f32]) {
        self.multiply(par, at, 2, None, unprojected, out);
    }
}
