use super::*;
use crate::places::Places;
use crate::testing::{Reverse, Threads, Uneven};

fn numbered(par: &dyn Par, len: usize, chunk: usize) -> Vec<usize> {
    let mut out = vec![usize::MAX; len];
    par_chunks_mut(par, &mut out, chunk, |index, piece| {
        for (i, v) in piece.iter_mut().enumerate() {
            *v = index * chunk + i;
        }
    });
    out
}

#[test]
fn every_element_is_written_once_by_its_own_chunk() {
    for len in [0, 1, 7, 64, 65, 1000] {
        let expected: Vec<usize> = (0..len).collect();
        for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
            assert_eq!(numbered(par, len, 7), expected);
            assert_eq!(numbered(par, len, 2000), expected);
        }
    }
}

#[test]
fn runs_of_pieces_cover_the_output_once() {
    for par in [&Serial as &dyn Par, &Reverse, &Threads(3), &Uneven(2), &Uneven(4)] {
        for len in [0, 1, 7, 8, 100] {
            let mut out = vec![0usize; len];
            par_static_mut(par, &mut out, 7, |first, run| {
                run.iter_mut().enumerate().for_each(|(i, v)| *v += first * 7 + i + 1);
            });
            assert_eq!(out, (1..=len).collect::<Vec<_>>());
        }
    }
}

#[test]
fn shares_cover_all_units_and_none_is_empty_or_twice_as_long_as_even_ones() {
    for par in [&Serial as &dyn Par, &Reverse, &Threads(3), &Uneven(2), &Uneven(4)] {
        for units in [0, 1, 2, 5, 64] {
            let seen = std::sync::Mutex::new(Vec::new());
            par.run_static(units, 0, &|range, _| seen.lock().unwrap().push((range.start, range.end)));
            let mut seen = seen.into_inner().unwrap();
            seen.sort_unstable();
            assert_eq!(seen.iter().flat_map(|(a, b)| *a..*b).collect::<Vec<_>>(), (0..units).collect::<Vec<_>>());
            let even = units.div_ceil(par.parallelism());
            assert!(seen.iter().all(|(a, b)| (1..=2 * even).contains(&(b - a))), "{seen:?}");
        }
    }
}

#[test]
fn scratch_is_aligned_and_large_enough() {
    for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
        let mut out = vec![0u8; 10];
        par_chunks_mut_scratch(par, &mut out, 3, 100, |_, piece, scratch| {
            assert!(scratch.len() >= 100);
            assert_eq!(scratch.as_ptr() as usize % 64, 0);
            scratch.fill(0xff);
            piece.fill(1);
        });
        assert_eq!(out, [1; 10]);
    }
}

#[test]
fn bands_of_columns_cover_the_output_once() {
    for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
        let mut out = vec![0usize; 2 * 3 * 10];
        par_columns_mut(par, &mut out, [2, 3, 10], 4, 8, |o, start, mut band, _| {
            for row in 0..3 {
                for (i, v) in band.row(row).iter_mut().enumerate() {
                    *v += (o * 3 + row) * 10 + start + i;
                }
            }
        });
        assert_eq!(out, (0..60).collect::<Vec<_>>());
    }
}

#[test]
fn cells_cover_the_rows_between_their_bounds_once() {
    for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
        let mut out = vec![0usize; 7 * 10];
        let bounds = [1, 3, 3, 6];
        par_cells_mut(par, &mut out, 10, &bounds, 4, 8, |piece, start, mut cell, _| {
            assert!(bounds[piece] < bounds[piece + 1], "an empty piece has no cell");
            for row in 0..bounds[piece + 1] - bounds[piece] {
                for (i, v) in cell.row(row).iter_mut().enumerate() {
                    *v += (bounds[piece] + row) * 10 + start + i;
                }
            }
        });
        let want = (0..70).map(|i| if (10..60).contains(&i) { i } else { 0 });
        assert_eq!(out, want.collect::<Vec<_>>());
    }
}

#[test]
fn picked_rows_of_a_cell_are_lent_one_by_one() {
    let mut out = [0usize; 4 * 3];
    par_cells_mut(&Serial, &mut out, 3, &[0, 4], 2, 0, |_, start, mut cell, _| {
        let mut rows = cell.picked(Places::new(&[0, 2, 3, 4]));
        let width = rows.width();
        for i in 0..3 {
            rows.row(i).fill(10 * start + i + 1);
        }
        assert_eq!(rows.part(1..3, width - 1).row(0), [10 * start + 2]);
        let wrong: [fn(&mut Columns<'_, usize>) -> usize; 4] = [
            |cell| cell.picked(Places::new(&[0, 2, 3, 4])).row(3).len(),
            |cell| cell.picked(Places::new(&[0])).row(1).len(),
            |cell| cell.picked(Places::new(&[0])).part(0..1, 3).len(),
            |cell| cell.picked(Places::new(&[0])).part(0..2, 0).len(),
        ];
        for wrong in wrong {
            let lend = std::panic::AssertUnwindSafe(|| wrong(&mut cell));
            assert!(std::panic::catch_unwind(lend).is_err());
        }
    });
    assert_eq!(out, [1, 1, 21, 0, 0, 0, 2, 2, 22, 3, 3, 23]);
}

struct Twice;
impl Par for Twice {
    fn run(&self, chunks: usize, _: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        for _ in 0..2 {
            (0..chunks).for_each(|c| body(c, &mut []));
        }
    }
}

#[test]
#[should_panic(expected = "run twice")]
fn a_par_that_repeats_a_chunk_is_caught() {
    numbered(&Twice, 100, 7);
}
