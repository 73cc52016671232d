use super::*;
use crate::gemm::SmallWeights;
use crate::isa::Isa;
use crate::par::Serial;
use crate::testing::{Reverse, Threads, random64};
use weights::PassWeights;

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
            let p = PassWeights::of(&r, parameters, at);
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
        // Units fill panels of weights, or do not; sequences are few, or many.
        for (layers, bidirectional, steps, batch, size) in
            [(1, false, 4, 1, 96), (2, true, 3, 2, 67), (2, true, 3, 6, 64), (3, false, 5, 70, 67)]
        {
            let r = Recurrent { cell, layers, bidirectional, steps, batch, inputs: 5, size, projection };
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
            let operands = [&x[..], &parameters, &hidden, &cell_state];
            for isa in Isa::ALL {
                packed(r, isa, None, operands, &want);
                for small in [SmallWeights::Bf16, SmallWeights::Int8] {
                    let rounded = rounded(r, small, &parameters);
                    let want = reference(r, &x, &rounded, &hidden, &cell_state);
                    packed(r, isa, Some(small), operands, &want);
                }
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

/// The parameters with all weights as they are stored.
fn rounded(r: Recurrent, small: SmallWeights, parameters: &[f64]) -> Vec<f64> {
    let mut all = parameters.to_vec();
    let mut round = |at: usize, len: usize, depth: usize| {
        for row in all[at..at + len].chunks_exact_mut(depth) {
            // In single precision, as weights between two whole numbers are rounded there.
            let factor = row.iter().fold(0.0, |m: f32, w| m.max((*w as f32).abs())) / 127.0;
            row.iter_mut().for_each(|w| match small {
                SmallWeights::Bf16 => *w = half::bf16::from_f32(*w as f32).to_f64(),
                SmallWeights::Int8 => *w = f64::from((*w as f32 / factor).round_ties_even()) * f64::from(factor),
            });
        }
    };
    for at in 0..r.passes() {
        let (places, inputs) = (r.parameters_of(at), r.inputs_of(at / r.directions()));
        round(places.of_inputs, r.rows() * inputs, inputs);
        round(places.of_state, r.rows() * r.hidden(), r.hidden());
        round(places.projection, r.projection.unwrap_or(0) * r.size, r.size);
    }
    all
}

/// Checks packed weights, in single precision.
fn packed(r: Recurrent, isa: Isa, small: Option<SmallWeights>, operands: [&[f64]; 4], want: &[f64]) {
    let [x, parameters, hidden, cell] = operands.map(|v| v.iter().map(|v| *v as f32).collect::<Vec<f32>>());
    let layers = PackedRecurrent::new(r, isa, &|_| small);
    let mut first: Option<Vec<f32>> = None;
    for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
        let mut weights = vec![f32::NAN; layers.packed_len().unwrap()];
        layers.pack(par, &parameters, &mut weights);
        let mut sequence = vec![0.0; want.len()];
        let (mut last, mut last_cell) = (vec![0.0; hidden.len()], vec![0.0; cell.len()]);
        let mut memory = vec![f32::NAN; r.workspace_len().unwrap()];
        let last_cell = (!cell.is_empty()).then_some(&mut last_cell[..]);
        let out = RecurrentOutputs { sequence: &mut sequence, hidden: Some(&mut last), cell: last_cell };
        layers.run(par, &x, &weights, &hidden, &cell, out, &mut memory);
        let worst = sequence.iter().zip(want).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-4, "{r:?} {isa} {small:?}: off by {worst}");
        assert_eq!(*first.get_or_insert(sequence.clone()), sequence);
    }
}
