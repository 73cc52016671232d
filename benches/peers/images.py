"""Segmentation networks, detectors, a network of clips and a decoder, with computed weights.

They follow the public definitions of GluonCV and torchvision. What comes after the last layer of a
detector (boxes, their suppression) is left out for every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mxrt as mx
from mxrt.gluon import nn

CLASSES = 21
# Windows of boxes in each map of SSD, and of YOLOv3.
ANCHORS, YOLO_ANCHORS, YOLO_CLASSES = (4, 6, 6, 6, 4, 4), 3, 20


class Chain(mx.gluon.HybridBlock):
    """Layers one after the other; `keep` has the places of those whose results are answers too."""

    def __init__(self, *layers: Any, keep: Sequence[int] = ()) -> None:
        super().__init__()
        self._layers, self._keep = layers, keep
        for layer in layers:
            self.register_child(layer)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        kept = []
        for place, layer in enumerate(self._layers):
            x = layer(x)
            if place in self._keep:
                kept.append(x)
        return kept or x


class Residual(mx.gluon.HybridBlock):
    """A body whose result is added to its input, or to a projection of that."""

    def __init__(self, body: Any, projection: Any = None, activation: str = "relu") -> None:
        super().__init__()
        self.body, self.projection, self._activation = body, projection, activation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        total = self.body(x) + (x if self.projection is None else self.projection(x))
        return F.Activation(total, act_type=self._activation) if self._activation else total


class Function(mx.gluon.HybridBlock):
    """A function of `F` and the input as a layer."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self._function = function

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self._function(F, x)


def conv(channels: int, kernel: Any, stride: Any = 1, dilation: int = 1, act: Any = "relu", dims: int = 2) -> Any:
    """A convolution that keeps extents, BatchNorm, and an activation or none."""
    sizes = (kernel,) * dims if isinstance(kernel, int) else kernel
    padding = tuple(size // 2 * dilation for size in sizes)
    strides = (stride,) * dims if isinstance(stride, int) else stride
    kind = {2: nn.Conv2D, 3: nn.Conv3D}[dims]
    layers = [kind(channels, sizes, strides, padding, (dilation,) * dims, use_bias=False), nn.BatchNorm()]
    if act == "leaky":
        layers.append(nn.LeakyReLU(0.1))
    elif act:
        layers.append(nn.Activation(act))
    return Chain(*layers)


def resnet_of_clips() -> Any:
    """ResNet-18 with three-dimensional convolutions, of torchvision."""
    layers: list[Any] = [conv(64, (3, 7, 7), (1, 2, 2), dims=3)]
    for stage, channels in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            body = Chain(conv(channels, 3, stride, dims=3), conv(channels, 3, act=None, dims=3))
            layers.append(Residual(body, conv(channels, 1, stride, act=None, dims=3) if stride == 2 else None))
    return Chain(*layers, nn.GlobalAvgPool3D(), nn.Flatten(), nn.Dense(400))


def unet_decoder() -> Any:
    """The decoder of a U-Net from 512 maps of 16 x 16 to classes at 256 x 256; it has one input, so
    that nothing comes from an encoder.
    """
    layers: list[Any] = []
    for channels in (256, 128, 64, 32):
        layers += [nn.Conv2DTranspose(channels, 4, 2, 1, use_bias=False), nn.BatchNorm(), nn.Activation("relu")]
        layers += [conv(channels, 3), conv(channels, 3)]
    return Chain(*layers, nn.Conv2D(CLASSES, 1))


def _dilated_resnet50() -> list[Any]:
    """GluonCV's resnet50_v1s, whose last two stages have dilations for strides."""
    layers: list[Any] = [conv(64, 3, 2), conv(64, 3), conv(128, 3), nn.MaxPool2D(3, 2, 1)]
    stages = ((64, 3, 1, 1), (128, 4, 2, 1), (256, 6, 1, 2), (512, 3, 1, 4))
    for channels, blocks, stride, dilation in stages:
        for block in range(blocks):
            first = not block
            wide = max(1, dilation // 2) if first else dilation
            middle = conv(channels, 3, stride if first else 1, wide)
            body = Chain(conv(channels, 1), middle, conv(4 * channels, 1, act=None))
            layers.append(Residual(body, conv(4 * channels, 1, stride, act=None) if first else None))
    return layers


def _enlarged(side: int) -> Any:
    return Function(lambda F, x: F.contrib.BilinearResize2D(x, height=side, width=side))


def fcn(side: int = 480) -> Any:
    """FCN over ResNet-50."""
    return Chain(*_dilated_resnet50(), conv(512, 3), nn.Conv2D(CLASSES, 1), _enlarged(side))


class Pyramid(mx.gluon.HybridBlock):
    """DeepLab's pyramid of dilations."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.branches = [conv(256, 1), *(conv(256, 3, dilation=rate) for rate in (12, 24, 36))]
        self.branches.append(Chain(nn.GlobalAvgPool2D(), conv(256, 1), _enlarged(side)))
        for branch in self.branches:
            self.register_child(branch)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.concat(*(branch(x) for branch in self.branches), dim=1)


def deeplab(side: int = 480) -> Any:
    """DeepLab v3 over ResNet-50."""
    head = [Pyramid(side // 8), conv(256, 1), conv(256, 3), nn.Conv2D(CLASSES, 1), _enlarged(side)]
    return Chain(*_dilated_resnet50(), *head)


def _flat(F: Any, x: Any) -> Any:
    return F.Flatten(F.transpose(x, axes=(0, 2, 3, 1)))


def _plain(channels: int, kernel: int, stride: int = 1, pad: int = 0, dilation: int = 1) -> Any:
    return nn.Conv2D(channels, kernel, stride, pad, dilation, activation="relu")


class Ssd(mx.gluon.HybridBlock):
    """SSD of 300 x 300 over VGG-16: classes and boxes of all maps as one row."""

    def __init__(self) -> None:
        super().__init__()
        stages: list[Any] = []
        for count, channels in ((2, 64), (2, 128), (3, 256), (3, 512)):
            pool = [nn.MaxPool2D(2, 2, ceil_mode=True)] if stages else []
            stages += [*pool, *(_plain(channels, 3, pad=1) for _ in range(count))]
        rest = [nn.MaxPool2D(2, 2, ceil_mode=True), *(_plain(512, 3, pad=1) for _ in range(3)), nn.MaxPool2D(3, 1, 1)]
        rest += [_plain(1024, 3, pad=6, dilation=6), _plain(1024, 1)]
        keep = [len(rest) - 1]
        for narrow, wide, stride, pad in ((256, 512, 2, 1), (128, 256, 2, 1), (128, 256, 1, 0), (128, 256, 1, 0)):
            rest += [_plain(narrow, 1), _plain(wide, 3, stride, pad)]
            keep.append(len(rest) - 1)
        self.features, self.rest = Chain(*stages), Chain(*rest, keep=keep)
        self.predictors = [(nn.Conv2D(n * CLASSES, 3, 1, 1), nn.Conv2D(n * 4, 3, 1, 1)) for n in ANCHORS]
        for pair in self.predictors:
            for one in pair:
                self.register_child(one)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        x = self.features(x)
        maps = [F.L2Normalization(x, mode="channel", eps=1e-5) * 20, *self.rest(x)]
        both = [[_flat(F, one(x)) for one in pair] for x, pair in zip(maps, self.predictors, strict=True)]
        return F.concat(*(pair[0] for pair in both), *(pair[1] for pair in both), dim=1)


def _darknet_stage(channels: int, blocks: int) -> list[Any]:
    halves = [Chain(conv(channels // 2, 1, act="leaky"), conv(channels, 3, act="leaky")) for _ in range(blocks)]
    return [conv(channels, 3, 2, act="leaky"), *(Residual(half, activation="") for half in halves)]


class Yolo(mx.gluon.HybridBlock):
    """YOLOv3 over Darknet-53: the predictions of three maps as one row."""

    def __init__(self) -> None:
        super().__init__()
        layers, keep = [conv(32, 3, act="leaky")], []
        for channels, blocks in ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)):
            layers += _darknet_stage(channels, blocks)
            keep.append(len(layers) - 1)
        self.features, self.heads = Chain(*layers, keep=keep[2:]), []
        for channels in (512, 256, 128):
            sizes = [(channels, 1), (channels * 2, 3)] * 2 + [(channels, 1)]
            body = Chain(*(conv(count, kernel, act="leaky") for count, kernel in sizes))
            out = Chain(conv(channels * 2, 3, act="leaky"), nn.Conv2D(YOLO_ANCHORS * (5 + YOLO_CLASSES), 1))
            self.heads.append((body, out, conv(channels // 2, 1, act="leaky") if channels > 128 else None))
        for one in (one for head in self.heads for one in head if one is not None):
            self.register_child(one)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        maps, found = list(self.features(x)), []
        x = maps.pop()
        for body, out, way in self.heads:
            x = body(x)
            found.append(_flat(F, out(x)))
            if way is not None:
                x = F.concat(F.UpSampling(way(x), scale=2, sample_type="nearest"), maps.pop(), dim=1)
        return F.concat(*found, dim=1)


# Each network with the extents of its input.
NETWORKS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "resnet18_3d": (resnet_of_clips, (3, 16, 112, 112)),
    "unet_decoder": (unet_decoder, (512, 16, 16)),
    "fcn_resnet50": (fcn, (3, 480, 480)),
    "deeplab_resnet50": (deeplab, (3, 480, 480)),
    "ssd300_vgg16": (Ssd, (3, 300, 300)),
    "yolov3_416": (Yolo, (3, 416, 416)),
}
# Inputs that are saved.
SAMPLES = 2


def write(base: str) -> None:
    """Writes the files of the network: -symbol.json, -0000.params and -input.npy."""
    make, extents = NETWORKS[Path(base).name]
    mx.random.seed(7)
    net = make()
    net.initialize(mx.init.Xavier("gaussian", "in", 2))
    Path(base).parent.mkdir(parents=True, exist_ok=True)
    data = np.random.default_rng(7).standard_normal((SAMPLES, *extents), "float32")
    net.hybridize()
    net(mx.nd.array(data[:1]))
    net.export(base)
    np.save(f"{base}-input.npy", data)
