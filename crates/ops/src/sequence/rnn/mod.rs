//! `RNN`: stacks of recurrent layers.

use crate::prelude::*;
use mxrt_kernels::Float;
use mxrt_kernels::par::Par;
use mxrt_kernels::recurrent::{Cell, PackedRecurrent, Recurrent, RecurrentOutputs};
use mxrt_tensor::{TensorMut, TensorRef};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "RNN",
    aliases: &["_npx_rnn"],
    doc: "Recurrent layers over sequences.\n\n\
        data is (steps, batch, inputs), state (layers * directions, batch, hidden), state_cell \
        (layers * directions, batch, state_size), hidden being projection_size if given, else \
        state_size. parameters is one vector: the weights of every layer and direction (of the \
        inputs, of the state, of the projection), then all biases. Gates: lstm i, f, g, o; gru r, \
        z, n. The output is (steps, batch, directions * hidden); with state_outputs the last \
        states follow. Dropout does nothing at inference. lstm_state_clip_* and \
        use_sequence_length are accepted and change nothing, as in MXNet on the CPU.",
    inputs: Inputs::ByAttrs(|attrs| match (attrs.str("mode") == "lstm", attrs.bool("use_sequence_length")) {
        (true, true) => &["data", "parameters", "state", "state_cell", "sequence_length"],
        (true, false) => &["data", "parameters", "state", "state_cell"],
        (false, true) => &["data", "parameters", "state", "sequence_length"],
        (false, false) => &["data", "parameters", "state"],
    }),
    attrs: &ATTRS,
    outputs: Outputs::Named(|attrs| match (attrs.bool("state_outputs"), attrs.str("mode") == "lstm") {
        (false, _) => &["output"],
        (true, false) => &["output", "state_output"],
        (true, true) => &["output", "state_output", "statecell_output"],
    }),
    infer_shape,
    infer_dtype,
    bind,
    form,
    ..OpDef::BASE
}];

/// Attributes of recurrent layers; quantized ones add theirs.
pub(crate) const ATTRS: [AttrDef; 11] = [
    AttrDef::required("state_size", AttrKind::IntFrom(0), "Numbers of the state of each layer.").unsigned(),
    AttrDef::required("num_layers", AttrKind::IntFrom(0), "Number of layers.").unsigned(),
    AttrDef::new("bidirectional", AttrKind::Bool, "False", "Whether a second pass goes through the steps backwards."),
    AttrDef::required("mode", AttrKind::Enum(&["gru", "lstm", "rnn_relu", "rnn_tanh"]), "What each layer computes."),
    AttrDef::new("p", AttrKind::FloatIn(0.0, 1.0), "0", "Dropout in training."),
    AttrDef::new("state_outputs", AttrKind::Bool, "False", "Whether the last states are outputs, too."),
    AttrDef::new("projection_size", AttrKind::OptInt, "None", "Numbers that the state of an LSTM is projected to."),
    AttrDef::new("lstm_state_clip_min", AttrKind::OptFloat, "None", "Without effect on the CPU, as in MXNet.").wide(),
    AttrDef::new("lstm_state_clip_max", AttrKind::OptFloat, "None", "Without effect on the CPU, as in MXNet.").wide(),
    AttrDef::new("lstm_state_clip_nan", AttrKind::Bool, "False", "Without effect on the CPU, as in MXNet."),
    AttrDef::new(
        "use_sequence_length",
        AttrKind::Bool,
        "False",
        "Takes the input sequence_length; without effect on the CPU, as in MXNet.",
    ),
];

/// The layers of the attributes, for sequences of these sizes.
pub(crate) fn recurrent(attrs: &Attrs, [steps, batch, inputs]: [usize; 3]) -> Result<Recurrent, OpError> {
    let cell = match attrs.str("mode") {
        "lstm" => Cell::Lstm,
        "gru" => Cell::Gru,
        "rnn_tanh" => Cell::Tanh,
        _ => Cell::Relu,
    };
    let (layers, size) = (attrs.count("num_layers"), attrs.count("state_size"));
    if layers == 0 || size == 0 {
        return Err(value_error(format!("num_layers={layers} and state_size={size} must be positive")));
    }
    let projection = match attrs.opt_int("projection_size") {
        None => None,
        Some(_) if cell != Cell::Lstm => return Err(value_error("projection_size is for mode lstm only")),
        Some(p) => match usize::try_from(p).ok().filter(|p| *p > 0) {
            Some(p) => Some(p),
            None => return Err(value_error(format!("projection_size={p} must be positive"))),
        },
    };
    Ok(Recurrent { cell, layers, bidirectional: attrs.bool("bidirectional"), steps, batch, inputs, size, projection })
}

fn too_large() -> OpError {
    shape_error("the layers have more parameters than there can be")
}

pub(crate) fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let lstm = shapes.attrs.str("mode") == "lstm";
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let [steps, batch, inputs] = dims[..] else {
        return Err(shape_error(format!("data has shape {}; expected (steps, batch, inputs)", shapes.inputs[0])));
    };
    let layers = recurrent(shapes.attrs, [0, 0, inputs.unwrap_or(0)])?;
    let directions = 1 + usize::from(layers.bidirectional);
    let passes = checked_product(&[layers.layers, directions])?;
    let length = layers.parameter_len().ok_or_else(too_large)?;
    if inputs.is_some() {
        shapes.set_input(1, "parameters", PartialShape::from_dims([Some(length)]))?;
    }
    let state = PartialShape::from_dims([Some(passes), batch, Some(layers.hidden())]);
    let cell = PartialShape::from_dims([Some(passes), batch, Some(layers.size)]);
    shapes.set_input(2, "state", state.clone())?;
    if lstm {
        shapes.set_input(3, "state_cell", cell.clone())?;
    }
    if shapes.attrs.bool("use_sequence_length") {
        shapes.set_input(3 + usize::from(lstm), "sequence_length", PartialShape::from_dims([batch]))?;
    }
    let width = checked_product(&[directions, layers.hidden()])?;
    shapes.set_output(0, PartialShape::from_dims([steps, batch, Some(width)]))?;
    shapes.set_output(1, state)?;
    shapes.set_output(2, cell)
}

fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let arrays = if dtypes.attrs.str("mode") == "lstm" { 4 } else { 3 };
    let known = dtypes.inputs[..arrays].iter().chain(dtypes.outputs.iter()).find_map(|d| *d);
    let Some(dtype) = known else { return Ok(()) };
    for (i, name) in ["data", "parameters", "state", "state_cell"].into_iter().enumerate().take(arrays) {
        dtypes.set_input(i, name, dtype)?;
    }
    if let Some(length @ None) = dtypes.inputs.get_mut(arrays) {
        *length = Some(dtype);
    }
    (0..dtypes.outputs.len()).try_for_each(|i| dtypes.set_output(i, dtype))
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let shape = &signature.inputs[0].shape;
    let layers = recurrent(attrs, [shape[0], shape[1], shape[2]])?;
    for_floats(signature.inputs[0].dtype, KernelForm::Recurrent(layers))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = &signature.inputs[0].shape;
    let layers = recurrent(attrs, [shape[0], shape[1], shape[2]])?;
    let dtype = signature.inputs[0].dtype;
    let bytes = layers.workspace_len().and_then(|n| n.checked_mul(dtype.size())).ok_or_else(too_large)?;
    let multiply_adds = signature.inputs[1].shape.size().saturating_mul(shape[0]).saturating_mul(shape[1]) as u64;
    match dtype {
        DType::F32 => {
            let lstm = layers.cell == Cell::Lstm;
            let layers =
                PackedRecurrent::new(layers, signature.options.isa, &|rows| signature.options.small_weights(rows));
            let packed_bytes =
                layers.packed_len().and_then(|n| n.checked_mul(size_of::<f32>())).ok_or_else(too_large)?;
            Ok(Box::new(PackedRnn { layers, lstm, workspace_bytes: bytes, packed_bytes, multiply_adds }))
        }
        DType::F64 => Ok(Box::new(PlainRnn { layers, bytes, multiply_adds })),
        DType::F16 => bind_through_single(attrs, signature, bind),
        other => Err(unsupported_dtype(other, "float32, float64 and float16")),
    }
}

/// The operands of a call besides the parameters.
struct Operands<'a, 'o, T> {
    x: &'a [T],
    state: &'a [T],
    cell: &'a [T],
    out: RecurrentOutputs<'o, T>,
}

impl<'a, 'o, T: Float> Operands<'a, 'o, T> {
    fn of(lstm: bool, inputs: &[TensorRef<'a>], outputs: &'o mut [TensorMut<'_>]) -> Result<Self, OpError> {
        let ([data, _, state, rest @ ..], [sequence, last @ ..]) = (inputs, outputs) else {
            return Err(wrong_arity());
        };
        let cell = match (lstm, rest) {
            (true, [cell, ..]) => elements::<T>(cell)?,
            (true, []) => return Err(wrong_arity()),
            _ => &[],
        };
        let mut last = last.iter_mut();
        let mut next = || last.next().map(|out| elements_mut::<T>(out)).transpose();
        let out = RecurrentOutputs { sequence: elements_mut(sequence)?, hidden: next()?, cell: next()? };
        Ok(Operands { x: elements(data)?, state: elements(state)?, cell, out })
    }
}

/// The kernel in single precision, on packed weights.
struct PackedRnn {
    layers: PackedRecurrent,
    lstm: bool,
    workspace_bytes: usize,
    packed_bytes: usize,
    multiply_adds: u64,
}

impl Kernel for PackedRnn {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let packed = packed_elements(call.packed.ok_or_else(wrong_arity)?, self.packed_bytes / size_of::<f32>())?;
        let workspace = scratch::<f32>(call.workspace, self.workspace_bytes / size_of::<f32>())?;
        let Operands { x, state, cell, out } = Operands::of(self.lstm, call.inputs, call.outputs)?;
        self.layers.run(call.par, x, packed, state, cell, out, workspace);
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.workspace_bytes
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        match self.layers.small_weights() {
            Some(small) => format!("packed, {}", small.name()),
            None => "packed".to_owned(),
        }
    }

    fn cost_ns(&self) -> u64 {
        1_000 + self.multiply_adds / 40
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(self.multiply_adds)
    }
}

impl Packing for PackedRnn {
    fn inputs(&self) -> &[usize] {
        &[1]
    }

    fn bytes(&self) -> usize {
        self.packed_bytes
    }

    fn pack(&self, par: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [parameters] = inputs else { return Err(wrong_arity()) };
        self.layers.pack(par, elements(parameters)?, scratch(out, self.packed_bytes / size_of::<f32>())?);
        Ok(())
    }

    fn key(&self) -> String {
        self.layers.form()
    }
}

/// The kernel in double precision.
struct PlainRnn {
    layers: Recurrent,
    bytes: usize,
    multiply_adds: u64,
}

impl Kernel for PlainRnn {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let parameters = elements::<f64>(call.inputs.get(1).ok_or_else(wrong_arity)?)?;
        let workspace = scratch::<f64>(call.workspace, self.bytes / size_of::<f64>())?;
        let Operands { x, state, cell, out } = Operands::of(self.layers.cell == Cell::Lstm, call.inputs, call.outputs)?;
        self.layers.run(call.par, x, parameters, state, cell, out, workspace);
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.bytes
    }

    fn cost_ns(&self) -> u64 {
        1_000 + self.multiply_adds / 8
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(self.multiply_adds)
    }
}

#[cfg(test)]
mod tests;
