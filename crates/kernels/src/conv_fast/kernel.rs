//! Selection of an algorithm, and the one interface to all of them.

use super::blocked::{Blocked, BlockedMut, BlockedShape, Halo};
use super::convert::{from_blocked, to_blocked};
use super::depthwise::Depthwise;
use super::direct::Direct;
use super::job::{ConvEpilogue, Expected, Job, Residual};
use super::params::Conv2dParams;
use crate::activation::Activation;
use crate::isa::Isa;
use crate::par::Par;

/// How much arithmetic may be saved by transforming 3x3 filters.
///
/// Winograd convolutions differ from direct ones in rounding (errors stay near 1e-6 of the largest output), spread an
/// infinity or NaN over the outputs of its tile, and let an outlier of size S add about 4e-7 S to its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Winograd {
    /// Direct convolution only.
    Off,
    /// F(2,3): outputs in 2x2 tiles.
    F2,
    /// F(4,3) where it pays: outputs in 4x4 tiles.
    #[default]
    F4,
}

/// What selection may choose from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConvOptions {
    /// Which transforms are allowed.
    pub winograd: Winograd,
}

/// A convolution prepared for one input shape and instruction set.
#[derive(Clone, Debug)]
pub struct ConvKernel {
    params: Conv2dParams,
    isa: Isa,
    input: BlockedShape,
    output: BlockedShape,
    algorithm: Algorithm,
}

#[derive(Clone, Debug)]
enum Algorithm {
    Direct(Direct),
    Depthwise(Depthwise),
}

/// Operands of a run on NCHW tensors.
#[derive(Clone, Copy, Debug, Default)]
pub struct NchwEpilogue<'a> {
    /// One value per output channel.
    pub bias: Option<&'a [f32]>,
    /// A tensor of the output's size, added after the bias.
    pub residual: Option<&'a [f32]>,
    /// Applied last.
    pub activation: Activation,
}

/// Inputs with fewer channels than this are read as planes: blocks of 16 would be mostly empty.
const PLANAR_CHANNELS: usize = 8;

impl ConvKernel {
    /// Chooses the algorithm for an input of `[n, c, h, w]`; none where the kernel does not fit the image, the parameters
    /// contradict each other or the tensor is too large for 32-bit offsets (the plain kernel takes those).
    pub fn select(
        params: Conv2dParams,
        [n, c, h, w]: [usize; 4],
        isa: Isa,
        options: ConvOptions,
    ) -> Option<ConvKernel> {
        if !params.is_sound() || c != params.in_channels || n == 0 || h == 0 || w == 0 {
            return None;
        }
        let isa = isa.or_best();
        let out = params.output_size([h, w])?;
        let _ = options;
        let (algorithm, halo) = if Depthwise::fits(&params) {
            (Algorithm::Depthwise(Depthwise::new(params, out, isa)), params.halo([h, w], out))
        } else {
            let planar = c < PLANAR_CHANNELS;
            (Algorithm::Direct(Direct::new(params, out, planar, isa)), params.halo([h, w], out))
        };
        let planar = matches!(&algorithm, Algorithm::Direct(d) if d.takes_planes());
        let input = if planar { BlockedShape::planar(n, c, h, w, halo) } else { BlockedShape::new(n, c, h, w, halo) };
        let output = BlockedShape::new(n, params.out_channels, out[0], out[1], Halo::default());
        // Offsets inside an image are kept in 32 bits; leave room for a halo larger than the one asked for.
        if input.image_len().max(output.image_len()) > u32::MAX as usize / 4 {
            return None;
        }
        Some(ConvKernel { params, isa, input, output, algorithm })
    }

    /// The algorithm and its tile, such as `direct 14x2 avx512`.
    pub fn name(&self) -> String {
        match &self.algorithm {
            Algorithm::Direct(a) => a.name(),
            Algorithm::Depthwise(a) => a.name(),
        }
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
            Algorithm::Depthwise(a) => a.packed_len(),
        }
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
            Algorithm::Depthwise(a) => a.pack(weights, packed),
        }
    }

    /// Convolves; writes all of `y`, its halo included.
    ///
    /// # Panics
    /// If an operand does not have the shape that [`input_shape`](Self::input_shape) and
    /// [`output_shape`](Self::output_shape) say, up to a larger halo.
    pub fn run(
        &self,
        x: Blocked<'_>,
        packed: &[f32],
        epilogue: ConvEpilogue<'_>,
        y: &mut BlockedMut<'_>,
        par: &dyn Par,
    ) {
        let expected = Expected { x: self.input, y: self.output, packed_len: self.packed_len() };
        let job = Job::new(&expected, x, packed, epilogue, y);
        match &self.algorithm {
            Algorithm::Direct(a) => a.run(&job, par),
            Algorithm::Depthwise(a) => a.run(&job, par),
        }
    }

    /// Elements of workspace that [`run_nchw`](Self::run_nchw) needs.
    pub fn workspace_len(&self) -> usize {
        self.input.len().next_multiple_of(16) + self.output.len()
    }

    /// Convolves NCHW tensors, converting on the way in and out.
    ///
    /// # Panics
    /// If an operand does not have the length that its shape says, or the workspace is shorter than
    /// [`workspace_len`](Self::workspace_len).
    pub fn run_nchw(
        &self,
        x: &[f32],
        packed: &[f32],
        epilogue: NchwEpilogue<'_>,
        y: &mut [f32],
        workspace: &mut [f32],
        par: &dyn Par,
    ) {
        let need = self.workspace_len();
        assert!(workspace.len() >= need, "the workspace needs {need} elements, got {}", workspace.len());
        let (input, output) = workspace.split_at_mut(self.input.len().next_multiple_of(16));
        let mut blocked_x = BlockedMut::new(self.input, input);
        to_blocked(self.isa, x, &mut blocked_x, par);
        let mut blocked_y = BlockedMut::new(self.output, output);
        let residual = match epilogue.residual {
            Some(r) => {
                to_blocked(self.isa, r, &mut blocked_y, par);
                Residual::InPlace
            }
            None => Residual::None,
        };
        let inner = ConvEpilogue { bias: epilogue.bias, residual, activation: epilogue.activation };
        self.run(Blocked::new(self.input, blocked_x.data), packed, inner, &mut blocked_y, par);
        from_blocked(self.isa, Blocked::new(self.output, blocked_y.data), y, par);
    }
}
