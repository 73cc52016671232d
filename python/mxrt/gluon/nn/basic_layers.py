"""Layers one after the other, dense layers, embeddings, and functions as layers."""

from __future__ import annotations

import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ... import ndarray, symbol
from ...base import warn
from ..block import Block, _shown
from ..hybrid_block import HybridBlock
from ._weight_layer import WeightLayer
from .activations import Activation
from .norm_layers import BatchNorm, BatchNormReLU, GroupNorm, InstanceNorm, LayerNorm

__all__ = [
    "BatchNorm",
    "BatchNormReLU",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "HybridLambda",
    "HybridSequential",
    "InstanceNorm",
    "Lambda",
    "LayerNorm",
    "Sequential",
]


if TYPE_CHECKING:
    from ..parameter import Parameter

    _Base = Block
else:
    _Base = object


class _Stack(_Base):
    """The common part of Sequential and HybridSequential."""

    def add(self, *blocks: Block) -> None:
        """Adds blocks after the present ones."""
        for block in blocks:
            self.register_child(block)

    def __repr__(self) -> str:
        return _shown(self, iter(self._children.items()))

    def __getitem__(self, key: int | slice) -> Any:
        """A layer by its number; several, as a new block of the same kind, by a slice."""
        layers = list(self._children.values())[key]
        if not isinstance(layers, list):
            return layers
        part = type(self)(prefix=self._prefix)
        with part.name_scope():
            part.add(*layers)
        return part

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Block]:
        return iter(list(self._children.values()))


class Sequential(_Stack, Block):
    """Blocks one after the other."""

    def forward(self, x: Any) -> Any:
        """The result of the last block, each block applied to the result of the one before."""
        for block in self._children.values():
            x = block(x)
        return x

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridises the blocks inside, each for itself."""
        if self._children and all(isinstance(child, HybridBlock) for child in self._children.values()):
            warn(
                f"All children of this Sequential layer '{self.prefix}' are HybridBlocks. Consider using "
                "HybridSequential for the best performance."
            )
        super().hybridize(active, **kwargs)


class HybridSequential(_Stack, HybridBlock):
    """Blocks that can be hybridised, one after the other."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The result of the last block, each block applied to the result of the one before."""
        for block in self._children.values():
            x = block(x)
        return x


class Dense(WeightLayer):
    """A fully connected layer: ``activation(x * weight^T + bias)``.

    Parameters
    ----------
    units : width of the output
    activation : name of an activation function, or None
    flatten : True takes all axes but the first as one; False works on the last axis only
    in_units : width of the input; 0: known from the first call
    """

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        use_bias: bool = True,
        flatten: bool = True,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_units: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._flatten = flatten
        self._units = units
        self._in_units = in_units
        with self.name_scope():
            self.weight: Parameter = self.params.get(
                "weight", shape=(units, in_units), init=weight_initializer, dtype=dtype, allow_deferred_init=True
            )
            self.bias = None
            if use_bias:
                self.bias = self.params.get(
                    "bias", shape=(units,), init=bias_initializer, dtype=dtype, allow_deferred_init=True
                )
            self.act: Activation | None = (
                None if activation is None else Activation(activation, prefix=activation + "_")
            )

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """Shape ``(n, units)``; without `flatten` ``(..., units)``."""
        out = self._apply_operator(F, x, weight, bias)
        return out if self.act is None else self.act(out)

    def _operator(self, F: Any, x: Any, weight: Any, bias: Any) -> Any:
        return F.FullyConnected(
            x, weight, bias, no_bias=bias is None, num_hidden=self._units, flatten=self._flatten, name="fwd"
        )

    def __repr__(self) -> str:
        shape = self.weight.shape or (None, None)
        return f"{type(self).__name__}({shape[1] or None} -> {shape[0]}, {self.act or 'linear'})"


class Dropout(HybridBlock):
    """Sets elements to zero while training; at inference the values pass unchanged.

    Parameters
    ----------
    rate : the part of the elements that training sets to zero
    axes : axes along which training sets all to zero or none
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rate = rate
        self._axes = axes

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Returns the values, of which training sets some to zero."""
        if self._rate > 0:
            return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd", cudnn_off=False)
        return F.identity(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


class Embedding(HybridBlock):
    """Rows of a matrix ``(input_dim, output_dim)`` by their numbers."""

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        sparse_grad: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {
            "input_dim": input_dim,
            "output_dim": output_dim,
            "dtype": dtype,
            "sparse_grad": sparse_grad,
        }
        self.weight: Parameter = self.params.get(
            "weight",
            shape=(input_dim, output_dim),
            init=weight_initializer,
            dtype=dtype,
            allow_deferred_init=True,
            grad_stype="row_sparse" if sparse_grad else "default",
        )

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        """Shape of x followed by ``output_dim``."""
        return F.Embedding(x, weight, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        shown = self._kwargs
        return f"{type(self).__name__}({shown['input_dim']} -> {shown['output_dim']}, {shown['dtype']})"


class Flatten(HybridBlock):
    """All axes but the first as one."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shape ``(n, rest)``."""
        return F.flatten(x)

    def __repr__(self) -> str:
        return type(self).__name__


class Lambda(Block):
    """A function as a block: the name of one in ``mx.nd``, or anything that can be called with
    arrays.
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            if not hasattr(ndarray, function):
                raise AssertionError(f"Function name {function} is not found in ndarray.")
            self._func_impl: Callable[..., Any] = getattr(ndarray, function)
        elif callable(function):
            self._func_impl = function
        else:
            raise ValueError(f"Unrecognized function in lambda: {function} of type {type(function)}")

    def forward(self, *args: Any) -> Any:
        """The function's result for the arguments."""
        return self._func_impl(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_impl.__name__})"


class HybridLambda(HybridBlock):
    """A function as a block: the name of one in ``mx.nd`` and ``mx.sym``, or anything to be called
    as ``f(F, x)``.
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        self._func: Callable[..., Any]
        if isinstance(function, str):
            if not (hasattr(ndarray, function) and hasattr(symbol, function)):
                raise AssertionError(f"Function name {function} is not found in symbol/ndarray.")
            self._func_name = function
            self._func = lambda F, *args: getattr(F, function)(*args)
        elif callable(function):
            self._func_name = function.__name__
            self._func = function
            self._calls_the_program = True
        else:
            raise ValueError(f"Unrecognized function in lambda: {function} of type {type(function)}")

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """The function's result for the arguments."""
        return self._func(F, x, *args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"
