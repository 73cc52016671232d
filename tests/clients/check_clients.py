"""`mxrt serve` against clients that are not ours, in an environment of their own
(`make test-serve-clients`).
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import jsonschema
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
import yaml
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from tritonclient.utils import InferenceServerException

sys.path.insert(0, str(Path(__file__).parent.parent))
import mxrt
from serving import SERVED, called, golden, meta, model, same
from support import MODELS

PROTO = Path(__file__).parents[2] / "crates/serve/proto"


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with mxrt.serve.Server({name: model(mxrt, name) for name in SERVED}, port=0) as running:
        yield running


def inputs(kind: Any, name: str, batch: int) -> list[Any]:
    made = []
    for tensor, array in zip(meta(name)["inputs"], golden(name, batch), strict=True):
        one = kind.InferInput(tensor["name"], array.shape, tritonclient.utils.np_to_triton_dtype(array.dtype))
        one.set_data_from_numpy(array)
        made.append(one)
    return made


def arrays(answer: Any, name: str) -> list[np.ndarray]:
    return [answer.as_numpy(tensor["name"]) for tensor in meta(name)["outputs"]]


def place(server: Any, kind: Any) -> str:
    return server.grpc if "grpc" in kind.__name__ else server.url.removeprefix("http://")


@pytest.mark.parametrize("kind", [tritonclient.http, tritonclient.grpc], ids=["http", "grpc"])
def test_answers_are_the_bits_of_calls(server: Any, kind: Any) -> None:
    client = kind.InferenceServerClient(place(server, kind))
    assert client.is_server_live() and client.is_server_ready()
    for name in SERVED:
        assert client.is_model_ready(name)
        for batch in (1, 3):
            outputs = [kind.InferRequestedOutput(tensor["name"]) for tensor in meta(name)["outputs"]]
            answer = client.infer(name, inputs(kind, name, batch), outputs=outputs, request_id="7", priority=2)
            assert same(arrays(answer, name), called(mxrt, name, batch)), (name, batch)
    with pytest.raises(InferenceServerException, match="no model 'none'"):
        client.infer("none", inputs(kind, "digits_cnn", 1))
    with pytest.raises(InferenceServerException, match=r"wanted \[-1, 1, 8, 8\]"):
        wrong = kind.InferInput("data", [1, 64], "FP32")
        wrong.set_data_from_numpy(np.zeros((1, 64), "float32"))
        client.infer("digits_cnn", [wrong])
    client.close()


@pytest.mark.parametrize("kind", [tritonclient.http.aio, tritonclient.grpc.aio], ids=["http", "grpc"])
def test_clients_of_asyncio_get_the_same(server: Any, kind: Any) -> None:
    wanted = called(mxrt, "digits_cnn", 3)

    async def ask() -> None:
        client = kind.InferenceServerClient(place(server, kind))
        answers = await asyncio.gather(*[client.infer("digits_cnn", inputs(kind, "digits_cnn", 3)) for _ in range(200)])
        assert all(same(arrays(answer, "digits_cnn"), wanted) for answer in answers)
        await client.close()

    asyncio.run(ask())


def test_metadata_statistics_and_index_are_read(server: Any) -> None:
    http = tritonclient.http.InferenceServerClient(place(server, tritonclient.http))
    client = tritonclient.grpc.InferenceServerClient(server.grpc)
    assert client.get_server_metadata(as_json=True) == http.get_server_metadata()
    found = client.get_model_metadata("wide_deep", as_json=True)
    wanted = http.get_model_metadata("wide_deep")
    assert [tensor["name"] for tensor in found["inputs"]] == [tensor["name"] for tensor in wanted["inputs"]]
    assert {one.name for one in client.get_model_repository_index().models} >= set(SERVED)
    stats = client.get_inference_statistics("digits_cnn").model_stats[0]
    assert stats.inference_count == int(
        http.get_inference_statistics("digits_cnn")["model_stats"][0]["inference_count"]
    )
    config = client.get_model_config("digits_cnn", as_json=True)["config"]
    assert (
        config["input"][0]["data_type"] == http.get_model_config("digits_cnn")["input"][0]["data_type"] == "TYPE_FP32"
    )


def test_bodies_and_messages_may_be_compressed(server: Any) -> None:
    client = tritonclient.http.InferenceServerClient(server.url.removeprefix("http://"))
    packed = {"request_compression_algorithm": "gzip", "response_compression_algorithm": "deflate"}
    plain = client.infer("digits_cnn", inputs(tritonclient.http, "digits_cnn", 3))
    name = plain.get_response()["outputs"][0]["name"]
    found = client.infer("digits_cnn", inputs(tritonclient.http, "digits_cnn", 3), **packed)
    assert found.as_numpy(name).tobytes() == plain.as_numpy(name).tobytes()
    client = tritonclient.grpc.InferenceServerClient(server.grpc)
    found = client.infer("digits_cnn", inputs(tritonclient.grpc, "digits_cnn", 3), compression_algorithm="gzip")
    assert found.as_numpy(name).tobytes() == plain.as_numpy(name).tobytes()


@pytest.mark.parametrize("kind", [tritonclient.http, tritonclient.grpc], ids=["http", "grpc"])
def test_models_are_loaded_and_unloaded(kind: Any, tmp_path: Path) -> None:
    version = tmp_path / "digits/1"
    shutil.copytree(MODELS / "digits_cnn", version)
    (version / "mxrt.toml").write_text("shapes = { data = [-1, 1, 8, 8] }\n")
    with mxrt.serve.Server(repository=tmp_path, port=0, control="explicit") as server:
        client = kind.InferenceServerClient(place(server, kind))
        assert client.is_model_ready("digits")
        client.unload_model("digits")
        assert not client.is_model_ready("digits")
        with pytest.raises(InferenceServerException, match="it was unloaded"):
            client.infer("digits", inputs(kind, "digits_cnn", 1))
        shutil.copytree(version, tmp_path / "digits/2")
        client.load_model("digits")
        answer = client.infer("digits", inputs(kind, "digits_cnn", 3))
        assert same(arrays(answer, "digits_cnn"), called(mxrt, "digits_cnn", 3))
        index = client.get_model_repository_index()
        entries = index if isinstance(index, list) else [{"version": m.version, "state": m.state} for m in index.models]
        assert {entry["version"]: entry["state"] for entry in entries} == {"1": "UNAVAILABLE", "2": "READY"}
        with pytest.raises(InferenceServerException, match="there is no model 'none'"):
            client.load_model("none")


def test_health_and_reflection_of_grpcio(server: Any) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        assert stub.Check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.SERVING
        database = ProtoReflectionDescriptorDatabase(channel)
        assert "inference.GRPCInferenceService" in database.get_services()
        service = DescriptorPool(database).FindServiceByName("inference.GRPCInferenceService")
        assert service.FindMethodByName("ModelInfer").input_type.fields_by_name["raw_input_contents"].number == 7


def test_answers_are_as_the_openapi_file_says(server: Any) -> None:
    schemas = yaml.safe_load((PROTO / "open_inference_rest.yaml").read_text())["components"]["schemas"]

    def check(name: str, value: Any) -> None:
        root = json.loads(json.dumps(schemas).replace("#/components/schemas/", "#/$defs/"))
        jsonschema.validate(value, {"$ref": f"#/$defs/{name}", "$defs": root})

    def fetch(path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(server.url + path, data), timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    check("metadata_server_response", fetch("/v2/"))
    for name in SERVED:
        check("metadata_model_response", fetch(f"/v2/models/{name}/versions/1"))
    tensor = {"name": "data", "shape": [1, 1, 8, 8], "datatype": "FP32", "data": [0.5] * 64}
    asked = {"id": "42", "inputs": [tensor]}
    check("inference_request", asked)
    check("inference_response", fetch("/v2/models/digits_cnn/versions/1/infer", asked))
    check("inference_error_response", fetch("/v2/models/digits_cnn/versions/1/infer", {"inputs": []}))
    check("metadata_model_error_response", fetch("/v2/models/none/versions/1"))
    with pytest.raises(jsonschema.ValidationError):
        check("inference_response", {"model_name": 1})
