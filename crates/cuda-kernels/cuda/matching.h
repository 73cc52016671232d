// Greedy matching of the rows and columns of matrices of scores, which order.h sorts.
#pragma once
#include "reduce.h"

struct Matching {
    void* of_rows;       // [matrices][rows]: a column, or -1
    void* of_columns;    // [matrices][columns]: a row, or -1
    const void* scores;       // [matrices][rows][columns]
    const u32* positions;     // [matrices][padded]: those of the scores, the best first
    i64 matrices, rows;
    Divisor columns;
    i64 padded, most;    // matches of a matrix at most
    double threshold;
    int ascending, dtype;
};
KERNEL void __launch_bounds__(256, 2) match_clear(Matching p) {
    i64 rows = p.matrices * p.rows, n = rows + p.matrices * p.columns;
    ROLLED
    for (i64 i = first(); i < n; i += stride())
        i < rows ? store<float>(p.of_rows, p.dtype, i, -1) : store<float>(p.of_columns, p.dtype, i - rows, -1);
}
ENTRY(match_clear)
// A block for each matrix. Its threads look at as many positions at once; the first whose row and
// column have no match gets it.
KERNEL void __launch_bounds__(ROW_THREADS, 4) match_pairs(Matching p) {
    DYNAMIC_SHARED(i64, shared);
    double sign = p.ascending ? -1 : 1;
    i64 size = p.rows * p.columns;
    ROLLED
    for (i64 matrix = blockIdx.x; matrix < p.matrices; matrix += gridDim.x) {
        const u32* positions = p.positions + matrix * p.padded;
        i64 row0 = matrix * p.rows, column0 = matrix * p.columns, left = p.most;
        ROLLED
        for (i64 begin = 0; begin < size && left > 0; begin += ROW_THREADS) {
            i64 i = begin + threadIdx.x, row = 0, column = 0;
            bool waits = i < size;
            if (waits) {
                row = (i64)positions[i] / p.columns, column = positions[i] - row * p.columns;
                waits = load<float>(p.of_rows, p.dtype, row0 + row) == -1 &&
                        load<float>(p.of_columns, p.dtype, column0 + column) == -1;
            }
            ROLLED
            while (left > 0) {
                i64 found = over_block<i64>(MIN, waits ? threadIdx.x : ROW_THREADS, shared);
                if (found == ROW_THREADS) break;
                i64 at = positions[begin + found], its_row = at / p.columns, its_column = at - its_row * p.columns;
                // A score that matches nothing ends it: those after it are worse.
                bool matches = sign * load<double>(p.scores, p.dtype, matrix * size + at) > sign * p.threshold;
                left = matches ? left - 1 : 0;
                if (matches && threadIdx.x == found) {
                    store<i64>(p.of_rows, p.dtype, row0 + its_row, its_column);
                    store<i64>(p.of_columns, p.dtype, column0 + its_column, its_row);
                }
                waits = waits && row != its_row && column != its_column;
            }
        }
    }
}
ENTRY_WITH_BARRIERS(match_pairs)
