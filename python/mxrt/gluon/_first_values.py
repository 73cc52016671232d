"""First values of parameters: at once, or when their shapes are known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .._values.dtypes import dtype_name
from ..base import MXNetValueError, warn
from ..context import Context, contexts_of, cpu
from ..initializer import InitDesc, Uniform, create
from ..ndarray import NDArray, zeros
from ._publishing import Publish, publishing

if TYPE_CHECKING:
    from .parameter import Parameter

__all__ = ["FirstValues", "initialize_all"]


class First(NamedTuple):
    """The beginning of a parameter: initializer, default initializer and contexts, and the value if
    its shape is known.
    """

    deferred: tuple[Any, Any, list[Context]]
    value: NDArray | None


class FirstValues:
    """The first value of a parameter, and what it waits for."""

    name: str
    init: Any
    dtype: Any
    _shape: tuple[int, ...] | None
    _allow_deferred_init: bool
    _arrays: dict[Context, NDArray]
    # Initializer, default initializer and contexts of a value that waits for the shape.
    _deferred: tuple[Any, Any, list[Context]] | None

    if TYPE_CHECKING:

        @property
        def shape_known(self) -> bool:
            """Whether every extent is known."""

        def _redefines(self, *names: str) -> bool: ...
        def _publish(self, value: NDArray, contexts: list[Context], own: bool = False) -> None: ...

    def _first(self, init: Any, ctx: Any, default_init: Any, force_reinit: bool) -> First | None:
        """The beginning of the parameter, computed and not published; None if it has a value that
        it keeps.
        """
        if self._arrays and not force_reinit:
            return None
        default_init = Uniform() if default_init is None else default_init
        chosen = init if init is not None else self.init if self.init is not None else default_init
        deferred = (chosen, default_init, contexts_of(ctx))
        if self.shape_known and self._redefines("_finish_deferred_init"):
            return First(deferred, None)
        if self.shape_known:
            return First(deferred, self._made(chosen, default_init))
        if not self._allow_deferred_init:
            raise MXNetValueError(
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self._shape}."
            )
        return First(deferred, None)

    def _begin(self, first: First, force_reinit: bool) -> bool:
        """Publishes what the parameter begins with; False if another thread was faster."""
        if self._arrays and not force_reinit:
            return False
        if first.value is not None:
            self._publish(first.value.astype(dtype_name(self.dtype), copy=False), first.deferred[2], True)
            return True
        with Publish():
            self._arrays = {}
            self._deferred = first.deferred
        return True

    def _made(self, init: Any, default_init: Any) -> NDArray:
        """A first value. Initializers may be code of the program, so no lock may be held."""
        value = zeros(self._shape, cpu(), self.dtype)
        _fill(self.name, value, init, default_init)
        return value

    def _finish_deferred(self) -> None:
        """Makes the value of a parameter whose shape has become known. Of several threads that
        found no value the first to have made it publishes its own.
        """
        while (deferred := self._deferred) is not None and self.shape_known:
            init, default_init, _ = deferred
            value = self._made(init, default_init)
            with publishing:
                now = self._deferred
                # Contexts and element type may have changed meanwhile, the initializer must not.
                if now is not None and now[0] is init and now[1] is default_init and value.shape == self._shape:
                    self._publish(value.astype(dtype_name(self.dtype), copy=False), now[2], True)
                    return

    def _finish_deferred_init(self) -> None:
        """Initializes the parameter, under MXNet's name; an unknown shape is an error."""
        if self._deferred is not None and not self.shape_known:
            raise AssertionError(
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self._shape}. Please "
                "specify in_units, in_channels, etc for `Block`s."
            )
        self._finish_deferred()


def initialize_all(parameters: Iterable[Parameter], init: Any, ctx: Any, default_init: Any, force_reinit: bool) -> None:
    """Gives parameters their first values: a call of a block sees all of them or none. The
    arguments are those of :meth:`Parameter.initialize`.
    """
    parameters = list(parameters)
    own = [one for one in parameters if one._redefines("_finish_deferred_init")]
    made = [(one, one._first(init, ctx, default_init, force_reinit)) for one in parameters]
    with publishing:
        ignored = [one.name for one, first in made if first is None or not one._begin(first, force_reinit)]
    for one in own:
        if one.shape_known:
            one._finish_deferred_init()
    for name in ignored:
        warn(f"Parameter '{name}' is already initialized, ignoring. Set force_reinit=True to re-initialize.")


def _fill(name: str, value: NDArray, init: Any, default_init: Any) -> None:
    """Writes the first value of a parameter, in MXNet's way: its initializer counts, not what its
    name ends with.
    """
    chosen = create(init)
    if hasattr(chosen, "_init_weight"):
        create(default_init)(InitDesc(name, {"__init__": init}), value)
    else:  # such as Mixed and Load, which go by the name
        chosen(InitDesc(name), value)
