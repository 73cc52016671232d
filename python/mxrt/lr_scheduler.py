"""Learning rates by number of updates. Nothing is trained here; programs that name schedules still
import.
"""

from __future__ import annotations

import itertools
import logging  # noqa: F401 (a name of MXNet's module)
import math

from ._output.log import info

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler"]


class LRScheduler:
    """A learning rate that follows the number of updates; subclasses define ``__call__``.

    In the first `warmup_steps` updates the rate rises linearly from `warmup_begin_lr` to `base_lr`,
    or stays at `warmup_begin_lr` with ``warmup_mode='constant'``.
    """

    def __init__(
        self,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        if not isinstance(warmup_steps, int):
            raise AssertionError(f"warmup_steps must be an int, got {warmup_steps!r}")
        if warmup_begin_lr > base_lr:
            raise ValueError("Base lr has to be higher than warmup_begin_lr")
        if warmup_steps < 0:
            raise ValueError("Warmup steps has to be positive or 0")
        if warmup_mode not in ("linear", "constant"):
            raise ValueError("Supports only linear and constant modes of warmup")
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_final_lr = base_lr
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """The rate at an update before `warmup_steps`."""
        if num_update >= self.warmup_steps:
            raise AssertionError(f"update {num_update} is not within the {self.warmup_steps} steps of warmup")
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        rise = (self.warmup_final_lr - self.warmup_begin_lr) * float(num_update) / float(self.warmup_steps)
        return self.warmup_begin_lr + rise

    def __call__(self, num_update: int) -> float:
        """The rate after `num_update` updates."""
        raise NotImplementedError("must override this")


def _check_factor(steps: list[int], factor: float) -> None:
    if any(step < 1 for step in steps):
        raise ValueError("Schedule step must be greater or equal than 1 round")
    if factor > 1.0:
        raise ValueError("Factor must be no more than 1 to make lr reduce")


class FactorScheduler(LRScheduler):
    """The rate times `factor` after every `step` updates, but never below `stop_factor_lr`."""

    def __init__(
        self,
        step: int,
        factor: float = 1,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        _check_factor([step], factor)
        self.step = step
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr
        self.count: int = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while num_update > self.count + self.step:
            self.count += self.step
            self.base_lr = max(self.base_lr * self.factor, self.stop_factor_lr)
            info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """The rate times `factor` after each of the numbers of updates in `step`, which rise."""

    def __init__(
        self,
        step: list[int],
        factor: float = 1,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(step, list) or not step:
            raise AssertionError(f"step must be a list of numbers, got {step!r}")
        if any(later <= earlier for earlier, later in itertools.pairwise(step)):
            raise ValueError("Schedule step must be an increasing integer list")
        _check_factor(step, factor)
        self.step = step
        self.factor = factor
        self.cur_step_ind: int = 0
        self.count: int = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class _Falling(LRScheduler):
    """A rate that falls from the first one to `final_lr` along a curve, within `max_update`
    updates.
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(max_update, int):
            raise AssertionError(f"max_update must be an int, got {max_update!r}")
        if max_update < 1:
            raise ValueError("maximum number of updates must be strictly positive")
        self.base_lr_orig = base_lr
        self.final_lr = final_lr
        self.max_update = max_update
        self.max_steps: int = max_update - warmup_steps

    def _left(self, done: float) -> float:
        """The part of the way down that is left after this part of the updates."""
        raise NotImplementedError

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update <= self.max_update:
            left = self._left(float(num_update - self.warmup_steps) / float(self.max_steps))
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * left
        return self.base_lr


class PolyScheduler(_Falling):
    """A rate that falls from `base_lr` to `final_lr` along a polynomial of power `pwr`, within
    `max_update` updates.
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        pwr: float = 2,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def _left(self, done: float) -> float:
        return float(pow(1 - done, self.power))


class CosineScheduler(_Falling):
    """A rate that falls from `base_lr` to `final_lr` along half a wave of the cosine, within
    `max_update` updates.
    """

    def _left(self, done: float) -> float:
        return (1 + math.cos(math.pi * done)) / 2
