"""Images that the calls of `mxrt bench` read and decode."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..cli._errors import UsageError
from ..cli._images import input_of_image, is_image, no_image, preprocess_of
from ..cli._inputs import is_random, places_of
from ..cli._model import Files, Loaded
from ..cli._out import counted, note
from ..cli._shapes import input_types
from ..cli.run import called
from ..gluon import SymbolBlock
from ..symbol import Symbol
from .peer.load import MakeCaller

__all__ = ["Images"]

Shape = tuple[int, ...]


class Images:
    """The images of a command line: a call reads the next file, decodes it and answers it, by the
    functions of `mxrt run`.

    UsageError where a file is not there, or where the model takes no single image; ModelError where
    a file does not begin as an image does.
    """

    def __init__(self, args: argparse.Namespace, files: Files, graph: Symbol, shapes: Mapping[str, Shape]) -> None:
        self._files, self._graph, self._shapes = files, graph, shapes
        self._paths = _paths_of(args.inputs)
        labels = graph._labels()
        names = [name for name in shapes if name not in labels]
        if len(names) != 1:
            raise UsageError(f"images are for models with one input; this one has {', '.join(names)}")
        self._name = names[0]
        shape = shapes[self._name]
        if shape[0] != 1:
            raise UsageError(f"a call answers one image, and --shape asks for {counted(shape[0], 'row')}; expected 1")
        self._preprocess, remark = preprocess_of(args, files.folder, shape)
        self._most_pixels = args.max_pixels
        self._input_of(self._paths[0])
        if remark:
            note("bench", remark)

    def facts(self) -> dict[str, Any]:
        """The number of files and what is done with them, as plain data."""
        return {"count": len(self._paths), "preprocess": vars(self._preprocess)}

    def callers(self, net: SymbolBlock) -> MakeCaller:
        """Callers of a network, each of which begins at another file."""
        types = input_types(self._graph, net, self._shapes)
        model = Loaded(self._files, self._graph, net, self._shapes, types, None)

        def make(number: int) -> Callable[[], object]:
            place = number - 1

            def ask() -> object:
                nonlocal place
                place += 1
                path = self._paths[place % len(self._paths)]
                return called(model, {self._name: self._input_of(path)}, str(path))

            return ask

        return make

    def _input_of(self, path: Path) -> np.ndarray[Any, Any]:
        return input_of_image(path.read_bytes(), str(path), self._preprocess, self._most_pixels)


def _paths_of(words: Sequence[str]) -> list[Path]:
    """The files of all words, each of which begins as an image does."""
    for word in words:
        if word == "-" or is_random(word):
            raise UsageError(
                f"'{word}' is no file; expected images, folders or patterns, or nothing for random numbers"
            )
    paths = [path for _, found in places_of(words) for path in found]
    for path in paths:
        with path.open("rb") as file:
            head = file.read(64)
        if not is_image(head):
            raise no_image(head, str(path))
    return paths
