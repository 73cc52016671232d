//! Joining blocked tensors along their channels.

use super::blocked::{BLOCK, Blocked, BlockedMut};
use crate::par::{Par, par_chunks_mut};

/// Whether tensors with these channels can be joined block by block: all but the last fill their blocks.
pub fn can_concat(channels: &[usize]) -> bool {
    channels.split_last().is_some_and(|(_, before)| before.iter().all(|c| c % BLOCK == 0))
}

/// Copies the blocks of `inputs` one behind the other into `y` and writes its halo.
///
/// # Panics
/// If sizes or channels do not fit or the tensors are not in blocks of 16, one image behind the other.
pub fn concat(inputs: &[Blocked<'_>], y: &mut BlockedMut<'_>, par: &dyn Par) {
    let ys = y.shape;
    let channels: Vec<usize> = inputs.iter().map(|x| x.shape.c).collect();
    let fits = |x: &Blocked<'_>| (x.shape.n, x.shape.h, x.shape.w, x.shape.block) == (ys.n, ys.h, ys.w, BLOCK);
    assert!(
        can_concat(&channels) && channels.iter().sum::<usize>() == ys.c && inputs.iter().all(fits),
        "joining blocked tensors with {channels:?} channels into {ys:?}"
    );
    assert_eq!(ys.image_stride, ys.image_len(), "joining into a slice of a tensor");
    if ys.len() == 0 {
        return;
    }
    // (input, block of it) for every block of an image
    let sources: Vec<(usize, usize)> =
        inputs.iter().enumerate().flat_map(|(i, x)| (0..x.shape.blocks()).map(move |b| (i, b))).collect();
    let (row, width) = (ys.row_stride(), ys.w * BLOCK);
    par_chunks_mut(par, &mut y.data[..ys.len()], ys.block_stride(), |index, out| {
        let (input, block) = sources[index % sources.len()];
        let x = &inputs[input];
        let (image, xs) = (index / sources.len(), x.shape);
        out[..ys.halo.top * row].fill(0.0);
        out[(ys.halo.top + ys.h) * row..].fill(0.0);
        for (r, line) in out[ys.halo.top * row..].chunks_exact_mut(row).take(ys.h).enumerate() {
            let from = xs.offset(image, block, r, 0);
            let left = ys.halo.left * BLOCK;
            line[..left].fill(0.0);
            line[left..left + width].copy_from_slice(&x.data[from..from + width]);
            line[left + width..].fill(0.0);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv_fast::{BlockedShape, Halo, from_blocked, to_blocked};
    use crate::isa::Isa;
    use crate::par::Serial;

    #[test]
    fn joined_tensors_are_those_of_the_plain_layout() {
        let halo = |n| Halo { top: n, left: n + 1, bottom: 0, right: 2 };
        let channels = [32, 16, 5];
        let shapes = channels.map(|c| BlockedShape::new(2, c, 3, 4, halo(c % 3)));
        let plain: Vec<Vec<f32>> =
            channels.iter().map(|c| (0..2 * c * 12).map(|i| (i * 7 + c) as f32).collect()).collect();
        let blocked: Vec<Vec<f32>> = shapes
            .iter()
            .zip(&plain)
            .map(|(s, x)| {
                let mut data = vec![f32::NAN; s.len()];
                to_blocked(Isa::detect(), x, &mut BlockedMut::new(*s, &mut data), &Serial);
                data
            })
            .collect();
        let ys = BlockedShape::new(2, 53, 3, 4, halo(1));
        let mut y = vec![f32::NAN; ys.len()];
        let inputs: Vec<Blocked<'_>> = shapes.iter().zip(&blocked).map(|(s, d)| Blocked::new(*s, d)).collect();
        concat(&inputs, &mut BlockedMut::new(ys, &mut y), &Serial);
        let mut got = vec![0.0; 2 * 53 * 12];
        from_blocked(Isa::detect(), Blocked::new(ys, &y), &mut got, &Serial);
        for image in 0..2 {
            let want: Vec<f32> =
                plain.iter().flat_map(|x| x.chunks(x.len() / 2).nth(image).unwrap_or(&[]).to_vec()).collect();
            assert_eq!(&got[image * want.len()..][..want.len()], &want[..]);
        }
        assert_eq!(y[0], 0.0, "the halo is written");
    }
}
