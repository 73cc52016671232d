"""The common part of the zoo's networks: features, and a layer that makes answers from them."""

from __future__ import annotations

from typing import Any

from ...hybrid_block import HybridBlock
from ...nn import HybridSequential

__all__ = ["Classifier", "stack"]


class Classifier(HybridBlock):
    """A network whose ``output`` makes the answers of its ``features``."""

    features: HybridSequential
    output: HybridBlock

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shape ``(n, classes)``, of images ``(n, 3, height, width)``."""
        return self.output(self.features(x))


def stack(*blocks: Any, prefix: str = "") -> HybridSequential:
    """Blocks one after the other, which are named as if they were not put together."""
    made = HybridSequential(prefix=prefix)
    made.add(*blocks)
    return made
