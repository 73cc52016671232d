// Regions of interest whose bins read channels of their own, are moved, or are turned.
#pragma once
#include "regions.h"

struct RegionMeans {
    void* to;               // [regions][channels][rows][columns]
    const void* from;       // [images][planes][height][width]
    const void* regions;    // [regions][5]: image, left, top, right, bottom; turned: [regions][6]
    const void* offsets;    // [regions][classes][2][parts][parts]: across, then down; or null
    u64* status;
    i64 n, images, planes;
    Divisor channels;
    i64 classes;
    Divisor per_class;    // channels of a class
    double scale, deviation;
    int size[2], bins[2];
    int groups, parts, samples, dtype;    // samples along an axis of a bin; 0: as many as pixels
};
// An element of the result.
struct RegionBin {
    i64 region, channel, image;    // the image is -1 if it does not exist
    int place[2];
};
// `negative`: whether a negative image is an error.
DEVICE RegionBin region_bin(const RegionMeans& p, i64 i, int numbers, bool negative) {
    i64 plane = i / Divisor{p.bins[0] * p.bins[1]};
    int bin = (int)(i - plane * (p.bins[0] * p.bins[1]));
    RegionBin made;
    made.region = plane / p.channels, made.channel = plane - made.region * p.channels;
    made.place[0] = bin / p.bins[1], made.place[1] = bin % p.bins[1];
    made.image = load<i64>(p.regions, p.dtype, numbers * made.region);
    bool exists = made.image >= 0 && made.image < p.images;
    if (!exists && (negative || made.image >= 0)) report_index(p.status, made.image);
    if (!exists) made.image = -1;
    return made;
}
// The plane that a bin reads: planes are [channel][group of rows][group of columns].
DEVICE i64 plane_of_group(const RegionMeans& p, const RegionBin& bin) {
    i64 plane = bin.channel;
    UNROLLED
    for (int a = 0; a < 2; a++) {
        i64 group = (i64)bin.place[a] * p.groups / Divisor{p.bins[a]};
        plane = plane * p.groups + (group < p.groups ? group : p.groups - 1);
    }
    return (bin.image * p.planes + plane) * p.size[0] * p.size[1];
}
// Coordinate `k` of a region, as a whole number.
template <class T> DEVICE T whole_coordinate(const RegionMeans& p, i64 region, int k, int more) {
    return times_rounded((T)(m_round(load<double>(p.regions, p.dtype, 5 * region + k)) + more), (T)p.scale);
}

DEVICE i64 pixel_within(double v, int size) { return !(v > 0) ? 0 : v < size ? (i64)v : size; }
// Means of the pixels of bins.
template <class T> DEVICE void region_groups(const RegionMeans& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        RegionBin bin = region_bin(p, i, 5, true);
        T sum = 0;
        if (bin.image >= 0) {
            i64 low[2], high[2];
            UNROLLED
            for (int a = 0; a < 2; a++) {
                T start = whole_coordinate<T>(p, bin.region, 2 - a, 0);
                T length = whole_coordinate<T>(p, bin.region, 4 - a, 1) - start;
                T each = (length > (T)0.1 ? length : (T)0.1) / (T)p.bins[a];
                low[a] = pixel_within(m_floor((double)((T)bin.place[a] * each) + (double)start), p.size[a]);
                high[a] = pixel_within(m_ceil((double)((T)(bin.place[a] + 1) * each) + (double)start), p.size[a]);
            }
            i64 plane = plane_of_group(p, bin);
            ROLLED
            for (i64 y = low[0]; y < high[0]; y++)
                ROLLED
                for (i64 x = low[1]; x < high[1]; x++) sum += load<T>(p.from, p.dtype, plane + y * p.size[1] + x);
            // An empty bin is zero.
            if (high[0] > low[0] && high[1] > low[1]) sum /= (T)((high[0] - low[0]) * (high[1] - low[1]));
        }
        store<T>(p.to, p.dtype, i, sum);
    }
}
KERNEL void __launch_bounds__(256, 2) region_groups_f32(RegionMeans p) { region_groups<float>(p); }
ENTRY(region_groups_f32)
KERNEL void __launch_bounds__(256, 2) region_groups_f64(RegionMeans p) { region_groups<double>(p); }
ENTRY(region_groups_f64)

// A pixel, the next one, and the share of that: a position beyond an edge is moved to it.
template <class T> struct NextPixels {
    int low, high;
    T share;
};
template <class T> DEVICE NextPixels<T> next_pixels(T at, int size) {
    T last = (T)(size - 1);
    at = at < 0 ? 0 : at;
    at = at > last ? last : at;
    int low = (int)at;
    return NextPixels<T>{low, low + 1 < size ? low + 1 : size - 1, at - (T)low};
}
// Means of samples in bins that offsets move; those outside of the image do not count.
template <class T> DEVICE void region_moved(const RegionMeans& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        RegionBin bin = region_bin(p, i, 5, false);
        if (bin.image < 0) {
            store<T>(p.to, p.dtype, i, 0);
            continue;
        }
        i64 kind = bin.channel / p.per_class, part = 0;
        kind = kind < p.classes ? kind : p.classes - 1;
        UNROLLED
        for (int a = 0; a < 2; a++) part = part * p.parts + (i64)bin.place[a] * p.parts / Divisor{p.bins[a]};
        T begin[2], step[2];
        UNROLLED
        for (int a = 0; a < 2; a++) {
            T start = whole_coordinate<T>(p, bin.region, 2 - a, 0) - (T)0.5;
            T length = whole_coordinate<T>(p, bin.region, 4 - a, 1) - (T)0.5 - start;
            length = length < (T)0.1 ? (T)0.1 : length;
            T each = length / (T)p.bins[a], moved = 0;
            if (p.offsets) {
                i64 at = ((bin.region * p.classes + kind) * 2 + 1 - a) * p.parts * p.parts + part;
                moved = load<T>(p.offsets, p.dtype, at) * (T)p.deviation;
            }
            step[a] = each / (T)p.samples;
            begin[a] = (T)bin.place[a] * each + start + moved * length;
        }
        i64 plane = plane_of_group(p, bin);
        T sum = 0;
        int count = 0;
        ROLLED
        for (int iy = 0; iy < p.samples; iy++) {
            T y = begin[0] + (T)iy * step[0];
            if (!(y >= (T)-0.5 && y <= (T)p.size[0] - (T)0.5)) continue;
            NextPixels<T> v = next_pixels(y, p.size[0]);
            i64 above = plane + (i64)v.low * p.size[1], below = plane + (i64)v.high * p.size[1];
            ROLLED
            for (int ix = 0; ix < p.samples; ix++) {
                T x = begin[1] + (T)ix * step[1];
                if (!(x >= (T)-0.5 && x <= (T)p.size[1] - (T)0.5)) continue;
                NextPixels<T> h = next_pixels(x, p.size[1]);
                sum += (1 - h.share) * (1 - v.share) * load<T>(p.from, p.dtype, above + h.low) +
                       (1 - h.share) * v.share * load<T>(p.from, p.dtype, below + h.low) +
                       h.share * (1 - v.share) * load<T>(p.from, p.dtype, above + h.high) +
                       h.share * v.share * load<T>(p.from, p.dtype, below + h.high);
                count++;
            }
        }
        store<T>(p.to, p.dtype, i, count ? sum / (T)count : sum);
    }
}
KERNEL void __launch_bounds__(256, 2) region_moved_f32(RegionMeans p) { region_moved<float>(p); }
ENTRY(region_moved_f32)
KERNEL void __launch_bounds__(256, 2) region_moved_f64(RegionMeans p) { region_moved<double>(p); }
ENTRY(region_moved_f64)

// A position along an axis of a turned region, from its center.
template <class T> DEVICE T along_region(T start, T each, int place, int i, int samples) {
    return start + (T)place * each + (T)((float)i + 0.5f) * each / (T)samples;
}
// Means of samples in bins of regions that are turned around their centers.
template <class T> DEVICE void region_turned(const RegionMeans& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        RegionBin bin = region_bin(p, i, 6, false);
        T sum = 0, count = 1;
        if (bin.image >= 0) {
            double angle = load<double>(p.regions, p.dtype, 6 * bin.region + 5) * 3.14159265358979323846 / 180.0;
            angle = (double)(T)angle;
            T center[2], start[2], each[2];
            int samples[2];
            bool is_somewhere = angle - angle == 0, fits = true;
            UNROLLED
            for (int a = 0; a < 2; a++) {
                center[a] = load<T>(p.regions, p.dtype, 6 * bin.region + 2 - a) * (T)p.scale;
                T length = load<T>(p.regions, p.dtype, 6 * bin.region + 4 - a) * (T)p.scale;
                is_somewhere = is_somewhere && center[a] - center[a] == 0 && length - length == 0;
                length = length < 1 ? 1 : length;
                start[a] = -length / 2;
                each[a] = length / (T)p.bins[a];
                bool few = p.samples || each[a] <= 4096;
                fits = fits && few;
                int whole = few ? (int)each[a] : 0;
                samples[a] = p.samples ? p.samples : whole + ((T)whole < each[a]);
            }
            // Without a place it is no number.
            count = is_somewhere && fits ? (T)(samples[0] * samples[1]) : 0;
            if (is_somewhere && !fits) report(p.status, 1 + 2 * (u64)bin.region + LONG_BINS);
            T cosine = (T)m_cos(angle), sine = (T)m_sin(angle);
            i64 plane = (bin.image * p.planes + bin.channel) * p.size[0] * p.size[1];
            if (count > 0) {
                ROLLED
                for (int iy = 0; iy < samples[0]; iy++) {
                    T down = along_region(start[0], each[0], bin.place[0], iy, samples[0]);
                    ROLLED
                    for (int ix = 0; ix < samples[1]; ix++) {
                        T across = along_region(start[1], each[1], bin.place[1], ix, samples[1]);
                        T y = down * cosine - across * sine + center[0], x = across * cosine + down * sine + center[1];
                        if (!(y >= -1 && y <= (T)p.size[0] && x >= -1 && x <= (T)p.size[1])) continue;
                        NextPixels<T> v = next_pixels(y, p.size[0]), h = next_pixels(x, p.size[1]);
                        i64 above = plane + (i64)v.low * p.size[1], below = plane + (i64)v.high * p.size[1];
                        sum += (1 - v.share) * (1 - h.share) * load<T>(p.from, p.dtype, above + h.low) +
                               (1 - v.share) * h.share * load<T>(p.from, p.dtype, above + h.high) +
                               v.share * (1 - h.share) * load<T>(p.from, p.dtype, below + h.low) +
                               v.share * h.share * load<T>(p.from, p.dtype, below + h.high);
                    }
                }
            }
        }
        store<T>(p.to, p.dtype, i, sum / count);
    }
}
KERNEL void __launch_bounds__(256, 2) region_turned_f32(RegionMeans p) { region_turned<float>(p); }
ENTRY(region_turned_f32)
KERNEL void __launch_bounds__(256, 2) region_turned_f64(RegionMeans p) { region_turned<double>(p); }
ENTRY(region_turned_f64)
