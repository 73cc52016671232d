//! Joining blocked tensors along their channels. Channels of one input begin where those of the
//! input before it end, in the middle of a block if need be.

use crate::blocked::{BLOCK, Blocked, BlockedMut};
use crate::par::{Par, par_chunks_mut};
use crate::vectorize::vectorized;

/// Channels of one block of an input, and the lanes of a block of the output that they go to.
#[derive(Clone, Copy, Debug)]
struct ConcatPiece {
    input: usize,
    block: usize,
    /// First lane in the input and in the output, and how many there are.
    from: usize,
    to: usize,
    count: usize,
}

/// The pieces of each block of the output, in the order of its lanes. The first channel goes to
/// lane `first` of the first block.
fn pieces(channels: &[usize], first: usize) -> Vec<Vec<ConcatPiece>> {
    let mut blocks: Vec<Vec<ConcatPiece>> = vec![Vec::new(); (first + channels.iter().sum::<usize>()).div_ceil(BLOCK)];
    let mut at = first;
    for (input, channels) in channels.iter().enumerate() {
        let mut channel = 0;
        while channel < *channels {
            let (from, to) = (channel % BLOCK, at % BLOCK);
            let count = (BLOCK - from.max(to)).min(channels - channel);
            blocks[at / BLOCK].push(ConcatPiece { input, block: channel / BLOCK, from, to, count });
            (channel, at) = (channel + count, at + count);
        }
    }
    blocks
}

/// Copies the channels of `inputs` one after the other into `y` and writes its halo.
///
/// # Panics
/// If sizes or channels do not fit or the tensors are not in blocks of 16, one image after the
/// other.
pub fn concat(inputs: &[Blocked<'_>], y: &mut BlockedMut<'_>, par: &dyn Par) {
    let ys = y.shape;
    let channels: Vec<usize> = inputs.iter().map(|x| x.shape.c).collect();
    let fits = |x: &Blocked<'_>| (x.shape.n, x.shape.h, x.shape.w, x.shape.block) == (ys.n, ys.h, ys.w, BLOCK);
    assert!(
        channels.iter().sum::<usize>() == ys.c && inputs.iter().all(fits),
        "joining blocked tensors with {channels:?} channels into {ys:?}"
    );
    assert_eq!(ys.image_stride, ys.image_len(), "joining into a slice of a tensor");
    if ys.len() == 0 {
        return;
    }
    let pieces = pieces(&channels, 0);
    let (row, width) = (ys.row_stride(), ys.w * BLOCK);
    par_chunks_mut(par, &mut y.data[..ys.len()], ys.block_stride(), |index, out| {
        let (image, pieces) = (index / pieces.len(), &pieces[index % pieces.len()]);
        out[..ys.halo.top * row].fill(0.0);
        out[(ys.halo.top + ys.h) * row..].fill(0.0);
        for (r, line) in out[ys.halo.top * row..].chunks_exact_mut(row).take(ys.h).enumerate() {
            let left = ys.halo.left * BLOCK;
            line[..left].fill(0.0);
            for piece in pieces {
                let x = &inputs[piece.input];
                let from = x.shape.offset(image, piece.block, r, 0);
                copy_piece(piece, &x.data[from..from + width], &mut line[left..left + width]);
            }
            line[left + width..].fill(0.0);
        }
    });
}

/// Copies the channels of `x`, its halo included, to those of `y` that begin at lane `first` of its
/// first block. What `y` holds in the lanes before that stays.
///
/// # Panics
/// If the tensors differ in more than their channels, `y` does not end with the channels of `x`, or
/// there are several images.
pub fn concat_behind(x: Blocked<'_>, first: usize, y: &mut BlockedMut<'_>, par: &dyn Par) {
    let (xs, ys) = (x.shape, y.shape);
    let frame = |n, h, w, halo, block| (n, h, w, halo, block);
    assert!(
        frame(1, xs.h, xs.w, xs.halo, BLOCK) == frame(ys.n, ys.h, ys.w, ys.halo, ys.block)
            && (xs.n, xs.block, xs.c + first) == (1, BLOCK, ys.c),
        "joining {xs:?} to {ys:?} from lane {first} on"
    );
    let (pieces, stride) = (pieces(&[xs.c], first), xs.block_stride());
    if stride == 0 {
        return;
    }
    par_chunks_mut(par, &mut y.data[..ys.len()], stride, |block, out| {
        pieces[block].iter().for_each(|piece| copy_piece(piece, &x.data[piece.block * stride..][..stride], out));
    });
}

/// Copies a piece of every pixel. What comes first in a block may write all of its lanes, as what
/// follows writes the others.
fn copy_piece(piece: &ConcatPiece, src: &[f32], dst: &mut [f32]) {
    if (piece.from, piece.to) == (0, 0) {
        dst.copy_from_slice(src);
    } else {
        let ConcatPiece { from, to, count, .. } = *piece;
        copy_lanes(src, dst, from, to, count);
    }
}

vectorized! {
    /// Copies `count` lanes of every pixel, from lane `from` to lane `to`.
    fn copy_lanes[](src: &[f32], dst: &mut [f32], from: usize, to: usize, count: usize) {
        let wanted: [bool; BLOCK] = std::array::from_fn(|lane| (to..to + count).contains(&lane));
        // Whole lines that lie as their lanes in the output; the first and the last would begin
        // before or end after the input.
        let (src_pixels, _) = src.as_chunks::<BLOCK>();
        let (dst_pixels, _) = dst.as_chunks_mut::<BLOCK>();
        let last = dst_pixels.len().saturating_sub(1);
        for (p, (out, pixel)) in dst_pixels.iter_mut().zip(src_pixels).enumerate() {
            if p == 0 || p == last {
                out[to..to + count].copy_from_slice(&pixel[from..from + count]);
                continue;
            }
            let line = &src[p * BLOCK + from - to..][..BLOCK];
            for lane in 0..BLOCK {
                out[lane] = if wanted[lane] { line[lane] } else { out[lane] };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocked::{BlockedShape, Halo, from_blocked, to_blocked};
    use crate::isa::Isa;
    use crate::par::Serial;
    use crate::testing::random;
    use proptest::prelude::*;

    const SIZE: [usize; 2] = [3, 4];

    fn shape(n: usize, c: usize, halo: usize) -> BlockedShape {
        let halo = Halo { top: halo, left: halo + 1, bottom: 0, right: 2 };
        BlockedShape::new(n, c, SIZE[0], SIZE[1], halo)
    }

    /// A tensor in the blocked layout, with NaN where nothing may be read.
    fn blocked(x: &[f32], shape: BlockedShape) -> Vec<f32> {
        let mut data = vec![f32::NAN; shape.len()];
        to_blocked(Isa::detect(), x, &mut BlockedMut::new(shape, &mut data), &Serial);
        let unused = shape.c % BLOCK..BLOCK;
        if unused.start > 0 {
            for image in data.chunks_mut(shape.image_stride) {
                let last = shape.image_len() - shape.block_stride();
                image[last..].chunks_mut(BLOCK).for_each(|pixel| pixel[unused.clone()].fill(f32::NAN));
            }
        }
        data
    }

    fn plain(data: &[f32], shape: BlockedShape) -> Vec<f32> {
        let mut x = vec![0.0; shape.n * shape.c * shape.h * shape.w];
        from_blocked(Isa::detect(), Blocked::new(shape, data), &mut x, &Serial);
        x
    }

    /// Whether all pixels of the halo are zero in the lanes of channels.
    fn has_halo(data: &[f32], shape: BlockedShape) -> bool {
        let Halo { top, left, .. } = shape.halo;
        let columns = shape.row_stride() / BLOCK;
        data.chunks(shape.block_stride()).enumerate().all(|(block, data)| {
            let lanes = BLOCK.min(shape.c - block % shape.blocks() * BLOCK);
            data.chunks(BLOCK).enumerate().all(|(p, pixel)| {
                let (row, col) = (p / columns, p % columns);
                let inside = (top..top + shape.h).contains(&row) && (left..left + shape.w).contains(&col);
                inside || pixel[..lanes].iter().all(|v| *v == 0.0)
            })
        })
    }

    /// The images of plain tensors joined.
    fn joined(parts: &[Vec<f32>], n: usize) -> Vec<f32> {
        let image = |x: &Vec<f32>, i: usize| x[i * x.len() / n..(i + 1) * x.len() / n].to_vec();
        (0..n).flat_map(|i| parts.iter().flat_map(move |x| image(x, i))).collect()
    }

    proptest! {
        #[test]
        fn joined_tensors_are_those_of_the_plain_layout(
            n in 1usize..3,
            channels in prop::collection::vec(prop_oneof![1usize..40, Just(16), Just(32)], 1..6),
        ) {
            let parts: Vec<Vec<f32>> =
                channels.iter().zip(1..).map(|(c, seed)| random(n * c * SIZE[0] * SIZE[1], seed)).collect();
            let shapes: Vec<BlockedShape> = channels.iter().map(|c| shape(n, *c, c % 3)).collect();
            let data: Vec<Vec<f32>> = parts.iter().zip(&shapes).map(|(x, s)| blocked(x, *s)).collect();
            let inputs: Vec<Blocked<'_>> = shapes.iter().zip(&data).map(|(s, d)| Blocked::new(*s, d)).collect();
            let ys = shape(n, channels.iter().sum(), 1);
            let mut y = vec![f32::NAN; ys.len()];
            concat(&inputs, &mut BlockedMut::new(ys, &mut y), &Serial);
            prop_assert_eq!(plain(&y, ys), joined(&parts, n));
            prop_assert!(has_halo(&y, ys));
        }

        #[test]
        fn channels_behind_others_leave_those_as_they_are(before in 1usize..40, c in 1usize..40) {
            let (old, new) = (random(before * 12, 1), random(c * 12, 2));
            let ys = shape(1, before + c, 1);
            let first = before / BLOCK * BLOCK;
            // The blocks of what is before, which end in the block that both share, and nothing
            // known behind.
            let mut y = blocked(&old, shape(1, before, 1));
            y.resize(ys.len(), f32::NAN);
            let region = shape(1, before - first + c, 1);
            let at = first / BLOCK * ys.block_stride();
            let x = blocked(&new, shape(1, c, 1));
            let mut rest = BlockedMut::new(region, &mut y[at..]);
            concat_behind(Blocked::new(shape(1, c, 1), &x), before - first, &mut rest, &Serial);
            prop_assert_eq!(plain(&y, ys), joined(&[old, new], 1));
            prop_assert!(has_halo(&y, ys));
        }
    }
}
