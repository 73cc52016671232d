"""`mxrt doctor`: which GPUs there are, the libraries of CUDA, and why something is missing."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from . import _mxrt


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command: none."""


def main(args: argparse.Namespace) -> int:
    """Runs the command; 1 without a GPU."""
    rows = [*gpu_rows(), *_library_rows()]
    for key, value in rows:
        print(f"{key:14s}{value}")
    return 0 if _mxrt.device_count("gpu") > 0 else 1


def gpu_rows() -> list[tuple[str, str]]:
    """The CUDA driver and its GPUs, or why there are none. Opens the driver, but uses no GPU."""
    version, gpus, reason = _mxrt.gpu_status()
    served = "none" if version is None else f"serves CUDA {version // 1000}.{version % 1000 // 10}"
    rows = [("CUDA driver", served)]
    for number, (name, (major, minor), memory) in enumerate(gpus):
        rows.append((f"gpu({number})", f"{name}, compute capability {major}.{minor}, {memory / 2**30:.1f} GiB"))
    if reason is not None:
        rows.append(("GPUs", f"none: {reason}"))
    return rows


def _library_rows() -> list[tuple[str, str]]:
    """The optional libraries with path and version, or why one is absent. Opens them."""
    rows = []
    for name, path, version, reason in _mxrt.gpu_libraries(library_folders()):
        if path is None:
            rows.append((name, f"absent: {reason}"))
        else:
            rows.append((name, f"{version or 'of unknown version'}, {path}"))
    return rows


def library_folders() -> list[str]:
    """Where packages of NVIDIA put their libraries, in the order of Python's search path."""
    found = importlib.util.find_spec("nvidia")
    places = found.submodule_search_locations if found is not None else None
    return [str(folder) for place in places or () for folder in sorted(Path(place).glob("*/lib")) if folder.is_dir()]
