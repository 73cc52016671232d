"""What the server costs: requests to `mxrt serve` against the same calls from threads, in turns
(`make bench-serve SECONDS=`).

Calls from threads run beside clients that ask a server for its health as often as the other clients
ask for inference, so that both pay for a client. Turns of a round follow each other at once; ratios
are of one round, and the median of rounds counts.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
import numpy as np

import mxrt
from serving import JSON_BYTES, golden
from support import DIGITS, zoo_artifacts

ROUNDS = 5


class Connection:
    """A kept connection that sends one request again and again."""

    def __init__(self, server: Any, path: str, body: bytes, headers: dict[str, str]) -> None:
        host, port = server.url.removeprefix("http://").split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        method = "POST" if body else "GET"
        lines = [f"{method} {path} HTTP/1.1", "Host: bench", *(f"{key}: {value}" for key, value in headers.items())]
        self._request = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body

    def ask(self) -> None:
        self._socket.sendall(self._request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, rest = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), data
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        while len(rest) < length:
            rest += self._more()

    def _more(self) -> bytes:
        part = self._socket.recv(1 << 18)
        assert part, "the server closed the connection"
        return part


def rate(seconds: float, asks: list[Callable[[], None]]) -> tuple[float, float, float]:
    """Calls a second of all threads together, and the median and the 99th percentile of their times
    in milliseconds.
    """
    times: list[list[float]] = [[] for _ in asks]
    end = time.perf_counter() + seconds

    def run(ask: Callable[[], None], of: list[float]) -> None:
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
    return len(every) / took, statistics.median(every), every[int(0.99 * len(every))]


def compare(name: str, folder: Path, given: np.ndarray, connections: int, seconds: float) -> dict[str, Any]:
    """Rounds of calls from threads and of requests."""
    symbol, params = folder / f"{name}-symbol.json", folder / f"{name}-0000.params"
    net = mxrt.gluon.SymbolBlock.imports(str(symbol), ["data"], str(params))
    array = mxrt.nd.array(given)
    tensor = {
        "name": "data",
        "shape": given.shape,
        "datatype": "FP32",
        "parameters": {"binary_data_size": given.nbytes},
    }
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    body, headers = head + given.tobytes(), {JSON_BYTES: str(len(head))}
    model = mxrt.serve.Model(folder / name, shapes={"data": [-1, *given.shape[1:]]})
    rounds = []
    with mxrt.serve.Server({name: model}, port=0) as server:
        path = f"/v2/models/{name}/infer"
        asking = [Connection(server, path, body, headers) for _ in range(connections)]
        echoing = [Connection(server, "/v2/health/live", b"", {}) for _ in range(connections)]

        def call_beside(echo: Connection) -> None:
            echo.ask()
            net(array).asnumpy()

        for _ in range(ROUNDS):
            direct = rate(seconds, [lambda echo=echo: call_beside(echo) for echo in echoing])
            served = rate(seconds, [one.ask for one in asking])
            rounds.append((served[0] / direct[0], direct, served))
    ratios = [ratio for ratio, *_ in rounds]
    middle = sorted(rounds)[len(rounds) // 2]
    return {
        "model": name,
        "connections": connections,
        "ratio": round(statistics.median(ratios), 3),
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
        "threads": [round(value, 2) for value in middle[1]],
        "server": [round(value, 2) for value in middle[2]],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="for all of it")
    parser.add_argument("--model", choices=("digits_cnn", "resnet18_v1"), action="append")
    args = parser.parse_args()
    names = args.model or ["digits_cnn", "resnet18_v1"]
    each = args.seconds / (len(names) * 3 * ROUNDS * 2)
    for name in names:
        if name == "digits_cnn":
            folder, given = DIGITS, golden(name, 1)[0]
        else:
            folder = zoo_artifacts(name)
            given = np.load(folder / f"{name}-input.npy")
        for connections in (1, 8, 64):
            print(json.dumps(compare(name, folder, given, connections, each)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
