"""VGG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....initializer import Xavier
from ...nn import Activation, BatchNorm, Conv2D, Dense, Dropout, HybridSequential, MaxPool2D
from ..model_store import with_weights
from ._classifier import Classifier

__all__ = ["VGG", "get_vgg", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn"]

_CHANNELS = (64, 128, 256, 512, 512)
_LAYERS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class VGG(Classifier):
    """Simonyan's network of small convolutions.

    Parameters
    ----------
    layers, filters : number of convolutions of each stage, and their channels
    batch_norm : whether batch normalisation follows each convolution
    """

    def __init__(
        self,
        layers: Sequence[int],
        filters: Sequence[int],
        classes: int = 1000,
        batch_norm: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if len(layers) != len(filters):
            raise AssertionError(f"{len(layers)} stages have {len(filters)} numbers of channels")
        with self.name_scope():
            self.features: HybridSequential = HybridSequential(prefix="")
            for count, channels in zip(layers, filters, strict=True):
                for _ in range(count):
                    first = Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
                    self.features.add(Conv2D(channels, 3, padding=1, weight_initializer=first))
                    if batch_norm:
                        self.features.add(BatchNorm())
                    self.features.add(Activation("relu"))
                self.features.add(MaxPool2D(strides=2))
            for _ in range(2):
                self.features.add(Dense(4096, activation="relu", weight_initializer="normal"), Dropout(0.5))
            self.output: Dense = Dense(classes, weight_initializer="normal")


def get_vgg(num_layers: int, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any) -> VGG:
    """The VGG of 11, 13, 16 or 19 layers; the other keywords are those of the class."""
    name = f"vgg{num_layers}{'_bn' if kwargs.get('batch_norm') else ''}"
    net: VGG = with_weights(VGG(_LAYERS[num_layers], _CHANNELS, **kwargs), name, pretrained, ctx, root)
    return net


def vgg11(**kwargs: Any) -> VGG:
    """The VGG of 11 layers; the keywords are those of get_vgg."""
    return get_vgg(11, **kwargs)


def vgg13(**kwargs: Any) -> VGG:
    """The VGG of 13 layers; the keywords are those of get_vgg."""
    return get_vgg(13, **kwargs)


def vgg16(**kwargs: Any) -> VGG:
    """The VGG of 16 layers; the keywords are those of get_vgg."""
    return get_vgg(16, **kwargs)


def vgg19(**kwargs: Any) -> VGG:
    """The VGG of 19 layers; the keywords are those of get_vgg."""
    return get_vgg(19, **kwargs)


def vgg11_bn(**kwargs: Any) -> VGG:
    """The VGG of 11 layers with batch normalisation; the keywords are those of get_vgg."""
    return get_vgg(11, **{**kwargs, "batch_norm": True})


def vgg13_bn(**kwargs: Any) -> VGG:
    """The VGG of 13 layers with batch normalisation; the keywords are those of get_vgg."""
    return get_vgg(13, **{**kwargs, "batch_norm": True})


def vgg16_bn(**kwargs: Any) -> VGG:
    """The VGG of 16 layers with batch normalisation; the keywords are those of get_vgg."""
    return get_vgg(16, **{**kwargs, "batch_norm": True})


def vgg19_bn(**kwargs: Any) -> VGG:
    """The VGG of 19 layers with batch normalisation; the keywords are those of get_vgg."""
    return get_vgg(19, **{**kwargs, "batch_norm": True})
