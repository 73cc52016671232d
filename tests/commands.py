"""Helpers of the tests of commands: a command in this process, and models in every form."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from support import DIGITS, tiny_model


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The result as data."""
        return json.loads(self.out)


def command(capfd, *arguments: object) -> Done:
    """Runs a command in this process."""
    from mxrt.cli._main import main

    capfd.readouterr()
    status = main([str(one) for one in arguments])
    return Done(status, *capfd.readouterr())


def refused(done: Done, status: int, *words: str) -> None:
    """Checks that a command ended with one sentence that has these words, and a code at its end."""
    assert done.status == status, done
    assert done.err.count("\n") == 1, done.err
    assert re.search(r" \[MX-[A-Z]+\]\n$", done.err), done.err
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err, done.err


def tiny(folder: Path, prefix: str = "tiny", epoch: int = 0) -> Path:
    """A small model in a folder; the prefix of its files."""
    folder.mkdir(parents=True, exist_ok=True)
    symbol, params, _, _ = tiny_model()
    (folder / f"{prefix}-symbol.json").write_bytes(symbol)
    (folder / f"{prefix}-{epoch:04d}.params").write_bytes(params)
    return folder / prefix


def digits_in(folder: Path) -> Path:
    """The trained model of digits in a folder of its own; the prefix of its files."""
    for file in ("digits_cnn-symbol.json", "digits_cnn-0000.params"):
        shutil.copy(DIGITS / file, folder)
    return folder / "digits_cnn"


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    """A zip archive with these files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    """A tar archive with these files."""
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def picture(path: Path, pixels: np.ndarray, mode: str | None = None, **options: Any) -> Path:
    """An image in a file, by another library."""
    from PIL import Image

    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(path, **options)
    return path
