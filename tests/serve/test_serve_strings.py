"""`mxrt serve`: tensors of strings (BYTES), of which hooks make the inputs of a model, and which
they make of its outputs.
"""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from serving import DIGIT, JSON_BYTES, called, connect, exchange, golden, model, post
from serving_grpc import ask, channel, refused

HOOKS = """
import numpy as np

INPUTS = {"text": ("BYTES", [-1]), "scale": ("FP32", [1])}
OUTPUTS = {"label": ("BYTES", [-1]), "scores": ("FP32", [-1, 10])}

def decode(tensors):
    assert all(type(one) is bytes for one in tensors["text"])
    rows = [[float(word) for word in one.decode().split()] for one in tensors["text"]]
    return np.array(rows, "float32").reshape(-1, 1, 8, 8) * tensors["scale"][0]

def encode(arrays):
    (scores,) = arrays.values()
    return {"scores": scores, "label": np.array([f"no. {one}" for one in scores.argmax(axis=1)])}
"""

WORDS = "strings are for models whose hooks declare INPUTS of the type BYTES"


def texts(batch: int) -> list[str]:
    return [" ".join(map(repr, image.ravel().tolist())) for image in golden("digits_cnn", batch)[0]]


def binary(strings: list[str]) -> bytes:
    """Elements as the protocol has them after the JSON: lengths and bytes."""
    return b"".join(struct.pack("<I", len(one)) + one for one in (text.encode() for text in strings))


def unpacked(content: bytes) -> list[str]:
    strings = []
    while content:
        (length,) = struct.unpack_from("<I", content)
        strings.append(content[4 : 4 + length].decode())
        content = content[4 + length :]
    return strings


def scale(**more: Any) -> dict[str, Any]:
    return {"name": "scale", "shape": [1], "datatype": "FP32", "data": [1], **more}


def strings(given: Any, shape: list[int], **more: Any) -> dict[str, Any]:
    return {"name": "text", "shape": shape, "datatype": "BYTES", "data": given, **more}


@pytest.fixture(scope="module")
def hooked(mx, tmp_path_factory) -> Iterator[Any]:
    """A server of a model with these hooks."""
    folder = tmp_path_factory.mktemp("strings")
    (folder / "hooks.py").write_text(HOOKS)
    served = model(mx, "digits_cnn")
    served.settings["hooks"] = folder / "hooks.py"
    with mx.serve.Server({"digits": served}, port=0) as server:
        yield server


@pytest.fixture(scope="module")
def wanted(mx) -> tuple[np.ndarray, list[str]]:
    scores = called(mx, "digits_cnn", 3)[0]
    return scores, [f"no. {one}" for one in scores.argmax(axis=1)]


def test_strings_come_and_go_as_json(hooked, wanted) -> None:
    scores, labels = wanted
    status, said = post(hooked, json.dumps({"inputs": [strings(texts(3), [3]), scale()]}), model="digits")
    assert status == 200, said
    label, made = json.loads(said)["outputs"]
    assert label == {"name": "label", "datatype": "BYTES", "shape": [3], "data": labels}
    assert (made["name"], made["shape"]) == ("scores", [3, 10])
    np.testing.assert_array_equal(np.array(made["data"], "float32").reshape(3, 10), scores)


def test_strings_come_and_go_as_bytes(hooked, wanted) -> None:
    scores, labels = wanted
    body = binary(texts(3))
    text = strings(None, [3], parameters={"binary_data_size": len(body)})
    del text["data"]
    head = json.dumps({"inputs": [scale(), text], "parameters": {"binary_data_output": True}}).encode()
    with contextlib.closing(connect(hooked)) as connection:
        response, data = exchange(connection, "/v2/models/digits/infer", head + body, {JSON_BYTES: str(len(head))})
    assert response.status == 200, data
    count = int(response.headers[JSON_BYTES])
    outputs = json.loads(data[:count])["outputs"]
    sizes = [output["parameters"]["binary_data_size"] for output in outputs]
    assert sizes == [len(binary(labels)), scores.nbytes]
    assert data[count:] == binary(labels) + scores.tobytes()


@pytest.mark.parametrize("typed", [False, True])
def test_strings_come_and_go_over_grpc(hooked, wanted, typed: bool) -> None:
    _, labels = wanted
    inputs = [
        {"name": "scale", "datatype": "FP32", "shape": [1]},
        {"name": "text", "datatype": "BYTES", "shape": [3]},
    ]
    contents = {}
    if typed:
        inputs[0]["contents"] = {"fp32_contents": [1]}
        inputs[1]["contents"] = {"bytes_contents": [text.encode() for text in texts(3)]}
    else:
        contents["raw_input_contents"] = [np.ones(1, "float32").tobytes(), binary(texts(3))]
    with channel(hooked) as calls:
        answer = ask(calls, "ModelInfer", model_name="digits", inputs=inputs, outputs=[{"name": "label"}], **contents)
        (output,) = answer.outputs
        assert (output.name, output.datatype, list(output.shape)) == ("label", "BYTES", [3])
        assert unpacked(answer.raw_output_contents[0]) == labels
        inputs[1]["shape"] = [2]
        with refused("INVALID_ARGUMENT", "input 'text': the data has 3 strings; the shape says 2"):
            ask(calls, "ModelInfer", model_name="digits", inputs=inputs, **contents)


def test_the_metadata_has_the_tensors_that_hooks_declare(hooked) -> None:
    inputs = [{"name": "text", "datatype": "BYTES", "shape": [-1]}, {"name": "scale", "datatype": "FP32", "shape": [1]}]
    outputs = [
        {"name": "label", "datatype": "BYTES", "shape": [-1]},
        {"name": "scores", "datatype": "FP32", "shape": [-1, 10]},
    ]
    with contextlib.closing(connect(hooked)) as connection:
        about = json.loads(exchange(connection, "/v2/models/digits")[1])
        config = json.loads(exchange(connection, "/v2/models/digits/config")[1])
    assert (about["inputs"], about["outputs"]) == (inputs, outputs)
    assert config["input"][0] == {"name": "text", "data_type": "TYPE_STRING", "dims": [-1]}
    assert config["max_batch_size"] == 0
    with channel(hooked) as calls:
        found = ask(calls, "ModelMetadata", name="digits").inputs
        assert [{"name": t.name, "datatype": t.datatype, "shape": list(t.shape)} for t in found] == inputs
        assert ask(calls, "ModelConfig", name="digits").config.input[0].data_type == 13  # TYPE_STRING


WRONG = {
    "too few": (strings(["a"], [2]), "the shape says 2"),
    "a number": (strings([1], [1]), "element 0 is 1, which is no string"),
    "numbers": ({**strings([1], [1]), "datatype": "FP32"}, "got FP32, wanted BYTES"),
    "shape": (strings([["a"]], [1, 1]), "got the shape [1, 1], wanted [-1]"),
    "of the model": (DIGIT | {"data": [0] * 64}, "no input 'data'; its inputs are 'text', 'scale'"),
    "no number": (strings(["x"], [1]), "could not convert string to float"),
    "huge": (strings(["x"], [1 << 40]), "too short"),
}


@pytest.mark.parametrize("given", WRONG)
def test_wrong_strings_are_refused(hooked, given: str) -> None:
    tensor, words = WRONG[given]
    status, said = post(hooked, json.dumps({"inputs": [tensor, scale()]}), model="digits")
    assert (status, words in json.loads(said)["error"]) == (400, True), said


def test_binary_strings_that_are_cut_are_refused(hooked) -> None:
    for body, words in (
        (binary(["a", "b"])[:-1], "element 1 is cut"),
        (struct.pack("<I", 1 << 31) + bytes(20), "element 0 is cut"),
        (binary(["a", "b", "c"]), "the data has 3 strings; the shape says 2"),
        (bytes(7), "2 strings have at least 8"),
    ):
        text = strings(None, [2], parameters={"binary_data_size": len(body)})
        del text["data"]
        head = json.dumps({"inputs": [text, scale()]}).encode()
        status, said = post(hooked, head + body, {JSON_BYTES: str(len(head))}, model="digits")
        assert (status, words in said) == (400, True), said


def test_a_model_without_such_hooks_says_what_is_missing(mx, server) -> None:
    text = {"name": "data", "shape": [1], "datatype": "BYTES", "data": ["x"]}
    status, said = post(server, json.dumps({"inputs": [text]}))
    assert (status, WORDS in json.loads(said)["error"]) == (400, True), said
    with channel(server) as calls, refused("INVALID_ARGUMENT", "got BYTES, wanted FP32", WORDS):
        inputs = [{"name": "data", "datatype": "BYTES", "shape": [1], "contents": {"bytes_contents": [b"x"]}}]
        ask(calls, "ModelInfer", model_name="digits_cnn", inputs=inputs)


# Another key of a dict that has the same name.
LABEL = "class Label:\n    def __str__(self): return 'label'\n"
ONE = 'OUTPUTS = {"label": ("BYTES", [-1])}\ndef encode(arrays): '


def test_what_a_hook_makes_must_be_what_it_declares(mx, tmp_path, capfd) -> None:
    body = json.dumps({"inputs": [DIGIT | {"data": golden("digits_cnn", 1)[0].ravel().tolist()}]})
    for number, (code, words) in enumerate((
        ("return {}", "encode: it made no 'label', a part of OUTPUTS"),
        ("return {'label': [1.0]}", "encode: 'label' is FP64 of the shape [1]; OUTPUTS says BYTES of [-1]"),
        ("return {'label': ['a'], 'more': ['b']}", "encode: it made 'more', which OUTPUTS does not declare"),
        ("return {'label': ['a'], Label(): ['b']}", "encode: it made 'label' twice"),
        ("return {'label': np.array([None])}", "'label' has an object of the type NoneType; expected str or bytes"),
    )):  # fmt: skip
        hooks = tmp_path / f"hooks{number}.py"
        hooks.write_text(f"import numpy as np\n{LABEL}{ONE}{code}")
        served = model(mx, "digits_cnn")
        served.settings["hooks"] = hooks
        with mx.serve.Server({"digits": served}, port=0) as server:
            status, said = post(server, body, model="digits")
            assert (status, json.loads(said)["code"]) == (500, "MX-HOOK"), said
        assert words in capfd.readouterr().err


def test_answers_that_are_no_text_are_for_binary_data(mx, tmp_path) -> None:
    # The only output needs no name.
    (tmp_path / "hooks.py").write_text(ONE + "return [b'\\xff\\0']")
    served = model(mx, "digits_cnn")
    served.settings["hooks"] = tmp_path / "hooks.py"
    asked: dict[str, Any] = {"inputs": [DIGIT | {"data": golden("digits_cnn", 1)[0].ravel().tolist()}]}
    with mx.serve.Server({"digits": served}, port=0) as server:
        status, said = post(server, json.dumps(asked), model="digits")
        assert (status, "output 'label': element 0 is no UTF-8 text: ask for binary data" in said) == (400, True), said
        asked["outputs"] = [{"name": "label", "parameters": {"binary_data": True}}]
        with contextlib.closing(connect(server)) as connection:
            response, data = exchange(connection, "/v2/models/digits/infer", json.dumps(asked).encode())
        assert data[int(response.headers[JSON_BYTES]) :] == b"\x02\0\0\0\xff\0"


def test_declarations_that_do_not_fit_are_errors_of_loading(mx, tmp_path) -> None:
    for number, (content, words) in enumerate((
        ("def decode(tensors): pass", "'decode' and INPUTS, .* belong together: it has no INPUTS"),
        ('OUTPUTS = {"y": ("BYTES", [-1])}\ndef load(path): pass', "belong together: it has no encode"),
        ('INPUTS = {"x": "BYTES"}\ndef decode(tensors): pass', "expected types and shapes by name, such as"),
        ('INPUTS = {"x": ("TEXT", [1])}\ndef decode(tensors): pass', "INPUTS: 'x' has the type 'TEXT'; expected one"),
    )):  # fmt: skip
        hooks = tmp_path / f"hooks{number}.py"
        hooks.write_text(content)
        served = model(mx, "digits_cnn")
        served.settings["hooks"] = hooks
        with pytest.raises(mx.base.MXNetError, match=words):
            mx.serve.Server({"digits": served}, port=0).start()
