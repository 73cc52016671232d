// Non-maximum suppression of boxes in rows of numbers.
#pragma once
#include "boxes.h"
#include "elementwise.h"

struct Nms {
    void* to;             // [groups][count][width]; what is not kept is -1
    const void* from;     // the same
    int* order;           // [groups][count]: rows that take part, the best first, then -1
    int* stays;           // like order
    i64 groups;
    Divisor count;
    i64 width, limit;
    int coordinates, score, classes;    // where they are in a row; no classes: -1
    int across_classes, center, to_center, dtype, unused;
    double overlap, valid, background;
};
template <class T> DEVICE T number(const Nms& p, i64 row, int at) { return load<T>(p.from, p.dtype, row * p.width + at); }
template <class T> DEVICE bool takes_part(const Nms& p, i64 row) {
    return number<T>(p, row, p.score) > (T)p.valid &&
           (p.classes < 0 || number<T>(p, row, p.classes) != (T)p.background);
}
KERNEL void __launch_bounds__(256, 2) nms_clear(Nms p) {
    ROLLED
    for (i64 i = first(); i < p.groups * p.count; i += stride()) {
        p.order[i] = -1;
        p.stays[i] = 0;
        ROLLED
        for (i64 k = 0; k < p.width; k++) store<double>(p.to, p.dtype, i * p.width + k, -1);
    }
}
ENTRY(nms_clear)
template <class T> DEVICE void nms_order(const Nms& p) {
    ROLLED
    for (i64 i = first(); i < p.groups * p.count; i += stride()) {
        if (!takes_part<T>(p, i)) continue;
        i64 begin = i / p.count * p.count, better = 0;
        T score = number<T>(p, i, p.score);
        ROLLED
        for (i64 j = begin; j < begin + p.count; j++) {
            T other = number<T>(p, j, p.score);
            better += takes_part<T>(p, j) && (other > score || (other == score && j < i));
        }
        if (better >= p.limit) continue;
        p.order[begin + better] = (int)(i - begin);
        p.stays[begin + better] = 1;
    }
}
KERNEL void __launch_bounds__(256, 2) nms_order_f32(Nms p) { nms_order<float>(p); }
ENTRY(nms_order_f32)
KERNEL void __launch_bounds__(256, 2) nms_order_f64(Nms p) { nms_order<double>(p); }
ENTRY(nms_order_f64)

// Left, top, right, bottom, area.
template <class T> DEVICE void read_box(const Nms& p, i64 row, T box[5]) {
    UNROLLED
    for (int k = 0; k < 4; k++) box[k] = number<T>(p, row, p.coordinates + k);
    T w = p.center ? box[2] : box[2] - box[0], h = p.center ? box[3] : box[3] - box[1];
    box[4] = w < 0 || h < 0 ? 0 : w * h;
    if (!p.center) return;
    T x = box[0], y = box[1];
    box[0] = x - w / 2, box[1] = y - h / 2, box[2] = x + w / 2, box[3] = y + h / 2;
}
template <class T> DEVICE bool overlaps(const Nms& p, const T a[5], i64 row) {
    T b[5];
    read_box<T>(p, row, b);
    return overlap(a, b) > (T)p.overlap;
}
template <class T> DEVICE T class_of(const Nms& p, i64 row) {
    return p.classes < 0 || p.across_classes ? (T)0 : m_trunc(number<T>(p, row, p.classes));
}
// A block for each group.
template <class T> DEVICE void nms_suppress(const Nms& p) {
    ROLLED
    for (i64 group = blockIdx.x; group < p.groups; group += gridDim.x) {
        i64 begin = group * p.count, end = begin + p.count;
        for (i64 i = begin; i < end && p.order[i] >= 0; i++) {
            // Flags of rows before this one change no more.
            if (p.stays[i]) {
                i64 row = begin + p.order[i];
                T box[5], kind = class_of<T>(p, row);
                read_box<T>(p, row, box);
                for (i64 j = i + 1 + threadIdx.x; j < end && p.order[j] >= 0; j += blockDim.x) {
                    i64 other = begin + p.order[j];
                    if (p.stays[j] && kind == class_of<T>(p, other) && overlaps<T>(p, box, other)) p.stays[j] = 0;
                }
            }
            __syncthreads();
        }
    }
}
KERNEL void __launch_bounds__(256, 2) nms_suppress_f32(Nms p) { nms_suppress<float>(p); }
ENTRY_WITH_BARRIERS(nms_suppress_f32)
KERNEL void __launch_bounds__(256, 2) nms_suppress_f64(Nms p) { nms_suppress<double>(p); }
ENTRY_WITH_BARRIERS(nms_suppress_f64)

template <class T> DEVICE void nms_store(const Nms& p) {
    ROLLED
    for (i64 i = first(); i < p.groups * p.count; i += stride()) {
        if (!p.stays[i]) continue;
        i64 begin = i / p.count * p.count, to = begin, from = begin + p.order[i];
        ROLLED
        for (i64 j = begin; j < i; j++) to += p.stays[j];
        T b[4];
        UNROLLED
        for (int k = 0; k < 4; k++) b[k] = number<T>(p, from, p.coordinates + k);
        // Boxes whose first number is negative stay as they are.
        if (p.center != p.to_center && !(b[0] < 0)) {
            T x = b[0], y = b[1], z = b[2], w = b[3];
            if (p.to_center) b[0] = (x + z) / 2, b[1] = (y + w) / 2, b[2] = z - x, b[3] = w - y;
            else b[0] = x - z / 2, b[1] = y - w / 2, b[2] = x + z / 2, b[3] = y + w / 2;
        }
        ROLLED
        for (i64 k = 0; k < p.width; k++) {
            i64 within = k - p.coordinates;
            T v = number<T>(p, from, (int)k);
            UNROLLED
            for (int c = 0; c < 4; c++)
                if (within == c) v = b[c];
            store<T>(p.to, p.dtype, to * p.width + k, v);
        }
    }
}
KERNEL void __launch_bounds__(256, 2) nms_store_f32(Nms p) { nms_store<float>(p); }
ENTRY(nms_store_f32)
KERNEL void __launch_bounds__(256, 2) nms_store_f64(Nms p) { nms_store<double>(p); }
ENTRY(nms_store_f64)
