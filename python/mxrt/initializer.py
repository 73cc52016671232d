"""First values of parameters: ``mx.init``."""

from __future__ import annotations

import json
import logging  # noqa: F401 (a name of MXNet's module)
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _mxrt, registry
from ._output.log import info
from ._values.filled_by_name import OF_STRINGS, OF_VARIABLES, ByName, bilinear, filler
from .base import MXNetDeprecationWarning, MXNetValueError, warn
from .ndarray import NDArray, load

__all__ = [
    "Bilinear",
    "Constant",
    "FusedRNN",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "alias",
    "create",
    "register",
]


class InitDesc(str):
    """The name of a parameter, with the attributes of its variable and the initializer of the whole
    network.

    An attribute ``__init__``, the text that ``dumps`` writes, overrules the initializer and the
    name.
    """

    attrs: dict[str, str]
    global_init: Any

    def __new__(cls, name: str, attrs: Mapping[str, str] | None = None, global_init: Any = None) -> InitDesc:
        made = super().__new__(cls, name)
        made.attrs = dict(attrs or {})
        made.global_init = global_init
        return made


class Initializer(ByName):
    """Fills arrays by the names of their parameters.

    Names that end with ``weight`` get what ``_init_weight`` of the subclass makes of them. Biases,
    betas and minima become 0, gammas and maxima 1. Other names are a ValueError, unless the
    subclass defines ``_init_default``.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[NDArray], str] = _size

    def set_verbosity(self, verbose: bool = False, print_func: Callable[[NDArray], str] | None = None) -> Initializer:
        """Whether every array that is filled is logged, with what `print_func` says of it: by
        default the root of its mean square.
        """
        self._verbose = verbose
        self._print_func = print_func or _size
        return self

    def dumps(self) -> str:
        """Name and arguments as JSON, as symbol files hold them."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __call__(self, desc: str, arr: NDArray) -> None:
        if not isinstance(desc, InitDesc):
            self._legacy_init(desc, arr)
            return
        if desc.global_init is None:
            desc.global_init = self
        own = desc.attrs.get("__init__")
        if own:
            create(own)._init_weight(desc, arr)
            self._verbose_print(desc, own, arr)
            return
        ending, method = filler(OF_VARIABLES, desc)
        getattr(self, method)(desc, arr)
        if ending:
            self._verbose_print(desc, ending, arr)

    def _legacy_init(self, name: str, arr: NDArray) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be string, got {type(name).__name__}: pass mx.init.InitDesc(...)")
        if not isinstance(arr, NDArray):
            raise TypeError(f"arr must be NDArray, got {type(arr).__name__}")
        warn(
            "Calling initializer with init(str, NDArray) has been deprecated. "
            "Please use init(mx.init.InitDesc(...), NDArray) instead.",
            MXNetDeprecationWarning,
        )
        getattr(self, filler(OF_STRINGS, name)[1])(name, arr)

    def _verbose_print(self, desc: str, init: Any, arr: NDArray) -> None:
        if self._verbose:
            info("Initialized %s as %s: %s", desc, init, self._print_func(arr))


def _size(array: NDArray) -> str:
    """The root of the mean square, as text."""
    return str(np.linalg.norm(array.asnumpy()) / math.sqrt(array.size))


_register = registry.get_register_func(Initializer, "initializer")
alias: Callable[..., Any] = registry.get_alias_func(Initializer, "initializer")
_create = registry.get_create_func(Initializer, "initializer")


def register(klass: type) -> Any:
    """Registers a class of initializers under its lower-case name."""
    return _register(klass)


def create(init: Any, *args: Any, **kwargs: Any) -> Any:
    """An initializer from its name, or from the text that ``dumps`` writes; anything else is
    returned unchanged. The other arguments are those of its class.
    """
    return _create(init, *args, **kwargs) if isinstance(init, str) else init


@register
class Constant(Initializer):
    """One value everywhere, or an array of the parameter's shape.

    Parameters
    ----------
    value : a number, or an array of the parameter's shape
    """

    def __init__(self, value: Any = 0.0) -> None:
        super().__init__(value=value)
        self.value = value

    def dumps(self) -> str:
        """Name and value as JSON."""
        value = self.value.asnumpy() if isinstance(self.value, NDArray) else self.value
        if not np.isscalar(value):
            self._kwargs["value"] = np.asarray(value).tolist()
        return super().dumps()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = self.value


@register
@alias("zeros")
class Zero(Initializer):
    """Zeros."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0


@register
@alias("ones")
class One(Initializer):
    """Ones."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 1.0


def _uniform(scale: float, arr: NDArray) -> None:
    _mxrt.invoke(
        "_random_uniform", (), {"low": -scale, "high": scale, "shape": arr.shape, "dtype": arr._dtype_name}, arr
    )


def _normal(sigma: float, arr: NDArray) -> None:
    _mxrt.invoke("_random_normal", (), {"loc": 0, "scale": sigma, "shape": arr.shape, "dtype": arr._dtype_name}, arr)


@register
class Uniform(Initializer):
    """Evenly distributed within ``[-scale, scale]``.

    Parameters
    ----------
    scale : the largest magnitude
    """

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _uniform(self.scale, arr)


@register
class Normal(Initializer):
    """Normally distributed around 0.

    Parameters
    ----------
    sigma : the standard deviation
    """

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _normal(self.sigma, arr)


@register
class Orthogonal(Initializer):
    """Rows, or columns if there are fewer, that are orthogonal and of length `scale`, in a random
    direction.

    Parameters
    ----------
    scale : length of each row or column
    rand_type : what the directions are drawn from: ``uniform`` or ``normal``; MXNetValueError for
        others
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform") -> None:
        super().__init__(scale=scale, rand_type=rand_type)
        if rand_type not in ("uniform", "normal"):
            raise MXNetValueError(f"Orthogonal: rand_type is '{rand_type}', expected 'uniform' or 'normal'")
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, name: str, arr: NDArray) -> None:
        from .ndarray import random

        shape = (arr.shape[0], arr.size // arr.shape[0])
        draw = random.uniform(-1.0, 1.0, shape) if self.rand_type == "uniform" else random.normal(0.0, 1.0, shape)
        left, _, right = np.linalg.svd(draw.asnumpy(), full_matrices=False)
        chosen = left if left.shape == shape else right
        arr[:] = (self.scale * chosen).reshape(arr.shape).astype("float32")


@register
class Xavier(Initializer):
    """Random values, the smaller the more inputs and outputs a neuron has. For parameters of two or
    more axes; ValueError for vectors.

    Parameters
    ----------
    rnd_type : the distribution: ``uniform``, within ``sqrt(magnitude / factor)``, or ``gaussian``,
        with that standard deviation
    factor_type : what the factor counts: inputs ``in``, outputs ``out``, or their average ``avg``
    magnitude : how large the values are
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        shape = arr.shape
        if len(shape) < 2:
            raise ValueError(f"Xavier initializer cannot be applied to vector {name}. It requires at least 2D.")
        area = math.prod(shape[2:])
        factors = {"in": shape[1] * area, "out": shape[0] * area, "avg": (shape[0] + shape[1]) * area / 2.0}
        draws = {"uniform": _uniform, "gaussian": _normal}
        if self.factor_type not in factors:
            raise ValueError(f"Incorrect factor type '{self.factor_type}'; known: {', '.join(factors)}")
        if self.rnd_type not in draws:
            raise ValueError(f"Unknown random type '{self.rnd_type}'; known: {', '.join(draws)}")
        draws[self.rnd_type](math.sqrt(self.magnitude / factors[self.factor_type]), arr)


@register
class MSRAPrelu(Xavier):
    """Kaiming initialization for layers before a PReLU.

    Parameters
    ----------
    factor_type : as for :class:`Xavier`
    slope : the slope that the PReLU begins with
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Bilinear(Initializer):
    """The weights of a deconvolution that enlarges images by bilinear interpolation: four axes."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        bilinear(name, arr)


@register
class LSTMBias(Initializer):
    """Zeros, but another value for the forget gates of an LSTM cell, the second quarter.

    Parameters
    ----------
    forget_bias : the value for the forget gates
    """

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        quarter = arr.shape[0] // 4
        arr[:] = 0.0
        arr[quarter : 2 * quarter] = self.forget_bias


@register
class FusedRNN(Initializer):
    """The parameters of a fused recurrent layer, one array: each part is filled by itself.

    Parameters
    ----------
    init : initializer of the parts, or its name; None for the one of the network
    num_hidden, num_layers : size of a layer, and how many layers there are
    mode : ``rnn_relu``, ``rnn_tanh``, ``lstm`` or ``gru``
    bidirectional : whether each layer reads in both directions
    forget_bias : the value for the forget gates of an LSTM
    """

    def __init__(
        self,
        init: Any,
        num_hidden: int,
        num_layers: int,
        mode: str,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        inner = create(init)
        super().__init__(
            init=None if inner is None else inner.dumps(),
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )
        self._init = inner
        self._num_hidden, self._num_layers = num_hidden, num_layers
        self._mode, self._bidirectional = mode, bidirectional
        self._forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        from .rnn import FusedRNNCell

        whole = getattr(name, "global_init", None)
        shape = (self._num_hidden, self._num_layers, self._mode, self._bidirectional)
        cell = FusedRNNCell(*shape, forget_bias=self._forget_bias, prefix="")
        parts = cell.unpack_weights({"parameters": arr})
        for part, value in parts.items():
            if cell._mode == "lstm" and part.endswith("_f_bias"):
                value[:] = self._forget_bias
                continue
            fill = whole if self._init is None else self._init
            if fill is None:
                raise MXNetValueError("FusedRNN: init is None, and the parameter's name brings no initializer along")
            fill(InitDesc(part, global_init=whole), value)
        arr[:] = cell.pack_weights(parts)["parameters"]


class Load:
    """Fills arrays from a file, or a dictionary of arrays.

    Parameters
    ----------
    param : name of a parameter file, or arrays by name; ``arg:`` and ``aux:`` are taken off
    default_init : initializer of arrays that are missing there; without it that is an
        AssertionError, as is another shape
    verbose : logs where each value comes from
    """

    def __init__(self, param: Any, default_init: Any = None, verbose: bool = False) -> None:
        found = load(param) if isinstance(param, str) else param
        if not isinstance(found, dict):
            raise AssertionError(f"Load: expected arrays by name, got {type(found)}")
        self.param: dict[str, Any] = {
            n[4:] if n.startswith(("arg:", "aux:")) else n: array for n, array in found.items()
        }
        self.default_init = default_init
        self.verbose = verbose

    def __call__(self, name: str, arr: NDArray) -> None:
        value = self.param.get(str(name))
        if value is None:
            if self.default_init is None:
                raise AssertionError(
                    f"Cannot Initialize {name}. Not found in loaded param and no default Initializer is provided."
                )
            self.default_init(name, arr)
        elif arr.shape != value.shape:
            raise AssertionError(
                f"Parameter {name} cannot be initialized from loading. Shape mismatch, target {arr.shape} vs loaded "
                f"{value.shape}"
            )
        else:
            arr[:] = value
        if self.verbose:
            info("Initialized %s by %s", name, "default" if value is None else "loading")


class Mixed:
    """Several initializers, chosen by the names of parameters.

    Parameters
    ----------
    patterns : regular expressions; the first that the beginning of a name matches counts
    initializers : an initializer for each

    AssertionError if these are not equally many, ValueError for a name that matches none.
    """

    def __init__(self, patterns: list[str], initializers: list[Any]) -> None:
        if len(patterns) != len(initializers):
            raise AssertionError(f"Mixed: {len(patterns)} patterns, but {len(initializers)} initializers")
        self.map: list[tuple[re.Pattern[str], Any]] = list(
            zip([re.compile(pattern) for pattern in patterns], initializers, strict=True)
        )

    def __call__(self, name: str, arr: NDArray) -> None:
        for pattern, fill in self.map:
            if pattern.match(name):
                fill(name, arr)
                return
        raise ValueError(
            f'Parameter name {name} did not match any pattern. Consider adding a ".*" pattern at the end with default '
            "Initializer."
        )
