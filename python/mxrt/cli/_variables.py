"""Environment variables that mxrt reads."""

from __future__ import annotations

from typing import Any

from .. import _mxrt

#: Those that Python code reads, as rows of ``_mxrt.settings``. docs/settings.md lists them, too.
_OF_PYTHON = [
    (
        "MXNET_HOME",
        "the path of a folder",
        "~/.mxnet",
        "Folder in which weights of the model zoo, data sets and embeddings are expected.",
        "Python package",
    ),
    (
        "MXNET_GLUON_REPO",
        "an address",
        "that of Apache MXNet",
        "Address of the published files, for packages such as GluonNLP that ask for it; mxrt downloads nothing.",
        "Python package",
    ),
    (
        "MXNET_SUBGRAPH_BACKEND",
        "NONE, MKLDNN or the name of a backend",
        "NONE",
        "Backend of `mx.subgraph` that rewrites the graphs of blocks and of each `CachedOp`; NONE and MKLDNN change "
        "nothing.",
        "Python package",
    ),
    (
        "MXNET_PROFILER_AUTOSTART",
        "0 or 1",
        "0",
        "1: the profiler runs from the import of mxrt on.",
        "Python package",
    ),
]


def rows() -> list[tuple[str, str, str, str, str]]:
    """Returns name, accepted values, default, effect and subject of each variable, without those
    of `mxrt serve`.
    """
    return [*_mxrt.settings(), *_OF_PYTHON]


def known() -> set[str]:
    """Returns the names of all variables, those of `mxrt serve` included."""
    of_server: list[tuple[Any, ...]] = getattr(_mxrt, "serve_settings", list)()
    keys = ["config", *(key for key, *_, scope, _ in of_server if scope != "model")]
    return {*(name for name, *_ in rows()), *(f"MXRT_SERVE_{key.upper()}" for key in keys)}
