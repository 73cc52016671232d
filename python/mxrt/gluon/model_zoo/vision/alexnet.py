"""AlexNet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...nn import Conv2D, Dense, Dropout, Flatten, MaxPool2D
from ..model_store import with_weights
from ._classifier import Classifier, stack

if TYPE_CHECKING:
    from ...nn import HybridSequential

__all__ = ["AlexNet", "alexnet"]


class AlexNet(Classifier):
    """Krizhevsky's "one weird trick" network for images of 224 x 224 pixels."""

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features: HybridSequential = stack(
                Conv2D(64, 11, 4, 2, activation="relu"),
                MaxPool2D(3, 2),
                Conv2D(192, 5, padding=2, activation="relu"),
                MaxPool2D(3, 2),
                *[Conv2D(channels, 3, padding=1, activation="relu") for channels in (384, 256, 256)],
                MaxPool2D(3, 2),
                Flatten(),
                *[layer for _ in range(2) for layer in (Dense(4096, activation="relu"), Dropout(0.5))],
            )
            self.output: Dense = Dense(classes)


def alexnet(pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any) -> AlexNet:
    """AlexNet; the keywords are those of the class. With `pretrained` the weights are read from a
    file in `root`.
    """
    net: AlexNet = with_weights(AlexNet(**kwargs), "alexnet", pretrained, ctx, root)
    return net
