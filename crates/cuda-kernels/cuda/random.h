// Random numbers from counters, the same as those of the CPU: Philox4x32-10.
#pragma once
#include "elementwise.h"

struct Numbers {
    u32 counter[4], key[2], block[4];
    int used;
};
DEVICE Numbers numbers_of(u64 seed, u64 position, u64 element) {
    Numbers s;
    s.counter[0] = 0;
    s.counter[1] = (u32)element;
    s.counter[2] = ((u32)(element >> 32) & 0xffff) | (u32)position << 16;
    s.counter[3] = (u32)(position >> 16);
    s.key[0] = (u32)seed;
    s.key[1] = (u32)(seed >> 32);
    s.used = 4;
    return s;
}
DEVICE u32 next_bits(Numbers& s) {
    if (s.used == 4) {
        u32 c[4] = {s.counter[0], s.counter[1], s.counter[2], s.counter[3]}, k[2] = {s.key[0], s.key[1]};
        for (int round = 0; round < 10; round++) {
            u64 a = 0xd2511f53ull * c[0], b = 0xcd9e8d57ull * c[2];
            u32 c1 = c[1], c3 = c[3];
            c[0] = (u32)(b >> 32) ^ c1 ^ k[0];
            c[1] = (u32)b;
            c[2] = (u32)(a >> 32) ^ c3 ^ k[1];
            c[3] = (u32)a;
            k[0] += 0x9e3779b9u;
            k[1] += 0xbb67ae85u;
        }
        for (int i = 0; i < 4; i++) s.block[i] = c[i];
        s.counter[0]++;
        s.used = 0;
    }
    return s.block[s.used++];
}
DEVICE u64 next_long(Numbers& s) {
    u64 low = next_bits(s);
    return low | (u64)next_bits(s) << 32;
}
// The high half of a product.
DEVICE u64 high_half(u64 a, u64 b) {
    u64 lo = a & 0xffffffffu, hi = a >> 32, b_lo = b & 0xffffffffu, b_hi = b >> 32;
    u64 mid = hi * b_lo + (lo * b_lo >> 32), mid2 = lo * b_hi + (mid & 0xffffffffu);
    return hi * b_hi + (mid >> 32) + (mid2 >> 32);
}
DEVICE double uniform(Numbers& s) { return (double)(next_long(s) >> 11) * (1.0 / 9007199254740992.0); }
DEVICE double normal(Numbers& s) {
    double u = uniform(s), v = uniform(s);
    return sqrt(-2.0 * log(1.0 - u)) * cos(6.283185307179586 * v);
}

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
DEVICE double gamma_number(Numbers& s, double alpha) {
    const double end = (double)infinity();
    if (!(alpha > 0) || alpha == end) return alpha >= 0 ? alpha : end - end;
    double boost = 1;
    if (alpha < 1) {
        boost = pow(1.0 - uniform(s), 1.0 / alpha);
        alpha += 1;
    }
    double d = alpha - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    ROLLED
    for (;;) {
        double x = normal(s), root = 1.0 + c * x, v = root * root * root;
        if (v > 0 && log(1.0 - uniform(s)) < 0.5 * x * x + d - d * v + d * log(v)) return d * v * boost;
    }
}
// Products of uniforms below 10, above it Hoermann's transformed rejection PTRS (1993).
DEVICE double poisson_number(Numbers& s, double mean) {
    const double end = (double)infinity();
    if (!(mean > 0) || mean == end) return mean <= 0 ? 0 : mean;
    if (mean < 10) {
        double limit = exp(-mean), product = uniform(s), count = 0;
        ROLLED
        for (; product > limit; count++) product *= uniform(s);
        return count;
    }
    double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2.0);
    ROLLED
    for (;;) {
        double u = uniform(s) - 0.5, v = 1.0 - uniform(s), us = 0.5 - fabs(u);
        double k = floor((2.0 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= v_r) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v * inverse_alpha / (a / (us * us) + b)) <= -mean + k * log(mean) - lgamma(k + 1.0)) return k;
    }
}

enum Distribution { UNIFORM, NORMAL, EXPONENTIAL, GAMMA, POISSON, BINOMIAL, GENERAL_BINOMIAL, INTEGERS };
struct Random {
    void* to;
    const void* parameters[2];    // null: `a` and `b`
    i64 n, low;
    u64 seed, position, count;
    double a, b;
    Divisor each;    // numbers of each parameter
    int distribution, dtype, parameter_dtype, unused;
};
KERNEL void __launch_bounds__(256, 2) random_numbers(Random p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        if (p.parameters[0]) {
            p.a = load<double>(p.parameters[0], p.parameter_dtype, i / p.each);
            p.b = load<double>(p.parameters[1], p.parameter_dtype, i / p.each);
        }
        Numbers s = numbers_of(p.seed, p.position, i);
        switch (p.distribution) {
            // No sum is joined with its product: the CPU rounds both.
            case UNIFORM:
                store<double>(p.to, p.dtype, i, plus_rounded(p.a, times_rounded(p.b - p.a, uniform(s))));
                break;
            case NORMAL: store<double>(p.to, p.dtype, i, plus_rounded(p.a, times_rounded(p.b, normal(s)))); break;
            case EXPONENTIAL: store<double>(p.to, p.dtype, i, -log(1.0 - uniform(s)) / p.a); break;
            case GAMMA: store<double>(p.to, p.dtype, i, p.b * gamma_number(s, p.a)); break;
            case POISSON: store<double>(p.to, p.dtype, i, poisson_number(s, p.a)); break;
            case BINOMIAL:
                store<double>(p.to, p.dtype, i, poisson_number(s, gamma_number(s, p.a) * (1.0 - p.b) / p.b));
                break;
            case GENERAL_BINOMIAL:
                store<double>(p.to, p.dtype, i, poisson_number(s, p.b == 0 ? p.a : gamma_number(s, 1.0 / p.b) * p.b * p.a));
                break;
            default: store<i64>(p.to, p.dtype, i, (i64)((u64)p.low + high_half(next_long(s), p.count)));
        }
    }
}
ENTRY(random_numbers)
