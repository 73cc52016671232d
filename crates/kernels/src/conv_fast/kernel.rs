//! Selection of an algorithm, and the one interface to all of them.

use super::bf16::Bf16;
use super::blocked::{Blocked, BlockedMut, BlockedShape, Halo};
use super::depthwise::Depthwise;
use super::direct::Direct;
use super::job::{ConvEpilogue, Expected, Job};
use super::method::{ConvOptions, Method, Precision};
use super::params::Conv2dParams;
use super::select::{choose, prepare};
use super::table::ConvSignature;
use super::winograd::{AtLoad, InRegisters, Phases, Scheme};
use crate::cache_class::CacheClass;
use crate::gemm::tile::Elements;
use crate::isa::Isa;
use crate::par::Par;
use std::ops::Range;

/// Elements of an image. Offsets inside it are kept in 32 bits; there is room for a halo larger than the one asked for.
pub(super) const MOST_ELEMENTS: usize = u32::MAX as usize / 4;

/// Whether an image of so many channels can have offsets; sizes that a padding makes are not bounded before.
fn has_offsets(channels: usize, size: [usize; 2]) -> bool {
    let elements = size.into_iter().try_fold(channels, usize::checked_mul);
    elements.is_some_and(|elements| elements <= MOST_ELEMENTS)
}

/// A convolution prepared for one input shape and instruction set.
#[derive(Clone, Debug)]
pub struct ConvKernel {
    params: Conv2dParams,
    isa: Isa,
    input: BlockedShape,
    output: BlockedShape,
    algorithm: Algorithm,
    /// Whether a table of the caller's chose it.
    tuned: bool,
    /// The precision that was asked for.
    precision: Precision,
}

/// The algorithms; each knows how it packs weights and cuts its work.
#[derive(Clone, Debug)]
pub(super) enum Algorithm {
    Direct(Direct),
    Depthwise(Depthwise),
    AtLoad(AtLoad),
    InRegisters(InRegisters),
    Phases(Phases),
    Bf16(Bf16),
}

impl ConvKernel {
    /// Chooses the algorithm for an input of `[n, c, h, w]`; none where the kernel does not fit the image, the parameters
    /// contradict each other or the tensor is too large for 32-bit offsets (the plain kernel takes those).
    pub fn select(params: Conv2dParams, shape: [usize; 4], isa: Isa, options: ConvOptions) -> Option<ConvKernel> {
        let isa = isa.or_best();
        let signature = ConvSignature { isa, cache: CacheClass::detect(), precision: options.precision, params, shape };
        let mut tuned = false;
        let kernel = ConvKernel::with(params, shape, isa, |_, out| {
            let choice = choose(&signature, out, &options);
            tuned = choice.tuned;
            prepare(choice.method, &signature, out, options.in_blocks)
        })?;
        Some(ConvKernel { tuned, precision: options.precision, ..kernel })
    }

    /// The same with a method given; none where that is not among the candidates.
    pub(super) fn by_method(signature: &ConvSignature, method: Method) -> Option<ConvKernel> {
        let ConvSignature { params, shape, isa, .. } = *signature;
        ConvKernel::with(params, shape, isa.or_best(), |_, out| prepare(method, signature, out, false))
    }

    /// The same with the algorithm that `choose` makes for a number of images and the size of the output.
    pub(super) fn with(
        params: Conv2dParams,
        [n, c, h, w]: [usize; 4],
        isa: Isa,
        choose: impl FnOnce(usize, [usize; 2]) -> Algorithm,
    ) -> Option<ConvKernel> {
        if !params.is_sound() || c != params.in_channels || n == 0 || h == 0 || w == 0 {
            return None;
        }
        let out = params.output_size([h, w])?;
        let padded = [h + 2 * params.pad[0], w + 2 * params.pad[1]];
        if !has_offsets(c, padded) || !has_offsets(params.out_channels, out) {
            return None;
        }
        let algorithm = choose(n, out);
        let halo = match &algorithm {
            Algorithm::Direct(_) | Algorithm::Depthwise(_) | Algorithm::Bf16(_) => params.halo([h, w], out),
            Algorithm::AtLoad(a) => a.halo([h, w]),
            Algorithm::InRegisters(a) => a.halo([h, w]),
            Algorithm::Phases(a) => a.halo([h, w]),
        };
        let planar = match &algorithm {
            Algorithm::Direct(a) => a.takes_planes(),
            Algorithm::Phases(_) => true,
            _ => false,
        };
        let input = if planar { BlockedShape::planar(n, c, h, w, halo) } else { BlockedShape::new(n, c, h, w, halo) };
        let output = BlockedShape::new(n, params.out_channels, out[0], out[1], Halo::default());
        if input.image_len().max(output.image_len()) > MOST_ELEMENTS {
            return None;
        }
        Some(ConvKernel { params, isa, input, output, algorithm, tuned: false, precision: Precision::Single })
    }

    /// The method.
    pub fn method(&self) -> Method {
        match &self.algorithm {
            Algorithm::Direct(_) => Method::Direct,
            Algorithm::Depthwise(_) => Method::Depthwise,
            Algorithm::AtLoad(a) => match (a.scheme(), a.elements()) {
                (Scheme::F2, Elements::Single) => Method::F2,
                (Scheme::F2, Elements::Pairs) => Method::F2Bf16,
                (Scheme::F4, _) => Method::F4,
                (scheme, Elements::Single) if scheme.stride() == 1 => Method::Taps,
                (_, Elements::Single) => Method::Strided,
                (_, Elements::Pairs) => Method::StridedBf16,
            },
            Algorithm::InRegisters(_) => Method::Registers,
            Algorithm::Phases(_) => Method::Phases,
            Algorithm::Bf16(_) => Method::Bf16,
        }
    }

    pub(super) fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// Whether a table of measured choices ([`ConvOptions::tuned`]) chose it.
    pub fn is_tuned(&self) -> bool {
        self.tuned
    }

    /// The algorithm and its tile, such as `direct 14x2 avx512`.
    pub fn name(&self) -> String {
        match &self.algorithm {
            Algorithm::Direct(a) => a.name(),
            Algorithm::Bf16(a) => a.name(),
            Algorithm::Depthwise(a) => a.name(),
            Algorithm::AtLoad(a) => a.name(),
            Algorithm::InRegisters(a) => a.name(),
            Algorithm::Phases(a) => a.name(),
        }
    }

    /// The instruction set it was prepared for.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The signature that selection looked for in its tables. A method that rounds nothing can have been chosen for either
    /// precision; the one asked for is given.
    pub fn signature(&self) -> ConvSignature {
        let (cache, [n, c, h, w]) = (CacheClass::detect(), [self.input.n, self.input.c, self.input.h, self.input.w]);
        ConvSignature { isa: self.isa, cache, precision: self.precision, params: self.params, shape: [n, c, h, w] }
    }

    /// What it computes.
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

    /// Elements of the packed weights.
    pub fn packed_len(&self) -> usize {
        match &self.algorithm {
            Algorithm::Direct(a) => a.packed_len(),
            Algorithm::Bf16(a) => a.packed_len(),
            Algorithm::Depthwise(a) => a.packed_len(),
            Algorithm::AtLoad(a) => a.packed_len(),
            Algorithm::InRegisters(a) => a.packed_len(),
            Algorithm::Phases(a) => a.packed_len(),
        }
    }

    /// The form of packed weights, whatever the image: kernels with equal forms pack the same weights to the same bits, and run on
    /// each other's.
    pub fn packing(&self) -> String {
        let form = match &self.algorithm {
            Algorithm::Direct(a) => a.packing(),
            Algorithm::Bf16(a) => a.packing(),
            Algorithm::Depthwise(_) => "depthwise".to_owned(),
            Algorithm::AtLoad(a) => a.packing(),
            Algorithm::InRegisters(_) => "winograd in registers".to_owned(),
            Algorithm::Phases(a) => a.packing(),
        };
        let Conv2dParams { in_channels, out_channels, kernel: [height, width], groups, .. } = self.params;
        format!("{form}, {in_channels} to {out_channels} channels, k{height}x{width} g{groups}")
    }

    /// Packs weights `[out_channels][in_channels / groups][height][width]`.
    ///
    /// # Panics
    /// If `weights` or `packed` does not have the length that the parameters and [`packed_len`](Self::packed_len) say.
    pub fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let (need, room) = (self.params.weight_len(), self.packed_len());
        assert_eq!(weights.len(), need, "elements of the weights of {:?}", self.params);
        assert!(packed.len() >= room, "packing needs {room} elements, got {}", packed.len());
        match &self.algorithm {
            Algorithm::Direct(a) => a.pack(weights, packed),
            Algorithm::Bf16(a) => a.pack(weights, packed),
            Algorithm::Depthwise(a) => a.pack(weights, packed),
            Algorithm::AtLoad(a) => a.pack(weights, packed),
            Algorithm::InRegisters(a) => a.pack(weights, packed),
            Algorithm::Phases(a) => a.pack(weights, packed),
        }
    }

    /// Whether packing keeps the weights as they are, so that [`unpack`](Self::unpack) gives them back bit for bit.
    pub fn can_unpack(&self) -> bool {
        matches!(self.algorithm, Algorithm::Direct(_) | Algorithm::InRegisters(_))
    }

    /// The weights of some output channels as [`pack`](Self::pack) got them.
    ///
    /// # Panics
    /// If they cannot be had ([`can_unpack`](Self::can_unpack)), or an operand is shorter than the parameters say.
    pub fn unpack(&self, packed: &[f32], outputs: Range<usize>, weights: &mut [f32]) {
        match &self.algorithm {
            Algorithm::Direct(a) => a.unpack(packed, outputs, weights),
            Algorithm::InRegisters(a) => a.unpack(packed, outputs, weights),
            _ => panic!("{} does not keep the weights as they are", self.name()),
        }
    }

    /// Elements of scratch that [`run`](Self::run) needs, with any content; zero for most algorithms.
    pub fn scratch_len(&self) -> usize {
        match &self.algorithm {
            Algorithm::AtLoad(a) => a.scratch_len(),
            Algorithm::Bf16(a) => a.scratch_len(),
            _ => 0,
        }
    }

    /// Convolves; writes all of `y`, its halo included.
    ///
    /// # Panics
    /// If an operand does not have the shape that [`input_shape`](Self::input_shape) and
    /// [`output_shape`](Self::output_shape) say, up to a larger halo, or if the scratch is too short.
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
        let expected = Expected { x: self.input, y: self.output, packed_len: self.packed_len() };
        let job = Job::new(&expected, x, packed, epilogue, y);
        match &self.algorithm {
            Algorithm::Direct(a) => a.run(&job, par),
            Algorithm::Bf16(a) => a.run(&job, scratch, par),
            Algorithm::Depthwise(a) => a.run(&job, par),
            Algorithm::AtLoad(a) => a.run(&job, scratch, par),
            Algorithm::InRegisters(a) => a.run(&job, par),
            Algorithm::Phases(a) => a.run(&job, par),
        }
    }
}
