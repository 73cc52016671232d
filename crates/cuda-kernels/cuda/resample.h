// Planes of another size.
#pragma once
#include "types.h"

enum Resampling { BILINEAR_CORNERS, BILINEAR_EDGES, MEANS };
struct Resample {
    void* to;
    const void* from;
    i64 n;
    int size[2], out[2];
    float scale[2];    // pixels of `from` for one of `to`
    int kind, dtype;
};

// The pixels that an output reads along an axis, and the share of the second of two.
struct Reads {
    int low, high;
    float share;
};
DEVICE Reads between(const Resample& p, int axis, int i) {
    float at = p.scale[axis] * (float)i;
    if (p.kind == BILINEAR_EDGES) at = (float)((double)p.scale[axis] * (i + 0.5) - 0.5);
    if (at < 0) at = 0;
    int last = p.size[axis] - 1, low = (int)at < last ? (int)at : last;
    return Reads{low, low < last ? low + 1 : last, at - (float)low};
}
// As floor(i * from / to) and ceil((i + 1) * from / to) in single precision.
DEVICE Reads window(const Resample& p, int axis, int i) {
    i64 from = p.size[axis];
    int low = (int)((float)(i * from) / (float)p.out[axis]);
    float end = (float)((i + 1) * from) / (float)p.out[axis];
    int high = (int)end + ((float)(int)end < end);
    return Reads{low < from ? low : (int)from, high < from ? high : (int)from, 0};
}

template <class T> DEVICE void resample(const Resample& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        Divisor columns{p.out[1]}, rows{p.out[0]};
        int column = (int)(i % columns), row = (int)(i / columns % rows);
        i64 plane = i / columns / rows * p.size[0] * p.size[1];
        T v = 0;
        if (p.kind == MEANS) {
            Reads down = window(p, 0, row), across = window(p, 1, column);
            ROLLED
            for (int x = across.low; x < across.high; x++) {
                T sum = 0;
                ROLLED
                for (int y = down.low; y < down.high; y++) sum += load<T>(p.from, p.dtype, plane + (i64)y * p.size[1] + x);
                v += sum;
            }
            v = v / (T)(across.high - across.low) / (T)(down.high - down.low);
        } else {
            Reads down = between(p, 0, row), across = between(p, 1, column);
            T below = (T)down.share, right = (T)across.share, lines[2];
            ROLLED
            for (int side = 0; side < 2; side++) {
                i64 x = plane + (side ? across.high : across.low);
                lines[side] = (1 - below) * load<T>(p.from, p.dtype, x + (i64)down.low * p.size[1]) +
                              below * load<T>(p.from, p.dtype, x + (i64)down.high * p.size[1]);
            }
            v = (1 - right) * lines[0] + right * lines[1];
        }
        store<T>(p.to, p.dtype, i, v);
    }
}
KERNEL void __launch_bounds__(256, 2) resample_f32(Resample p) { resample<float>(p); }
ENTRY(resample_f32)
KERNEL void __launch_bounds__(256, 2) resample_f64(Resample p) { resample<double>(p); }
ENTRY(resample_f64)
