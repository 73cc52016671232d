"""Kernels take memory whose size follows from their arrays from whoever runs them (`Scratch`): then
a limit counts it, and an operator fails where there is none. A `Vec` ends the process.

`crates/ops/tests/scratch.rs` runs every operator and finds what depends on its arguments; this
looks at the source of what runs, and finds what no arguments of that test reach.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from support import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

AXES = "as many as axes"
ARRAYS = "as many as inputs or outputs"
FILTERS = "as many as the layer has filters, in a constructor of the kernel's"
BIAS = "a number for each filter of the layer"
NONE = "a list without elements"
LAYERS = "as many as layers and directions"
ROW = "one row of a matrix that has as many rows"
PIXELS = "as many as an image has columns, which decoders and attributes limit"
#: File, allocations in functions that run, and why these are small.
SMALL = {
    "kernels/src/blocked/concat.rs": (1, ARRAYS),
    "kernels/src/image/resize/bytes.rs": (2, PIXELS),
    "kernels/src/image/resize/mod.rs": (1, PIXELS),
    "kernels/src/int8/attention.rs": (2, FILTERS),
    "kernels/src/linalg/eigen.rs": (8, ROW),
    "kernels/src/linalg/lu.rs": (2, ROW),
    "kernels/src/linalg/svd.rs": (1, ROW),
    "kernels/src/recurrent/weights.rs": (1, LAYERS),
    "kernels/src/shape/mod.rs": (6, AXES),
    "kernels/src/shape/pad.rs": (1, AXES),
    "kernels/src/shape/strided.rs": (1, AXES),
    "ops/src/blocked/concat.rs": (1, ARRAYS),
    "ops/src/blocked/elementwise.rs": (1, ARRAYS),
    "ops/src/blocked/quantized_concat.rs": (1, ARRAYS),
    "ops/src/execution/bound_operator.rs": (1, ARRAYS),
    "ops/src/execution/half.rs": (2, ARRAYS),
    "ops/src/execution/in_dtypes.rs": (3, ARRAYS),
    "ops/src/execution/kernel.rs": (1, NONE),
    "ops/src/execution/data_dependent.rs": (4, ARRAYS),
    "ops/src/fused/layer.rs": (7, FILTERS),
    "ops/src/fused/weights.rs": (3, FILTERS),
    "ops/src/graph/fused_elementwise.rs": (1, ARRAYS),
    "ops/src/index/boolean_mask.rs": (1, AXES),
    "ops/src/linalg/gemm.rs": (1, AXES),
    "ops/src/linalg/khatri_rao.rs": (1, ARRAYS),
    "ops/src/math/add_n.rs": (1, ARRAYS),
    "ops/src/math/multi_sum_sq.rs": (1, ARRAYS),
    "ops/src/math/reduce.rs": (1, AXES),
    "ops/src/numpy/contract.rs": (7, AXES),
    "ops/src/numpy/edit/insert.rs": (1, AXES),
    "ops/src/numpy/join/stacks.rs": (1, ARRAYS),
    "ops/src/numpy/linalg/mod.rs": (2, AXES),
    "ops/src/numpy/linalg/norm.rs": (2, AXES),
    "ops/src/numpy/product/mod.rs": (1, ARRAYS),
    "ops/src/numpy/random/mod.rs": (1, ARRAYS),
    "ops/src/numpy/select/boolean_mask_assign.rs": (1, AXES),
    "ops/src/numpy/statistics/percentile.rs": (3, AXES),
    "ops/src/quantized/intgemm/fully_connected.rs": (1, BIAS),
    "ops/src/shape/concat.rs": (1, ARRAYS),
    "ops/src/shape/stack.rs": (1, ARRAYS),
    "ops/src/sparse/elementwise.rs": (1, AXES),
    "ops/src/sparse/reduce.rs": (1, AXES),
}

#: The beginning of what runs: a closure of a kernel, or a function that knows who runs it.
RUNS = re.compile(
    r"\b(?:costed_kernel_fn|in_place_kernel_fn|kernel_fn|shapes_of_contents: Some)\(|\brun: (?:move )?\|\w+"
    r"|\bfn \w+[^{]*?(?:\bKernelCall<|&(?:'\w+ )?dyn Par\b|SparseCall<)"
)
#: What allocates by itself. Stable sorts need half as much memory as they sort.
ALLOCATES = re.compile(
    r"vec!\[[^\]]*;|with_capacity\(|\.to_vec\(\)|\bcollect(?:::<[^(]*>)?\(\)|\.into_owned\(\)|\.concat\(\)"
    r"|\.sort(?:_by|_by_key|_by_cached_key)?\(|\bVec::new\(\)"
)


def code(text: str) -> str:
    """The text without its tests, and without what strings and comments say."""
    text = text.partition("#[cfg(test)]")[0]
    blank = r'"(?:[^"\\]|\\[\s\S])*"|' + r"'(?:[^'\\]|\\.)'|//[^\n]*"
    return re.sub(blank, lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def running(text: str) -> Iterator[range]:
    """The ranges of text that run."""
    for found in RUNS.finditer(text):
        start = found.end() - 1 if found[0].endswith("(") else text.find("{", found.start())
        if start < 0 or (found[0].startswith("fn") and re.search(r"\)[^{}]*;", text[found.end() : start])):
            continue
        depth = 0
        for i in range(start, len(text)):
            depth += (text[i] in "([{") - (text[i] in ")]}")
            if depth == 0:
                yield range(start, i)
                break


def test_what_runs_takes_scratch() -> None:
    counts: Counter[str] = Counter()
    lines: dict[str, set[str]] = {}
    for crate in ["ops", "kernels"]:
        for file in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
            if "test" in str(file.relative_to(ROOT)):
                continue
            name, text = str(file.relative_to(ROOT / "crates")), code(file.read_text())
            inside = {i for part in running(text) for i in part}
            places = [found.start() for found in ALLOCATES.finditer(text) if found.start() in inside]
            if places:
                counts[name] = len(places)
                lines[name] = {f"{name}:{text.count(chr(10), 0, place) + 1}" for place in places}
    known = {name: count for name, (count, _) in SMALL.items()}
    new = sorted(line for name in counts if counts[name] > known.get(name, 0) for line in lines[name])
    assert not new, f"take Scratch for what follows from arrays; add what is small to SMALL: {new}"
    assert known == counts, "SMALL lists what there no longer is"
