"""Files of hooks for `mxrt serve`: ``preprocess(request) -> arrays``, ``postprocess(arrays) ->
response``, ``load(path) -> bytes``, and ``decode(tensors) -> arrays`` and ``encode(arrays) ->
tensors`` for the tensors that ``INPUTS`` and ``OUTPUTS`` declare.
"""

from __future__ import annotations

import importlib.util
import json
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ..base import MXNetValueError
from . import _script

__all__ = ["Hooks", "Request"]

_Parts = tuple[str, str, list[int], bytes]
#: Name, element type and shape of a tensor.
_Declared = list[tuple[str, str, list[int]]]

_FUNCTIONS = ("preprocess", "postprocess", "load", "decode", "encode")
#: Name of the element type of strings at the border.
_STRINGS = "bytes"
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Request:
    """A request: its body, and its headers with names in lower case."""

    body: bytes
    headers: dict[str, str]


class Hooks:
    """The functions of a file, which has one of them or several."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        module = _script.as_hooks(file) or _module(file)
        self._functions: dict[str, Callable[[Any], Any] | None] = {
            name: getattr(module, name, None) for name in _FUNCTIONS
        }
        if not any(self._functions.values()):
            raise MXNetValueError("it has no function 'preprocess', 'postprocess', 'load', 'decode' or 'encode'")
        self._inputs = self._declared(module, "INPUTS", "decode")
        self._outputs = self._declared(module, "OUTPUTS", "encode")

    def _declared(self, module: ModuleType | SimpleNamespace, name: str, function: str) -> _Declared | None:
        """The tensors that a file declares for a function; None where it has neither."""
        declared = getattr(module, name, None)
        if (declared is None) != (self._functions[function] is None):
            raise MXNetValueError(
                f"the function '{function}' and {name}, the tensors that requests name, belong together: "
                f"it has no {function if declared is not None else name}"
            )
        if declared is None:
            return None
        try:
            return [(str(key), str(kind), [int(extent) for extent in shape]) for key, (kind, shape) in declared.items()]
        except (AttributeError, TypeError, ValueError):
            raise MXNetValueError(
                f"{name} is {declared!r}; expected types and shapes by name, such as "
                '{"text": ("BYTES", [-1])}, where -1 is any extent'
            ) from None

    def tensors(self) -> tuple[_Declared | None, _Declared | None]:
        """The declared inputs and outputs; None for those of the model."""
        return self._inputs, self._outputs

    def load(self, path: str | os.PathLike[str]) -> bytes | None:
        """The bytes of a file of the model, read by the hook; None where there is no such hook."""
        function = self._functions["load"]
        if function is None:
            return None
        made = function(os.fspath(path))
        if not isinstance(made, (bytes, bytearray, memoryview)):
            raise MXNetValueError(f"it gave {type(made).__name__}, where bytes were expected")
        return bytes(made)

    def takes_bodies(self) -> bool:
        """Whether a hook reads the bodies of requests, or writes those of responses."""
        return any(self._functions[name] for name in ("preprocess", "postprocess"))

    def before(self, body: bytes, headers: list[tuple[str, str]]) -> list[_Parts] | None:
        """The inputs that the hook makes of a request; None where there is no such hook."""
        function = self._functions["preprocess"]
        return None if function is None else _all_parts(function(Request(body, dict(headers))))

    def after(self, outputs: list[_Parts]) -> tuple[bytes, str] | None:
        """Body and content type that the hook makes of the outputs; None where there is no such
        hook.
        """
        function = self._functions["postprocess"]
        if function is None:
            return None
        made = function(_arrays(outputs))
        if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], (bytes, str)):
            body, kind = made
            return body.encode() if isinstance(body, str) else body, str(kind)
        if isinstance(made, (bytes, bytearray, memoryview)):
            return bytes(made), "application/octet-stream"
        if isinstance(made, str):
            return made.encode(), "text/plain; charset=utf-8"
        try:
            # JSON has no NaN and no infinity, which Python would write.
            return json.dumps(made, allow_nan=False).encode(), "application/json"
        except ValueError as error:  # no fault of the request
            raise RuntimeError(f"postprocess gave what JSON cannot have: {error}") from None

    def decode(self, tensors: list[_Parts]) -> list[_Parts]:
        """The model's inputs, which the hook makes of the tensors of a request."""
        return self._call("decode", tensors)

    def encode(self, outputs: list[_Parts]) -> list[_Parts]:
        """The tensors of a response, which the hook makes of the model's outputs."""
        return self._call("encode", outputs)

    def _call(self, name: str, parts: list[_Parts]) -> list[_Parts]:
        function = self._functions[name]
        assert function is not None, f"the server calls {name} only if the file has it"
        return _all_parts(function(_arrays(parts)))


def _module(file: str | os.PathLike[str]) -> ModuleType:
    spec = importlib.util.spec_from_file_location("mxrt_hooks", file)
    if spec is None or spec.loader is None:
        raise MXNetValueError("a file of hooks is one of Python, and its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _arrays(parts: list[_Parts]) -> dict[str, Any]:
    """Arrays of numpy by name. Those of strings have objects of the type bytes."""
    arrays = {}
    for name, dtype, shape, content in parts:
        if dtype == _STRINGS:
            strings = list(_strings(content))
            array = np.empty(len(strings), object)
            array[:] = strings
            array = array.reshape(shape)
        else:
            array = np.frombuffer(content, dtype).reshape(shape)
        arrays[name] = array
    return arrays


def _strings(content: bytes) -> Iterator[bytes]:
    place = 0
    while place < len(content):
        (length,) = _LENGTH.unpack_from(content, place)
        place += _LENGTH.size
        yield content[place : place + length]
        place += length


def _all_parts(made: Any) -> list[_Parts]:
    arrays = made if isinstance(made, Mapping) else {"": made}
    return [_parts(name, array) for name, array in arrays.items()]


def _parts(name: str, made: Any) -> _Parts:
    if hasattr(made, "asnumpy"):
        made = made.asnumpy()
    try:
        array = np.asarray(made)
    except ValueError as error:  # no fault of the request
        raise TypeError(f"'{name}' is no array: {error}") from None
    if array.dtype.kind in "OSU":
        if not isinstance(made, np.ndarray):
            array = np.array(made, object)  # numpy's own strings lose zeros at their ends
        return str(name), _STRINGS, list(array.shape), b"".join(_element(name, one) for one in array.ravel().tolist())
    # A shape of no axes would become one of one.
    content = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return str(name), array.dtype.name, list(array.shape), content


def _element(name: str, one: Any) -> bytes:
    """A string in the form of the protocol: its length and its bytes."""
    if isinstance(one, str):
        one = one.encode()
    if not isinstance(one, bytes):
        raise TypeError(f"'{name}' has an object of the type {type(one).__name__}; expected str or bytes")
    return _LENGTH.pack(len(one)) + one
