// Planes at real positions, and the positions: -1 is the first pixel, 1 the last one.
#pragma once
#include "elementwise.h"

struct Sampler {
    void* to;            // [images][channels][rows][columns]
    const void* from;    // [images][channels][height][width]
    const void* grid;    // [images][2][rows][columns]: x, y; or maps [images][2][3]
    i64 n;
    Divisor channels;
    int size[2], out[2];
    int affine, dtype;
};
// One position alone has no place between the ends: it is no number.
template <class T> DEVICE T between_ends(int i, int n) { return -1 + (T)i * (T)(2.0 / ((double)n - 1)); }
template <class T> DEVICE T mapped(const void* maps, int dtype, i64 map, T x, T y) {
    return load<T>(maps, dtype, 3 * map) * x + load<T>(maps, dtype, 3 * map + 1) * y + load<T>(maps, dtype, 3 * map + 2);
}
template <class T> DEVICE void sample_planes(const Sampler& p) {
    Divisor pixels{(i64)p.out[0] * p.out[1]};
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 pixel = i % pixels, plane = i / pixels, image = plane / p.channels;
        T share[2];
        int low[2];
        UNROLLED
        for (int a = 0; a < 2; a++) {
            // Axis 0 is y, which comes second in the grid.
            T at;
            if (p.affine) {
                T x = between_ends<T>((int)pixel % p.out[1], p.out[1]), y = between_ends<T>((int)pixel / p.out[1], p.out[0]);
                at = mapped<T>(p.grid, p.dtype, 2 * image + 1 - a, x, y);
                // The CPU keeps the positions of a map in the type of the image.
                if (p.dtype == F16) at = (T)load_half(to_half((float)at));
            } else {
                at = load<T>(p.grid, p.dtype, (2 * image + 1 - a) * pixels + pixel);
            }
            at = (at + 1) * (T)(p.size[a] - 1) / 2;
            T down = m_floor(at);
            // What is no place in 32 bits lies outside.
            low[a] = down >= (T)-2147483648.0 && down < (T)2147483647.0 ? (int)down : (int)0x80000000;
            share[a] = at - (T)low[a];
        }
        T sum = 0;
        for (int corner = 0; corner < 4; corner++) {
            i64 y = (i64)low[0] + corner / 2, x = (i64)low[1] + corner % 2;
            bool inside = y >= 0 && y < p.size[0] && x >= 0 && x < p.size[1];
            T v = inside ? load<T>(p.from, p.dtype, (plane * p.size[0] + y) * p.size[1] + x) : (T)0;
            // In this order: a pixel outside stays zero with shares whose product is infinite.
            sum += v * (corner / 2 ? share[0] : 1 - share[0]) * (corner % 2 ? share[1] : 1 - share[1]);
        }
        store<T>(p.to, p.dtype, i, sum);
    }
}
KERNEL void __launch_bounds__(256, 2) sample_planes_f32(Sampler p) { sample_planes<float>(p); }
ENTRY(sample_planes_f32)
KERNEL void __launch_bounds__(256, 2) sample_planes_f64(Sampler p) { sample_planes<double>(p); }
ENTRY(sample_planes_f64)

struct Grid {
    void* to;            // [images][2][rows][columns]
    const void* from;    // maps [images][2][3], or a flow like `to`
    i64 n;
    int out[2];
    int flow, dtype;
};
template <class T> DEVICE void grid_positions(const Grid& p) {
    Divisor pixels{(i64)p.out[0] * p.out[1]};
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 pixel = i % pixels, plane = i / pixels;
        int column = (int)pixel % p.out[1], row = (int)pixel / p.out[1];
        T v;
        if (p.flow) {
            bool vertical = plane % 2 == 1;
            T half = (T)(((vertical ? p.out[0] : p.out[1]) - 1.0) / 2.0);
            v = (load<T>(p.from, p.dtype, i) + (T)(vertical ? row : column)) / half - 1;
        } else {
            v = mapped<T>(p.from, p.dtype, plane, between_ends<T>(column, p.out[1]), between_ends<T>(row, p.out[0]));
        }
        store<T>(p.to, p.dtype, i, v);
    }
}
KERNEL void __launch_bounds__(256, 2) grid_positions_f32(Grid p) { grid_positions<float>(p); }
ENTRY(grid_positions_f32)
KERNEL void __launch_bounds__(256, 2) grid_positions_f64(Grid p) { grid_positions<double>(p); }
ENTRY(grid_positions_f64)
