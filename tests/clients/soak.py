"""Ten million small requests to `mxrt serve` over HTTP and gRPC (`make soak-serve REQUESTS=`).

One in a hundred is wrong, and with one in a hundred its client leaves without an answer. Every
other one must get its own answer, once, in its place, bit for bit. Clients of HTTP are processes of
their own that send a number of requests before they read the answers (pipelining).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import socket
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
import numpy as np

import mxrt
from serving import gauge, head, raw, request
from serving_grpc import arrays_of, ask, channel, infer_fields, refused
from support import DIGITS

AT_ONCE = 32
LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)\r\n")
UNNAMED = "................"  # the id of a request in a template


@dataclass
class Server:
    """The address of the server, in the form that the helpers of the tests need."""

    url: str
    grpc: str


@dataclass
class Known:
    """An input of the model, the request for it with `UNNAMED` as its id, and its answer."""

    given: np.ndarray
    sent: tuple[bytes, bytes]
    cut: bytes
    wanted: bytes


def known(given: np.ndarray, wanted: bytes) -> Known:
    body, headers = request(["data"], [given], parameters={"binary_data_output": True}, id=UNNAMED)
    fields = [f"{name}: {value}" for name, value in headers.items()]
    before, after = (head(len(body), *fields) + body).split(UNNAMED.encode())
    return Known(given, (before, after), head(len(body) - 1, *fields) + body[:-1], wanted)


def leave(server: Server, sent: bytes, choose: random.Random) -> None:
    with raw(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(sent[: choose.randint(1, len(sent))])


def read_answer(stream: Any) -> tuple[bytes, bytes]:
    """The head and the body of the next answer."""
    lines = [stream.readline()]
    while lines[-1] not in (b"\r\n", b""):
        lines.append(stream.readline())
    top = b"".join(lines)
    length = LENGTH.search(top)
    assert length, f"no length in {top!r}"
    return top, stream.read(int(length[1]))


def http_client(server: Server, number: int, requests: int, inputs: list[Known], counts: Counter[str]) -> None:
    choose = random.Random(number)
    with raw(server) as connection, connection.makefile("rb") as stream:
        for turn in range(0, requests, AT_ONCE):
            sent: list[bytes] = []
            wanted: list[tuple[bytes, bytes] | None] = []
            for place in range(turn, min(turn + AT_ONCE, requests)):
                case, kind = choose.choice(inputs), choose.random()
                name = f"{number:04}.{place:011}".encode()
                if kind < 0.01:
                    sent.append(case.cut)
                    wanted.append(None)
                elif kind < 0.02:
                    leave(server, name.join(case.sent), choose)
                    counts["left"] += 1
                else:
                    sent.append(name.join(case.sent))
                    wanted.append((name, case.wanted))
            connection.sendall(b"".join(sent))
            for answer in wanted:
                top, body = read_answer(stream)
                if answer is None:
                    assert top.startswith(b"HTTP/1.1 400 "), top
                    counts["wrong"] += 1
                else:
                    assert top.startswith(b"HTTP/1.1 200 "), (top, body)
                    assert body.count(b'"id":"' + answer[0] + b'"') == 1 and body.endswith(answer[1]), (answer, body)
                    counts["answered"] += 1


def grpc_client(server: Server, number: int, requests: int, inputs: list[Known], counts: Counter[str]) -> None:
    choose = random.Random(number)
    with channel(server) as own:
        for turn in range(requests):
            case = choose.choice(inputs)
            fields = infer_fields("digits_cnn", {"data": case.given}, id=f"{number}.{turn}")
            if choose.random() < 0.01:
                with refused("INVALID_ARGUMENT"):
                    ask(own, "ModelInfer", **{**fields, "raw_input_contents": [b"x"]})
                counts["wrong"] += 1
            else:
                made = ask(own, "ModelInfer", **fields)
                assert made.id == fields["id"] and arrays_of(made)[0].tobytes() == case.wanted
                counts["answered"] += 1


def in_process(client: Callable[..., None], results: Any, *arguments: Any) -> None:
    counts: Counter[str] = Counter()
    try:
        client(*arguments, counts)
        results.put((counts, None))
    except BaseException:
        results.put((counts, traceback.format_exc()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000_000)
    requests = parser.parse_args().requests
    symbol, params = DIGITS / "digits_cnn-symbol.json", DIGITS / "digits_cnn-0000.params"
    net = mxrt.gluon.SymbolBlock.imports(str(symbol), ["data"], str(params))
    given = [np.random.default_rng(i).random((1, 1, 8, 8), "float32") for i in range(64)]
    inputs = [known(x, net(mxrt.nd.array(x)).asnumpy().tobytes()) for x in given]
    processes = multiprocessing.get_context("spawn")
    results = processes.Queue()
    began = time.monotonic()
    with mxrt.serve.Server({"digits_cnn": DIGITS}, port=0, grpc_port=0) as running:
        server = Server(running.url, running.grpc)
        # One in forty goes over gRPC, whose client in Python takes most of the time.
        shares = [(http_client, requests * 39 // 40 // 4)] * 4 + [(grpc_client, requests // 40)]
        clients = [
            processes.Process(target=in_process, args=(client, results, server, number, share, inputs))
            for number, (client, share) in enumerate(shares)
        ]
        for client in clients:
            client.start()
        ended = [results.get() for _ in clients]
        for client in clients:
            client.join()
        time.sleep(0.5)
        held = gauge(running, "mxrt_queue_requests"), gauge(running, "mxrt_queue_bytes")
    counts: Counter[str] = sum((counts for counts, _ in ended), Counter())
    failures = [failure for _, failure in ended if failure]
    seconds = round(time.monotonic() - began)
    print(json.dumps({**counts, "seconds": seconds, "held at the end": held, "failures": failures}))
    return 0 if not failures and held == (0, 0) and counts["answered"] > 0.9 * requests - 1000 else 1


if __name__ == "__main__":
    sys.exit(main())
