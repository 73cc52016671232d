"""Other engines for comparison with mxrt: each in its own process, with an interpreter that has it
installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ..cli._errors import UsageError
from ..cli._interrupt import at_end

__all__ = ["NAMES", "PeerError", "Process", "interpreters"]

NAMES = ("onnxruntime", "openvino", "mxnet")
# The program that a process runs; it needs nothing of mxrt.
PROGRAM = Path(__file__).parent / "peer"


class PeerError(UsageError):
    """A peer could not do what it was asked for."""


def interpreters(given: Sequence[str]) -> dict[str, str]:
    """The interpreter of each available peer: from NAME=PATH, and this one for peers that are
    installed with mxrt.
    """
    found = {name: sys.executable for name in NAMES if importlib.util.find_spec(name) is not None}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or name not in NAMES:
            raise PeerError(f"--peer-python '{text}': expected NAME=PATH, where NAME is one of {', '.join(NAMES)}")
        program = shutil.which(path)
        if program is None:
            raise PeerError(f"--peer-python '{text}': there is no program '{path}'")
        found[name] = program
    if not found:
        raise PeerError(
            "--peers: none of them is installed next to mxrt. 'pip install onnxruntime openvino', or name an "
            "interpreter that has one: --peer-python onnxruntime=/path/to/python (MXNet needs one of its own, as it "
            "wants a numpy before 1.24: --peer-python mxnet=...)"
        )
    return found


class Process:
    """One engine in a process of its own; answers one line of JSON to one line of JSON."""

    def __init__(
        self,
        engine: str,
        python: str,
        environment: Mapping[str, str] | None = None,
        processors: Sequence[int] = (),
    ) -> None:
        self.engine = engine
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by close)
        try:
            # A session of its own: Ctrl-C is for this program, which then ends the others.
            self._process = subprocess.Popen(
                [python, str(PROGRAM), engine, *map(str, processors)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except OSError as error:
            self._log.close()
            raise PeerError(f"{engine}: {python} does not run: {error}") from None
        at_end(self._kill)
        try:
            self.begin: dict[str, Any] = self._read(60)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, task: str, limit: float = 300, **request: Any) -> dict[str, Any]:
        """The answer of the process within `limit` seconds."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"task": task, **request}) + "\n")
            self._process.stdin.flush()
        except OSError:  # it is gone; reading says why
            pass
        return self._read(limit)

    def _read(self, limit: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], limit)
        if not ready:
            raise PeerError(f"{self.engine} did not answer within {limit:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(f"{self.engine} ended: {self._last_words()}")
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            raise PeerError(f"{self.engine}: its interpreter says {line.strip()!r}; is it a Python?") from None
        if "error" in answer:
            raise PeerError(f"{self.engine}: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        """The last output of the process: for a Python exception, its last line."""
        self._log.seek(0)
        text = self._log.read().strip()
        if "Traceback (most recent call last)" in text:
            return text.splitlines()[-1]
        return text[-600:] or f"status {self._process.wait()}, without a word"

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
