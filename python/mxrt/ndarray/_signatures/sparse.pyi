"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..ndarray import NDArray

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
    *data: NDArray,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Embedding(
    data: NDArray | None = ...,
    weight: NDArray | None = ...,
    input_dim: int = ...,
    output_dim: int = ...,
    dtype: Any = ...,
    sparse_grad: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def FullyConnected(
    data: NDArray | None = ...,
    weight: NDArray | None = ...,
    bias: NDArray | None = ...,
    num_hidden: int = ...,
    no_bias: bool = ...,
    flatten: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def LinearRegressionOutput(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    grad_scale: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def LogisticRegressionOutput(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    grad_scale: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def MAERegressionOutput(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    grad_scale: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def abs(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def add_n(
    *data: NDArray,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arccos(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arccosh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arcsin(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arcsinh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arctan(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arctanh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_add(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_div(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_minus(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_mul(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_plus(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_sub(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def cbrt(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def ceil(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def clip(
    data: NDArray | None = ...,
    a_min: float = ...,
    a_max: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def concat(
    *data: NDArray,
    dim: int = ...,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def cos(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def cosh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def degrees(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def dot(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    forward_stype: Literal[None, 'csr', 'default', 'row_sparse'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def elemwise_add(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def elemwise_div(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def elemwise_mul(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def elemwise_sub(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def exp(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def expm1(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def fix(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def floor(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def gamma(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def gammaln(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def log(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def log10(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def log1p(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def log2(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def make_loss(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def mean(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def negative(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def norm(
    data: NDArray | None = ...,
    ord: int = ...,
    axis: int | Sequence[int] | None = ...,
    out_dtype: Any = ...,
    keepdims: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def radians(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def relu(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def rint(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def round(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def rsqrt(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sigmoid(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sign(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sin(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sinh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def slice(
    data: NDArray | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sqrt(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def square(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def stop_gradient(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sum(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def tan(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def tanh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def trunc(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def where(
    condition: NDArray | None = ...,
    x: NDArray | None = ...,
    y: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def zeros_like(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
