"""Programs that make blocks of their own, or take them from the zoo."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from gluon_cases import fill, numbers

from ._base import MODELS, checkpoint, evaluation, program, rounded


def small_net(mx, prefix: str = "net_"):
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, padding=1, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Flatten())
        net.add(nn.Dense(8, activation="tanh"), nn.Dropout(0.5), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net(mx.nd.zeros((1, 2, 6, 6)))
    fill(mx, net)
    return net


@program
def export_and_load(mx, folder: Path) -> list:
    net, x = small_net(mx), mx.nd.array(numbers("x", (2, 2, 6, 6)))
    net.hybridize(static_alloc=True, static_shape=True)
    found = [rounded(net(x))]
    net.export(str(folder / "net"), epoch=3)
    block = mx.gluon.SymbolBlock.imports(str(folder / "net-symbol.json"), ["data"], str(folder / "net-0003.params"))
    found.append(rounded(block(x)))
    mod = mx.mod.Module.load(str(folder / "net"), 3, label_names=None)
    mod.bind([("data", x.shape)], for_training=False)
    found.append(rounded(mod.predict(x.asnumpy())))
    return [found, sorted(os.listdir(folder)), sorted(mod.get_params()[1])]


@program
def zoo_network_as_in_the_tutorials(mx, folder: Path) -> list:
    """Normalise an image, run a network of the zoo, print the five best classes."""
    net = mx.gluon.model_zoo.vision.get_model("mobilenet0.25", classes=12, prefix="mobile_")
    net.initialize()
    net(mx.nd.zeros((1, 3, 32, 32)))
    fill(mx, net)
    net.hybridize()
    image = mx.nd.array(numbers("image", (40, 48, 3), 0, 255))
    image = mx.image.center_crop(image, (32, 32))[0]
    mean, std = mx.nd.array([0.485, 0.456, 0.406]), mx.nd.array([0.229, 0.224, 0.225])
    image = mx.image.color_normalize(image.astype("float32") / 255, mean=mean, std=std)
    prob = net(image.transpose((2, 0, 1)).expand_dims(axis=0)).softmax()
    best = prob.topk(k=5)[0].asnumpy().astype(int).tolist()
    return [best, [float(prob[0, place].asscalar()) for place in best]]


@program
def segmentation_demo(mx, folder: Path) -> list:
    """A fully convolutional network with an auxiliary head, evaluated through ``demo``."""
    gluon = mx.gluon

    class Head(gluon.nn.HybridBlock):
        def __init__(self, classes: int, **options) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.block = gluon.nn.HybridSequential()
                with self.block.name_scope():
                    self.block.add(gluon.nn.Conv2D(4, 3, padding=1, use_bias=False), gluon.nn.BatchNorm())
                    self.block.add(gluon.nn.Activation("relu"), gluon.nn.Dropout(0.1), gluon.nn.Conv2D(classes, 1))

        def hybrid_forward(self, F, x):
            return self.block(x)

    class Net(gluon.nn.HybridBlock):
        def __init__(self, **options) -> None:
            super().__init__(**options)
            self._up = {"height": 12, "width": 10}
            with self.name_scope():
                self.base = gluon.nn.Conv2D(6, 3, strides=2, padding=1, activation="relu")
                self.head, self.auxlayer = Head(5), Head(5)

        def hybrid_forward(self, F, x):
            features = self.base(x)
            outputs = [F.contrib.BilinearResize2D(head(features), **self._up) for head in (self.head, self.auxlayer)]
            return tuple(outputs)

        def demo(self, x):
            return self(x)[0]

    net = Net(prefix="fcn_")
    net.initialize()
    image = mx.nd.array(numbers("image", (1, 3, 12, 10)))
    net(image)
    fill(mx, net)
    output = net.demo(image)
    net.hybridize()
    hybrid = net.demo(image)
    predict = mx.nd.squeeze(mx.nd.argmax(output, 1)).asnumpy()
    return [predict.astype(int).tolist(), rounded(hybrid), len(net(image))]


@program
def detection_demo(mx, folder: Path) -> list:
    """Boxes above a threshold, from a network with its detections inside."""
    net = mx.gluon.SymbolBlock.imports(checkpoint("ssd_digits") + "-symbol.json", ["data"])
    net.load_parameters(checkpoint("ssd_digits") + "-0000.params", ctx=mx.cpu(), ignore_extra=True)
    with np.load(MODELS / "ssd_digits" / "golden.npz") as saved:
        outputs = net(mx.nd.array(saved["b1.in.data"]))
    rows = (outputs[0] if isinstance(outputs, (list, tuple)) else outputs)[0].asnumpy()
    kept = rows[(rows[:, 0] >= 0) & (rows[:, 1] > 0.5)]
    return [[int(row[0]), row[1:].tolist()] for row in kept[np.argsort(-kept[:, 1])]]


@program
def face_embedding(mx, folder: Path) -> list:
    """Embeddings of unit length, their distances, and the same with the image mirrored."""
    sym, arg_params, aux_params = mx.model.load_checkpoint(checkpoint("digits_cnn"), 0)
    all_layers = sym.get_internals()
    sym = all_layers[[name for name in all_layers.list_outputs() if "flatten" in name][-1]]
    model = mx.mod.Module(symbol=sym, context=mx.cpu(), label_names=None)
    model.bind(data_shapes=[("data", (1, 1, 8, 8))], for_training=False)
    model.set_params(arg_params, aux_params, allow_missing=True, allow_extra=True)

    def embedding(image: np.ndarray) -> np.ndarray:
        total = 0
        for mirrored in (image, image[:, :, ::-1]):
            batch = mx.io.DataBatch(data=(mx.nd.array(mirrored[np.newaxis]),))
            model.forward(batch, is_train=False)
            total = total + model.get_outputs()[0].asnumpy()
        return mx.nd.L2Normalization(mx.nd.array(total)).asnumpy().ravel()

    faces = [embedding(image) for image in evaluation("digits_cnn", 4)[0]]
    return [[float(np.sum((a - b) ** 2)) for b in faces] for a in faces[:2]] + [faces[0].tolist()]


@program
def fine_tuned_head(mx, folder: Path) -> list:
    """The features of one network under a new output layer; saved, and loaded into a third."""
    vision = mx.gluon.model_zoo.vision
    pretrained = vision.mobilenet_v2_0_25(prefix="base_", classes=4)
    pretrained.initialize()
    pretrained(mx.nd.zeros((1, 3, 32, 32)))
    fill(mx, pretrained)
    net = vision.mobilenet_v2_0_25(classes=2, prefix="head_")
    net.features = pretrained.features
    net.output.initialize(mx.init.Xavier(), ctx=mx.cpu())
    net(mx.nd.zeros((1, 3, 32, 32)))
    fill(mx, net.output)
    x = mx.nd.array(numbers("x", (1, 3, 32, 32)))
    net.hybridize()
    found = rounded(net(x))
    net.save_parameters(str(folder / "head.params"))
    again = vision.mobilenet_v2_0_25(classes=2)
    again.load_parameters(str(folder / "head.params"), ctx=mx.cpu())
    return [found, rounded(again(x)), list(mx.nd.load(str(folder / "head.params")))[-2:]]
