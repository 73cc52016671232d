// Densities of distributions, or their logarithms, in double precision.
#pragma once
#include "random.h"

DEVICE double density_logarithm(int distribution, double x, double a, double b) {
    switch (distribution) {
        case UNIFORM: return -log(b - a);
        case NORMAL: return -0.5 * (x - a) * (x - a) / (b * b) - log(2.5066282746310002 * b);
        case EXPONENTIAL: return log(a) - a * x;
        case GAMMA: return a * log(b) + (a - 1) * log(x) - b * x - lgamma(a);
        case POISSON: return x * log(a) - lgamma(x + 1) - a;
        case GENERAL_BINOMIAL: {
            // Mean and dispersion give failures and their probability.
            double failures = 1 / b;
            b = 1 / (a * b + 1), a = failures;
        }
    }
    return lgamma(x + a) - lgamma(x + 1) - lgamma(a) + a * log(b) + x * log(1 - b);
}
struct Densities {
    void* to;
    const void* samples;
    const void* parameters[2];
    i64 n;
    Divisor each;    // samples of each parameter
    int distribution, dtype, log, unused;
};
KERNEL void __launch_bounds__(256, 2) densities(Densities p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        double x = load<double>(p.samples, p.dtype, i), v;
        double a = load<double>(p.parameters[0], p.dtype, i / p.each);
        double b = load<double>(p.parameters[1], p.dtype, i / p.each);
        // Without a logarithm where there needs to be none.
        if (!p.log && p.distribution == UNIFORM)
            v = 1 / (b - a);
        else if (!p.log && p.distribution == NORMAL)
            v = exp(-0.5 * (x - a) * (x - a) / (b * b)) / (2.5066282746310002 * b);
        else if (!p.log && p.distribution == EXPONENTIAL)
            v = a * exp(-a * x);
        else
            v = density_logarithm(p.distribution, x, a, b), v = p.log ? v : exp(v);
        store<double>(p.to, p.dtype, i, v);
    }
}
ENTRY(densities)

struct Dirichlet {
    void* to;
    const void* samples;    // [n][extent]
    const void* alpha;      // [n / each][extent]
    i64 n, extent;
    Divisor each;    // samples of each distribution
    int dtype, log;
};
// A warp for each sample.
KERNEL void __launch_bounds__(256, 2) dirichlet(Dirichlet p) {
    ROLLED
    for (i64 i = first() / 32; i < p.n; i += stride() / 32) {
        i64 sample = i * p.extent, alpha = i / p.each * p.extent;
        double weighted = 0, total = 0, gammas = 0;
        ROLLED
        for (i64 k = threadIdx.x % 32; k < p.extent; k += 32) {
            double a = load<double>(p.alpha, p.dtype, alpha + k);
            weighted += (a - 1) * log(load<double>(p.samples, p.dtype, sample + k));
            total += a, gammas += lgamma(a);
        }
        ROLLED
        for (int lanes = 16; lanes; lanes /= 2) {
            weighted += shuffle_xor(weighted, lanes), total += shuffle_xor(total, lanes);
            gammas += shuffle_xor(gammas, lanes);
        }
        double v = weighted + (lgamma(total) - gammas);
        if (threadIdx.x % 32 == 0) store<double>(p.to, p.dtype, i, p.log ? v : exp(v));
    }
}
ENTRY_WITH_BARRIERS(dirichlet)
