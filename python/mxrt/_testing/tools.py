"""Small things that tests of MXNet import from ``mx.test_utils``."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..context import current_context
from ..io import DataBatch, DataIter
from ..ndarray import NDArray, array
from ..runtime import Features

__all__ = [
    "DummyIter",
    "collapse_sum_like",
    "discard_stderr",
    "get_identity_mat",
    "get_identity_mat_batch",
    "has_tvm_ops",
    "is_aarch64_run",
    "is_cd_run",
    "is_op_runnable",
]


@contextmanager
def discard_stderr() -> Iterator[None]:
    """Within the ``with`` block nothing reaches the file descriptor of ``sys.stderr``, if it has
    one.
    """
    try:
        number = sys.stderr.fileno()
    except (AttributeError, OSError):
        yield
        return
    before = os.dup(number)
    try:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), number)
        yield
    finally:
        os.dup2(before, number)
        os.close(before)


class DummyIter(DataIter):
    """Gives the first batch of another iterator again and again, for measuring speed."""

    def __init__(self, real_iter: Any) -> None:
        super().__init__(real_iter.batch_size)
        self.real_iter = real_iter
        self.provide_data: Any = real_iter.provide_data
        self.provide_label: Any = real_iter.provide_label
        self.the_batch: DataBatch = next(real_iter)

    def next(self) -> DataBatch:
        """The first batch."""
        return self.the_batch


def collapse_sum_like(a: Any, shape: tuple[int, ...]) -> Any:
    """Sums a numpy array over the axes that would be broadcast from `shape`, so that it has that
    shape.
    """
    if np.prod(shape) == 0 or a.size == 0:
        return np.zeros(shape, dtype=a.dtype)
    ahead = a.ndim - len(shape)
    if ahead < 0 or any(n not in (1, m) for n, m in zip(shape, a.shape[ahead:], strict=True)):
        raise AssertionError(f"collapse_sum_like: shape {shape} cannot be broadcast to {a.shape}")
    spread = [ahead + axis for axis, n in enumerate(shape) if n != a.shape[ahead + axis]]
    return a.sum(axis=(*range(ahead), *spread)).reshape(shape)


def get_identity_mat(size: int) -> NDArray:
    """The identity matrix of shape (size, size), float32."""
    return array(np.eye(size, dtype=np.float32))


def get_identity_mat_batch(size: int) -> NDArray:
    """Two identity matrices: shape (2, size, size), float32."""
    return array(np.stack([np.eye(size, dtype=np.float32)] * 2))


def is_cd_run() -> bool:
    """Whether the environment variable ``CD_JOB`` is 1."""
    return os.environ.get("CD_JOB") == "1"


def is_aarch64_run() -> bool:
    """Whether this machine is an ARM of 64 bits."""
    return platform.machine() == "aarch64"


def has_tvm_ops() -> bool:
    """Whether there are operators that TVM made: there are none."""
    return bool(Features().is_enabled("TVM_OP"))


def is_op_runnable() -> bool:
    """Whether operators of the current context run, which they do on every context there is."""
    return current_context().device_type == "cpu" or not has_tvm_ops()
