"""MobileNet and MobileNetV2."""

from __future__ import annotations

from typing import Any

from ...hybrid_block import HybridBlock
from ...nn import Activation, BatchNorm, Conv2D, Dense, Flatten, GlobalAvgPool2D, HybridSequential
from ..model_store import with_weights
from ._classifier import Classifier

__all__ = [
    "MobileNet",
    "MobileNetV2",
    "get_mobilenet",
    "get_mobilenet_v2",
    "mobilenet0_5",
    "mobilenet0_25",
    "mobilenet0_75",
    "mobilenet1_0",
    "mobilenet_v2_0_5",
    "mobilenet_v2_0_25",
    "mobilenet_v2_0_75",
    "mobilenet_v2_1_0",
]


class RELU6(HybridBlock):
    """Values between 0 and 6."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Returns an array with the shape of x."""
        return F.clip(x, 0, 6, name="relu6")


def _conv(
    channels: int, kernel: int = 1, stride: int = 1, pad: int = 0, groups: int = 1, active: Any = None
) -> list[HybridBlock]:
    """A convolution with batch normalisation and an activation."""
    layers = [Conv2D(channels, kernel, stride, pad, groups=groups, use_bias=False), BatchNorm(scale=True)]
    return layers if active is None else [*layers, active()]


def _relu() -> HybridBlock:
    return Activation("relu")


class LinearBottleneck(HybridBlock):
    """A block of MobileNetV2: wide inside, narrow outside.

    Parameters
    ----------
    in_channels, channels : outside
    t : by what the channels inside are more
    stride : of the convolution inside
    """

    def __init__(self, in_channels: int, channels: int, t: int, stride: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_shortcut: bool = stride == 1 and in_channels == channels
        inside = in_channels * t
        with self.name_scope():
            self.out: HybridSequential = HybridSequential()
            self.out.add(*_conv(inside, active=RELU6))
            self.out.add(*_conv(inside, 3, stride, 1, inside, RELU6))
            self.out.add(*_conv(channels))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shape ``(n, channels, ...)``."""
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


class MobileNet(Classifier):
    """Howard's network of depthwise convolutions; `multiplier` changes the number of channels."""

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        widths = [32, 64, 128, 128, 256, 256, *[512] * 6, 1024, 1024]
        channels = [int(width * multiplier) for width in widths]
        strides = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1]
        with self.name_scope():
            self.features: HybridSequential = HybridSequential(prefix="")
            with self.features.name_scope():
                self.features.add(*_conv(channels[0], 3, 2, 1, active=_relu))
                for before, after, stride in zip(channels, channels[1:], strides, strict=False):
                    self.features.add(*_conv(before, 3, stride, 1, before, _relu))
                    self.features.add(*_conv(after, active=_relu))
                self.features.add(GlobalAvgPool2D(), Flatten())
            self.output: Dense = Dense(classes)


class MobileNetV2(Classifier):
    """Sandler's network of linear bottlenecks; `multiplier` changes the number of channels."""

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        widths = [32, 16, *[24] * 2, *[32] * 3, *[64] * 4, *[96] * 3, *[160] * 3, 320]
        channels = [int(width * multiplier) for width in widths]
        strides = [1, 2, 1, 2, 1, 1, 2, *[1] * 6, 2, 1, 1, 1]
        with self.name_scope():
            self.features: HybridSequential = HybridSequential(prefix="features_")
            with self.features.name_scope():
                self.features.add(*_conv(channels[0], 3, 2, 1, active=RELU6))
                for i, stride in enumerate(strides):
                    self.features.add(LinearBottleneck(channels[i], channels[i + 1], 6 if i else 1, stride))
                self.features.add(*_conv(int(1280 * max(multiplier, 1.0)), active=RELU6))
                self.features.add(GlobalAvgPool2D())
            self.output: HybridSequential = HybridSequential(prefix="output_")
            with self.output.name_scope():
                self.output.add(Conv2D(classes, 1, use_bias=False, prefix="pred_"), Flatten())


def _version(multiplier: float) -> str:
    """How file names write a multiplier: ``1.0``, ``0.75``, ``0.5``, ``0.25``."""
    text = f"{multiplier:.2f}"
    return text[:-1] if text in ("1.00", "0.50") else text


def get_mobilenet(
    multiplier: float, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> MobileNet:
    """The MobileNet of this width; the other keywords are those of the class."""
    name = f"mobilenet{_version(multiplier)}"
    net: MobileNet = with_weights(MobileNet(multiplier, **kwargs), name, pretrained, ctx, root)
    return net


def get_mobilenet_v2(
    multiplier: float, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> MobileNetV2:
    """The MobileNetV2 of this width; the other keywords are those of the class."""
    name = f"mobilenetv2_{_version(multiplier)}"
    net: MobileNetV2 = with_weights(MobileNetV2(multiplier, **kwargs), name, pretrained, ctx, root)
    return net


def mobilenet1_0(**kwargs: Any) -> MobileNet:
    """The MobileNet of width 1.0; the keywords are those of get_mobilenet."""
    return get_mobilenet(1.0, **kwargs)


def mobilenet0_75(**kwargs: Any) -> MobileNet:
    """The MobileNet of width 0.75; the keywords are those of get_mobilenet."""
    return get_mobilenet(0.75, **kwargs)


def mobilenet0_5(**kwargs: Any) -> MobileNet:
    """The MobileNet of width 0.5; the keywords are those of get_mobilenet."""
    return get_mobilenet(0.5, **kwargs)


def mobilenet0_25(**kwargs: Any) -> MobileNet:
    """The MobileNet of width 0.25; the keywords are those of get_mobilenet."""
    return get_mobilenet(0.25, **kwargs)


def mobilenet_v2_1_0(**kwargs: Any) -> MobileNetV2:
    """The MobileNetV2 of width 1.0; the keywords are those of get_mobilenet_v2."""
    return get_mobilenet_v2(1.0, **kwargs)


def mobilenet_v2_0_75(**kwargs: Any) -> MobileNetV2:
    """The MobileNetV2 of width 0.75; the keywords are those of get_mobilenet_v2."""
    return get_mobilenet_v2(0.75, **kwargs)


def mobilenet_v2_0_5(**kwargs: Any) -> MobileNetV2:
    """The MobileNetV2 of width 0.5; the keywords are those of get_mobilenet_v2."""
    return get_mobilenet_v2(0.5, **kwargs)


def mobilenet_v2_0_25(**kwargs: Any) -> MobileNetV2:
    """The MobileNetV2 of width 0.25; the keywords are those of get_mobilenet_v2."""
    return get_mobilenet_v2(0.25, **kwargs)
