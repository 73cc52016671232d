// Functions of elements by their numbers, and programs of them: what programs that are data
// (elementwise.h) and programs that are compiled have in common.
#pragma once
#include "types.h"

#define MATH(name)                                                                                 \
    DEVICE float m_##name(float x) { return name##f(x); }                                          \
    DEVICE double m_##name(double x) { return name(x); }
#define MATH2(name)                                                                                \
    DEVICE float m_##name(float a, float b) { return name##f(a, b); }                              \
    DEVICE double m_##name(double a, double b) { return name(a, b); }
MATH(fabs) MATH(sqrt) MATH(cbrt) MATH(exp) MATH(exp2) MATH(expm1) MATH(log) MATH(log2) MATH(log10) MATH(log1p)
MATH(sin) MATH(cos) MATH(tan) MATH(asin) MATH(acos) MATH(atan) MATH(sinh) MATH(cosh) MATH(tanh)
MATH(asinh) MATH(acosh) MATH(atanh) MATH(floor) MATH(ceil) MATH(trunc) MATH(round) MATH(erf) MATH(erfc)
MATH(tgamma) MATH(lgamma)
MATH2(pow) MATH2(hypot) MATH2(fmod) MATH2(atan2)

template <class T> DEVICE T hard(T x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
// Halves go down.
template <class T> DEVICE T rint_down(T x) {
    T down = m_floor(x), up = m_ceil(x);
    return x - down <= up - x ? down : up;
}
// The remainder with the sign of the divisor.
template <class T> DEVICE T modulo(T a, T b) {
    if (b == 0) return 0;
    T r = m_fmod(a, b);
    return (a < 0) == (b < 0) ? r : r + (r == 0 ? T(0) : b);
}

// As on the CPU: Winitzki's approximation, within 2e-3, and four of Halley's steps.
DEVICE double erf_inverse(double x) {
    double a = m_fabs(x);
    if (!(a < 1)) return a == 1 ? copysign((double)infinity(), x) : (double)(infinity() - infinity());
    double l = m_log((1 - a) * (1 + a)), b = 2 / (3.141592653589793 * 0.147) + l / 2;
    double y = m_sqrt(b * b - l / 0.147) - b;
    y = y > 0 ? m_sqrt(y) : 0;
    ROLLED
    for (int i = 0; i < 4; i++) {
        // 1 - a is exact above 1/2, where erfc has the digits that erf loses.
        double miss = a > 0.5 ? (1 - a) - m_erfc(y) : m_erf(y) - a;
        double step = miss / (1.1283791670955126 * m_exp(-y * y));
        y -= step / (1 + y * step);
    }
    return copysign(y, x);
}

DEVICE i64 least_common_multiple(i64 a, i64 b) {
    u64 left = a < 0 ? 0 - (u64)a : (u64)a, right = b < 0 ? 0 - (u64)b : (u64)b;
    u64 divisor = left, rest = right;
    ROLLED
    for (; rest;) {
        u64 next = divisor % rest;
        divisor = rest, rest = next;
    }
    return divisor ? (i64)(left / divisor * right) : 0;
}

// A number that a step reads; the highest of 64 bits is rounded up to one that they do not hold.
template <class T> DEVICE T step_number(double number) { return (T)number; }
template <> SPECIAL i64 step_number<i64>(double number) {
    return number < 9223372036854775808.0 ? (i64)number : 0x7fffffffffffffffll;
}

enum Function {
#define UNARY(name, value) UNARY_##name,
#define BINARY(name, value) BINARY_##name,
#define WHOLE_UNARY(name, value) WHOLE_UNARY_##name,
#define WHOLE_BINARY(name, value) WHOLE_BINARY_##name,
#include "functions.h"
#undef UNARY
#undef BINARY
#undef WHOLE_UNARY
#undef WHOLE_BINARY
};

template <class T> DEVICE T apply(int function, T a, T b, double first, double second, bool) {
    T x = a, p = (T)first, q = (T)second;
    switch (function) {
#define UNARY(name, value) case UNARY_##name: return value;
#define BINARY(name, value) case BINARY_##name: return value;
#define WHOLE_UNARY(name, value)
#define WHOLE_BINARY(name, value)
#include "functions.h"
#undef UNARY
#undef BINARY
#undef WHOLE_UNARY
#undef WHOLE_BINARY
    }
    return x;
}

// Integers of single precision, by way of double precision as on the CPU.
DEVICE float single(i64 x) { return (float)(double)x; }
template <> SPECIAL i64 apply<i64>(int function, i64 a, i64 b, double first, double second, bool wide) {
    i64 x = a;
    float p = (float)first, q = (float)second;
    switch (function) {
#define UNARY(name, value)
#define BINARY(name, value)
#define WHOLE_UNARY(name, value) case WHOLE_UNARY_##name: return value;
#define WHOLE_BINARY(name, value) case WHOLE_BINARY_##name: return value;
#include "functions.h"
#undef UNARY
#undef BINARY
#undef WHOLE_UNARY
#undef WHOLE_BINARY
    }
    return c_whole(apply<double>(function, (double)x, 0, first, second, wide), wide);
}

#define OPERANDS 8
#define STEPS 16
struct ElementOperand {
    const void* at;
    int dtype;
    int strided;    // whether `steps` say where its elements are
    i64 steps[AXES];
};
// Reads operands by their numbers, results of earlier steps by ~number, and -STEPS - 1 is `number`.
struct ElementStep {
    int function, a, b, unused;
    double number, p, q;
};
struct ElementProgram {
    void* out;
    i64 n;
    int out_dtype, operands, steps, unused;
    Axes axes;
    ElementOperand operand[OPERANDS];
    ElementStep step[STEPS];
};
