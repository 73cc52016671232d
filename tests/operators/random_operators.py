"""Random calls of operators, and what they should give: references in float64, written with numpy.

A case is a number: it alone decides about operator, attributes, shapes and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
# What an operator gave, and what it should give.
Pairs = Iterator[tuple[Array, Array]]

TOLERANCE = {"float32": 2e-4, "float64": 1e-8}


class Case:
    """The source of a case's numbers."""

    def __init__(self, mx: Any, number: int) -> None:
        self.mx = mx
        self.random = np.random.RandomState(number % 2**32)
        self.dtype = self.pick("float32", "float64")

    def pick(self, *choices: Any) -> Any:
        return choices[self.random.randint(len(choices))]

    def size(self, low: int, high: int) -> int:
        return int(self.random.randint(low, high + 1))

    def values(self, *shape: int, low: float = -1, high: float = 1) -> Array:
        """Numbers that the element type holds."""
        return self.random.uniform(low, high, shape).astype(self.dtype).astype("float64")

    def nd(self, array: Array) -> Any:
        return self.mx.nd.array(array, dtype=self.dtype)


def batch_shape(case: Case) -> tuple[int, ...]:
    return tuple(case.size(1, 3) for _ in range(case.size(0, 2)))


def transposed(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


# ---- linear algebra ------------------------------------------------------------------------------


def positive(case: Case) -> Array:
    n = case.size(1, 12)
    x = case.values(*batch_shape(case), n, n)
    made: Array = (x @ transposed(x) + n * np.eye(n)).astype(case.dtype).astype("float64")
    return made


def potrf(case: Case) -> Pairs:
    a, lower = positive(case), case.pick(True, False)
    factor = np.linalg.cholesky(a)
    yield case.mx.nd.linalg.potrf(case.nd(a), lower=lower).asnumpy(), factor if lower else transposed(factor)


def potri(case: Case) -> Pairs:
    factor = np.linalg.cholesky(positive(case)).astype(case.dtype).astype("float64")
    want = np.linalg.inv(factor @ transposed(factor))
    yield case.mx.nd.linalg.potri(case.nd(factor)).asnumpy(), want


def triangular(case: Case) -> Pairs:
    """trmm and trsm undo each other; each is compared with a full product or solution."""
    n, m, batch = case.size(1, 10), case.size(1, 7), batch_shape(case)
    lower, right, turned, alpha = case.pick(0, 1), case.pick(0, 1), case.pick(0, 1), case.pick(1.0, -0.5)
    full = case.values(*batch, n, n) + 3 * n**0.5 * np.eye(n)
    full = full.astype(case.dtype).astype("float64")
    a = np.tril(full) if lower else np.triu(full)
    b = case.values(*batch, *((m, n) if right else (n, m)))
    used = transposed(a) if turned else a
    attrs = {"lower": bool(lower), "rightside": bool(right), "transpose": bool(turned), "alpha": alpha}
    product = b @ used if right else used @ b
    # Half of the matrix is not to be read.
    yield case.mx.nd.linalg.trmm(case.nd(full), case.nd(b), **attrs).asnumpy(), alpha * product
    solved = transposed(np.linalg.solve(transposed(used), transposed(b))) if right else np.linalg.solve(used, b)
    yield case.mx.nd.linalg.trsm(case.nd(full), case.nd(b), **attrs).asnumpy(), alpha * solved


def fourier(case: Case) -> Pairs:
    x = case.values(*batch_shape(case), case.size(1, 70))
    spectrum = np.fft.fft(x)
    parts = np.stack([spectrum.real, spectrum.imag], axis=-1).reshape(*x.shape[:-1], 2 * x.shape[-1])
    contrib = case.mx.nd.contrib
    yield contrib.fft(case.nd(x)).asnumpy(), parts
    y = case.values(*parts.shape)
    numbers = y[..., ::2] + 1j * y[..., 1::2]
    yield contrib.ifft(case.nd(y)).asnumpy(), np.fft.ifft(numbers).real * x.shape[-1]


def inverse_and_determinants(case: Case) -> Pairs:
    n = case.size(1, 10)
    a = case.values(*batch_shape(case), n, n) + 2 * np.eye(n)
    a = a.astype(case.dtype).astype("float64")
    if np.any(np.linalg.cond(a) > 100):
        return
    linalg = case.mx.nd.linalg
    yield linalg.inverse(case.nd(a)).asnumpy(), np.linalg.inv(a)
    yield linalg.det(case.nd(a)).asnumpy(), np.atleast_1d(np.linalg.det(a))
    signs, logs = linalg.slogdet(case.nd(a))
    want = np.linalg.slogdet(a)
    yield signs.asnumpy(), np.atleast_1d(want[0])
    yield logs.asnumpy(), np.atleast_1d(want[1])


def eigenvalues(case: Case) -> Pairs:
    a = positive(case)
    vectors, found = (x.asnumpy().astype("float64") for x in case.mx.nd.linalg.syevd(case.nd(a)))
    yield found, np.linalg.eigvalsh(a)
    yield transposed(vectors) @ (found[..., None] * vectors), a
    yield vectors @ transposed(vectors), np.broadcast_to(np.eye(a.shape[-1]), a.shape)


def lq(case: Case) -> Pairs:
    m = case.size(1, 8)
    a = case.values(*batch_shape(case), m, m + case.size(0, 5))
    q, factor = (x.asnumpy().astype("float64") for x in case.mx.nd.linalg.gelqf(case.nd(a)))
    yield factor @ q, a
    yield q @ transposed(q), np.broadcast_to(np.eye(m), (*a.shape[:-1], m))
    yield np.triu(factor, 1), np.zeros_like(factor)


def products(case: Case) -> Pairs:
    m, k, n, batch = case.size(1, 9), case.size(1, 9), case.size(1, 9), batch_shape(case)
    ta, tb, alpha = case.pick(False, True), case.pick(False, True), case.pick(1.0, 2.5)
    a, b = case.values(*batch, *((k, m) if ta else (m, k))), case.values(*batch, *((n, k) if tb else (k, n)))
    want = alpha * ((transposed(a) if ta else a) @ (transposed(b) if tb else b))
    attrs = {"transpose_a": ta, "transpose_b": tb, "alpha": alpha}
    yield case.mx.nd.linalg.gemm2(case.nd(a), case.nd(b), **attrs).asnumpy(), want
    c, beta = case.values(*batch, m, n), case.pick(1.0, -0.5)
    made = case.mx.nd.linalg.gemm(case.nd(a), case.nd(b), case.nd(c), beta=beta, **attrs)
    yield made.asnumpy(), want + beta * c
    made = case.mx.nd.linalg.syrk(case.nd(a), transpose=ta, alpha=alpha)
    yield made.asnumpy(), alpha * (transposed(a) @ a if ta else a @ transposed(a))


def triangles(case: Case) -> Pairs:
    n, offset = case.size(2, 7), case.size(-1, 1)
    a, lower = case.values(*batch_shape(case), n, n), case.pick(True, False)
    # Offsets decide about the triangle, unless they are zero.
    below = lower if offset == 0 else offset < 0
    # Upper triangles are read column by column, as in MXNet.
    where = np.tril_indices(n, offset) if below else np.tril_indices(n, -offset)[::-1]
    linalg, attrs = case.mx.nd.linalg, {"offset": offset, "lower": lower}
    taken = linalg.extracttrian(case.nd(a), **attrs)
    yield taken.asnumpy(), a[..., where[0], where[1]]
    yield linalg.maketrian(taken, **attrs).asnumpy(), np.tril(a, offset) if below else np.triu(a, offset)
    yield linalg.extractdiag(case.nd(a), offset=offset).asnumpy(), np.diagonal(a, offset, -2, -1)


# ---- resizing ------------------------------------------------------------------------------------


def along(out: int, size: int, corners: bool) -> Array:
    """A matrix of `out` rows with the shares of `size` pixels."""
    shares = np.zeros((out, size))
    for i in range(out):
        at = i * (size - 1) / max(out - 1, 1) if corners else max((i + 0.5) * size / out - 0.5, 0.0)
        # A single pixel is the first one, as in MXNet.
        at = at if out > 1 else 0.0
        low = min(int(at), size - 1)
        shares[i, low] += 1 - (at - low)
        shares[i, min(low + 1, size - 1)] += at - low
    return shares


def bilinear(case: Case) -> Pairs:
    # MXNet, and so mxrt, computes positions in float32 whatever the images are.
    case.dtype = "float32"
    height, width, rows, columns = (case.size(1, 9) for _ in range(4))
    x, corners = case.values(case.size(1, 2), case.size(1, 3), height, width), case.pick(True, False)
    made = case.mx.nd.contrib.BilinearResize2D(case.nd(x), height=rows, width=columns, align_corners=corners)
    yield made.asnumpy(), along(rows, height, corners) @ x @ along(columns, width, corners).T


def nearest(case: Case) -> Pairs:
    x, scale = case.values(case.size(1, 2), case.size(1, 3), case.size(1, 6), case.size(1, 6)), case.size(1, 4)
    made = case.mx.nd.UpSampling(case.nd(x), scale=scale, sample_type="nearest")
    yield made.asnumpy(), x.repeat(scale, 2).repeat(scale, 3)


def adaptive(case: Case) -> Pairs:
    height, width, rows, columns = case.size(1, 9), case.size(1, 9), case.size(1, 6), case.size(1, 6)
    x = case.values(case.size(1, 2), case.size(1, 3), height, width)
    want = np.zeros((*x.shape[:2], rows, columns))
    for i in range(rows):
        for j in range(columns):
            down = slice(i * height // rows, -(-(i + 1) * height // rows))
            right = slice(j * width // columns, -(-(j + 1) * width // columns))
            want[:, :, i, j] = x[:, :, down, right].mean((2, 3))
    made = case.mx.nd.contrib.AdaptiveAvgPooling2D(case.nd(x), output_size=(rows, columns))
    yield made.asnumpy(), want


# ---- detection -----------------------------------------------------------------------------------


def sample(plane: Array, y: float, x: float) -> float:
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = max(y, 0.0), max(x, 0.0)
    low_y, low_x = min(int(y), height - 1), min(int(x), width - 1)
    y, x = min(y, height - 1), min(x, width - 1)
    high_y, high_x = min(low_y + 1, height - 1), min(low_x + 1, width - 1)
    v, u = y - low_y, x - low_x
    top = plane[low_y, low_x] * (1 - u) + plane[low_y, high_x] * u
    return float(top * (1 - v) + (plane[high_y, low_x] * (1 - u) + plane[high_y, high_x] * u) * v)


def roi_align(case: Case) -> Pairs:
    height, width, channels = case.size(3, 8), case.size(3, 8), case.size(1, 3)
    x = case.values(2, channels, height, width)
    rows, columns, samples, scale = case.size(1, 3), case.size(1, 3), case.size(1, 3), case.pick(1.0, 0.5)
    regions = np.zeros((case.size(1, 4), 5))
    want = np.zeros((len(regions), channels, rows, columns))
    for region in regions:
        left, top = case.values(2, low=0, high=4)
        region[:] = (case.size(0, 1), left, top, left + case.random.uniform(0, 9), top + case.random.uniform(0, 9))
    regions = regions.astype(case.dtype).astype("float64")
    for (image, *corners), out in zip(regions, want, strict=True):
        left, top, right, bottom = (v * scale for v in corners)
        tall, wide = max(bottom - top, 1.0) / rows, max(right - left, 1.0) / columns
        for c, i, j in np.ndindex(channels, rows, columns):
            ys = [top + (i + (k + 0.5) / samples) * tall for k in range(samples)]
            xs = [left + (j + (k + 0.5) / samples) * wide for k in range(samples)]
            out[c, i, j] = np.mean([sample(x[int(image), c], y, u) for y in ys for u in xs])
    made = case.mx.nd.contrib.ROIAlign(
        case.nd(x), case.nd(regions), pooled_size=(rows, columns), spatial_scale=scale, sample_ratio=samples
    )
    yield made.asnumpy(), want


def overlap(a: Array, b: Array) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    if np.any(sides <= 0):
        return 0.0
    both = float(np.prod(sides))
    return both / (float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - both)


def box_nms(case: Case) -> Pairs:
    """Boxes on a grid, so that overlaps are far from the threshold or exactly alike everywhere."""
    n, threshold = case.size(1, 20), case.pick(0.31, 0.52, 0.73)
    first = case.random.randint(0, 6, (n, 2)).astype("float64")
    boxes = np.concatenate([first, first + case.random.randint(1, 6, (n, 2))], 1)
    scores = case.random.permutation(n) / n
    classes = case.random.randint(0, 3, n).astype("float64")
    valid, force = case.pick(0.0, 0.2), case.pick(True, False)
    rows = np.concatenate([classes[:, None], scores[:, None], boxes], 1).astype(case.dtype)
    order = [i for i in np.argsort(-scores, kind="stable") if rows[i, 1] > valid]
    kept: list[int] = []
    for i in order:
        rivals = [j for j in kept if force or classes[i] == classes[j]]
        if all(overlap(boxes[i], boxes[j]) <= threshold for j in rivals):
            kept.append(i)
    want = np.full(rows.shape, -1.0)
    want[: len(kept)] = rows[kept]
    made = case.mx.nd.contrib.box_nms(
        case.nd(rows), overlap_thresh=threshold, valid_thresh=valid, id_index=0, force_suppress=force
    )
    yield made.asnumpy(), want


# ---- recurrent layers ----------------------------------------------------------------------------


def sigmoid(x: Array) -> Array:
    made: Array = 1 / (1 + np.exp(-x))
    return made


def step(mode: str, x: Array, h: Array, c: Array, weights: tuple[Array, ...]) -> tuple[Array, Array]:
    """One step of a layer; `weights` are those of input and state, and both biases."""
    wi, wh, bi, bh = weights
    left, right = x @ wi.T + bi, h @ wh.T + bh
    if mode == "lstm":
        i, f, g, o = np.split(left + right, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if mode == "gru":
        (ri, zi, ni), (rh, zh, nh) = np.split(left, 3, -1), np.split(right, 3, -1)
        z = sigmoid(zi + zh)
        return (1 - z) * np.tanh(ni + sigmoid(ri + rh) * nh) + z * h, c
    return (np.tanh if mode == "rnn_tanh" else lambda v: np.maximum(v, 0))(left + right), c


def rnn(case: Case) -> Pairs:
    mode, layers, both = case.pick("lstm", "gru", "rnn_tanh", "rnn_relu"), case.size(1, 2), case.pick(False, True)
    steps, batch, size, hidden = case.size(1, 6), case.size(1, 3), case.size(1, 5), case.size(1, 6)
    gates, directions = {"lstm": 4, "gru": 3}.get(mode, 1), 2 if both else 1
    x = case.values(steps, batch, size)
    h0, c0 = case.values(layers * directions, batch, hidden), case.values(layers * directions, batch, hidden)
    matrices, biases = [], []
    for layer in range(layers):
        for _ in range(directions):
            inputs = size if layer == 0 else hidden * directions
            matrices.append([case.values(gates * hidden, n, low=-0.7, high=0.7) for n in (inputs, hidden)])
            biases.append([case.values(gates * hidden), case.values(gates * hidden)])
    flat = np.concatenate([m.ravel() for pair in [*matrices, *biases] for m in pair])
    rows, last_h, last_c = x, [], []
    for layer in range(layers):
        sides = []
        for side in range(directions):
            k = layer * directions + side
            h, c, out = h0[k], c0[k], np.zeros((steps, batch, hidden))
            for t in range(steps) if side == 0 else reversed(range(steps)):
                h, c = step(mode, rows[t], h, c, (*matrices[k], *biases[k]))
                out[t] = h
            sides.append(out)
            last_h.append(h)
            last_c.append(c)
        rows = np.concatenate(sides, -1)
    arrays = [case.nd(a) for a in ([x, flat, h0, c0] if mode == "lstm" else [x, flat, h0])]
    attrs = {"state_size": hidden, "num_layers": layers, "mode": mode, "bidirectional": both, "state_outputs": True}
    made = [a.asnumpy() for a in case.mx.nd.RNN(*arrays, **attrs)]
    yield made[0], rows
    yield made[1], np.stack(last_h)
    if mode == "lstm":
        yield made[2], np.stack(last_c)


FAMILIES: list[Callable[[Case], Pairs]] = [
    potrf,
    potri,
    triangular,
    fourier,
    inverse_and_determinants,
    eigenvalues,
    lq,
    products,
    triangles,
    bilinear,
    nearest,
    adaptive,
    roi_align,
    box_nms,
    rnn,
]


def run(mx: Any, number: int) -> None:
    """Runs a case; AssertionError with its number if it gives something else than the reference."""
    family = FAMILIES[number % len(FAMILIES)]
    case = Case(mx, number)
    for i, (got, want) in enumerate(family(case)):
        place = f"case {number}: {family.__name__}, result {i}, {case.dtype}"
        assert got.shape == want.shape, f"{place}: shape {got.shape}, not {want.shape}"
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        tolerance = TOLERANCE[case.dtype] * scale
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance, err_msg=place)
