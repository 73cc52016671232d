"""Arguments of functions of ``mx.np`` and ``mx.npx`` and of methods of arrays: MXNet's names."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from support import recorded

RECORDED = recorded("np_signatures")
# In MXNet's signature only: calls by these names fail there. `x` of nonzero and `input` of
# constraint_check work in both.
OTHER_NAMES = {("npx", "constraint_check"), ("npx", "nonzero")}
# Programs that pass other options get an error of the name of the option in both.
WITHOUT_OPTIONS = {("np.random", "multinomial")}


def names(function: Any) -> list[str]:
    kinds = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [kinds.get(one.kind, "") + one.name for one in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("space", RECORDED)
def test_arguments_have_the_names_and_the_order_of_mxnet(mx: Any, space: str) -> None:
    owner = mx
    for part in space.split("."):
        owner = getattr(owner, part)
    wrong = {}
    for name, expected in RECORDED[space].items():
        if (space, name) in OTHER_NAMES | WITHOUT_OPTIONS:
            continue
        try:
            found = inspect.getattr_static(owner, name) if inspect.isclass(owner) else getattr(owner, name)
        except AttributeError:
            wrong[name] = (expected, "missing")
            continue
        if not callable(found):
            continue  # A method that MXNet has to refuse it.
        given = names(found)
        # More options may follow.
        fixed = [one for one in expected if not one.startswith("*")]
        if given[: len(fixed)] != fixed and "*args" not in given:
            wrong[name] = (expected, given)
    assert wrong == {}


def test_methods_take_their_arguments_by_the_names_of_mxnet(mx: Any) -> None:
    x = mx.np.ones((2, 2))
    assert x.as_in_ctx(ctx=mx.cpu()) is x
    assert x.as_in_context(context=mx.cpu()) is x
    assert (mx.np.matmul(x, x, casting="same_kind") == 2).all()
    with pytest.raises(NotImplementedError, match="matmul"):
        mx.np.matmul(x, x, where=False)
