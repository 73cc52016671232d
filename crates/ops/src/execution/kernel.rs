//! Kernels as plans see them: bound to types, runnable any number of times from any thread.

use super::RandomKey;
use super::cost::unknown_ns;
use crate::definition::{Attrs, OpDef};
use mxrt_engine::OpError;
use mxrt_kernels::amx;
use mxrt_kernels::conv::{ConvSignature, ConvTable, Precision, Winograd};
use mxrt_kernels::gemm::SmallWeights;
use mxrt_kernels::int8;
use mxrt_kernels::isa::{Isa, has_bf16, pairs_are_fast};
use mxrt_kernels::par::Par;
use mxrt_tensor::{TensorMut, TensorRef, TensorType};
use std::ops::Range;

/// Choices that hold for a whole plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelOptions {
    /// transforms of convolutions that are allowed: 0 none, 2 Winograd's up to F(2,3), 4 all
    pub winograd: u8,
    /// instruction set of kernels that have variants for several
    pub isa: Isa,
    /// whether products run on the tiles of AMX, if the processor has some
    pub tiles: bool,
    /// precision of the numbers that convolutions and dense layers multiply, and that weights of
    /// dense and recurrent layers are stored in
    pub precision: Precision,
    /// whether the precision was chosen for this processor
    pub precision_chosen: bool,
    /// measured choices of convolutions, which take precedence over the rules
    pub tuned: Option<&'static ConvTable>,
}

impl Default for KernelOptions {
    fn default() -> Self {
        let (isa, precision) = (Isa::detect(), Precision::Single);
        KernelOptions { winograd: 4, isa, tiles: true, precision, precision_chosen: false, tuned: None }
    }
}

impl KernelOptions {
    /// Chooses kernels of an instruction set: one of [`Isa`]'s names, or `amx` for AVX-512 with
    /// tiles. The error says that the name is unknown, or that this processor lacks the set.
    pub fn on(self, isa: &str) -> Result<KernelOptions, String> {
        let best = if amx::is_available() { "amx" } else { Isa::detect().name() };
        let absent = || format!("this processor does not have it; its best is {best}");
        if isa == "amx" {
            return if best == isa {
                Ok(KernelOptions { isa: Isa::Avx512, tiles: true, ..self })
            } else {
                Err(absent())
            };
        }
        let isa = isa.parse::<Isa>().map_err(|error| format!("{error}, amx"))?;
        if isa.is_available() { Ok(KernelOptions { isa, tiles: false, ..self }) } else { Err(absent()) }
    }

    /// The precision that suits this processor: bf16 where layers run on tiles, else float32.
    pub fn with_chosen_precision(self) -> KernelOptions {
        let precision = if self.has_tiles() { Precision::Bf16 } else { Precision::Single };
        KernelOptions { precision, precision_chosen: true, ..self }
    }

    /// Whether layers may run on tiles. Asks the system to permit them.
    pub fn has_tiles(&self) -> bool {
        self.tiles && self.isa == Isa::Avx512 && amx::is_permitted()
    }

    /// The instructions that multiply bytes.
    pub fn byte_level(&self) -> int8::Level {
        int8::Level::of(self.isa, self.tiles)
    }

    /// The form in fewer bytes of weights that meet this number of rows. bf16 is for few rows: then
    /// reading weights takes the time.
    pub fn small_weights(&self, rows: usize) -> Option<SmallWeights> {
        match self.precision {
            Precision::Single => None,
            Precision::Bf16 => SmallWeights::suits_rows(rows).then_some(SmallWeights::Bf16),
            Precision::W8 => Some(SmallWeights::Int8),
        }
    }

    /// The transforms that `winograd` allows.
    pub fn transforms(&self) -> Winograd {
        match self.winograd {
            0 | 1 => Winograd::Off,
            2 | 3 => Winograd::F2,
            _ => Winograd::F4,
        }
    }

    /// Remarks on the options for readers of the plan.
    pub fn notes(&self) -> impl Iterator<Item = &'static str> {
        let has = self.isa == Isa::Avx512 && has_bf16();
        let note = match (self.precision, self.precision_chosen) {
            (Precision::Bf16, true) => Some(
                "precision auto: bf16, because this processor has tiles (AMX); \
                 precision default computes in float32",
            ),
            (Precision::Single, true) => Some(
                "precision auto: float32, because there are no tiles (AMX) to use; \
                 precision bf16 rounds where that is faster",
            ),
            (Precision::Single, false) => None,
            (Precision::W8, _) => Some(
                "precision w8: dense and recurrent layers store their weights in a byte each; \
                 everything else is computed in float32",
            ),
            (Precision::Bf16, false) if !has => Some(
                "precision bf16: computed in float32, because there is no AVX512-BF16 to compute it with; \
                     dense and recurrent layers of few rows store their weights in bf16",
            ),
            (Precision::Bf16, false) if pairs_are_fast() || self.has_tiles() => None,
            (Precision::Bf16, false) => {
                Some("precision bf16: convolutions that take longer in bf16 on this processor are computed in float32")
            }
        };
        note.into_iter()
    }
}

/// Complete types of the inputs and outputs of a node.
pub struct Signature<'a> {
    /// types of the inputs
    pub inputs: &'a [TensorType],
    /// types of the visible outputs
    pub outputs: &'a [TensorType],
    /// plan-wide choices
    pub options: KernelOptions,
}

/// Everything a kernel touches during one execution.
pub struct KernelCall<'a, 'o> {
    /// splits loops over idle cores
    pub par: &'a dyn Par,
    /// contents of the inputs
    pub inputs: &'a [TensorRef<'a>],
    /// outputs to be filled completely
    pub outputs: &'a mut [TensorMut<'o>],
    /// [`Kernel::workspace`] bytes, 64-byte aligned, of arbitrary content
    pub workspace: &'a mut [u8],
    /// the inputs named by [`Kernel::packing`] in packed form; they remain in `inputs` as well
    pub packed: Option<&'a [u8]>,
    /// piece of the random stream for this execution, for random operators
    pub random: Option<RandomKey>,
    /// the input whose content is in output 0, to be overwritten there; its entry in `inputs` has
    /// no content
    pub shared: Option<usize>,
}

/// An operator bound to types. It is immutable, and results never depend on the number of threads
/// that `par` uses.
pub trait Kernel: Send + Sync {
    /// Computes the outputs.
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError>;

    /// Bytes of scratch memory needed for one execution.
    fn workspace(&self) -> usize {
        0
    }

    /// Inputs (usually weights) that the kernel reads in a form that is packed once for all
    /// executions.
    fn packing(&self) -> Option<&dyn Packing> {
        None
    }

    /// Inputs of the size of output 0, any one of which the kernel can overwrite
    /// ([`KernelCall::shared`]).
    fn in_place(&self) -> &[usize] {
        &[]
    }

    /// Description of the kernel, for `net.plan()` and the profiler.
    fn describe(&self) -> String {
        "plain".to_owned()
    }

    /// Estimated cost in nanoseconds on one core; small plans run in the calling thread.
    fn cost_ns(&self) -> u64 {
        1_000
    }

    /// Multiply-adds that the definition takes, if these determine the time.
    fn multiply_adds(&self) -> Option<u64> {
        None
    }

    /// Signature of the kernel in tables of measured convolutions.
    fn convolution(&self) -> Option<ConvSignature> {
        None
    }
}

/// Rearranges inputs into the form a kernel reads fastest.
pub trait Packing: Send + Sync {
    /// Positions of the inputs that are packed together. The kernel reads them in no other form.
    fn inputs(&self) -> &[usize];
    /// Bytes of the packed form.
    fn bytes(&self) -> usize;
    /// Fills `out` (64-byte aligned, [`Packing::bytes`] long) from the inputs named by
    /// [`Packing::inputs`], in that order.
    fn pack(&self, par: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError>;
    /// A key of the packing. Equal keys mean equal packings, which plans share.
    fn key(&self) -> String;
    /// Returns the inverse for the one packed input. `None` if packing loses information.
    fn unpacker(&self) -> Option<Box<dyn Unpack>> {
        None
    }
}

/// Gives packed weights back, bit for bit.
pub trait Unpack: Send + Sync {
    /// Writes some rows (of the first axis) of the weights.
    fn unpack(&self, packed: &[u8], rows: Range<usize>, weights: &mut [f32]) -> Result<(), OpError>;
}

type Run = dyn Fn(&mut KernelCall<'_, '_>) -> Result<(), OpError> + Send + Sync;

/// One type for all functions: there are hundreds, and each would be compiled with every method.
struct FnKernel {
    name: String,
    run: Box<Run>,
    cost_ns: u64,
    in_place: Vec<usize>,
}

impl Kernel for FnKernel {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        (self.run)(call)
    }

    fn describe(&self) -> String {
        self.name.clone()
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    fn in_place(&self) -> &[usize] {
        &self.in_place
    }
}

/// Chooses the kernel of an operator for complete types; the one place where that happens. Devices
/// with kernels of their own bind theirs by its form
/// ([`bind_device_kernel`](crate::bind_device_kernel)).
pub fn bind_kernel(def: &OpDef, attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    (def.bind)(attrs, signature)
}

/// Makes a kernel of a function of which nothing is known except its types.
pub fn kernel_fn<F>(signature: &Signature<'_>, run: F) -> Box<dyn Kernel>
where
    F: Fn(&mut KernelCall<'_, '_>) -> Result<(), OpError> + Send + Sync + 'static,
{
    plain_kernel(signature, Box::new(run))
}

/// Makes a kernel of a function, with a name for `net.plan()` and its estimated time in
/// nanoseconds.
pub fn costed_kernel_fn<F>(name: impl Into<String>, cost_ns: u64, run: F) -> Box<dyn Kernel>
where
    F: Fn(&mut KernelCall<'_, '_>) -> Result<(), OpError> + Send + Sync + 'static,
{
    boxed_kernel(name.into(), cost_ns, Vec::new(), Box::new(run))
}

/// Makes a kernel of a function that can overwrite any one of these inputs, with its name and time.
pub fn in_place_kernel_fn<F>(name: impl Into<String>, cost_ns: u64, in_place: Vec<usize>, run: F) -> Box<dyn Kernel>
where
    F: Fn(&mut KernelCall<'_, '_>) -> Result<(), OpError> + Send + Sync + 'static,
{
    boxed_kernel(name.into(), cost_ns, in_place, Box::new(run))
}

#[inline(never)]
fn plain_kernel(signature: &Signature<'_>, run: Box<Run>) -> Box<dyn Kernel> {
    boxed_kernel("plain".to_owned(), unknown_ns(signature), Vec::new(), run)
}

#[inline(never)]
fn boxed_kernel(name: String, cost_ns: u64, in_place: Vec<usize>, run: Box<Run>) -> Box<dyn Kernel> {
    Box::new(FnKernel { name, run, cost_ns, in_place })
}
