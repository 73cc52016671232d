"""Calls of operators that join, make and select, of products and of random numbers, for
record_numpy.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as onp
from numpy_calls import ALL, FLOATS, NUMBERS, SHAPES, Case, Maker


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
