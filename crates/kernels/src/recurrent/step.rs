//! A step of few sequences in one loop: the core that multiplies the state by the weights of some
//! units' gates applies the activations, too, and makes the new states of these units. So a step
//! starts one loop instead of three, and its activations take all cores.

use super::Recurrent;
use crate::gemm::Sgemm;
use crate::par::Par;
use crate::simd::{Dst, Src};

/// Multiply-adds that a chunk should have at least.
const CHUNK_WORK: usize = 128 << 10;
/// Most units whose gates are computed together: activations are vectors.
const UNITS: usize = 64;
/// Most gates of a cell, and most sequences.
const GATES: usize = 4;
const SEQUENCES: usize = 6;

/// The operands of a step.
pub(super) struct StepOperands<'a, T> {
    /// Products with the inputs and their bias, `[batch, rows]`.
    pub of_inputs: &'a [T],
    /// The state before the step, `[batch, size]`.
    pub previous: &'a [T],
    /// The state after it.
    pub state: &'a mut [T],
    /// The cell states of an LSTM.
    pub cell: &'a mut [T],
}

/// The weights of a step.
#[derive(Clone, Copy)]
pub(super) struct StepWeights<'a> {
    pub layers: Recurrent,
    pub product: Sgemm,
    pub packed: &'a [f32],
    pub bias: &'a [f32],
}

impl StepWeights<'_> {
    /// Whether panels of weights belong to one gate each, and sequences are few.
    pub fn fit(&self) -> bool {
        let Recurrent { size, batch, projection, .. } = self.layers;
        let panels = self.product.panel() <= UNITS && size.is_multiple_of(self.product.panel());
        panels && projection.is_none() && batch <= SEQUENCES && self.product.has_panel_sums()
    }

    /// Computes the step.
    pub fn run(&self, par: &dyn Par, x: StepOperands<'_, f32>) {
        let Recurrent { size, batch, cell, .. } = self.layers;
        let width = self.product.panel();
        let together = UNITS / width * width;
        let work = batch * cell.gates() * together * size;
        let units = CHUNK_WORK.div_ceil(work.max(1)) * together;
        let (state, cells) = (Dst::new(x.state), Dst::new(x.cell));
        par.run(size.div_ceil(units), 0, &|chunk, _| {
            for first in (chunk * units..size.min((chunk + 1) * units)).step_by(together) {
                let block = Block { weights: self, first, units: together.min(size - first) };
                // SAFETY: no other chunk has these units, and both arrays have all of them.
                unsafe { block.run(x.of_inputs, x.previous, state, cells) }
            }
        });
    }
}

/// Some units of all sequences.
struct Block<'a> {
    weights: &'a StepWeights<'a>,
    first: usize,
    units: usize,
}

impl Block<'_> {
    /// Makes the new states.
    ///
    /// # Safety
    /// `state` and `cells` must have the states of all units of all sequences, and no other thread
    /// may touch those of these units.
    unsafe fn run(&self, of_inputs: &[f32], previous: &[f32], state: Dst, cells: Dst) {
        let layers = &self.weights.layers;
        let Recurrent { size, batch, .. } = *layers;
        let (gates, rows, units) = (layers.cell.gates(), layers.rows(), self.units);
        let mut of_state = [0.0; SEQUENCES * GATES * UNITS];
        self.multiply(previous, &mut of_state);
        let own = Recurrent { size: units, ..*layers };
        for sequence in 0..batch {
            let mut inputs = [0.0; GATES * UNITS];
            for (gate, to) in inputs.chunks_exact_mut(units).take(gates).enumerate() {
                to.copy_from_slice(&of_inputs[sequence * rows + gate * size + self.first..][..units]);
            }
            let of_state = &of_state[sequence * GATES * UNITS..][..gates * units];
            let mut activated = [0.0; GATES * UNITS];
            own.activate(&inputs[..gates * units], of_state, &mut activated[..gates * units]);
            let at = sequence * size + self.first;
            let (mut new, mut cell) = ([0.0; UNITS], [0.0; UNITS]);
            new[..units].copy_from_slice(&previous[at..][..units]);
            // SAFETY: promised by the caller.
            unsafe {
                Dst::new(&mut cell).copy_from(0, cells.as_src().add(at), units);
                own.combine(&activated[..gates * units], &mut new[..units], &mut cell[..units]);
                state.copy_from(at, Src::new(&new), units);
                cells.copy_from(at, Src::new(&cell), units);
            }
        }
    }

    /// The products of the state with their bias: for each sequence, the units of one gate after
    /// those of another.
    fn multiply(&self, previous: &[f32], out: &mut [f32; SEQUENCES * GATES * UNITS]) {
        let StepWeights { layers, product, packed, bias } = *self.weights;
        let width = product.panel();
        let mut sums = [0.0; SEQUENCES * UNITS];
        for (gate, start) in (0..layers.cell.gates()).flat_map(|g| (0..self.units).step_by(width).map(move |s| (g, s)))
        {
            let column = gate * layers.size + self.first + start;
            product.panel_sums(previous, packed, column / width, &mut sums);
            for (sequence, sums) in sums.chunks_exact(width).take(layers.batch).enumerate() {
                let to = &mut out[sequence * GATES * UNITS + gate * self.units + start..][..width];
                let biased = sums.iter().zip(&bias[column..]).map(|(sum, bias)| sum + bias);
                to.iter_mut().zip(biased).for_each(|(to, sum)| *to = sum);
            }
        }
    }
}
