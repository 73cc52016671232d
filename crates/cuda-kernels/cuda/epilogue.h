// The end of products and convolutions: bias, residual and a function, and results written by pieces of
// 16 bytes.
#pragma once
#include "apply.h"

enum Activation { NONE, RELU, CLIPPED, LEAKY, GELU, SIGMOID, TANH };
struct Epilogue {
    const void* bias;        // of rows or of columns, or null
    const void* residual;    // like the result, or null
    int bias_of_rows, activation;
    double p, q;
    double factor;    // of the residual; tiles of tiles.h add the residual itself
};

// Where the depth is cut into parts: sums of each, as if all of the result were dense.
struct Parts {
    float* to;
    i64 size;            // numbers of a part
    int count, steps;    // parts, and steps of the depth in one
};

// A function of functions.h alone, so that what is inlined is small.
template <int FUNCTION, class T> DEVICE T only(T x) { return apply<T>(FUNCTION, x, 0, 0, 0, false); }
// Applies it to all numbers, a few in each round of a loop: all together take more registers than there
// are. Registers have no index, so the numbers go round instead.
template <int FUNCTION, class T, int N> DEVICE void apply_in_rounds(T* v) {
    const int SOME = N < 8 ? N : 8;
    ROLLED
    for (int round = 0; round < N / SOME; round++) {
        T made[SOME];
        UNROLLED
        for (int i = 0; i < SOME; i++) made[i] = only<FUNCTION, T>(v[i]);
        UNROLLED
        for (int i = 0; i < N - SOME; i++) v[i] = v[i + SOME];
        UNROLLED
        for (int i = 0; i < SOME; i++) v[N - SOME + i] = made[i];
    }
}

// FUNCTIONS: the layer is dense. Kernels of convolutions have no code for what only dense layers apply.
template <class T, int N, bool FUNCTIONS> DEVICE void activate(const Epilogue& e, T* v) {
    T p = (T)e.p, q = (T)e.q;
#define ACTIVATION(name, value)                                                                    \
    case name:                                                                                     \
        UNROLLED                                                                                   \
        for (int i = 0; i < N; i++) {                                                              \
            T x = v[i];                                                                            \
            v[i] = value;                                                                          \
        }                                                                                          \
        break;
    switch (e.activation) {
        ACTIVATION(RELU, x > 0 || x != x ? x : 0)
        ACTIVATION(CLIPPED, x < p ? p : x > q ? q : x)
        ACTIVATION(LEAKY, x > 0 ? x : p * x)
    }
#undef ACTIVATION
    if (!FUNCTIONS) return;
    switch (e.activation) {
        case GELU: apply_in_rounds<UNARY_Gelu, T, N>(v); break;
        case SIGMOID: apply_in_rounds<UNARY_Sigmoid, T, N>(v); break;
        case TANH: apply_in_rounds<UNARY_Tanh, T, N>(v); break;
    }
}

template <class T, int D, bool FUNCTIONS = false> DEVICE T finish(const Epilogue& e, T v, i64 row, i64 col, i64 at) {
    if (e.bias) v += load<T>(e.bias, D, e.bias_of_rows ? row : col);
    if (e.residual) v += (T)e.factor * load<T>(e.residual, D, at);
    activate<T, 1, FUNCTIONS>(e, &v);
    return v;
}

// ---- tiles ---------------------------------------------------------------------------------------

template <int D> DEVICE void add_piece(float* v, const Piece& piece) {
    const u32* word = (const u32*)&piece;
    UNROLLED
    for (int i = 0; i < InPiece<D>::COUNT; i++)
        v[i] += D == F16 ? load_half((unsigned short)(word[i / 2] >> i % 2 * 16)) : single_of(word[i % 4]);
}
template <int D> DEVICE const void* piece_at(const void* array, i64 at) {
    return (const char*)array + at * (16 / InPiece<D>::COUNT);
}
template <int D> DEVICE void store_piece(void* array, i64 at, const float* v) {
    if (D == F16) {
        Piece piece;
        u32* two = (u32*)&piece;
        UNROLLED
        for (int i = 0; i < 4; i++) two[i] = to_half(v[2 * i]) | (u32)to_half(v[2 * i + 1]) << 16;
        *(Piece*)((unsigned short*)array + at) = piece;
    } else {
        *(float4*)((float*)array + at) = float4{v[0], v[1], v[2], v[3]};
    }
}

// Where the results of a batch or a group go: rows and columns of the result and of a part, and the
// bias of the first column.
struct Results {
    void* to;
    i64 first, pitch, first_of_part, pitch_of_part, bias;
    int rows, columns;
    bool whole;    // rows are whole pieces, which lie in units of 16 bytes
    float alpha;
    SPECIAL bool has(int y, int x) const { return y < rows && x < columns; }
};

// Sums of a thread: GROUPS pieces of columns, each of ROWS rows. Spread says how far apart they are.
template <int D, int GROUPS, int ROWS, class Spread> struct Sums {
    static const int N = InPiece<D>::COUNT;
    float v[GROUPS * ROWS * N];
    SPECIAL float* piece(int group, int row) { return v + (group * ROWS + row) * N; }

    template <bool FUNCTIONS> SPECIAL void write(const Parts& parts, const Epilogue& e, const Results& r, int row, int col) {
        if (parts.count > 1) return write_part(parts, r, row, col);
        UNROLLED
        for (int i = 0; i < GROUPS * ROWS * N; i++) v[i] *= r.alpha;
        if (e.bias) add_bias(e.bias, r, col);
        if (e.residual) add_residual(e.residual, r, row, col);
        activate<float, GROUPS * ROWS * N, FUNCTIONS>(e, v);
        UNROLLED
        for (int g = 0; g < GROUPS; g++)
            UNROLLED
            for (int i = 0; i < ROWS; i++) {
                int y = row + Spread::row(i), x = col + Spread::col(g);
                i64 at = r.first + y * r.pitch + x;
                if (r.whole && r.has(y, x)) store_piece<D>(r.to, at, piece(g, i));
                if (r.whole) continue;
                UNROLLED
                for (int j = 0; j < N; j++)
                    if (r.has(y, x + j)) store<float>(r.to, D, at + j, piece(g, i)[j]);
            }
    }
    SPECIAL void add_bias(const void* bias, const Results& r, int col) {
        UNROLLED
        for (int g = 0; g < GROUPS; g++) {
            float add[N] = {};
            int x = col + Spread::col(g);
            if (r.whole && x < r.columns) add_piece<D>(add, load_piece(piece_at<D>(bias, r.bias + x)));
            UNROLLED
            for (int j = 0; j < N; j++) {
                if (!r.whole && x + j < r.columns) add[j] = load<float>(bias, D, r.bias + x + j);
                UNROLLED
                for (int i = 0; i < ROWS; i++) piece(g, i)[j] += add[j];
            }
        }
    }
    SPECIAL void add_residual(const void* residual, const Results& r, int row, int col) {
        // Pieces that are on their way together, where registers suffice.
        const int TOGETHER = D == F16 ? 4 : 1;
        UNROLLED
        for (int k = 0; k < GROUPS * ROWS; k += TOGETHER) {
            Piece some[TOGETHER];
            UNROLLED
            for (int i = 0; i < TOGETHER; i++) {
                int y = row + Spread::row((k + i) % ROWS), x = col + Spread::col((k + i) / ROWS);
                some[i] = Piece{};
                if (r.whole && r.has(y, x)) some[i] = load_piece(piece_at<D>(residual, r.first + y * r.pitch + x));
            }
            UNROLLED
            for (int i = 0; i < TOGETHER; i++) add_piece<D>(v + (k + i) * N, some[i]);
        }
        if (r.whole) return;
        UNROLLED
        for (int k = 0; k < GROUPS * ROWS; k++)
            UNROLLED
            for (int j = 0; j < N; j++) {
                int y = row + Spread::row(k % ROWS), x = col + Spread::col(k / ROWS) + j;
                if (r.has(y, x))
                    v[k * N + j] += load<float>(residual, D, r.first + y * r.pitch + x);
            }
    }
    SPECIAL void write_part(const Parts& parts, const Results& r, int row, int col) {
        float* part = parts.to + (blockIdx.z % parts.count) * parts.size + r.first_of_part;
        UNROLLED
        for (int k = 0; k < GROUPS * ROWS; k++) {
            int y = row + Spread::row(k % ROWS), x = col + Spread::col(k / ROWS);
            float* to = part + y * r.pitch_of_part + x;
            const float* from = v + k * N;
            UNROLLED
            for (int j = 0; j < N; j += 4)
                if (r.whole && r.has(y, x))
                    *(float4*)(to + j) = float4{from[j], from[j + 1], from[j + 2], from[j + 3]};
            if (r.whole) continue;
            UNROLLED
            for (int j = 0; j < N; j++)
                if (r.has(y, x + j)) to[j] = from[j];
        }
    }
};

// Tensor cores leave a row of 32 columns to a quad of lanes, each of which has two neighbours of every
// eight: `sum` holds those of a row and of the row 8 below. Gives each lane eight neighbours.
struct CoreSpread {
    static SPECIAL int row(int i) { return i * 8; }
    static SPECIAL int col(int g) { return g * 32; }
};
DEVICE void turn_quad(const float (*sum)[4], int below, float* v) {
    int lane = threadIdx.x % 32;
    UNROLLED
    for (int j = 0; j < 8; j++) v[j] = sum[j / 2][below * 2 + j % 2];
    UNROLLED
    for (int by = 1; by < 4; by *= 2) {
        bool high = lane & by;
        UNROLLED
        for (int j = 0; j < 8; j++) {
            int other = j + by * 2;
            if (j / 2 & by) continue;
            // One of a pair stays, the other goes to the lane that differs.
            float got = shuffle_xor(high ? v[j] : v[other], by);
            v[other] = high ? v[other] : got;
            v[j] = high ? got : v[j];
        }
    }
}
