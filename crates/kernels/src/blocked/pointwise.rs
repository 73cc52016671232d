//! Element-wise work on the blocked layout that no convolution could take along: scale and shift of
//! channels (a batch normalisation before an activation), sums of branches, activations, and copies
//! into another halo or a slice of a wider tensor.

use crate::activation::{Activation, ActivationLimits};
use crate::blocked::chunks::{Chunk, ChunkGrid};
use crate::blocked::lines::{Pixels, blocks_of_pair, pairs};
use crate::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, LINE_CHANNELS, zero_halo};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Body, Dst, LANES, PairsBody, Rounding, Simd, Src, entry, entry_lines};

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
/// If tensors differ in size or are not in blocks of 16 or lines, or `scale` or `shift` has another length
/// than said.
pub fn pointwise(isa: Isa, x: Blocked<'_>, op: Pointwise<'_>, y: &mut BlockedMut<'_>, par: &dyn Par) {
    let (xs, ys) = (x.shape, y.shape);
    let agree = |s: &BlockedShape| s.same_size(&ys) && (s.block == BLOCK || s.in_lines());
    assert!(agree(&xs) && agree(&ys), "computing {ys:?} from {xs:?}: sizes must agree, in blocks of 16 or lines");
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
    let any_lines = xs.in_lines() || ys.in_lines() || op.add.is_some_and(|a| a.shape.in_lines());
    let (body, lines) = (entry::<PointwiseRow>(isa), entry_lines::<PointwiseLines>(isa));
    let parts = if any_lines { pairs(&ys) } else { ys.blocks() };
    let cut = ChunkGrid::halves(ys.h, parts, ys.w * BLOCK * ys.blocks().div_ceil(parts), CHUNK_WORK);
    par.run(cut.chunks(ys.n), 0, &|chunk, _| {
        let Chunk { image, rows, parts } = cut.chunk(chunk, ys.n);
        for part in parts {
            let of_image = |v: &'_ [f32]| image * channels % v.len();
            let limits = op.activation.limits();
            if any_lines {
                let scale = op.scale.map(|v| lanes::<LINE_CHANNELS>(&v[of_image(v)..][..channels], part));
                let shift = op.shift.map(|v| lanes::<LINE_CHANNELS>(v, part));
                for row in rows.clone() {
                    let args = LineRowArgs {
                        x: Pixels::<Src>::new(src, &xs, image, part, row, 0),
                        scale: scale.as_ref().map(|v| Src::new(v)),
                        shift: shift.as_ref().map(|v| Src::new(v)),
                        add: add.map(|(a, s)| Pixels::<Src>::new(a, &s, image, part, row, 0)),
                        y: Pixels::<Dst>::new(dst, &ys, image, part, row, 0),
                        cols: ys.w,
                        limits,
                    };
                    // SAFETY: all buffers hold tensors of their shapes, and this row of these
                    // channels belongs to this chunk.
                    unsafe { lines(&args) }
                }
                for block in blocks_of_pair(&ys, part) {
                    // SAFETY: as above.
                    unsafe { zero_halo(dst, &ys, image, block, rows.clone()) }
                }
                continue;
            }
            let scale = op.scale.map(|v| lanes::<BLOCK>(&v[of_image(v)..][..channels], part));
            let shift = op.shift.map(|v| lanes::<BLOCK>(v, part));
            for row in rows.clone() {
                let args = RowArgs {
                    x: src.add(xs.offset(image, part, row, 0)),
                    scale: scale.as_ref().map(|v| Src::new(v)),
                    shift: shift.as_ref().map(|v| Src::new(v)),
                    add: add.map(|(a, s)| a.add(s.offset(image, part, row, 0))),
                    y: dst.add(ys.offset(image, part, row, 0)),
                    cols: ys.w,
                    limits,
                };
                // SAFETY: as above.
                unsafe { body(&args) }
            }
            // SAFETY: as above.
            unsafe { zero_halo(dst, &ys, image, part, rows.clone()) }
        }
    });
}

/// The values of N channels; zero beyond the last one.
fn lanes<const N: usize>(values: &[f32], part: usize) -> [f32; N] {
    let mut lanes = [0.0; N];
    lanes.iter_mut().zip(&values[part * N..]).for_each(|(l, v)| *l = *v);
    lanes
}

struct RowArgs {
    x: Src,
    scale: Option<Src>,
    shift: Option<Src>,
    add: Option<Src>,
    y: Dst,
    cols: usize,
    limits: ActivationLimits,
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

/// A row of 32 channels, where one of the tensors is in lines.
struct LineRowArgs {
    x: Pixels<Src>,
    scale: Option<Src>,
    shift: Option<Src>,
    add: Option<Pixels<Src>>,
    y: Pixels<Dst>,
    cols: usize,
    limits: ActivationLimits,
}

struct PointwiseLines;

impl PairsBody for PointwiseLines {
    type Args = LineRowArgs;
    #[inline(always)]
    unsafe fn run<S: Rounding>(s: S, x: &LineRowArgs) {
        let limits = x.limits.ready(s);
        // SAFETY: the caller passes rows of `cols` pixels and 32 channels of scale and shift.
        unsafe {
            let scale = x.scale.map(|p| [s.load(p, 0), s.load(p, LANES)]);
            let shift = x.shift.map(|p| [s.load(p, 0), s.load(p, LANES)]);
            for at in (0..x.cols * LANES).step_by(LANES) {
                let mut v = x.x.load(s, at);
                let add = x.add.map(|add| add.load(s, at));
                for i in 0..2 {
                    v[i] = match (scale, shift) {
                        (Some(a), Some(b)) => s.fma(v[i], a[i], b[i]),
                        (Some(a), None) => s.mul(v[i], a[i]),
                        (None, Some(b)) => s.add(v[i], b[i]),
                        (None, None) => v[i],
                    };
                    if let Some(add) = add {
                        v[i] = s.add(v[i], add[i]);
                    }
                    v[i] = limits.apply(s, v[i]);
                }
                x.y.store(s, at, v);
            }
        }
    }
}
