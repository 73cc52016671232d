"""Importing mxrt: no warnings, nothing started, nothing slow."""

from __future__ import annotations

import importlib.metadata
import sys

from support import last_json, run, run_python

# Modules that only errors, notebooks and commands need.
SELDOM = {"dataclasses", "difflib", "html", "importlib.abc", "shutil", "socket", "tempfile", "urllib.parse"}


def test_import_is_silent_even_with_warnings_as_errors() -> None:
    result = run([sys.executable, "-W", "error", "-c", "import mxrt"])
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_import_starts_no_thread() -> None:
    code = """
    import json, os, numpy
    before = len(os.listdir("/proc/self/task"))
    import mxrt
    print(json.dumps(len(os.listdir("/proc/self/task")) - before))
    """
    assert last_json(run_python(code)) == 0


def test_import_brings_no_module_that_only_errors_and_notebooks_need() -> None:
    code = """
    import json, logging, sys, numpy  # logging brings dataclasses in Python 3.14
    before = set(sys.modules)
    import mxrt
    print(json.dumps(sorted(set(sys.modules) - before)))
    """
    brought = last_json(run_python(code))
    assert SELDOM.isdisjoint(brought)
    ours = ("mxrt.cli", "mxrt.serve", "mxrt.bench", "mxrt.numpy", "mxrt.symbol.numpy")
    assert [name for name in brought if name.startswith(ours)] == []


def test_the_first_use_of_np_brings_its_modules_and_none_that_is_seldom_needed() -> None:
    code = """
    import json, sys, numpy, mxrt
    before = set(sys.modules)
    mxrt.np, mxrt.npx
    print(json.dumps(sorted(set(sys.modules) - before)))
    """
    brought = last_json(run_python(code))
    assert {"mxrt.numpy", "mxrt.numpy_extension"} <= set(brought)
    assert SELDOM.isdisjoint(brought)


def test_import_makes_no_function_that_nobody_has_asked_for() -> None:
    code = """
    import json, types, mxrt
    content = vars(types.ModuleType)["__dict__"].__get__(mxrt.nd.contrib)
    print(json.dumps(["box_nms" in content, "box_nms" in mxrt.nd.contrib.__dict__, "box_nms" in content]))
    """
    assert last_json(run_python(code)) == [False, True, True]


def test_the_time_of_import_is_reported(final_table) -> None:
    """The number is for information: a budget in milliseconds would fail on a busy machine."""
    code = """
    import json, time
    import numpy
    begin = time.perf_counter()
    import mxrt
    print(json.dumps(time.perf_counter() - begin))
    """
    seconds = sorted(last_json(run_python(code)) for _ in range(5))
    final_table(
        f"time of import\n{seconds[0] * 1e3:.0f} ms over numpy's own (best of 5, worst {seconds[-1] * 1e3:.0f})"
    )


def test_the_version_is_the_one_of_the_installed_package(mx) -> None:
    assert mx.__version__ == importlib.metadata.version("mxrt")


def test_code_written_for_mxnet_finds_mxrt() -> None:
    code = """
    import json
    import mxrt
    mxrt.install_as_mxnet()
    import mxnet as mx
    from mxnet import nd, gluon
    from mxnet.gluon import SymbolBlock
    from mxnet.base import MXNetError
    import mxnet.ndarray
    print(json.dumps([mx.cpu is mxrt.cpu, nd is mxrt.nd, gluon is mxrt.gluon, SymbolBlock is mxrt.gluon.SymbolBlock,
                      MXNetError is mxrt.base.MXNetError, (nd.ones((2,)) + 1).asnumpy().tolist()]))
    """
    assert last_json(run_python(code)) == [True, True, True, True, True, [2.0, 2.0]]


def test_the_version_seen_as_mxnet_is_the_one_that_is_imitated(mx) -> None:
    code = """
    import json
    import mxrt
    before = mxrt.__version__
    mxrt.install_as_mxnet()
    import mxnet
    import mxnet.libinfo
    mxnet.of_a_program = 3
    print(json.dumps([mxnet.__version__, mxnet.libinfo.__version__, mxnet.__name__, mxrt.__version__ == before,
                      mxrt.of_a_program, "nd" in dir(mxnet)]))
    """
    assert last_json(run_python(code)) == ["1.9.1", "1.9.1", "mxnet", True, 3, True]


# What the public programs that were looked at begin with.
IMPORTS = """
import mxnet.gluon.contrib, mxnet.contrib.amp.amp, mxnet.contrib.text.embedding, mxnet.contrib.onnx
import mxnet.optimizer, mxnet.lr_scheduler, mxnet.kvstore, mxnet.callback, mxnet.monitor, mxnet.operator
import mxnet.numpy as _mx_np
import mxnet.ndarray as F
from mxnet import autograd, init, initializer, io, lr_scheduler, metric, name, random, registry, viz
from mxnet import kv, mon, np, npx, rnd, test_utils, use_np, np_shape, is_np_array, profiler, runtime, util
from mxnet.base import NDArrayHandle, c_array, c_array_buf, c_str, c_str_array, check_call, classproperty, data_dir
from mxnet.base import MXNetError, _as_list, _Null, build_param_doc, integer_types, mx_real_t, mx_uint, numeric_types
from mxnet.base import py_str, register_error, string_types, with_metaclass
from mxnet.callback import Speedometer, do_checkpoint
from mxnet.context import Context, cpu
from mxnet.contrib import amp, quantization, tensorboard
from mxnet.initializer import InitDesc, Initializer, Xavier
from mxnet.io import DataBatch, DataDesc, DataIter, NDArrayIter
from mxnet.metric import F1, MCC, Accuracy, CompositeEvalMetric, EvalMetric, PearsonCorrelation, check_label_shapes
from mxnet.ndarray.ndarray import NDArray
from mxnet.kvstore.base import KVStoreBase
from mxnet.kvstore.kvstore import KVStore
from mxnet.optimizer import Optimizer, register
from mxnet.optimizer.contrib import GroupAdaGrad
from mxnet.optimizer.optimizer import SGD, Updater
from mxnet.symbol.symbol import Symbol
from mxnet.test_utils import assert_almost_equal, default_context, rand_ndarray
from mxnet.util import getenv, is_np_shape, makedirs, set_module, setenv, use_np_array, use_np_shape
"""


def test_imports_of_public_programs_succeed() -> None:
    code = f"""
import json
import mxrt
mxrt.install_as_mxnet()
{IMPORTS}
@use_np
class Model:
    def forward(self, x):
        return x

class Mine(Optimizer):
    pass

import mxnet as mx
with np_shape(False):
    pass
refused = []
for call in (Model, use_np(print), np_shape(True).__enter__, autograd.backward, npx.set_np, npx.reset_np):
    try:
        call()
    except NotImplementedError as error:
        refused.append(type(error).__name__)
with mx.Context("cpu", 1):
    inner = str(mx.Context._default_ctx.value)
print(json.dumps([refused, inner, str(mx.Context._default_ctx.value), data_dir() == mx.util.data_dir(),
                  py_str(c_str("text").value), isinstance(mx.nd.zeros(1), mx.np.ndarray)]))
"""
    found = last_json(run_python(code, env={"MXNET_HOME": "/somewhere"}))
    assert found == [
        ["TrainingNotSupportedError"],
        "cpu(1)",
        "cpu(0)",
        True,
        "text",
        False,
    ]


def test_modules_that_few_programs_use_are_imported_when_asked_for() -> None:
    code = """
    import json, sys
    import mxrt
    lazy = ["callback", "contrib", "kvstore", "metric", "monitor", "optimizer", "test_utils", "visualization"]
    early = [name for name in lazy if f"mxrt.{name}" in sys.modules]
    found = [getattr(mxrt, name).__name__ for name in lazy]
    print(json.dumps([early, [f"mxrt.{name}" for name in lazy] == found, mxrt.viz is mxrt.visualization]))
    """
    assert last_json(run_python(code)) == [[], True, True]


def test_scopes_belong_to_threads() -> None:
    code = """
    import json, threading, warnings
    import mxrt as mx
    warnings.simplefilter("ignore", DeprecationWarning)
    mx.Context.default_ctx = mx.cpu(3)
    mx.AttrScope.current = mx.AttrScope(group="a")
    mx.name.NameManager.current = mx.name.Prefix("own_")
    seen = []
    def look():
        symbol = mx.sym.relu(mx.sym.var("x"))
        seen.append([str(mx.current_context()), symbol.attr("group"), symbol.name])
    look()
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    print(json.dumps([seen, str(mx.Context.default_ctx)]))
    """
    assert last_json(run_python(code)) == [[["cpu(3)", "a", "own_relu0"], ["cpu(0)", None, "relu0"]], "cpu(3)"]


def test_no_first_use_of_numpy_can_be_interrupted() -> None:
    """The import has looked up all that the module wants of numpy."""
    code = """
    import mxrt as mx
    import numpy as np

    def interrupted(*_):
        raise KeyboardInterrupt

    np.lib.NumpyVersion = interrupted
    print(mx.nd.array([1.5, 2]).asnumpy().tolist(), (mx.nd.ones(2) * 3).asnumpy().tolist())
    """
    result = run_python(code)
    assert (result.returncode, result.stdout) == (0, "[1.5, 2.0] [3.0, 3.0]\n"), result.stderr
