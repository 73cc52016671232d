#!/usr/bin/env python3
"""Records small 8-bit networks: files that MXNet 1.9.1 quantized, an input, and the output. And
MXNet's output of stored-*, which `mxrt quantize` made of digits_cnn.

python tests/recorded/record_int8.py       in an environment with mxnet==1.9.1, numpy==1.23.5
"""

from __future__ import annotations

import logging
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet.contrib.quantization import quantize_model_mkldnn

FOLDER = Path(__file__).parent / "int8"


def network() -> mx.sym.Symbol:
    net = mx.sym.Convolution(
        mx.sym.var("data"), kernel=(3, 3), pad=(1, 1), stride=(4, 4), num_filter=8, name="conv", no_bias=True
    )
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn", fix_gamma=False), act_type="relu")
    net = mx.sym.Flatten(mx.sym.Convolution(net, kernel=(1, 1), num_filter=8, name="conv2"))
    return mx.sym.FullyConnected(net, num_hidden=32, name="fc")


def record(seed: int) -> None:
    rng = np.random.RandomState(seed)

    def normal(scale: float, *shape: int) -> mx.nd.NDArray:
        return mx.nd.array(rng.normal(0, scale, shape))

    def positive(*shape: int) -> mx.nd.NDArray:
        return mx.nd.array(rng.uniform(0.5, 1.5, shape))

    args = {
        "conv_weight": normal(0.3, 8, 3, 3, 3),
        "bn_gamma": positive(8),
        "bn_beta": normal(0.2, 8),
        "conv2_weight": normal(0.3, 8, 8, 1, 1),
        "conv2_bias": normal(0.1, 8),
        "fc_weight": normal(0.01, 32, 8 * 4 * 4),
        "fc_bias": normal(0.1, 32),
    }
    states = {"bn_moving_mean": normal(0.2, 8), "bn_moving_var": positive(8)}
    data = rng.normal(0, 1, (8, 3, 16, 16)).astype(np.float32)
    symbol, args, states = quantize_model_mkldnn(
        network().get_backend_symbol("MKLDNN_QUANTIZE"),
        args,
        states,
        calib_mode="naive",
        calib_data=mx.io.NDArrayIter(data, batch_size=8),
        num_calib_examples=8,
        quantized_dtype="auto",
        logger=logging.getLogger("quiet"),
    )
    FOLDER.mkdir(exist_ok=True)
    symbol.save(str(FOLDER / f"{seed}-symbol.json"))
    named = {f"arg:{name}": array for name, array in args.items()}
    mx.nd.save(str(FOLDER / f"{seed}-0000.params"), {**named, **{f"aux:{n}": a for n, a in states.items()}})
    bound = symbol.bind(mx.cpu(), {**args, "data": mx.nd.array(data)}, aux_states=states, grad_req="null")
    np.savez_compressed(FOLDER / f"{seed}.npz", data=data, out=bound.forward()[0].asnumpy())


def record_stored() -> None:
    with np.load(FOLDER.parents[1] / "models" / "digits_cnn" / "eval.npz") as arrays:
        data = arrays["in.data"][:32]
    prefix = str(FOLDER / "stored")
    net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    out = net(mx.nd.array(data)).asnumpy()
    symbol, args, states = mx.model.load_checkpoint(prefix, 0)
    module = mx.mod.Module(symbol, label_names=None)
    module.bind([("data", data.shape)], for_training=False)
    module.set_params(args, states)
    module.forward(mx.io.DataBatch([mx.nd.array(data)]), is_train=False)
    assert (module.get_outputs()[0].asnumpy() == out).all()
    np.savez_compressed(f"{prefix}.npz", data=data, out=out)


if __name__ == "__main__":
    record_stored()
    for number in range(4):
        record(number)
