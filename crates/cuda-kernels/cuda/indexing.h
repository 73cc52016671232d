// Elements found by number.
#pragma once
#include "types.h"

enum OutOfRange { CLIP, WRAP, RAISE };
struct Take {
    void* to;
    const void* from;
    const void* indices;
    u64* status;
    i64 outer, extent;
    Divisor inner, count;    // `from` is [outer][extent][inner]; `to` has `count` for `extent`
    int size, index_dtype, mode;
    int pick;    // an index for each [outer][inner]
};
// Reports an index so that no report is zero: the one whose sum is zero gets that of index 0,
// which an axis with elements has.
DEVICE void report_index(u64* status, i64 index) {
    u64 said = (u64)index + 0x4000000000000000ull;
    report(status, said ? said : 0x4000000000000000ull);
}
DEVICE i64 in_range(i64 index, i64 extent, int mode, u64* status) {
    if (index >= 0 && index < extent) return index;
    if (mode == WRAP) {
        Divisor around{extent};
        return index < 0 ? extent - 1 - ~index % around : index % around;
    }
    if (mode == RAISE) report_index(status, index);
    return index < 0 ? 0 : extent - 1;
}
KERNEL void __launch_bounds__(256, 2) take(Take p) {
    i64 n = p.outer * p.count * p.inner;
    ROLLED
    for (i64 i = first(); i < n; i += stride()) {
        i64 inner = i % p.inner, k = i / p.inner % p.count, outer = i / p.inner / p.count;
        i64 number = load<i64>(p.indices, p.index_dtype, p.pick ? i : k);
        i64 from = (outer * p.extent + in_range(number, p.extent, p.mode, p.status)) * p.inner + inner;
        copy_element(p.to, i, p.from, from, p.size);
    }
}
ENTRY(take)

struct OneHot {
    void* to;
    const void* indices;
    i64 n;
    Divisor depth;
    double on, off;
    int dtype, index_dtype;
};
KERNEL void __launch_bounds__(256, 2) one_hot(OneHot p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        bool is = load<i64>(p.indices, p.index_dtype, i / p.depth) == i % p.depth;
        store_converted(p.to, p.dtype, i, is ? p.on : p.off);
    }
}
ENTRY(one_hot)

struct Select {
    void* to;
    const void* condition;
    const void* yes;
    const void* no;
    i64 n;
    Divisor row;    // elements for each condition
    int size, condition_dtype;
};
KERNEL void __launch_bounds__(256, 2) select_elements(Select p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        const void* from = load<double>(p.condition, p.condition_dtype, i / p.row) != 0 ? p.yes : p.no;
        copy_element(p.to, i, from, i, p.size);
    }
}
ENTRY(select_elements)

struct GatherRows {
    void* to;
    const void* from;
    const void* indices;
    u64* status;
    i64 count;
    Divisor inner;    // rows, and elements of each
    int axes, size, index_dtype, unused;
    i64 sizes[AXES];
};
// A number cut to 38 bits, from 0 on. The ends of 64 bits are told from others.
DEVICE u64 in_38_bits(i64 number) {
    i64 end = 1ll << 37, held = number <= -end ? 1 - end : number >= end - 1 ? end - 2 : number;
    if (number == (i64)0x8000000000000000ull) held = -end;
    if (number == 0x7fffffffffffffffll) held = end - 1;
    return (u64)(held + end);
}
// Reports axis, position and index, so that the first index of the first axis is heard, as on the
// CPU. Positions are cut to 22 bits.
DEVICE void report_place(u64* status, int axis, i64 position, i64 index) {
    i64 last = (1 << 22) - 1;
    report_least(status, (u64)(axis + 1) << 60 | (u64)(position < last ? position : last) << 38 | in_38_bits(index));
}
// The row that the indices at position `k` name.
template <class P> DEVICE i64 named_row(const P& p, i64 k) {
    i64 row = 0;
    ROLLED
    for (int a = 0; a < p.axes; a++) {
        i64 index = load<i64>(p.indices, p.index_dtype, a * p.count + k), size = p.sizes[a];
        bool inside = index >= -size && index < size;
        if (!inside) report_place(p.status, a, k, index);
        row = row * size + (!inside ? 0 : index < 0 ? index + size : index);
    }
    return row;
}
KERNEL void __launch_bounds__(256, 2) gather_rows(GatherRows p) {
    ROLLED
    for (i64 i = first(); i < p.count * p.inner; i += stride()) {
        i64 row = named_row(p, i / p.inner);
        copy_element(p.to, i, p.from, row * p.inner + i % p.inner, p.size);
    }
}
ENTRY(gather_rows)
