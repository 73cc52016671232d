//! Element-wise work on the blocked layout that no convolution could take along: scale and shift of
//! channels (a batch normalisation before an activation), sums of branches, activations, and copies
//! into another halo or a slice of a wider tensor.

use crate::activation::{Activation, Limits};
use crate::blocked::chunks::{Chunk, ChunkGrid};
use crate::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, zero_halo};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Body, Dst, LANES, Simd, Src, entry};

/// `activation(x * scale + shift + add)`; what is absent is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pointwise<'a> {
    /// One value per channel, or per image and channel.
    pub scale: Option<&'a [f32]>,
    /// One value per channel.
    pub shift: Option<&'a [f32]>,
    /// A tensor of the same size.
    pub add: Option<Blocked<'a>>,
    /// Applied last.
    pub activation: Activation,
}

/// Elements that a chunk should have at least.
const CHUNK_WORK: usize = 32 << 10;

/// Computes `y` from `x` and writes its halo.
///
/// # Panics
/// If tensors differ in size or are not in blocks of 16, or `scale` or `shift` has another length
/// than said.
pub fn pointwise(isa: Isa, x: Blocked<'_>, op: Pointwise<'_>, y: &mut BlockedMut<'_>, par: &dyn Par) {
    let (xs, ys) = (x.shape, y.shape);
    let agree = |s: &BlockedShape| s.same_size(&ys) && s.block == BLOCK;
    assert!(agree(&xs) && agree(&ys), "computing {ys:?} from {xs:?}: size and blocks of 16 must agree");
    assert!(op.add.is_none_or(|a| agree(&a.shape)), "adding a tensor of another size to {ys:?}");
    let channels = ys.c;
    assert!(
        op.scale.is_none_or(|v| v.len() == channels || v.len() == ys.n * channels),
        "scale needs {channels} values"
    );
    assert!(op.shift.is_none_or(|v| v.len() == channels), "shift needs {channels} values");
    if ys.h == 0 || ys.w == 0 {
        return;
    }
    let add = op.add.map(|a| (a.src(), a.shape));
    let (src, dst) = (x.src(), y.dst());
    let body = entry::<PointwiseRow>(isa);
    let cut = ChunkGrid::halves(ys.h, ys.blocks(), ys.w * BLOCK, CHUNK_WORK);
    par.run(cut.chunks(ys.n), 0, &|chunk, _| {
        let Chunk { image, rows, parts } = cut.chunk(chunk, ys.n);
        for block in parts {
            let scale = op.scale.map(|v| lanes(&v[image * channels % v.len()..][..channels], block));
            let shift = op.shift.map(|v| lanes(v, block));
            for row in rows.clone() {
                let args = RowArgs {
                    x: src.add(xs.offset(image, block, row, 0)),
                    scale: scale.as_ref().map(|v| Src::new(v)),
                    shift: shift.as_ref().map(|v| Src::new(v)),
                    add: add.map(|(a, s)| a.add(s.offset(image, block, row, 0))),
                    y: dst.add(ys.offset(image, block, row, 0)),
                    cols: ys.w,
                    limits: op.activation.limits(),
                };
                // SAFETY: all buffers hold tensors of their shapes, and this row of this block
                // belongs to this chunk.
                unsafe { body(&args) }
            }
            // SAFETY: as above.
            unsafe { zero_halo(dst, &ys, image, block, rows.clone()) }
        }
    });
}

/// The values of one block of channels; zero beyond the last channel.
fn lanes(values: &[f32], block: usize) -> [f32; BLOCK] {
    let mut lanes = [0.0; BLOCK];
    lanes.iter_mut().zip(&values[block * BLOCK..]).for_each(|(l, v)| *l = *v);
    lanes
}

struct RowArgs {
    x: Src,
    scale: Option<Src>,
    shift: Option<Src>,
    add: Option<Src>,
    y: Dst,
    cols: usize,
    limits: Limits,
}

struct PointwiseRow;

impl Body for PointwiseRow {
    type Args = RowArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &RowArgs) {
        let limits = x.limits.ready(s);
        // SAFETY: the caller passes rows of `cols` pixels and one block of scale and shift.
        unsafe {
            let scale = x.scale.map(|p| s.load(p, 0));
            let shift = x.shift.map(|p| s.load(p, 0));
            for at in (0..x.cols * LANES).step_by(LANES) {
                let mut v = s.load(x.x, at);
                v = match (scale, shift) {
                    (Some(a), Some(b)) => s.fma(v, a, b),
                    (Some(a), None) => s.mul(v, a),
                    (None, Some(b)) => s.add(v, b),
                    (None, None) => v,
                };
                if let Some(add) = x.add {
                    v = s.add(v, s.load(add, at));
                }
                s.store(x.y, at, limits.apply(s, v));
            }
        }
    }
}
