"""Records the blocks of tests/np/np_blocks.py: what MXNet exports of them, and its outputs.

    python record_np_blocks.py

It runs with MXNet 1.9.1 and NumPy 1.23, and writes the folder np_blocks.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as onp

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "np"))


def main() -> None:
    import mxnet as mx

    from np_blocks import BLOCKS, filled, outputs, sample

    mx.npx.set_np()
    target = FOLDER / "np_blocks"
    target.mkdir(exist_ok=True)
    results = {}
    for name in BLOCKS:
        net, x = filled(mx, name)
        net.hybridize()
        for number, value in enumerate(outputs(net(x))):
            results[f"{name}{number}"] = value
        net.export(str(target / name))
        net.save_parameters(str(target / f"{name}.params"))
    mx.npx.save(
        str(target / "arrays"),
        {"scalar": mx.np.array(2.5), "empty": mx.np.zeros((0, 3)), "x": mx.np.array(sample((3, 5), 7))},
    )
    onp.savez_compressed(target / "outputs.npz", **results)


if __name__ == "__main__":
    main()
