"""The `mxrt` command."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import textwrap
from typing import Any

import pytest

from support import DIGITS, ROOT, mxrt, run


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
    assert result.stderr == "mxrt info: MXRT_CORES is '0'; expected a number of threads from 1 to 4096\n"
    assert mx.__version__ in result.stdout, "what can be said is said"


def test_info_marks_variables_that_nothing_reads(mx) -> None:
    result = mxrt("info", env={"MXRT_CORE": "2", "MXRT_CORES": "1"})
    assert result.returncode == 0, result.stderr
    assert re.search(r"^MXRT_CORE +2 +\(mxrt reads no such variable\)$", result.stdout, re.M)
    assert re.search(r"^MXRT_CORES +1$", result.stdout, re.M)


def test_info_lists_every_setting(mx) -> None:
    result = mxrt("info", "--settings")
    assert result.returncode == 0, result.stderr
    names = re.findall(r"^(M\w+)$", result.stdout, re.M)
    assert {"MXRT_CORES", "OMP_NUM_THREADS", "MXNET_ENGINE_TYPE", "MXRT_SIM_SEED"} <= {*names, "OMP_NUM_THREADS"}
    assert "Threads that may compute," in result.stdout
    page = (ROOT / "docs" / "settings.md").read_text()
    assert [name for name in names if f"`{name}`" not in page] == []


def test_every_command_has_help_and_says_a_bad_variable_in_a_line(mx) -> None:
    from mxrt.__main__ import COMMANDS

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


class _Recorder(argparse.ArgumentParser):
    """A parser that remembers the arguments that a command declares."""

    def __init__(self) -> None:
        self.declared: list[argparse.Action] = []
        super().__init__(add_help=False)

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        """Declares an argument."""
        self.declared.append(super().add_argument(*args, **kwargs))
        return self.declared[-1]


def _argument(action: argparse.Action) -> str:
    """An argument as a command line has it."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    choices = ",".join(map(str, action.choices or []))
    value = action.metavar or (f"{{{choices}}}" if choices else action.dest.upper())
    return f"{', '.join(action.option_strings)}{'' if action.nargs == 0 else f' {value}'}"


def _page_of_commands() -> str:
    """docs/commands.md: the commands and what their parsers declare."""
    from mxrt.__main__ import COMMANDS

    page = (
        "# Commands\n\nWritten by tests/test_cli.py from the table of commands and their parsers; do not edit.\n\n"
        "`mxrt COMMAND --help` and `python -m mxrt COMMAND --help` print the same.\n"
    )
    for command in COMMANDS:
        parser = _Recorder()
        importlib.import_module(command.module).add_arguments(parser)
        summary = f"{command.help[0].upper()}{command.help[1:]}."
        page += f"\n## mxrt {command.name}\n\n{textwrap.fill(summary, 100)}\n\n"
        for action in parser.declared:
            text = f"- `{_argument(action)}`: {action.help}"
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
    assert "dmeo" in result.stderr
    assert "demo" in result.stderr


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
