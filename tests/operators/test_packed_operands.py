"""Operators that pack an operand: the packing stays with the array, but not longer than its
content.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import mxrt as mx

RANDOM = np.random.default_rng(1)


def _array(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype("float32")


def _dense(x, w):
    return mx.nd.FullyConnected(x, w, num_hidden=w.shape[0], no_bias=True)


def _check(x, w, again: int = 3) -> None:
    """Calls again and again give one result, that of numpy."""
    want = x.asnumpy() @ w.asnumpy().T
    results = [_dense(x, w).asnumpy() for _ in range(again)]
    np.testing.assert_allclose(results[0], want, rtol=1e-4, atol=1e-3)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_a_write_of_the_weights_changes_the_next_result():
    x, w = mx.nd.array(_array(5, 96)), mx.nd.array(_array(130, 96))
    _check(x, w)
    w[:] = _array(130, 96)
    _check(x, w)
    w[3:40] = 0.5
    _check(x, w)
    w *= 2
    _check(x, w)
    view = w[10:74]
    _check(x, view)
    view[:] = 1
    _check(x, view)
    _check(x, w)


def test_writes_of_other_libraries_are_seen():
    x, w = mx.nd.array(_array(5, 96)), mx.nd.array(_array(130, 96))
    _check(x, w)
    outside = np.from_dlpack(w)
    _check(x, w)
    if outside.flags.writeable:
        outside += 1
    _check(x, w)
    source = _array(130, 96)
    shared = mx.nd.from_dlpack(source)
    _check(x, shared)
    source += 1
    assert shared.asnumpy()[0, 0] == source[0, 0]
    _check(x, shared)


@pytest.mark.parametrize("shape", [(1, 64), (40, 64)])
def test_every_operator_with_packed_operands_sees_new_values(shape):
    cases = {
        "dot": (shape, (64, 48), mx.nd.dot),
        "convolution": (
            (2, 8, 9, 9),
            (16, 8, 3, 3),
            lambda x, w: mx.nd.Convolution(x, w, kernel=(3, 3), num_filter=16, no_bias=True),
        ),
        "deconvolution": (
            (2, 8, 5, 5),
            (8, 16, 4, 4),
            lambda x, w: mx.nd.Deconvolution(x, w, kernel=(4, 4), stride=(2, 2), num_filter=16),
        ),
        "rnn": (
            (3, 2, 32),
            (4 * 32 * (32 + 32 + 2),),
            lambda x, w: mx.nd.RNN(
                x, w, mx.nd.zeros((1, 2, 32)), mx.nd.zeros((1, 2, 32)), mode="lstm", state_size=32, num_layers=1
            ),
        ),
    }
    for name, (x_shape, w_shape, call) in cases.items():
        x, w = mx.nd.array(_array(*x_shape)), mx.nd.array(0.3 * _array(*w_shape))
        first = [call(x, w).asnumpy() for _ in range(3)]
        assert all(np.array_equal(first[0], again) for again in first), name
        w[:] = 0.3 * _array(*w_shape)
        # A copy of the weights has no packing yet.
        want = call(x, w.copy()).asnumpy()
        assert not np.array_equal(want, first[0]), name
        for _ in range(3):
            np.testing.assert_array_equal(call(x, w).asnumpy(), want, err_msg=name)


def test_threads_get_the_results_of_their_weights():
    x = mx.nd.array(_array(4, 96))
    weights = [mx.nd.array(_array(130, 96)) for _ in range(3)]
    wants = [_dense(x, w.copy()).asnumpy() for w in weights]
    wrong = []

    def call() -> None:
        for i in range(60):
            if not np.array_equal(_dense(x, weights[i % 3]).asnumpy(), wants[i % 3]):
                wrong.append(i)

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_of_packings_goes_with_the_array_and_stays_bounded():
    used = lambda: mx.cpu().memory_info()["in_use"]  # noqa: E731
    x = mx.nd.array(_array(4, 512))
    w = mx.nd.array(_array(2048, 512))
    mx.nd.waitall()
    before = used()
    for _ in range(5):
        _dense(x, w).wait_to_read()
    mx.nd.waitall()
    packed = used() - before
    assert w.size * 4 <= packed <= 1.5 * w.size * 4, "one packing stays"
    for rows in range(1, 12):
        for _ in range(3):
            _dense(mx.nd.ones((rows, 512)), w[: 64 * rows]).wait_to_read()
    mx.nd.waitall()
    assert used() - before <= 2.6 * w.size * 4, "packings of views count for the array"
    w[:] = 0
    mx.nd.waitall()
    assert used() - before < 0.2 * w.size * 4, "a write drops them"
    for _ in range(3):
        _dense(x, w).wait_to_read()
    del w
    mx.nd.waitall()
    assert used() < before, "the last handle drops them"
