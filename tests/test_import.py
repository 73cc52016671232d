"""Importing mxrt: no warnings, nothing started, nothing slow."""

from __future__ import annotations

import importlib.metadata
import sys

from support import last_json, run, run_python


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


def test_the_time_of_import_is_reported(final_table) -> None:
    """For information: a budget in milliseconds would fail on a busy machine."""
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
    print(json.dumps([mx is mxrt, nd is mxrt.nd, gluon is mxrt.gluon, SymbolBlock is mxrt.gluon.SymbolBlock,
                      MXNetError is mxrt.base.MXNetError, (nd.ones((2,)) + 1).asnumpy().tolist()]))
    """
    assert last_json(run_python(code)) == [True, True, True, True, True, [2.0, 2.0]]
