//! Calls of operators.

use super::{Choices, ODD_NUMBERS, engine, filled, have_values, small_shape};
use mxrt::internal::{KernelOptions, PartialShape, RandomState};
use mxrt::types::TensorType;
use mxrt::{Context, DType, NDArray, Shape};
use mxrt_ops::{AttrDef, AttrKind, Inputs, Invocation, OpDef, Shapes, invoke, registry};

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There are results.
    Computed,
    /// An error, at the call or in the results.
    Refused,
}

/// The operators that a program can call.
pub fn operators() -> Vec<&'static OpDef> {
    let runs_graphs = |op: &OpDef| matches!(op.name, "_foreach" | "_while_loop" | "_cond" | "Custom");
    registry().ops().iter().copied().filter(|op| !op.internal && !runs_graphs(op)).collect()
}

/// Text for an attribute: as a rule one that it takes.
pub fn value(choices: &mut Choices<'_>, attr: &AttrDef, rank: usize) -> String {
    if choices.once_in(40) {
        return choices.pick(&["", "None", "(", "()", "abc", "(1, x)", "True", "-0.0"]).to_owned();
    }
    let number = |choices: &mut Choices<'_>| -> String {
        if choices.once_in(30) { choices.pick(&ODD_NUMBERS).to_owned() } else { choices.below(4).to_string() }
    };
    let tuple = |choices: &mut Choices<'_>, some: &dyn Fn(&mut Choices<'_>) -> String| -> String {
        // As a rule one number for each axis of an image, or of the array.
        let lengths = [rank.saturating_sub(2), rank, 1, 2];
        let length = if choices.once_in(20) { choices.below(7) } else { choices.pick(&lengths) };
        let items: Vec<String> = (0..length).map(|_| some(choices)).collect();
        format!("({}{})", items.join(", "), if length == 1 { "," } else { "" })
    };
    match (attr.name, attr.kind) {
        ("axis" | "dim" | "axis1" | "axis2", AttrKind::Int | AttrKind::OptInt) => {
            choices.below(rank.max(1)).to_string()
        }
        ("kernel" | "stride" | "dilate", _) => tuple(choices, &|c: &mut Choices<'_>| (1 + c.below(3)).to_string()),
        ("range_max", _) => "99".to_owned(),
        ("pad_width", _) => "(0, 0, 0, 0, 1, 1, 1, 1)".to_owned(),
        (_, AttrKind::Int | AttrKind::OptInt) => number(choices),
        (_, AttrKind::IntFrom(least)) => (least.max(1) + choices.below(4) as i64).to_string(),
        (_, AttrKind::Float | AttrKind::OptFloat) => {
            if choices.once_in(20) {
                number(choices)
            } else {
                choices.pick(&["0", "1", "0.5", "-1.5", "1e-5"]).to_owned()
            }
        }
        (_, AttrKind::FloatIn(low, high)) => choices.pick(&[low, high, (low + high) / 2.0]).to_string(),
        (_, AttrKind::Bool | AttrKind::OptBool) => choices.pick(&["True", "False"]).to_owned(),
        (_, AttrKind::Shape | AttrKind::OptShape) => tuple(choices, &number),
        (_, AttrKind::SparseShape) => {
            tuple(choices, &|c: &mut Choices<'_>| if c.once_in(4) { "None".to_owned() } else { number(c) })
        }
        (_, AttrKind::Floats | AttrKind::OptFloats) => {
            tuple(choices, &|c: &mut Choices<'_>| c.pick(&["0.5", "1", "2"]).to_owned())
        }
        (_, AttrKind::Enum(words) | AttrKind::OptEnum(words) | AttrKind::DType(words) | AttrKind::OptDType(words)) => {
            choices.pick(words).to_owned()
        }
        (_, AttrKind::Str | AttrKind::Object(_)) => String::new(),
    }
}

/// Attributes for an operator whose first input has `rank` axes.
pub fn attributes(choices: &mut Choices<'_>, op: &OpDef, rank: usize, inputs: usize) -> Vec<(String, String)> {
    let mut given = Vec::new();
    for attr in op.attrs.iter().filter(|attr| !matches!(attr.kind, AttrKind::Object(_))) {
        let text = match (op.inputs, attr.name) {
            (Inputs::Variadic { count, .. }, name) if name == count => inputs.to_string(),
            // Nothing else tells a shape.
            (Inputs::Fixed([]), "shape") => "(2, 3)".to_owned(),
            (_, "target_shape" | "size" | "output_size") if attr.default != Some("0") => "(3, 3)".to_owned(),
            _ if attr.default.is_none() || choices.once_in(5) => value(choices, attr, rank),
            _ => continue,
        };
        given.push((attr.name.to_owned(), text));
    }
    if choices.once_in(60) {
        given.push((choices.pick(&["", "no_such", "__hint__", "name"]).to_owned(), "1".to_owned()));
    }
    given
}

/// Shapes of inputs that belong together, for operators that say nothing of what they expect.
fn related(op: &OpDef) -> &'static [&'static [usize]] {
    match op.name {
        "_linalg_gelqf" => &[&[2, 3, 4]],
        "dot" | "batch_dot" | "_linalg_gemm2" => &[&[2, 3, 4], &[2, 4, 3]],
        "_linalg_gemm" => &[&[2, 3, 4], &[2, 4, 3], &[2, 3, 3]],
        name if name.starts_with("_linalg_tr") => &[&[2, 3, 3], &[2, 3, 3]],
        name if name.starts_with("_linalg_") => &[&[2, 3, 3]],
        "BilinearSampler" => &[&[2, 4, 4, 4], &[2, 2, 3, 3]],
        "GridGenerator" => &[&[2, 2, 3, 3]],
        "ROIPooling" | "_contrib_ROIAlign" => &[&[2, 4, 4, 4], &[3, 5]],
        "_contrib_MultiBoxDetection" => &[&[2, 3, 4], &[2, 16], &[1, 4, 4]],
        "_contrib_MultiBoxTarget" => &[&[1, 3, 4], &[2, 2, 5], &[2, 2, 3]],
        "Correlation" => &[&[1, 2, 4, 4], &[1, 2, 4, 4]],
        "CTCLoss" => &[&[3, 2, 4], &[2, 2]],
        "_contrib_Proposal" | "_contrib_MultiProposal" => &[&[1, 24, 2, 3], &[1, 48, 2, 3], &[1, 3]],
        "_contrib_box_nms" => &[&[2, 5, 6]],
        "col2im" => &[&[2, 3, 16]],
        name if name.starts_with("_image_") => &[&[4, 5, 3]],
        _ => &[],
    }
}

/// Shapes for the inputs: those that the operator infers from the first, else like it.
fn shapes(choices: &mut Choices<'_>, op: &OpDef, attrs: &mxrt_tensor::attrs::Attrs, first: &Shape) -> Vec<Shape> {
    let count = op.num_inputs(attrs).min(64);
    let mut ins = vec![PartialShape::UNKNOWN; count];
    let mut outs = vec![PartialShape::UNKNOWN; op.num_outputs(attrs).min(4096)];
    if let Some(input) = ins.first_mut() {
        *input = first.into();
    }
    for (input, shape) in ins.iter_mut().zip(related(op)) {
        *input = Shape::new(shape).into();
    }
    let _ = (op.infer_shape)(&mut Shapes { attrs, inputs: &mut ins, outputs: &mut outs });
    let mut shapes: Vec<Shape> = ins.iter().map(|s| s.complete().unwrap_or_else(|| first.clone())).collect();
    if choices.once_in(12) && !shapes.is_empty() {
        let at = choices.below(shapes.len());
        shapes[at] = small_shape(choices);
    }
    shapes
}

/// Makes one call and reads its results.
pub fn call(choices: &mut Choices<'_>, op: &'static OpDef) -> Outcome {
    let first = related(op).first().map_or_else(|| small_shape(choices), |shape| Shape::new(shape));
    let count = 1 + choices.below(3);
    let given = attributes(choices, op, first.len(), count);
    let Ok(attrs) = op.parse_attrs(given.iter().map(|(k, v)| (k.as_str(), v.as_str()))) else {
        return Outcome::Refused;
    };
    let dtype = if choices.once_in(6) {
        choices.pick(&[DType::F64, DType::F16, DType::I32, DType::U8, DType::I64, DType::Bool, DType::BF16])
    } else {
        DType::F32
    };
    let shapes = shapes(choices, op, &attrs, &first);
    let mut inputs: Vec<NDArray> = Vec::new();
    for shape in shapes {
        let one = if choices.once_in(40) { DType::I32 } else { dtype };
        match filled(choices, &TensorType::new(one, shape)) {
            Some(array) => inputs.push(array),
            None => return Outcome::Refused,
        }
    }
    if choices.once_in(60) {
        inputs.pop();
    }
    let random = RandomState::new(0);
    let how =
        Invocation { engine: engine(), context: Context::cpu(0), options: KernelOptions::default(), random: &random };
    let references: Vec<&NDArray> = inputs.iter().collect();
    match invoke(&how, op, &attrs, &references, None) {
        Ok(results) if have_values(&results) => Outcome::Computed,
        _ => Outcome::Refused,
    }
}
