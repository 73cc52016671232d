// Elements in other places, and arrays made from numbers.
#pragma once
#include "elementwise.h"

struct Move {
    void* to;
    const void* from;
    i64 n;
    int size, unused;    // bytes of an element
    Axes axes;
    i64 to_steps[AXES], from_steps[AXES];
};
template <class T> DEVICE void move(const Move& p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride())
        ((T*)p.to)[place(p.axes, p.to_steps, i)] = ((const T*)p.from)[place(p.axes, p.from_steps, i)];
}
KERNEL void __launch_bounds__(256, 2) move_elements(Move p) {
    switch (p.size) {
        case 1: move<unsigned char>(p); break;
        case 2: move<unsigned short>(p); break;
        case 4: move<u32>(p); break;
        default: move<u64>(p);
    }
}
ENTRY(move_elements)

// ---- Moves whose neighbours in one array lie apart in the other ------------------------------------

// Matrices whose columns lie together in `from` and whose rows lie together in `to`, for all `outer`
// axes. A block turns a tile in shared memory, so that it reads and writes neighbours; blocks are
// numbered by matrix, row of tiles and column.
struct Turn {
    void* to;
    const void* from;
    i64 to_step, from_step;    // of columns in `to`, and of rows in `from`
    int rows, columns;
    int size, together;    // bytes of an element; whether pieces of 16 bytes are aligned
    Axes outer;
    i64 to_steps[AXES], from_steps[AXES];
};
#define TURN_THREADS 256
// Sides of a tile, by the bytes of elements, and elements between its rows: those that a warp reads
// of a column are in different banks.
template <class T> struct TurnTile {
    static const int SIDE = sizeof(T) <= 2 ? 64 : 32, PITCH = SIDE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1);
};
template <class T> DEVICE void turn_tile(const Turn& p) {
    const int SIDE = TurnTile<T>::SIDE, PITCH = TurnTile<T>::PITCH, DOWN = TURN_THREADS / SIDE;
    DYNAMIC_SHARED(T, tile);
    u32 across = ((u32)p.columns + SIDE - 1) / SIDE, down = ((u32)p.rows + SIDE - 1) / SIDE;
    u32 band = blockIdx.x / across, matrix = band / down;
    int row0 = (int)(band - matrix * down) * SIDE, col0 = (int)(blockIdx.x - band * across) * SIDE;
    int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    const T* from = (const T*)p.from + place(p.outer, p.from_steps, matrix) + row0 * p.from_step + col0;
    T read[SIDE / DOWN];
    UNROLLED
    for (int i = 0; i < SIDE / DOWN; i++) {
        int row = y + i * DOWN;
        read[i] = row0 + row < p.rows && col0 + x < p.columns ? from[row * p.from_step + x] : (T)0;
    }
    UNROLLED
    for (int i = 0; i < SIDE / DOWN; i++) tile[(y + i * DOWN) * PITCH + x] = read[i];
    __syncthreads();
    T* to = (T*)p.to + place(p.outer, p.to_steps, matrix) + col0 * p.to_step + row0;
    UNROLLED
    for (int i = 0; i < SIDE / DOWN; i++) {
        int col = y + i * DOWN;
        if (col0 + col < p.columns && row0 + x < p.rows) to[col * p.to_step + x] = tile[x * PITCH + col];
    }
}
#define TURN(name, move)                                                                           \
    KERNEL void __launch_bounds__(TURN_THREADS, 4) name(Turn p) {                                  \
        switch (p.size) {                                                                          \
            case 1: move(unsigned char); break;                                                    \
            case 2: move(unsigned short); break;                                                   \
            case 4: move(u32); break;                                                              \
            default: move(u64);                                                                    \
        }                                                                                          \
    }
#define MOVE_TILE(T) turn_tile<T>(p)
TURN(turn_tiles, MOVE_TILE)
ENTRY_WITH_BARRIERS(turn_tiles)

// Neighbours from one place to the other: as pieces as far as they reach, if they are aligned.
template <class T> DEVICE void copy_run(T* to, const T* from, int count, int together) {
    int pieces = together ? count / (int)(sizeof(Piece) / sizeof(T)) : 0, done = pieces * (int)(sizeof(Piece) / sizeof(T));
    ROLLED
    for (int i = threadIdx.x; i < pieces; i += TURN_THREADS) ((Piece*)to)[i] = ((const Piece*)from)[i];
    ROLLED
    for (int i = done + threadIdx.x; i < count; i += TURN_THREADS) to[i] = from[i];
}
// Few rows, whose elements of several columns lie together in `to`; BACK: few columns, whose elements
// of several rows lie together in `from`. A block moves so many of the others.
#define TURN_BYTES 2048
template <class T, bool BACK> DEVICE void turn_few(const Turn& p) {
    const int MANY = TURN_BYTES / sizeof(T), EACH = MANY / TURN_THREADS;
    DYNAMIC_SHARED(T, run);
    int few = BACK ? p.columns : p.rows, many = BACK ? p.rows : p.columns;
    u32 runs = ((u32)many + MANY - 1) / MANY, matrix = blockIdx.x / runs;
    int begin = (int)(blockIdx.x - matrix * runs) * MANY, count = many - begin < MANY ? many - begin : MANY;
    const T* from = (const T*)p.from + place(p.outer, p.from_steps, matrix) + begin * (BACK ? p.from_step : 1);
    T* to = (T*)p.to + place(p.outer, p.to_steps, matrix) + begin * (BACK ? 1 : p.to_step);
    if (BACK) copy_run(run, from, count * few, p.together);
    else
        UNROLLED_BY_2
        for (int row = 0; row < few; row++) {
            T read[EACH];
            UNROLLED
            for (int i = 0; i < EACH; i++) {
                int at = threadIdx.x + i * TURN_THREADS;
                read[i] = at < count ? from[row * p.from_step + at] : (T)0;
            }
            UNROLLED
            for (int i = 0; i < EACH; i++) run[(threadIdx.x + i * TURN_THREADS) * few + row] = read[i];
        }
    __syncthreads();
    if (!BACK) copy_run(to, run, count * few, p.together);
    else
        ROLLED
        for (int col = 0; col < few; col++)
            UNROLLED
            for (int i = 0; i < EACH; i++) {
                int at = threadIdx.x + i * TURN_THREADS;
                if (at < count) to[col * p.to_step + at] = run[at * few + col];
            }
}
#define MOVE_FEW_ROWS(T) turn_few<T, false>(p)
TURN(turn_few_rows, MOVE_FEW_ROWS)
ENTRY_WITH_BARRIERS(turn_few_rows)
#define MOVE_FEW_COLUMNS(T) turn_few<T, true>(p)
TURN(turn_few_columns, MOVE_FEW_COLUMNS)
ENTRY_WITH_BARRIERS(turn_few_columns)

// Rows that are made longer by zeros to whole pieces of 16 bytes, which are counted in 32 bits. A row
// of `from` has `count` groups of `width` elements; in `to` groups are `wide`, and `before` of them are
// empty, as are those behind the others.
struct LongerRows {
    void* to;
    const void* from;
    u32 pieces, row_pieces;    // of all rows and of one
    u32 count, width, wide, before;
};
// Two arrays at once.
struct Lengthen {
    LongerRows rows[2];
    int size, unused;    // bytes of an element
};
// Elements that lie in one group: `wide` is a multiple.
#define LONGER_PART 4
template <class T> DEVICE void lengthen(const LongerRows& p, u32 i) {
    const u32 COUNT = sizeof(Piece) / sizeof(T);
    u32 row = i / p.row_pieces, begin = (i - row * p.row_pieces) * COUNT;
    Piece piece;
    T* made = (T*)&piece;
    UNROLLED
    for (u32 part = 0; part < COUNT; part += LONGER_PART) {
        u32 group = (begin + part) / p.wide, at = begin + part - group * p.wide;
        group -= p.before;
        u32 width = group < p.count ? p.width : 0;
        const T* from = (const T*)p.from + ((i64)row * p.count + group) * p.width + at;
        UNROLLED
        for (u32 k = 0; k < LONGER_PART; k++) made[part + k] = at + k < width ? from[k] : (T)0;
    }
    ((Piece*)p.to)[i] = piece;
}
KERNEL void __launch_bounds__(256, 4) lengthen_rows(Lengthen p) {
    u32 first_rows = p.rows[0].pieces, n = first_rows + p.rows[1].pieces;
    ROLLED
    for (u32 i = (u32)first(); i < n; i += (u32)stride()) {
        // A number chosen among arguments would be read from a copy of them in memory.
        bool second = i >= first_rows;
        LongerRows rows = second ? p.rows[1] : p.rows[0];
        u32 piece = second ? i - first_rows : i;
        p.size == 2 ? lengthen<unsigned short>(rows, piece) : lengthen<u32>(rows, piece);
    }
}
ENTRY(lengthen_rows)

// Single elements: `places` are those that are written, then those that are read.
struct Places {
    void* to;
    const void* from;
    const i64* places;
    i64 n;
    int size, unused;
};
KERNEL void __launch_bounds__(256, 2) move_places(Places p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) copy_element(p.to, p.places[i], p.from, p.places[p.n + i], p.size);
}
ENTRY(move_places)

// start + i / repeat * step; a step of 0 fills.
struct Range {
    void* to;
    i64 n;
    Divisor repeat;
    double start, step;
    int dtype, unused;
};
// No sum is joined with its product, as in `spaced`.
KERNEL void __launch_bounds__(256, 2) range(Range p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride())
        store_converted(p.to, p.dtype, i, plus_rounded(p.start, times_rounded((double)(i / p.repeat), p.step)));
}
ENTRY(range)
