//! Recurrent layers: `recurrent.h`, and products.
//!
//! States are written into the outputs of their steps, and the next step reads them from there.

use crate::arguments::RecurrentStepArgument;
use crate::elementwise::convert;
use crate::launch::{Bound, each, launch};
use crate::moving::copy_rows;
use crate::product::{MatrixRows, multiply};
use mxrt_engine::{DeviceCtx, DevicePtr, OpError};
use mxrt_kernels::recurrent::{Cell, PassPlaces, Recurrent};
use mxrt_ops::{DeviceKernel, DeviceOperands, KernelForm, Signature};
use mxrt_tensor::{DType, TensorType};
use std::ffi::CStr;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Recurrent(layers) = *form else { return None };
    let dtype = signature.inputs.first()?.dtype;
    let kernel = match dtype {
        DType::F32 => c"recurrent_step_f32",
        DType::F64 => c"recurrent_step_f64",
        DType::F16 => return bind_in_single(form, signature),
        _ => return None,
    };
    let memory = CallMemory::of(&layers, dtype.size())?;
    Some(Bound::new(move |ctx, at| Stack { layers, dtype, kernel, memory, ctx, at }.run()))
}

/// Layers of half precision, whose arrays are converted to single precision and back.
fn bind_in_single(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let single = |arrays: &[TensorType]| -> Vec<TensorType> {
        arrays.iter().map(|array| TensorType::new(DType::F32, array.shape.clone())).collect()
    };
    let (inputs, outputs) = (single(signature.inputs), single(signature.outputs));
    let dtypes: Vec<DType> = signature.inputs.iter().map(|array| array.dtype).collect();
    let layers = bind(form, &Signature { inputs: &inputs, outputs: &outputs, ..*signature })?;
    Some(Bound::new(move |ctx, at| {
        let memory = |arrays: &[TensorType]| -> Result<Vec<DevicePtr>, OpError> {
            arrays.iter().map(|array| ctx.scratch(array.bytes().max(1))).collect()
        };
        let (from, to) = (memory(&inputs)?, memory(&outputs)?);
        for (i, array) in inputs.iter().enumerate() {
            convert(ctx, (from[i], DType::F32), (at.inputs[i], dtypes[i]), array.shape.size())?;
        }
        layers.enqueue(ctx, &DeviceOperands { inputs: &from, outputs: &to, ..*at })?;
        outputs.iter().enumerate().try_for_each(|(i, array)| {
            convert(ctx, (at.outputs[i], DType::F16), (to[i], DType::F32), array.shape.size())
        })
    }))
}

/// Bytes of the parts of the memory of a call.
#[derive(Clone, Copy)]
struct CallMemory {
    /// outputs of a layer between others
    between: usize,
    /// products of the inputs of all steps
    of_inputs: usize,
    of_state: usize,
    cell: usize,
    /// the state before it is projected
    unprojected: usize,
}

impl CallMemory {
    fn of(layers: &Recurrent, size: usize) -> Option<CallMemory> {
        let bytes = |factors: &[usize]| factors.iter().try_fold(size, |n, f| n.checked_mul(*f));
        let sequences = layers.steps.checked_mul(layers.batch)?;
        let memory = CallMemory {
            between: bytes(&[sequences, layers.hidden(), layers.directions()])? * usize::from(layers.layers > 1),
            of_inputs: bytes(&[sequences, layers.rows()])?,
            of_state: bytes(&[layers.batch, layers.rows()])?,
            cell: bytes(&[layers.batch, layers.size])?,
            unprojected: bytes(&[layers.batch, layers.size])?,
        };
        memory.parts().iter().try_fold(0usize, |sum, part| sum.checked_add(*part)).map(|_| memory)
    }

    fn parts(&self) -> [usize; 6] {
        [self.between, self.between, self.of_inputs, self.of_state, self.cell, self.unprojected]
    }
}

/// A call.
struct Stack<'a> {
    layers: Recurrent,
    dtype: DType,
    kernel: &'static CStr,
    memory: CallMemory,
    ctx: &'a DeviceCtx<'a>,
    at: &'a DeviceOperands<'a>,
}

/// The memory of a pass.
#[derive(Clone, Copy)]
struct PassMemory {
    number: usize,
    of_inputs: DevicePtr,
    of_state: DevicePtr,
    cell: DevicePtr,
    unprojected: DevicePtr,
    /// outputs of the layer, and how far their rows are apart
    output: MatrixRows,
}

impl Stack<'_> {
    fn run(&self) -> Result<(), OpError> {
        let Recurrent { layers, batch, .. } = self.layers;
        if batch == 0 {
            return Ok(());
        }
        let mut place = self.ctx.scratch(self.memory.parts().iter().sum())?;
        let [a, b, of_inputs, of_state, cell, unprojected] = self.memory.parts().map(|bytes| {
            let part = place;
            place = part.offset(bytes);
            part
        });
        let width = self.layers.hidden() * self.layers.directions();
        let mut input = MatrixRows { first: self.at.inputs[0], step: self.layers.inputs };
        for layer in 0..layers {
            let last = layer + 1 == layers;
            let output = MatrixRows { first: if last { self.at.outputs[0] } else { [a, b][layer % 2] }, step: width };
            for direction in 0..self.layers.directions() {
                let number = layer * self.layers.directions() + direction;
                let mine =
                    MatrixRows { first: self.element(output.first, direction * self.layers.hidden()), step: width };
                self.pass(input, layer, PassMemory { number, of_inputs, of_state, cell, unprojected, output: mine })?;
            }
            input = output;
        }
        Ok(())
    }

    /// The address of an element of an array.
    fn element(&self, array: DevicePtr, i: usize) -> DevicePtr {
        array.offset(i * self.dtype.size())
    }

    fn pass(&self, input: MatrixRows, layer: usize, pass: PassMemory) -> Result<(), OpError> {
        let Recurrent { steps, batch, size, .. } = self.layers;
        let (hidden, rows, inputs) = (self.layers.hidden(), self.layers.rows(), self.layers.inputs_of(layer));
        let places = self.layers.parameters_of(pass.number);
        let weights = self.weights(places.of_inputs, inputs);
        let of_inputs = MatrixRows { first: pass.of_inputs, step: rows };
        let bias = self.weights(places.input_bias, 0).first;
        multiply(self.ctx, self.dtype, [steps * batch, rows, inputs], [input, weights, of_inputs], Some(bias))?;

        let (state_place, cell_place) = (pass.number * batch * hidden, pass.number * batch * size);
        let mut state = MatrixRows { first: self.element(self.at.inputs[2], state_place), step: hidden };
        let first_cell = self.at.inputs.get(3).map_or(pass.cell, |cells| self.element(*cells, cell_place));
        let cell = self.at.outputs.get(2).map_or(pass.cell, |cells| self.element(*cells, cell_place));
        for i in 0..steps {
            let step = if pass.number.is_multiple_of(self.layers.directions()) { i } else { steps - 1 - i };
            let cells = [if i == 0 { first_cell } else { cell }, cell];
            state = self.step(&pass, places, step, state, cells)?;
        }
        if steps == 0 && self.at.outputs.len() > 2 {
            // SAFETY: arrays of the running op, of that size.
            unsafe { self.ctx.copy(cell, first_cell, batch * size * self.dtype.size())? };
        }
        match self.at.outputs.get(1) {
            Some(last) => {
                copy_rows(self.ctx, self.element(*last, state_place), state, [batch, hidden], self.dtype.size())
            }
            None => Ok(()),
        }
    }

    /// Rows of parameters.
    fn weights(&self, first: usize, step: usize) -> MatrixRows {
        MatrixRows { first: self.element(self.at.inputs[1], first), step }
    }

    /// One step of all sequences; where its states are.
    fn step(
        &self,
        pass: &PassMemory,
        places: PassPlaces,
        step: usize,
        state: MatrixRows,
        [cell_from, cell_to]: [DevicePtr; 2],
    ) -> Result<MatrixRows, OpError> {
        let Recurrent { batch, size, projection, .. } = self.layers;
        let (hidden, rows) = (self.layers.hidden(), self.layers.rows());
        let operands = [state, self.weights(places.of_state, hidden), MatrixRows { first: pass.of_state, step: rows }];
        let bias = self.weights(places.state_bias, 0).first;
        multiply(self.ctx, self.dtype, [batch, rows, hidden], operands, Some(bias))?;
        let output =
            MatrixRows { first: self.element(pass.output.first, step * batch * pass.output.step), ..pass.output };
        let made = if projection.is_some() { MatrixRows { first: pass.unprojected, step: size } } else { output };
        let argument = RecurrentStepArgument {
            to: made.first.0,
            cell_to: cell_to.0,
            cell_from: cell_from.0,
            before: state.first.0,
            of_inputs: self.element(pass.of_inputs, step * batch * rows).0,
            of_state: pass.of_state.0,
            n: (batch * size) as i64,
            size: size as i64,
            to_step: made.step as i64,
            before_step: state.step as i64,
            cell: cell_code(self.layers.cell),
            unused: 0,
        };
        if let Some(grid) = each(batch * size) {
            launch(self.ctx, self.kernel, grid, &argument)?;
        }
        if projection.is_some() {
            let operands = [made, self.weights(places.projection, size), output];
            multiply(self.ctx, self.dtype, [batch, hidden, size], operands, None)?;
        }
        Ok(output)
    }
}

/// The number that the kernel has for a cell.
fn cell_code(cell: Cell) -> i32 {
    match cell {
        Cell::Relu => 0,
        Cell::Tanh => 1,
        Cell::Lstm => 2,
        Cell::Gru => 3,
    }
}
