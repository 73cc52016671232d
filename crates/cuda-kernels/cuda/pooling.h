// Windows over up to three spatial axes.
#pragma once
#include "elementwise.h"
#include "rows.h"

enum PoolFold { POOL_MAX, POOL_SUM, POOL_AVERAGE, POOL_AVERAGE_INSIDE, POOL_LP };
// The lowest finite number of a type.
template <int D> struct Lowest;
template <> struct Lowest<F16> { static constexpr float number = -65504; };
template <> struct Lowest<F32> { static constexpr float number = -3.402823466e38f; };
template <> struct Lowest<F64> { static constexpr double number = -1.7976931348623157e308; };
struct Pooling {
    void* to;
    const void* from;
    i64 n, planes;
    Divisor inner;    // arrays are [planes][spatial...][inner]
    int size[3], out[3], kernel[3], step[3], pad[3];
    int fold, p, dtype, together;    // together: aligned for pieces
    int nothing_is_nan;              // the mean of no places
};
// What one pixel of the result reads. An average counts padding (`whole`), but nothing behind it.
// Both products have negative factors where a window begins after what it reaches into.
struct Window {
    int low[3], high[3];
    i64 whole, inside;
    SPECIAL bool is_empty() const { return low[0] >= high[0] || low[1] >= high[1] || low[2] >= high[2]; }
};
DEVICE Window window(const Pooling& p, u32 pixel) {
    Window w;
    w.whole = w.inside = 1;
    UNROLLED
    for (int a = 2; a >= 0; a--) {
        u32 outer = a ? pixel / (u32)p.out[a] : 0;
        int begin = (int)(pixel - outer * (u32)p.out[a]) * p.step[a] - p.pad[a], end = begin + p.kernel[a];
        pixel = outer;
        int limit = p.size[a] + p.pad[a];
        w.whole *= (end < limit ? end : limit) - begin;
        w.low[a] = begin < 0 ? 0 : begin;
        w.high[a] = end < p.size[a] ? end : p.size[a];
        w.inside *= w.high[a] - w.low[a];
    }
    return w;
}
// A window in the padding altogether has the lowest finite number.
template <class T, int D> DEVICE T pool_start(int fold) { return fold == POOL_MAX ? Lowest<D>::number : 0; }
template <class T> DEVICE T pool_join(int fold, int p, T v, T e) {
    // NaN is larger than nothing, as on the CPU.
    if (fold == POOL_MAX) return e > v ? e : v;
    if (fold == POOL_LP) return v + (p == 1 ? e : p == 2 ? e * e : e * e * e);
    return v + e;
}
template <class T> DEVICE T pool_mean(const Pooling& p, const Window& w, T v) {
    if (p.fold != POOL_AVERAGE && p.fold != POOL_AVERAGE_INSIDE) return v;
    i64 places = p.fold == POOL_AVERAGE ? w.whole : w.inside;
    return v / (T)(places < 1 && !(places == 0 && p.nothing_is_nan) ? 1 : places);
}

// D: the type of elements.
template <class T, int D> DEVICE void pooling(const Pooling& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        Divisor pixels{p.out[0] * p.out[1] * p.out[2]};
        i64 outer = i / p.inner, plane = outer / pixels, inner = i - outer * p.inner;
        Window w = window(p, (u32)(outer - plane * pixels));
        T v = pool_start<T, D>(p.fold);
        ROLLED
        for (int z = w.low[0]; z < w.high[0]; z++)
            ROLLED
            for (int y = w.low[1]; y < w.high[1]; y++) {
                i64 at = (((plane * p.size[0] + z) * p.size[1] + y) * p.size[2] + w.low[2]) * p.inner + inner;
                UNROLLED_BY_2
                for (int x = w.low[2]; x < w.high[2]; x++, at += p.inner)
                    v = pool_join(p.fold, p.p, v, load<T>(p.from, D, at));
            }
        v = pool_mean(p, w, v);
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

// ---- Channels last, in pieces of 16 bytes: `n` and `inner` count these, in 32 bits ----------------

template <int D> DEVICE void of_piece(const Piece& piece, float* v) {
    UNROLLED
    for (int j = 0; j < InPiece<D>::COUNT / 2; j++) load_pair<D>(&piece, j, v + 2 * j);
}
// Columns of a row of a window that a thread reads at a time.
#define POOL_READS 3
// FOLD: POOL_MAX or POOL_SUM. The order of sums is that of `pooling`.
template <int D, int FOLD> DEVICE void pool_pieces(const Pooling& p) {
    const int COUNT = InPiece<D>::COUNT;
    const Piece* from = (const Piece*)p.from;
    u32 pixels = p.out[0] * p.out[1] * p.out[2], inner = (u32)p.inner.number, n = (u32)p.n;
    ROLLED
    for (u32 i = (u32)first(); i < n; i += (u32)stride()) {
        u32 outer = i / inner, plane = outer / pixels;
        Window w = window(p, outer - plane * pixels);
        float v[COUNT];
        UNROLLED
        for (int j = 0; j < COUNT; j++) v[j] = pool_start<float, D>(FOLD);
        ROLLED
        for (int z = w.low[0]; z < w.high[0]; z++)
            ROLLED
            for (int y = w.low[1]; y < w.high[1]; y++) {
                u32 at = (((plane * p.size[0] + z) * p.size[1] + y) * p.size[2] + w.low[2]) * inner + i - outer * inner;
                ROLLED
                for (int x = w.low[2]; x < w.high[2]; x += POOL_READS, at += POOL_READS * inner) {
                    Piece read[POOL_READS] = {};
                    UNROLLED
                    for (int k = 0; k < POOL_READS; k++)
                        if (x + k < w.high[2]) read[k] = from[at + k * inner];
                    UNROLLED
                    for (int k = 0; k < POOL_READS; k++) {
                        if (x + k >= w.high[2]) continue;
                        float e[COUNT];
                        of_piece<D>(read[k], e);
                        UNROLLED
                        for (int j = 0; j < COUNT; j++) v[j] = pool_join(FOLD, 0, v[j], e[j]);
                    }
                }
            }
        Piece made;
        UNROLLED
        for (int j = 0; j < COUNT; j += 2)
            store_pair<D>(&made, j / 2, pool_mean(p, w, v[j]), pool_mean(p, w, v[j + 1]));
        ((Piece*)p.to)[i] = made;
    }
}
KERNEL void __launch_bounds__(256, 4) pooling_pieces_f16(Pooling p) {
    p.fold == POOL_MAX ? pool_pieces<F16, POOL_MAX>(p) : pool_pieces<F16, POOL_SUM>(p);
}
ENTRY(pooling_pieces_f16)
KERNEL void __launch_bounds__(256, 4) pooling_pieces_f32(Pooling p) {
    p.fold == POOL_MAX ? pool_pieces<F32, POOL_MAX>(p) : pool_pieces<F32, POOL_SUM>(p);
}
ENTRY(pooling_pieces_f32)

// Sums of long windows: the threads of a block share the window of one pixel of the result, and of
// this many pieces. `n` counts blocks.
#define POOL_PIECES 8
#define POOL_THREADS 256
template <int D> DEVICE void pool_shared(const Pooling& p) {
    const int COUNT = InPiece<D>::COUNT, NUMBERS = POOL_PIECES * COUNT;
    DYNAMIC_SHARED(float, shared);
    u32 inner = (u32)p.inner.number, across = (inner + POOL_PIECES - 1) / POOL_PIECES;
    u32 pixel = blockIdx.x / across, begin = blockIdx.x % across * POOL_PIECES, piece = begin + threadIdx.x % POOL_PIECES;
    u32 pixels = p.out[0] * p.out[1] * p.out[2], plane = pixel / pixels;
    Window w = window(p, pixel % pixels);
    u32 width = w.high[2] - w.low[2], height = w.high[1] - w.low[1];
    u32 taps = piece < inner && !w.is_empty() ? (u32)w.inside : 0;
    float v[COUNT] = {};
    ROLLED
    for (u32 tap = threadIdx.x / POOL_PIECES; tap < taps; tap += POOL_THREADS / POOL_PIECES) {
        u32 row = tap / width, x = w.low[2] + tap - row * width, z = row / height, y = w.low[1] + row - z * height;
        u32 at = (((plane * p.size[0] + w.low[0] + z) * p.size[1] + y) * p.size[2] + x) * inner + piece;
        float e[COUNT];
        if (p.together) {
            Piece read = ((const Piece*)p.from)[at];
            of_piece<D>(read, e);
        } else {
            UNROLLED
            for (int j = 0; j < COUNT; j++) e[j] = load<float>(p.from, D, (i64)at * COUNT + j);
        }
        UNROLLED
        for (int j = 0; j < COUNT; j++) v[j] += e[j];
    }
    UNROLLED
    for (int j = 0; j < COUNT; j++) {
        UNROLLED
        for (int lanes = POOL_PIECES; lanes < 32; lanes *= 2) v[j] += shuffle_xor(v[j], lanes);
        if (threadIdx.x % 32 < POOL_PIECES)
            shared[threadIdx.x / 32 * NUMBERS + threadIdx.x % POOL_PIECES * COUNT + j] = v[j];
    }
    __syncthreads();
    if ((int)threadIdx.x >= NUMBERS || begin + threadIdx.x / COUNT >= inner) return;
    float sum = shared[threadIdx.x];
    UNROLLED
    for (int warp = 1; warp < POOL_THREADS / 32; warp++) sum += shared[warp * NUMBERS + threadIdx.x];
    store<float>(p.to, D, ((i64)pixel * inner + begin) * COUNT + threadIdx.x, pool_mean(p, w, sum));
}
KERNEL void __launch_bounds__(POOL_THREADS, 4) pooling_shared_f16(Pooling p) { pool_shared<F16>(p); }
ENTRY_WITH_BARRIERS(pooling_shared_f16)
KERNEL void __launch_bounds__(POOL_THREADS, 4) pooling_shared_f32(Pooling p) { pool_shared<F32>(p); }
ENTRY_WITH_BARRIERS(pooling_shared_f32)
