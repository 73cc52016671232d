// Products on tensor cores: 256 threads make a tile of 64 x 64, each warp 16 x 32. Elements are
// rounded to 16 bits when they are read, and sums are in single precision.
#pragma once
#include "types.h"

// What elements are rounded to.
enum Rounded { HALF, BRAIN };
template <int R> DEVICE unsigned short rounded(float v) { return R == HALF ? to_half(v) : to_brain(v); }
#if !HALF_PRODUCTS
// Without tensor cores: lanes show each other their fragments, which lie as they do with them.
DEVICE void mma_half(float d[4], const u32 a[4], const u32 b[2]) {
    int row = threadIdx.x % 32 / 4 * 4, col = threadIdx.x % 4 * 8;
    ROLLED
    for (int k = 0; k < 8; k++) {
        int high = k / 4, from = k % 4;
        u32 up = shuffle(high ? a[2] : a[0], row + from), down = shuffle(high ? a[3] : a[1], row + from);
        u32 left = shuffle(b[high], col + from), right = shuffle(b[high], col + 4 + from);
        UNROLLED
        for (int bits = 0; bits < 32; bits += 16) {
            float u = load_half(up >> bits), v = load_half(down >> bits);
            float x = load_half(left >> bits), y = load_half(right >> bits);
            d[0] += u * x, d[1] += u * y, d[2] += v * x, d[3] += v * y;
        }
    }
}
#endif
#if !MATRIX_LOADS
// Lanes show each other where their rows begin.
DEVICE const unsigned short* shown(const unsigned short* row, int lane) {
    u64 high = shuffle((u32)((u64)row >> 32), lane), low = shuffle((u32)(u64)row, lane);
    return (const unsigned short*)(high << 32 | low);
}
DEVICE void load_matrices(u32 to[4], const unsigned short* row) {
    int lane = threadIdx.x % 32;
    UNROLLED
    for (int i = 0; i < 4; i++) to[i] = *(const u32*)(shown(row, i * 8 + lane / 4) + lane % 4 * 2);
}
DEVICE void load_turned(u32 to[4], const unsigned short* row) {
    int lane = threadIdx.x % 32;
    UNROLLED
    for (int i = 0; i < 4; i++) {
        u32 low = shown(row, i * 8 + lane % 4 * 2)[lane / 4], high = shown(row, i * 8 + lane % 4 * 2 + 1)[lane / 4];
        to[i] = low | high << 16;
    }
}
#endif
template <int R> DEVICE void mma(float d[4], const u32 a[4], const u32 b[2]) {
#if BRAIN_PRODUCTS
    if (R == BRAIN) return mma_brain(d, a, b);
#endif
    mma_half(d, a, b);
}

#define CORE_TILE 64
#define CORE_DEPTH 32
// Between rows of shared memory: the lanes of a warp read from 32 banks.
#define CORE_PITCH 40

// As `tile` of product.h. With `deep_b` neighbouring threads read b along the depth, else along a row.
template <int R, class A, class B, class Out>
DEVICE void core_tile(i64 row0, i64 col0, i64 m, i64 n, i64 k, bool deep_b, A a, B b, Out out) {
    DYNAMIC_SHARED(unsigned short, as);
    unsigned short* bs = as + CORE_TILE * CORE_PITCH;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
    int row1 = warp / 2 * 16, col1 = warp % 2 * 32;
    float sum[4][4] = {};
    for (i64 k0 = 0; k0 < k; k0 += CORE_DEPTH) {
        UNROLLED_BY_2
        for (int i = 0; i < CORE_TILE * CORE_DEPTH / 256; i++) {
            int at = threadIdx.x + 256 * i, deep = at % CORE_DEPTH, row = at / CORE_DEPTH;
            bool inside = row0 + row < m && k0 + deep < k;
            as[row * CORE_PITCH + deep] = rounded<R>(inside ? a(row0 + row, k0 + deep) : 0.0f);
            int col = deep_b ? at / CORE_DEPTH : at % CORE_TILE;
            deep = deep_b ? at % CORE_DEPTH : at / CORE_TILE;
            inside = col0 + col < n && k0 + deep < k;
            bs[col * CORE_PITCH + deep] = rounded<R>(inside ? b(k0 + deep, col0 + col) : 0.0f);
        }
        __syncthreads();
        UNROLLED
        for (int q = 0; q < CORE_DEPTH; q += 16) {
            auto two = [&](const unsigned short* from, int row, int high) -> u32 {
                return *(const u32*)(from + row * CORE_PITCH + q + pair * 2 + high * 8);
            };
            u32 left[4], right[2];
            UNROLLED
            for (int i = 0; i < 4; i++) left[i] = two(as, row1 + group + i % 2 * 8, i / 2);
            UNROLLED
            for (int j = 0; j < 4; j++) {
                right[0] = two(bs, col1 + j * 8 + group, 0);
                right[1] = two(bs, col1 + j * 8 + group, 1);
                mma<R>(sum[j], left, right);
            }
        }
        __syncthreads();
    }
    UNROLLED
    for (int j = 0; j < 4; j++)
        UNROLLED
        for (int i = 0; i < 4; i++) {
            i64 row = row0 + row1 + group + i / 2 * 8, col = col0 + col1 + j * 8 + pair * 2 + i % 2;
            if (row < m && col < n) out(row, col, sum[j][i]);
        }
}
