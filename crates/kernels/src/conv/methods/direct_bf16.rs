//! Direct convolution of values rounded to bf16, for AVX512-BF16: twice the multiply-adds of `f32`
//! in half of the bytes.
//!
//! Tensors stay `f32`. What a tile reads is rounded once, to pairs of channels: a pair takes the
//! place of one `f32` channel, so that blocks of 32 channels look like blocks of 16 to the direct
//! convolution that does the rest. Sums, bias, residual and activation are `f32`.

use crate::blocked::{BLOCK, BlockedShape, Halo};
use crate::cache_class::CacheClass;
use crate::conv::cost::{bf16_gain, estimate};
use crate::conv::method::{ConvMethod, PreparedConv};
use crate::conv::methods::direct::{Direct, InputRows};
use crate::conv::operands::ConvJob;
use crate::conv::params::Conv2dParams;
use crate::conv::table::ConvSignature;
use crate::gemm::tile::Elements;
use crate::isa::{Isa, has_bf16};
use crate::par::Par;
use crate::simd::{Dst, round_to_pairs};
use std::ops::Range;
use std::sync::Arc;

/// Inputs with fewer channels than this have too few pairs for what rounding costs.
const LEAST_CHANNELS: usize = 16;

/// Bytes of an input that are rounded in a microsecond.
const ROUNDING: f64 = 80e3;

/// Direct convolution of bf16 values.
pub(in crate::conv) struct DirectBf16Method;
pub(in crate::conv) static METHOD: DirectBf16Method = DirectBf16Method;

impl ConvMethod for DirectBf16Method {
    fn name(&self) -> &'static str {
        "direct-bf16"
    }

    fn rounds(&self) -> bool {
        true
    }

    fn fits(&self, signature: &ConvSignature) -> bool {
        multiplies_pairs(&signature.params, signature.isa) && !signature.params.is_depthwise()
    }

    fn cost(&self, signature: &ConvSignature, out: [usize; 2]) -> Option<f64> {
        let ConvSignature { params: p, shape: [images, channels, h, w], .. } = *signature;
        let (pixels, weights) = ((images * out[0] * out[1]) as f64, p.weight_len() as f64);
        let stepped_over = if p.kernel == [1, 1] { (p.stride[0] * p.stride[1]) as f64 } else { 1.0 };
        let read = (images * channels * h * w) as f64 / stepped_over;
        Some(estimate(signature, pixels * weights / bf16_gain(), 2.0 * weights) + 4.0 * read / ROUNDING)
    }

    fn prepare(&self, signature: &ConvSignature, out: [usize; 2], _in_blocks: bool) -> Arc<dyn PreparedConv> {
        let ConvSignature { params, shape: [images, ..], isa, cache, .. } = *signature;
        Arc::new(DirectBf16::new(params, images, out, isa, cache))
    }
}

/// Whether the machine and the channels allow products of pairs of bf16 values.
pub(in crate::conv) fn multiplies_pairs(p: &Conv2dParams, isa: Isa) -> bool {
    let whole_pairs = p.groups == 1 || p.group_inputs().is_multiple_of(2);
    isa == Isa::Avx512 && has_bf16() && whole_pairs && p.group_inputs() >= LEAST_CHANNELS
}

/// A convolution of bf16 values prepared for one image size.
#[derive(Clone, Debug)]
pub(in crate::conv) struct DirectBf16 {
    params: Conv2dParams,
    direct: Direct,
    images: usize,
    out: [usize; 2],
    /// Rows and columns between pixels that are read at all.
    step: [usize; 2],
    /// Rows and columns of the rounded input of a whole image.
    size: [usize; 2],
}

impl DirectBf16 {
    pub(in crate::conv) fn new(
        params: Conv2dParams,
        images: usize,
        out: [usize; 2],
        isa: Isa,
        cache: CacheClass,
    ) -> DirectBf16 {
        // Pixels that a kernel of one pixel steps over are not rounded.
        let step = if params.kernel == [1, 1] { params.stride } else { [1, 1] };
        let stride = [params.stride[0] / step[0], params.stride[1] / step[1]];
        let pairs = Conv2dParams { in_channels: pairs_of(&params), pad: [0, 0], stride, ..params };
        let reach = |i: usize| (out[i] - 1) * stride[i] + (params.kernel[i] - 1) * params.dilate[i] + 1;
        let size = [reach(0), reach(1)];
        let direct = Direct::new(pairs, Elements::Pairs, out, false, isa, cache);
        DirectBf16 { params, direct, images, out, step, size }
    }

    /// The rounded input of `rows` rows, in place of the padded one.
    fn shape(&self, images: usize, rows: usize) -> BlockedShape {
        BlockedShape::new(images, pairs_of(&self.params), rows, self.size[1], Halo::default())
    }

    /// Rounded rows that output rows read.
    fn read_rows(&self, rows: &Range<usize>) -> Range<usize> {
        let stride = self.params.stride[0] / self.step[0];
        rows.start * stride..(rows.end - 1) * stride + self.size[0] - (self.out[0] - 1) * stride
    }

    /// Rounds some rows of some blocks of 32 channels of an image.
    fn round(
        &self,
        job: &ConvJob<'_>,
        image: usize,
        blocks: Range<usize>,
        rows: Range<usize>,
        shape: BlockedShape,
        pairs: Dst,
    ) {
        let (xs, c) = (&job.xs, self.params.in_channels);
        let (top, left) = (xs.halo.top - self.params.pad[0], xs.halo.left - self.params.pad[1]);
        for block in blocks {
            let channels = (c - block * 2 * BLOCK).min(2 * BLOCK);
            let mask = u32::MAX >> (2 * BLOCK - channels);
            for (at, row) in rows.clone().enumerate() {
                let x = job.x.add(xs.padded_offset(image, 2 * block, top + row * self.step[0], left));
                let next = x.add(if channels > BLOCK { xs.block_stride() } else { 0 });
                let out = pairs.add(shape.offset(0, block, at, 0));
                // SAFETY: `multiplies_pairs` asked for the instructions; `ConvJob::new` checked
                // that the input has these pixels, the rounded one has room for its own, and these
                // rows of these blocks belong to this chunk.
                unsafe {
                    if self.step[1] == 1 {
                        round_to_pairs(x, next, shape.w, mask, out);
                    } else {
                        for col in 0..shape.w {
                            let from = col * self.step[1] * BLOCK;
                            round_to_pairs(x.add(from), next.add(from), 1, mask, out.add(col * BLOCK));
                        }
                    }
                }
            }
        }
    }
}

/// Pairs of input channels.
fn pairs_of(p: &Conv2dParams) -> usize {
    p.groups * p.group_inputs().div_ceil(2)
}

impl PreparedConv for DirectBf16 {
    fn name(&self) -> String {
        self.direct.name()
    }

    fn packing(&self) -> String {
        self.direct.packing()
    }

    fn input_halo(&self, size: [usize; 2]) -> Halo {
        self.params.halo(size, self.out)
    }

    fn packed_len(&self) -> usize {
        self.direct.packed_len()
    }

    /// Weights as pairs of neighbouring input channels, then as the direct convolution wants them.
    fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let (taps, inputs) = (self.params.taps(), self.params.group_inputs());
        let mut pairs = vec![0.0; self.params.out_channels * inputs.div_ceil(2) * taps];
        for (filter, pairs) in
            weights.chunks_exact(inputs * taps).zip(pairs.chunks_exact_mut(inputs.div_ceil(2) * taps))
        {
            for (channels, pairs) in filter.chunks(2 * taps).zip(pairs.chunks_exact_mut(taps)) {
                let (low, high) = channels.split_at(taps);
                for (t, pair) in pairs.iter_mut().enumerate() {
                    *pair = pair_of(low[t], high.get(t).copied().unwrap_or(0.0));
                }
            }
        }
        self.direct.pack(&pairs, packed);
    }

    /// Elements that all chunks share: the rounded input, unless each chunk rounds what it reads.
    fn scratch_len(&self) -> usize {
        if self.direct.cut().groups == 1 { 0 } else { self.shape(self.images, self.size[0]).len() }
    }

    fn run(&self, job: &ConvJob<'_>, scratch: &mut [f32], par: &dyn Par) {
        let cut = self.direct.cut();
        if cut.groups > 1 {
            let (shape, pairs) = (self.shape(self.images, self.size[0]), Dst::new(scratch));
            par.run(self.images * shape.blocks(), 0, &|chunk, _| {
                let (image, block) = (chunk / shape.blocks(), chunk % shape.blocks());
                self.round(job, image, block..block + 1, 0..self.size[0], shape, pairs.add(image * shape.image_stride));
            });
            return self.direct.run(&job.with_input(pairs.as_src(), shape), &mut [], par);
        }
        let most = self.read_rows(&(0..cut.most_rows())).len();
        let pair_bytes = self.shape(1, most).len() * size_of::<f32>();
        par.run(cut.chunks(self.images), pair_bytes + self.direct.scratch_bytes(), &|chunk, scratch| {
            let (pairs, scratch) = scratch.split_at_mut(pair_bytes);
            let pairs = Dst::new(bytemuck::cast_slice_mut(pairs));
            let chunk = cut.chunk(chunk, self.images);
            let rows = self.read_rows(&chunk.rows);
            let shape = self.shape(1, rows.len());
            self.round(job, chunk.image, 0..shape.blocks(), rows.clone(), shape, pairs);
            let job = job.with_input(pairs.as_src(), shape);
            self.direct.run_chunk(&job, &chunk, InputRows { image: 0, first: rows.start }, scratch);
        });
    }
}

/// Two numbers rounded to bf16, in the place of one `f32`.
pub(in crate::conv) fn pair_of(low: f32, high: f32) -> f32 {
    let bits = |v: f32| u32::from(half::bf16::from_f32(v).to_bits());
    f32::from_bits(bits(high) << 16 | bits(low))
}
