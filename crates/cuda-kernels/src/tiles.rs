//! Products and convolutions in large tiles: `tiles.h`. They need operands that are contiguous in
//! units of 16 bytes, to which `padding.rs` pads channels; `product.rs` has kernels for all others.

use crate::arguments::{ConvolutionArgument, EpilogueArgument, PartSumsArgument, PartsArgument, ProductArgument};
use crate::launch::{each, launch};
use crate::padding::Padding;
use crate::warpgroup::Groups;
use mxrt_cuda::Grid;
use mxrt_engine::{DeviceCtx, OpError};
use mxrt_tensor::DType;
use std::ffi::CStr;

/// Bytes of one copy.
const PIECE: usize = 16;
/// Rows and columns of tiles.
const LARGE: usize = 128;
const SMALL: usize = 64;
/// Blocks that fill a GPU, about: fewer large tiles are cut to small ones, and fewer small ones along
/// their depth. The same for every GPU, so that sums are.
const LARGE_BLOCKS: usize = 96;
const SMALL_BLOCKS: usize = 256;
/// Least depth of a part, and parts at most.
const PART_DEPTH: usize = 128;
const PARTS: usize = 32;
/// Blocks along the second and third axis of a grid at most.
const GRID: usize = 65535;

impl PartsArgument {
    /// The argument of kernels without parts.
    pub const NONE: PartsArgument = PartsArgument { to: 0, size: 0, count: 1, steps: 0 };
}

/// The types that there are tiles of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elements {
    Half,
    Single,
}

impl Elements {
    fn of(dtype: DType) -> Option<Elements> {
        match dtype {
            DType::F16 => Some(Elements::Half),
            DType::F32 => Some(Elements::Single),
            _ => None,
        }
    }

    /// Elements of a piece.
    fn piece(self) -> usize {
        match self {
            Elements::Half => PIECE / 2,
            Elements::Single => PIECE / 4,
        }
    }

    /// Depth of a step (`CORE_STEP` and `SINGLE_STEP` of the text).
    fn step(self) -> usize {
        match self {
            Elements::Half => 32,
            Elements::Single => 8,
        }
    }

    /// Shared memory that a block needs for the steps that it holds.
    fn shared_bytes(self, side: usize) -> u32 {
        let bytes = match self {
            Elements::Half => 3 * 2 * side * 32 * 2,
            Elements::Single => 2 * 2 * 8 * (side + 4) * 4,
        };
        bytes as u32
    }

    /// A kernel, of those for `Half` and `Single`.
    fn kernel(self, names: [&'static CStr; 2]) -> &'static CStr {
        names[self as usize]
    }

    fn code(self) -> i32 {
        match self {
            Elements::Half => DType::F16 as i32,
            Elements::Single => DType::F32 as i32,
        }
    }
}

/// How a result is cut into tiles, and the depth into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TileCut {
    side: usize,
    parts: usize,
    /// steps of a part
    steps: usize,
}

impl TileCut {
    /// Divides a product by its extents alone, so that the same product is summed in one order
    /// everywhere. `large`: whether there are large tiles.
    fn new([m, n, k]: [usize; 3], batch: usize, step: usize, large: bool) -> TileCut {
        let blocks = |side: usize| m.div_ceil(side) * n.div_ceil(side) * batch;
        let all = k.div_ceil(step).max(1);
        if large && m > SMALL && n > SMALL && blocks(LARGE) >= LARGE_BLOCKS {
            return TileCut { side: LARGE, parts: 1, steps: all };
        }
        let wanted = SMALL_BLOCKS.div_ceil(blocks(SMALL).max(1));
        let most = (k / PART_DEPTH).clamp(1, PARTS);
        let steps = all.div_ceil(wanted.min(most));
        TileCut { side: SMALL, parts: all.div_ceil(steps), steps }
    }

    /// Blocks: tiles along two axes, then batches with their parts. None where there are too many.
    fn grid(self, elements: Elements, [x, y]: [usize; 2], batch: usize) -> Option<Grid> {
        let (x, y, z) = (x.div_ceil(self.side), y.div_ceil(self.side), batch * self.parts);
        (y <= GRID && z <= GRID && x <= i32::MAX as usize).then(|| Grid {
            blocks: [x as u32, y as u32, z as u32],
            threads: 2 * self.side as u32,
            shared_bytes: elements.shared_bytes(self.side),
        })
    }
}

/// A product or convolution in tiles.
#[derive(Clone, Copy)]
pub(crate) struct Tiled {
    name: &'static CStr,
    grid: Grid,
    cut: TileCut,
    elements: Elements,
    /// a kernel for GPUs with warpgroup instructions
    groups: Option<Groups>,
    /// rows of a batch, columns, batches
    extents: [usize; 3],
    /// batches that lie inside, and the steps of the result
    inner: usize,
    steps: [i64; 3],
    padding: Option<Padding>,
}

impl Tiled {
    /// Tiles for a product of such numbers; none if operands or result are not aligned as the
    /// kernels need it.
    pub fn of_product(p: &ProductArgument, dtype: DType, batch: usize) -> Option<Tiled> {
        let elements = Elements::of(dtype)?;
        let together = |steps: &[i64]| steps.iter().all(|step| step % elements.piece() as i64 == 0);
        let deep = p.b_steps[2] == 1 && together(&[p.b_steps[0], p.b_steps[1], p.b_steps[3]]);
        let wide = p.b_steps[3] == 1 && together(&[p.b_steps[0], p.b_steps[1], p.b_steps[2], p.n]);
        let fits = p.a_steps[3] == 1
            && together(&[p.a_steps[0], p.a_steps[1], p.a_steps[2], p.k])
            && (deep || wide)
            && p.c_steps[3] == 1
            && p.n % 2 == 0
            && p.c_steps[..3].iter().all(|step| step % 2 == 0);
        let [m, n, k] = [p.m, p.n, p.k].map(|extent| usize::try_from(extent).unwrap_or(0));
        if !fits || m * n * batch == 0 || k == 0 {
            return None;
        }
        let names = match deep {
            true => {
                [[c"deep_product_128_f16", c"deep_product_128_f32"], [c"deep_product_64_f16", c"deep_product_64_f32"]]
            }
            false => {
                [[c"wide_product_128_f16", c"wide_product_128_f32"], [c"wide_product_64_f16", c"wide_product_64_f32"]]
            }
        };
        let cut = TileCut::new([m, n, k], batch, elements.step(), true);
        Tiled {
            name: elements.kernel(names[usize::from(cut.side == SMALL)]),
            grid: cut.grid(elements, [n, m], batch)?,
            cut,
            elements,
            groups: Groups::of_product([m, n], batch, deep).filter(|_| elements == Elements::Half),
            extents: [m, n, batch],
            inner: p.inner as usize,
            steps: [p.c_steps[0], p.c_steps[1], p.c_steps[2]],
            padding: None,
        }
        .counted(k)
    }

    /// Tiles for a convolution of images with their channels last. Channels that are no whole pieces
    /// are padded, which takes less time than to look up each element for each tap.
    pub fn of_convolution(p: &ConvolutionArgument, dtype: DType) -> Option<Tiled> {
        let elements = Elements::of(dtype)?;
        let plane = p.size[0] == 1 && p.out[0] == 1 && p.kernel[0] == 1;
        let (filters, groups) = (p.filters as usize, p.groups as usize);
        let m = p.images as usize * p.out[1] as usize * p.out[2] as usize;
        // Few filters of a group would leave most of a tile empty.
        if !plane || filters % elements.piece() != 0 || (groups > 1 && filters < 16) || m == 0 || p.channels == 0 {
            return None;
        }
        let padding = match p.channels as usize % elements.piece() {
            0 => None,
            _ => Some(Padding::new(p, elements.piece())?),
        };
        let tiled = padding.map_or(*p, |padding| padding.after);
        let k = tiled.channels as usize * tiled.kernel[1] as usize * tiled.kernel[2] as usize;
        let cut = TileCut::new([m, filters, k], groups, elements.step(), elements == Elements::Half);
        let names = match cut.side {
            SMALL => [c"convolution_64_f16", c"convolution_64_f32"],
            _ => [c"convolution_128_f16", c""],
        };
        Tiled {
            name: elements.kernel(names),
            grid: cut.grid(elements, [m, filters], groups)?,
            cut,
            elements,
            groups: Groups::of_convolution(&tiled, [m, filters]).filter(|_| elements == Elements::Half),
            // Parts are numbered as the result, whatever the groups.
            extents: [m, filters * groups, 1],
            inner: 1,
            steps: [0, 0, (filters * groups) as i64],
            padding,
        }
        .counted(k)
    }

    /// Kernels number results and the depth in 32 bits.
    fn counted(self, k: usize) -> Option<Tiled> {
        let [m, n, batch] = self.extents;
        let size = m.checked_mul(n)?.checked_mul(batch)?;
        (i32::try_from(size).is_ok() && i32::try_from(k + 2 * PART_DEPTH).is_ok()).then_some(self)
    }

    pub fn launch_product(&self, ctx: &DeviceCtx<'_>, p: ProductArgument) -> Result<(), OpError> {
        if let Some((name, grid)) = self.grouped(ctx)? {
            return launch(ctx, name, grid, &p);
        }
        let parts = self.parts(ctx)?;
        launch(ctx, self.name, self.grid, &ProductArgument { parts, ..p })?;
        self.sum(ctx, parts, p.c, p.alpha, p.epilogue)
    }

    pub fn launch_convolution(&self, ctx: &DeviceCtx<'_>, p: ConvolutionArgument) -> Result<(), OpError> {
        let p = self.padding.map_or(Ok(p), |padding| padding.launch(ctx, p))?;
        if let Some((name, grid)) = self.grouped(ctx)? {
            return launch(ctx, name, grid, &p);
        }
        let parts = self.parts(ctx)?;
        launch(ctx, self.name, self.grid, &ConvolutionArgument { parts, ..p })?;
        self.sum(ctx, parts, p.to, 1.0, p.epilogue)
    }

    /// The kernel for warpgroups, if this op's device has them.
    fn grouped(&self, ctx: &DeviceCtx<'_>) -> Result<Option<(&'static CStr, Grid)>, OpError> {
        self.groups.map_or(Ok(None), |groups| groups.kernel(ctx))
    }

    fn size(&self) -> usize {
        self.extents.iter().product()
    }

    /// Memory for parts, if there are several.
    fn parts(&self, ctx: &DeviceCtx<'_>) -> Result<PartsArgument, OpError> {
        let TileCut { parts, steps, .. } = self.cut;
        let to = if parts > 1 { ctx.scratch(parts * self.size() * size_of::<f32>())?.0 } else { 0 };
        Ok(PartsArgument { to, size: self.size() as i64, count: parts as i32, steps: steps as i32 })
    }

    fn sum(
        &self,
        ctx: &DeviceCtx<'_>,
        parts: PartsArgument,
        to: u64,
        alpha: f64,
        epilogue: EpilogueArgument,
    ) -> Result<(), OpError> {
        let [m, n, _] = self.extents;
        let Some(grid) = each(self.size()).filter(|_| parts.count > 1) else { return Ok(()) };
        let argument = PartSumsArgument {
            to,
            parts: parts.to,
            steps: self.steps,
            alpha,
            epilogue,
            size: self.size() as i32,
            columns: n as i32,
            rows: m as i32,
            inner: self.inner as i32,
            count: parts.count,
            dtype: self.elements.code(),
        };
        launch(ctx, c"sum_parts", grid, &argument)
    }
}

/// Whether arrays are aligned for pieces.
pub(crate) fn are_aligned(addresses: &[u64]) -> bool {
    addresses.iter().all(|address| address % PIECE as u64 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_products_have_large_tiles_and_deep_ones_parts() {
        let cut = |size, batch| TileCut::new(size, batch, 32, true);
        assert_eq!(cut([4096, 4096, 512], 1), TileCut { side: LARGE, parts: 1, steps: 16 });
        // All blocks together fill a GPU, and each has some steps.
        assert_eq!(cut([49, 512, 4608], 1), TileCut { side: SMALL, parts: 29, steps: 5 });
        assert_eq!(cut([3136, 64, 576], 1), TileCut { side: SMALL, parts: 4, steps: 5 });
        assert_eq!(cut([64, 64, 64], 1), TileCut { side: SMALL, parts: 1, steps: 2 });
        assert_eq!(cut([128, 128, 64], 12), TileCut { side: SMALL, parts: 1, steps: 2 });
        for k in (8..5000).step_by(56) {
            let TileCut { parts, steps, .. } = cut([50, 70, k], 1);
            assert!(parts * steps >= k.div_ceil(32) && (parts - 1) * steps < k.div_ceil(32), "{k}");
        }
    }
}
