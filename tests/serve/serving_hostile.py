"""Clients that hold a server of `mxrt serve` in one phase of a request, over each transport, and a
server in a process of its own whose memory can be measured.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from serving import gauge, wait_until
from serving_grpc import message
from support import DIGITS, ROOT, WORK

KEYS = ROOT / "tests/serve/tls"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#: Gauges of what requests hold.
GAUGES = ("mxrt_queue_requests", "mxrt_queue_bytes", "mxrt_call_bytes", "mxrt_answer_bytes", "mxrt_waiting_calls")
#: Memory that may be left after a scenario.
LEFT = 16 << 20

CHILD = """
import os, sys, threading, time
import mxrt as mx

folder, digits, pem, key = sys.argv[1:]
opened, entered = threading.Semaphore(0), 0

class Waiting(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        print("entered", flush=True)
        opened.acquire()
        self.assign(out_data[0], req[0], in_data[0])

@mx.operator.register("gate")
class Property(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Waiting()

def saved(name, symbol):
    os.makedirs(f"{folder}/{name}")
    symbol.save(f"{folder}/{name}/{name}-symbol.json")
    return f"{folder}/{name}"

gate = saved("gate", mx.sym.Custom(mx.sym.var("x"), op_type="gate", name="gate"))
wide = saved("wide", mx.sym.tile(mx.sym.var("x"), reps=(1, 4000)))
same = saved("same", mx.sym.identity(mx.sym.var("x")))
with open(f"{folder}/hooks.py", "w") as hooks:
    hooks.write(f'''
import os, time
import numpy as np

def preprocess(request):
    open("{folder}/hooked", "a").write("x")
    while not os.path.exists("{folder}/hooks-open"):
        time.sleep(0.01)
    return np.zeros((1, 4), "float32")
''')
with open(f"{folder}/strings.py", "w") as hooks:
    hooks.write('''
INPUTS = {"text": ("BYTES", [-1])}

def decode(tensors):
    raise ValueError("nobody sends all of them")
''')
models = {
    "digits_cnn": mx.serve.Model(digits, shapes={"data": [-1, 1, 8, 8]}),
    "gate": mx.serve.Model(gate, shapes={"x": [-1, -1]}, calls=1),
    "wide": mx.serve.Model(wide, shapes={"x": [-1, -1]}),
    "same": mx.serve.Model(same, shapes={"x": [-1, -1]}),
    "hooked": mx.serve.Model(same, shapes={"x": [-1, 4]}, hooks=f"{folder}/hooks.py"),
    "strings": mx.serve.Model(same, shapes={"x": [-1, 4]}, hooks=f"{folder}/strings.py"),
    "pictures": mx.serve.Model(same, shapes={"x": [-1, 3, 8, 8]}, preprocess={"size": [8, 8], "resize": 256}),
}
plain = mx.serve.Server(models, port=0, unix=f"{folder}/http", answer_bytes=100 << 20, max_body=4 << 20).start()
tls = {"tls_certificate": pem, "tls_key": key}
secret = mx.serve.Server(models, port=0, answer_bytes=100 << 20, max_body=4 << 20, **tls).start()
print(plain.url, plain.grpc, secret.url, secret.grpc, flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        opened.release()
"""


class Served:
    """The server's process: its addresses, its gate, its memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        WORK.mkdir(parents=True, exist_ok=True)
        arguments = [str(folder), str(DIGITS), str(KEYS / "first.pem"), str(KEYS / "first.key")]
        self.child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CHILD), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=WORK,
        )
        self.url, self.grpc, self.tls, self.tls_grpc = self.child.stdout.readline().split()
        #: The second server, as one that has gauges.
        self.secret = type("Secret", (), {"url": self.tls})

    def close(self) -> None:
        self.child.kill()
        self.child.communicate()

    def pass_through(self, count: int) -> None:
        self.child.stdin.write(f"{count}\n")
        self.child.stdin.flush()

    def entered(self) -> None:
        """Waits until an operator of the gate computes."""
        assert self.child.stdout.readline() == "entered\n"

    def memory(self) -> int:
        with open(f"/proc/{self.child.pid}/status") as status:
            return 1024 * int(next(line for line in status if line.startswith("VmRSS")).split()[1])


def encrypted(url: str, protocol: str) -> ssl.SSLSocket:
    """A connection over TLS that speaks this protocol."""
    context = ssl.create_default_context(cafile=str(KEYS / "first.pem"))
    context.set_alpn_protocols([protocol])
    return context.wrap_socket(tcp(url), server_hostname="127.0.0.1")


def place(url: str) -> tuple[str, int]:
    host, port = url.rpartition("/")[2].split(":")
    return host, int(port)


class Http1:
    """A request of HTTP/1.1, over any stream."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream

    def head(self, path: str, length: int, whole: bool = True, encoding: str = "identity", json: int = 0) -> None:
        fields = {"Host": "here", "Content-Length": length, "Content-Encoding": encoding, "X-Long": "x" * 8000}
        if json:
            fields["Inference-Header-Content-Length"] = json
        text = "\r\n".join([f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""])
        self.stream.sendall(text.encode()[: None if whole else -9])

    def body(self, content: bytes) -> None:
        self.stream.sendall(content)

    def close(self) -> None:
        self.stream.close()


class Http2:
    """A request of HTTP/2, in frames."""

    extra: tuple[tuple[bytes, bytes], ...] = ()

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        stream.sendall(PREFACE + frame(4))
        # The server's settings, and how much it takes of all streams.
        kinds = set()
        while not {4, 8} <= kinds:
            length, kind = struct.unpack(">IB", b"\x00" + self._exactly(9)[:4])
            kinds.add(kind)
            self._exactly(length)
        stream.sendall(frame(4, 1))  # only then its settings count

    def _exactly(self, count: int) -> bytes:
        content = b""
        while len(content) < count:
            part = self.stream.recv(count - len(content))
            assert part, "the server ended the connection"
            content += part
        return content

    #: Header with the encoding of what is sent.
    encoding = b"content-encoding"

    def head(self, path: str, length: int, whole: bool = True, encoding: str = "identity", json: int = 0) -> None:
        fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()), (b":authority", b"here")]
        fields += [*self.extra, (self.encoding, encoding.encode())]
        if json:
            fields.append((b"inference-header-content-length", str(json).encode()))
        block = b"".join(field(*pair) for pair in fields)
        self.stream.sendall(frame(1, 4 if whole else 0, 1, block))

    def body(self, content: bytes, last: bool = True) -> None:
        pieces = [content[at : at + 16384] for at in range(0, len(content), 16384)]
        for number, piece in enumerate(pieces, 1):
            self.stream.sendall(frame(0, int(last and number == len(pieces)), 1, piece))

    def close(self) -> None:
        self.stream.close()


class Grpc(Http2):
    """A call of `ModelInfer`, whatever path is named; the body is its message."""

    extra = ((b"content-type", b"application/grpc"), (b"te", b"trailers"))
    encoding = b"grpc-encoding"

    def head(self, path: str, length: int, whole: bool = True, encoding: str = "identity") -> None:
        super().head("/inference.GRPCInferenceService/ModelInfer", length, whole, encoding)


def frame(kind: int, flags: int = 0, stream: int = 0, content: bytes = b"") -> bytes:
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content


def field(name: bytes, value: bytes) -> bytes:
    """A header, without compression."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def tcp(url: str) -> socket.socket:
    return socket.create_connection(place(url), timeout=60)


def _unix(folder: Path) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(60)
    stream.connect(str(folder / "http"))
    return stream


#: How each transport connects. Another one is a row.
TRANSPORTS = {
    "HTTP/1": lambda served: Http1(tcp(served.url)),
    "HTTP/2": lambda served: Http2(tcp(served.url)),
    "gRPC": lambda served: Grpc(tcp(served.grpc)),
    "TLS": lambda served: Http1(encrypted(served.tls, "http/1.1")),
    "HTTP/2 over TLS": lambda served: Http2(encrypted(served.tls, "h2")),
    "gRPC over TLS": lambda served: Grpc(encrypted(served.tls_grpc, "h2")),
    "Unix": lambda served: Http1(_unix(served.folder)),
    "HTTP/2 over Unix": lambda served: Http2(_unix(served.folder)),
}


def asked(client: Any, model: str, columns: int = 4) -> tuple[str, bytes]:
    """Path and body of a request for one row of zeros."""
    tensor = {"name": "x", "shape": [1, columns], "datatype": "FP32"}
    if isinstance(client, Grpc):
        raw = bytes(4 * columns)
        made = message("inference.ModelInferRequest", model_name=model, inputs=[tensor], raw_input_contents=[raw])
        content = made.SerializeToString()
        return "", b"\x00" + struct.pack(">I", len(content)) + content
    more = {"parameters": {"binary_data_output": True}}
    return f"/v2/models/{model}/infer", json.dumps({"inputs": [{**tensor, "data": [0] * columns}], **more}).encode()


def ask(client: Any, model: str, columns: int = 4) -> None:
    """Sends a whole request, and reads nothing."""
    path, body = asked(client, model, columns)
    client.head(path, len(body))
    client.body(body)


@contextlib.contextmanager
def clients(served: Served, transport: str, count: int) -> Iterator[list[Any]]:
    """Connections that are closed at the end, unless they were before."""
    opened: list[Any] = []
    try:
        opened.extend(TRANSPORTS[transport](served) for _ in range(count))
        yield opened
    finally:
        for client in opened:
            client.close()


def server_of(served: Served, transport: str) -> Any:
    """The server that a transport reaches, as one that has gauges."""
    return served.secret if "TLS" in transport else served


def held(server: Any) -> dict[str, float]:
    return {name: gauge(server, name) for name in GAUGES}


def at_rest(served: Served, server: Any, before: int) -> None:
    """Nothing is held any more, and memory has come back."""
    wait_until(lambda: set(held(server).values()) == {0.0})
    # That of the question is one.
    wait_until(lambda: gauge(server, "mxrt_connections") == 1)
    wait_until(lambda: served.memory() <= before + LEFT)
