"""Small things that programs of MXNet do, from public reports."""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from serving import connect, exchange
from support import run


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8"])
@pytest.mark.parametrize("imported", [True, False])
def test_numpy_inputs_take_the_type_that_a_cast_network_asks_for(mx, tmp_path, dtype: str, imported: bool) -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(2, 3, in_channels=3), mx.gluon.nn.BatchNorm(in_channels=2), mx.gluon.nn.Dense(2))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 3, 8, 8)))
    if imported:
        net.export(str(tmp_path / "net"))
        files = str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params")
        net = mx.gluon.SymbolBlock.imports(*files)
    net.cast("float16")
    assert net(np.ones((1, 3, 8, 8), dtype)).dtype is np.float16


def test_parameters_without_a_file_have_the_types_that_the_graph_needs(mx, tmp_path) -> None:
    wide = mx.sym.Cast(mx.sym.var("data"), dtype="float64")
    net = mx.sym.Cast(mx.sym.FullyConnected(wide, num_hidden=3, name="fc"), dtype="float32")
    args = {"fc_weight": mx.nd.ones((3, 4), dtype="float64"), "fc_bias": mx.nd.zeros((3,), dtype="float64")}
    mx.model.save_checkpoint(str(tmp_path / "net"), 0, net, args, {})
    block = mx.gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"])
    block.load_parameters(str(tmp_path / "net-0000.params"))
    assert block(mx.nd.ones((1, 4))).asnumpy().tolist() == [[4, 4, 4]]


def test_a_batch_that_is_all_padding_is_an_error(mx) -> None:
    module = mx.mod.Module(mx.sym.var("data") * 2, label_names=None)
    module.bind([("data", (4, 2))], for_training=False)
    module.init_params()
    batches = mx.io.NDArrayIter(np.ones((4, 2)), batch_size=4)
    batches.getpad = lambda: 4
    with pytest.raises(mx.base.MXNetValueError, match=r"pad=4 for a batch of 4 rows"):
        module.predict(batches)


def test_nested_lists_go_into_a_symbol_block_and_come_out(mx) -> None:
    a, b, c = (mx.sym.var(name) for name in "abc")
    block = mx.gluon.SymbolBlock([a + b, [b + c, a + c]], [a, [b, c]])
    one, two, three = mx.nd.ones(1), mx.nd.full(1, 2), mx.nd.full(1, 3)
    first, (second, third) = block(one, [two, three])
    assert [x.asscalar() for x in (first, second, third)] == [3, 5, 4]
    block._in_format, block._out_format = [0, 0, 0], [0, 0, 0]
    assert [x.asscalar() for x in block(one, two, three)] == [3, 5, 4]


def test_the_cursor_of_an_iterator_rewinds_it(mx) -> None:
    batches = mx.io.NDArrayIter(np.arange(8).reshape(4, 2), batch_size=2)
    first = [batch.data[0].asnumpy().tolist() for batch in batches]
    batches.cursor = -2
    assert [batch.data[0].asnumpy().tolist() for batch in batches] == first


def test_arrays_of_a_parameter_are_assigned(mx) -> None:
    net = mx.gluon.nn.Dense(1, in_units=2, use_bias=False)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 2)))
    net.weight._data = [mx.nd.array([[3, 4]])]
    assert net(mx.nd.ones((1, 2))).asnumpy().tolist() == [[7]]


def test_a_list_cannot_give_two_variables_of_one_name_different_arrays(mx) -> None:
    graph = mx.sym.var("x") + mx.sym.var("x") * 10
    one, two = mx.nd.ones(2), mx.nd.full(2, 2)
    with pytest.raises(ValueError, match="two variables of the graph are called 'x'"):
        graph.bind(mx.cpu(), [one, two])
    assert graph.bind(mx.cpu(), [two, two]).forward()[0].asnumpy().tolist() == [22, 22]


def test_labels_that_float32_rounds_are_warned_of(mx) -> None:
    labels = np.array([3, 2**24 + 1])
    with pytest.warns(UserWarning, match=r"'softmax_label': .* 16777217 becomes 16777216"):
        mx.io.NDArrayIter(np.ones((2, 2)), labels)
    with pytest.warns(UserWarning, match=r"the label: .* 16777217 becomes 16777216"):
        mx.recordio.pack(mx.recordio.IRHeader(0, 2**24 + 1, 0, 0), b"")
    with pytest.warns(UserWarning, match=r"the labels: .* 16777217 becomes 16777216"):
        mx.recordio.pack(mx.recordio.IRHeader(0, labels, 0, 0), b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = mx.io.NDArrayIter(np.ones((2, 2)), mx.nd.array(labels, dtype="int32"))
        assert next(kept).label[0].asnumpy().tolist() == [3]
        mx.io.NDArrayIter(np.ones((2, 2)), np.array([3, 2**24]))
        mx.nd.array(labels, dtype="int64")
        mx.nd.array([3, 2**24])
        mx.nd.array(np.nan)
        mx.nd.array(np.array([1.5e10, 2.0**30 + 1]))  # numpy's floats are rounded by intention
        assert kept.label[0][1].asnumpy().tolist() == labels.tolist()
    for one in (labels, labels.tolist(), labels.astype("float64").tolist(), 2**24 + 1):
        with pytest.warns(UserWarning, match=r"array: .* 16777217 becomes 16777216"):
            mx.nd.array(one)


def image_record(mx, folder: Path) -> Path:
    """A record of a white image whose label is 2**24 + 2, which float32 has."""
    header = mx.recordio.IRHeader(0, 2**24 + 2, 7, 0)
    record = mx.recordio.MXRecordIO(str(folder / "one.rec"), "w")
    record.write(mx.recordio.pack_img(header, np.full((4, 4, 3), 255, "uint8"), img_fmt=".png"))
    record.close()
    return folder / "one.rec"


def test_iterators_warn_once_of_labels_that_float32_may_have_rounded(mx, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1\n2\n3\n4\n")
    (tmp_path / "label.csv").write_text("1\n2\n3\n16777217\n")
    (tmp_path / "list.lst").write_text("7\t16777217\tone.png\n")
    record = str(image_record(mx, tmp_path))
    csv = {"data_csv": tmp_path / "data.csv", "data_shape": (1,), "label_csv": tmp_path / "label.csv"}
    images = {"path_imgrec": record, "data_shape": (3, 4, 4), "batch_size": 1}
    for made, said in (
        (lambda: mx.io.CSVIter(**csv, batch_size=2), "CSVIter: a label is 16777216"),
        (lambda: mx.io.ImageRecordIter(**images), "ImageRecordIter: a label is 16777218"),
        (lambda: mx.io.ImageRecordIter(**images, path_imglist=tmp_path / "list.lst"), "a label is 16777216"),
    ):
        iterator = made()
        with pytest.warns(UserWarning, match=said) as told:
            list(iterator)
            iterator.reset()
            list(iterator)
        assert len(told) == 1
        assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = mx.io.CSVIter(**csv, batch_size=2, dtype="int64")
        assert [batch.label[0].asnumpy().tolist() for batch in kept] == [[1, 2], [3, 16777217]]
        # Labels of samples that only fill the batch up are of no concern.
        (tmp_path / "label.csv").write_text("1\n2\n3\n4\n")
        list(mx.io.CSVIter(**csv, batch_size=3))


@pytest.mark.parametrize("way", ["reshape", "transposed", "blocked", "cast"])
@pytest.mark.parametrize("call", ["module", "FeedForward", "serve", "bench"])
def test_labels_that_are_reshaped_before_the_loss_are_labels(mx, tmp_path, way: str, call: str) -> None:
    label = mx.sym.var("softmax_label")
    slot = {
        "reshape": mx.sym.Reshape(label, shape=(-1,)),
        "transposed": mx.sym.Reshape(mx.sym.transpose(label), shape=(-1,)),
        "blocked": mx.sym.BlockGrad(mx.sym.Reshape(label, shape=(-1,))),
        "cast": mx.sym.Cast(mx.sym.Reshape(label, shape=(-1,)), dtype="float32"),
    }[way]
    dense = mx.sym.FullyConnected(mx.sym.Reshape(mx.sym.var("data"), shape=(-1, 1)), num_hidden=3, name="fc")
    net = mx.sym.SoftmaxOutput(dense, slot, name="softmax")
    params = {"fc_weight": mx.nd.ones((3, 1)), "fc_bias": mx.nd.zeros((3,))}
    prefix = str(tmp_path / "net")
    mx.model.save_checkpoint(prefix, 0, net, params, {})
    if call == "module":
        module = mx.mod.Module(net, label_names=["softmax_label"])
        module.bind([("data", (1, 4))], for_training=False)
        module.set_params(params, {})
        module.forward(mx.io.DataBatch([mx.nd.ones((1, 4))]))
        assert module.get_outputs()[0].shape == (4, 3)
    elif call == "FeedForward":
        with pytest.deprecated_call():
            model = mx.model.FeedForward(net, arg_params=params, aux_params={})
        assert model.predict(mx.io.NDArrayIter(np.ones((2, 4)), batch_size=2)).shape == (2, 3)
    elif call == "serve":
        models = {"net": mx.serve.Model(prefix, shapes={"data": [-1, 4]})}
        asked = {"inputs": [{"name": "data", "shape": [1, 4], "datatype": "FP32", "data": [1] * 4}]}
        with mx.serve.Server(models, port=0, grpc_port="off") as server:
            with contextlib.closing(connect(server)) as connection:
                response, data = exchange(connection, "/v2/models/net/infer", json.dumps(asked))
            assert (response.status, json.loads(data)["outputs"][0]["shape"]) == (200, [4, 3]), data
    else:
        command = [sys.executable, "-m", "mxrt", "bench", prefix, "--shape", "data=1,4", "--seconds", "0.05"]
        done = run(command)
        assert done.returncode == 0, done.stderr
