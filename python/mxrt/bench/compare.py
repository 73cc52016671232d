"""The peers of one comparison: which work, whether they answer the same, in which setting they are
best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._system import temporary
from ..gluon import SymbolBlock
from ..symbol import Symbol
from . import to_onnx
from .images import Images
from .peer import engines
from .peers import PeerError, Process

__all__ = ["RAMP", "TRY_SECONDS", "Peers", "Task"]

# Of every measurement this part passes before anything counts: the callers start one after another.
RAMP = 0.2
# So long each setting of a peer is tried for a number of callers before the best is measured.
TRY_SECONDS = 0.5

Note = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """The subject of a measurement."""

    symbol_file: Path
    params_file: Path | None
    graph: Symbol
    shapes: Mapping[str, tuple[int, ...]]
    precision: str
    images: Images | None = None

    @property
    def params(self) -> str | None:
        """The parameter file by name, if there is one."""
        return str(self.params_file) if self.params_file else None


class Peers:
    """The other engines, those that turn out not to work left out with a reason."""

    def __init__(
        self,
        pythons: Mapping[str, str],
        task: Task,
        net: SymbolBlock,
        note: Note,
    ) -> None:
        self.task: Task = task
        self.note: Note = note
        self.left_out: dict[str, str] = {}
        self.loaded: dict[str, Process] = {}
        self.version: dict[str, str] = {}
        self.precision: dict[str, str] = {}
        self.difference: dict[str, float] = {}
        self.setting: dict[str, str] = {}
        self.runs: dict[str, list[dict[str, Any]]] = {}
        self._folder = temporary.folder_of(self)
        if "openvino" in pythons:
            pythons = {**pythons, f"openvino{engines.AS_INSTALLED}": pythons["openvino"]}
        if pythons:
            self._model = self._files(pythons, net)
        for name, python in pythons.items():
            if name not in self.left_out:
                self._start(name, python)

    def _files(self, pythons: Mapping[str, str], net: SymbolBlock) -> engines.Model:
        folder, task = self._folder, self.task
        model = engines.Model(symbol=str(task.symbol_file), params=task.params, onnx=None, inputs=list(task.shapes))
        if task.params is None:  # the same random numbers for all engines
            net.export(str(folder / "model"))
            model["params"] = str(folder / "model-0000.params")
        if set(pythons) - {"mxnet"}:
            self.note("writing the model as ONNX")
            values = {name: one.data().asnumpy() for name, one in net.collect_params().items()}
            try:
                to_onnx.export(task.graph, values, task.shapes, folder / "model.onnx")
                model["onnx"] = str(folder / "model.onnx")
            except to_onnx.Untranslatable as error:
                self.left_out |= dict.fromkeys(
                    sorted(set(pythons) - {"mxnet"}), f"it needs the model as ONNX, which cannot be written: {error}"
                )
        return model

    def _start(self, name: str, python: str) -> None:
        self.note(f"starting {name}")
        try:
            process = Process(name, python)
            self.loaded[name] = process
            first = next(iter(engines.settings(name, 1, engines.cores()).values()))
            answer = self._load(name, first)
            self.version[name], self.precision[name] = answer["version"], answer["precision"]
            pinned = self.precision.get(name.removesuffix(engines.AS_INSTALLED))
            if name.endswith(engines.AS_INSTALLED) and self.precision[name] == pinned:
                self.loaded.pop(name).close()  # it is the same
                return
            process.ask("inputs", shapes=[list(shape) for shape in self.task.shapes.values()])
            self.runs[name] = []
        except PeerError as error:
            self._drop(name, error)

    def _load(self, name: str, setting: Mapping[str, Any]) -> dict[str, Any]:
        reduced = name == "openvino" and self.task.precision == "bf16"
        precision = {"INFERENCE_PRECISION_HINT": "bf16"} if reduced else {}
        return self.loaded[name].ask("load", model=self._model, setting={**setting, **precision})

    def _drop(self, name: str, error: PeerError) -> None:
        self.left_out[name] = str(error).removeprefix(f"{name}: ")
        if name in self.loaded:
            self.loaded.pop(name).close()

    def compare(self, expected: Sequence[np.ndarray[Any, Any]]) -> None:
        """Whether the others answer the same, as far as rounding goes."""
        for name, process in list(self.loaded.items()):
            file = self._folder / f"{name}.npz"
            try:
                process.ask("outputs", file=str(file))
            except PeerError as error:
                self._drop(name, error)
                continue
            with np.load(file) as saved:
                pairs = list(zip(expected, saved.values(), strict=True))
            self.difference[name] = max(float(np.abs(a - b.reshape(a.shape)).max()) for a, b in pairs)

    def choose(self, callers: int) -> None:
        """Gives each peer the setting that serves this number of callers best."""
        for name in list(self.loaded):
            rates = {}
            for setting, content in engines.settings(name, callers, engines.cores()).items():
                self.note(f"{name}, callers: {callers}: trying {setting}")
                try:
                    self._load(name, content)
                    one = self._ask(name, callers, TRY_SECONDS)
                except PeerError as error:
                    self._drop(name, error)
                    break
                rates[setting] = (one["images_per_second"], content)
            else:
                self.setting[name] = max(rates, key=lambda setting: rates[setting][0])
                self._load(name, rates[self.setting[name]][1])

    def ask(self, name: str, callers: int, seconds: float) -> dict[str, Any] | None:
        """One turn; None when it fails, or has failed before."""
        if name not in self.loaded:
            return None
        self.note(f"{name}, callers: {callers}")
        try:
            return self._ask(name, callers, seconds)
        except PeerError as error:
            self._drop(name, error)
            return None

    def _ask(self, name: str, callers: int, seconds: float) -> dict[str, Any]:
        return self.loaded[name].ask(
            "closed", callers=callers, seconds=seconds * (1 - RAMP), ramp=seconds * RAMP, times=True
        )

    def report(self) -> list[dict[str, Any]]:
        return [
            {
                "engine": name,
                "version": self.version[name],
                "precision": self.precision[name],
                "largest_difference": self.difference[name],
                "runs": runs,
            }
            for name, runs in self.runs.items()
            if name in self.difference
        ]

    def close(self) -> None:
        for process in self.loaded.values():
            process.close()
        temporary.remove(self._folder)
