"""Layouts of quantized networks: images stay channels last, and numbers are the same."""

from __future__ import annotations

import pytest

from support import last_json, run_python

NETWORK = """
import json
import tempfile
import numpy as np
import mxrt as mx

def conv(x, name, filters, kernel, stride=1, groups=1):
    x = mx.sym.Convolution(x, num_filter=filters, kernel=(kernel, kernel), pad=(kernel // 2, kernel // 2),
                           stride=(stride, stride), num_group=groups, name=name)
    return mx.sym.BatchNorm(x, fix_gamma=False, name=name + "_bn")

x = mx.sym.var("data")
x = mx.sym.Activation(conv(x, "first", 20, 3), act_type="relu")
x = mx.sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")
x = mx.sym.clip(conv(x, "depthwise", 20, 3, 1, 20), 0, 6)
x = conv(x, "wide", 72, 1)
y = mx.sym.Activation(conv(x, "strided", 72, 3), act_type="relu")
x = mx.sym.Activation(conv(y, "added", 72, 3) + x, act_type="relu")
x = mx.sym.Activation(conv(x, "ragged", 80, 3, 1, 2), act_type="relu")
x = mx.sym.Concat(conv(x, "left", 12, 1), mx.sym.Activation(conv(x, "right", 33, 3), act_type="relu"), dim=1)
x = mx.sym.Activation(conv(x, "grouped", 40, 3, 2, 5), act_type="relu")
x = mx.sym.Pooling(conv(x, "last", 24, 3), global_pool=True, pool_type="avg", kernel=(1, 1))
net = mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=7, name="classes")

shapes, _, states = net.infer_shape(data=(4, 3, 20, 24))
random = np.random.default_rng(7)
args = {n: mx.nd.array(random.normal(0, 0.3, s)) for n, s in zip(net.list_arguments(), shapes) if n != "data"}
auxs = {n: mx.nd.array(random.uniform(0.5, 1.5, s)) for n, s in zip(net.list_auxiliary_states(), states)}
images = random.normal(0, 1, (5, 3, 20, 24)).astype("float32")
q = mx.contrib.quantization.quantize_model_mkldnn(
    net, args, auxs, ctx=mx.cpu(), calib_mode="naive", calib_data=mx.io.NDArrayIter(images[:4], batch_size=4),
    label_names=None, quantized_dtype="auto", logger=None)
with tempfile.TemporaryDirectory() as folder:
    mx.model.save_checkpoint(folder + "/q", 0, *q)
    net = mx.gluon.SymbolBlock.imports(folder + "/q-symbol.json", ["data"], folder + "/q-0000.params")
answers = [net(mx.nd.array(images[:n])).asnumpy() for n in (1, 5)]
steps = [line.split()[1] for line in net.plan(mx.nd.array(images[:1])).splitlines()[1:-1]]
print(json.dumps([[a.tobytes().hex() for a in answers], steps]))
"""


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
def test_images_that_stay_channels_last_give_the_same_numbers(isa: str) -> None:
    def answer(passes: str) -> tuple[list[str], list[str]]:
        return last_json(run_python(NETWORK, env={"MXRT_ISA": isa, "MXRT_PASSES": passes}))

    try:
        planes, before = answer("-assign_layouts")
    except AssertionError as error:
        if "this processor does not have it" not in str(error):
            raise
        pytest.skip(f"this processor has no {isa}")
    pixels, steps = answer("")
    assert pixels == planes
    assert not any("blocked" in step for step in before)
    layers = [step for step in steps if "blocked" in step]
    kinds = ["_blocked_sg_mkldnn_conv", "_blocked_quantized_pooling", "_blocked_quantized_concat"]
    assert [layers.count(kind) for kind in kinds] == [9, 2, 1], steps
    # The layer of five groups of nine channels reads and writes planes.
    assert layers.count("_from_blocked") == 2, steps
