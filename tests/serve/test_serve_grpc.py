"""`mxrt serve` over gRPC: answers are those of calls bit for bit, and faults have their status."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import pytest

from serving import SERVED, Gate, called, golden, meta, same, wait_until
from serving_grpc import arrays_of, ask, channel, infer_fields, message, method, refused
from support import DIGITS, in_threads


@pytest.fixture(scope="module")
def calls(server) -> Iterator[grpc.Channel]:
    with channel(server) as made:
        yield made


def inputs(name: str, batch: int) -> dict[str, np.ndarray]:
    names = [tensor["name"] for tensor in meta(name)["inputs"]]
    return dict(zip(names, golden(name, batch), strict=True))


def test_sixteen_callers_get_the_bits_of_calls(mx, server) -> None:
    wanted = {(name, batch): called(mx, name, batch) for name in SERVED for batch in (1, 3)}

    def ask_all(number: int) -> None:
        with channel(server) as own:
            for turn in range(2 * len(SERVED)):
                name, batch = SERVED[(number + turn) % len(SERVED)], (1, 3)[turn % 2]
                answer = ask(own, "ModelInfer", **infer_fields(name, inputs(name, batch), id=str(number)))
                assert same(arrays_of(answer), wanted[name, batch]), (name, batch)
                assert (answer.model_name, answer.model_version, answer.id) == (name, "1", str(number))

    in_threads(16, ask_all)


def test_one_channel_carries_many_calls_at_a_time(mx, calls) -> None:
    wanted = called(mx, "digits_cnn", 3)
    infer = method(calls, "ModelInfer")
    asked = message("inference.ModelInferRequest", **infer_fields("digits_cnn", inputs("digits_cnn", 3)))
    running = [infer.future(asked, timeout=60) for _ in range(500)]
    assert all(same(arrays_of(answer.result()), wanted) for answer in running)


def test_elements_may_be_typed(mx, calls, good) -> None:
    fields = infer_fields("wide_deep", inputs("wide_deep", 3))
    del fields["raw_input_contents"]
    for tensor, array in zip(fields["inputs"], inputs("wide_deep", 3).values(), strict=True):
        field = {"int32": "int_contents", "float32": "fp32_contents"}[array.dtype.name]
        tensor["contents"] = {field: array.ravel().tolist()}
    assert same(arrays_of(ask(calls, "ModelInfer", **fields)), called(mx, "wide_deep", 3))


def test_outputs_are_chosen_by_name(mx, calls) -> None:
    wanted = called(mx, "ssd_digits", 1)
    names = [tensor["name"] for tensor in meta("ssd_digits")["outputs"]]
    chosen = [{"name": names[2]}, {"name": names[0]}]
    answer = ask(calls, "ModelInfer", **infer_fields("ssd_digits", inputs("ssd_digits", 1), outputs=chosen))
    assert [output.name for output in answer.outputs] == [names[2], names[0]]
    assert same(arrays_of(answer), [wanted[2], wanted[0]])


def test_an_output_has_the_name_that_the_request_gives_it(mx, calls) -> None:
    fields = infer_fields("digits_cnn", inputs("digits_cnn", 1), outputs=[{"name": "digitsnet_dense0_fwd"}])
    answer = ask(calls, "ModelInfer", **fields)
    assert [output.name for output in answer.outputs] == ["digitsnet_dense0_fwd"]
    assert same(arrays_of(answer), called(mx, "digits_cnn", 1))


def test_what_the_server_says_of_itself(mx, server, calls) -> None:
    assert ask(calls, "ServerLive").live and ask(calls, "ServerReady").ready
    assert ask(calls, "ModelReady", name="digits_cnn", version="1").ready
    for name, version in [("absent", ""), ("digits_cnn", "7"), ("digits_cnn", "one")]:
        assert not ask(calls, "ModelReady", name=name, version=version).ready, "as Triton answers"
    about = ask(calls, "ServerMetadata")
    assert (about.name, about.version) == ("mxrt", mx.__version__)
    assert "binary_tensor_data" in about.extensions
    for wanted in server.models:
        model = ask(calls, "ModelMetadata", name=wanted["name"])
        assert (model.platform, list(model.versions)) == (wanted["platform"], wanted["versions"])
        for found, tensors in ((model.inputs, wanted["inputs"]), (model.outputs, wanted["outputs"])):
            assert [{"name": t.name, "datatype": t.datatype, "shape": list(t.shape)} for t in found] == tensors
    index = ask(calls, "RepositoryIndex").models
    assert {(m.name, m.version, m.state) for m in index} >= {(name, "1", "READY") for name in SERVED}
    before = ask(calls, "ModelStatistics", name="digits_cnn").model_stats[0]
    ask(calls, "ModelInfer", **infer_fields("digits_cnn", inputs("digits_cnn", 1)))
    after = ask(calls, "ModelStatistics", name="digits_cnn", version="1").model_stats[0]
    assert after.inference_count == before.inference_count + 1
    assert after.inference_stats.success.count == before.inference_stats.success.count + 1


def changed(**changes: Any) -> dict[str, Any]:
    """A request for digits_cnn with these changes of its input, or of its own fields."""
    fields = infer_fields("digits_cnn", inputs("digits_cnn", 1))
    for key, value in changes.items():
        place = fields["inputs"][0] if key in ("name", "datatype", "shape", "parameters", "contents") else fields
        place[key] = value
    return fields


WRONG = {
    "model": ({"model_name": "digits"}, "NOT_FOUND", "no model 'digits'"),
    "version": ({"model_version": "7"}, "NOT_FOUND", "no version '7'"),
    "input": ({"name": "date"}, "INVALID_ARGUMENT", "no input 'date'"),
    "type": ({"datatype": "INT32"}, "INVALID_ARGUMENT", "got INT32, wanted FP32"),
    "unknown type": ({"datatype": "FP33"}, "INVALID_ARGUMENT", "unknown datatype"),
    "strings": ({"datatype": "BYTES"}, "INVALID_ARGUMENT", "got BYTES, wanted FP32"),
    "shape": ({"shape": [1, 1, 4, 16]}, "INVALID_ARGUMENT", "wanted [-1, 1, 8, 8]"),
    "negative extent": ({"shape": [-1, 1, 8, 8]}, "INVALID_ARGUMENT", "negative"),
    "overflow": ({"shape": [1 << 62, 1 << 62]}, "INVALID_ARGUMENT", "larger than the address space"),
    "beyond memory": ({"shape": [1 << 40, 1, 8, 8]}, "INVALID_ARGUMENT", "raw_input_contents has 256 bytes"),
    "no inputs": ({"inputs": [], "raw_input_contents": []}, "INVALID_ARGUMENT", "'data' is missing"),
    "input twice": (
        {"inputs": changed()["inputs"] * 2, "raw_input_contents": [bytes(256)] * 2},
        "INVALID_ARGUMENT",
        "twice",
    ),
    "too few raw": ({"raw_input_contents": []}, "INVALID_ARGUMENT", "'fp32_contents' has 0 elements"),
    "too many raw": ({"raw_input_contents": [bytes(256)] * 2}, "INVALID_ARGUMENT", "2 items for 1 inputs"),
    "short raw": ({"raw_input_contents": [bytes(255)]}, "INVALID_ARGUMENT", "has 255 bytes; type and shape make 256"),
    "both": ({"contents": {"fp32_contents": [0] * 64}}, "INVALID_ARGUMENT", "both"),
    "typed, too few": (
        {"contents": {"fp32_contents": [0] * 63}, "raw_input_contents": []},
        "INVALID_ARGUMENT",
        "63 elements; the shape says 64",
    ),
    "unknown output": ({"outputs": [{"name": "y"}]}, "INVALID_ARGUMENT", "no output 'y'"),
    "classes": (
        {"outputs": [{"name": "y", "parameters": {"classification": {"int64_param": 3}}}]},
        "INVALID_ARGUMENT",
        "classification",
    ),
    "shared memory": (
        {"parameters": {"shared_memory_region": {"string_param": "x"}}},
        "INVALID_ARGUMENT",
        "shared memory",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_request_is_answered_with_what_is_wrong(calls, good, what: str) -> None:
    changes, code, words = WRONG[what]
    with refused(code, words):
        ask(calls, "ModelInfer", **changed(**changes))
    good()


def test_parameters_are_checked(calls) -> None:
    for parameters in ({"priority": {"int64_param": 10}}, {"priority": {"bool_param": True}}):
        fields = {**infer_fields("digits_cnn", inputs("digits_cnn", 1)), "parameters": parameters}
        with refused("INVALID_ARGUMENT", "'priority'"):
            ask(calls, "ModelInfer", **fields)


def test_methods_that_are_not_here_are_refused_by_name(calls) -> None:
    asked = message("inference.ModelInferRequest")
    with refused("UNIMPLEMENTED", "streaming inference is not supported"):
        list(method(calls, "ModelStreamInfer")(iter([asked]), timeout=60))
    for name in ("SystemSharedMemoryStatus", "LogSettings"):
        with refused("UNIMPLEMENTED", name):
            ask(calls, name)


def test_messages_that_are_none_end_their_call_alone(server, calls, good) -> None:
    raw = calls.unary_unary("/inference.GRPCInferenceService/ModelInfer")
    for content in (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x3a\x7f" + bytes(5), b"\x2b" * 100_000):
        with refused("INVALID_ARGUMENT", "the message"):
            raw(content, timeout=60)
    whole = message("inference.ModelInferRequest", **changed()).SerializeToString()
    for end in range(0, len(whole), 7):
        with pytest.raises(grpc.RpcError) as error:
            raw(whole[:end], timeout=60)
        # Where the end of a field happens to be cut at, something is missing.
        assert error.value.code().name in ("INVALID_ARGUMENT", "NOT_FOUND"), (end, error.value)
    with refused("RESOURCE_EXHAUSTED", "larger than 1048576 bytes"):
        raw(bytes(2 << 20), timeout=60)
    good()


def test_calls_have_an_end_and_a_full_queue_says_when_to_come_back(mx, tmp_path) -> None:
    gate = Gate(mx, tmp_path)
    with (
        mx.serve.Server({"gate": gate.model, "digits_cnn": DIGITS}, port=0, queue_requests=1) as running,
        channel(running) as own,
        ThreadPoolExecutor(1) as pool,
    ):
        one = infer_fields("gate", {"x": np.ones((1, 1), "float32")})
        # On a busy machine the deadline may pass before the operator begins.
        for seconds in (0.3, 3, 30):
            with refused("DEADLINE_EXCEEDED"):
                ask(own, "ModelInfer", timeout=seconds, **one)
            wait_until(lambda: gate.entered or ask(own, "ServerReady").ready)
            if gate.entered:
                break
        # The operator goes on, and the request keeps its place until it has ended.
        assert not ask(own, "ServerReady").ready
        gate.pass_through(1)
        wait_until(lambda: ask(own, "ServerReady").ready)
        with refused("DEADLINE_EXCEEDED", "deadline passed"):
            ask(own, "ModelInfer", **one, parameters={"timeout": {"int64_param": 50_000}})
        # If it has begun at all.
        wait_until(lambda: len(gate.entered) == 2 or ask(own, "ServerReady").ready)
        gate.pass_through(len(gate.entered) - 1)
        wait_until(lambda: ask(own, "ServerReady").ready)
        waiting = pool.submit(lambda: ask(own, "ModelInfer", **one))
        wait_until(lambda: not ask(own, "ServerReady").ready)
        infer = method(own, "ModelInfer")
        asked = message("inference.ModelInferRequest", **infer_fields("digits_cnn", inputs("digits_cnn", 1)))
        with pytest.raises(grpc.RpcError) as error:
            infer(asked, timeout=60)
        assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert dict(error.value.trailing_metadata())["grpc-retry-pushback-ms"] == "1000"
        gate.pass_through(1)
        assert arrays_of(waiting.result())[0] == 1
        with refused("INTERNAL", "a value below 0"):
            ask(own, "ModelInfer", **infer_fields("gate", {"x": -np.ones((1, 1), "float32")}))
        future = infer.future(message("inference.ModelInferRequest", **one))
        wait_until(lambda: not ask(own, "ServerReady").ready)
        future.cancel()
        gate.pass_through(1)
        wait_until(lambda: ask(own, "ServerReady").ready)
        gate.pass_through(10)


def test_health_is_told_and_watched(mx) -> None:
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0) as running, channel(running) as own:
        check = method(own, "grpc.health.v1.Health/Check")
        for name in ("", "inference.GRPCInferenceService", "digits_cnn"):
            assert check(message("grpc.health.v1.HealthCheckRequest", service=name), timeout=60).status == 1
        with refused("NOT_FOUND"):
            check(message("grpc.health.v1.HealthCheckRequest", service="none"), timeout=60)
        watched = method(own, "grpc.health.v1.Health/Watch")(message("grpc.health.v1.HealthCheckRequest"), timeout=60)
        assert next(watched).status == 1
        running._running().drain()
        assert next(watched).status == 2
        with refused("UNAVAILABLE", "about to end"):
            ask(own, "ModelInfer", **infer_fields("digits_cnn", inputs("digits_cnn", 1)))


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_tells_the_protocol(calls, version: str) -> None:
    service = f"grpc.reflection.{version}.ServerReflection"
    info = method(calls, f"{service}/ServerReflectionInfo")

    def tell(**asked: Any) -> Any:
        return next(info(iter([message(f"grpc.reflection.{version}.ServerReflectionRequest", **asked)]), timeout=60))

    names = {found.name for found in tell(list_services="").list_services_response.service}
    assert names >= {"inference.GRPCInferenceService", "grpc.health.v1.Health", service}
    files = tell(file_containing_symbol="inference.GRPCInferenceService").file_descriptor_response.file_descriptor_proto
    assert len(files) == 2 and b"ModelStreamInfer" in files[0]
    assert tell(file_by_filename="health.proto").file_descriptor_response.file_descriptor_proto
    assert tell(file_containing_symbol="inference.None").error_response.error_code == 5


def test_the_port_can_be_switched_off_or_chosen(mx) -> None:
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0, grpc_port=None) as running:
        assert running.url
        with pytest.raises(mx.MXNetError, match="does not speak gRPC"):
            running.grpc  # noqa: B018
    with mx.serve.Server({"digits_cnn": DIGITS}, port=None, grpc_port=0) as running, channel(running) as own:
        assert ask(own, "ServerLive").live
        with pytest.raises(mx.MXNetError, match="no port of HTTP"):
            running.url  # noqa: B018
