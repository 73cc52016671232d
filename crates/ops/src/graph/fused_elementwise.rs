//! `_fused_elementwise`: a chain of element-wise operators as one loop.

use crate::blocked;
use crate::core::*;
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_kernels::par::par_chunks_mut;
use mxrt_tensor::DType;

/// The program; see [`Program`].
pub(crate) const PROGRAM: AttrDef = AttrDef::required("program", AttrKind::Str, "Steps, separated by semicolons.");
/// Number of inputs.
pub(crate) const NUM_ARGS: AttrDef = AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs.");

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_fused_elementwise",
    doc: "Element-wise operators in a row, on float32 arrays of one shape.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg" },
    attrs: &[NUM_ARGS, PROGRAM],
    bind,
    blocked: |_, signature| blocked::elementwise::form(signature),
    internal: true,
    ..OpDef::BASE
}];

/// Elements that all steps work on before the next ones: they and the results in between stay in the first cache.
const BLOCK: usize = 256;
/// Elements of a chunk.
const CHUNK: usize = 64 * BLOCK;

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    if signature.inputs.iter().any(|t| t.dtype != DType::F32) {
        return Err(not_implemented("chains of element-wise operators are fused in float32 only"));
    }
    let chain = Chain::new(attrs, signature.inputs.len())?;
    let all = (0..signature.inputs.len()).collect();
    Ok(in_place_kernel_fn(chain.describe(), chain.cost_ns(signature), all, move |call| {
        let inputs = call.inputs.iter().map(elements::<f32>).collect::<Result<Vec<_>, _>>()?;
        let [out] = &mut *call.outputs else { return Err(wrong_arity()) };
        par_chunks_mut(call.par, elements_mut(out)?, CHUNK, |i, out| {
            let mut results = chain.results();
            chain.run(&mut results, |input| inputs[input].get(i * CHUNK..).unwrap_or(&[]), call.shared, out);
        });
        Ok(())
    }))
}

/// A program with its numbers spread over a block each.
pub(crate) struct Chain {
    program: Program,
    numbers: Vec<[f32; BLOCK]>,
}

/// Results of the steps for one block.
pub(crate) type Results = Vec<[f32; BLOCK]>;

impl Chain {
    pub(crate) fn new(attrs: &Attrs, inputs: usize) -> Result<Chain, OpError> {
        let text = attrs.str(PROGRAM.name);
        let program = Program::parse(text, inputs)
            .ok_or_else(|| value_error(format!("'{text}' is no chain of element-wise operators on {inputs} arrays")))?;
        let number = |(function, _): &(Elementwise, Vec<Source>)| match function {
            Elementwise::WithScalar(_, number) | Elementwise::OfScalar(_, number) => [*number; BLOCK],
            _ => [0.0; BLOCK],
        };
        let numbers = program.steps.iter().map(number).collect();
        Ok(Chain { program, numbers })
    }

    /// What `net.plan()` says.
    pub(crate) fn describe(&self) -> String {
        format!("{} in one loop", self.program.steps.len())
    }

    pub(crate) fn cost_ns(&self, signature: &Signature<'_>) -> u64 {
        elementwise_ns(signature, program_picoseconds(&self.program, signature))
    }

    /// Room for the results in between.
    pub(crate) fn results(&self) -> Results {
        vec![[0.0; BLOCK]; self.program.steps.len()]
    }

    /// Computes `out`; `input` gives the elements of an input that belong to it, in the same order. Those of the input
    /// `shared` stand in `out`.
    pub(crate) fn run<'a>(
        &self,
        results: &mut Results,
        input: impl Fn(usize) -> &'a [f32],
        shared: Option<usize>,
        out: &mut [f32],
    ) {
        let last = self.program.steps.len() - 1;
        let mut overwritten = [0.0; BLOCK];
        for (at, out) in out.chunks_mut(BLOCK).enumerate() {
            let n = out.len();
            if shared.is_some() {
                overwritten[..n].copy_from_slice(out);
            }
            for (s, (function, reads)) in self.program.steps.iter().enumerate() {
                let (before, here) = results.split_at_mut(s);
                let read = |i: usize| match reads[i] {
                    Source::Input(k) if shared == Some(k) => &overwritten[..n],
                    Source::Input(k) => &input(k)[at * BLOCK..][..n],
                    Source::Step(k) => &before[k][..n],
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

    #[test]
    fn what_is_no_chain_is_refused() {
        let test = OpTest::new("_fused_elementwise").attr("num_args", "1").f32([1], &[0.0]);
        assert!(test.attr("program", "relu(in1)").error().message.contains("no chain"));
    }
}
