"""`mxrt serve`: where work is done, how often, and that refusals arrive (ACCOUNTING.md)."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import struct
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving import connect, exchange, symbol_in, wait_until
from serving_grpc import ask as ask_grpc
from serving_grpc import channel, refused
from serving_hostile import KEYS
from test_serve_repository import place

LARGE = 24 << 20
TLS = {"tls_certificate": KEYS / "first.pem", "tls_key": KEYS / "first.key"}


# ---- refusals arrive -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broken(mx, tmp_path_factory) -> Any:
    """A server with a model that does not serve, without and with TLS."""
    folder = tmp_path_factory.mktemp("broken")
    next(place(folder / "models/broken/1").glob("*.params")).write_bytes(b"nothing")
    shared = {"repository": folder / "models", "port": 0, "max_body": 2 * LARGE}
    with mx.serve.Server(**shared, unix=folder / "http") as plain, mx.serve.Server(**shared, **TLS) as secret:
        yield plain, secret, folder / "http"


PATH = "/v2/models/broken/infer"


@pytest.mark.parametrize("encrypted", [False, True])
def test_that_a_model_does_not_serve_arrives_while_the_client_still_sends(broken, encrypted: bool) -> None:
    server = broken[encrypted]
    for _ in range(5):
        with contextlib.closing(connect(server)) as connection:
            connection.request("POST", PATH, bytes(LARGE))
            response = connection.getresponse()
            assert (response.status, b"broken" in response.read()) == (503, True)
    tensor = {"name": "data", "datatype": "FP32", "shape": [1, LARGE // 4]}
    if not encrypted:
        with channel(server) as made, refused("UNAVAILABLE", "broken"):
            ask_grpc(made, "ModelInfer", model_name="broken", inputs=[tensor], raw_input_contents=[bytes(LARGE)])


@pytest.mark.skipif(not os.path.exists("/usr/bin/curl"), reason="there is no curl")
@pytest.mark.parametrize("transport", ["HTTP/1", "HTTP/2", "TLS", "HTTP/2 over TLS", "Unix"])
def test_that_a_model_does_not_serve_reaches_curl(broken, tmp_path: Path, transport: str) -> None:
    plain, secret, socket = broken
    trust = ["--cacert", str(KEYS / "first.pem")]
    options, url = {
        "HTTP/1": (["--http1.1"], plain.url),
        "HTTP/2": (["--http2-prior-knowledge"], plain.url),
        "TLS": (["--http1.1", *trust], secret.url),
        "HTTP/2 over TLS": (["--http2", *trust], secret.url),
        "Unix": (["--unix-socket", str(socket)], "http://here"),
    }[transport]
    (tmp_path / "body").write_bytes(bytes(LARGE))
    body = ["-H", "Expect:", "--data-binary", f"@{tmp_path / 'body'}"]
    for _ in range(5):
        command = ["curl", "-sS", *options, *body, "-w", "%{http_code}", url + PATH]
        done = subprocess.run(command, capture_output=True, timeout=600, check=False)
        assert (done.returncode, done.stdout[-3:]) == (0, b"503"), done


# ---- how often a folder is looked at ------------------------------------------------------------


class Opened:
    """Counts how often folders are opened, by the kernel's notices."""

    OPEN, IS_FOLDER = 0x20, 0x40000000

    def __init__(self, folders: list[Path]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._file >= 0, os.strerror(ctypes.get_errno())
        self._names = {self._watch(folder): folder for folder in folders}

    def _watch(self, folder: Path) -> int:
        number: int = self._libc.inotify_add_watch(self._file, os.fsencode(folder), self.OPEN)
        assert number >= 0, os.strerror(ctypes.get_errno())
        return number

    def counts(self) -> Counter[Path]:
        """The counts since the last call."""
        found: Counter[Path] = Counter()
        with contextlib.suppress(BlockingIOError):
            while True:
                notices = os.read(self._file, 1 << 16)
                while notices:
                    number, mask, _, length = struct.unpack_from("iIII", notices)
                    # Those of files in the folder have a name.
                    if mask & self.IS_FOLDER and length == 0:
                        found[self._names[number]] += 1
                    notices = notices[16 + length :]
        return found

    def close(self) -> None:
        os.close(self._file)


def test_the_start_looks_at_a_model_as_often_however_many_there_are(mx, tmp_path: Path) -> None:
    """800 models once took 24 s: all were looked at again for each."""

    def looks(count: int) -> int:
        root = tmp_path / str(count)
        folders = [place(root / f"m{number}/1") for number in range(count)]
        with contextlib.closing(Opened(folders)) as opened, mx.serve.Server(repository=root, port=0) as server:
            assert len(server.index) == count
            assert all(entry["state"] == "READY" for entry in server.index)
            counts = opened.counts()
        assert set(counts) == set(folders)
        return max(counts.values())

    assert looks(24) <= looks(3)


# ---- which threads work --------------------------------------------------------------------------


def times() -> dict[int, int]:
    """Nanoseconds that each thread of this process has computed."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found[int(task.name)] = int((task / "schedstat").read_text().split()[0])
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the system does not count times of threads")
def test_numbers_are_read_and_written_by_other_threads_than_those_of_connections(mx, tmp_path: Path) -> None:
    numbers = np.random.RandomState(0).rand(1, 300_000).astype("float32")
    tensor = {"name": "x", "shape": [1, 300_000], "datatype": "FP32", "data": numbers[0].tolist()}
    text = json.dumps({"inputs": [tensor]})
    model = mx.serve.Model(symbol_in(mx.sym.identity(mx.sym.var("x")), tmp_path), shapes={"x": [-1, -1]})
    before = set(times())

    def of_server(tids: set[int]) -> set[int]:
        return {tid for tid in tids - before if Path(f"/proc/self/task/{tid}/comm").read_text() == "mxrt-serve\n"}

    with mx.serve.Server({"same": model}, port=0, max_body=64 << 20, io_threads=1) as server:
        # A thread names itself.
        wait_until(lambda: len(of_server(set(times()))) == 1)
        named = of_server(set(times()))
        with contextlib.closing(connect(server)) as connection:
            # What a first request costs once is there.
            assert exchange(connection, "/v2/models/same/infer", text)[0].status == 200
            begin = times()
            for _ in range(5):
                assert exchange(connection, "/v2/models/same/infer", text)[0].status == 200
            spent = {tid: now - begin.get(tid, 0) for tid, now in times().items()}
        others = of_server(set(spent)) - named
    # Numbers cost ten times what their bytes do on their way from and to a socket.
    assert sum(spent[tid] for tid in named) < sum(spent[tid] for tid in others), spent
