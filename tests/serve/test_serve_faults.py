"""`mxrt serve`: wrong requests and wrong connections, after which the next good one is answered."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from typing import Any

import numpy as np
import pytest

from serving import (
    DIGIT,
    JSON_BYTES,
    answer,
    called,
    connect,
    digit,
    exchange,
    gauge,
    golden,
    head,
    in_the_end,
    post,
    raw,
    read_all,
    request,
    same,
    sized,
    wait_until,
)
from support import DIGITS, in_threads

WRONG = {
    "no JSON": ("data", "JSON"),
    "another JSON": ("[]", "JSON"),
    "no inputs": ("{}", "inputs"),
    "missing input": ('{"inputs": []}', "'data' is missing"),
    "wrong name": (digit(name="date"), "no input 'date'; its inputs are 'data'"),
    "wrong type": (digit(datatype="INT32"), "got INT32, wanted FP32"),
    "unknown type": (digit(datatype="FP33"), "unknown datatype 'FP33'"),
    "strings": (digit(datatype="BYTES"), "hooks declare INPUTS of the type BYTES"),
    "a string": (digit(data=["1"] * 64), "expected numbers of the type FP32"),
    "wrong shape": (digit(shape=[1, 1, 4, 16]), "got the shape [1, 1, 4, 16], wanted [-1, 1, 8, 8]"),
    "wrong rank": (digit(shape=[64]), "got the shape [64]"),
    "negative extent": (digit(shape=[-1, 1, 8, 8]), "negative"),
    "no rows": (digit(shape=[0, 1, 8, 8]), "more than 0 elements"),
    "product overflows": (digit(shape=[1 << 32, 1 << 32, 8, 8]), "larger than the address space"),
    "beyond memory": (digit(shape=[1 << 40, 1, 8, 8]), "too short"),
    "no shape": (digit(shape=None), "shape"),
    "no data": (digit(data=None), "neither 'data' nor 'binary_data_size'"),
    "too few numbers": (digit(data=[0] * 63), "63 elements; the shape says 64"),
    "too many numbers": (digit(data=[0] * 65), "more than 64 elements"),
    "NaN": (digit(data=[float("nan")] * 64), "JSON"),
    "huge number": (digit().replace("0, 0, 0]", "0, 0, 1e39]"), "element 63 is 1e39"),
    "null": (digit(data=[None] * 64), "element 0 is null"),
    "deep lists": (digit().replace("[0, ", "[" * 100_001 + "0" + "]" * 100_000 + ", "), "shape"),
    "deep JSON": ('{"a":' * 100_000, "JSON"),
    "deep parameters": ('{"parameters": {"x": ' + "[" * 100_000 + "]" * 100_000 + '}, "inputs": []}', ""),
    "input twice": (json.dumps({"inputs": [{**DIGIT, "data": [0] * 64}] * 2}), "'data' is given twice"),
    "surplus input": (
        json.dumps({"inputs": [{**DIGIT, "data": [0] * 64}, {**DIGIT, "name": "more", "data": [0] * 64}]}),
        "no input 'more'",
    ),
    "key twice": (digit().replace('"name"', '"name": "data", "name"', 1), "duplicate field"),
    "unknown output": (digit()[:-1] + ', "outputs": [{"name": "y"}]}', "no output 'y'"),
    "output twice": (
        digit()[:-1] + ', "outputs": [{"name": "digitsnet_dense0_fwd_output"}, {"name": "digitsnet_dense0_fwd"}]}',
        "wanted twice",
    ),
    "classes": (digit()[:-1] + ', "outputs": [{"name": "y", "parameters": {"classification": 3}}]}', "classification"),
    "priority": (digit()[:-1] + ', "parameters": {"priority": 10}}', "from 1, served first, to 9"),
    "timeout": (digit()[:-1] + ', "parameters": {"timeout": -1}}', "JSON"),
    "size without the header": (sized(256), JSON_BYTES),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_request_is_answered_with_what_is_wrong(server, good, what: str) -> None:
    body, word = WRONG[what]
    status, text = post(server, body)
    assert status == 400, text
    assert word in json.loads(text)["error"], text
    good()


@pytest.mark.parametrize("size", [-1, 0, 255, 257, 1 << 63, 1 << 64, 1e300, "256", None, True])
def test_a_binary_size_that_lies_is_refused(server, good, size: Any) -> None:
    text = sized(size).encode()
    status, said = post(server, text + bytes(256), {JSON_BYTES: str(len(text))})
    assert status == 400, said
    good()


def test_sizes_beyond_the_body_are_refused(server, good) -> None:
    text = sized(256).encode()
    for tail in (b"", bytes(255), bytes(257), bytes(1000)):
        status, said = post(server, text + tail, {JSON_BYTES: str(len(text))})
        assert (status, "256 of binary data are named" in said) == (400, True), said
    text = sized(1 << 19, [2048, 1, 8, 8]).encode()
    status, said = post(server, text, {JSON_BYTES: str(len(text))})
    assert status == 400, said
    # Nothing is taken for what no body may have, also where its head does not say how long it is.
    text = sized(1 << 40, [1 << 32, 1, 8, 8]).encode()
    with contextlib.closing(connect(server)) as connection:
        path, headers = "/v2/models/digits_cnn/infer", {JSON_BYTES: str(len(text))}
        connection.request("POST", path, iter([text]), headers, encode_chunked=True)
        assert connection.getresponse().status == 413
    for length in ("-1", "x", "1e3", str(1 << 64), "100000", "", "+5"):
        status, said = post(server, sized(256).encode() + bytes(256), {JSON_BYTES: length})
        assert (status, JSON_BYTES in said) == (400, True), (length, said)
    for length in ("0", "1", "20"):
        assert post(server, sized(256).encode() + bytes(256), {JSON_BYTES: length})[0] == 400
    good()


def test_a_request_cut_anywhere_is_refused(server, good) -> None:
    text = json.dumps({"id": "1", "inputs": [{**DIGIT, "data": [[[[0.5] * 8] * 8]]}]})
    assert post(server, text)[0] == 200
    with contextlib.closing(connect(server)) as connection:
        for end in range(len(text)):
            response, data = exchange(connection, "/v2/models/digits_cnn/infer", text[:end])
            assert response.status == 400, (end, data)
    good()


def test_truth_values_are_zero_or_one(mx, tmp_path) -> None:
    x = mx.sym.var("x", dtype="bool")
    y = mx.sym.cast(x, dtype="float32")
    y.save(str(tmp_path / "cast-symbol.json"))
    model = mx.serve.Model(tmp_path, shapes={"x": [-1]}, dtypes={"x": "bool"})
    with mx.serve.Server({"cast": model}, port=0) as running:
        given = np.array([True, False, True])
        for binary in (True, False):
            body, headers = request(["x"], [given], binary)
            with contextlib.closing(connect(running)) as connection:
                found = answer(*exchange(connection, "/v2/models/cast/infer", body, headers))[1]
            assert same(found, [given.astype("float32")])
        body, headers = request(["x"], [given])
        status, text = post(running, body[:-1] + b"\x02", headers, "cast")
        assert (status, "neither 0 nor 1" in text) == (400, True), text


def test_a_body_over_the_limit_is_refused_before_it_is_read(server, good) -> None:
    with raw(server) as connection:
        connection.sendall(head(1 << 40))
        assert read_all(connection).startswith(b"HTTP/1.1 413 ")
    with raw(server) as connection:
        connection.sendall(head(None, "Transfer-Encoding: chunked"))
        said = b""
        with contextlib.suppress(ConnectionError):
            for _ in range(40):
                connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
        said = read_all(connection)
        assert said.startswith(b"HTTP/1.1 413 ") or said == b"", said
    good()


def test_a_body_in_chunks_is_a_body(mx, server) -> None:
    body, headers = request(["data"], golden("digits_cnn", 3), parameters={"binary_data_output": True})
    with contextlib.closing(connect(server)) as connection:
        parts = iter([body[i : i + 7] for i in range(0, len(body), 7)])
        connection.request("POST", "/v2/models/digits_cnn/infer", parts, headers, encode_chunked=True)
        response = connection.getresponse()
        found = answer(response, response.read())[1]
    assert same(found, called(mx, "digits_cnn", 3))


@pytest.mark.parametrize(("chunk", "count", "refused"), [(1, 65_536, False), (1, 65_537, True), (1024, 70_000, False)])
def test_a_body_of_too_many_short_chunks_is_refused(mx, good, chunk: int, count: int, refused: bool) -> None:
    piece = f"{chunk:x}\r\n".encode() + b" " * chunk + b"\r\n"
    models = {"digits_cnn": mx.serve.Model(DIGITS / "digits_cnn", shapes={"data": [-1, 1, 8, 8]})}
    with mx.serve.Server(models, port=0, grpc_port="off", max_body="100MB") as server, raw(server) as connection:
        connection.sendall(head(None, "Transfer-Encoding: chunked", "Connection: close"))
        connection.sendall(piece * count + b"0\r\n\r\n")
        said = read_all(connection)
    words = b"Chunked request body exceeds maximum of 65536 non-empty chunks"
    assert (said.startswith(b"HTTP/1.1 400 "), words in said) == (True, refused), said
    good()


def test_requests_sent_one_behind_the_other_are_answered_in_order(server) -> None:
    bodies = [digit()[:-1] + f', "id": "{number}"}}' for number in range(5)]
    with raw(server) as connection:
        connection.sendall(b"".join(head(len(body)) + body.encode() for body in bodies[:-1]))
        connection.sendall(head(len(bodies[-1]), "Connection: close") + bodies[-1].encode())
        said = read_all(connection).decode()
    assert re.findall(r'"id":"(\d)"', said) == list("01234")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"GET /v2 HTTP/9.9\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\n" + b"a: b\r\n" * 1000 + b"\r\n",
        b"GET /v2 HTTP/1.1\r\na: " + b"b" * 1_000_000 + b"\r\n\r\n",
        b"GET /" + b"v" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
        head(10, "Content-Length: 11") + b"0" * 11,
        head(None, "Content-Length: -1"),
        head(None, "Content-Length: 18446744073709551616"),
        head(None, "Transfer-Encoding: chunked") + b"zz\r\n",
        head(None, "Transfer-Encoding: chunked") + b"ffffffffffffffffff\r\n",
        head(len(digit())) + digit().encode() + b"bytes behind the end\r\n\r\n",
        head(1000) + b"short",
    ],
    ids=range(15),
)
def test_what_is_no_http_ends_its_connection_alone(server, good, sent: bytes) -> None:
    with raw(server) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        said = read_all(connection)
    assert not said or said.startswith((b"HTTP/1.1 4", b"HTTP/1.1 200")), said[:200]
    assert not said.startswith(b"HTTP/1.1 200") or b"bytes behind" in sent
    good()


def test_clients_that_go_away_disturb_nobody(server, good) -> None:
    body, headers = request(["data"], golden("digits_cnn", 16))
    sent = head(len(body), *[f"{name}: {value}" for name, value in headers.items()]) + body

    def leave(number: int) -> None:
        for turn in range(125):
            with raw(server) as connection:
                # A reset, not an end.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.sendall(sent[: len(sent) * (turn % 10 + 1) // 10])

    in_threads(8, leave)
    good()
    wait_until(lambda: gauge(server, "mxrt_queue_requests") == 0 and gauge(server, "mxrt_queue_bytes") == 0)


def test_slow_clients_are_sent_away(mx, good) -> None:
    limits = {"header_timeout": 1, "body_timeout": 1, "idle_timeout": 1}
    clients = (
        (b"", b""),
        (b"GET /v2 HTTP/1.1\r\n", b"HTTP/1.1 408 "),
        (head(1000) + b"{", b"HTTP/1.1 408 "),
        # An answer, and then the end.
        (b"GET /v2/health/live HTTP/1.1\r\nHost: here\r\n\r\n", b"HTTP/1.1 200 "),
    )
    with mx.serve.Server({"digits_cnn": mx.serve.Model(DIGITS)}, port=0, **limits) as running:

        def sent_away(number: int) -> None:
            sent, said = clients[number]
            with raw(running) as connection:
                connection.sendall(sent)
                found = read_all(connection)
            assert found.startswith(said) if said else found == b""

        in_threads(4, lambda number: in_the_end(lambda: sent_away(number)))
        in_the_end(lambda: good(running))
