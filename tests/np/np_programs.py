"""Random programs of ``mx.np``, and what NumPy makes of them.

A program is a number: it alone decides about arrays, functions and attributes. Each step applies a
function to arrays that exist already. The reference computes in float64 and int64. Functions with
jumps (``floor``, comparisons, places of extremes) get numbers that every element type holds
exactly, so that rounding decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

Array = onp.ndarray[Any, Any]
# A function of a namespace (mx.np, mx.sym.np or numpy) and of operands.
Function = Callable[..., Any]

DTYPES = ("float32", "float64", "int32", "int64", "bool")
# MXNet's order: a float wins over whole numbers.
RANK = {"bool": 0, "int32": 2, "int64": 3, "float32": 5, "float64": 6}
# Limits that keep sums and products of a few steps within every type.
LARGEST, MOST_ELEMENTS, MOST_AXES = 4096.0, 400, 4


class Value:
    """An array of a program: what NumPy has for it, and its element type."""

    def __init__(self, reference: Array, dtype: str, scale: float = 1.0) -> None:
        self.dtype = dtype
        self.reference = onp.asarray(reference).astype("float64" if dtype.startswith("float") else dtype)
        # The largest number on the way here: errors of rounding are relative to it.
        largest = float(onp.abs(self.reference.astype("float64")).max()) if self.reference.size else 0.0
        self.scale = max(scale, largest)
        fine = self.reference.astype("float64") * 1024
        self.exact = bool(onp.all(fine == onp.round(fine)) and largest < 16384)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.reference.shape

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("float")

    def difference(self, got: Array) -> str | None:
        """Says how an answer differs."""
        if (got.dtype.name, got.shape) != (self.dtype, self.shape):
            return f"{got.dtype}{got.shape}, expected {self.dtype}{self.shape}"
        if not self.is_float:
            return None if onp.array_equal(got, self.reference) else f"{got}, expected {self.reference}"
        room = (1e-4 if self.dtype == "float32" else 1e-9) * self.scale
        close = onp.isclose(got.astype("float64"), self.reference, rtol=1e-4, atol=room, equal_nan=True)
        return None if close.all() else f"{got}, expected {self.reference}"


class Step:
    """A function of some values, and the element type of its result."""

    def __init__(self, name: str, function: Function, operands: list[int], dtype: str) -> None:
        self.name, self.function, self.operands, self.dtype = name, function, operands, dtype


class Program:
    """Inputs, and steps that were found to be defined for them."""

    def __init__(self, number: int) -> None:
        self.random = onp.random.RandomState(number % 2**32)
        self.values = [self._input() for _ in range(self.size(2, 3))]
        self.inputs = len(self.values)
        self.steps: list[Step] = []
        wanted = self.size(3, 8)
        for _ in range(4 * wanted):
            if len(self.steps) < wanted:
                self._try(self.pick(*STEPS)(self))

    def pick(self, *choices: Any) -> Any:
        return choices[self.random.randint(len(choices))]

    def size(self, low: int, high: int) -> int:
        return int(self.random.randint(low, high + 1))

    def any_value(self) -> int:
        return int(self.random.randint(len(self.values)))

    def some(self, holds: Callable[[Value], bool]) -> int | None:
        """A value for which something holds."""
        found = [place for place, value in enumerate(self.values) if holds(value)]
        return found[self.random.randint(len(found))] if found else None

    def axis(self, value: Value) -> int:
        rank = len(value.shape)
        return int(self.random.randint(-rank, rank))

    def _input(self) -> Value:
        extents = [self.pick(1, 2, 3, 4, 2, 3, 0) for _ in range(self.size(0, 3))]
        dtype = self.pick(*DTYPES)
        if dtype == "bool":
            return Value(self.random.randint(0, 2, extents), dtype)
        whole = self.random.randint(-12, 13, extents)
        return Value(whole / 4 if dtype.startswith("float") else whole, dtype)

    def _try(self, step: Step | None) -> None:
        """Adds a step, unless its result is too large to continue with."""
        if step is None:
            return
        operands = [self.values[place] for place in step.operands]
        with onp.errstate(all="ignore"):
            made = onp.asarray(step.function(onp, *(value.reference for value in operands)))
        if made.size > MOST_ELEMENTS or made.ndim > MOST_AXES:
            return
        value = Value(made, step.dtype, max(operand.scale for operand in operands))
        if not onp.isfinite(value.reference.astype("float64")).all() or value.scale > LARGEST:
            return
        self.steps.append(step)
        self.values.append(value)

    # ---- its answers -----------------------------------------------------------------------------

    def run(self, np: Any) -> list[Any]:
        """The results of all steps by ``mx.np``, called one by one."""
        arrays = [np.array(self._host(value), dtype=value.dtype) for value in self.values[: self.inputs]]
        for step in self.steps:
            arrays.append(step.function(np, *(arrays[place] for place in step.operands)))
        return arrays[self.inputs :]

    def run_as_graph(self, mx: Any) -> list[Any]:
        """The results of all steps as one graph."""
        names = [f"data{place}" for place in range(self.inputs)]
        symbols = [mx.sym.var(name).as_np_ndarray() for name in names]
        used = sorted({place for step in self.steps for place in step.operands if place < self.inputs})
        for step in self.steps:
            symbols.append(step.function(mx.sym.np, *(symbols[place] for place in step.operands)))
        block = mx.gluon.SymbolBlock(mx.sym.np.Group(symbols[self.inputs :]), [symbols[place] for place in used])
        inputs = [self.values[place] for place in used]
        arrays = [mx.np.array(self._host(value), dtype=value.dtype) for value in inputs]
        made = block(*arrays)
        return made if isinstance(made, list) else [made]

    @staticmethod
    def _host(value: Value) -> Array:
        return value.reference.astype(value.dtype)

    def check(self, results: list[Any], what: str) -> None:
        for step, value, result in zip(self.steps, self.values[self.inputs :], results, strict=True):
            wrong = value.difference(result.asnumpy())
            shapes = [f"{self.values[place].dtype}{self.values[place].shape}" for place in step.operands]
            assert wrong is None, f"{what}: {step.name} of {', '.join(shapes)}: {wrong}"


# ---- steps ---------------------------------------------------------------------------------------


def whole_or_float(value: Value) -> bool:
    return value.dtype != "bool"


def unary_exact(program: Program) -> Step | None:
    place = program.some(lambda value: whole_or_float(value) and value.exact)
    if place is None:
        return None
    name = program.pick("negative", "absolute", "sign", "square", "floor", "ceil", "around", "trunc", "fix")

    def call(np: Any, a: Any) -> Any:
        # NumPy 2.5 deprecates its own name for it.
        return getattr(np, "trunc" if name == "fix" and np is onp else name)(a)

    return Step(name, call, [place], program.values[place].dtype)


def unary_smooth(program: Program) -> Step | None:
    place = program.some(lambda value: value.is_float and value.scale < 30)
    if place is None:
        return None
    name = program.pick("tanh", "sin", "cos", "arctan", "arcsinh", "exp", "expm1", "cbrt", "degrees")
    limited = name in ("exp", "expm1")
    return Step(
        name,
        lambda np, a: getattr(np, name)(np.clip(a, -4.0, 4.0) if limited else a),
        [place],
        program.values[place].dtype,
    )


def logarithm(program: Program) -> Step | None:
    place = program.some(lambda value: value.is_float)
    if place is None:
        return None
    name = program.pick("log", "log2", "log10", "log1p", "sqrt", "reciprocal")
    function = lambda np, a: getattr(np, name)(np.abs(a) + 0.5)  # noqa: E731
    return Step(name, function, [place], program.values[place].dtype)


def question(program: Program) -> Step | None:
    name = program.pick("logical_not", "isnan", "isfinite", "isinf")
    place = program.some(lambda value: value.is_float or name == "logical_not")
    if place is None or not program.values[place].exact:
        return None
    return Step(name, lambda np, a: getattr(np, name)(a), [place], "bool")


def fits(a: Value, b: Value) -> bool:
    try:
        onp.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return True


def pair(program: Program, holds: Callable[[Value, Value], bool]) -> tuple[int, int] | None:
    """Two values that can be broadcast, for which something holds."""
    a = program.any_value()
    left = program.values[a]
    b = program.some(lambda right: fits(left, right) and holds(left, right))
    return None if b is None else (a, b)


def arithmetic(program: Program) -> Step | None:
    name = program.pick("add", "multiply", "subtract", "maximum", "minimum")
    mixed = name not in ("maximum", "minimum")

    def holds(a: Value, b: Value) -> bool:
        return whole_or_float(a) and whole_or_float(b) and (a.dtype == b.dtype or (mixed and a.is_float != b.is_float))

    found = pair(program, holds)
    if found is None:
        return None
    dtype = max((program.values[place].dtype for place in found), key=RANK.__getitem__)
    return Step(name, lambda np, a, b: getattr(np, name)(a, b), list(found), dtype)


def with_number(program: Program) -> Step | None:
    place = program.some(whole_or_float)
    if place is None:
        return None
    number, sign = program.pick(2, 3, -1), program.pick("+", "-", "*", "r-")
    if sign == "r-" and not program.values[place].is_float:
        sign = "-"  # graphs give float64 there, calls do not, as in MXNet
    functions = {
        "+": lambda np, a: a + number,
        "-": lambda np, a: a - number,
        "*": lambda np, a: a * number,
        "r-": lambda np, a: number - a,
    }
    return Step(sign, functions[sign], [place], program.values[place].dtype)


def quotient(program: Program) -> Step | None:
    found = pair(program, lambda a, b: whole_or_float(a) and a.dtype == b.dtype)
    if found is None:
        return None
    dtype = program.values[found[0]].dtype
    function = lambda np, a, b: np.true_divide(a, np.abs(b) + 1)  # noqa: E731
    return Step("true_divide", function, list(found), dtype if dtype.startswith("float") else "float32")


def remainder(program: Program) -> Step | None:
    place = program.some(lambda value: whole_or_float(value) and value.exact)
    if place is None:
        return None
    number = program.pick(2, 3, 5)
    return Step("mod", lambda np, a: np.mod(a, number), [place], program.values[place].dtype)


def comparison(program: Program) -> Step | None:
    name = program.pick("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    found = pair(program, lambda a, b: a.dtype == b.dtype and a.exact and b.exact)
    if found is None:
        return None
    return Step(name, lambda np, a, b: getattr(np, name)(a, b), list(found), "bool")


def bits(program: Program) -> Step | None:
    name = program.pick("bitwise_and", "bitwise_or", "bitwise_xor")
    found = pair(program, lambda a, b: a.dtype == b.dtype and not a.is_float)
    if found is None:
        return None
    return Step(name, lambda np, a, b: getattr(np, name)(a, b), list(found), program.values[found[0]].dtype)


def choice(program: Program) -> Step | None:
    condition = program.some(lambda value: value.dtype == "bool")
    found = pair(program, lambda a, b: a.dtype == b.dtype and whole_or_float(a))
    if condition is None or found is None:
        return None
    a, b = (program.values[place] for place in found)
    try:
        onp.broadcast_shapes(program.values[condition].shape, a.shape, b.shape)
    except ValueError:
        return None
    return Step("where", lambda np, c, a, b: np.where(c, a, b), [condition, *found], a.dtype)


def reduction(program: Program) -> Step | None:
    name = program.pick("sum", "mean", "max", "min", "std", "var", "any", "all")
    place = program.some(lambda value: value.is_float and value.reference.size > 0)
    if place is None:
        return None
    value = program.values[place]
    if name in ("any", "all") and not value.exact:
        return None
    axis = program.pick(None, program.axis(value)) if value.shape else None
    if value.shape and name not in ("std", "var") and program.pick(True, False):
        axis = tuple(a for a in range(len(value.shape)) if program.pick(True, False))
    if axis == ():
        return None
    keepdims = program.pick(True, False)
    dtype = "bool" if name in ("any", "all") else value.dtype
    return Step(name, lambda np, a: getattr(np, name)(a, axis=axis, keepdims=keepdims), [place], dtype)


def whole_sum(program: Program) -> Step | None:
    place = program.some(lambda value: value.dtype in ("int64", "bool") and value.reference.size > 0)
    if place is None:
        return None
    value = program.values[place]
    axis = program.axis(value) if value.shape else None
    return Step("sum", lambda np, a: np.sum(a, axis=axis), [place], "int64")


def extreme_place(program: Program) -> Step | None:
    name = program.pick("argmax", "argmin")
    place = program.some(lambda value: value.is_float and value.exact and value.reference.size > 0)
    if place is None:
        return None
    value = program.values[place]
    axis = program.pick(None, program.axis(value)) if value.shape else None
    return Step(name, lambda np, a: getattr(np, name)(a, axis=axis), [place], "int64")


def running_sum(program: Program) -> Step | None:
    place = program.some(lambda value: value.dtype in ("float32", "float64", "int64"))
    if place is None:
        return None
    value = program.values[place]
    axis = program.pick(None, program.axis(value)) if value.shape else None
    return Step("cumsum", lambda np, a: np.cumsum(a, axis=axis), [place], value.dtype)


def moved(program: Program) -> Step | None:
    """Functions that only move elements."""
    place = program.some(lambda value: len(value.shape) > 0)
    if place is None:
        return None
    value = program.values[place]
    rank, axis, other = len(value.shape), program.axis(value), program.axis(value)
    order = tuple(int(a) for a in program.random.permutation(rank))
    shift, count = program.size(-5, 5), program.size(1, 2)
    functions: dict[str, Function] = {
        "transpose": lambda np, a: np.transpose(a, order),
        "swapaxes": lambda np, a: np.swapaxes(a, axis, other),
        "moveaxis": lambda np, a: np.moveaxis(a, axis, other),
        "expand_dims": lambda np, a: np.expand_dims(a, axis),
        "ravel": lambda np, a: np.ravel(a),
        "flip": lambda np, a: np.flip(a, axis),
        "flip all": lambda np, a: np.flip(a),
        "roll": lambda np, a: np.roll(a, shift, axis),
        "tile": lambda np, a: np.tile(a, (count, 1)),
        "repeat": lambda np, a: np.repeat(a, count, axis),
        "squeeze": lambda np, a: np.squeeze(a),
        "stack": lambda np, a: np.stack([a, a], axis),
        "concatenate": lambda np, a: np.concatenate([a, a, a], axis),
    }
    if value.shape[0] > 0:
        functions["part"] = lambda np, a: a[-1]
        functions["step"] = lambda np, a: a[::-2]
    if rank > 1:
        functions["rot90"] = lambda np, a: np.rot90(a, shift)
        functions["tril"] = lambda np, a: np.tril(a, count - 1)
    name = program.pick(*functions)
    return Step(name, functions[name], [place], value.dtype)


def reshaped(program: Program) -> Step | None:
    place = program.any_value()
    value = program.values[place]
    if value.reference.size == 0:
        return None
    extents: list[int] = []
    rest = value.reference.size
    while rest > 1 and len(extents) < 3:
        divisors = [n for n in range(1, rest + 1) if rest % n == 0]
        extents.append(int(program.pick(*divisors)))
        rest //= extents[-1]
    shape = (*extents, -1)
    return Step("reshape", lambda np, a: np.reshape(a, shape), [place], value.dtype)


def padded(program: Program) -> Step | None:
    place = program.some(lambda value: value.is_float and len(value.shape) > 0)
    if place is None:
        return None
    width = tuple((program.size(0, 2), program.size(0, 2)) for _ in program.values[place].shape)
    return Step("pad", lambda np, a: np.pad(a, width, mode="constant"), [place], program.values[place].dtype)


def in_parts(program: Program) -> Step | None:
    place = program.some(lambda value: len(value.shape) > 0)
    if place is None:
        return None
    value = program.values[place]
    axis = program.axis(value)
    cut = min(program.size(0, 2), value.shape[axis])
    return Step("split", lambda np, a: np.split(a, (cut,), axis)[1], [place], value.dtype)


def product(program: Program) -> Step | None:
    place = program.some(lambda value: value.is_float and len(value.shape) == 2 and value.scale < 60)
    if place is None:
        return None
    functions: dict[str, Function] = {
        "matmul": lambda np, a: np.matmul(a, np.transpose(a)),
        "dot": lambda np, a: np.dot(np.transpose(a), a),
        "tensordot": lambda np, a: np.tensordot(a, a, ((0,), (0,))),
        "einsum": lambda np, a: np.einsum("ij,kj->ik", a, a),
        "einsum sum": lambda np, a: np.einsum("ij,ij->j", a, a),
        "inner": lambda np, a: np.inner(a, a),
        "matrix and vector": lambda np, a: np.matmul(a, np.sum(a, axis=0)),
        "vector and matrix": lambda np, a: np.matmul(np.sum(a, axis=1), a),
        "batch": lambda np, a: np.matmul(np.stack([a, a], 0), np.transpose(a)),
        "einsum outer": lambda np, a: np.einsum("i,j->ij", np.sum(a, axis=0), np.sum(a, axis=1)),
        "einsum rows": lambda np, a: np.einsum("ij->i", a),
        "einsum turned": lambda np, a: np.einsum("ij->ji", a),
        "einsum batch": lambda np, a: np.einsum("ij,ij->i", a, a),
        "einsum chain": lambda np, a: np.einsum("ij,kj,kl->il", a, a, a),
    }
    name = program.pick(*functions)
    return Step(name, functions[name], [place], program.values[place].dtype)


def sorted_values(program: Program) -> Step | None:
    place = program.some(lambda value: whole_or_float(value) and len(value.shape) > 0)
    if place is None:
        return None
    value = program.values[place]
    axis = program.axis(value)
    return Step("sort", lambda np, a: np.sort(a, axis=axis), [place], value.dtype)


STEPS = (
    unary_exact,
    unary_smooth,
    logarithm,
    question,
    arithmetic,
    with_number,
    quotient,
    remainder,
    comparison,
    bits,
    choice,
    reduction,
    whole_sum,
    extreme_place,
    running_sum,
    moved,
    reshaped,
    padded,
    in_parts,
    product,
    sorted_values,
)
