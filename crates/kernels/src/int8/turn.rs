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
            let mut square: Square = [[0; SIDE]; SIDE];
            for (r, to) in square.iter_mut().enumerate().take(height) {
                let from = &from[(row + r) * stride + column..];
                match from.first_chunk::<SIDE>() {
                    Some(whole) => *to = *whole,
                    None => to[..width].copy_from_slice(&from[..width]),
                }
            }
            turn_square(&mut square, flip);
            for (c, bytes) in square.iter().enumerate().take(width) {
                put(column + c, row, &bytes[..height]);
            }
        }
    }
}

/// Copies at most 16 bytes, all 16 without calling a function.
#[inline(always)]
pub(super) fn copy_few(to: &mut [u8], bytes: &[u8]) {
    match (to.first_chunk_mut::<SIDE>(), bytes.first_chunk::<SIDE>()) {
        (Some(to), Some(bytes)) => *to = *bytes,
        _ => to[..bytes.len()].copy_from_slice(bytes),
    }
}

/// Four times every row is interleaved with the one eight rows on.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn turn_square(square: &mut Square, flip: u8) {
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
        for i in 0..SIDE {
            _mm_storeu_si128(square[i].as_mut_ptr().cast(), _mm_xor_si128(rows[i], flip));
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn turn_square(square: &mut Square, flip: u8) {
    let from = *square;
    for (i, row) in square.iter_mut().enumerate() {
        for (j, byte) in row.iter_mut().enumerate() {
            *byte = from[j][i] ^ flip;
        }
    }
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
