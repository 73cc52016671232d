"""`mxrt serve`: what a request costs is charged to it, and released when it is gone
(crates/serve/ACCOUNTING.md). A scenario holds the server in one phase of a request, over each
transport. Meanwhile another client gets its answer; afterwards nothing is held, and memory is back.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from serving import connect, digit, exchange, gauge, post, symbol_in, wait_until
from serving_grpc import ask as ask_grpc
from serving_grpc import channel, message, refused
from serving_hostile import (
    KEYS,
    TRANSPORTS,
    Grpc,
    Http2,
    Served,
    ask,
    asked,
    at_rest,
    clients,
    field,
    frame,
    held,
    server_of,
)

#: An answer of `wide` has 4000 times the bytes of its request.
WIDE_COLUMNS = 1100
WIDE_BYTES = 4 * 4000 * WIDE_COLUMNS


@pytest.fixture(scope="module")
def served(mx, tmp_path_factory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("served"))
    yield made
    made.close()


@contextlib.contextmanager
def connected(served: Served, server: Any, transport: str) -> Iterator[None]:
    with clients(served, transport, 50):
        wait_until(lambda: gauge(server, "mxrt_connections") >= 50)
        yield


@contextlib.contextmanager
def in_head(served: Served, server: Any, transport: str) -> Iterator[None]:
    with clients(served, transport, 50) as opened:
        for client in opened:
            client.head("/v2/models/same/infer", 100, whole=False)
        wait_until(lambda: gauge(server, "mxrt_connections") >= 50)
        yield


@contextlib.contextmanager
def in_body(served: Served, server: Any, transport: str) -> Iterator[None]:
    with clients(served, transport, 32) as opened:
        for client in opened:
            path, body = asked(client, "same", 200_000)
            client.head(path, len(body))
            content = body[: len(body) // 2]
            client.body(content, last=False) if hasattr(client, "extra") else client.body(content)
        wait_until(lambda: gauge(server, "mxrt_queue_bytes") > 32 * 100_000)
        yield


@contextlib.contextmanager
def gone_while_decoding(served: Served, server: Any, transport: str) -> Iterator[None]:
    for _ in range(4):
        with clients(served, transport, 8) as opened:
            for client in opened:
                ask(client, "same", 200_000)
    yield


@contextlib.contextmanager
def in_hook(served: Served, server: Any, transport: str) -> Iterator[None]:
    """The clients have gone. Their hooks continue to run and are charged."""
    called, gate = served.folder / "hooked", served.folder / "hooks-open"
    try:
        with clients(served, transport, 12) as opened:
            for client in opened:
                client.head("/models/hooked/infer", 100_000)
                client.body(bytes(100_000))
            wait_until(lambda: gauge(server, "mxrt_queue_requests") == 12)
            wait_until(called.exists)
        # As many as run.
        wait_until(lambda: 0 < gauge(server, "mxrt_queue_requests") == len(called.read_text()) < 12)
        assert gauge(server, "mxrt_queue_bytes") >= len(called.read_text()) * 100_000
        yield
    finally:
        gate.touch()
        wait_until(lambda: gauge(server, "mxrt_queue_requests") == 0)
        gate.unlink()
        called.unlink()


@contextlib.contextmanager
def in_queue(served: Served, server: Any, transport: str) -> Iterator[None]:
    with clients(served, transport, 9) as opened:
        for client in opened:
            ask(client, "gate", 2000)
        served.entered()
        wait_until(lambda: gauge(server, "mxrt_waiting_calls") == 8)
        yield
        for client in opened:
            client.close()
        wait_until(lambda: gauge(server, "mxrt_queue_requests") == 1)
    served.pass_through(1)


@contextlib.contextmanager
def in_compute(served: Served, server: Any, transport: str) -> Iterator[None]:
    """The client has gone; its call computes, and is charged."""
    with clients(served, transport, 1) as (client,):
        ask(client, "gate", 2000)
        served.entered()
    wait_until(lambda: gauge(server, "mxrt_connections") == 1)
    assert held(server)["mxrt_queue_requests"] == 1
    assert held(server)["mxrt_queue_bytes"] >= 8000
    yield
    served.pass_through(1)


@contextlib.contextmanager
def in_answer(served: Served, server: Any, transport: str) -> Iterator[None]:
    """Nobody reads the answers; there is room for some of them."""
    counted = 'mxrt_requests_total{model="wide",version="1",outcome="%s"}'

    def ended() -> float:
        return sum(gauge(server, counted % outcome) for outcome in ("success", "rejected"))

    memory, before = served.memory(), ended()
    with clients(served, transport, 20) as opened:
        for client in opened:
            ask(client, "wide", WIDE_COLUMNS)
        wait_until(lambda: ended() == before + 20)
        wait_until(lambda: held(server)["mxrt_queue_bytes"] == 0)
        assert WIDE_BYTES <= gauge(server, "mxrt_answer_bytes") <= 100 << 20
        assert served.memory() - memory < 400 << 20
        yield


@contextlib.contextmanager
def sent_unread(served: Served, transport: str, path: str, bodies: list[bytes]) -> Iterator[None]:
    """Requests whose answers nobody reads."""
    with clients(served, transport, len(bodies)) as opened:
        for client, body in zip(opened, bodies, strict=True):
            client.head(path, len(body))
            client.body(body)
        yield


def of_many_names(served: Served, server: Any, transport: str) -> Any:
    inputs = [{"name": f"x{number}", "shape": [1], "datatype": "FP32", "data": [0]} for number in range(15_000)]
    return sent_unread(served, transport, "/v2/models/same/infer", [json.dumps({"inputs": inputs}).encode()] * 8)


def of_many_fields(served: Served, server: Any, transport: str) -> Any:
    content = message("inference.ModelInferRequest", model_name="same", inputs=[{}] * 500_000).SerializeToString()
    return sent_unread(served, transport, "", [b"\x00" + len(content).to_bytes(4, "big") + content] * 8)


def of_many_pixels(served: Served, server: Any, transport: str) -> Any:
    import mxrt

    image = mxrt._mxrt.encode_image((1, 60_000, 3), bytes(180_000), "png", 9)
    return sent_unread(served, transport, "/models/pictures/infer", [image] * 8)


def of_no_model(served: Served, server: Any, transport: str) -> Any:
    return sent_unread(served, transport, "/v2/models/none/infer", [bytes(200_000)] * 8)


@contextlib.contextmanager
def of_short_encoded_bodies(served: Served, server: Any, transport: str) -> Iterator[None]:
    """Bodies of some kB that decode to 16 MB, four times as much as a body may have."""
    body = gzip.compress(bytes(16 << 20))
    with clients(served, transport, 8) as opened:
        for client in opened:
            is_grpc = isinstance(client, Grpc)
            sent = b"\x01" + len(body).to_bytes(4, "big") + body if is_grpc else body
            client.head("/v2/models/same/infer", len(sent), encoding="gzip")
            client.body(sent)
        yield


@contextlib.contextmanager
def of_empty_members(served: Served, server: Any, transport: str) -> Iterator[None]:
    """Bodies of many gzip members, each of which decodes to nothing."""
    body = gzip.compress(b"") * 40_000
    with clients(served, transport, 4) as opened:
        for client in opened:
            is_grpc = isinstance(client, Grpc)
            sent = b"\x01" + len(body).to_bytes(4, "big") + body if is_grpc else body
            client.head("/v2/models/same/infer", len(sent), encoding="gzip")
            client.body(sent)
        yield


@contextlib.contextmanager
def of_announced_data(served: Served, server: Any, transport: str) -> Iterator[None]:
    """Requests that announce 4 MB of binary data each, and send 30 kB."""
    size, sent = 4_000_000, 30_000
    before, resident = gauge(server, "mxrt_memory_bytes"), served.memory()
    with clients(served, transport, 40) as opened:
        for number, client in enumerate(opened):
            model, tensor = (
                ("same", {"name": "x", "shape": [1, size // 4], "datatype": "FP32"}),
                ("strings", {"name": "text", "shape": [1], "datatype": "BYTES"}),
            )[number % 2]
            body = json.dumps({"inputs": [{**tensor, "parameters": {"binary_data_size": size}}]}).encode()
            client.head(f"/v2/models/{model}/infer", len(body) + size, json=len(body))
            content = body + bytes(sent)
            client.body(content, last=False) if isinstance(client, Http2) else client.body(content)
        wait_until(lambda: gauge(server, "mxrt_queue_bytes") >= 40 * sent)
        assert gauge(server, "mxrt_memory_bytes") < before + (8 << 20)
        assert served.memory() < resident + (48 << 20)
        yield


@contextlib.contextmanager
def of_many_heads(served: Served, server: Any, transport: str) -> Iterator[None]:
    """Open requests, each with a header that the table of HPACK repeats 1,800 times."""
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/v2/models/same/infer"), (b":authority", b"x")]
    block = b"".join(field(*pair) for pair in fields) + b"\x40\x01a\x00" + b"\xbe" * 1800
    with clients(served, transport, 4) as opened:
        for client in opened:
            for number in range(1, 400, 2):
                client.stream.sendall(frame(1, 4, number, block))
        # Those that were refused hold nothing, while their bodies are still expected.
        wait_until(lambda: gauge(server, "mxrt_head_bytes") < 1 << 20)
        yield


@contextlib.contextmanager
def of_open_requests(served: Served, server: Any, transport: str) -> Iterator[None]:
    with clients(served, transport, 4) as opened:
        for client in opened:
            fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/v2/models/same/infer")]
            block = b"".join(field(*pair) for pair in [*fields, (b":authority", b"x")])
            for number in range(1, 400, 2):
                client.stream.sendall(frame(1, 4, number, block))
        wait_until(lambda: gauge(server, "mxrt_head_bytes") > 800 * 10_000)
        yield
    wait_until(lambda: gauge(server, "mxrt_head_bytes") < 100_000)


class Scenario(NamedTuple):
    """How a server is held, and over which transports."""

    hold: Callable[[Served, Any, str], contextlib.AbstractContextManager[None]]
    transports: tuple[str, ...] = tuple(TRANSPORTS)


GRPC = tuple(name for name in TRANSPORTS if name.startswith("gRPC"))
HTTP = tuple(name for name in TRANSPORTS if name not in GRPC)
HTTP2 = tuple(name for name in TRANSPORTS if name.startswith("HTTP/2"))
#: The phases, and requests that ask for much. Another scenario is a row.
SCENARIOS = {
    "connect": Scenario(connected),
    "head": Scenario(in_head),
    "body": Scenario(in_body),
    "decode": Scenario(gone_while_decoding),
    "hook": Scenario(in_hook, HTTP),
    "queue": Scenario(in_queue),
    "compute": Scenario(in_compute),
    "answer": Scenario(in_answer),
    "many names": Scenario(of_many_names, HTTP),
    "many fields": Scenario(of_many_fields, GRPC),
    "many pixels": Scenario(of_many_pixels, HTTP),
    "no model": Scenario(of_no_model),
    "short encoded bodies": Scenario(of_short_encoded_bodies),
    "empty members": Scenario(of_empty_members),
    "announced data": Scenario(of_announced_data, HTTP),
    "many heads": Scenario(of_many_heads, HTTP2),
    "open requests": Scenario(of_open_requests, HTTP2),
}


@pytest.mark.parametrize(
    ("phase", "transport"),
    [(phase, transport) for phase, scenario in SCENARIOS.items() for transport in scenario.transports],
)
def test_another_client_is_served_and_nothing_is_left(served, phase: str, transport: str) -> None:
    server = server_of(served, transport)
    # What a first request costs once is there.
    with clients(served, transport, 1) as (client,):
        ask(client, "same", 200_000)
        client.stream.recv(1)
    assert post(server, digit())[0] == 200
    at_rest(served, server, served.memory() + (64 << 20))
    before = served.memory()
    with SCENARIOS[phase].hold(served, server, transport):
        assert post(server, digit())[0] == 200
    at_rest(served, server, before)


# ---- what is refused before it costs anything ------------------------------------------------


def test_a_list_of_json_is_read_no_further_than_the_model_has_inputs(served) -> None:
    inputs = [{"name": f"x{number}", "shape": [1], "datatype": "FP32", "data": [0]} for number in range(20_000)]
    outputs = [{"name": f"y{number}"} for number in range(20_000)]
    for body, words in (
        ({"inputs": inputs}, "more than 2 inputs; the model has 1"),
        ({"inputs": inputs[:1], "outputs": outputs}, "more than 2 outputs; the model has 1"),
    ):
        status, text = post(served, json.dumps(body), model="same")
        assert (status, words in text) == (400, True), text[:200]


def test_a_message_of_grpc_is_read_in_place(served) -> None:
    with channel(served) as made:
        empty = [{}] * 300_000
        with refused("INVALID_ARGUMENT", "more than 65536 fields"):
            ask_grpc(made, "ModelInfer", model_name="same", inputs=empty)
        with refused("INVALID_ARGUMENT", "more than 2 inputs; the model has 1"):
            ask_grpc(made, "ModelInfer", model_name="same", inputs=[{"name": "x", "datatype": "FP32"}] * 5)
        axes = [{"name": "x", "datatype": "FP32", "shape": [1] * 500_000}]
        with refused("INVALID_ARGUMENT", "more than 32 axes"):
            ask_grpc(made, "ModelInfer", model_name="same", inputs=axes)
        short = [{"name": "x", "datatype": "FP32", "shape": [1 << 20, 1 << 20], "contents": {"fp32_contents": [1]}}]
        with refused("INVALID_ARGUMENT", "'fp32_contents' has 1 elements"):
            ask_grpc(made, "ModelInfer", model_name="same", inputs=short)


def test_a_message_beside_inference_is_small(served) -> None:
    with channel(served) as made, refused("RESOURCE_EXHAUSTED", "65536 bytes"):
        ask_grpc(made, "ModelMetadata", name="x" * 100_000)
    with contextlib.closing(connect(served)) as connection:
        response, data = exchange(connection, "/v2/repository/index", b" " * 100_000)
        assert (response.status, b"65536 bytes" in data) == (413, True), data


def test_an_archive_of_many_entries_is_refused_unread(served) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(5000):
            archive.writestr(f"{number}", b"")
    few = io.BytesIO()
    np.savez(few, x=np.zeros((1, 4), "float32"), y=np.zeros(1), z=np.zeros(1))
    for content, words in ((file.getvalue(), b"more than 1000 arrays"), (few.getvalue(), b"3 arrays; 1 are wanted")):
        with contextlib.closing(connect(served)) as connection:
            response, data = exchange(connection, "/models/same/infer", content)
            assert (response.status, words in data) == (400, True), data


def test_the_pixels_of_an_image_are_bounded(mx, tmp_path) -> None:
    model = mx.serve.Model(symbol_in(mx.sym.identity(mx.sym.var("x")), tmp_path), shapes={"x": [-1, 3, 8, 8]})
    model.settings["preprocess"] = {"size": [8, 8], "resize": 256}
    narrow = mx._mxrt.encode_image((1, 60_000, 3), bytes(180_000), "png", 9)
    square = mx._mxrt.encode_image((40, 40, 3), bytes(4800), "png", 9)
    for image, most, words in (
        (narrow, 64 << 20, b"resized it would have 256 x 15360000 pixels"),
        (square, 1000, b"the image has 40 x 40 pixels; this server takes at most 1000 (max_pixels)"),
        (square, 64 << 20, b""),
    ):
        with (
            mx.serve.Server({"same": model}, port=0, max_pixels=most) as server,
            contextlib.closing(connect(server)) as connection,
        ):
            response, data = exchange(connection, "/models/same/infer", image)
            assert (response.status, words in data) == (400 if words else 200, True), data
            # A client may have its answer before the server has put the request away.
            wait_until(lambda: set(held(server).values()) == {0.0})


# ---- a refusal arrives -------------------------------------------------------------------------


def test_a_refusal_arrives_while_the_client_still_sends(served, tmp_path) -> None:
    path, size = "/v2/models/same/infer", 24 << 20
    for server in (served, served.secret):
        for _ in range(5):
            with contextlib.closing(connect(server)) as connection:
                connection.request("POST", path, bytes(size))
                response = connection.getresponse()
                assert (response.status, b"larger than" in response.read()) == (413, True)


@pytest.mark.skipif(not os.path.exists("/usr/bin/curl"), reason="there is no curl")
def test_a_refusal_arrives_over_http2(served, tmp_path) -> None:
    import subprocess

    (tmp_path / "body").write_bytes(bytes(24 << 20))
    trust = ["--cacert", str(KEYS / "first.pem"), "--http2", served.tls]
    for _ in range(5):
        for arguments in (["--http2-prior-knowledge", served.url], trust):
            *options, url = arguments
            command = ["curl", "-sS", *options, "--data-binary", f"@{tmp_path / 'body'}", f"{url}/v2/models/same/infer"]
            done = subprocess.run([*command, "-w", "%{http_code}"], capture_output=True, timeout=600, check=False)
            assert (done.returncode, done.stdout[-3:]) == (0, b"413"), done
    with channel(served) as made, refused("RESOURCE_EXHAUSTED", "larger than"):
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, 6 << 20]}
        ask_grpc(made, "ModelInfer", model_name="same", inputs=[tensor], raw_input_contents=[bytes(24 << 20)])
