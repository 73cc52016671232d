"""The `mxrt` command."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import pytest

from commands import digits_in, picture
from mxrt.cli.commands import COMMANDS
from support import DIGITS, ROOT, digits, mxrt, output_of, run


def test_version(mx) -> None:
    result = mxrt("--version")
    assert (result.returncode, result.stdout) == (0, f"mxrt {mx.__version__}\n")


def test_the_module_can_be_run_in_place_of_the_command(mx) -> None:
    result = run([sys.executable, "-m", "mxrt", "--version"])
    assert (result.returncode, result.stdout) == (0, f"mxrt {mx.__version__}\n")


def test_info_says_what_a_report_needs(mx) -> None:
    result = mxrt("info")
    assert result.returncode == 0, result.stderr
    for word in (mx.__version__, "Python", "numpy", "processor", "cores", "engine"):
        assert word in result.stdout


def test_a_reader_that_has_enough_is_no_error(mx) -> None:
    program = f"{sys.executable} -u -m mxrt info | true; echo ${{PIPESTATUS[0]}}"
    result = run(["bash", "-c", program])
    assert (result.stdout.strip(), result.stderr) == ("141", "")


def test_info_answers_a_bad_variable_with_a_line(mx) -> None:
    result = mxrt("info", env={"MXRT_CORES": "0"})
    assert result.returncode == 1
    assert result.stderr == "mxrt info: MXRT_CORES is '0'; expected a number of threads from 1 to 4096 [MX-VALUE]\n"
    assert mx.__version__ in result.stdout, "what can be said is said"


def test_info_marks_variables_that_nothing_reads(mx) -> None:
    read = {"MXRT_CORES": "1", "MXRT_SERVE_PORT": "8001", "MXRT_SERVE_CONFIG": "a.toml", "MXNET_HOME": "here"}
    result = mxrt("info", env={"MXRT_CORE": "2", "MXRT_SERVE_HOTS": "a", **read})
    assert result.returncode == 0, result.stderr
    assert re.search(r"^MXRT_CORE +2 +\(mxrt reads no such variable\)$", result.stdout, re.M)
    assert re.search(r"^MXRT_SERVE_HOTS +a +\(mxrt reads no such variable\)$", result.stdout, re.M)
    for name, value in read.items():
        assert re.search(rf"^{name} +{value}$", result.stdout, re.M), name


def test_info_lists_every_setting(mx) -> None:
    result = mxrt("info", "--settings")
    assert result.returncode == 0, result.stderr
    names = re.findall(r"^(M\w+)$", result.stdout, re.M)
    assert {"MXRT_CORES", "OMP_NUM_THREADS", "MXNET_ENGINE_TYPE", "MXRT_SIM_SEED"} <= {*names, "OMP_NUM_THREADS"}
    assert "Threads that may compute," in result.stdout
    page = (ROOT / "docs" / "settings.md").read_text()
    assert [name for name in names if f"`{name}`" not in page] == []


def test_every_command_has_help_and_says_a_bad_variable_in_a_line(mx) -> None:
    for command in COMMANDS:
        result = mxrt(command.name, "--help")
        assert result.returncode == 0, result.stderr
        assert f"mxrt {command.name}" in result.stdout
    model = DIGITS / "digits_cnn"
    for arguments in (["bench", str(model)], ["tune", str(model)], ["demo", "--quick"]):
        result = mxrt(*arguments, env={"MXRT_PLAN_CACHE": "many"})
        assert result.returncode != 0
        assert "Traceback" not in result.stderr, result.stderr
        assert f"mxrt {arguments[0]}: MXRT_PLAN_CACHE is 'many'; expected a whole number" in result.stderr


def _argument(action: argparse.Action) -> str:
    """An argument as a command line has it."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    choices = ",".join(map(str, action.choices or []))
    value = action.metavar or (f"{{{choices}}}" if choices else action.dest.upper())
    value = " ".join(value) if isinstance(value, tuple) else value
    if action.nargs == "?":
        value = f"[{value}]"
    return f"{', '.join(action.option_strings)}{'' if action.nargs == 0 else f' {value}'}"


def _page_of_commands() -> str:
    """docs/commands.md: the commands and what their parsers declare."""
    page = (
        "# Commands\n\nWritten by tests/cli/test_cli.py from the table of commands and their parsers; do not edit.\n\n"
        "`mxrt COMMAND --help` and `python -m mxrt COMMAND --help` print the same, and `mxrt serve\n"
        "--help-all` all options of that command. Each command takes `--debug`, which shows where in the code\n"
        "an error was raised. Results are printed to the standard output, everything else to the standard\n"
        "error. The exit status is 0 if all is well, 1 if the model or the data are wrong, 2 if the command\n"
        "line is, 130 after Ctrl-C, and 141 if what reads the output ends first. Without a terminal, or\n"
        "with `NO_COLOR`, there are no colours.\n"
    )
    for command in COMMANDS:
        parser = argparse.ArgumentParser(add_help=False)
        importlib.import_module(command.module).add_arguments(parser)
        summary = f"{command.help[0].upper()}{command.help[1:]}."
        example = f"    mxrt {command.name} {command.example}".rstrip()
        page += f"\n## mxrt {command.name}\n\n{textwrap.fill(summary, 100)}\n\n{example}\n\n"
        for action in parser._actions:
            if action.dest == "help_all":
                action.describe()
        for action in parser._actions:
            text = f"- `{_argument(action)}`: {(action.help or '').replace('%%', '%')}"
            page += textwrap.fill(text, 100, subsequent_indent="  ", break_on_hyphens=False) + "\n"
    return page


def test_the_page_of_commands_is_up_to_date(mx) -> None:
    page = ROOT / "docs" / "commands.md"
    wanted = _page_of_commands()
    if os.environ.get("MXRT_WRITE"):
        page.write_text(wanted)
    assert page.read_text() == wanted, "docs/commands.md is old; MXRT_WRITE=1 lets this test write it"


def test_no_command_gives_help_and_an_unknown_one_names_the_known(mx) -> None:
    result = mxrt()
    assert result.returncode == 2
    assert "demo" in result.stdout
    result = mxrt("dmeo")
    assert result.returncode == 2
    assert "did you mean demo?" in result.stderr
    assert "did you mean safetensors?" in mxrt("convert", "a", "b", "--format", "safetensor").stderr
    assert "dmeo" in result.stderr
    assert "demo" in result.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with what the examples of commands name."""
    folder = tmp_path_factory.mktemp("examples")
    digits_in(folder)
    pixels = (digits(1)[0][0, 0] * 255).round().astype("uint8")
    picture(folder / "digit.png", pixels)
    (folder / "images").mkdir()
    picture(folder / "images" / "one.png", pixels)
    return folder


@pytest.mark.parametrize("name", [row.name for row in COMMANDS if row.name != "demo"])
def test_the_example_in_the_help_of_a_command_works(mx, place: Path, name: str) -> None:
    (row,) = (row for row in COMMANDS if row.name == name)
    help_text = " ".join(mxrt(name, "--help").stdout.split())
    assert f"example: mxrt {name} {row.example}" in help_text
    result = run(["bash", "-c", f"cd {place} && mxrt {name} {row.example}"])
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr and "\x1b" not in result.stdout


JSON = {
    "inspect": "digits_cnn --shape 1,1,8,8",
    "run": "digits_cnn random --shape 1,1,8,8",
    "check": "digits_cnn --shape 1,1,8,8",
    "profile": "digits_cnn --shape 1,1,8,8 --seconds 0.1",
    "plan": "digits_cnn --shape 1,1,8,8",
    "convert": "digits_cnn copy --shape 1,1,8,8 --force",
    "quantize": "digits_cnn --data images --size 8,8 --grey --out json --shape 1,1,8,8 --force",
    "explain": "shape",
    "bench": "digits_cnn --shape 1,1,8,8 --callers 1 --seconds 0.2",
    "doctor": "--no-test",
    "info": "",
    "completion": "bash",
    "tune": "digits_cnn --shape 1,1,8,8 --seconds 0.01",
    "serve": "d=digits_cnn --shape 1,1,8,8 --check",
    "im2rec": "--list pictures images",
    "demo": "--quick",
}


def test_every_command_prints_json() -> None:
    assert JSON.keys() == {row.name for row in COMMANDS}


@pytest.mark.parametrize("name", JSON)
def test_with_json_the_standard_output_is_one_json_value_of_standard_numbers(mx, place: Path, name: str) -> None:
    result = run(["bash", "-c", f"cd {place} && mxrt {name} {JSON[name]} --json"])
    assert result.returncode == 0, result.stderr

    def refuse(word: str) -> None:
        raise ValueError(word)

    assert isinstance(json.loads(result.stdout, parse_constant=refuse), dict)


def test_a_closed_standard_output_is_no_error(mx, place: Path) -> None:
    for closed in (">&-", ">&- 2>&-", "<&-"):
        result = run(
            ["bash", "-c", f"cd {place} && (mxrt inspect digits_cnn --shape 1,1,8,8 {closed}); echo status $?"]
        )
        assert result.stdout.endswith("status 0\n"), (closed, result)
        assert result.stderr == ""


@pytest.mark.parametrize(
    "command", ["inspect digits_cnn --shape 1,1,8,8", "plan digits_cnn --shape 1,1,8,8", "explain"]
)
def test_head_ends_a_command_without_a_word(mx, place: Path, command: str) -> None:
    result = run(["bash", "-c", f"cd {place} && PYTHONUNBUFFERED=1 mxrt {command} | head -n 1"])
    assert result.stderr == "" and result.stdout.count("\n") == 1


@pytest.mark.skipif(shutil.which("script") is None, reason="needs the program script, which makes a terminal")
def test_a_terminal_shows_colours_unless_told_not_to(mx, place: Path) -> None:
    command = f"cd {place} && mxrt inspect digits_cnn --shape 1,1,8,8"
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        result = run(["script", "-qec", command, "/dev/null"], env={"TERM": "xterm", **env})
        assert ("\x1b[" in result.stdout) is coloured, env


def test_debug_shows_where_an_error_was_raised(mx, place: Path) -> None:
    for options, shown in (("", False), ("--debug", True)):
        result = run(["bash", "-c", f"cd {place} && mxrt run digits_cnn nothing --shape 1,1,8,8 {options}"])
        assert result.returncode == 2
        assert ("Traceback" in result.stderr) is shown
        assert "there is no file 'nothing'" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "command",
    [
        "profile digits_cnn --shape 64,1,8,8 --seconds 600",
        "run digits_cnn - --shape 1,1,8,8 -o out.npz",
        "check big.tar",
    ],
)
def test_ctrl_c_ends_a_command_with_130_and_removes_what_it_unpacked(
    mx, place: Path, tmp_path: Path, command: str
) -> None:
    # An archive that takes seconds to unpack, and no room on the disk.
    entry = tarfile.TarInfo("a-0000.params")
    entry.size = 3 << 30
    with (place / "big.tar").open("wb") as archive:
        archive.write(entry.tobuf())
        archive.truncate(512 + entry.size + 1024)
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from mxrt.cli import _main; start = _main._run; "
        "_main._run = lambda *rest: (print('begun', file=sys.stderr, flush=True), start(*rest))[1]; "
        "sys.exit(_main.main(sys.argv[1:]))"
    )
    # An input that stays open: at its end the command would end by itself.
    standard_input, open_end = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-c", program, *command.split()],
        stdin=standard_input,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert child.stderr.readline() == "begun\n"
        while "big.tar" in command and child.poll() is None and not list(tmp_path.rglob(entry.name)):
            pass
        child.send_signal(signal.SIGINT)
        _, errors = output_of(child, 30)
    finally:
        child.kill()
        os.close(standard_input)
        os.close(open_end)
    assert child.returncode == 130
    assert errors.endswith("\ninterrupted\n") and "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "busy",
    [
        "folder = temporary.new_folder(); print('begun', flush=True)\n"
        "for number in itertools.count(): (folder / f'{number}' / 'deeper').mkdir(parents=True)",
        "mkdir = pathlib.Path.mkdir\n"
        "def made(self, **rest): mkdir(self, **rest); print('begun', flush=True); signal.pause()\n"
        "pathlib.Path.mkdir = made\n"
        "while True: temporary.new_folder()",
    ],
    ids=["while it fills the folder", "before it knows the folder"],
)
def test_ctrl_c_removes_the_temporary_folder_of_a_command(mx, tmp_path: Path, busy: str) -> None:
    program = (
        "import itertools, pathlib, signal; from mxrt._system import temporary; from mxrt.cli import _interrupt\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"with _interrupt.at_once():\n{textwrap.indent(busy, '    ')}\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        _, errors = output_of(child, 30)
    finally:
        child.kill()
    assert (child.returncode, errors) == (130, "\ninterrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_completion_knows_commands_options_and_choices(mx) -> None:
    script = mxrt("completion", "bash").stdout
    check = """
complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _mxrt; echo "${COMPREPLY[*]}"; }
complete_words mxrt ins
complete_words mxrt convert --flo
complete_words mxrt convert --format ""
complete_words mxrt completion z
"""
    result = run(["bash", "-c", script + check])
    assert result.stdout.splitlines() == ["inspect", "--float16", "params npz safetensors onnx", "zsh"], result
    for shell in ("zsh", "fish"):
        assert "inspect" in mxrt("completion", shell).stdout


def test_help_of_all_commands_needs_no_numpy(mx) -> None:
    program = (
        "import importlib.util, sys; "
        "spec = importlib.util.find_spec('mxrt_command'); "
        "assert spec is not None; "
        "from mxrt_command import main; status = main(['--help']); "
        "assert 'numpy' not in sys.modules and 'mxrt' not in sys.modules, 'numpy'; sys.exit(status)"
    )
    result = run([sys.executable, "-c", program])
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == mxrt("--help").stdout


def test_a_command_brings_no_module_that_it_seldom_needs(mx) -> None:
    program = (
        "import sys, numpy; before = set(sys.modules); from mxrt.cli._main import main; "
        "status = main(sys.argv[1:]); print(*sorted(set(sys.modules) - before), file=sys.stderr); sys.exit(status)"
    )
    result = run([sys.executable, "-c", program, "inspect", str(DIGITS), "--shape", "1,1,8,8"])
    assert result.returncode == 0, result.stderr
    seldom = {"difflib", "hashlib", "importlib.abc", "secrets", "tarfile", "tempfile", "zipfile"}
    assert seldom.isdisjoint(result.stderr.split()), result.stderr


@pytest.mark.timeout(200)
def test_the_demo_passes_and_shows_its_three_parts(mx) -> None:
    result = mxrt("demo", "--quick", timeout=180)
    assert result.returncode == 0, result.stdout + result.stderr
    out = result.stdout
    assert result.stderr == ""
    assert "\x1b" not in out, "colours in a file"
    assert "FAIL" not in out
    assert "accuracy 0.9889, with MXNet 1.9.1 0.9889" in out
    rows = re.findall(r"^ +(\d+) +(\d+) +[\d.]+ +[\d.]+ +[\d.]+ +\d+ +yes$", out, re.M)
    assert [int(callers) for callers, _ in rows] == [1, 2, 8, 64, 96]
    assert int(rows[-1][1]) == 96
    assert "49 answers" in out
    assert "1 error" in out
    assert len(re.findall(r"^ +mxrt\.\S*Error\S*: ", out, re.M)) == 3, "three failures are shown as the user sees them"
