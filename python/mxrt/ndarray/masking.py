"""Functions of ``mx.nd.contrib`` whose results have a shape that depends on values."""

from __future__ import annotations

import numpy as np

from ..base import MXNetValueError
from .creation import array, empty
from .ndarray import NDArray
from .op import take

__all__ = ["boolean_mask"]


def boolean_mask(data: NDArray, index: NDArray, axis: int = 0) -> NDArray:
    """The rows of the data whose element of the mask is not zero.

    The shape of the result depends on the mask, so the call waits for it; the rows are copied
    later, as by any operator.

    Parameters
    ----------
    data
        An array of any shape ``(n, ...)`` and dtype.
    index
        The mask, of shape ``(n,)`` and any dtype.
    axis
        0; MXNet has no other axis either.

    Raises
    ------
    MXNetValueError
        Where the shapes do not fit, or for another axis.
    """
    if axis != 0:
        raise MXNetValueError(f"boolean_mask: axis={axis} is not supported, only axis=0")
    if data.ndim == 0 or index.shape != data.shape[:1]:
        raise MXNetValueError(
            f"boolean_mask: data has shape {data.shape}, so the mask needs shape {data.shape[:1]}, not {index.shape}"
        )
    rows = np.flatnonzero(index.asnumpy())
    if not len(rows):
        return empty((0, *data.shape[1:]), ctx=data.context, dtype=data.dtype)
    chosen: NDArray = take(data, array(rows, ctx=data.context, dtype="int64"), axis=0)
    return chosen
