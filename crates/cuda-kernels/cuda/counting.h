// Answers about whole arrays, and counts.
#pragma once
#include "types.h"

// Makes the answer zero where an element is no finite number of single precision.
struct AllFinite {
    float* to;
    const void* from;
    i64 n;
    int dtype, unused;
};
KERNEL void __launch_bounds__(256, 2) all_finite(AllFinite p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        float v = (float)load<double>(p.from, p.dtype, i);
        if (!(v - v == 0)) *p.to = 0;
    }
}
ENTRY(all_finite)

// Makes the answer zero where two elements differ.
struct AllClose {
    void* to;
    const void* a;
    const void* b;
    i64 n;
    double relative, absolute;
    int dtype, equal_nan;
};
KERNEL void __launch_bounds__(256, 2) all_close(AllClose p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        double a = load<double>(p.a, p.dtype, i), b = load<double>(p.b, p.dtype, i);
        double apart = a < b ? b - a : a - b, size = b < 0 ? -b : b;
        bool close = a != a || b != b ? p.equal_nan && a != a && b != b
                                      : a == b || apart <= p.absolute + p.relative * size;
        if (!close) *(unsigned char*)p.to = 0;
    }
}
ENTRY(all_close)

struct Histogram {
    i64* counts;
    void* edges;
    const void* from;
    const void* bins;    // edges that are given; else they are even
    i64 n;
    double low, high;
    int count, dtype;    // bins
};
KERNEL void __launch_bounds__(256, 2) histogram_edges(Histogram p) {
    ROLLED
    for (i64 i = first(); i <= p.count; i += stride()) {
        if (i < p.count) p.counts[i] = 0;
        double v = (p.high * (double)i + (double)(p.count - i) * p.low) / (double)p.count;
        if (!p.bins) store_converted(p.edges, p.dtype, i, v);
    }
}
ENTRY(histogram_edges)
// The bin of a number, -1 for none: a guess that is set right by the edges, or a search.
template <class T> DEVICE int bin_of(const Histogram& p, T v) {
    int last = p.count - 1, bin;
    if (p.bins) {
        if (!(v >= load<T>(p.edges, p.dtype, 0) && v <= load<T>(p.edges, p.dtype, p.count))) return -1;
        int above = 0;
        ROLLED
        while (above <= p.count && v >= load<T>(p.edges, p.dtype, above)) above++;
        return (above < 1 ? 1 : above > p.count ? p.count : above) - 1;
    }
    double number = (double)v;
    if (!(number >= p.low && number <= p.high)) return -1;
    double guess = (number - p.low) * (double)p.count / (p.high - p.low);
    bin = guess < (double)last ? (int)guess : last;
    if (bin > 0 && v < load<T>(p.edges, p.dtype, bin)) bin--;
    if (bin != last && v >= load<T>(p.edges, p.dtype, bin + 1)) bin++;
    return bin;
}
template <class T> DEVICE void histogram(const Histogram& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        int bin = bin_of(p, load<T>(p.from, p.dtype, i));
        if (bin >= 0) count_one(p.counts + bin);
    }
}
KERNEL void __launch_bounds__(256, 2) histogram_f64(Histogram p) { histogram<double>(p); }
ENTRY(histogram_f64)
KERNEL void __launch_bounds__(256, 2) histogram_i64(Histogram p) { histogram<i64>(p); }
ENTRY(histogram_i64)
