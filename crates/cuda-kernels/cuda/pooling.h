// Windows over up to three spatial axes.
#pragma once
#include "elementwise.h"

enum PoolFold { POOL_MAX, POOL_SUM, POOL_AVERAGE, POOL_AVERAGE_INSIDE, POOL_LP };
template <class T> DEVICE T lowest() { return (T)-3.402823466e38f; }
template <> SPECIAL double lowest<double>() { return -1.7976931348623157e308; }
struct Pooling {
    void* to;
    const void* from;
    i64 n, planes;
    Divisor inner;    // arrays are [planes][spatial...][inner]
    int size[3], out[3], kernel[3], step[3], pad[3];
    int fold, p, dtype;
};
// D: the type of elements.
template <class T, int D> DEVICE void pooling(const Pooling& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        Divisor pixels{p.out[0] * p.out[1] * p.out[2]};
        i64 outer = i / p.inner, plane = outer / pixels, inner = i - outer * p.inner;
        int pixel = (int)(outer - plane * pixels);
        int low[3], high[3];
        i64 whole = 1, inside = 1;
        for (int a = 2; a >= 0; a--) {
            int begin = pixel % p.out[a] * p.step[a] - p.pad[a], end = begin + p.kernel[a];
            pixel /= p.out[a];
            // An average counts padding, but nothing behind it.
            int limit = p.size[a] + p.pad[a];
            whole *= (end < limit ? end : limit) - begin;
            low[a] = begin < 0 ? 0 : begin;
            high[a] = end < p.size[a] ? end : p.size[a];
            inside *= high[a] > low[a] ? high[a] - low[a] : 0;
        }
        // A window in the padding altogether has the lowest finite number.
        T v = p.fold == POOL_MAX ? lowest<T>() : 0;
        auto take = [&](T e) {
            if (p.fold == POOL_MAX) v = v > e ? v : e;
            else if (p.fold == POOL_LP) v += p.p == 1 ? e : p.p == 2 ? e * e : e * e * e;
            else v += e;
        };
        ROLLED
        for (int z = low[0]; z < high[0]; z++)
            ROLLED
            for (int y = low[1]; y < high[1]; y++) {
                i64 at = (((plane * p.size[0] + z) * p.size[1] + y) * p.size[2] + low[2]) * p.inner + inner;
                UNROLLED_BY_2
                for (int x = low[2]; x < high[2]; x++, at += p.inner) take(load<T>(p.from, D, at));
            }
        if (p.fold == POOL_AVERAGE) v /= (T)whole;
        if (p.fold == POOL_AVERAGE_INSIDE) v /= (T)inside;
        if (p.fold == POOL_LP) v = p.p == 1 ? v : p.p == 2 ? m_sqrt(v) : m_cbrt(v);
        store<T>(p.to, D, i, v);
    }
}
KERNEL void __launch_bounds__(256, 2) pooling_f32(Pooling p) {
    p.dtype == F16 ? pooling<float, F16>(p) : pooling<float, F32>(p);
}
ENTRY(pooling_f32)
KERNEL void __launch_bounds__(256, 2) pooling_f64(Pooling p) { pooling<double, F64>(p); }
ENTRY(pooling_f64)
