"""Kernels of GPUs compiled for the host, as kernels of the stand-in for the CUDA driver."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "crates" / "cuda-kernels" / "cuda"
# What replaces CUDA where the kernels are compiled for the host.
HOST = ROOT / "crates" / "cuda-kernels" / "tests" / "host"
BUILT = ROOT / "build" / "cuda-kernels"

INCLUDED = re.compile(r'^#include "(.*)"$', re.MULTILINE)
OPTIONS = "-std=c++17 -O1 -ffp-contract=off -Wall -Werror -Wno-unused-function -fPIC".split()


def compiler() -> str:
    """A compiler of C++."""
    found = os.environ.get("CXX") or shutil.which("c++")
    if found is None:
        pytest.skip("kernels run on the host if there is a compiler of C++ (c++, or CXX)")
    return found


def digest(of: object) -> str:
    return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()[:16]


def compiled(part: str, files: dict[str, str]) -> Path:
    """The object of a file, compiled once for each text of it and of what it includes."""
    used, new = {}, [part]
    while new:
        name = new.pop()
        if name not in used:
            used[name] = files[name]
            new += INCLUDED.findall(files[name])
    made = BUILT / "objects" / f"{Path(part).stem}-{digest([OPTIONS, used])}.o"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        # A process that compiles the same concurrently makes the same.
        with tempfile.TemporaryDirectory(dir=BUILT) as folder:
            for name, text in used.items():
                Path(folder, name).write_text(text)
            command = [compiler(), *OPTIONS, "-I.", "-x", "c++", "-c", "-", "-o", "made.o"]
            subprocess.run(command, input=f'#include "{part}"\n'.encode(), cwd=folder, check=True, timeout=300)
            Path(folder, "made.o").rename(made)
    return made


def host_kernels(edited: str = "kernels.cu", edit: Callable[[str], str] = lambda text: text) -> Path:
    """The library of all kernels, after `edit` changed a file of their text. Compiled once for each
    text, and of an edited one only what includes the edited file.
    """
    files = {path.name: path.read_text() for path in sorted([*KERNELS.iterdir(), *HOST.iterdir()])}
    files[edited] = edit(files[edited])
    folder = BUILT / digest(files)
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "kernels.so"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            # The stand-in for NVRTC includes what is stored next to the library.
            (folder / "host.h").write_text(files["host.h"])
            parts = [*INCLUDED.findall(files["kernels.cu"]), "host.cpp"]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = list(pool.map(lambda part: compiled(part, files), parts))
            made = folder / "kernels.so.new"
            subprocess.run([compiler(), "-shared", *objects, "-o", made], check=True, timeout=300)
            made.rename(library)
    return library
