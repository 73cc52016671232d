"""The switches of the numpy interface. The expected states were read from MXNet 1.9.1."""

from __future__ import annotations

import threading
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def off_again(mx: Any) -> Any:
    yield
    mx.npx.reset_np()


def state(mx: Any) -> tuple[bool, bool]:
    return mx.util.is_np_shape(), mx.util.is_np_array()


def in_thread(call: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


def test_set_np_is_of_the_thread_that_calls_it(mx: Any) -> None:
    assert state(mx) == (False, False)
    mx.npx.set_np()
    assert state(mx) == (True, True)
    assert in_thread(lambda: state(mx)) == (False, False)
    mx.npx.reset_np()
    assert state(mx) == (False, False)


def test_shapes_cannot_be_switched_off_while_arrays_are_on(mx: Any) -> None:
    mx.npx.set_np()
    with pytest.raises(ValueError, match=r"npx\.reset_np"):
        mx.util.set_np_shape(False)
    with pytest.raises(ValueError, match="Shape semantics is required"):
        mx.npx.set_np(shape=False)
    assert state(mx) == (True, True)
    mx.npx.set_np(shape=True, array=False)
    assert state(mx) == (True, False)


def test_set_np_shape_returns_the_state_before(mx: Any) -> None:
    assert [mx.util.set_np_shape(one) for one in (True, True, False, 0)] == [False, True, True, False]


def test_blocks_restore_the_state_also_after_an_error(mx: Any) -> None:
    with mx.util.np_shape(True):
        assert state(mx) == (True, False)
        with mx.util.np_shape(False):
            assert state(mx) == (False, False)
        assert state(mx) == (True, False)
    with pytest.raises(KeyError), mx.util.np_shape(), mx.util.np_array():
        assert state(mx) == (True, True)
        raise KeyError
    assert state(mx) == (False, False)


def test_a_decorated_function_runs_with_the_interface_on(mx: Any) -> None:
    @mx.util.use_np
    def inside(value: int) -> Any:
        """The state inside."""
        return state(mx), value

    assert inside(3) == ((True, True), 3)
    assert (inside.__name__, inside.__doc__) == ("inside", "The state inside.")
    assert mx.util.use_np_shape(lambda: state(mx))() == (True, False)
    assert mx.util.use_np_array(lambda: state(mx))() == (False, True)
    assert state(mx) == (False, False)
    with pytest.raises(TypeError, match="classes and callable"):
        mx.util.use_np(3)


def test_all_methods_of_a_decorated_class_run_with_the_interface_on(mx: Any) -> None:
    class Base:
        def inherited(self) -> Any:
            return state(mx)

    @mx.util.use_np
    class Inside(Base):
        def __init__(self) -> None:
            self.made = state(mx)

        @property
        def shown(self) -> Any:
            return state(mx)

        @staticmethod
        def static() -> Any:
            return state(mx)

        @classmethod
        def of_class(cls) -> Any:
            return state(mx), cls

        def __len__(self) -> int:
            return sum(state(mx))

    one = Inside()
    on = (True, True)
    assert [one.made, one.shown, one.static(), one.inherited(), len(one)] == [on, on, on, on, 2]
    assert Inside.of_class() == (on, Inside)
    assert Base().inherited() == (False, False)


def test_operators_of_nd_make_scalars_and_empty_arrays_with_the_switch_alone(mx: Any) -> None:
    with pytest.raises(mx.base.MXNetError, match="cannot be told"):
        mx.nd._internal._zeros(shape=())
    with mx.util.np_shape():
        assert mx.nd._internal._zeros(shape=()).shape == ()
        assert mx.nd._internal._ones(shape=(0, 3)).shape == (0, 3)
        for shape in ((), (0,), (0, 3)):
            made = [mx.nd.zeros(shape), mx.nd.ones(shape), mx.nd.full(shape, 2), mx.nd.zeros(shape, dtype="int8")]
            assert [array.shape for array in made] == [shape] * 4
        assert mx.nd.full((), 2).asscalar() == 2
        assert mx.nd.zeros((0, 3), stype="csr").shape == (0, 3)
    with pytest.raises(mx.base.MXNetError, match="not known"):
        mx.nd.zeros((0, 3))


def test_unknown_shapes_are_shown_as_minus_one_or_none(mx: Any) -> None:
    graph = mx.sym.sin(mx.sym.var("data"))
    assert graph.infer_shape_partial()[1] == [()]
    with mx.util.np_shape():
        assert graph.infer_shape_partial()[1] == [None]
        assert graph.infer_shape(data=())[1] == [()]
        assert graph.infer_shape(data=(0, 2))[1] == [(0, 2)]
        assert graph.infer_shape_partial(data=(-1, 2))[1] == [(-1, 2)]
