// Elements in other places, and arrays made from numbers.
#pragma once
#include "types.h"

struct Move {
    void* to;
    const void* from;
    i64 n;
    int size, unused;    // bytes of an element
    Axes axes;
    i64 to_steps[AXES], from_steps[AXES];
};
template <class T> DEVICE void move(const Move& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride())
        ((T*)p.to)[place(p.axes, p.to_steps, i)] = ((const T*)p.from)[place(p.axes, p.from_steps, i)];
}
KERNEL void __launch_bounds__(256, 2) move_elements(Move p) {
    switch (p.size) {
        case 1: move<unsigned char>(p); break;
        case 2: move<unsigned short>(p); break;
        case 4: move<u32>(p); break;
        default: move<u64>(p);
    }
}
ENTRY(move_elements)

// Single elements: `places` are those that are written, then those that are read.
struct Places {
    void* to;
    const void* from;
    const i64* places;
    i64 n;
    int size, unused;
};
KERNEL void __launch_bounds__(256, 2) move_places(Places p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) copy_element(p.to, p.places[i], p.from, p.places[p.n + i], p.size);
}
ENTRY(move_places)

// start + i / repeat * step; a step of 0 fills.
struct Range {
    void* to;
    i64 n;
    Divisor repeat;
    double start, step;
    int dtype, unused;
};
KERNEL void __launch_bounds__(256, 2) range(Range p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride())
        store<double>(p.to, p.dtype, i, p.start + (double)(i / p.repeat) * p.step);
}
ENTRY(range)
