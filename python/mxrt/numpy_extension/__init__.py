"""Extensions of NumPy: ``mx.npx``. Neural networks, switches and files."""

from __future__ import annotations

from typing import Any

from .. import _mxrt
from .._operators.functions import operator_names as _operator_names
from ..context import cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from ..ndarray import waitall
from ..util import (
    get_cuda_compute_capability,
    is_np_array,
    is_np_shape,
    reset_np,
    set_np,
    set_np_shape,
    use_np,
    use_np_array,
    use_np_shape,
)
from . import image, random
from ._make import make as _make
from .utils import load, save

__all__ = [
    "cpu",
    "cpu_pinned",
    "current_context",
    "get_cuda_compute_capability",
    "gpu",
    "gpu_memory_info",
    "image",
    "is_np_array",
    "is_np_shape",
    "load",
    "num_gpus",
    "random",
    "reset_np",
    "save",
    "set_np",
    "set_np_shape",
    "use_np",
    "use_np_array",
    "use_np_shape",
    "waitall",
]

_PREFIX = "_npx_"


def __getattr__(name: str) -> Any:
    operator = None if name.startswith("_") else _mxrt.get_operator(_PREFIX + name)
    if operator is None:
        from .. import numpy

        instead = f"; did you mean mx.np.{name}?" if name in numpy.__all__ else ""
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'{instead}")
    found = globals()[name] = _make(operator, name, __name__)
    return found


def __dir__() -> list[str]:
    made = (name.removeprefix(_PREFIX) for name in _operator_names() if name.startswith(_PREFIX))
    return sorted({*globals(), *(name for name in made if not name.startswith("_"))})
