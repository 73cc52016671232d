"""Errors, and small things that every module needs."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = [
    "InternalError",
    "MXNetDataError",
    "MXNetDeviceError",
    "MXNetError",
    "MXNetIndexError",
    "MXNetKeyError",
    "MXNetMemoryError",
    "MXNetNotImplementedError",
    "MXNetShapeError",
    "MXNetShutdownError",
    "MXNetTimeoutError",
    "MXNetTypeError",
    "MXNetValueError",
    "MultipleErrors",
    "NotImplementedForSymbol",
    "NotSupportedForSparseNDArray",
    "TrainingNotSupportedError",
]

numeric_types = (float, int, np.generic)
integer_types = (int, np.integer)
string_types = (str,)


class MXNetError(RuntimeError):
    """Something failed inside mxrt.

    Attributes
    ----------
    kind : what sort of failure: ``operator``, ``value``, ``type``, ``shape``, ``index``, ``data``, ``memory``, ...
    op : name of the operator, or None
    node : name of the node in the graph, or None
    attrs : the operator's attributes as text
    shapes, dtypes : of the operator's inputs
    device : where the operator ran, or None
    request : number of the call of a model that the operator belonged to, or None
    pushed_at : with ``MXRT_DEBUG=1``, the ``file:line`` that called the operator, or None
    """

    kind: str = "operator"
    op: str | None = None
    node: str | None = None
    device: str | None = None
    request: int | None = None
    pushed_at: str | None = None

    def __init__(
        self,
        message: str = "",
        *,
        kind: str | None = None,
        op: str | None = None,
        node: str | None = None,
        attrs: Mapping[str, str] | None = None,
        shapes: Sequence[tuple[int, ...]] = (),
        dtypes: Sequence[str] = (),
        device: str | None = None,
        pushed_at: str | None = None,
        request: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if kind is not None:
            self.kind = kind
        self.op = op
        self.node = node
        self.attrs = dict(attrs or {})
        self.shapes = tuple(shapes)
        self.dtypes = tuple(dtypes)
        self.device = device
        self.pushed_at = pushed_at
        self.request = request

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,), self.__dict__


class MXNetValueError(MXNetError, ValueError):
    """An argument or attribute has a value that is not allowed."""

    kind = "value"


class MXNetShapeError(MXNetValueError):
    """Shapes do not fit together."""

    kind = "shape"


class MXNetTypeError(MXNetError, TypeError):
    """Element types do not fit, or an argument has the wrong type."""

    kind = "type"


class MXNetIndexError(MXNetError, IndexError):
    """An index is out of range."""

    kind = "index"


class MXNetKeyError(MXNetError, KeyError):
    """A name is not known."""

    kind = "key"


class MXNetNotImplementedError(MXNetError, NotImplementedError):
    """The feature does not exist in this build."""

    kind = "not_implemented"


class TrainingNotSupportedError(MXNetNotImplementedError):
    """A call that belongs to training: mxrt runs models, it does not train them."""


class MXNetMemoryError(MXNetError, MemoryError):
    """There is no memory for an array."""

    kind = "memory"


class MXNetDataError(MXNetError, ValueError):
    """A file or its content cannot be used."""

    kind = "data"


class MXNetDeviceError(MXNetError):
    """The device is not available, or arrays live on different ones."""

    kind = "device"


class MXNetShutdownError(MXNetError):
    """The interpreter is ending and the engine accepts no more work."""

    kind = "shutdown"


class MXNetTimeoutError(MXNetError, TimeoutError):
    """The deadline passed first."""

    kind = "deadline"


class InternalError(MXNetError):
    """A defect of mxrt itself: an operator panicked."""

    kind = "panic"


class MultipleErrors(MXNetError):
    """Several operators failed; ``errors`` has the single ones, ``more`` counts those that were not kept."""

    kind = "multiple"

    def __init__(self, errors: Sequence[MXNetError] = (), more: int = 0) -> None:
        self.errors = list(errors)
        self.more = more
        lines = [f"{len(self.errors) + more} operators failed:"]
        lines += [f"  {error}" for error in self.errors[:10]]
        hidden = max(len(self.errors) - 10, 0) + more
        if hidden:
            lines.append(f"  and {hidden} more")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.errors, self.more)


class NotImplementedForSymbol(MXNetError):
    """A method of NDArray that a Symbol, which has no value, cannot have."""

    kind = "not_implemented"

    def __init__(self, function: Any = "", alias: str | None = None, *args: Any) -> None:
        name = getattr(function, "__name__", str(function))
        text = f"Function {name}"
        if alias:
            text += f" (namely operator '{alias}')"
        super().__init__(text + " is not implemented for Symbol and only available in NDArray.")


class NotSupportedForSparseNDArray(MXNetError):
    """A method that sparse arrays do not have."""

    kind = "not_implemented"

    def __init__(self, function: Any = "", alias: str | None = None, *args: Any) -> None:
        name = getattr(function, "__name__", str(function))
        text = f"Function {name}"
        if alias:
            text += f" (namely operator '{alias}')"
        super().__init__(text + " is not supported for sparse arrays; convert with tostype('default') first.")


_CLASSES: dict[str, type[MXNetError]] = {
    "operator": MXNetError,
    "value": MXNetValueError,
    "type": MXNetTypeError,
    "shape": MXNetShapeError,
    "index": MXNetIndexError,
    "key": MXNetKeyError,
    "not_implemented": MXNetNotImplementedError,
    "memory": MXNetMemoryError,
    "panic": InternalError,
    "not_completed": InternalError,
    "shutdown": MXNetShutdownError,
    "deadline": MXNetTimeoutError,
    "cancelled": MXNetError,
    "data": MXNetDataError,
    "device": MXNetDeviceError,
}


def _make_error(
    kind: str,
    message: str,
    op: str | None,
    node: str | None,
    attrs: dict[str, str],
    shapes: tuple[tuple[int, ...], ...],
    dtypes: tuple[str, ...],
    device: str | None,
    pushed_at: str | None,
    request: int | None,
) -> MXNetError:
    """The exception for a failure; called by the Rust border, which is the only other place that knows the kinds."""
    make = _CLASSES.get(kind, MXNetError)
    return make(
        message,
        kind=kind,
        op=op,
        node=node,
        attrs=attrs,
        shapes=shapes,
        dtypes=dtypes,
        device=device,
        pushed_at=pushed_at,
        request=request,
    )


def _push_site() -> str:
    """``file:line`` of the innermost caller outside of mxrt; called by the Rust border with ``MXRT_DEBUG=1``."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "mxrt":
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def no_training(what: str) -> TrainingNotSupportedError:
    """The error for calls that belong to training."""
    return TrainingNotSupportedError(
        f"{what} belongs to training, which mxrt does not support: it runs trained models. "
        "Train with MXNet and load the exported files here."
    )


def is_number(value: object) -> bool:
    """Whether a value can stand for all elements of an array."""
    return isinstance(value, (numbers.Number, np.generic))


_BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
_DTYPES: dict[str, Any] = {}
_NAMES: dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    """The name of an element type, however it is given; TypeError when there is no such type."""
    try:
        return _NAMES[dtype]
    except (KeyError, TypeError):
        pass
    if dtype is None:
        return "float32"
    name = "bfloat16" if isinstance(dtype, str) and dtype == "bfloat16" else _numpy_name(dtype)
    try:
        _NAMES[dtype] = name
    except TypeError:  # cannot be a key: looked up each time
        pass
    return name


def _numpy_name(dtype: Any) -> str:
    found = np.dtype(dtype)
    return "bfloat16" if found == _BFLOAT16 else found.name


def dtype_class(name: str) -> Any:
    """What ``.dtype`` shows: numpy's scalar class, as in MXNet (a structured dtype for bfloat16)."""
    found = _DTYPES.get(name)
    if found is None:
        found = _DTYPES[name] = _BFLOAT16 if name == "bfloat16" else np.dtype(name).type
    return found
