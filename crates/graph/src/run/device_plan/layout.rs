//! Layouts on devices: images have their channels last between convolutions with constant weights
//! and operators that support that order ([`mxrt_ops::channels_last`]).
//!
//! A value may exist in one order, or in both: conversion steps are added where a reader needs the
//! other one. Weights are brought into the order of their kernels once, with the other constants.

use super::lower::{DeviceTarget, draft};
use super::step::{Reach, StepNode};
use crate::compile::lower::Target;
use crate::compile::values::GraphValues;
use crate::ir::{Graph, GraphNode, Value};
use mxrt_engine::OpError;
use mxrt_ops::{
    ChannelsLast, DeviceKernel, KernelForm, LastInput, Move, Signature, bind_form, channels_last, channels_last_type,
};
use mxrt_tensor::{TensorType, no_device_kernel};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Values that the graph does not have: conversions of its values to other layouts.
#[derive(Default)]
pub(super) struct Layouts {
    types: HashMap<Value, TensorType>,
    constant: HashSet<Value>,
    /// images with channels last, by the value that has them first
    last: HashMap<Value, Value>,
    /// values that do not exist with channels first
    only_last: HashSet<Value>,
    /// weights in the order of their kernels, by the value, the type that it is read as, and the order
    packed: HashMap<(Value, TensorType, [usize; 4]), Value>,
    /// values that have the bytes of another one in this layout
    alias: HashMap<Value, Value>,
    /// number of the next value, after the nodes of the graph
    next: usize,
}

/// A kernel with channels last, with the values that it reads and writes.
pub(super) struct LastStep {
    pub kernel: Box<dyn DeviceKernel>,
    pub inputs: Vec<Value>,
    pub output: Value,
}

impl Layouts {
    /// Starts with no values. New ones are numbered after the nodes of the graph.
    pub fn after(graph: &Graph) -> Layouts {
        Layouts { next: graph.nodes.len(), ..Layouts::default() }
    }

    /// Whether a value that the graph does not have depends on parameters alone. `None` for values
    /// of the graph.
    pub fn is_constant(&self, value: Value) -> Option<bool> {
        self.types.contains_key(&value).then(|| self.constant.contains(&value))
    }

    pub fn root(&self, value: Value) -> Value {
        self.alias.get(&value).copied().unwrap_or(value)
    }

    pub fn type_of(&self, value: Value) -> Option<&TensorType> {
        self.types.get(&value)
    }

    fn new_value(&mut self, tensor: TensorType, constant: bool) -> Value {
        let value = Value::Node(self.next, 0);
        self.next += 1;
        self.types.insert(value, tensor);
        if constant {
            self.constant.insert(value);
        }
        value
    }
}

impl DeviceTarget {
    /// Makes a kernel with channels last for a node, if it has one and that is of use: for
    /// convolutions, and for nodes that read an image that exists in this order alone.
    pub fn in_last_layout(
        &mut self,
        values: &GraphValues<'_>,
        n: usize,
        form: &KernelForm,
        signature: &Signature<'_>,
    ) -> Result<Option<LastStep>, OpError> {
        let node = &values.graph.nodes[n];
        if !self.channels_last || values.constant[n] {
            return Ok(None);
        }
        let Some(last) = channels_last(form, signature) else { return Ok(None) };
        let last = last.on(self.device, signature.options);
        if !self.gains_by(&last, values, node, form) {
            return Ok(None);
        }
        let outputs = [last.output.clone()];
        let changed = Signature { inputs: &last.input_types, outputs: &outputs, options: signature.options };
        let Some(kernel) = bind_form(self.device, &last.form, &changed) else { return Ok(None) };
        let inputs = self.inputs_of(&last, values, node)?;
        let output = self.layouts.new_value(last.output, false);
        self.layouts.last.insert(Value::Node(n, 0), output);
        self.layouts.only_last.insert(Value::Node(n, 0));
        Ok(Some(LastStep { kernel, inputs, output }))
    }

    /// Whether no step is added for weights at every call, or an image is there with channels last
    /// alone.
    fn gains_by(&self, last: &ChannelsLast, values: &GraphValues<'_>, node: &GraphNode, form: &KernelForm) -> bool {
        let mut inputs = node.inputs.iter().copied().zip(&last.inputs);
        match form {
            KernelForm::Convolution { .. } => inputs.all(|(value, wanted)| {
                !matches!(wanted, LastInput::Weights | LastInput::FiltersFirst)
                    || self.is_constant(values, self.root(values, value))
            }),
            _ => inputs.any(|(value, wanted)| *wanted == LastInput::Image && self.is_only_last(values, value)),
        }
    }

    /// The inputs of a node in the layouts that it reads.
    fn inputs_of(
        &mut self,
        last: &ChannelsLast,
        values: &GraphValues<'_>,
        node: &GraphNode,
    ) -> Result<Vec<Value>, OpError> {
        let mut inputs = Vec::new();
        for (value, wanted) in node.inputs.iter().zip(&last.inputs) {
            inputs.push(match wanted {
                LastInput::Image => self.last(values, *value)?,
                LastInput::Same => self.first(values, *value)?,
                LastInput::Weights => self.packed(values, *value, [2, 3, 1, 0])?,
                LastInput::FiltersFirst => self.packed(values, *value, [0, 2, 3, 1])?,
            });
        }
        Ok(inputs)
    }

    fn is_only_last(&self, values: &GraphValues<'_>, value: Value) -> bool {
        self.layouts.only_last.contains(&self.image(values, value))
    }

    /// The value itself, or the value whose bytes and shape it shares.
    fn image(&self, values: &GraphValues<'_>, value: Value) -> Value {
        let root = self.root(values, value);
        match (self.type_of(values, root), self.type_of(values, value)) {
            (Ok(of_root), Ok(own)) if of_root == own => root,
            _ => value,
        }
    }

    /// The value whose bytes are those of `value` with channels first.
    pub fn first(&mut self, values: &GraphValues<'_>, value: Value) -> Result<Value, OpError> {
        let root = self.root(values, value);
        if !self.layouts.only_last.remove(&root) {
            return Ok(root);
        }
        let last = self.layouts.last[&root];
        let tensor = self.type_of(values, root)?;
        if is_one_order(&tensor) {
            self.layouts.alias.insert(root, last);
            return Ok(last);
        }
        self.convert(values, last, root, &[0, 3, 1, 2])?;
        Ok(root)
    }

    /// The value with channels last.
    fn last(&mut self, values: &GraphValues<'_>, value: Value) -> Result<Value, OpError> {
        let image = self.image(values, value);
        if let Some(last) = self.layouts.last.get(&image) {
            return Ok(*last);
        }
        let source = self.first(values, image)?;
        let tensor = self.type_of(values, image)?;
        let last = match channels_last_type(&tensor) {
            Some(_) if is_one_order(&tensor) => source,
            Some(to) => {
                let made = self.layouts.new_value(to, self.is_constant(values, source));
                self.convert(values, source, made, &[0, 2, 3, 1])?;
                made
            }
            None => source,
        };
        self.layouts.last.insert(image, last);
        Ok(last)
    }

    /// Weights with their axes in the order of convolutions with channels last.
    fn packed(&mut self, values: &GraphValues<'_>, value: Value, axes: [usize; 4]) -> Result<Value, OpError> {
        let (weights, tensor) = (self.first(values, value)?, self.type_of(values, value)?);
        let key = (weights, tensor.clone(), axes);
        if let Some(packed) = self.layouts.packed.get(&key) {
            return Ok(*packed);
        }
        let shape: Vec<usize> = axes.map(|axis| tensor.shape[axis]).to_vec();
        let packed = self.layouts.new_value(TensorType::new(tensor.dtype, &shape[..]), true);
        self.convert(values, weights, packed, &axes)?;
        self.layouts.packed.insert(key, packed);
        Ok(packed)
    }

    /// Adds a step that makes `to`, whose axes are those of `from` in another order.
    fn convert(&mut self, values: &GraphValues<'_>, from: Value, to: Value, axes: &[usize; 4]) -> Result<(), OpError> {
        let output = self.type_of(values, to)?;
        let mut of_from = [0; 4];
        axes.iter().zip(&*output.shape).for_each(|(axis, extent)| of_from[*axis] = *extent);
        let input = TensorType::new(output.dtype, &of_from[..]);
        let strides = input.shape.strides();
        let steps = |strides: &[usize]| strides.iter().map(|step| *step as isize).collect::<Vec<_>>();
        let read: Vec<usize> = axes.iter().map(|axis| strides[*axis]).collect();
        let form = KernelForm::Move {
            fill: None,
            moves: vec![Move {
                input: 0,
                output: 0,
                shape: output.shape.to_vec(),
                from: (0, steps(&read)),
                into: (0, steps(&output.shape.strides())),
            }],
        };
        let (inputs, outputs) = ([input], [output]);
        let signature = Signature { inputs: &inputs, outputs: &outputs, options: self.options };
        let kernel = bind_form(self.device, &form, &signature);
        let kernel = kernel.ok_or_else(|| no_device_kernel("transpose", self.device))?;
        let (name, attrs) = (format!("layout of {to}").into(), Arc::default());
        let about = StepNode { op: "transpose", name, attrs, inputs: inputs.to_vec(), reach: Reach::new() };
        let constant = self.is_constant(values, from);
        self.push(draft(kernel, about, vec![from], vec![to]), constant);
        Ok(())
    }
}

/// Whether images of this type have the same bytes in both orders.
fn is_one_order(tensor: &TensorType) -> bool {
    matches!(*tensor.shape, [_, c, h, w] if c == 1 || h * w == 1)
}
