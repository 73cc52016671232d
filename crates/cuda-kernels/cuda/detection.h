// Anchors and detections of single-shot detectors.
#pragma once
#include "boxes.h"
#include "elementwise.h"

#define ANCHORS 32
struct Anchors {
    void* to;    // [row][column][anchor][4]
    i64 n;       // anchors of all pixels
    int columns, per_pixel;
    float steps[2], offsets[2], half_sides[ANCHORS][2];
    int clip, dtype;
};
KERNEL void __launch_bounds__(256, 2) anchors(Anchors p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        Divisor anchors{p.per_pixel}, columns{p.columns};
        int anchor = (int)(i % anchors), column = (int)(i / anchors % columns);
        float y = ((float)(i / anchors / columns) + p.offsets[0]) * p.steps[0];
        float x = ((float)column + p.offsets[1]) * p.steps[1];
        float w = p.half_sides[anchor][0], h = p.half_sides[anchor][1];
        float corners[4] = {x - w, y - h, x + w, y + h};
        UNROLLED
        for (int k = 0; k < 4; k++) {
            float v = corners[k];
            if (p.clip) v = v < 0 ? 0 : v > 1 ? 1 : v;
            store<float>(p.to, p.dtype, 4 * i + k, v);
        }
    }
}
ENTRY(anchors)

struct Detections {
    void* to;      // [batch][count][6]: class, score, corners
    void* rows;    // the same in the order of the anchors; class -1 for those that show nothing
    int* stays;    // [batch][count]
    const void* probabilities;    // [batch][classes][count]
    const void* locations;        // [batch][count][4]
    const void* anchors;          // [count][4]
    i64 batch;
    Divisor count;
    i64 classes, limit;
    double threshold, overlap;
    float variances[4];
    int clip, sorts, across_classes, dtype;
};
// What each anchor shows.
template <class T> DEVICE void detect(const Detections& p) {
    ROLLED
    for (i64 i = first(); i < p.batch * p.count; i += stride()) {
        i64 image = i / p.count, anchor = i % p.count;
        T score = -1;
        i64 best = 0;
        ROLLED
        for (i64 c = 1; c < p.classes; c++) {
            T v = load<T>(p.probabilities, p.dtype, (image * p.classes + c) * p.count + anchor);
            if (v > score) score = v, best = c;
        }
        bool shows = best > 0 && !(score < (T)p.threshold);
        T corner[4], moved[4];
        UNROLLED
        for (int k = 0; k < 4; k++) {
            corner[k] = load<T>(p.anchors, p.dtype, 4 * anchor + k);
            moved[k] = load<T>(p.locations, p.dtype, 4 * i + k) * (T)p.variances[k];
        }
        T aw = corner[2] - corner[0], ah = corner[3] - corner[1];
        T cx = moved[0] * aw + (corner[0] + corner[2]) / 2, cy = moved[1] * ah + (corner[1] + corner[3]) / 2;
        T w = m_exp(moved[2]) * aw / 2, h = m_exp(moved[3]) * ah / 2;
        T box[4] = {cx - w, cy - h, cx + w, cy + h};
        store<T>(p.rows, p.dtype, 6 * i, shows ? (T)(best - 1) : (T)-1);
        store<T>(p.rows, p.dtype, 6 * i + 1, score);
        UNROLLED
        for (int k = 0; k < 4; k++) {
            T v = box[k];
            if (p.clip) v = v < 0 ? 0 : v > 1 ? 1 : v;
            store<T>(p.rows, p.dtype, 6 * i + 2 + k, v);
        }
        for (int k = 0; k < 6; k++) store<T>(p.to, p.dtype, 6 * i + k, -1);
        p.stays[i] = 0;
    }
}
KERNEL void __launch_bounds__(256, 2) detect_f32(Detections p) { detect<float>(p); }
ENTRY(detect_f32)
KERNEL void __launch_bounds__(256, 2) detect_f64(Detections p) { detect<double>(p); }
ENTRY(detect_f64)

// Each row to its place: among all that show something, and in the order of scores.
template <class T> DEVICE void detect_places(const Detections& p) {
    ROLLED
    for (i64 i = first(); i < p.batch * p.count; i += stride()) {
        i64 image = i / p.count * p.count;
        if (load<T>(p.rows, p.dtype, 6 * i) < 0) continue;
        T score = load<T>(p.rows, p.dtype, 6 * i + 1);
        i64 before = 0, better = 0;
        ROLLED
        for (i64 j = image; j < image + p.count; j++) {
            if (load<T>(p.rows, p.dtype, 6 * j) < 0) continue;
            T other = load<T>(p.rows, p.dtype, 6 * j + 1);
            before += j < i;
            better += other > score || (other == score && j < i);
        }
        if (!p.sorts) better = before;
        // What is beyond the limit keeps its place among all.
        bool kept = better < p.limit, marked = p.sorts && before >= p.limit;
        for (int k = 0; k < 6; k++) {
            T v = load<T>(p.rows, p.dtype, 6 * i + k);
            if (kept) store<T>(p.to, p.dtype, 6 * (image + better) + k, v);
            if (marked) store<T>(p.to, p.dtype, 6 * (image + before) + k, k ? v : (T)-1);
        }
        if (kept) p.stays[image + better] = 1;
    }
}
KERNEL void __launch_bounds__(256, 2) detect_places_f32(Detections p) { detect_places<float>(p); }
ENTRY(detect_places_f32)
KERNEL void __launch_bounds__(256, 2) detect_places_f64(Detections p) { detect_places<double>(p); }
ENTRY(detect_places_f64)

// A block for each image: what overlaps with a better box of its class goes.
template <class T> DEVICE void read_detection(const Detections& p, i64 row, T box[5]) {
    UNROLLED
    for (int k = 0; k < 4; k++) box[k] = load<T>(p.to, p.dtype, 6 * row + 2 + k);
    box[4] = (box[2] - box[0]) * (box[3] - box[1]);
}
template <class T> DEVICE bool suppressed(const Detections& p, i64 better, i64 row) {
    T a[5], b[5];
    read_detection<T>(p, better, a);
    read_detection<T>(p, row, b);
    bool compared = p.across_classes || load<T>(p.to, p.dtype, 6 * better) == load<T>(p.to, p.dtype, 6 * row);
    return compared && overlap(a, b) >= (T)p.overlap;
}
template <class T> DEVICE void detect_suppress(const Detections& p) {
    ROLLED
    for (i64 image = blockIdx.x; image < p.batch; image += gridDim.x) {
        i64 begin = image * p.count, end = begin + (p.limit < p.count ? p.limit : p.count);
        for (i64 i = begin; i < end; i++) {
            // Flags of rows before this one change no more.
            if (p.stays[i])
                for (i64 j = i + 1 + threadIdx.x; j < end; j += blockDim.x)
                    if (p.stays[j] && suppressed<T>(p, i, j)) p.stays[j] = 0;
            __syncthreads();
        }
        for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x)
            if (!p.stays[i]) store<T>(p.to, p.dtype, 6 * i, -1);
    }
}
KERNEL void __launch_bounds__(256, 2) detect_suppress_f32(Detections p) { detect_suppress<float>(p); }
ENTRY_WITH_BARRIERS(detect_suppress_f32)
KERNEL void __launch_bounds__(256, 2) detect_suppress_f64(Detections p) { detect_suppress<double>(p); }
ENTRY_WITH_BARRIERS(detect_suppress_f64)
