// Products and convolutions of halves on Hopper's warpgroup instructions. A block works through tiles
// of 128 rows: one warpgroup copies steps of both operands ahead, two make 64 rows of sums each.
// Barriers in shared memory say which steps are full and which are empty, so copies for the next tile
// begin while the last one is written.
#pragma once
#include "tiles.h"

#if WARPGROUPS
// Depth of a step: rows of 128 bytes.
#define GROUP_STEP 64
#define GROUP_ROWS 128
// Steps in shared memory, and how many are copied before the first of them is waited for.
#define GROUP_STAGES 6
#define GROUP_AHEAD 3

// Where a piece lies in rows of 128 bytes.
DEVICE int swizzled(int row, int piece) { return row * 64 + (piece ^ row % 8) * 8; }

// ---- operands: what a thread of the 128 that copy takes of a step --------------------------------

// Rows whose depth lies together.
template <int ROWS> struct GroupRows {
    const unsigned short* at;
    i64 pitch;
    int left, depth;    // rows, and what is left of the depth
    SPECIAL GroupRows(const unsigned short* base, i64 pitch, int rows, int depth)
        : at(base + threadIdx.x / 8 * pitch + threadIdx.x % 8 * 8), pitch(pitch), left(rows - (int)threadIdx.x / 8),
          depth(depth - (int)threadIdx.x % 8 * 8) {}
    SPECIAL void copy(unsigned short* to) {
        const unsigned short* from = at;
        to += swizzled(threadIdx.x / 8, threadIdx.x % 8);
        UNROLLED
        for (int i = 0; i < ROWS; i += 16, from += 16 * pitch)
            copy_async(to + i * GROUP_STEP, depth > 0 && i < left ? from : nullptr);
        at += GROUP_STEP, depth -= GROUP_STEP;
    }
};
// Rows that are the depth, with columns that lie together; 64 of these are a matrix of their own.
template <int COLS> struct GroupColumns {
    enum { WIDE = COLS / 8, APART = 128 / WIDE };
    const unsigned short* at;
    i64 pitch;
    int depth;
    bool inside;
    SPECIAL GroupColumns(const unsigned short* base, i64 pitch, int cols, int depth)
        : at(base + threadIdx.x / WIDE * pitch + threadIdx.x % WIDE * 8), pitch(pitch),
          depth(depth - (int)threadIdx.x / WIDE), inside((int)threadIdx.x % WIDE * 8 < cols) {}
    SPECIAL void copy(unsigned short* to) {
        int row = threadIdx.x / WIDE, piece = threadIdx.x % WIDE;
        to += piece / 8 * GROUP_STEP * 64;
        UNROLLED
        for (int i = 0; i < GROUP_STEP; i += APART, at += APART * pitch)
            copy_async(to + swizzled(row + i, piece % 8), inside && i < depth ? at : nullptr);
        depth -= GROUP_STEP;
    }
};
// Rows that are pixels of the result. The taps of the filter that lie inside are bits.
struct GroupPixels {
    enum { COUNT = GROUP_ROWS / 16 };
    const unsigned short* at[COUNT];    // where tap 0 would read
    u32 inside[COUNT];
    const Convolution& p;
    int pitch, channel, tap, tap_y, tap_x;    // pitch: between pixels
    SPECIAL GroupPixels(const Convolution& p, const unsigned short* base, int row)
        : p(p), pitch(p.groups * (int)p.channels), channel(threadIdx.x % 8 * 8), tap(0), tap_y(0), tap_x(0) {
        int pixels = p.out[1] * p.out[2], rows = (int)p.images * pixels;
        row += threadIdx.x / 8;
        UNROLLED
        for (int i = 0; i < COUNT; i++, row += 16) {
            int image = row / pixels, pixel = row % pixels;
            int y = pixel / p.out[2] * p.step[1] - p.pad[1], x = pixel % p.out[2] * p.step[2] - p.pad[2];
            at[i] = base + (((i64)image * p.size[1] + y) * p.size[2] + x) * pitch;
            inside[i] = row < rows ? taps(y, x) : 0;
        }
        carry();
    }
    SPECIAL u32 taps(int y, int x) const {
        u32 across = 0, bits = 0;
        ROLLED
        for (int i = 0; i < p.kernel[2]; i++, x += p.dilate[2]) across |= (u32)((u32)x < (u32)p.size[2]) << i;
        ROLLED
        for (int at = 0; at < p.kernel[1] * p.kernel[2]; at += p.kernel[2], y += p.dilate[1])
            bits |= (u32)y < (u32)p.size[1] ? across << at : 0;
        return bits;
    }
    SPECIAL void carry() {
        ROLLED
        while (channel >= (int)p.channels) {
            channel -= (int)p.channels, tap++;
            if (++tap_x == p.kernel[2]) tap_x = 0, tap_y++;
        }
    }
    SPECIAL void copy(unsigned short* to) {
        i64 moved = (i64)(tap_y * p.dilate[1] * p.size[2] + tap_x * p.dilate[2]) * pitch + channel;
        to += swizzled(threadIdx.x / 8, threadIdx.x % 8);
        UNROLLED
        for (int i = 0; i < COUNT; i++)
            copy_async(to + i * 16 * GROUP_STEP, inside[i] >> tap & 1 ? at[i] + moved : nullptr);
        channel += GROUP_STEP;
        carry();
    }
};

// ---- steps in shared memory ----------------------------------------------------------------------

// Stages of both operands, and their barriers.
template <int COLS> struct GroupStages {
    enum { SIZE = (GROUP_ROWS + COLS) * GROUP_STEP };
    unsigned short* steps;
    u64 *full, *empty;
    u32 turn;    // steps so far
    SPECIAL GroupStages(unsigned char* memory) : turn(0) {
        steps = swizzled_memory(memory);
        full = (u64*)(steps + GROUP_STAGES * SIZE), empty = full + GROUP_STAGES;
        if (threadIdx.x == 0)
            for (int s = 0; s < GROUP_STAGES; s++) barrier_init(full + s, 4), barrier_init(empty + s, 8);
        __syncthreads();
    }
    SPECIAL unsigned short* a(u32 turn) const { return steps + turn % GROUP_STAGES * SIZE; }
    SPECIAL unsigned short* b(u32 turn) const { return a(turn) + GROUP_ROWS * GROUP_STEP; }
    SPECIAL static void arrive(u64* at) {
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(at);
    }
    // Of the warpgroup that copies. The first pass through the stages finds them empty.
    template <class A, class B> SPECIAL void fill(A& a_rows, B& b_rows) {
        barrier_wait(empty + turn % GROUP_STAGES, turn / GROUP_STAGES % 2 ^ 1);
        a_rows.copy(a(turn)), b_rows.copy(b(turn));
        copy_commit();
        if (turn >= GROUP_AHEAD) show<GROUP_AHEAD>(turn - GROUP_AHEAD);
        turn++;
    }
    template <int LEFT> SPECIAL void show(u32 turn) const {
        copy_wait<LEFT>();
        show_products();
        arrive(full + turn % GROUP_STAGES);
    }
    SPECIAL void end_copies() const {
        if (turn > 2) show<2>(turn - 3);
        if (turn > 1) show<1>(turn - 2);
        if (turn > 0) show<0>(turn - 1);
    }
    // Of those that make sums.
    SPECIAL void wait_full() const { barrier_wait(full + turn % GROUP_STAGES, turn / GROUP_STAGES % 2); }
    SPECIAL void end_read() { arrive(empty + turn++ % GROUP_STAGES); }
};

// Sums of a warpgroup's 64 rows over all steps of a tile.
template <int COLS, int TURNED>
DEVICE void group_sums(float (&d)[COLS / 8][4], GroupStages<COLS>& stages, int row, int steps) {
    ROLLED
    for (int s = 0; s < steps; s++) {
        stages.wait_full();
        const unsigned short* a = stages.a(stages.turn) + row * GROUP_STEP;
        const unsigned short* b = stages.b(stages.turn);
        warpgroup_fence(d);
        UNROLLED
        for (int q = 0; q < GROUP_STEP; q += 16)
            warpgroup_mma<COLS, TURNED>(d, deep_matrix(a + q),
                                        TURNED ? wide_matrix(b + q * 64, GROUP_STEP * 128) : deep_matrix(b + q));
        warpgroup_commit();
        // The other warpgroup multiplies meanwhile. To wait for a later step would keep this one full.
        warpgroup_wait();
        stages.end_read();
    }
    warpgroup_fence(d);
}

// All tiles of a block. `fill` copies the steps of one.
template <bool FUNCTIONS, int COLS, int TURNED, class Fill>
DEVICE void group_tiles(const Parts& parts, const Epilogue& e, const Results& results, int steps, Fill fill) {
    DYNAMIC_SHARED(unsigned char, memory);
    GroupStages<COLS> stages(memory);
    int columns = (results.columns + COLS - 1) / COLS, tiles = (results.rows + GROUP_ROWS - 1) / GROUP_ROWS * columns;
    if (threadIdx.x < 128) {
        fewer_registers<104>();
        ROLLED
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
            fill(stages, tile / columns * GROUP_ROWS, tile % columns * COLS);
        return stages.end_copies();
    }
    more_registers<200>();
    int warp = threadIdx.x / 32 - 4, lane = threadIdx.x % 32, row = warp / 4 * 64;
    ROLLED
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float d[COLS / 8][4] = {};
        group_sums<COLS, TURNED>(d, stages, row, steps);
        int row0 = tile / columns * GROUP_ROWS + row + warp % 4 * 16 + lane / 4;
        Sums<F16, COLS / 32, 2, CoreSpread> made;
        UNROLLED
        for (int i = 0; i < COLS / 16; i++) turn_quad(d + i / 2 * 4, i % 2, made.piece(i / 2, i % 2));
        made.template write<FUNCTIONS>(parts, e, results, row0, tile % columns * COLS + lane % 4 * 8);
    }
}

template <int COLS, int TURNED> DEVICE void warpgroup_product(const Product& p) {
    typedef unsigned short E;
    int batch = blockIdx.z;
    auto base = [&](const i64* steps) -> i64 { return base_of(steps, batch, p.inner); };
    const E *a0 = (const E*)p.a + base(p.a_steps), *b0 = (const E*)p.b + base(p.b_steps);
    int m = (int)p.m, n = (int)p.n, k = (int)p.k, steps = (k + GROUP_STEP - 1) / GROUP_STEP;
    auto fill = [&](GroupStages<COLS>& stages, int row, int col) {
        GroupRows<GROUP_ROWS> a(a0 + row * p.a_steps[2], p.a_steps[2], m - row, k);
        if (TURNED) {
            GroupColumns<COLS> b(b0 + col, p.b_steps[2], n - col, k);
            ROLLED
            for (int s = 0; s < steps; s++) stages.fill(a, b);
        } else {
            GroupRows<COLS> b(b0 + col * p.b_steps[3], p.b_steps[3], n - col, k);
            ROLLED
            for (int s = 0; s < steps; s++) stages.fill(a, b);
        }
    };
    group_tiles<true, COLS, TURNED>(p.parts, p.epilogue, results_of<F16>(p, batch), steps, fill);
}

template <int COLS> DEVICE void warpgroup_convolution(const Convolution& p) {
    typedef unsigned short E;
    int group = blockIdx.z, channels = (int)p.channels, n = (int)p.filters;
    int depth = channels * p.kernel[1] * p.kernel[2], steps = (depth + GROUP_STEP - 1) / GROUP_STEP;
    i64 filters = (i64)p.groups * n;
    auto fill = [&](GroupStages<COLS>& stages, int row, int col) {
        GroupPixels a(p, (const E*)p.from + group * channels, row);
        GroupColumns<COLS> b((const E*)p.weight + group * n + col, filters, n - col, depth);
        ROLLED
        for (int s = 0; s < steps; s++) stages.fill(a, b);
    };
    group_tiles<false, COLS, 1>(p.parts, p.epilogue, results_of<F16>(p, group), steps, fill);
}

#define WARPGROUP_KERNEL __launch_bounds__(384, 1)
KERNEL void WARPGROUP_KERNEL warpgroup_deep_product(Product p) { warpgroup_product<128, 0>(p); }
KERNEL void WARPGROUP_KERNEL warpgroup_wide_product(Product p) { warpgroup_product<128, 1>(p); }
KERNEL void WARPGROUP_KERNEL warpgroup_convolution_64(Convolution p) { warpgroup_convolution<64>(p); }
KERNEL void WARPGROUP_KERNEL warpgroup_convolution_128(Convolution p) { warpgroup_convolution<128>(p); }
ENTRY_WITH_BARRIERS(warpgroup_deep_product)
ENTRY_WITH_BARRIERS(warpgroup_wide_product)
ENTRY_WITH_BARRIERS(warpgroup_convolution_64)
ENTRY_WITH_BARRIERS(warpgroup_convolution_128)
#endif
