//! Places of the lines of an image, and the order in which products take them.

use crate::amx::tiles::{LINE, LINE_NUMBERS, SIDE};
use crate::conv::operands::ConvJob;
use crate::conv::params::Conv2dParams;
use crate::simd::Src;

/// Bytes of lines that stay in the second-level cache while weights pass by.
const NEAR: usize = 1 << 20;
/// Panels of rows that make reading weights worth its time.
const ROW_PANELS: usize = 4;

/// A plane of lines: every stride-th row and column of the padded image, from these on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plane {
    pub row: usize,
    pub column: usize,
}

/// Places of the lines of an image, and the order in which products take them.
#[derive(Clone, Debug)]
pub(super) struct LinePlan {
    pub params: Conv2dParams,
    pub out: [usize; 2],
    /// Rows and columns of a plane.
    pub size: [usize; 2],
    pub planes: Vec<Plane>,
    /// Plane of each tap, and the line in it that the first output reads.
    pub taps: Vec<(usize, usize)>,
}

/// Places at which products find their rows: lines one after another.
pub(super) struct RowLines {
    /// The first line of the first image.
    pub lines: Src,
    /// Elements from one image to the next, and those of an image.
    pub image_stride: usize,
    pub image_len: usize,
    /// Offsets in bytes of the lines that the first output of an image reads at each step.
    pub offsets: Vec<usize>,
    /// Bytes from one part to the next.
    pub part: usize,
    /// Lines from one row of outputs to the next.
    pub width: usize,
    /// Rows of products of an image.
    pub rows: usize,
    /// Whether there may be no lines after the last ones that outputs read.
    pub exact: bool,
}

impl RowLines {
    /// Panels of rows of an image.
    pub fn panels(&self) -> usize {
        self.rows.div_ceil(SIDE)
    }

    /// The first row of a panel. The last panel may begin in the one before.
    pub fn first(&self, panel: usize) -> usize {
        let first = panel * SIDE;
        if self.exact { first.min(self.rows - SIDE) } else { first }
    }
}

impl LinePlan {
    pub fn new(params: Conv2dParams, out: [usize; 2]) -> LinePlan {
        let Conv2dParams { kernel, stride, dilate, .. } = params;
        let beyond = |i: usize| (kernel[i] - 1) * dilate[i] / stride[i];
        let size = [out[0] + beyond(0), out[1] + beyond(1)];
        let mut planes: Vec<Plane> = Vec::new();
        let mut taps = Vec::new();
        for (i, j) in (0..kernel[0]).flat_map(|i| (0..kernel[1]).map(move |j| (i, j))) {
            let (row, column) = (i * dilate[0], j * dilate[1]);
            let plane = Plane { row: row % stride[0], column: column % stride[1] };
            let number = planes.iter().position(|known| *known == plane).unwrap_or(planes.len());
            if number == planes.len() {
                planes.push(plane);
            }
            taps.push((number, row / stride[0] * size[1] + column / stride[1]));
        }
        LinePlan { params, out, size, planes, taps }
    }

    /// Lines of a pixel.
    pub fn blocks(&self) -> usize {
        self.params.in_channels.div_ceil(LINE_NUMBERS)
    }

    /// Lines of a plane.
    pub fn plane(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// Lines along the sums of an output.
    pub fn steps(&self) -> usize {
        self.taps.len() * self.blocks()
    }

    /// Rows of products of an image: outputs, and what is between rows of them.
    pub fn rows(&self) -> usize {
        (self.out[0] - 1) * self.size[1] + self.out[1]
    }

    pub fn row_panels(&self) -> usize {
        self.rows().div_ceil(SIDE)
    }

    /// Panels of output channels.
    pub fn columns(&self) -> usize {
        self.params.out_channels.div_ceil(SIDE)
    }

    /// Lines of a part of an image.
    pub fn part(&self) -> usize {
        self.planes.len() * self.blocks() * self.plane()
    }

    /// Offsets in bytes of the lines that the first output of an image reads at each step.
    pub fn offsets(&self) -> Vec<usize> {
        let of = |(plane, line): &(usize, usize), block: usize| {
            ((plane * self.blocks() + block) * self.plane() + line) * LINE
        };
        self.taps.iter().flat_map(|tap| (0..self.blocks()).map(move |block| of(tap, block))).collect()
    }

    /// The lines of an input that products can read where they are.
    pub fn in_input(&self, job: &ConvJob<'_>) -> Option<RowLines> {
        let (xs, Conv2dParams { kernel, stride, dilate, pad, .. }) = (&job.xs, self.params);
        let width = xs.row_stride() * size_of::<f32>() / LINE;
        let rows = (self.out[0] - 1) * width + self.out[1];
        if !xs.in_lines() || stride != [1, 1] || rows < SIDE {
            return None;
        }
        let (top, left) = (xs.halo.top - pad[0], xs.halo.left - pad[1]);
        let line = |i: usize, j: usize, block: usize| {
            xs.padded_offset(0, block, top + i * dilate[0], left + j * dilate[1]) * size_of::<f32>()
        };
        let taps = (0..kernel[0]).flat_map(|i| (0..kernel[1]).map(move |j| (i, j)));
        let offsets = taps.flat_map(|(i, j)| (0..self.blocks()).map(move |block| line(i, j, block))).collect();
        let (image_stride, image_len) = (xs.image_stride, xs.image_len());
        Some(RowLines { lines: job.x, image_stride, image_len, offsets, part: 0, width, rows, exact: true })
    }

    /// Panels of rows whose lines stay in the second-level cache.
    pub fn near(&self, parts: usize) -> usize {
        let panel = SIDE * LINE * self.blocks() * self.planes.len() * parts;
        let most = (NEAR / panel).max(ROW_PANELS);
        self.row_panels().div_ceil(self.row_panels().div_ceil(most))
    }
}
