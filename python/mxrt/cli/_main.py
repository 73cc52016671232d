"""Entry point of the command line."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TextIO, TypeVar, cast

from .._output.codes import CODES, with_code
from .._system import temporary
from ..base import MXNetError
from ._errors import BAD, GOOD, INTERRUPTED, USAGE, CommandError
from ._interrupt import at_once
from ._out import visible
from .commands import COMMANDS, Command, parser_of

__all__ = ["main", "parser_with"]

T = TypeVar("T")

_ADVICE = {
    "No space left on device": "free some space there, or name another place",
    "Disk quota exceeded": "free some space there, or name another place",
    "Read-only file system": "name another place",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `mxrt` command; returns the exit status."""
    _open_streams()
    held, sys.stdout = sys.stdout, cast("TextIO", _Results(sys.stdout))
    try:
        return _flushed(_status(list(sys.argv[1:] if argv is None else argv)))
    except BrokenPipeError:
        # What reads has enough, as `head` has. Python would write the rest at its end.
        _forget_stdout()
        return 128 + signal.SIGPIPE
    except _UnwritableError as error:
        _forget_stdout()
        print(f"mxrt: the results cannot be written to the standard output: {error.strerror}", file=sys.stderr)
        return BAD
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        sys.stdout = held
        temporary.remove_all()


def _status(words: Sequence[str]) -> int:
    """Does what the words say; returns the exit status."""
    row = next((row for word in words if not word.startswith("-") for row in COMMANDS if row.name == word), None)
    try:
        args = _arguments(row, words)
        if args.version and row is None:
            import mxrt

            print(f"mxrt {mxrt.__version__}")
            return GOOD
        if row is None:
            parser_with(None).print_help()
            return USAGE
        with at_once() if row.ends_at_once else contextlib.nullcontext():
            return _flushed(_run(row, args))
    except SystemExit as end:  # of argparse
        return end.code if isinstance(end.code, int) else USAGE


class _UnwritableError(OSError):
    """The standard output cannot be written."""


class _Results:
    """The standard output, whose errors are told from those of files."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        # Names in files may have anything in them.
        return self._tried(lambda: self._out.write(visible(text, "\n\t\r", colours=self._out.isatty())))

    def flush(self) -> None:
        self._tried(self._out.flush)

    def _tried(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _UnwritableError(error.errno, error.strerror) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def _run(row: Command, args: argparse.Namespace) -> int:
    """Runs a command. What goes wrong becomes a sentence and a status."""
    if not sys.warnoptions and not args.debug:
        warnings.showwarning = _shown_as_line
    try:
        status = int(args.run(args))
        sys.stdout.flush()
        return status
    except (BrokenPipeError, _UnwritableError):
        raise
    except (CommandError, MXNetError, MemoryError, OSError) as error:
        if args.debug:
            traceback.print_exc()
        print(visible(f"mxrt {row.name}: {_sentence(error)}", "\n"), file=sys.stderr)
        return error.status if isinstance(error, CommandError) else BAD
    except UnicodeEncodeError as error:
        # Bytes of a word that are no text in the encoding of the locale.
        if args.debug or not any("\udc80" <= letter <= "\udcff" for letter in error.object):
            raise
        text = (
            f"{error.object!r} is a name in another encoding than {sys.getfilesystemencoding()}: PYTHONUTF8=1 reads "
            "names in UTF-8; otherwise rename the file"
        )
        print(f"mxrt {row.name}: {with_code(text, 'usage')}", file=sys.stderr)
        return USAGE


def _sentence(error: BaseException) -> str:
    if isinstance(error, MemoryError) and not isinstance(error, MXNetError):
        text = (
            f"there is not enough memory ({error or 'no more is known'}); a smaller --shape or fewer inputs need less"
        )
        return with_code(text, "memory")
    if isinstance(error, OSError) and not isinstance(error, MXNetError) and error.filename is None:
        text = (
            f"a file cannot be read or written: {error.strerror or error}. Is the disk full? TMPDIR names the folder "
            "of temporary files"
        )
        return with_code(text, "model")
    if isinstance(error, OSError) and not isinstance(error, MXNetError):
        return _advised(with_code(f"'{error.filename}': {error.strerror}", "model"))
    return _advised(str(error))


def _advised(text: str) -> str:
    """A sentence with what to do where a place cannot be written."""
    text = temporary.shown(text)
    for words, advice in _ADVICE.items():
        if words in text and "TMPDIR" not in text:
            sentence, bracket, code = text.rpartition(" [")
            return f"{sentence}; {advice}{bracket}{code}" if bracket else f"{text}; {advice}"
    return text


def _shown_as_line(message: Warning | str, *_: object, **__: object) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _arguments(row: Command | None, words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line. An option that the command does not have is its error."""
    # A command that is not the first word is the argument of a mistyped one.
    parser = parser_with(row, alone=row is not None and words[0] == row.name)
    args, unknown = parser.parse_known_args(_with_values(words))
    if unknown:
        of = parser if row is None else _commands(parser)[row.name]
        known = [option for action in of._actions for option in action.option_strings]
        of.error(f"unrecognized arguments: {' '.join(unknown)}{close_to(unknown[0], known)}")
    return args


def _with_values(words: Sequence[str]) -> list[str]:
    """The words, with lists that begin with a negative number joined to the options before them:
    argparse takes the -1,3 of ``--shape -1,3`` for an option.
    """
    found: list[str] = []
    for word in words:
        if re.match(r"-\d+,", word) and found and re.fullmatch(r"--[\w-]+", found[-1]):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    return next(one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction))


class _Parser(argparse.ArgumentParser):
    """Names the words that a mistyped command or choice resembles."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Prints help; an output that cannot be written is an error, which argparse would hide."""
        if message:
            (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            message += close_to(found[1], re.findall(r"[\w.-]+", found[2]))
        self.exit(USAGE, f"{self.prog}: {message} ({self.prog} --help says more) [{CODES['usage']}]\n")


def parser_with(row: Command | None, alone: bool = False) -> argparse.ArgumentParser:
    """The parser of the command line, with the arguments of one command, which is `alone` where
    others are not needed.
    """
    parser, commands = parser_of(row.name if row is not None and alone else None)
    parser.__class__ = _Parser
    for command in commands.values():
        command.__class__ = _Parser
    if row is not None:
        module = importlib.import_module(row.module)
        module.add_arguments(commands[row.name])
        commands[row.name].add_argument(
            "--debug", action="store_true", help="show where in the code an error was raised"
        )
        commands[row.name].set_defaults(run=module.main)
    return parser


def close_to(word: str, known: Sequence[str]) -> str:
    """The known words that a mistyped one resembles, as the end of a sentence."""
    import difflib

    found = difflib.get_close_matches(word, known, 3, 0.5)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def _open_streams() -> None:
    """Gives a closed standard stream a place, so that no file of the command gets its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 (open to the end)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _flushed(status: int) -> int:
    sys.stdout.flush()
    return status


def _forget_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
