"""`mxrt serve`: settings from files, the environment and options."""

from __future__ import annotations

import json
import os
import re
import zipfile

import pytest

from support import DIGITS, mxrt


def printed(*arguments: str, env: dict[str, str] | None = None) -> str:
    result = mxrt("serve", *arguments, "--print-config", env={**os.environ, **(env or {})})
    assert (result.returncode, result.stderr) == (0, ""), result
    return result.stdout


def test_file_environment_and_options_are_laid_over_each_other(tmp_path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(
        f"""
port = 1
max_body = "3 MiB"
grace = 2.5
batch = "auto"

[models.digits]
path = {json.dumps(str(DIGITS))}
shapes = {{ data = [-1, 1, 8, 8] }}
batch = 8
"""
    )
    env = {"MXRT_SERVE_CONFIG": str(file), "MXRT_SERVE_PORT": "2", "MXRT_SERVE_QUEUE_BYTES": "1 GB"}
    text = printed("--port", "3", f"more={DIGITS}", "--deadline", "more=7", env=env)
    lines = text.splitlines()
    for line in (
        "port = 3  # --port",
        f'max_body = "3 MiB"  # {file}:3',
        f"grace = 2.5  # {file}:4",
        "queue_bytes = 1000000000  # MXRT_SERVE_QUEUE_BYTES",
        'host = "127.0.0.1"  # default',
        "# tokens is not set",
    ):
        assert line in lines, text
    digits, more = text.split("[models.digits]")[1].split("[models.more]")
    assert f"batch = 8  # {file}:10" in digits and f"shapes = {{ data = [-1, 1, 8, 8] }}  # {file}:9" in digits
    assert f'batch = "auto"  # {file}:5' in more and "deadline = 7  # --deadline" in more
    again = tmp_path / "again.toml"
    again.write_text(text)

    def without_origins(text: str) -> list[str]:
        return [line.split("  # ")[0] for line in text.splitlines()]

    assert without_origins(printed("--config", str(again))) == without_origins(text)


def test_settings_are_printed_as_data(tmp_path) -> None:
    name = 'a = "b"  # c'
    hooks = tmp_path / "hooks = 1.py"
    hooks.write_text("def preprocess(request): ...\n")
    (tmp_path / "serve.toml").write_text(
        f"[models.{json.dumps(name)}]\npath = {json.dumps(str(DIGITS))}\nhooks = {json.dumps(str(hooks))}\n"
        "shapes = { data = [-1, 1, 8, 8] }\nwarm = [{ data = [1, 1, 8, 8] }]\n"
    )
    data = json.loads(printed("--config", str(tmp_path / "serve.toml"), "--grace=2.5", "--json"))
    assert data["settings"]["grace"] == {"value": 2.5, "by": "--grace"}
    assert data["settings"]["host"] == {"value": "127.0.0.1", "by": "default"}
    assert data["settings"]["tokens"] == {"value": None, "by": None}
    assert data["settings"]["logs"] == {"value": "json", "by": "--logs"}
    assert data["settings"]["compress"]["value"] is True
    model = data["models"][name]
    assert model["path"] == {"value": str(DIGITS), "by": f"{tmp_path}/serve.toml:2"}
    assert model["hooks"]["value"] == str(hooks)
    assert model["warm"]["value"] == [{"data": [1, 1, 8, 8]}]
    assert (data["batch"], data["error"]) == ({name: "off: it is switched off"}, None)
    wrong = json.loads(printed(f"d={tmp_path / 'none'}", "--json"))
    assert wrong["batch"] == {} and "none" in wrong["error"]


@pytest.mark.parametrize("option", ["--params", "--hooks", "--labels", "--golden"])
@pytest.mark.parametrize("of", ["", "digits="])
def test_a_file_of_a_model_that_is_not_there_is_an_error_of_the_command_line(option: str, of: str) -> None:
    result = mxrt("serve", f"digits={DIGITS}", option, f"{of}nofile", "--check")
    words = f"mxrt serve: {option} 'nofile': there is no such file; expected a file [MX-VALUE]\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", words), result


def test_a_model_that_cannot_be_found_has_the_status_that_it_has_for_other_commands(tmp_path) -> None:
    (tmp_path / "picture").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(8))
    (tmp_path / "gone-symbol.json").symlink_to(tmp_path / "nothing")
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.writestr("readme", "x")
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        for name in ("a-symbol.json", "b-symbol.json"):
            archive.writestr(name, "{}")
    (tmp_path / "no.zip").write_text("no archive")
    for name, status, code, words in (
        ("picture", 1, "MX-DATA", "is no model"),
        ("gone", 2, "MX-FILE", "is a link to"),
        ("none.zip", 2, "MX-FILE", "holds no model"),
        ("two.zip", 2, "MX-FILE", "holds 2 models"),
        ("no.zip", 1, "MX-DATA", "is no archive"),
    ):
        for command in (("serve", "--check"), ("inspect",)):
            result = mxrt(*command, str(tmp_path / name))
            assert (result.returncode, result.stdout) == (status, "") and words in result.stderr, result
            assert command == ("inspect",) or result.stderr.endswith(f"[{code}]\n"), result
    result = mxrt("serve", "--check", f"{DIGITS}/digits_cnn-0077")
    assert result.returncode == 2 and "digits_cnn-0077.params'" in result.stderr, result


def test_a_file_of_settings_is_served(mx, good, tmp_path) -> None:
    (tmp_path / "model").symlink_to(DIGITS)
    (tmp_path / "serve.toml").write_text('port = 0\ngrpc_port = "off"\n[models.digits_cnn]\npath = "model"\n')
    with mx.serve.Server(config=tmp_path / "serve.toml") as server:
        good(server)
        with pytest.raises(mx.MXNetError, match="does not speak gRPC"):
            server.grpc  # noqa: B018


def test_what_is_wrong_is_named_with_its_place(mx, tmp_path) -> None:
    file = tmp_path / "serve.toml"
    digits = str(DIGITS)
    for text, words in {
        "prot = 1": "serve.toml:1: there is no key 'prot'; did you mean 'port'?",
        "port = 1\n\nport = 2": "serve.toml:3: ",
        "port = [": "serve.toml:1: ",
        "[models.a]\npath = 'x'\nbach = 1": "serve.toml:3: there is no key 'bach'; did you mean 'batch'?",
        "queue_bytes = '3 ells'": "queue_bytes is 3 ells; expected a number of bytes",
        "[models.a]\nbatch = 8": "the model 'a' has no path",
    }.items():
        file.write_text(text)
        result = mxrt("serve", "--config", str(file), "--check")
        assert (result.returncode, result.stdout) == (2, ""), result
        assert words in result.stderr and result.stderr.count("\n") == 1, result.stderr
    result = mxrt("serve", digits, "--check", env={**os.environ, "MXRT_SERVE_HOTS": "x"})
    assert (result.returncode, "did you mean MXRT_SERVE_HOST?" in result.stderr) == (2, True), result
    for settings, words in (
        ({"prot": 1}, "there is no setting 'prot'; did you mean 'port'"),
        ({"port": -1}, "port is -1"),
    ):
        with pytest.raises(mx.base.MXNetValueError, match=words):
            mx.serve.Server(DIGITS, **settings)
    with pytest.raises(mx.base.MXNetValueError, match="did you mean 'shapes'"):
        mx.serve.Server(mx.serve.Model(DIGITS, shape=[1]))


def test_every_setting_is_an_option_and_a_variable_and_a_key(mx, tmp_path) -> None:
    rows = mx._mxrt.serve_settings()
    assert len({row[0] for row in rows}) == len(rows)
    help_text, whole_help = (mxrt("serve", option).stdout for option in ("--help", "--help-all"))
    for key, _, text, default, scope, rare in rows:
        assert text
        option = "--" + {"shapes": "shape", "dtypes": "dtype"}.get(key, key).replace("_", "-")
        if key != "path":
            assert f"  {option} " in whole_help, key
            assert (f"  {option} " in help_text) != rare, key
        if scope == "model" or default is None:
            continue
        (tmp_path / "serve.toml").write_text(f"{key} = {json.dumps(default)}")
        variable = f"MXRT_SERVE_{key.upper()}"
        ways = {
            f"{tmp_path}/serve.toml:1": ("file", (tmp_path / "serve.toml",)),
            variable: ("environment", ([(variable, default)],)),
            f"--{key.replace('_', '-')}": ("set", (key, default, True)),
        }
        for said, (method, arguments) in ways.items():
            config = mx._mxrt.ServeConfig()
            getattr(config, method)(*arguments)
            assert re.search(rf"^{key} = .*  # {re.escape(said)}$", config.print(), re.M), (key, said)


def test_traces_go_to_an_address() -> None:
    result = mxrt("serve", str(DIGITS), "--traces", "on", "--print-config")
    assert result.returncode == 2 and "expected an address of HTTP, such as http://127.0.0.1:4318" in result.stderr


def test_whether_requests_are_joined_is_printed(tmp_path) -> None:
    shape = "--shape=data=-1,1,8,8"
    assert "# batch of d: at most 8 rows; " in printed(f"d={DIGITS}", shape, "--batch=8")
    assert "# batch of d: off: it is switched off" in printed(f"d={DIGITS}", shape)
    assert "# batch: not known, as the models do not load: " in printed(f"d={tmp_path / 'none'}", shape)
    result = mxrt("serve", f"d={DIGITS}", shape, "--batch=8", "--check")
    assert result.returncode == 0 and "# batch of d: at most 8 rows; " in result.stdout, result
