//! `_fused_elementwise`: a chain of element-wise operators as one loop.

use crate::blocked;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_kernels::elementwise::{Binary, Unary};
use mxrt_kernels::par::par_chunks_mut;
use mxrt_tensor::{DType, Shape};

/// The program; see [`ElementwiseProgram`].
pub(crate) const PROGRAM: AttrDef = AttrDef::required("program", AttrKind::Str, "Steps, separated by semicolons.");
/// Number of inputs.
pub(crate) const NUM_ARGS: AttrDef = AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs.");
/// The others have the shape of the output; see [`OperandBroadcast`].
pub(crate) const REPEATED: AttrDef =
    AttrDef::new("repeated", AttrKind::IntFrom(0), "0", "How many inputs, the last ones, repeat over an image.");

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_fused_elementwise",
    doc: "Element-wise operators in a row, on float32 arrays of one shape and on some that repeat \
        over an image.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg", named: |_| None },
    attrs: &[NUM_ARGS, PROGRAM, REPEATED],
    infer_shape,
    bind,
    form: |attrs, signature| Ok(Some(chain(attrs, signature)?.form(signature))),
    internal: true,
    rewrites: &Rewrites {
        blocked_form: |attrs, signature| blocked::elementwise::form(attrs, signature),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// Elements that all steps work on before the next ones: they and the results in between stay in
/// the first cache.
const BLOCK: usize = 256;
/// Elements of a chunk.
const CHUNK: usize = 64 * BLOCK;

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let whole = whole_inputs(shapes.attrs, shapes.inputs.len());
    Shapes { attrs: shapes.attrs, inputs: &mut shapes.inputs[..whole], outputs: shapes.outputs }.all_same()
}

/// How many of the inputs, the first ones, have the shape of the output.
pub(crate) fn whole_inputs(attrs: &Attrs, inputs: usize) -> usize {
    inputs.saturating_sub(attrs.count(REPEATED.name))
}

fn chain(attrs: &Attrs, signature: &Signature<'_>) -> Result<FusedChain, OpError> {
    if signature.inputs.iter().any(|t| t.dtype != DType::F32) {
        return Err(not_implemented("chains of element-wise operators are fused in float32 only"));
    }
    let shapes: Vec<Shape> = signature.inputs.iter().map(|t| t.shape.clone()).collect();
    FusedChain::new(attrs, &shapes)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let chain = chain(attrs, signature)?;
    let images = ImageOperands::of(&signature.inputs[0].shape);
    let in_place = (0..chain.whole).collect();
    Ok(in_place_kernel_fn(chain.describe(), chain.cost_ns(signature), in_place, move |call| {
        let inputs = call.inputs.iter().map(elements::<f32>).collect::<Result<Vec<_>, _>>()?;
        let [out] = &mut *call.outputs else { return Err(wrong_arity()) };
        par_chunks_mut(call.par, elements_mut(out)?, CHUNK, |i, out| {
            let mut scratch = chain.scratch();
            let mut rest = out;
            let mut start = i * CHUNK;
            while !rest.is_empty() {
                let n = if chain.strides.is_empty() { rest.len() } else { images.alike(start).min(rest.len()) };
                let (out, behind) = rest.split_at_mut(n);
                let first = n.min(BLOCK);
                chain.broadcast(&mut scratch, &inputs, |block, value| {
                    images.broadcast(start, &mut block[..first], value)
                });
                chain.run(&mut scratch, |input| inputs[input].get(start..).unwrap_or(&[]), call.shared, out);
                (rest, start) = (behind, start + n);
            }
        });
        Ok(())
    }))
}

/// Plain images: where the elements of a channel are.
struct ImageOperands {
    channels: usize,
    /// elements of a channel
    each: usize,
}

impl ImageOperands {
    /// A shape of fewer axes is no image, and nothing repeats over it.
    fn of(shape: &[usize]) -> ImageOperands {
        ImageOperands { channels: shape.get(1).copied().unwrap_or(1), each: shape.iter().skip(2).product() }
    }

    /// Elements from `start` on for which one block of what repeats serves: the rest of a channel,
    /// or one block of small ones.
    fn alike(&self, start: usize) -> usize {
        if self.each < BLOCK { BLOCK } else { self.each - start % self.each }
    }

    /// Fills what belongs to the elements from `start` on with the values of their images and
    /// channels.
    fn broadcast(&self, start: usize, block: &mut [f32], value: &dyn Fn(usize, usize) -> f32) {
        let mut done = 0;
        while done < block.len() {
            let (plane, within) = ((start + done) / self.each, (start + done) % self.each);
            let end = block.len().min(done + self.each - within);
            block[done..end].fill(value(plane / self.channels, plane % self.channels));
            done = end;
        }
    }
}

/// A program with its numbers broadcast over a block each.
pub(crate) struct FusedChain {
    program: ElementwiseProgram,
    numbers: Vec<[f32; BLOCK]>,
    /// how many of the inputs, the first ones, have the shape of the output
    pub(crate) whole: usize,
    /// elements of the others between images and between channels
    strides: Vec<[usize; 2]>,
}

/// The working memory of a chain.
pub(crate) struct ChainScratch {
    /// results of the steps for one block
    results: Vec<[f32; BLOCK]>,
    /// inputs that repeat, broadcast over a block
    repeated: Vec<[f32; BLOCK]>,
    /// the values of an input before they were overwritten
    overwritten: [f32; BLOCK],
}

impl FusedChain {
    /// The chain for inputs of these shapes (plain ones), of which the first is that of the output.
    pub(crate) fn new(attrs: &Attrs, shapes: &[Shape]) -> Result<FusedChain, OpError> {
        FusedChain::of_program(attrs.str(PROGRAM.name), shapes, whole_inputs(attrs, shapes.len()))
    }

    /// The chain for inputs of these shapes, of which the first `whole` have that of the output.
    fn of_program(text: &str, shapes: &[Shape], whole: usize) -> Result<FusedChain, OpError> {
        let inputs = shapes.len();
        let program = ElementwiseProgram::parse(text, inputs)
            .ok_or_else(|| value_error(format!("'{text}' is no chain of element-wise operators on {inputs} arrays")))?;
        let strides =
            program.broadcasts(shapes).and_then(|broadcasts| strides(&broadcasts, whole)).ok_or_else(|| {
                shape_error(format!("'{text}' does not read {whole} whole arrays and {} that repeat", inputs - whole))
            })?;
        let number = |(function, _): &(Elementwise, Vec<StepInput>)| match function {
            Elementwise::WithScalar(_, number) | Elementwise::OfScalar(_, number) => [*number; BLOCK],
            _ => [0.0; BLOCK],
        };
        let numbers = program.steps.iter().map(number).collect();
        Ok(FusedChain { program, numbers, whole, strides })
    }

    /// The chain of functions of the elements of one array.
    pub(crate) fn of_one(program: &str) -> Result<FusedChain, OpError> {
        FusedChain::of_program(program, &[Shape::new(&[1])], 1)
    }

    /// The function, if it is one of one operand.
    pub(crate) fn only(&self) -> Option<Unary> {
        match &self.program.steps[..] {
            [(Elementwise::Unary(function), _)] => Some(*function),
            _ => None,
        }
    }

    /// Replaces every element.
    pub(crate) fn apply(&self, elements: &mut [f32]) {
        self.run(&mut self.scratch(), |_| &[], Some(0), elements);
    }

    /// Picoseconds of all functions for an element.
    pub(crate) fn picoseconds(&self, signature: &Signature<'_>) -> u64 {
        program_picoseconds(&self.program, signature)
    }

    /// The form of the chain for a device.
    fn form(&self, signature: &Signature<'_>) -> KernelForm {
        let mut shapes: Vec<Vec<usize>> = signature.inputs.iter().map(|t| t.shape.to_vec()).collect();
        for (function, reads) in &self.program.steps {
            // Slopes are matched with channels, not with the last axis.
            if let (Elementwise::Binary(Binary::Prelu), Some(StepInput::Input(i))) = (function, reads.get(1))
                && let Some(shape) =
                    crate::rewrite::prelu_gamma(&signature.inputs[*i].shape, &signature.inputs[0].shape)
            {
                shapes[*i] = shape;
            }
        }
        KernelForm::Elementwise { program: self.program.clone(), shapes }
    }

    /// The text of the chain in `net.plan()`.
    pub(crate) fn describe(&self) -> String {
        format!("{} in one loop", self.program.steps.len())
    }

    pub(crate) fn cost_ns(&self, signature: &Signature<'_>) -> u64 {
        elementwise_ns(signature, self.picoseconds(signature))
    }

    pub(crate) fn scratch(&self) -> ChainScratch {
        let blocks = |count: usize| vec![[0.0; BLOCK]; count];
        let (results, repeated) = (blocks(self.program.steps.len()), blocks(self.strides.len()));
        ChainScratch { results, repeated, overwritten: [0.0; BLOCK] }
    }

    /// Has `fill` broadcast every input that repeats over a block; it is given the value of an
    /// image and a channel.
    pub(crate) fn broadcast(
        &self,
        scratch: &mut ChainScratch,
        inputs: &[&[f32]],
        fill: impl Fn(&mut [f32], &dyn Fn(usize, usize) -> f32),
    ) {
        let repeated = inputs.iter().skip(self.whole).zip(&self.strides);
        for ((values, [by_image, by_channel]), block) in repeated.zip(&mut scratch.repeated) {
            fill(block, &|image, channel| values[image * by_image + channel * by_channel]);
        }
    }

    /// Computes `out`; `input` gives the elements of a whole input that belong to it, in the same
    /// order. Those of the input `shared` stand in `out`. What repeats is the same for every block.
    pub(crate) fn run<'a>(
        &self,
        scratch: &mut ChainScratch,
        input: impl Fn(usize) -> &'a [f32],
        shared: Option<usize>,
        out: &mut [f32],
    ) {
        let last = self.program.steps.len() - 1;
        let ChainScratch { results, repeated, overwritten } = scratch;
        for (at, out) in out.chunks_mut(BLOCK).enumerate() {
            let n = out.len();
            if shared.is_some() {
                overwritten[..n].copy_from_slice(out);
            }
            for (s, (function, reads)) in self.program.steps.iter().enumerate() {
                let (before, here) = results.split_at_mut(s);
                let read = |i: usize| match reads[i] {
                    StepInput::Input(k) if k >= self.whole => &repeated[k - self.whole][..n],
                    StepInput::Input(k) if shared == Some(k) => &overwritten[..n],
                    StepInput::Input(k) => &input(k)[at * BLOCK..][..n],
                    StepInput::Step(k) => &before[k][..n],
                };
                let to = if s == last { &mut *out } else { &mut here[0][..n] };
                match function {
                    Elementwise::Unary(f) => f32::unary_block(*f, read(0), to),
                    Elementwise::Binary(f) => f32::binary_block(*f, read(0), read(1), to),
                    Elementwise::WithScalar(f, _) => f32::binary_block(*f, read(0), &self.numbers[s][..n], to),
                    Elementwise::OfScalar(f, _) => f32::binary_block(*f, &self.numbers[s][..n], read(0), to),
                }
            }
        }
    }
}

/// The strides of the inputs after the whole ones, if these are whole and the others repeat.
fn strides(broadcasts: &[OperandBroadcast], whole: usize) -> Option<Vec<[usize; 2]>> {
    let (first, others) = broadcasts.split_at_checked(whole)?;
    let stride = |broadcast: &OperandBroadcast| match *broadcast {
        OperandBroadcast::Whole => None,
        OperandBroadcast::Repeated { image, channel } => Some([image, channel]),
    };
    first.iter().all(|broadcast| *broadcast == OperandBroadcast::Whole).then(|| others.iter().map(stride).collect())?
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_chain_gives_what_its_operators_give_one_by_one() {
        let n = 3 * 16384 + 77;
        let x: Vec<f32> = (0..n).map(|i| (i as f32 * 0.37).sin() * 4.0).collect();
        let y: Vec<f32> = (0..n).map(|i| (i as f32 * 0.11).cos()).collect();
        let fused = OpTest::new("_fused_elementwise")
            .attr("num_args", "2")
            .attr(
                "program",
                "_plus_scalar(in0){scalar=3};clip(0){a_min=0|a_max=6};elemwise_mul(in1,1);_rdiv_scalar(2){scalar=2}",
            )
            .f32([n], &x)
            .f32([n], &y)
            .run();
        let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.0 / (y * (x + 3.0).clamp(0.0, 6.0))).collect();
        assert_eq!(f32s(&fused, [n]), want);
    }

    /// ImageOperands of `(2, 5, ...)`, of which channels end within blocks and chunks, and what
    /// repeats over them.
    #[test]
    fn what_repeats_over_images_is_read_where_it_belongs() {
        for image in [&[7][..], &[2], &[16, 16], &[7, 7], &[61, 47], &[3, 30, 50]] {
            let shape = [&[2, 5], image].concat();
            let ones = vec![1; image.len()];
            let each: usize = image.iter().product();
            let x: Vec<f32> = (0..10 * each).map(|i| (i as f32 * 0.37).sin() * 4.0).collect();
            let of = |n: usize, scale: f32| (0..n).map(|i| (i as f32 + 1.0) * scale).collect::<Vec<_>>();
            let (plane, channel, slope, single) = (of(10, 0.3), of(5, -0.7), of(5, 0.1), [2.5f32]);
            let fused = OpTest::new("_fused_elementwise")
                .attr("num_args", "5")
                .attr("repeated", "4")
                .attr(
                    "program",
                    "broadcast_mul(in0,in1);broadcast_sub(in2,0);LeakyReLU(1,in3){act_type=prelu};broadcast_div(2,in4)",
                )
                .floats(&shape, &x)
                .floats(&[&[2, 5], &ones[..]].concat(), &plane)
                .floats(&[&[1, 5], &ones[..]].concat(), &channel)
                .floats(&[5], &slope)
                .floats(&[&[1, 1], &ones[..]].concat(), &single)
                .run();
            let want = |(i, x): (usize, &f32)| {
                let (p, c) = (i / each, i / each % 5);
                let y = channel[c] - x * plane[p];
                (if y > 0.0 { y } else { y * slope[c] }) / 2.5
            };
            assert_eq!(fused.values::<f32>(), x.iter().enumerate().map(want).collect::<Vec<_>>(), "{image:?}");
        }
    }

    #[test]
    fn what_repeats_otherwise_is_refused() {
        let test = |shape: &[usize], repeated: &str, program: &str| {
            let test = OpTest::new("_fused_elementwise").attr("num_args", "2").attr("repeated", repeated);
            let test = test.attr("program", program).floats(&[1, 2, 3, 2], &[0.0; 12]);
            test.floats(shape, &vec![0.0; shape.iter().product()]).error().message.clone()
        };
        let mul = "broadcast_mul(in0,in1)";
        assert!(test(&[2], "1", mul).contains("1 whole arrays and 1 that repeat"), "along the last axis");
        assert!(test(&[1, 2, 3, 2], "1", mul).contains("that repeat"), "whole");
        assert!(test(&[1, 2, 1, 1], "0", mul).contains("one shape"), "not said to repeat");
        assert!(test(&[1, 2, 1, 1], "1", "relu(in0)").contains("that repeat"), "not read");
        assert!(test(&[2], "1", "LeakyReLU(in0,in1){act_type=prelu};broadcast_mul(0,in1)").contains("that repeat"));
    }

    #[test]
    fn what_is_no_chain_is_refused() {
        let test = OpTest::new("_fused_elementwise").attr("num_args", "1").f32([1], &[0.0]);
        assert!(test.attr("program", "relu(in1)").error().message.contains("no chain"));
    }
}
