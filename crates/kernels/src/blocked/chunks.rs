//! How layers are cut into chunks. Each thread of a loop begins with equally many consecutive
//! chunks; these are cut so that this is equal work, for two and for four, and that a core finds in
//! its own cache what it wrote in the layer before: halves of the rows where these are even, else
//! halves of the channels. All of it follows from shapes alone.

use std::ops::Range;

/// Multiply-adds that chunks keep when they are made smaller to be equal: about a microsecond,
/// twice what sharing takes.
const LEAST_WORK: usize = 128 << 10;
/// Differences below one part in this many do not count.
const STEPS: usize = 32;

/// Rows and parts (of the channels) of a number of images, cut into bands and groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkGrid {
    pub rows: usize,
    pub parts: usize,
    pub bands: usize,
    pub groups: usize,
    /// Chunks of one band follow each other; otherwise those of one group do.
    pub by_band: bool,
}

/// Some rows of some parts of an image.
pub(crate) struct Chunk {
    pub image: usize,
    pub rows: Range<usize>,
    pub parts: Range<usize>,
}

/// Whether halves of `rows` rows are equal, or differ by little.
fn halves_of_rows(rows: usize) -> bool {
    rows.is_multiple_of(2) || rows >= STEPS
}

fn range(i: usize, count: usize, total: usize) -> Range<usize> {
    (total * i).div_ceil(count)..(total * (i + 1)).div_ceil(count)
}

impl ChunkGrid {
    /// Divides `rows` rows of `parts` parts, each `row_work`: into halves of the rows if these are
    /// almost equal, else of the parts. Chunks have about `least` work, small layers smaller ones,
    /// so that there are two to share.
    pub(crate) fn halves(rows: usize, parts: usize, row_work: usize, least: usize) -> ChunkGrid {
        ChunkGrid::in_order(halves_of_rows(rows), rows, parts, row_work, least)
    }

    /// Divides into halves of the parts.
    pub(crate) fn halves_of_parts(rows: usize, parts: usize, row_work: usize, least: usize) -> ChunkGrid {
        ChunkGrid::in_order(false, rows, parts, row_work, least)
    }

    fn in_order(by_band: bool, rows: usize, parts: usize, row_work: usize, least: usize) -> ChunkGrid {
        let bands = rows.div_ceil(least.div_ceil(row_work.max(1))).max(1);
        let bands = if by_band { bands.next_multiple_of(2).min(rows) } else { bands };
        let band_work = row_work * rows * parts / bands;
        let groups = band_work.div_ceil(least.max(1)).next_multiple_of(2).clamp(1, parts.max(1));
        ChunkGrid { rows, parts, bands, groups, by_band }
    }

    /// Divides rows into bands and parts into groups; chunks of a group follow each other.
    pub(crate) fn new((rows, bands): (usize, usize), (parts, groups): (usize, usize)) -> ChunkGrid {
        ChunkGrid { rows, parts, bands, groups, by_band: false }
    }

    pub(crate) fn chunks(&self, images: usize) -> usize {
        self.bands * self.groups * images
    }

    /// The work of chunk number `index` of `images` images.
    pub(crate) fn chunk(&self, index: usize, images: usize) -> Chunk {
        let (image, band, group) = if self.by_band {
            let (group, rest) = (index % self.groups, index / self.groups);
            (rest / self.bands, rest % self.bands, group)
        } else {
            let (band, rest) = (index % self.bands, index / self.bands);
            (rest % images, band, rest / images)
        };
        Chunk { image, rows: range(band, self.bands, self.rows), parts: range(group, self.groups, self.parts) }
    }

    /// Most rows of a chunk.
    pub(crate) fn most_rows(&self) -> usize {
        self.rows.div_ceil(self.bands)
    }

    /// Divides the grid into two bands if it was whole, is worth sharing and has rows that can be
    /// halved; `work` is that of an image.
    pub(crate) fn halved(self, work: usize) -> ChunkGrid {
        let whole = self.bands * self.groups == 1;
        if whole && halves_of_rows(self.rows) && work >= 2 * LEAST_WORK { ChunkGrid { bands: 2, ..self } } else { self }
    }

    /// Divides the grid into more groups if the shares of two threads differ, and chunks stay large
    /// enough; `work` is that of an image.
    pub(crate) fn even(self, work: usize) -> ChunkGrid {
        if self.excess(2) == 0 {
            return self;
        }
        let most = self.parts.min(work / (self.bands * LEAST_WORK)).max(self.groups);
        let with = |groups: usize| ChunkGrid { groups, ..self };
        let cost = |cut: &ChunkGrid| 4 * cut.excess(2) + cut.excess(4) + cut.groups;
        (self.groups..=most).map(with).min_by_key(cost).unwrap_or(self)
    }

    /// The work of the busiest thread beyond an equal part.
    fn excess(&self, parallelism: usize) -> usize {
        let chunks = self.chunks(1);
        let size = |index: usize| {
            let chunk = self.chunk(index, 1);
            chunk.rows.len() * chunk.parts.len()
        };
        let share =
            |one: usize| (chunks * one / parallelism..chunks * (one + 1) / parallelism).map(size).sum::<usize>();
        let most = (0..parallelism).map(share).max().unwrap_or(0);
        (most * parallelism).saturating_sub(self.rows * self.parts) * STEPS / (self.rows * self.parts).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_every_row_is_in_one_chunk() {
        for (rows, bands, parts, groups) in [(7, 2, 5, 5), (14, 4, 30, 1), (17, 8, 6, 3), (1, 1, 1, 1), (13, 4, 9, 2)] {
            for by_band in [false, true] {
                let cut = ChunkGrid { by_band, ..ChunkGrid::new((rows, bands), (parts, groups)) };
                let mut seen = vec![0; 3 * rows * parts];
                for chunk in (0..cut.chunks(3)).map(|i| cut.chunk(i, 3)) {
                    assert!(chunk.rows.len() <= cut.most_rows());
                    for row in chunk.rows {
                        chunk.parts.clone().for_each(|part| seen[(chunk.image * rows + row) * parts + part] += 1);
                    }
                }
                assert!(seen.iter().all(|n| *n == 1), "{cut:?}");
            }
        }
    }

    #[test]
    fn two_get_the_same_of_rows_that_cannot_be_halved() {
        let large = 64 << 20;
        for parts in [2, 5, 6, 10, 30, 31] {
            let cut = ChunkGrid::new((7, 2), (parts, 1)).even(large);
            assert!(cut.excess(2) <= 1, "{cut:?}");
        }
        assert_eq!(ChunkGrid::new((14, 4), (30, 1)).even(large).groups, 1, "what is equal stays as it is");
        assert_eq!(ChunkGrid::new((7, 2), (30, 1)).even(LEAST_WORK).groups, 1, "small work stays together");
    }
}
