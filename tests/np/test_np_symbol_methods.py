"""Methods of symbols of ``mx.sym.np``: signatures of MXNet 1.9.1, and the results of arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

# inspect.signature of the methods of mxnet.symbol.numpy._Symbol, MXNet 1.9.1.
RECORDED = {
    "argmax": "(self, axis=None, out=None)",
    "argmin": "(self, axis=None, out=None)",
    "argsort": "(self, axis=-1, kind=None, order=None)",
    "as_nd_ndarray": "(self)",
    "as_np_ndarray": "(self)",
    "astype": "(self, dtype, order='K', casting='unsafe', subok=True, copy=True)",
    "clip": "(self, min=None, max=None, out=None)",
    "cumsum": "(self, axis=None, dtype=None, out=None)",
    "dot": "(self, b, out=None)",
    "flatten": "(self, order='C')",
    "max": "(self, axis=None, out=None, keepdims=False)",
    "mean": "(self, axis=None, dtype=None, out=None, keepdims=False)",
    "min": "(self, axis=None, out=None, keepdims=False)",
    "prod": "(self, axis=None, dtype=None, out=None, keepdims=False)",
    "repeat": "(self, repeats, axis=None)",
    "reshape": "(self, *args, **kwargs)",
    "round": "(self, decimals=0, out=None, **kwargs)",
    "sort": "(self, axis=-1, kind=None, order=None)",
    "squeeze": "(self, axis=None)",
    "std": "(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False)",
    "sum": "(self, axis=None, dtype=None, out=None, keepdims=False)",
    "swapaxes": "(self, axis1, axis2)",
    "take": "(self, indices, axis=None, mode='raise')",
    "transpose": "(self, *axes)",
    "var": "(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False)",
}
# Methods that MXNet's class has only to refuse them.
REFUSED = (
    "abs arccos arccosh arcsin arcsinh arctan arctanh argmax_channel broadcast_axes broadcast_like cbrt ceil cos cosh "
    "degrees depth_to_space diag exp expand_dims expm1 fix flip floor log log10 log1p log2 log_softmax nanprod nansum "
    "norm one_hot ones_like pad pick radians rcbrt reciprocal relu reshape_like rint rsqrt shape_array sigmoid sign "
    "sin sinh size_array slice slice_axis slice_like softmax softmin space_to_depth split split_v2 sqrt square tan "
    "tanh tile topk trunc zeros_like"
).split()


@pytest.fixture(autouse=True)
def numpy_interface(mx: Any) -> Any:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


def evaluated(mx: Any, symbol: Any, array: Any) -> Any:
    """The only output of a symbol of ``x``, for an array."""
    return mx.gluon.SymbolBlock(symbol, mx.sym.var("x").as_np_ndarray())(array)


def variable(mx: Any) -> Any:
    return mx.sym.var("x").as_np_ndarray()


def plain(signature: inspect.Signature) -> str:
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return str(inspect.Signature(bare))


def test_methods_have_the_signatures_of_mxnet(mx: Any) -> None:
    kind = mx.sym.np._Symbol
    found = {name: plain(inspect.signature(inspect.getattr_static(kind, name))) for name in RECORDED}
    assert found == RECORDED


def test_methods_of_arrays_have_the_same_signatures(mx: Any) -> None:
    names = set(RECORDED) - {"as_nd_ndarray", "as_np_ndarray"}
    for name in names:
        ours, of_array = (inspect.getattr_static(kind, name) for kind in (mx.sym.np._Symbol, mx.np.ndarray))
        assert plain(inspect.signature(ours)) == plain(inspect.signature(of_array)), name


@pytest.mark.parametrize("name", REFUSED)
def test_methods_that_mxnet_refuses_say_what_works(mx: Any, name: str) -> None:
    instead = f"mx.np.{name}" if name in mx.np.__all__ else f"as_nd_ndarray\\(\\).{name}"
    with pytest.raises(AttributeError, match=f"_Symbol object has no attribute {name}; use .*{instead}"):
        getattr(variable(mx), name)


def test_a_value_is_refused_as_of_all_symbols(mx: Any) -> None:
    for name in ("asscalar", "asnumpy", "item", "detach"):
        with pytest.raises(mx.base.NotImplementedForSymbol):
            getattr(variable(mx), name)()
    assert not hasattr(variable(mx), "tostype")


def test_no_method_of_other_symbols_makes_a_symbol_without_the_interface(mx: Any) -> None:
    from mxrt._operators.methods import OperatorMethods

    taken = {*RECORDED, "all", "any", "broadcast_to", "copy"}
    names = [name for name in vars(OperatorMethods) if not name.startswith("_")]
    assert sorted(set(names) - taken - set(REFUSED)) == []


CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("all", (1, None, True)),
    ("any", (0, None, True)),
    ("argmax", (1,)),
    ("argmin", (0,)),
    ("argsort", (0,)),
    ("astype", ("int32", "K")),
    ("astype", ("float64", "C", "unsafe", True, False)),
    ("broadcast_to", ((2, 2, 3),)),
    ("clip", (0,)),
    ("clip", (None, 2)),
    ("clip", (-1, 2)),
    ("copy", ()),
    ("cumsum", (1, "float64")),
    ("flatten", ("C",)),
    ("max", (1, None, True)),
    ("mean", (0, "float64", None, True)),
    ("min", (1, None, True)),
    ("prod", (0, None, None, True)),
    ("repeat", (2, 1)),
    ("reshape", (3, 2)),
    ("reshape", ((3, -1),)),
    ("round", (1,)),
    ("squeeze", ()),
    ("std", (1, None, None, 1, True)),
    ("sum", (0, "float64", None, True)),
    ("swapaxes", (0, 1)),
    ("transpose", (1, 0)),
    ("transpose", ((1, 0),)),
    ("transpose", (None,)),
    ("var", (1, None, None, 1, True)),
    ("__neg__", ()),
    ("__abs__", ()),
    ("__round__", (1,)),
    ("__getitem__", (onp.int64(1),)),
    ("__getitem__", ((slice(None), onp.int32(-1)),)),
]


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_a_method_of_a_symbol_computes_what_that_of_an_array_does(mx: Any, name: str, args: Any) -> None:
    x = mx.np.array([[1.25, -2.5, 3.75], [0.5, 4.25, -1.125]])
    eager = getattr(x, name)(*args)
    found = evaluated(mx, getattr(variable(mx), name)(*args), x)
    assert type(found) is mx.np.ndarray
    assert (found.shape, found.dtype) == (eager.shape, eager.dtype)
    onp.testing.assert_array_equal(found.asnumpy(), eager.asnumpy())


def test_methods_with_arrays_as_arguments_compute_what_those_of_arrays_do(mx: Any) -> None:
    x, y = mx.np.array([[1.0, 2.0], [3.0, 4.0]]), variable(mx)
    for call in (lambda v: v.dot(v), lambda v: v.take(v.astype("int32") - 1, 0, "clip"), lambda v: v @ v):
        onp.testing.assert_array_equal(evaluated(mx, call(y), x).asnumpy(), call(x).asnumpy())


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x.reshape(3, 2, order="F"), NotImplementedError),
        (lambda x: x.flatten("F"), NotImplementedError),
        (lambda x: x.copy("F"), NotImplementedError),
        (lambda x: x.reshape(), TypeError),
        (lambda x: x.reshape((3, 2), foo=1), TypeError),
        (lambda x: x.reshape(newshape=(3, 2)), TypeError),
        (lambda x: x.transpose(axes=(1, 0)), TypeError),
        (lambda x: x.astype("int32", order="F"), ValueError),
        (lambda x: x.astype("int32", casting="safe"), ValueError),
        (lambda x: x.astype("int32", subok=False), ValueError),
        (lambda x: x.astype("int32", foo=1), TypeError),
        (lambda x: x.max(1, foo=1), TypeError),
        (lambda x: x.clip(), ValueError),
        (lambda x: x.sort(), NotImplementedError),
        (lambda x: x.argsort(0, None, "f"), NotImplementedError),
        (lambda x: x.round(1, where=False), NotImplementedError),
    ],
)
def test_options_that_arrays_refuse_symbols_refuse(mx: Any, call: Callable[[Any], Any], error: type) -> None:
    for operand in (mx.np.ones((2, 3)), variable(mx)):
        with pytest.raises(error):
            call(operand)


# What MXNet 1.9.1 gives for a symbol of these types and a whole number on the left.
@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_numbers_on_the_left_of_a_symbol_count_as_no_whole_numbers(mx: Any, dtype: str) -> None:
    x, y = mx.np.array([[1, 2], [0, 3]], dtype=dtype), variable(mx)
    for call in (lambda v: 2 * v, lambda v: 2 - v, lambda v: 2 % v, lambda v: 2**v, lambda v: onp.int64(2) * v):
        assert evaluated(mx, call(y), x).dtype == "float64"
    kept = {"bool": "int64"}.get(dtype, dtype)
    for call in (lambda v: 2 + v, lambda v: v + 2, lambda v: v * 2, lambda v: v - 2, lambda v: v * onp.int64(2)):
        assert evaluated(mx, call(y), x).dtype == kept


def test_several_outputs_are_a_list_of_symbols(mx: Any) -> None:
    np, npx, x, w = mx.sym.np, mx.npx, variable(mx), mx.sym.var("w").as_np_ndarray()
    for made, count in (
        (np.linalg.svd(x), 3),
        (np.linalg.slogdet(x), 2),
        (np.linalg.eigh(x), 2),
        (np.linalg.eig(x), 2),
        (np.unique(x, True), 2),
        (np.unique(x, True, True, True), 4),
        (np.average(x, returned=True), 2),
        (np.histogram(x, bins=4, range=(0, 1)), 2),
        (np.atleast_1d(x, w), 2),
        (np.split(x, 2), 2),
        (npx.topk(x, ret_typ="both"), 2),
        (npx.layer_norm(x, w, w, output_mean_var=True), 3),
    ):
        assert type(made) is list and len(made) == count
        assert all(type(one) is np._Symbol and len(one) == 1 for one in made)
        assert len([*made, x]) == len(made + [x])  # noqa: RUF005
    assert type(np.unique(x)) is np._Symbol
    with pytest.raises(TypeError, match=r"npx\.nonzero"):
        mx.np.nonzero(x)


def test_a_hybridized_block_computes_what_the_block_does(mx: Any) -> None:
    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            top = x.max(1, None, True)
            low = x.min(1, None, True)
            return (x - low) / (top - low) + x.clip(0).sum(0, None, None, True) + x.mean(1, "float32", None, True)

    x = mx.np.random.uniform(-1, 1, size=(3, 4))
    net = Net()
    eager = net(x)
    net.hybridize()
    onp.testing.assert_allclose(net(x).asnumpy(), eager.asnumpy(), rtol=1e-6)
