"""Records calls of the operators of MXNet's numpy interface in numpy.json and numpy.npz.

    python record_numpy.py

It runs with MXNet 1.9.1 and NumPy 1.23. Every operator is recorded in a process of its own, because
MXNet ends the process on some calls. A call that MXNet refuses is recorded as an error, unless the
process ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as onp

FOLDER = Path(__file__).resolve().parent
FLOATS = ["float32", "float64", "float16"]
INTEGERS = ["uint8", "int8", "int32", "int64"]
NUMBERS = FLOATS + INTEGERS
ALL = [*NUMBERS, "bool"]
SHAPES: list[tuple[int, ...]] = [(), (0, 3), (5,), (2, 3), (2, 1, 3)]

Case = tuple[list[Any], dict[str, Any]]


class Maker:
    """Arrays of numbers that all element types hold exactly."""

    def __init__(self, seed: int) -> None:
        self.random = onp.random.RandomState(seed)

    def array(self, shape: Any, dtype: str = "float32", low: float = -3, high: float = 3) -> onp.ndarray:
        if dtype == "bool":
            return onp.asarray(self.random.randint(0, 2, shape)).astype(dtype)
        if dtype in FLOATS:
            return onp.asarray(onp.round(self.random.uniform(low, high, shape) * 16) / 16).astype(dtype)
        low = max(low, 0) if dtype == "uint8" else low
        return onp.asarray(self.random.randint(int(low), int(high) + 1, shape)).astype(dtype)


UNARY = {
    (-3, 3): "absolute negative sign rint ceil floor trunc fix square cbrt exp expm1 sin cos tan arctan sinh cosh "
    "tanh arcsinh degrees radians",
    (0.5, 3): "reciprocal sqrt log log10 log2 log1p arccosh",
    (-0.9, 0.9): "arcsin arccos arctanh",
}
BINARY = (
    "add subtract multiply true_divide mod power copysign ldexp hypot arctan2 lcm bitwise_and bitwise_or bitwise_xor"
)
COMPARISON = "equal not_equal greater greater_equal less less_equal"
SCALAR = (
    "add subtract rsubtract multiply true_divide rtrue_divide mod rmod power rpower copysign rcopysign arctan2 "
    "rarctan2 ldexp rldexp bitwise_and bitwise_or bitwise_xor"
)


def elementwise(make: Maker) -> Iterator[tuple[str, Case]]:
    for (low, high), names in UNARY.items():
        for name in names.split():
            for dtype in NUMBERS:
                yield f"_npi_{name}", ([make.array((2, 3), dtype, low, high)], {})
            yield f"_npi_{name}", ([make.array((), "float32", low, high)], {})
            yield f"_npi_{name}", ([make.array((0, 2), "float32", low, high)], {})
    special = onp.array([1.5, onp.nan, onp.inf, -onp.inf, 0.0, -0.0])
    for name in "logical_not isnan isinf isposinf isneginf isfinite nan_to_num".split():
        for dtype in FLOATS:
            yield f"_npi_{name}", ([special.astype(dtype)], {})
        for dtype in ["int32", "bool"]:
            yield f"_npi_{name}", ([make.array((2, 2), dtype)], {})
        for shape in [(), (0,)]:
            yield f"_npi_{name}", ([make.array(shape)], {})
    yield "_npi_nan_to_num", ([special.astype("float32")], {"nan": 7, "posinf": 8, "neginf": -9})
    for dtype in [*INTEGERS, "bool", "float32"]:
        yield "_npi_bitwise_not", ([make.array((2, 3), dtype)], {})
    for decimals in [0, 1, -1, 3]:
        for dtype in ["float32", "float64"]:
            yield "_npi_around", ([make.array((3, 4), dtype, -30, 30)], {"decimals": decimals})
    yield "_npi_around", ([make.array((3, 4), "int32", -30, 30)], {"decimals": 0})
    yield "_npi_around", ([make.array((), "float32")], {"decimals": 1})
    for name in ["_npx_relu", "_npx_sigmoid"]:
        for dtype in FLOATS:
            for shape in [(2, 3), (), (0, 2)]:
                yield name, ([make.array(shape, dtype)], {})
    broadcasts = [((2, 3), (2, 3)), ((2, 1), (1, 3)), ((3,), (2, 3)), ((), (2,)), ((), ()), ((0, 3), (1, 3))]
    for name in [*BINARY.split(), *COMPARISON.split()]:
        bits = name in ("lcm", "bitwise_and", "bitwise_or", "bitwise_xor")
        low = 0.5 if name in ("power", "hypot") else -3
        for a, b in broadcasts:
            dtype = "int32" if bits else "float32"
            yield f"_npi_{name}", ([make.array(a, dtype, low), make.array(b, dtype, low)], {})
        for dtype in ALL:
            yield f"_npi_{name}", ([make.array((2, 3), dtype, low), make.array((2, 3), dtype, low)], {})
        if name in ("add", "subtract", "multiply", "true_divide", "mod", "power"):
            for a in ALL:
                for b in ALL:
                    if a != b and (a in FLOATS or b in FLOATS or name in ("add", "multiply")):
                        yield f"_npi_{name}", ([make.array((2, 2), a, low), make.array((2,), b, low)], {})
    for name in [*SCALAR.split(), *COMPARISON.split()]:
        low = 0.5 if "power" in name else -3
        for dtype in ALL:
            yield f"_npi_{name}_scalar", ([make.array((2, 3), dtype, low)], {"scalar": 2, "is_int": True})
            if not name.startswith("bitwise"):
                yield f"_npi_{name}_scalar", ([make.array((2, 3), dtype, low)], {"scalar": 1.5, "is_int": False})
        dtype = "int32" if name.startswith("bitwise") else "float32"
        for shape in [(), (0, 3)]:
            yield f"_npi_{name}_scalar", ([make.array(shape, dtype, low)], {"scalar": 3, "is_int": True})


def reductions(make: Maker) -> Iterator[tuple[str, Case]]:
    axes: list[Any] = [None, (), (0,), (-1,), (0, 2), (0, 1, 2)]
    for name in ["_np_sum", "_np_prod", "_np_max", "_np_min", "_npi_mean", "_np_any", "_np_all"]:
        for axis in axes:
            for keepdims in [False, True]:
                yield name, ([make.array((2, 3, 2))], {"axis": axis, "keepdims": keepdims})
        for dtype in ALL:
            yield name, ([make.array((2, 3), dtype)], {"axis": (1,)})
        yield name, ([make.array(())], {})
        yield name, ([make.array((), "int32")], {"axis": (0,)})
        yield name, ([make.array((0, 3))], {"axis": (1,)})
        yield name, ([make.array((0, 3))], {"axis": (0,)})
        yield name, ([make.array((0, 3))], {})
        yield name, ([make.array((2, 3))], {"axis": (2,)})
        yield name, ([make.array((2, 3))], {"axis": (1, 1)})
        if name in ("_np_sum", "_np_prod", "_npi_mean"):
            for dtype in ["float64", "int32", "int64", "float32", "float16"]:
                for given in ["float32", "int32", "bool", "float16"]:
                    yield name, ([make.array((2, 3), given)], {"axis": (0,), "dtype": dtype})
    for name in ["_npi_argmax", "_npi_argmin"]:
        for axis in [None, 0, 1, -1]:
            for keepdims in [False, True]:
                yield name, ([make.array((2, 3, 2))], {"axis": axis, "keepdims": keepdims})
        for dtype in NUMBERS:
            yield name, ([make.array((2, 3), dtype)], {"axis": 1})
        yield name, ([make.array(())], {})
        yield name, ([make.array((0, 3))], {"axis": 1})
    for name in ["_npi_std", "_npi_var"]:
        for axis in axes[:1] + axes[2:]:
            for ddof in [0, 1]:
                yield name, ([make.array((2, 3, 2))], {"axis": axis, "ddof": ddof, "keepdims": ddof == 1})
        for dtype in FLOATS:
            yield name, ([make.array((3, 4), dtype)], {"axis": (1,)})
        for given in INTEGERS:
            yield name, ([make.array((3, 4), given)], {"axis": (0,), "dtype": "float32"})
        yield name, ([make.array(())], {})
    for axis in [None, (0,), (1,), (0, 1)]:
        yield "_npi_average", ([make.array((2, 3))], {"axis": axis, "weighted": False})
        yield "_npi_average", ([make.array((2, 3)), make.array((2, 3), low=0.5)], {"axis": axis})
    yield "_npi_average", ([make.array((2, 3)), make.array((3,), low=0.5)], {"axis": (1,)})
    yield "_npi_average", ([make.array((2, 3), "float64"), make.array((2,), "float64", 0.5)], {"axis": (0,)})
    for interpolation in ["linear", "lower", "higher", "midpoint", "nearest"]:
        for axis in [None, (0,), (1,), (0, 2)]:
            yield (
                "_npi_percentile",
                (
                    [make.array((3, 4, 2)), onp.array([10.0, 50.0, 99.0], "float32")],
                    {"axis": axis, "interpolation": interpolation},
                ),
            )
    for dtype in ["int32", "float64", "float16"]:
        yield "_npi_percentile", ([make.array((7,), dtype)], {"q_scalar": 30})
    yield "_npi_percentile", ([make.array((3, 4))], {"q_scalar": 50, "axis": (1,), "keepdims": True})
    yield "_npi_percentile", ([make.array(())], {"q_scalar": 50})
    for n in [0, 1, 2, 9]:
        for axis in [0, -1]:
            yield "_npi_diff", ([make.array((3, 4))], {"n": n, "axis": axis})
    for dtype in NUMBERS:
        yield "_npi_diff", ([make.array((5,), dtype)], {})
    yield "_npi_diff", ([make.array((0, 3))], {"axis": 1})
    for dtype in ["float32", "int32", "float64"]:
        yield "_npi_ediff1d", ([make.array((2, 3), dtype)], {})
        yield "_npi_ediff1d", ([make.array((2, 3), dtype)], {"to_begin_scalar": 9, "to_end_scalar": 8})
    yield (
        "_npi_ediff1d",
        (
            [make.array((4,)), make.array((2,)), make.array((3,))],
            {"to_begin_arr_given": True, "to_end_arr_given": True},
        ),
    )
    yield "_npi_ediff1d", ([make.array((4,)), make.array((2,))], {"to_end_arr_given": True, "to_begin_scalar": 1})
    yield "_npi_ediff1d", ([make.array((1,))], {})
    for dtype in ["float32", "int32", "float64"]:
        yield "_npi_polyval", ([make.array((3,), dtype), make.array((2, 2), dtype)], {})
    yield "_npi_polyval", ([make.array((3,)), make.array(())], {})


def shapes(make: Maker) -> Iterator[tuple[str, Case]]:
    for dtype in ALL:
        yield "_np_copy", ([make.array((2, 3), dtype)], {})
    yield "_np_copy", ([make.array(())], {})
    for shape, new in [
        ((2, 3), (3, 2)),
        ((2, 3), (-1,)),
        ((1,), ()),
        ((), (1, 1)),
        ((0, 3), (3, 0)),
        ((2, 3), (2, 4)),
        ((0, 3), (-1,)),
        ((2, 3, 4), (6, -1)),
        ((0, 3), (0, -1)),
    ]:
        yield "_np_reshape", ([make.array(shape)], {"newshape": new})
    for shape, new, reverse in [
        ((2, 3, 4), (-2, -1), False),
        ((2, 3, 4), (-5, -4), False),
        ((2, 3, 4), (-6, 1, 2, -4), False),
        ((2, 3, 4), (-1, -2), True),
        ((1, 3), (-3, 3), False),
        ((8, 3, 3, 3, 4, 4), (-6, 2, -1, -4), False),
        ((2, 3), (4, -1), False),
        ((), (1,), False),
        ((2, 3, 4), (-4,), False),
    ]:
        yield "_npx_reshape", ([make.array(shape)], {"newshape": new, "reverse": reverse})
    for shape, axis in [
        ((1, 2, 1), None),
        ((1, 2, 1), (0,)),
        ((1, 2, 1), (-1, 0)),
        ((), None),
        ((2, 1), (0,)),
        ((1, 1), None),
        ((0, 1), None),
    ]:
        yield "_np_squeeze", ([make.array(shape)], {"axis": axis})
    for shape, order in [
        ((2, 3), None),
        ((2, 3, 4), (2, 0, 1)),
        ((2, 3, 4), (-1, 0, 1)),
        ((), None),
        ((0, 3), None),
        ((2, 3), (0, 0)),
        ((2, 3), (0,)),
    ]:
        yield "_np_transpose", ([make.array(shape)], {} if order is None else {"axes": order})
    for source, destination in [((0,), (2,)), ((0, 1), (-1, -2)), ((-1,), (0,)), ((2, 0), (0, 1))]:
        yield "_np_moveaxis", ([make.array((2, 3, 4))], {"source": source, "destination": destination})
    for shape, shift, axis in [
        ((5,), (2,), None),
        ((2, 3), (1,), None),
        ((2, 3), (1,), (0,)),
        ((2, 3), (-1, 2), (0, 1)),
        ((2, 3), (7,), (-1,)),
        ((2, 3), (1,), (0, 1)),
        ((0, 3), (1,), (1,)),
        ((2, 3), (1, 2), None),
    ]:
        yield "_np_roll", ([make.array(shape)], {"shift": shift, "axis": axis})
    for k in [-5, -1, 0, 1, 2, 3, 4]:
        yield "_npi_rot90", ([make.array((2, 3))], {"k": k, "axes": (0, 1)})
    yield "_npi_rot90", ([make.array((2, 3, 4))], {"k": 1, "axes": (1, 2)})
    yield "_npi_rot90", ([make.array((2, 3, 4))], {"k": 1, "axes": (2, 0)})
    for axis in [(0,), (1,), (0, 1), (-1,)]:
        yield "_npi_flip", ([make.array((2, 3, 2))], {"axis": axis})
    for shape, new in [
        ((3,), (2, 3)),
        ((), (2, 2)),
        ((2, 1), (2, 3)),
        ((1, 0), (2, 0)),
        ((2,), (3,)),
        ((2, 3), (-2, -2)),
    ]:
        yield "_npi_broadcast_to", ([make.array(shape)], {"shape": new})
    for mode in ["constant", "edge", "reflect", "symmetric", "maximum", "minimum"]:
        for dtype in ["float32", "int32", "float64"]:
            yield "_npi_pad", ([make.array((3, 4), dtype)], {"pad_width": ((1, 2), (3, 0)), "mode": mode})
        yield "_npi_pad", ([make.array((2, 3, 2))], {"pad_width": ((0, 1), (2, 2), (1, 0)), "mode": mode})
    yield "_npi_pad", ([make.array((2, 3))], {"pad_width": ((1, 1), (1, 1)), "constant_value": 5})
    for k in [-2, -1, 0, 1, 3]:
        yield "_npi_tril", ([make.array((3, 4))], {"k": k})
        yield "_np_diag", ([make.array((3, 4))], {"k": k})
        yield "_np_diag", ([make.array((3,))], {"k": k})
        yield "_np_diagflat", ([make.array((2, 2))], {"k": k})
        yield "_np_diagonal", ([make.array((3, 4))], {"offset": k})
        yield "_np_trace", ([make.array((3, 4))], {"offset": k})
    yield "_npi_tril", ([make.array((3,))], {})
    yield "_npi_tril", ([make.array((2, 3, 3))], {})
    yield "_np_diagonal", ([make.array((2, 3, 4))], {"axis1": 1, "axis2": 2})
    yield "_np_diagonal", ([make.array((2, 3, 4))], {"axis1": -1, "axis2": 0, "offset": 1})
    yield "_np_trace", ([make.array((2, 3, 4))], {"axis1": 1, "axis2": 2})
    for dtype in ["int32", "float64", "bool"]:
        yield "_np_diag", ([make.array((3, 3), dtype)], {})
    yield "_npi_diag_indices_from", ([make.array((4, 4))], {})
    yield "_npi_diag_indices_from", ([make.array((3, 3, 3))], {})


def joining(make: Maker) -> Iterator[tuple[str, Case]]:
    def arrays(*shapes: Any, dtype: str = "float32") -> list[onp.ndarray]:
        return [make.array(shape, dtype) for shape in shapes]

    for axis in [0, 1, -1]:
        yield "_npi_concatenate", (arrays((2, 3), (2, 3)), {"axis": axis})
    yield "_npi_concatenate", (arrays((2, 3), (4,)), {"axis": None})
    yield "_npi_concatenate", (arrays((2, 3), (1, 3), (0, 3)), {"axis": 0})
    yield "_npi_concatenate", (arrays((2, 3), (2, 4)), {"axis": 0})
    for dtype in ALL:
        yield "_npi_concatenate", (arrays((2,), (3,), dtype=dtype), {"axis": 0})
        yield "_npi_stack", (arrays((2,), (2,), dtype=dtype), {"axis": 1})
    for axis in [0, 1, 2, -1]:
        yield "_npi_stack", (arrays((2, 3), (2, 3), (2, 3)), {"axis": axis})
    yield "_npi_stack", (arrays((), ()), {})
    yield "_npi_stack", (arrays((0, 2), (0, 2)), {"axis": 1})
    yield "_npi_stack", (arrays((2,), (3,)), {})
    for name in ["hstack", "vstack", "dstack", "column_stack"]:
        for given in [[(), ()], [(2,), (2,)], [(2, 1), (2, 1)], [(2, 3, 1), (2, 3, 1)], [(0, 2), (0, 2)], [(2, 3)]]:
            yield f"_npi_{name}", (arrays(*given), {})
    for name in ["_np_atleast_1d", "_np_atleast_2d", "_np_atleast_3d"]:
        yield name, (arrays((), (2,), (2, 3), (2, 1, 3)), {})
    for shape in [(4,), (2, 4), (2, 4, 4)]:
        yield "_npi_hsplit", (arrays(shape), {"indices": (), "axis": 1, "squeeze_axis": False, "sections": 2})
        yield "_npi_hsplit", (arrays(shape), {"indices": (0, 1, 3), "axis": 1, "squeeze_axis": False})
    yield "_npi_dsplit", (arrays((2, 2, 4)), {"indices": (), "axis": 2, "squeeze_axis": False, "sections": 2})
    yield "_npi_dsplit", (arrays((2, 2, 4)), {"indices": (0, 1, 3), "axis": 2, "squeeze_axis": False})


def creation(make: Maker) -> Iterator[tuple[str, Case]]:
    for name in ["_npi_zeros", "_npi_ones"]:
        for shape in SHAPES:
            yield name, ([], {"shape": shape})
        for dtype in ALL:
            yield name, ([], {"shape": (2,), "dtype": dtype})
    for n in [0, 1, 3]:
        yield "_npi_identity", ([], {"shape": (n, n)})
        for m, k in [(None, 0), (4, 1), (2, -1), (3, 9)]:
            yield "_npi_eye", ([], {"N": n, "M": m, "k": k})
    yield "_npi_eye", ([], {"N": 3, "dtype": "int32"})
    for start, stop, step in [(5, None, 1), (1, 6, 2), (1, 2, 0.25), (5, 1, -1), (1, 1, 1), (3, 0, 1), (0.5, 3.2, 0.7)]:
        yield "_npi_arange", ([], {"start": start, "stop": stop, "step": step})
    for dtype in NUMBERS:
        yield "_npi_arange", ([], {"start": 1, "stop": 7, "step": 2, "dtype": dtype})
    for endpoint in [True, False]:
        for base in [10, 2]:
            yield "_npi_logspace", ([], {"start": 0, "stop": 2, "num": 5, "endpoint": endpoint, "base": base})
    yield "_npi_logspace", ([], {"start": 0, "stop": 2, "num": 0})
    yield "_npi_logspace", ([], {"start": 0, "stop": 2, "num": 1, "dtype": "float64"})
    for name in ["_npi_blackman", "_npi_hamming", "_npi_hanning"]:
        for points in [0, 1, 2, 7]:
            yield name, ([], {"M": points})
        yield name, ([], {"M": 5, "dtype": "float64"})
    for dimensions in [(2, 3), (2,), (2, 1, 2), (0, 2)]:
        yield "_npi_indices", ([], {"dimensions": dimensions})
    yield "_npi_indices", ([], {"dimensions": (2, 2), "dtype": "float32"})
    for shape in SHAPES:
        yield "_npi_full_like", ([make.array(shape)], {"fill_value": 2.5})
    for dtype in ALL:
        yield "_npi_full_like", ([make.array((2,), dtype)], {"fill_value": 1})
        yield "_npi_full_like", ([make.array((2,))], {"fill_value": 1, "dtype": dtype})


def selection(make: Maker) -> Iterator[tuple[str, Case]]:
    for shapes in [
        ((2, 3), (2, 3), (2, 3)),
        ((2, 1), (3,), ()),
        ((), (2,), (2,)),
        ((0, 2), (0, 2), (1, 2)),
        ((3,), (2,), (2,)),
    ]:
        for condition in ["bool", "int32", "float32"]:
            a, b, c = shapes
            yield "_npi_where", ([make.array(a, condition), make.array(b), make.array(c)], {})
    for dtype in ALL:
        arrays = [make.array((4,), "bool"), make.array((4,), dtype), make.array((4,), dtype)]
        yield "_npi_where", (arrays, {})
        yield "_npi_where_lscalar", (arrays[:2], {"scalar": 2})
        yield "_npi_where_rscalar", (arrays[:2], {"scalar": 2})
    for shape in [(3,), (), (0, 2)]:
        yield "_npi_where_scalar2", ([make.array(shape, "bool")], {"x": 1.5, "y": -2})
        yield "_npi_where_lscalar", ([make.array((3,), "bool"), make.array(shape)], {"scalar": 1.5})
    for dtype in ["float32", "int32", "float64"]:
        yield (
            "_npi_boolean_mask_assign_scalar",
            ([make.array((2, 3), dtype), make.array((2, 3), "bool")], {"value": 2, "start_axis": 0}),
        )
    mask = onp.array([True, False, True])
    yield "_npi_boolean_mask_assign_scalar", ([make.array((3, 2)), mask], {"value": 5, "start_axis": 0})
    yield "_npi_boolean_mask_assign_scalar", ([make.array((2, 3)), mask], {"value": 5, "start_axis": 1})
    yield "_npi_boolean_mask_assign_tensor", ([make.array((3, 2)), mask, make.array((2, 2))], {"start_axis": 0})
    yield "_npi_boolean_mask_assign_tensor", ([make.array((3, 2)), mask, make.array((1, 2))], {"start_axis": 0})
    yield "_npi_boolean_mask_assign_tensor", ([make.array((2, 3)), mask, make.array((2, 2))], {"start_axis": 1})
    for shape in [(5,), (2, 3), (2, 2, 2), (0, 3)]:
        for dtype in ["float32", "int32", "bool"]:
            yield "_npx_nonzero", ([make.array(shape, dtype, -1, 1)], {})
    yield "_npx_nonzero", ([onp.zeros((2, 3), "float32")], {})
    for flags in [
        {},
        {"return_index": True},
        {"return_inverse": True},
        {"return_counts": True},
        {"return_index": True, "return_inverse": True, "return_counts": True},
    ]:
        for dtype in ["float32", "int32", "int64"]:
            yield "_npi_unique", ([make.array((3, 4), dtype, -2, 2)], flags)
        yield "_npi_unique", ([make.array((4, 2), "int32", 0, 1)], {**flags, "axis": 0})
        yield "_npi_unique", ([make.array((2, 4), "int32", 0, 1)], {**flags, "axis": -1})
        yield "_npi_unique", ([make.array(())], flags)
    for dtype in ["int32", "int64", "uint8"]:
        yield "_npi_bincount", ([make.array((6,), dtype, 0, 4)], {})
        yield "_npi_bincount", ([make.array((6,), dtype, 0, 4)], {"minlength": 9})
    yield "_npi_bincount", ([make.array((6,), "int32", 0, 4), make.array((6,))], {"has_weights": True})
    for place in [
        {"int_ind": 1},
        {"int_ind": -1},
        {"start": 0, "stop": 2, "step": 1},
        {"start": None, "stop": None, "step": 2},
        {"start": 3, "stop": 0, "step": -1},
        {"int_ind": 9},
    ]:
        for axis in [None, 0, 1, -1]:
            yield "_npi_delete", ([make.array((4, 3))], {**place, "axis": axis})
    yield "_npi_delete", ([make.array((4, 3)), onp.array([0, 2, 2], "int64")], {"axis": 0})
    yield "_npi_delete", ([make.array((4, 3)), onp.array([1], "int32")], {"axis": 1})
    yield "_npi_insert_scalar", ([make.array((4, 3))], {"val": 7, "int_ind": 1, "axis": 0})
    yield "_npi_insert_scalar", ([make.array((4, 3))], {"val": 7, "int_ind": -1, "axis": 1})
    yield "_npi_insert_scalar", ([make.array((4, 3))], {"val": 7, "int_ind": 5})
    yield "_npi_insert_scalar", ([make.array((4, 3)), make.array((3,))], {"int_ind": 1, "axis": 0})
    yield "_npi_insert_scalar", ([make.array((4, 3)), make.array((4,))], {"int_ind": 1, "axis": 1})
    yield "_npi_insert_slice", ([make.array((4, 3))], {"val": 7, "start": 0, "stop": 3, "step": 2, "axis": 0})
    yield "_npi_insert_slice", ([make.array((4, 3)), make.array((2, 3))], {"start": 0, "stop": 2, "step": 1, "axis": 0})
    for obj in [onp.array([0, 2], "int64"), onp.array([3, 1], "int64"), onp.array([1], "int64")]:
        yield "_npi_insert_tensor", ([make.array((4, 3)), obj], {"val": 7, "axis": 0})
        yield "_npi_insert_tensor", ([make.array((4, 3)), make.array((len(obj), 3)), obj], {"axis": 0})
        yield "_npi_insert_tensor", ([make.array((4, 3)), make.array((1, 3)), obj], {"axis": 0})


def products(make: Maker) -> Iterator[tuple[str, Case]]:
    for dtype in ["float32", "float64"]:
        for a, b in [
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((2, 3), (3, 4)),
            ((), (2,)),
            ((2, 2), ()),
            ((2, 3, 4), (4,)),
            ((2, 3, 4), (5, 4, 2)),
            ((2, 0), (0, 3)),
            ((2, 3), (2, 3)),
        ]:
            yield "_np_dot", ([make.array(a, dtype), make.array(b, dtype)], {})
        for a, b in [
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (3, 4)),
            ((2, 3), (3, 4)),
            ((5, 2, 3), (3, 4)),
            ((2, 3), (5, 3, 4)),
            ((5, 1, 2, 3), (4, 3, 2)),
            ((2, 0), (0, 3)),
            ((2, 3), (2, 3)),
            ((), (2,)),
        ]:
            yield "_npi_matmul", ([make.array(a, dtype), make.array(b, dtype)], {})
        for axes in [0, 1, 2]:
            yield (
                "_npi_tensordot_int_axes",
                (
                    [
                        make.array((2, 3, 4), dtype),
                        make.array((4, 2, 2) if axes == 1 else (3, 4, 5), dtype),
                    ],
                    {"axes": axes},
                ),
            )
        yield "_npi_tensordot_int_axes", ([make.array((2, 3), dtype), make.array((3, 4), dtype)], {"axes": 1})
        yield (
            "_npi_tensordot",
            (
                [make.array((2, 3, 4), dtype), make.array((4, 3, 5), dtype)],
                {"a_axes_summed": (1, 2), "b_axes_summed": (1, 0)},
            ),
        )
        yield (
            "_npi_tensordot",
            ([make.array((2, 3), dtype), make.array((5, 2), dtype)], {"a_axes_summed": (0,), "b_axes_summed": (-1,)}),
        )
        yield (
            "_npi_tensordot",
            (
                [make.array((2, 3), dtype), make.array((2, 3), dtype)],
                {"a_axes_summed": (0, 1), "b_axes_summed": (0, 1)},
            ),
        )
    for text, given in [
        ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]),
        ("ij->ji", [(2, 3)]),
        ("ji", [(2, 3)]),
        ("ij->i", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ij,jk->ki", [(2, 3), (3, 4)]),
        ("i,i", [(3,), (3,)]),
        ("i,j", [(3,), (2,)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
        ("...j,j", [(2, 3), (3,)]),
        ("i...->...", [(2, 3)]),
        ("ij,kj,lk->il", [(2, 3), (4, 3), (2, 4)]),
        ("ijk,ilm,njm,nlk,abc->", [(2, 2, 2)] * 5),
        (" i , i -> i ", [(3,), (3,)]),
        (",", [(), ()]),
        ("i,->i", [(3,), ()]),
        ("ij,ij->ij", [(2, 1), (1, 3)]),
        ("ik,kj->ij", [(2, 0), (0, 3)]),
        ("ij", [(2, 3, 4)]),
        ("ij->ik", [(2, 3)]),
        ("i?", [(2, 3)]),
    ]:
        for dtype in ["float32", "float64", "int32"]:
            yield "_npi_einsum", ([make.array(shape, dtype) for shape in given], {"subscripts": text, "optimize": 0})


def random(make: Maker) -> Iterator[tuple[str, Case]]:
    many = {"size": (4000,)}
    for size in [None, (), (3,), (0, 2)]:
        yield "_npi_uniform", ([], {"low": 1, "high": 2, "size": size})
        yield "_npi_normal", ([], {"loc": 1, "scale": 2, "size": size})
    for dtype in FLOATS:
        yield "_npi_uniform", ([], {"low": -1, "high": 2, "dtype": dtype, **many})
        yield "_npi_normal", ([], {"loc": -1, "scale": 2, "dtype": dtype, **many})
    low, high = onp.array([0.0, 10.0], "float32"), onp.array([1.0, 12.0], "float32")
    yield "_npi_uniform", ([low, high], {"low": None, "high": None, "size": (3000, 2)})
    yield "_npi_uniform", ([high], {"low": -5, "high": None, "size": (3000, 2)})
    yield "_npi_normal", ([low], {"loc": None, "scale": 1, "size": (3000, 2)})
    yield "_npi_normal", ([low, high], {"loc": None, "scale": None, "size": None})
    yield "_npi_uniform_n", ([low, high], {"low": None, "high": None, "size": (3000,)})
    yield "_npi_normal_n", ([low, high], {"loc": None, "scale": None, "size": (3000,)})
    yield "_npi_gamma", ([], {"shape": 2, "scale": 1.5, **many})
    yield "_npi_gamma", ([high], {"shape": None, "scale": 1.5, "size": (3000, 2)})
    for name in ["logistic", "gumbel"]:
        yield f"_npi_{name}", ([], {"loc": 1, "scale": 2, **many})
        yield f"_npi_{name}", ([low, high], {"loc": None, "scale": None, "size": (3000, 2)})
    yield "_npi_rayleigh", ([], {"scale": 2, **many})
    yield "_npi_exponential", ([], {"scale": 2, **many})
    yield "_npi_exponential", ([high], {"scale": None, "size": (3000, 2)})
    for name, a in [("weibull", 2), ("pareto", 8), ("powerd", 3)]:
        yield f"_npi_{name}", ([], {"a": a, **many})
    yield "_npi_bernoulli", ([], {"prob": 0.25, "logit": None, "is_logit": False, **many})
    yield "_npi_bernoulli", ([], {"prob": None, "logit": 1, "is_logit": True, **many})
    yield "_npi_choice", ([], {"a": 7, **many})
    yield "_npi_choice", ([], {"a": 4000, "replace": False, **many})
    yield "_npi_choice", ([onp.array([0.1, 0.2, 0.7], "float32")], {"a": 3, "weighted": True, **many})
    yield "_npi_multinomial", ([], {"n": 100, "pvals": (0.25, 0.75), "size": (50,)})


FAMILIES = [elementwise, reductions, shapes, joining, creation, selection, products, random]


def encode(value: Any) -> Any:
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value


def call(name: str, arrays: list[onp.ndarray], attrs: dict[str, Any]) -> list[onp.ndarray]:
    import mxnet as mx
    from mxnet import np, npx

    npx.set_np()
    spaces = {"_npi_": mx.nd.numpy._internal, "_np_": mx.nd.numpy, "_npx_": mx.nd.numpy_extension}
    prefix = next(prefix for prefix in spaces if name.startswith(prefix))
    function = getattr(spaces[prefix], name[len(prefix) :], None) or getattr(
        mx.nd.numpy_extension._internal, name[len(prefix) :]
    )
    required = ("low", "high", "loc", "scale", "shape", "prob", "logit", "a")
    given = {key: value for key, value in attrs.items() if value is not None or key in required or key == "axis"}
    inputs = [np.array(array, dtype=array.dtype) for array in arrays]
    result = function(*inputs, **given)
    results = result if isinstance(result, (list, tuple)) else [result]
    return [one.asnumpy() for one in results]


def record(name: str, cases: list[Case]) -> list[dict[str, Any]]:
    """Calls in a child, one after the other; those before the end of the process are kept."""
    rows: list[dict[str, Any]] = []
    start = 0
    while start < len(cases):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                for number, (arrays, attrs) in enumerate(cases[start:], start):
                    try:
                        outcome: Any = ("values", call(name, arrays, attrs))
                    except Exception as error:
                        outcome = ("error", str(error).splitlines()[-1][:120])
                    pickle.dump((number, outcome), pipe)
                    pipe.flush()
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            while True:
                try:
                    number, outcome = pickle.load(pipe)
                except EOFError:
                    break
                rows.append({"number": number, "outcome": outcome})
                start = number + 1
        _, status = os.waitpid(child, 0)
        if status != 0:
            start += 1  # the call that ended the process
    return rows


def main() -> None:
    os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import mxnet  # noqa: F401  # once, for all children

    calls: dict[str, list[Case]] = {}
    family_of: dict[str, str] = {}
    for seed, family in enumerate(FAMILIES):
        for name, case in family(Maker(seed)):
            calls.setdefault(name, []).append(case)
            family_of[name] = family.__name__
    arrays: dict[str, onp.ndarray] = {}

    def keep(array: onp.ndarray) -> str:
        text = repr((array.dtype.str, array.shape)).encode() + onp.ascontiguousarray(array).tobytes()
        key = hashlib.sha1(text).hexdigest()[:10]
        arrays[key] = array
        return key

    lines = []
    for name, cases in calls.items():
        rows = record(name, cases)
        print(name, len(rows), "of", len(cases), file=sys.stderr)
        for row in rows:
            given, attrs = cases[row["number"]]
            case = {
                "op": name,
                "inputs": [keep(array) for array in given],
                "attrs": {k: encode(v) for k, v in attrs.items()},
            }
            kind, outcome = row["outcome"]
            if kind == "error":
                case["error"] = outcome
            elif family_of[name] == "random":
                stats = [[float(one.mean()), float(one.std())] if one.size > 100 else None for one in outcome]
                case["outputs"] = [
                    [one.dtype.name, list(one.shape), stat] for one, stat in zip(outcome, stats, strict=True)
                ]
                case["random"] = True
            else:
                case["outputs"] = [keep(one) for one in outcome]
            lines.append(json.dumps(case))
    (FOLDER / "numpy.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    onp.savez_compressed(FOLDER / "numpy.npz", **arrays)
    print(len(lines), "cases", len(arrays), "arrays", file=sys.stderr)


if __name__ == "__main__":
    main()
