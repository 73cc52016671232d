// Elements of all types. Codes are MXNet's. Half precision computes in single precision, integers
// in 64 bits.
#pragma once
#include "device.h"

enum DType { F32 = 0, F64 = 1, F16 = 2, U8 = 3, I32 = 4, I8 = 5, I64 = 6, BOOL = 7 };

template <class T> DEVICE T load(const void* at, int dtype, i64 i) {
    switch (dtype) {
        case F32: return (T)((const float*)at)[i];
        case F64: return (T)((const double*)at)[i];
        case F16: return (T)load_half(((const unsigned short*)at)[i]);
        case I32: return (T)((const int*)at)[i];
        case I8: return (T)((const signed char*)at)[i];
        case I64: return (T)((const i64*)at)[i];
        case BOOL: return (T)(((const unsigned char*)at)[i] != 0);
        default: return (T)((const unsigned char*)at)[i];
    }
}

template <class T> DEVICE void store(void* at, int dtype, i64 i, T v) {
    switch (dtype) {
        case F32: ((float*)at)[i] = (float)v; break;
        case F64: ((double*)at)[i] = (double)v; break;
        case F16: ((unsigned short*)at)[i] = to_half((float)v); break;
        case I32: ((int*)at)[i] = (int)v; break;
        // GPUs would make the nearest number of a float that 8 bits do not hold.
        case I8: ((signed char*)at)[i] = (signed char)(int)v; break;
        case I64: ((i64*)at)[i] = (i64)v; break;
        case BOOL: ((unsigned char*)at)[i] = v != 0; break;
        default: ((unsigned char*)at)[i] = (unsigned char)(int)v;
    }
}

// As C converts on the host; what the type has no number for becomes the lowest of 32 or 64 bits.
DEVICE i64 c_whole(double v, bool wide) {
    double end = wide ? 9223372036854775808.0 : 2147483648.0;
    return v > (wide ? -end : -end - 1) && v < end ? (i64)v : wide ? (i64)0x8000000000000000ull : -2147483648ll;
}
// Indices and lengths may be floats, of which GPUs would make the nearest number of 64 bits.
template <> SPECIAL i64 load<i64>(const void* at, int dtype, i64 i) {
    switch (dtype) {
        case F32: return c_whole(((const float*)at)[i], true);
        case F64: return c_whole(((const double*)at)[i], true);
        case F16: return c_whole(load_half(((const unsigned short*)at)[i]), true);
        case I32: return ((const int*)at)[i];
        case I8: return ((const signed char*)at)[i];
        case I64: return ((const i64*)at)[i];
        case BOOL: return ((const unsigned char*)at)[i] != 0;
        default: return ((const unsigned char*)at)[i];
    }
}
// Floats become integers as the CPU converts them, which then keep the last bits of a narrow type;
// anything but zero is true.
DEVICE void store_converted(void* to, int dtype, i64 i, double v) {
    if (dtype >= U8 && dtype != BOOL)
        store<i64>(to, dtype, i, c_whole(v, dtype == I64));
    else
        store<double>(to, dtype, i, v);
}

// An element as it is; `size` is its bytes.
DEVICE void copy_element(void* to, i64 i, const void* from, i64 j, int size) {
    switch (size) {
        case 1: ((unsigned char*)to)[i] = ((const unsigned char*)from)[j]; break;
        case 2: ((unsigned short*)to)[i] = ((const unsigned short*)from)[j]; break;
        case 4: ((u32*)to)[i] = ((const u32*)from)[j]; break;
        default: ((u64*)to)[i] = ((const u64*)from)[j];
    }
}

// Elements of type D, halves or of single precision, in 16 bytes: a piece.
template <int D> struct InPiece { static const int COUNT = D == F16 ? 8 : 4; };

// What others are divided by: numbers from 1 on, by which those from 0 on are divided. A division of 64
// bits is a call, which saves registers, and few arrays need one.
struct Divisor {
    i64 number;
    SPECIAL operator i64() const { return number; }
};
SPECIAL i64 operator/(i64 a, Divisor by) {
    u64 n = (u64)by.number, quotient = 0, rest = 0;
    if (((u64)a | n) >> 32 == 0) return (u32)a / (u32)n;
    ROLLED
    for (int bit = 63; bit >= 0; bit--) {
        rest = rest << 1 | ((u64)a >> bit & 1);
        u64 fits = rest >= n;
        quotient |= fits << bit, rest -= fits * n;
    }
    return (i64)quotient;
}
SPECIAL i64 operator%(i64 a, Divisor by) { return a - a / by * by.number; }

// Axes that a kernel walks through at most.
#define AXES 8
struct Axes {
    int rank;
    int unused;
    i64 shape[AXES];
};

// Where element `i` of the axes lies in an array with these steps.
DEVICE i64 place(const Axes& axes, const i64* steps, i64 i) {
    i64 at = 0;
    ROLLED
    for (int a = axes.rank - 1; a >= 0; a--) {
        i64 outer = i / Divisor{axes.shape[a]};
        at += (i - outer * axes.shape[a]) * steps[a];
        i = outer;
    }
    return at;
}

DEVICE i64 first() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE i64 stride() { return (i64)gridDim.x * blockDim.x; }
