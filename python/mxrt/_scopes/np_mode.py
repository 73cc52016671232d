"""The switches of the numpy interface: whether shapes are NumPy's in this thread, and whether gluon
makes arrays of ``mx.np`` there.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from .. import _mxrt

__all__ = [
    "ArrayScope",
    "ShapeScope",
    "is_np_array",
    "is_np_shape",
    "made_here",
    "reset_np",
    "set_np",
    "set_np_shape",
    "use_np",
    "use_np_array",
    "use_np_shape",
]

_Target = TypeVar("_Target")
_Array = TypeVar("_Array", bound=Any)


class _Arrays(threading.local):
    """Whether the numpy interface is on in a thread. In a new thread it is off, as in MXNet."""

    active = False


_arrays = _Arrays()


def is_np_shape() -> bool:
    """Whether shapes are NumPy's in this thread: ``()`` is a scalar's, and 0 an empty axis."""
    return _mxrt.is_np_shape()


def is_np_array() -> bool:
    """Whether gluon makes arrays of ``mx.np`` in this thread."""
    return _arrays.active


def made_here(array: _Array) -> _Array:
    """An array of the class that gluon and ``mx.image`` make: one of ``mx.np`` under the numpy
    interface.
    """
    made: _Array = array.as_np_ndarray() if is_np_array() else array
    return made


def set_np_shape(active: Any) -> bool:
    """Switches NumPy's shapes on or off in this thread; returns the state before.

    Raises ValueError for off while the numpy interface is on.
    """
    if not active and is_np_array():
        raise ValueError(
            "Deactivating NumPy shape semantics while NumPy array semantics is still active is not allowed. Please "
            "consider calling `npx.reset_np()` to deactivate both of them."
        )
    return bool(_mxrt.set_np_shape(int(bool(active))))


def set_np(shape: bool = True, array: bool = True) -> None:
    """Switches NumPy's shapes, and the arrays of ``mx.np`` in gluon, on or off in this thread.

    Raises ValueError for arrays without shapes.
    """
    if not shape and array:
        raise ValueError("NumPy Shape semantics is required in using NumPy array semantics.")
    _arrays.active = bool(array)
    set_np_shape(shape)


def reset_np() -> None:
    """Switches the numpy interface off in this thread."""
    set_np(shape=False, array=False)


class ShapeScope:
    """A ``with`` block with NumPy's shapes on or off."""

    def __init__(self, is_np_shape: bool) -> None:
        self._enter_is_np_shape = is_np_shape
        self._prev_is_np_shape: bool | None = None

    def __enter__(self) -> None:
        if self._enter_is_np_shape is not None:
            self._prev_is_np_shape = set_np_shape(self._enter_is_np_shape)

    def __exit__(self, *exception: Any) -> None:
        if self._prev_is_np_shape is not None and self._prev_is_np_shape != self._enter_is_np_shape:
            set_np_shape(self._prev_is_np_shape)


class ArrayScope:
    """A ``with`` block with the numpy interface on or off."""

    def __init__(self, is_np_array: bool) -> None:
        self._is_np_array = bool(is_np_array)
        self._before: list[bool] = []

    def __enter__(self) -> ArrayScope:
        self._before.append(_arrays.active)
        _arrays.active = self._is_np_array
        return self

    def __exit__(self, *exception: Any) -> None:
        _arrays.active = self._before.pop()


# ---- decorators ----------------------------------------------------------------------------------


def use_np_shape(func: _Target) -> _Target:
    """Gives a function NumPy's shapes while it runs; a class in all its methods and properties.

    Raises TypeError for what is neither.
    """
    made: _Target = _scoped(func, True, False)
    return made


def use_np_array(func: _Target) -> _Target:
    """Gives a function the numpy interface while it runs; a class in all its methods and
    properties.
    """
    made: _Target = _scoped(func, False, True)
    return made


def use_np(func: _Target) -> _Target:
    """Gives a function NumPy's shapes and the numpy interface while it runs; a class in all its
    methods and properties.
    """
    made: _Target = _scoped(func, True, True)
    return made


def _scoped(target: Any, shape: bool, array: bool) -> Any:
    if inspect.isclass(target):
        for name in dir(target):
            found = inspect.getattr_static(target, name)
            scoped = _member(found, shape, array)
            if scoped is not found:
                setattr(target, name, scoped)
        return target
    if callable(target):
        return _function(target, shape, array)
    raise TypeError(
        f"use_np, use_np_shape and use_np_array decorate classes and callable objects, while received a {type(target)}"
    )


def _member(found: Any, shape: bool, array: bool) -> Any:
    """A member of a class as it runs in the scope; what is neither method nor property stays."""
    if isinstance(found, (staticmethod, classmethod)):
        inner = found.__func__
        return type(found)(_function(inner, shape, array)) if inspect.isfunction(inner) else found
    if isinstance(found, property):
        get, put, drop = (part and _function(part, shape, array) for part in (found.fget, found.fset, found.fdel))
        return property(get, put, drop, found.__doc__)
    return _function(found, shape, array) if inspect.isfunction(found) else found


def _function(function: Callable[..., Any], shape: bool, array: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        arrays_before = _arrays.active
        shape_before = _mxrt.set_np_shape(1) if shape else None
        if array:
            _arrays.active = True
        try:
            return function(*args, **kwargs)
        finally:
            _arrays.active = arrays_before
            if shape_before is not None:
                _mxrt.set_np_shape(shape_before)

    return run
