//! `_contrib_quantized_rnn`: an LSTM whose products are those of integers.

use super::infer_scalars;
use crate::prelude::*;
use crate::sequence::rnn;
use mxrt_kernels::int8::{EachSum, Int8Gemm, Level, RoundTo, Rows};
use mxrt_kernels::math::{sigmoid_f32, tanh_f32};
use mxrt_kernels::par::{Par, Serial};
use mxrt_kernels::recurrent::Recurrent;
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantized_rnn",
    doc: "LSTM over uint8 data, number * data_scale + data_shift as _contrib_quantize_asym makes them. Weights are \
        quantized to int8 by row of the gates; states and results are float32.",
    inputs: Inputs::Fixed(&INPUTS),
    attrs: &ATTRS,
    outputs: Outputs::Named(|attrs| {
        if attrs.bool("state_outputs") { &["output", "state_output", "statecell_ouput"] } else { &["output"] }
    }),
    infer_shape: |shapes| {
        only_lstm(shapes.attrs)?;
        rnn::infer_shape(shapes)?;
        // The outputs of an RNN are no ranges.
        let mut none = [];
        infer_scalars(&mut Shapes { attrs: shapes.attrs, inputs: shapes.inputs, outputs: &mut none }, 4, &INPUTS)
    },
    infer_dtype: |dtypes| {
        dtypes.set_input(0, "data", DType::U8)?;
        (1..INPUTS.len()).try_for_each(|i| dtypes.set_input(i, INPUTS[i], DType::F32))?;
        (0..dtypes.outputs.len()).try_for_each(|i| dtypes.set_output(i, DType::F32))
    },
    bind,
    ..OpDef::BASE
}];

/// Attributes of an RNN, and the mark that MXNet writes.
const ATTRS: [AttrDef; 12] = {
    let mark =
        AttrDef::new("quantized", AttrKind::OptBool, "None", "Without effect: this operator always is.").unlisted();
    let mut all = [mark; 12];
    let mut i = 0;
    while i < rnn::ATTRS.len() {
        all[i] = rnn::ATTRS[i];
        i += 1;
    }
    all
};

const INPUTS: [&str; 6] = ["data", "parameters", "state", "state_cell", "min_data", "max_data"];

fn only_lstm(attrs: &Attrs) -> Result<(), OpError> {
    if attrs.str("mode") != "lstm" || attrs.opt_int("projection_size").is_some() || attrs.bool("use_sequence_length") {
        return Err(value_error(
            "only mode lstm without projection_size and use_sequence_length works on integers; leave the node out of \
             the quantization",
        ));
    }
    Ok(())
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    only_lstm(attrs)?;
    let shape = &signature.inputs[0].shape;
    let layers = rnn::recurrent(attrs, [shape[0], shape[1], shape[2]])?;
    let too_large = || shape_error("the layers have more parameters than there can be");
    let mut lstm = Int8Lstm { layers, level: signature.options.byte_level(), passes: Vec::new(), packed_len: 0 };
    // The scales, and the biases of every pass.
    let floats = checked_product(&[layers.rows(), 1 + layers.passes(), size_of::<f32>()])?;
    let mut end = floats.checked_next_multiple_of(64).ok_or_else(too_large)?;
    for pass in 0..layers.passes() {
        let len = |gemm: Int8Gemm| gemm.packed_len().ok_or_else(too_large);
        let lens = [len(lstm.gemm(lstm.inputs_of(pass)))?, len(lstm.gemm(layers.size))?];
        lstm.passes.push([end..end + lens[0], end + lens[0]..end + lens[0] + lens[1]]);
        end = end.checked_add(lens[0]).and_then(|end| end.checked_add(lens[1])).ok_or_else(too_large)?;
    }
    lstm.packed_len = end;
    Ok(Box::new(lstm))
}

struct Int8Lstm {
    layers: Recurrent,
    level: Level,
    /// bytes of the packed weights of inputs and state, for every pass
    passes: Vec<[std::ops::Range<usize>; 2]>,
    packed_len: usize,
}

impl Int8Lstm {
    fn inputs_of(&self, pass: usize) -> usize {
        self.layers.inputs_of(pass / self.layers.directions())
    }

    fn gemm(&self, k: usize) -> Int8Gemm {
        Int8Gemm::new(self.layers.rows(), k, self.level)
    }

    /// Integers for one unit of a weight: one for each row of the gates, for all passes.
    fn weight_scales(&self, parameters: &[f32]) -> Vec<f32> {
        let mut largest = vec![0f32; self.layers.rows()];
        for pass in 0..self.layers.passes() {
            let places = self.layers.parameters_of(pass);
            for (start, k) in [(places.of_inputs, self.inputs_of(pass)), (places.of_state, self.layers.size)] {
                for (row, largest) in largest.iter_mut().enumerate() {
                    let weights = &parameters[start + row * k..][..k];
                    *largest = weights.iter().fold(*largest, |l, w| l.max(w.abs()));
                }
            }
        }
        largest.into_iter().map(|l| if l == 0.0 { 0.0 } else { 127.0 / l }).collect()
    }
}

impl Packing for Int8Lstm {
    fn inputs(&self) -> &[usize] {
        &[1]
    }

    fn bytes(&self) -> usize {
        self.packed_len
    }

    fn pack(&self, par: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [parameters] = inputs else { return Err(wrong_arity()) };
        let parameters = elements::<f32>(parameters)?;
        let scales = self.weight_scales(parameters);
        let rows = scales.len();
        let (first, biases) = scratch::<f32>(out, rows * (1 + self.passes.len()))?.split_at_mut(rows);
        first.copy_from_slice(&scales);
        for (pass, biases) in biases.chunks_exact_mut(rows).enumerate() {
            let places = self.layers.parameters_of(pass);
            let (inputs, states) = (&parameters[places.input_bias..], &parameters[places.state_bias..]);
            biases.iter_mut().zip(inputs).zip(states).for_each(|((bias, a), b)| *bias = a + b);
        }
        for (pass, places) in self.passes.iter().enumerate() {
            let from = self.layers.parameters_of(pass);
            let parts = [(from.of_inputs, self.inputs_of(pass)), (from.of_state, self.layers.size)];
            for (bytes, (start, k)) in places.iter().zip(parts) {
                let weights = parameters[start..][..k * scales.len()].iter().enumerate();
                let integers = weights.map(|(i, w)| i8::round_to(w * scales[i / k]));
                let integers = Scratch::collect(par, k * scales.len(), integers);
                self.gemm(k).pack(&integers, &mut out[bytes.clone()]);
            }
        }
        Ok(())
    }

    fn key(&self) -> String {
        let Recurrent { layers, bidirectional, inputs, size, .. } = self.layers;
        format!("int8 lstm {layers} {bidirectional} {inputs} {size} {}", self.gemm(1).level().name())
    }
}

/// Numbers from which a pass computes its gates.
struct Gates {
    scales: Scratch<f32>,
    bias: Scratch<f32>,
    /// addend of each row, from the shift of the data
    added: Scratch<f32>,
    /// sums of the inputs, for the batch of each step
    inputs: Scratch<i32>,
    scale: f32,
    size: usize,
}

impl Gates {
    fn gate(&self, place: usize, row: usize, sum_of_state: i32) -> f32 {
        let sum = self.inputs[place * self.scales.len() + row].wrapping_add(sum_of_state);
        let factor = self.scales[row] * self.scale;
        let product = if factor == 0.0 { 0.0 } else { (sum as f32 - self.added[row]) / factor };
        product + self.bias[row]
    }

    /// Computes the states after a step whose inputs begin at `first`. `write` gets number, element
    /// and value of the hidden ones.
    fn step(
        &self,
        first: usize,
        sums: &[i32],
        (hidden, cells): (&mut [f32], &mut [f32]),
        mut write: impl FnMut(usize, usize, f32),
    ) {
        let (size, rows) = (self.size, self.scales.len());
        for (n, sums) in sums.chunks_exact(rows).enumerate() {
            let gate = |g: usize, i: usize| self.gate(first + n, g * size + i, sums[g * size + i]);
            for i in 0..size {
                let [input, forget, output] = [0, 1, 3].map(|g| sigmoid_f32(gate(g, i)));
                let cell = &mut cells[n * size + i];
                *cell = forget * *cell + input * tanh_f32(gate(2, i));
                let h = output * tanh_f32(*cell);
                hidden[n * size + i] = h;
                write(n, i, h);
            }
        }
    }
}

/// How data are quantized.
#[derive(Clone, Copy)]
struct Steps {
    scale: f32,
    shift: f32,
}

impl Steps {
    fn quantize(self, from: &[f32], to: &mut [u8]) {
        to.iter_mut().zip(from).for_each(|(to, v)| *to = u8::round_to(v * self.scale + self.shift));
    }
}

impl Kernel for Int8Lstm {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let number = |i: usize| -> Result<f32, OpError> {
            elements::<f32>(&call.inputs[i])?.first().copied().ok_or_else(wrong_arity)
        };
        let steps = Steps { scale: number(4)?, shift: number(5)? };
        if !(steps.scale.is_finite() && steps.scale > 0.0 && steps.shift.is_finite()) {
            return Err(value_error(format!(
                "data_scale={} and data_shift={} must be finite, and the scale positive; _contrib_quantize_asym gives \
                 both",
                steps.scale, steps.shift
            )));
        }
        let packed = packed_elements::<u8>(call.packed.ok_or_else(wrong_arity)?, self.packed_len)?;
        let (hidden, cells) = (elements::<f32>(&call.inputs[2])?, elements::<f32>(&call.inputs[3])?);
        let Recurrent { batch, size, .. } = self.layers;
        let (directions, block) = (self.layers.directions(), batch * size);
        let weights = Weights { par: call.par, packed, steps };
        let (first, rest) = call.outputs.split_first_mut().ok_or_else(wrong_arity)?;
        let sequence = elements_mut::<f32>(first)?;
        // The states at the beginning of each pass, which becomes those at its end.
        let mut hidden = Scratch::copy_of(call.par, hidden);
        let mut cells = Scratch::copy_of(call.par, cells);
        let mut data = Scratch::<u8>::new(call.par, if self.layers.layers > 1 { sequence.len() } else { 0 });
        for layer in 0..self.layers.layers {
            for direction in 0..directions {
                let pass = layer * directions + direction;
                let data = if layer == 0 { call.inputs[0].bytes() } else { &data[..] };
                let ends = (&mut hidden[pass * block..][..block], &mut cells[pass * block..][..block]);
                self.pass(&weights, (pass, direction), data, ends, sequence);
            }
            steps.quantize(sequence, &mut data);
        }
        if let [last_hidden, last_cells] = rest {
            elements_mut::<f32>(last_hidden)?.copy_from_slice(&hidden);
            elements_mut::<f32>(last_cells)?.copy_from_slice(&cells);
        }
        Ok(())
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        format!("int8 {}", self.gemm(1).level().name())
    }

    fn cost_ns(&self) -> u64 {
        let products = self.packed_len.saturating_mul(self.layers.steps).saturating_mul(self.layers.batch);
        1_000 + products as u64 / 40
    }
}

/// Weights of a call's passes, and who computes them.
struct Weights<'a> {
    par: &'a dyn Par,
    packed: &'a [u8],
    steps: Steps,
}

impl Int8Lstm {
    /// Adds up the packed weights of each row.
    fn sums_of_weights(&self, par: &dyn Par, k: usize, packed: &[u8]) -> Scratch<i32> {
        let (mut sums, ones) = (Scratch::<i32>::new(par, self.layers.rows()), Scratch::filled(par, k, 1));
        let rows = Rows { bytes: &ones, signed: false };
        self.gemm(k).run(&Serial, rows, packed, &EachSum(|_, sum| sum), &mut sums);
        sums
    }

    /// Computes one pass, whose states are its last ones afterwards.
    fn pass(
        &self,
        weights: &Weights<'_>,
        (pass, direction): (usize, usize),
        data: &[u8],
        (hidden, cells): (&mut [f32], &mut [f32]),
        sequence: &mut [f32],
    ) {
        let Weights { par, packed, steps } = *weights;
        let Recurrent { steps: time, batch, size, .. } = self.layers;
        let (rows, k, width) = (self.layers.rows(), self.inputs_of(pass), self.layers.directions() * size);
        let floats = |first: usize| {
            let bytes = packed[first * rows * size_of::<f32>()..].as_chunks::<4>().0;
            Scratch::collect(par, rows, bytes[..rows].iter().map(|b| f32::from_ne_bytes(*b)))
        };
        let [of_inputs, of_state] = self.passes[pass].clone().map(|bytes| &packed[bytes]);
        let (gemm, gemm_state) = (self.gemm(k), self.gemm(size));
        let mut inputs = Scratch::<i32>::new(par, time * batch * rows);
        gemm.run(par, Rows { bytes: data, signed: false }, of_inputs, &EachSum(|_, sum| sum), &mut inputs);
        // What the shift of the data adds to the sums of a row: its weights times the shift.
        let shifted = [self.sums_of_weights(par, k, of_inputs), self.sums_of_weights(par, size, of_state)];
        let pairs = shifted[0].iter().zip(&shifted[1]);
        let added = Scratch::collect(par, rows, pairs.map(|(a, b)| (*a as f32 + *b as f32) * steps.shift));
        let gates = Gates { scales: floats(0), bias: floats(1 + pass), added, inputs, scale: steps.scale, size };
        let mut sums = Scratch::<i32>::new(par, batch * rows);
        let mut state = Scratch::<u8>::new(par, hidden.len());
        for step in 0..time {
            let at = if direction == 0 { step } else { time - 1 - step };
            steps.quantize(hidden, &mut state);
            gemm_state.run(par, Rows { bytes: &state, signed: false }, of_state, &EachSum(|_, sum| sum), &mut sums);
            let sequence = &mut sequence[at * batch * width..][..batch * width];
            gates.step(at * batch, &sums, (hidden, cells), |n, i, h| sequence[n * width + direction * size + i] = h);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn a_quantized_lstm_is_close_to_the_one_in_float32() {
        let (time, batch, inputs, size) = (4, 2, 3, 4);
        let data: Vec<f32> = (0..time * batch * inputs).map(|i| (i as f32 * 0.7).sin()).collect();
        let parameters: Vec<f32> = (0..4 * size * (inputs + size + 2)).map(|i| (i as f32 * 1.3).cos() * 0.3).collect();
        let layer = |name: &str| {
            let test = OpTest::new(name).attr("state_size", "4").attr("num_layers", "1").attr("mode", "lstm");
            test.attr("state_outputs", "True")
        };
        let states = |test: OpTest| {
            let test = test.f32([parameters.len()], &parameters);
            test.f32([1, batch, size], &[0.1; 8]).f32([1, batch, size], &[-0.2; 8])
        };
        let exact = states(layer("RNN").f32([time, batch, inputs], &data)).run_all();
        let bytes: Vec<u8> = data.iter().map(|v| (v * 127.0 + 128.0).round_ties_even() as u8).collect();
        let test = states(layer("_contrib_quantized_rnn").u8([time, batch, inputs], &bytes));
        let quantized = test.f32([1], &[127.0]).f32([1], &[128.0]).run_all();
        for (a, b) in exact.iter().zip(&quantized) {
            let differences: Vec<f32> = a.values::<f32>().iter().zip(b.values::<f32>()).map(|(a, b)| a - b).collect();
            assert!(differences.iter().all(|d| d.abs() < 0.01), "{differences:?}");
            assert!(differences.iter().any(|d| *d != 0.0), "nothing was quantized");
        }
    }

    #[test]
    fn other_cells_are_refused() {
        let test = OpTest::new("_contrib_quantized_rnn").attr("state_size", "1").attr("num_layers", "1");
        let test = test.attr("mode", "gru").u8([1, 1, 1], &[0]).f32([9], &[0.0; 9]).f32([1, 1, 1], &[0.0]);
        let error = test.f32([1, 1, 1], &[0.0]).f32([1], &[1.0]).f32([1], &[0.0]).error();
        assert!(error.message.contains("only mode lstm"), "{}", error.message);
    }
}
