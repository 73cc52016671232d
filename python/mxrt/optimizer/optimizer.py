"""Optimizers can be named, subclassed and constructed; what would update parameters is refused."""

from __future__ import annotations

import warnings  # noqa: F401 (a name of MXNet's module)
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from ..base import no_training, warn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DCASGD",
    "FTML",
    "LAMB",
    "LARS",
    "LBSGD",
    "NAG",
    "SGD",
    "SGLD",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "Adamax",
    "Ftrl",
    "Nadam",
    "Optimizer",
    "RMSProp",
    "Signum",
    "Updater",
    "ccSGD",
    "create",
    "get_updater",
    "register",
]


class Optimizer:
    """Settings of an optimizer; ``update`` raises TrainingNotSupportedError."""

    opt_registry: ClassVar[dict[str, type[Optimizer]]] = {}
    # How many parameters an update takes together; 0 where each has its own.
    aggregate_num = 0

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: dict[int, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: Any = None,
        sym: Any = None,
        begin_num_update: int = 0,
        multi_precision: bool = False,
        param_dict: dict[int, Any] | None = None,
    ) -> None:
        if lr_scheduler is not None and learning_rate is not None:
            lr_scheduler.base_lr = learning_rate
        self.rescale_grad = rescale_grad
        self.lr_scheduler = lr_scheduler
        self.lr = 0.01 if learning_rate is None and lr_scheduler is None else learning_rate
        self.wd = wd
        self.clip_gradient = clip_gradient
        self.begin_num_update: int = begin_num_update
        self.num_update: int = begin_num_update
        self.multi_precision = multi_precision
        self.idx2name: dict[int, str] = dict(param_idx2name or {})
        self.param_dict: dict[int, Any] = param_dict or {}
        self.lr_mult: dict[Any, float] = {}
        self.wd_mult: dict[Any, float] = {}

    @staticmethod
    def register(klass: type[Optimizer]) -> type[Optimizer]:
        """Registers a class under its lower-case name, so that ``create`` finds it."""
        name = klass.__name__.lower()
        other = Optimizer.opt_registry.get(name, klass)
        if other is not klass:
            warn(
                f"WARNING: New optimizer {klass.__module__}.{klass.__name__} is overriding existing optimizer "
                f"{other.__module__}.{other.__name__}"
            )
        Optimizer.opt_registry[name] = klass
        return klass

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Optimizer:
        """An optimizer of a registered class; ValueError for a name that is not registered."""
        found = Optimizer.opt_registry.get(name.lower())
        if found is None:
            known = ", ".join(sorted(Optimizer.opt_registry))
            raise ValueError(f"Cannot find optimizer {name}; known: {known}")
        return found(**kwargs)

    @property
    def learning_rate(self) -> Any:
        """The present learning rate."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Sets the learning rate; UserWarning is raised where a scheduler decides it."""
        if self.lr_scheduler is not None:
            raise UserWarning("set_learning_rate: the optimizer has an LRScheduler, which decides the learning rate")
        self.lr = lr

    def set_lr_mult(self, args_lr_mult: dict[Any, float]) -> None:
        """Sets factors of the learning rate by parameter."""
        self.lr_mult = dict(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: dict[Any, float]) -> None:
        """Sets factors of the weight decay by parameter."""
        self.wd_mult = dict(args_wd_mult)

    def create_state(self, index: int, weight: Any) -> Any:
        """The state for a weight: none."""
        return None

    def create_state_multi_precision(self, index: int, weight: Any) -> Any:
        """The state for a weight, as ``create_state`` makes it."""
        return self.create_state(index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Refused: mxrt does not train."""
        raise no_training(f"{type(self).__name__}.update")

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Refused unless a subclass has an ``update`` of its own."""
        self.update(index, weight, grad, state)

    # Optimizers of other packages use these in their updates.

    def _update_count(self, index: Any) -> None:
        raise no_training(f"{type(self).__name__}._update_count")

    def _get_lrs(self, indices: Any) -> list[float]:
        raise no_training(f"{type(self).__name__}._get_lrs")

    def _get_lr(self, index: Any) -> float:
        return self._get_lrs([index])[0]

    def _get_wds(self, indices: Any) -> list[float]:
        raise no_training(f"{type(self).__name__}._get_wds")

    def _get_wd(self, index: Any) -> float:
        return self._get_wds([index])[0]


register: Callable[[type[Optimizer]], type[Optimizer]] = Optimizer.register
create: Callable[..., Optimizer] = Optimizer.create_optimizer


class _WithSettings(Optimizer):
    """An optimizer whose own settings become attributes: those of `DEFAULTS`, in order, then those
    of Optimizer.
    """

    DEFAULTS: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        own = dict(self.DEFAULTS)
        if len(args) > len(own):
            raise TypeError(f"{type(self).__name__} takes at most {len(own)} positional arguments, got {len(args)}")
        own.update(zip(own, args, strict=False))
        own.update({name: kwargs.pop(name) for name in list(kwargs) if name in own})
        shared = {name: own.pop(name) for name in ("learning_rate", "multi_precision") if name in own}
        super().__init__(**shared, **kwargs)
        for name, value in own.items():
            setattr(self, name, value)


@register
class SGD(_WithSettings):
    """Stochastic gradient descent: its settings."""

    aggregate_num = 4
    DEFAULTS: ClassVar[dict[str, Any]] = {"momentum": 0.0, "lazy_update": True}


@register
class ccSGD(SGD):
    """An old name of SGD."""


@register
class Signum(_WithSettings):
    """Signum: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {"learning_rate": 0.01, "momentum": 0.9, "wd_lh": 0.0}


@register
class FTML(_WithSettings):
    """FTML: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {"beta1": 0.6, "beta2": 0.999, "epsilon": 1e-8}


@register
class LARS(_WithSettings):
    """LARS: its settings."""

    aggregate_num = 4
    DEFAULTS: ClassVar[dict[str, Any]] = {
        "momentum": 0.0,
        "lazy_update": True,
        "eta": 0.001,
        "eps": 0,
        "momentum_correction": True,
    }


@register
class LBSGD(_WithSettings):
    """Large-batch SGD: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {
        "momentum": 0.0,
        "multi_precision": False,
        "warmup_strategy": "linear",
        "warmup_epochs": 5,
        "batch_scale": 1,
        "updates_per_epoch": 32,
        "begin_epoch": 0,
        "num_epochs": 60,
    }


@register
class LAMB(_WithSettings):
    """LAMB: its settings."""

    aggregate_num = 45
    DEFAULTS: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-6,
        "lower_bound": None,
        "upper_bound": None,
        "bias_correction": True,
    }


@register
class DCASGD(_WithSettings):
    """DCASGD: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {"momentum": 0.0, "lamda": 0.04}


@register
class NAG(_WithSettings):
    """Nesterov's accelerated gradient: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {"momentum": 0.0}


@register
class SGLD(Optimizer):
    """SGLD: its settings."""


@register
class Adam(_WithSettings):
    """Adam: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "lazy_update": True,
    }


@register
class AdaGrad(_WithSettings):
    """AdaGrad: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {"eps": 1e-7}


@register
class RMSProp(_WithSettings):
    """RMSProp: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "gamma1": 0.9,
        "gamma2": 0.9,
        "epsilon": 1e-8,
        "centered": False,
        "clip_weights": None,
    }


@register
class AdaDelta(_WithSettings):
    """AdaDelta: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {"rho": 0.90, "epsilon": 1e-5}


@register
class Ftrl(_WithSettings):
    """Ftrl: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {"lamda1": 0.01, "learning_rate": 0.1, "beta": 1}


@register
class Adamax(_WithSettings):
    """Adamax: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {"learning_rate": 0.002, "beta1": 0.9, "beta2": 0.999}


@register
class Nadam(_WithSettings):
    """Nadam: its settings."""

    DEFAULTS: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "schedule_decay": 0.004,
    }


class Updater:
    """An optimizer with its states; calling it is refused, since it would update parameters."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.states: dict[int, Any] = {}
        self.states_synced: dict[int, bool] = {}
        self.aggregate_updates: bool = optimizer.aggregate_num > 0

    def __call__(self, index: Any, grad: Any, weight: Any) -> NoReturn:
        raise no_training("optimizer.Updater")

    def sync_state_context(self, state: Any, context: Any) -> Any:
        """A state with its arrays on a context."""
        if isinstance(state, (tuple, list)):
            return type(state)(self.sync_state_context(one, context) for one in state)
        return state.as_in_context(context) if hasattr(state, "as_in_context") else state

    def set_states(self, states: bytes) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("optimizer.Updater.set_states")

    def get_states(self, dump_optimizer: bool = False) -> NoReturn:
        """Refused: mxrt does not train."""
        raise no_training("optimizer.Updater.get_states")


def get_updater(optimizer: Optimizer) -> Updater:
    """The optimizer with states of its own."""
    return Updater(optimizer)
