// Region proposals: boxes at every pixel of a feature map, of which the best that overlap little
// stay. All numbers are of single precision.
#pragma once
#include "boxes.h"
#include "elementwise.h"

#define PROPOSAL_ANCHORS 32
struct Proposals {
    float* to;          // [images][after][5]: image, left, top, right, bottom
    float* to_scores;   // [images][after], or null
    const float* scores;    // [images][2][anchors][rows][columns]: of background, then of objects
    const float* deltas;    // [images][anchors][4][rows][columns]
    const float* sizes;     // [images][3]: height, width, scale
    float* boxes;           // [images][count][4], in the order rows, columns, anchors
    float* box_scores;      // [images][count]
    const u32* positions;   // [images][padded]: those of the boxes, best score first
    int* stays;             // [images][sorted], in the order of scores
    int* chosen;            // [images][after]: boxes
    int* kept;              // [images]: boxes that are chosen
    u64* status;
    i64 images;
    Divisor count, after, anchors, columns;
    i64 rows, sorted, padded;
    i64 step;    // pixels of an image between those of the feature map
    float base[PROPOSAL_ANCHORS][4];
    float least, overlap;
    int corner_deltas, unused;
};
// Whole pixels of the feature map.
DEVICE i64 whole_pixels(float length) {
    return !(length > 0) ? 0 : length < 4e18f ? (i64)length : 4000000000000000000ll;
}
// One image whose size does not fit is reported: the first.
DEVICE void check_sizes(const Proposals& p) {
    ROLLED
    for (i64 image = 0; image < p.images; image++) {
        const float* size = p.sizes + 3 * image;
        float step = (float)p.step;
        if (whole_pixels(size[0] / step) <= p.rows && whole_pixels(size[1] / step) <= p.columns) continue;
        report(p.status, (u64)bits_of(size[0]) << 32 | bits_of(size[1]));
        return;
    }
}
// Ends of a box along an axis, moved. Halves are taken in double precision.
DEVICE void move_axis(const Proposals& p, float* start, float* end, float shift, float growth) {
    if (p.corner_deltas) {
        *start += shift, *end += growth;
        return;
    }
    float size = *end - *start + 1;
    float center = shift * size + (float)((double)*start + 0.5 * ((double)size - 1.0));
    double half = 0.5 * ((double)(m_exp(growth) * size) - 1.0);
    *start = (float)((double)center - half), *end = (float)((double)center + half);
}
// Within 0 and a limit; what is no number counts as beyond it.
DEVICE float cut_coordinate(float v, float limit) {
    v = v != v || v > limit ? limit : v;
    return v > 0 ? v : 0;
}
KERNEL void __launch_bounds__(256, 2) propose_boxes(Proposals p) {
    if (first() == 0) check_sizes(p);
    ROLLED
    for (i64 i = first(); i < p.images * p.count; i += stride()) {
        i64 image = i / p.count, at = i - image * p.count, pixel = at / p.anchors, row = pixel / p.columns;
        int anchor = (int)(at - pixel * p.anchors);
        i64 column = pixel - row * p.columns, plane = p.rows * p.columns;
        const float* size = p.sizes + 3 * image;
        float step = (float)p.step, least = p.least * size[2];
        float score = p.scores[((2 * image + 1) * p.anchors + anchor) * plane + pixel];
        if (row >= whole_pixels(size[0] / step) || column >= whole_pixels(size[1] / step)) score = -1;
        float box[4];
        bool small = false;
        UNROLLED
        for (int a = 0; a < 2; a++) {
            float origin = (float)((a ? row : column) * p.step), limit = size[1 - a] - 1;
            float start = p.base[anchor][a] + origin, end = p.base[anchor][2 + a] + origin;
            const float* delta = p.deltas + ((image * p.anchors + anchor) * 4 + a) * plane + pixel;
            move_axis(p, &start, &end, delta[0], delta[2 * plane]);
            box[a] = cut_coordinate(start, limit), box[2 + a] = cut_coordinate(end, limit);
            small = small || box[2 + a] - box[a] + 1 < least;
        }
        UNROLLED
        for (int k = 0; k < 4; k++) {
            // Small boxes grow.
            if (small) box[k] += (k < 2 ? -least : least) / 2;
            p.boxes[4 * i + k] = box[k];
        }
        p.box_scores[i] = small ? -1 : score;
        if (at < p.sorted) p.stays[image * p.sorted + at] = 1;
    }
}
ENTRY(propose_boxes)

DEVICE void read_proposal(const Proposals& p, i64 i, float box[5]) {
    UNROLLED
    for (int k = 0; k < 4; k++) box[k] = p.boxes[4 * i + k];
    box[4] = (box[2] - box[0] + 1) * (box[3] - box[1] + 1);
}
// A block for each image.
KERNEL void __launch_bounds__(256, 2) propose_suppress(Proposals p) {
    ROLLED
    for (i64 image = blockIdx.x; image < p.images; image += gridDim.x) {
        const u32* positions = p.positions + image * p.padded;
        int* stays = p.stays + image * p.sorted;
        i64 kept = 0, boxes = image * p.count;
        for (i64 i = 0; i < p.sorted && kept < p.after; i++) {
            // Flags of boxes before this one change no more.
            if (stays[i]) {
                if (threadIdx.x == 0) p.chosen[image * p.after + kept] = (int)positions[i];
                kept++;
                float box[5], other[5];
                read_proposal(p, boxes + positions[i], box);
                for (i64 j = i + 1 + threadIdx.x; j < p.sorted; j += blockDim.x) {
                    if (!stays[j]) continue;
                    read_proposal(p, boxes + positions[j], other);
                    if (overlap<1>(box, other) > p.overlap) stays[j] = 0;
                }
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) p.kept[image] = (int)kept;
    }
}
ENTRY_WITH_BARRIERS(propose_suppress)

// The chosen boxes, again and again where they are few.
KERNEL void __launch_bounds__(256, 2) propose_store(Proposals p) {
    ROLLED
    for (i64 i = first(); i < p.images * p.after; i += stride()) {
        i64 image = i / p.after, rank = (i - image * p.after) % Divisor{p.kept[image]};
        i64 box = image * p.count + p.chosen[image * p.after + rank];
        p.to[5 * i] = (float)image;
        UNROLLED
        for (int k = 0; k < 4; k++) p.to[5 * i + 1 + k] = p.boxes[4 * box + k];
        if (p.to_scores) p.to_scores[i] = p.box_scores[box];
    }
}
ENTRY(propose_store)
