"""Blocks that are quantized: their symbols, their inputs, and batches that calibrate them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from .. import ndarray
from .._system import temporary
from ..io import DataBatch, DataDesc, DataIter
from ..ndarray import NDArray
from ..symbol import Symbol, load

Params = dict[str, NDArray]


class Batches(DataIter):
    """Batches of any iterable, such as a gluon DataLoader, whose last array may be a label."""

    def __init__(self, data: Iterable[Any], clips: bool = False):
        super().__init__()
        self._data, self._clips = data, clips
        first = self._arrays(next(iter(data), None))
        self.batch_size = first[0].shape[0]
        names = ["data"] if len(first) == 1 else [f"data{i}" for i in range(len(first))]
        self.provide_data = [DataDesc(name, array.shape) for name, array in zip(names, first, strict=True)]
        self.provide_label: list[Any] = []
        self.reset()

    def of_clips(self) -> Batches | None:
        """Batches whose clips of images, or of volumes, are samples of their own, as in MXNet; None
        where there are none.
        """
        return Batches(self._data, True) if len(self.provide_data[0].shape) > 4 and not self._clips else None

    def _arrays(self, batch: Any) -> list[Any]:
        if batch is None:
            raise ValueError("calib_data gave no batch; give data of at least one batch")
        arrays = list(batch) if isinstance(batch, list | tuple) else [batch]
        arrays = [array if isinstance(array, NDArray) else ndarray.array(array) for array in arrays]
        if self._clips:
            arrays[0] = arrays[0].reshape((-1, *arrays[0].shape[2:]))
        return arrays

    def reset(self) -> None:
        self._batches = iter(self._data)

    def next(self) -> DataBatch:
        return DataBatch(data=self._arrays(next(self._batches)))


def described_inputs(shapes: Iterable[Any]) -> list[DataDesc]:
    """The names and shapes of inputs.

    Raises ValueError for what is neither a DataDesc nor a name and a shape.
    """
    found: list[DataDesc] = []
    for one in shapes:
        match one:
            case DataDesc():
                found.append(one)
            case (str(name), tuple() | list() as shape, *rest):
                found.append(DataDesc(name, tuple(shape), *rest))
            case _:
                raise ValueError(f"data_shapes has {one!r}; expected a DataDesc or (name, shape) for each input")
    return found


def exported(network: Any, batch: Sequence[NDArray]) -> tuple[Symbol, Params, Params, list[str]]:
    """The symbol and the parameters of a block, and the names of its inputs. The last arrays of a
    batch, which may be labels, are left out where the block takes fewer.
    """
    network.hybridize()
    arrays = list(batch)
    while True:
        try:
            network(*arrays)
            break
        except (TypeError, ValueError):
            if len(arrays) == 1:
                raise
            arrays.pop()
    with temporary.folder() as folder:
        path = os.path.join(folder, "float")
        network.export(path, epoch=0)
        sym = load(f"{path}-symbol.json")
        # Without parameters the file has a list of no arrays.
        saved = dict(ndarray.load(f"{path}-0000.params") or {})
    args = {name[4:]: array for name, array in saved.items() if name.startswith("arg:")}
    auxs = {name[4:]: array for name, array in saved.items() if name.startswith("aux:")}
    # In the order of a call, which may be another than that in which the graph reads them.
    return sym, args, auxs, [str(one.name) for one in network._cached_graph[0]]


def renamed(described: Any, name: str) -> DataDesc:
    """The description of an input under another name."""
    kept = {word: getattr(described, word) for word in ("dtype", "layout") if hasattr(described, word)}
    return DataDesc(name, described[1], **kept)
