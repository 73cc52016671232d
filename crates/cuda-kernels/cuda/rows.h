// Rows that are normalised: one block for each.
#pragma once
#include "elementwise.h"
#include "reduce.h"

struct Softmax {
    void* to;
    const void* from;
    const void* lengths;    // null: all elements count
    i64 rows, extent;
    Divisor inner;
    double temperature;
    int dtype, to_dtype, length_dtype, log, negate, unused;
};
template <class T> DEVICE void softmax(const Softmax& p) {
    DYNAMIC_SHARED(double, shared);
    ROLLED
    for (i64 r = blockIdx.x; r < p.rows; r += gridDim.x) {
        i64 base = r / p.inner * p.extent * p.inner + r % p.inner;
        i64 n = p.lengths ? load<i64>(p.lengths, p.length_dtype, r) : p.extent;
        n = n < 0 ? 0 : n > p.extent ? p.extent : n;
        T sign = p.negate ? -1 : 1, over = (T)p.temperature;
        auto at = [&](i64 i) -> T { return sign * load<T>(p.from, p.dtype, base + i * p.inner); };
        T most = (T)-infinity();
        Sum<T> sums;
        ROLLED
        for (i64 i = threadIdx.x; i < n; i += ROW_THREADS) most = fold_join<T>(MAX, most, at(i));
        most = (T)over_block<double>(MAX, most, shared);
        ROLLED
        for (i64 i = threadIdx.x; i < n; i += ROW_THREADS) sums.add(m_exp((at(i) - most) / over));
        T sum = (T)over_block<double>(SUM, sums.all(), shared);
        T log_sum = p.log ? m_log(sum) : 0;
        ROLLED
        for (i64 i = threadIdx.x; i < p.extent; i += ROW_THREADS) {
            T v = 0;
            if (i < n) v = p.log ? (at(i) - most) / over - log_sum : m_exp((at(i) - most) / over) / sum;
            store<T>(p.to, p.to_dtype, base + i * p.inner, v);
        }
    }
}
KERNEL void __launch_bounds__(ROW_THREADS, 4) softmax_f32(Softmax p) { softmax<float>(p); }
ENTRY_WITH_BARRIERS(softmax_f32)
KERNEL void __launch_bounds__(ROW_THREADS, 4) softmax_f64(Softmax p) { softmax<double>(p); }
ENTRY_WITH_BARRIERS(softmax_f64)

struct LayerNorm {
    void* to;
    void* mean;    // with `deviation`, or null
    void* deviation;
    const void* from;
    const void* gamma;
    const void* beta;
    i64 rows, extent;
    Divisor inner;
    double eps;
    int dtype;
    int of_rows;    // gammas and betas that rows have in turns; 0: one for each place of a row
};
template <class T> DEVICE void layer_norm(const LayerNorm& p) {
    DYNAMIC_SHARED(double, shared);
    ROLLED
    for (i64 r = blockIdx.x; r < p.rows; r += gridDim.x) {
        i64 base = r / p.inner * p.extent * p.inner + r % p.inner;
        auto at = [&](i64 i) -> T { return load<T>(p.from, p.dtype, base + i * p.inner); };
        Sum<T> sum, squares;
        ROLLED
        for (i64 i = threadIdx.x; i < p.extent; i += ROW_THREADS) sum.add(at(i));
        T mean = (T)(over_block<double>(SUM, sum.all(), shared) / (double)p.extent);
        ROLLED
        for (i64 i = threadIdx.x; i < p.extent; i += ROW_THREADS) squares.add((at(i) - mean) * (at(i) - mean));
        T variance = (T)(over_block<double>(SUM, squares.all(), shared) / (double)p.extent);
        T deviation = m_sqrt(variance + (T)p.eps);
        ROLLED
        for (i64 i = threadIdx.x; i < p.extent; i += ROW_THREADS) {
            i64 of = p.of_rows ? r % Divisor{p.of_rows} : i;
            T scaled = (at(i) - mean) / deviation * load<T>(p.gamma, p.dtype, of) + load<T>(p.beta, p.dtype, of);
            store<T>(p.to, p.dtype, base + i * p.inner, scaled);
        }
        if (p.mean && threadIdx.x == 0) {
            store<T>(p.mean, p.dtype, r, mean);
            store<T>(p.deviation, p.dtype, r, deviation);
        }
    }
}
KERNEL void __launch_bounds__(ROW_THREADS, 4) layer_norm_f32(LayerNorm p) { layer_norm<float>(p); }
ENTRY_WITH_BARRIERS(layer_norm_f32)
KERNEL void __launch_bounds__(ROW_THREADS, 4) layer_norm_f64(LayerNorm p) { layer_norm<double>(p); }
ENTRY_WITH_BARRIERS(layer_norm_f64)

// Rows of at most 64 * N numbers of type D that lie together: a warp has one in registers, in pairs.
#define WARPS (ROW_THREADS / 32)
template <int D> DEVICE void load_pair(const void* at, i64 i, float v[2]) {
    if (D == F16) {
        u32 two = ((const u32*)at)[i];
        v[0] = load_half((unsigned short)two), v[1] = load_half((unsigned short)(two >> 16));
    } else {
        v[0] = ((const float*)at)[2 * i], v[1] = ((const float*)at)[2 * i + 1];
    }
}
template <int D> DEVICE void store_pair(void* at, i64 i, float a, float b) {
    if (D == F16)
        ((u32*)at)[i] = to_half(a) | (u32)to_half(b) << 16;
    else
        ((float*)at)[2 * i] = a, ((float*)at)[2 * i + 1] = b;
}
DEVICE float over_warp(bool most, float v) {
    UNROLLED
    for (int mask = 16; mask; mask /= 2) {
        float other = shuffle_xor(v, mask);
        v = !most ? v + other : v != v || v > other ? v : other;
    }
    return v;
}

template <int D, int N> DEVICE void short_softmax(const Softmax& p) {
    int lane = threadIdx.x % 32, pairs = (int)p.extent / 2;
    float sign = p.negate ? -1 : 1, over = (float)p.temperature;
    ROLLED
    for (i64 r = blockIdx.x * WARPS + threadIdx.x / 32; r < p.rows; r += gridDim.x * WARPS) {
        float v[N][2], most = -infinity(), sum = 0;
        UNROLLED
        for (int j = 0; j < N; j++) {
            v[j][0] = v[j][1] = -infinity();
            if (j * 32 + lane >= pairs) continue;
            load_pair<D>(p.from, r * pairs + j * 32 + lane, v[j]);
            for (int h = 0; h < 2; h++) {
                v[j][h] *= sign;
                most = fold_join<float>(MAX, most, v[j][h]);
            }
        }
        most = over_warp(true, most);
        UNROLLED
        for (int j = 0; j < N; j++) {
            if (j * 32 + lane >= pairs) continue;
            for (int h = 0; h < 2; h++) {
                v[j][h] = (v[j][h] - most) / over;
                float e = m_exp(v[j][h]);
                sum += e;
                if (!p.log) v[j][h] = e;
            }
        }
        sum = over_warp(false, sum);
        float log_sum = p.log ? m_log(sum) : 0;
        UNROLLED
        for (int j = 0; j < N; j++) {
            if (j * 32 + lane >= pairs) continue;
            float a = p.log ? v[j][0] - log_sum : v[j][0] / sum, b = p.log ? v[j][1] - log_sum : v[j][1] / sum;
            store_pair<D>(p.to, r * pairs + j * 32 + lane, a, b);
        }
    }
}

template <int D, int N> DEVICE void short_layer_norm(const LayerNorm& p) {
    int lane = threadIdx.x % 32, pairs = (int)p.extent / 2;
    ROLLED
    for (i64 r = blockIdx.x * WARPS + threadIdx.x / 32; r < p.rows; r += gridDim.x * WARPS) {
        float v[N][2], mean = 0, square = 0;
        UNROLLED
        for (int j = 0; j < N; j++) {
            if (j * 32 + lane >= pairs) continue;
            load_pair<D>(p.from, r * pairs + j * 32 + lane, v[j]);
            mean += v[j][0] + v[j][1];
        }
        mean = over_warp(false, mean) / (float)p.extent;
        UNROLLED
        for (int j = 0; j < N; j++) {
            if (j * 32 + lane >= pairs) continue;
            v[j][0] -= mean, v[j][1] -= mean;
            square += v[j][0] * v[j][0] + v[j][1] * v[j][1];
        }
        float deviation = m_sqrt(over_warp(false, square) / (float)p.extent + (float)p.eps);
        UNROLLED
        for (int j = 0; j < N; j++) {
            if (j * 32 + lane >= pairs) continue;
            float gamma[2], beta[2];
            load_pair<D>(p.gamma, j * 32 + lane, gamma), load_pair<D>(p.beta, j * 32 + lane, beta);
            float a = v[j][0] / deviation * gamma[0] + beta[0], b = v[j][1] / deviation * gamma[1] + beta[1];
            store_pair<D>(p.to, r * pairs + j * 32 + lane, a, b);
        }
        if (p.mean && lane == 0) {
            store<float>(p.mean, D, r, mean);
            store<float>(p.deviation, D, r, deviation);
        }
    }
}
#define SHORT_ROWS(name, Argument)                                                                 \
    KERNEL void __launch_bounds__(ROW_THREADS, 4) name##_128_f16(Argument p) { name<F16, 2>(p); }     \
    KERNEL void __launch_bounds__(ROW_THREADS, 4) name##_1024_f16(Argument p) { name<F16, 16>(p); }   \
    KERNEL void __launch_bounds__(ROW_THREADS, 4) name##_128_f32(Argument p) { name<F32, 2>(p); }     \
    KERNEL void __launch_bounds__(ROW_THREADS, 4) name##_1024_f32(Argument p) { name<F32, 16>(p); }
SHORT_ROWS(short_softmax, Softmax)
SHORT_ROWS(short_layer_norm, LayerNorm)
ENTRY_WITH_BARRIERS(short_softmax_128_f16)
ENTRY_WITH_BARRIERS(short_softmax_1024_f16)
ENTRY_WITH_BARRIERS(short_softmax_128_f32)
ENTRY_WITH_BARRIERS(short_softmax_1024_f32)
ENTRY_WITH_BARRIERS(short_layer_norm_128_f16)
ENTRY_WITH_BARRIERS(short_layer_norm_1024_f16)
ENTRY_WITH_BARRIERS(short_layer_norm_128_f32)
ENTRY_WITH_BARRIERS(short_layer_norm_1024_f32)

struct UnitNorm {
    void* to;
    const void* from;
    i64 rows, extent;
    Divisor inner;
    double eps;
    int dtype, unused;
};
template <class T> DEVICE void unit_norm(const UnitNorm& p) {
    DYNAMIC_SHARED(double, shared);
    ROLLED
    for (i64 r = blockIdx.x; r < p.rows; r += gridDim.x) {
        i64 base = r / p.inner * p.extent * p.inner + r % p.inner;
        auto at = [&](i64 i) -> T { return load<T>(p.from, p.dtype, base + i * p.inner); };
        // As the CPU does: squares may be out of the range of single precision.
        double square = 0;
        ROLLED
        for (i64 i = threadIdx.x; i < p.extent; i += ROW_THREADS) square += (double)at(i) * (double)at(i);
        T norm = (T)sqrt(over_block<double>(SUM, square, shared) + p.eps);
        ROLLED
        for (i64 i = threadIdx.x; i < p.extent; i += ROW_THREADS)
            store<T>(p.to, p.dtype, base + i * p.inner, at(i) / norm);
    }
}
KERNEL void __launch_bounds__(ROW_THREADS, 4) unit_norm_f32(UnitNorm p) { unit_norm<float>(p); }
ENTRY_WITH_BARRIERS(unit_norm_f32)
KERNEL void __launch_bounds__(ROW_THREADS, 4) unit_norm_f64(UnitNorm p) { unit_norm<double>(p); }
ENTRY_WITH_BARRIERS(unit_norm_f64)

// Channels before and behind an element make the sum that it is divided by.
struct ResponseNorm {
    void* to;
    const void* from;
    i64 n;
    Divisor channels, inner;
    double alpha, beta, knorm;    // alpha is divided by the window
    int dtype, half;              // channels on each side
};
template <class T> DEVICE void response_norm(const ResponseNorm& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 c = i / p.inner % p.channels, low = c < p.half ? -c : -p.half;
        i64 high = c + p.half < p.channels ? p.half : p.channels - 1 - c;
        T sum = 0;
        ROLLED
        for (i64 o = low; o <= high; o++) {
            T v = load<T>(p.from, p.dtype, i + o * p.inner);
            sum += v * v;
        }
        T scale = m_pow((T)p.knorm + (T)p.alpha * sum, -(T)p.beta);
        store<T>(p.to, p.dtype, i, load<T>(p.from, p.dtype, i) * scale);
    }
}
KERNEL void __launch_bounds__(256, 2) response_norm_f32(ResponseNorm p) { response_norm<float>(p); }
ENTRY(response_norm_f32)
KERNEL void __launch_bounds__(256, 2) response_norm_f64(ResponseNorm p) { response_norm<double>(p); }
ENTRY(response_norm_f64)

struct BatchNorm {
    void* to;
    const void* from;
    const void* gamma;    // null: 1
    const void* beta;
    const void* mean;
    const void* variance;
    i64 n;
    Divisor channels, inner;
    double eps;
    int dtype, statistic_dtype, relu, unused;
};
template <class T> DEVICE void batch_norm(const BatchNorm& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 c = i / p.inner % p.channels;
        auto of = [&](const void* at) -> T { return load<T>(at, p.statistic_dtype, c); };
        T scale = (p.gamma ? of(p.gamma) : 1) / m_sqrt(of(p.variance) + (T)p.eps);
        T v = (load<T>(p.from, p.dtype, i) - of(p.mean)) * scale + of(p.beta);
        store<T>(p.to, p.dtype, i, p.relu && v < 0 ? 0 : v);
    }
}
KERNEL void __launch_bounds__(256, 2) batch_norm_f32(BatchNorm p) { batch_norm<float>(p); }
ENTRY(batch_norm_f32)
KERNEL void __launch_bounds__(256, 2) batch_norm_f64(BatchNorm p) { batch_norm<double>(p); }
ENTRY(batch_norm_f64)

struct FoldBatchNorm {
    void* weight_to;
    void* bias_to;
    const void* weight;
    const void* bias;     // null: 0
    const void* gamma;    // null: 1
    const void* beta;
    const void* mean;
    const void* variance;
    i64 n;
    Divisor each;    // weights in all, and of a channel
    double eps, factor;
    int dtype, statistic_dtype;    // of weights and biases, and of the rest
};
// In double precision: folding happens once, its rounding would stay.
KERNEL void __launch_bounds__(256, 2) fold_batch_norm(FoldBatchNorm p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 c = i / p.each;
        auto of = [&](const void* at) -> double { return load<double>(at, p.statistic_dtype, c); };
        double scale = p.factor * (p.gamma ? of(p.gamma) : 1.0) / sqrt(of(p.variance) + p.eps);
        store<double>(p.weight_to, p.dtype, i, load<double>(p.weight, p.dtype, i) * scale);
        if (i % p.each == 0) {
            double before = p.bias ? load<double>(p.bias, p.dtype, c) : 0.0;
            store<double>(p.bias_to, p.dtype, c, p.factor * of(p.beta) + (before - of(p.mean)) * scale);
        }
    }
}
ENTRY(fold_batch_norm)
