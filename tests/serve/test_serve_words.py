"""`mxrt serve`, as operators and users read it: errors of loading, checks, lines, pages."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from serving import connect, digit, exchange, golden, model, post
from support import DIGITS, ROOT, RUN_MXRT, mxrt, run_python
from test_serve_arrays import npy
from test_serve_ends import command

SHAPE = ("--shape", "-1,1,8,8")
TOKEN = "a-token-of-the-tests"


@pytest.fixture
def settings(tmp_path) -> Path:
    return tmp_path / "serve.toml"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('dtypes = { data = "uint8" }', "input 'data': got uint8 (FILE:3: dtypes), wanted float32"),
        (
            'dtypes = { data = "uint8" }\nshapes = { data = [-1, 1, 8, 8] }',
            "input 'data': got uint8 (FILE:3: dtypes), wanted float32",
        ),
        ("shapes = { data = [-1, 3, 8, 8] }", "input 'data': got (1, 3, 8, 8) (FILE:3: shapes), wanted (1, 1, 8, 8)"),
        ("shapes = { date = [-1, 1, 8, 8] }", "FILE:3: shapes: there is no input 'date'; the inputs are 'data'"),
        ('dtypes = { date = "uint8" }', "FILE:3: dtypes: there is no input 'date'; the inputs are 'data'"),
        ("labels = 'serve.toml'\nshapes = { data = [-1, 1, 8, 8] }", "FILE:3: labels: 'FILE' has 4 names"),
        ("golden = 'serve.toml'\nshapes = { data = [-1, 1, 8, 8] }", "FILE:3: golden: 'FILE': this is no .npz"),
        ("golden = 'none.npz'\nshapes = { data = [-1, 1, 8, 8] }", "none.npz': there is no such file"),
        ("preprocess = { size = [9, 9] }\nshapes = { data = [-1, 1, 8, 8] }", "FILE:3: preprocess: input 'data'"),
        ("warm = [{ date = [1, 1, 8, 8] }]", "FILE:3: warm: there is no shape of the input 'data'"),
    ],
)
def test_an_error_of_loading_names_input_setting_and_what_is_wanted(settings, line: str, words: str) -> None:
    settings.write_text(f"[models.faces]\npath = '{DIGITS}'\n{line}\n")
    result = mxrt("serve", "--config", str(settings), "--check")
    assert (result.returncode, words.replace("FILE", str(settings)) in result.stderr) == (1, True), result.stderr


def test_a_model_that_did_not_answer_is_not_checked(settings) -> None:
    result = mxrt("serve", f"a={DIGITS}", "--check")
    words = "not tried: the shape of 'data' is not known; say it by shapes = { data = [-1, ...] }, or --shape a:data="
    assert (result.returncode, f"# a: {words}" in result.stdout, result.stderr) == (1, True, ""), result
    result = mxrt("serve", f"a={DIGITS}", "--check", *SHAPE)
    assert (result.returncode, result.stderr) == (0, ""), result
    settings.write_text(f"[models.a]\npath = '{DIGITS}'\nwarm = [[1, 1, 8, 8]]\n")
    result = mxrt("serve", "--config", str(settings), "--check")
    assert (result.returncode, result.stderr) == (0, ""), result


def test_a_model_is_named_with_the_number_of_its_parameters(tmp_path) -> None:
    for name in ("digits_cnn-symbol.json", "digits_cnn-0000.params"):
        shutil.copy(DIGITS / name, tmp_path)
    prefix = tmp_path / "digits_cnn"
    (tmp_path / "digits_cnn-0012.params").write_bytes((DIGITS / "digits_cnn-0000.params").read_bytes()[:5000])
    for said, words in (
        ("-0000", ""),
        ("-0000.params", ""),
        ("-0012", "'digits_cnn-0012.params' is truncated"),
        ("-0013", "there is no file 'digits_cnn-0013.params'"),
    ):
        result = mxrt("serve", f"{prefix}{said}", "--check", *SHAPE)
        assert (result.returncode == 0, words in result.stderr) == (not words, True), result
        assert words or result.stdout.startswith("digits_cnn: ")
    symbol = tmp_path / "digits_cnn-symbol.json"
    symbol.write_text(symbol.read_text()[:5000])
    result = mxrt("serve", f"{prefix}-0000", "--check", *SHAPE)
    assert ": digits_cnn-symbol.json: cannot load the symbol" in result.stderr
    assert "it ends too early; copy or download it again" in result.stderr


def test_a_model_is_found_in_folders_and_archives_as_other_programs_wrote_them(tmp_path) -> None:
    symbol, params = ((DIGITS / f"digits_cnn{end}").read_bytes() for end in ("-symbol.json", "-0000.params"))
    damaged = params[:5000]
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("mx-mod-symbol.json", symbol)
        archive.writestr("mx-mod-0000.params", params)
    forms = {
        "named": {"symbol.json": symbol, "params": params},
        "numbers": {"m-symbol.json": symbol, "m-0001.params": damaged, "m-12345.params": params},
        "plain": {"m-symbol.json": symbol, "m.params": params},
        "other": {"m-symbol.json": symbol, "weights.params": params},
        "deep": {"_export/1/m-symbol.json": symbol, "_export/1/m-0000.params": params, ".git/m-symbol.json": b""},
        "nested": {"model_algo-1": inner.getvalue()},
    }
    for form, files in forms.items():
        folder = tmp_path / form
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        with tarfile.open(tmp_path / f"{form}.tar.gz", "w:gz") as archive:
            archive.add(folder, ".")
        for path in (folder, f"{folder}.tar.gz"):
            result = mxrt("serve", path, "--check", *SHAPE)
            assert (result.returncode, result.stderr) == (0, ""), (form, result)
            assert form != "named" or result.stdout.startswith("named: "), "after its folder"
    result = mxrt("serve", tmp_path / "plain/m.params", "--check", *SHAPE)
    assert result.returncode == 0 and result.stdout.startswith("m: "), result


def test_an_archive_that_finds_no_room_names_the_folder_of_temporary_files(tmp_path) -> None:
    archive = tmp_path / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        for end in ("-symbol.json", "-0000.params"):
            made.add(DIGITS / f"digits_cnn{end}", f"m{end}")
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n{RUN_MXRT}"
    done = run_python(limited, "serve", f"m={archive}", "--check", env={"TMPDIR": str(tmp_path)})
    words = f"cannot be unpacked into '{tmp_path}': File too large; free some space there, set TMPDIR to another"
    assert done.returncode == 1 and words in done.stderr, done


def test_a_folder_or_archive_without_one_model_says_what_it_has(tmp_path) -> None:
    symbol = (DIGITS / "digits_cnn-symbol.json").read_bytes()
    cases = {
        "two": ({"a-symbol.json": symbol, "b-symbol.json": symbol}, "holds 2 models (a-symbol.json, b-symbol.json); "),
        "gluonts": ({"prediction_net-network.json": b"{}"}, "is a predictor of GluonTS whose network is Python code"),
        "alone": ({"m-0000.params": b""}, "'m-0000.params' has parameters alone, as save_parameters writes them"),
        "none": ({"readme.txt": b""}, "expected a file *-symbol.json, found readme.txt"),
    }
    for name, (files, words) in cases.items():
        (tmp_path / name).mkdir()
        for file, content in files.items():
            (tmp_path / name / file).write_bytes(content)
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            for file, content in files.items():
                archive.writestr(file, content)
        for path, remedy in ((tmp_path / name, "; name the symbol"), (tmp_path / f"{name}.zip", "; unpack it, and")):
            result = mxrt("serve", f"m={path}", "--check", *SHAPE)
            assert result.returncode == 2 and f"'{path.name}' holds" in result.stderr and words in result.stderr, result
            assert name != "two" or remedy in result.stderr
    result = mxrt("serve", "s3://bucket/model", "--check")
    assert "addresses of s3 are not read: download the model" in result.stderr


def more_than(folder: Path) -> Path:
    """A file of the network's parameters and two others."""
    code = """
import sys, mxrt as mx
values = mx.nd.load(sys.argv[1])
mx.nd.save(sys.argv[2], {**values, "arg:extra1": mx.nd.zeros((1,)), "aux:extra0": mx.nd.zeros((2,))})
"""
    file = folder / "more.params"
    assert run_python(code, str(DIGITS / "digits_cnn-0000.params"), str(file)).returncode == 0
    return file


def test_parameters_of_another_model_are_named(tmp_path) -> None:
    other = tmp_path / "other.params"
    mx_save = "import sys, mxrt as mx; mx.nd.save(sys.argv[1], {'arg:w': mx.nd.zeros((1,))})"
    assert run_python(mx_save, str(other)).returncode == 0
    result = mxrt("serve", DIGITS / "digits_cnn", "--params", other, "--check", "--shape=-1,1,8,8")
    words = "'other.params' has no value for the parameters 'digitsnet_conv0_weight', "
    assert result.returncode == 1 and words in result.stderr, result
    assert "it may be the file of another model" in result.stderr
    result = mxrt("serve", DIGITS / "digits_cnn", "--params", more_than(tmp_path), "--check", "--shape=-1,1,8,8")
    words = "'more.params' has values for 'extra0', 'extra1', which the symbol has not: it may be the file of"
    assert result.returncode == 1 and words in result.stderr, result
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone/m-symbol.json").write_bytes((DIGITS / "digits_cnn-symbol.json").read_bytes())
    result = mxrt("serve", tmp_path / "alone", "--check", "--shape=-1,1,8,8")
    words = "no parameter file was found for 'm-symbol.json': put one next to it, or name it with `params`"
    assert words in result.stderr, result
    assert result.returncode == 2 and "[MX-FILE]" in result.stderr, result  # as in other commands


def test_files_that_are_exchanged_are_called_that(tmp_path) -> None:
    shutil.copy(DIGITS / "digits_cnn-symbol.json", tmp_path / "m-0000.params")
    shutil.copy(DIGITS / "digits_cnn-0000.params", tmp_path / "m-symbol.json")
    result = mxrt("serve", tmp_path / "m", "--check", "--shape=-1,1,8,8")
    assert result.returncode == 1 and "m-symbol.json" in result.stderr, result
    assert "this is a parameter file" in result.stderr and "each other's place" in result.stderr


def test_a_certificate_that_is_none_is_wrong_data(tmp_path) -> None:
    file = tmp_path / "cert.pem"
    file.write_text("hi\n")
    words = ("--tls-certificate", file, "--tls-key", file, "--port", "0", "--shape=-1,1,8,8")
    result = mxrt("serve", DIGITS / "digits_cnn", *words)
    assert result.returncode == 1 and "there is no certificate in it" in result.stderr, result
    assert result.stderr.endswith("[MX-DATA]\n")


def test_files_of_an_archive_are_named_after_the_archive(tmp_path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as archive:
        archive.add(DIGITS / "digits_cnn-symbol.json", "m-symbol.json")
        entry = tarfile.TarInfo("m-0000.params")
        entry.size = len(pointer)
        archive.addfile(entry, io.BytesIO(pointer))
    result = mxrt("serve", tmp_path / "model.tar.gz", "--check", *SHAPE)
    assert result.returncode == 1
    assert "'model.tar.gz/m-0000.params' is not a valid parameter file" in result.stderr
    assert "run `git lfs pull` in its repository" in result.stderr
    result = mxrt("serve", "m=s3://bucket/model", "--check")
    assert (result.returncode, "addresses of s3 are not read" in result.stderr) == (2, True), result


def test_a_server_warns_of_a_model_that_did_not_answer(mx, capfd) -> None:
    with mx.serve.Server({"digits": DIGITS}, port=0) as server:
        assert server.models[0]["parameters"]["tried"].startswith("not tried: ")
    assert "model 'digits': not tried: the shape of 'data' is not known" in capfd.readouterr().err


def test_logits_are_no_probabilities(mx, tmp_path) -> None:
    labels = tmp_path / "synset.txt"
    labels.write_text("\n".join(f"digit {number}" for number in range(10)))
    symbol = mx.sym.load(str(DIGITS / "digits_cnn-symbol.json"))
    likely = tmp_path / "likely"
    likely.mkdir()
    shutil.copy(DIGITS / "digits_cnn-0000.params", likely / "m-0000.params")
    mx.sym.softmax(symbol, name="likely").save(str(likely / "m-symbol.json"))
    plain = model(mx, "digits_cnn")
    soft = mx.serve.Model(likely, shapes={"data": [-1, 1, 8, 8]})
    for one in (plain, soft):
        one.settings["labels"] = labels
    with mx.serve.Server({"plain": plain, "soft": soft}, port=0) as server:
        found = {}
        for name in ("plain", "soft"):
            with contextlib.closing(connect(server)) as connection:
                response, data = exchange(connection, f"/predictions/{name}", npy(golden("digits_cnn", 1)[0]))
                assert response.status == 200, data
                found[name] = json.loads(data)
    assert [sorted(row) for row in found["plain"]] == [["class", "score"]] * 5
    assert [sorted(row) for row in found["soft"]] == [["class", "probability"]] * 5
    assert [row["class"] for row in found["plain"]] == [row["class"] for row in found["soft"]]
    assert 0.5 < sum(row["probability"] for row in found["soft"]) <= 1.0001


@pytest.mark.parametrize(("names", "words"), [(9, "synset.txt' has 9 names; the output '.*' has 10 classes")])
def test_labels_are_as_many_as_classes(mx, tmp_path, names: int, words: str) -> None:
    labels = tmp_path / "synset.txt"
    labels.write_text("\n".join(map(str, range(names))))
    wrong = model(mx, "digits_cnn")
    wrong.settings["labels"] = labels
    with pytest.raises(mx.MXNetError, match=words):
        mx.serve.Server({"digits": wrong}, port=0).start()
    several = model(mx, "ssd_digits")
    several.settings["labels"] = labels
    with pytest.raises(mx.MXNetError, match="the classes of one output; the model has"):
        mx.serve.Server({"ssd": several}, port=0).start()


def test_every_line_is_an_object_with_time_and_level(tmp_path) -> None:
    options = ("--logs", "json", "--log-requests", "on", "--port", "0", "--host", "0.0.0.0")
    with command(f"digits_cnn={DIGITS}", *options) as (child, server, first):
        address = type("Address", (), {"url": server.url.replace("0.0.0.0", "127.0.0.1")})
        assert post(address, digit())[0] == 200
        status, text = post(address, "{")
        child.terminate()
        child.wait(60)
        lines = [json.loads(line) for line in [first, *child.stdout, *child.stderr]]
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]), line
        assert line["level"] in ("info", "warning", "error") and line["message"], line
    found = {line["message"].partition(" ")[0]: line for line in lines}
    assert found["data"]["model"] == "digits_cnn"  # what it is, and where
    assert "nothing checks who asks" in found["0.0.0.0"]["message"]
    assert (found["not"]["model"], found["not"]["level"]) == ("digits_cnn", "warning")
    requests = [line for line in lines if line["message"] == "request"]
    assert [(line["status"], line["outcome"]) for line in requests] == [(200, "success"), (status, "invalid")]
    assert requests[1]["reason"] == json.loads(text)["error"] and "reason" not in requests[0]
    result = mxrt("serve", "/none", "--logs", "json")
    assert result.returncode == 2
    assert json.loads(result.stderr)["level"] == "error"


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
def test_the_command_to_paste_works_with_tokens(tmp_path) -> None:
    tokens = tmp_path / "to ken's"
    tokens.write_text(f"# of the tests\n\n  {TOKEN}  \nanother-token-of-the-tests\n")
    with command(f"digits_cnn={DIGITS}", *SHAPE, "--port", "0", "--tokens", str(tokens)) as (_, _, line):
        asking = line.partition("; try: ")[2]
        assert TOKEN not in asking
        done = subprocess.run(["sh", "-c", asking], capture_output=True, timeout=600, check=True)
        assert json.loads(done.stdout)["outputs"][0]["shape"] == [1, 10], done


# ---- pages -----------------------------------------------------------------------------------


def blocks(language: str) -> list[str]:
    pages = [(ROOT / f"docs/serving{part}.md").read_text() for part in ("", "-operation", "-reference")]
    return [block for page in pages for block in re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)]


@pytest.fixture
def faces(mx, tmp_path) -> Path:
    """A folder in which the examples of the pages find their model: images, and five classes."""
    folder = tmp_path / "models"
    folder.mkdir()
    data = mx.sym.var("data")
    pooled = mx.sym.Flatten(mx.sym.Pooling(data, global_pool=True, pool_type="avg", kernel=(1, 1)))
    mx.sym.softmax(mx.sym.FullyConnected(pooled, num_hidden=5, name="fc"), name="softmax").save(
        str(folder / "faces-symbol.json")
    )
    weights = {"arg:fc_weight": mx.nd.array(np.eye(5, 3)), "arg:fc_bias": mx.nd.zeros(5)}
    mx.nd.save(str(folder / "faces-0000.params"), weights)
    (folder / "synset.txt").write_text("\n".join("abcde"))
    return tmp_path


def run_in(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "MXRT_SERVE_TOKENS": str(folder / "tokens")}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, env=env, check=False)


def test_settings_of_the_page_load_a_model(faces) -> None:
    (faces / "tokens").write_text(TOKEN)
    found = [block for block in blocks("toml") if "[models.faces]" in block]
    assert len(found) >= 2
    for block in found:
        if "shapes" not in block:
            block += "shapes = { data = [-1, 3, 224, 224] }\n"
        (faces / "serve.toml").write_text(block.replace("/etc/mxrt/tokens", str(faces / "tokens")))
        done = run_in(faces, [sys.executable, "-m", "mxrt", "serve", "--config", "serve.toml", "--check"])
        assert (done.returncode, done.stderr) == (0, ""), (block, done)


def test_the_first_command_of_the_page_serves(faces) -> None:
    command = blocks("sh")[0].split()
    assert command[:2] == ["mxrt", "serve"]
    (faces / "tokens").write_text(TOKEN)
    done = run_in(faces, [sys.executable, "-m", *command, "--check"])
    assert (done.returncode, done.stderr) == (0, ""), done


def test_python_of_the_page_runs(mx, faces) -> None:
    """Programs that serve run unchanged. Clients ask a server on the page's port."""
    found = blocks("python")
    serving = next(block for block in found if "mx.serve.Server({" in block)
    serving = re.sub(r"^mx\.serve\.Server\(.*\)\.run\(\).*\n", "", serving, flags=re.M)
    done = subprocess.run(
        [sys.executable, "-c", serving], cwd=faces, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, "'faces'" in done.stdout) == (0, True), done
    asking = next(block for block in found if "urllib" in block)
    shapes = {"data": [-1, 3, 224, 224]}
    hooks = next(block for block in found if "def preprocess" in block)
    (faces / "hooks.py").write_text(hooks)
    with mx.serve.Server(
        {
            "faces": mx.serve.Model(faces / "models/faces", shapes=shapes),
            "hooked": mx.serve.Model(faces / "models/faces", shapes=shapes, hooks=faces / "hooks.py"),
        },
        port=0,
    ) as server:
        code = asking.replace("http://127.0.0.1:8000", server.url)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
        assert (done.returncode, done.stdout) == (0, "[1, 5]\n"), done
        body = json.dumps(np.zeros((1, 3, 224, 224)).tolist())
        with contextlib.closing(connect(server)) as connection:
            response, data = exchange(connection, "/models/hooked/infer", body)
            assert response.status == 200, data
            assert set(json.loads(data)) == {"class"}


def test_manifests_say_the_shape_of_the_input() -> None:
    for file in ("kubernetes/mxrt.yaml", "kserve/mxrt.yaml"):
        assert re.search(r'"--shape", ".*:-1,3,224,224"', (ROOT / "deploy" / file).read_text()), file
