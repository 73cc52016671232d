//! The operands of one call, checked once and handed to the algorithms as pointers.

use crate::activation::{Activation, ActivationLimits};
use crate::blocked::lines::Pixels;
use crate::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, Halo};
use crate::conv::register_tiles::ResidualAt;
use crate::simd::{Dst, Src};

/// The values added to the sums before the activation.
#[derive(Clone, Copy, Debug, Default)]
pub enum Residual<'a> {
    /// Nothing.
    #[default]
    None,
    /// A tensor of the output's size.
    Add(Blocked<'a>),
    /// The present values of the output buffer.
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

/// Bytes of an image that no second-level cache keeps from one layer to the next.
const LARGE_OUTPUT: usize = 1 << 20;

/// A running convolution.
#[derive(Clone, Copy)]
pub(super) struct ConvJob<'a> {
    pub x: Src,
    pub xs: BlockedShape,
    pub y: Dst,
    pub ys: BlockedShape,
    residual: Option<(Src, BlockedShape)>,
    /// The output holds the residual until it is written.
    pub in_place: bool,
    pub packed: &'a [f32],
    bias: Option<&'a [f32]>,
    pub limits: ActivationLimits,
}

/// The operands that an algorithm expects.
pub(super) struct ExpectedOperands {
    pub x: BlockedShape,
    pub y: BlockedShape,
    pub packed_len: usize,
    /// Whether the input may be in lines, and whether outputs may.
    pub lines: [bool; 2],
}

impl<'a> ConvJob<'a> {
    /// # Panics
    /// If an operand does not have the size, layout, halo or length that the algorithm was prepared
    /// for.
    pub(super) fn new(
        expected: &ExpectedOperands,
        x: Blocked<'a>,
        packed: &'a [f32],
        epilogue: ConvEpilogue<'a>,
        y: &'a mut BlockedMut<'_>,
    ) -> ConvJob<'a> {
        let [lines_in, lines_out] = expected.lines;
        expect_tensor("input", &x.shape, &expected.x, lines_in);
        expect_tensor("output", &y.shape, &expected.y, lines_out);
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
                expect_tensor("residual", &r.shape, &BlockedShape { halo: Halo::default(), ..expected.y }, lines_out);
                Some((r.src(), r.shape))
            }
        };
        let limits = epilogue.activation.limits();
        ConvJob { x: x.src(), xs: x.shape, y: dst, ys, residual, in_place, packed, bias: epilogue.bias, limits }
    }

    /// The job with the same outputs from another input.
    pub(super) fn with_input(&self, x: Src, xs: BlockedShape) -> ConvJob<'a> {
        ConvJob { x, xs, ..*self }
    }

    /// The job for a band of one image: its inputs begin with this row of the padded image, and its
    /// outputs go to `y`.
    pub(super) fn band(&self, image: usize, input_row: usize, y: Dst, ys: BlockedShape) -> ConvJob<'a> {
        let x = self.x.add(image * self.xs.image_stride + input_row * self.xs.row_stride());
        ConvJob { x, xs: BlockedShape { n: 1, ..self.xs }, y, ys, residual: None, in_place: false, ..*self }
    }

    /// Whether outputs go to lines that are not in the second-level cache: then their lines are
    /// requested while sums are made. Stores that wait for their lines delay everything that
    /// follows them.
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

    /// The residual of an output pixel.
    #[inline(always)]
    pub(super) fn residual_at(&self, image: usize, block: usize, row: usize, col: usize) -> Option<ResidualAt> {
        self.residual.map(|(at, shape)| ResidualAt {
            at: at.add(shape.offset(image, block, row, col)),
            block: shape.block_stride(),
            row: shape.row_stride(),
        })
    }

    /// Whether an operand is in lines.
    pub(super) fn has_lines(&self) -> bool {
        self.xs.in_lines() || self.ys.in_lines() || self.residual.is_some_and(|(_, shape)| shape.in_lines())
    }

    /// The residual of output pixels of 32 channels.
    pub(super) fn residual_pixels(&self, image: usize, pair: usize, row: usize, col: usize) -> Option<Pixels<Src>> {
        self.residual.map(|(at, shape)| Pixels::<Src>::new(at, &shape, image, pair, row, col))
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

fn expect_tensor(what: &str, got: &BlockedShape, expected: &BlockedShape, lines: bool) {
    let layout = got.block == expected.block || (lines && got.in_lines());
    assert!(
        got.same_size(expected) && layout && got.halo.covers(expected.halo),
        "the {what} of a convolution is {got:?}, expected {expected:?} with at least that halo"
    );
}
