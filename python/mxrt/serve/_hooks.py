"""Files of hooks for `mxrt serve`: ``preprocess(request) -> arrays``, ``postprocess(arrays) ->
response`` and ``load(path) -> bytes``.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import MXNetValueError

__all__ = ["Hooks", "Request"]

_Parts = tuple[str, str, list[int], bytes]


@dataclass(frozen=True)
class Request:
    """A request: its body, and its headers with names in lower case."""

    body: bytes
    headers: dict[str, str]


class Hooks:
    """The functions of a file, which has one of them or several."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        spec = importlib.util.spec_from_file_location("mxrt_hooks", file)
        if spec is None or spec.loader is None:
            raise MXNetValueError("a file of hooks is one of Python, and its name ends in .py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._preprocess: Callable[[Request], Any] | None = getattr(module, "preprocess", None)
        self._postprocess: Callable[[dict[str, Any]], Any] | None = getattr(module, "postprocess", None)
        self._load: Callable[[str], Any] | None = getattr(module, "load", None)
        if self._preprocess is None and self._postprocess is None and self._load is None:
            raise MXNetValueError("it has no function 'preprocess', 'postprocess' or 'load'")

    def load(self, path: str | os.PathLike[str]) -> bytes | None:
        """The bytes of a file of the model, read by the hook; None where there is no such hook."""
        if self._load is None:
            return None
        made = self._load(os.fspath(path))
        if not isinstance(made, (bytes, bytearray, memoryview)):
            raise MXNetValueError(f"it gave {type(made).__name__}, where bytes were expected")
        return bytes(made)

    def before(self, body: bytes, headers: list[tuple[str, str]]) -> list[_Parts] | None:
        """The inputs that the hook makes of a request; None where there is no such hook."""
        if self._preprocess is None:
            return None
        made = self._preprocess(Request(body, dict(headers)))
        arrays = made if isinstance(made, Mapping) else {"": made}
        return [_parts(name, array) for name, array in arrays.items()]

    def after(self, outputs: list[_Parts]) -> tuple[bytes, str] | None:
        """Body and content type that the hook makes of the outputs; None where there is no such
        hook.
        """
        if self._postprocess is None:
            return None
        arrays = {name: np.frombuffer(content, dtype).reshape(shape) for name, dtype, shape, content in outputs}
        made = self._postprocess(arrays)
        if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], (bytes, str)):
            body, kind = made
            return body.encode() if isinstance(body, str) else body, str(kind)
        if isinstance(made, (bytes, bytearray, memoryview)):
            return bytes(made), "application/octet-stream"
        if isinstance(made, str):
            return made.encode(), "text/plain; charset=utf-8"
        return json.dumps(made).encode(), "application/json"


def _parts(name: str, made: Any) -> _Parts:
    if hasattr(made, "asnumpy"):
        made = made.asnumpy()
    array = np.asarray(made)
    # A shape of no axes would become one of one.
    content = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return str(name), array.dtype.name, list(array.shape), content
