"""``infer_shape_partial`` concludes what MXNet does from shapes that are known in part."""

from __future__ import annotations

from itertools import groupby

import pytest

from partial_shape_cases import Case, cases

BY_OPERATOR = {operator: list(of) for operator, of in groupby(cases(), lambda case: case.operator)}


@pytest.mark.parametrize("operator", list(BY_OPERATOR))
def test_partial_shapes_are_those_of_mxnet(mx, operator: str) -> None:
    wrong: list[tuple[Case, object]] = []
    for case in BY_OPERATOR[operator]:
        found = case.infer(mx)
        if found != [case.arguments, case.outputs, case.states]:
            wrong.append((case, found))
    assert not wrong


def test_the_graph_still_gives_what_follows(mx) -> None:
    """Networks with an unknown batch are bound, and served, by all that follows."""
    x, y = mx.sym.var("x"), mx.sym.var("y")
    chosen = mx.sym.where(x > y, x, y)
    made = mx.sym.FullyConnected(mx.sym.Flatten(chosen), num_hidden=3, name="fc")
    assert made._shapes_known(x=(0, 2, 4), y=(0, 2, 4))[1] == [(0, 3)]
    assert made.infer_shape_partial(x=(0, 2, 4), y=(0, 2, 4))[1] == [()]
    assert made.infer_shape(x=(5, 2, 4), y=(5, 2, 4))[1] == [(5, 3)]
