//! Products and convolutions on Hopper's warpgroup instructions: `warpgroup.h`.

use crate::arguments::ConvolutionArgument;
use crate::launch::device;
use mxrt_cuda::Grid;
use mxrt_engine::{DeviceCtx, OpError};
use std::ffi::CStr;

/// The compute capability that has these instructions.
const HOPPER: (i32, i32) = (9, 0);
/// Rows of a tile, depth of a step, and steps in shared memory (`GROUP_ROWS`, `GROUP_STEP` and
/// `GROUP_STAGES` of the text).
const ROWS: usize = 128;
const STEP: usize = 64;
const STAGES: usize = 6;
/// Threads of a block: a warpgroup that copies, and two that make sums.
const THREADS: u32 = 384;
/// Tiles below which smaller ones, or parts of the depth, keep more multiprocessors busy.
const LEAST_TILES: usize = 48;
/// Taps of a filter, which are bits of a word.
const TAPS: i32 = 31;

/// A kernel and its tiles.
#[derive(Clone, Copy)]
pub(crate) struct Groups {
    name: &'static CStr,
    tiles: u32,
    batch: u32,
    shared_bytes: u32,
}

impl Groups {
    /// Tiles of 128 columns for a product of halves. `deep`: whether neighbours in the right operand
    /// differ in depth.
    pub fn of_product([m, n]: [usize; 2], batch: usize, deep: bool) -> Option<Groups> {
        let name = if deep { c"warpgroup_deep_product" } else { c"warpgroup_wide_product" };
        let wide = m > ROWS / 2 && n > ROWS / 2;
        Groups::new(name, [m, n], batch, ROWS).filter(|_| wide)
    }

    /// Tiles for a convolution of halves whose channels are whole pieces.
    pub fn of_convolution(p: &ConvolutionArgument, [m, filters]: [usize; 2]) -> Option<Groups> {
        let groups = usize::try_from(p.groups).ok()?;
        let (name, columns) = match filters {
            0..=64 => (c"warpgroup_convolution_64", 64),
            _ => (c"warpgroup_convolution_128", 128),
        };
        let few = p.kernel[1].checked_mul(p.kernel[2])? <= TAPS;
        Groups::new(name, [m, filters], groups, columns).filter(|_| few && filters > 32)
    }

    fn new(name: &'static CStr, [m, n]: [usize; 2], batch: usize, columns: usize) -> Option<Groups> {
        let tiles = m.div_ceil(ROWS) * n.div_ceil(columns);
        let memory = STAGES * (ROWS + columns) * STEP * size_of::<u16>();
        // What aligns the steps, and two barriers for each.
        let shared_bytes = (memory + 1024 + 2 * STAGES * size_of::<u64>()) as u32;
        if tiles.saturating_mul(batch) < LEAST_TILES {
            return None;
        }
        let (tiles, batch) = (u32::try_from(tiles).ok()?, u16::try_from(batch).ok()?.into());
        Some(Groups { name, tiles, batch, shared_bytes })
    }

    /// The kernel on this op's device. A block for each multiprocessor works through the tiles of a
    /// batch, one after the other. `None`: the device has no such instructions.
    pub fn kernel(&self, ctx: &DeviceCtx<'_>) -> Result<Option<(&'static CStr, Grid)>, OpError> {
        let device = device(ctx)?;
        let blocks = [self.tiles.min(device.multiprocessors()), 1, self.batch];
        let grid = Grid { blocks, threads: THREADS, shared_bytes: self.shared_bytes };
        Ok((device.capability() == HOPPER).then_some((self.name, grid)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_with_many_tiles_of_which_most_is_used_have_groups() {
        let tiles = |size, batch| Groups::of_product(size, batch, true).map(|groups| (groups.tiles, groups.batch));
        assert_eq!(tiles([8192, 2304], 1), Some((64 * 18, 1)));
        assert_eq!(tiles([128, 128], 768), Some((1, 768)));
        assert_eq!(tiles([128, 128], 47), None);
        assert_eq!(tiles([64, 128], 768), None);
        assert_eq!(tiles([100, 100], 70_000), None);
    }
}
