//! `_rnn_param_concat`: the parameters of a recurrent network joined.

use super::concat::{CONCAT, infer_shape};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_rnn_param_concat",
    aliases: &["_npi_rnn_param_concat"],
    doc: "Joins the parameters of recurrent layers, as Concat does.\n\n\
        Where the length of the output is known from later operators, one unknown input has what is left, \
        or two have half of it each.",
    infer_shape: |shapes| {
        infer_shape(shapes)?;
        infer_rest(shapes)
    },
    ..CONCAT
}];

/// Gives inputs whose extent along the axis is not known what the others leave of the output.
fn infer_rest(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(rank) = shapes.outputs[0].rank() else { return Ok(()) };
    let axis = resolve_axis(shapes.attrs.int("dim"), rank)?;
    let Some(total) = shapes.outputs[0].dim(axis) else { return Ok(()) };
    let unknown: Vec<usize> = (0..shapes.inputs.len()).filter(|i| shapes.inputs[*i].dim(axis).is_none()).collect();
    let known = shapes.inputs.iter().filter_map(|s| s.dim(axis)).fold(0usize, usize::saturating_add);
    if unknown.is_empty() || unknown.len() > 2 {
        return Ok(());
    }
    let Some(rest) = total.checked_sub(known) else {
        return Err(shape_error(format!(
            "the inputs have {known} parameters already, more than the {total} of the output"
        )));
    };
    for i in &unknown {
        let dims = (0..rank).map(|a| if a == axis { Some(rest / unknown.len()) } else { None });
        shapes.set_input(*i, "an input", PartialShape::from_dims(dims))?;
    }
    Ok(())
}
