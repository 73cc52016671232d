"""Inception v3."""

from __future__ import annotations

from typing import Any

from ...contrib.nn import HybridConcurrent
from ...nn import Activation, AvgPool2D, BatchNorm, Conv2D, Dense, Dropout, Flatten, HybridSequential, MaxPool2D
from ..model_store import with_weights
from ._classifier import Classifier, stack

__all__ = ["Inception3", "inception_v3"]


def _conv(channels: int, kernel: Any, strides: Any = (1, 1), padding: Any = (0, 0)) -> HybridSequential:
    """A convolution with batch normalisation and relu."""
    return stack(
        Conv2D(channels, kernel, strides, padding, use_bias=False), BatchNorm(epsilon=0.001), Activation("relu")
    )


def _branch(*convolutions: tuple[Any, ...], pool: Any = None) -> HybridSequential:
    """Convolutions one after the other, after a pooling if there is one."""
    before = [] if pool is None else [pool]
    return stack(*before, *[_conv(*settings) for settings in convolutions])


def _average(channels: int) -> HybridSequential:
    return _branch((channels, 1), pool=AvgPool2D(3, 1, 1))


def _largest() -> HybridSequential:
    return _branch(pool=MaxPool2D(3, 2))


def _module_a(pooled: int, prefix: str) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(
            _branch((64, 1)),
            _branch((48, 1), (64, 5, 1, 2)),
            _branch((64, 1), (96, 3, 1, 1), (96, 3, 1, 1)),
            _average(pooled),
        )
    return out


def _module_b(prefix: str) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(_branch((384, 3, 2)), _branch((64, 1), (96, 3, 1, 1), (96, 3, 2)), _largest())
    return out


def _wide(channels: int) -> tuple[Any, ...]:
    return channels, (1, 7), (1, 1), (0, 3)


def _high(channels: int) -> tuple[Any, ...]:
    return channels, (7, 1), (1, 1), (3, 0)


def _module_c(c: int, prefix: str) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(
            _branch((192, 1)),
            _branch((c, 1), _wide(c), _high(192)),
            _branch((c, 1), _high(c), _wide(c), _high(c), _wide(192)),
            _average(192),
        )
    return out


def _module_d(prefix: str) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(
            _branch((192, 1), (320, 3, 2)),
            _branch((192, 1), _wide(192), _high(192), (192, 3, 2)),
            _largest(),
        )
    return out


def _split() -> HybridConcurrent:
    """A wide and a high convolution side by side."""
    out = HybridConcurrent(axis=1, prefix="")
    out.add(_branch((384, (1, 3), (1, 1), (0, 1))), _branch((384, (3, 1), (1, 1), (1, 0))))
    return out


def _module_e(prefix: str) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(
            _branch((320, 1)),
            stack(_branch((384, 1)), _split()),
            stack(_branch((448, 1), (384, 3, 1, 1)), _split()),
            _average(192),
        )
    return out


def make_aux(classes: int) -> HybridSequential:
    """The second classifier that training uses."""
    return stack(AvgPool2D(5, 3), _conv(128, 1), _conv(768, 5), Flatten(), Dense(classes))


class Inception3(Classifier):
    """Szegedy's third Inception network, for images of 299 x 299 pixels."""

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features: HybridSequential = stack(
                _conv(32, 3, 2),
                _conv(32, 3),
                _conv(64, 3, padding=1),
                MaxPool2D(3, 2),
                _conv(80, 1),
                _conv(192, 3),
                MaxPool2D(3, 2),
                *[_module_a(pooled, f"A{i}_") for i, pooled in enumerate((32, 64, 64), 1)],
                _module_b("B_"),
                *[_module_c(channels, f"C{i}_") for i, channels in enumerate((128, 160, 160, 192), 1)],
                _module_d("D_"),
                _module_e("E1_"),
                _module_e("E2_"),
                AvgPool2D(8),
                Dropout(0.5),
            )
            self.output: Dense = Dense(classes)


def inception_v3(pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any) -> Inception3:
    """Inception v3; the keywords are those of the class. With `pretrained` the weights come from a
    file in `root`.
    """
    net: Inception3 = with_weights(Inception3(**kwargs), "inceptionv3", pretrained, ctx, root)
    return net
