//! The operands of one call, checked once and handed to the algorithms as pointers.

use super::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, Halo, zero_halo};
use super::pointwise::{PointwiseRegion, RegionArgs, lanes};
use super::tiles::ResidualAt;
use crate::activation::{Activation, Limits};
use crate::isa::Isa;
use crate::simd::{Dst, Entry, Src, entry};
use std::ops::Range;

/// What is added to the sums before the activation.
#[derive(Clone, Copy, Debug, Default)]
pub enum Residual<'a> {
    /// Nothing.
    #[default]
    None,
    /// A tensor of the output's size.
    Add(Blocked<'a>),
    /// What the output buffer holds.
    InPlace,
}

/// Operands of one convolution.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConvEpilogue<'a> {
    /// One value per output channel.
    pub bias: Option<&'a [f32]>,
    /// Added after the bias.
    pub residual: Residual<'a>,
    /// Applied last.
    pub activation: Activation,
}

/// `activation(y * scale + shift)` of the outputs `y`, made while they are near: a batch normalisation that what follows reads
/// beside them, or instead of them.
#[derive(Debug)]
pub struct Scaled<'a, 'y> {
    /// One factor per output channel.
    pub scale: &'a [f32],
    /// One value per output channel.
    pub shift: &'a [f32],
    /// Applied last.
    pub activation: Activation,
    /// Where it goes, with any halo; in the place of the outputs themselves if there is none.
    pub to: Option<&'a mut BlockedMut<'y>>,
}

/// Bytes of an image that no second-level cache keeps from one layer to the next.
const LARGE_OUTPUT: usize = 1 << 20;

/// A running convolution.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub x: Src,
    pub xs: BlockedShape,
    pub y: Dst,
    pub ys: BlockedShape,
    residual: Option<(Src, BlockedShape)>,
    /// The output holds the residual until it is written.
    pub in_place: bool,
    pub packed: &'a [f32],
    bias: Option<&'a [f32]>,
    pub limits: Limits,
    scaled: Option<ScaledAt<'a>>,
}

/// Where scaled outputs go.
#[derive(Clone, Copy)]
struct ScaledAt<'a> {
    scale: &'a [f32],
    shift: &'a [f32],
    limits: Limits,
    z: Dst,
    zs: BlockedShape,
    body: Entry<RegionArgs>,
}

/// What an algorithm expects of its operands.
pub(super) struct Expected {
    pub x: BlockedShape,
    pub y: BlockedShape,
    pub packed_len: usize,
}

impl<'a> Job<'a> {
    /// # Panics
    /// If an operand does not have the size, layout, halo or length that the algorithm was prepared for.
    pub(super) fn new(
        expected: &Expected,
        x: Blocked<'a>,
        packed: &'a [f32],
        epilogue: ConvEpilogue<'a>,
        y: &'a mut BlockedMut<'_>,
    ) -> Job<'a> {
        expect_tensor("input", &x.shape, &expected.x);
        expect_tensor("output", &y.shape, &expected.y);
        let need = expected.packed_len;
        assert!(packed.len() >= need, "packed weights need {need} elements, got {}", packed.len());
        let channels = expected.y.c;
        assert!(epilogue.bias.is_none_or(|b| b.len() == channels), "the bias needs {channels} elements");
        let (ys, dst) = (y.shape, y.dst());
        let in_place = matches!(epilogue.residual, Residual::InPlace);
        let residual = match epilogue.residual {
            Residual::None => None,
            Residual::InPlace => Some((dst.as_src(), ys)),
            Residual::Add(r) => {
                expect_tensor("residual", &r.shape, &BlockedShape { halo: Halo::default(), ..expected.y });
                Some((r.src(), r.shape))
            }
        };
        let limits = epilogue.activation.limits();
        Job {
            x: x.src(),
            xs: x.shape,
            y: dst,
            ys,
            residual,
            in_place,
            packed,
            bias: epilogue.bias,
            limits,
            scaled: None,
        }
    }

    /// The same with scaled outputs.
    ///
    /// # Panics
    /// If their tensor does not have the size of the outputs, or factors or shifts are not one per channel.
    pub(super) fn scaled(self, scaled: Scaled<'a, '_>, isa: Isa) -> Job<'a> {
        let Scaled { scale, shift, activation, to } = scaled;
        let channels = self.ys.c;
        assert!(scale.len() == channels && shift.len() == channels, "scaling needs {channels} factors and shifts");
        let (z, zs) = to.map_or((self.y, self.ys), |z| (z.dst(), z.shape));
        expect_tensor("scaled output", &zs, &BlockedShape { halo: Halo::default(), ..self.ys });
        let limits = activation.limits();
        Job { scaled: Some(ScaledAt { scale, shift, limits, z, zs, body: entry::<PointwiseRegion>(isa) }), ..self }
    }

    /// The same outputs from another input.
    pub(super) fn with_input(&self, x: Src, xs: BlockedShape) -> Job<'a> {
        Job { x, xs, ..*self }
    }

    /// The same for a band of one image: its inputs begin with this row of the padded image, and its outputs go to `y`.
    pub(super) fn band(&self, image: usize, input_row: usize, y: Dst, ys: BlockedShape) -> Job<'a> {
        let x = self.x.add(image * self.xs.image_stride + input_row * self.xs.row_stride());
        Job { x, xs: BlockedShape { n: 1, ..self.xs }, y, ys, residual: None, in_place: false, scaled: None, ..*self }
    }

    /// Whether outputs go to lines that are not in the second-level cache: then their lines are requested while sums are made.
    /// Stores that wait for their lines hold up all that comes behind them.
    pub(super) fn fetches_outputs(&self) -> bool {
        self.ys.image_len() * size_of::<f32>() > LARGE_OUTPUT
    }

    /// The bias of N blocks of output channels; zero where there is none.
    pub(super) fn bias_block<const N: usize>(&self, first_block: usize) -> BiasBlock<N> {
        let mut block = BiasBlock::default();
        if let Some(bias) = self.bias {
            let values = bias[first_block * BLOCK..].iter();
            block.0.as_flattened_mut().iter_mut().zip(values).for_each(|(b, v)| *b = *v);
        }
        block
    }

    /// Does what is left to do for some rows and columns of a block when its outputs have been stored: scales them, and writes the
    /// halo beside those that end a row.
    ///
    /// # Safety
    /// These outputs belong to this chunk.
    pub(super) unsafe fn finish(&self, image: usize, block: usize, rows: Range<usize>, cols: Range<usize>) {
        let (ys, ends_row) = (&self.ys, cols.end == self.ys.w);
        if let Some(ScaledAt { scale, shift, limits, z, zs, body }) = &self.scaled {
            let (scale, shift) = (lanes(scale, block), lanes(shift, block));
            let args = RegionArgs {
                x: self.y.as_src().add(ys.offset(image, block, rows.start, cols.start)),
                x_row: ys.row_stride(),
                scale: Some(Src::new(&scale)),
                shift: Some(Src::new(&shift)),
                add: None,
                y: z.add(zs.offset(image, block, rows.start, cols.start)),
                y_row: zs.row_stride(),
                rows: rows.len(),
                cols: cols.len(),
                limits: *limits,
            };
            // SAFETY: both tensors have these outputs, by the caller's promise ours; the scaled one was checked to be as large.
            unsafe {
                body(&args);
                if ends_row {
                    zero_halo(*z, zs, image, block, rows.clone());
                }
            }
        }
        if ends_row {
            // SAFETY: as above.
            unsafe { zero_halo(self.y, ys, image, block, rows) }
        }
    }

    /// The residual of an output pixel.
    #[inline(always)]
    pub(super) fn residual_at(&self, image: usize, block: usize, row: usize, col: usize) -> Option<ResidualAt> {
        self.residual.map(|(at, shape)| ResidualAt {
            at: at.add(shape.offset(image, block, row, col)),
            block: shape.block_stride(),
            row: shape.row_stride(),
        })
    }
}

/// N aligned blocks of 16 values.
#[repr(C, align(64))]
pub(super) struct BiasBlock<const N: usize>([[f32; BLOCK]; N]);

impl<const N: usize> Default for BiasBlock<N> {
    fn default() -> Self {
        BiasBlock([[0.0; BLOCK]; N])
    }
}

impl<const N: usize> std::ops::Deref for BiasBlock<N> {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        self.0.as_flattened()
    }
}

fn expect_tensor(what: &str, got: &BlockedShape, expected: &BlockedShape) {
    assert!(
        got.same_size(expected) && got.block == expected.block && got.halo.covers(expected.halo),
        "the {what} of a convolution is {got:?}, expected {expected:?} with at least that halo"
    );
}
