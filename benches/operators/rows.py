"""The rows: each makes its arrays and returns a call that waits for its result.

MXNet and mxrt run the same code: `mx` is the one or the other. Rows of numpy, onnxruntime and
torch have the names of the rows that they are compared with.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
import np_rows

Call = Callable[[], object]
ROWS: dict[str, Callable[..., Call]] = {}
NUMPY: dict[str, Callable[[], Call]] = {}
SCIPY: dict[str, Callable[[], Call]] = {}
ONNX: dict[str, Callable[[], Call]] = {}
TORCH: dict[str, Callable[[], Call]] = {}
# What mxrt itself makes of the row as a SymbolBlock.
SYMBOL_BLOCK: dict[str, Callable[..., Call]] = {}
# The same call of mxrt by mx.nd.
ND: dict[str, Callable[[], Call]] = {}


def _random(*shape: int) -> np.ndarray:
    return np.random.RandomState(0).randn(*shape).astype("float32")


def _row(table: dict, name: str, *args: object) -> Callable:
    def add(make: Callable[..., Call]) -> Callable[..., Call]:
        table[name] = lambda *given: make(*given, *args)
        return make

    return add


def _done(call: Callable[[], object]) -> Call:
    def run() -> None:
        out = call()
        for array in out if isinstance(out, (list, tuple)) else [out]:
            array.wait_to_read()

    return run


# Imperative products with constant weights.


@_row(ROWS, "fully_connected-1", 1)
@_row(ROWS, "fully_connected-128", 128)
def _fully_connected(mx, rows: int) -> Call:
    x, w, b = (mx.nd.array(_random(*s)) for s in ((rows, 768), (3072, 768), (3072,)))
    return _done(lambda: mx.nd.FullyConnected(x, w, b, num_hidden=3072))


@_row(ROWS, "dense_block-1", 1)
@_row(ROWS, "dense_block-128", 128)
def _dense_block(mx, rows: int) -> Call:
    net = mx.gluon.nn.Dense(3072, in_units=768)
    net.initialize()
    x = mx.nd.array(_random(rows, 768))
    return _done(lambda: net(x))


@_row(ROWS, "convolution-512")
def _convolution(mx) -> Call:
    x, w = mx.nd.array(_random(1, 512, 7, 7)), mx.nd.array(_random(512, 512, 3, 3))
    return _done(lambda: mx.nd.Convolution(x, w, kernel=(3, 3), pad=(1, 1), num_filter=512, no_bias=True))


@_row(ROWS, "dot-1", 1)
@_row(ROWS, "dot-128", 128)
def _dot(mx, rows: int) -> Call:
    x, w = mx.nd.array(_random(rows, 768)), mx.nd.array(_random(768, 3072))
    return _done(lambda: mx.nd.dot(x, w))


# Sparse arrays: a matrix of 100,000 columns of which a thousandth is stored, and one row of a
# factorisation machine. MXNet refuses so large a matrix outside of graphs.

SPARSE_ROWS, SPARSE_COLUMNS = 100_000, 64


def _stored() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.RandomState(0)
    columns = random.randint(0, SPARSE_ROWS, (SPARSE_ROWS, SPARSE_ROWS // 1000))
    columns.sort(axis=1)
    kept = np.ones_like(columns, bool)
    kept[:, 1:] = columns[:, 1:] != columns[:, :-1]
    pointers = np.concatenate([[0], kept.sum(axis=1).cumsum()])
    return random.randn(pointers[-1]).astype("float32"), columns[kept], pointers


def _forward(mx, symbol, **given: object) -> Call:
    executor = symbol.bind(mx.cpu(), given)
    return _done(executor.forward)


@_row(ROWS, "sparse_dot")
def _sparse_dot(mx) -> Call:
    x = mx.nd.sparse.csr_matrix(_stored(), shape=(SPARSE_ROWS, SPARSE_ROWS))
    w = mx.nd.array(_random(SPARSE_ROWS, SPARSE_COLUMNS))
    return _forward(mx, mx.sym.dot(mx.sym.var("x", stype="csr"), mx.sym.var("w")), x=x, w=w)


@_row(SCIPY, "sparse_dot")
def _scipy_dot() -> Call:
    import scipy.sparse

    x, w = scipy.sparse.csr_matrix(_stored(), shape=(SPARSE_ROWS,) * 2), _random(SPARSE_ROWS, SPARSE_COLUMNS)
    return lambda: x @ w


@_row(ROWS, "machine")
def _machine(mx) -> Call:
    label = mx.nd.zeros((1, 1))
    return _forward(mx, machine.symbol(mx), data=machine.data(mx), label=label, **machine.weights(mx))


@_row(ROWS, "machine-none")
def _empty_call(mx) -> Call:
    return _forward(mx, mx.sym.sigmoid(mx.sym.var("x")), x=mx.nd.zeros((1, 1)))


# Transposed convolution.


@_row(ROWS, "deconvolution")
def _deconvolution(mx) -> Call:
    x, w = mx.nd.array(_random(1, 64, 56, 56)), mx.nd.array(_random(64, 64, 4, 4))
    attrs = {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1), "num_filter": 64, "no_bias": True}
    return _done(lambda: mx.nd.Deconvolution(x, w, **attrs))


@_row(ROWS, "deconvolution-plan")
def _deconvolution_plan(mx) -> Call:
    net = mx.gluon.nn.Conv2DTranspose(64, 4, strides=2, padding=1, use_bias=False, in_channels=64)
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.array(_random(1, 64, 56, 56))
    return _done(lambda: net(x))


@_row(ROWS, "topk")
def _topk(mx) -> Call:
    x = mx.nd.array(_random(1000, 1024))
    return _done(lambda: mx.nd.topk(x, k=10, ret_typ="both"))


# Recurrent layers.


def _recurrent(mx, layer, steps: int, batch: int, **precision: str) -> Call:
    layer.initialize()
    layer.hybridize(static_alloc=True, static_shape=True, **precision)
    x = mx.nd.array(_random(steps, batch, 512))
    return _done(lambda: layer(x))


@_row(ROWS, "lstm-1", 1)
@_row(ROWS, "lstm-16", 16)
def _lstm(mx, batch: int, **precision: str) -> Call:
    return _recurrent(mx, mx.gluon.rnn.LSTM(512, num_layers=2, input_size=512), 100, batch, **precision)


@_row(ROWS, "gru_bidirectional")
def _gru(mx, **precision: str) -> Call:
    return _recurrent(mx, mx.gluon.rnn.GRU(256, bidirectional=True, input_size=512), 50, 1, **precision)


def _reduced(precision: str) -> None:
    """Rows of mxrt in this precision, against float32 of other engines."""
    for batch in (1, 16):
        ROWS[f"lstm-{batch}-{precision}"] = lambda mx, batch=batch: _lstm(mx, batch, precision=precision)
    ROWS[f"gru_bidirectional-{precision}"] = lambda mx: _gru(mx, precision=precision)


# MXNet has neither.
PRECISIONS = ("bf16", "w8")
for _precision in PRECISIONS:
    _reduced(_precision)


@_row(ROWS, "lstm_unrolled-1", 1)
@_row(ROWS, "lstm_unrolled-16", 16)
def _unrolled(mx, batch: int) -> Call:
    cell = mx.gluon.rnn.HybridSequentialRNNCell(prefix="lstm_")
    for _ in range(2):
        cell.add(mx.gluon.rnn.LSTMCell(512, input_size=512))
    cell.initialize()
    x = mx.sym.var("data")
    out, _ = cell.unroll(100, x, layout="TNC", merge_outputs=True, begin_state=_begin(mx, batch))
    net = mx.gluon.SymbolBlock(out, [x], params=cell.collect_params())
    net.hybridize(static_alloc=True, static_shape=True)
    data = mx.nd.array(_random(100, batch, 512))
    return _done(lambda: net(data))


def _begin(mx, batch: int) -> list:
    return [mx.sym.zeros((batch, 512)) for _ in range(4)]


def _onnx_recurrent(kind: str, gates: int, hidden: int, directions: int, layers: int, steps: int, batch: int) -> Call:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, data = [], [], "data"
    for layer in range(layers):
        inputs = 512 if layer == 0 else hidden * directions
        shapes = {
            "W": (directions, gates * hidden, inputs),
            "R": (directions, gates * hidden, hidden),
            "B": (directions, 2 * gates * hidden),
        }
        weights += [numpy_helper.from_array(_random(*s) * 0.05, f"{name}{layer}") for name, s in shapes.items()]
        attrs = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}
        if kind == "GRU":
            attrs["linear_before_reset"] = 1
        nodes.append(
            helper.make_node(
                kind, [data, f"W{layer}", f"R{layer}", f"B{layer}"], [f"y{layer}"], name=f"n{layer}", **attrs
            )
        )
        axes = numpy_helper.from_array(np.array([1]), f"axes{layer}")
        weights.append(axes)
        nodes.append(helper.make_node("Squeeze", [f"y{layer}", axes.name], [f"out{layer}"]))
        data = f"out{layer}"
        if directions == 2:
            break
    given = helper.make_tensor_value_info("data", TensorProto.FLOAT, (steps, batch, 512))
    made = nodes[-1].output[0] if directions == 1 else "y0"
    nodes = nodes if directions == 1 else nodes[:1]
    out = helper.make_tensor_value_info(made, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "recurrent", [given], [out], weights)
    file = io.BytesIO()
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), file)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    x = _random(steps, batch, 512)
    return lambda: session.run(None, {"data": x})


def _torch_recurrent(kind: str, hidden: int, bidirectional: bool, layers: int, steps: int, batch: int) -> Call:
    import torch

    layer = getattr(torch.nn, kind)(512, hidden, num_layers=layers, bidirectional=bidirectional).eval()
    x = torch.from_numpy(_random(steps, batch, 512))

    def run() -> object:
        with torch.inference_mode():
            return layer(x)

    return run


TORCH["lstm-1"] = lambda: _torch_recurrent("LSTM", 512, False, 2, 100, 1)
TORCH["lstm-16"] = lambda: _torch_recurrent("LSTM", 512, False, 2, 100, 16)
TORCH["gru_bidirectional"] = lambda: _torch_recurrent("GRU", 256, True, 1, 50, 1)

ONNX["lstm-1"] = lambda: _onnx_recurrent("LSTM", 4, 512, 1, 2, 100, 1)
ONNX["lstm-16"] = lambda: _onnx_recurrent("LSTM", 4, 512, 1, 2, 100, 16)
ONNX["gru_bidirectional"] = lambda: _onnx_recurrent("GRU", 3, 256, 2, 1, 50, 1)
for _name in ("lstm-1", "lstm-16", "gru_bidirectional"):
    ONNX.update(dict.fromkeys((f"{_name}-{_precision}" for _precision in PRECISIONS), ONNX[_name]))


# Heads of segmentation networks at 480 x 480.


@_row(ROWS, "resize-deeplab", (1, 21, 120, 120), 480)
@_row(ROWS, "resize-fcn", (1, 21, 60, 60), 480)
@_row(ROWS, "resize-pspnet", (1, 512, 6, 6), 60)
def _resize(mx, shape: tuple[int, ...], size: int) -> Call:
    x = mx.nd.array(_random(*shape))
    return _done(lambda: mx.nd.contrib.BilinearResize2D(x, height=size, width=size))


@_row(ROWS, "upsampling-nearest")
def _upsampling(mx) -> Call:
    x = mx.nd.array(_random(1, 256, 26, 26))
    return _done(lambda: mx.nd.UpSampling(x, scale=2, sample_type="nearest"))


@_row(ROWS, "upsampling-bilinear")
def _upsampling_bilinear(mx) -> Call:
    x, w = mx.nd.array(_random(1, 21, 60, 60)), mx.nd.array(_random(21, 1, 16, 16))
    return _done(lambda: mx.nd.UpSampling(x, w, scale=8, sample_type="bilinear", num_filter=21, num_args=2))


@_row(ROWS, "adaptive_pooling-1", 1)
@_row(ROWS, "adaptive_pooling-6", 6)
def _adaptive(mx, size: int) -> Call:
    x = mx.nd.array(_random(1, 2048, 60, 60))
    return _done(lambda: mx.nd.contrib.AdaptiveAvgPooling2D(x, output_size=size))


@_row(ROWS, "deformable")
def _deformable(mx) -> Call:
    x, offset, w = (mx.nd.array(_random(*s)) for s in ((1, 256, 56, 56), (1, 18, 56, 56), (256, 256, 3, 3)))
    attrs = {"kernel": (3, 3), "pad": (1, 1), "num_filter": 256, "no_bias": True}
    return _done(lambda: mx.nd.contrib.DeformableConvolution(x, offset, w, **attrs))


# Detection.


def _boxes(count: int, size: float, largest: float) -> np.ndarray:
    random = np.random.RandomState(1)
    corner, extent = random.rand(count, 2) * size, random.rand(count, 2) * largest + 1e-3 * largest
    return np.concatenate([corner, corner + extent], axis=1).astype("float32")


@_row(ROWS, "box_nms")
def _box_nms(mx) -> Call:
    random = np.random.RandomState(2)
    head = np.stack([random.randint(0, 20, 6000), random.rand(6000)], axis=1)
    x = mx.nd.array(np.concatenate([head, _boxes(6000, 500, 100)], axis=1)[None])
    attrs = {
        "overlap_thresh": 0.45,
        "valid_thresh": 0.01,
        "topk": 400,
        "coord_start": 2,
        "score_index": 1,
        "id_index": 0,
    }
    return _done(lambda: mx.nd.contrib.box_nms(x, **attrs))


@_row(ROWS, "box_nms-all")
def _box_nms_all(mx) -> Call:
    random = np.random.RandomState(2)
    x = mx.nd.array(np.concatenate([random.rand(6000, 1), _boxes(6000, 500, 100)], axis=1)[None])
    attrs = {"overlap_thresh": 0.7, "coord_start": 1, "score_index": 0, "id_index": -1}
    return _done(lambda: mx.nd.contrib.box_nms(x, **attrs))


@_row(ROWS, "multibox_detection")
def _multibox(mx) -> Call:
    random = np.random.RandomState(3)
    scores = np.exp(random.randn(1, 21, 8732) * 2)
    scores = mx.nd.array(scores / scores.sum(axis=1, keepdims=True))
    offsets, anchors = mx.nd.array(random.randn(1, 8732 * 4) * 0.1), mx.nd.array(_boxes(8732, 1, 0.3)[None])
    return _done(lambda: mx.nd.contrib.MultiBoxDetection(scores, offsets, anchors, nms_topk=400))


# Blocks. The building of one takes its parameters' first values and no call.


@_row(ROWS, "hybrid_block")
def _hybrid_block(mx) -> Call:
    net = mx.gluon.nn.Activation("relu")
    net.hybridize()
    return _called(mx, net)


@_row(SYMBOL_BLOCK, "hybrid_block")
def _symbol_block(mx) -> Call:
    x = mx.sym.var("data")
    return _called(mx, mx.gluon.SymbolBlock(mx.sym.Activation(x, act_type="relu"), x))


def _called(mx, net) -> Call:
    x = mx.nd.array(_random(4))
    return _done(lambda: net(x))


@_row(ROWS, "build_resnet50_v1")
def _build(mx) -> Call:
    def build() -> None:
        net = mx.gluon.model_zoo.vision.resnet50_v1()
        net.initialize()
        net.hybridize()

    return build


@_row(ROWS, "plain_resnet18_v1")
def _plain(mx) -> Call:
    net = mx.gluon.model_zoo.vision.resnet18_v1()
    net.initialize()
    x = mx.nd.array(_random(1, 3, 224, 224))
    return _done(lambda: net(x))


@_row(ROWS, "proposal")
def _proposal(mx) -> Call:
    random = np.random.RandomState(4)
    scores = mx.nd.array(random.rand(1, 24, 37, 62))
    deltas, info = mx.nd.array(random.randn(1, 48, 37, 62) * 0.2), mx.nd.array([[600, 1000, 1.5]])
    return _done(lambda: mx.nd.contrib.Proposal(scores, deltas, info))


@_row(ROWS, "roi_align")
def _roi_align(mx) -> Call:
    x = mx.nd.array(_random(1, 256, 38, 63))
    rois = mx.nd.array(np.concatenate([np.zeros((300, 1)), _boxes(300, 400, 300)], axis=1))
    attrs = {"pooled_size": (7, 7), "spatial_scale": 1 / 16, "sample_ratio": 2}
    return _done(lambda: mx.nd.contrib.ROIAlign(x, rois, **attrs))


@_row(ROWS, "ssd300-1", "ssd300", 300, 1)
@_row(ROWS, "ssd300-8", "ssd300", 300, 8)
@_row(ROWS, "yolov3-1", "yolov3", 416, 1)
@_row(ROWS, "yolov3-8", "yolov3", 416, 8)
def _detector(mx, name: str, size: int, callers: int) -> Call:
    prefix = Path.cwd() / name
    net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.array(np.random.RandomState(5).rand(1, 3, size, size))
    call = _done(lambda: net(x))
    if callers == 1:
        return call
    # Blocks of MXNet are not safe to call from threads; there callers take turns.
    turn = threading.Lock() if mx.__name__ == "mxnet" else None

    def one() -> None:
        if turn is None:
            return call()
        with turn:
            return call()

    def all_at_once() -> None:
        threads = [threading.Thread(target=one) for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return all_at_once


# Linear algebra, as batches and as one matrix.

SIZES = {"32x64": (32, 64), "1x512": (1, 512)}


def _definite(count: int, n: int) -> np.ndarray:
    a = _random(count, n, n)
    return (a @ a.transpose(0, 2, 1) / n + np.eye(n)).astype("float32")


def _triangular(count: int, n: int) -> np.ndarray:
    return np.linalg.cholesky(_definite(count, n)).astype("float32")


def _linalg(name: str, count: int, n: int) -> None:
    def make(mx) -> Call:
        a = mx.nd.array(_triangular(count, n) if name == "trsm" else _definite(count, n))
        b = mx.nd.array(_random(count, n, n))
        function = getattr(mx.nd.linalg, name)
        return _done((lambda: function(a, b)) if name == "trsm" else (lambda: function(a)))

    def peer() -> Call:
        a, b = _triangular(count, n) if name == "trsm" else _definite(count, n), _random(count, n, n)
        calls = {
            "potrf": lambda: np.linalg.cholesky(a),
            "trsm": lambda: np.linalg.solve(a, b),
            "inverse": lambda: np.linalg.inv(a),
            "syevd": lambda: np.linalg.eigh(a),
        }
        return calls[name]

    row = f"{name}-{count}x{n}"
    ROWS[row], NUMPY[row] = make, peer


for _name in ("potrf", "trsm", "inverse", "syevd"):
    for _count, _n in SIZES.values():
        _linalg(_name, _count, _n)


for _name, (_ours, _peer) in np_rows.rows().items():
    ROWS[_name], NUMPY[_name] = _ours, _peer
for _name, (_ours, _peer) in np_rows.small_rows().items():
    ROWS[_name], ND[_name] = _ours, _peer
