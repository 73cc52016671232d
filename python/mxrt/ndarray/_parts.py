"""Parts of an array: reading and writing by keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _mxrt
from .._scopes.np_mode import is_np_shape
from . import _indexing as indexing
from ._positions import rows_of

if TYPE_CHECKING:
    from .ndarray import NDArray

__all__ = ["Parts"]


class Parts(_mxrt.NDArrayBase):
    """An array whose parts are read and written by keys."""

    __slots__ = ()

    def _value(self, value: Any) -> NDArray:
        """The assigned value, as an array with elements like those here."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> NDArray:
        shape = self.shape
        if type(key) is int and shape:
            return self._row(key, shape)
        if isinstance(key, (str, bytes, float, complex)):
            raise ValueError(f"NDArray does not support slicing with key {key!s} of type {type(key)}.")
        if not indexing.is_basic(key):
            plain = indexing.plain(key)
            rows = rows_of(shape, plain)
            made: NDArray
            if rows is None:
                made = _mxrt.gather(self, indexing.positions(shape, plain))
            else:
                made = _mxrt.invoke("take", (self, _mxrt.from_numpy(rows, self._device)), {"axis": 0, "mode": "clip"})
            return made
        region = indexing.basic_region(shape, key)
        # A single element is an array of shape (1,), unless the array itself has no axes or shapes
        # are NumPy's.
        picked = indexing.region_shape(region) or ((1,) if shape and not is_np_shape() else ())
        if indexing.is_contiguous(region):
            view: NDArray = self._view(0 if 0 in picked else region[0], list(picked))
            return view
        copy: NDArray = _mxrt.zeroed(list(picked), self._dtype_name, self._device)
        _mxrt.copy_region(copy, indexing.whole_region(picked), self, region)
        return copy

    def _row(self, index: int, shape: tuple[int, ...]) -> NDArray:
        extent = shape[0]
        if not -extent <= index < extent:
            raise IndexError(f"index {index} is out of bounds for axis 0 with size {extent}")
        rest = list(shape[1:])
        width = 1
        for n in rest:
            width *= n
        if not rest and not is_np_shape():
            rest = [1]
        view: NDArray = self._view((index % extent) * width, rest)
        return view

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, (str, bytes, float, complex)):
            raise ValueError(f"NDArray does not support slicing with key {key!s} of type {type(key)}.")
        source = self._value(value)
        if not self.shape and isinstance(key, slice) and key == slice(None):
            # All of an array without axes, which has none to be sliced.
            key = ()
        if indexing.is_basic(key, assigned=True):
            region, values = indexing.basic_assignment(self.shape, key, source.shape)
            _mxrt.copy_region(self, region, source, values)
            return
        positions = lambda key: indexing.positions(self.shape, key)  # noqa: E731
        at, values = indexing.advanced_assignment(positions, indexing.plain(key), source.shape)
        spread = _mxrt.zeroed(list(at.shape), self._dtype_name, self._device)
        _mxrt.copy_region(spread, indexing.whole_region(at.shape), source, values)
        _mxrt.scatter(self, at, spread)
