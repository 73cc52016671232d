"""Comparison of blocks that are called directly and hybridized."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base import no_training
from .compare import assert_almost_equal


def check_gluon_hybridize_consistency(
    net_builder: Callable[..., Any],
    data_l: Sequence[Any],
    numpy_func: Callable[..., Any] | None = None,
    test_grad: bool = True,
    rtol: float = 1e-4,
    atol: float = 1e-4,
) -> None:
    """AssertionError unless a block gives the same output called directly and hybridized, and that
    of `numpy_func`, if there is one.

    ``net_builder(prefix=...)`` makes the block, and both blocks get the same parameters. There are
    no gradients to compare: give ``test_grad=False``.
    """
    if test_grad:
        raise no_training("test_utils.check_gluon_hybridize_consistency(test_grad=True)")
    wanted = None
    values: dict[str, Any] = {}
    for hybridized in (False, True):
        net = net_builder(prefix="net_")
        net.initialize()
        for name, value in values.items():
            net.collect_params()[name].set_data(value)
        net.hybridize(hybridized)
        out = net(*[array.copy() for array in data_l]).asnumpy()
        if wanted is None:
            wanted, values = out, {name: held.data() for name, held in net.collect_params().items()}
        assert_almost_equal(out, wanted, rtol=rtol, atol=atol, names=("hybridized", "direct"))
    if numpy_func is not None:
        expected = numpy_func(*[array.asnumpy() for array in data_l])
        assert_almost_equal(wanted, expected, rtol=rtol, atol=atol, names=("block", "numpy_func"))
