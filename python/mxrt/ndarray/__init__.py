"""Arrays, and operators on them: ``mx.nd``.

Every operator of this build is a function here; they are made when first used. ``dir(mx.nd)`` lists
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._operators.functions import module_functions as _module_functions
from . import _internal, contrib, image, linalg, op, random, sparse
from ._images import imdecode
from ._make import make as _make
from ._sparse_arrays import cast_storage
from .arithmetic import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    lesser,
    lesser_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    modulo,
    multiply,
    not_equal,
    power,
    subtract,
    true_divide,
)
from .cached_op import CachedOp
from .creation import (
    arange,
    array,
    concatenate,
    empty,
    eye,
    from_dlpack,
    from_numpy,
    full,
    histogram,
    linspace,
    moveaxis,
    onehot_encode,
    ones,
    split_v2,
    to_dlpack_for_read,
    to_dlpack_for_write,
    zeros,
)
from .ndarray import NDArray, waitall
from .utils import load, load_frombuffer, save

__all__ = [
    "CachedOp",
    "NDArray",
    "_internal",
    "add",
    "arange",
    "array",
    "cast_storage",
    "concatenate",
    "contrib",
    "divide",
    "empty",
    "equal",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "greater",
    "greater_equal",
    "histogram",
    "image",
    "imdecode",
    "lesser",
    "lesser_equal",
    "linalg",
    "linspace",
    "load",
    "load_frombuffer",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "modulo",
    "moveaxis",
    "multiply",
    "not_equal",
    "onehot_encode",
    "ones",
    "op",
    "power",
    "random",
    "save",
    "sparse",
    "split_v2",
    "subtract",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
    "true_divide",
    "waitall",
    "zeros",
]

# The functions of mx.np and mx.npx, for `F.np` and `F.npx` in hybrid_forward.
_NUMPY = {
    **dict.fromkeys(("np", "numpy"), "mxrt.numpy"),
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
