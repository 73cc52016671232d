//! A convolution prepared for one signature by the method that was chosen for it.

use crate::blocked::{Blocked, BlockedMut, BlockedShape, Halo};
use crate::cache_class::CacheClass;
use crate::conv::method::{Method, PreparedConv};
use crate::conv::operands::{ConvEpilogue, ConvJob, ExpectedOperands};
use crate::conv::options::{ConvOptions, Precision};
use crate::conv::params::Conv2dParams;
use crate::conv::select::choose;
use crate::conv::table::ConvSignature;
use crate::isa::Isa;
use crate::par::Par;
use crate::vector_units::VectorUnits;
use std::ops::Range;
use std::sync::Arc;

/// Elements of an image. Offsets inside it are kept in 32 bits; there is room for a halo larger
/// than the one asked for.
pub(super) const MOST_ELEMENTS: usize = u32::MAX as usize / 4;

/// Whether an image with this number of channels can have offsets; sizes that a padding makes are
/// not bounded before.
fn has_offsets(channels: usize, size: [usize; 2]) -> bool {
    let elements = size.into_iter().try_fold(channels, usize::checked_mul);
    elements.is_some_and(|elements| elements <= MOST_ELEMENTS)
}

/// Rows and columns of the output; none where no method takes the convolution.
fn out_size(params: &Conv2dParams, [n, c, h, w]: [usize; 4]) -> Option<[usize; 2]> {
    if !params.is_sound() || c != params.in_channels || n == 0 || h == 0 || w == 0 {
        return None;
    }
    let out = params.output_size([h, w])?;
    let padded = [h + 2 * params.pad[0], w + 2 * params.pad[1]];
    (has_offsets(c, padded) && has_offsets(params.out_channels, out)).then_some(out)
}

/// A convolution prepared for one input shape and instruction set.
#[derive(Clone, Debug)]
pub struct ConvKernel {
    params: Conv2dParams,
    isa: Isa,
    input: BlockedShape,
    output: BlockedShape,
    method: Method,
    prepared: Arc<dyn PreparedConv>,
    /// Whether a table of the caller's chose it.
    tuned: bool,
    /// The precision that was asked for.
    precision: Precision,
}

impl ConvKernel {
    /// Chooses the method for an input of `[n, c, h, w]`; none where the kernel does not fit the
    /// image, the parameters contradict each other or the tensor is too large for 32-bit offsets
    /// (the plain kernel takes those).
    pub fn select(params: Conv2dParams, shape: [usize; 4], isa: Isa, options: ConvOptions) -> Option<ConvKernel> {
        let isa = isa.or_best();
        let (units, cache) = (VectorUnits::detect(isa), CacheClass::detect());
        let signature = ConvSignature { isa, units, cache, precision: options.precision, params, shape };
        let choice = choose(&signature, out_size(&params, shape)?, &options);
        let kernel = ConvKernel::of(&signature, choice.method, options.in_blocks)?;
        Some(ConvKernel { tuned: choice.tuned, precision: options.precision, ..kernel })
    }

    /// Makes a kernel with a given method, which must fit.
    pub(super) fn of(signature: &ConvSignature, method: Method, in_blocks: bool) -> Option<ConvKernel> {
        let ConvSignature { params, shape, isa, .. } = *signature;
        ConvKernel::with(params, shape, isa.or_best(), method, |out| method.0.prepare(signature, out, in_blocks))
    }

    /// Makes a kernel with the result of `prepare` for the rows and columns of the output.
    pub(super) fn with(
        params: Conv2dParams,
        shape: [usize; 4],
        isa: Isa,
        method: Method,
        prepare: impl FnOnce([usize; 2]) -> Arc<dyn PreparedConv>,
    ) -> Option<ConvKernel> {
        let out = out_size(&params, shape)?;
        let [n, c, h, w] = shape;
        let prepared = prepare(out);
        let halo = prepared.input_halo([h, w]);
        let input = if prepared.takes_planes() { BlockedShape::planar } else { BlockedShape::new };
        let input = input(n, c, h, w, halo);
        let output = BlockedShape::new(n, params.out_channels, out[0], out[1], Halo::default());
        if input.image_len().max(output.image_len()) > MOST_ELEMENTS {
            return None;
        }
        Some(ConvKernel { params, isa, input, output, method, prepared, tuned: false, precision: Precision::Single })
    }

    /// The method that was chosen.
    pub fn method(&self) -> Method {
        self.method
    }

    pub(super) fn prepared(&self) -> &dyn PreparedConv {
        self.prepared.as_ref()
    }

    /// Whether a table of measured choices ([`ConvOptions::tuned`]) chose it.
    pub fn is_tuned(&self) -> bool {
        self.tuned
    }

    /// The algorithm and its tile, such as `direct 14x2 avx512`.
    pub fn name(&self) -> String {
        self.prepared.name()
    }

    /// The instruction set it was prepared for.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The signature that selection looked for in its tables. A method that rounds nothing can have
    /// been chosen for either precision; the one asked for is given.
    pub fn signature(&self) -> ConvSignature {
        let ConvKernel { isa, precision, params, input, .. } = *self;
        let (units, cache) = (VectorUnits::detect(isa), CacheClass::detect());
        ConvSignature { isa, units, cache, precision, params, shape: [input.n, input.c, input.h, input.w] }
    }

    /// The parameters of the convolution.
    pub fn params(&self) -> &Conv2dParams {
        &self.params
    }

    /// The input with the least halo that it reads; any larger halo will do.
    pub fn input_shape(&self) -> BlockedShape {
        self.input
    }

    /// The output without halo; it may be given any halo, which a run fills with zeros.
    pub fn output_shape(&self) -> BlockedShape {
        self.output
    }

    /// Whether input, residual and output may be in lines of bf16
    /// ([`BlockedShape::lines`]) instead of blocks, each of them.
    pub fn takes_lines(&self) -> bool {
        self.prepared.takes_lines()
    }

    /// Elements of the packed weights.
    pub fn packed_len(&self) -> usize {
        self.prepared.packed_len()
    }

    /// The form of packed weights, whatever the image: kernels with equal forms pack the same
    /// weights to the same bits, and run on each other's.
    pub fn packing(&self) -> String {
        let form = self.prepared.packing();
        let Conv2dParams { in_channels, out_channels, kernel: [height, width], groups, .. } = self.params;
        format!("{form}, {in_channels} to {out_channels} channels, k{height}x{width} g{groups}")
    }

    /// Packs weights `[out_channels][in_channels / groups][height][width]`.
    ///
    /// # Panics
    /// If `weights` or `packed` does not have the length that the parameters and
    /// [`packed_len`](Self::packed_len) say.
    pub fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let (need, room) = (self.params.weight_len(), self.packed_len());
        assert_eq!(weights.len(), need, "elements of the weights of {:?}", self.params);
        assert!(packed.len() >= room, "packing needs {room} elements, got {}", packed.len());
        self.prepared.pack(weights, packed);
    }

    /// Whether packing keeps the weights unchanged, so that [`unpack`](Self::unpack) restores them
    /// bit for bit.
    pub fn can_unpack(&self) -> bool {
        self.prepared.unpacker().is_some()
    }

    /// The weights of some output channels as [`pack`](Self::pack) got them.
    ///
    /// # Panics
    /// If they cannot be had ([`can_unpack`](Self::can_unpack)), or an operand is shorter than the
    /// parameters say.
    pub fn unpack(&self, packed: &[f32], outputs: Range<usize>, weights: &mut [f32]) {
        match self.prepared.unpacker() {
            Some(unpacker) => unpacker.unpack(packed, outputs, weights),
            None => panic!("{} does not keep the weights as they are", self.name()),
        }
    }

    /// Elements of scratch that [`run`](Self::run) needs, with any content; zero for most
    /// algorithms.
    pub fn scratch_len(&self) -> usize {
        self.prepared.scratch_len()
    }

    /// Convolves; writes all of `y`, its halo included.
    ///
    /// # Panics
    /// If an operand does not have the shape that [`input_shape`](Self::input_shape) and
    /// [`output_shape`](Self::output_shape) say, up to a larger halo, or if the scratch is too
    /// short.
    pub fn run(
        &self,
        x: Blocked<'_>,
        packed: &[f32],
        epilogue: ConvEpilogue<'_>,
        y: &mut BlockedMut<'_>,
        scratch: &mut [f32],
        par: &dyn Par,
    ) {
        let need = self.scratch_len();
        assert!(scratch.len() >= need, "{} needs {need} elements of scratch, got {}", self.name(), scratch.len());
        let scratch = &mut scratch[..need];
        let lines = [self.takes_lines(); 2];
        let expected = ExpectedOperands { x: self.input, y: self.output, packed_len: self.packed_len(), lines };
        let job = ConvJob::new(&expected, x, packed, epilogue, y);
        self.prepared.run(&job, scratch, par);
    }
}
