"""Graphs, and operators that make them: ``mx.sym``.

Every operator of this build is a function here; they are made when first used. ``dir(mx.sym)``
lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._operators.functions import module_functions as _module_functions
from . import _internal, contrib, image, linalg, op, random, sparse
from ._make import make as _make
from .creation import (
    arange,
    eye,
    full,
    histogram,
    hypot,
    linspace,
    maximum,
    minimum,
    ones,
    pow,
    power,
    split_v2,
    zeros,
)
from .symbol import Group, Symbol, Variable, load, load_json, var

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "_internal",
    "arange",
    "contrib",
    "eye",
    "full",
    "histogram",
    "hypot",
    "image",
    "linalg",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "op",
    "pow",
    "power",
    "random",
    "sparse",
    "split_v2",
    "var",
    "zeros",
]

# The functions of mx.np and mx.npx, for `F.np` and `F.npx` in hybrid_forward.
_NUMPY = {
    **dict.fromkeys(("np", "numpy"), "mxrt.symbol.numpy"),
    **dict.fromkeys(("npx", "numpy_extension"), "mxrt.numpy_extension"),
}

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._signatures import op as _signatures
    from .._signatures.op import *  # noqa: F403

    __all__ += _signatures.__all__  # type: ignore[has-type]

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = _module_functions(globals(), "", _make, _NUMPY)
