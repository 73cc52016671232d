"""Random numbers, 8 bits, sparse storage, and the operators without a row."""

from __future__ import annotations

import numpy as np

from .table import (
    Array,
    Stored,
    add,
    bytes_of,
    given,
    image,
    integers,
    leave_out,
    line,
    number,
    sequence,
    square,
    uniform,
)

# ---- random numbers ----

_DRAWN = "_random_uniform _random_normal _random_gamma _random_exponential _random_poisson"
add(_DRAWN, lambda n: given(shape=line(n)), most=1 << 22)
add("_random_negative_binomial", lambda n: given(k=4, p=0.5, shape=line(n)), most=1 << 20)
add("_random_generalized_negative_binomial", lambda n: given(mu=3.0, alpha=0.2, shape=line(n)), most=1 << 20)
add("_random_randint", lambda n: given(low=0, high=10, shape=line(n)), most=1 << 22)
_LIKE = "_random_uniform_like _random_normal_like _random_gamma_like _random_exponential_like _random_poisson_like"
add(_LIKE, lambda n: given(uniform(line(n))), most=1 << 22)
add("_random_negative_binomial_like", lambda n: given(uniform(line(n)), k=4, p=0.5), most=1 << 20)
add("_random_generalized_negative_binomial_like", lambda n: given(uniform(line(n)), mu=3.0, alpha=0.2), most=1 << 20)


def _two(n: int) -> tuple[Array, Array]:
    return uniform(n // 64, 1, 2), uniform(n // 64, 2.5, 3)


add("_sample_uniform _sample_normal _sample_gamma", lambda n: given(*_two(n), shape=(64,)), most=1 << 20)
add("_sample_exponential _sample_poisson", lambda n: given(_two(n)[0], shape=(64,)), most=1 << 20)
add("_sample_negative_binomial", lambda n: given(_two(n)[0], uniform(n // 64, 0.3, 0.6), shape=(64,)), most=1 << 20)
add("_sample_generalized_negative_binomial", lambda n: given(*_two(n), shape=(64,)), most=1 << 20)
add("_sample_multinomial", lambda n: given(np.full((n // 64, 16), 1 / 16, "float32"), shape=(64,)), most=1 << 20)
add("_sample_unique_zipfian", lambda n: given(range_max=100 * n, shape=(1, n // 4)), most=1 << 16)
add("_shuffle", lambda n: given(uniform(line(n))), most=1 << 20)
add("_shuffle:rows", lambda n: given(uniform(square(n))), most=1 << 22)


def _density(n: int) -> Array:
    return uniform((n // 64, 64), 1, 2)


_PDF_TWO = "_random_pdf_normal _random_pdf_uniform _random_pdf_gamma"
add(_PDF_TWO, lambda n: given(_density(n), *_two(n)))
add("_random_pdf_exponential", lambda n: given(_density(n), _two(n)[0]))
add("_random_pdf_poisson", lambda n: given(np.floor(_density(n) * 3), _two(n)[0]))
add("_random_pdf_negative_binomial", lambda n: given(np.floor(_density(n) * 3), _two(n)[0], uniform(n // 64, 0.3, 0.6)))
add("_random_pdf_generalized_negative_binomial", lambda n: given(np.floor(_density(n) * 3), *_two(n)))
add(
    "_random_pdf_dirichlet", lambda n: given(np.full((n // 16, 1, 16), 1 / 16, "float32"), uniform((n // 16, 16), 1, 2))
)
add("_npi_uniform", lambda n: given(low=0.0, high=1.0, size=line(n), dtype="float32"), most=1 << 22)
add("_npi_normal", lambda n: given(loc=0.0, scale=1.0, size=line(n), dtype="float32"), most=1 << 22)
add("_npi_uniform_n", lambda n: given(*_two(n), low=None, high=None, size=(64,)), most=1 << 22)
add("_npi_normal_n", lambda n: given(*_two(n), loc=None, scale=None, size=(64,)), most=1 << 22)
add("_npi_gamma", lambda n: given(shape=2.0, scale=1.5, size=line(n)), most=1 << 20)
add("_npi_logistic _npi_gumbel", lambda n: given(loc=1.0, scale=2.0, size=line(n)), most=1 << 22)
add("_npi_rayleigh _npi_exponential", lambda n: given(scale=2.0, size=line(n)), most=1 << 22)
add("_npi_weibull _npi_pareto _npi_powerd", lambda n: given(a=3.0, size=line(n)), most=1 << 22)
add("_npi_bernoulli", lambda n: given(prob=0.25, logit=None, is_logit=False, size=line(n)), most=1 << 22)
add("_npi_choice", lambda n: given(a=7, size=line(n)), most=1 << 22)
add("_npi_multinomial", lambda n: given(n=100, pvals=(0.25, 0.75), size=(n // 16,)), most=1 << 18)

# ---- 8 bits ----


def _limits(count: int) -> list[Array]:
    """The least and the largest value of each array."""
    return [number(-1.0), number(1.0)] * count


add("_contrib_quantize", lambda n: given(uniform(line(n)), *_limits(1), out_type="int8"))
_CALIBRATED = {"min_calib_range": -1.0, "max_calib_range": 1.0}
add("_contrib_quantize_v2", lambda n: given(uniform(line(n)), out_type="int8", **_CALIBRATED))
add("_contrib_quantize_v2:measured", lambda n: given(uniform(line(n)), out_type="int8"))
add("_contrib_quantize_asym", lambda n: given(uniform(line(n)), **_CALIBRATED))
add("_contrib_dequantize", lambda n: given(bytes_of(line(n)), *_limits(1)))
add("_contrib_requantize", lambda n: given(integers(line(n), 1 << 20, "int32"), *_limits(1), **_CALIBRATED))
add("_contrib_quantized_act", lambda n: given(bytes_of(line(n)), *_limits(1), act_type="relu"))
add("_contrib_quantized_flatten", lambda n: given(bytes_of(image(n)), *_limits(1)))
add("_contrib_quantized_pooling", lambda n: given(bytes_of(image(n)), *_limits(1), kernel=(2, 2), stride=(2, 2)))
add("_contrib_quantized_elemwise_add", lambda n: given(bytes_of(line(n)), bytes_of(line(n)), *_limits(2)))
add("_contrib_quantized_elemwise_mul", lambda n: given(bytes_of(line(n)), bytes_of(line(n)), *_limits(2)))


def _joined(n: int) -> list[Array]:
    return [bytes_of(square(n // 2)), bytes_of(square(n // 2)), number(-1), number(-1), number(1), number(1)]


add("_contrib_quantized_concat", lambda n: given(*_joined(n), dim=1, num_args=2))
add(
    "_contrib_quantized_embedding",
    lambda n: given(integers(n // 64, 1000), bytes_of((1000, 64)), *_limits(1), input_dim=1000, output_dim=64),
)


def _channels(n: int) -> list[Array]:
    return [uniform(image(n)[1], 0.5, 1) for _ in range(4)]


add("_contrib_quantized_batch_norm", lambda n: given(bytes_of(image(n)), *_channels(n), *_limits(1), **_CALIBRATED))


def _window(n: int) -> tuple[list[Array], dict[str, object]]:
    channels = max(4, image(n)[1])
    data = bytes_of((image(n)[0], channels, *image(n)[2:]), "uint8")
    arrays = [data, bytes_of((channels, channels, 3, 3)), bytes_of(channels), *_limits(3)]
    return arrays, {"kernel": (3, 3), "pad": (1, 1), "num_filter": channels}


add("_contrib_calibrate_entropy", lambda n: given(integers(n - 1, 1000), uniform(n)), most=1 << 12)
add("_contrib_quantized_conv", _window, most=1 << 22)


def _dense(n: int) -> tuple[list[Array], dict[str, object]]:
    width = 64 if n <= 1 << 10 else 512
    arrays = [bytes_of((n // width, width)), bytes_of((width, width)), bytes_of(width), *_limits(3)]
    return arrays, {"num_hidden": width}


add("_contrib_quantized_fully_connected", _dense, most=1 << 22)


def _recurrent(n: int) -> list[Array]:
    steps, batch, width = sequence(n)
    weights = uniform(4 * width * (2 * width + 2), -0.05, 0.05)
    states = [uniform((1, batch, width)) for _ in range(2)]
    return [bytes_of((steps, batch, width), "uint8"), weights, *states, number(100.0), number(128.0)]


_LSTM = {"mode": "lstm", "num_layers": 1, "state_outputs": False}
add("_contrib_quantized_rnn", lambda n: given(*_recurrent(n), state_size=sequence(n)[2], **_LSTM), most=1 << 18)

add("_npx_constraint_check", lambda n: given(np.ones(n, bool), msg="all"))

# MXNet's wheel lacks these. A weight of any bytes takes as long as a prepared one.
add("_contrib_intgemm_maxabsolute", lambda n: given(uniform(line(n))))
add("_contrib_intgemm_prepare_data", lambda n: given(uniform(line(n)), number(2.0)))
add("_contrib_intgemm_prepare_weight", lambda n: given(uniform((n // 64, 64)), number(2.0)), most=1 << 22)
add(
    "_contrib_intgemm_take_weight",
    lambda n: given(bytes_of((n // 64, 64)), np.arange(0, n // 64, 2, dtype="int32")),
    most=1 << 22,
)
add(
    "_contrib_intgemm_fully_connected",
    lambda n: given(*_dense(n)[0][:2], number(0.01), no_bias=True, **_dense(n)[1]),
    most=1 << 22,
)

# ---- sparse storage: a tenth of the elements, or every tenth row ----


def _sparse(n: int) -> Array:
    dense = uniform(square(n))
    dense[integers(square(n), 10) > 0] = 0
    return dense


def _rows(n: int) -> Array:
    dense = uniform(square(n), 0.5, 1)
    dense[np.arange(square(n)[0]) % 10 > 0] = 0
    return dense


add("cast_storage", lambda n: given(Stored(_sparse(n), "csr"), stype="default"), most=1 << 22)
add("cast_storage:csr", lambda n: given(_sparse(n), stype="csr"), most=1 << 20)
add("_contrib_getnnz", lambda n: given(Stored(_sparse(n), "csr")), most=1 << 20)
add("dot:csr", lambda n: given(Stored(_sparse(n), "csr"), uniform((square(n)[1], 64))), most=1 << 20)
add("_square_sum", lambda n: given(Stored(_rows(n), "row_sparse"), axis=1), most=1 << 22)
add("_sparse_retain", lambda n: given(Stored(_rows(n), "row_sparse"), np.arange(0, square(n)[0], 20)), most=1 << 22)

# ---- no row ----

leave_out(
    "runs graphs or functions of the program, whose operators have rows",
    "Custom _cond _foreach _while_loop",
)
leave_out(
    "a node that a pass writes into graphs; no function calls it alone",
    "_sg_mkldnn_conv _sg_mkldnn_fully_connected _sg_mkldnn_selfatt_qk _sg_mkldnn_selfatt_valatt",
)
leave_out("writes into an array that is given, as x[:] = 2.5 does: _full has a row", "_set_value")
leave_out("copies between devices; on one device it is _copy", "_CrossDeviceCopy _copyto")
leave_out("answers a question about two arrays without reading them", "_npi_share_memory")
leave_out("reads files or encoded images, which benches/data.py measures", "_cvimdecode _cvimread")
