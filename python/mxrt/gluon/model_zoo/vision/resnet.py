"""ResNet, versions 1 and 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._numpy import added
from ...hybrid_block import HybridBlock
from ...nn import Activation, BatchNorm, Conv2D, Dense, Flatten, GlobalAvgPool2D, HybridSequential, MaxPool2D
from ..model_store import with_weights
from ._classifier import Classifier, stack

__all__ = [
    "BasicBlockV1",
    "BasicBlockV2",
    "BottleneckV1",
    "BottleneckV2",
    "ResNetV1",
    "ResNetV2",
    "get_resnet",
    "resnet18_v1",
    "resnet18_v2",
    "resnet34_v1",
    "resnet34_v2",
    "resnet50_v1",
    "resnet50_v2",
    "resnet101_v1",
    "resnet101_v2",
    "resnet152_v1",
    "resnet152_v2",
]


def _conv3x3(channels: int, stride: int, in_channels: int) -> Conv2D:
    return Conv2D(channels, 3, stride, 1, use_bias=False, in_channels=in_channels)


class _BlockV1(HybridBlock):
    """A block that adds the result of its body to its input; relu follows."""

    body: HybridSequential

    def __init__(
        self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._make_body(channels, stride, in_channels)
        self.downsample: HybridSequential | None = None
        if downsample:
            self.downsample = stack(Conv2D(channels, 1, stride, use_bias=False, in_channels=in_channels), BatchNorm())

    def _make_body(self, channels: int, stride: int, in_channels: int) -> None:
        raise NotImplementedError

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shape ``(n, channels, ...)``."""
        out = self.body(x)
        shortcut = x if self.downsample is None else self.downsample(x)
        return F.Activation(self._sum(shortcut, out), act_type="relu")

    def _sum(self, shortcut: Any, out: Any) -> Any:
        return added(out, shortcut)


class BasicBlockV1(_BlockV1):
    """Two convolutions of 3 x 3, for networks of 18 and 34 layers."""

    def _make_body(self, channels: int, stride: int, in_channels: int) -> None:
        self.body: HybridSequential = stack(
            _conv3x3(channels, stride, in_channels),
            BatchNorm(),
            Activation("relu"),
            _conv3x3(channels, 1, channels),
            BatchNorm(),
        )

    def _sum(self, shortcut: Any, out: Any) -> Any:
        return added(shortcut, out)


class BottleneckV1(_BlockV1):
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1, for networks of 50 layers and more."""

    def _make_body(self, channels: int, stride: int, in_channels: int) -> None:
        self.body: HybridSequential = stack(
            Conv2D(channels // 4, 1, stride),
            BatchNorm(),
            Activation("relu"),
            _conv3x3(channels // 4, 1, channels // 4),
            BatchNorm(),
            Activation("relu"),
            Conv2D(channels, 1, 1),
            BatchNorm(),
        )


class _BlockV2(HybridBlock):
    """Normalisation and relu come before each convolution; what was made is added to what came
    in.
    """

    _steps: tuple[tuple[str, str], ...]

    def __init__(
        self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._make_body(channels, stride, in_channels)
        self.downsample: Conv2D | None = None
        if downsample:
            self.downsample = Conv2D(channels, 1, stride, use_bias=False, in_channels=in_channels)

    def _make_body(self, channels: int, stride: int, in_channels: int) -> None:
        raise NotImplementedError

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shape ``(n, channels, ...)``."""
        shortcut, out = x, x
        for number, (norm, convolution) in enumerate(self._steps):
            out = F.Activation(getattr(self, norm)(out), act_type="relu")
            if number == 0 and self.downsample is not None:
                shortcut = self.downsample(out)
            out = getattr(self, convolution)(out)
        return added(out, shortcut)


class BasicBlockV2(_BlockV2):
    """Two convolutions of 3 x 3, for networks of 18 and 34 layers."""

    _steps = (("bn1", "conv1"), ("bn2", "conv2"))

    def _make_body(self, channels: int, stride: int, in_channels: int) -> None:
        self.bn1: BatchNorm = BatchNorm()
        self.conv1: Conv2D = _conv3x3(channels, stride, in_channels)
        self.bn2: BatchNorm = BatchNorm()
        self.conv2: Conv2D = _conv3x3(channels, 1, channels)


class BottleneckV2(_BlockV2):
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1, for networks of 50 layers and more."""

    _steps = (("bn1", "conv1"), ("bn2", "conv2"), ("bn3", "conv3"))

    def _make_body(self, channels: int, stride: int, in_channels: int) -> None:
        self.bn1 = BatchNorm()
        self.conv1 = Conv2D(channels // 4, 1, 1, use_bias=False)
        self.bn2 = BatchNorm()
        self.conv2 = _conv3x3(channels // 4, stride, channels // 4)
        self.bn3: BatchNorm = BatchNorm()
        self.conv3: Conv2D = Conv2D(channels, 1, 1, use_bias=False)


class _ResNet(Classifier):
    """The common part of both versions."""

    def _add_start(self, channels: int, thumbnail: bool) -> None:
        if thumbnail:
            self.features.add(_conv3x3(channels, 1, 0))
        else:
            self.features.add(
                Conv2D(channels, 7, 2, 3, use_bias=False), BatchNorm(), Activation("relu"), MaxPool2D(3, 2, 1)
            )

    def _add_stages(self, block: Callable[..., HybridBlock], layers: Sequence[int], channels: Sequence[int]) -> None:
        if len(layers) != len(channels) - 1:
            raise AssertionError(
                f"{len(layers)} stages need {len(layers) + 1} numbers of channels, got {len(channels)}"
            )
        for i, count in enumerate(layers):
            stage = self._make_layer(block, count, channels[i + 1], 2 if i else 1, i + 1, in_channels=channels[i])
            self.features.add(stage)

    def _make_layer(
        self,
        block: Callable[..., HybridBlock],
        layers: int,
        channels: int,
        stride: int,
        stage_index: int,
        in_channels: int = 0,
    ) -> HybridSequential:
        layer = HybridSequential(prefix=f"stage{stage_index}_")
        with layer.name_scope():
            layer.add(block(channels, stride, channels != in_channels, in_channels=in_channels, prefix=""))
            for _ in range(layers - 1):
                layer.add(block(channels, 1, False, in_channels=channels, prefix=""))
        return layer


class ResNetV1(_ResNet):
    """He's residual network.

    Parameters
    ----------
    block : class of the blocks
    layers : number of blocks of each stage
    channels : before the first stage, and of each stage
    thumbnail : whether images are small, so that the start must not shrink them
    """

    def __init__(
        self,
        block: Callable[..., HybridBlock],
        layers: Sequence[int],
        channels: Sequence[int],
        classes: int = 1000,
        thumbnail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features: HybridSequential = HybridSequential(prefix="")
            self._add_start(channels[0], thumbnail)
            self._add_stages(block, layers, channels)
            self.features.add(GlobalAvgPool2D())
            self.output: Dense = Dense(classes, in_units=channels[-1])


class ResNetV2(_ResNet):
    """He's residual network with normalisation before the convolutions; the parameters are those of
    ResNetV1.
    """

    def __init__(
        self,
        block: Callable[..., HybridBlock],
        layers: Sequence[int],
        channels: Sequence[int],
        classes: int = 1000,
        thumbnail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features: HybridSequential = HybridSequential(prefix="")
            self.features.add(BatchNorm(scale=False, center=False))
            self._add_start(channels[0], thumbnail)
            self._add_stages(block, layers, channels)
            self.features.add(BatchNorm(), Activation("relu"), GlobalAvgPool2D(), Flatten())
            self.output: Dense = Dense(classes, in_units=channels[-1])


# Whether blocks are bottlenecks, blocks of each stage, channels.
_SMALL, _LARGE = (64, 64, 128, 256, 512), (64, 256, 512, 1024, 2048)
resnet_spec: dict[int, tuple[str, list[int], list[int]]] = {
    18: ("basic_block", [2, 2, 2, 2], [*_SMALL]),
    34: ("basic_block", [3, 4, 6, 3], [*_SMALL]),
    50: ("bottle_neck", [3, 4, 6, 3], [*_LARGE]),
    101: ("bottle_neck", [3, 4, 23, 3], [*_LARGE]),
    152: ("bottle_neck", [3, 8, 36, 3], [*_LARGE]),
}
resnet_net_versions: list[type[Any]] = [ResNetV1, ResNetV2]
resnet_block_versions: list[dict[str, type[HybridBlock]]] = [
    {"basic_block": BasicBlockV1, "bottle_neck": BottleneckV1},
    {"basic_block": BasicBlockV2, "bottle_neck": BottleneckV2},
]


def get_resnet(
    version: int,
    num_layers: int,
    pretrained: bool = False,
    ctx: Any = None,
    root: str | None = None,
    **kwargs: Any,
) -> ResNetV1 | ResNetV2:
    """The ResNet of a version, 1 or 2, and of 18, 34, 50, 101 or 152 layers; other keywords are
    those of the class.
    """
    if num_layers not in resnet_spec:
        raise AssertionError(f"Invalid number of layers: {num_layers}. Options are {list(resnet_spec)}")
    if version not in (1, 2):
        raise AssertionError(f"Invalid resnet version: {version}. Options are 1 and 2.")
    kind, layers, channels = resnet_spec[num_layers]
    block: Callable[..., HybridBlock] = resnet_block_versions[version - 1][kind]
    made = resnet_net_versions[version - 1](block, layers, channels, **kwargs)
    net: ResNetV1 | ResNetV2 = with_weights(made, f"resnet{num_layers}_v{version}", pretrained, ctx, root)
    return net


def resnet18_v1(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """The ResNet of 18 layers, version 1; the keywords are those of get_resnet."""
    return get_resnet(1, 18, **kwargs)


def resnet34_v1(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """The ResNet of 34 layers, version 1; the keywords are those of get_resnet."""
    return get_resnet(1, 34, **kwargs)


def resnet50_v1(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """The ResNet of 50 layers, version 1; the keywords are those of get_resnet."""
    return get_resnet(1, 50, **kwargs)


def resnet101_v1(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """The ResNet of 101 layers, version 1; the keywords are those of get_resnet."""
    return get_resnet(1, 101, **kwargs)


def resnet152_v1(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """The ResNet of 152 layers, version 1; the keywords are those of get_resnet."""
    return get_resnet(1, 152, **kwargs)


def resnet18_v2(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """The ResNet of 18 layers, version 2; the keywords are those of get_resnet."""
    return get_resnet(2, 18, **kwargs)


def resnet34_v2(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """The ResNet of 34 layers, version 2; the keywords are those of get_resnet."""
    return get_resnet(2, 34, **kwargs)


def resnet50_v2(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """The ResNet of 50 layers, version 2; the keywords are those of get_resnet."""
    return get_resnet(2, 50, **kwargs)


def resnet101_v2(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """The ResNet of 101 layers, version 2; the keywords are those of get_resnet."""
    return get_resnet(2, 101, **kwargs)


def resnet152_v2(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """The ResNet of 152 layers, version 2; the keywords are those of get_resnet."""
    return get_resnet(2, 152, **kwargs)
