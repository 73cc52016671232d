"""`mxrt serve`: a csr input comes as three tensors, over HTTP and gRPC.

The models are those of tests/sparse/test_sparse_models.py, whose results MXNet 1.9.1 computed.
"""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving import answer, connect, exchange, gauge, post, request
from serving_grpc import arrays_of, ask, channel, infer_fields, refused
from support import RECORDED, ROOT, in_threads, last_json, run_python

FOLDER = RECORDED / "sparse"
FEATURES, ROWS = 1000, 6
MODELS = ["machine", "sagemaker_machine", "learner", "wide_and_deep", "embedding"]


def kept(name: str) -> dict[str, np.ndarray]:
    with np.load(FOLDER / f"{name}.npz") as saved:
        return dict(saved)


def recorded(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The tensors of a request with all recorded rows, and MXNet's answer."""
    saved = kept(name)
    dense = {one: saved[one] for one in saved["names"].tolist() if one in saved}
    parts = {
        "data.values": saved["csr_values"],
        "data.indices": saved["csr_columns"].astype("int64"),
        "data.indptr": saved["csr_pointers"].astype("int64"),
    }
    return {**({} if "data" in dense else parts), **dense}, saved["output0"]


def rows_of(tensors: dict[str, np.ndarray], rows: slice) -> dict[str, np.ndarray]:
    """Some rows of a request."""
    found = {one: tensor[rows] for one, tensor in tensors.items() if "." not in one}
    if "data.indptr" in tensors:
        pointers = tensors["data.indptr"][rows.start : rows.stop + 1]
        stored = slice(pointers[0], pointers[-1])
        found["data.values"] = tensors["data.values"][stored]
        found["data.indices"] = tensors["data.indices"][stored]
        found["data.indptr"] = pointers - pointers[0]
    return found


def folder_of(name: str, to: Path) -> Path:
    folder = to / name
    folder.mkdir()
    for ending in ("-symbol.json", "-0000.params"):
        (folder / f"{name}{ending}").write_bytes((FOLDER / f"{name}{ending}").read_bytes())
    return folder


@pytest.fixture(scope="module")
def server(mx, tmp_path_factory) -> Iterator[Any]:
    to = tmp_path_factory.mktemp("sparse")
    models = {
        "machine": mx.serve.Model(folder_of("machine", to), batch=8),
        "wide_and_deep": mx.serve.Model(folder_of("wide_and_deep", to), shapes={"dense": [-1, 5]}),
        "sagemaker_machine": mx.serve.Model(folder_of("sagemaker_machine", to), batch=8),
        "learner": mx.serve.Model(folder_of("learner", to), batch=8),
        "embedding": mx.serve.Model(folder_of("embedding", to), shapes={"data": [-1]}, batch=8),
    }
    with mx.serve.Server(models, port=0, grpc_port=0) as made:
        yield made


def infer(server: Any, name: str, tensors: dict[str, np.ndarray], binary: Any = True, connection: Any = None) -> Any:
    body, headers = request(list(tensors), list(tensors.values()), binary)
    with contextlib.closing(connect(server)) if connection is None else contextlib.nullcontext(connection) as used:
        return answer(*exchange(used, f"/v2/models/{name}/infer", body, headers))[1][0]


def close(found: np.ndarray, wanted: np.ndarray) -> bool:
    return found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_the_metadata_names_three_tensors_for_a_csr_input(server) -> None:
    with contextlib.closing(connect(server)) as connection:
        about = json.loads(exchange(connection, "/v2/models/wide_and_deep")[1])
    wanted = [
        {"name": "data.values", "datatype": "FP32", "shape": [-1]},
        {"name": "data.indices", "datatype": "INT64", "shape": [-1]},
        {"name": "data.indptr", "datatype": "INT64", "shape": [-1]},
        {"name": "dense", "datatype": "FP32", "shape": [-1, 5]},
    ]
    assert about["inputs"] == wanted
    with channel(server) as calls:
        inputs = ask(calls, "ModelMetadata", name="wide_and_deep").inputs
    assert [(one.name, one.datatype, list(one.shape)) for one in inputs] == [tuple(one.values()) for one in wanted]


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_of_mxnet_in_json_as_bytes_and_over_grpc(server, name) -> None:
    tensors, wanted = recorded(name)
    for binary in (False, True, *([[True, False, *[True] * (len(tensors) - 2)]] if len(tensors) > 1 else [])):
        assert close(infer(server, name, tensors, binary), wanted), binary
    backwards = dict(reversed(tensors.items()))
    assert close(infer(server, name, backwards), wanted)
    with channel(server) as calls:
        assert close(arrays_of(ask(calls, "ModelInfer", **infer_fields(name, tensors)))[0], wanted)
        fields = infer_fields(name, tensors)
        del fields["raw_input_contents"]
        for tensor, array in zip(fields["inputs"], tensors.values(), strict=True):
            field = {"int64": "int64_contents", "float32": "fp32_contents"}[array.dtype.name]
            tensor["contents"] = {field: array.ravel().tolist()}
        assert close(arrays_of(ask(calls, "ModelInfer", **fields))[0], wanted)


def test_rows_of_many_clients_are_joined_and_wrong_ones_fail_alone(server) -> None:
    tensors, wanted = recorded("machine")

    def ask_rows(number: int) -> None:
        with contextlib.closing(connect(server)) as connection:
            for turn in range(40):
                begin = (number + turn) % ROWS
                rows = slice(begin, min(begin + 1 + turn % 3, ROWS))
                some = rows_of(tensors, rows)
                if (number + turn) % 5 == 0:
                    some["data.indptr"] = some["data.indptr"] + 1
                    body, headers = request(list(some), list(some.values()))
                    response, data = exchange(connection, "/v2/models/machine/infer", body, headers)
                    assert (response.status, b"the first row pointer is 1" in data) == (400, True), data
                else:
                    assert close(infer(server, "machine", some, connection=connection), wanted[rows]), rows

    in_threads(64, ask_rows)
    labels = 'model="machine",version="1"'
    assert gauge(server, f"mxrt_batch_rows_sum{{{labels}}}") > gauge(server, f"mxrt_batch_rows_count{{{labels}}}") > 0
    assert gauge(server, "mxrt_queue_requests") == 0
    assert gauge(server, "mxrt_queue_bytes") == 0


@pytest.mark.parametrize("name", MODELS)
def test_sixty_four_clients_get_the_rows_that_mxnet_computed(server, name) -> None:
    tensors, wanted = recorded(name)

    def ask_rows(number: int) -> None:
        with contextlib.closing(connect(server)) as connection:
            for turn in range(10):
                begin = (number + turn) % ROWS
                rows = slice(begin, min(begin + 1 + turn % 3, ROWS))
                found = infer(server, name, rows_of(tensors, rows), binary=turn % 2 == 0, connection=connection)
                assert close(found, wanted[rows]), rows

    in_threads(64, ask_rows)


def changed(**parts: Any) -> dict[str, np.ndarray]:
    """A request of two rows with these changes; none leaves a tensor out."""
    good: dict[str, Any] = {
        "values": np.array([1, 2, 3], "float32"),
        "indices": np.array([5, 7, 0], "int64"),
        "indptr": np.array([0, 2, 3], "int64"),
    }
    return {f"data.{key}": value for key, value in {**good, **parts}.items() if value is not None}


def int64(*numbers: int) -> np.ndarray:
    return np.array(numbers, "int64")


WRONG = {
    "a column past the end": (changed(indices=int64(5, FEATURES, 0)), f"csr: column {FEATURES} at position 1"),
    "a negative column": (changed(indices=int64(-1, 7, 0)), "csr: column -1"),
    "the largest column": (changed(indices=int64(5, 2**63 - 1, 0)), "csr: column 9223372036854775807"),
    "columns that fall": (changed(indices=int64(7, 5, 0)), "positions must rise"),
    "a column twice": (changed(indices=int64(5, 5, 0)), "positions must rise"),
    "fewer indices than values": (changed(indices=int64(5, 7)), "'values' has 3 elements and 'indices' 2"),
    "row pointers that fall": (changed(indptr=int64(0, 3, 2, 3)), "row pointers must not fall"),
    "a last pointer below the count": (changed(indptr=int64(0, 1, 2)), "the last row pointer is 2"),
    "a last pointer above the count": (changed(indptr=int64(0, 2, 2**62)), "the last row pointer is"),
    "a negative pointer": (changed(indptr=int64(0, -(2**63), 3)), "row pointers must not fall"),
    "no pointer": (changed(indptr=int64()), "'indptr' is empty"),
    "no values tensor": (changed(values=None), "the input 'data.values' is missing"),
    "no indices tensor": (changed(indices=None), "the input 'data.indices' is missing"),
    "no indptr tensor": (changed(indptr=None), "the input 'data.indptr' is missing"),
    "integer values": (changed(values=np.array([1, 2, 3], "int32")), "'data.values': got INT32, wanted FP32"),
    "indices of 32 bits": (
        changed(indices=np.array([5, 7, 0], "int32")),
        "'data.indices': got INT32, wanted INT64",
    ),
    "pointers that are floats": (
        changed(indptr=np.array([0, 2, 3], "float32")),
        "'data.indptr': got FP32, wanted INT64",
    ),
    "values in rows": (changed(values=np.ones((1, 3), "float32")), "got the shape [1, 3], wanted [-1]"),
    "the matrix itself": (
        {"data": np.ones((1, FEATURES), "float32")},
        "the input 'data' is a csr matrix: give 'data.values', 'data.indices', 'data.indptr'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_parts_are_refused_with_what_is_wrong(server, name) -> None:
    tensors, words = WRONG[name]
    for binary in (True, False):
        body, headers = request(list(tensors), list(tensors.values()), binary)
        status, text = post(server, body, headers, "machine")
        assert (status, words in json.loads(text)["error"]) == (400, True), text
    with channel(server) as calls, refused("INVALID_ARGUMENT", words):
        ask(calls, "ModelInfer", **infer_fields("machine", tensors))
    assert infer(server, "machine", changed()).shape == (2, 1)


def test_a_request_without_a_value_has_rows_of_zeros(server) -> None:
    tensors = changed(values=np.zeros(0, "float32"), indices=int64(), indptr=int64(0, 0, 0))
    found = infer(server, "machine", tensors)
    wanted = infer(server, "machine", rows_of(recorded("machine")[0], slice(1, 2)))
    assert found.tolist() == [*wanted.tolist()] * 2, "the second recorded row has no values"


def recordio(rows: list[tuple[list[float], list[int]]]) -> bytes:
    """Rows of values and keys, as SageMaker's algorithms take them."""

    def field(number: int, content: bytes) -> bytes:
        assert len(content) < 128
        return bytes([number << 3 | 2, len(content)]) + content

    def varint(number: int) -> bytes:
        return bytes([number & 127 | 128, number >> 7])

    body = b""
    for values, keys in rows:
        tensor = field(1, np.array(values, "<f4").tobytes()) + field(2, b"".join(varint(key) for key in keys))
        record = field(1, field(1, b"values") + field(2, field(2, tensor + field(3, varint(FEATURES)))))
        body += struct.pack("<II", 0xCED7230A, len(record)) + record + bytes(-len(record) % 4)
    return body


def test_an_invocation_takes_records_with_keys_and_dense_rows(mx, tmp_path) -> None:
    dense = np.zeros((2, FEATURES), "float32")
    dense[0, [5, 7]], dense[1, 0] = [1, 2], 3
    with mx.serve.Server({"machine": folder_of("machine", tmp_path)}, port=0, sagemaker="model") as server:
        wanted = infer(server, "machine", changed()).tolist()
        bodies = {
            "application/x-recordio-protobuf": recordio([([2, 1], [7, 5]), ([3], [0])]),
            "application/json": json.dumps(dense.tolist()),
            "text/csv": "\n".join(",".join(map(str, row)) for row in dense),
        }
        with contextlib.closing(connect(server)) as connection:
            for kind, body in bodies.items():
                response, data = exchange(connection, "/invocations", body, {"Content-Type": kind})
                assert response.status == 200, data
                np.testing.assert_allclose(json.loads(data), wanted, rtol=1e-5)
            for body, words in [
                (recordio([([1], [FEATURES])]), f"the key {FEATURES}"),
                (recordio([([1, 2], [5, 5])]), "positions must rise"),
            ]:
                kind = {"Content-Type": "application/x-recordio-protobuf"}
                response, data = exchange(connection, "/invocations", body, kind)
                assert (response.status, words in data.decode()) == (400, True), data


def test_the_columns_must_be_known_when_the_model_is_loaded(mx, tmp_path) -> None:
    data = mx.sym.var("data", stype="csr")
    mx.sym.sum(data, axis=1).save(str(tmp_path / "sums-symbol.json"))
    with pytest.raises(mx.base.MXNetError, match=r"'data' is a csr matrix; the number of its columns is not known"):
        mx.serve.Server({"sums": tmp_path}, port=0).__enter__()
    with mx.serve.Server({"sums": mx.serve.Model(tmp_path, shapes={"data": [-1, 8]})}, port=0) as server:
        assert infer(server, "sums", changed()).tolist() == [3, 3]


def test_a_million_columns_and_their_batches_need_no_dense_copy(tmp_path) -> None:
    code = f"""
    import contextlib, json, sys
    import numpy as np
    import mxrt as mx
    sys.path.insert(0, {str(ROOT / "tests")!r})
    from serving import answer, connect, exchange, request
    from support import in_threads
    columns = 1_000_000
    x, v = mx.sym.var("data", stype="csr"), mx.sym.var("v", stype="row_sparse")
    mx.sym.sum(mx.sym.square(mx.sym.dot(x, v)), axis=1).save({str(tmp_path / "m-symbol.json")!r})
    rows = np.arange(0, columns, 1000)
    v = mx.nd.sparse.row_sparse_array((np.ones((len(rows), 4), "float32"), rows), shape=(columns, 4))
    mx.nd.save({str(tmp_path / "m-0000.params")!r}, {{"arg:v": v}})
    mx.set_memory_limit(24 << 20)
    tensors = {{
        "data.values": np.array([1, 2], "float32"),
        "data.indices": np.array([1000, 5000]),
        "data.indptr": np.array([0, 2] + [2] * 15),
    }}
    found = []
    with mx.serve.Server({{"m": mx.serve.Model({str(tmp_path)!r}, batch=64)}}, port=0) as server:
        def call(number):
            with contextlib.closing(connect(server)) as connection:
                for _ in range(10):
                    body, headers = request(list(tensors), list(tensors.values()))
                    found.append(answer(*exchange(connection, "/v2/models/m/infer", body, headers))[1][0].tolist())
        in_threads(16, call)
    print(json.dumps([len(found), found[0], all(one == found[0] for one in found)]))
    """
    assert last_json(run_python(code)) == [160, [36.0] + [0.0] * 15, True]
