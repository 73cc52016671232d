// Sums and their kin: one tree for each shape, so bits do not depend on the load. A thread adds a
// few numbers in the type of elements, and these sums in double precision, as the CPU does: long
// rows lose no digits, and there are few operations in double precision, which most GPUs are slow
// at.
#pragma once
#include "elementwise.h"

#define ROW_THREADS 128
enum Fold { SUM, MEAN, PROD, NANSUM, NANPROD, MAX, MIN, L1, L2, ANY, EVERY };

template <class T> DEVICE T fold_start(int fold) {
    switch (fold) {
        case PROD: case NANPROD: case EVERY: return 1;
        case MAX: return (T)-infinity();
        case MIN: return (T)infinity();
        default: return 0;
    }
}
template <> SPECIAL i64 fold_start<i64>(int fold) {
    return fold == PROD || fold == EVERY ? 1 : fold == MAX ? (i64)0x8000000000000000ull : fold == MIN ? 0x7fffffffffffffffll : 0;
}
template <class T> DEVICE T fold_element(int fold, T v) {
    switch (fold) {
        case NANSUM: return v != v ? 0 : v;
        case NANPROD: return v != v ? 1 : v;
        case L1: return v < 0 ? -v : v;
        case L2: return v * v;
        case ANY: case EVERY: return v != 0;
        default: return v;
    }
}
template <class T> DEVICE T fold_join(int fold, T a, T b) {
    switch (fold) {
        case PROD: case NANPROD: case EVERY: return a * b;
        case ANY: return a != 0 || b != 0;
        case MAX: return a != a || a > b ? a : b;
        case MIN: return a != a || a < b ? a : b;
        default: return a + b;
    }
}

// Joins what the threads of a block have; all of them get the result.
template <class T> DEVICE T over_block(int fold, T v, T* shared) {
    for (int lanes = 16; lanes; lanes /= 2) v = fold_join(fold, v, shuffle_xor(v, lanes));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = shared[0];
    for (int warp = 1; warp < ROW_THREADS / 32; warp++) v = fold_join(fold, v, shared[warp]);
    __syncthreads();
    return v;
}

// Numbers that a thread adds in their own type.
#define PART 32
template <class T> struct Sum {
    double total = 0;
    T part = 0;
    int count = 0;
    SPECIAL void add(T v) {
        part += v;
        if (++count == PART) total += (double)part, part = 0, count = 0;
    }
    SPECIAL double all() const { return total + (double)part; }
};

// What parts of a fold are joined in.
template <class T> struct Total { typedef double Type; };
template <> struct Total<i64> { typedef i64 Type; };

DEVICE void store_total(void* to, int dtype, i64 i, double v) { store_converted(to, dtype, i, v); }
DEVICE void store_total(void* to, int dtype, i64 i, i64 v) { store<i64>(to, dtype, i, v); }
// A number as its last bits in a type of integers say.
DEVICE i64 wrapped(i64 v, int dtype) {
    return dtype == U8 ? (unsigned char)v : dtype == I8 ? (signed char)v : dtype == I32 ? (int)v : v;
}
DEVICE double mean_of(double sum, i64 count, int) { return sum / (double)count; }
// Integers are divided in their own type, after the sum has wrapped; by zero they are zero.
DEVICE i64 mean_of(i64 sum, i64 count, int dtype) {
    sum = wrapped(sum, dtype), count = wrapped(count, dtype);
    return count == 0 ? 0 : count == -1 ? (i64)(0 - (u64)sum) : sum / count;
}

struct Reduce {
    void* to;
    const void* from;
    i64 count, results;    // elements of one result
    int fold, dtype, to_dtype, unused;
    Axes kept, gone;
    i64 kept_steps[AXES], gone_steps[AXES];
};
template <class T> DEVICE void reduce(const Reduce& p) {
    typedef typename Total<T>::Type Wide;
    DYNAMIC_SHARED(Wide, shared);
    // Products and squares of single precision are often out of its range where the result is not.
    bool wide = p.fold == PROD || p.fold == NANPROD || p.fold == L2;
    ROLLED
    for (i64 r = blockIdx.x; r < p.results; r += gridDim.x) {
        i64 base = place(p.kept, p.kept_steps, r);
        Wide v = fold_start<Wide>(p.fold);
        T part = fold_start<T>(p.fold);
        int count = 0;
        ROLLED
        for (i64 i = threadIdx.x; i < p.count; i += ROW_THREADS) {
            T one = load<T>(p.from, p.dtype, base + place(p.gone, p.gone_steps, i));
            if (wide) {
                v = fold_join(p.fold, v, fold_element(p.fold, (Wide)one));
                continue;
            }
            part = fold_join(p.fold, part, fold_element(p.fold, one));
            if (++count == PART) v = fold_join(p.fold, v, (Wide)part), part = fold_start<T>(p.fold), count = 0;
        }
        v = over_block(p.fold, fold_join(p.fold, v, (Wide)part), shared);
        if (threadIdx.x == 0) {
            if (p.fold == MEAN) v = mean_of(v, p.count, p.to_dtype);
            if (p.fold == L2) v = (Wide)sqrt((double)v);
            store_total(p.to, p.to_dtype, r, v);
        }
    }
}
KERNEL void __launch_bounds__(ROW_THREADS, 4) reduce_f32(Reduce p) { reduce<float>(p); }
ENTRY_WITH_BARRIERS(reduce_f32)
KERNEL void __launch_bounds__(ROW_THREADS, 4) reduce_f64(Reduce p) { reduce<double>(p); }
ENTRY_WITH_BARRIERS(reduce_f64)
KERNEL void __launch_bounds__(ROW_THREADS, 4) reduce_i64(Reduce p) { reduce<i64>(p); }
ENTRY_WITH_BARRIERS(reduce_i64)

struct Extreme {
    void* to;
    const void* from;
    i64 outer, extent;
    Divisor inner;
    int dtype, to_dtype, largest, unused;
};
// The place of the first NaN, or else of the first largest or smallest element.
KERNEL void __launch_bounds__(256, 2) extreme(Extreme p) {
    ROLLED
    for (i64 i = first(); i < p.outer * p.inner; i += stride()) {
        i64 base = i / p.inner * p.extent * p.inner + i % p.inner, best = 0;
        if (p.dtype == I64) {
            ROLLED
            for (i64 k = 1; k < p.extent; k++) {
                i64 v = ((const i64*)p.from)[base + k * p.inner], b = ((const i64*)p.from)[base + best * p.inner];
                if (p.largest ? v > b : v < b) best = k;
            }
        } else {
            double b = load<double>(p.from, p.dtype, base);
            ROLLED
            for (i64 k = 1; k < p.extent; k++) {
                double v = load<double>(p.from, p.dtype, base + k * p.inner);
                if (b == b && (v != v || (p.largest ? v > b : v < b))) best = k, b = v;
            }
        }
        store<i64>(p.to, p.to_dtype, i, best);
    }
}
ENTRY(extreme)

// A block searches a row: of numbers that are alike, the first one counts, whichever thread has it.
template <class T> struct Found {
    T v;
    i64 at;    // below zero: none yet
    SPECIAL void join(T other, i64 other_at, bool largest) {
        if (other_at < 0) return;
        bool alike = v == other || (v != v && other != other);
        bool better = v == v && (other != other || (largest ? other > v : other < v));
        if (at < 0 || better || (alike && other_at < at)) v = other, at = other_at;
    }
};
template <class T> DEVICE void extreme_of_row(const Extreme& p) {
    DYNAMIC_SHARED(i64, places);
    T* shared = (T*)(places + ROW_THREADS / 32);
    ROLLED
    for (i64 r = blockIdx.x; r < p.outer * p.inner; r += gridDim.x) {
        i64 base = r / p.inner * p.extent * p.inner + r % p.inner;
        Found<T> found = {0, -1};
        ROLLED
        for (i64 k = threadIdx.x; k < p.extent; k += ROW_THREADS)
            found.join(load<T>(p.from, p.dtype, base + k * p.inner), k, p.largest);
        ROLLED
        for (int lanes = 16; lanes; lanes /= 2) {
            T other = shuffle_xor(found.v, lanes);
            found.join(other, shuffle_xor(found.at, lanes), p.largest);
        }
        if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = found.v, places[threadIdx.x / 32] = found.at;
        __syncthreads();
        ROLLED
        for (int warp = 0; warp < ROW_THREADS / 32 && threadIdx.x == 0; warp++)
            found.join(shared[warp], places[warp], p.largest);
        if (threadIdx.x == 0) store<i64>(p.to, p.to_dtype, r, found.at);
        __syncthreads();
    }
}
KERNEL void __launch_bounds__(ROW_THREADS, 4) extreme_of_row_f64(Extreme p) { extreme_of_row<double>(p); }
ENTRY_WITH_BARRIERS(extreme_of_row_f64)
KERNEL void __launch_bounds__(ROW_THREADS, 4) extreme_of_row_i64(Extreme p) { extreme_of_row<i64>(p); }
ENTRY_WITH_BARRIERS(extreme_of_row_i64)

struct Moments {
    void* variance;
    Reduce mean;    // the means go to its result
};
template <class T> DEVICE void moments(const Moments& m) {
    DYNAMIC_SHARED(double, shared);
    const Reduce& p = m.mean;
    ROLLED
    for (i64 r = blockIdx.x; r < p.results; r += gridDim.x) {
        i64 base = place(p.kept, p.kept_steps, r);
        Sum<T> sum, squares;
        ROLLED
        for (i64 i = threadIdx.x; i < p.count; i += ROW_THREADS)
            sum.add(load<T>(p.from, p.dtype, base + place(p.gone, p.gone_steps, i)));
        T mean = (T)(over_block(SUM, sum.all(), shared) / (double)p.count);
        ROLLED
        for (i64 i = threadIdx.x; i < p.count; i += ROW_THREADS) {
            T d = load<T>(p.from, p.dtype, base + place(p.gone, p.gone_steps, i)) - mean;
            squares.add(d * d);
        }
        double distance = over_block(SUM, squares.all(), shared);
        if (threadIdx.x == 0) {
            store<T>(p.to, p.to_dtype, r, mean);
            store<double>(m.variance, p.to_dtype, r, distance / (double)p.count);
        }
    }
}
KERNEL void __launch_bounds__(ROW_THREADS, 4) moments_f32(Moments p) { moments<float>(p); }
ENTRY_WITH_BARRIERS(moments_f32)
KERNEL void __launch_bounds__(ROW_THREADS, 4) moments_f64(Moments p) { moments<double>(p); }
ENTRY_WITH_BARRIERS(moments_f64)

struct Variances {
    Reduce of;
    double divisor;
    int root, unused;
};
// In double precision throughout, as on the CPU: squares may be out of the range of single precision.
KERNEL void __launch_bounds__(ROW_THREADS, 4) variances(Variances v) {
    DYNAMIC_SHARED(double, shared);
    const Reduce& p = v.of;
    ROLLED
    for (i64 r = blockIdx.x; r < p.results; r += gridDim.x) {
        i64 base = place(p.kept, p.kept_steps, r);
        auto at = [&](i64 i) -> double { return load<double>(p.from, p.dtype, base + place(p.gone, p.gone_steps, i)); };
        double sum = 0, squares = 0;
        ROLLED
        for (i64 i = threadIdx.x; i < p.count; i += ROW_THREADS) sum += at(i);
        double mean = over_block(SUM, sum, shared) / (double)p.count;
        ROLLED
        for (i64 i = threadIdx.x; i < p.count; i += ROW_THREADS) squares += (at(i) - mean) * (at(i) - mean);
        double variance = over_block(SUM, squares, shared) / v.divisor;
        if (threadIdx.x == 0) store<double>(p.to, p.to_dtype, r, v.root ? sqrt(variance) : variance);
    }
}
ENTRY_WITH_BARRIERS(variances)

struct RunningSum {
    void* to;
    const void* from;
    i64 rows, extent;
    Divisor inner;
    int dtype, from_dtype;
};
// A block sums a row piece by piece: within a piece every thread has what the threads before it have.
template <class T> DEVICE void running_sum(const RunningSum& p) {
    DYNAMIC_SHARED(T, shared);
    ROLLED
    for (i64 r = blockIdx.x; r < p.rows; r += gridDim.x) {
        i64 base = r / p.inner * p.extent * p.inner + r % p.inner;
        T before = 0;
        ROLLED
        for (i64 k0 = 0; k0 < p.extent; k0 += ROW_THREADS) {
            i64 k = k0 + threadIdx.x, at = base + k * p.inner;
            T v = k < p.extent ? load<T>(p.from, p.from_dtype, at) : 0;
            ROLLED
            for (int reach = 1; reach < ROW_THREADS; reach *= 2) {
                shared[threadIdx.x] = v;
                __syncthreads();
                if ((int)threadIdx.x >= reach) v += shared[threadIdx.x - reach];
                __syncthreads();
            }
            shared[threadIdx.x] = v;
            __syncthreads();
            if (k < p.extent) store<T>(p.to, p.dtype, at, before + v);
            before += shared[ROW_THREADS - 1];
            __syncthreads();
        }
    }
}
KERNEL void __launch_bounds__(ROW_THREADS, 4) running_sum_f32(RunningSum p) { running_sum<float>(p); }
ENTRY_WITH_BARRIERS(running_sum_f32)
KERNEL void __launch_bounds__(ROW_THREADS, 4) running_sum_f64(RunningSum p) { running_sum<double>(p); }
ENTRY_WITH_BARRIERS(running_sum_f64)
KERNEL void __launch_bounds__(ROW_THREADS, 4) running_sum_i64(RunningSum p) { running_sum<i64>(p); }
ENTRY_WITH_BARRIERS(running_sum_i64)
