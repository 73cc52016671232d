"""Codes of errors in the answers of `mxrt serve`: the same as in Python, Rust and C."""

from __future__ import annotations

import contextlib
import json
import struct

import grpc
import pytest

from serving import connect, digit, exchange, model
from serving_grpc import ask, channel


def refused(server, path: str, body: str | None = None, method: str | None = None) -> tuple[int, str]:
    """Status and code of an answer; the code has a page."""
    from mxrt.cli._pages import find_page

    with contextlib.closing(connect(server)) as connection:
        response, data = exchange(connection, path, body, method=method)
    answer = json.loads(data)
    assert set(answer) == {"error", "code"} and find_page(answer["code"]) is not None, answer
    return response.status, answer["code"]


def test_an_answer_without_results_has_a_code(server, good) -> None:
    infer = "/v2/models/digits_cnn/infer"
    assert refused(server, infer, digit(shape=[1, 8, 8])) == (400, "MX-SHAPE")
    assert refused(server, infer, digit(datatype="INT32")) == (400, "MX-TYPE")
    assert refused(server, infer, digit(name="image")) == (400, "MX-REQUEST")
    assert refused(server, infer, "no JSON") == (400, "MX-REQUEST")
    assert refused(server, infer) == (405, "MX-REQUEST")
    assert refused(server, "/v2/models/none/infer", digit()) == (404, "MX-REQUEST")
    good()


def test_objects_of_a_request_are_no_lists_and_may_be_null(server, good) -> None:
    infer = "/v2/models/digits_cnn/infer"
    asked = json.loads(digit())
    tensor = asked["inputs"][0]
    for changed in (
        {"parameters": [1, 9_000_000, True]},
        {"outputs": [["dense0_fwd_output"]]},
        {"inputs": [list(tensor.values())]},
        {"inputs": [{**tensor, "parameters": []}]},
    ):
        with contextlib.closing(connect(server)) as connection:
            response, data = exchange(connection, infer, json.dumps({**asked, **changed}))
        said = json.loads(data)["error"]
        assert response.status == 400 and "expected an object" in said and "struct" not in said, said
    nothing = {**asked, "id": None, "outputs": None, "parameters": None, "inputs": [{**tensor, "parameters": None}]}
    with contextlib.closing(connect(server)) as connection:
        assert exchange(connection, infer, json.dumps(nothing))[0].status == 200
    good()


@pytest.mark.parametrize(
    ("made", "code", "words"),
    [
        ("[][0]", (500, "MX-HOOK"), "IndexError: list index out of range"),
        ("np.zeros((1, 1, 8, 8))", (500, "MX-HOOK"), "a hook made 'data' of the type FP64; the model takes FP32"),
        ("[[1, 2], [3]]", (500, "MX-HOOK"), "'' is no array"),
        ("{'pixels': np.zeros((1, 1, 8, 8), 'f4')}", (500, "MX-HOOK"), "the model has no input 'pixels'"),
        # What the client sent decides about the shape.
        ("np.zeros((1, 1, len(request.body), 8), 'f4')", (400, "MX-SHAPE"), ""),
    ],
)
def test_what_a_hook_makes_wrong_is_no_fault_of_the_client(mx, tmp_path, capfd, made, code, words) -> None:
    (tmp_path / "hooks.py").write_text(f"import numpy as np\ndef preprocess(request): return {made}\n")
    served = model(mx, "digits_cnn")
    served.settings["hooks"] = tmp_path / "hooks.py"
    with mx.serve.Server({"digits": served}, port=0) as server:
        assert refused(server, "/models/digits/infer", "x") == code
    assert words in capfd.readouterr().err


def test_a_hook_whose_answer_json_cannot_have_has_failed(mx, tmp_path) -> None:
    (tmp_path / "hooks.py").write_text(
        "import numpy as np\n"
        "def preprocess(request): return {'data': np.zeros((1, 1, 8, 8), 'float32')}\n"
        "def postprocess(arrays): return {'score': float('nan')}\n"
    )
    served = model(mx, "digits_cnn")
    served.settings["hooks"] = tmp_path / "hooks.py"
    with mx.serve.Server({"digits": served}, port=0) as server:
        assert refused(server, "/models/digits/infer", "x") == (500, "MX-HOOK")


def test_a_call_that_fails_has_the_code_in_its_trailers(server) -> None:
    tensor = {"name": "data", "datatype": "FP32", "shape": [1, 8, 8]}
    content = struct.pack("<64f", *[0] * 64)
    with channel(server) as opened, pytest.raises(grpc.RpcError) as raised:
        ask(opened, "ModelInfer", model_name="digits_cnn", inputs=[tensor], raw_input_contents=[content])
    assert dict(raised.value.trailing_metadata())["mxrt-code"] == "MX-SHAPE"
