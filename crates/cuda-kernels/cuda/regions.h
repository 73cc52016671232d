// Regions of interest.
#pragma once
#include "elementwise.h"
#include "indexing.h"

struct Regions {
    void* to;               // [regions][channels][rows][columns]
    const void* from;       // [images][planes][height][width]
    const void* regions;    // [regions][5]: image, left, top, right, bottom
    u64* status;
    i64 n, images, planes;
    Divisor channels;
    int size[2], bins[2];
    double scale;
    int samples;    // along an axis of a bin; 0: as many as pixels
    int aligned, position_sensitive, dtype;
};
// What is said of a region: its number, and why it cannot be pooled.
enum Refusal { NO_SIDES, LONG_BINS };
DEVICE void refuse(const Regions& p, i64 region, int reason) { report(p.status, 1 + 2 * (u64)region + reason); }
// The image of a region, or -1 for none.
DEVICE i64 image_of(const Regions& p, i64 region, bool reports) {
    i64 image = load<i64>(p.regions, p.dtype, 5 * region);
    if (image >= p.images && reports) report_index(p.status, image);
    return image < 0 || image >= p.images ? -1 : image;
}

// A region along an axis.
template <class T> struct Extent {
    T start, bin;
    int samples;    // -1: there is no place
};
template <class T> DEVICE Extent<T> extent(const Regions& p, i64 region, int axis) {
    T scale = (T)p.scale, offset = p.aligned ? (T)0.5 : 0;
    T start = load<T>(p.regions, p.dtype, 5 * region + 2 - axis) * scale - offset;
    T size = load<T>(p.regions, p.dtype, 5 * region + 4 - axis) * scale - offset - start;
    if (p.aligned && size <= 0) {
        refuse(p, region, NO_SIDES);
        return Extent<T>{0, 0, -1};
    }
    if (!p.aligned && size < 1) size = 1;
    T bin = size / (T)p.bins[axis];
    if (!(bin - bin == 0) || !(start - start == 0)) return Extent<T>{0, 0, -1};
    if (p.samples) return Extent<T>{start, bin, p.samples};
    if (bin > 4096) {
        refuse(p, region, LONG_BINS);
        return Extent<T>{0, 0, -1};
    }
    int samples = (int)bin;
    return Extent<T>{start, bin, samples + ((T)samples < bin)};
}
// Two pixels and their shares in a sample.
template <class T> struct Sample {
    int low, high;
    T share[2];
};
template <class T> DEVICE Sample<T> sample(const Extent<T>& e, int bin, int i, int size) {
    T at = e.start + (T)bin * e.bin + (T)((float)i + 0.5f) * e.bin / (T)e.samples;
    if (!(at >= -1 && at <= (T)size)) return Sample<T>{0, 0, {0, 0}};
    if (at <= 0) at = 0;
    int low = (int)at < size - 1 ? (int)at : size - 1;
    if (low == size - 1) return Sample<T>{low, low, {1, 0}};
    T share = at - (T)low;
    return Sample<T>{low, low + 1, {1 - share, share}};
}
template <class T> DEVICE void roi_align(const Regions& p) {
    Divisor bins{p.bins[0] * p.bins[1]};
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        int bin = (int)(i % bins);
        i64 channel = i / bins % p.channels, region = i / bins / p.channels, image = image_of(p, region, true);
        if (image < 0) {
            store<T>(p.to, p.dtype, i, 0);
            continue;
        }
        Extent<T> down = extent<T>(p, region, 0), across = extent<T>(p, region, 1);
        T sum = 0, count = (T)((i64)down.samples * across.samples);
        if (down.samples < 0 || across.samples < 0) count = 0;
        i64 plane = image * p.planes + (p.position_sensitive ? channel * bins + bin : channel);
        i64 from = plane * p.size[0] * p.size[1];
        if (count > 0) {
            ROLLED
            for (int y = 0; y < down.samples; y++) {
                Sample<T> v = sample(down, bin / p.bins[1], y, p.size[0]);
                ROLLED
                for (int x = 0; x < across.samples; x++) {
                    Sample<T> h = sample(across, bin % p.bins[1], x, p.size[1]);
                    i64 above = from + (i64)v.low * p.size[1], below = from + (i64)v.high * p.size[1];
                    sum += v.share[0] * h.share[0] * load<T>(p.from, p.dtype, above + h.low) +
                           v.share[0] * h.share[1] * load<T>(p.from, p.dtype, above + h.high) +
                           v.share[1] * h.share[0] * load<T>(p.from, p.dtype, below + h.low) +
                           v.share[1] * h.share[1] * load<T>(p.from, p.dtype, below + h.high);
                }
            }
        }
        // Without a place it is no number.
        store<T>(p.to, p.dtype, i, sum / count);
    }
}
KERNEL void __launch_bounds__(256, 2) roi_align_f32(Regions p) { roi_align<float>(p); }
ENTRY(roi_align_f32)
KERNEL void __launch_bounds__(256, 2) roi_align_f64(Regions p) { roi_align<double>(p); }
ENTRY(roi_align_f64)

// What 64 bits do not hold becomes their end; NaN becomes zero.
#define ENDS_OF_64_BITS const i64 LOWEST = (i64)0x8000000000000000ull, HIGHEST = 0x7fffffffffffffffll
DEVICE i64 saturated(double v) {
    ENDS_OF_64_BITS;
    return v != v ? 0 : v >= 9223372036854775808.0 ? HIGHEST : v < -9223372036854775808.0 ? LOWEST : (i64)v;
}
DEVICE i64 saturated_sum(i64 a, i64 b) {
    ENDS_OF_64_BITS;
    return b > 0 && a > HIGHEST - b ? HIGHEST : b < 0 && a < LOWEST - b ? LOWEST : a + b;
}
DEVICE i64 saturated_difference(i64 a, i64 b) {
    ENDS_OF_64_BITS;
    return b < 0 && a > HIGHEST + b ? HIGHEST : b > 0 && a < LOWEST + b ? LOWEST : a - b;
}
// Pixels of a bin along an axis.
template <class T> DEVICE void pixels(const Regions& p, i64 region, int axis, int bin, i64* low, i64* high) {
    T scale = (T)p.scale;
    i64 begin = saturated(m_round((double)(load<T>(p.regions, p.dtype, 5 * region + 2 - axis) * scale)));
    i64 end = saturated(m_round((double)(load<T>(p.regions, p.dtype, 5 * region + 4 - axis) * scale)));
    i64 size = saturated_sum(saturated_difference(end, begin), 1);
    T each = (T)(size > 1 ? size : 1) / (T)p.bins[axis];
    *low = saturated_sum(saturated(m_floor((double)((T)bin * each))), begin);
    *high = saturated_sum(saturated(m_ceil((double)((T)(bin + 1) * each))), begin);
    *low = *low < 0 ? 0 : *low > p.size[axis] ? p.size[axis] : *low;
    *high = *high < 0 ? 0 : *high > p.size[axis] ? p.size[axis] : *high;
}
template <class T> DEVICE void roi_maxima(const Regions& p) {
    Divisor bins{p.bins[0] * p.bins[1]};
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        int bin = (int)(i % bins);
        i64 channel = i / bins % p.channels, region = i / bins / p.channels, image = image_of(p, region, false);
        i64 top = 0, bottom = 0, left = 0, right = 0;
        if (image >= 0) {
            pixels<T>(p, region, 0, bin / p.bins[1], &top, &bottom);
            pixels<T>(p, region, 1, bin % p.bins[1], &left, &right);
        }
        i64 plane = (image * p.planes + channel) * p.size[0] * p.size[1];
        T best = bottom > top && right > left ? (T)-3.402823466e38f : 0;
        ROLLED
        for (i64 y = top; y < bottom; y++)
            ROLLED
            for (i64 x = left; x < right; x++) {
                T v = load<T>(p.from, p.dtype, plane + y * p.size[1] + x);
                if (v > best) best = v;
            }
        store<T>(p.to, p.dtype, i, best);
    }
}
KERNEL void __launch_bounds__(256, 2) roi_maxima_f32(Regions p) { roi_maxima<float>(p); }
ENTRY(roi_maxima_f32)
KERNEL void __launch_bounds__(256, 2) roi_maxima_f64(Regions p) { roi_maxima<double>(p); }
ENTRY(roi_maxima_f64)
