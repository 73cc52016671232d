"""A client of gRPC for the tests of `mxrt serve`: grpcio, and messages of the protocol's files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from serving import DATATYPES, DTYPES
from support import ROOT

SERVICE = "inference.GRPCInferenceService"
POOL = descriptor_pool.DescriptorPool()
for file in ("model_config", "grpc_service", "health", "reflection", "reflection_v1alpha"):
    content = (ROOT / f"crates/serve/src/grpc/generated/{file}.bin").read_bytes()
    POOL.Add(descriptor_pb2.FileDescriptorProto.FromString(content))


def message(name: str, /, **fields: Any) -> Any:
    """A message of the protocol."""
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))(**fields)


@contextlib.contextmanager
def channel(server: Any, **more: Any) -> Iterator[grpc.Channel]:
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.enable_retries", 0),
    ]
    if server.grpc.startswith("unix:"):
        # Otherwise it is the path with escapes, which is no authority in HTTP/2.
        options.append(("grpc.default_authority", "localhost"))
    with grpc.insecure_channel(server.grpc, options=options, **more) as made:
        yield made


def method(channel: grpc.Channel, path: str) -> Any:
    """A method by its path; messages without it are of the service of inference."""
    service, _, name = path.rpartition("/")
    service = service or SERVICE
    described = POOL.FindServiceByName(service).FindMethodByName(name)
    answer = message_factory.GetMessageClass(described.output_type)
    kind = {
        (False, False): channel.unary_unary,
        (False, True): channel.unary_stream,
        (True, True): channel.stream_stream,
    }[described.client_streaming, described.server_streaming]
    return kind(f"/{service}/{name}", lambda asked: asked.SerializeToString(), answer.FromString)


def ask(channel: grpc.Channel, name: str, /, timeout: float = 60, metadata: Any = None, **fields: Any) -> Any:
    """Calls a method of the service of inference."""
    return method(channel, name)(message(f"inference.{name}Request", **fields), timeout=timeout, metadata=metadata)


def infer_fields(model: str, arrays: dict[str, np.ndarray], **more: Any) -> dict[str, Any]:
    inputs = [
        {"name": name, "datatype": DATATYPES[array.dtype.name], "shape": list(array.shape)}
        for name, array in arrays.items()
    ]
    raw = [np.ascontiguousarray(array).tobytes() for array in arrays.values()]
    return {"model_name": model, "inputs": inputs, "raw_input_contents": raw, **more}


def arrays_of(answer: Any) -> list[np.ndarray]:
    assert len(answer.outputs) == len(answer.raw_output_contents)
    return [
        np.frombuffer(raw, DTYPES[output.datatype]).reshape(output.shape)
        for output, raw in zip(answer.outputs, answer.raw_output_contents, strict=True)
    ]


@contextlib.contextmanager
def refused(code: str, *words: str) -> Iterator[None]:
    """A call within ends with this status, and its text has these words."""
    try:
        yield
    except grpc.RpcError as error:
        assert error.code().name == code, error
        for word in words:
            assert word in error.details(), error.details()
        return
    raise AssertionError(f"the call ended without {code}")
