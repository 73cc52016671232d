"""Errors, and small things that every module needs."""

from __future__ import annotations

import ctypes
import errno
import numbers
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from ._output.codes import code_of, with_code, without_codes

__all__ = [
    "InternalError",
    "MXNetCancelledError",
    "MXNetDataError",
    "MXNetDeprecationWarning",
    "MXNetDeviceError",
    "MXNetError",
    "MXNetFileNotFoundError",
    "MXNetIndexError",
    "MXNetKeyError",
    "MXNetMemoryError",
    "MXNetNotImplementedError",
    "MXNetRuntimeWarning",
    "MXNetShapeError",
    "MXNetShutdownError",
    "MXNetTimeoutError",
    "MXNetTypeError",
    "MXNetValueError",
    "MXNetWarning",
    "MultipleErrors",
    "NotImplementedForSymbol",
    "NotSupportedForSparseNDArray",
    "TrainingNotSupportedError",
]

__version__ = "1.9.1"
"""The version of MXNet whose interface this is."""

numeric_types: tuple[type[Any], ...] = (float, int, np.generic)
integer_types: tuple[type[Any], ...] = (int, np.integer)
string_types: tuple[type[str]] = (str,)

# What programs that call MXNet's C library by ctypes name before they do. Here objects stand in the
# place of handles.
mx_int = ctypes.c_int
mx_uint = ctypes.c_uint
mx_float = ctypes.c_float
mx_real_t = np.float32
NDArrayHandle = SymbolHandle = ExecutorHandle = CachedOpHandle = OpHandle = ctypes.c_void_p


_LONGEST_MESSAGE = 20_000
_LONGEST_WORD = 1_000


def _shortened(message: str) -> str:
    """A message without the middle of what a file or a caller made too long to be read."""
    if len(message) <= _LONGEST_MESSAGE:
        return message

    def cut(word: re.Match[str]) -> str:
        return f"{word[0][:200]}...({len(word[0])} characters)...{word[0][-100:]}"

    message = re.sub(rf"\S{{{_LONGEST_WORD},}}", cut, message)
    if len(message) <= _LONGEST_MESSAGE:
        return message
    left_out = len(message) - _LONGEST_MESSAGE
    return f"{message[: _LONGEST_MESSAGE - 4000]} ...({left_out} characters)... {message[-4000:]}"


class MXNetError(RuntimeError):
    """Something failed inside mxrt. Its text is the message and, at the end, the code in brackets.

    Attributes
    ----------
    message : the text without the code
    code : short name of the kind, such as ``MX-SHAPE``: ``mxrt explain MX-SHAPE`` prints its page
    kind : what sort of failure: ``operator``, ``value``, ``type``, ``shape``, ``index``, ``data``,
        ``memory``, ...
    op : name of the operator, or None
    node : name of the node in the graph, or None
    attrs : the operator's attributes as text
    shapes, dtypes : of the operator's inputs
    device : where the operator ran, or None
    request : number of the call of a model that the operator belonged to, or None
    input, got, wanted : name of the model's input that is to blame, the type or shape that it was
        given, and what it needs, as text; or None
    pushed_at : with ``MXRT_DEBUG=1``, the ``file:line`` that called the operator, or None
    """

    kind: str = "operator"
    op: str | None = None
    node: str | None = None
    device: str | None = None
    request: int | None = None
    pushed_at: str | None = None
    input: str | None = None
    got: str | None = None
    wanted: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Programs that watch logs look for the name MXNetError, which uncaught errors are printed
        # with.
        super().__init_subclass__(**kwargs)
        if cls.__module__.partition(".")[0] == "mxrt":
            cls.__qualname__ = f"MXNetError.{cls.__name__}"
            setattr(MXNetError, cls.__name__, cls)
            # Pickle looks the qualified name up in the module of the class.
            vars(sys.modules[cls.__module__]).setdefault("MXNetError", MXNetError)

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
        input: str | None = None,
        got: str | None = None,
        wanted: str | None = None,
    ) -> None:
        message = without_codes(_shortened(message))
        super().__init__(message)
        self.message = message
        if kind is not None:
            self.kind = kind
        self.op = op
        self.node = node
        self.attrs: dict[str, str] = dict(attrs or {})
        self.shapes: tuple[tuple[int, ...], ...] = tuple(shapes)
        self.dtypes: tuple[str, ...] = tuple(dtypes)
        self.device = device
        self.pushed_at = pushed_at
        self.request = request
        self.input = input
        self.got = got
        self.wanted = wanted

    @property
    def code(self) -> str:
        """The code at the end of the text, such as ``MX-SHAPE``."""
        return code_of(self.kind)

    def __str__(self) -> str:
        return with_code(self.message, self.kind)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,), self.__dict__

    def _repr_html_(self) -> str:
        from ._output.html import of_error

        return of_error(self)


class MXNetWarning(UserWarning):
    """A warning of mxrt. ``warnings.simplefilter("error", mx.base.MXNetWarning)`` makes errors of
    them.
    """


class MXNetDeprecationWarning(MXNetWarning, DeprecationWarning):
    """A function that MXNet declared deprecated was called."""


class MXNetRuntimeWarning(MXNetWarning, RuntimeWarning):
    """A call does something that is hardly intended."""


def warn(message: str, category: type[Warning] = MXNetWarning) -> None:
    """Warns at the line of the program that called mxrt."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_back is not None and _is_own(frame):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _is_own(frame: FrameType) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] == "mxrt"


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

    kind = "training"


class MXNetMemoryError(MXNetError, MemoryError):
    """There is no memory for an array."""

    kind = "memory"


class MXNetDataError(MXNetError, ValueError):
    """A file or its content cannot be used."""

    kind = "data"


class MXNetFileNotFoundError(MXNetDataError, FileNotFoundError):
    """A file, or the folder it is in, is not there.

    It is an ``OSError`` too, whose ``errno`` is ``ENOENT``.
    """

    kind = "file_not_found"
    errno: int | None = errno.ENOENT


class EntryMismatchError(MXNetDataError, AssertionError):
    """Iterators that are joined have different numbers of samples; MXNet asserts the same one."""


class MXNetDeviceError(MXNetError):
    """The device is not available, or arrays live on different ones."""

    kind = "device"


class MXNetShutdownError(MXNetError):
    """The interpreter is ending and the engine accepts no more work."""

    kind = "shutdown"


class MXNetTimeoutError(MXNetError, TimeoutError):
    """The deadline passed first."""

    kind = "deadline"


class MXNetCancelledError(MXNetError):
    """The call was cancelled before it began: there is no result."""

    kind = "cancelled"


class InternalError(MXNetError):
    """A defect of mxrt itself: an operator panicked."""

    kind = "panic"


class MultipleErrors(MXNetError):
    """Several operators failed; ``errors`` has the single ones, ``more`` counts those that were not
    kept.
    """

    kind = "multiple"

    def __init__(self, errors: Sequence[MXNetError] = (), more: int = 0) -> None:
        self.errors: list[MXNetError] = list(errors)
        self.more = more
        lines = [f"{len(self.errors) + more} operators failed:"]
        lines += [f"  {error}" for error in self.errors[:10]]
        hidden = max(len(self.errors) - 10, 0) + more
        if hidden:
            lines.append(f"  and {hidden} more")
        super().__init__()
        self.message: str = "\n".join(lines)  # each with its own code

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


def _push_site() -> str:
    """``file:line`` of the innermost caller outside of mxrt; called by the Rust border with
    ``MXRT_DEBUG=1``.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_own(frame):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def no_training(what: str) -> TrainingNotSupportedError:
    """The error for calls that belong to training."""
    return TrainingNotSupportedError(_belongs_to_training(what))


class _TrainingAttributeError(TrainingNotSupportedError, AttributeError):
    """A name that belongs to training, where an attribute is asked for: ``hasattr`` is False."""


def no_training_attribute(what: str) -> _TrainingAttributeError:
    """The error for names of operators that belong to training."""
    return _TrainingAttributeError(_belongs_to_training(what))


def _belongs_to_training(what: str) -> str:
    return (
        f"{what} belongs to training, which mxrt does not support: it runs trained models. "
        "Train with MXNet and load the exported files here."
    )


def is_number(value: object) -> bool:
    """Whether a value can stand for all elements of an array."""
    return isinstance(value, (numbers.Number, np.generic))


class _NoLibrary:
    """Stands for MXNet's C library, which programs import and often do not call."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"mx.base._LIB.{name}: MXNet's C library is not in mxrt; use the functions of the package")


_LIB = _NoLibrary()


# ---- small functions that programs import from here ----------------------------------------------


class _NullType:
    """Stands for an argument that is not passed."""

    def __repr__(self) -> str:
        return "_Null"


_Null = _NullType()

error_types: dict[str, type[BaseException]] = {}
"""Classes of errors that programs registered, by name."""


def register_error(func_name: Any = None, cls: Any = None) -> Any:
    """Puts a class of errors into ``error_types``, under its own name or a given one; may be used
    as decorator.
    """
    if isinstance(func_name, type):
        func_name, cls = None, func_name

    def register(klass: type[BaseException]) -> type[BaseException]:
        error_types[func_name or klass.__name__] = klass
        return klass

    return register if cls is None else register(cls)


def data_dir_default() -> str:
    """The folder for models and data sets where ``MXNET_HOME`` is not set: ``~/.mxnet``."""
    return os.path.join(os.path.expanduser("~"), ".mxnet")


def data_dir() -> str:
    """The folder for models and data sets: ``$MXNET_HOME``, or ``~/.mxnet``."""
    return os.environ.get("MXNET_HOME") or data_dir_default()


def check_call(ret: int) -> None:
    """Raises MXNetError for the code of a C function that is not 0."""
    if ret != 0:
        raise MXNetError(f"a C function returned {ret}")


def py_str(x: bytes | str) -> str:
    """UTF-8 bytes as text. Text is returned unchanged, since callbacks get names as text here."""
    return x if isinstance(x, str) else x.decode("utf-8")


def c_str(string: str) -> ctypes.c_char_p:
    """Text as a C string."""
    return ctypes.c_char_p(string.encode("utf-8"))


def c_str_array(strings: Sequence[str]) -> Any:
    """Texts as a C array of C strings."""
    return (ctypes.c_char_p * len(strings))(*[s.encode("utf-8") for s in strings])


def c_array(ctype: Any, values: Sequence[Any]) -> Any:
    """Values as a C array of a type of ctypes."""
    return (ctype * len(values))(*values)


def c_array_buf(ctype: Any, buf: Any) -> Any:
    """A writable buffer, such as an ``array.array``, as a C array of a type of ctypes, without a
    copy.
    """
    return (ctype * len(buf)).from_buffer(buf)


def with_metaclass(meta: Any, *bases: Any) -> Any:
    """A base class that has a metaclass, as ``six`` has it."""
    return meta("temporary_class", bases, {})


class _ClassProperty:
    """A property that is read from the class."""

    def __init__(self, getter: Callable[[Any], Any]) -> None:
        self._getter = getter

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self._getter(type(instance) if owner is None else owner)


def classproperty(func: Callable[[Any], Any]) -> Any:
    """A decorator for a property that is read from the class."""
    return _ClassProperty(func)


def build_param_doc(
    arg_names: Sequence[str], arg_types: Sequence[str], arg_descs: Sequence[str], remove_dup: bool = True
) -> str:
    """The "Parameters" section of a docstring."""
    rows: list[str] = []
    seen: set[str] = set()
    for name, kind, text in zip(arg_names, arg_types, arg_descs, strict=True):
        if (remove_dup and name in seen) or name == "num_args":
            continue
        seen.add(name)
        rows.append(f"{name} : {kind}" + (f"\n    {text}" if text else ""))
    return "Parameters\n----------\n" + "\n".join(rows) + "\n"


def _as_list(obj: Any) -> Any:
    """A list or tuple unchanged, anything else as a list of one."""
    return obj if isinstance(obj, (list, tuple)) else [obj]
