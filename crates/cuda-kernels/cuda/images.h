// Images of pixels, [height][width][channel], and planes made from them.
#pragma once
#include "elementwise.h"

struct ImagePlanes {
    float* to;           // [image][channel][pixel], from 0 to 1
    const void* from;    // [image][pixel][channel], from 0 to 255
    i64 n;
    Divisor pixels, channels;
    int dtype, unused;
};
KERNEL void __launch_bounds__(256, 2) image_planes(ImagePlanes p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 plane = i / p.pixels, image = plane / p.channels, pixel = i - plane * p.pixels;
        i64 from = (image * p.pixels + pixel) * p.channels + plane - image * p.channels;
        p.to[i] = (float)load<double>(p.from, p.dtype, from) / 255.0f;
    }
}
ENTRY(image_planes)

struct NormalizePlanes {
    void* to;            // [image][channel][pixel]
    const void* from;    // the same
    i64 n;
    Divisor pixels;
    double means[3], deviations[3];
    int channels, dtype;    // up to three channels
};
template <class T> DEVICE void normalize_planes(const NormalizePlanes& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        int channel = (int)(i / p.pixels % Divisor{p.channels});
        T v = load<T>(p.from, p.dtype, i) - (T)p.means[channel];
        store<T>(p.to, p.dtype, i, v / (T)p.deviations[channel]);
    }
}
KERNEL void __launch_bounds__(256, 2) normalize_planes_f32(NormalizePlanes p) { normalize_planes<float>(p); }
ENTRY(normalize_planes_f32)
KERNEL void __launch_bounds__(256, 2) normalize_planes_f64(NormalizePlanes p) { normalize_planes<double>(p); }
ENTRY(normalize_planes_f64)

struct BorderedImage {
    void* to;            // [rows][columns][channel]
    const void* from;    // [height][width][channel]
    i64 n;
    Divisor channels;
    double colour[4];    // of a constant border
    int size[2], before[2], columns, kind;
    int dtype, bytes;
};
enum Border { CONSTANT, REPLICATE, REFLECT, REPEAT, REFLECT_101 };
// The pixel that a position of an axis shows, or -1 for the colour.
DEVICE i64 border_source(int kind, i64 at, i64 size) {
    if (size == 0 || (at >= 0 && at < size)) return size ? at : -1;
    if (kind == CONSTANT) return -1;
    if (kind == REPLICATE) return at < 0 ? 0 : size - 1;
    if (kind == REFLECT_101 && size == 1) return 0;
    i64 period = kind == REPEAT ? size : kind == REFLECT ? 2 * size : 2 * size - 2;
    at = at < 0 ? period - 1 - ~at % Divisor{period} : at % Divisor{period};
    i64 mirrored = kind == REFLECT ? period - 1 - at : period - at;
    return kind == REPEAT || at < mirrored ? at : mirrored;
}
KERNEL void __launch_bounds__(256, 2) bordered_image(BorderedImage p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 pixel = i / p.channels, channel = i - pixel * p.channels, row = pixel / Divisor{p.columns};
        i64 y = border_source(p.kind, row - p.before[0], p.size[0]);
        i64 x = border_source(p.kind, pixel - row * p.columns - p.before[1], p.size[1]);
        if (y >= 0 && x >= 0) copy_element(p.to, i, p.from, (y * p.size[1] + x) * p.channels + channel, p.bytes);
        else store_converted(p.to, p.dtype, i, p.colour[channel]);
    }
}
ENTRY(bordered_image)

enum PixelTaps { PIXELS_NEAREST, PIXELS_LINEAR, PIXELS_CUBIC, PIXELS_AREA, PIXELS_GROW };
struct ResizedImages {
    void* to;            // [image][rows][columns][channel]
    const void* from;    // [image][height][width][channel]
    i64 n;
    Divisor channels;
    int size[2], out[2], kind, halves, dtype, bytes;    // halves: whether both axes become half as long
};
// The pixels of an axis that a pixel is made of, neighbours all; those outside are the outermost.
struct Taps {
    i64 source;
    int count, fronts, backs;    // of an area: pixels of which the beginning or the end does not count
    float share[4];
};
DEVICE Taps linear_taps(double scale, int i) {
    float at = (float)((i + 0.5) * scale - 0.5), before = m_floor(at), part = at - before;
    return Taps{(i64)before, 2, 0, 0, {1 - part, part, 0, 0}};
}
DEVICE Taps taps_of(const ResizedImages& p, int axis, int i) {
    double from = p.size[axis], inverse = (double)p.out[axis] / from, scale = 1.0 / inverse;
    if (p.kind == PIXELS_NEAREST) return Taps{(i64)m_floor(i * scale), 1, 0, 0, {1, 0, 0, 0}};
    if (p.kind == PIXELS_GROW) {
        i64 before = (i64)m_floor(i * scale);
        float part = (float)((double)(i + 1) - (double)(before + 1) * inverse);
        part = part <= 0 || before >= p.size[axis] - 1 ? 0 : part - m_floor(part);
        return Taps{before, 2, 0, 0, {1 - part, part, 0, 0}};
    }
    if (p.kind == PIXELS_AREA) {
        double begin = i * scale, end = begin + scale, cell = scale < from - begin ? scale : from - begin;
        i64 last = (i64)m_floor(end), start = (i64)m_ceil(begin);
        last = last < p.size[axis] - 1 ? last : p.size[axis] - 1;
        start = start < last ? start : last;
        double front = (double)start - begin, back = end - (double)last;
        int fronts = front > 1e-3, backs = back > 1e-3;
        back = back < 1 ? back : 1;
        back = back < cell ? back : cell;
        return Taps{start - fronts, (int)(last - start) + fronts + backs, fronts, backs,
                    {(float)(front / cell), (float)(1.0 / cell), (float)(back / cell), 0}};
    }
    Taps taps = linear_taps(scale, i);
    if (p.kind == PIXELS_LINEAR) return taps;
    const float A = -0.75f;
    float x = taps.share[1], rest = 1;
    taps.source--, taps.count = 4;
    taps.share[0] = ((A * (x + 1) - 5 * A) * (x + 1) + 8 * A) * (x + 1) - 4 * A;
    taps.share[1] = ((A + 2) * x - (A + 3)) * x * x + 1;
    x = 1 - x;
    taps.share[2] = ((A + 2) * x - (A + 3)) * x * x + 1;
    UNROLLED
    for (int k = 0; k < 3; k++) rest -= taps.share[k];
    taps.share[3] = rest;
    return taps;
}
DEVICE float share_of(const ResizedImages& p, const Taps& taps, int k) {
    if (p.kind == PIXELS_AREA) k = k < taps.fronts ? 0 : k < taps.count - taps.backs ? 1 : 2;
    return k == 0 ? taps.share[0] : k == 1 ? taps.share[1] : k == 2 ? taps.share[2] : taps.share[3];
}
DEVICE i64 source_of(const ResizedImages& p, const Taps& taps, int axis, int k) {
    i64 source = taps.source + k;
    return source < 0 ? 0 : source < p.size[axis] ? source : p.size[axis] - 1;
}
// Where an element of the result is: the first element of its image and channel, and its pixel.
DEVICE i64 resized_at(const ResizedImages& p, i64 i, int pixel[2]) {
    i64 at = i / p.channels, channel = i - at * p.channels;
    i64 line = at / Divisor{p.out[1]}, image = line / Divisor{p.out[0]};
    pixel[0] = (int)(line - image * p.out[0]), pixel[1] = (int)(at - line * p.out[1]);
    return image * p.size[0] * p.size[1] * p.channels + channel;
}
KERNEL void __launch_bounds__(256, 2) resize_nearest(ResizedImages p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        int pixel[2];
        i64 base = resized_at(p, i, pixel);
        i64 y = source_of(p, taps_of(p, 0, pixel[0]), 0, 0), x = source_of(p, taps_of(p, 1, pixel[1]), 1, 0);
        copy_element(p.to, i, p.from, base + (y * p.size[1] + x) * p.channels, p.bytes);
    }
}
ENTRY(resize_nearest)
// Sums of pixels times shares, in single precision.
KERNEL void __launch_bounds__(256, 2) resize_blended(ResizedImages p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        int pixel[2];
        i64 base = resized_at(p, i, pixel);
        Taps down = taps_of(p, 0, pixel[0]), across = taps_of(p, 1, pixel[1]);
        float sum = 0;
        ROLLED
        for (int ky = 0; ky < down.count; ky++) {
            i64 line = base + source_of(p, down, 0, ky) * p.size[1] * p.channels;
            float of_line = 0;
            ROLLED
            for (int kx = 0; kx < across.count; kx++)
                of_line += times_rounded(share_of(p, across, kx),
                                 load<float>(p.from, p.dtype, line + source_of(p, across, 1, kx) * p.channels));
            sum += times_rounded(share_of(p, down, ky), of_line);
        }
        if (p.dtype == U8) {
            // The mean of four bytes is rounded up from a half.
            sum = p.halves ? m_floor(sum + 0.5f) : rintf(sum);
            sum = sum > 0 ? sum < 255 ? sum : 255 : 0;
        }
        store<float>(p.to, p.dtype, i, sum);
    }
}
ENTRY(resize_blended)
// Linear interpolation of bytes, with shares of 11 bits.
DEVICE int fixed_share(float share) { return (int)rintf(share * 2048); }
KERNEL void __launch_bounds__(256, 2) resize_bytes(ResizedImages p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        int pixel[2], sum = 2;
        i64 base = resized_at(p, i, pixel);
        Taps down = taps_of(p, 0, pixel[0]), across = taps_of(p, 1, pixel[1]);
        i64 left = source_of(p, across, 1, 0), right = source_of(p, across, 1, 1);
        // At both ends of a row, though not of a column, there is one pixel only.
        int of_left = left == right ? 2048 : fixed_share(across.share[0]);
        int of_right = left == right ? 0 : fixed_share(across.share[1]);
        UNROLLED
        for (int k = 0; k < 2; k++) {
            i64 first_of_line = base + source_of(p, down, 0, k) * p.size[1] * p.channels;
            const unsigned char* line = (const unsigned char*)p.from + first_of_line;
            int of_line = line[left * p.channels] * of_left + line[right * p.channels] * of_right;
            sum += (fixed_share(down.share[k]) * (of_line >> 4)) >> 16;
        }
        ((unsigned char*)p.to)[i] = (unsigned char)(sum >> 2);
    }
}
ENTRY(resize_bytes)
