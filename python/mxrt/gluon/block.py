"""Blocks: models, and parts of models, as Python objects."""

from __future__ import annotations

import re
import warnings  # noqa: F401 (a name of MXNet's module)
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .._values.overrulable import overrulable
from ..base import warn
from ..initializer import Uniform
from . import _block_files as files
from ._publishing import publishing
from ._scope import BlockScope
from .parameter import Parameter
from .parameter_dict import ParameterDict
from .utils import HookHandle, Hooks, _indent

__all__ = ["Block"]

_Self = TypeVar("_Self", bound="Block")


def __getattr__(name: str) -> Any:
    # MXNet has these in this module too. Their own modules import this one, hence not before they
    # are asked for.
    if name == "HybridBlock":
        from .hybrid_block import HybridBlock

        return HybridBlock
    if name == "SymbolBlock":
        from .symbol_block import SymbolBlock

        return SymbolBlock
    if name == "_BlockScope":
        return BlockScope
    if name in ("_flatten", "_regroup"):
        from . import _structure

        return {"_flatten": _structure.flatten, "_regroup": _structure.regroup}[name]
    if name == "DeferredInitializationError":
        from .parameter import DeferredInitializationError

        return DeferredInitializationError
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class Block:
    """A model or a part of one: parameters, blocks inside, and a ``forward``.

    Blocks and parameters that are set as attributes are registered: ``collect_params`` finds them.

    Parameters
    ----------
    prefix : what the names of its parameters begin with; without one it is made from the name of
        the class
    params : parameters of another block, to be shared with it
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        self._empty_prefix = prefix == ""
        self._prefix, self._params = BlockScope.create(prefix, params, self._alias())
        self._name = self._prefix.removesuffix("_")
        self._child_counts: dict[str, int] = {}
        self._children: OrderedDict[str, Block] = OrderedDict()
        self._reg_params: dict[str, Parameter] = {}
        self._forward_hooks = Hooks()
        self._forward_pre_hooks = Hooks()

    def __repr__(self) -> str:
        return _shown(self, ((key, value) for key, value in list(self.__dict__.items()) if isinstance(value, Block)))

    def _repr_html_(self) -> str:
        from .._output.html import of_layers

        return of_layers(self)

    def __setattr__(self, name: str, value: Any) -> None:
        existing = getattr(self, name, None)
        if isinstance(existing, (Parameter, Block)) and not isinstance(value, type(existing)):
            raise TypeError(
                f"Changing attribute type for {name} from {type(existing)} to {type(value)} is not allowed."
            )
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            if name in self._reg_params:
                raise AssertionError(
                    f"Overriding Parameter attribute {name} is not allowed. If you want to share parameters between "
                    "blocks, please set 'params' at Block construction instead."
                )
            self._reg_params[name] = value
        super().__setattr__(name, value)

    def _alias(self) -> str:
        return type(self).__name__.lower()

    @property
    def name(self) -> str:
        """Name of the block, such as ``dense0``: its prefix without the last ``_``."""
        return self._name

    @property
    def prefix(self) -> str:
        """The prefix of its parameters' names."""
        return self._prefix

    @property
    def params(self) -> ParameterDict:
        """Parameters of this block, without those of the blocks inside."""
        return self._params

    def name_scope(self) -> BlockScope:
        """``with self.name_scope():`` names the blocks made inside after this one."""
        return self._scope

    @overrulable
    def _scope(self) -> BlockScope:
        return BlockScope(self)

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """Parameters of this block and of the blocks inside; with a regular expression only those
        whose names match.
        """
        self._warn_of_containers()
        found = ParameterDict(self._params.prefix)
        pattern = re.compile(select) if select else None
        found.update({n: p for n, p in self.params.items() if pattern is None or pattern.match(n)})
        for child in self._children.values():
            found.update(child.collect_params(select=select))
        return found

    def _warn_of_containers(self) -> None:
        """Warns of blocks in lists and the like, whose parameters are not found."""
        children = {id(child) for child in self._children.values()}
        # A forward in another thread may set attributes meanwhile.
        for name, value in list(self.__dict__.items()):
            if isinstance(value, (list, tuple, dict)) and name != "_children" and _holds_other_block(value, children):
                warn(
                    f'"{type(self).__name__}.{name}" is an unregistered container with Blocks. Note that Blocks '
                    "inside the list, tuple or dict will not be registered automatically. Make sure to register them "
                    "using register_child() or switching to nn.Sequential/nn.HybridSequential instead. "
                )

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Parameters by the attributes that lead to them: ``features.0.weight``."""
        if prefix:
            prefix += "."
        found = {prefix + key: parameter for key, parameter in self._reg_params.items()}
        for name, child in self._children.items():
            found.update(child._collect_params_with_prefix(prefix + name))
        return found

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Makes a block one of those inside, under a name (a number without one)."""
        self._children[str(len(self._children)) if name is None else name] = block

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """A function to be called with (block, inputs) before every call; the handle takes it away
        again.
        """
        return HookHandle(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """A function to be called with (block, inputs, output) after every call; the handle takes
        it away again.
        """
        return HookHandle(self._forward_hooks, hook)

    def register_op_hook(self, callback: Callable[..., Any], monitor_all: bool = False) -> None:
        """A function to be called with what each operator of a hybridised block made.

        It gets the name of the output and of the operator, both as bytes, and the array. With
        `monitor_all` it is called for inputs of operators too. A call then computes and shows every
        operator by itself, and is slow.
        """
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)

    def apply(self: _Self, fn: Callable[[Block], Any]) -> _Self:
        """Calls a function with every block inside, and then with this one."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    def initialize(self, init: Any = None, ctx: Any = None, verbose: bool = False, force_reinit: bool = False) -> None:
        """Gives every parameter a first value, by its own initializer or by `init` (evenly
        distributed without one).

        Parameters
        ----------
        ctx : context or contexts; each gets a copy
        verbose : prints the initializers, as in MXNet
        force_reinit : parameters that have a value get another one
        """
        self.collect_params().initialize(Uniform() if init is None else init, ctx, verbose, force_reinit)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridises the blocks inside that can be, or with ``active=False`` ends that; see
        :meth:`HybridBlock.hybridize`.
        """
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    def cast(self, dtype: Any) -> None:
        """Changes the element type of all parameters to `dtype`; calls see all or none changed."""
        with publishing:
            for child in self._children.values():
                child.cast(dtype)
            for parameter in self.params.values():
                parameter.cast(dtype)

    # ---- files -----------------------------------------------------------------------------------

    def save_parameters(self, filename: str, deduplicate: bool = False) -> None:
        """Writes all parameters to a file, under the attributes that lead to them.

        With `deduplicate` a parameter that several blocks share is written once.
        """
        files.save_parameters(self, filename, deduplicate)

    def load_parameters(
        self,
        filename: str,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Reads all parameters from a file written by ``save_parameters``, or under the names of
        the parameters.

        When something does not fit, one error lists all of it, and no parameter is changed.

        Parameters
        ----------
        filename : path of the file
        ctx : contexts for parameters that have none yet
        allow_missing : parameters without a value in the file are left alone
        ignore_extra : values for no parameter are left out
        cast_dtype : values of another element type are accepted: cast to that of the parameter with
            ``dtype_source='current'``, or the parameter is cast to theirs with ``'saved'``

        Raises
        ------
        MXNetDataError (a ValueError) : the file cannot be read, or is damaged
        MXNetValueError (a ValueError) : names, shapes or element types that do not fit
        """
        files.load_parameters(self, filename, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source)

    def save_params(self, filename: str) -> None:
        """Writes all parameters under their names without the prefix of the block; save_parameters
        replaces it.
        """
        warn("save_params is deprecated. Please use save_parameters.")
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_params(
        self, filename: str, ctx: Any = None, allow_missing: bool = False, ignore_extra: bool = False
    ) -> None:
        """Old name of ``load_parameters``."""
        warn("load_params is deprecated. Please use load_parameters.")
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def save(self, prefix: str) -> None:
        """Writes ``prefix-model.json``, how the blocks are nested, and ``prefix-model.params``."""
        files.save_model(self, prefix)

    def load(self, prefix: str) -> None:
        """Reads what ``save`` wrote into a block that was made in the same way."""
        files.load_model(self, prefix)

    # ---- calls -----------------------------------------------------------------------------------

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self._forward_pre_hooks:
            for hook in list(self._forward_pre_hooks.values()):
                hook(self, args)
        out = self.forward(*args, **options)
        if self._forward_hooks:
            for hook in list(self._forward_hooks.values()):
                hook(self, args, out)
        return out

    def forward(self, *args: Any, **options: Any) -> Any:
        """The computation of the block; to be defined by the class."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def summary(self, *inputs: Any) -> None:
        """Prints the outputs and parameters of all blocks inside, by running it on `inputs`.

        The parameters must have values or get them by running, and no block may be hybridised
        (AssertionError).
        """
        from ._summary import print_summary

        print_summary(self, inputs)


def _shown(block: Block, parts: Iterator[tuple[str, Block]]) -> str:
    inner = "\n".join(f"  ({key}): {_indent(repr(part), 2)}" for key, part in parts)
    return f"{type(block).__name__}(\n{inner}\n)"


def _holds_other_block(value: Any, known: set[int]) -> bool:
    if isinstance(value, Block):
        return id(value) not in known
    if isinstance(value, dict):
        value = list(value.values())
    elif not isinstance(value, (list, tuple)):
        return False
    return any(_holds_other_block(part, known) for part in value)
