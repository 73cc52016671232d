"""Trains a forecaster of GluonTS for three batches, and records its folder and its answers.

    python record.py    writes nbeats and nbeats-golden.npz next to it

Runs under MXNet 1.9.1 with gluonts 0.13.7, numpy 1.23.5 and pandas 1.5.3.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import mxnet as mx
import numpy as np
import pandas as pd
from gluonts.dataset.common import ListDataset
from gluonts.dataset.loader import InferenceDataLoader
from gluonts.mx.batchify import batchify
from gluonts.mx.model.n_beats import NBEATSEstimator
from gluonts.mx.trainer import Trainer

HERE = Path(__file__).parent


def main() -> None:
    """Writes the files."""
    mx.random.seed(1)
    np.random.seed(1)
    rng = np.random.RandomState(0)
    rows = [10 + 3 * np.sin(np.arange(120) / 7 * 6.28) + rng.randn(120) for _ in range(4)]
    start = pd.Timestamp("2020-01-01")
    data = ListDataset([{"start": start, "target": row.astype("float32")} for row in rows], freq="D")
    trainer = Trainer(ctx=mx.cpu(), epochs=1, num_batches_per_epoch=3)
    sizes = {"num_stacks": 2, "num_blocks": [1], "widths": [8], "num_block_layers": [2]}
    estimator = NBEATSEstimator(freq="D", prediction_length=7, context_length=14, trainer=trainer, **sizes)
    predictor = estimator.train(data)
    stack = partial(batchify, ctx=mx.cpu(), dtype=np.float32)
    batch = next(iter(InferenceDataLoader(data, transform=predictor.input_transform, batch_size=4, stack_fn=stack)))
    saved = predictor.as_symbol_block_predictor(batch)
    (HERE / "nbeats").mkdir(exist_ok=True)
    saved.serialize(HERE / "nbeats")
    # The network reads the past, and neither of the two inputs for what follows.
    inputs = [batch[name] for name in predictor.input_names]
    answer = saved.prediction_net(*inputs).asnumpy()
    named = {f"in.data{number}": inputs[number].asnumpy() for number in (0, 1)}
    np.savez_compressed(HERE / "nbeats-golden.npz", **named, **{"out.0": answer})


if __name__ == "__main__":
    main()
