"""Convolutions whose windows take elements from learnt places."""

from __future__ import annotations

from typing import Any

from ...hybrid_block import HybridBlock
from ...nn import Activation
from ...nn.conv_layers import per_axis

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]


class _Deformable(HybridBlock):
    """The common part of both classes: a convolution makes the offsets of another one."""

    # Numbers that the first convolution makes for each element of a window.
    _per_element = 2

    def __init__(
        self,
        channels: int,
        kernel_size: Any = (1, 1),
        strides: Any = (1, 1),
        padding: Any = (0, 0),
        dilation: Any = (1, 1),
        groups: int = 1,
        num_deformable_group: int = 1,
        layout: str = "NCHW",
        use_bias: bool = True,
        in_channels: int = 0,
        activation: str | None = None,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        offset_weight_initializer: Any = "zeros",
        offset_bias_initializer: Any = "zeros",
        offset_use_bias: bool = True,
        op_name: str | None = None,
        adj: Any = None,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        if layout not in ("NCHW", "NHWC"):
            raise AssertionError(f"Only supports 'NCHW' and 'NHWC' layout for now, got '{layout}'")
        self._channels = channels
        self._in_channels = in_channels
        self._op_name = op_name or type(self).__name__
        kernel = per_axis(kernel_size, 2, "kernel_size")
        elements = kernel[0] * kernel[1] * num_deformable_group
        shared: dict[str, Any] = {
            "kernel": kernel,
            "stride": per_axis(strides, 2, "strides"),
            "dilate": per_axis(dilation, 2, "dilation"),
            "pad": per_axis(padding, 2, "padding"),
            "num_group": groups,
            "layout": layout,
            **({"adj": adj} if adj else {}),
        }
        made = self._per_element * elements
        self._kwargs_offset = {**shared, "num_filter": made, "no_bias": not offset_use_bias}
        self._kwargs_deformable_conv = {
            **shared,
            "num_filter": channels,
            "no_bias": not use_bias,
            "num_deformable_group": num_deformable_group,
        }
        self.offset_split_index: int = 2 * elements
        width = in_channels // groups
        offset_shape = (made, width, *kernel) if layout == "NCHW" else (made, *kernel, width)
        with self.name_scope():
            for part in self._order(
                ("offset", offset_shape, made, offset_use_bias, offset_weight_initializer, offset_bias_initializer),
                (
                    "deformable_conv",
                    (channels, 0, *kernel),
                    channels,
                    use_bias,
                    weight_initializer,
                    bias_initializer,
                ),
            ):
                self._make(*part)
            self.act: Activation | None = Activation(activation, prefix=activation + "_") if activation else None

    def _order(self, offset: tuple[Any, ...], convolution: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The order in which MXNet makes the parameters."""
        return [offset, convolution]

    def _make(self, name: str, shape: Any, count: int, use_bias: bool, weight_init: Any, bias_init: Any) -> None:
        weight = self.params.get(f"{name}_weight", shape=shape, init=weight_init, allow_deferred_init=True)
        setattr(self, f"{name}_weight", weight)
        bias = None
        if use_bias:
            bias = self.params.get(f"{name}_bias", shape=(count,), init=bias_init, allow_deferred_init=True)
        setattr(self, f"{name}_bias", bias)

    def _convolution(self, F: Any, offsets: Any) -> tuple[Any, dict[str, Any]]:
        """The operator, and what it takes of the results of the layer of places."""
        raise NotImplementedError

    def hybrid_forward(
        self,
        F: Any,
        x: Any,
        offset_weight: Any,
        deformable_conv_weight: Any,
        offset_bias: Any = None,
        deformable_conv_bias: Any = None,
    ) -> Any:
        """Shape of x with ``channels`` channels, and other extents as stride and padding make
        them.
        """
        places = [x, offset_weight] if offset_bias is None else [x, offset_weight, offset_bias]
        operator, arrays = self._convolution(F, F.Convolution(*places, cudnn_off=True, **self._kwargs_offset))
        arrays["weight"] = deformable_conv_weight
        if deformable_conv_bias is not None:
            arrays["bias"] = deformable_conv_bias
        out = operator(data=x, name="fwd", **arrays, **self._kwargs_deformable_conv)
        return self.act(out) if self.act is not None else out

    def __repr__(self) -> str:
        has, shape = self._kwargs_deformable_conv, self._reg_params["deformable_conv_weight"].shape or (0, 0)
        parts = [f"{shape[1] or None} -> {shape[0]}", f"kernel_size={has['kernel']}", f"stride={has['stride']}"]
        if has["pad"] != (0, 0):
            parts.append(f"padding={has['pad']}")
        if has["dilate"] != (1, 1):
            parts.append(f"dilation={has['dilate']}")
        if has["num_group"] != 1:
            parts.append(f"groups={has['num_group']}")
        if has["no_bias"]:
            parts.append("bias=False")
        if self.act:
            parts.append(repr(self.act))
        return f"{type(self).__name__}({', '.join(parts)})"


class DeformableConvolution(_Deformable):
    """A convolution whose windows take their elements from learnt places.

    Parameters
    ----------
    channels : number of channels of the output
    kernel_size, strides, padding, dilation : a number, or one for each axis
    num_deformable_group : groups of channels with places of their own
    in_channels : number of channels of the input; 0: known from the first call
    """

    def _alias(self) -> str:
        return "deformable_conv"

    def _convolution(self, F: Any, offsets: Any) -> tuple[Any, dict[str, Any]]:
        return F.contrib.DeformableConvolution, {"offset": offsets}


class ModulatedDeformableConvolution(_Deformable):
    """A convolution whose windows take their elements from learnt places, multiplied by learnt
    factors.

    The parameters are those of :class:`DeformableConvolution`.
    """

    _per_element = 3

    def _alias(self) -> str:
        return "modulated_deformable_conv"

    def __repr__(self) -> str:
        return HybridBlock.__repr__(self)

    def _order(self, offset: tuple[Any, ...], convolution: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return [convolution, offset]

    def _convolution(self, F: Any, offsets: Any) -> tuple[Any, dict[str, Any]]:
        offset = F.slice_axis(offsets, axis=1, begin=0, end=self.offset_split_index)
        mask = F.sigmoid(F.slice_axis(offsets, axis=1, begin=self.offset_split_index, end=None)) * 2
        return F.contrib.ModulatedDeformableConvolution, {"offset": offset, "mask": mask}
