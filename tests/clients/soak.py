"""Small requests to `mxrt serve` over HTTP and gRPC for a while (`make soak-serve SECONDS=`).

One in a hundred is wrong, and one client in a hundred leaves without its answer. Every other one
must get its own answer, once, bit for bit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
import numpy as np

import mxrt
from serving import answer, connect, exchange, gauge, head, raw, request
from serving_grpc import arrays_of, ask, channel, infer_fields, refused
from support import DIGITS

COUNTS = {"answered": 0, "wrong": 0, "left": 0}
LOCK = threading.Lock()


def leave(server: Any, body: bytes, headers: dict[str, str], choose: random.Random) -> None:
    sent = head(len(body), *[f"{name}: {value}" for name, value in headers.items()]) + body
    with raw(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(sent[: choose.randint(1, len(sent))])


def http_caller(server: Any, number: int, end: float, known: list[tuple[np.ndarray, bytes]]) -> None:
    choose = random.Random(number)
    turn = 0
    with contextlib.closing(connect(server)) as connection:
        while time.monotonic() < end:
            turn += 1
            given, wanted = choose.choice(known)
            name = f"{number}.{turn}"
            body, headers = request(["data"], [given], parameters={"binary_data_output": True}, id=name)
            kind = choose.random()
            if kind < 0.01:
                response, _ = exchange(connection, "/v2/models/digits_cnn/infer", body[:-1], headers)
                assert response.status == 400
                count("wrong")
            elif kind < 0.02:
                leave(server, body, headers, choose)
                count("left")
            else:
                said, made = answer(*exchange(connection, "/v2/models/digits_cnn/infer", body, headers))
                assert said["id"] == name and made[0].tobytes() == wanted
                count("answered")


def grpc_caller(server: Any, number: int, end: float, known: list[tuple[np.ndarray, bytes]]) -> None:
    choose = random.Random(number)
    turn = 0
    with channel(server) as own:
        while time.monotonic() < end:
            turn += 1
            given, wanted = choose.choice(known)
            fields = infer_fields("digits_cnn", {"data": given}, id=f"{number}.{turn}")
            if choose.random() < 0.01:
                with refused("INVALID_ARGUMENT"):
                    ask(own, "ModelInfer", **{**fields, "raw_input_contents": [b"x"]})
                count("wrong")
            else:
                made = ask(own, "ModelInfer", **fields)
                assert made.id == fields["id"] and arrays_of(made)[0].tobytes() == wanted
                count("answered")


def count(what: str) -> None:
    with LOCK:
        COUNTS[what] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    seconds = parser.parse_args().seconds
    symbol, params = DIGITS / "digits_cnn-symbol.json", DIGITS / "digits_cnn-0000.params"
    net = mxrt.gluon.SymbolBlock.imports(str(symbol), ["data"], str(params))
    inputs = [np.random.default_rng(i).random((1, 1, 8, 8), "float32") for i in range(64)]
    known = [(given, net(mxrt.nd.array(given)).asnumpy().tobytes()) for given in inputs]
    failures: list[BaseException] = []

    def guarded(caller: Any, *arguments: Any) -> None:
        try:
            caller(*arguments)
        except BaseException as error:
            failures.append(error)

    with mxrt.serve.Server({"digits_cnn": DIGITS}, port=0) as server:
        end = time.monotonic() + seconds
        kinds = [http_caller] * 6 + [grpc_caller] * 2
        threads = [
            threading.Thread(target=guarded, args=(caller, server, number, end, known))
            for number, caller in enumerate(kinds)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(0.5)
        held = gauge(server, "mxrt_queue_requests"), gauge(server, "mxrt_queue_bytes")
    print(json.dumps({**COUNTS, "seconds": seconds, "held at the end": held, "failures": [repr(f) for f in failures]}))
    return 0 if not failures and held == (0, 0) and COUNTS["answered"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
