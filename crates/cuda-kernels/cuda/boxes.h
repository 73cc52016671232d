// Boxes: left, top, right, bottom, area.
#pragma once
#include "types.h"

// The area that two boxes share. EXTRA is 1 where the ends of boxes are pixels that belong to them.
template <int EXTRA = 0, class T> DEVICE T shared_area(const T a[5], const T b[5]) {
    T w = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]);
    T h = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]);
    if (EXTRA) w += EXTRA, h += EXTRA;
    return (w > 0 ? w : 0) * (h > 0 ? h : 0);
}
// Intersection over union.
template <int EXTRA = 0, class T> DEVICE T overlap(const T a[5], const T b[5]) {
    T shared = shared_area<EXTRA>(a, b);
    return shared / (a[4] + b[4] - shared);
}
