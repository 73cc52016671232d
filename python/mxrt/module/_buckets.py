"""The symbols of buckets: given by a program, or kept in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..base import MXNetValueError
from ..symbol import Symbol

__all__ = ["GivenSymbols", "keys_as_numbers", "saved_keys"]

_Made = tuple[Symbol, Sequence[str], Sequence[str]]


class GivenSymbols:
    """A function that returns symbols by key, and for other keys what `sym_gen` makes."""

    def __init__(self, symbols: dict[Any, Symbol], sym_gen: Callable[[Any], _Made] | None, default: Any) -> None:
        self._symbols, self._sym_gen, self._default = symbols, sym_gen, default

    def __call__(self, key: Any) -> _Made:
        sym_gen = self._sym_gen
        if key in self._symbols:
            default = key if self._default is None else self._default
            _, data, labels = sym_gen(default) if sym_gen else (None, ("data",), ("softmax_label",))
            return self._symbols[key], data, labels
        if sym_gen is None:
            raise MXNetValueError(f"there is no symbol for bucket {key!r}; known: {list(self._symbols)}")
        return sym_gen(key)


def keys_as_numbers(keys: list[Any]) -> np.ndarray[Any, Any]:
    """The keys of buckets as what a file can hold."""
    try:
        numbers = np.array(keys)
    except ValueError:
        numbers = np.array([None])
    if numbers.dtype.kind not in "iu":
        raise MXNetValueError(
            f"BucketingModule.save_checkpoint: the keys of the buckets are {keys}, but a checkpoint holds whole "
            "numbers, or tuples of as many: write symbols and parameters yourself, with Symbol.save and save_params"
        )
    return numbers


def saved_keys(path: str) -> list[Any]:
    """The keys of buckets in a file."""
    (numbers,) = nd.load(path)
    found = numbers.asnumpy().astype("int32").tolist()
    return [tuple(key) if isinstance(key, list) else key for key in found]
