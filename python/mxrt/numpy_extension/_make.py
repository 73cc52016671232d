"""The functions ``mx.npx.X``: those of ``mx.nd.X`` and ``mx.sym.X``, on arrays of ``mx.np``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import _mxrt
from ..ndarray import NDArray
from ..ndarray._make import make as make_of_arrays
from ..numpy._call import LEGACY, wrapped
from ..numpy.multiarray import ndarray

__all__ = ["make"]


def make(operator: _mxrt.Operator, name: str, module: str) -> Any:
    """The function of an operator."""
    from ..symbol._make import make as make_of_symbols
    from ..symbol.numpy._symbol import outputs_of

    of_arrays, of_symbols = (one(operator, name, module, True) for one in (make_of_arrays, make_of_symbols))

    def function(*args: Any, **kwargs: Any) -> Any:
        for value in _values(args, kwargs):
            if isinstance(value, _mxrt.SymbolBase):
                return outputs_of(of_symbols(*args, **kwargs))
            if isinstance(value, NDArray) and not isinstance(value, ndarray):
                raise TypeError(f"npx.{name}: got {LEGACY}")
        made = of_arrays(*args, **kwargs)
        return made if kwargs.get("out") is not None else wrapped(made)

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = of_arrays.__doc__
    function.__signature__ = of_arrays.__signature__  # type: ignore[attr-defined]
    return function


def _values(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    yield from args
    yield from kwargs.values()
