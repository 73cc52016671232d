//! Depthwise convolution: every channel has one filter of its own, so blocks of channels are independent and a vector of
//! weights multiplies a vector of inputs.

use super::blocked::{BLOCK, zero_halo};
use super::cut::Cut;
use super::job::Job;
use super::params::Conv2dParams;
use super::tiles::{DepthwiseTileArgs, depthwise_rows, depthwise_tile};
use crate::gemm::tile::{Split, Tap};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{LANES, Src};

/// Multiply-adds that a chunk should have at least.
const CHUNK_WORK: usize = 256 << 10;
/// Images of so few rows are cut by channels, as the layers beside them whose weights are many.
const FEW_ROWS: usize = 16;

/// A depthwise convolution prepared for one image size.
#[derive(Clone, Debug)]
pub(super) struct Depthwise {
    params: Conv2dParams,
    isa: Isa,
    out: [usize; 2],
    /// How the work on an image is cut.
    cut: Cut,
}

impl Depthwise {
    /// Whether a convolution is one: as many groups as inputs and as outputs.
    pub(super) fn fits(p: &Conv2dParams) -> bool {
        p.groups == p.in_channels && p.groups == p.out_channels && p.groups > 1
    }

    pub(super) fn new(params: Conv2dParams, out: [usize; 2], isa: Isa) -> Depthwise {
        let row_work = out[1] * BLOCK * params.taps();
        let blocks = params.out_channels.div_ceil(BLOCK);
        let cut = if out[0] <= FEW_ROWS { Cut::halves_of_parts } else { Cut::halves };
        let cut = cut(out[0], blocks, row_work, CHUNK_WORK);
        Depthwise { params, isa, out, cut }
    }

    pub(super) fn name(&self) -> String {
        format!("depthwise {}", self.isa)
    }

    pub(super) fn packed_len(&self) -> usize {
        self.params.out_channels.next_multiple_of(BLOCK) * self.params.taps()
    }

    /// `[block][tap][16]`
    pub(super) fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let taps = self.params.taps();
        packed[..self.packed_len()].fill(0.0);
        for (c, filter) in weights.chunks_exact(taps).enumerate() {
            for (t, &w) in filter.iter().enumerate() {
                packed[(c / BLOCK * taps + t) * BLOCK + c % BLOCK] = w;
            }
        }
    }

    pub(super) fn run(&self, job: &Job<'_>, par: &dyn Par) {
        let Conv2dParams { kernel, dilate, .. } = self.params;
        let images = job.xs.n;
        let taps_bytes = self.params.taps() * size_of::<Tap>();
        par.run(self.cut.chunks(images), taps_bytes, &|chunk, scratch| {
            let chunk = self.cut.chunk(chunk, images);
            let taps: &mut [Tap] = bytemuck::cast_slice_mut(&mut scratch[..taps_bytes]);
            for (t, tap) in taps.iter_mut().enumerate() {
                let (i, j) = (t / kernel[1], t % kernel[1]);
                let offset = job.xs.padded_offset(0, 0, i * dilate[0], j * dilate[1]);
                *tap = Tap { offset: offset as u32, count: LANES as u32 };
            }
            for block in chunk.parts {
                self.rows(job, taps, chunk.image, block, chunk.rows.clone());
            }
        });
    }

    /// Some output rows of one block of channels.
    fn rows(&self, job: &Job<'_>, taps: &[Tap], image: usize, block: usize, rows: std::ops::Range<usize>) {
        let Conv2dParams { stride, pad, .. } = self.params;
        let (xs, ys) = (&job.xs, &job.ys);
        let pixel = stride[1] * BLOCK;
        let dense = self.params.kernel[1] == 3 && self.params.dilate[1] == 1 && stride[1] == 1;
        let split = Split::new(self.out[1], depthwise_rows(self.isa, dense));
        let entries = split.entries(|m| depthwise_tile(self.isa, m, pixel, dense));
        let bias = job.bias_block::<1>(block);
        let (top, left) = (xs.halo.top - pad[0], xs.halo.left - pad[1]);
        let x = job.x.add(xs.padded_offset(image, block, top + rows.start * stride[0], left));
        let y = job.y.add(ys.offset(image, block, rows.start, 0));
        let residual = job.residual_at(image, block, rows.start, 0);
        let mut args = DepthwiseTileArgs {
            a: x,
            pixel,
            taps: taps.as_ptr(),
            taps_len: taps.len(),
            weights: Src::new(job.packed).add(block * taps.len() * LANES),
            bias: Src::new(&bias),
            residual,
            y,
            next_row: job.fetches_outputs().then_some(ys.row_stride()),
            limits: job.limits,
        };
        let (x_row, y_row) = (stride[0] * xs.row_stride(), ys.row_stride());
        for row in 0..rows.len() {
            for i in 0..split.parts {
                let col = split.start(i);
                args.a = x.add(row * x_row + col * pixel);
                args.y = y.add(row * y_row + col * BLOCK);
                if let (Some(tile), Some(first)) = (&mut args.residual, &residual) {
                    tile.at = first.at.add(row * first.row + col * BLOCK);
                }
                // SAFETY: `Job::new` checked shapes, halo and lengths; these output rows of this block belong to this chunk.
                unsafe { entries.of(&split, i)(&args) }
            }
        }
        // SAFETY: as above.
        unsafe { zero_halo(job.y, ys, image, block, rows) }
    }
}
