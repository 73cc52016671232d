"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..symbol import Symbol

# ruff: noqa
# fmt: off

__all__ = [
    "ElementWiseSum",
    "Embedding",
    "FullyConnected",
    "LinearRegressionOutput",
    "LogisticRegressionOutput",
    "MAERegressionOutput",
    "abs",
    "add_n",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "broadcast_add",
    "broadcast_div",
    "broadcast_minus",
    "broadcast_mul",
    "broadcast_plus",
    "broadcast_sub",
    "cbrt",
    "ceil",
    "clip",
    "concat",
    "cos",
    "cosh",
    "degrees",
    "dot",
    "elemwise_add",
    "elemwise_div",
    "elemwise_mul",
    "elemwise_sub",
    "exp",
    "expm1",
    "fix",
    "floor",
    "gamma",
    "gammaln",
    "log",
    "log10",
    "log1p",
    "log2",
    "make_loss",
    "mean",
    "negative",
    "norm",
    "radians",
    "relu",
    "rint",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "slice",
    "sqrt",
    "square",
    "stop_gradient",
    "sum",
    "tan",
    "tanh",
    "trunc",
    "where",
    "zeros_like",
]

def ElementWiseSum(
    *data: Symbol,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Embedding(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    input_dim: int = ...,
    output_dim: int = ...,
    dtype: Any = ...,
    sparse_grad: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def FullyConnected(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    bias: Symbol | None = ...,
    num_hidden: int = ...,
    no_bias: bool = ...,
    flatten: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def LinearRegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def LogisticRegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def MAERegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def abs(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def add_n(
    *data: Symbol,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arccos(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arccosh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arcsin(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arcsinh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arctan(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arctanh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_add(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_div(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_minus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_mul(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_plus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_sub(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def cbrt(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def ceil(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def clip(
    data: Symbol | None = ...,
    a_min: float = ...,
    a_max: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def concat(
    *data: Symbol,
    dim: int = ...,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def cos(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def cosh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def degrees(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def dot(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    forward_stype: Literal[None, 'csr', 'default', 'row_sparse'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def elemwise_add(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def elemwise_div(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def elemwise_mul(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def elemwise_sub(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def exp(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def expm1(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def fix(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def floor(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def gamma(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def gammaln(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def log(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def log10(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def log1p(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def log2(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def make_loss(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def mean(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def negative(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def norm(
    data: Symbol | None = ...,
    ord: int = ...,
    axis: int | Sequence[int] | None = ...,
    out_dtype: Any = ...,
    keepdims: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def radians(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def relu(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def rint(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def round(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def rsqrt(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sigmoid(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sign(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sin(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sinh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def slice(
    data: Symbol | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sqrt(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def square(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def stop_gradient(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sum(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def tan(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def tanh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def trunc(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def where(
    condition: Symbol | None = ...,
    x: Symbol | None = ...,
    y: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def zeros_like(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
