//! The effect of an operator on single elements, for graph passes that join several into one loop.

use crate::definition::{Attrs, registry};
use mxrt_kernels::elementwise::{Binary, Unary};
use mxrt_tensor::Shape;

/// A function of the elements of one or two arrays, in single precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Elementwise {
    /// function of one element
    Unary(Unary),
    /// function of two elements
    Binary(Binary),
    /// function of an element and a number
    WithScalar(Binary, f32),
    /// function of a number and an element
    OfScalar(Binary, f32),
}

impl Elementwise {
    /// Arrays it reads.
    pub fn arity(&self) -> usize {
        if matches!(self, Elementwise::Binary(_)) { 2 } else { 1 }
    }

    /// The way in which operand number `operand` of this shape is broadcast to a result of shape
    /// `whole`; None if a chain cannot read it.
    pub fn broadcast(&self, operand: usize, shape: &[usize], whole: &[usize]) -> Option<OperandBroadcast> {
        // Axes are matched from the last one, but for those of PReLU's slopes.
        if shape == whole {
            return Some(OperandBroadcast::Whole);
        }
        let expanded;
        let shape = match operand == 1 && *self == Elementwise::Binary(Binary::Prelu) {
            true => {
                expanded = prelu_gamma(shape, whole)?;
                &expanded
            }
            false => shape,
        };
        let [images, channels, _, ..] = *whole else { return None };
        let missing = whole.len().checked_sub(shape.len())?;
        let extent = |axis: usize| axis.checked_sub(missing).and_then(|axis| shape.get(axis)).copied().unwrap_or(1);
        let step = |axis: usize, all: usize, step: usize| match extent(axis) {
            1 => Some(0),
            have => (have == all).then_some(step),
        };
        let (image, channel) = (step(0, images, extent(1))?, step(1, channels, 1)?);
        (2..whole.len()).all(|axis| extent(axis) == 1).then_some(OperandBroadcast::Repeated { image, channel })
    }
}

/// The slopes of PReLU with an axis for each one of the data; None if they do not fit.
///
/// As in MXNet the axes of gamma are matched, last one first, with the channels and then with the
/// rows; one that fits the rows alone is theirs.
pub(crate) fn prelu_gamma(gamma: &[usize], data: &[usize]) -> Option<Vec<usize>> {
    let mut dims = vec![1; data.len()];
    let mut left = gamma;
    for axis in (0..data.len().min(2)).rev() {
        if let [rest @ .., extent] = left
            && (*extent == 1 || *extent == data[axis])
        {
            dims[axis] = *extent;
            left = rest;
        }
    }
    left.is_empty().then_some(dims)
}

/// The way in which an operand is broadcast to a result of shape `(images, channels, ...)` with at
/// least one axis more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandBroadcast {
    /// an element for every element
    Whole,
    /// one for a whole channel of an image; so far from one image, and from one channel, to the
    /// next
    Repeated {
        /// elements between images
        image: usize,
        /// elements between channels
        channel: usize,
    },
}

/// The source of a program's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepInput {
    /// an input of the program
    Input(usize),
    /// the result of an earlier step
    Step(usize),
}

/// Steps that a program may have.
pub const MAX_PROGRAM_STEPS: usize = 16;

/// Several element-wise operators in a row; the last step makes the result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ElementwiseProgram {
    /// functions and what they read
    pub steps: Vec<(Elementwise, Vec<StepInput>)>,
}

const SEPARATORS: &[char] = &['(', ')', '{', '}', '|', ';', ','];

/// A step as text, such as `clip(0){a_min=0|a_max=6}` or `elemwise_add(in0,2)`; None for attributes
/// that cannot be written like this.
pub fn program_step(op: &str, attrs: &[(&str, &str)], reads: &[StepInput]) -> Option<String> {
    if attrs.iter().any(|(_, value)| value.contains(SEPARATORS)) {
        return None;
    }
    let source = |s: &StepInput| match s {
        StepInput::Input(i) => format!("in{i}"),
        StepInput::Step(i) => i.to_string(),
    };
    let reads: Vec<String> = reads.iter().map(source).collect();
    let attrs: Vec<String> = attrs.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let attrs = if attrs.is_empty() { String::new() } else { format!("{{{}}}", attrs.join("|")) };
    Some(format!("{op}({}){attrs}", reads.join(",")))
}

impl ElementwiseProgram {
    /// Reads steps written by [`program_step`], joined by semicolons. None if the text is no
    /// program of this many inputs.
    pub fn parse(text: &str, inputs: usize) -> Option<ElementwiseProgram> {
        let mut program = ElementwiseProgram::default();
        for step in text.split(';') {
            let (op, rest) = step.split_once('(')?;
            let (reads, attrs) = rest.split_once(')')?;
            let function = function(op, attrs)?;
            let reads: Vec<StepInput> = reads.split(',').map(source).collect::<Option<_>>()?;
            let before = program.steps.len();
            let there = |s: &StepInput| match s {
                StepInput::Input(i) => *i < inputs,
                StepInput::Step(i) => *i < before,
            };
            if reads.len() != function.arity() || !reads.iter().all(there) || before == MAX_PROGRAM_STEPS {
                return None;
            }
            program.steps.push((function, reads));
        }
        Some(program)
    }

    /// The broadcast of every input to results of the shape of the first. None if one is not read,
    /// or in ways that differ.
    pub fn broadcasts(&self, shapes: &[Shape]) -> Option<Vec<OperandBroadcast>> {
        let mut found = vec![None; shapes.len()];
        for (function, reads) in &self.steps {
            for (operand, source) in reads.iter().enumerate() {
                let StepInput::Input(input) = *source else { continue };
                let broadcast = function.broadcast(operand, shapes.get(input)?, shapes.first()?)?;
                if found[input].replace(broadcast).is_some_and(|before| before != broadcast) {
                    return None;
                }
            }
        }
        found.into_iter().collect()
    }
}

fn function(op: &str, attrs: &str) -> Option<Elementwise> {
    let op = registry().get(op)?;
    let given = attrs.trim_start_matches('{').trim_end_matches('}').split('|').filter(|a| !a.is_empty());
    let pairs: Vec<(&str, &str)> = given.map(|a| a.split_once('=')).collect::<Option<_>>()?;
    let attrs: Attrs = op.parse_attrs(pairs).ok()?;
    (op.rewrites.elementwise)(&attrs)
}

fn source(text: &str) -> Option<StepInput> {
    match text.strip_prefix("in") {
        Some(number) => number.parse().ok().map(StepInput::Input),
        None => text.parse().ok().map(StepInput::Step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_repeat_over_images_or_are_no_operands() {
        let whole: &[usize] = &[2, 20, 7, 5];
        let mul = Elementwise::Binary(Binary::Mul);
        let repeated = |image, channel| Some(OperandBroadcast::Repeated { image, channel });
        assert_eq!(mul.broadcast(0, whole, whole), Some(OperandBroadcast::Whole));
        assert_eq!(mul.broadcast(1, &[2, 20, 1, 1], whole), repeated(20, 1));
        assert_eq!(mul.broadcast(1, &[1, 20, 1, 1], whole), repeated(0, 1));
        assert_eq!(mul.broadcast(0, &[2, 1, 1, 1], whole), repeated(1, 0));
        assert_eq!(mul.broadcast(1, &[1, 1, 1, 1], whole), repeated(0, 0));
        assert_eq!(mul.broadcast(1, &[20, 1, 1], whole), repeated(0, 1), "axes that it lacks count as 1");
        assert_eq!(mul.broadcast(1, &[1], whole), repeated(0, 0));
        for other in [&[2, 20, 7, 1][..], &[2, 20, 1, 5], &[5], &[20], &[3, 20, 1, 1], &[1, 2, 20, 7, 5], &[1, 4, 1, 1]]
        {
            assert_eq!(mul.broadcast(1, other, whole), None, "{other:?}");
        }
        let prelu = Elementwise::Binary(Binary::Prelu);
        assert_eq!(
            [prelu.broadcast(1, &[20], whole), prelu.broadcast(1, &[1], whole)],
            [repeated(0, 1), repeated(0, 0)]
        );
        assert_eq!([prelu.broadcast(0, &[20], whole), prelu.broadcast(1, &[5], whole)], [None, None]);
        assert_eq!(prelu.broadcast(1, &[4], &[1, 4, 1, 1]), repeated(0, 1), "as many elements, but another shape");
        assert_eq!(mul.broadcast(1, &[1, 20], &[3, 20]), None, "no images");
    }

    #[test]
    fn a_program_survives_the_way_through_text() {
        let steps = [
            program_step("_plus_scalar", &[("scalar", "3")], &[StepInput::Input(0)]),
            program_step("clip", &[("a_min", "0"), ("a_max", "6")], &[StepInput::Step(0)]),
            program_step("elemwise_mul", &[], &[StepInput::Input(1), StepInput::Step(1)]),
        ];
        let text = steps.into_iter().collect::<Option<Vec<_>>>().expect("plain attributes").join(";");
        assert_eq!(text, "_plus_scalar(in0){scalar=3};clip(0){a_min=0|a_max=6};elemwise_mul(in1,1)");
        let program = ElementwiseProgram::parse(&text, 2).expect("it is a program");
        assert_eq!(program.steps[0], (Elementwise::WithScalar(Binary::Add, 3.0), vec![StepInput::Input(0)]));
        assert_eq!(program.steps[2].1, [StepInput::Input(1), StepInput::Step(1)]);
        assert_eq!(ElementwiseProgram::parse(&text, 1), None, "there is no second input");
        assert_eq!(ElementwiseProgram::parse("relu(0)", 1), None, "a step cannot read itself");
        assert_eq!(ElementwiseProgram::parse("dot(in0,in0)", 1), None, "not element by element");
    }
}
