"""SqueezeNet."""

from __future__ import annotations

from typing import Any

from ...contrib.nn import HybridConcurrent
from ...nn import Activation, AvgPool2D, Conv2D, Dropout, Flatten, HybridSequential, MaxPool2D
from ..model_store import with_weights
from ._classifier import Classifier, stack

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]

# Channels of the first convolution, its kernel, and then the fires by what they squeeze to; 0 is a
# pooling.
_PLANS = {
    "1.0": (96, 7, (0, 16, 16, 32, 0, 32, 48, 48, 64, 0, 64)),
    "1.1": (64, 3, (0, 16, 16, 0, 32, 32, 0, 48, 48, 64, 64)),
}


def _conv(channels: int, kernel: int, padding: int = 0) -> HybridSequential:
    return stack(Conv2D(channels, kernel, padding=padding), Activation("relu"))


def _fire(squeezed: int) -> HybridSequential:
    """Few channels, and then many made of them by small and larger windows."""
    first = _conv(squeezed, 1)
    paths = HybridConcurrent(axis=1, prefix="")
    paths.add(_conv(4 * squeezed, 1), _conv(4 * squeezed, 3, 1))
    return stack(first, paths)


class SqueezeNet(Classifier):
    """Iandola's network of few parameters; `version` is ``1.0`` or ``1.1``."""

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if version not in _PLANS:
            raise AssertionError(f"Unsupported SqueezeNet version {version}: 1.0 or 1.1 expected")
        channels, kernel, plan = _PLANS[version]
        with self.name_scope():
            self.features: HybridSequential = stack(Conv2D(channels, kernel, strides=2), Activation("relu"))
            for squeezed in plan:
                self.features.add(_fire(squeezed) if squeezed else MaxPool2D(3, 2, ceil_mode=True))
            self.features.add(Dropout(0.5))
            self.output: HybridSequential = stack(Conv2D(classes, 1), Activation("relu"), AvgPool2D(13), Flatten())


def get_squeezenet(
    version: str, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> SqueezeNet:
    """The SqueezeNet of this version; the other keywords are those of the class."""
    net: SqueezeNet = with_weights(SqueezeNet(version, **kwargs), f"squeezenet{version}", pretrained, ctx, root)
    return net


def squeezenet1_0(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.0; the keywords are those of get_squeezenet."""
    return get_squeezenet("1.0", **kwargs)


def squeezenet1_1(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1; the keywords are those of get_squeezenet."""
    return get_squeezenet("1.1", **kwargs)
