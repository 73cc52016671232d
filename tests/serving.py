"""Helpers of the tests of `mxrt serve`: a client made of the standard library."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import MODELS, ROOT

DATATYPES = {
    "float32": "FP32",
    "float64": "FP64",
    "float16": "FP16",
    "int32": "INT32",
    "int64": "INT64",
    "int8": "INT8",
    "uint8": "UINT8",
    "bool": "BOOL",
}
DTYPES = {name: np.dtype(dtype) for dtype, name in DATATYPES.items()}
SERVED = ("digits_cnn", "module_mlp", "wide_deep", "lstm_rows", "half_cnn", "transformer", "ssd_digits")
JSON_BYTES = "Inference-Header-Content-Length"
DIGIT = {"name": "data", "shape": [1, 1, 8, 8], "datatype": "FP32"}


def meta(name: str) -> dict:
    return json.loads((MODELS / name / "meta.json").read_text())


def golden(name: str, batch: int) -> list[np.ndarray]:
    with np.load(MODELS / name / "golden.npz") as saved:
        return [saved[f"b{batch}.in.{tensor['name']}"] for tensor in meta(name)["inputs"]]


def files(name: str) -> tuple[str, str]:
    folder = MODELS / name
    return str(next(folder.glob("*-symbol.json"))), str(next(folder.glob("*.params")))


def connect(server: Any) -> http.client.HTTPConnection:
    host, port = server.url.rpartition("/")[2].split(":")
    if server.url.startswith("https:"):
        import ssl  # which not every build of Python has

        trust = ssl.create_default_context(cafile=str(ROOT / "tests/serve/tls/first.pem"))
        return http.client.HTTPSConnection(host, int(port), timeout=60, context=trust)
    return http.client.HTTPConnection(host, int(port), timeout=60)


def raw(server: Any) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def exchange(
    connection: http.client.HTTPConnection,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
    method: str | None = None,
) -> tuple[http.client.HTTPResponse, bytes]:
    connection.request(method or ("GET" if body is None else "POST"), path, body, headers or {})
    response = connection.getresponse()
    return response, response.read()


def post(server: Any, body: Any, headers: dict[str, str] | None = None, model: str = "digits_cnn") -> tuple[int, str]:
    """Status and text of an inference on a connection of its own."""
    with contextlib.closing(connect(server)) as connection:
        response, data = exchange(connection, f"/v2/models/{model}/infer", body, headers)
        return response.status, data.decode()


def request(
    names: list[str], arrays: list[np.ndarray], binary: bool | list[bool] = True, **more: Any
) -> tuple[bytes, dict[str, str]]:
    """Body and headers of an inference."""
    inputs, blobs = [], []
    kinds = binary if isinstance(binary, list) else [binary] * len(arrays)
    for name, array, as_bytes in zip(names, arrays, kinds, strict=True):
        tensor: dict[str, Any] = {"name": name, "shape": list(array.shape), "datatype": DATATYPES[array.dtype.name]}
        if as_bytes:
            blobs.append(np.ascontiguousarray(array).tobytes())
            tensor["parameters"] = {"binary_data_size": len(blobs[-1])}
        else:
            tensor["data"] = array.tolist() if len(inputs) % 2 else array.ravel().tolist()
        inputs.append(tensor)
    text = json.dumps({"inputs": inputs, **more}).encode()
    headers = {JSON_BYTES: str(len(text))} if blobs else {}
    return text + b"".join(blobs), headers


def answer(response: http.client.HTTPResponse, data: bytes) -> tuple[dict, list[np.ndarray]]:
    """JSON and arrays of an answer."""
    assert response.status == 200, data.decode()
    length = response.headers.get(JSON_BYTES)
    text, blob = (data, b"") if length is None else (data[: int(length)], data[int(length) :])
    head = json.loads(text)
    arrays = []
    for tensor in head["outputs"]:
        dtype = DTYPES[tensor["datatype"]]
        if "data" in tensor:
            array = np.array(tensor["data"], dtype)
        else:
            size = tensor["parameters"]["binary_data_size"]
            array, blob = np.frombuffer(blob[:size], dtype), blob[size:]
        arrays.append(array.reshape(tensor["shape"]))
    assert not blob
    return head, arrays


def same(found: list[np.ndarray], wanted: list[np.ndarray]) -> bool:
    return len(found) == len(wanted) and all(
        f.dtype == w.dtype and f.shape == w.shape and f.tobytes() == w.tobytes()
        for f, w in zip(found, wanted, strict=True)
    )


def asked(server: Any, name: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
    names = [tensor["name"] for tensor in meta(name)["inputs"]]
    body, headers = request(names, arrays, parameters={"binary_data_output": True})
    with contextlib.closing(connect(server)) as connection:
        return answer(*exchange(connection, f"/v2/models/{name}/infer", body, headers))[1]


def called(mx: Any, name: str, batch: int, times: int = 1) -> list[np.ndarray]:
    """The answers of a call in this process whose inputs are repeated `times` times."""
    symbol, params = files(name)
    inputs = [tensor["name"] for tensor in meta(name)["inputs"]]
    labels = [(tensor["name"], tensor["shape"]) for tensor in meta(name).get("label_inputs", [])]
    block = mx.gluon.SymbolBlock.imports(symbol, inputs + [label for label, _ in labels], params)
    zeros = [mx.nd.zeros([batch * times if e == "batch" else e for e in shape]) for _, shape in labels]
    data = [np.concatenate([array] * times) for array in golden(name, batch)]
    made = block(*[mx.nd.array(array, dtype=array.dtype) for array in data], *zeros)
    return [array.asnumpy() for array in (made if isinstance(made, (list, tuple)) else [made])]


def model(mx: Any, name: str) -> Any:
    """A model of the tests as a server takes it."""
    described = {tensor["name"]: tensor for tensor in meta(name)["inputs"]}
    shapes = {key: [-1, *tensor["shape"][1:]] for key, tensor in described.items()}
    dtypes = {key: tensor["dtype"] for key, tensor in described.items() if tensor["dtype"] != "float32"}
    return mx.serve.Model(MODELS / name, shapes=shapes, dtypes=dtypes)


def digit(**changes: Any) -> str:
    """A request for digits_cnn with these changes of its input."""
    tensor = {**DIGIT, "data": [0] * 64, **changes}
    return json.dumps({"inputs": [{key: value for key, value in tensor.items() if value is not None}]})


def sized(size: Any, shape: list[int] | None = None) -> str:
    return digit(data=None, shape=shape or [1, 1, 8, 8], parameters={"binary_data_size": size})


def read_all(connection: socket.socket) -> bytes:
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def head(length: int | None, *more: str) -> bytes:
    lines = ["POST /v2/models/digits_cnn/infer HTTP/1.1", "Host: here", *more]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def gauge(server: Any, name: str) -> float:
    with contextlib.closing(connect(server)) as connection:
        text = exchange(connection, "/metrics")[1].decode()
    return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)[1])


def wait_until(true: Any) -> None:
    for _ in range(12_000):
        if true():
            return
        time.sleep(0.01)
    pytest.fail("it did not become true")


def in_the_end(check: Any) -> Any:
    """The result of `check`, which is tried for a minute. A server with short limits also sends a
    good client away that a busy machine held up.
    """
    end = time.monotonic() + 60
    while True:
        try:
            return check()
        except (AssertionError, OSError, TypeError, http.client.HTTPException):
            if time.monotonic() > end:
                raise


class Gate:
    """A model whose operator waits until it is let through."""

    def __init__(self, mx: Any, folder: Path) -> None:
        gate, self.opened, self.entered = self, threading.Semaphore(0), []
        name = f"gate_{folder.name}"

        class Waiting(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                value = float(in_data[0].asnumpy().ravel()[0])
                gate.entered.append(value)
                if value < 0:
                    raise ValueError("a value below 0")
                gate.opened.acquire()
                self.assign(out_data[0], req[0], in_data[0])

        @mx.operator.register(name)
        class Property(mx.operator.CustomOpProp):
            def create_operator(self, ctx, shapes, dtypes):
                return Waiting()

        mx.sym.Custom(mx.sym.var("x"), op_type=name, name="gate").save(str(folder / "gate-symbol.json"))
        # Of unknown shape, so that the model does not answer once when it is loaded.
        self.model = mx.serve.Model(folder)

    def pass_through(self, count: int) -> None:
        for _ in range(count):
            self.opened.release()

    def pass_late(self, server: Any, value: float) -> None:
        """Lets the operator of a request through that was answered because it was late, if the
        operator has begun at all.
        """
        wait_until(lambda: value in self.entered or gauge(server, "mxrt_queue_requests") == 0)
        self.pass_through(self.entered.count(value))


def symbol_in(symbol: Any, folder: Path) -> Path:
    """Saves a graph without parameters in a folder, and returns the folder."""
    symbol.save(str(folder / "m-symbol.json"))
    return folder
