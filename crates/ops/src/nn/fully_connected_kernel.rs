//! Kernels of dense layers: fast and plain ones, and the steps that may be fused after them.

use super::convolution_kernel::{Epilogue, operand};
use crate::graph::fused_elementwise::FusedChain;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Float;
use mxrt_kernels::amx::{AmxGemm, Target, TileEpilogue};
use mxrt_kernels::dense::fully_connected;
use mxrt_kernels::elementwise::Unary;
use mxrt_kernels::gemm::{self, Bf16Gemm, ElementFunction, Matrix, Sgemm, SmallWeights};
use mxrt_kernels::gemm_plain::Gemm;
use mxrt_kernels::isa::{Isa, pairs_are_fast};
use mxrt_kernels::par::Par;
use mxrt_tensor::{DType, TensorRef};
use std::ops::Range;

/// A dense layer of two or three inputs, and of a residual, for the types of the signature. A chain
/// of functions is applied last, in float32.
pub(crate) fn bind_dense(
    signature: &Signature<'_>,
    epilogue: Epilogue,
    chain: Option<FusedChain>,
) -> Result<Box<dyn Kernel>, OpError> {
    if chain.is_some() && signature.inputs[0].dtype == DType::F64 {
        return Err(not_implemented("functions of a dense layer's result are fused in float32 and float16 only"));
    }
    in_single(signature, |signature| bind_sums(signature, epilogue, chain))
}

/// The form of a dense layer.
pub(crate) fn dense_form(signature: &Signature<'_>, epilogue: SumEpilogue) -> MaybeForm {
    let [outputs, inputs] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    let rows = signature.outputs[0].shape.size() / outputs.max(1);
    let matrix =
        |array, steps: [usize; 2]| MatrixSteps { array, first: 0, steps: [0, 0, steps[0] as isize, steps[1] as isize] };
    let form = KernelForm::Product {
        batch: [1, 1],
        size: [rows, outputs, inputs],
        operands: [matrix(0, [inputs, 1]), matrix(1, [1, inputs]), matrix(0, [outputs, 1])],
        alpha: 1.0,
        epilogue,
    };
    Ok(Some(form))
}

/// Chooses the kernel of the host.
fn bind_sums(
    signature: &Signature<'_>,
    epilogue: Epilogue,
    chain: Option<FusedChain>,
) -> Result<Box<dyn Kernel>, OpError> {
    let [outputs, inputs] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    let rows = signature.outputs[0].shape.size() / outputs.max(1);
    let size = [rows, inputs, outputs];
    match signature.inputs[0].dtype {
        DType::F32 if is_deep(size) => Ok(Box::new(DeepDense { plain: PlainDense::new(size, epilogue), chain })),
        DType::F32 => {
            let chain_ps = chain.as_ref().map_or(0, |chain| chain.picoseconds(signature));
            let product = DenseProduct::choose(size, &signature.options);
            let form = DenseForm { size, from_lines: false, to_lines: false };
            Ok(Box::new(Dense { product, form, epilogue, chain, chain_ps }))
        }
        DType::F64 => Ok(Box::new(PlainDense::<f64>::new(size, epilogue))),
        other => Err(type_error(format!(
            "dtype {other} is not supported by dense layers on the CPU, only float32, float64 and float16; \
             convert with astype"
        ))),
    }
}

/// Whether sums are so long, and outputs so few, that packed weights would take many times the
/// memory of the weights.
fn is_deep([rows, inputs, outputs]: [usize; 3]) -> bool {
    outputs < LEAST_OUTPUTS && Gemm::new(rows, outputs, inputs).is_deep()
}

/// Outputs that fill a panel of packed weights.
const LEAST_OUTPUTS: usize = 16;

/// The size of a dense layer on tiles, and what it reads and leaves in lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseForm {
    /// rows, inputs, outputs
    pub size: [usize; 3],
    /// whether data is in lines
    pub from_lines: bool,
    /// whether the result is in lines
    pub to_lines: bool,
}

impl DenseForm {
    /// The size of a dense layer of float32 whose types are these, if it runs on tiles; data and the
    /// result are rows.
    pub fn on_tiles(signature: &Signature<'_>) -> Option<DenseForm> {
        let ([data, weight, ..], [out]) = (signature.inputs, signature.outputs) else { return None };
        let [outputs, inputs] = weight.shape[..] else { return None };
        let size = [out.shape.size() / outputs.max(1), inputs, outputs];
        let single = [data, weight, out].iter().all(|t| t.dtype == DType::F32);
        let on_tiles = single
            && !is_deep(size)
            && matches!(DenseProduct::choose(size, &signature.options), DenseProduct::Tiles(_));
        on_tiles.then_some(DenseForm { size, from_lines: false, to_lines: false })
    }
}

/// A dense layer on tiles that reads or leaves lines.
pub(crate) fn bind_dense_in_lines(
    signature: &Signature<'_>,
    form: DenseForm,
    epilogue: Epilogue,
    chain: Option<FusedChain>,
) -> Result<Box<dyn Kernel>, OpError> {
    let chain_ps = chain.as_ref().map_or(0, |chain| chain.picoseconds(signature));
    match DenseProduct::choose(form.size, &signature.options) {
        product @ DenseProduct::Tiles(_) => Ok(Box::new(Dense { product, form, epilogue, chain, chain_ps })),
        _ => Err(not_implemented("lines are for layers on tiles, which this processor or this layer has not")),
    }
}

/// How a dense layer multiplies its rows by packed weights.
enum DenseProduct {
    /// Product in float32, on weights in float32 or in fewer bytes.
    Single(Sgemm),
    /// Product of pairs of bf16.
    Pairs(Bf16Gemm),
    /// Product on the tiles of AMX, in float32 or bf16.
    Tiles(AmxGemm),
}

impl DenseProduct {
    fn choose([rows, inputs, outputs]: [usize; 3], options: &KernelOptions) -> DenseProduct {
        let (isa, precision) = (options.isa, options.precision);
        if precision == Precision::W8 {
            return DenseProduct::Single(Sgemm::with_small_weights(rows, outputs, inputs, isa, SmallWeights::Int8));
        }
        let tiles = (options.tiles && isa == Isa::Avx512).then(|| AmxGemm::new(rows, outputs, inputs, precision));
        if let Some(gemm) = tiles.flatten() {
            return DenseProduct::Tiles(gemm);
        }
        // Where products of pairs are slow, weights of half the bytes pay for few rows alone.
        let pairs = precision == Precision::Bf16 && (pairs_are_fast() || rows < FEW_ROWS);
        match pairs.then(|| Bf16Gemm::new(rows, outputs, inputs, isa)).flatten() {
            Some(gemm) => DenseProduct::Pairs(gemm),
            None => DenseProduct::Single(match options.small_weights(rows) {
                Some(small) => Sgemm::with_small_weights(rows, outputs, inputs, isa, small),
                None => Sgemm::with_weights(rows, outputs, inputs, isa),
            }),
        }
    }

    fn packed_len(&self) -> usize {
        match self {
            DenseProduct::Single(gemm) => gemm.packed_len(),
            DenseProduct::Pairs(gemm) => gemm.packed_len(),
            DenseProduct::Tiles(gemm) => gemm.packed_len(),
        }
    }

    fn workspace_len(&self) -> usize {
        match self {
            DenseProduct::Single(gemm) => gemm.workspace_len(),
            DenseProduct::Pairs(gemm) => gemm.scratch_len(),
            DenseProduct::Tiles(gemm) => gemm.workspace_len(),
        }
    }

    fn pack(&self, par: &dyn Par, weight: &[f32], inputs: usize, out: &mut [f32]) {
        let columns = Matrix::rows(weight, inputs).transposed();
        match self {
            DenseProduct::Single(gemm) => gemm.pack_in_parallel(par, columns, out),
            DenseProduct::Pairs(gemm) => gemm.pack(weight, out),
            DenseProduct::Tiles(gemm) => gemm.pack(par, columns, out),
        }
    }

    /// Name in plans and in the keys of packed weights.
    fn name(&self) -> String {
        match self {
            DenseProduct::Single(gemm) => {
                let bits = if gemm.is_compact() { ", 28 bits a weight" } else { "" };
                let small = gemm.small_weights().map_or(String::new(), |small| format!("{} ", small.name()));
                format!("{small}{}{bits}", gemm.isa())
            }
            DenseProduct::Pairs(_) => "bf16 avx512".to_owned(),
            DenseProduct::Tiles(gemm) => match gemm.precision() {
                Precision::Single | Precision::W8 => "amx".to_owned(),
                Precision::Bf16 => "bf16 amx".to_owned(),
            },
        }
    }

    /// Multiply-adds in a nanosecond.
    fn rate(&self) -> u64 {
        match self {
            DenseProduct::Single(gemm) => match gemm.isa() {
                Isa::Avx512 => 115,
                Isa::Avx2 => 60,
                Isa::Portable | Isa::Neon => 15,
            },
            DenseProduct::Pairs(_) if pairs_are_fast() => 230,
            DenseProduct::Pairs(_) => 45,
            DenseProduct::Tiles(gemm) => match gemm.precision() {
                Precision::Single | Precision::W8 => 150,
                Precision::Bf16 => 600,
            },
        }
    }
}

/// Fewer rows than this take the time in which their weights arrive.
const FEW_ROWS: usize = 16;

/// A dense layer on packed weights.
struct Dense {
    product: DenseProduct,
    form: DenseForm,
    epilogue: Epilogue,
    /// Functions that are applied last, and the time that they take for an element.
    chain: Option<FusedChain>,
    chain_ps: u64,
}

impl Dense {
    /// Elements of memory that a call needs: lines that are given need no other.
    fn workspace_len(&self) -> usize {
        if self.form.from_lines { 0 } else { self.product.workspace_len() }
    }

    /// Whether the function is one that products in bf16 have in their precision.
    fn rounds_gelu(&self) -> bool {
        let rounds = matches!(&self.product, DenseProduct::Tiles(gemm) if gemm.precision() == Precision::Bf16);
        rounds && self.chain.as_ref().and_then(FusedChain::only) == Some(Unary::Gelu)
    }

    /// The epilogue of a product on tiles, which has a function of its own for what rounds.
    fn tile_epilogue<'a>(&self, epilogue: gemm::Epilogue<'a>) -> TileEpilogue<'a> {
        let mut epilogue = TileEpilogue::from(epilogue);
        if self.rounds_gelu() {
            epilogue.gelu = true;
            epilogue.exact.function = None;
        }
        epilogue
    }
}

impl Kernel for Dense {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, ..], [out], Some(packed)) = (call.inputs, &mut *call.outputs, call.packed) else {
            return Err(wrong_arity());
        };
        let [_, inputs, outputs] = self.form.size;
        let function = self.chain.as_ref().map(|chain| |x: &mut [f32]| chain.apply(x));
        let epilogue = gemm::Epilogue {
            bias: operand(call.inputs, self.epilogue.bias.then_some(2))?,
            residual: operand(call.inputs, self.epilogue.residual_at())?,
            activation: self.epilogue.activation.fast(),
            function: function.as_ref().map(|f| ElementFunction(f)),
        };
        let packed = packed_elements(packed, self.product.packed_len())?;
        let workspace = scratch(call.workspace, self.workspace_len())?;
        match &self.product {
            DenseProduct::Single(gemm) => {
                let (x, out) = (elements(data)?, elements_mut::<f32>(out)?);
                gemm.run(Matrix::rows(x, inputs), packed, epilogue, out, outputs, workspace, call.par);
            }
            DenseProduct::Pairs(gemm) => {
                let (x, out) = (elements(data)?, elements_mut::<f32>(out)?);
                gemm.run(x, packed, epilogue, out, outputs, workspace, call.par);
            }
            DenseProduct::Tiles(gemm) => {
                let epilogue = self.tile_epilogue(epilogue);
                let target = match self.form.to_lines {
                    true => Target::Lines(elements_mut(out)?),
                    false => Target::Rows { c: elements_mut(out)?, stride: outputs },
                };
                match self.form.from_lines {
                    true => gemm.run_lines(elements(data)?, packed, epilogue, target, call.par),
                    false => gemm.run(elements(data)?, packed, epilogue, target, workspace, call.par),
                }
            }
        }
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.workspace_len() * size_of::<f32>()
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        let chain = self.chain.as_ref().map_or(String::new(), |chain| format!(", then {}", chain.describe()));
        let (from, to) =
            (if self.form.from_lines { " from lines" } else { "" }, if self.form.to_lines { " to lines" } else { "" });
        format!("dense {}{from}{to}{chain}", self.product.name())
    }

    /// Few rows take as long as the weights take to arrive, at 42 bytes per nanosecond.
    fn cost_ns(&self) -> u64 {
        let [rows, _, outputs] = self.form.size;
        let chain = (rows as u64 * outputs as u64).saturating_mul(self.chain_ps) / 1_000;
        1_000 + (multiply_adds(self.form.size) / self.product.rate()).max(self.bytes() as u64 / 42) + chain
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(multiply_adds(self.form.size))
    }
}

impl Packing for Dense {
    fn inputs(&self) -> &[usize] {
        &[1]
    }

    fn bytes(&self) -> usize {
        self.product.packed_len() * size_of::<f32>()
    }

    fn pack(&self, par: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [weight] = inputs else { return Err(wrong_arity()) };
        let out = scratch(out, self.product.packed_len())?;
        self.product.pack(par, elements(weight)?, self.form.size[1], out);
        Ok(())
    }

    fn key(&self) -> String {
        let [_, inputs, outputs] = self.form.size;
        format!("dense {} {inputs}x{outputs}", self.product.name())
    }

    fn unpacker(&self) -> Option<Box<dyn Unpack>> {
        match self.product {
            DenseProduct::Single(gemm) if gemm.small_weights().is_none() => Some(Box::new(gemm)),
            DenseProduct::Tiles(gemm) if gemm.precision() == Precision::Single => Some(Box::new(gemm)),
            DenseProduct::Single(_) | DenseProduct::Pairs(_) | DenseProduct::Tiles(_) => None,
        }
    }
}

impl Unpack for Sgemm {
    fn unpack(&self, packed: &[u8], rows: Range<usize>, weights: &mut [f32]) -> Result<(), OpError> {
        Sgemm::unpack(self, packed_elements(packed, self.packed_len())?, rows, weights);
        Ok(())
    }
}

impl Unpack for AmxGemm {
    fn unpack(&self, packed: &[u8], rows: Range<usize>, weights: &mut [f32]) -> Result<(), OpError> {
        AmxGemm::unpack(self, packed_elements(packed, self.packed_len())?, rows, weights);
        Ok(())
    }
}

fn multiply_adds(size: [usize; 3]) -> u64 {
    size.iter().fold(1usize, |n, s| n.saturating_mul(*s)) as u64
}

/// Any dense layer in plain code.
struct PlainDense<T> {
    /// rows, inputs, outputs
    size: [usize; 3],
    epilogue: Epilogue,
    element: std::marker::PhantomData<fn(T)>,
}

impl<T> PlainDense<T> {
    fn new(size: [usize; 3], epilogue: Epilogue) -> PlainDense<T> {
        PlainDense { size, epilogue, element: std::marker::PhantomData }
    }
}

impl<T: Float> Kernel for PlainDense<T> {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, weight, ..], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let bias = operand(call.inputs, self.epilogue.bias.then_some(2))?;
        let residual = operand(call.inputs, self.epilogue.residual_at())?;
        let out = elements_mut::<T>(out)?;
        fully_connected(call.par, elements::<T>(data)?, elements::<T>(weight)?, bias, self.size, out);
        self.epilogue.apply(call.par, residual, out);
        Ok(())
    }

    fn describe(&self) -> String {
        "dense plain".to_owned()
    }

    fn cost_ns(&self) -> u64 {
        500 + multiply_adds(self.size) / 2
    }
}

/// A dense layer in float32 whose weights are not packed as a whole.
struct DeepDense {
    plain: PlainDense<f32>,
    /// Functions that are applied last.
    chain: Option<FusedChain>,
}

impl Kernel for DeepDense {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        self.plain.run(call)?;
        if let (Some(chain), [out]) = (&self.chain, &mut *call.outputs) {
            chain.apply(elements_mut(out)?);
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let chain = self.chain.as_ref().map_or(String::new(), |chain| format!(", then {}", chain.describe()));
        format!("dense deep{chain}")
    }

    fn cost_ns(&self) -> u64 {
        self.plain.cost_ns()
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(multiply_adds(self.plain.size))
    }
}
