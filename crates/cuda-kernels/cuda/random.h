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
DEVICE double uniform(Numbers& s) { return (double)(next_long(s) >> 11) * (1.0 / 9007199254740992.0); }
DEVICE double normal(Numbers& s) {
    double u = uniform(s), v = uniform(s);
    return sqrt(-2.0 * log(1.0 - u)) * cos(6.283185307179586 * v);
}

enum Distribution { UNIFORM, NORMAL, EXPONENTIAL, INTEGERS };
struct Random {
    void* to;
    i64 n, low;
    u64 seed, position, count;
    double a, b;
    int distribution, dtype;
};
KERNEL void __launch_bounds__(256) random_numbers(Random p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        Numbers s = numbers_of(p.seed, p.position, i);
        switch (p.distribution) {
            case UNIFORM: store<double>(p.to, p.dtype, i, p.a + (p.b - p.a) * uniform(s)); break;
            case NORMAL: store<double>(p.to, p.dtype, i, p.a + p.b * normal(s)); break;
            case EXPONENTIAL: store<double>(p.to, p.dtype, i, -log(1.0 - uniform(s)) / p.a); break;
            default: {
                // The high half of the product of 64 bits and the number of integers.
                u64 bits = next_long(s), lo = bits & 0xffffffffu, hi = bits >> 32;
                u64 rlo = p.count & 0xffffffffu, rhi = p.count >> 32;
                u64 mid = hi * rlo + (lo * rlo >> 32), mid2 = lo * rhi + (mid & 0xffffffffu);
                store<i64>(p.to, p.dtype, i, (i64)((u64)p.low + hi * rhi + (mid >> 32) + (mid2 >> 32)));
            }
        }
    }
}
ENTRY(random_numbers)
