"""Blocks: models, and parts of models, as Python objects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NoReturn

from ..base import MXNetNotImplementedError
from .parameter import ParameterDict, named_arrays, publishing, strip_kind

__all__ = ["Block", "HybridBlock"]


def __getattr__(name: str) -> Any:
    # MXNet has SymbolBlock in this module too. Its own module imports this one, hence not before somebody asks.
    if name == "SymbolBlock":
        from .symbol_block import SymbolBlock

        return SymbolBlock
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


_counter_lock = threading.Lock()
_counters: dict[str, int] = {}


def _numbered(hint: str) -> str:
    with _counter_lock:
        number = _counters.get(hint, 0)
        _counters[hint] = number + 1
    return f"{hint}{number}"


class Block:
    """A model or a part of one: parameters and a ``forward``."""

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        self._name = _numbered(type(self).__name__.lower())
        self._prefix = f"{self._name}_" if prefix is None else prefix
        self._params = ParameterDict(self._prefix, params)
        self._hooks: list[Callable[..., Any]] = []
        self._pre_hooks: list[Callable[..., Any]] = []

    @property
    def name(self) -> str:
        """Name of the block, such as ``symbolblock0``."""
        return self._name

    @property
    def prefix(self) -> str:
        """What the names of its parameters begin with."""
        return self._prefix

    @property
    def params(self) -> ParameterDict:
        """Its own parameters, without those of other blocks."""
        return self._params

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """The parameters; with a regular expression only those whose names match."""
        return self._params if select is None else self._params.select(select)

    def initialize(self, init: Any = None, ctx: Any = None, verbose: bool = False, force_reinit: bool = False) -> None:
        """Gives every parameter a first value."""
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Accepted: what runs is always compiled."""

    def cast(self, dtype: Any) -> None:
        """Changes the element type of all parameters."""
        with publishing:
            for parameter in self.collect_params().values():
                parameter.cast(dtype)

    def apply(self, fn: Callable[[Block], Any]) -> Block:
        """Calls a function with the block."""
        fn(self)
        return self

    def register_forward_hook(self, hook: Callable[..., Any]) -> None:
        """A function to be called with (block, inputs, output) after every call."""
        self._hooks.append(hook)

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> None:
        """A function to be called with (block, inputs) before every call."""
        self._pre_hooks.append(hook)

    def register_op_hook(self, callback: Any, monitor_all: bool = False) -> NoReturn:
        """Refused: compiled plans have no results in between to be shown."""
        raise MXNetNotImplementedError("register_op_hook is not part of this build of mxrt")

    def save_parameters(self, filename: str, deduplicate: bool = False) -> None:
        """Writes all parameters to a file, names without what all of them begin with."""
        params = self.collect_params()
        params.save(filename, _common_prefix(list(params)))

    def load_parameters(
        self,
        filename: str,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Reads all parameters from a file written by ``save_parameters`` or ``export``."""
        params = self.collect_params()
        values = {strip_kind(name): value for name, value in named_arrays(filename).items()}
        prefix = _common_prefix(list(params))
        # save_parameters leaves the common prefix out, export does not.
        if not any(name in params for name in values) and any(prefix + name in params for name in values):
            values = {prefix + name: value for name, value in values.items()}
        current = cast_dtype and dtype_source == "current"
        params._load(values, f"file: {filename}", ctx, allow_missing, ignore_extra, cast=current, own=True)

    save_params = save_parameters
    load_params = load_parameters

    def __call__(self, *args: Any, **options: Any) -> Any:
        for hook in self._pre_hooks:
            hook(self, args)
        out = self.forward(*args, **options)
        for hook in self._hooks:
            hook(self, args, out)
        return out

    def forward(self, *args: Any, **options: Any) -> Any:
        """What the block computes."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")


class HybridBlock(Block):
    """A block that can be expressed as a graph."""

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no hybrid_forward")

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> None:
        raise RuntimeError(
            "Please first call block.hybridize() and then run forward with this block at least once before calling "
            "export."
        )


def _common_prefix(names: list[str]) -> str:
    if not names:
        return ""
    first, last = min(names), max(names)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[:length]
