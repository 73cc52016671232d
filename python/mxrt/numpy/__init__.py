"""Arrays with the interface of NumPy's: ``mx.np``.

The functions are those of MXNet 1.9. They take arrays of this module, and symbols where the result
is to be a symbol. ``mx.npx.set_np()`` makes gluon use these arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as _onp

from . import _creation, _internal, _joining, _rows, _special, linalg, random, utils
from ._creation import *  # noqa: F403
from ._joining import *  # noqa: F403
from ._protocols import FALLBACK as _FALLBACK
from ._protocols import RENAMED as _RENAMED
from ._rows import *  # noqa: F403
from ._special import *  # noqa: F403
from .multiarray import array, ndarray
from .utils import *  # noqa: F403

__all__ = ["_internal", "array", "linalg", "ndarray", "random", "set_printoptions"]
__all__ += _creation.__all__
__all__ += _joining.__all__
__all__ += _rows.__all__
__all__ += _special.__all__
__all__ += utils.__all__


def set_printoptions(precision: Any = None, threshold: Any = None, **kwarg: Any) -> None:
    """Sets how arrays are shown; the keywords are those of ``numpy.set_printoptions``."""
    _onp.set_printoptions(precision=precision, threshold=threshold, **kwarg)


def __getattr__(name: str) -> Any:
    if name in _FALLBACK:
        found = getattr(_onp, name, _RENAMED.get(name))
        if found is None:
            raise AttributeError(f"mx.np.{name} is NumPy's, and NumPy {_onp.__version__} does not have it any more")
        return found
    if not name.startswith("_") and hasattr(_onp, name):
        raise AttributeError(
            f"mx.np.{name} is not part of MXNet 1.9; use numpy.{name} with x.asnumpy(), and mx.np.array for the result"
        )
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for name in _FALLBACK if name in _RENAMED or hasattr(_onp, name))})
