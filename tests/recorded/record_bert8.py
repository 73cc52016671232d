#!/usr/bin/env python3
"""Records a small BERT that MXNet 1.9.1 quantized as GluonNLP's scripts do: files, an input, the
output, and all integers in between.

python tests/recorded/record_bert8.py       in an environment with mxnet==1.9.1, numpy==1.23.5
"""

from __future__ import annotations

import sys
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet.contrib.quantization import quantize_net_v2

sys.path.insert(0, str(Path(__file__).parents[1] / "precision"))
import bert_blocks

FOLDER = Path(__file__).parent / "bert8"


def record(mode: str, granularity: str) -> None:
    *data, test = bert_blocks.batches(6)
    net = quantize_net_v2(
        bert_blocks.make(mx),
        quantize_mode=mode,
        quantize_granularity=granularity,
        calib_data=bert_blocks.iterator(mx, data),
        calib_mode="naive",
    )
    out = net(*[mx.nd.array(array) for array in test]).asnumpy()
    FOLDER.mkdir(exist_ok=True)
    net.export(str(FOLDER / mode), epoch=0)
    symbol, args, _ = mx.model.load_checkpoint(str(FOLDER / mode), 0)
    inner = symbol.get_internals()
    given = {**args, **{f"data{i}": mx.nd.array(array) for i, array in enumerate(test)}}
    values = inner.bind(mx.cpu(), {name: given[name] for name in inner.list_arguments()}, grad_req="null").forward()
    integers = {
        f"integers.{name}": value.asnumpy()
        for name, value in zip(inner.list_outputs(), values, strict=True)
        if value.dtype in (np.int8, np.uint8) and name not in args
    }
    np.savez_compressed(FOLDER / f"{mode}.npz", out=out, **integers)


if __name__ == "__main__":
    record("smart", "channel-wise")
    record("full", "tensor-wise")
