"""``mx.npx`` can be imported; of its functions only the switches are here."""

from __future__ import annotations

from typing import NoReturn

from ..base import no_numpy
from ..context import cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from ..ndarray import waitall
from ..util import is_np_array, is_np_shape, reset_np, set_np, set_np_shape, use_np, use_np_array, use_np_shape

__all__ = [
    "cpu",
    "cpu_pinned",
    "current_context",
    "gpu",
    "gpu_memory_info",
    "is_np_array",
    "is_np_shape",
    "num_gpus",
    "reset_np",
    "set_np",
    "set_np_shape",
    "use_np",
    "use_np_array",
    "use_np_shape",
    "waitall",
]


def __getattr__(name: str) -> NoReturn:
    raise no_numpy("npx", name)
