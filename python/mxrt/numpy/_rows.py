"""Functions of ``mx.np`` that are one operator: a row each.

A new one is a row here and its name in ``__all__``.
"""

from __future__ import annotations

from ._call import binary, direct, unary

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

abs = unary("abs", "_npi_absolute")
absolute = unary("absolute")
fabs = unary("fabs", "_npi_absolute")
negative = unary("negative")
sign = unary("sign")
rint = unary("rint")
ceil = unary("ceil")
floor = unary("floor")
trunc = unary("trunc")
fix = unary("fix")
reciprocal = unary("reciprocal")
square = unary("square")
sqrt = unary("sqrt")
cbrt = unary("cbrt")
exp = unary("exp")
expm1 = unary("expm1")
log = unary("log")
log2 = unary("log2")
log10 = unary("log10")
log1p = unary("log1p")
sin = unary("sin")
cos = unary("cos")
tan = unary("tan")
arcsin = unary("arcsin")
arccos = unary("arccos")
arctan = unary("arctan")
sinh = unary("sinh")
cosh = unary("cosh")
tanh = unary("tanh")
arcsinh = unary("arcsinh")
arccosh = unary("arccosh")
arctanh = unary("arctanh")
degrees = unary("degrees")
rad2deg = unary("rad2deg", "_npi_degrees")
radians = unary("radians")
deg2rad = unary("deg2rad", "_npi_radians")
bitwise_not = unary("bitwise_not")
invert = unary("invert", "_npi_bitwise_not")
logical_not = unary("logical_not")
isnan = unary("isnan")
isinf = unary("isinf")
isposinf = unary("isposinf")
isneginf = unary("isneginf")
isfinite = unary("isfinite")

# ---- of two elements -----------------------------------------------------------------------------

add = binary("add")
subtract = binary("subtract", reflected="_npi_rsubtract_scalar")
multiply = binary("multiply")
divide = binary("divide", "_npi_true_divide", "_npi_rtrue_divide_scalar")
true_divide = binary("true_divide", reflected="_npi_rtrue_divide_scalar")
mod = binary("mod", reflected="_npi_rmod_scalar")
remainder = binary("remainder", "_npi_mod", "_npi_rmod_scalar")
power = binary("power", reflected="_npi_rpower_scalar")
maximum = binary("maximum")
minimum = binary("minimum")
copysign = binary("copysign", reflected="_npi_rcopysign_scalar")
arctan2 = binary("arctan2", reflected="_npi_rarctan2_scalar")
hypot = binary("hypot")
ldexp = binary("ldexp", reflected="_npi_rldexp_scalar")
lcm = binary("lcm")
bitwise_and = binary("bitwise_and")
bitwise_or = binary("bitwise_or")
bitwise_xor = binary("bitwise_xor")
equal = binary("equal")
not_equal = binary("not_equal")
greater = binary("greater", reflected="_npi_less_scalar")
greater_equal = binary("greater_equal", reflected="_npi_less_equal_scalar")
less = binary("less", reflected="_npi_greater_scalar")
less_equal = binary("less_equal", reflected="_npi_greater_equal_scalar")

# ---- reductions ----------------------------------------------------------------------------------

_SUM = "(a, axis=None, dtype=None, keepdims=False, initial=None, out=None)"
_PROD = "(a, axis=None, dtype=None, out=None, keepdims=False)"
_FOLD = "(a, axis=None, keepdims=False, out=None)"
_DEVIATION = "(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False)"

sum = direct("sum" + _SUM, "_np_sum(a)(axis, dtype, keepdims, initial)")
prod = direct("prod" + _PROD, "_np_prod(a)(axis, dtype, keepdims)")
product = direct("product" + _PROD, "_np_prod(a)(axis, dtype, keepdims)")
mean = direct("mean" + _PROD, "_npi_mean(a)(axis, dtype, keepdims)")
max = direct("max" + _FOLD, "_np_max(a)(axis, keepdims)")
amax = direct("amax" + _FOLD, "_np_max(a)(axis, keepdims)")
min = direct("min" + _FOLD, "_np_min(a)(axis, keepdims)")
amin = direct("amin" + _FOLD, "_np_min(a)(axis, keepdims)")
any = direct("any" + _FOLD, "_np_any(a)(axis, keepdims)")
sometrue = direct("sometrue" + _FOLD, "_np_any(a)(axis, keepdims)")
all = direct("all" + _FOLD, "_np_all(a)(axis, keepdims)")
std = direct("std" + _DEVIATION, "_npi_std(a)(axis, dtype, ddof, keepdims)")
var = direct("var" + _DEVIATION, "_npi_var(a)(axis, dtype, ddof, keepdims)")
argmax = direct("argmax(a, axis=None, out=None)", "_npi_argmax(a)(axis, keepdims=False)")
argmin = direct("argmin(a, axis=None, out=None)", "_npi_argmin(a)(axis, keepdims=False)")
cumsum = direct("cumsum(a, axis=None, dtype=None, out=None)", "_np_cumsum(a)(axis, dtype)")
trace = direct("trace(a, offset=0, axis1=0, axis2=1, out=None)", "_np_trace(a)(offset, axis1, axis2)")

# ---- shapes --------------------------------------------------------------------------------------

copy = direct("copy(a, out=None)", "_np_copy(a)()")
reshape = direct("reshape(a, newshape, order='C', out=None)", "_np_reshape(a)(newshape, order)")
squeeze = direct("squeeze(a, axis=None, out=None)", "_np_squeeze(a)(axis)")
transpose = direct("transpose(a, axes=None)", "_np_transpose(a)(axes)")
moveaxis = direct("moveaxis(a, source, destination)", "_np_moveaxis(a)(source, destination)")
swapaxes = direct("swapaxes(a, axis1, axis2)", "_npi_swapaxes(a)(dim1=axis1, dim2=axis2)")
expand_dims = direct("expand_dims(a, axis)", "_npi_expand_dims(a)(axis)")
roll = direct("roll(a, shift, axis=None)", "_np_roll(a)(shift, axis)")
rot90 = direct("rot90(m, k=1, axes=(0, 1))", "_npi_rot90(m)(k, axes)")
repeat = direct("repeat(a, repeats, axis=None)", "_np_repeat(a)(repeats, axis)")
diag = direct("diag(array, k=0)", "_np_diag(array)(k)")
diagflat = direct("diagflat(array, k=0)", "_np_diagflat(array)(k)")
diagonal = direct("diagonal(a, offset=0, axis1=0, axis2=1)", "_np_diagonal(a)(offset, axis1, axis2)")
tril = direct("tril(m, k=0)", "_npi_tril(m)(k)")

# ---- products ------------------------------------------------------------------------------------

dot = direct("dot(a, b, out=None)", "_np_dot(a, b)()")
matmul = direct("matmul(a, b, out=None)", "_npi_matmul(a, b)()")
