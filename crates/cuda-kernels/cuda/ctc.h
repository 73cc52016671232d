// Losses of connectionist temporal classification: Graves et al. (2006). Paths are added in double
// precision, as on the CPU.
#pragma once
#include "indexing.h"
#include "reduce.h"

struct Ctc {
    void* to;
    const void* from;          // activations: [steps][batch][symbols]
    const void* labels;        // [batch][width]
    const void* lengths[2];    // of the data and of the labels, or null
    double* normalizers;       // [steps][batch]
    double* reached;           // two rows of `2 * width + 1` states for each block
    u64* status;
    i64 steps, batch, symbols, width;
    i64 blank, padding;        // a symbol, and what ends a label without a length
    int dtype, label_dtype, length_dtypes[2];
};
// The logarithm of the sum of exponentials of every row of activations. A warp reads a row.
template <class T> DEVICE void ctc_normalizers(const Ctc& p) {
    int lane = threadIdx.x % 32;
    ROLLED
    for (i64 row = first() / 32; row < p.steps * p.batch; row += stride() / 32) {
        T most = (T)-infinity();
        ROLLED
        for (i64 i = lane; i < p.symbols; i += 32) {
            T v = load<T>(p.from, p.dtype, row * p.symbols + i);
            most = v > most ? v : most;
        }
        ROLLED
        for (int lanes = 16; lanes; lanes /= 2) {
            T other = shuffle_xor(most, lanes);
            most = other > most ? other : most;
        }
        Sum<T> sums;
        ROLLED
        for (i64 i = lane; i < p.symbols; i += 32)
            sums.add(m_exp(load<T>(p.from, p.dtype, row * p.symbols + i) - most));
        double sum = sums.all();
        ROLLED
        for (int lanes = 16; lanes; lanes /= 2) sum += shuffle_xor(sum, lanes);
        if (lane == 0) p.normalizers[row] = (double)most + log(sum);
    }
}
KERNEL void __launch_bounds__(ROW_THREADS, 4) ctc_normalizers_f32(Ctc p) { ctc_normalizers<float>(p); }
ENTRY_WITH_BARRIERS(ctc_normalizers_f32)
KERNEL void __launch_bounds__(ROW_THREADS, 4) ctc_normalizers_f64(Ctc p) { ctc_normalizers<double>(p); }
ENTRY_WITH_BARRIERS(ctc_normalizers_f64)

enum CtcError { LABEL_LENGTH, DATA_LENGTH, LABEL, NO_ERROR };
// Reports so that the first sequence is heard. Its number is cut to 24 bits.
DEVICE void report_sequence(u64* status, i64 sequence, int error, i64 number) {
    i64 last = (1 << 24) - 2;
    report_least(status, (u64)((sequence < last ? sequence : last) + 1) << 40 | (u64)error << 38 | in_38_bits(number));
}
// ln(e^a + e^b)
DEVICE double sum_of_logarithms(double a, double b) {
    double low = a < b ? a : b, high = a < b ? b : a;
    return low == (double)-infinity() ? high : high + log1p(exp(low - high));
}
// A block for each sequence. Its states are a blank before, between and after the labels.
KERNEL void __launch_bounds__(ROW_THREADS, 4) ctc_losses(Ctc p) {
    DYNAMIC_SHARED(i64, shared);
    const double never = (double)-infinity();
    double* before = p.reached + (i64)blockIdx.x * 2 * (2 * p.width + 1);
    double* after = before + 2 * p.width + 1;
    ROLLED
    for (i64 n = blockIdx.x; n < p.batch; n += gridDim.x) {
        auto label = [&](i64 k) -> i64 { return load<i64>(p.labels, p.label_dtype, n * p.width + k); };
        i64 steps = p.lengths[0] ? load<i64>(p.lengths[0], p.length_dtypes[0], n) : p.steps, count = p.width;
        if (p.lengths[1]) {
            count = load<i64>(p.lengths[1], p.length_dtypes[1], n);
        } else {
            ROLLED
            for (i64 k = threadIdx.x; k < count; k += ROW_THREADS)
                if (label(k) == p.padding) count = k;
            count = over_block<i64>(MIN, count, shared);
        }
        int error = count < 0 || count > p.width ? LABEL_LENGTH : steps < 0 || steps > p.steps ? DATA_LENGTH : NO_ERROR;
        i64 wrong = error == LABEL_LENGTH ? count : steps, repeats = 0;
        if (error == NO_ERROR) {
            i64 found = count;
            ROLLED
            for (i64 k = threadIdx.x; k < count; k += ROW_THREADS) {
                i64 v = label(k);
                repeats += k > 0 && v == label(k - 1);
                if ((v < 0 || v >= p.symbols) && k < found) found = k;
            }
            repeats = over_block<i64>(SUM, repeats, shared);
            found = over_block<i64>(MIN, found, shared);
            if (found < count) error = LABEL, wrong = label(found);
        }
        if (error != NO_ERROR || steps == 0 || count + repeats > steps) {
            if (threadIdx.x > 0) continue;
            if (error != NO_ERROR) report_sequence(p.status, n, error, wrong);
            store<double>(p.to, p.dtype, n, 0);
            continue;
        }
        i64 states = 2 * count + 1;
        ROLLED
        for (i64 step = 0; step < steps; step++) {
            i64 row = step * p.batch + n;
            double normalizer = p.normalizers[row];
            ROLLED
            for (i64 i = threadIdx.x; i < states; i += ROW_THREADS) {
                i64 symbol = i % 2 ? label(i / 2) : p.blank;
                double v = i < 2 ? 0 : never;
                if (step > 0) {
                    v = before[i];
                    if (i > 0) v = sum_of_logarithms(v, before[i - 1]);
                    // From a label to the next one, unless they are alike.
                    if (i > 2 && i % 2 && symbol != p.blank && symbol != label(i / 2 - 1))
                        v = sum_of_logarithms(v, before[i - 2]);
                }
                after[i] = v + load<double>(p.from, p.dtype, row * p.symbols + symbol) - normalizer;
            }
            __syncthreads();
            double* written = after;
            after = before, before = written;
        }
        if (threadIdx.x == 0) {
            double all = before[states - 1];
            if (states > 1) all = sum_of_logarithms(all, before[states - 2]);
            store<double>(p.to, p.dtype, n, -all);
        }
    }
}
ENTRY_WITH_BARRIERS(ctc_losses)
