"""`mxrt serve`: answers over HTTP are those of calls, bit for bit."""

from __future__ import annotations

import contextlib
import json
import re

import pytest

from serving import SERVED, answer, called, connect, exchange, golden, meta, post, request, same
from support import in_threads


def test_sixteen_connections_get_the_bits_of_calls(mx, server) -> None:
    wanted = {(name, batch): called(mx, name, batch) for name in SERVED for batch in (1, 3)}

    def ask(number: int) -> None:
        with contextlib.closing(connect(server)) as connection:
            for turn in range(3 * len(SERVED)):
                name, batch = SERVED[(number + turn) % len(SERVED)], (1, 3)[turn % 2]
                names = [tensor["name"] for tensor in meta(name)["inputs"]]
                body, headers = request(names, golden(name, batch), parameters={"binary_data_output": True})
                head, found = answer(*exchange(connection, f"/v2/models/{name}/infer", body, headers))
                assert same(found, wanted[name, batch]), (name, batch)
                assert (head["model_name"], head["model_version"]) == (name, "1")

    in_threads(16, ask)


@pytest.mark.parametrize("name", ["digits_cnn", "wide_deep", "module_mlp"])
def test_numbers_of_json_are_read_and_written_without_loss(mx, server, name: str) -> None:
    names, arrays = [tensor["name"] for tensor in meta(name)["inputs"]], golden(name, 3)
    for binary in (False, [number % 2 == 0 for number in range(len(names))]):
        body, headers = request(names, arrays, binary, id='a "b"')
        with contextlib.closing(connect(server)) as connection:
            head, found = answer(*exchange(connection, f"/v2/models/{name}/infer", body, headers))
        assert same(found, called(mx, name, 3))
        assert head["id"] == 'a "b"'


def test_outputs_are_chosen_by_name_and_each_says_its_form(mx, server) -> None:
    wanted = called(mx, "ssd_digits", 1)
    outputs = [tensor["name"] for tensor in meta("ssd_digits")["outputs"]]
    chosen = [
        {"name": outputs[2], "parameters": {"binary_data": True}},
        {"name": outputs[0], "parameters": {"binary_data": False}},
    ]
    body, headers = request(["data"], golden("ssd_digits", 1), outputs=chosen)
    with contextlib.closing(connect(server)) as connection:
        head, found = answer(*exchange(connection, "/v2/models/ssd_digits/infer", body, headers))
    assert [tensor["name"] for tensor in head["outputs"]] == [outputs[2], outputs[0]]
    assert ["data" in tensor for tensor in head["outputs"]] == [False, True]
    assert same(found, [wanted[2], wanted[0]])


@pytest.mark.parametrize("name", ["digitsnet_dense0_fwd", "digitsnet_dense0_fwd_output"])
def test_an_output_has_the_name_that_the_request_gives_it(mx, server, name: str) -> None:
    body, headers = request(["data"], golden("digits_cnn", 1), outputs=[{"name": name}])
    with contextlib.closing(connect(server)) as connection:
        head, found = answer(*exchange(connection, "/v2/models/digits_cnn/infer", body, headers))
    assert [tensor["name"] for tensor in head["outputs"]] == [name]
    assert same(found, called(mx, "digits_cnn", 1))


def test_half_precision_is_binary_alone(server) -> None:
    body, headers = request(["data"], golden("half_cnn", 1))
    status, text = post(server, body, headers, "half_cnn")
    assert (status, "JSON has no FP16" in text) == (400, True), text
    tensor = {"name": "data", "shape": [1, 1, 8, 8], "datatype": "FP16", "data": [0] * 64}
    status, text = post(server, json.dumps({"inputs": [tensor]}), model="half_cnn")
    assert (status, "JSON has no FP16" in text) == (400, True), text


def test_what_the_server_says_of_itself(mx, server) -> None:
    with contextlib.closing(connect(server)) as connection:
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/digits_cnn/ready"):
            response, data = exchange(connection, path)
            assert (response.status, data) == (200, b"")
        about = json.loads(exchange(connection, "/v2")[1])
        assert (about["name"], about["version"]) == ("mxrt", mx.__version__)
        extensions = ["binary_tensor_data", "schedule_policy", "model_configuration", "statistics", "metrics"]
        assert about["extensions"] == extensions
        model = json.loads(exchange(connection, "/v2/models/wide_deep/versions/1")[1])
        assert model["versions"] == ["1"]
        assert model["inputs"] == [
            {"name": "data0", "datatype": "INT32", "shape": [-1, 30]},
            {"name": "data1", "datatype": "FP32", "shape": [-1, 30]},
        ]
        assert model["outputs"][0]["name"] == meta("wide_deep")["outputs"][0]["name"]
        assert model in server.models
        for path in ("/v2/models/none", "/v2/models/digits_cnn/versions/7", "/v2/nothing", "/", "/v2/models/%ff"):
            response, data = exchange(connection, path)
            assert response.status in (400, 404), path
            assert json.loads(data)["error"]
        response, data = exchange(connection, "/v2/models/digits_cnn/infer")
        assert (response.status, "takes POST, not GET" in data.decode()) == (405, True)


def test_requests_are_counted_by_outcome(mx, server, good) -> None:
    def counted(outcome: str) -> int:
        with contextlib.closing(connect(server)) as connection:
            text = exchange(connection, "/metrics")[1].decode()
        found = re.search(
            rf'^mxrt_requests_total{{model="digits_cnn",version="1",outcome="{outcome}"}} (\d+)$', text, re.M
        )
        assert found, text
        return int(found[1])

    successes, mistakes = counted("success"), counted("invalid")
    good()
    post(server, "{}")
    assert (counted("success"), counted("invalid")) == (successes + 1, mistakes + 1)
    with contextlib.closing(connect(server)) as connection:
        stats = json.loads(exchange(connection, "/v2/models/digits_cnn/stats")[1])["model_stats"]
    assert [model["version"] for model in stats] == ["1"]
    assert stats[0]["inference_stats"]["success"]["count"] == successes + 1
