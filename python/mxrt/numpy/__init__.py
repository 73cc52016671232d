"""``mx.np`` can be imported and its array class named; its functions are not part of this build."""

from __future__ import annotations

from typing import NoReturn

from ..base import no_numpy
from ..ndarray import NDArray

__all__ = ["ndarray"]


class ndarray(NDArray):
    """The array of MXNet's numpy interface. No function of this build makes one, so no array is an
    instance.
    """

    __slots__ = ()


def __getattr__(name: str) -> NoReturn:
    raise no_numpy("np", name)
