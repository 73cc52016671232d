"""mxrt runs Apache MXNet models, from any number of threads.

The interface is MXNet 1.9's: ``import mxrt as mx``, then ``mx.nd``, ``mx.sym``, ``mx.gluon.SymbolBlock``,
``mx.mod.Module``.
``mxrt.install_as_mxnet()`` makes ``import mxnet`` find mxrt.
"""

from __future__ import annotations

import atexit as _atexit
import sys as _sys
from typing import NoReturn

from . import (
    _mxrt,
    attribute,
    autograd,
    base,
    context,
    engine,
    error,
    errors,
    executor,
    gluon,
    initializer,
    io,
    model,
    module,
    name,
    ndarray,
    profiler,
    random,
    runtime,
    symbol,
    testing,
    util,
)
from . import initializer as init
from . import module as mod
from . import ndarray as nd
from . import random as rnd
from . import symbol as sym
from .attribute import AttrScope
from .base import MXNetError
from .context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus, sim
from .executor import Executor
from .ndarray import NDArray, waitall
from .symbol import Symbol, Variable
from .util import is_np_array, is_np_shape

__all__ = [
    "AttrScope",
    "Context",
    "Executor",
    "MXNetError",
    "NDArray",
    "Symbol",
    "Variable",
    "attribute",
    "autograd",
    "base",
    "context",
    "cpu",
    "cpu_pinned",
    "current_context",
    "engine",
    "error",
    "errors",
    "executor",
    "gluon",
    "gpu",
    "init",
    "initializer",
    "install_as_mxnet",
    "io",
    "is_np_array",
    "is_np_shape",
    "mod",
    "model",
    "module",
    "name",
    "nd",
    "ndarray",
    "num_gpus",
    "profiler",
    "random",
    "rnd",
    "runtime",
    "set_memory_limit",
    "sim",
    "sym",
    "symbol",
    "testing",
    "util",
    "waitall",
]

__version__: str = _mxrt.__version__
"""The version of mxrt itself."""

__mxnet_version__ = "1.9.1"
"""The version of MXNet whose interface and behaviour this is."""

# Parts of MXNet that are not here: those that belong to training never will be.
_TRAINING = ("callback", "kv", "kvstore", "lr_scheduler", "optimizer")
_ABSENT = (
    *("contrib", "image", "img", "library", "metric", "mon", "monitor", "np", "npx", "onnx", "operator"),
    *("recordio", "rnn", "rtc", "test_utils", "visualization", "viz"),
)

# Later calls and waits are refused, and threads that still wait stay where they are, before the interpreter ends.
_atexit.register(_mxrt.close)


def __getattr__(name: str) -> NoReturn:
    if name in _TRAINING:
        raise AttributeError(f"mx.{name} belongs to training, which mxrt does not support: it runs trained models")
    if name in _ABSENT:
        raise AttributeError(f"mx.{name} is not part of this build of mxrt")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def set_memory_limit(limit: int | None) -> None:
    """Bounds the memory of arrays, compiled models and running requests, in bytes; None removes the bound.

    A request that would need more fails with ``mx.base.MXNetMemoryError``, which is a ``MemoryError``; others go on.
    What is in use already stays. ``MXRT_MEMORY_LIMIT_MB`` sets the bound from the start.
    """
    cpu().set_memory_limit(limit)


def install_as_mxnet() -> None:
    """Makes ``import mxnet`` and ``from mxnet import nd, gluon`` find mxrt, in this process.

    Call it before anything imports MXNet. ``mxnet.__version__`` is then mxrt's.
    """
    other = _sys.modules.get("mxnet")
    if other is not None and other is not _sys.modules[__name__]:
        raise RuntimeError("install_as_mxnet: the real mxnet is imported already; call this before any import of it")
    from ._install import install

    install()
