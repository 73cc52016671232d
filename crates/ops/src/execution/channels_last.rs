//! Forms of kernels for images whose channels are the last axis, in place of `[image, channel, row,
//! column]`: for devices whose kernels read them faster. Only forms that gain nothing by the other
//! order are known here.

use super::device::wants_filters_first;
use super::{KernelForm, KernelOptions, Move, Signature};
use mxrt_engine::DeviceId;
use mxrt_tensor::{Shape, TensorType};

/// How a kernel with channels last wants an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastInput {
    /// images with their channels last
    Image,
    /// the bytes as they are
    Same,
    /// weights of a convolution, `[kernel, channel of a group, filter]`
    Weights,
    /// weights of a convolution, `[filter, kernel, channel of a group]`
    FiltersFirst,
}

/// A form with channels last, and what it works on.
#[derive(Clone, Debug)]
pub struct ChannelsLast {
    /// the computation
    pub form: KernelForm,
    /// how the inputs are wanted
    pub inputs: Vec<LastInput>,
    /// types of the inputs in that order
    pub input_types: Vec<TensorType>,
    /// type of the result, which has its channels last
    pub output: TensorType,
}

impl ChannelsLast {
    /// Brings the weights of a convolution into the order that a device prefers.
    pub fn on(mut self, device: DeviceId, options: KernelOptions) -> ChannelsLast {
        let outputs = std::slice::from_ref(&self.output);
        let signature = Signature { inputs: &self.input_types, outputs, options };
        if wants_filters_first(device, &self.form, &signature)
            && let KernelForm::Convolution { filters_first, .. } = &mut self.form
            && let [h, w, c, o] = *self.input_types[1].shape
        {
            *filters_first = true;
            self.inputs[1] = LastInput::FiltersFirst;
            self.input_types[1] = TensorType::new(self.input_types[1].dtype, &[o, h, w, c][..]);
        }
        self
    }
}

/// The type of `[image, channel, row, column]` with the channels last.
pub fn channels_last_type(tensor: &TensorType) -> Option<TensorType> {
    let [n, c, h, w] = **images(tensor)? else { return None };
    Some(TensorType::new(tensor.dtype, &[n, h, w, c][..]))
}

/// The type of weights in the order of convolutions with channels last.
pub fn packed_weights_type(tensor: &TensorType) -> Option<TensorType> {
    let [o, i, h, w] = **images(tensor)? else { return None };
    Some(TensorType::new(tensor.dtype, &[h, w, i, o][..]))
}

fn images(tensor: &TensorType) -> Option<&Shape> {
    (tensor.shape.len() == 4 && tensor.shape.size() > 0).then_some(&tensor.shape)
}

/// Converts a form to its equivalent for images with channels last; `None` if it has none.
pub fn channels_last(form: &KernelForm, signature: &Signature<'_>) -> Option<ChannelsLast> {
    let [output] = signature.outputs else { return None };
    let last = channels_last_type(output)?;
    let [n, c, h, w] = *output.shape else { return None };
    let of_channels = |split: &[usize; 3]| *split == [n, c, h * w];
    let split = [n * h * w, c, 1];
    match form {
        KernelForm::Convolution { channels_last: false, epilogue, .. } => {
            with_inputs(with_channels_last(form), signature, last, |i| input_of_convolution(i, epilogue.residual))
        }
        KernelForm::Pooling { channels_last: false, .. } => {
            with_inputs(with_channels_last(form), signature, last, |_| LastInput::Image)
        }
        KernelForm::Copy | KernelForm::Cast | KernelForm::WithNumber { .. } => {
            let same = signature.inputs.iter().all(|input| input.shape == output.shape);
            same.then(|| with_inputs(form.clone(), signature, last, |_| LastInput::Image)).flatten()
        }
        KernelForm::Elementwise { program, shapes } => {
            let views = last_views(shapes, signature)?;
            let shapes = views.iter().map(|(_, shape)| shape.to_vec()).collect();
            let form = KernelForm::Elementwise { program: program.clone(), shapes };
            with_inputs(form, signature, last, |i| views[i].0)
        }
        KernelForm::BatchNorm { split: by, eps, fix_gamma, relu } if of_channels(by) => {
            let form = KernelForm::BatchNorm { split, eps: *eps, fix_gamma: *fix_gamma, relu: *relu };
            with_inputs(form, signature, last, |i| if i == 0 { LastInput::Image } else { LastInput::Same })
        }
        KernelForm::ResponseNorm { params, split: by } if of_channels(by) => {
            with_inputs(KernelForm::ResponseNorm { params: *params, split }, signature, last, |_| LastInput::Image)
        }
        KernelForm::Move { fill: None, moves } => {
            let joined = moves.iter().map(|one| joined_channels(one, signature)).collect::<Option<Vec<_>>>()?;
            with_inputs(KernelForm::Move { fill: None, moves: joined }, signature, last, |_| LastInput::Image)
        }
        _ => None,
    }
}

/// A convolution or pooling of images with channels last.
fn with_channels_last(form: &KernelForm) -> KernelForm {
    let mut form = form.clone();
    if let KernelForm::Convolution { channels_last, .. } | KernelForm::Pooling { channels_last, .. } = &mut form {
        *channels_last = true;
    }
    form
}

/// How a convolution wants its input with this number.
fn input_of_convolution(i: usize, residual: Option<usize>) -> LastInput {
    match i {
        0 => LastInput::Image,
        1 => LastInput::Weights,
        i if Some(i) == residual => LastInput::Image,
        _ => LastInput::Same,
    }
}

/// How functions of elements want their inputs, and the shapes under which they read them: `shapes`,
/// or their own.
fn last_views(shapes: &[Vec<usize>], signature: &Signature<'_>) -> Option<Vec<(LastInput, [usize; 4])>> {
    let [output] = signature.outputs else { return None };
    let view = |i: usize| {
        let read = shapes.get(i).map_or(&*signature.inputs[i].shape, |shape| &shape[..]);
        let wanted = wanted(read, &output.shape)?;
        // An image has to be one under its own shape as well.
        let fits = wanted != LastInput::Image || signature.inputs[i].shape == output.shape;
        fits.then(|| (wanted, last_shape(read)))
    };
    (0..signature.inputs.len()).map(view).collect()
}

fn with_inputs(
    form: KernelForm,
    signature: &Signature<'_>,
    output: TensorType,
    wanted: impl Fn(usize) -> LastInput,
) -> Option<ChannelsLast> {
    let inputs: Vec<LastInput> = (0..signature.inputs.len()).map(wanted).collect();
    let types = inputs.iter().zip(signature.inputs).map(|(wanted, tensor)| match wanted {
        LastInput::Image => channels_last_type(tensor),
        LastInput::Same => Some(tensor.clone()),
        LastInput::Weights | LastInput::FiltersFirst => packed_weights_type(tensor),
    });
    let input_types = types.collect::<Option<Vec<_>>>()?;
    Some(ChannelsLast { form, inputs, input_types, output })
}

/// How an input of this shape is broadcast to images: as an image of their size, or with the same
/// bytes in either order.
fn wanted(shape: &[usize], images: &[usize]) -> Option<LastInput> {
    if shape == images {
        return Some(LastInput::Image);
    }
    let mut full = [1; 4];
    full[4usize.checked_sub(shape.len())?..].copy_from_slice(shape);
    (full[1] == 1 || full[2..] == [1, 1]).then_some(LastInput::Same)
}

fn last_shape(shape: &[usize]) -> [usize; 4] {
    let mut full = [1; 4];
    let first = 4usize.saturating_sub(shape.len());
    full[first..].copy_from_slice(&shape[shape.len().saturating_sub(4)..]);
    let [n, c, h, w] = full;
    [n, h, w, c]
}

/// A move of a whole input to some channels of the output.
fn joined_channels(one: &Move, signature: &Signature<'_>) -> Option<Move> {
    let (input, output) = (signature.inputs.get(one.input)?, signature.outputs.first()?);
    let [n, c, h, w] = *input.shape else { return None };
    let channels = output.shape[1];
    let (pixels, whole) = (h * w, vec![n, c * h * w]);
    let from = (0, vec![(c * pixels) as isize, 1]);
    let into = vec![(channels * pixels) as isize, 1];
    let joins = one.output == 0 && one.shape == whole && one.from == from && one.into.1 == into;
    (joins && one.into.0.is_multiple_of(pixels)).then(|| Move {
        shape: vec![n * pixels, c],
        from: (0, vec![c as isize, 1]),
        into: (one.into.0 / pixels, vec![channels as isize, 1]),
        ..*one
    })
}
