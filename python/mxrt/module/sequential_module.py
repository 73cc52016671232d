"""SequentialModule: modules of which each takes the results of the one before."""

from __future__ import annotations

import copy
import logging
from typing import Any

from ..io import DataDesc
from ..ndarray import NDArray
from ._parameters import NotBoundError
from .base_module import BaseModule, Values

__all__ = ["SequentialModule"]


class SequentialModule(BaseModule):
    """Modules in a row. ``add`` them, then ``bind``, set the parameters and call as one.

    What needs a bound module raises MXNetError before ``bind``.

    Parameters
    ----------
    logger : what warnings go to: ``logging``, or a logger
    """

    META_TAKE_LABELS = "take_labels"
    META_AUTO_WIRING = "auto_wiring"

    def __init__(self, logger: Any = logging) -> None:
        super().__init__(logger)
        self._modules: list[Any] = []
        self._metas: list[dict[str, Any]] = []
        self._label_shapes: Any = None

    def add(self, module: Any, **kwargs: Any) -> SequentialModule:
        """Adds a module after the others, and returns this one.

        Parameters
        ----------
        module : the module
        take_labels : True if the labels go to this module
        auto_wiring : True if what comes from the module before gets the names of this one's inputs

        AssertionError for other keywords.
        """
        unknown = set(kwargs) - {self.META_TAKE_LABELS, self.META_AUTO_WIRING}
        if unknown:
            raise AssertionError(f'Unknown meta "{sorted(unknown)[0]}", a typo?')
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = False
        return self

    def _bound(self) -> list[Any]:
        if not self.binded:
            raise NotBoundError("SequentialModule: add modules and call bind(data_shapes=...) first")
        return self._modules

    @property
    def data_names(self) -> list[str]:
        """Names of the first module's inputs."""
        return self._modules[0].data_names if self._modules else []

    @property
    def output_names(self) -> list[str]:
        """Names of the last module's results."""
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> Any:
        """Descriptions of the first module's inputs."""
        return self._bound()[0].data_shapes

    @property
    def label_shapes(self) -> Any:
        """Descriptions of the labels; None when no module takes labels."""
        self._bound()
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        """Name and shape of every result of the last module."""
        return self._bound()[-1].output_shapes

    def _bind(
        self, data_shapes: Any, label_shapes: Any, for_training: bool, force_rebind: bool, shared_module: Any
    ) -> None:
        """Fixes the shapes of the inputs, module by module."""
        if shared_module is not None:
            raise AssertionError("Shared module is not supported")
        if not self._modules:
            raise AssertionError("Attempting to bind an empty SequentialModule")
        self._label_shapes = None
        shapes = data_shapes
        for module, meta in zip(self._modules, self._metas, strict=True):
            labels = label_shapes if meta.get(self.META_TAKE_LABELS) else None
            if labels is not None:
                self._label_shapes = label_shapes
            if meta.get(self.META_AUTO_WIRING):
                shapes = [(name, tuple(one[1])) for name, one in zip(module.data_names, shapes, strict=True)]
            module.bind(shapes, labels, for_training, force_rebind=force_rebind)
            shapes = module.output_shapes

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Arguments and auxiliary states of all modules by name."""
        args: dict[str, NDArray] = {}
        aux: dict[str, NDArray] = {}
        for module in self._bound():
            own_args, own_aux = module.get_params()
            args.update(own_args)
            aux.update(own_aux)
        return args, aux

    def _init_params(
        self, initializer: Any, args: Values, aux: Values, allow_missing: bool, force_init: bool, allow_extra: bool
    ) -> None:
        if self.params_initialized and not force_init:
            return
        owners: dict[str, int] = {}
        for place, module in enumerate(self._bound()):
            module.init_params(initializer, args, aux, allow_missing, force_init, allow_extra)
            for names in module.get_params():
                for name in names:
                    if owners.setdefault(name, place) != place:
                        raise AssertionError(
                            f'Duplicated parameter names: "{name}" in layer {place} is already used in layer '
                            f"{owners[name]}"
                        )
        self.params_initialized = True

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Runs the modules one after another; ``get_outputs`` gives the results of the last."""
        batch = copy.copy(data_batch)
        modules = self._bound()
        for module, after in zip(modules, [*modules[1:], None], strict=True):
            module.forward(batch, is_train)
            if after is not None:
                batch.data = module.get_outputs()
                names = after.data_names
                batch.provide_data = [DataDesc(n, a.shape, a.dtype) for n, a in zip(names, batch.data, strict=True)]

    def get_outputs(self, merge_multi_context: bool = True) -> list[NDArray]:
        """The results of the last ``forward``."""
        found: list[NDArray] = self._bound()[-1].get_outputs(merge_multi_context)
        return found

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds results and labels to a metric, for the modules that take labels.

        Parameters
        ----------
        eval_metric : the metric
        labels : the labels, a list of arrays
        pre_sliced : whether these are lists of the parts for each context
        """
        for module, meta in zip(self._bound(), self._metas, strict=True):
            if meta.get(self.META_TAKE_LABELS):
                module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Shows a monitor what the modules compute."""
        for module in self._bound():
            module.install_monitor(mon)
