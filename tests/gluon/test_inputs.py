"""Inputs of models: numpy arrays, names, and what an error says about a wrong one.

Every message names the input, what it got and what is wanted, then what to do, then the node.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from support import DIGITS, block_of, digits

N, C, H, W = 2, 1, 8, 8


@pytest.fixture
def net(mx):
    return block_of(mx)


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return digits(N)[0]


def said(mx, call) -> str:
    with pytest.raises(mx.MXNetError) as caught:
        call()
    return caught.value.message


#: What is wrong, made of good images, and what the message begins with.
FAULTS = {
    "channels": (
        lambda x: np.repeat(x, 3, axis=1),
        "input 'data': got (2, 3, 8, 8), wanted (2, 1, 8, 8): axis 1 must be 1, not 3. ",
    ),
    "layout": (
        lambda x: x.transpose(0, 2, 3, 1),
        "input 'data': got (2, 8, 8, 1), wanted (2, 1, 8, 8): the axes are in another order, pass "
        "x.transpose((0, 3, 1, 2)). ",
    ),
    "no batch": (
        lambda x: x[0],
        "input 'data': got (1, 8, 8), wanted (1, 1, 8, 8): the batch is missing, pass x.reshape((1, 1, 8, 8)). ",
    ),
    "one image, channels last": (
        lambda x: np.zeros((9, 8, 1), "float32"),
        "input 'data': got (9, 8, 1), wanted (1, 1, 9, 8): the batch is missing and the channels are last, pass "
        "x.transpose((2, 0, 1)).reshape((1, 1, 9, 8)). ",
    ),
    "rank": (
        lambda x: x.reshape(2, -1),
        "input 'data': got (2, 64), wanted 4 axes: pass x.reshape to a shape like (?, 1, ?, ?). ",
    ),
    "an axis too many": (
        lambda x: x[:, None],
        "input 'data': got (2, 1, 1, 8, 8), wanted (2, 1, 8, 8): axis 1 is one too many, pass "
        "x.reshape((2, 1, 8, 8)). ",
    ),
}
DTYPES = ["float64", "float16", "int32", "int64", "int8", "uint8"]


def callers(mx):
    """Ways to call the digits network with an NDArray."""
    net = block_of(mx)
    hybrid = mx.gluon.nn.HybridSequential()
    hybrid.add(block_of(mx))
    hybrid.hybridize()
    symbol = mx.sym.load(str(DIGITS / "digits_cnn-symbol.json"))
    params = {name: parameter.data() for name, parameter in net.collect_params().items()}
    op = mx.nd.CachedOp(symbol)
    others = [params[name] for name in symbol.list_inputs()[1:]]
    module = mx.mod.Module(symbol, label_names=None)
    module.bind([("data", (N, C, H, W))], for_training=False)
    split = [set(symbol.list_arguments()), set(symbol.list_auxiliary_states())]
    module.set_params(*({k: v for k, v in params.items() if k in part} for part in split))
    return {
        "SymbolBlock": net,
        "a block in a hybridised one": hybrid,
        "CachedOp": lambda x: op(x, *others),
        "Module": lambda x: module.forward(mx.io.DataBatch([x])),
    }


@pytest.mark.parametrize("caller", ["SymbolBlock", "a block in a hybridised one", "CachedOp", "Module"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_shape_is_said_with_the_one_that_fits(mx, images, caller: str, fault: str) -> None:
    make, message = FAULTS[fault]
    text = said(mx, lambda: callers(mx)[caller](mx.nd.array(make(images))))
    assert text.startswith(message), text
    assert "Convolution 'digitsnet_conv0_fwd': " in text, "the node comes behind"
    assert text.count("digitsnet_conv0_fwd") == 1


@pytest.mark.parametrize("caller", ["SymbolBlock", "CachedOp"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wrong_dtype_is_said_with_the_one_that_fits(mx, images, caller: str, dtype: str) -> None:
    text = said(mx, lambda: callers(mx)[caller](mx.nd.array(images).astype(dtype)))
    assert text == (
        f"input 'data': got {dtype}, wanted float32: pass x.astype('float32'). Convolution 'digitsnet_conv0_fwd': "
        f"weight has dtype float32 but {dtype} is needed"
    )


def test_what_the_message_advises_helps(mx, net, images) -> None:
    want = net(mx.nd.array(images)).asnumpy()
    x = mx.nd.array(images.transpose(0, 2, 3, 1))
    assert np.array_equal(net(x.transpose((0, 3, 1, 2))).asnumpy(), want)
    assert np.array_equal(net(mx.nd.array(images).astype("float64").astype("float32")).asnumpy(), want)
    assert np.array_equal(net(mx.nd.array(images[0]).reshape((1, 1, 8, 8))).asnumpy(), net(images[:1]).asnumpy())


def test_a_size_that_a_dense_layer_does_not_take_is_said_with_one_that_fits(mx) -> None:
    data = mx.sym.var("data")
    pooled = mx.sym.Pooling(
        mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, name="conv"), kernel=(2, 2), stride=(2, 2)
    )
    out = mx.sym.FullyConnected(pooled, num_hidden=5, name="dense")
    net = mx.gluon.SymbolBlock(out, [data])
    net.initialize()
    net(mx.nd.ones((1, 3, 28, 28)))
    text = said(mx, lambda: net(mx.nd.ones((1, 3, 32, 32))))
    assert text.startswith("input 'data': got (1, 3, 32, 32), wanted (1, 3, 28, 28): axes 2 and 3 must be 28 and 28. ")
    assert "FullyConnected 'dense'" in text


def test_of_several_inputs_the_wrong_one_is_named(mx) -> None:
    ids, mask = mx.sym.var("ids"), mx.sym.var("mask")
    deep = mx.sym.FullyConnected(ids, num_hidden=4, name="dense", flatten=False)
    net = mx.gluon.SymbolBlock(mx.sym.broadcast_mul(deep, mask), [ids, mask])
    net.initialize()
    assert net(mx.nd.ones((2, 3)), mx.nd.ones((2, 1))).shape == (2, 4)
    text = said(mx, lambda: net(mx.nd.ones((2, 5)), mx.nd.ones((2, 1))))
    assert text.startswith("input 'ids': got (2, 5), wanted (2, 3): axis 1 must be 3, not 5. FullyConnected 'dense': ")
    text = said(mx, lambda: net(mx.nd.ones((2, 3)), mx.nd.ones((2, 7))))
    assert text.startswith("input 'mask': got (2, 7), wanted (2, ")
    text = said(mx, lambda: net(mx.nd.ones((2, 3), dtype="float64"), mx.nd.ones((2, 1), dtype="float64")))
    assert text.startswith("inputs 'ids', 'mask': got float64, wanted float32: pass x.astype('float32')"), text


def test_inputs_that_do_not_fit_each_other_are_both_named(mx) -> None:
    a, b = mx.sym.var("a"), mx.sym.var("b")
    net = mx.gluon.SymbolBlock(mx.sym.dot(a, b, name="product"), [a, b])
    text = said(mx, lambda: net(mx.nd.ones((2, 3)), mx.nd.ones((5, 7))))
    assert text.startswith("input 'a': got (2, 3), wanted (2, 5): axis 1 must be 5, not 3. dot 'product': "), text


def test_parameters_that_contradict_each_other_are_not_blamed_on_the_input(mx, net, images) -> None:
    params = {name: parameter.data() for name, parameter in net.collect_params().items()}
    params["digitsnet_dense0_weight"] = mx.nd.ones((10, 3))
    op = mx.nd.CachedOp(net._symbol)
    text = said(mx, lambda: op(mx.nd.array(images), *(params[name] for name in net._symbol.list_inputs()[1:])))
    assert text.startswith("for input 'data' of shape (2, 1, 8, 8). FullyConnected 'digitsnet_dense0_fwd': weight has ")
    assert "wanted" not in text


def test_what_is_no_array_missing_or_too_much_is_said_by_name(mx, net, images) -> None:
    x = mx.nd.array(images)
    pass_array = "wanted an NDArray or a numpy array (or a Symbol): pass mx.nd.array(x)"
    assert said(mx, lambda: net(images.tolist())) == f"input 'data': got list, {pass_array}"
    assert said(mx, lambda: net({"data": x})) == f"input 'data': got dict, {pass_array}"
    assert said(mx, net) == "SymbolBlock takes 1 input ('data'), but was called without input"
    assert said(mx, lambda: net(x, x)) == "SymbolBlock takes 1 input ('data'), but 2 were given: 1 too many"
    assert said(mx, lambda: net(dta=x)) == "SymbolBlock: there is no input 'dta'; it takes 'data'; did you mean 'data'?"
    assert said(mx, lambda: net(x, data=x)) == "SymbolBlock: input 'data' was given twice, by position and by name"


def test_an_empty_batch_gives_an_empty_answer(mx, net) -> None:
    assert net(np.zeros((0, 1, 8, 8), "float32")).shape == (0, 10)


def test_an_array_on_another_device_is_said_with_where_the_parameters_are(mx, net, images) -> None:
    text = said(mx, lambda: net(mx.nd.array(images, mx.sim(0))))
    assert text.startswith(
        "input 'data': got an array on sim(0), wanted cpu(0), where the parameters are: pass x.as_in_context(mx.cpu(0))"
    )
    a, b = mx.sym.var("a"), mx.sym.var("b")
    op = mx.nd.CachedOp(a + b)
    text = said(mx, lambda: op(mx.nd.ones(2), mx.nd.ones(2, mx.sim(0))))
    assert text.startswith("input 'b': got an array on sim(0), wanted cpu(0), where 'a' is: pass ")


def test_an_executor_says_which_argument_and_how_to_go_on(mx, images) -> None:
    symbol = mx.sym.load(str(DIGITS / "digits_cnn-symbol.json"))
    executor = symbol.simple_bind(mx.cpu(), data=images.shape)
    text = said(mx, lambda: executor.forward(data=mx.nd.ones((2, 3, 8, 8))))
    assert text.startswith("input 'data': got (2, 3, 8, 8), wanted (2, 1, 8, 8), the shape it is bound to: ")
    assert "did you mean 'data'?" in said(mx, lambda: executor.forward(dat=images))
    assert said(mx, lambda: executor.forward(data=[1.0])).startswith("input 'data': got list, ")


# ---- numpy arrays and names --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool"])
def test_a_numpy_array_is_what_nd_array_makes_of_it(mx, net, images, dtype: str) -> None:
    given = (images > 0.5).astype(dtype) if dtype != "float32" else images
    assert np.array_equal(net(given).asnumpy(), net(mx.nd.array(given)).asnumpy())


def test_numpy_arrays_by_position_or_name_for_one_and_several_inputs(mx, images) -> None:
    net = block_of(mx)
    assert np.array_equal(net(data=images).asnumpy(), net(images).asnumpy())
    a, b = mx.sym.var("a"), mx.sym.var("b")
    block = mx.gluon.SymbolBlock(a - 2 * b, [a, b])
    one, two = np.ones((2, 3)), np.full((2, 3), 2.0)
    for made in (block(one, two), block(b=two, a=one), block(one, b=two), block(mx.nd.array(one), two)):
        assert np.array_equal(made.asnumpy(), one - 2 * two)
    assert said(mx, lambda: block(b=two)) == "SymbolBlock: input 'a' is missing; it takes 'a', 'b'"
    assert (
        said(mx, lambda: block(one)) == "SymbolBlock takes 2 inputs ('a', 'b'), but 1 were given: input 'b' is missing"
    )


@pytest.mark.parametrize("hybridized", [False, True])
def test_hybrid_blocks_take_numpy_arrays_and_names(mx, hybridized: bool) -> None:
    class Gate(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.scale = self.params.get("scale", shape=(1,), init=mx.init.Constant(3))

        def hybrid_forward(self, F, signal, gate, scale):
            return F.broadcast_mul(signal * gate, scale)

    block = Gate()
    block.initialize()
    if hybridized:
        block.hybridize()
    signal, gate = np.arange(6.0).reshape(2, 3), np.full((2, 3), 0.5)
    for _ in range(2):
        for made in (block(signal, gate), block(gate=gate, signal=signal), block(mx.nd.array(signal), gate)):
            assert np.array_equal(made.asnumpy(), (signal * gate * 3).astype("float32"))
    assert "there is no input 'gat'; it takes 'signal', 'gate'; did you mean 'gate'?" in said(
        mx, lambda: block(signal, gat=gate)
    )
    cell = mx.gluon.rnn.LSTMCell(4)
    cell.initialize()
    out, states = cell(np.ones((2, 3)), cell.begin_state(2))
    assert out.shape == (2, 4) and len(states) == 2


def test_numpy_arrays_go_where_the_parameters_are(mx, images) -> None:
    net = block_of(mx)
    want = net(images).asnumpy()
    net.collect_params().reset_ctx(mx.sim(0))
    made = net(images)
    assert made.context == mx.sim(0)
    assert np.array_equal(made.asnumpy(), want)


@pytest.mark.parametrize("values", [np.zeros((1, 1, 8, 8), complex), np.array([object()]), np.array(["a"])])
def test_numpy_arrays_without_real_numbers_are_a_type_error(mx, net, values: np.ndarray) -> None:
    for call in (lambda: net(values), lambda: net(data=values)):
        with pytest.raises(TypeError, match=f"input 'data': got a numpy array of dtype {values.dtype}"):
            call()
    with pytest.raises(TypeError):
        mx.nd.array(values)


def test_modules_take_numpy_arrays(mx, images) -> None:
    made = callers(mx)["Module"]
    assert made(images) is None
    assert "input 'data': got list, wanted" in said(mx, lambda: made(json.loads("[1]")))
