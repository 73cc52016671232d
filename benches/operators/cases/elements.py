"""Functions of each element: of one array, of two, and of an array and a number."""

from __future__ import annotations

import numpy as np

from .table import add, given, integers, line, square, uniform

# ---- one array ----

_ANY = (
    "abs sign rint ceil floor trunc fix round square cbrt exp expm1 sin cos tan arctan sinh cosh tanh arcsinh degrees "
    "radians negative relu sigmoid softsign erf logical_not BlockGrad _copy make_loss MakeLoss zeros_like ones_like "
    "hard_sigmoid smooth_l1 _contrib_gradientmultiplier _contrib_round_ste _contrib_sign_ste _contrib_div_sqrt_dim "
    "_npi_absolute _npi_sign _npi_rint _npi_ceil _npi_floor _npi_trunc _npi_fix _npi_square _npi_cbrt _npi_exp "
    "_npi_expm1 _npi_sin _npi_cos _npi_tan _npi_arctan _npi_sinh _npi_cosh _npi_tanh _npi_arcsinh _npi_degrees "
    "_npi_radians _npi_negative _npx_relu _npx_sigmoid _npi_logical_not _npi_isnan _npi_isinf _npi_isposinf "
    "_npi_isneginf _npi_isfinite _npi_nan_to_num _np_copy"
)
_POSITIVE = (
    "reciprocal sqrt rsqrt rcbrt log log10 log2 log1p gamma gammaln _npi_reciprocal _npi_sqrt _npi_log _npi_log10 "
    "_npi_log2 _npi_log1p"
)
_BELOW_ONE = "arcsin arccos arctanh erfinv _npi_arcsin _npi_arccos _npi_arctanh"

add(_ANY, lambda n: given(uniform(line(n))), streams=True)
add(_POSITIVE, lambda n: given(uniform(line(n), 0.5, 3)), streams=True)
add("arccosh _npi_arccosh", lambda n: given(uniform(line(n), 1.1, 3)), streams=True)
add(_BELOW_ONE, lambda n: given(uniform(line(n), -0.9, 0.9)), streams=True)
for _kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
    add(f"Activation:{_kind}", lambda n, kind=_kind: given(uniform(line(n)), act_type=kind), streams=True)
for _kind in ("leaky", "elu", "selu", "gelu"):
    add(f"LeakyReLU:{_kind}", lambda n, kind=_kind: given(uniform(square(n)), act_type=kind), streams=True)
add("clip", lambda n: given(uniform(line(n)), a_min=-0.5, a_max=0.5), streams=True)
add("Cast amp_cast", lambda n: given(uniform(line(n)), dtype="float16"), streams=True)
add("Cast:int32", lambda n: given(uniform(line(n)), dtype="int32"), streams=True)
add("_npi_around", lambda n: given(uniform(line(n)), decimals=1), streams=True)
add("_npi_bitwise_not", lambda n: given(integers(line(n), 100, "int32")), streams=True)
add("_contrib_quadratic", lambda n: given(uniform(line(n)), a=1.0, b=2.0, c=3.0), streams=True)
add("Dropout", lambda n: given(uniform(line(n))), streams=True)
add("_identity_with_attr_like_rhs", lambda n: given(uniform(line(n)), uniform(line(n))), streams=True)
add("amp_multicast", lambda n: given(uniform(line(n)), uniform(line(n)), num_outputs=2), streams=True)
add("_npi_full_like", lambda n: given(uniform(line(n)), fill_value=2.5), streams=True)

# ---- two arrays ----

_TWO = (
    "elemwise_add elemwise_sub elemwise_mul elemwise_div _grad_add _equal _not_equal _greater _greater_equal _lesser "
    "_lesser_equal _logical_and _logical_or _logical_xor _maximum _minimum _mod _power _hypot broadcast_add "
    "broadcast_sub broadcast_mul broadcast_div broadcast_mod broadcast_power broadcast_maximum broadcast_minimum "
    "broadcast_hypot broadcast_equal broadcast_not_equal broadcast_greater broadcast_greater_equal broadcast_lesser "
    "broadcast_lesser_equal broadcast_logical_and broadcast_logical_or broadcast_logical_xor _scatter_elemwise_div "
    "_npi_add _npi_subtract _npi_multiply _npi_true_divide _npi_mod _npi_power _npi_copysign _npi_ldexp _npi_hypot "
    "_npi_arctan2 _npi_equal _npi_not_equal _npi_greater _npi_greater_equal _npi_less _npi_less_equal"
)


def _two(n: int) -> tuple[list[object], dict[str, object]]:
    return given(uniform(line(n), 0.5, 3), np.ascontiguousarray(uniform(line(n), 0.5, 3)[::-1]))


add(_TWO, _two, streams=True)
_BITS = "_npi_bitwise_and _npi_bitwise_or _npi_bitwise_xor"
add(_BITS, lambda n: given(integers(line(n), 99, "int32"), integers(line(n), 77, "int32")), streams=True)
add("_npi_lcm", lambda n: given(integers(line(n), 99, "int32"), integers(line(n), 77, "int32")))
for _name in ("broadcast_add", "broadcast_mul", "broadcast_maximum", "_npi_add"):
    add(f"{_name}:row", lambda n: given(uniform(square(n)), uniform((1, square(n)[1]))), streams=True)
    add(f"{_name}:column", lambda n: given(uniform(square(n)), uniform((square(n)[0], 1))), streams=True)
add("add_n", lambda n: given(*(uniform(line(n)) for _ in range(4)), num_args=4), streams=True)
add("where", lambda n: given(integers(line(n), 2), uniform(line(n)), uniform(line(n))), streams=True)
add("_npi_where", lambda n: given(integers(line(n), 2), uniform(line(n)), uniform(line(n))), streams=True)
add("_npi_where_lscalar _npi_where_rscalar", lambda n: given(integers(line(n), 2), uniform(line(n)), scalar=1.5))
add("_npi_where_scalar2", lambda n: given(integers(line(n), 2), x=1.5, y=2.5))
add("_contrib_allclose", lambda n: given(uniform(line(n)), uniform(line(n))))
add("LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput", lambda n: given(*_pair(n)), streams=True)


def _pair(n: int) -> tuple[object, object]:
    return uniform(square(n)), uniform(square(n))


# ---- an array and a number ----

_SCALAR = (
    "_plus_scalar _minus_scalar _rminus_scalar _mul_scalar _div_scalar _rdiv_scalar _mod_scalar _rmod_scalar "
    "_power_scalar _rpower_scalar _maximum_scalar _minimum_scalar _hypot_scalar _equal_scalar _not_equal_scalar "
    "_greater_scalar _greater_equal_scalar _lesser_scalar _lesser_equal_scalar _logical_and_scalar "
    "_logical_or_scalar _logical_xor_scalar _scatter_plus_scalar _scatter_minus_scalar _npi_add_scalar "
    "_npi_subtract_scalar _npi_rsubtract_scalar _npi_multiply_scalar _npi_true_divide_scalar "
    "_npi_rtrue_divide_scalar _npi_mod_scalar _npi_rmod_scalar _npi_power_scalar _npi_rpower_scalar "
    "_npi_copysign_scalar _npi_rcopysign_scalar _npi_arctan2_scalar _npi_rarctan2_scalar _npi_ldexp_scalar "
    "_npi_rldexp_scalar _npi_equal_scalar _npi_not_equal_scalar _npi_greater_scalar _npi_greater_equal_scalar "
    "_npi_less_scalar _npi_less_equal_scalar"
)
add(_SCALAR, lambda n: given(uniform(line(n), 0.5, 3), scalar=1.5), streams=True)
_BITS_SCALAR = "_npi_bitwise_and_scalar _npi_bitwise_or_scalar _npi_bitwise_xor_scalar"
add(_BITS_SCALAR, lambda n: given(integers(line(n), 99, "int32"), scalar=7), streams=True)
add("_npi_lcm_scalar", lambda n: given(integers(line(n), 99, "int32"), scalar=7))

# ---- arrays out of nothing ----

add("_zeros _ones _npi_zeros _npi_ones", lambda n: given(shape=line(n), dtype="float32"), streams=True)
add("_zeros_without_dtype", lambda n: given(shape=line(n)), streams=True)
add("_full", lambda n: given(shape=line(n), value=1.5, dtype="float32"), streams=True)
add("_arange _npi_arange", lambda n: given(start=0, stop=n, step=1, dtype="float32"), streams=True)
add("_linspace", lambda n: given(start=0, stop=1, num=n, dtype="float32"), streams=True)
add("_npi_logspace", lambda n: given(start=0, stop=1, num=n, base=10.0, dtype="float32"))
add("_eye _npi_eye", lambda n: given(N=square(n)[0], M=square(n)[1], dtype="float32"), streams=True)
add("_npi_identity", lambda n: given(shape=(square(n)[0],) * 2, dtype="float32"), streams=True)
add("_npi_indices", lambda n: given(dimensions=square(n), dtype="int32"), streams=True)
add("_npi_blackman _npi_hamming _npi_hanning", lambda n: given(M=n, dtype="float32"))
add("_contrib_arange_like", lambda n: given(uniform(line(n))), streams=True)
add("_contrib_index_array", lambda n: given(uniform(square(n))))
