"""Linear algebra: ``mx.np.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..base import is_number
from ._call import Function, call, direct
from ._protocols import FALLBACK_LINALG
from ._rows import abs, max, min, sum
from .multiarray import ndarray

__all__ = [
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "norm",
    "pinv",
    "slogdet",
    "solve",
    "svd",
    "tensorinv",
    "tensorsolve",
]

cholesky: Function = direct("cholesky(a)", "_npi_cholesky(a)()")
inv: Function = direct("inv(a)", "_npi_inv(a)()")
det: Function = direct("det(a)", "_npi_det(a)()")
slogdet: Function = direct("slogdet(a)", "_npi_slogdet(a)()")
solve: Function = direct("solve(a, b)", "_npi_solve(a, b)()")
tensorinv: Function = direct("tensorinv(a, ind=2)", "_npi_tensorinv(a)(ind)")
tensorsolve: Function = direct("tensorsolve(a, b, axes=None)", "_npi_tensorsolve(a, b)(a_axes=axes)")
eigvalsh: Function = direct("eigvalsh(a, UPLO='L')", "_npi_eigvalsh(a)(UPLO)")


def __getattr__(name: str) -> Any:
    if name in FALLBACK_LINALG:
        return getattr(onp.linalg, name)
    if hasattr(onp.linalg, name):
        raise AttributeError(f"mx.np.linalg.{name} is not part of MXNet 1.9; use numpy.linalg.{name}(x.asnumpy())")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *FALLBACK_LINALG})


def _several(a: Any, made: Any) -> Any:
    """Results as a tuple of arrays, or as a list of symbols."""
    return tuple(made) if isinstance(a, ndarray) else made


def svd(a: Any) -> Any:
    """The singular value decomposition: (ut, l, v) with ``a == ut * l @ v``."""
    return _several(a, call("_npi_svd", (a,)))


def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of symmetric matrices; `UPLO` is the triangle that is read."""
    return _several(a, call("_npi_eigh", (a,), {"UPLO": UPLO}))


def eig(a: Any) -> Any:
    """Eigenvalues and right eigenvectors of square matrices. They must be real."""
    return _several(a, call("_npi_eig", (a,)))


eigvals: Function = direct("eigvals(a)", "_npi_eigvals(a)()")


def pinv(a: Any, rcond: Any = 1e-15, hermitian: bool = False) -> Any:
    """The pseudo-inverse; singular values below `rcond` times the largest count as 0."""
    if hermitian:
        raise NotImplementedError("hermitian is not supported yet...")
    if is_number(rcond):
        return call("_npi_pinv_scalar_rcond", (a,), {"rcond": rcond, "hermitian": False})
    return call("_npi_pinv", (a, rcond), {"hermitian": False})


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A norm of vectors (along one axis) or matrices (along two), of all elements without `axis`.

    `ord` is that of ``numpy.linalg.norm``.
    """
    if axis is None and ord is None:
        return _norm(x, 2, None, keepdims, -2)
    if axis is not None and not isinstance(axis, (int, tuple)):
        raise TypeError("'axis' must be None, an integer or a tuple of integers.")
    axes = (axis,) if isinstance(axis, int) else axis
    if ord in (onp.inf, -onp.inf):
        ord = "inf" if ord > 0 else "-inf"
    if axes is None and isinstance(x, ndarray) and x.ndim == 2:
        axes = (0, 1)
    if axes is not None and len(axes) == 2:
        if ord in ("inf", "-inf", 1, -1):
            row, column = axes
            inside, outside = (column, row) if isinstance(ord, str) else (row, column)
            extreme = max if ord in ("inf", 1) else min
            sums = sum(abs(x), axis=inside, keepdims=keepdims)
            return extreme(sums, axis=outside if keepdims else _without(outside, inside, x), keepdims=keepdims)
        if ord in (2, -2):
            return _norm(x, ord, axes, keepdims, 0)
    if ord in ("inf", "-inf"):
        return (max if ord == "inf" else min)(abs(x), axis=axes, keepdims=keepdims)
    if ord == "nuc":
        return _norm(x, 2, axes, keepdims, 2)
    if ord in (None, "fro", "f"):
        return _norm(x, 2, axes, keepdims, 1)
    return _norm(x, ord, axes, keepdims, -1)


def _without(axis: int, other: int, x: Any) -> int:
    """The number that an axis has when another one is gone. Axes of arrays may be counted from both
    ends, those of a symbol from one.
    """
    if isinstance(x, ndarray):
        axis, other = (one + x.ndim if one < 0 else one for one in (axis, other))
    return axis - 1 if 0 <= other < axis else axis + 1 if axis < other < 0 else axis


def _norm(x: Any, ord: Any, axis: Any, keepdims: bool, flag: int) -> Any:
    attrs = {"ord": ord, "axis": "None" if axis is None else axis, "keepdims": keepdims, "flag": flag}
    return call("_npi_norm", (x,), attrs)
