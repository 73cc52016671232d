// Steps of sequences.
#pragma once
#include "types.h"

enum SequenceKind { MASK, LAST, REVERSE };
struct Sequence {
    void* to;
    const void* from;
    const void* lengths;    // or null
    i64 n;
    Divisor time, batch, inner;
    double value;
    int batch_first, kind, dtype, size, length_dtype, unused;
};
KERNEL void __launch_bounds__(256, 2) sequence(Sequence p) {
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 inner = i % p.inner, step = i / p.inner;
        // The last step alone has no axis of time.
        i64 sequence = p.kind == LAST ? step : p.batch_first ? step / p.time : step % p.batch;
        i64 t = p.batch_first ? step % p.time : step / p.batch, length = p.time;
        if (p.lengths) {
            length = load<i64>(p.lengths, p.length_dtype, sequence);
            length = length < 0 ? 0 : length > p.time ? p.time : length;
        }
        if (p.kind == MASK && t >= length) {
            store_converted(p.to, p.dtype, i, p.value);
            continue;
        }
        if (p.kind == LAST) t = length > 0 ? length - 1 : 0;
        if (p.kind == REVERSE && t < length) t = length - 1 - t;
        i64 from = p.batch_first ? sequence * p.time + t : t * p.batch + sequence;
        copy_element(p.to, i, p.from, from * p.inner + inner, p.size);
    }
}
ENTRY(sequence)
