// The pixels that windows see, as columns of a matrix, and back.
#pragma once
#include "types.h"

struct Columns {
    void* to;
    const void* from;
    i64 n;    // elements of `to`
    // Images are [plane][pixels]; columns [plane][tap][window].
    int kernel[3], stride[3], dilate[3], pad[3], image[3], windows[3];
    int size, dtype;
};
KERNEL void __launch_bounds__(256, 2) columns_of_images(Columns p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 at[3], rest = i;
        UNROLLED
        for (int a = 2; a >= 0; a--) {
            i64 outer = rest / Divisor{p.windows[a]};
            at[a] = (rest - outer * p.windows[a]) * p.stride[a] - p.pad[a];
            rest = outer;
        }
        UNROLLED
        for (int a = 2; a >= 0; a--) {
            i64 outer = rest / Divisor{p.kernel[a]};
            at[a] += (rest - outer * p.kernel[a]) * p.dilate[a];
            rest = outer;
        }
        // What is left is the plane.
        bool inside = true;
        UNROLLED
        for (int a = 0; a < 3; a++) {
            inside = inside && at[a] >= 0 && at[a] < p.image[a];
            rest = rest * p.image[a] + at[a];
        }
        if (inside) copy_element(p.to, i, p.from, rest, p.size);
        else store<float>(p.to, p.dtype, i, 0);
    }
}
ENTRY(columns_of_images)

// The window that sees a pixel at this tap of an axis, or -1.
DEVICE i64 window_at(const Columns& p, int axis, i64 pixel, int tap) {
    i64 at = pixel + p.pad[axis] - (i64)tap * p.dilate[axis];
    if (at < 0) return -1;
    i64 window = at / Divisor{p.stride[axis]};
    return window * p.stride[axis] == at && window < p.windows[axis] ? window : -1;
}
// A pixel adds up what it has in the columns, tap after tap.
template <class T> DEVICE void sums_of_columns(const Columns& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 pixel[3], plane = i;
        UNROLLED
        for (int a = 2; a >= 0; a--) {
            i64 outer = plane / Divisor{p.image[a]};
            pixel[a] = plane - outer * p.image[a];
            plane = outer;
        }
        T sum = 0;
        ROLLED
        for (int kd = 0; kd < p.kernel[0]; kd++) {
            i64 d = window_at(p, 0, pixel[0], kd);
            if (d < 0) continue;
            ROLLED
            for (int kh = 0; kh < p.kernel[1]; kh++) {
                i64 h = window_at(p, 1, pixel[1], kh);
                if (h < 0) continue;
                i64 taps = ((plane * p.kernel[0] + kd) * p.kernel[1] + kh) * p.kernel[2];
                ROLLED
                for (int kw = 0; kw < p.kernel[2]; kw++) {
                    i64 w = window_at(p, 2, pixel[2], kw);
                    if (w < 0) continue;
                    i64 from = (((taps + kw) * p.windows[0] + d) * p.windows[1] + h) * p.windows[2] + w;
                    sum += load<T>(p.from, p.dtype, from);
                }
            }
        }
        store<T>(p.to, p.dtype, i, sum);
    }
}
KERNEL void __launch_bounds__(256, 2) sums_of_columns_f32(Columns p) { sums_of_columns<float>(p); }
ENTRY(sums_of_columns_f32)
KERNEL void __launch_bounds__(256, 2) sums_of_columns_f64(Columns p) { sums_of_columns<double>(p); }
ENTRY(sums_of_columns_f64)
