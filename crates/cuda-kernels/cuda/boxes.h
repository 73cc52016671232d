// Boxes: left, top, right, bottom, area.
#pragma once
#include "types.h"

// Intersection over union.
template <class T> DEVICE T overlap(const T a[5], const T b[5]) {
    T w = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]);
    T h = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]);
    T shared = (w > 0 ? w : 0) * (h > 0 ? h : 0);
    return shared / (a[4] + b[4] - shared);
}
