// Draws of places: rows in random order, places with and without weights, and counts of outcomes.
// They are those of the CPU, which draws one after the other where places must differ.
#pragma once
#include "random.h"
#include "reduce.h"

struct PlaceDraws {
    i64* to;
    i64 count;
    u64 n, seed, position;
};
// Places below `n`, each of which may be drawn again. Up to 2^40, 53 bits make one.
KERNEL void __launch_bounds__(256, 2) draw_places(PlaceDraws p) {
    ROLLED
    for (i64 i = first(); i < p.count; i += stride()) {
        Numbers s = numbers_of(p.seed, p.position, i);
        u64 place = p.n > 1ull << 40 ? high_half(next_long(s), p.n) : (u64)(uniform(s) * (double)p.n);
        p.to[i] = (i64)(place < p.n ? place : p.n - 1);
    }
}
ENTRY(draw_places)

// ---- Different places ------------------------------------------------------------------------------

// A step of Fisher and Yates draws a place, whose content is its result, and puts there the content
// of the place whose turn it is, which no later step touches. So a place holds what the last step
// that drew it put there: the content of the place of that step's turn. This in turn may come from
// an earlier step, to which the link of the step leads. About one link is followed for each step.
struct Distinct {
    i64* to;
    i64* drawn;              // the place that each step draws
    i64* before;             // the last step before that drew the same place, or -1
    i64* links;              // the last step before that drew the place whose turn it is, or -1
    const u32* positions;    // the steps, by the place that they draw
    i64 count, n;            // steps and places
    u64 seed, position;
    int downwards, unused;    // whether the last place has the first turn
};
KERNEL void __launch_bounds__(256, 2) distinct_draws(Distinct p) {
    ROLLED
    for (i64 t = first(); t < p.count; t += stride()) {
        // One stream for all steps: two numbers come from a block of it.
        Numbers s = numbers_of(p.seed, p.position, 0);
        s.counter[0] = (u32)(t / 2);
        u64 bits = next_long(s);
        if (t % 2) bits = next_long(s);
        i64 place = (i64)high_half(bits, (u64)(p.n - t));
        p.drawn[t] = p.downwards ? place : t + place;
        p.links[t] = -1;
    }
}
ENTRY(distinct_draws)
KERNEL void __launch_bounds__(256, 2) distinct_links(Distinct p) {
    ROLLED
    for (i64 rank = first(); rank < p.count; rank += stride()) {
        i64 t = p.positions[rank], place = p.drawn[t], earlier = rank > 0 ? (i64)p.positions[rank - 1] : -1;
        if (earlier >= 0 && p.drawn[earlier] != place) earlier = -1;
        p.before[t] = earlier;
        if (rank + 1 < p.count && p.drawn[p.positions[rank + 1]] == place) continue;
        // Nothing draws a place after its turn, in which it may be drawn itself.
        i64 turn = p.downwards ? p.n - 1 - place : place;
        if (turn < p.count) p.links[turn] = turn == t ? earlier : t;
    }
}
ENTRY(distinct_links)
KERNEL void __launch_bounds__(256, 2) distinct_store(Distinct p) {
    ROLLED
    for (i64 t = first(); t < p.count; t += stride()) {
        i64 place = p.drawn[t], from = p.before[t];
        if (from >= 0) {
            ROLLED
            while (p.links[from] >= 0) from = p.links[from];
            place = p.downwards ? p.n - 1 - from : from;
        }
        p.to[p.downwards ? p.n - 1 - t : t] = place;
    }
}
ENTRY(distinct_store)

// ---- Weights ---------------------------------------------------------------------------------------

struct Weights {
    double* keys;    // of each place, or null
    const void* from;
    u64* status;
    i64 n;
    u64 seed, position;
    int dtype, some;    // whether a weight must be positive
};
// One block. Reports the bits of the first weight that is none, or those of one if all are zero.
KERNEL void __launch_bounds__(ROW_THREADS, 4) check_weights(Weights p) {
    DYNAMIC_SHARED(i64, shared);
    i64 wrong = p.n, positive = 0;
    ROLLED
    for (i64 i = threadIdx.x; i < p.n; i += ROW_THREADS) {
        double weight = load<double>(p.from, p.dtype, i);
        if (!(weight >= 0 && weight < (double)infinity()) && i < wrong) wrong = i;
        positive |= weight > 0;
    }
    wrong = over_block<i64>(MIN, wrong, shared), positive = over_block<i64>(ANY, positive, shared);
    if (threadIdx.x > 0) return;
    if (wrong < p.n) report(p.status, bits_of(load<double>(p.from, p.dtype, wrong)));
    else if (p.some && !positive) report(p.status, bits_of(1.0));
}
ENTRY_WITH_BARRIERS(check_weights)
// One block. Reports where numbers are no probabilities, or add up to more than one.
KERNEL void __launch_bounds__(ROW_THREADS, 4) check_probabilities(Weights p) {
    DYNAMIC_SHARED(double, shared);
    double wrong = 0, sum = 0;
    ROLLED
    for (i64 i = threadIdx.x; i < p.n; i += ROW_THREADS) {
        double weight = load<double>(p.from, p.dtype, i);
        if (!(weight >= 0 && weight <= 1)) wrong = 1;
        sum += weight;
    }
    wrong = over_block<double>(MAX, wrong, shared), sum = over_block<double>(SUM, sum, shared);
    if (threadIdx.x == 0 && (wrong > 0 || sum > 1.0 + 1e-5)) report(p.status, 1);
}
ENTRY_WITH_BARRIERS(check_probabilities)
// Exponential numbers with the weights as their rates: the places of the smallest are drawn.
KERNEL void __launch_bounds__(256, 2) weighted_keys(Weights p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        Numbers s = numbers_of(p.seed, p.position, i);
        p.keys[i] = -log(1.0 - uniform(s)) / load<double>(p.from, p.dtype, i);
    }
}
ENTRY(weighted_keys)

struct Choices {
    void* to;
    void* logarithms;       // of the weights that were drawn, or null
    const void* from;       // weights: [rows][extent]
    const double* sums;     // running sums of rows
    const double* least;    // weight of each row
    i64 n, extent;
    Divisor each;    // choices of a row
    u64 seed, position;
    int dtype, to_dtype, logarithm_dtype;
    int scaled;    // whether weights are parts of their sum, and not of one
};
// The first place whose running sum is above a uniform number. The CPU adds one weight after the
// other, and sums of a block are rounded differently. Where that could decide, and where sums do not
// rise, the thread adds the weights itself; with probabilities this hardly ever happens.
KERNEL void __launch_bounds__(256, 2) draw_choices(Choices p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        Numbers s = numbers_of(p.seed, p.position, i);
        i64 row = i / p.each, base = row * p.extent, low = 0, high = p.extent;
        const double* sums = p.sums + base;
        double drawn = uniform(s), total = sums[p.extent - 1], at = p.scaled ? times_rounded(drawn, total) : drawn;
        ROLLED
        while (low < high) {
            i64 middle = (low + high) / 2;
            if (at < sums[middle])
                high = middle;
            else
                low = middle + 1;
        }
        // Each of `extent` additions rounds by 2^-53 of the total at most.
        double slack = total * (double)p.extent * 0x1p-50;
        bool is_sure = p.least[row] >= 0 && total < (double)infinity() && (low == 0 || at - sums[low - 1] > slack) &&
                       (low == p.extent || sums[low] - at > slack);
        if (!is_sure) {
            total = 0;
            ROLLED
            for (i64 k = 0; k < p.extent && p.scaled; k++) total += load<double>(p.from, p.dtype, base + k);
            if (p.scaled) at = times_rounded(drawn, total);
            double sum = 0;
            ROLLED
            for (low = 0; low < p.extent; low++) {
                sum += load<double>(p.from, p.dtype, base + low);
                if (at < sum) break;
            }
        }
        if (low == p.extent) low--;
        store<i64>(p.to, p.to_dtype, i, low);
        if (!p.logarithms) continue;
        store<double>(p.logarithms, p.logarithm_dtype, i, log(load<double>(p.from, p.dtype, base + low)));
    }
}
ENTRY(draw_choices)

// ---- Outcomes --------------------------------------------------------------------------------------

// Successes of which few are expected: the trials between two successes are drawn.
DEVICE double few_successes(Numbers& s, double trials, double p) {
    double failure = log1p(-p), passed = 0, count = 0;
    ROLLED
    for (;; count++) {
        passed += floor(log(1.0 - uniform(s)) / failure) + 1.0;
        if (!(passed <= trials)) return count;
    }
}
// Successes of `n` trials of probability `p`: Hoermann's transformed rejection BTRS (1993) where ten
// are expected.
DEVICE double binomial_number(Numbers& s, double n, double p) {
    bool turned = p > 0.5;
    if (turned) p = 1.0 - p;
    double k;
    if (n * p >= 10) {
        double q = 1.0 - p, deviation = sqrt(n * p * q), b = 1.15 + 2.53 * deviation;
        double a = -0.0873 + 0.0248 * b + 0.01 * p, alpha = (2.83 + 5.1 / b) * deviation, v_r = 0.92 - 4.2 / b;
        double mode = floor((n + 1.0) * p);
        ROLLED
        for (;;) {
            double u = uniform(s) - 0.5, v = 1.0 - uniform(s), us = 0.5 - fabs(u);
            k = floor((2.0 * a / us + b) * u + n * p + 0.5);
            if (!(k >= 0 && k <= n)) continue;
            if (us >= 0.07 && v <= v_r) break;
            double ways = lgamma(mode + 1.0) + lgamma(n - mode + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
            if (log(v * alpha / (a / (us * us) + b)) <= ways + (k - mode) * log(p / q)) break;
        }
    } else {
        k = few_successes(s, n, p);
    }
    return turned ? n - k : k;
}
struct Outcomes {
    i64* to;             // [rows][extent]
    const void* from;    // probabilities
    i64 rows, extent, trials;
    u64 seed, position;
    int dtype, unused;
};
// A thread draws a row: of the trials with none of the outcomes before, some have this one.
KERNEL void __launch_bounds__(256, 2) count_outcomes(Outcomes p) {
    ROLLED
    for (i64 row = first(); row < p.rows; row += stride()) {
        Numbers s = numbers_of(p.seed, p.position, row);
        double left = (double)p.trials, probability = 1;
        ROLLED
        for (i64 k = 0; k < p.extent; k++) {
            double weight = load<double>(p.from, p.dtype, k), share = weight / probability;
            double drawn = left == 0 ? 0 : binomial_number(s, left, share < 0 ? 0 : share > 1 ? 1 : share);
            left -= drawn, probability -= weight;
            // What the probabilities leave belongs to the last outcome.
            p.to[row * p.extent + k] = (i64)(k + 1 < p.extent ? drawn : drawn + left);
        }
    }
}
ENTRY(count_outcomes)
