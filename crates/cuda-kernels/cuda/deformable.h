// Columns of convolutions whose taps are shifted, and the end of such a convolution.
#pragma once
#include "elementwise.h"

struct DeformableColumns {
    void* to;               // [channels][taps][windows] of one image, in the type of sums
    const void* from;       // [channels][height][width]
    const void* offsets;    // [groups][taps][2][windows]: down, then to the right
    const void* mask;       // [groups][taps][windows], or null
    i64 n;
    Divisor of_group;    // channels with the same offsets
    int kernel[2], step[2], dilate[2], pad[2], size[2], windows[2];
    int dtype, unused;
};
template <class T> DEVICE void deformable_columns(const DeformableColumns& p) {
    Divisor windows{(i64)p.windows[0] * p.windows[1]}, taps{(i64)p.kernel[0] * p.kernel[1]};
    // Without a mask a tap beyond the last pixel repeats it, and one before the first is zero. With
    // one, both fade to zero over a pixel.
    bool fades = p.mask != nullptr;
    T least = fades ? (T)-1 : (T)0;
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 row = i / windows, channel = row / taps;
        int window = (int)(i - row * windows), tap = (int)(row - channel * taps);
        i64 shifts = channel / p.of_group * taps + tap;
        T share[2];
        int low[2];
        bool inside = true;
        UNROLLED
        for (int a = 0; a < 2; a++) {
            i64 step = a ? window % p.windows[1] : window / p.windows[1], k = a ? tap % p.kernel[1] : tap / p.kernel[1];
            T shift = load<T>(p.offsets, p.dtype, (shifts * 2 + a) * windows + window);
            T at = (T)(step * p.step[a] + k * p.dilate[a] - p.pad[a]) + shift;
            // The lowest place itself lies inside only where it is a pixel.
            bool has = (fades ? at > least : at >= least) && at < (T)p.size[a];
            inside = inside && has;
            T down = has ? m_floor(at) : (T)0;
            low[a] = (int)down;
            share[a] = has ? at - down : (T)0;
            if (!fades && low[a] + 1 >= p.size[a]) share[a] = 0;
        }
        T v = 0;
        if (inside) {
            UNROLLED
            for (int corner = 0; corner < 4; corner++) {
                int y = low[0] + corner / 2, x = low[1] + corner % 2;
                if (!fades) y = y < p.size[0] ? y : p.size[0] - 1, x = x < p.size[1] ? x : p.size[1] - 1;
                T part = (corner / 2 ? share[0] : 1 - share[0]) * (corner % 2 ? share[1] : 1 - share[1]);
                bool has = y >= 0 && y < p.size[0] && x >= 0 && x < p.size[1];
                i64 pixel = (channel * p.size[0] + y) * p.size[1] + x;
                v += part * (has ? load<T>(p.from, p.dtype, pixel) : (T)0);
            }
        }
        if (fades) v *= load<T>(p.mask, p.dtype, shifts * windows + window);
        ((T*)p.to)[i] = v;
    }
}
KERNEL void __launch_bounds__(256, 2) deformable_columns_f32(DeformableColumns p) { deformable_columns<float>(p); }
ENTRY(deformable_columns_f32)
KERNEL void __launch_bounds__(256, 2) deformable_columns_f64(DeformableColumns p) { deformable_columns<double>(p); }
ENTRY(deformable_columns_f64)

// Sums of an image become its results.
struct FilterSums {
    void* to;            // [filters][windows]
    const void* sums;    // the same in the type of sums; may be `to`
    const void* bias;    // [filters], or null
    i64 n;
    Divisor windows;
    int dtype, unused;
};
template <class T> DEVICE void filter_sums(const FilterSums& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        T v = ((const T*)p.sums)[i];
        if (p.bias) v += load<T>(p.bias, p.dtype, i / p.windows);
        store<T>(p.to, p.dtype, i, v);
    }
}
KERNEL void __launch_bounds__(256, 2) filter_sums_f32(FilterSums p) { filter_sums<float>(p); }
ENTRY(filter_sums_f32)
KERNEL void __launch_bounds__(256, 2) filter_sums_f64(FilterSums p) { filter_sums<double>(p); }
ENTRY(filter_sums_f64)
