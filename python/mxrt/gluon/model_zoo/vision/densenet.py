"""DenseNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...contrib.nn import HybridConcurrent, Identity
from ...nn import Activation, AvgPool2D, BatchNorm, Conv2D, Dense, Dropout, Flatten, HybridSequential, MaxPool2D
from ..model_store import with_weights
from ._classifier import Classifier, stack

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201"]

# Channels at the start, channels that a layer adds, layers of each stage.
_SIZES = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}


def _layer(growth: int, bn_size: int, dropout: float) -> HybridConcurrent:
    """The input, joined with new channels."""
    new = stack(
        BatchNorm(),
        Activation("relu"),
        Conv2D(bn_size * growth, 1, use_bias=False),
        BatchNorm(),
        Activation("relu"),
        Conv2D(growth, 3, padding=1, use_bias=False),
    )
    if dropout:
        new.add(Dropout(dropout))
    both = HybridConcurrent(axis=1, prefix="")
    both.add(Identity(), new)
    return both


def _stage(layers: int, bn_size: int, growth: int, dropout: float, number: int) -> HybridSequential:
    made = HybridSequential(prefix=f"stage{number}_")
    with made.name_scope():
        for _ in range(layers):
            made.add(_layer(growth, bn_size, dropout))
    return made


class DenseNet(Classifier):
    """Huang's densely connected network: every layer of a stage sees what all before it made.

    Parameters
    ----------
    num_init_features : channels before the first stage
    growth_rate : channels that a layer adds
    block_config : number of layers of each stage
    bn_size : channels inside of a layer, as a multiple of `growth_rate`
    """

    def __init__(
        self,
        num_init_features: int,
        growth_rate: int,
        block_config: Sequence[int],
        bn_size: int = 4,
        dropout: float = 0,
        classes: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features: HybridSequential = stack(
                Conv2D(num_init_features, 7, 2, 3, use_bias=False),
                BatchNorm(),
                Activation("relu"),
                MaxPool2D(3, 2, 1),
            )
            channels = num_init_features
            for number, layers in enumerate(block_config, 1):
                self.features.add(_stage(layers, bn_size, growth_rate, dropout, number))
                channels += layers * growth_rate
                if number < len(block_config):
                    channels //= 2
                    self.features.add(
                        stack(BatchNorm(), Activation("relu"), Conv2D(channels, 1, use_bias=False), AvgPool2D(2, 2))
                    )
            self.features.add(BatchNorm(), Activation("relu"), AvgPool2D(7), Flatten())
            self.output: Dense = Dense(classes)


def get_densenet(
    num_layers: int, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> DenseNet:
    """The DenseNet of 121, 161, 169 or 201 layers; the other keywords are those of the class."""
    net: DenseNet = with_weights(
        DenseNet(*_SIZES[num_layers], **kwargs), f"densenet{num_layers}", pretrained, ctx, root
    )
    return net


def densenet121(**kwargs: Any) -> DenseNet:
    """The DenseNet of 121 layers; the keywords are those of get_densenet."""
    return get_densenet(121, **kwargs)


def densenet161(**kwargs: Any) -> DenseNet:
    """The DenseNet of 161 layers; the keywords are those of get_densenet."""
    return get_densenet(161, **kwargs)


def densenet169(**kwargs: Any) -> DenseNet:
    """The DenseNet of 169 layers; the keywords are those of get_densenet."""
    return get_densenet(169, **kwargs)


def densenet201(**kwargs: Any) -> DenseNet:
    """The DenseNet of 201 layers; the keywords are those of get_densenet."""
    return get_densenet(201, **kwargs)
