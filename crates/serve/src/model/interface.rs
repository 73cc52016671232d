//! Tensors that requests name: those of the model, or those that its hooks declare.

use super::{Model, TensorInfo, bad, feed, listed};
use crate::hooks::{HookError, HookTensor, Hooks};
use crate::protocol::request::Most;
use crate::protocol::{Datatype, WireTensor, short};
use crate::refusal::Refusal;
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::PartialShape;
use std::collections::HashMap;

/// Name, element type and shape of a tensor of requests, as far as known.
#[derive(Clone, Debug)]
pub(crate) struct NamedTensor {
    pub(crate) name: String,
    pub(crate) datatype: Datatype,
    pub(crate) shape: PartialShape,
}

impl From<&TensorInfo> for NamedTensor {
    fn from(of: &TensorInfo) -> NamedTensor {
        NamedTensor { name: of.name.clone(), datatype: Datatype::Number(of.dtype), shape: of.shape.clone() }
    }
}

impl NamedTensor {
    /// Returns the shape in the form of the protocol, where -1 is a free extent. If the number of
    /// axes is unknown, the shape is a single -1.
    pub(crate) fn extents(&self) -> Vec<i64> {
        match self.shape.dims() {
            None => vec![-1],
            Some(dims) => dims.iter().map(|d| d.and_then(|d| i64::try_from(d).ok()).unwrap_or(-1)).collect(),
        }
    }

    /// Returns whether this is a shape of the tensor.
    pub(crate) fn has_shape(&self, shape: &[usize]) -> bool {
        self.shape.dims().is_none_or(|dims| {
            dims.len() == shape.len() && dims.iter().zip(shape).all(|(wanted, got)| wanted.is_none_or(|w| w == *got))
        })
    }

    /// Checks that an input is of this type.
    pub(crate) fn check(&self, tensor: &WireTensor) -> Result<(), Refusal> {
        let name = &self.name;
        if tensor.datatype != self.datatype {
            let of_hooks = match tensor.datatype {
                Datatype::Bytes => "; strings are for models whose hooks declare INPUTS of the type BYTES",
                Datatype::Number(_) => "",
            };
            let (got, wanted) = (tensor.datatype.name(), self.datatype.name());
            let message = format!("input '{name}': got {got}, wanted {wanted}{of_hooks}");
            return Err(Refusal::invalid(message).of_kind(FailureKind::Type));
        }
        if !self.has_shape(&tensor.shape) {
            let (got, wanted) = (&tensor.shape[..], self.extents());
            let message = format!("input '{name}': got the shape {got:?}, wanted {wanted:?}, where -1 is any extent");
            return Err(Refusal::invalid(message).of_kind(FailureKind::Shape));
        }
        Ok(())
    }
}

/// Ending of the names that MXNet gives to the outputs of nodes.
const OF_NODE: &str = "_output";

/// Wanted output with its name in the response, which is that of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedOutput {
    pub(crate) number: usize,
    /// whether the request gives the name of the node: `softmax` for `softmax_output`
    by_node: bool,
}

/// Numbers of the inputs of a request, in its order, and the outputs that it wants.
pub(crate) struct Signature {
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<NamedOutput>,
}

/// Inputs and outputs that requests name.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) inputs: Vec<NamedTensor>,
    pub(crate) outputs: Vec<NamedTensor>,
    /// numbers of inputs and outputs by name
    input_names: HashMap<String, usize>,
    output_names: HashMap<String, usize>,
}

impl Interface {
    pub(super) fn new(inputs: Vec<NamedTensor>, outputs: Vec<NamedTensor>) -> Interface {
        let table = |all: &[NamedTensor]| {
            all.iter().enumerate().rev().map(|(number, tensor)| (tensor.name.clone(), number)).collect()
        };
        Interface { input_names: table(&inputs), output_names: table(&outputs), inputs, outputs }
    }

    /// Returns the numbers of inputs and outputs that a request may name.
    pub(crate) fn most(&self) -> Most {
        Most { inputs: self.inputs.len(), outputs: self.outputs.len() }
    }

    /// Returns the number of the input of this name.
    fn input(&self, model: &Model, name: &str) -> Result<usize, Refusal> {
        self.input_names.get(name).copied().ok_or_else(|| {
            if !model.decodes && model.csr_named(name).is_some() {
                let parts = feed::parts_of(&short(name));
                return Refusal::invalid(format!("the input '{}' is a csr matrix: give {parts}", short(name)));
            }
            let names: Vec<&String> = self.inputs.iter().map(|input| &input.name).collect();
            Refusal::invalid(format!("the model has no input '{}'; its inputs are {}", short(name), listed(&names)))
        })
    }

    /// Finds the output of this name, or that of the node of this name, as `MXPredCreatePartialOut`
    /// takes it.
    fn output(&self, name: &str) -> Result<NamedOutput, Refusal> {
        let named = self.output_names.get(name).map(|number| NamedOutput { number: *number, by_node: false });
        let of_node = || {
            let number = *self.output_names.get(&format!("{name}{OF_NODE}"))?;
            Some(NamedOutput { number, by_node: true })
        };
        named.or_else(of_node).ok_or_else(|| {
            let names: Vec<&String> = self.outputs.iter().map(|output| &output.name).collect();
            Refusal::invalid(format!("the model has no output '{}'; its outputs are {}", short(name), listed(&names)))
        })
    }

    /// Resolves inputs by name and type, and outputs by name. `None` stands for all outputs.
    fn signature<'a>(
        &self,
        model: &Model,
        inputs: impl IntoIterator<Item = (&'a str, WireTensor)>,
        outputs: Option<&[&str]>,
    ) -> Result<Signature, Refusal> {
        let mut numbers = Vec::with_capacity(self.inputs.len());
        let mut given = vec![false; self.inputs.len()];
        for (name, tensor) in inputs {
            let number = self.input(model, name)?;
            self.inputs[number].check(&tensor)?;
            if std::mem::replace(&mut given[number], true) {
                return Err(Refusal::invalid(format!("the input '{name}' is given twice")));
            }
            numbers.push(number);
        }
        if let Some(lacking) = given.iter().position(|given| !given) {
            return Err(Refusal::invalid(format!("the input '{}' is missing", self.inputs[lacking].name)));
        }
        Ok(Signature { inputs: numbers, outputs: self.wanted(outputs)? })
    }

    /// Returns the name of an output in the response.
    pub(crate) fn name_of(&self, wanted: NamedOutput) -> &str {
        let name = self.outputs[wanted.number].name.as_str();
        if wanted.by_node { name.strip_suffix(OF_NODE).unwrap_or(name) } else { name }
    }

    /// Finds the outputs of these names.
    fn wanted(&self, names: Option<&[&str]>) -> Result<Vec<NamedOutput>, Refusal> {
        let Some(names) = names else {
            return Ok((0..self.outputs.len()).map(|number| NamedOutput { number, by_node: false }).collect());
        };
        let mut wanted = Vec::with_capacity(self.outputs.len());
        let mut asked = vec![false; self.outputs.len()];
        for name in names {
            let output = self.output(name)?;
            if std::mem::replace(&mut asked[output.number], true) {
                return Err(Refusal::invalid(format!("the output '{name}' is wanted twice")));
            }
            wanted.push(output);
        }
        Ok(wanted)
    }
}

impl Model {
    /// Resolves the tensors of a request by the protocol.
    pub(crate) fn signature<'a>(
        &self,
        inputs: impl IntoIterator<Item = (&'a str, WireTensor)>,
        outputs: Option<&[&str]>,
    ) -> Result<Signature, Refusal> {
        self.offered.signature(self, inputs, outputs)
    }

    /// Checks the name and element type of an array that a hook made. A wrong one is an error of the
    /// hook, whatever the client sent; a wrong shape may be the client's.
    pub(crate) fn check_made(&self, name: &str, made: Datatype) -> Result<(), String> {
        let number = self.own.input(self, name).map_err(|refusal| refusal.message)?;
        let wanted = self.own.inputs[number].datatype;
        if made == wanted {
            return Ok(());
        }
        Err(format!("a hook made '{name}' of the type {}; the model takes {}", made.name(), wanted.name()))
    }

    /// Resolves the model's own inputs, which files hold and hooks make. Returns their numbers.
    pub(crate) fn own_inputs<'a>(
        &self,
        inputs: impl IntoIterator<Item = (&'a str, WireTensor)>,
    ) -> Result<Vec<usize>, Refusal> {
        self.own.signature(self, inputs, None).map(|signature| signature.inputs)
    }
}

/// Tensors that hooks declare in place of the model's own inputs and outputs.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) inputs: Option<Vec<NamedTensor>>,
    pub(super) outputs: Option<Vec<NamedTensor>>,
    /// whether the hooks take the bodies of requests
    pub(super) bodies: bool,
}

impl Declared {
    /// Reads what these hooks declare.
    pub(super) fn by(hooks: &dyn Hooks) -> Result<Declared, OpError> {
        let failed = |error: HookError| bad(format!("hooks: {}", error.message()));
        let (declared, bodies) = (hooks.tensors().map_err(failed)?, hooks.takes_bodies().map_err(failed)?);
        let named = |what: &str, tensors: Option<Vec<HookTensor>>| {
            let named = |tensors: Vec<HookTensor>| tensors.into_iter().map(|of| named(what, of)).collect();
            tensors.map(named).transpose()
        };
        Ok(Declared { inputs: named("INPUTS", declared.inputs)?, outputs: named("OUTPUTS", declared.outputs)?, bodies })
    }
}

fn named(what: &str, of: HookTensor) -> Result<NamedTensor, OpError> {
    let HookTensor { name, datatype, shape } = of;
    let words = |got: &str| format!("hooks: {what}: '{name}' has the type '{got}'; expected one such as BYTES or FP32");
    let datatype = Datatype::named(&datatype).ok_or_else(|| bad(words(&datatype)))?;
    let shape = PartialShape::from_dims(shape.iter().map(|extent| usize::try_from(*extent).ok()));
    Ok(NamedTensor { name, datatype, shape })
}
