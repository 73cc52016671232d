"""Clients of a server: kept connections over HTTP and gRPC, `wrk`, and requests at given times."""

from __future__ import annotations

import json
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from serving import request

Ask = Callable[[], None]


@dataclass
class Measured:
    """Answers a second, and times of requests in milliseconds."""

    rate: float
    p50: float
    p99: float


@dataclass
class Post:
    """One request of inference."""

    path: str
    body: bytes
    headers: dict[str, str]

    @staticmethod
    def of(model: str, given: np.ndarray, binary: bool = True) -> Post:
        return Post.of_tensors(model, {"data": given}, binary)

    @staticmethod
    def of_tensors(model: str, given: dict[str, np.ndarray], binary: bool = True) -> Post:
        more = {"parameters": {"binary_data_output": True}} if binary else {}
        body, headers = request(list(given), list(given.values()), binary, **more)
        return Post(f"/v2/models/{model}/infer", body, headers)


class Connection:
    """A kept connection of HTTP that sends one request again and again."""

    def __init__(self, port: int, post: Post | None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        post = post or Post("/v2/health/live", b"", {})
        method = "POST" if post.body else "GET"
        lines = [f"{method} {post.path} HTTP/1.1", "Host: bench"]
        lines += [f"{key}: {value}" for key, value in post.headers.items()]
        self._request = "\r\n".join([*lines, f"Content-Length: {len(post.body)}", "", ""]).encode() + post.body

    def fileno(self) -> int:
        return self._socket.fileno()

    def ask(self) -> None:
        self.send()
        status = self.receive()
        assert status == 200, status

    def send(self) -> None:
        self._socket.sendall(self._request)

    def receive(self) -> int:
        """Reads an answer; its status."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, rest = data.partition(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        while len(rest) < length:
            rest += self._more()
        return int(head[9:12])

    def _more(self) -> bytes:
        part = self._socket.recv(1 << 18)
        assert part, "the server closed the connection"
        return part


class Call:
    """A channel of gRPC that sends one request again and again."""

    def __init__(self, port: int, model: str, given: np.ndarray | None) -> None:
        import grpc

        from serving_grpc import infer_fields, message, method

        name = "ModelInfer" if given is not None else "ServerLive"
        fields = infer_fields(model, {"data": given}) if given is not None else {}
        self._asked = message(f"inference.{name}Request", **fields)
        # Channels to one address would share their connection.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        self._method = method(grpc.insecure_channel(f"127.0.0.1:{port}", options=options), name)

    def ask(self) -> None:
        self._method(self._asked, timeout=60)


def in_turns(seconds: float, asks: list[Ask]) -> Measured:
    """Runs all of them, each in a separate thread, for `seconds` seconds."""
    times: list[list[float]] = [[] for _ in asks]
    end = time.perf_counter() + seconds

    def run(ask: Ask, of: list[float]) -> None:
        while (began := time.perf_counter()) < end:
            ask()
            of.append(time.perf_counter() - began)

    threads = [threading.Thread(target=run, args=pair) for pair in zip(asks, times, strict=True)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    every = sorted(1000 * one for of in times for one in of)
    return Measured(len(every) / took, statistics.median(every), every[int(0.99 * len(every))])


def wrk(port: int, post: Post, connections: int, seconds: int) -> Measured:
    """`wrk` with one thread. A connection sends its next request when it has the last answer."""
    with tempfile.TemporaryDirectory() as folder:
        body, script = Path(folder, "body"), Path(folder, "post.lua")
        body.write_bytes(post.body)
        headers = "".join(f'wrk.headers["{key}"] = "{value}"\n' for key, value in post.headers.items())
        script.write_text(
            f'wrk.method = "POST"\nlocal file = io.open("{body}", "rb")\nwrk.body = file:read("*a")\nfile:close()\n'
            f"{headers}"
            "done = function(summary, latency, requests)\n"
            '  io.write(string.format("\\nROW %d %d %f %f %d\\n", summary.requests, summary.duration,\n'
            "    latency:percentile(50), latency:percentile(99), summary.errors.status))\nend\n"
        )
        url = f"http://127.0.0.1:{port}{post.path}"
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "60s", "-s", str(script), url]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"ROW (\d+) (\d+) (\S+) (\S+) (\d+)", text)
    assert found, text
    count, micros, p50, p99, wrong = (float(value) for value in found.groups())
    return Measured((count - wrong) / micros * 1e6, p50 / 1e3, p99 / 1e3)


def open_loop(port: int, post: Post, rate: float, seconds: float, connections: int) -> dict[int, list[float]]:
    """Asks at times that do not depend on answers (a Poisson process), each time on a connection
    that is free. Seconds from the time of a request to its answer, by status; 0 are requests that
    found no free connection.
    """
    random, ends = np.random.RandomState(1), selectors.DefaultSelector()
    free = deque(Connection(port, post) for _ in range(connections))
    found: dict[int, list[float]] = {0: []}
    began = time.perf_counter()
    due, last = began, began + seconds
    while due < last or ends.get_map():
        now = time.perf_counter()
        while due <= now and due < last:
            if free:
                connection = free.popleft()
                connection.send()
                ends.register(connection, selectors.EVENT_READ, due)
            else:
                found[0].append(0.0)
            due += random.exponential(1 / rate)
        wait = due - time.perf_counter() if due < last else 1.0
        for key, _ in ends.select(max(0.0, wait)):
            ends.unregister(key.fileobj)
            status = key.fileobj.receive()
            found.setdefault(status, []).append(time.perf_counter() - key.data)
            free.append(key.fileobj)
    return found


def show(**values: Any) -> None:
    """Prints one row as JSON."""
    print(json.dumps({key: round(v, 3) if isinstance(v, float) else v for key, v in values.items()}), flush=True)
