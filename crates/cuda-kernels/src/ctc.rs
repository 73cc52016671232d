//! Losses of connectionist temporal classification: `ctc.h`.

use crate::arguments::CtcArgument;
use crate::indexing::of_38_bits;
use crate::launch::{Bound, ROW_THREADS, code, each_row, known, launch, of_floats};
use mxrt_engine::OpError;
use mxrt_ops::{KernelForm, Signature, sequence_error};

/// Blocks at most, each of which has memory for the states of a sequence.
const BLOCKS: usize = 2048;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::CtcLoss { blank, padding, lengths } = *form else { return None };
    let (data, labels) = (signature.inputs.first()?, signature.inputs.get(1)?);
    let normalizers = of_floats(data.dtype, [c"ctc_normalizers_f32", c"ctc_normalizers_f64"])?;
    let ([steps, batch, symbols], [_, width]) = (&data.shape[..], &labels.shape[..]) else { return None };
    let [steps, batch, symbols, width] = [*steps, *batch, *symbols, *width];
    if !signature.inputs.iter().all(known) {
        return None;
    }
    // The inputs with lengths, if there are any.
    let at = [lengths[0].then_some(2), lengths[1].then_some(2 + usize::from(lengths[0]))];
    let length_dtypes = at.map(|at| at.and_then(|at| signature.inputs.get(at)).map_or(0, |input| code(input.dtype)));
    let dtypes = [data, labels].map(|array| code(array.dtype));
    let sizes = [steps, batch, symbols, width, blank];
    let argument = CtcArgument { padding, ..argument_of(sizes, dtypes, length_dtypes) };
    // A warp for each row, and a block for each sequence.
    let rows = steps.checked_mul(batch)?;
    let blocks = batch.min(BLOCKS);
    let reached = width.checked_mul(2)?.checked_add(1)?.checked_mul(blocks)?.checked_mul(2 * size_of::<f64>())?;
    Some(Bound::new(move |ctx, operands| {
        let Some(of_sequences) = each_row(blocks) else { return Ok(()) };
        let address = |at: Option<usize>| at.map_or(0, |at| operands.inputs[at].0);
        let status = ctx.status_word(move |said| wrong_sequence(said, [width, steps, symbols.saturating_sub(1)]))?;
        let mut argument = argument;
        (argument.to, argument.from) = (operands.outputs[0].0, operands.inputs[0].0);
        (argument.labels, argument.lengths) = (operands.inputs[1].0, at.map(address));
        argument.normalizers = ctx.scratch(rows.max(1) * size_of::<f64>())?.0;
        (argument.reached, argument.status) = (ctx.scratch(reached)?.0, status.0);
        if let Some(of_rows) = each_row(rows.div_ceil(ROW_THREADS as usize / 32)) {
            launch(ctx, normalizers, of_rows, &argument)?;
        }
        launch(ctx, c"ctc_losses", of_sequences, &argument)
    }))
}

/// The argument of the kernels without addresses and padding, of steps, batch, symbols, width of the
/// labels and the blank symbol, and of the types of data and labels.
fn argument_of(sizes: [usize; 5], [dtype, label_dtype]: [i32; 2], length_dtypes: [i32; 2]) -> CtcArgument {
    let [steps, batch, symbols, width, blank] = sizes.map(|size| size as i64);
    CtcArgument {
        to: 0,
        from: 0,
        labels: 0,
        lengths: [0; 2],
        normalizers: 0,
        reached: 0,
        status: 0,
        steps,
        batch,
        symbols,
        width,
        blank,
        padding: 0,
        dtype,
        label_dtype,
        length_dtypes,
    }
}

/// The error that `report_sequence` of the source reports. `most` are the highest length of a label,
/// length of a sequence, and symbol.
fn wrong_sequence(said: u64, most: [usize; 3]) -> OpError {
    let what = ["the label length", "the data length", "a label"];
    let kind = (said >> 38) as usize % 4;
    let (what, most) = (what.get(kind).unwrap_or(&"a label"), most.get(kind).copied().unwrap_or_default());
    sequence_error(what, (said >> 40).saturating_sub(1) as usize, of_38_bits(said), most)
}
