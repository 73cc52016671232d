"""`mxrt serve`: models come and go under load, and what is wrong with a new one changes nothing."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import signal
import sys
import tarfile
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving import answer, called, connect, exchange, gauge, golden, meta, request, same, wait_until
from serving_grpc import ask as ask_grpc
from serving_grpc import channel, refused
from support import DIGITS, ROOT, in_threads, run, run_python
from test_serve_ends import command

SHAPE = "shapes = { data = [-1, 1, 8, 8] }\n"


def place(folder: Path, settings: str = "", scale: float | None = None, mx: Any = None) -> Path:
    """Files of digits_cnn. All parameters are times `scale`, so that versions can be told apart."""
    folder.mkdir(parents=True)
    shutil.copy(DIGITS / "digits_cnn-symbol.json", folder)
    if scale is None:
        shutil.copy(DIGITS / "digits_cnn-0000.params", folder)
    else:
        params = mx.nd.load(str(DIGITS / "digits_cnn-0000.params"))
        mx.nd.save(str(folder / "digits_cnn-0000.params"), {key: value * scale for key, value in params.items()})
    (folder / "mxrt.toml").write_text(SHAPE + settings)
    return folder


def states(server: Any) -> dict[tuple[str, str], tuple[str, str]]:
    with contextlib.closing(connect(server)) as connection:
        entries = json.loads(exchange(connection, "/v2/repository/index", b"{}")[1])
    return {(entry["name"], entry["version"]): (entry["state"], entry["reason"]) for entry in entries}


def repository(server: Any, call: str, body: bytes = b"") -> tuple[int, str]:
    with contextlib.closing(connect(server)) as connection:
        response, data = exchange(connection, f"/v2/repository/models/{call}", body, method="POST")
        return response.status, data.decode()


def ask(server: Any, model: str = "digits", version: str = "") -> tuple[str, list[np.ndarray]]:
    body, headers = request(["data"], golden("digits_cnn", 1), parameters={"binary_data_output": True})
    path = f"/v2/models/{model}{version and '/versions/' + version}/infer"
    with contextlib.closing(connect(server)) as connection:
        head, found = answer(*exchange(connection, path, body, headers))
    return head["model_version"], found


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "repository"


def test_bodies_that_are_no_objects_are_refused(mx, root) -> None:
    place(root / "digits/1")
    with (
        mx.serve.Server(repository=root, port=0, control="explicit") as server,
        contextlib.closing(connect(server)) as connection,
    ):
        for path, body, words in (
            ("index", "[1]", "the body has to be a JSON object, not [1]"),
            ("index", "3", "the body has to be a JSON object, not 3"),
            ("index", '{"ready": 1}', "'ready' has to be true or false, not 1"),
            ("models/digits/load", '{"parameters": [1]}', "'parameters' has to be an object, not [1]"),
        ):
            response, data = exchange(connection, f"/v2/repository/{path}", body, method="POST")
            assert (response.status, words in data.decode()) == (400, True), data
        for body in ("", "{}", '{"ready": null}', '{"ready": true}'):
            response, data = exchange(connection, "/v2/repository/index", body, method="POST")
            assert (response.status, len(json.loads(data))) == (200, 1), data


def test_versions_are_those_that_are_chosen(mx, root) -> None:
    wanted = called(mx, "digits_cnn", 1)
    place(root / "latest/2")
    place(root / "latest/10")
    for version in ("1", "2"):
        place(root / f"all/{version}")
    (root / "all/mxrt.toml").write_text('versions = "all"\n')
    place(root / "flat")
    (root / ".hidden").mkdir()
    with mx.serve.Server(repository=root, port=0) as server:
        assert {key: state for key, (state, _) in states(server).items()} == {
            ("latest", "2"): "UNAVAILABLE",
            ("latest", "10"): "READY",
            ("all", "1"): "READY",
            ("all", "2"): "READY",
            ("flat", "1"): "READY",
        }
        for model, version, found in (("latest", "", "10"), ("all", "", "2"), ("all", "1", "1"), ("flat", "1", "1")):
            said, made = ask(server, model, version)
            assert (said, same(made, wanted)) == (found, True), model
        with contextlib.closing(connect(server)) as connection:
            assert json.loads(exchange(connection, "/v2/models/all")[1])["versions"] == ["1", "2"]
            response, data = exchange(connection, "/v2/models/latest/versions/2")
            assert (response.status, "not among the versions" in data.decode()) == (503, True), data
            about = json.loads(exchange(connection, "/v2")[1])["extensions"]
            assert "model_repository" not in about
        assert repository(server, "flat/load")[0] == 400


def test_a_new_version_takes_over_under_load_in_one_step(mx, root) -> None:
    place(root / "digits/1")
    first = called(mx, "digits_cnn", 1)
    with mx.serve.Server(repository=root, port=0, control="explicit") as server:
        assert ask(server)[0] == "1"
        place(root / "digits/2", scale=0.5, mx=mx)
        seen: dict[str, list[np.ndarray]] = {}
        done = threading.Event()

        def caller(number: int) -> None:
            body, headers = request(["data"], golden("digits_cnn", 1), parameters={"binary_data_output": True})
            turn, before = 0, "1"
            with contextlib.closing(connect(server)) as connection:
                while turn < 20 or not done.is_set():
                    turn += 1
                    if number == 0 and turn == 10:
                        assert repository(server, "digits/load") == (200, "{}")
                        done.set()
                    head, found = answer(*exchange(connection, "/v2/models/digits/infer", body, headers))
                    version = head["model_version"]
                    assert version >= before, "nobody goes back"
                    before = version
                    assert same(found, seen.setdefault(version, found)), "no answer is of two versions"

        in_threads(8, caller)
        assert set(seen) == {"1", "2"}
        assert same(seen["1"], first) and not same(seen["2"], first)
        assert ask(server)[0] == "2"
        assert states(server)[("digits", "1")][0] == "UNAVAILABLE"


def test_a_version_that_does_not_load_leaves_the_old_one(mx, root) -> None:
    wanted = called(mx, "digits_cnn", 1)
    place(root / "digits/1")
    with mx.serve.Server(repository=root, port=0, control="explicit") as server:
        bad = root / "digits/2"

        def fails(words: str) -> None:
            status, text = repository(server, "digits/load")
            assert (status, words in text) == (500, True), text
            assert "MX-OPERATOR" not in text, text
            assert str(root) not in text
            version, found = ask(server)
            assert (version, same(found, wanted)) == ("1", True)
            state, reason = states(server)[("digits", "2")]
            assert (state, words in reason) == ("UNAVAILABLE", True), reason

        place(bad)
        params = (bad / "digits_cnn-0000.params").read_bytes()
        (bad / "digits_cnn-0000.params").write_bytes(params[:-7])
        fails("digits_cnn-0000.params")
        (bad / "digits_cnn-0000.params").unlink()
        fails("no parameter file was found for 'digits_cnn-symbol.json'")
        (bad / "digits_cnn-0000.params").write_bytes(params)
        (bad / "mxrt.toml").write_text(SHAPE + "bach = 1")
        fails("did you mean 'batch'")
        (bad / "mxrt.toml").write_text("shapes = { data = [-1, 2, 8, 8] }")
        fails("weight has shape (16, 1, 3, 3)")
        (bad / "mxrt.toml").write_text(SHAPE + "params = '../../../elsewhere.params'")
        (root.parent / "elsewhere.params").write_bytes(params)
        fails("leads out of the repository")
        (bad / "mxrt.toml").write_text(SHAPE)
        (bad / "digits_cnn-0000.params").unlink()
        (bad / "digits_cnn-0000.params").symlink_to(root.parent / "elsewhere.params")
        status, text = repository(server, "digits/load")
        assert (status, "leads out of the repository" in text) == (500, True), text
        assert ask(server)[0] == "1"
        (bad / "digits_cnn-0000.params").unlink()
        (bad / "digits_cnn-0000.params").write_bytes(params)
        assert repository(server, "digits/load")[0] == 200
        assert ask(server)[0] == "2"
        assert states(server)[("digits", "2")] == ("READY", "")


def test_a_golden_file_is_compared_before_the_model_serves(mx, root) -> None:
    place(root / "digits/1", "golden = 'golden.npz'\nwarm = [[3, 1, 8, 8], { data = [2, 1, 8, 8] }]")
    output = meta("digits_cnn")["outputs"][0]["name"]
    (inputs,), (outputs,) = golden("digits_cnn", 3), called(mx, "digits_cnn", 3)
    np.savez(root / "digits/1/golden.npz", **{"data": inputs, output: outputs})
    with mx.serve.Server(repository=root, port=0, control="explicit") as server:
        assert states(server)[("digits", "1")] == ("READY", "")
        place(root / "digits/2", "golden = 'golden.npz'")
        for changed, words in (
            ({output: outputs + 0.1}, "where the file has"),
            ({"other": outputs}, f"golden.npz': it has none of the outputs '{output}'; its arrays are 'data', 'other'"),
        ):
            np.savez_compressed(root / "digits/2/golden.npz", **{"data": inputs, **changed})
            status, text = repository(server, "digits/load")
            assert (status, words in text) == (500, True), text
        (root / "digits/2/golden.npz").write_bytes(b"PK")
        assert "golden: " in repository(server, "digits/load")[1]
        assert ask(server)[0] == "1"


def test_models_are_unloaded_and_come_back(mx, root) -> None:
    place(root / "digits/1")
    place(root / "other/1")
    with mx.serve.Server(repository=root, port=0, control="explicit") as server, channel(server) as grpc:
        with contextlib.closing(connect(server)) as connection:
            assert "model_repository" in json.loads(exchange(connection, "/v2")[1])["extensions"]
        assert repository(server, "digits/unload", b'{"parameters": {"unload_dependents": false}}') == (200, "{}")
        assert states(server)[("digits", "1")] == ("UNAVAILABLE", "it was unloaded")
        with contextlib.closing(connect(server)) as connection:
            response, _ = exchange(connection, "/v2/models/digits/ready")
            assert response.status == 503
            assert exchange(connection, "/v2/health/ready")[0].status == 200
        assert ask(server, "other")[0] == "1"
        ask_grpc(grpc, "RepositoryModelLoad", model_name="digits")
        assert ask(server)[0] == "1"
        ask_grpc(grpc, "RepositoryModelUnload", model_name="digits")
        assert states(server)[("digits", "1")][0] == "UNAVAILABLE"
        with refused("NOT_FOUND", "there is no model 'none'"):
            ask_grpc(grpc, "RepositoryModelLoad", model_name="none")
        assert repository(server, "none/load")[0] == repository(server, "none/unload")[0] == 404
        assert repository(server, "digits/load", b'{"parameters": {"config": "{}"}}')[0] == 400
        assert repository(server, "digits/load", b"{")[0] == 400
        server.load("digits")
        assert ask(server)[0] == "1"


def test_the_folder_is_followed(mx, root) -> None:
    place(root / "digits/1")
    with mx.serve.Server(repository=root, port=0, control="poll", poll=0.05) as server:
        assert ask(server)[0] == "1"
        place(root / "digits/2")
        wait_until(lambda: ask(server)[0] == "2")
        place(root / "new")
        wait_until(lambda: ("new", "1") in states(server) and states(server)[("new", "1")][0] == "READY")
        shutil.rmtree(root / "new")
        wait_until(lambda: ("new", "1") not in states(server))
        (root / "digits/2/digits_cnn-symbol.json").write_text("{")
        wait_until(lambda: states(server)[("digits", "2")][1])
        assert (ask(server)[0], states(server)[("digits", "2")][0]) == ("2", "READY")
        shutil.rmtree(root / "digits/2")
        wait_until(lambda: ask(server)[0] == "1")


@pytest.mark.parametrize("ending", [".zip", ".mar", ".tar.gz"])
def test_archives_are_models(mx, root, tmp_path, monkeypatch, ending: str) -> None:
    root.mkdir()
    names = ("digits_cnn-symbol.json", "digits_cnn-0000.params")
    signature = json.dumps({"inputs": [{"data_name": "data", "data_shape": [0, 1, 8, 8]}]}).encode()
    files = {f"inside/{name}": (DIGITS / name).read_bytes() for name in names}
    files |= {"inside/signature.json": signature, "MAR-INF/MANIFEST.json": b"{}"}
    archive = root / f"digits{ending}"
    if ending == ".tar.gz":
        with tarfile.open(archive, "w:gz") as made:
            for name, content in files.items():
                about = tarfile.TarInfo(name)
                about.size = len(content)
                made.addfile(about, io.BytesIO(content))
    else:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
            for name, content in files.items():
                made.writestr(name, content)
    # Of this test alone: others unpack archives at the same time.
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    monkeypatch.setenv("TMPDIR", str(unpacked))
    wanted = called(mx, "digits_cnn", 1)
    for server in (mx.serve.Server(repository=root, port=0), mx.serve.Server(archive, port=0)):
        with server:
            assert same(ask(server)[1], wanted)
            assert server.models[0]["inputs"][0]["shape"] == [-1, 1, 8, 8]
    wait_until(lambda: not list(unpacked.iterdir()))
    with pytest.raises(mx.base.MXNetError, match="more than 1000 bytes"):
        mx.serve.Server(archive, port=0, max_unpacked=1000).start()


def test_a_signal_loads_again(mx, root) -> None:
    place(root / "digits/1")
    with command("--repository", str(root), "--port", "0") as (child, server, _):
        assert ask(server)[0] == "1"
        place(root / "digits/2")
        child.send_signal(signal.SIGHUP)
        wait_until(lambda: ask(server)[0] == "2")
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
        assert "model 'digits': version 2 loaded" in child.stderr.read()


def test_the_server_is_ready_when_what_it_needs_serves(mx, root) -> None:
    place(root / "digits/1")
    place(root / "broken/1", "required = false\n")
    (root / "broken/1/digits_cnn-0000.params").write_bytes(b"")
    with mx.serve.Server(repository=root, port=0) as server, contextlib.closing(connect(server)) as connection:
        assert exchange(connection, "/v2/health/ready")[0].status == 200
        assert gauge(server, "mxrt_ready") == 1
    (root / "broken/1/mxrt.toml").write_text(SHAPE)
    with mx.serve.Server(repository=root, port=0) as server, contextlib.closing(connect(server)) as connection:
        response, data = exchange(connection, "/v2/health/ready")
        assert (response.status, "'broken'" in data.decode()) == (503, True), data
        assert gauge(server, "mxrt_ready") == 0
        assert exchange(connection, "/v2/models/digits/ready")[0].status == 200


def test_memory_is_bounded_and_the_least_used_model_makes_room(root) -> None:
    for name in ("a", "b", "c"):
        place(root / f"{name}/1")
    code = """
    import os, sys
    import mxrt as mx

    mx._mxrt.set_memory_limit(5 * os.path.getsize(sys.argv[3]))
    with mx.serve.Server(repository=sys.argv[1], port=0, evict=sys.argv[2]) as server:
        for entry in server.index:
            print(entry["name"], entry["state"], entry["reason"])
    """
    params = DIGITS / "digits_cnn-0000.params"
    results = {evict: run_python(code, root, evict, params) for evict in ("off", "lru")}
    for result in results.values():
        assert result.returncode == 0, result.stderr
    plain, evicting = (result.stdout.splitlines() for result in results.values())
    assert [line.split()[1] for line in plain] == ["READY", "READY", "UNAVAILABLE"], plain
    assert "(MXRT_MEMORY_LIMIT_MB)" in plain[2]
    assert [line.split()[1] for line in evicting] == ["UNAVAILABLE", "READY", "READY"], evicting
    assert "unused for longest" in evicting[0]


def test_a_model_that_made_room_comes_back_with_its_next_request(mx, root) -> None:
    for name in ("a", "b", "c"):
        place(root / f"{name}/1")
    code = """
    import os, sys
    from concurrent.futures import ThreadPoolExecutor
    sys.path.insert(0, sys.argv[3])
    import mxrt as mx
    from serving import golden, post, request, DIGIT

    mx._mxrt.set_memory_limit(5 * os.path.getsize(sys.argv[2]))
    body, headers = request(["data"], golden("digits_cnn", 1))
    with mx.serve.Server(repository=sys.argv[1], port=0, evict="lru") as server:
        with ThreadPoolExecutor(8) as pool:
            for name in "abcab":
                print(name, {text for _, text in pool.map(lambda _: post(server, body, headers, name), range(8))})
        print({entry["name"]: entry["state"] for entry in server.index}["b"])
    """
    result = run_python(code, root, DIGITS / "digits_cnn-0000.params", ROOT / "tests")
    assert result.returncode == 0, result.stderr
    *answers, state = result.stdout.splitlines()
    assert len(answers) == 5 and all(line.count("model_name") == 1 for line in answers), answers
    assert state == "READY"
    # Eight concurrent requests load it once.
    assert result.stderr.count("version 1 loaded") <= 3 + 5, result.stderr


def test_a_model_that_cannot_come_back_is_tried_once(root) -> None:
    for name in ("a", "b", "c"):
        place(root / f"{name}/1", 'hooks = "hooks.py"\n' if name == "a" else "")
    hooks = root / "a/1/hooks.py"
    hooks.write_text("def postprocess(arrays): return None\n")
    code = """
    import os, sys
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path
    sys.path.insert(0, sys.argv[3])
    import mxrt as mx
    from serving import golden, post, request

    mx._mxrt.set_memory_limit(5 * os.path.getsize(sys.argv[2]))
    body, headers = request(["data"], golden("digits_cnn", 1))
    folder = Path(sys.argv[1])
    tried = folder.parent / "tried"
    with mx.serve.Server(repository=folder, port=0, evict="lru") as server:
        (folder / "a/1/hooks.py").write_text(f"open({str(tried)!r}, 'a').write('x')\\nraise ValueError('no')")
        print(post(server, body, headers, "a/versions/7")[0], tried.exists())
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: post(server, body, headers, "a"), range(16)))
        print({status for status, _ in answers}, tried.read_text(), all("no" in text for _, text in answers))
        (folder / "a/1/hooks.py").write_text("def postprocess(arrays): return None\\n")
        print(post(server, body, headers, "a")[0])
    """
    result = run_python(code, root, DIGITS / "digits_cnn-0000.params", ROOT / "tests")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["404 False", "{503} x True", "200"], (result.stdout, result.stderr)


def test_a_signal_reads_the_settings_again(mx, tmp_path) -> None:
    file = tmp_path / "serve.toml"

    def write(port: int, name: str, more: str = "") -> None:
        shape = "shapes = { data = [-1, 1, 8, 8] }"
        models = f"[models.{name}]\npath = '{DIGITS}'\n{shape}\n{more}[models.same]\npath = '{DIGITS}'\n{shape}\n"
        file.write_text(f"port = {port}\n{models}")

    write(0, "old")
    with command("--config", str(file), "--grpc-port", "off") as (child, server, _):

        def states() -> dict[str, int]:
            with contextlib.closing(connect(server)) as connection:
                return {
                    name: exchange(connection, f"/v2/models/{name}/ready")[0].status for name in ("old", "new", "same")
                }

        wait_until(lambda: states() == {"old": 200, "new": 404, "same": 200})
        for wrong, words in (("port = ", "serve.toml:1"), ("port = 0", "there is no model to be served")):
            file.write_text(wrong)
            child.send_signal(signal.SIGHUP)
            line = child.stderr.readline()
            assert "the settings are as before" in line and words in line
            for _ in range(2):
                assert "loaded again" in child.stderr.readline()
        write(7, "new", "batch = 4\n")
        child.send_signal(signal.SIGHUP)
        wait_until(lambda: states() == {"old": 404, "new": 200, "same": 200})
        with contextlib.closing(connect(server)) as connection:
            batch = json.loads(exchange(connection, "/v2/models/new")[1])["parameters"]["batch"]
        assert batch.startswith("at most 4 rows")
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
        said = child.stderr.read()
    assert "the new value of port counts when the server starts again" in said, said
    assert "model 'old': it is not named any more" in said, said


# ---- files ---------------------------------------------------------------------------------------


def test_a_model_without_parameters_serves(mx, tmp_path: Path) -> None:
    """MXNet writes a file of 32 bytes for it, without arrays and without names."""
    prefix = str(tmp_path / "log")
    mx.model.save_checkpoint(prefix, 0, mx.sym.log(mx.sym.var("data"), name="out"), {}, {})
    models = {"m": mx.serve.Model(prefix, shapes={"data": [-1, 2]})}
    asked = {"inputs": [{"name": "data", "shape": [3, 2], "datatype": "FP32", "data": [1] * 6}]}
    with mx.serve.Server(models, port=0, grpc_port="off") as server, contextlib.closing(connect(server)) as connection:
        response, data = exchange(connection, "/v2/models/m/infer", json.dumps(asked))
        assert response.status == 200, data
        assert json.loads(data)["outputs"][0]["data"] == [0] * 6


def test_an_archive_says_where_it_cannot_be_unpacked(mx, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    prefix = str(tmp_path / "models" / "m")
    mx.model.save_checkpoint(prefix, 0, mx.sym.log(mx.sym.var("data")), {}, {})
    with zipfile.ZipFile(tmp_path / "models" / "m.zip", "w") as archive:
        for ending in ("-symbol.json", "-0000.params"):
            archive.write(f"{prefix}{ending}", f"m{ending}")
    absent = str(tmp_path / "absent")
    arguments = [sys.executable, "-m", "mxrt", "serve", str(tmp_path / "models" / "m.zip"), "--check", "--port", "0"]
    done = run(arguments, env={"TMPDIR": absent})
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert f"'{absent}'" in said and "set TMPDIR to another folder" in said
