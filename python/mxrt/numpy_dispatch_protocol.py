"""NumPy's protocols for arrays of ``mx.np``: the functions of NumPy that ``mx.np`` computes, and
decorators for tests of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .numpy._protocols import FUNCTIONS, UFUNCS

__all__ = ["with_array_function_protocol", "with_array_ufunc_protocol"]

_NUMPY_ARRAY_FUNCTION_LIST = list(FUNCTIONS)
_NUMPY_ARRAY_UFUNC_LIST = sorted(UFUNCS)


def with_array_function_protocol(func: Callable[..., Any]) -> Callable[..., None]:
    """Decorates a function that needs NumPy's protocol of functions, which every NumPy that mxrt
    works with has. An error of the function becomes a RuntimeError.
    """
    return _named_in_errors(func, "function")


def with_array_ufunc_protocol(func: Callable[..., Any]) -> Callable[..., None]:
    """Decorates a function that needs NumPy's protocol of ufuncs, in the same way."""
    return _named_in_errors(func, "ufunc")


def _named_in_errors(func: Callable[..., Any], protocol: str) -> Callable[..., None]:
    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            func(*args, **kwargs)
        except Exception as error:
            name = getattr(func, "__name__", func)
            raise RuntimeError(f"{name}, which needs NumPy's array {protocol} protocol, failed: {error}") from error

    return run
