// Bytes that stand for numbers, with the range of these: an array of the least and one of the
// largest. All integers are those of the CPU: products of floats are rounded before they are added.
#pragma once
#include "elementwise.h"
#include "pooling.h"

#define ROUND_TO_WHOLE 12582912.0f
#define WHOLE_RANGE 2147483648.0f
// Rounds half to even; what is out of range becomes its end, NaN zero.
DEVICE int to_byte(float v, bool is_signed) {
    float low = is_signed ? -128.0f : 0.0f, high = is_signed ? 127.0f : 255.0f;
    v = v != v ? 0.0f : v < low ? low : v > high ? high : v;
    return (int)plus_rounded(plus_rounded(v, ROUND_TO_WHOLE), -ROUND_TO_WHOLE);
}
DEVICE int to_whole(float v) {
    double d = v != v ? 0.0 : v < -WHOLE_RANGE ? -2147483648.0 : (double)v > 2147483647.0 ? 2147483647.0 : (double)v;
    return (int)plus_rounded(plus_rounded(d, 6755399441055744.0), -6755399441055744.0);
}
DEVICE int cut_off(float v) {
    return v != v ? 0 : v < -WHOLE_RANGE ? -2147483647 - 1 : v >= WHOLE_RANGE ? 2147483647 : (int)v;
}
DEVICE void store_rounded(void* to, int dtype, i64 i, float v) {
    store<i64>(to, dtype, i, dtype == I32 ? to_whole(v) : to_byte(v, dtype == I8));
}

// A range that is read from arrays of a number, or fixed where there are none.
struct ByteRange {
    const float* min;
    const float* max;
    u64* status;    // null, or where a range is reported that is none: the bits of its ends
    float fixed[2];
};
struct Ends {
    float min, max;
};
DEVICE Ends ends_of(const ByteRange& range) {
    Ends ends = {range.fixed[0], range.fixed[1]};
    if (!range.min) return ends;
    ends.min = *range.min, ends.max = *range.max;
    bool is_range = ends.min - ends.min == 0 && ends.max - ends.max == 0 && ends.min <= ends.max;
    if (!is_range && range.status && first() == 0)
        report(range.status, (u64)bits_of(ends.min) << 32 | bits_of(ends.max));
    return ends;
}
DEVICE float largest(Ends ends) {
    float a = m_fabs(ends.min), b = m_fabs(ends.max);
    return a > b ? a : b;
}
DEVICE void store_range(float* min, float* max, float low, float high) {
    if (first() == 0) *min = low, *max = high;
}
DEVICE float levels(int dtype) { return dtype == U8 ? 255.5f : 127.5f; }
// Integers for one unit.
DEVICE float byte_scale(int dtype, Ends ends) {
    float most = largest(ends);
    return most == 0 ? WHOLE_RANGE : levels(dtype) / most;
}

struct CopyRange {
    float* min;
    float* max;
    ByteRange from;
};
KERNEL void __launch_bounds__(256, 2) copy_range(CopyRange p) {
    Ends ends = ends_of(p.from);
    store_range(p.min, p.max, ends.min, ends.max);
}
ENTRY(copy_range)

// The least and the largest number, of sums their largest magnitude. A block writes what it has,
// and another one joins that (`pairs`).
struct Extremes {
    float* to;
    const void* from;
    i64 n;
    int dtype, pairs;
};
KERNEL void __launch_bounds__(ROW_THREADS, 4) extremes(Extremes p) {
    DYNAMIC_SHARED(float, shared);
    float low = infinity(), high = -infinity();
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        float v = p.dtype == F32 ? ((const float*)p.from)[i] : 0;
        if (p.dtype == I32) {
            int sum = ((const int*)p.from)[i];
            v = (float)(sum < 0 ? 0 - (u32)sum : (u32)sum);
        }
        if (v < low && !(p.pairs && i % 2 == 1)) low = v;
        if (v > high && !(p.pairs && i % 2 == 0)) high = v;
    }
    low = over_block<float>(MIN, low, shared), high = over_block<float>(MAX, high, shared);
    if (threadIdx.x == 0) p.to[2 * blockIdx.x] = low, p.to[2 * blockIdx.x + 1] = high;
}
ENTRY_WITH_BARRIERS(extremes)

struct Quantize {
    void* to;
    const void* from;
    float* min;
    float* max;
    ByteRange range;
    i64 n;
    float steps;
    int found;    // whether the range is what the data have
    int dtype, unused;
};
// The range that numbers have: that of no numbers is empty, and one with infinities is reported.
DEVICE Ends found_ends(const ByteRange& range) {
    Ends ends = {*range.min, *range.max};
    if (ends.min == infinity() && ends.max == -infinity()) return Ends{0, 0};
    bool is_finite = ends.min - ends.min == 0 && ends.max - ends.max == 0;
    if (!is_finite && first() == 0) report(range.status, 1);
    return ends;
}
KERNEL void __launch_bounds__(256, 2) quantize(Quantize p) {
    Ends ends = p.found ? found_ends(p.range) : ends_of(p.range);
    float most = largest(ends), scale = most == 0 ? 0 : p.steps / most;
    ROLLED
    for (i64 i = first(); i < p.n; i += stride())
        store_rounded(p.to, p.dtype, i, times_rounded(((const float*)p.from)[i], scale));
    bool centred = p.dtype == I8;
    store_range(p.min, p.max, centred ? -most : ends.min, centred ? most : ends.max);
}
ENTRY(quantize)

struct Dequantize {
    float* to;
    const void* from;
    ByteRange range;
    i64 n;
    int dtype, unused;
};
KERNEL void __launch_bounds__(256, 2) dequantize(Dequantize p) {
    float step = largest(ends_of(p.range)) / levels(p.dtype);
    ROLLED
    for (i64 i = first(); i < p.n; i += stride())
        p.to[i] = times_rounded((float)load<i64>(p.from, p.dtype, i), step);
}
ENTRY(dequantize)

struct Requantize {
    void* to;
    const int* from;
    float* min;
    float* max;
    const float* sums;    // the largest magnitude is the second number; null: `most`
    ByteRange range;
    i64 n;
    float most, steps;
    int dtype, unused;
};
KERNEL void __launch_bounds__(256, 2) requantize(Requantize p) {
    float given = largest(ends_of(p.range)), most = p.most;
    if (p.sums) most = times_rounded(p.sums[1] < 0 ? 0 : p.sums[1], given) / WHOLE_RANGE;
    float scale = most == 0 ? 0 : times_rounded(given / WHOLE_RANGE, p.steps / most);
    ROLLED
    for (i64 i = first(); i < p.n; i += stride())
        store_rounded(p.to, p.dtype, i, times_rounded((float)p.from[i], scale));
    store_range(p.min, p.max, p.dtype == U8 ? 0 : -most, most);
}
ENTRY(requantize)

struct ByteRelu {
    void* to;
    const void* from;
    i64 n;
};
KERNEL void __launch_bounds__(256, 2) byte_relu(ByteRelu p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        signed char v = ((const signed char*)p.from)[i];
        ((signed char*)p.to)[i] = v < 0 ? 0 : v;
    }
}
ENTRY(byte_relu)

struct ByteSum {
    void* to;
    const void* from[2];
    float* min;
    float* max;
    ByteRange ranges[2];
    i64 n;
    float result[2];     // a calibrated range
    float unit;          // and integers for one unit of it
    int is_calibrated;
    int from_dtypes[2], dtype, unused;
};
KERNEL void __launch_bounds__(256, 2) byte_sum(ByteSum p) {
    Ends of[2] = {ends_of(p.ranges[0]), ends_of(p.ranges[1])};
    float sum = plus_rounded(largest(of[0]), largest(of[1])), factor[2];
    UNROLLED
    for (int k = 0; k < 2; k++) {
        if (p.is_calibrated)
            factor[k] = p.unit / byte_scale(p.from_dtypes[k], of[k]);
        else
            factor[k] = sum == 0 ? 0 : times_rounded(largest(of[k]), WHOLE_RANGE) /
                                           times_rounded(sum, levels(p.from_dtypes[k]));
    }
    // The unsigned one of two kinds is brought to the steps of a calibrated result first.
    bool rounds = p.is_calibrated && p.from_dtypes[0] != p.from_dtypes[1];
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        float v[2];
        UNROLLED
        for (int k = 0; k < 2; k++) {
            v[k] = times_rounded((float)load<i64>(p.from[k], p.from_dtypes[k], i), factor[k]);
            if (rounds && p.from_dtypes[k] == U8) v[k] = (float)to_byte(v[k], true);
        }
        store_rounded(p.to, p.dtype, i, plus_rounded(v[0], v[1]));
    }
    store_range(p.min, p.max, p.is_calibrated ? p.result[0] : -sum, p.is_calibrated ? p.result[1] : sum);
}
ENTRY(byte_sum)

// Windows of bytes: POOL_MAX, or means that are rounded.
KERNEL void __launch_bounds__(256, 2) byte_pooling(Pooling p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        Divisor pixels{p.out[0] * p.out[1] * p.out[2]};
        i64 outer = i / p.inner, plane = outer / pixels, inner = i - outer * p.inner;
        Window w = window(p, (u32)(outer - plane * pixels));
        i64 v = p.fold == POOL_MAX && p.dtype == I8 ? -128 : 0;
        ROLLED
        for (int z = w.low[0]; z < w.high[0]; z++)
            ROLLED
            for (int y = w.low[1]; y < w.high[1]; y++) {
                i64 at = (((plane * p.size[0] + z) * p.size[1] + y) * p.size[2] + w.low[2]) * p.inner + inner;
                ROLLED
                for (int x = w.low[2]; x < w.high[2]; x++, at += p.inner) {
                    i64 e = load<i64>(p.from, p.dtype, at);
                    v = p.fold != POOL_MAX ? v + e : v > e ? v : e;
                }
            }
        i64 count = p.fold == POOL_AVERAGE ? w.whole : w.inside;
        if (p.fold == POOL_MAX)
            store<i64>(p.to, p.dtype, i, v);
        else
            store_rounded(p.to, p.dtype, i, (float)v / (float)(count < 1 ? 1 : count));
    }
}
ENTRY(byte_pooling)

// Sums of products of bytes, and what is added to those of a filter: a convolution with channels
// first, which a dense layer is, too (`dense`).
struct ByteLayer {
    int* to;
    const void* from;
    const void* weight;
    const void* bias;    // null: none
    float* min;
    float* max;
    ByteRange data, of_weight, of_bias;
    i64 n;
    Divisor filters, each;    // filters in all, and of a group
    i64 channels, groups;     // channels of a group
    int size[3], out[3], kernel[3], step[3], pad[3], dilate[3];
    int dense, dtype;
};
KERNEL void __launch_bounds__(256, 2) byte_layer(ByteLayer p) {
    Ends data = ends_of(p.data), weight = ends_of(p.of_weight);
    float bias_step = 0;
    if (p.dense && p.bias) {
        // The steps of the sums.
        float steps = times_rounded(byte_scale(p.dtype, data), byte_scale(I8, weight));
        bias_step = times_rounded(steps, largest(ends_of(p.of_bias))) / 127.5f;
    }
    Divisor pixels{(i64)p.out[0] * p.out[1] * p.out[2]};
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 pixel = i % pixels, filter = i / pixels % p.filters, image = i / pixels / p.filters;
        i64 line = pixel / Divisor{p.out[2]};
        int x0 = (int)(pixel % Divisor{p.out[2]}) * p.step[2] - p.pad[2];
        int y0 = (int)(line % Divisor{p.out[1]}) * p.step[1] - p.pad[1];
        int z0 = (int)(line / Divisor{p.out[1]}) * p.step[0] - p.pad[0];
        i64 plane = (image * p.groups + filter / p.each) * p.channels;
        const signed char* weight_at = (const signed char*)p.weight;
        weight_at += filter * p.channels * p.kernel[0] * p.kernel[1] * p.kernel[2];
        u32 sum = 0;
        ROLLED
        for (i64 rows = plane * p.size[0], end = rows + p.channels * p.size[0]; rows < end; rows += p.size[0])
            ROLLED
            for (int down = 0; down < p.kernel[0] * p.kernel[1]; down++, weight_at += p.kernel[2]) {
                int z = z0 + down / p.kernel[1] * p.dilate[0], y = y0 + down % p.kernel[1] * p.dilate[1];
                if ((u32)z >= (u32)p.size[0] || (u32)y >= (u32)p.size[1]) continue;
                i64 row = ((rows + z) * p.size[1] + y) * p.size[2];
                ROLLED
                for (int k = 0, x = x0; k < p.kernel[2]; k++, x += p.dilate[2]) {
                    if ((u32)x >= (u32)p.size[2]) continue;
                    int v = ((const signed char*)p.from)[row + x];
                    sum += (u32)((p.dtype == U8 ? v & 255 : v) * weight_at[k]);
                }
            }
        if (p.bias) {
            int bias = ((const signed char*)p.bias)[filter];
            sum += (u32)(p.dense ? cut_off(times_rounded((float)bias, bias_step)) : bias);
        }
        p.to[i] = (int)sum;
    }
    // With unsigned data a dense layer has the 255 levels of the other factor, as in MXNet.
    float weight_step = largest(weight) / (p.dense && p.dtype == U8 ? 255.0f : 127.0f);
    float most = times_rounded(times_rounded(largest(data) / 127.0f, weight_step), WHOLE_RANGE);
    store_range(p.min, p.max, -most, most);
}
ENTRY(byte_layer)
