// Elements in order along an axis: a bitonic sort of keys and positions, which no two elements
// share, so equal elements stay as they came. NaN comes last in either direction.
#pragma once
#include "types.h"

// Pairs that a block sorts in shared memory.
#define ORDER_CHUNK 1024
struct Order {
    u64* keys;    // [row][padded], and their positions
    u32* positions;
    const void* from;    // [outer][extent][inner]; a row for each outer and inner
    void* values;        // [outer][kept][inner] or null; of a mask like `from`
    void* places;        // [outer][kept][inner] or null
    i64 rows, extent;
    Divisor inner, padded;
    i64 kept;
    i64 stage, last;
    Divisor distance;    // of a step: rows of `stage` are sorted, up and down in turns
    int dtype, size, place_dtype, ascending, mask, unused;
};
// A number whose order is that of the elements.
DEVICE u64 order_key(const Order& p, i64 at) {
    const u64 high = 0x8000000000000000ull;
    u64 key;
    if (p.dtype == F32 || p.dtype == F64 || p.dtype == F16) {
        double v = load<double>(p.from, p.dtype, at) + 0.0;
        if (v != v) return ~0ull;
        key = bits_of(v);
        key = key & high ? ~key : key | high;
    } else {
        key = (u64)load<i64>(p.from, p.dtype, at) ^ high;
    }
    return p.ascending ? key : ~key;
}
KERNEL void __launch_bounds__(256, 2) order_fill(Order p) {
    ROLLED
    for (i64 i = first(); i < p.rows * p.padded; i += stride()) {
        i64 row = i / p.padded, position = i % p.padded;
        i64 at = (row / p.inner * p.extent + position) * p.inner + row % p.inner;
        p.keys[i] = position < p.extent ? order_key(p, at) : ~0ull;
        p.positions[i] = (u32)position;
    }
}
ENTRY(order_fill)

// Exchanges what lies at `low` and `high` if it is not in the order of the stage.
DEVICE void order_pair(u64* keys, u32* positions, i64 low, i64 high, bool up) {
    u64 a = keys[low], b = keys[high];
    u32 i = positions[low], j = positions[high];
    bool before = b < a || (b == a && j < i);
    if (before != up) return;
    keys[low] = b, keys[high] = a;
    positions[low] = j, positions[high] = i;
}
KERNEL void __launch_bounds__(256, 2) order_step(Order p) {
    ROLLED
    for (i64 i = first(); i < p.rows * p.padded / 2; i += stride()) {
        i64 low = i / p.distance * 2 * p.distance + i % p.distance;
        order_pair(p.keys, p.positions, low, low + p.distance, (low % p.padded & p.stage) == 0);
    }
}
ENTRY(order_step)
// All steps of stages `stage` to `last` that stay within a chunk.
KERNEL void __launch_bounds__(256, 2) order_chunks(Order p) {
    DYNAMIC_SHARED(u64, keys);
    u32* positions = (u32*)(keys + ORDER_CHUNK);
    i64 total = p.rows * p.padded;
    ROLLED
    for (i64 base = (i64)blockIdx.x * ORDER_CHUNK; base < total; base += (i64)gridDim.x * ORDER_CHUNK) {
        ROLLED
        for (int i = threadIdx.x; i < ORDER_CHUNK; i += 256) {
            bool inside = base + i < total;
            keys[i] = inside ? p.keys[base + i] : ~0ull;
            positions[i] = inside ? p.positions[base + i] : 0;
        }
        __syncthreads();
        ROLLED
        for (i64 stage = p.stage; stage <= p.last; stage *= 2) {
            ROLLED
            for (int d = stage < ORDER_CHUNK ? (int)stage / 2 : ORDER_CHUNK / 2; d; d /= 2) {
                ROLLED
                for (int i = threadIdx.x; i < ORDER_CHUNK / 2; i += 256) {
                    int low = i / d * 2 * d + i % d;
                    order_pair(keys, positions, low, low + d, ((base + low) % p.padded & stage) == 0);
                }
                __syncthreads();
            }
        }
        ROLLED
        for (int i = threadIdx.x; i < ORDER_CHUNK; i += 256) {
            if (base + i >= total) continue;
            p.keys[base + i] = keys[i];
            p.positions[base + i] = positions[i];
        }
    }
}
ENTRY_WITH_BARRIERS(order_chunks)

KERNEL void __launch_bounds__(256, 2) order_store(Order p) {
    Divisor each{p.mask ? p.extent : p.kept};
    ROLLED
    for (i64 i = first(); i < p.rows * each; i += stride()) {
        i64 row = i / each, rank = i % each, position = p.positions[row * p.padded + rank];
        i64 outer = row / p.inner, inner = row % p.inner;
        i64 from = (outer * p.extent + position) * p.inner + inner, to = (outer * p.kept + rank) * p.inner + inner;
        if (p.mask) {
            store<i64>(p.values, p.dtype, from, rank < p.kept);
            continue;
        }
        if (p.values) copy_element(p.values, to, p.from, from, p.size);
        if (p.places) store<i64>(p.places, p.place_dtype, to, position);
    }
}
ENTRY(order_store)
