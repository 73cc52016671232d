// Numbers that follow from their places, and choices between arrays.
#pragma once
#include "elementwise.h"

struct Spaced {
    void* to;
    i64 n, last;    // the place of the number that is `end`
    double start, step, end;
    int dtype, unused;
};
// No sum is joined with its product: whole numbers would differ from the CPU's.
KERNEL void __launch_bounds__(256, 2) spaced(Spaced p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        double v = plus_rounded(p.start, times_rounded(p.step, (double)i));
        store_converted(p.to, p.dtype, i, i > 0 && i == p.last ? p.end : v);
    }
}
ENTRY(spaced)

struct Diagonal {
    void* to;
    i64 n, right;
    Divisor columns;
    int dtype, unused;
};
KERNEL void __launch_bounds__(256, 2) diagonal(Diagonal p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride())
        store<i64>(p.to, p.dtype, i, i % p.columns - i / p.columns == p.right);
}
ENTRY(diagonal)

struct LeftOf {
    void* to;
    const void* from;
    i64 n, right;
    Divisor rows, columns;
    int is_vector, size, dtype, unused;
};
KERNEL void __launch_bounds__(256, 2) left_of(LeftOf p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 column = i % p.columns, row = i / p.columns % p.rows;
        if (column - row <= p.right)
            copy_element(p.to, i, p.from, p.is_vector ? column : i, p.size);
        else
            store<i64>(p.to, p.dtype, i, 0);
    }
}
ENTRY(left_of)

struct RoundPlaces {
    void* to;
    const void* from;
    i64 n;
    int places, dtype;
};
// A number that has fewer places stays.
template <class T> DEVICE T rounded(T x, int places, T to_whole) {
    T scaled = x;
    ROLLED
    for (int i = 0; i < places; i++) scaled *= 10;
    ROLLED
    for (int i = 0; i > places; i--) scaled /= 10;
    if (!(scaled - scaled == 0)) return x;
    if (m_fabs(scaled) < to_whole) {
        T whole = plus_rounded(plus_rounded(m_fabs(scaled), to_whole), -to_whole);
        scaled = scaled < 0 ? -whole : whole;
    }
    ROLLED
    for (int i = 0; i < places; i++) scaled /= 10;
    ROLLED
    for (int i = 0; i > places; i--) scaled *= 10;
    return scaled;
}
KERNEL void __launch_bounds__(256, 2) round_places(RoundPlaces p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        if (p.dtype == F32)
            ((float*)p.to)[i] = rounded(((const float*)p.from)[i], p.places, 8388608.0f);
        else
            store_converted(p.to, p.dtype, i, rounded(load<double>(p.from, p.dtype, i), p.places, 4503599627370496.0));
    }
}
ENTRY(round_places)

struct FiniteNumbers {
    void* to;
    const void* from;
    i64 n;
    double numbers[3];
    int dtype, unused;
};
KERNEL void __launch_bounds__(256, 2) finite_numbers(FiniteNumbers p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        double v = load<double>(p.from, p.dtype, i), end = infinity();
        v = v != v ? p.numbers[0] : v == end ? p.numbers[1] : v == -end ? p.numbers[2] : v;
        store<double>(p.to, p.dtype, i, v);
    }
}
ENTRY(finite_numbers)

struct Choose {
    void* to;
    const void* condition;
    const void* arrays[2];    // null: a number
    i64 n;
    double numbers[2];
    int dtype, size, condition_dtype, strided;    // whether steps say where elements are
    Axes axes;
    i64 condition_steps[AXES], yes_steps[AXES], no_steps[AXES];
};
KERNEL void __launch_bounds__(256, 2) choose(Choose p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 at = p.strided ? place(p.axes, p.condition_steps, i) : i;
        int which = load<double>(p.condition, p.condition_dtype, at) != 0 ? 0 : 1;
        if (!p.arrays[which]) {
            store_converted(p.to, p.dtype, i, p.numbers[which]);
            continue;
        }
        i64 from = i;
        if (p.strided) from = which ? place(p.axes, p.no_steps, i) : place(p.axes, p.yes_steps, i);
        copy_element(p.to, i, p.arrays[which], from, p.size);
    }
}
ENTRY(choose)
