// Programs of functions of elements. A program is data, the same that fuses operators into one loop
// on the CPU: every thread takes the same way through it.
#pragma once
#include "apply.h"

template <class T> DEVICE void elementwise(const ElementProgram& program) {
    ROLLED
    for (i64 i = first(); i < program.n; i += stride()) {
        T result[STEPS];
        T last = 0;
        ROLLED
        for (int s = 0; s < program.steps; s++) {
            const ElementStep& step = program.step[s];
            auto read = [&](int source) -> T {
                if (source >= 0) {
                    const ElementOperand& operand = program.operand[source];
                    i64 at = operand.strided ? place(program.axes, operand.steps, i) : i;
                    return load<T>(operand.at, operand.dtype, at);
                }
                return source == -STEPS - 1 ? step_number<T>(step.number) : ~source == s - 1 ? last : result[~source];
            };
            T a = read(step.a), b = read(step.b);
            last = apply<T>(step.function, a, b, step.p, step.q, program.out_dtype == I64);
            result[s] = last;
        }
        store<T>(program.out, program.out_dtype, i, last);
    }
}
KERNEL void __launch_bounds__(256, 2) elementwise_f32(ElementProgram program) { elementwise<float>(program); }
ENTRY(elementwise_f32)
KERNEL void __launch_bounds__(256, 2) elementwise_f64(ElementProgram program) { elementwise<double>(program); }
ENTRY(elementwise_f64)
KERNEL void __launch_bounds__(256, 2) elementwise_i64(ElementProgram program) { elementwise<i64>(program); }
ENTRY(elementwise_i64)

struct Cast {
    void* to;
    const void* from;
    i64 n;
    int to_dtype, from_dtype;
};
KERNEL void __launch_bounds__(256, 2) cast(Cast p) {
    // By way of a double, an integer of 64 bits would be rounded twice on its way to a float.
    bool whole = p.from_dtype >= U8 && p.to_dtype != BOOL;
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        if (whole)
            store<i64>(p.to, p.to_dtype, i, load<i64>(p.from, p.from_dtype, i));
        else
            store_converted(p.to, p.to_dtype, i, load<double>(p.from, p.from_dtype, i));
    }
}
ENTRY(cast)
