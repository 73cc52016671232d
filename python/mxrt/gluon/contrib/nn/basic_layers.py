"""Blocks side by side, and layers that rearrange pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import ndarray
from ...block import Block
from ...hybrid_block import HybridBlock
from ...nn import BatchNorm, HybridSequential, Sequential
from ...nn.conv_layers import per_axis

if TYPE_CHECKING:
    from ...parameter import Parameter

__all__ = [
    "Concurrent",
    "HybridConcurrent",
    "Identity",
    "PixelShuffle1D",
    "PixelShuffle2D",
    "PixelShuffle3D",
    "SparseEmbedding",
    "SyncBatchNorm",
]


class Concurrent(Sequential):
    """Blocks side by side: all get the input, and their results are joined along an axis."""

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x: Any) -> Any:
        """The results of all blocks, joined."""
        return ndarray.concat(*[block(x) for block in self._children.values()], dim=self.axis)


class HybridConcurrent(HybridSequential):
    """Blocks that can be hybridised side by side: all get the input, and their results are joined
    along an axis.
    """

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The results of all blocks, joined."""
        return F.concat(*[block(x) for block in self._children.values()], dim=self.axis)


class Identity(HybridBlock):
    """Returns its input."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The input."""
        return x


class SparseEmbedding(Block):
    """Rows of a matrix ``(input_dim, output_dim)`` by their numbers. Here the matrix is stored
    densely.
    """

    def __init__(
        self, input_dim: int, output_dim: int, dtype: Any = "float32", weight_initializer: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {"input_dim": input_dim, "output_dim": output_dim, "dtype": dtype, "sparse_grad": True}
        self.weight: Parameter = self.params.get(
            "weight",
            shape=(input_dim, output_dim),
            init=weight_initializer,
            dtype=dtype,
            grad_stype="row_sparse",
            stype="row_sparse",
        )

    def forward(self, x: Any) -> Any:
        """Shape of x followed by ``output_dim``."""
        return ndarray.Embedding(x, self.weight._held(x.context), **self._kwargs)

    def __repr__(self) -> str:
        shown = self._kwargs
        return f"{type(self).__name__}({shown['input_dim']} -> {shown['output_dim']}, {shown['dtype']})"


class SyncBatchNorm(BatchNorm):
    """Batch normalisation that training synchronises between devices: outside of training the same
    as BatchNorm.

    `num_devices` and the other arguments that concern training are accepted.
    """

    def __init__(
        self,
        in_channels: int = 0,
        num_devices: int | None = None,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            1,
            momentum,
            epsilon,
            center,
            scale,
            use_global_stats,
            beta_initializer,
            gamma_initializer,
            running_mean_initializer,
            running_variance_initializer,
            in_channels,
            **kwargs,
        )
        self._devices = 1 if num_devices is None else num_devices

    def _shown(self) -> dict[str, Any]:
        shown = {**super()._shown(), "ndev": self._devices, "key": self.prefix}
        return {key: value for key, value in shown.items() if key != "axis"}


class PixelShuffle1D(HybridBlock):
    """Lengthens a row by taking its elements from several channels: ``(n, f * c, w)`` to
    ``(n, c, w * f)``.
    """

    def __init__(self, factor: int) -> None:
        super().__init__()
        self._factor = int(factor)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shape ``(n, c, w * f)``."""
        x = F.reshape(x, (0, -4, -1, self._factor, 0))
        return F.reshape(F.transpose(x, (0, 1, 3, 2)), (0, 0, -3))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factor})"


class PixelShuffle2D(HybridBlock):
    """Enlarges an image by taking its pixels from several channels.

    ``(n, f1 * f2 * c, h, w)`` becomes ``(n, c, h * f1, w * f2)``; `factor` is a number, or one for
    each axis.
    """

    def __init__(self, factor: Any) -> None:
        super().__init__()
        self._factors = per_axis(factor, 2, "factor")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shape ``(n, c, h * f1, w * f2)``."""
        f1, f2 = self._factors
        x = F.reshape(x, (0, -4, -1, f1 * f2, 0, 0))
        x = F.reshape(x, (0, 0, -4, f1, f2, 0, 0))
        return F.reshape(F.transpose(x, (0, 1, 4, 2, 5, 3)), (0, 0, -3, -3))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors})"


class PixelShuffle3D(HybridBlock):
    """Enlarges a volume by taking its elements from several channels.

    ``(n, f1 * f2 * f3 * c, d, h, w)`` becomes ``(n, c, d * f1, h * f2, w * f3)``; `factor` is a
    number, or one for each axis.
    """

    def __init__(self, factor: Any) -> None:
        super().__init__()
        self._factors = per_axis(factor, 3, "factor")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shape ``(n, c, d * f1, h * f2, w * f3)``."""
        f1, f2, f3 = self._factors
        # One axis after the other takes its factor out of the channels: operators know up to six
        # axes at once.
        x = F.reshape(x, (0, -4, -1, f1 * f2 * f3, 0, 0, 0))
        x = F.swapaxes(x, 2, 3)
        x = F.reshape(x, (0, 0, 0, -4, f1, f2 * f3, 0, 0))
        x = F.swapaxes(F.reshape(x, (0, 0, -3, 0, 0, 0)), 3, 4)
        x = F.reshape(x, (0, 0, 0, 0, -4, f2, f3, 0))
        x = F.swapaxes(F.reshape(x, (0, 0, 0, -3, 0, 0)), 4, 5)
        return F.reshape(x, (0, 0, 0, 0, -3))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors})"
