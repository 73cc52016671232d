"""Convolutions as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ... import _mxrt
from ..._scopes.np_mode import is_np_shape
from ..._values.extents import extents
from ...base import numeric_types
from ...symbol import var
from ..hybrid_block import HybridBlock
from ._weight_layer import WeightLayer
from .activations import Activation

if TYPE_CHECKING:
    from ..parameter import Parameter

__all__ = ["Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "ReflectionPad2D"]


def per_axis(value: Any, axes: int, name: str) -> tuple[int, ...]:
    """A number for every axis, given as one or as several."""
    found = tuple(value) if isinstance(value, (list, tuple)) else (value,) * axes
    if len(found) != axes:
        raise AssertionError(f"{name} must be a number or a list of {axes} ints, got {value}")
    return extents(found)


class _Conv(WeightLayer):
    """A convolution of any number of axes."""

    def __init__(
        self,
        channels: int,
        kernel_size: Any,
        strides: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        layout: str,
        in_channels: int = 0,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        op_name: str = "Convolution",
        adj: tuple[int, ...] | None = None,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        axes = len(layout) - 2
        kernel = per_axis(kernel_size, axes, "kernel_size")
        self._channels = channels
        self._in_channels = in_channels
        self._op_name = op_name
        self._kwargs: dict[str, Any] = {
            "kernel": kernel,
            "stride": per_axis(strides, axes, "strides"),
            "dilate": per_axis(dilation, axes, "dilation"),
            "pad": per_axis(padding, axes, "padding"),
            "num_filter": channels,
            "num_group": groups,
            "no_bias": not use_bias,
            "layout": layout,
        }
        if adj is not None:
            self._kwargs["adj"] = adj
        self._check_numbers()
        with self.name_scope():
            self.weight: Parameter = self.params.get(
                "weight", shape=self._weight_shape(), init=weight_initializer, allow_deferred_init=True
            )
            self.bias = None
            if use_bias:
                self.bias = self.params.get("bias", shape=(channels,), init=bias_initializer, allow_deferred_init=True)
            self.act: Activation | None = (
                None if activation is None else Activation(activation, prefix=activation + "_")
            )

    def _check_numbers(self) -> None:
        """Refuses what the operator refuses, before the layer is called."""
        operator = {"convolution": "Convolution", "deconvolution": "Deconvolution"}.get(self._op_name.lower())
        if operator is None:
            return
        made = _mxrt.create(operator, self.name, self._kwargs, [(None, var("data"))])
        layout: str = self._kwargs["layout"]
        if layout.startswith("NC"):  # what cannot be computed with channels last, the call says
            known = [-1 if is_np_shape() else 0] * len(layout)
            known[1] = self._in_channels or known[1]
            made.infer_shape_partial(data=tuple(known))

    def _weight_shape(self) -> tuple[int, ...]:
        kernel, groups = self._kwargs["kernel"], self._kwargs["num_group"]
        first, second = self._channels, self._in_channels // groups
        if self._op_name.lower() == "deconvolution":
            first, second = self._in_channels, self._channels // groups
        # Channels of the input come where the layout of the data has them.
        return (first, second, *kernel) if self._kwargs["layout"].startswith("NC") else (first, *kernel, second)

    def _alias(self) -> str:
        return "conv"

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """Shape of x with ``channels`` channels, and other extents as stride and padding make
        them.
        """
        out = self._apply_operator(F, x, weight, bias)
        return out if self.act is None else self.act(out)

    def _operator(self, F: Any, x: Any, weight: Any, bias: Any) -> Any:
        arrays = (x, weight) if bias is None else (x, weight, bias)
        return getattr(F, self._op_name)(*arrays, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        shape = self.weight.shape or (None, None)
        has = self._kwargs
        axes = len(has["kernel"])
        parts = [f"{shape[1] or None} -> {shape[0]}", f"kernel_size={has['kernel']}", f"stride={has['stride']}"]
        if has["pad"] != (0,) * axes:
            parts.append(f"padding={has['pad']}")
        if has["dilate"] != (1,) * axes:
            parts.append(f"dilation={has['dilate']}")
        if has["num_group"] != 1:
            parts.append(f"groups={has['num_group']}")
        if self.bias is None:
            parts.append("bias=False")
        if self.act:
            parts.append(repr(self.act))
        return f"{type(self).__name__}({', '.join(parts)})"


class _ConvLayer(_Conv):
    """A convolution over as many axes as its layouts have; the first of these is the default."""

    _layouts: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        channels: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        layout: str | None = None,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        """Makes the layer.

        Parameters
        ----------
        channels : number of channels of the output
        kernel_size, strides, padding, dilation : a number, or one for every axis
        groups : into how many groups that see nothing of each other the channels are divided
        layout : order of the axes of the input and the output
        activation : name of an activation function, or None
        in_channels : number of channels of the input; 0: known from the first call
        """
        layout = self._layouts[0] if layout is None else layout
        if layout not in self._layouts:
            names = " and ".join(f"'{one}'" for one in self._layouts)
            raise AssertionError(f"Only supports {names} layout for now, got '{layout}'")
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            dilation,
            groups,
            layout,
            in_channels,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            **kwargs,
        )


class _TransposedConvLayer(_ConvLayer):
    """A transposed convolution over as many axes as its layouts have."""

    def __init__(
        self,
        channels: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Makes the layer.

        Parameters
        ----------
        output_padding : how much is added to each extent of the output; a number, or one for every
            axis

        The others are those of :class:`Conv2D`, in its order.
        """
        self.outpad: tuple[int, ...] = per_axis(output_padding, len(self._layouts[0]) - 2, "output_padding")
        kwargs = {"op_name": "Deconvolution", "adj": self.outpad, **kwargs}
        super().__init__(channels, kernel_size, strides, padding, dilation, *args, **kwargs)


class Conv1D(_ConvLayer):
    """A convolution over one axis, such as time; layout ``NCW``."""

    _layouts = ("NCW",)


class Conv1DTranspose(_TransposedConvLayer):
    """A transposed convolution over one axis, such as time; layout ``NCW``."""

    _layouts = ("NCW",)


class Conv2D(_ConvLayer):
    """A convolution over two axes, such as images; layout ``NCHW`` or ``NHWC``."""

    _layouts = ("NCHW", "NHWC")


class Conv2DTranspose(_TransposedConvLayer):
    """A transposed convolution over two axes, such as images; layout ``NCHW`` or ``NHWC``."""

    _layouts = ("NCHW", "NHWC")


class Conv3D(_ConvLayer):
    """A convolution over three axes, such as volumes; layout ``NCDHW`` or ``NDHWC``."""

    _layouts = ("NCDHW", "NDHWC")


class Conv3DTranspose(_TransposedConvLayer):
    """A transposed convolution over three axes, such as volumes; layout ``NCDHW`` or ``NDHWC``."""

    _layouts = ("NCDHW", "NDHWC")


class ReflectionPad2D(HybridBlock):
    """Images with borders that mirror them.

    `padding` is the width on all four sides, or eight numbers, two for every axis.
    """

    def __init__(self, padding: Any = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        widths = (0, 0, 0, 0, *(padding,) * 4) if isinstance(padding, numeric_types) else tuple(padding)
        if len(widths) != 8:
            raise AssertionError(f"padding is a number or eight of them, got {padding}")
        self._padding = widths

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shape ``(n, c, h + top + bottom, w + left + right)``."""
        return F.pad(x, mode="reflect", pad_width=self._padding)


def __getattr__(name: str) -> Any:
    """Provides the pooling layers, which programs import from MXNet's module of this name."""
    from . import pool_layers

    if name in pool_layers.__all__:
        return getattr(pool_layers, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
