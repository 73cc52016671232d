// Pairs of boxes: how much they overlap, and boxes relative to anchors.
#pragma once
#include "boxes.h"
#include "elementwise.h"

struct BoxOverlaps {
    void* to;        // [boxes of a][boxes of b]
    const void* a;   // [boxes][4]
    const void* b;
    i64 n;
    Divisor count;    // boxes of b
    int center, dtype;
};
// Left, top, right, bottom, area. A box with a negative side has no area.
template <class T> DEVICE void corners_of(const void* boxes, int dtype, i64 i, int center, T box[5]) {
    UNROLLED
    for (int k = 0; k < 4; k++) box[k] = load<T>(boxes, dtype, 4 * i + k);
    T w = center ? box[2] : box[2] - box[0], h = center ? box[3] : box[3] - box[1];
    box[4] = w < 0 || h < 0 ? 0 : w * h;
    if (!center) return;
    T x = box[0], y = box[1];
    box[0] = x - w / 2, box[1] = y - h / 2, box[2] = x + w / 2, box[3] = y + h / 2;
}
template <class T> DEVICE void box_overlaps(const BoxOverlaps& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        T a[5], b[5];
        corners_of<T>(p.a, p.dtype, i / p.count, p.center, a);
        corners_of<T>(p.b, p.dtype, i % p.count, p.center, b);
        T shared = shared_area(a, b);
        store<T>(p.to, p.dtype, i, shared <= 0 ? 0 : shared / (a[4] + b[4] - shared));
    }
}
KERNEL void __launch_bounds__(256, 2) box_overlaps_f32(BoxOverlaps p) { box_overlaps<float>(p); }
ENTRY(box_overlaps_f32)
KERNEL void __launch_bounds__(256, 2) box_overlaps_f64(BoxOverlaps p) { box_overlaps<double>(p); }
ENTRY(box_overlaps_f64)

struct DecodeBoxes {
    void* to;               // [n][4], corners
    const void* from;       // the same, relative to anchors
    const void* anchors;    // [count][4]
    i64 n;
    Divisor count;
    double scale[4], clip;
    int clips, corner, dtype, unused;    // corner: anchors are corners
};
template <class T> DEVICE void decode_boxes(const DecodeBoxes& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 anchor = i % p.count;
        T a[4], v[4];
        UNROLLED
        for (int k = 0; k < 4; k++) {
            a[k] = load<T>(p.anchors, p.dtype, 4 * anchor + k);
            v[k] = load<T>(p.from, p.dtype, 4 * i + k) * (T)p.scale[k];
        }
        if (p.corner) {
            a[2] -= a[0], a[3] -= a[1];
            a[0] += a[2] * (T)0.5, a[1] += a[3] * (T)0.5;
        }
        UNROLLED
        for (int k = 0; k < 2; k++) {
            T center = v[k] * a[2 + k] + a[k], growth = v[2 + k];
            if (p.clips && !(growth < (T)p.clip)) growth = (T)p.clip;
            T half = m_exp(growth) * a[2 + k] * (T)0.5;
            store<T>(p.to, p.dtype, 4 * i + k, center - half);
            store<T>(p.to, p.dtype, 4 * i + 2 + k, center + half);
        }
    }
}
KERNEL void __launch_bounds__(256, 2) decode_boxes_f32(DecodeBoxes p) { decode_boxes<float>(p); }
ENTRY(decode_boxes_f32)
KERNEL void __launch_bounds__(256, 2) decode_boxes_f64(DecodeBoxes p) { decode_boxes<double>(p); }
ENTRY(decode_boxes_f64)

struct EncodeBoxes {
    void* targets;    // [n][4]
    void* masks;      // [n][4]
    const void* samples;       // [n]: anchors with more than 0.5 are encoded
    const void* matches;       // [n]: number of a reference of the image
    const void* anchors;       // [n][4], corners
    const void* references;    // [images][references][4], corners
    const void* means;         // [4]
    const void* deviations;    // [4]
    i64 n;
    Divisor count;    // anchors of an image
    i64 of_image;     // references of an image
    int dtype, unused;
};
// The center and the side of a box along an axis.
template <class T> DEVICE void center_and_side(const void* boxes, int dtype, i64 i, int axis, T* center, T* side) {
    T start = load<T>(boxes, dtype, 4 * i + axis);
    *side = load<T>(boxes, dtype, 4 * i + 2 + axis) - start;
    *center = start + *side * (T)0.5;
}
template <class T> DEVICE void encode_boxes(const EncodeBoxes& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 match = load<i64>(p.matches, p.dtype, i), reference = i / p.count * p.of_image + match;
        bool encoded = load<double>(p.samples, p.dtype, i) > 0.5 && match >= 0 && match < p.of_image;
        UNROLLED
        for (int axis = 0; axis < 2; axis++) {
            T v[2] = {0, 0};
            if (encoded) {
                T center, side, other, size;
                center_and_side(p.anchors, p.dtype, i, axis, &center, &side);
                center_and_side(p.references, p.dtype, reference, axis, &other, &size);
                v[0] = (other - center) / side, v[1] = m_log(size / side);
                UNROLLED
                for (int k = 0; k < 2; k++) {
                    T mean = load<T>(p.means, p.dtype, axis + 2 * k);
                    v[k] = (v[k] - mean) / load<T>(p.deviations, p.dtype, axis + 2 * k);
                }
            }
            UNROLLED
            for (int k = 0; k < 2; k++) {
                store<T>(p.targets, p.dtype, 4 * i + axis + 2 * k, v[k]);
                store<T>(p.masks, p.dtype, 4 * i + axis + 2 * k, (T)encoded);
            }
        }
    }
}
KERNEL void __launch_bounds__(256, 2) encode_boxes_f32(EncodeBoxes p) { encode_boxes<float>(p); }
ENTRY(encode_boxes_f32)
KERNEL void __launch_bounds__(256, 2) encode_boxes_f64(EncodeBoxes p) { encode_boxes<double>(p); }
ENTRY(encode_boxes_f64)
