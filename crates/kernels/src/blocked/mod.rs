//! The blocked layout of activations, and the layers on it that are no convolutions.
//! [`BlockedShape::pixels`] describes that of bytes, whose layers are in `int8`.
//!
//! A tensor is `[n][C / 16][top + h + bottom][left + w + right][16]` with a halo of zeros. Between
//! layers on tiles (see `amx`) it may be in lines instead: blocks of 32 channels in bf16, which take
//! the same 64 bytes. What writes lines takes channels of blocks beyond `c` for zeros.
//!
//! The halo stands for the padding of the convolutions that read the tensor, so that no kernel has
//! an edge case on input. A layer that writes a tensor writes its halo too, each time: buffers can
//! be reused for other shapes. Channels beyond `c` in the last block hold anything; no layer reads
//! them.

pub(crate) mod chunks;
mod concat;
#[allow(clippy::needless_range_loop)]
pub(crate) mod convert;
pub(crate) mod lines;
#[allow(clippy::needless_range_loop)]
mod pointwise;
#[allow(clippy::needless_range_loop)]
pub(crate) mod pool;
#[cfg(test)]
mod tests;

pub use concat::{concat, concat_behind};
pub use convert::{from_blocked, to_blocked};
pub use pointwise::{Pointwise, pointwise};
pub use pool::{Pool2dParams, PoolKind, pool};

use crate::simd::{Dst, LANES, Src};

/// Channels in a block.
pub const BLOCK: usize = LANES;

/// Channels of a line of bf16, which has the size of a block.
pub const LINE_CHANNELS: usize = 2 * BLOCK;

/// Bytes that pixels of bytes are filled up to a multiple of.
pub const PIXEL: usize = 64;

/// Rows and columns of zeros around an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Halo {
    /// Rows above.
    pub top: usize,
    /// Columns to the left.
    pub left: usize,
    /// Rows below.
    pub bottom: usize,
    /// Columns to the right.
    pub right: usize,
}

impl Halo {
    /// The smallest halo that serves two readers.
    pub fn max(self, other: Halo) -> Halo {
        Halo {
            top: self.top.max(other.top),
            left: self.left.max(other.left),
            bottom: self.bottom.max(other.bottom),
            right: self.right.max(other.right),
        }
    }

    /// Whether a reader that needs `other` is served.
    pub fn covers(self, other: Halo) -> bool {
        self.max(other) == self
    }
}

/// Shape and layout of an activation tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockedShape {
    /// Images.
    pub n: usize,
    /// Channels.
    pub c: usize,
    /// Rows of an image.
    pub h: usize,
    /// Columns of an image.
    pub w: usize,
    /// Zeros around it.
    pub halo: Halo,
    /// Channels stored side by side: 16, or 1 for the few channels of a network's input, or 32 in
    /// lines of bf16, or all of them, in multiples of 64, in pixels of bytes.
    pub block: usize,
    /// Elements from one image to the next; more than [`image_len`](Self::image_len) where the
    /// tensor is a slice of the channels of a wider one.
    pub image_stride: usize,
}

impl BlockedShape {
    /// Blocks of 16 channels, images one after another.
    pub fn new(n: usize, c: usize, h: usize, w: usize, halo: Halo) -> Self {
        Self::with_block(n, c, h, w, halo, BLOCK)
    }

    /// Planes of single channels, images one after another.
    pub fn planar(n: usize, c: usize, h: usize, w: usize, halo: Halo) -> Self {
        Self::with_block(n, c, h, w, halo, 1)
    }

    /// Lines of 32 channels in bf16, images one after another. Channels beyond `c` in the last line
    /// hold finite numbers.
    pub fn lines(n: usize, c: usize, h: usize, w: usize, halo: Halo) -> Self {
        Self::with_block(n, c, h, w, halo, LINE_CHANNELS)
    }

    /// Pixels of bytes with all channels, images one after another. Signed numbers have their
    /// highest bit flipped, so all are unsigned, and the halo is the zero of these.
    pub fn pixels(n: usize, c: usize, h: usize, w: usize, halo: Halo) -> Self {
        Self::with_block(n, c, h, w, halo, c.next_multiple_of(PIXEL))
    }

    /// Whether channels are in lines of bf16.
    pub fn in_lines(&self) -> bool {
        self.block == LINE_CHANNELS
    }

    /// Returns this memory as a tensor of elements: two channels of a line are one.
    ///
    /// # Panics
    /// If channels are in lines that they do not fill.
    pub fn in_elements(self) -> BlockedShape {
        assert!(!self.in_lines() || self.c.is_multiple_of(LINE_CHANNELS), "{} channels do not fill lines", self.c);
        if self.in_lines() { BlockedShape { c: self.c / 2, block: BLOCK, ..self } } else { self }
    }

    /// Elements that a pixel of a block of channels takes. Two numbers of a line are one.
    pub(crate) fn pixel(&self) -> usize {
        if self.in_lines() { BLOCK } else { self.block }
    }

    fn with_block(n: usize, c: usize, h: usize, w: usize, halo: Halo, block: usize) -> Self {
        let mut shape = BlockedShape { n, c, h, w, halo, block, image_stride: 0 };
        shape.image_stride = shape.image_len();
        shape
    }

    /// Blocks of channels.
    pub fn blocks(&self) -> usize {
        self.c.div_ceil(self.block)
    }

    /// Elements from one row to the next.
    pub fn row_stride(&self) -> usize {
        (self.halo.left + self.w + self.halo.right) * self.pixel()
    }

    /// Elements from one block of channels to the next.
    pub fn block_stride(&self) -> usize {
        (self.halo.top + self.h + self.halo.bottom) * self.row_stride()
    }

    /// Elements of one image.
    pub fn image_len(&self) -> usize {
        self.blocks() * self.block_stride()
    }

    /// Elements a buffer must have.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        if self.n == 0 { 0 } else { (self.n - 1) * self.image_stride + self.image_len() }
    }

    /// The offset of pixel (row, col) of a block of channels, counted from the corner of the halo.
    #[inline(always)]
    pub(crate) fn padded_offset(&self, image: usize, block: usize, row: usize, col: usize) -> usize {
        image * self.image_stride + block * self.block_stride() + row * self.row_stride() + col * self.pixel()
    }

    /// The offset of pixel (row, col) of a block of channels.
    #[inline(always)]
    pub(crate) fn offset(&self, image: usize, block: usize, row: usize, col: usize) -> usize {
        self.padded_offset(image, block, row + self.halo.top, col + self.halo.left)
    }

    /// Whether another tensor holds the same values, in any layout.
    pub fn same_size(&self, other: &BlockedShape) -> bool {
        (self.n, self.c, self.h, self.w) == (other.n, other.c, other.h, other.w)
    }
}

/// A tensor to read.
#[derive(Clone, Copy, Debug)]
pub struct Blocked<'a> {
    /// Shape and layout.
    pub shape: BlockedShape,
    /// The elements, 64-byte aligned where speed matters.
    pub data: &'a [f32],
}

impl<'a> Blocked<'a> {
    /// A tensor in `data`.
    ///
    /// # Panics
    /// If `data` is too short.
    pub fn new(shape: BlockedShape, data: &'a [f32]) -> Self {
        assert!(data.len() >= shape.len(), "a tensor of {} elements in a buffer of {}", shape.len(), data.len());
        Blocked { shape, data }
    }

    pub(crate) fn src(&self) -> Src {
        Src::new(&self.data[..self.shape.len()])
    }
}

/// A tensor to write.
#[derive(Debug)]
pub struct BlockedMut<'a> {
    /// Shape and layout.
    pub shape: BlockedShape,
    /// The elements, 64-byte aligned where speed matters.
    pub data: &'a mut [f32],
}

impl<'a> BlockedMut<'a> {
    /// A tensor in `data`.
    ///
    /// # Panics
    /// If `data` is too short.
    pub fn new(shape: BlockedShape, data: &'a mut [f32]) -> Self {
        assert!(data.len() >= shape.len(), "a tensor of {} elements in a buffer of {}", shape.len(), data.len());
        BlockedMut { shape, data }
    }

    pub(crate) fn dst(&mut self) -> Dst {
        let len = self.shape.len();
        Dst::new(&mut self.data[..len])
    }
}

/// Writes the halo at the ends of a row of one block of channels, the left one and the right one
/// where asked for; with the left one of the first row also all above the image, with the right one of
/// the last row all below it.
///
/// # Safety
/// `y` must hold a tensor of `shape`, and no other thread may access this part of it.
pub(crate) unsafe fn zero_ends(
    y: Dst,
    shape: &BlockedShape,
    image: usize,
    block: usize,
    row: usize,
    [first, last]: [bool; 2],
) {
    let Halo { top, left, bottom, right } = shape.halo;
    let (row_stride, pixel) = (shape.row_stride(), shape.pixel());
    // SAFETY: all offsets lie inside the block of channels, by the caller's promise writable and
    // ours.
    unsafe {
        if first {
            y.zero(shape.padded_offset(image, block, row + top, 0), left * pixel);
            if row == 0 {
                y.zero(shape.padded_offset(image, block, 0, 0), top * row_stride);
            }
        }
        if last {
            y.zero(shape.offset(image, block, row, shape.w), right * pixel);
            if row + 1 == shape.h {
                y.zero(shape.padded_offset(image, block, top + shape.h, 0), bottom * row_stride);
            }
        }
    }
}

/// Writes the halo of rows `rows` of one block of channels: their left and right ends, and
/// everything above the first or below the last row of the image if it is among them.
///
/// # Safety
/// `y` must hold a tensor of `shape`, and no other thread may access this part of it.
pub(crate) unsafe fn zero_halo(y: Dst, shape: &BlockedShape, image: usize, block: usize, rows: std::ops::Range<usize>) {
    let Halo { top, left, bottom, right } = shape.halo;
    let row_stride = shape.row_stride();
    // SAFETY: all offsets lie inside the block of channels, by the caller's promise writable and
    // ours.
    unsafe {
        if rows.start == 0 {
            y.zero(shape.padded_offset(image, block, 0, 0), top * row_stride);
        }
        if left + right > 0 {
            for row in rows.clone() {
                y.zero(shape.padded_offset(image, block, row + top, 0), left * shape.pixel());
                y.zero(shape.offset(image, block, row, shape.w), right * shape.pixel());
            }
        }
        if rows.end == shape.h {
            y.zero(shape.padded_offset(image, block, top + shape.h, 0), bottom * row_stride);
        }
    }
}
