"""Packed weights that processes share as files (`MXRT_SHARED_WEIGHTS_MB`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

#: A model of 36 MiB whose weights are folded and packed, and what a process says of it.
PROGRAM = """
import json, sys
import numpy as np
import mxrt as mx

def value(name, shape):
    size = int(np.prod(shape))
    return mx.nd.array((np.arange(size) * len(name) % 251 / 251 - 0.5).reshape(shape) / shape[-1])

x = mx.sym.Variable("data")
y = mx.sym.Convolution(x, kernel=(3, 3), num_filter=128, pad=(1, 1), name="conv")
y = mx.sym.BatchNorm(y, fix_gamma=False, name="norm")
y = mx.sym.FullyConnected(y, num_hidden=1024, name="dense")
shapes, _, aux = y.infer_shape(data=(1, 64, 8, 8))
names = dict(zip(y.list_arguments() + y.list_auxiliary_states(), shapes + aux))
del names["data"]
params = {name: value(name, shape) for name, shape in names.items()}
params["norm_moving_var"] = params["norm_moving_var"] + 1
net = mx.gluon.SymbolBlock(y, x)
net.collect_params().load_dict(params)
del params
answer = net(mx.nd.ones((1, 64, 8, 8))).asnumpy()
mx.nd.waitall()
lines = [line.split() for line in open("/proc/self/maps")]
print(json.dumps({
    "answer": answer.tobytes().hex(),
    "files": sorted({line[4] for line in lines if line[-1].endswith(".weights")}),
    "own": mx.cpu().memory_info()["in_use"],
}))
sys.stdin.read()
"""
MEBIBYTE = 1 << 20


def start(**settings: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **settings},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Waits for the end of a process; returns its report."""
    out, error = process.communicate("", timeout=300)
    assert process.returncode == 0, error
    return dict(json.loads(out))


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.weights"))


@pytest.fixture
def shared(tmp_path: Path) -> dict[str, str]:
    return {"MXRT_SHARED_WEIGHTS_MB": "256", "MXRT_CACHE_DIR": str(tmp_path / "cache")}


def test_processes_that_start_together_have_one_copy_of_packed_weights(shared: dict[str, str]) -> None:
    alone = told(start())
    assert alone["files"] == []
    several = [told(process) for process in [start(**shared) for _ in range(3)]]
    files = several[0]["files"]
    assert len(files) == len(kept(Path(shared["MXRT_CACHE_DIR"]))) >= 2
    later = told(start(**shared))
    for one in [*several, later]:
        assert one["answer"] == alone["answer"]
        assert one["files"] == files
        assert one["own"] < MEBIBYTE < 32 * MEBIBYTE < alone["own"]


def test_a_damaged_file_is_made_again(shared: dict[str, str]) -> None:
    first = told(start(**shared))
    folder = Path(shared["MXRT_CACHE_DIR"])
    before = {path: path.read_bytes() for path in kept(folder)}
    for number, (path, whole) in enumerate(before.items()):
        path.write_bytes(whole[: len(whole) // 2] if number else whole[:-1] + bytes([whole[-1] ^ 1]))
    assert told(start(**shared))["answer"] == first["answer"]
    assert {path: path.read_bytes() for path in kept(folder)} == before


def test_without_room_each_process_has_its_own(shared: dict[str, str]) -> None:
    first = told(start(**{**shared, "MXRT_SHARED_WEIGHTS_MB": "1"}))
    assert first["answer"] == told(start())["answer"]
    size = sum(path.stat().st_size for path in kept(Path(shared["MXRT_CACHE_DIR"])))
    assert size <= MEBIBYTE


@pytest.mark.parametrize(
    ("mode", "value", "words"),
    [
        (0o770, "256", "other users can write it"),
        (0o700, "many", "MXRT_SHARED_WEIGHTS_MB is 'many'"),
    ],
)
def test_a_setting_that_is_wrong_is_an_error_that_names_it(
    shared: dict[str, str], mode: int, value: str, words: str
) -> None:
    folder = Path(shared["MXRT_CACHE_DIR"])
    folder.mkdir()
    folder.chmod(mode)
    process = start(**{**shared, "MXRT_SHARED_WEIGHTS_MB": value})
    _, error = process.communicate("", timeout=300)
    assert process.returncode != 0 and words in error and "MXRT_SHARED_WEIGHTS_MB" in error
