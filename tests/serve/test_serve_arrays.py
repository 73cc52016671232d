"""`mxrt serve`: arrays and images as they are in files, and the paths of MXNet Model Server."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import numpy as np
import pytest

from serving import called, connect, exchange, golden, meta, model, same
from support import DIGITS, in_threads


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(save=np.savez, **arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def post(server, path: str, body: bytes) -> tuple[int, str, bytes]:
    with contextlib.closing(connect(server)) as connection:
        response, data = exchange(connection, path, body)
        return response.status, response.headers["Content-Type"], data


def test_one_array_comes_and_goes_as_npy(mx, server) -> None:
    for batch in (1, 3):
        for path in ("/models/digits_cnn/infer", "/models/digits_cnn/versions/1/infer"):
            status, kind, data = post(server, path, npy(golden("digits_cnn", batch)[0]))
            assert (status, kind) == (200, "application/x-npy"), data
            assert same([np.load(io.BytesIO(data))], called(mx, "digits_cnn", batch))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_several_arrays_have_names(mx, server, save) -> None:
    names = [tensor["name"] for tensor in meta("wide_deep")["inputs"]]
    arrays = dict(zip(names, golden("wide_deep", 3), strict=True))
    status, kind, data = post(server, "/models/wide_deep/infer", npz(save, **arrays))
    assert (status, kind) == (200, "application/x-npy"), data
    assert same([np.load(io.BytesIO(data))], called(mx, "wide_deep", 3))
    status, kind, data = post(server, "/models/ssd_digits/infer", npy(golden("ssd_digits", 1)[0]))
    assert (status, kind) == (200, "application/x-npz"), data
    with np.load(io.BytesIO(data)) as found:
        outputs = [found[tensor["name"]] for tensor in meta("ssd_digits")["outputs"]]
    assert same(outputs, called(mx, "ssd_digits", 1))


def test_what_is_no_array_is_refused(server, good) -> None:
    digit = golden("digits_cnn", 1)[0]
    for body, words in {
        b"": "expected a .npy",
        npy(digit)[:-1]: "type and shape make 256",
        npy(digit.astype(">f4")): "not supported",
        npy(np.asfortranarray(golden("digits_cnn", 3)[0])): "Fortran",
        npy(np.array(["a"], object)): "not supported",
        npy(digit.astype("float64")): "got FP64, wanted FP32",
        npy(digit[0]): "got the shape",
        npz(other=digit): "no input 'other'",
        npz(data=digit, more=digit): "no input 'more'",
        b"PK\x03\x04": "no .npz",
        npz(np.savez_compressed, data=np.zeros((1 << 20,), "float32")): "more than",
        b"\xff\xd8\xff": "takes no images",
    }.items():
        status, _, data = post(server, "/models/digits_cnn/infer", body)
        assert (status, words in json.loads(data)["error"]) == (400, True), (words, data)
    assert post(server, "/models/none/infer", npy(digit))[0] == 404
    status, _, data = post(server, "/models/wide_deep/infer", npy(digit))
    assert (status, b"several inputs" in data) == (400, True), data
    good()


def test_images_become_inputs_as_the_settings_say(mx, tmp_path) -> None:
    labels = tmp_path / "synset.txt"
    labels.write_text("\n".join(f"n{digit} digit {digit}" for digit in range(10)))
    preprocess = {"size": [8, 8], "resize": 8, "grey": True, "scale": 1 / 255, "mean": [0.5], "std": [0.25]}
    served = model(mx, "digits_cnn")
    served.settings.update(preprocess=preprocess, labels=labels)
    pixels = np.random.default_rng(0).integers(0, 255, (8, 8, 1), dtype="uint8")
    image = mx._mxrt.encode_image((8, 8, 1), pixels.tobytes(), "png", 3)
    array = (pixels.transpose(2, 0, 1)[None].astype("float32") / 255 - 0.5) / 0.25
    with mx.serve.Server({"digits": served}, port=0) as server:
        status, _, data = post(server, "/models/digits/infer", image)
        assert status == 200, data
        found = np.load(io.BytesIO(data))
        wanted = np.load(io.BytesIO(post(server, "/models/digits/infer", npy(array.astype("float32")))[2]))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        status, kind, data = post(server, "/predictions/digits", image)
        assert (status, kind) == (200, "application/json"), data
        classes = json.loads(data)
        order = np.argsort(-found[0])[:5]
        assert [row["class"] for row in classes] == [f"n{digit} digit {digit}" for digit in order]
        np.testing.assert_allclose([row["score"] for row in classes], found[0][order], rtol=1e-6)
        status, _, data = post(server, "/models/digits/infer", image[:40])
        assert (status, b"the image" in data) == (400, True), data
    with pytest.raises(mx.base.MXNetError, match="preprocess: input 'data': got the shape"):
        served.settings["preprocess"] = {**preprocess, "size": [9, 8]}
        mx.serve.Server({"digits": served}, port=0).start()
    for wrong, words in (({"size": [8]}, "rows and columns for its size"), ({"sise": 1}, "not 'sise'"), (7, "a table")):
        with pytest.raises(mx.base.MXNetError, match=words):
            mx.serve.Server(mx.serve.Model(DIGITS, preprocess=wrong))


def test_predictions_without_names_are_numbers(mx, server) -> None:
    body = npy(golden("digits_cnn", 3)[0])
    status, _, data = post(server, "/predictions/digits_cnn", body)
    assert status == 200, data
    with contextlib.closing(connect(server)) as connection:
        # What `curl -T` sends.
        assert exchange(connection, "/predictions/digits_cnn", body, method="PUT")[1] == data
    output = json.loads(data)[meta("digits_cnn")["outputs"][0]["name"]]
    assert (output["datatype"], output["shape"]) == ("FP32", [3, 10])
    wanted = called(mx, "digits_cnn", 3)
    assert same([np.array(output["data"], "float32").reshape(3, 10)], wanted)


HOOKS = """
import numpy as np

def preprocess(request):
    if request.body == b"fail":
        raise RuntimeError("a secret of the server")
    if request.headers.get("x-rows") is None:
        raise ValueError("say how many rows by x-rows")
    rows = int(request.headers["x-rows"])
    return {"data": np.frombuffer(request.body, "float32").reshape(rows, 1, 8, 8)}

def postprocess(arrays):
    (scores,) = arrays.values()
    return {"digits": scores.argmax(axis=1).tolist()}
"""


def test_hooks_are_called_before_the_model_and_after_it(mx, tmp_path, capfd) -> None:
    (tmp_path / "hooks.py").write_text(HOOKS)
    (tmp_path / "after.py").write_text("def postprocess(arrays): return b'%d' % len(arrays)")
    both, after = model(mx, "digits_cnn"), model(mx, "digits_cnn")
    both.settings["hooks"], after.settings["hooks"] = tmp_path / "hooks.py", tmp_path / "after.py"
    wanted = called(mx, "digits_cnn", 3)[0].argmax(axis=1).tolist()
    body = golden("digits_cnn", 3)[0].tobytes()
    with mx.serve.Server({"both": both, "after": after}, port=0) as server:

        def ask(body: bytes, path: str = "/models/both/infer", **headers: str) -> tuple[int, bytes]:
            with contextlib.closing(connect(server)) as connection:
                response, data = exchange(connection, path, body, headers)
                return response.status, data

        def call(_: int) -> None:
            for path in ("/models/both/infer", "/predictions/both"):
                status, data = ask(body, path, **{"X-Rows": "3"})
                assert (status, json.loads(data)) == (200, {"digits": wanted}), data

        in_threads(8, call)
        status, data = ask(body)
        assert (status, json.loads(data)) == (400, {"error": "say how many rows by x-rows", "code": "MX-REQUEST"})
        status, data = ask(b"fail")
        assert (status, b"secret" in data) == (500, False), data
        assert ask(body[:-4], **{"X-Rows": "3"})[0] == 400
        assert ask(npy(golden("digits_cnn", 1)[0]), "/models/after/infer") == (200, b"1")
        with contextlib.closing(connect(server)) as connection:
            text = exchange(connection, "/metrics")[1].decode()
        assert 'mxrt_requests_total{model="both",version="1",outcome="hook"} 1' in text
    assert "RuntimeError: a secret of the server" in capfd.readouterr().err
    for content, words in (
        ("x = 1", "no function 'preprocess', 'postprocess', 'load', 'decode' or 'encode'"),
        ("import nothing_like_it", "No module named"),
    ):
        (tmp_path / "hooks.py").write_text(content)
        with pytest.raises(mx.base.MXNetError, match=words):
            mx.serve.Server({"both": both}, port=0).start()


def test_a_hook_reads_the_files_of_a_model(mx, tmp_path) -> None:
    """Files that are encrypted where they are kept."""
    key = 0x5A
    for ending in ("-symbol.json", "-0000.params"):
        plain = (DIGITS / f"digits_cnn{ending}").read_bytes()
        (tmp_path / f"digits{ending}").write_bytes(bytes(byte ^ key for byte in plain))
    hooks = tmp_path / "hooks.py"

    def server() -> Any:
        settings = {**model(mx, "digits_cnn").settings, "hooks": hooks}
        return mx.serve.Server({"digits": mx.serve.Model(tmp_path / "digits", **settings)}, port=0)

    read = f"bytes(byte ^ {key} for byte in Path(path).read_bytes())"
    hooks.write_text(f"from pathlib import Path\ndef load(path): return {read}")
    with server() as serving:
        status, _, data = post(serving, "/models/digits/infer", npy(golden("digits_cnn", 3)[0]))
        assert status == 200, data
        assert same([np.load(io.BytesIO(data))], called(mx, "digits_cnn", 3))
    for content, words in (
        (
            "raise PermissionError('the key is not here')",
            r"(?s)hooks: load\('.*digits-symbol.json'\): .*PermissionError: the key is not here",
        ),
        ("return path", "it gave str, where bytes were expected"),
        ("return b'\\xff'", "gave bytes that are no UTF-8 text"),
        ("return b'{}'", "digits"),
    ):
        hooks.write_text(f"def load(path): {content}")
        with pytest.raises(mx.base.MXNetError, match=words):
            server().start()


# ---- bodies of clients of MXNet Model Server ----------------------------------------------------


def form(parts: dict[str, tuple[str, bytes]]) -> tuple[bytes, dict[str, str]]:
    """A body as ``curl -F`` and ``requests.post(files=...)`` send it, and its headers."""
    body = b""
    for name, (kind, content) in parts.items():
        head = f'--X-1\r\nContent-Disposition: form-data; name="{name}"; filename="f"\r\nContent-Type: {kind}\r\n\r\n'
        body += head.encode() + content + b"\r\n"
    return body + b"--X-1--\r\n", {"Content-Type": 'multipart/form-data; boundary="X-1"'}


def predict(server, name: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict]:
    with contextlib.closing(connect(server)) as connection:
        connection.request("POST", f"/predictions/{name}", body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def test_forms_and_json_are_read_as_the_arrays_in_them(mx, server) -> None:
    digits = golden("digits_cnn", 3)[0]
    _, wanted = predict(server, "digits_cnn", npy(digits), {})
    lists = json.dumps(digits.tolist()).encode()
    kind = {"Content-Type": "application/json; charset=utf-8"}
    for body, headers in (
        form({"data": ("application/octet-stream", npy(digits))}),
        form({"any-name": ("application/octet-stream", npz(data=digits))}),
        form({"body": ("application/json", lists)}),
        (lists, kind),
        (lists, {}),
        (b'{"data": ' + lists + b"}", kind),
        (b' [ {"data": ' + lists + b"} ] ", kind),
    ):
        status, found = predict(server, "digits_cnn", body, headers)
        assert (status, found) == (200, wanted), (body[:200], headers)


def test_forms_and_json_have_several_inputs_by_name(mx, server) -> None:
    names = [tensor["name"] for tensor in meta("wide_deep")["inputs"]]
    arrays = dict(zip(names, golden("wide_deep", 3), strict=True))
    _, wanted = predict(server, "wide_deep", npz(**arrays), {})
    body, headers = form({name: ("application/octet-stream", npy(array)) for name, array in arrays.items()})
    assert predict(server, "wide_deep", body, headers) == (200, wanted)
    body = json.dumps({name: array.tolist() for name, array in arrays.items()}).encode()
    assert predict(server, "wide_deep", body, {"Content-Type": "application/json"}) == (200, wanted)


def test_forms_and_json_that_are_wrong_say_what_they_are(server, good) -> None:
    kind = {"Content-Type": "application/json"}
    digit = npy(golden("digits_cnn", 1)[0])
    part = ("image/jpeg", b"JPEG")
    for name, (body, headers), words in (
        ("digits_cnn", form({"data": part}), "multipart/form-data"),
        ("digits_cnn", form({"a": part, "b": part}), "more than 1 parts"),
        ("digits_cnn", (form({"a": part})[0], {"Content-Type": "multipart/form-data"}), "without a boundary"),
        ("digits_cnn", (form({"a": part})[0][:-9], form({})[1]), "ends within a part"),
        ("digits_cnn", (b"{}", kind), "is missing"),
        ("digits_cnn", (b'{"dta": [[1]], "data": [1]}', kind), "more than 1 inputs"),
        ("digits_cnn", (b"[[1, 2], [3]]", kind), "do not have the shape"),
        ("digits_cnn", (b"[[1, 2]]", kind), "got the shape"),
        ("digits_cnn", (b'["a"]', kind), "input 'data'"),
        ("digits_cnn", (b"[" * 100 + b"]" * 100, kind), "nested deeper than 32"),
        ("digits_cnn", (b'{"data": [1', kind), "the JSON of the body"),
        ("wide_deep", (b"[[1, 2]]", kind), "several inputs"),
        ("wide_deep", form({"other": ("text/plain", digit)}), "no input 'other'"),
    ):
        status, answer = predict(server, name, body, headers)
        assert (status, words in answer["error"]) == (400, True), (words, answer)
    good()


PATHS = {
    "GET, HEAD": (
        "/v2 /v2/health/live /v2/health/ready /v2/models/stats /v2/models/digits_cnn /v2/models/digits_cnn/ready "
        "/v2/models/digits_cnn/stats /v2/models/digits_cnn/versions/1 /metrics"
    ),
    "POST": (
        "/v2/models/digits_cnn/infer /models/digits_cnn/infer /v2/repository/index "
        "/v2/repository/models/digits_cnn/load"
    ),
    "POST, PUT": "/predictions/digits_cnn",
}


@pytest.mark.parametrize("takes", PATHS)
def test_every_path_says_which_methods_it_takes(server, takes: str) -> None:
    for path in PATHS[takes].split():
        for method in {"DELETE", "OPTIONS", "PUT", "POST", "GET"}.difference(takes.split(", ")):
            with contextlib.closing(connect(server)) as connection:
                connection.request(method, path)
                response = connection.getresponse()
                response.read()
                assert (response.status, response.headers["Allow"]) == (405, takes), (method, path)


def test_head_is_get_without_the_body(server) -> None:
    with contextlib.closing(connect(server)) as connection:
        for path in PATHS["GET, HEAD"].split():
            connection.request("GET", path)
            whole = connection.getresponse()
            body = whole.read()
            connection.request("HEAD", path)
            head = connection.getresponse()
            assert head.read() == b""
            assert (head.status, head.headers["Content-Type"]) == (whole.status, whole.headers["Content-Type"]), path
            if "metrics" not in path and "stats" not in path:
                assert head.headers["Content-Length"] == str(len(body)), path
