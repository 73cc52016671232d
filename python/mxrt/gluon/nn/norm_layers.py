"""Layers that normalise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._values.dtypes import dtype_name
from ..hybrid_block import HybridBlock
from ..parameter import Parameter

__all__ = ["BatchNorm", "BatchNormReLU", "GroupNorm", "InstanceNorm", "LayerNorm"]


class _Norm(HybridBlock):
    """A layer with a factor ``gamma`` and an offset ``beta`` for every channel."""

    _kwargs: dict[str, Any]

    def _make_params(self, count: int, center: bool, scale: bool, beta: Any, gamma: Any, may_turn: bool = True) -> None:
        """Makes the parameters. With `may_turn` one that is not learnt can become learnt later, by
        its ``grad_req``.
        """
        self.gamma: Parameter = self._channel_param("gamma", count, gamma, scale, may_turn or scale)
        self.beta: Parameter = self._channel_param("beta", count, beta, center, may_turn or center)

    def _channel_param(self, name: str, count: int, init: Any, learnt: bool, differentiable: bool) -> Parameter:
        return self.params.get(
            name,
            grad_req="write" if learnt else "null",
            shape=(count,),
            init=init,
            allow_deferred_init=True,
            differentiable=differentiable,
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self._shown().items())
        return f"{type(self).__name__}({shown}{self._channels()})"

    def _shown(self) -> dict[str, Any]:
        """The keywords that are shown, with numbers of numpy as those of Python."""
        return {key: one.item() if isinstance(one, np.generic) else one for key, one in self._kwargs.items()}

    def _channels(self) -> str:
        return f", in_channels={(self.gamma.shape or (0,))[0]}"


class _BatchNorm(_Norm):
    """Normalises every channel by a mean and a variance that training gathered.

    Parameters
    ----------
    axis : axis of the channels
    momentum : of the averages that training gathers
    epsilon : added to the variance
    center, scale : whether ``beta`` is added, and multiplied by ``gamma``
    use_global_stats : whether training uses the gathered mean and variance too
    in_channels : number of channels; 0: known from the first call
    """

    fuse_relu = False

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {
            "axis": axis,
            "eps": epsilon,
            "momentum": momentum,
            "fix_gamma": not scale,
            "use_global_stats": use_global_stats,
        }
        if in_channels != 0:
            self.in_channels = in_channels
        self._make_params(in_channels, center, scale, beta_initializer, gamma_initializer, may_turn=False)
        self.running_mean: Parameter = self._channel_param(
            "running_mean", in_channels, running_mean_initializer, False, False
        )
        self.running_var: Parameter = self._channel_param(
            "running_var", in_channels, running_variance_initializer, False, False
        )

    def cast(self, dtype: Any) -> None:
        """Changes the element type; under float16 the parameters stay float32."""
        super().cast("float32" if dtype_name(dtype) == "float16" else dtype)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """Returns an array with the shape of x."""
        norm = F.contrib.BatchNormWithReLU if self.fuse_relu else F.BatchNorm
        return norm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)

    def _channels(self) -> str:
        return f", in_channels={(self.gamma.shape or (0,))[0] or None}"


class BatchNorm(_BatchNorm):
    """Batch normalisation, with the mean and variance that training gathered."""


class BatchNormReLU(_BatchNorm):
    """Batch normalisation followed by a relu, as one operator."""

    fuse_relu = True


class InstanceNorm(_Norm):
    """Normalises every channel of every row by itself.

    Parameters
    ----------
    axis : axis of the channels
    epsilon : added to the variance
    center, scale : whether ``beta`` and ``gamma`` are learnt
    in_channels : number of channels; 0: known from the first call
    """

    def __init__(
        self,
        axis: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis = axis
        self._epsilon = epsilon
        self._make_params(in_channels, center, scale, beta_initializer, gamma_initializer)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        """Returns an array with the shape of x."""
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        x = x.swapaxes(1, self._axis)
        return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon).swapaxes(1, self._axis)


class LayerNorm(_Norm):
    """Normalises along one axis.

    Parameters
    ----------
    axis : the axis
    epsilon : added to the variance
    center, scale : whether ``beta`` and ``gamma`` are learnt
    in_channels : extent of the axis; 0: known from the first call
    """

    def __init__(
        self,
        axis: int = -1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis = axis
        self._epsilon = epsilon
        self._center = center
        self._scale = scale
        self._make_params(in_channels, center, scale, beta_initializer, gamma_initializer)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """Returns an array with the shape of data."""
        return F.LayerNorm(data, gamma=gamma, beta=beta, axis=self._axis, eps=self._epsilon)


class GroupNorm(_Norm):
    """Normalises groups of channels of every row; ``gamma`` and ``beta`` have an element for each
    group.

    Parameters
    ----------
    num_groups : into how many groups the channels are divided
    epsilon : added to the variance
    center, scale : whether ``beta`` and ``gamma`` are learnt
    """

    def __init__(
        self,
        num_groups: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._kwargs = {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}
        self._num_groups = num_groups
        self._epsilon = epsilon
        self._center = center
        self._scale = scale
        self._make_params(num_groups, center, scale, beta_initializer, gamma_initializer)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """Returns an array with the shape of data."""
        return F.GroupNorm(data, gamma=gamma, beta=beta, num_groups=self._num_groups, eps=self._epsilon)

    def _channels(self) -> str:
        return ""
