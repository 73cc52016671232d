"""Calls of operators on each element, over axes and of shapes, for record_numpy.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as onp

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
