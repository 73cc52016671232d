"""Makes a model of 8-bit integers within a budget of accuracy, and says what each layer costs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ndarray
from .._system import temporary
from .._system.whole import whole_model
from .._values.dtypes import dtype_name
from ..base import MXNetTypeError, MXNetValueError
from ..context import cpu
from ..contrib import _calibration, _quantize_graph, _stored_weights, quantization
from ..contrib._calibrated_blocks import exported
from ..contrib._quantize_graph import Node
from ..ndarray import NDArray
from ..symbol import Group, Symbol

if TYPE_CHECKING:
    from ..gluon import SymbolBlock

__all__ = ["Model", "Quantized", "budget_of", "quantize", "quantize_model"]

Batch = dict[str, NDArray]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Model:
    """A graph with its parameters."""

    symbol: Symbol
    args: dict[str, NDArray]
    auxs: dict[str, NDArray]

    def answers(self, batches: Sequence[Batch], symbol: Symbol | None = None) -> Iterable[list[Array]]:
        """The outputs for each batch, or those of another symbol with these parameters."""
        symbol = self.symbol if symbol is None else symbol
        names, executors = symbol.list_inputs(), {}
        for batch in batches:
            given = {name: value for name, value in batch.items() if name in names}
            shapes = tuple((name, value.shape) for name, value in given.items())
            if shapes not in executors:
                executors[shapes] = self._bound(symbol, given)
            yield [output.asnumpy() for output in executors[shapes].forward(is_train=False, **given)]

    def _bound(self, symbol: Symbol, given: Batch) -> Any:
        """An executor. What is neither given nor a parameter is a label, which nothing reads."""
        known = {name: self.args[name] for name in symbol.list_arguments() if name in self.args}
        auxs = {name: self.auxs[name] for name in symbol.list_auxiliary_states()}
        missing = [name for name in symbol.list_arguments() if name not in known and name not in given]
        if missing:
            shapes, _, _ = symbol.infer_shape(**{name: value.shape for name, value in {**known, **given}.items()})
            of = dict(zip(symbol.list_arguments(), shapes, strict=True))
            given = {**given, **{name: ndarray.zeros(of[name]) for name in missing}}
        # forward() writes data into the arrays that it was bound to.
        own = {name: value.copy() for name, value in given.items()}
        return symbol.bind(cpu(), {**known, **own}, aux_states=auxs, grad_req="null")

    def save(self, prefix: str | os.PathLike[str]) -> None:
        """Writes PREFIX-symbol.json and PREFIX-0000.params, which run here and in MXNet 1.9.1: both
        or, where one cannot be written, neither.
        """
        prefix = os.fspath(prefix)
        arrays = {f"arg:{k}": v for k, v in self.args.items()} | {f"aux:{k}": v for k, v in self.auxs.items()}
        with whole_model(f"{prefix}-symbol.json", f"{prefix}-0000.params") as (graph, numbers):
            self.symbol.save(str(graph))
            ndarray.save(str(numbers), arrays)

    @property
    def bytes(self) -> int:
        """Bytes of all parameters."""
        return sum(one.size * np.dtype(one.dtype).itemsize for one in (*self.args.values(), *self.auxs.values()))


@dataclass(frozen=True)
class Quantized:
    """A quantized model, and how it was made.

    `report` has `measure` (accuracy, agreement or likeness), `before` and `after`, `budget`, bytes
    of the parameters, and for each layer: its `range`, the share of values `clipped`, the signal
    to noise in dB, `output_error` (what the outputs lose if this layer alone is quantized, relative
    to their size), and whether it stays `float32`.
    """

    model: Model
    report: dict[str, Any]

    def save(self, prefix: str | os.PathLike[str]) -> None:
        """Writes PREFIX-symbol.json and PREFIX-0000.params, which run here and in MXNet 1.9.1."""
        self.model.save(prefix)

    @property
    def net(self) -> SymbolBlock:
        """The model as a block."""
        from ..gluon import SymbolBlock

        with temporary.folder() as folder:
            path = os.path.join(folder, "quantized")
            self.save(path)
            inputs = self.report["inputs"]
            return SymbolBlock.imports(f"{path}-symbol.json", inputs, f"{path}-0000.params", ctx=cpu())

    def page(self) -> str:
        """The report as one page of HTML that needs no other file."""
        from .page import page

        return page(self.report)


def budget_of(budget: float | str | None) -> float | None:
    """A budget as a fraction: 0.005 and "0.5%" are the same. None is no budget."""
    if budget is None:
        return None
    try:
        text = str(budget).strip()
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise MXNetValueError(f"budget={budget!r}: expected a fraction from 0 to 1, or a percentage such as '0.5%'")
    return value


def quantize(
    net: Any,
    data: Any,
    budget: float | str | None = 0.005,
    *,
    calib_mode: str = "naive",
    quantize_mode: str = "smart",
    exclude_layers: list[str] | None = None,
) -> Quantized:
    """``mx.quantize``."""
    quantization.check_names(exclude_layers=exclude_layers)
    batches = _batches_of(data)
    sym, args, auxs, inputs = exported(net, batches[0])
    labels = None
    if len(batches[0]) > len(inputs):
        labels = np.concatenate([batch[len(inputs)].asnumpy().reshape(-1) for batch in batches])
    named = [dict(zip(inputs, batch, strict=False)) for batch in batches]
    return quantize_model(
        Model(sym, args, auxs), named, labels, budget_of(budget), calib_mode, quantize_mode, exclude_layers or []
    )


def _batches_of(data: Any) -> list[list[NDArray]]:
    if isinstance(data, NDArray | np.ndarray):
        data = [data]
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise MXNetTypeError(f"data must be an array or an iterable of batches, not {type(data)}")
    batches = []
    for batch in data:
        padding = 0
        if hasattr(batch, "data") and hasattr(batch, "label"):
            # Iterators fill the last batch with samples that are there already.
            arrays, padding = [*batch.data, *(batch.label or [])], getattr(batch, "pad", None) or 0
        else:
            arrays = list(batch) if isinstance(batch, list | tuple) else [batch]
        arrays = [one if isinstance(one, NDArray) else ndarray.array(one) for one in arrays]
        if padding == 0:
            batches.append(arrays)
        elif padding < arrays[0].shape[0]:
            batches.append([one[:-padding] for one in arrays])
    if not batches:
        raise MXNetValueError("data gave no batch; give at least one batch of samples like those of later requests")
    return batches


def quantize_model(
    model: Model,
    batches: Sequence[Batch],
    labels: Array | None,
    budget: float | None,
    calib_mode: str = "naive",
    quantize_mode: str = "smart",
    excluded: Sequence[str] = (),
    step: Callable[[], None] = lambda: None,
) -> Quantized:
    """:func:`quantize` of a graph with parameters, for batches by names of inputs. `step` is called
    after each layer that was tried.
    """
    if not batches:
        raise MXNetValueError("there are no samples; give at least one like those of later requests")
    if calib_mode not in ("naive", "entropy"):
        raise MXNetValueError(f"calib_mode={calib_mode!r}: expected naive or entropy")
    samples = sum(next(iter(batch.values())).shape[0] for batch in batches)
    if labels is not None and len(labels) != samples:
        raise MXNetValueError(f"there are {len(labels)} labels for {samples} samples; give one class number for each")
    _refuse_quantized(model.symbol)
    search = _Search(model, batches, labels, calib_mode, quantize_mode, list(excluded))
    layers = search.layers(step)
    kept = search.kept(layers, budget)
    made = search.made(kept)
    for layer in layers:
        layer["float32"] = layer["name"] in kept
    report = {
        "measure": search.measure,
        "before": search.before,
        "after": search.score(made),
        "budget": budget,
        "samples": samples,
        "inputs": list(batches[0]),
        "bytes_before": model.bytes,
        "bytes_after": made.bytes,
        "layers": layers,
    }
    return Quantized(made, report)


def _refuse_quantized(symbol: Symbol) -> None:
    """MXNetValueError for a model that is on 8-bit integers."""
    for node in _quantize_graph.order(_quantize_graph.read(symbol)):
        if "quantize" in node.op or node.flag("quantized"):
            raise MXNetValueError(
                f"the model is quantized already: {node.op} '{node.name}' is on 8-bit integers; give the float32 model "
                "that it was made of"
            )


def _layers_in(node: Node) -> list[str]:
    """The names of the model's own layers that a node computes."""
    inner = [one["name"] for graph in node.subgraphs for one in graph["nodes"] if one["op"] != "null"]
    return inner or [node.name]


def _check_labels(labels: Array, classes: int) -> None:
    wrong = np.flatnonzero(~((labels >= 0) & (labels < classes) & (labels == np.floor(labels))))
    if wrong.size:
        place = int(wrong[0])
        raise MXNetValueError(
            f"label {place} is {labels[place]}, which is no class of the model: expected whole numbers from 0 to "
            f"{classes - 1}"
        )


class _Search:
    """Ranges of a float32 model, and quantized models made with them."""

    def __init__(
        self,
        model: Model,
        batches: Sequence[Batch],
        labels: Array | None,
        calib_mode: str,
        quantize_mode: str,
        excluded: list[str],
    ) -> None:
        self.batches, self.labels = batches, labels
        self.mode, self.excluded = quantize_mode, excluded
        self.fused = Model(quantization._fused(model.symbol), model.args, model.auxs)
        self.answers = list(model.answers(batches))
        self._check_answers()
        first = self.answers[0][0]
        classes = first.ndim > 1 and first.shape[-1] > 1
        self.measure = ("agreement" if labels is None else "accuracy") if classes else "likeness"
        if labels is not None and not classes:
            raise MXNetValueError(f"labels need a model of classes; its output has shape {first.shape}")
        if labels is not None:
            _check_labels(labels, first.shape[-1])
        self.before = self.score(model)
        _, self.names = self._quantized_symbol([])
        self.able = self._able()
        self.ranges = self._calibrated(calib_mode)

    def _check_answers(self) -> None:
        for batch, answer in zip(self.batches, self.answers, strict=True):
            for name, value in batch.items():
                _calibration._numbers(name, value)
            for name, values in zip(self.fused.symbol.list_outputs(), answer, strict=True):
                _calibration._numbers(name, values)

    def _able(self) -> list[Node]:
        """The layers that can be quantized, in the order of the graph.

        MXNetValueError where there is nothing to quantize, and for a layer that does not compute in
        float32.
        """
        graph = _quantize_graph.order(_quantize_graph.read(self._quantized_symbol([])[0]))
        chosen = {node.name.removeprefix("quantized_") for node in graph if node.name.startswith("quantized_")}
        if not chosen:
            raise MXNetValueError(
                "no layer of the model can be quantized; expected at least one FullyConnected, LSTM, or Convolution in "
                "two or three dimensions"
            )
        nodes = _quantize_graph.order(_quantize_graph.read(self.fused.symbol))
        able = [node for node in nodes if node.op in _quantize_graph.MUST and node.name in chosen]
        types = self._types()
        for node in able:
            if (kind := types.get(node.output_name(0), "float32")) != "float32":
                raise MXNetValueError(
                    f"layer '{_layers_in(node)[0]}' computes in {kind}, and 8-bit integers are made of layers in "
                    "float32; give the model in float32"
                )
        return able

    def _types(self) -> dict[str, str]:
        """The element types of the results of layers, by their names."""
        internals = self.fused.symbol.get_internals()
        known = {name: one.dtype for name, one in {**self.fused.args, **self.batches[0]}.items()}
        arguments = internals.list_arguments()
        _, found, _ = internals.infer_type_partial(**{k: v for k, v in known.items() if k in arguments})
        named = zip(internals.list_outputs(), found or (), strict=False)
        return {name: dtype_name(one) for name, one in named if one is not None}

    def _calibrated(self, calib_mode: str) -> dict[str, tuple[float, float]]:
        collector = quantization._collector(calib_mode, "auto", self.names, None, None)
        internals = self.fused.symbol.get_internals()
        for name in self.names:
            if name in self.batches[0]:
                for batch in self.batches:
                    collector.collect(name, batch[name])
        shown = [name for name in self.names if name not in self.batches[0] and name not in self.fused.args]
        if shown:
            for arrays in self.fused.answers(self.batches, Group([internals[name] for name in shown])):
                for name, values in zip(shown, arrays, strict=True):
                    collector.collect(name, values)
        return quantization._ranges(collector, calib_mode, "auto")

    def _quantized_symbol(self, kept: Iterable[str], mode: str | None = None) -> tuple[Symbol, list[str]]:
        return quantization._quantize_symbol(
            self.fused.symbol, cpu(), [*self.excluded, *kept], None, self.fused.args, "auto", mode or self.mode
        )

    def quantized(self, kept: Iterable[str], mode: str | None = None) -> Model:
        """The quantized model whose layers of these names stay in float32."""
        symbol = quantization._calibrate_quantized_sym(self._quantized_symbol(kept, mode)[0], self.ranges)
        args = quantization._quantize_params(symbol, self.fused.args, self.ranges)
        return Model(quantization._joined(symbol), args, self.fused.auxs)

    def made(self, kept: Iterable[str]) -> Model:
        """The quantized model as files have it: weights that become integers are integers."""
        model = self.quantized(kept)
        heads = _quantize_graph.read(model.symbol)
        args = _stored_weights.stored(heads, model.args)
        return Model(_quantize_graph.write(heads), args, model.auxs)

    def score(self, model: Model) -> float:
        """How good a model is, by `measure`."""
        found = list(model.answers(self.batches))
        if self.measure == "likeness":
            return 1.0 - self.error(found)
        best = np.concatenate([one[0].argmax(-1).reshape(-1) for one in found])
        wanted = self.labels
        if wanted is None:
            wanted = np.concatenate([one[0].argmax(-1).reshape(-1) for one in self.answers])
        if len(best) != len(wanted):
            raise MXNetValueError(f"the model gives {len(best)} answers for {len(wanted)} labels")
        return float((best == wanted).mean())

    def error(self, found: Sequence[Sequence[Array]]) -> float:
        """The error of all outputs, relative to their size."""
        lost = size = 0.0
        for one, exact in zip(found, self.answers, strict=True):
            for a, b in zip(one, exact, strict=True):
                lost += float(((a.astype("float64") - b) ** 2).sum())
                size += float((b.astype("float64") ** 2).sum())
        return math.sqrt(lost / size) if size else math.sqrt(lost)

    def layers(self, step: Callable[[], None]) -> list[dict[str, Any]]:
        """The cost of each layer that can be quantized, in the order of the graph."""
        noise = self._noise([node.output_name(0) for node in self.able])
        found = []
        for node in self.able:
            alone = self.quantized([other.name for other in self.able if other is not node], "smart")
            low, high = self.ranges.get(node.output_name(0), (math.nan, math.nan))
            clipped, ratio = noise[node.output_name(0)]
            found.append(
                {
                    "name": node.name,
                    "layers": _layers_in(node),
                    "operator": node.op,
                    "range": [low, high],
                    "clipped": clipped,
                    "snr_db": ratio,
                    "output_error": self.error(list(alone.answers(self.batches))),
                }
            )
            step()
        return found

    def _noise(self, names: list[str]) -> dict[str, tuple[float, float]]:
        """The share of each value that is clipped, and its signal to noise in dB, if quantized."""
        if not names:
            return {}
        internals = self.fused.symbol.get_internals()
        sums = np.zeros((len(names), 4))
        for arrays in self.fused.answers(self.batches, Group([internals[name] for name in names])):
            for row, name, values in zip(sums, names, arrays, strict=True):
                row += _noise_of(values.astype("float64"), *self.ranges.get(name, (0.0, 0.0)))
        return {
            name: (clipped / count, 10 * math.log10(signal / noise) if noise and signal else math.inf)
            for name, (count, clipped, signal, noise) in zip(names, sums, strict=True)
        }

    def kept(self, layers: Sequence[Mapping[str, Any]], budget: float | None) -> set[str]:
        """The layers to keep in float32, so that no more than the budget is lost: as few of those
        that cost most as will do.
        """
        names = [one["name"] for one in sorted(layers, key=lambda one: -one["output_error"])]

        def holds(count: int) -> bool:
            return budget is None or self.before - self.score(self.made(names[:count])) <= budget

        if holds(0):
            return set()
        # What `low` layers do not reach, `high` do.
        low, high = 0, 1
        while high < len(names) and not holds(high):
            low, high = high, min(2 * high, len(names))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return set(names[:high])


def _noise_of(values: Array, low: float, high: float) -> tuple[float, float, float, float]:
    """Number of values, number that is clipped, their power, the power of what is lost."""
    end, levels = max(abs(low), abs(high)), 255 if low >= 0 else 127
    if end == 0.0:
        return values.size, 0.0, float((values**2).sum()), float((values**2).sum())
    unit = end / levels
    steps = np.clip(np.rint(values / unit), 0 if low >= 0 else -levels, levels)
    clipped = ((values > end * (1 + 1e-6)) | (values < (0 if low >= 0 else -end) - end * 1e-6)).sum()
    return values.size, float(clipped), float((values**2).sum()), float(((values - steps * unit) ** 2).sum())
