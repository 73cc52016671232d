"""Functions of ``mx.np`` that are one operator: a row each, except ``matmul``.

A new one is a row here and its name in ``__all__``.
"""

from __future__ import annotations

from typing import Any

from ._call import Function, binary, call, check_ufunc_options, direct, unary

__all__ = [
    "abs",
    "absolute",
    "add",
    "all",
    "amax",
    "amin",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "copy",
    "copysign",
    "cos",
    "cosh",
    "cumsum",
    "deg2rad",
    "degrees",
    "diag",
    "diagflat",
    "diagonal",
    "divide",
    "dot",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "fabs",
    "fix",
    "floor",
    "greater",
    "greater_equal",
    "hypot",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "lcm",
    "ldexp",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_not",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "moveaxis",
    "multiply",
    "negative",
    "not_equal",
    "power",
    "prod",
    "product",
    "rad2deg",
    "radians",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "rint",
    "roll",
    "rot90",
    "sign",
    "sin",
    "sinh",
    "sometrue",
    "sqrt",
    "square",
    "squeeze",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "tan",
    "tanh",
    "trace",
    "transpose",
    "tril",
    "true_divide",
    "trunc",
    "var",
]

# ---- of each element -----------------------------------------------------------------------------

abs: Function = unary("abs", "_npi_abs")
absolute: Function = unary("absolute")
fabs: Function = unary("fabs", "_npi_abs")
negative: Function = unary("negative")
sign: Function = unary("sign")
rint: Function = unary("rint")
ceil: Function = unary("ceil")
floor: Function = unary("floor")
trunc: Function = unary("trunc")
fix: Function = unary("fix")
reciprocal: Function = unary("reciprocal")
square: Function = unary("square")
sqrt: Function = unary("sqrt")
cbrt: Function = unary("cbrt")
exp: Function = unary("exp")
expm1: Function = unary("expm1")
log: Function = unary("log")
log2: Function = unary("log2")
log10: Function = unary("log10")
log1p: Function = unary("log1p")
sin: Function = unary("sin")
cos: Function = unary("cos")
tan: Function = unary("tan")
arcsin: Function = unary("arcsin")
arccos: Function = unary("arccos")
arctan: Function = unary("arctan")
sinh: Function = unary("sinh")
cosh: Function = unary("cosh")
tanh: Function = unary("tanh")
arcsinh: Function = unary("arcsinh")
arccosh: Function = unary("arccosh")
arctanh: Function = unary("arctanh")
degrees: Function = unary("degrees")
rad2deg: Function = unary("rad2deg", "_npi_degrees")
radians: Function = unary("radians")
deg2rad: Function = unary("deg2rad", "_npi_radians")
bitwise_not: Function = unary("bitwise_not")
invert: Function = unary("invert", "_npi_bitwise_not")
logical_not: Function = unary("logical_not")
isnan: Function = unary("isnan")
isinf: Function = unary("isinf")
isposinf: Function = unary("isposinf")
isneginf: Function = unary("isneginf")
isfinite: Function = unary("isfinite")

# ---- of two elements -----------------------------------------------------------------------------

add: Function = binary("add")
subtract: Function = binary("subtract", reflected="_npi_rsubtract_scalar")
multiply: Function = binary("multiply")
divide: Function = binary("divide", "_npi_true_divide", "_npi_rtrue_divide_scalar")
true_divide: Function = binary("true_divide", reflected="_npi_rtrue_divide_scalar")
mod: Function = binary("mod", reflected="_npi_rmod_scalar")
remainder: Function = binary("remainder", "_npi_mod", "_npi_rmod_scalar")
power: Function = binary("power", reflected="_npi_rpower_scalar")
maximum: Function = binary("maximum")
minimum: Function = binary("minimum")
copysign: Function = binary("copysign", reflected="_npi_rcopysign_scalar")
arctan2: Function = binary("arctan2", reflected="_npi_rarctan2_scalar")
hypot: Function = binary("hypot")
ldexp: Function = binary("ldexp", reflected="_npi_rldexp_scalar")
lcm: Function = binary("lcm")
bitwise_and: Function = binary("bitwise_and")
bitwise_or: Function = binary("bitwise_or")
bitwise_xor: Function = binary("bitwise_xor")
equal: Function = binary("equal")
not_equal: Function = binary("not_equal")
greater: Function = binary("greater", reflected="_npi_less_scalar")
greater_equal: Function = binary("greater_equal", reflected="_npi_less_equal_scalar")
less: Function = binary("less", reflected="_npi_greater_scalar")
less_equal: Function = binary("less_equal", reflected="_npi_greater_equal_scalar")

# ---- reductions ----------------------------------------------------------------------------------

_SUM = "(a, axis=None, dtype=None, keepdims=False, initial=None, out=None)"
_PROD = "(a, axis=None, dtype=None, out=None, keepdims=False)"
_FOLD = "(a, axis=None, keepdims=False, out=None)"
_DEVIATION = "(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False)"

sum: Function = direct("sum" + _SUM, "_np_sum(a)(axis, dtype, keepdims, initial)")
prod: Function = direct("prod" + _PROD, "_np_prod(a)(axis, dtype, keepdims)")
product: Function = direct("product" + _PROD, "_np_product(a)(axis, dtype, keepdims)")
mean: Function = direct("mean" + _PROD, "_npi_mean(a)(axis, dtype, keepdims)")
max: Function = direct("max" + _FOLD, "_np_max(a)(axis, keepdims)")
amax: Function = direct("amax" + _FOLD, "_np_amax(a)(axis, keepdims)")
min: Function = direct("min" + _FOLD, "_np_min(a)(axis, keepdims)")
amin: Function = direct("amin" + _FOLD, "_np_amin(a)(axis, keepdims)")
any: Function = direct("any" + _FOLD, "_np_any(a)(axis, keepdims)")
sometrue: Function = direct("sometrue" + _FOLD, "_np_sometrue(a)(axis, keepdims)")
all: Function = direct("all" + _FOLD, "_np_all(a)(axis, keepdims)")
std: Function = direct("std" + _DEVIATION, "_npi_std(a)(axis, dtype, ddof, keepdims)")
var: Function = direct("var" + _DEVIATION, "_npi_var(a)(axis, dtype, ddof, keepdims)")
argmax: Function = direct("argmax(a, axis=None, out=None)", "_npi_argmax(a)(axis, keepdims=False)")
argmin: Function = direct("argmin(a, axis=None, out=None)", "_npi_argmin(a)(axis, keepdims=False)")
cumsum: Function = direct("cumsum(a, axis=None, dtype=None, out=None)", "_np_cumsum(a)(axis, dtype)")
trace: Function = direct("trace(a, offset=0, axis1=0, axis2=1, out=None)", "_np_trace(a)(offset, axis1, axis2)")

# ---- shapes --------------------------------------------------------------------------------------

copy: Function = direct("copy(a, out=None)", "_np_copy(a)()")
reshape: Function = direct("reshape(a, newshape, order='C', out=None)", "_np_reshape(a)(newshape, order)")
squeeze: Function = direct("squeeze(a, axis=None, out=None)", "_np_squeeze(a)(axis)")
transpose: Function = direct("transpose(a, axes=None)", "_np_transpose(a)(axes)")
moveaxis: Function = direct("moveaxis(a, source, destination)", "_np_moveaxis(a)(source, destination)")
swapaxes: Function = direct("swapaxes(a, axis1, axis2)", "_npi_swapaxes(a)(dim1=axis1, dim2=axis2)")
expand_dims: Function = direct("expand_dims(a, axis)", "_npi_expand_dims(a)(axis)")
roll: Function = direct("roll(a, shift, axis=None)", "_np_roll(a)(shift, axis)")
rot90: Function = direct("rot90(m, k=1, axes=(0, 1))", "_npi_rot90(m)(k, axes)")
repeat: Function = direct("repeat(a, repeats, axis=None)", "_np_repeat(a)(repeats, axis)")
diag: Function = direct("diag(array, k=0)", "_np_diag(array)(k)")
diagflat: Function = direct("diagflat(array, k=0)", "_np_diagflat(array)(k)")
diagonal: Function = direct("diagonal(a, offset=0, axis1=0, axis2=1)", "_np_diagonal(a)(offset, axis1, axis2)")
tril: Function = direct("tril(m, k=0)", "_npi_tril(m)(k)")

# ---- products ------------------------------------------------------------------------------------

dot: Function = direct("dot(a, b, out=None)", "_np_dot(a, b)()")


def matmul(a: Any, b: Any, out: Any = None, **kwargs: Any) -> Any:
    """The matrix product of two arrays, or of the matrices in their last two axes."""
    if kwargs:
        check_ufunc_options("matmul", kwargs)
    return call("_npi_matmul", (a, b), None, out)
