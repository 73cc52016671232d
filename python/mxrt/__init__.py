"""mxrt runs Apache MXNet models, from any number of threads.

The interface is MXNet 1.9's: ``import mxrt as mx``, then ``mx.nd``, ``mx.sym``,
``mx.gluon.SymbolBlock``, ``mx.mod.Module``. ``mxrt.install_as_mxnet()`` makes ``import mxnet`` find
mxrt.
"""

from __future__ import annotations

import atexit as _atexit
import sys as _sys
from typing import TYPE_CHECKING, Any

from . import (
    _imports,  # the first: forks wait for the imports after it
    _mxrt,
    attribute,
    autograd,
    base,
    context,
    engine,
    error,
    executor,
    gluon,
    initializer,
    io,
    libinfo,
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
from .libinfo import get_include, get_library
from .ndarray import NDArray, waitall
from .symbol import Symbol, Variable
from .util import is_np_array, is_np_shape, np_array, np_shape, set_np_shape, use_np, use_np_array, use_np_shape

if TYPE_CHECKING:
    from . import (
        callback,
        contrib,
        image,
        kvstore,
        library,
        log,
        lr_scheduler,
        metric,
        monitor,
        numpy,
        numpy_dispatch_protocol,
        numpy_extension,
        onnx,
        operator,
        optimizer,
        recordio,
        registry,
        rnn,
        rtc,
        serve,
        subgraph,
        test_utils,
        visualization,
    )
    from . import image as img
    from . import kvstore as kv
    from . import monitor as mon
    from . import numpy as np
    from . import numpy_extension as npx
    from . import visualization as viz
    from ._quantize.budget import Quantized
    from .symbol import numpy as np_symbol

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
    "callback",
    "context",
    "contrib",
    "cpu",
    "cpu_pinned",
    "current_context",
    "engine",
    "error",
    "executor",
    "get_include",
    "get_library",
    "gluon",
    "gpu",
    "image",
    "img",
    "init",
    "initializer",
    "install_as_mxnet",
    "io",
    "is_np_array",
    "is_np_shape",
    "kv",
    "kvstore",
    "libinfo",
    "library",
    "log",
    "lr_scheduler",
    "metric",
    "mod",
    "model",
    "module",
    "mon",
    "monitor",
    "name",
    "nd",
    "ndarray",
    "np",
    "np_array",
    "np_shape",
    "np_symbol",
    "npx",
    "num_gpus",
    "numpy",
    "numpy_dispatch_protocol",
    "numpy_extension",
    "onnx",
    "operator",
    "optimizer",
    "profiler",
    "quantize",
    "random",
    "recordio",
    "registry",
    "rnd",
    "rnn",
    "rtc",
    "runtime",
    "serve",
    "set_limits",
    "set_memory_limit",
    "set_np_shape",
    "sim",
    "subgraph",
    "sym",
    "symbol",
    "test_utils",
    "testing",
    "use_np",
    "use_np_array",
    "use_np_shape",
    "util",
    "visualization",
    "viz",
    "waitall",
]

__version__: str = _mxrt.__version__
"""The version of mxrt itself."""

__mxnet_version__ = "1.9.1"
"""The version of MXNet whose interface and behaviour this is."""

# Modules that are imported when a program first asks for them.
_LAZY = (
    *("callback", "contrib", "executor_manager", "image", "kvstore", "library", "log", "lr_scheduler"),
    *("metric", "monitor", "numpy", "numpy_dispatch_protocol", "numpy_extension", "onnx", "operator", "optimizer"),
    *("recordio", "registry", "rnn", "rtc", "serve", "subgraph", "symbol.numpy", "test_utils", "visualization"),
)
# Short names of modules, and the modules.
_ALIASES = {
    "img": "image",
    "init": "initializer",
    "kv": "kvstore",
    "mod": "module",
    "mon": "monitor",
    "nd": "ndarray",
    "np": "numpy",
    "np_symbol": "symbol.numpy",
    "npx": "numpy_extension",
    "rnd": "random",
    "sym": "symbol",
    "viz": "visualization",
}
# Parts of MXNet that are not here.
_ABSENT = ("th", "torch")

# Held by this list alone: the engine closes when the interpreter drops its exit handlers, after
# the last of them.
_atexit.register(_mxrt.ExitHook())
# Where packages such as nvidia-cuda-nvrtc-cu12 have their libraries. GPUs look there when needed.
_mxrt.set_library_roots([f"{folder}/nvidia" for folder in _sys.path if folder])


def __getattr__(name: str) -> Any:
    full = _ALIASES.get(name, name)
    if full in _LAZY:
        module = globals()[name] = _imports.load(f"{__name__}.{full}")
        return module
    if full in _ABSENT:
        raise AttributeError(f"mx.{name} is not part of this build of mxrt")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def set_memory_limit(limit: int | None) -> None:
    """Bounds the memory of arrays, compiled models and running requests, in bytes; None removes the
    bound.

    A request that would need more fails with ``mx.base.MXNetMemoryError``, which is a
    ``MemoryError``; others continue. Memory already in use stays. ``MXRT_MEMORY_LIMIT_MB`` sets the
    bound from the start.
    """
    cpu().set_memory_limit(limit)


def set_limits(*, max_nodes: int | None) -> None:
    """Bounds what a process takes from files of others; None removes a bound.

    ``max_nodes`` is the number of nodes that a symbol may have, variables and inner graphs
    included. Loading a larger one is an ``mx.base.MXNetValueError`` that names both numbers. A
    first call takes about 50 microseconds for each node. ``MXRT_MAX_NODES`` sets the bound from
    the start.
    """
    from .context import checked_limit

    _mxrt.set_max_nodes(checked_limit(max_nodes, "set_limits: max_nodes", "nodes"))


def quantize(
    net: Any,
    data: Any,
    budget: float | str | None = 0.005,
    *,
    calib_mode: str = "naive",
    quantize_mode: str = "smart",
    exclude_layers: list[str] | None = None,
) -> Quantized:
    """A model on 8-bit integers that loses at most ``budget`` of its accuracy: ``.net``,
    ``.save(prefix)``, ``.report``, ``.page()``.

    ``net`` is a hybrid block. ``data`` is an array of samples, or an iterable of batches (a gluon
    DataLoader): arrays, or tuples of the inputs in order, which may end with labels (class
    numbers). With labels the accuracy is that of the best class; without, it is how often the best
    class is that of the float32 model. Layers that cost most stay in float32 until the budget (a
    fraction, or "0.5%") holds; None quantizes every layer. ``calib_mode`` (naive, entropy),
    ``quantize_mode`` (smart, full) and names in ``exclude_layers`` are those of
    ``mx.contrib.quantization.quantize_model``.

    Raises ValueError for data that are empty, NaN or of other shapes than the network takes.
    """
    from ._quantize.budget import quantize as run

    return run(net, data, budget, calib_mode=calib_mode, quantize_mode=quantize_mode, exclude_layers=exclude_layers)


def install_as_mxnet() -> None:
    """Makes ``import mxnet`` and ``from mxnet import nd, gluon`` find mxrt, in this process.

    Call it before anything imports MXNet; RuntimeError if the real one is imported already.
    ``mxnet.__version__`` is then 1.9.1, the version whose interface this is; everything else in
    ``mxnet`` is what it is in ``mxrt``.
    """
    from ._imports.install import StandIn, install

    other = _sys.modules.get("mxnet")
    if other is not None and not isinstance(other, StandIn):
        raise RuntimeError("install_as_mxnet: the real mxnet is imported already; call this before any import of it")
    install()
