"""`mxrt serve --sagemaker-code`: the functions of code/inference.py answer the requests."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

from commands import tarred
from serving import called, golden, same
from support import DIGITS, mxrt

#: As a script for MXNet's containers is written.
SCRIPT = """
import json
import os

import mxnet as mx
import helper

def model_fn(model_dir):
    prefix = os.path.join(model_dir, "digits_cnn")
    return mx.gluon.SymbolBlock.imports(prefix + "-symbol.json", ["data"], prefix + "-0000.params")
"""
FUNCTIONS = """
def input_fn(request_body, content_type):
    if content_type != "application/json":
        raise ValueError("send JSON, not " + content_type)
    assert isinstance(request_body, str)
    return mx.nd.array(json.loads(request_body)["rows"])

def predict_fn(data, model):
    return helper.best(model(data))

def output_fn(prediction, accept):
    return json.dumps({"best": prediction, "accept": accept})
"""
TRANSFORM = """
def transform_fn(model, data, content_type, accept):
    if data == "fail":
        raise RuntimeError("a secret of the script")
    scores = model(mx.nd.array(json.loads(data)))
    return helper.best(scores), "application/x-best"
"""
HELPER = "def best(scores): return scores.asnumpy().argmax(axis=1).tolist()\n"


def folder_of(place: Path, script: str | None, name: str = "inference.py") -> Path:
    """A model's folder as SageMaker unpacks it."""
    (place / "code").mkdir(parents=True)
    for file in ("digits_cnn-symbol.json", "digits_cnn-0000.params"):
        (place / file).write_bytes((DIGITS / file).read_bytes())
    if script is not None:
        (place / "code" / name).write_text(script)
        (place / "code" / "helper.py").write_text(HELPER)
    return place


@contextlib.contextmanager
def container(model: Path, errors: Path | None = None, **env: str) -> Iterator[str]:
    """A container with a script; gives its URL."""
    words = [sys.executable, "-m", "mxrt", "serve", "--sagemaker", "--sagemaker-code", str(model)]
    with (errors or Path(os.devnull)).open("w") as log:
        child = subprocess.Popen(
            [*words, "--host", "127.0.0.1", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **env},
        )
        try:
            first = child.stdout.readline()
            assert " at http://" in first, first + (errors.read_text() if errors else "")
            yield first.split(" at ")[1].split(";")[0].strip()
        finally:
            child.terminate()
            child.communicate(timeout=60)


def invoked(url: str, body: bytes | str, **headers: str) -> tuple[int, str, bytes]:
    """Status, content type and body of the answer to an invocation."""
    data = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urlopen(Request(f"{url}/invocations", data, named), timeout=60) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read()


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.fixture(scope="module")
def best(mx) -> list[int]:
    return called(mx, "digits_cnn", 3)[0].argmax(axis=1).tolist()


def test_input_predict_and_output_functions_answer_a_request(mx, best, tmp_path: Path) -> None:
    rows = json.dumps({"rows": golden("digits_cnn", 3)[0].tolist()})
    with container(folder_of(tmp_path / "model", SCRIPT + FUNCTIONS)) as url:
        with urlopen(f"{url}/ping", timeout=60) as answer:
            assert answer.status == 200
        status, kind, data = invoked(url, rows, Content_Type="application/json")
        assert (status, kind) == (200, "application/json"), data
        assert json.loads(data) == {"best": best, "accept": "application/json"}
        status, _, data = invoked(url, rows, Content_Type="text/plain")
        assert status == 400
        assert json.loads(data) == {"error": "send JSON, not text/plain", "code": "MX-REQUEST"}, "the script's words"
        assert invoked(url, '{"rows": [[1]]}', Content_Type="application/json")[0] == 400, "shapes do not fit"
        assert invoked(url, rows, Content_Type="application/json")[0] == 200


def test_a_script_gets_any_form_that_a_client_accepts(tmp_path: Path) -> None:
    script = "def transform_fn(model, data, kind, accept): return data, accept\n"
    with container(folder_of(tmp_path / "model", script)) as url:
        for accept in ("application/jsonlines", "image/png;q=0.5", "application/x-npy"):
            assert invoked(url, b"x", Content_Type="a/b", Accept=accept) == (200, accept, b"x")


def test_errors_with_the_status_of_a_client_are_its_errors(tmp_path: Path) -> None:
    script = """
class Refused(Exception):
    status_code, message = 415, "send something else"
class UnsupportedFormatError(Exception):
    pass
loaded = []
def pre_model_fn(model_dir): loaded.append("before")
def model_fn(model_dir): loaded.append("model"); return loaded
def model_warmup_fn(model_dir, model): model.append("warm")
def transform_fn(model, data, kind, accept):
    if data == b"ok":
        return model
    raise Refused() if data == b"1" else UnsupportedFormatError("what is that") if data == b"2" else KeyError(data)
"""
    with container(folder_of(tmp_path / "model", script)) as url:
        assert json.loads(invoked(url, b"ok", Content_Type="a/b")[2]) == ["before", "model", "warm"]
        wanted = {b"1": (400, b"send something else"), b"2": (400, b"what is that"), b"3": (500, b"log")}
        for body, (code, words) in wanted.items():
            status, _, data = invoked(url, body, Content_Type="a/b")
            assert status == code and words in data, data


def test_a_transform_function_answers_a_request_and_a_failure_stays_in_the_log(mx, best, tmp_path: Path) -> None:
    model = folder_of(tmp_path / "model", SCRIPT + TRANSFORM, "serve_it.py")
    archive = tmp_path / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(model, ".")
    rows = json.dumps(golden("digits_cnn", 3)[0].tolist())
    log, temporary = tmp_path / "log", tmp_path / "temporary"
    temporary.mkdir()
    with container(archive, log, SAGEMAKER_PROGRAM="serve_it.py", TMPDIR=str(temporary)) as url:
        status, kind, data = invoked(url, rows, Content_Type="application/json")
        assert (status, kind, json.loads(data)) == (200, "application/x-best", best)
        status, _, data = invoked(url, "fail", Content_Type="application/json")
        assert status == 500 and b"secret" not in data
        assert invoked(url, rows, Content_Type="application/json")[2] == data_of(best)
    # Another thread writes the log: all lines are there once the server has ended.
    assert "a secret of the script" in log.read_text()
    assert list(temporary.iterdir()) == [], "what was unpacked goes with the server"


def test_functions_that_want_the_context_get_it(mx, tmp_path: Path) -> None:
    """Functions of SageMaker's toolkit may take one argument more. A script may be named as a
    module.
    """
    script = """
import json

def model_fn(model_dir, context):
    return model_dir == context.system_properties["model_dir"]

def transform_fn(model, data, content_type, accept, context):
    return json.dumps([model, data, context.system_properties["batch_size"]]), "application/json"
"""
    model = folder_of(tmp_path / "model", script, "program.py")
    with container(model, SAGEMAKER_PROGRAM="program") as url:
        status, _, data = invoked(url, "text", Content_Type="text/csv")
        assert (status, json.loads(data)) == (200, [True, "text", 1]), data


def data_of(best: list[int]) -> bytes:
    return json.dumps(best).encode()


def test_functions_that_a_script_does_not_define_are_those_of_the_toolkit(mx, tmp_path: Path) -> None:
    model = folder_of(tmp_path / "model", "def predict_fn(data, model): return model(data)\n")
    (batch,) = golden("digits_cnn", 3)
    (wanted,) = called(mx, "digits_cnn", 3)
    with container(model) as url:
        for kind, body in (("application/x-npy", npy(batch)), ("application/json", json.dumps(batch.tolist()))):
            status, answered, data = invoked(url, body, Content_Type=kind, Accept="application/x-npy")
            assert (status, answered) == (200, "application/x-npy"), data
            assert same([np.load(io.BytesIO(data))], [wanted])
        status, answered, data = invoked(url, npy(batch), Content_Type="application/x-npy", Accept="text/csv")
        assert (status, answered) == (200, "text/csv"), data
        np.testing.assert_allclose(np.loadtxt(io.BytesIO(data), delimiter=","), wanted, rtol=1e-6)


def test_a_model_with_noted_shapes_is_a_module_as_in_the_toolkit(mx, tmp_path: Path) -> None:
    script = "def output_fn(prediction, accept): return str(prediction.shape), 'text/plain'\n"
    model = folder_of(tmp_path / "model", script)
    (model / "model-shapes.json").write_text('[{"name": "data", "shape": [2, 1, 8, 8]}]')
    with container(model) as url:
        (batch,) = golden("digits_cnn", 3)
        status, kind, data = invoked(url, npy(batch), Content_Type="application/x-npy")
        assert (status, kind, data) == (200, "text/plain", b"(3, 10)")


def test_answers_of_any_size_come_through_whole(tmp_path: Path) -> None:
    script = "def transform_fn(model, data, kind, accept): return b'%d' % len(data) * int(data), 'a/b'\n"
    with container(folder_of(tmp_path / "model", script)) as url:
        for size in (0, 1, 4000, 4096, 300_000):
            assert invoked(url, str(size), Content_Type="a/b") == (200, "a/b", str(len(str(size))).encode() * size)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "there is no 'inference.py' in"),
        ("x = 1\n", "it defines none of pre_model_fn, model_fn"),
        ("def predict_fn(data): return data\n", "predict_fn is called with data, model, and"),
        ("import nothing_of_this_name\n", "No module named 'nothing_of_this_name'"),
        ("def model_fn(folder): raise OSError('no model in ' + folder)\n", "no model in"),
        ("model_fn = 3\n", "model_fn is no function"),
        ("def transform_fn(m, d, c, a): ...\ndef input_fn(d, c): ...\n", "which takes the place of input_fn"),
    ],
)
def test_a_script_that_cannot_answer_ends_the_start_with_its_reason(script, words: str, tmp_path: Path) -> None:
    model = folder_of(tmp_path / "model", script)
    done = mxrt("serve", "--sagemaker", "--sagemaker-code", str(model), "--port", "0")
    assert done.returncode != 0 and words in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    if script is not None:
        assert f"hooks: {model / 'code' / 'inference.py'}: " in done.stderr, done.stderr


def test_a_script_in_an_archive_is_named_with_it(tmp_path: Path) -> None:
    model = folder_of(tmp_path / "model", "raise RuntimeError('boom')\n")
    held = {str(file.relative_to(model)): file.read_bytes() for file in model.rglob("*") if file.is_file()}
    archive = tarred(tmp_path / "model.tar.gz", held)
    for words in ("--check", "--print-config"):
        done = mxrt("serve", "--sagemaker", "--sagemaker-code", str(archive), words)
        assert f"hooks: {archive}/code/inference.py: boom" in (done.stderr or done.stdout), done


def test_the_code_of_a_model_does_not_run_without_the_option(tmp_path: Path) -> None:
    model = folder_of(tmp_path / "model", "raise SystemExit('the script ran')\n")
    done = mxrt("serve", "--sagemaker", str(model), "--shape", "-1,1,8,8", "--check")
    assert done.returncode == 0 and "the script ran" not in done.stdout + done.stderr, done.stderr


def test_the_option_is_for_a_container_with_one_model(tmp_path: Path) -> None:
    model = str(folder_of(tmp_path / "model", SCRIPT + FUNCTIONS))
    several = {"SAGEMAKER_MULTI_MODEL": "true"}
    for words, env in ((["--sagemaker-code", model], {}), (["--sagemaker", "--sagemaker-code", model], several)):
        done = mxrt("serve", *words, env=env)
        assert done.returncode == 2 and "runs the script of one model" in done.stderr, done.stderr
