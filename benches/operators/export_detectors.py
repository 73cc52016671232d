"""Writes the files of the detector rows, with random weights. Runs under MXNet with GluonCV 0.10.5.

python export_detectors.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import mxnet as mx
from gluoncv import model_zoo

NETWORKS = {"ssd300": ("ssd_300_vgg16_atrous_voc", 300), "yolov3": ("yolo3_darknet53_voc", 416)}


def main() -> None:
    """Exports both networks."""
    folder = Path(sys.argv[1])
    for name, (network, size) in NETWORKS.items():
        mx.random.seed(1)
        net = model_zoo.get_model(network, pretrained=False, pretrained_base=False)
        net.initialize(mx.init.Xavier())
        net.hybridize()
        net(mx.nd.zeros((1, 3, size, size)))
        net.export(str(folder / name))


if __name__ == "__main__":
    main()
