"""Saving: whole or not at all, also for processes that are killed, and through links."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import block_of


def saved(mx, path: Path) -> list[float]:
    return mx.nd.load(str(path))["a"].asnumpy().tolist()


KILLED = """
import sys
import mxrt as mx
arrays = {str(i): mx.nd.ones((500, 1000)) for i in range(20)}
mx.nd.waitall()
print("ready", flush=True)
while True:
    mx.nd.save(sys.argv[1], arrays)
"""


def test_what_a_killed_process_left_is_gone_after_the_next_save(mx, tmp_path: Path) -> None:
    target = tmp_path / "model.params"
    left = []
    for _ in range(20):
        command = [sys.executable, "-c", KILLED, str(target)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path) as child:
            child.stdout.readline()
            while not (left := list(tmp_path.glob(".model.params.*.tmp"))) and child.poll() is None:
                pass
            child.send_signal(signal.SIGKILL)
        left = list(tmp_path.glob(".model.params.*.tmp"))
        if left:
            break
    assert left, "no process was killed while it wrote"
    mx.nd.save(str(target), {"a": mx.nd.array([1, 2])})
    assert [path.name for path in tmp_path.iterdir()] == ["model.params"]
    assert saved(mx, target) == [1, 2]


def test_a_file_that_another_process_is_writing_is_left_alone(mx, tmp_path: Path) -> None:
    import fcntl

    busy = tmp_path / f".model.params.{os.getppid()}-7.tmp"
    with open(busy, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        mx.nd.save(str(tmp_path / "model.params"), {"a": mx.nd.array([1])})
        assert busy.exists()
    for name in (".model.params.tmp", ".model.params.x-1.tmp", ".other.params.1-1.tmp", "model.params.1-1.tmp"):
        (tmp_path / name).write_text("of somebody else")
    mx.nd.save(str(tmp_path / "model.params"), {"a": mx.nd.array([1])})
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize("kind", ["params", "json"])
def test_links_also_to_nothing_are_followed_and_stay(mx, tmp_path: Path, kind: str) -> None:
    net = block_of(mx)

    def save(path: Path) -> None:
        if kind == "json":
            net._symbol.save(str(path))
        else:
            mx.nd.save(str(path), {"a": mx.nd.array([1, 2])})

    (tmp_path / "releases").mkdir()
    link, inner = tmp_path / "latest", tmp_path / "releases" / "current"
    inner.symlink_to("one")
    link.symlink_to(Path("releases") / "current")
    for _ in range(2):
        save(link)
        assert link.is_symlink()
        assert inner.is_symlink()
        assert sorted(path.name for path in (tmp_path / "releases").iterdir()) == ["current", "one"]
    if kind == "json":
        assert mx.sym.load(str(link)).tojson() == net._symbol.tojson()
    else:
        assert saved(mx, tmp_path / "releases" / "one") == [1, 2]
    broken = tmp_path / "broken"
    broken.symlink_to(tmp_path / "nowhere" / "file")
    with pytest.raises(mx.MXNetError, match="broken"):
        save(broken)
    round_ = tmp_path / "round"
    round_.symlink_to(round_)
    with pytest.raises(mx.MXNetError, match="round"):
        save(round_)


def test_a_symbol_that_cannot_be_saved_leaves_nothing(mx, tmp_path: Path) -> None:
    net = block_of(mx)
    with pytest.raises(mx.MXNetError, match="directory"):
        net._symbol.save(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "net-symbol.json"
    net._symbol.save(str(path))
    path.chmod(0o600)
    net._symbol.save(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
