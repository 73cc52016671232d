"""`mxrt completion`: scripts that complete commands and options in a shell."""

from __future__ import annotations

import argparse
import shlex

from ._errors import GOOD
from ._main import parser_with
from ._out import print_json
from .commands import COMMANDS

__all__ = ["add_arguments", "main"]

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    parser.add_argument(
        "shell", choices=SHELLS, help='the shell; eval "$(mxrt completion bash)" in ~/.bashrc switches it on'
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Runs the command."""
    script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]()
    if args.json:
        print_json({"shell": args.shell, "script": script})
    else:
        print(script, end="")
    return GOOD


def _options() -> dict[str, list[argparse.Action]]:
    """The options of each command."""
    found = {}
    for row in COMMANDS:
        commands = next(
            action for action in parser_with(row)._actions if isinstance(action, argparse._SubParsersAction)
        )
        found[row.name] = list(commands.choices[row.name]._actions)
    return found


def _bash() -> str:
    """Options where a word begins with a dash, choices of a command or option, and else files."""
    lines = ["_mxrt() {", '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""']
    names = " ".join(row.name for row in COMMANDS)
    lines += [
        '  if [ "$COMP_CWORD" -eq 1 ]; then',
        f'    COMPREPLY=($(compgen -W "{names} --help --version" -- "$word"))',
    ]
    lines += ["    return", "  fi", '  case "${COMP_WORDS[1]}:$before" in']
    options = _options()
    for name, actions in options.items():
        for action in actions:
            if action.choices and action.option_strings:
                pattern = "|".join(f"{name}:{option}" for option in action.option_strings)
                lines.append(f'    {pattern}) words="{" ".join(map(str, action.choices))}";;')
    lines += ["  esac", '  if [ -z "$words" ]; then case "${COMP_WORDS[1]}" in']
    for name, actions in options.items():
        flags = " ".join(option for action in actions for option in action.option_strings)
        choices = " ".join(str(one) for action in actions if not action.option_strings for one in action.choices or ())
        lines.append(f'    {name}) case "$word" in -*) words="{flags}";; *) words="{choices}";; esac;;')
    lines += ["  esac; fi", '  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$word"))']
    lines += ['  else COMPREPLY=($(compgen -f -- "$word")); fi', "}", "complete -o filenames -F _mxrt mxrt", ""]
    return "\n".join(lines)


def _zsh() -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash()


def _fish() -> str:
    lines = []
    for row in COMMANDS:
        lines.append(f"complete -c mxrt -n __fish_use_subcommand -f -a {row.name} -d {shlex.quote(row.help)}")
    for name, actions in _options().items():
        for action in actions:
            for option in action.option_strings:
                kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                described = "" if action.help in (None, argparse.SUPPRESS) else str(action.help)
                values = f" -x -a {shlex.quote(' '.join(map(str, action.choices)))}" if action.choices else ""
                lines.append(
                    f"complete -c mxrt -n '__fish_seen_subcommand_from {name}' {kind}{values} "
                    f"-d {shlex.quote(described.partition(';')[0])}"
                )
    return "\n".join(lines) + "\n"
