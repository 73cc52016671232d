// Elements put into places given by number, and positions in arrays.
#pragma once
#include "indexing.h"

// Rows that replace others. The first kernel finds the last row for each place, the second copies it.
struct ScatterRows {
    void* to;
    const void* from;
    const void* indices;
    int* last;    // for each row of `to`: the number of the last row for it, counted from 1
    u64* status;
    i64 count;
    Divisor inner;    // rows, and elements of each
    int axes, size, index_dtype, unused;
    i64 sizes[AXES];
};
KERNEL void __launch_bounds__(256, 2) scatter_last(ScatterRows p) {
    ROLLED
    for (i64 k = first(); k < p.count; k += stride()) keep_largest(p.last + named_row(p, k), (int)k + 1);
}
ENTRY(scatter_last)
KERNEL void __launch_bounds__(256, 2) scatter_rows(ScatterRows p) {
    ROLLED
    for (i64 i = first(); i < p.count * p.inner; i += stride()) {
        i64 k = i / p.inner, row = named_row(p, k);
        if (p.last[row] == (int)k + 1) copy_element(p.to, row * p.inner + i % p.inner, p.from, i, p.size);
    }
}
ENTRY(scatter_rows)

// Positions in an array and indices along its axes.
enum PositionKind { RAVEL, UNRAVEL, OWN };
struct Positions {
    void* to;
    const void* from;
    Divisor n;    // positions
    int axes, kind, from_dtype, dtype;
    i64 steps[AXES], sizes[AXES];
};
// Rounded towards zero.
DEVICE i64 quotient(i64 a, i64 by) { return a < 0 ? -(-a / Divisor{by}) : a / Divisor{by}; }
KERNEL void __launch_bounds__(256, 2) positions(Positions p) {
    i64 total = p.kind == RAVEL ? p.n.number : p.n.number * p.axes;
    ROLLED
    for (i64 i = first(); i < total; i += stride()) {
        i64 v = 0;
        if (p.kind == RAVEL) {
            ROLLED
            for (int a = 0; a < p.axes; a++) v += load<i64>(p.from, p.from_dtype, a * p.n.number + i) * p.steps[a];
        } else if (p.kind == UNRAVEL) {
            i64 a = i / p.n, at = quotient(load<i64>(p.from, p.from_dtype, i % p.n), p.steps[a]);
            v = a == 0 ? at : at - quotient(at, p.sizes[a]) * p.sizes[a];
        } else {
            i64 element = i / Divisor{p.axes}, a = i - element * p.axes;
            v = element / Divisor{p.steps[a]} % Divisor{p.sizes[a]};
        }
        store<i64>(p.to, p.dtype, i, v);
    }
}
ENTRY(positions)

// Numbers that are known before.
#define KNOWN_NUMBERS 32
struct KnownNumbers {
    void* to;
    int count, dtype;
    i64 values[KNOWN_NUMBERS];
};
KERNEL void __launch_bounds__(256, 2) known_numbers(KnownNumbers p) {
    ROLLED
    for (i64 i = first(); i < p.count; i += stride()) store<i64>(p.to, p.dtype, i, p.values[i]);
}
ENTRY(known_numbers)
