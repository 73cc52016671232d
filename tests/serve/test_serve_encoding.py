"""`mxrt serve`: bodies compressed by gzip and deflate, and the configuration that Triton's clients
ask for.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib
from collections.abc import Callable

import grpc
import numpy as np
import pytest

from serving import (
    JSON_BYTES,
    SERVED,
    answer,
    called,
    connect,
    digit,
    exchange,
    gauge,
    golden,
    meta,
    post,
    request,
    same,
)
from serving_grpc import arrays_of, ask, channel, infer_fields, refused
from support import DIGITS

ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": lambda body: gzip.compress(body[:100]) + gzip.compress(body[100:]),
    "deflate": zlib.compress,
    "identity": lambda body: body,
}
DECODERS = {"gzip": gzip.decompress, "deflate": zlib.decompress}
PATH = "/v2/models/digits_cnn/infer"


@pytest.mark.parametrize("encoding", ENCODERS)
@pytest.mark.parametrize("binary", [False, True])
def test_an_encoded_body_is_the_body(mx, server, encoding: str, binary: bool) -> None:
    names = [tensor["name"] for tensor in meta("wide_deep")["inputs"]]
    body, headers = request(names, golden("wide_deep", 3), binary)
    headers["Content-Encoding"] = encoding.upper()
    with contextlib.closing(connect(server)) as connection:
        for _ in range(2):
            found = exchange(connection, "/v2/models/wide_deep/infer", ENCODERS[encoding](body), headers)
            assert same(answer(*found)[1], called(mx, "wide_deep", 3))


@pytest.mark.parametrize("path", ["/models/digits_cnn/infer", "/predictions/digits_cnn"])
def test_files_may_be_compressed_too(server, path: str) -> None:
    import io

    file = io.BytesIO()
    np.save(file, golden("digits_cnn", 1)[0])
    with contextlib.closing(connect(server)) as connection:
        plain = exchange(connection, path, file.getvalue())
        packed = exchange(connection, path, gzip.compress(file.getvalue()), {"Content-Encoding": "gzip"})
    assert (plain[0].status, plain[1]) == (packed[0].status, packed[1])
    assert plain[0].status == 200


@pytest.mark.parametrize(
    ("encoding", "body", "status", "words"),
    [
        ("br", b"x", 415, "the encoding 'br' is not supported: send gzip, deflate or identity"),
        ("gzip, gzip", b"x", 415, "'gzip, gzip'"),
        ("gzip", b"{}", 400, "no complete gzip"),
        ("deflate", gzip.compress(b"{}"), 400, "no complete deflate"),
        ("gzip", gzip.compress(digit().encode())[:-1], 400, "no complete gzip"),
        ("gzip", gzip.compress(digit().encode()) + b"more", 400, "no complete gzip"),
        ("gzip", b"", 400, "gzip"),
        ("gzip", gzip.compress(bytes(5 << 20)), 413, f"larger than {4 << 20} bytes"),
    ],
    ids=["another", "two", "text", "of another kind", "cut", "with more", "empty", "long"],
)
def test_a_wrong_encoding_is_refused_alone(mx, encoding: str, body: bytes, status: int, words: str) -> None:
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0, max_body=4 << 20) as server:
        found, text = post(server, body, {"Content-Encoding": encoding})
        assert (found, words in text) == (status, True), text
        assert post(server, digit())[0] == 200
        assert gauge(server, "mxrt_queue_bytes") == 0


def test_what_a_body_is_decoded_to_is_charged(mx) -> None:
    body = json.dumps({"inputs": [], "id": "x" * 300_000}).encode()
    assert len(gzip.compress(body)) < 2000
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0, queue_bytes=200_000) as server:
        status, text = post(server, gzip.compress(body), {"Content-Encoding": "gzip"})
        assert (status, "the queue is full (200000 bytes)" in text) == (429, True), text
        assert gauge(server, "mxrt_queue_bytes") == 0


@pytest.mark.parametrize(("accepted", "encoding"), [("gzip, deflate", "gzip"), ("deflate;q=0.5", "deflate")])
@pytest.mark.parametrize("binary", [False, True])
def test_answers_are_compressed_for_whom_accepts_it(mx, server, accepted: str, encoding: str, binary: bool) -> None:
    array = np.concatenate([golden("digits_cnn", 1)[0]] * 40)
    body, headers = request(["data"], [array], parameters={"binary_data_output": binary})
    with contextlib.closing(connect(server)) as connection:
        plain = exchange(connection, PATH, body, headers)
        response, data = exchange(connection, PATH, body, {**headers, "Accept-Encoding": accepted})
    assert plain[0].headers.get("Content-Encoding") is None
    assert (response.headers["Content-Encoding"], response.headers["Vary"]) == (encoding, "accept-encoding")
    assert int(response.headers["Content-Length"]) == len(data) < len(plain[1])
    decoded = DECODERS[encoding](data)
    assert response.headers.get(JSON_BYTES) == plain[0].headers.get(JSON_BYTES)
    assert same(answer(response, decoded)[1], answer(*plain)[1])


def test_short_answers_and_those_of_others_stay_as_they_are(mx, server) -> None:
    with contextlib.closing(connect(server)) as connection:
        for accepted in ("gzip", "gzip;q=0", "br", "identity"):
            response, data = exchange(connection, PATH, digit(), {"Accept-Encoding": accepted})
            assert (response.status, response.headers.get("Content-Encoding")) == (200, None)
            json.loads(data)
        response, data = exchange(connection, "/metrics", headers={"Accept-Encoding": "gzip"})
        assert response.headers["Content-Encoding"] == "gzip"
        assert b"mxrt_ready 1" in gzip.decompress(data)
        response, data = exchange(connection, "/metrics", headers={"Accept-Encoding": "gzip"}, method="HEAD")
        assert (response.status, data) == (200, b"")
    with (
        mx.serve.Server({"digits_cnn": DIGITS}, port=0, compress=False) as plain,
        contextlib.closing(connect(plain)) as connection,
    ):
        response, data = exchange(connection, "/metrics", headers={"Accept-Encoding": "gzip"})
        assert response.headers.get("Content-Encoding") is None
        assert b"mxrt_ready 1" in data


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_messages_of_grpc_may_be_compressed(mx, server, compression: grpc.Compression) -> None:
    wanted = called(mx, "wide_deep", 3)
    names = [tensor["name"] for tensor in meta("wide_deep")["inputs"]]
    arrays = dict(zip(names, golden("wide_deep", 3), strict=True))
    long = np.concatenate([golden("digits_cnn", 1)[0]] * 400)
    with channel(server) as plain, channel(server, compression=compression) as packed:
        assert same(arrays_of(ask(packed, "ModelInfer", **infer_fields("wide_deep", arrays))), wanted)
        found = [ask(used, "ModelInfer", **infer_fields("digits_cnn", {"data": long})) for used in (plain, packed)]
        assert same(arrays_of(found[0]), arrays_of(found[1]))
        assert ask(packed, "ServerLive").live


def test_a_long_message_does_not_become_short_by_its_encoding(mx) -> None:
    with (
        mx.serve.Server({"digits_cnn": DIGITS}, port=0, max_body=1 << 20) as server,
        channel(server, compression=grpc.Compression.Gzip) as calls,
    ):
        fields = infer_fields("digits_cnn", {"data": np.zeros((8192, 1, 8, 8), np.float32)})
        with refused("RESOURCE_EXHAUSTED", f"larger than {1 << 20} bytes"):
            ask(calls, "ModelInfer", **fields)
        assert gauge(server, "mxrt_queue_bytes") == 0


@pytest.mark.parametrize("name", SERVED)
def test_a_configuration_says_what_the_metadata_say(server, name: str) -> None:
    with contextlib.closing(connect(server)) as connection:
        of_model = json.loads(exchange(connection, f"/v2/models/{name}")[1])
        for path in (f"/v2/models/{name}/config", f"/v2/models/{name}/versions/1/config"):
            config = json.loads(exchange(connection, path)[1])
    assert (config["name"], config["platform"], config["backend"]) == (name, of_model["platform"], "mxrt")
    begin = int(config["max_batch_size"] > 0)
    for kind in ("input", "output"):
        wanted = [
            (tensor["name"], f"TYPE_{tensor['datatype']}", tensor["shape"][begin:]) for tensor in of_model[f"{kind}s"]
        ]
        assert [(tensor["name"], tensor["data_type"], tensor["dims"]) for tensor in config[kind]] == wanted
    with channel(server) as calls:
        found = ask(calls, "ModelConfig", name=name).config
    assert (found.name, found.platform, found.max_batch_size) == (name, config["platform"], config["max_batch_size"])
    types = found.input[0].DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number
    for kind in ("input", "output"):
        tensors = [(t.name, types[t.data_type].name, list(t.dims)) for t in getattr(found, kind)]
        assert tensors == [(t["name"], t["data_type"], t["dims"]) for t in config[kind]]


def test_a_configuration_of_no_model_is_refused(server) -> None:
    with contextlib.closing(connect(server)) as connection:
        assert exchange(connection, "/v2/models/none/config")[0].status == 404
    with channel(server) as calls, refused("NOT_FOUND", "none"):
        ask(calls, "ModelConfig", name="none")
