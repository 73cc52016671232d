// Correlation of the patches of two images.
#pragma once
#include "elementwise.h"

struct Correlation {
    void* to;    // [images][shifts][rows][columns]
    const void* a;    // [images][channels][height][width]
    const void* b;
    i64 n;
    double numbers;    // that each mean is of
    int channels, size[2], patches[2];
    int kernel, pad, begin, step, radius, shift, multiply, dtype, unused;
};
// Sums of channels in a row: those of a patch are added up in the same order as on the host.
#define CORRELATION_LANES 16
template <class T> DEVICE void correlate(const Correlation& p) {
    Divisor side{2 * (i64)p.radius + 1};
    i64 plane = (i64)p.size[0] * p.size[1];
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 line = i / Divisor{p.patches[1]}, shifts = line / Divisor{p.patches[0]};
        i64 x0 = (i - line * p.patches[1]) * p.step + p.begin - p.pad;
        i64 y0 = (line - shifts * p.patches[0]) * p.step + p.begin - p.pad;
        i64 down = shifts / side, image = down / side;
        i64 right = shifts - down * side - p.radius;
        down = (down - image * side - p.radius) * p.shift, right *= p.shift;
        T sum = 0;
        ROLLED
        for (int tap = 0; tap < p.kernel * p.kernel; tap++) {
            i64 y = y0 + tap / p.kernel, x = x0 + tap % p.kernel, y2 = y + down, x2 = x + right;
            bool has = y >= 0 && y < p.size[0] && x >= 0 && x < p.size[1];
            bool has_other = y2 >= 0 && y2 < p.size[0] && x2 >= 0 && x2 < p.size[1];
            if (!has && !has_other) continue;
            i64 at = image * p.channels * plane + y * p.size[1] + x, other = at + down * p.size[1] + right;
            ROLLED
            for (int lane = 0; lane < CORRELATION_LANES; lane++) {
                T of_lane = 0;
                ROLLED
                for (i64 c = lane; c < p.channels; c += CORRELATION_LANES) {
                    // Padding is zero, but for its products with infinities.
                    T u = has ? load<T>(p.a, p.dtype, at + c * plane) : (T)0;
                    T v = has_other ? load<T>(p.b, p.dtype, other + c * plane) : (T)0;
                    of_lane += p.multiply ? u * v : m_fabs(u - v);
                }
                sum += of_lane;
            }
        }
        store<T>(p.to, p.dtype, i, sum / (T)p.numbers);
    }
}
KERNEL void __launch_bounds__(256, 2) correlate_f32(Correlation p) { correlate<float>(p); }
ENTRY(correlate_f32)
KERNEL void __launch_bounds__(256, 2) correlate_f64(Correlation p) { correlate<double>(p); }
ENTRY(correlate_f64)
