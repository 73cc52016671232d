//! Convolutions of plain tensors with one, two or three spatial axes, converted to blocks of
//! channels for the computation and back afterwards.
//!
//! A volume is a row of slices, each of them an image. The channels of all slices that an output
//! slice reads are contiguous, so they are the channels of one image, and the images of
//! neighbouring outputs overlap: a kernel of depth k over C channels is a kernel without depth over
//! k * C, for every algorithm. If the slices of a kernel do not touch (dilation) or channels fall
//! into groups, each slice of the kernel has its own pass, which adds to the results of the passes
//! before it.

use crate::activation::Activation;
use crate::blocked::convert::{Slices, slices_from_blocked, slices_to_blocked};
use crate::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape};
use crate::cache_class::CacheClass;
use crate::conv::kernel::{ConvKernel, MOST_ELEMENTS};
use crate::conv::method::Method;
use crate::conv::methods::direct::{self, Direct, PLANAR_CHANNELS};
use crate::conv::operands::{ConvEpilogue, Residual};
use crate::conv::options::ConvOptions;
use crate::conv::params::Conv2dParams;
use crate::conv::table::ConvSignature;
use crate::conv_plain::conv_size;
use crate::gemm::tile::Elements;
use crate::isa::Isa;
use crate::par::Par;
use std::ops::Range;
use std::sync::Arc;

/// Elements of a cache line.
const LINE: usize = 16;

/// Operands of a run on plain tensors.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainEpilogue<'a> {
    /// One value per output channel.
    pub bias: Option<&'a [f32]>,
    /// A tensor of the output's size, added after the bias.
    pub residual: Option<&'a [f32]>,
    /// Applied last.
    pub activation: Activation,
}

/// The parameters of a convolution along the third spatial axis, the first in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Slices of the kernel.
    pub kernel: usize,
    /// Slices between outputs.
    pub stride: usize,
    /// Slices between the kernel's.
    pub dilate: usize,
    /// Slices of zeros before and after.
    pub pad: usize,
}

impl Depth {
    /// The depth of images, which are volumes of one slice.
    pub const NONE: Depth = Depth { kernel: 1, stride: 1, dilate: 1, pad: 0 };

    /// Slices from the first that an output sees to the last.
    fn reach(&self) -> usize {
        (self.kernel - 1) * self.dilate + 1
    }
}

/// The slices that outputs read.
#[derive(Clone, Copy, Debug)]
struct Steps {
    /// Slices of a volume that the kernel reads, padding included.
    total: usize,
    /// Slices of an output.
    outs: usize,
    /// Distance from the first slice of an output to the first of the next.
    step: usize,
    /// Whether this also leads from one volume to the next.
    together: bool,
}

impl Steps {
    /// The steps for volumes of `size` slices; none if the kernel does not fit.
    fn new(depth: &Depth, size: usize) -> Option<Steps> {
        let outs = conv_size(size, depth.kernel, depth.stride, depth.pad, depth.dilate)?;
        let (reach, step) = (depth.reach(), depth.stride);
        Some(if outs == 1 {
            Steps { total: reach, outs, step: reach, together: true }
        } else if reach <= step {
            Steps { total: outs.checked_mul(step)?, outs, step, together: true }
        } else {
            Steps { total: (outs - 1) * step + reach, outs, step, together: false }
        })
    }
}

/// A convolution of plain tensors, prepared for one input shape and instruction set.
#[derive(Clone, Debug)]
pub struct PlainConv {
    /// Computes the output slices of a run.
    kernel: ConvKernel,
    depth: Depth,
    steps: Steps,
    /// The volumes of the input, and those of a run.
    volumes: usize,
    together: usize,
    /// A volume's slices, channels and the layout of one of them.
    size: usize,
    slice: BlockedShape,
    /// Slices that are one image; one or all of the kernel's.
    joined: usize,
}

impl PlainConv {
    /// Chooses what computes it for an input of `[n, c, d, h, w]`; none where
    /// [`ConvKernel::select`] has none.
    pub fn select(
        params: Conv2dParams,
        depth: Depth,
        [n, c, d, h, w]: [usize; 5],
        isa: Isa,
        options: ConvOptions,
    ) -> Option<PlainConv> {
        if n == 0 || c == 0 || c != params.in_channels {
            return None;
        }
        let (isa, steps) = (isa.or_best(), Steps::new(&depth, d)?);
        let together = if steps.together { n } else { 1 };
        let joined = if params.groups == 1 && depth.dilate == 1 { depth.kernel } else { 1 };
        let planar = joined > 1 && c < PLANAR_CHANNELS;
        // Blocks of 16 lie one after another, and so do planes.
        let channels = if joined > 1 && !planar { c.next_multiple_of(BLOCK) } else { c };
        let params = Conv2dParams { in_channels: channels.checked_mul(joined)?, ..params };
        let shape = [together.checked_mul(steps.outs)?, params.in_channels, h, w];
        let planes = |out| Direct::new(params, Elements::Single, out, true, isa, CacheClass::detect());
        let kernel = if planar {
            ConvKernel::with(params, shape, isa, Method(&direct::METHOD), |out| Arc::new(planes(out)))?
        } else {
            ConvKernel::select(params, shape, isa, options)?
        };
        let conv = PlainConv::new(kernel, (depth, joined), steps, [n, together], [d, c]);
        let fits = conv.slice.image_len().checked_mul(steps.total)? <= MOST_ELEMENTS;
        fits.then_some(conv)
    }

    /// Makes the convolution of images.
    #[cfg(test)]
    pub(super) fn of_images(kernel: ConvKernel) -> PlainConv {
        let BlockedShape { n, c, .. } = kernel.input_shape();
        let steps = Steps { total: 1, outs: 1, step: 1, together: true };
        PlainConv::new(kernel, (Depth::NONE, 1), steps, [n, n], [1, c])
    }

    fn new(
        kernel: ConvKernel,
        (depth, joined): (Depth, usize),
        steps: Steps,
        [volumes, together]: [usize; 2],
        [size, c]: [usize; 2],
    ) -> PlainConv {
        let mut slice = BlockedShape { n: together * steps.total, c, ..kernel.input_shape() };
        slice.image_stride = slice.image_len();
        PlainConv { kernel, depth, steps, volumes, together, size, slice, joined }
    }

    /// The kernel that computes the output slices.
    pub fn kernel(&self) -> &ConvKernel {
        &self.kernel
    }

    /// The algorithm, its tile and what happens to slices.
    pub fn name(&self) -> String {
        let name = self.kernel.name();
        match (self.joined, self.passes()) {
            (1, 1) => name,
            (1, passes) => format!("{name}, {passes} slices one by one"),
            (joined, _) => format!("{name}, {joined} slices at once"),
        }
    }

    /// The form of packed weights, as for [`ConvKernel::packing`], whose weights these are where
    /// there is no depth.
    pub fn packing(&self) -> String {
        let of_slices = self.kernel.packing();
        match self.depth.kernel {
            1 => of_slices,
            depth => format!("{of_slices}, {depth} slices of {} channels, {} at once", self.slice.c, self.joined),
        }
    }

    /// The signature that selection looked for in its tables; none if there was nothing to choose.
    pub fn signature(&self) -> Option<ConvSignature> {
        let planes = self.joined > 1 && self.slice.block == 1;
        (!planes).then(|| self.kernel.signature())
    }

    /// Runs of the kernel over the same outputs.
    fn passes(&self) -> usize {
        self.depth.kernel / self.joined
    }

    /// Elements of the packed weights of a pass, a whole number of cache lines.
    fn pass_len(&self) -> usize {
        self.kernel.packed_len().next_multiple_of(LINE)
    }

    /// Elements of the packed weights.
    pub fn packed_len(&self) -> usize {
        self.passes() * self.pass_len()
    }

    /// Packs weights `[out_channels][in_channels / groups][depth][height][width]`.
    ///
    /// # Panics
    /// If `weights` or `packed` does not have the length that the parameters and
    /// [`packed_len`](Self::packed_len) say.
    pub fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        assert_eq!(weights.len(), self.weight_len(), "elements of the weights of {}", self.name());
        if self.depth.kernel == 1 {
            return self.kernel.pack(weights, packed);
        }
        let params = self.kernel.params();
        let mut of_pass = vec![0.0; params.weight_len()];
        for (pass, packed) in packed.chunks_mut(self.pass_len()).take(self.passes()).enumerate() {
            self.each_filter(pass, 0..params.out_channels, |filter, place| {
                of_pass[place].copy_from_slice(&weights[filter]);
            });
            self.kernel.pack(&of_pass, packed);
        }
    }

    /// Whether [`unpack`](Self::unpack) gives weights back bit for bit.
    pub fn can_unpack(&self) -> bool {
        self.kernel.can_unpack()
    }

    /// The weights of some output channels as [`pack`](Self::pack) got them.
    ///
    /// # Panics
    /// If they cannot be had ([`can_unpack`](Self::can_unpack)), or an operand is shorter than the
    /// parameters say.
    pub fn unpack(&self, packed: &[f32], outputs: Range<usize>, weights: &mut [f32]) {
        if self.depth.kernel == 1 {
            return self.kernel.unpack(packed, outputs, weights);
        }
        let params = self.kernel.params();
        let mut of_pass = vec![0.0; outputs.len() * params.weight_len() / params.out_channels];
        for (pass, packed) in packed.chunks(self.pass_len()).take(self.passes()).enumerate() {
            self.kernel.unpack(packed, outputs.clone(), &mut of_pass);
            self.each_filter(pass, outputs.clone(), |filter, place| {
                weights[filter].copy_from_slice(&of_pass[place]);
            });
        }
    }

    /// Input channels that an output channel sees in a slice.
    fn slice_inputs(&self) -> usize {
        self.slice.c / self.kernel.params().groups
    }

    fn weight_len(&self) -> usize {
        let params = self.kernel.params();
        params.out_channels * self.slice_inputs() * self.depth.kernel * params.taps()
    }

    /// Calls `visit` for the slices of the filters of some output channels that a pass reads, with
    /// their ranges among the weights of these channels and among the kernel's.
    fn each_filter(&self, pass: usize, outputs: Range<usize>, mut visit: impl FnMut(Range<usize>, Range<usize>)) {
        let params = self.kernel.params();
        let (inputs, taps) = (self.slice_inputs(), params.taps());
        let room = params.group_inputs() / self.joined;
        for output in 0..outputs.len() {
            for slice in 0..self.joined {
                for input in 0..inputs {
                    let filter = ((output * inputs + input) * self.depth.kernel + pass + slice) * taps;
                    let place = ((output * self.joined + slice) * room + input) * taps;
                    visit(filter..filter + taps, place..place + taps);
                }
            }
        }
    }

    /// Elements of workspace that [`run`](Self::run) needs.
    pub fn workspace_len(&self) -> usize {
        self.workspace_parts().iter().sum()
    }

    /// Elements of the blocked input, the blocked output and the scratch of a run, each a whole
    /// number of cache lines.
    fn workspace_parts(&self) -> [usize; 3] {
        let parts = [self.slice.len(), self.kernel.output_shape().len(), self.kernel.scratch_len()];
        parts.map(|len| len.next_multiple_of(LINE))
    }

    /// Convolves `[n, c, d, h, w]`.
    ///
    /// # Panics
    /// If an operand does not have the length that its shape says, or the workspace is shorter than
    /// [`workspace_len`](Self::workspace_len).
    pub fn run(
        &self,
        x: &[f32],
        packed: &[f32],
        epilogue: PlainEpilogue<'_>,
        y: &mut [f32],
        workspace: &mut [f32],
        par: &dyn Par,
    ) {
        let need = self.workspace_len();
        assert!(workspace.len() >= need, "the workspace needs {need} elements, got {}", workspace.len());
        let (x_len, y_len) = (x.len() / self.volumes, y.len() / self.volumes);
        for first in (0..self.volumes).step_by(self.together) {
            let some = |len: usize| first * len..(first + self.together) * len;
            let epilogue = PlainEpilogue { residual: epilogue.residual.map(|r| &r[some(y_len)]), ..epilogue };
            self.run_together(&x[some(x_len)], packed, epilogue, &mut y[some(y_len)], workspace, par);
        }
    }

    /// Convolves the volumes of a run.
    fn run_together(
        &self,
        x: &[f32],
        packed: &[f32],
        epilogue: PlainEpilogue<'_>,
        y: &mut [f32],
        workspace: &mut [f32],
        par: &dyn Par,
    ) {
        let (isa, Steps { total, outs, step, .. }) = (self.kernel.isa(), self.steps);
        let [input_len, output_len, _] = self.workspace_parts();
        let (input, rest) = workspace.split_at_mut(input_len);
        let (output, scratch) = rest.split_at_mut(output_len);
        let slices = Slices { count: self.size, before: self.depth.pad, total };
        slices_to_blocked(isa, x, slices, &mut BlockedMut::new(self.slice, input), par);
        let ys = self.kernel.output_shape();
        let each = Slices { count: outs, before: 0, total: outs };
        if let Some(residual) = epilogue.residual {
            slices_to_blocked(isa, residual, each, &mut BlockedMut::new(ys, output), par);
        }
        let slice_len = self.slice.image_stride;
        let xs = BlockedShape { image_stride: step * slice_len, ..self.kernel.input_shape() };
        for (pass, packed) in packed.chunks(self.pass_len()).take(self.passes()).enumerate() {
            let (first, last) = (pass == 0, pass + 1 == self.passes());
            let inner = ConvEpilogue {
                bias: epilogue.bias.filter(|_| first),
                residual: if first && epilogue.residual.is_none() { Residual::None } else { Residual::InPlace },
                activation: if last { epilogue.activation } else { Activation::None },
            };
            let x = Blocked::new(xs, &input[pass * self.depth.dilate * slice_len..]);
            self.kernel.run(x, packed, inner, &mut BlockedMut::new(ys, output), scratch, par);
        }
        slices_from_blocked(isa, Blocked::new(ys, output), outs, y, par);
    }
}
