// Training targets of single-shot detectors: objects for anchors.
#pragma once
#include "elementwise.h"
#include "reduce.h"

struct MultiBoxTarget {
    void* locations;    // [images][anchors][4]
    void* mask;         // [images][anchors][4]
    void* classes;      // [images][anchors]
    const void* anchors;        // [anchors][4]
    const void* labels;         // [images][labels][width]: class, corners
    const void* predictions;    // [images][classes][anchors]
    // Of each anchor: the object that it overlaps most, at first and of those that are not taken,
    // and what it shows.
    float* overlaps;
    int* objects;
    float* left_overlaps;
    int* left_objects;
    int* shows;
    int* taken;     // [images][labels]
    int* counts;    // [images]: objects
    double* backgrounds;    // [images][anchors], of a search for background
    const u32* positions;   // [images][padded]: those of the backgrounds, the lowest first
    u64* status;
    i64 images;
    Divisor count, extent;    // anchors; the greater of anchors and labels
    i64 most, width, predicted, padded;    // labels, numbers of a label, classes
    float overlap, ignore, negatives, negative_overlap, variances[4];
    int dtype, unused;
};
// What an anchor shows: an object, or one of these.
enum Shown { BACKGROUND = -1, IGNORED = -2 };
enum TargetRefusal { WRONG_LABEL = 1, FEW_BACKGROUNDS };

template <class T> DEVICE T label(const MultiBoxTarget& p, i64 image, i64 object, int k) {
    return load<T>(p.labels, p.dtype, (image * p.most + object) * p.width + k);
}
// Intersection over union; zero where the union is.
template <class T> DEVICE float anchor_overlap(const MultiBoxTarget& p, i64 image, i64 anchor, i64 object) {
    T a[4], b[4];
    UNROLLED
    for (int k = 0; k < 4; k++) {
        a[k] = load<T>(p.anchors, p.dtype, 4 * anchor + k);
        b[k] = label<T>(p, image, object, 1 + k);
    }
    T w = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]);
    T h = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]);
    // Rounded as on the host, so that equal ones are equal.
    T shared = times_rounded(w > 0 ? w : (T)0, h > 0 ? h : (T)0);
    T all = times_rounded(a[2] - a[0], a[3] - a[1]) + times_rounded(b[2] - b[0], b[3] - b[1]) - shared;
    return all == 0 ? 0 : (float)(shared / all);
}
// The object that an anchor overlaps most, the first of equal ones, without `gone` and, if there is
// one, those that are taken.
template <class T>
DEVICE int best_object(const MultiBoxTarget& p, i64 image, i64 anchor, i64 objects, i64 gone, float* best) {
    int found = -1;
    *best = -1;
    ROLLED
    for (i64 object = 0; object < objects; object++) {
        if (object == gone || (gone >= 0 && p.taken[image * p.most + object])) continue;
        float v = anchor_overlap<T>(p, image, anchor, object);
        if (v > *best) *best = v, found = (int)object;
    }
    return found;
}
template <class T> DEVICE void target_overlaps(const MultiBoxTarget& p) {
    ROLLED
    for (i64 i = first(); i < p.images * p.extent; i += stride()) {
        i64 image = i / p.extent, at = i - image * p.extent, objects = 0;
        ROLLED
        while (objects < p.most && label<T>(p, image, objects, 0) != -1) objects++;
        if (at == 0) {
            p.counts[image] = (int)objects;
            for (int k = 1; k < 5 && objects < p.most; k++)
                if (label<T>(p, image, objects, k) != -1) report(p.status, WRONG_LABEL);
        }
        if (at < p.most) p.taken[image * p.most + at] = 0;
        if (at >= p.count) continue;
        float best;
        i64 to = image * p.count + at;
        int object = best_object<T>(p, image, at, objects, -1, &best);
        p.overlaps[to] = p.left_overlaps[to] = best;
        p.objects[to] = p.left_objects[to] = object;
        p.shows[to] = IGNORED;
    }
}
KERNEL void __launch_bounds__(256, 2) target_overlaps_f32(MultiBoxTarget p) { target_overlaps<float>(p); }
ENTRY(target_overlaps_f32)
KERNEL void __launch_bounds__(256, 2) target_overlaps_f64(MultiBoxTarget p) { target_overlaps<double>(p); }
ENTRY(target_overlaps_f64)

// A block for each image gives every object the anchor that it overlaps most, the best pair first.
// Each thread changes its own anchors alone.
template <class T> DEVICE void target_match(const MultiBoxTarget& p) {
    DYNAMIC_SHARED(i64, shared);
    ROLLED
    for (i64 image = blockIdx.x; image < p.images; image += gridDim.x) {
        i64 first_anchor = image * p.count, objects = p.counts[image];
        ROLLED
        for (i64 round = 0; round < objects; round++) {
            // The overlap, and then the first anchor: a greater number for a lower one.
            i64 best = 0;
            ROLLED
            for (i64 i = threadIdx.x; i < p.count; i += ROW_THREADS) {
                float v = p.left_overlaps[first_anchor + i];
                i64 key = (i64)((u64)bits_of(v) << 32) | (0xffffffffll - i);
                if (p.shows[first_anchor + i] == IGNORED && v > 1e-6f && key > best) best = key;
            }
            best = over_block<i64>(MAX, best, shared);
            if (best == 0) break;
            i64 anchor = 0xffffffffll - (best & 0xffffffffll);
            // An anchor that shows an object keeps its number, so that all threads read it.
            int object = p.left_objects[first_anchor + anchor];
            if (threadIdx.x == 0) p.taken[image * p.most + object] = 1;
            ROLLED
            for (i64 i = threadIdx.x; i < p.count; i += ROW_THREADS) {
                i64 at = first_anchor + i;
                if (i == anchor) p.shows[at] = object;
                else if (p.shows[at] == IGNORED && p.left_objects[at] == object)
                    p.left_objects[at] = best_object<T>(p, image, i, objects, object, &p.left_overlaps[at]);
            }
        }
        ROLLED
        for (i64 i = first_anchor + threadIdx.x; i < first_anchor + p.count; i += ROW_THREADS) {
            if (p.shows[i] != IGNORED || objects == 0) continue;
            if (p.overlap > 0 && p.objects[i] >= 0 && p.overlaps[i] > p.overlap) p.shows[i] = p.objects[i];
            else if (!(p.negatives > 0)) p.shows[i] = BACKGROUND;
        }
    }
}
KERNEL void __launch_bounds__(ROW_THREADS, 4) target_match_f32(MultiBoxTarget p) { target_match<float>(p); }
ENTRY_WITH_BARRIERS(target_match_f32)
KERNEL void __launch_bounds__(ROW_THREADS, 4) target_match_f64(MultiBoxTarget p) { target_match<double>(p); }
ENTRY_WITH_BARRIERS(target_match_f64)

DEVICE bool may_be_background(const MultiBoxTarget& p, i64 i) {
    return p.shows[i] == IGNORED && p.overlaps[i] < p.negative_overlap;
}
// The predicted probability of the background; infinity where there may be none.
template <class T> DEVICE void target_predictions(const MultiBoxTarget& p) {
    ROLLED
    for (i64 i = first(); i < p.images * p.count; i += stride()) {
        i64 image = i / p.count, from = image * p.predicted * p.count + i - image * p.count;
        double made = infinity();
        if (may_be_background(p, i)) {
            T background = load<T>(p.predictions, p.dtype, from), most = background, sum = 0;
            ROLLED
            for (i64 c = 1; c < p.predicted; c++) {
                T v = load<T>(p.predictions, p.dtype, from + c * p.count);
                if (v > most) most = v;
            }
            ROLLED
            for (i64 c = 0; c < p.predicted; c++)
                sum += m_exp(load<T>(p.predictions, p.dtype, from + c * p.count) - most);
            T v = m_exp(background - most) / sum;
            // What is no number comes last, but before what may not be background.
            made = v == v ? (double)v : 2.0;
        }
        p.backgrounds[i] = made;
    }
}
KERNEL void __launch_bounds__(256, 2) target_predictions_f32(MultiBoxTarget p) { target_predictions<float>(p); }
ENTRY(target_predictions_f32)
KERNEL void __launch_bounds__(256, 2) target_predictions_f64(MultiBoxTarget p) { target_predictions<double>(p); }
ENTRY(target_predictions_f64)
// A block for each image: the anchors whose background is predicted worst show it.
KERNEL void __launch_bounds__(ROW_THREADS, 4) target_backgrounds(MultiBoxTarget p) {
    DYNAMIC_SHARED(i64, shared);
    ROLLED
    for (i64 image = blockIdx.x; image < p.images; image += gridDim.x) {
        if (p.counts[image] == 0) continue;
        i64 first_anchor = image * p.count, objects = 0, candidates = 0;
        ROLLED
        for (i64 i = first_anchor + threadIdx.x; i < first_anchor + p.count; i += ROW_THREADS)
            objects += p.shows[i] != IGNORED, candidates += may_be_background(p, i);
        objects = over_block<i64>(SUM, objects, shared);
        candidates = over_block<i64>(SUM, candidates, shared);
        i64 others = p.count - objects;
        float asked = (float)objects * p.negatives;
        i64 wanted = !(asked > 0) ? 0 : asked < (float)others ? (i64)asked : others;
        wanted = wanted < others ? wanted : others;
        if (candidates < wanted) {
            report(p.status, FEW_BACKGROUNDS);
            continue;
        }
        const u32* positions = p.positions + image * p.padded;
        ROLLED
        for (i64 i = threadIdx.x; i < wanted; i += ROW_THREADS) p.shows[first_anchor + positions[i]] = BACKGROUND;
    }
}
ENTRY_WITH_BARRIERS(target_backgrounds)

// A box along an axis relative to an anchor: its place and its size.
template <class T> DEVICE void target_store(const MultiBoxTarget& p) {
    ROLLED
    for (i64 i = first(); i < p.images * p.count; i += stride()) {
        i64 image = i / p.count, anchor = i - image * p.count;
        int object = p.shows[i];
        if (object >= 0) store<T>(p.classes, p.dtype, i, label<T>(p, image, object, 0) + 1);
        else store<float>(p.classes, p.dtype, i, object == IGNORED ? p.ignore : 0);
        UNROLLED
        for (int a = 0; a < 2; a++) {
            float place = 0, size = 0;
            if (object >= 0) {
                float start = load<float>(p.anchors, p.dtype, 4 * anchor + a);
                float end = load<float>(p.anchors, p.dtype, 4 * anchor + 2 + a), side = end - start;
                float from = label<float>(p, image, object, 1 + a), to = label<float>(p, image, object, 3 + a);
                place = (times_rounded(from + to, 0.5f) - times_rounded(start + end, 0.5f)) / side / p.variances[a];
                size = m_log((to - from) / side) / p.variances[2 + a];
            }
            store<float>(p.locations, p.dtype, 4 * i + a, place);
            store<float>(p.locations, p.dtype, 4 * i + 2 + a, size);
            store<float>(p.mask, p.dtype, 4 * i + a, object >= 0);
            store<float>(p.mask, p.dtype, 4 * i + 2 + a, object >= 0);
        }
    }
}
KERNEL void __launch_bounds__(256, 2) target_store_f32(MultiBoxTarget p) { target_store<float>(p); }
ENTRY(target_store_f32)
KERNEL void __launch_bounds__(256, 2) target_store_f64(MultiBoxTarget p) { target_store<double>(p); }
ENTRY(target_store_f64)
