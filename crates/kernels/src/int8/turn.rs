//! Turning matrices of bytes, in squares of 16.

/// Bytes of a side of a square.
pub(super) const SIDE: usize = 16;

type Square = [[u8; SIDE]; SIDE];

/// Turns a matrix of bytes whose rows begin `stride` bytes apart: calls `put(column, row, bytes)` with
/// the bytes of a column from a row on, at most 16. Every byte is flipped by `flip`.
///
/// # Panics
/// If `from` ends before the last row.
#[inline(always)]
pub(super) fn turn(
    from: &[u8],
    stride: usize,
    [rows, columns]: [usize; 2],
    flip: u8,
    mut put: impl FnMut(usize, usize, &[u8]),
) {
    for row in (0..rows).step_by(SIDE) {
        let height = SIDE.min(rows - row);
        for column in (0..columns).step_by(SIDE) {
            let width = SIDE.min(columns - column);
            let square = turned(read_square(&from[row * stride + column..], stride, [height, width]), flip);
            // Sixteen bytes are copied without a call of a function, if their number is known here.
            if height == SIDE {
                for (c, bytes) in square.iter().enumerate().take(width) {
                    put(column + c, row, bytes);
                }
            } else {
                for (c, bytes) in square.iter().enumerate().take(width) {
                    put(column + c, row, &bytes[..height]);
                }
            }
        }
    }
}

/// Reads rows of a matrix, of which `width` bytes are wanted.
#[inline(always)]
fn read_square(from: &[u8], stride: usize, [height, width]: [usize; 2]) -> Square {
    let mut square: Square = [[0; SIDE]; SIDE];
    let rows = square.iter_mut().enumerate().take(height);
    if (height - 1) * stride + SIDE <= from.len() {
        for (r, to) in rows {
            to.copy_from_slice(&from[r * stride..][..SIDE]);
        }
    } else {
        for (r, to) in rows {
            to[..width].copy_from_slice(&from[r * stride..][..width]);
        }
    }
    square
}

/// Four times every row is interleaved with the one eight rows on.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn turned(square: Square, flip: u8) -> Square {
    use std::arch::x86_64::*;
    // SAFETY: every x86-64 processor has SSE2, and a row is 16 bytes.
    unsafe {
        let flip = _mm_set1_epi8(flip as i8);
        let mut rows = [_mm_setzero_si128(); SIDE];
        for i in 0..SIDE {
            rows[i] = _mm_loadu_si128(square[i].as_ptr().cast());
        }
        for _ in 0..4 {
            let from = rows;
            for i in 0..SIDE / 2 {
                rows[2 * i] = _mm_unpacklo_epi8(from[i], from[i + SIDE / 2]);
                rows[2 * i + 1] = _mm_unpackhi_epi8(from[i], from[i + SIDE / 2]);
            }
        }
        let mut out: Square = [[0; SIDE]; SIDE];
        for i in 0..SIDE {
            _mm_storeu_si128(out[i].as_mut_ptr().cast(), _mm_xor_si128(rows[i], flip));
        }
        out
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn turned(from: Square, flip: u8) -> Square {
    std::array::from_fn(|i| std::array::from_fn(|j| from[j][i] ^ flip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_arrives_at_its_place_once() {
        for [rows, columns] in [[16usize, 16], [1, 1], [3, 40], [33, 7], [48, 64], [0, 5], [5, 0]] {
            let stride = columns + 3;
            let from: Vec<u8> = (0..(rows * stride).saturating_sub(3)).map(|i| (i * 7 % 251) as u8).collect();
            let mut to = vec![None; rows * columns];
            turn(&from, stride, [rows, columns], 0x80, |column, row, bytes| {
                for (i, byte) in bytes.iter().enumerate() {
                    assert_eq!(to[column * rows + row + i].replace(*byte), None, "{rows} x {columns}");
                }
            });
            for (i, byte) in to.into_iter().enumerate() {
                assert_eq!(byte, Some(from[i % rows * stride + i / rows] ^ 0x80), "{rows} x {columns}");
            }
        }
    }
}
