"""Comparisons and random inputs for tests: ``mx.test_utils``. Checks of gradients are refused."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
import numpy.random as rnd
import numpy.testing as npt

from ._testing.blocks import check_gluon_hybridize_consistency
from ._testing.compare import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    assign_each,
    assign_each2,
    compare_ndarray_tuple,
    default_atols,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
    np_reduce,
    plain,
    retry,
    same,
    same_array,
)
from ._testing.data import get_bz2_data, get_cifar10, get_mnist, get_mnist_iterator, get_mnist_ubyte, get_zip_data
from ._testing.matrices import (
    new_matrix_with_real_eigvals_2d,
    new_matrix_with_real_eigvals_nd,
    new_orthonormal_matrix_2d,
    new_sym_matrix_with_real_eigvals_2d,
    new_sym_matrix_with_real_eigvals_nd,
    shuffle_csr_column_indices,
)
from ._testing.random import (
    chi_square_check,
    create_2d_tensor,
    create_sparse_array,
    create_sparse_array_zd,
    create_vector,
    gen_buckets_probs_with_ppf,
    mean_check,
    rand_coord_2d,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    rand_sparse_ndarray,
    random_arrays,
    random_sample,
    random_uniform_arrays,
    var_check,
    verify_generator,
)
from ._testing.tools import (
    DummyIter,
    collapse_sum_like,
    discard_stderr,
    get_identity_mat,
    get_identity_mat_batch,
    has_tvm_ops,
    is_aarch64_run,
    is_cd_run,
    is_op_runnable,
)
from .base import MXNetNotImplementedError, no_training
from .context import Context, current_context
from .ndarray import NDArray, array, waitall
from .symbol import Symbol
from .util import getenv, setenv, use_np

__all__ = [
    "DummyIter",
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err",
    "assert_exception",
    "assign_each",
    "assign_each2",
    "check_consistency",
    "check_gluon_hybridize_consistency",
    "check_numeric_gradient",
    "check_speed",
    "check_symbolic_backward",
    "check_symbolic_forward",
    "chi_square_check",
    "collapse_sum_like",
    "compare_ndarray_tuple",
    "compare_optimizer",
    "create_2d_tensor",
    "create_sparse_array",
    "create_sparse_array_zd",
    "create_vector",
    "default_atols",
    "default_context",
    "default_dtype",
    "default_numeric_eps",
    "default_rtols",
    "discard_stderr",
    "download",
    "effective_dtype",
    "environment",
    "gen_buckets_probs_with_ppf",
    "get_atol",
    "get_bz2_data",
    "get_cifar10",
    "get_etol",
    "get_identity_mat",
    "get_identity_mat_batch",
    "get_mnist",
    "get_mnist_iterator",
    "get_mnist_ubyte",
    "get_rtol",
    "get_tolerance",
    "get_tols",
    "get_zip_data",
    "getenv",
    "has_tvm_ops",
    "is_aarch64_run",
    "is_cd_run",
    "is_op_runnable",
    "list_gpus",
    "mean_check",
    "new_matrix_with_real_eigvals_2d",
    "new_matrix_with_real_eigvals_nd",
    "new_orthonormal_matrix_2d",
    "new_sym_matrix_with_real_eigvals_2d",
    "new_sym_matrix_with_real_eigvals_nd",
    "np_reduce",
    "numeric_grad",
    "rand_coord_2d",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "rand_sparse_ndarray",
    "random_arrays",
    "random_sample",
    "random_uniform_arrays",
    "retry",
    "same",
    "same_array",
    "same_symbol_structure",
    "set_default_context",
    "setenv",
    "shuffle_csr_column_indices",
    "simple_forward",
    "use_np",
    "var_check",
    "verify_generator",
]
# MXNet's module has no __all__: programs that import * from it use its own imports as well.
__all__ += ["Context", "Symbol", "array", "current_context", "json", "logging", "mx", "np", "npt", "os"]
__all__ += ["rnd", "sys", "time"]

mx: Any = sys.modules["mxrt"]


# ---- settings ------------------------------------------------------------------------------------


def default_context() -> Context:
    """The context in which tests run: that of this thread."""
    return current_context()


def set_default_context(ctx: Context) -> None:
    """Sets the context of this thread."""
    Context._default_ctx.value = ctx


def default_dtype() -> Any:
    """The element type of tests: float32."""
    return np.float32


@contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Environment variables within a ``with`` block: a name and a value, or a dictionary; None
    removes one.

    mxrt reads its own variables once, when it is first used.
    """
    wanted = dict(args[0]) if len(args) == 1 else {args[0]: args[1]}
    before = {name: os.environ.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            setenv(name, value)
        yield
    finally:
        for name, value in before.items():
            setenv(name, value)


def list_gpus() -> list[int]:
    """The numbers of the GPUs there are."""
    from .context import num_gpus

    return list(range(num_gpus()))


# ---- graphs --------------------------------------------------------------------------------------


def same_symbol_structure(sym1: Symbol, sym2: Symbol) -> bool:
    """Whether two graphs have the same operators and attributes in the same places, whatever names
    they have.
    """

    def structure(symbol: Symbol) -> Any:
        graph = symbol._as_data(remove_amp_cast=True)
        nodes = [(node["op"], node.get("inputs"), node.get("attrs")) for node in graph["nodes"]]
        return nodes, graph["heads"]

    return bool(structure(sym1) == structure(sym2))


def simple_forward(sym: Symbol, ctx: Context | None = None, is_train: bool = False, **inputs: Any) -> Any:
    """The outputs of a graph for numpy arrays by name, as numpy arrays: a list, or a single one."""
    executor = sym.bind(ctx or default_context(), args={name: array(value) for name, value in inputs.items()})
    outputs = [output.asnumpy() for output in executor.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def _named(names: list[str], given: Any, what: str, ctx: Context, dtype: Any) -> dict[str, NDArray]:
    """Arrays by name, from a dictionary or a list in the order of the names."""
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise ValueError(f"Symbol {what} and keys of the given ones do not match: {names}, {list(given)}")
        values = dict(given)
    else:
        values = dict(zip(names, given, strict=True))
    return {
        name: value
        if isinstance(value, NDArray)
        else array(value, ctx=ctx, dtype=np.asarray(value).dtype if dtype == "asnumpy" else dtype)
        for name, value in values.items()
    }


def check_symbolic_forward(
    sym: Symbol,
    location: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    aux_states: Any = None,
    ctx: Context | None = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> list[NDArray]:
    """AssertionError unless the outputs of a graph are as expected; returns them.

    `location`, `aux_states` and `expected` are lists or dictionaries by name; `dtype` is that of
    the inputs, or ``"asnumpy"`` for that of each array given.
    """
    where = ctx or default_context()
    args = _named(sym.list_arguments(), location, "arguments", where, dtype)
    states = None if aux_states is None else _named(sym.list_auxiliary_states(), aux_states, "states", where, dtype)
    names = sym.list_outputs()
    wanted = [expected[name] for name in names] if isinstance(expected, Mapping) else list(expected)
    outputs = sym.bind(where, args=args, aux_states=states).forward(is_train=False)
    for name, want, output in zip(names, wanted, outputs, strict=True):
        shown = (f"EXPECTED_{name}", f"FORWARD_{name}")
        assert_almost_equal(want, output, rtol, atol, shown, equal_nan=equal_nan)
    return outputs


def check_consistency(
    sym: Any,
    ctx_list: list[dict[str, Any]],
    scale: float = 1.0,
    grad_req: Any = "null",
    arg_params: Any = None,
    aux_params: Any = None,
    rtol: Any = None,
    atol: Any = None,
    raise_on_err: bool = True,
    ground_truth: Any = None,
    equal_nan: bool = False,
    use_uniform: bool = False,
    rand_type: Any = np.float64,
) -> Any:
    """AssertionError unless a graph gives the same outputs in every setting of `ctx_list`;
    gradients are not compared.

    A setting has ``ctx``, shapes of inputs by name, and ``type_dict``. Returns the outputs of the
    most exact one.
    """
    symbols = [sym] * len(ctx_list) if isinstance(sym, Symbol) else list(sym)
    if grad_req != "null":
        raise no_training("test_utils.check_consistency(grad_req=...)")
    executors = [one.simple_bind(grad_req="null", **setting) for one, setting in zip(symbols, ctx_list, strict=True)]
    first = executors[0]
    values = dict(arg_params or {})
    for name, held in first.arg_dict.items():
        draw = np.random.uniform(-scale, scale, held.shape) if use_uniform else np.random.normal(0, scale, held.shape)
        values.setdefault(name, draw.astype(rand_type))
    states = {**dict.fromkeys(first.aux_dict, 0), **(aux_params or {})}
    results = []
    for executor in executors:
        for name, held in executor.arg_dict.items():
            held[:] = plain(values[name]).astype(held.dtype)
        for name, held in executor.aux_dict.items():
            held[:] = states[name]
        results.append([output.asnumpy() for output in executor.forward(is_train=False)])
    best = max(range(len(results)), key=lambda place: np.finfo(results[place][0].dtype).precision)
    wanted = ground_truth if ground_truth is not None else results[best]
    for found in results:
        for name, one, want in zip(symbols[0].list_outputs(), found, wanted, strict=True):
            try:
                assert_almost_equal(one, want, rtol, atol, (name, "ground truth"), equal_nan=equal_nan)
            except AssertionError:
                if raise_on_err:
                    raise
    return wanted


def check_speed(
    sym: Symbol,
    location: Any = None,
    ctx: Context | None = None,
    N: int = 20,
    grad_req: Any = None,
    typ: str = "whole",
    **kwargs: Any,
) -> float:
    """Seconds that a call of a graph takes, over `N` calls; only ``typ='forward'`` is part of this
    build.
    """
    if typ != "forward":
        raise no_training(f"test_utils.check_speed(typ='{typ}')")
    where = ctx or default_context()
    executor = sym.simple_bind(where, grad_req="null", **(kwargs or {n: v.shape for n, v in (location or {}).items()}))
    for name, held in executor.arg_dict.items():
        held[:] = location[name] if location else np.random.normal(size=held.shape)
    executor.forward()[0].wait_to_read()
    begin = time.perf_counter()
    for _ in range(N):
        executor.forward()
    waitall()
    return (time.perf_counter() - begin) / N


# ---- refused -------------------------------------------------------------------------------------


def numeric_grad(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there are no gradients."""
    raise no_training("test_utils.numeric_grad")


def check_numeric_gradient(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there are no gradients."""
    raise no_training("test_utils.check_numeric_gradient")


def check_symbolic_backward(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there are no gradients."""
    raise no_training("test_utils.check_symbolic_backward")


def compare_optimizer(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: mxrt does not train."""
    raise no_training("test_utils.compare_optimizer")


def download(
    url: str, fname: str | None = None, dirname: str | None = None, overwrite: bool = False, retries: int = 5
) -> str:
    """The path of a file that is there already; nothing is downloaded, MXNetNotImplementedError
    where it is missing.
    """
    path = os.path.join(dirname or "", fname or url.split("/")[-1])
    if os.path.exists(path) and not overwrite:
        return path
    raise MXNetNotImplementedError(f"mxrt downloads nothing: put the file of {url} at {path}")
