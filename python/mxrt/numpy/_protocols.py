"""NumPy's functions on arrays of ``mx.np``: ``numpy.sum(x)``, ``numpy.sin(x)``.

Those that ``mx.np`` has are called here. Others are computed by NumPy on copies of the values, and
what they make becomes arrays of ``mx.np`` again.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as onp

from .multiarray import array, ndarray

__all__ = ["FALLBACK", "FALLBACK_LINALG", "FUNCTIONS", "RENAMED", "UFUNCS", "call_function", "call_ufunc", "from_host"]

FUNCTIONS = (
    "all any argmin argmax around round argsort sort append broadcast_arrays broadcast_to clip concatenate copy "
    "cumsum diag diagonal diagflat dot expand_dims fix flip flipud fliplr inner insert max amax mean min amin "
    "nonzero ones_like atleast_1d atleast_2d atleast_3d prod ravel repeat reshape roll split array_split hsplit "
    "vsplit dsplit squeeze stack std sum swapaxes take tensordot tile transpose unique unravel_index "
    "diag_indices_from delete var vdot vstack column_stack hstack dstack zeros_like shape trace tril meshgrid outer "
    "einsum polyval shares_memory may_share_memory quantile percentile diff ediff1d resize where full_like bincount "
    "empty_like nan_to_num isposinf isneginf pad linalg.norm linalg.cholesky linalg.inv linalg.solve "
    "linalg.tensorinv linalg.tensorsolve linalg.pinv linalg.eigvals linalg.eig linalg.eigvalsh linalg.eigh"
).split()

# Both lists are those of MXNet, with `divide`, as NumPy calls `true_divide` now. MXNet leaves the
# rest to NumPy, whose results differ: `numpy.log1p` of integers is float64.
UFUNCS = frozenset(
    "absolute fabs add arctan2 copysign degrees hypot lcm subtract multiply true_divide divide negative power mod "
    "matmul rint sign exp log log2 log10 expm1 sqrt square cbrt reciprocal invert remainder sin cos tan sinh "
    "cosh tanh arcsin arccos arctan arcsinh arccosh arctanh maximum minimum ceil trunc floor bitwise_and bitwise_xor "
    "bitwise_or logical_not equal not_equal less less_equal greater greater_equal".split()
)

# Names of mx.np that are NumPy's own functions: they come back here by the protocol.
FALLBACK = (
    "allclose alltrue apply_along_axis apply_over_axes argpartition argwhere array_equal array_equiv choose compress "
    "corrcoef correlate count_nonzero cov digitize divmod extract flatnonzero float_power frexp heaviside histogram2d "
    "histogram_bin_edges histogramdd i0 in1d interp intersect1d isclose isin ix_ lexsort min_scalar_type mirr modf "
    "msort nanargmax nanargmin nancumprod nancumsum nanmax nanmedian nanmin nanpercentile nanprod nanquantile nanstd "
    "nansum nanvar ndim npv partition packbits piecewise pmt poly polyadd polydiv polyfit polyint polymul polysub "
    "positive ppmt promote_types ptp pv rate real result_type rollaxis roots searchsorted select setdiff1d setxor1d "
    "signbit size spacing take_along_axis trapz tril_indices_from trim_zeros triu_indices_from union1d unpackbits "
    "unwrap vander"
).split()
FALLBACK_LINALG = "cond lstsq matrix_power matrix_rank multi_dot qr".split()


def _alltrue(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Whether all elements along an axis are true; `numpy.all`, by its old name."""
    return onp.all(a, axis=axis, out=out, keepdims=keepdims)


def _in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element of `ar1`, flattened, is in `ar2`."""
    return onp.isin(ar1, ar2, assume_unique=assume_unique, invert=invert).reshape(-1)


def _msort(a: Any) -> Any:
    """A copy sorted along the first axis."""
    return onp.sort(a, axis=0)


def _trapz(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """The integral by the trapezoidal rule."""
    return onp.trapezoid(y, x=x, dx=dx, axis=axis)


# Functions that newer versions of NumPy have by other names.
RENAMED = {"alltrue": _alltrue, "in1d": _in1d, "msort": _msort, "trapz": _trapz}


_names: dict[Any, str] = {}


def _by_function() -> dict[Any, str]:
    """The names of those functions of NumPy that ``mx.np`` has."""
    global _names
    if _names:
        return _names
    found: dict[Any, str] = {}
    for name in FUNCTIONS:
        function: Any = onp
        for part in name.split("."):
            function = getattr(function, part, None)
        if function is not None:
            found[function] = name
    # Whole, as other threads look into it without a lock.
    _names = found
    return found


def _own(name: str) -> Any:
    found: Any = sys.modules[__name__.rpartition(".")[0]]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def call_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """A function of NumPy that got an array of ``mx.np``."""
    name = _by_function().get(func)
    if name is not None:
        if not all(issubclass(kind, ndarray) for kind in types):
            return NotImplemented
        return _own(name)(*args, **kwargs)
    context = _context([*args, *kwargs.values()])
    plain = {key: to_host(value) for key, value in kwargs.items()}
    return from_host(func(*[to_host(value) for value in args], **plain), context)


def call_ufunc(ufunc: Any, method: str, inputs: Any, kwargs: dict[str, Any]) -> Any:
    """A ufunc of NumPy that got an array of ``mx.np``."""
    if method != "__call__":
        return NotImplemented
    options = dict(kwargs)
    if "out" in options:
        if len(options["out"]) != 1:
            raise ValueError("The `out` parameter must have exactly one ndarray")
        options["out"] = options["out"][0]
    name = ufunc.__name__
    if name in UFUNCS:
        return _own(name)(*inputs, **options)
    out = options.pop("out", None)
    options = {key: to_host(value) for key, value in options.items()}
    if out is not None and "where" in options:
        # What is left out keeps the value that it has in `out`.
        options["out"] = to_host(out)
    made = ufunc(*[to_host(value) for value in inputs], **options)
    if out is None:
        return from_host(made, _context(inputs))
    out[...] = made
    return out


def _context(values: Any) -> Any:
    """The context of the first array in nested lists."""
    for value in values:
        if isinstance(value, ndarray):
            return value.context
        if isinstance(value, (list, tuple)):
            found = _context(value)
            if found is not None:
                return found
    return None


def to_host(value: Any) -> Any:
    """Nested lists with NumPy's arrays in the place of ours."""
    if isinstance(value, ndarray):
        return value.asnumpy()
    if type(value) in (list, tuple):
        return type(value)(to_host(part) for part in value)
    return value


def from_host(value: Any, context: Any = None) -> Any:
    """Nested lists with arrays of ``mx.np`` in the place of NumPy's; other values stay."""
    if isinstance(value, onp.ndarray) and value.dtype.kind in "biuf":
        return array(value, dtype=value.dtype, ctx=context)
    if isinstance(value, (list, tuple)):
        parts = [from_host(part, context) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value
