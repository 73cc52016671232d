// A step of recurrent layers, whose products with inputs and state are there.
#pragma once
#include "elementwise.h"

enum Cell { CELL_RELU, CELL_TANH, CELL_LSTM, CELL_GRU };
struct RecurrentStep {
    void* to;                 // new states; rows of `batch` are `to_step` apart
    void* cell_to;            // of an LSTM, [batch][size]; may be cell_from
    const void* cell_from;
    const void* before;       // the states before; rows are `before_step` apart
    const void* of_inputs;    // [batch][gates][size], like of_state
    const void* of_state;
    i64 n;
    Divisor size;
    i64 to_step, before_step;    // n = batch * size
    int cell, unused;
};
template <class T> DEVICE T squashed(T x) { return 1 / (1 + m_exp(-x)); }
template <class T> DEVICE void recurrent_step(const RecurrentStep& p) {
    int gates = p.cell == CELL_LSTM ? 4 : p.cell == CELL_GRU ? 3 : 1;
    ROLLED
    for (i64 i = first(); i < p.n; i += stride()) {
        i64 row = i / p.size, j = i % p.size, at = row * gates * p.size + j;
        const T* x = (const T*)p.of_inputs + at;
        const T* h = (const T*)p.of_state + at;
        T v = x[0] + h[0];
        if (p.cell == CELL_LSTM) {
            T forget = squashed(x[p.size] + h[p.size]), open = squashed(x[3 * p.size] + h[3 * p.size]);
            T cell = ((const T*)p.cell_from)[i] * forget + squashed(v) * m_tanh(x[2 * p.size] + h[2 * p.size]);
            ((T*)p.cell_to)[i] = cell;
            v = m_tanh(cell) * open;
        } else if (p.cell == CELL_GRU) {
            T update = squashed(x[p.size] + h[p.size]);
            T made = m_tanh(x[2 * p.size] + squashed(v) * h[2 * p.size]);
            v = (1 - update) * made + update * ((const T*)p.before)[row * p.before_step + j];
        } else {
            v = p.cell == CELL_TANH ? m_tanh(v) : v > 0 || v != v ? v : 0;
        }
        ((T*)p.to)[row * p.to_step + j] = v;
    }
}
KERNEL void __launch_bounds__(256, 2) recurrent_step_f32(RecurrentStep p) { recurrent_step<float>(p); }
ENTRY(recurrent_step_f32)
KERNEL void __launch_bounds__(256, 2) recurrent_step_f64(RecurrentStep p) { recurrent_step<double>(p); }
ENTRY(recurrent_step_f64)
