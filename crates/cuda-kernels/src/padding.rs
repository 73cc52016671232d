//! Channels of images and weights that are padded to whole pieces: `lengthen_rows` of `moving.h`.

use crate::arguments::{ConvolutionArgument, LengthenArgument, LongerRowsArgument};
use crate::launch::{each, launch};
use mxrt_cuda::Grid;
use mxrt_engine::{DeviceCtx, OpError};

/// Bytes of a piece.
const PIECE: usize = 16;
/// Elements that begin at one place of a row (`LONGER_PART` of the text).
const PART: usize = 4;

/// Copies of the image and of the weights of a convolution whose channels are no whole pieces. What
/// they have more is zeros.
#[derive(Clone, Copy)]
pub(crate) struct Padding {
    /// the convolution of the copies
    pub after: ConvolutionArgument,
    grid: Grid,
    argument: LengthenArgument,
}

impl Padding {
    /// Copies in pieces of `piece` elements; none if they are too many to count in 32 bits.
    pub fn new(p: &ConvolutionArgument, piece: usize) -> Option<Padding> {
        let [channels, filters] = [p.channels, p.filters].map(|extent| extent as usize);
        let (height, width) = (p.size[1] as usize, p.size[2] as usize);
        let (down, right, groups) = (p.kernel[1] as usize, p.kernel[2] as usize, p.groups as usize);
        let pixels = (p.images as usize).checked_mul(height)?;
        let filters = filters.checked_mul(groups)?;
        let (after, rows) = if is_paired(p, piece) {
            let (left, pairs) = (p.pad[2], width.checked_add(p.pad[2] as usize)?.div_ceil(2));
            let after = ConvolutionArgument {
                channels: piece as i64,
                size: [1, p.size[1], i32::try_from(pairs).ok()?],
                kernel: [1, p.kernel[1], (p.kernel[2] + 1) / 2],
                step: [p.step[0], p.step[1], p.step[2] / 2],
                pad: [p.pad[0], p.pad[1], 0],
                ..*p
            };
            let image = LongerRow { count: width, width: channels, wide: PART, before: left as usize, size: 2 * pairs };
            let weight = filters_of(channels, PART, filters)?;
            let weight = LongerRow { count: right, size: right.next_multiple_of(2), ..weight };
            (after, [image.times(pixels, piece)?, weight.times(down, piece)?])
        } else {
            let padded = channels.next_multiple_of(piece);
            let image = LongerRow { count: 1, width: channels, wide: padded, before: 0, size: 1 };
            let pixels = pixels.checked_mul(width)?.checked_mul(groups)?;
            let weight = filters_of(channels, padded, filters)?;
            let after = ConvolutionArgument { channels: padded as i64, ..*p };
            (after, [image.times(pixels, piece)?, weight.times(down * right, piece)?])
        };
        let pieces = i32::try_from(rows[0].pieces.checked_add(rows[1].pieces)?).ok()?;
        let argument = LengthenArgument { rows, size: (PIECE / piece) as i32, unused: 0 };
        Some(Padding { after, grid: each(pieces as usize)?, argument })
    }

    /// Makes the copies, and the convolution of them.
    pub fn launch(&self, ctx: &DeviceCtx<'_>, p: ConvolutionArgument) -> Result<ConvolutionArgument, OpError> {
        let [image, weight] = self.argument.rows;
        let bytes = |rows: LongerRowsArgument| rows.pieces as usize * PIECE;
        let scratch = ctx.scratch(bytes(image) + bytes(weight))?;
        let (from, weights) = (scratch.0, scratch.offset(bytes(image)).0);
        let rows = [
            LongerRowsArgument { to: from, from: p.from, ..image },
            LongerRowsArgument { to: weights, from: p.weight, ..weight },
        ];
        launch(ctx, c"lengthen_rows", self.grid, &LengthenArgument { rows, ..self.argument })?;
        let ConvolutionArgument { channels, size, kernel, step, pad, .. } = self.after;
        Ok(ConvolutionArgument { from, weight: weights, channels, size, kernel, step, pad, ..p })
    }
}

/// Whether a piece holds two neighbours of a row of the image: the windows then begin at every first
/// or second pair, and a tap reads two pixels. Half of a piece would otherwise be zeros.
fn is_paired(p: &ConvolutionArgument, piece: usize) -> bool {
    piece == 2 * PART && p.channels <= PART as i64 && p.groups == 1 && p.step[2] % 2 == 0 && p.dilate[2] == 1
}

/// A row of `count` groups of `width` elements, which become `size` groups of `wide` elements, the
/// first `before` of them empty.
struct LongerRow {
    count: usize,
    width: usize,
    wide: usize,
    before: usize,
    size: usize,
}

/// The weights of a tap.
fn filters_of(channels: usize, padded: usize, filters: usize) -> Option<LongerRow> {
    let (width, wide) = (channels.checked_mul(filters)?, padded.checked_mul(filters)?);
    Some(LongerRow { count: 1, width, wide, before: 0, size: 1 })
}

impl LongerRow {
    fn times(&self, rows: usize, piece: usize) -> Option<LongerRowsArgument> {
        let of_row = self.size.checked_mul(self.wide)? / piece;
        let small = |number: usize| u32::try_from(number).ok();
        Some(LongerRowsArgument {
            to: 0,
            from: 0,
            pieces: small(rows.checked_mul(of_row)?)?,
            row_pieces: small(of_row)?,
            count: small(self.count)?,
            width: small(self.width)?,
            wide: small(self.wide)?,
            before: small(self.before)?,
        })
    }
}
