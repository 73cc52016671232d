// Products, and convolutions with channels last, of operands whose elements lie together by 16 bytes:
// a block makes a tile of 128 x 128 or 64 x 64. Its threads copy pieces of 16 bytes some steps ahead
// of the sums. A product that has few tiles is cut along its depth into parts, which `sum_parts` adds.
#pragma once
#include "product.h"

// Depth of a step: of elements of 16 bits, and of numbers of single precision.
#define CORE_STEP 32
#define SINGLE_STEP 8
// Steps in shared memory at a time.
#define STAGES 3

// What a thread copies of an operand: pieces of 16 bytes in rows that are `apart`. A piece that lies
// outside counts as zeros. `step` goes on to the next step.
template <class E, int COUNT> struct DeepRows {    // the depth lies together
    const E* at[COUNT];
    int k, end;
    SPECIAL DeepRows(const E* base, i64 pitch, int row, int apart, int rows, int k, int end) : k(k), end(end) {
        UNROLLED
        for (int i = 0; i < COUNT; i++)
            at[i] = row + i * apart < rows ? base + (i64)(row + i * apart) * pitch : nullptr;
    }
    SPECIAL const E* piece(int i) const { return k < end && at[i] ? at[i] + k : nullptr; }
    SPECIAL void step(int by) { k += by; }
};
template <class E, int COUNT> struct WideRows {    // rows are the depth, columns lie together
    const E* at;
    i64 pitch;
    int k, end, apart;
    bool inside;
    SPECIAL WideRows(const E* base, i64 pitch, int k, int apart, int end, int col, int cols)
        : at(base + k * pitch + col), pitch(pitch), k(k), end(end), apart(apart), inside(col < cols) {}
    SPECIAL const E* piece(int i) const {
        return inside && k + i * apart < end ? at + i * apart * pitch : nullptr;
    }
    SPECIAL void step(int by) { k += by, at += by * pitch; }
};
// Rows are pixels of the result, the depth taps and the channels that each of them reads.
template <class E, int COUNT> struct PixelRows {
    const E* at[COUNT];    // where tap 0 would read
    int y[COUNT], x[COUNT];
    const Convolution& p;
    i64 pitch;    // between pixels
    int channel, tap_y, tap_x, k, end;
    SPECIAL PixelRows(const Convolution& p, const E* base, int row, int apart, int k, int end)
        : p(p), pitch((i64)p.groups * p.channels), k(k), end(end) {
        int channels = (int)p.channels, tap = k / channels;
        channel = k % channels, tap_y = tap / p.kernel[2], tap_x = tap % p.kernel[2];
        int pixels = p.out[1] * p.out[2], rows = (int)p.images * pixels;
        UNROLLED
        for (int i = 0; i < COUNT; i++) {
            int pixel = row + i * apart, image = pixel / pixels;
            pixel %= pixels;
            // No tap of a row that there is not lies inside.
            y[i] = row + i * apart < rows ? pixel / p.out[2] * p.step[1] - p.pad[1] : -(1 << 30);
            x[i] = pixel % p.out[2] * p.step[2] - p.pad[2];
            at[i] = base + (((i64)image * p.size[1] + y[i]) * p.size[2] + x[i]) * pitch;
        }
    }
    SPECIAL const E* piece(int i) const {
        int down = tap_y * p.dilate[1], right = tap_x * p.dilate[2];
        bool inside = k < end && (u32)(y[i] + down) < (u32)p.size[1] && (u32)(x[i] + right) < (u32)p.size[2];
        return inside ? at[i] + (down * p.size[2] + right) * pitch + channel : nullptr;
    }
    SPECIAL void step(int by) {
        k += by, channel += by;
        while (channel >= (int)p.channels) {
            channel -= (int)p.channels;
            if (++tap_x == p.kernel[2]) tap_x = 0, tap_y++;
        }
    }
};

template <class E, class Rows> DEVICE void copy_piece(E* to, const Rows& rows, int i) { copy_async(to, rows.piece(i)); }
template <class Rows> DEVICE float4 four(const Rows& rows) {
    const float* at = rows.piece(0);
    return at ? *(const float4*)at : float4{0, 0, 0, 0};
}
// Four numbers of a row as a column.
DEVICE void turn(float* to, int pitch, float4 v) {
    to[0] = v.x, to[pitch] = v.y, to[2 * pitch] = v.z, to[3 * pitch] = v.w;
}

// ---- 16 bits, on tensor cores --------------------------------------------------------------------

// Where a piece lies in shared memory: eight rows that are read together are in different banks.
DEVICE int deep_place(int row, int piece) { return row * CORE_STEP + (piece ^ (row >> 1 & 3)) * 8; }
template <int COLS> DEVICE int wide_place(int k, int piece) { return k * COLS + (piece ^ (k & 7)) * 8; }

// SIDE: rows and columns of the tile. Each warp makes SIDE / 2 x 32 of them.
template <int SIDE, bool DEEP_B, class A, class B, class Out> DEVICE void core_sums(A a, B b, int steps, Out out) {
    const int THREADS = SIDE * 2, ACROSS = SIDE / 32, DOWN = SIDE / 32, SIZE = SIDE * CORE_STEP;
    DYNAMIC_SHARED(unsigned short, stages);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row1 = warp / ACROSS * (SIDE / 2), col1 = warp % ACROSS * 32;
    float sum[DOWN][4][4] = {};
    auto fetch = [&](int stage) {
        unsigned short* as = stages + stage * 2 * SIZE;
        UNROLLED
        for (int i = 0; i < 2; i++) {
            int at = threadIdx.x + i * THREADS;
            copy_piece(as + deep_place(at / 4, at % 4), a, i);
            int to = DEEP_B ? deep_place(at / 4, at % 4) : wide_place<SIDE>(at / (SIDE / 8), at % (SIDE / 8));
            copy_piece(as + SIZE + to, b, i);
        }
        a.step(CORE_STEP), b.step(CORE_STEP);
    };
    UNROLLED
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) fetch(s);
        copy_commit();
    }
    int stage = 0, next = STAGES - 1;
    ROLLED
    for (int s = 0; s < steps; s++) {
        copy_wait<STAGES - 2>();
        __syncthreads();
        // What this overwrites all threads have read before the barrier.
        if (s + STAGES - 1 < steps) fetch(next);
        copy_commit();
        const unsigned short* as = stages + stage * 2 * SIZE;
        const unsigned short* bs = as + SIZE;
        UNROLLED
        for (int q = 0; q < CORE_STEP / 16; q++) {
            u32 left[DOWN][4], right[2][4];
            UNROLLED
            for (int i = 0; i < DOWN; i++)
                load_matrices(left[i], as + deep_place(row1 + i * 16 + lane % 16, q * 2 + lane / 16));
            UNROLLED
            for (int j = 0; j < 2; j++) {
                int col = col1 + j * 16, high = lane / 8 % 2;
                if (DEEP_B)
                    load_matrices(right[j], bs + deep_place(col + lane / 16 * 8 + lane % 8, q * 2 + high));
                else
                    load_turned(right[j], bs + wide_place<SIDE>(q * 16 + lane % 16, col / 8 + lane / 16));
            }
            UNROLLED
            for (int i = 0; i < DOWN; i++)
                UNROLLED
                for (int j = 0; j < 4; j++) mma_half(sum[i][j], left[i], right[j / 2] + j % 2 * 2);
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }
    Sums<F16, 1, DOWN * 2, CoreSpread> made;
    UNROLLED
    for (int i = 0; i < DOWN * 2; i++) turn_quad(sum[i / 2], i % 2, made.piece(0, i));
    out.template write<F16>(made, row1 + lane / 4, col1 + lane % 4 * 8);
}

// ---- single precision ----------------------------------------------------------------------------

template <int SIDE> struct SingleSpread {
    static SPECIAL int row(int i) { return i / 4 * (SIDE / 2) + i % 4; }
    static SPECIAL int col(int) { return 0; }
};
// Each thread makes 8 rows of 8 columns (of 4 in a small tile), in groups of four. A small tile adds
// sums of two steps to those before, which rounds less than a long row of additions; in a large one
// there are no registers for that.
template <int SIDE, bool DEEP_B, class A, class B, class Out> DEVICE void single_sums(A a, B b, int steps, Out out) {
    const int PITCH = SIDE + 4, SIZE = SINGLE_STEP * PITCH, GROUPS = SIDE / 64, PER_ROW = SIDE / 4;
    DYNAMIC_SHARED(float, stages);
    int tx = threadIdx.x % 16 * 4, ty = threadIdx.x / 16 * 4, row = threadIdx.x / 2, k = threadIdx.x % 2 * 4;
    float sum[8][GROUPS * 4] = {}, before[8][GROUPS * 4] = {};
    auto join = [&]() {
        UNROLLED
        for (int i = 0; i < 8; i++)
            UNROLLED
            for (int j = 0; j < GROUPS * 4; j++) before[i][j] += sum[i][j], sum[i][j] = 0;
    };
    float4 from_a, from_b;
    auto fetch = [&]() {
        from_a = four(a), from_b = four(b);
        a.step(SINGLE_STEP), b.step(SINGLE_STEP);
    };
    auto keep = [&](int stage) {
        float* as = stages + stage * 2 * SIZE;
        float* bs = as + SIZE;
        turn(as + k * PITCH + row, PITCH, from_a);
        if (DEEP_B)
            turn(bs + k * PITCH + row, PITCH, from_b);
        else
            *(float4*)(bs + threadIdx.x / PER_ROW * PITCH + threadIdx.x % PER_ROW * 4) = from_b;
    };
    fetch();
    keep(0);
    __syncthreads();
    ROLLED
    for (int s = 0; s < steps; s++) {
        bool more = s + 1 < steps;
        if (more) fetch();
        const float* as = stages + s % 2 * 2 * SIZE;
        const float* bs = as + SIZE;
        UNROLLED_BY_2
        for (int q = 0; q < SINGLE_STEP; q++) {
            float left[8], right[GROUPS * 4];
            *(float4*)left = *(const float4*)(as + q * PITCH + ty);
            *(float4*)(left + 4) = *(const float4*)(as + q * PITCH + SIDE / 2 + ty);
            UNROLLED
            for (int j = 0; j < GROUPS; j++)
                *(float4*)(right + j * 4) = *(const float4*)(bs + q * PITCH + j * 64 + tx);
            UNROLLED
            for (int i = 0; i < 8; i++)
                UNROLLED
                for (int j = 0; j < GROUPS * 4; j++) sum[i][j] += left[i] * right[j];
        }
        if (SIDE == 64 && s % 2) join();
        // The other half of the memory was read before the last barrier.
        if (more) keep((s + 1) % 2);
        __syncthreads();
    }
    if (SIDE == 64) join();
    UNROLLED
    for (int g = 0; g < GROUPS; g++) {
        Sums<F32, 1, 8, SingleSpread<SIDE>> made;
        UNROLLED
        for (int i = 0; i < 8; i++)
            UNROLLED
            for (int j = 0; j < 4; j++) made.piece(0, i)[j] = (SIDE == 64 ? before[i] : sum[i])[g * 4 + j];
        out.template write<F32>(made, ty, g * 64 + tx);
    }
}

// ---- kernels -------------------------------------------------------------------------------------

// Elements of an operand, and how a block makes a tile of products of such.
template <int D> struct Of {};
template <> struct Of<F16> {
    typedef unsigned short E;
    enum { STEP = CORE_STEP, COUNT = 2, PIECE = 8 };
    template <int SIDE, bool DEEP_B, class A, class B, class Out>
    static SPECIAL void sums(A a, B b, int steps, Out out) { core_sums<SIDE, DEEP_B>(a, b, steps, out); }
};
template <> struct Of<F32> {
    typedef float E;
    enum { STEP = SINGLE_STEP, COUNT = 1, PIECE = 4 };
    template <int SIDE, bool DEEP_B, class A, class B, class Out>
    static SPECIAL void sums(A a, B b, int steps, Out out) { single_sums<SIDE, DEEP_B>(a, b, steps, out); }
};

// The part of the depth that a block sums up: from a step on, and how many.
DEVICE int part_begin(const Parts& parts, int step) { return (int)(blockIdx.z % parts.count) * parts.steps * step; }
DEVICE int part_end(const Parts& parts, int step, int depth) {
    int end = part_begin(parts, step) + parts.steps * step;
    return end < depth ? end : depth;
}

DEVICE i64 base_of(const i64* steps, int batch, i64 inner) {
    return batch / (int)inner * steps[0] + batch % (int)inner * steps[1];
}
template <int D> DEVICE Results results_of(const Product& p, int batch) {
    i64 first = base_of(p.c_steps, batch, p.inner);
    bool whole = p.n % InPiece<D>::COUNT == 0 && (first | p.c_steps[2]) % InPiece<D>::COUNT == 0;
    return {p.c, first, p.c_steps[2], batch * p.m * p.n, p.n, 0, (int)p.m, (int)p.n, whole, (float)p.alpha};
}
// Pixels are rows, filters of a group columns, in whole pieces.
template <int D> DEVICE Results results_of(const Convolution& p, int group) {
    i64 filters = p.groups * p.filters, first = group * p.filters;
    int rows = (int)p.images * p.out[1] * p.out[2];
    return {p.to, first, filters, first, filters, first, rows, (int)p.filters, true, 1};
}
// Where a block writes its tile, of a product or a convolution. What can be computed at the end takes no
// registers before.
template <class P> struct IsProduct { static const bool VALUE = false; };
template <> struct IsProduct<Product> { static const bool VALUE = true; };
template <class P> struct Out {
    const P& p;
    int batch, row, col;
    SPECIAL Out(const P& p, int batch, int row, int col) : p(p), batch(batch), row(row), col(col) {}
    template <int D, class S> SPECIAL void write(S& sums, int y, int x) const {
        sums.template write<IsProduct<P>::VALUE>(p.parts, p.epilogue, results_of<D>(p, batch), row + y, col + x);
    }
};

template <int D, int SIDE, bool DEEP_B> DEVICE void product_tile(const Product& p) {
    typedef Of<D> O;
    typedef typename O::E E;
    const int DEEP = O::STEP / O::PIECE, WIDE = SIDE / O::PIECE, THREADS = SIDE * 2;
    int batch = blockIdx.z / p.parts.count;
    auto base = [&](const i64* steps) -> i64 { return base_of(steps, batch, p.inner); };
    int row0 = blockIdx.y * SIDE, col0 = blockIdx.x * SIDE, m = (int)p.m, n = (int)p.n;
    int begin = part_begin(p.parts, O::STEP), end = part_end(p.parts, O::STEP, (int)p.k);
    int row = threadIdx.x / DEEP, k = begin + threadIdx.x % DEEP * O::PIECE;
    DeepRows<E, O::COUNT> a((const E*)p.a + base(p.a_steps), p.a_steps[2], row0 + row, THREADS / DEEP, m, k, end);
    Out<Product> out(p, batch, row0, col0);
    const E* b0 = (const E*)p.b + base(p.b_steps);
    int steps = (end - begin + O::STEP - 1) / O::STEP;
    if (DEEP_B) {
        DeepRows<E, O::COUNT> b(b0, p.b_steps[3], col0 + row, THREADS / DEEP, n, k, end);
        O::template sums<SIDE, true>(a, b, steps, out);
    } else {
        WideRows<E, O::COUNT> b(b0, p.b_steps[2], begin + threadIdx.x / WIDE, THREADS / WIDE, end,
                                col0 + threadIdx.x % WIDE * O::PIECE, n);
        O::template sums<SIDE, false>(a, b, steps, out);
    }
}

template <int D, int SIDE> DEVICE void convolution_tile(const Convolution& p) {
    typedef Of<D> O;
    typedef typename O::E E;
    const int DEEP = O::STEP / O::PIECE, WIDE = SIDE / O::PIECE, THREADS = SIDE * 2;
    int group = blockIdx.z / p.parts.count, channels = (int)p.channels, n = (int)p.filters;
    i64 filters = (i64)p.groups * n, depth = (i64)channels * p.kernel[1] * p.kernel[2];
    int row0 = blockIdx.x * SIDE, col0 = blockIdx.y * SIDE;
    int begin = part_begin(p.parts, O::STEP), end = part_end(p.parts, O::STEP, (int)depth);
    PixelRows<E, O::COUNT> a(p, (const E*)p.from + group * channels, row0 + threadIdx.x / DEEP, THREADS / DEEP,
                             begin + threadIdx.x % DEEP * O::PIECE, end);
    WideRows<E, O::COUNT> b((const E*)p.weight + group * n, filters, begin + threadIdx.x / WIDE, THREADS / WIDE, end,
                            col0 + threadIdx.x % WIDE * O::PIECE, n);
    Out<Convolution> out(p, group, row0, col0);
    O::template sums<SIDE, false>(a, b, (end - begin + O::STEP - 1) / O::STEP, out);
}

// Registers for two large tiles on a multiprocessor; shared memory of 7.5 has place for one alone.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define LARGE_TILE __launch_bounds__(256, 1)
#else
#define LARGE_TILE __launch_bounds__(256, 2)
#endif
#define SMALL_TILE __launch_bounds__(128, 4)
#define TILES(type, D)                                                                             \
    KERNEL void LARGE_TILE deep_product_128_##type(Product p) { product_tile<D, 128, true>(p); } \
    KERNEL void SMALL_TILE deep_product_64_##type(Product p) { product_tile<D, 64, true>(p); } \
    KERNEL void LARGE_TILE wide_product_128_##type(Product p) { product_tile<D, 128, false>(p); } \
    KERNEL void SMALL_TILE wide_product_64_##type(Product p) { product_tile<D, 64, false>(p); } \
    KERNEL void SMALL_TILE convolution_64_##type(Convolution p) { convolution_tile<D, 64>(p); }
TILES(f16, F16)
TILES(f32, F32)
// Large tiles of single precision are no faster, and round more.
KERNEL void LARGE_TILE convolution_128_f16(Convolution p) { convolution_tile<F16, 128>(p); }
ENTRY_WITH_BARRIERS(deep_product_128_f16)
ENTRY_WITH_BARRIERS(deep_product_64_f16)
ENTRY_WITH_BARRIERS(wide_product_128_f16)
ENTRY_WITH_BARRIERS(wide_product_64_f16)
ENTRY_WITH_BARRIERS(convolution_128_f16)
ENTRY_WITH_BARRIERS(convolution_64_f16)
ENTRY_WITH_BARRIERS(deep_product_128_f32)
ENTRY_WITH_BARRIERS(deep_product_64_f32)
ENTRY_WITH_BARRIERS(wide_product_128_f32)
ENTRY_WITH_BARRIERS(wide_product_64_f32)
ENTRY_WITH_BARRIERS(convolution_64_f32)

// Adds up the parts, and does what follows a sum.
struct PartSums {
    void* to;
    const float* parts;
    i64 steps[3];    // of the result: batches, outer and inner, and rows
    double alpha;
    Epilogue epilogue;
    int size, columns, rows, inner;    // sums of a part, of a row; rows of a batch; batches that lie inside
    int count, dtype;
};
template <int D> DEVICE void sum_part(const PartSums& p, int i) {
    float v = 0;
    ROLLED
    for (int part = 0; part < p.count; part++) v += p.parts[(i64)part * p.size + i];
    int col = i % p.columns, row = i / p.columns, batch = row / p.rows;
    i64 at = batch / p.inner * p.steps[0] + batch % p.inner * p.steps[1] + row % p.rows * p.steps[2] + col;
    store<float>(p.to, D, at, finish<float, D, true>(p.epilogue, v * (float)p.alpha, col, col, at));
}
KERNEL void __launch_bounds__(256, 2) sum_parts(PartSums p) {
    ROLLED
    for (i64 i = first(); i < p.size; i += stride()) p.dtype == F16 ? sum_part<F16>(p, (int)i) : sum_part<F32>(p, (int)i);
}
ENTRY(sum_parts)
