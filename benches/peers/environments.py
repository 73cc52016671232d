"""The files that a comparison needs: an environment for each engine, the networks, the same
networks as ONNX.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import bert
import images
import numpy as np

import mxrt
from mxrt.bench import to_onnx
from mxrt.bench.peer import engines
from mxrt.bench.peers import PeerError, Process

__all__ = [
    "BUILD",
    "NETWORKS",
    "NEWEST_PYTHON",
    "ZOO",
    "PeerError",
    "expected",
    "interpreter",
    "network",
    "onnx",
    "say",
]

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "peers"
ZOO = ROOT / "build" / "zoo"
GOLDEN = ROOT / "tests" / "models" / "zoo"
NETWORKS = sorted(folder.name for folder in GOLDEN.iterdir())

# The first Python version that an engine's wheels do not support any more.
NEWEST_PYTHON = {"mxnet": (3, 12), "onnxruntime": (3, 99), "openvino": (3, 99)}


def say(text: str) -> None:
    """Says what is being done."""
    print(text, file=sys.stderr, flush=True)


def _call(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(f"{what} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def _base_python(older_than: tuple[int, int]) -> str:
    """An interpreter that the engine still supports."""
    names = ["python3", "python3.11", "python3.10", "python3.12", "python3.13"]
    for candidate in [sys.executable, *filter(None, map(shutil.which, names))]:
        probe = f"import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] < {older_than})"
        if subprocess.run([candidate, "-c", probe], capture_output=True).returncode == 0:
            return candidate
    raise RuntimeError(f"no Python from 3.10 to before {older_than[0]}.{older_than[1]} found")


def interpreter(engine: str) -> str:
    """The engine's own interpreter, made when missing or when its requirements changed; mxrt's is
    this one.
    """
    if engine == "mxrt":
        return sys.executable
    requirements = ROOT / "requirements" / f"peer-{engine}.txt"
    folder = BUILD / engine
    stamp = folder / "requirements.txt"
    python = str(folder / "bin" / "python")
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        say(f"installing {engine} into {folder} ...")
        base = _base_python(NEWEST_PYTHON.get(engine, (3, 99)))
        _call([base, "-m", "venv", "--clear", str(folder)], "making the environment")
        _call([python, "-m", "pip", "install", "--quiet", "-r", str(requirements)], f"installing {engine}")
        shutil.copyfile(requirements, stamp)
    return python


def network(name: str) -> str:
    """Prefix of the files of a network, computed when missing: -symbol.json, -0000.params,
    -input.npy.
    """
    base = ZOO / name
    if Path(f"{base}-input.npy").exists():
        return str(base)
    if name in bert.TOKENS and name != bert.NAME:
        network(bert.NAME)
    say(f"computing the weights of {name} ...")
    if name in bert.TOKENS:
        bert.write(str(base))
    elif name in images.NETWORKS:
        images.write(str(base))
    else:
        _call([sys.executable, str(ROOT / "tests" / "models" / "make_zoo.py"), str(ZOO), name], "computing weights")
    return str(base)


def expected(name: str) -> np.ndarray:
    """The network's output for its first input: MXNet's, or that of a computation in float64."""
    if name in NETWORKS:
        with np.load(GOLDEN / name / "golden.npz") as saved:
            return saved["b1"]
    file = Path(f"{network(name)}-expected.npy")
    if not file.exists():
        np.save(file, _answer_of_mxnet(name))
    found: np.ndarray = np.load(file)
    return found


def _answer_of_mxnet(name: str) -> np.ndarray:
    """The answer to the first input."""
    say(f"asking MXNet for the answer of {name} ...")
    base = network(name)
    model = engines.Model(symbol=f"{base}-symbol.json", params=f"{base}-0000.params", onnx=None, inputs=["data"])
    with (
        tempfile.TemporaryDirectory() as folder,
        Process("mxnet", interpreter("mxnet")) as process,
    ):
        process.ask("load", model=model, setting={})
        process.ask("inputs", file=f"{base}-input.npy")
        process.ask("outputs", file=f"{folder}/answer.npz")
        with np.load(f"{folder}/answer.npz") as answers:
            found: np.ndarray = answers["arr_0"]
    return found


def onnx(name: str, image: tuple[int, ...], batch: int) -> str:
    """The network as ONNX for batches of this size."""
    base = network(name)
    file = BUILD / f"{name}-{batch}.onnx"
    if not file.exists():
        say(f"writing {file.name} ...")
        saved = mxrt.nd.load(f"{base}-0000.params")
        params = {key.partition(":")[2]: value.asnumpy() for key, value in saved.items()}
        to_onnx.export(mxrt.sym.load(f"{base}-symbol.json"), params, {"data": (batch, *image)}, file)
    return str(file)
