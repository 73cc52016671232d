//! `CTCLoss`: how improbable sequences make their labels.

use crate::prelude::*;
use mxrt_kernels::ctc::{CtcLoss, CtcTarget};
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "CTCLoss",
    aliases: &["_contrib_CTCLoss", "_contrib_ctc_loss", "ctc_loss"],
    doc: "Loss of connectionist temporal classification.\n\ndata is (steps, batch, symbols), \
          before softmax; label (batch, labels), as symbols. data_lengths and label_lengths, of \
          shape (batch,), are there if the flags say so; without label_lengths a label ends at the \
          first 0 (blank_label='first') or -1 (blank_label='last'). The output is (batch,): the \
          negative logarithm of the probability of the label; 0 for a label that needs more steps \
          than there are. Graves et al., \"Connectionist Temporal Classification\" (2006).",
    inputs: Inputs::ByAttrs(|attrs| match (attrs.bool("use_data_lengths"), attrs.bool("use_label_lengths")) {
        (true, true) => &["data", "label", "data_lengths", "label_lengths"],
        (true, false) => &["data", "label", "data_lengths"],
        (false, true) => &["data", "label", "label_lengths"],
        (false, false) => &["data", "label"],
    }),
    // Named by position, although the second one is hidden.
    outputs: Outputs::Named(|_| &["output0"]),
    hidden_outputs: |_| 1,
    attrs: &[
        AttrDef::new("use_data_lengths", AttrKind::Bool, "False", "Takes data_lengths: steps of each sequence."),
        AttrDef::new("use_label_lengths", AttrKind::Bool, "False", "Takes label_lengths: symbols of each label."),
        AttrDef::new(
            "blank_label",
            AttrKind::Enum(&["first", "last"]),
            "first",
            "Whether the blank is the first symbol or the last one.",
        ),
    ],
    infer_shape,
    infer_dtype,
    bind,
    form,
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let batch = match shapes.dims(0) {
        None => None,
        Some(dims) => match dims[..] {
            [_, batch, _] => batch,
            _ => {
                let have = &shapes.inputs[0];
                return Err(shape_error(format!("data has shape {have}; expected (steps, batch, symbols)")));
            }
        },
    };
    shapes.set_input(1, "label", PartialShape::from_dims([batch, None]))?;
    for i in 2..shapes.inputs.len() {
        shapes.set_input(i, "the lengths", PartialShape::from_dims([batch]))?;
    }
    if let (Some(data), Some(label)) = (shapes.input(0), shapes.input(1))
        && label[1] > data[0]
    {
        return Err(shape_error(format!("label {label} has more symbols than data {data} has steps")));
    }
    shapes.set_output(0, PartialShape::from_dims([batch]))
}

/// Labels and lengths have types of their own.
fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let Some(dtype) = dtypes.inputs[0].or(dtypes.outputs.first().copied().flatten()) else { return Ok(()) };
    dtypes.inputs.iter_mut().for_each(|have| *have = have.or(Some(dtype)));
    dtypes.set_output(0, dtype)
}

/// The number of the blank symbol of several, and what ends a label that has no length.
fn blank(attrs: &Attrs, symbols: usize) -> (usize, i64) {
    match attrs.str("blank_label") {
        "last" => (symbols.saturating_sub(1), -1),
        _ => (0, 0),
    }
}

/// Whether there are lengths of the data, and of the labels.
fn lengths(attrs: &Attrs) -> [bool; 2] {
    [attrs.bool("use_data_lengths"), attrs.bool("use_label_lengths")]
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let data = &signature.inputs[0];
    for (input, name) in signature.inputs[1..].iter().zip(["label", "the lengths", "the lengths"]) {
        check_integers(name, input.dtype)?;
    }
    let symbols = data.shape[2];
    if symbols == 0 {
        return Ok(None);
    }
    let (blank, padding) = blank(attrs, symbols);
    for_floats(data.dtype, KernelForm::CtcLoss { blank, padding, lengths: lengths(attrs) })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = &signature.inputs[0].shape;
    for (input, name) in signature.inputs[1..].iter().zip(["label", "the lengths", "the lengths"]) {
        check_integers(name, input.dtype)?;
    }
    if shape[2] == 0 {
        return Err(shape_error(format!("data has shape {shape}; there must be a symbol, the blank, at least")));
    }
    let (blank, padding) = blank(attrs, shape[2]);
    let loss = CtcLoss { steps: shape[0], batch: shape[1], symbols: shape[2], blank };
    let lengths = lengths(attrs);
    let cost = 1_000 + 4 * shape.size() as u64;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(costed_kernel_fn("plain", cost, move |call| {
        let mut symbols = Scratch::<usize>::new(call.par, call.inputs[1].len());
        let targets = targets(call.par, &loss, padding, lengths, &call.inputs[1..], &mut symbols)?;
        loss.run(call.par, elements::<T>(&call.inputs[0])?, &targets, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

/// The error of a label or a length that is out of range.
pub fn sequence_error(what: &str, sequence: usize, value: i64, most: usize) -> OpError {
    value_error(format!("{what} of sequence {sequence} is {value}; expected 0 to {most}"))
}

/// The target of each sequence, with its symbols in `symbols`. Errors name values out of range.
fn targets<'a>(
    par: &dyn Par,
    loss: &CtcLoss,
    padding: i64,
    [data_lengths, label_lengths]: [bool; 2],
    inputs: &[TensorRef<'_>],
    symbols: &'a mut [usize],
) -> Result<Scratch<CtcTarget<'a>>, OpError> {
    let labels = integers(par, &inputs[0])?;
    let width = inputs[0].shape[1];
    let steps = if data_lengths { Some(integers(par, &inputs[1])?) } else { None };
    let counts = if label_lengths { Some(integers(par, &inputs[1 + usize::from(data_lengths)])?) } else { None };
    let bounded = |what: &str, i: usize, value: i64, most: usize| {
        usize::try_from(value).ok().filter(|v| *v <= most).ok_or_else(|| sequence_error(what, i, value, most))
    };
    let mut rest = symbols;
    let targets = (0..loss.batch).map(|i| {
        let row = &labels[i * width..][..width];
        let count = match &counts {
            Some(counts) => bounded("the label length", i, counts[i], width)?,
            None => row.iter().position(|label| *label == padding).unwrap_or(width),
        };
        let steps = steps.as_ref().map_or(Ok(loss.steps), |s| bounded("the data length", i, s[i], loss.steps))?;
        let (symbols, others) = std::mem::take(&mut rest).split_at_mut(count);
        rest = others;
        for (symbol, label) in symbols.iter_mut().zip(row) {
            *symbol = bounded("a label", i, *label, loss.symbols - 1)?;
        }
        Ok(CtcTarget { labels: symbols, steps })
    });
    Scratch::try_collect(par, loss.batch, targets)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn loss(attrs: &[(&str, &str)]) -> OpTest {
        OpTest::new("ctc_loss").attrs(attrs)
    }

    /// Two steps in which all of three symbols are equally probable: every path has 1/9.
    fn even(attrs: &[(&str, &str)], labels: &[i32]) -> OpTest {
        loss(attrs).f32([2, 1, 3], &[0.5; 6]).i32([1, 2], labels)
    }

    #[test]
    fn the_paths_of_a_label_are_counted() {
        let cost = |t: OpTest| f32s(&t.run(), [1])[0];
        // "1 1", "1 -", "- 1"; "1 2"; "- -".
        for (labels, paths) in [([1, 0], 3.0f32), ([1, 2], 1.0), ([0, 0], 1.0)] {
            assert_close(&[cost(even(&[], &labels))], &[(9.0 / paths).ln()]);
        }
        assert_close(&[cost(even(&[("blank_label", "last")], &[0, -1]))], &[3f32.ln()]);
        // "1 1" needs a blank between.
        assert_eq!(cost(even(&[], &[1, 1])), 0.0);
        let lengths = [("use_data_lengths", "True"), ("use_label_lengths", "1")];
        assert_close(&[cost(even(&lengths, &[2, 1]).i32([1], &[1]).i32([1], &[1]))], &[3f32.ln()]);
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        assert!(even(&[], &[3, 0]).error().message.contains("a label of sequence 0 is 3"));
        let steps = even(&[("use_data_lengths", "True")], &[1, 0]).i32([1], &[3]);
        assert!(steps.error().message.contains("the data length of sequence 0 is 3"));
        let count = even(&[("use_label_lengths", "True")], &[1, 0]).i32([1], &[-1]);
        assert!(count.error().message.contains("the label length of sequence 0 is -1"));
        let long = loss(&[]).f32([1, 1, 3], &[0.0; 3]).i32([1, 2], &[1, 0]);
        assert!(long.error().message.contains("more symbols"));
    }
}
