"""Functions of ``mx.np`` that join arrays or split them."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ._call import call
from .multiarray import ndarray

__all__ = [
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "column_stack",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "meshgrid",
    "row_stack",
    "split",
    "stack",
    "vsplit",
    "vstack",
]


def _join(operator: str, arrays: Any, out: Any = None, **attrs: Any) -> Any:
    if not hasattr(arrays, "__iter__"):
        raise TypeError(f"{operator.removeprefix('_npi_')}: expected a list of arrays, got {type(arrays)}")
    inputs = list(arrays)
    return call(operator, inputs, {**attrs, "num_args": len(inputs)}, out)


def concatenate(seq: Any, axis: int | None = 0, out: Any = None) -> Any:
    """Arrays joined along an axis; flattened with ``axis=None``."""
    return _join("_npi_concatenate", seq, out, axis="None" if axis is None else axis)


def stack(arrays: Any, axis: int = 0, out: Any = None) -> Any:
    """Arrays joined along a new axis."""
    return _join("_npi_stack", arrays, out, axis=axis)


def vstack(arrays: Any, out: Any = None) -> Any:
    """Arrays joined along the first axis; those of one axis are rows."""
    return _join("_npi_vstack", arrays, out)


def row_stack(arrays: Any) -> Any:
    """Arrays joined along the first axis; those of one axis are rows."""
    return _join("_npi_vstack", arrays)


def hstack(arrays: Any) -> Any:
    """Arrays joined along the second axis; those of one axis along it."""
    return _join("_npi_hstack", arrays)


def dstack(arrays: Any) -> Any:
    """Arrays joined along the third axis."""
    return _join("_npi_dstack", arrays)


def column_stack(tup: Any) -> Any:
    """Arrays joined along the second axis; those of one axis are columns."""
    return _join("_npi_column_stack", tup)


def _at_least(count: int, arrays: tuple[Any, ...]) -> Any:
    made = call(f"_np_atleast_{count}d", arrays, {"num_args": len(arrays)})
    return made[0] if len(arrays) == 1 and isinstance(made, list) else made


def atleast_1d(*arys: Any) -> Any:
    """The array, or a list of them, with one axis at least."""
    return _at_least(1, arys)


def atleast_2d(*arys: Any) -> Any:
    """The array, or a list of them, with two axes at least."""
    return _at_least(2, arys)


def atleast_3d(*arys: Any) -> Any:
    """The array, or a list of them, with three axes at least."""
    return _at_least(3, arys)


# ---- splits --------------------------------------------------------------------------------------


_MOST_PARTS = 100_000


def _extent(name: str, ary: ndarray, axis: int) -> int:
    """The extent along an axis; ValueError where there is no such axis."""
    if not -ary.ndim <= axis < ary.ndim:
        raise ValueError(f"{name}: axis {axis} is out of bounds for an array of dimension {ary.ndim}")
    return ary.shape[axis]


def _cuts(indices_or_sections: Any) -> tuple[tuple[int, ...], int]:
    """The beginnings of the parts, or their number."""
    if isinstance(indices_or_sections, (int, onp.integer)):
        if not 1 <= indices_or_sections <= _MOST_PARTS:
            raise ValueError(
                f"number sections must be larger than 0 and at most {_MOST_PARTS}, got {indices_or_sections}"
            )
        return (), int(indices_or_sections)
    if isinstance(indices_or_sections, (list, set, tuple)):
        return (0, *indices_or_sections), 0
    raise ValueError("indices_or_sections must be either int, or tuple / list / set of ints")


def _parts(operator: str, ary: Any, indices: tuple[int, ...], sections: int, axis: int) -> Any:
    attrs = {"indices": indices, "axis": axis, "squeeze_axis": False, "sections": sections}
    made = call(operator, (ary,), attrs)
    if isinstance(made, ndarray):
        return [made]
    # A symbol gives its outputs, one of them too.
    return list(made)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Equal parts along an axis, or parts that begin at indices; ValueError where they would not be
    equal.
    """
    indices, sections = _cuts(indices_or_sections)
    if sections and isinstance(ary, ndarray):
        extent = _extent("split", ary, axis)
        if extent % sections:
            raise ValueError("array split does not result in an equal division")
        width = extent // sections
        indices, sections = tuple(part * width for part in range(sections)), 0
    return _parts("_npi_split", ary, indices, sections, axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Parts along an axis, of which the first may be longer by one."""
    indices, sections = _cuts(indices_or_sections)
    if sections and isinstance(ary, ndarray):
        least, more = divmod(_extent("array_split", ary, axis), sections)
        ends = onp.cumsum([0] + [least + 1] * more + [least] * (sections - more))
        indices, sections = tuple(int(n) for n in ends[:-1]), 0
    return _parts("_npi_split", ary, indices, sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Parts along the second axis; along the only one where there is one."""
    _needs_axes("hsplit", ary, 1)
    return _parts("_npi_hsplit", ary, *_cuts(indices_or_sections), 1)


def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Parts along the first axis of an array with two axes at least."""
    _needs_axes("vsplit", ary, 2)
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Parts along the third axis."""
    _needs_axes("dsplit", ary, 3)
    if isinstance(ary, ndarray):
        return split(ary, indices_or_sections, 2)
    return _parts("_npi_dsplit", ary, *_cuts(indices_or_sections), 2)


def _needs_axes(name: str, ary: Any, count: int) -> None:
    if isinstance(ary, ndarray) and len(ary.shape) < count:
        raise ValueError(f"{name} only works on arrays of {count} or more dimensions")


# ---- broadcasting --------------------------------------------------------------------------------


def broadcast_arrays(*args: Any) -> list[Any]:
    """The arrays repeated to the shape that they have together."""
    from ._special import broadcast_to

    shape = onp.broadcast_shapes(*(one.shape for one in args))
    return [one if one.shape == shape else broadcast_to(one, shape) for one in args]


def meshgrid(*xi: Any, **kwargs: Any) -> list[Any]:
    """Coordinates of a grid, from those along its axes; ``indexing`` is ``xy`` or ``ij``."""
    if not kwargs.pop("copy", True):
        raise NotImplementedError("copy=False is not implemented")
    if kwargs.pop("sparse", False):
        raise NotImplementedError("sparse=True is not implemented")
    indexing = kwargs.pop("indexing", "xy")
    if kwargs:
        raise TypeError(f"meshgrid() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    count = len(xi)
    places = list(range(count))
    if indexing == "xy" and count > 1:
        places[:2] = [1, 0]
    spread = [x.reshape((1,) * place + (-1,) + (1,) * (count - place - 1)) for x, place in zip(xi, places, strict=True)]
    return broadcast_arrays(*spread)
