//! Depthwise convolution: every channel has one filter of its own, so blocks of channels are
//! independent and a vector of weights multiplies a vector of inputs.

use crate::blocked::chunks::ChunkGrid;
use crate::blocked::lines::{Pixels, blocks_of_pair};
use crate::blocked::{BLOCK, Halo, LINE_CHANNELS, zero_halo};
use crate::conv::method::{ConvMethod, PreparedConv};
use crate::conv::methods::depthwise_lines::LinesRow;
use crate::conv::methods::direct::expected_us;
use crate::conv::operands::ConvJob;
use crate::conv::params::Conv2dParams;
use crate::conv::register_tiles::{DepthwiseTileArgs, depthwise_rows, depthwise_tile};
use crate::conv::table::ConvSignature;
use crate::gemm::tile::{Split, Tap};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Dst, Entry, LANES, Src, entry_lines};
use std::sync::Arc;

/// Multiply-adds that a chunk should have at least.
const CHUNK_WORK: usize = 256 << 10;
/// Images of so few rows are divided by channels, like the neighbouring layers with many weights.
const FEW_ROWS: usize = 16;

/// One filter per channel, for layers of as many groups as channels.
pub(in crate::conv) struct DepthwiseMethod;
pub(in crate::conv) static METHOD: DepthwiseMethod = DepthwiseMethod;

impl ConvMethod for DepthwiseMethod {
    fn name(&self) -> &'static str {
        "depthwise"
    }

    fn fits(&self, signature: &ConvSignature) -> bool {
        signature.params.is_depthwise()
    }

    fn cost(&self, signature: &ConvSignature, out: [usize; 2]) -> Option<f64> {
        Some(expected_us(signature, out))
    }

    fn prepare(&self, signature: &ConvSignature, out: [usize; 2], _in_blocks: bool) -> Arc<dyn PreparedConv> {
        Arc::new(Depthwise::new(signature.params, out, signature.isa))
    }
}

/// A depthwise convolution prepared for one image size.
#[derive(Clone, Debug)]
pub(in crate::conv) struct Depthwise {
    params: Conv2dParams,
    isa: Isa,
    out: [usize; 2],
    /// How the work on an image is cut, in blocks of channels and in lines.
    cut: ChunkGrid,
    lines_cut: ChunkGrid,
    lines_row: Entry<LinesRow>,
}

impl Depthwise {
    pub(in crate::conv) fn new(params: Conv2dParams, out: [usize; 2], isa: Isa) -> Depthwise {
        let row_work = out[1] * BLOCK * params.taps();
        let blocks = params.out_channels.div_ceil(BLOCK);
        let cut = if out[0] <= FEW_ROWS { ChunkGrid::halves_of_parts } else { ChunkGrid::halves };
        let lines_cut = cut(out[0], params.out_channels.div_ceil(LINE_CHANNELS), 2 * row_work, CHUNK_WORK);
        let cut = cut(out[0], blocks, row_work, CHUNK_WORK);
        Depthwise { params, isa, out, cut, lines_cut, lines_row: entry_lines::<LinesRow>(isa) }
    }

    /// Some output rows of 32 channels, where input or output is in lines.
    fn rows_in_lines(&self, job: &ConvJob<'_>, taps: &[Tap], image: usize, pair: usize, rows: std::ops::Range<usize>) {
        let Conv2dParams { kernel, stride, dilate, pad, .. } = self.params;
        let (xs, ys) = (&job.xs, &job.ys);
        let bias = job.bias_block::<2>(2 * pair);
        // A second block that does not exist has finite inputs: any weights will do.
        let blocks = [2 * pair, (2 * pair + 1).min(self.params.out_channels.div_ceil(BLOCK) - 1)];
        let dense = kernel[1] == 3 && dilate[1] == 1 && stride[1] == 1;
        for row in rows.clone() {
            let corner = Pixels::<Src>::from_corner(job.x, xs, image, pair);
            let first = [xs.halo.top - pad[0] + row * stride[0], xs.halo.left - pad[1]];
            let args = LinesRow {
                a: corner.add(first[0] * xs.row_stride() + first[1] * BLOCK),
                pixel: stride[1] * BLOCK,
                taps: taps.as_ptr(),
                taps_len: taps.len(),
                dense,
                weights: blocks.map(|block| Src::new(job.packed).add(block * taps.len() * LANES)),
                bias: Src::new(&bias),
                residual: job.residual_pixels(image, pair, row, 0),
                y: Pixels::<Dst>::new(job.y, ys, image, pair, row, 0),
                cols: self.out[1],
                limits: job.limits,
            };
            // SAFETY: `ConvJob::new` checked shapes, halo and lengths; these output rows of these
            // channels belong to this chunk.
            unsafe { (self.lines_row)(&args) }
        }
        for block in blocks_of_pair(ys, pair) {
            // SAFETY: as above.
            unsafe { zero_halo(job.y, ys, image, block, rows.clone()) }
        }
    }

    /// Some output rows of one block of channels.
    fn rows(&self, job: &ConvJob<'_>, taps: &[Tap], image: usize, block: usize, rows: std::ops::Range<usize>) {
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
                // SAFETY: `ConvJob::new` checked shapes, halo and lengths; these output rows of
                // this block belong to this chunk.
                unsafe { entries.of(&split, i)(&args) }
            }
        }
        // SAFETY: as above.
        unsafe { zero_halo(job.y, ys, image, block, rows) }
    }
}

impl PreparedConv for Depthwise {
    fn name(&self) -> String {
        format!("depthwise {}", self.isa)
    }

    fn packing(&self) -> String {
        "depthwise".to_owned()
    }

    fn input_halo(&self, size: [usize; 2]) -> Halo {
        self.params.halo(size, self.out)
    }

    fn packed_len(&self) -> usize {
        self.params.out_channels.next_multiple_of(BLOCK) * self.params.taps()
    }

    fn takes_lines(&self) -> bool {
        true
    }

    /// `[block][tap][16]`
    fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let taps = self.params.taps();
        packed[..self.packed_len()].fill(0.0);
        for (c, filter) in weights.chunks_exact(taps).enumerate() {
            for (t, &w) in filter.iter().enumerate() {
                packed[(c / BLOCK * taps + t) * BLOCK + c % BLOCK] = w;
            }
        }
    }

    fn run(&self, job: &ConvJob<'_>, _: &mut [f32], par: &dyn Par) {
        let Conv2dParams { kernel, dilate, .. } = self.params;
        let images = job.xs.n;
        let taps_bytes = self.params.taps() * size_of::<Tap>();
        let lines = job.has_lines();
        let cut = if lines { &self.lines_cut } else { &self.cut };
        par.run(cut.chunks(images), taps_bytes, &|chunk, scratch| {
            let chunk = cut.chunk(chunk, images);
            let taps: &mut [Tap] = bytemuck::cast_slice_mut(&mut scratch[..taps_bytes]);
            for (t, tap) in taps.iter_mut().enumerate() {
                let (i, j) = (t / kernel[1], t % kernel[1]);
                let offset = job.xs.padded_offset(0, 0, i * dilate[0], j * dilate[1]);
                *tap = Tap { offset: offset as u32, count: LANES as u32 };
            }
            for part in chunk.parts {
                if lines {
                    self.rows_in_lines(job, taps, chunk.image, part, chunk.rows.clone());
                } else {
                    self.rows(job, taps, chunk.image, part, chunk.rows.clone());
                }
            }
        });
    }
}
