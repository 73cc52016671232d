"""Activation functions as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...initializer import Constant
from ..hybrid_block import HybridBlock

if TYPE_CHECKING:
    from ..parameter import Parameter

__all__ = ["ELU", "GELU", "SELU", "Activation", "LeakyReLU", "PReLU", "Swish"]


class Activation(HybridBlock):
    """An activation function, by name: ``relu``, ``sigmoid``, ``tanh``, ``softrelu`` or
    ``softsign``.
    """

    def __init__(self, activation: str, **kwargs: Any) -> None:
        self._act_type = activation
        super().__init__(**kwargs)

    def _alias(self) -> str:
        return self._act_type

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The function of every element."""
        return F.Activation(x, act_type=self._act_type, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"


class LeakyReLU(HybridBlock):
    """``x`` where it is positive, else ``alpha * x``."""

    def __init__(self, alpha: float, **kwargs: Any) -> None:
        if alpha < 0:
            raise AssertionError("Slope coefficient for LeakyReLU must be no less than 0.")
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The function of every element."""
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"


class PReLU(HybridBlock):
    """``x`` where it is positive, else ``alpha * x`` with a learnt `alpha`: one, or one for each
    channel.
    """

    def __init__(self, alpha_initializer: Any = None, in_channels: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        init = Constant(0.25) if alpha_initializer is None else alpha_initializer
        with self.name_scope():
            self.alpha: Parameter = self.params.get("alpha", shape=(in_channels,), init=init)

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> Any:
        """The function of every element."""
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(HybridBlock):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The function of every element."""
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """The scaled exponential linear unit."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The function of every element."""
        return F.LeakyReLU(x, act_type="selu", name="fwd")


class GELU(HybridBlock):
    """The Gaussian error linear unit."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The function of every element."""
        return F.LeakyReLU(x, act_type="gelu", name="fwd")


class Swish(HybridBlock):
    """``x * sigmoid(beta * x)``."""

    def __init__(self, beta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The function of every element."""
        return x * F.sigmoid(self._beta * x, name="fwd")
