//! Borders around images.

use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_chunks_mut};
use crate::scratch::Scratch;
use std::ops::Range;

/// The content of a border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// One colour.
    Constant,
    /// The outermost pixel: aaa|abcd|ddd.
    Replicate,
    /// The image, mirrored: cba|abcd|dcb.
    Reflect,
    /// The image, repeated: bcd|abcd|abc.
    Wrap,
    /// The image, mirrored at its outermost pixel: dcb|abcd|cba.
    Reflect101,
}

impl Border {
    /// The pixel of an axis with `size` > 0 pixels that position `at` shows; `None` for the colour.
    fn source(self, at: i64, size: usize) -> Option<usize> {
        let n = size as i64;
        if (0..n).contains(&at) {
            return Some(at as usize);
        }
        let found = match self {
            Border::Constant => return None,
            Border::Replicate => at.clamp(0, n - 1),
            Border::Wrap => at.rem_euclid(n),
            Border::Reflect => {
                let at = at.rem_euclid(2 * n);
                at.min(2 * n - 1 - at)
            }
            Border::Reflect101 if n == 1 => 0,
            Border::Reflect101 => {
                let at = at.rem_euclid(2 * n - 2);
                at.min(2 * n - 2 - at)
            }
        };
        Some(found as usize)
    }
}

/// An image with a border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bordered {
    /// Height, width and channels of the image.
    pub shape: [usize; 3],
    /// Rows above and columns to the left of it.
    pub before: [usize; 2],
    /// Height and width with the border.
    pub to: [usize; 2],
    /// Content of the border.
    pub border: Border,
}

impl Bordered {
    /// Writes the image with its border; `colour` has a value for each channel.
    ///
    /// # Panics
    /// If the lengths contradict the sizes, or an image without pixels should be shown.
    pub fn run<T: Copy + Send + Sync>(&self, par: &dyn Par, colour: &[T], x: &[T], out: &mut [T]) {
        let ([height, width, channels], [rows, columns]) = (self.shape, self.to);
        check_len("the input", x.len(), height * width * channels);
        check_len("the output", out.len(), rows * columns * channels);
        check_len("the colour", colour.len(), channels);
        if out.is_empty() {
            return;
        }
        let across = Scratch::collect(par, columns, (0..columns).map(|i| self.source(i, 1, width)));
        // The columns that show the image itself.
        let inside = self.before[1].min(columns)..(self.before[1] + width).min(columns);
        let row = columns * channels;
        let band = (chunk_elems::<T>() / row).max(1);
        par_chunks_mut(par, out, band * row, |chunk, out| {
            for (i, out) in out.chunks_exact_mut(row).enumerate() {
                let line =
                    self.source(chunk * band + i, 0, height).map(|r| &x[r * width * channels..][..width * channels]);
                let mut show = |columns: Range<usize>| {
                    for (out, from) in out[columns.start * channels..].chunks_exact_mut(channels).zip(&across[columns])
                    {
                        match (line, from) {
                            (Some(line), Some(from)) => out.copy_from_slice(&line[from * channels..][..channels]),
                            _ => out.copy_from_slice(colour),
                        }
                    }
                };
                show(0..inside.start);
                show(inside.end..columns);
                let out = &mut out[inside.start * channels..inside.end * channels];
                match line {
                    Some(line) => out.copy_from_slice(&line[..out.len()]),
                    None => out.chunks_exact_mut(channels).for_each(|out| out.copy_from_slice(colour)),
                }
            }
        });
    }

    fn source(&self, at: usize, axis: usize, size: usize) -> Option<usize> {
        if size == 0 {
            return None;
        }
        self.border.source(at as i64 - self.before[axis] as i64, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Threads;

    fn row(border: Border, before: usize, text: &str, columns: usize) -> String {
        let x = text.as_bytes();
        let image = Bordered { shape: [1, x.len(), 1], before: [0, before], to: [1, columns], border };
        let mut out = vec![0; columns];
        image.run(&Threads(2), b"-", x, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn borders_show_what_they_are_named_for() {
        for (border, want) in [
            (Border::Constant, "---abcd----"),
            (Border::Replicate, "aaaabcddddd"),
            (Border::Reflect, "cbaabcddcba"),
            (Border::Wrap, "bcdabcdabcd"),
            (Border::Reflect101, "dcbabcdcbab"),
        ] {
            assert_eq!(row(border, 3, "abcd", 11), want);
        }
        assert_eq!(row(Border::Reflect101, 2, "a", 4), "aaaa");
        assert_eq!(row(Border::Reflect, 5, "ab", 9), "aabbaabba");
    }

    #[test]
    fn rows_have_borders_too_and_colours_a_value_for_each_channel() {
        let image = Bordered { shape: [1, 1, 2], before: [1, 0], to: [3, 2], border: Border::Constant };
        let mut out = [0; 12];
        image.run(&Threads(2), &[8, 9], &[1, 2], &mut out);
        assert_eq!(out, [8, 9, 8, 9, 1, 2, 8, 9, 8, 9, 8, 9]);
    }
}
