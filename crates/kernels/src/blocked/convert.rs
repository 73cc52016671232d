//! Conversions between NCHW and the blocked layout, at the borders of a network.

use crate::blocked::chunks::{Chunk, ChunkGrid};
use crate::blocked::lines::{CopyArgs, CopyPixels, Pixels};
use crate::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, Halo, LINE_CHANNELS, zero_halo};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Body, Dst, LANES, Simd, Src, entry, entry_lines};

/// Elements that a chunk of copied rows should have at least.
const CHUNK_WORK: usize = 16 << 10;

/// Images that are slices of volumes. A plain tensor holds them as `[volumes][c][count][h][w]`, a
/// blocked one as `[volumes][total]` images, of which `count` from number `before` on are slices
/// (as far as there is room) and the others zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices {
    pub count: usize,
    pub before: usize,
    pub total: usize,
}

impl Slices {
    /// Every image is a volume.
    pub(crate) const NONE: Slices = Slices { count: 1, before: 0, total: 1 };

    /// The plane of an image's first channel in the plain tensor; none if the image is zeros. The
    /// next channel's is `count` planes on.
    fn first_plane(&self, image: usize, channels: usize) -> Option<usize> {
        let slice = (image % self.total).checked_sub(self.before).filter(|slice| *slice < self.count)?;
        Some(image / self.total * channels * self.count + slice)
    }

    /// Elements of the plain tensor for blocked images of this shape.
    fn plain_len(&self, shape: &BlockedShape) -> usize {
        shape.n / self.total * self.count * shape.c * shape.h * shape.w
    }
}

/// Copies `[n, c, h, w]` into the layout of `y` and writes its halo.
///
/// # Panics
/// If `x` is not as large as the shape of `y` says, or `y` is in lines.
pub fn to_blocked(isa: Isa, x: &[f32], y: &mut BlockedMut<'_>, par: &dyn Par) {
    slices_to_blocked(isa, x, Slices::NONE, y, par);
}

/// Converts slices of volumes to blocks.
pub(crate) fn slices_to_blocked(isa: Isa, x: &[f32], slices: Slices, y: &mut BlockedMut<'_>, par: &dyn Par) {
    let shape = y.shape;
    let plane = shape.h * shape.w;
    assert_eq!(x.len(), slices.plain_len(&shape), "elements of a plain tensor of {shape:?}, {slices:?}");
    if plane == 0 {
        return;
    }
    let next = slices.count * plane;
    let (src, dst) = (Src::new(x), y.dst());
    let convert = entry::<FromPlanes>(isa);
    assert!(!shape.in_lines(), "a plain tensor becomes blocks, not lines");
    if shape.block == 1 {
        let cut = ChunkGrid::halves(shape.h, shape.c, shape.w, CHUNK_WORK);
        return par.run(cut.chunks(shape.n), 0, &|chunk, _| {
            let Chunk { image, rows, parts } = cut.chunk(chunk, shape.n);
            let Some(first) = slices.first_plane(image, shape.c) else {
                if rows.start == 0 {
                    // SAFETY: `dst` holds a tensor of `shape`; the chunk with the first rows has
                    // these planes for itself.
                    parts.for_each(|channel| unsafe { zero_block(dst, &shape, image, channel) });
                }
                return;
            };
            for channel in parts {
                let plane = src.add(first * plane + channel * next);
                let out = dst.add(shape.offset(image, channel, 0, 0));
                // SAFETY: `dst` holds a tensor of `shape`; each chunk has rows of its own.
                unsafe {
                    zero_halo(dst, &shape, image, channel, rows.clone());
                    for row in rows.clone() {
                        out.copy_from(row * shape.row_stride(), plane.add(row * shape.w), shape.w);
                    }
                }
            }
        });
    }
    par.run(shape.n * shape.blocks(), 0, &|chunk, _| {
        let (image, block) = (chunk / shape.blocks(), chunk % shape.blocks());
        let Some(plane) = slices.first_plane(image, shape.c).map(|first| first * plane) else {
            // SAFETY: `dst` holds a tensor of `shape`; each chunk has a block of its own.
            return unsafe { zero_block(dst, &shape, image, block) };
        };
        let first = block * shape.block;
        let planes = src.add(plane + first * next);
        // SAFETY: `dst` holds a tensor of `shape`, `planes` the channels of this block; each chunk
        // has a block of its own.
        unsafe {
            zero_halo(dst, &shape, image, block, 0..shape.h);
            let out = dst.add(shape.offset(image, block, 0, 0));
            let channels = shape.block.min(shape.c - first);
            convert(&PlaneArgs { planes, next, blocked: out, shape, channels });
        }
    });
}

/// Copies a tensor to `[n, c, h, w]`.
///
/// # Panics
/// If `y` is not as large as the shape of `x` says.
pub fn from_blocked(isa: Isa, x: Blocked<'_>, y: &mut [f32], par: &dyn Par) {
    slices_from_blocked(isa, x, 1, y, par);
}

/// Converts blocks to volumes of `count` slices.
pub(crate) fn slices_from_blocked(isa: Isa, x: Blocked<'_>, count: usize, y: &mut [f32], par: &dyn Par) {
    let shape = x.shape;
    let plane = shape.h * shape.w;
    assert_eq!(y.len(), shape.n * shape.c * plane, "elements of a plain tensor of {shape:?}");
    if plane == 0 {
        return;
    }
    let next = count * plane;
    let (src, dst) = (x.src(), Dst::new(y));
    let convert = entry::<ToPlanes>(isa);
    if shape.in_lines() {
        let row = BlockedShape::new(1, LINE_CHANNELS, 1, shape.w, Halo::default());
        let (copy, bytes) = (entry_lines::<CopyPixels>(isa), row.len() * size_of::<f32>());
        return par.run(shape.n * shape.blocks(), bytes, &|chunk, scratch| {
            let (image, line) = (chunk / shape.blocks(), chunk % shape.blocks());
            let planes = dst.add((image / count * shape.c + line * LINE_CHANNELS) * next + image % count * plane);
            let blocks = Dst::new(bytemuck::cast_slice_mut(&mut scratch[..bytes]));
            for y in 0..shape.h {
                let from = Pixels::Lines(src.add(shape.offset(image, line, y, 0)));
                let to = Pixels::<Dst>::new(blocks, &row, 0, 0, 0, 0);
                // SAFETY: `src` holds a tensor of `shape`, the scratch memory two blocks of a row,
                // `planes` the channels of this line; each chunk has a line of its own.
                unsafe {
                    copy(&CopyArgs { from, to, step: BLOCK, count: shape.w });
                    let channels = shape.c - line * LINE_CHANNELS;
                    for half in (0..2).filter(|half| half * BLOCK < channels) {
                        let planes = planes.add(half * BLOCK * next + y * shape.w);
                        let blocked = blocks.as_src().add(row.offset(0, half, 0, 0));
                        let channels = BLOCK.min(channels - half * BLOCK);
                        convert(&PlaneArgs { planes, next, blocked, shape: row, channels });
                    }
                }
            }
        });
    }
    par.run(shape.n * shape.blocks(), 0, &|chunk, _| {
        let (image, block) = (chunk / shape.blocks(), chunk % shape.blocks());
        let first = block * shape.block;
        let planes = dst.add((image / count * shape.c + first) * next + image % count * plane);
        let from = src.add(shape.offset(image, block, 0, 0));
        // SAFETY: `src` holds a tensor of `shape`, `planes` the channels of this block; each chunk
        // has a block of its own.
        unsafe {
            if shape.block == 1 {
                for row in 0..shape.h {
                    planes.copy_from(row * shape.w, from.add(row * shape.row_stride()), shape.w);
                }
            } else {
                let channels = shape.block.min(shape.c - first);
                convert(&PlaneArgs { planes, next, blocked: from, shape, channels });
            }
        }
    });
}

/// Writes zeros to a block of channels of an image.
///
/// # Safety
/// `y` must hold a tensor of `shape`, and no other thread may access this block.
unsafe fn zero_block(y: Dst, shape: &BlockedShape, image: usize, block: usize) {
    // SAFETY: the block lies in the tensor, by the caller's promise writable and ours.
    unsafe { y.zero(shape.padded_offset(image, block, 0, 0), shape.block_stride()) }
}

/// One block of channels: the first of its planes, the distance to the next, and its first pixel in
/// the blocked tensor.
struct PlaneArgs<P, B> {
    planes: P,
    next: usize,
    blocked: B,
    shape: BlockedShape,
    channels: usize,
}

/// Walks the pixels of an image, giving their place in a row-strided one.
struct ImagePixels {
    w: usize,
    col: usize,
    at: usize,
    step: usize,
    next_row: usize,
}

impl ImagePixels {
    #[inline(always)]
    fn new(shape: &BlockedShape) -> ImagePixels {
        let step = shape.block;
        ImagePixels { w: shape.w, col: 0, at: 0, step, next_row: shape.row_stride() - (shape.w - 1) * step }
    }
    /// The place of the current pixel; moves to the next.
    #[inline(always)]
    fn next(&mut self) -> usize {
        let at = self.at;
        self.col += 1;
        let last = self.col == self.w;
        self.col = if last { 0 } else { self.col };
        self.at += if last { self.next_row } else { self.step };
        at
    }
}

struct FromPlanes;
impl Body for FromPlanes {
    type Args = PlaneArgs<Src, Dst>;
    /// Sixteen pixels of sixteen planes at a time; what is left over, one pixel at a time.
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &Self::Args) {
        let plane = x.shape.h * x.shape.w;
        let mut pixels = ImagePixels::new(&x.shape);
        let mut p = 0;
        // SAFETY: pixels p .. p + 16 of every plane are inside it, and their places inside the
        // blocked image.
        unsafe {
            while p + LANES <= plane {
                let mut v = [s.zero(); LANES];
                for ch in 0..LANES {
                    if ch < x.channels {
                        v[ch] = s.load(x.planes, ch * x.next + p);
                    }
                }
                s.transpose(&mut v);
                for i in 0..LANES {
                    s.store(x.blocked, pixels.next(), v[i]);
                }
                p += LANES;
            }
            for p in p..plane {
                let mut v = [0.0; LANES];
                for (ch, v) in v.iter_mut().enumerate().take(x.channels) {
                    *v = x.planes.read(ch * x.next + p);
                }
                s.store(x.blocked, pixels.next(), s.load(Src::new(&v), 0));
            }
        }
    }
}

struct ToPlanes;
impl Body for ToPlanes {
    type Args = PlaneArgs<Dst, Src>;
    /// Sixteen pixels of sixteen planes at a time; what is left over, one pixel at a time.
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &Self::Args) {
        let plane = x.shape.h * x.shape.w;
        let mut pixels = ImagePixels::new(&x.shape);
        let mut p = 0;
        // SAFETY: pixels p .. p + 16 of every plane are inside it, and their places inside the
        // blocked image.
        unsafe {
            while p + LANES <= plane {
                let mut v = [s.zero(); LANES];
                for i in 0..LANES {
                    v[i] = s.load(x.blocked, pixels.next());
                }
                s.transpose(&mut v);
                for ch in 0..LANES {
                    if ch < x.channels {
                        s.store(x.planes, ch * x.next + p, v[ch]);
                    }
                }
                p += LANES;
            }
            for p in p..plane {
                let at = pixels.next();
                for ch in 0..x.channels {
                    x.planes.write(ch * x.next + p, x.blocked.read(at + ch));
                }
            }
        }
    }
}
