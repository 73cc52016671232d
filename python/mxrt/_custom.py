"""Runs operators written in Python: what the engine asks of them, and the threads that it hands
their calls to.

Threads of the engine never run Python code. A call waits in a queue until a thread of this module
takes it. There is always one that waits: a thread that takes a call starts another first if no
other is idle. So a call that itself waits for calls cannot keep them from running, and there are at
most as many threads as calls in flight, and one.
"""

from __future__ import annotations

import inspect
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import _mxrt
from ._graphs.training import CUSTOM_TRAINS
from ._imports import load
from ._system.locks import fork_safe_lock
from ._system.native import get_ident, start_thread
from ._values.dtypes import dtype_class, dtype_name
from .base import MXNetTypeError, MXNetValueError
from .context import cpu
from .profiler import Domain, Task

if TYPE_CHECKING:
    from .operator import CustomOp, CustomOpProp

__all__ = ["Adapter", "make"]

# Signatures for which operators are kept: one for each that a model is called with.
_SIGNATURES = 32
# Where profiles show the time in the Python code of operators.
_DOMAIN = Domain("Custom Operator")


class Adapter:
    """A CustomOpProp as graphs ask it, and the operators it has created.

    An operator serves one call at a time, and then the next one. Concurrent calls get separate
    operators.
    """

    def __init__(self, op_type: str, prop: CustomOpProp, is_train: bool) -> None:
        self.op_type = op_type
        self.is_train = is_train
        self.prop = prop
        self.arguments = self._names("list_arguments")
        self.states = self._names("list_auxiliary_states")
        self.outputs = self._names("list_outputs")
        self._lock = fork_safe_lock()
        self._idle: OrderedDict[Any, list[CustomOp]] = OrderedDict()

    def _names(self, method: str) -> list[str]:
        found = getattr(self.prop, method)()
        if isinstance(found, Iterable) and not isinstance(found, str):
            names = list(found)
            if all(isinstance(name, str) for name in names):
                return names
        hint = "; is a return missing?" if found is None else ""
        raise MXNetTypeError(f"{method} of '{self.op_type}' must return a list of names, not {found!r}{hint}")

    def _three(self, method: str, known: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The results of an inferring method: for arguments, outputs and states."""
        found = getattr(self.prop, method)(known)
        try:
            parts = [list(part) for part in found]
        except TypeError:
            parts = []
        if len(parts) not in (2, 3):
            raise MXNetValueError(f"{method} of '{self.op_type}' must return 2 or 3 lists, not {found!r}")
        arguments, outputs, states = [*parts, []][:3]
        return arguments, outputs, states

    def infer_shape(self, known: list[list[int]]) -> tuple[list[list[int]], ...]:
        """Shapes of arguments, outputs and states; 0 and ``[]`` stand for unknown."""
        return tuple([self._shape(shape) for shape in part] for part in self._three("infer_shape", known))

    def _shape(self, shape: Iterable[Any]) -> list[int]:
        try:
            return [max(int(extent), 0) for extent in shape]
        except (TypeError, ValueError, OverflowError) as error:
            raise MXNetTypeError(f"infer_shape of '{self.op_type}': expected a shape, got {shape!r}") from error

    def infer_type(self, known: list[str | None]) -> tuple[list[str | None], ...]:
        """Element types of arguments, outputs and states; None stands for unknown."""
        types = [None if name is None else dtype_class(name) for name in known]
        parts = self._three("infer_type", types)
        return tuple([None if one is None else dtype_name(one) for one in part] for part in parts)

    def infer_storage_type(self, known: list[str]) -> tuple[list[str], list[str], list[str]]:
        """Storage types of arguments, outputs and states."""
        arguments, outputs, states = self._three("infer_storage_type", known)
        for what, found, names in (("arguments", arguments, self.arguments), ("outputs", outputs, self.outputs)):
            if len(found) != len(names) or not all(one in ("default", "csr", "row_sparse") for one in found):
                raise MXNetValueError(
                    f"infer_storage_type of '{self.op_type}' must return 'default', 'csr' or 'row_sparse' for each of "
                    f"the {what} {names}, not {found!r}"
                )
        return arguments, outputs, states

    def forward(self, inputs: list[Any], outputs: list[Any], states: list[Any]) -> None:
        """Runs the operator, and waits for what it has pushed."""
        arrays = [*inputs, *states]
        key = tuple((array.shape, array._dtype_name) for array in arrays)
        operator = self._take(key)
        with cpu():
            if operator is None:
                shapes = [list(array.shape) for array in arrays]
                codes = [_mxrt.dtype_code(array._dtype_name) for array in arrays]
                operator = self._created(self.prop.create_operator(cpu(), shapes, codes))
            _mxrt.profiler_inside(self.op_type)
            try:
                with Task(_DOMAIN, f"{self.op_type}::pure_python"):
                    _call_forward(operator, self.is_train, inputs, outputs, states)
            finally:
                _mxrt.profiler_inside(None)
            for array in (*outputs, *states):
                array.wait_to_read()
        self._put(key, operator)

    def _created(self, operator: Any) -> CustomOp:
        if not callable(getattr(operator, "forward", None)):
            raise MXNetTypeError(
                f"create_operator of '{self.op_type}' must return an object of a subclass of CustomOp, which has a "
                f"method forward, not {operator!r} of type {type(operator).__name__}; is a return missing?"
            )
        made: CustomOp = operator
        return made

    def _take(self, key: Any) -> CustomOp | None:
        with self._lock:
            idle = self._idle.get(key)
            return idle.pop() if idle else None

    def _put(self, key: Any, operator: CustomOp) -> None:
        with self._lock:
            self._idle.setdefault(key, []).append(operator)
            self._idle.move_to_end(key)
            if len(self._idle) > _SIGNATURES:
                self._idle.popitem(last=False)


def _call_forward(operator: CustomOp, is_train: bool, inputs: list[Any], outputs: list[Any], states: list[Any]) -> None:
    """Calls ``forward`` by keywords, as MXNet does, or by position where it names them
    otherwise.
    """
    given: dict[str, Any] = {
        "is_train": is_train,
        "req": ["write"] * len(outputs),
        "in_data": inputs,
        "out_data": outputs,
        "aux": states,
    }
    try:
        inspect.signature(operator.forward).bind(**given)
    except TypeError:
        operator.forward(*given.values())
    else:
        operator.forward(**given)


def make(op_type: str, kwargs: dict[str, str]) -> Adapter | None:
    """The operator registered under a name, with attributes as text; None for an unknown name."""
    from .operator import _CUSTOM

    # Subclasses take arguments of their own.
    prop_class: Callable[..., CustomOpProp] | None = _CUSTOM.get(op_type)
    if prop_class is None and op_type.endswith("_fallback"):
        # Functions of mx.np that MXNet has no other operator for.
        load("mxrt.numpy._fallback")
        prop_class = _CUSTOM.get(op_type)
    if prop_class is None:
        return None
    is_train = kwargs.pop(CUSTOM_TRAINS, None) is not None
    adapter = Adapter(op_type, prop_class(**kwargs), is_train)
    _threads.start_first()
    return adapter


def _rest() -> None:
    try:
        time.sleep(0.01)
    except MemoryError:
        pass


class _Threads:
    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._started = False
        # The calls that run, by their threads.
        self._running: dict[int, int] = {}

    def start_first(self) -> None:
        """Sees to it that a thread waits for calls."""
        with self._lock:
            if not self._started:
                _mxrt.custom_thread_starts()
                self._start()
                self._started = True

    def _start(self) -> None:
        """Starts a thread that is counted already; RuntimeError if the system refuses it."""
        try:
            start_thread(self._serve, name="mxrt-custom")
        except BaseException:
            _mxrt.custom_thread_refused()
            raise

    def _serve(self) -> None:
        first, taken = True, None
        while True:
            # Whoever waits for a call that is lost would wait forever.
            try:
                if taken is None:
                    taken = _mxrt.next_custom_call(first)
                    if taken is None:
                        return
                    first = False
                self._answer(*taken)
                taken = None
            except MemoryError:
                _rest()

    def _answer(self, number: int, alone: bool) -> None:
        # In a frame of its own: an idle thread must not hold the last error, whose traceback keeps
        # the arrays of its call.
        error = self._start_another() if alone else None
        if error is None:
            error = self._run(number)
        while True:
            try:
                _mxrt.finish_custom_call(number, error)
                return
            except MemoryError:
                _rest()

    def _start_another(self) -> BaseException | None:
        try:
            self._start()
        except BaseException as error:
            return error
        return None

    def _run(self, number: int) -> BaseException | None:
        self._running[get_ident()] = number
        try:
            call = _mxrt.take_custom_call(number)
            if call is not None:
                adapter, inputs, outputs, states = call
                adapter.forward(inputs, outputs, states)
        except BaseException as error:
            return error
        finally:
            del self._running[get_ident()]
        return None

    def after_fork(self) -> None:
        """Forgets the threads, in a forked child."""
        if self._started:
            number = self._running.get(get_ident())
            self._running = {} if number is None else {get_ident(): number}
            _mxrt.custom_calls_after_fork([] if number is None else [number])
            self._started = False
            self.start_first()


_threads = _Threads()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.after_fork)
