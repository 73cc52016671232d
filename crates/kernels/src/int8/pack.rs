//! Packed weights: panels of 16 columns.
//!
//! A panel has a line of 64 bytes, four neighbours of each column, for every four weights of a
//! column; then what is added to sums of signed data, which are multiplied as unsigned ones.

use super::tile::{GROUP, PANEL};

/// Difference between signed data and unsigned ones.
const SHIFT: i32 = 128;
/// Bytes of the corrections after the weights of a panel.
pub(super) const CORRECTIONS: usize = PANEL * size_of::<i32>();

/// Four weights of each column of a panel.
type Line = [[u8; GROUP]; PANEL];

/// Bytes of a panel of rows of `k` weights.
pub(super) fn panel_len(k: usize) -> usize {
    k * PANEL + CORRECTIONS
}

/// Bytes of the packed weights of `n` columns of `k` weights each, a multiple of four; `None` where
/// they cannot be counted.
pub(super) fn packed_len(n: usize, k: usize) -> Option<usize> {
    k.checked_mul(PANEL)?.checked_add(CORRECTIONS)?.checked_mul(n.div_ceil(PANEL))
}

/// A panel that is written.
struct Panel<'a> {
    /// The first column, and how many there are.
    columns: [usize; 2],
    lines: &'a mut [Line],
    corrections: &'a mut [[u8; GROUP]],
}

impl Panel<'_> {
    /// Stores the sum of the weights of a column as what it corrects.
    fn correct(&mut self, column: usize, sum: i32) {
        self.corrections[column] = sum.wrapping_mul(-SHIFT).to_ne_bytes();
    }
}

/// The panels of `n` columns of `k` weights, a multiple of four, all of them zero.
fn panels(n: usize, k: usize, packed: &mut [u8]) -> impl Iterator<Item = Panel<'_>> {
    packed.chunks_exact_mut(panel_len(k)).take(n.div_ceil(PANEL)).enumerate().map(move |(p, panel)| {
        panel.fill(0);
        let (lines, corrections) = panel.split_at_mut(k * PANEL);
        let lines = lines.as_chunks_mut::<GROUP>().0.as_chunks_mut::<PANEL>().0;
        let columns = [p * PANEL, PANEL.min(n - p * PANEL)];
        Panel { columns, lines, corrections: corrections.as_chunks_mut::<GROUP>().0 }
    })
}

/// Packs weights; `weight(column, i)` is the number at place i of `k`, a multiple of four.
pub(super) fn pack(n: usize, k: usize, weight: impl Fn(usize, usize) -> i8, packed: &mut [u8]) {
    for mut panel in panels(n, k, packed) {
        for column in 0..panel.columns[1] {
            let mut sum = 0i32;
            for (i, line) in panel.lines.iter_mut().enumerate() {
                for (j, byte) in line[column].iter_mut().enumerate() {
                    let w = weight(panel.columns[0] + column, i * GROUP + j);
                    *byte = w as u8;
                    sum = sum.wrapping_add(i32::from(w));
                }
            }
            panel.correct(column, sum);
        }
    }
}

/// Packs weights of which `row(column)` has all of a column, up to `k`; others are zero.
pub(super) fn pack_rows<'a>(n: usize, k: usize, row: impl Fn(usize) -> &'a [i8], packed: &mut [u8]) {
    for mut panel in panels(n, k, packed) {
        for column in 0..panel.columns[1] {
            let weights = row(panel.columns[0] + column);
            let (groups, rest) = bytemuck::cast_slice::<i8, u8>(weights).as_chunks::<GROUP>();
            panel.lines.iter_mut().zip(groups).for_each(|(line, group)| line[column] = *group);
            if let Some(line) = panel.lines.get_mut(groups.len()) {
                line[column][..rest.len()].copy_from_slice(rest);
            }
            panel.correct(column, weights.iter().fold(0, |sum, w| sum.wrapping_add(i32::from(*w))));
        }
    }
}

/// Packs weights of which `row(i)` has those at place i of all columns, for `count` places up to
/// `k`; others are zero.
pub(super) fn pack_columns<'a>(n: usize, k: usize, count: usize, row: impl Fn(usize) -> &'a [i8], packed: &mut [u8]) {
    for mut panel in panels(n, k, packed) {
        let [first, columns] = panel.columns;
        let mut sums = [0i32; PANEL];
        for (i, line) in panel.lines.iter_mut().enumerate() {
            let mut group = [[0i8; PANEL]; GROUP];
            for (to, place) in group.iter_mut().zip(i * GROUP..count) {
                to[..columns].copy_from_slice(&row(place)[first..][..columns]);
            }
            *line = std::array::from_fn(|column| std::array::from_fn(|j| group[j][column] as u8));
            for row in &group {
                sums.iter_mut().zip(row).for_each(|(sum, w)| *sum = sum.wrapping_add(i32::from(*w)));
            }
        }
        sums.iter().enumerate().for_each(|(column, sum)| panel.correct(column, *sum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_in_rows_or_columns_are_packed_as_one_by_one() {
        for (n, k) in [(1, 1), (16, 4), (17, 7), (40, 33), (64, 128), (5, 0)] {
            let rows: Vec<i8> = (0..n * k).map(|i| (i * 37 % 256) as u8 as i8).collect();
            let columns: Vec<i8> = (0..n * k).map(|i| rows[i % n * k + i / n]).collect();
            let padded = k.next_multiple_of(GROUP);
            let len = packed_len(n, padded).unwrap();
            let [mut want, mut by_rows, mut by_columns] = [1, 2, 3].map(|byte| vec![byte; len]);
            pack(n, padded, |column, i| if i < k { rows[column * k + i] } else { 0 }, &mut want);
            pack_rows(n, padded, |column| &rows[column * k..][..k], &mut by_rows);
            assert_eq!(by_rows, want, "{n} x {k}");
            pack_columns(n, padded, k, |i| &columns[i * n..][..n], &mut by_columns);
            assert_eq!(by_columns, want, "{n} x {k}");
        }
    }
}
