"""Accuracy of 8-bit networks: how often their best class is that of float32, here and under MXNet.

    python benches/quantized_accuracy.py FOLDER --mxnet PYTHON [resnet50_v1 mobilenet_v2_1_0]

PYTHON has MXNet 1.9.1 and scikit-learn, on whose digits (64 x 64 pixels) it trains each network in
some minutes. mxrt quantizes it with 100 images, by `quantize_model_mkldnn` and by `mxrt quantize`,
and computes 500 others. MXNet runs the same files, and quantizes the network itself. FOLDER keeps
what was made.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

CALIBRATED, TESTED = 100, 500
MODES = ("naive", "entropy")
# Networks of MXNet's model zoo, and the epochs that each is trained.
EPOCHS = {"resnet50_v1": 6, "mobilenet_v2_1_0": 8}


def train(mx: Any, folder: Path, name: str) -> None:
    """Trains a network under MXNet, and saves it with the images."""
    from mxnet import autograd, gluon
    from sklearn.datasets import load_digits

    mx.random.seed(1)
    np.random.seed(1)
    digits = load_digits()
    images = np.kron(digits.images / 16, np.ones((8, 8)))[:, None].repeat(3, 1).astype("float32")
    order = np.random.RandomState(0).permutation(len(images))
    images, labels = images[order], digits.target[order].astype("float32")
    np.savez(folder / "digits.npz", images=images, labels=labels)
    net = getattr(gluon.model_zoo.vision, name)(classes=10)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 1e-3})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    rows = gluon.data.ArrayDataset(images[:-TESTED], labels[:-TESTED])
    batches = gluon.data.DataLoader(rows, batch_size=32, shuffle=True)
    for left in reversed(range(EPOCHS[name])):
        if left == 1:
            trainer.set_learning_rate(2e-4)
        for data, label in batches:
            with autograd.record():
                error = loss(net(data), label)
            error.backward()
            trainer.step(len(data))
    net.export(str(folder / name), 0)


def quantize(mx: Any, folder: Path, name: str, mode: str, to: str) -> None:
    """Quantizes a network with the first images, by MXNet's function."""
    symbol, arguments, states = mx.model.load_checkpoint(str(folder / name), 0)
    images = np.load(folder / "digits.npz")["images"][:CALIBRATED]
    made = mx.contrib.quantization.quantize_model_mkldnn(
        sym=symbol.get_backend_symbol("MKLDNN_QUANTIZE"),
        arg_params=arguments,
        aux_params=states,
        data_names=("data",),
        label_names=None,
        ctx=mx.cpu(),
        calib_mode=mode,
        calib_data=mx.io.NDArrayIter(images, None, batch_size=20),
        num_calib_examples=CALIBRATED,
        quantized_dtype="auto",
    )
    mx.model.save_checkpoint(str(folder / to), 0, *made)


def scores(mx: Any, folder: Path, name: str) -> np.ndarray:
    """The results for the last images."""
    images = np.load(folder / "digits.npz")["images"][-TESTED:]
    prefix = str(folder / name)
    net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    return np.concatenate([net(mx.nd.array(part)).asnumpy() for part in np.split(images, 10)])


def under_mxnet(python: str, folder: Path, task: list[str]) -> None:
    """Does one task in a child with MXNet."""
    subprocess.run([python, __file__, str(folder), "--task", json.dumps(task)], check=True, stderr=subprocess.DEVNULL)


def run_task(folder: Path, task: list[str]) -> None:
    """Does the task of a child."""
    import mxnet as mx

    what, name, *rest = task
    if what == "train":
        train(mx, folder, name)
    elif what == "quantize":
        quantize(mx, folder, name, *rest)
    else:
        np.save(folder / f"{name}-mxnet.npy", scores(mx, folder, name))


def report(folder: Path, python: str, name: str) -> None:
    """Prints the rows of a network."""
    import mxrt as mx

    if not (folder / f"{name}-symbol.json").exists():
        under_mxnet(python, folder, ["train", name])
    labels = np.load(folder / "digits.npz")["labels"]
    exact = scores(mx, folder, name).argmax(1)
    print(f"{name}: accuracy in float32 {(exact == labels[-TESTED:]).mean():.1%}")
    for mode in MODES:
        quantize(mx, folder, name, mode, f"{name}-{mode}")
        under_mxnet(python, folder, ["quantize", name, mode, f"{name}-{mode}-by-mxnet"])
    sample = folder / f"{name}-sample.npz"
    images = np.load(folder / "digits.npz")["images"]
    np.savez(sample, data=images[:CALIBRATED], label=labels[:CALIBRATED])
    command = ["quantize", str(folder / name), "--data", str(sample), "-o", str(folder / f"{name}-budget"), "--force"]
    subprocess.run([sys.executable, "-m", "mxrt", *command], check=True, stdout=subprocess.DEVNULL)
    made = [*(f"{name}-{mode}" for mode in MODES), f"{name}-budget", *(f"{name}-{mode}-by-mxnet" for mode in MODES)]
    for file in made:
        ours = scores(mx, folder, file)
        under_mxnet(python, folder, ["scores", file])
        theirs = np.load(folder / f"{file}-mxnet.npy")
        print(
            f"  {file}: agreement with float32 {(ours.argmax(1) == exact).mean():.1%}, "
            f"MXNet's results differ by {abs(ours - theirs).max():.3g} at most"
        )


def main() -> None:
    """Reads the command line, and reports each network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--mxnet", metavar="PYTHON")
    parser.add_argument("--task", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        run_task(options.folder, options.task)
        return
    if not options.mxnet:
        parser.error("--mxnet PYTHON is needed: an interpreter with MXNet 1.9.1 and scikit-learn")
    unknown = set(options.networks) - set(EPOCHS)
    if unknown:
        parser.error(f"unknown networks: {', '.join(sorted(unknown))}; known: {', '.join(EPOCHS)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.networks or EPOCHS:
        report(options.folder, options.mxnet, name)


if __name__ == "__main__":
    main()
