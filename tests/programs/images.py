"""Programs that begin with files of images or records."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np

from gluon_cases import fill

from ._base import MODELS, checkpoint, program, rounded, softmaxed

# PNG is decoded to the same pixels by all; what JPEG decodes to may differ a little.
FILES = Path(__file__).parent.parent / "recorded" / "images.npz"
NAMES = ("rgb", "grey", "palette", "alpha")
SIZE = 24


def contents() -> list[bytes]:
    """Eight images as PNG files."""
    with np.load(FILES) as saved:
        return [saved[f"file_png_{name}"].tobytes() for name in NAMES] * 2


def trained(mx, folder: Path) -> str:
    """A checkpoint of a network for colour images of six classes."""
    net = mx.gluon.model_zoo.vision.get_model("mobilenet0.25", classes=6, prefix="net_")
    net.initialize()
    net(mx.nd.zeros((1, 3, SIZE, SIZE)))
    fill(mx, net)
    net.hybridize()
    net(mx.nd.zeros((1, 3, SIZE, SIZE)))
    net.export(str(folder / "net"))
    return str(folder / "net")


def module_of(mx, prefix: str, batch: int):
    sym, arg_params, aux_params = mx.model.load_checkpoint(prefix, 0)
    mod = mx.mod.Module(sym, context=mx.cpu(), label_names=None)
    mod.bind(for_training=False, data_shapes=[("data", (batch, 3, SIZE, SIZE))])
    mod.set_params(arg_params, aux_params, allow_missing=True)
    return mod


@program
def model_server_of_images(mx, folder: Path) -> list:
    """The vision template of a model server: decode, resize, run a module, the best classes."""
    (folder / "signature.json").write_text(
        json.dumps({"inputs": [{"data_name": "data", "data_shape": [0, 3, 24, 24]}]})
    )
    (folder / "synset.txt").write_text("".join(f"n{number} class {number}\n" for number in range(6)))
    signature = json.loads((folder / "signature.json").read_text())
    labels = [line.strip() for line in (folder / "synset.txt").read_text().splitlines()]
    mod = module_of(mx, trained(mx, folder), 1)
    answers = []
    for body in contents()[:3]:
        h, w = signature["inputs"][0]["data_shape"][2:]
        image = mx.img.imdecode(body)
        image = mx.img.imresize(image, w, h, 1)
        image = mx.nd.transpose(image.astype("float32"), (2, 0, 1)).reshape((1, 3, h, w))
        mod.forward(mx.io.DataBatch([image / 255]))
        data = mx.nd.softmax(mod.get_outputs()[0])
        best = mx.nd.argsort(data[0], is_ascend=False)[:3].asnumpy().astype(int)
        answers.append([[labels[i], [float(data[0, int(i)].asscalar())]] for i in best])
    return answers


@program
def hosting_container_of_images(mx, folder: Path) -> list:
    """A handler with the functions ``model_fn`` and ``transform_fn``, for images in requests."""

    def model_fn(model_dir: Path):
        prefix = trained(mx, model_dir)
        return mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params", ctx=mx.cpu())

    def transform_fn(net, body: bytes) -> str:
        image = mx.image.imdecode(bytearray(body), to_rgb=1)
        image = mx.image.resize_short(image, 32, interp=1)
        image, _ = mx.image.center_crop(image, (SIZE, SIZE))
        image = mx.nd.image.normalize(mx.nd.image.to_tensor(image), mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))
        return json.dumps(net(image.expand_dims(axis=0)).softmax().asnumpy().tolist())

    net = model_fn(folder)
    return [json.loads(transform_fn(net, body))[0] for body in contents()[:4]]


@program
def classification_demo(mx, folder: Path) -> list:
    """Read a file, transform it as at evaluation, print the best classes."""
    transforms = mx.gluon.data.vision.transforms
    (folder / "dog.png").write_bytes(contents()[0])
    prefix = trained(mx, folder)
    net = mx.gluon.nn.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    transform_eval = transforms.Compose(
        [
            transforms.Resize(28, keep_ratio=True, interpolation=1),
            transforms.CenterCrop(SIZE),
            transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    )
    image = transform_eval(mx.image.imread(str(folder / "dog.png")))
    pred = net(image.expand_dims(axis=0))
    best = mx.nd.topk(pred, k=5)[0].astype("int")
    return [[int(best[i].asscalar()), [mx.nd.softmax(pred)[0][best[i]].asscalar().item()]] for i in range(5)]


@program
def classification_evaluation(mx, folder: Path) -> list:
    """A directory for each class, a loader, arrays divided over contexts, two metrics."""
    gluon = mx.gluon
    transforms = gluon.data.vision.transforms
    for number, body in enumerate(contents()):
        place = folder / "val" / f"class{number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.png").write_bytes(body)
    prefix, ctx = trained(mx, folder), [mx.cpu(0), mx.cpu(0)]
    net = gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    transform_test = transforms.Compose([transforms.Resize((SIZE, SIZE)), transforms.ToTensor()])
    dataset = gluon.data.vision.ImageFolderDataset(str(folder / "val"))
    val_data = gluon.data.DataLoader(dataset.transform_first(transform_test), batch_size=4, num_workers=2)
    top1, top3 = mx.metric.Accuracy(), mx.metric.TopKAccuracy(3)
    shown = []
    for batch in val_data:
        data = gluon.utils.split_and_load(batch[0], ctx_list=ctx, batch_axis=0, even_split=False)
        label = gluon.utils.split_and_load(batch[1], ctx_list=ctx, batch_axis=0, even_split=False)
        outputs = [net(part) for part in data]
        top1.update(label, outputs)
        top3.update(label, outputs)
        shown.append([[int(value) for value in part.asnumpy()] for part in label])
    return [dataset.synsets, shown, [float(top1.get()[1])], [float(top3.get()[1])], rounded(outputs[-1])]


def resize_short_within(mx, image, short: int, most: int, multiple: int):
    """The shorter edge as asked for, the longer one no longer than allowed, both multiples."""
    height, width, _ = image.shape
    smaller, larger = min(height, width), max(height, width)
    scale = short / smaller
    if np.round(scale * larger / multiple) * multiple > most:
        scale = np.floor(most / multiple) * multiple / larger
    new = [int(np.round(extent * scale / multiple) * multiple) for extent in (width, height)]
    return mx.image.imresize(image, *new, interp=1)


@program
def transform_of_a_yolo_test(mx, folder: Path) -> list:
    """Images as tensors of extents that a network allows, and as arrays to draw into."""
    found = []
    for name, body in zip(NAMES, contents(), strict=False):
        (folder / f"{name}.png").write_bytes(body)
        image = resize_short_within(mx, mx.image.imread(str(folder / f"{name}.png")), 40, 64, 8)
        original = image.asnumpy().astype("uint8")
        tensor = mx.nd.image.normalize(
            mx.nd.image.to_tensor(image), mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)
        )
        tensor = tensor.expand_dims(0)
        found.append([list(tensor.shape), list(original.shape), rounded(tensor[0, :, ::9, ::9])])
    return found


@program
def transform_of_an_ssd_test(mx, folder: Path) -> list:
    """An image through the transformation of a test, the network and its detections."""
    net = mx.gluon.SymbolBlock.imports(checkpoint("ssd_digits") + "-symbol.json", ["data"])
    net.load_parameters(checkpoint("ssd_digits") + "-0000.params", ctx=mx.cpu(), ignore_extra=True)
    with np.load(MODELS / "ssd_digits" / "golden.npz") as saved:
        shape = saved["b1.in.data"].shape
    found = []
    for body in contents()[:2]:
        image = mx.image.imresize(mx.image.imdecode(body, flag=int(shape[1] == 3)), shape[3], shape[2], interp=1)
        tensor = mx.nd.image.to_tensor(image).expand_dims(0)
        outputs = net(tensor)
        rows = (outputs[0] if isinstance(outputs, (list, tuple)) else outputs)[0].asnumpy()
        kept = rows[rows[:, 0] >= 0]
        kept = kept[np.argsort(-kept[:, 1], kind="stable")][:5]
        found.append([[int(row[0]), row[1:].tolist()] for row in kept])
    return found


@program
def face_verification(mx, folder: Path) -> list:
    """A pack of pairs of images: embeddings of each and of its mirror image, distances, the best
    threshold.
    """
    bodies = contents()
    pairs = [bodies[0], bodies[4], bodies[0], bodies[1], bodies[1], bodies[5], bodies[2], bodies[3]]
    (folder / "pairs.bin").write_bytes(pickle.dumps((pairs, [True, False, True, False])))
    bins, issame_list = pickle.loads((folder / "pairs.bin").read_bytes())
    data_list = [mx.nd.empty((len(bins), 3, SIZE, SIZE)) for _ in (0, 1)]
    for i, one in enumerate(bins):
        image = mx.image.imdecode(one)
        if image.shape[1] != SIZE:
            image = mx.image.resize_short(image, SIZE, interp=1)
            image = mx.image.fixed_crop(image, 0, 0, SIZE, SIZE)
        image = mx.nd.transpose(image, axes=(2, 0, 1))
        for flip in (0, 1):
            if flip == 1:
                image = mx.ndarray.flip(data=image, axis=2)
            data_list[flip][i][:] = image
    sym, arg_params, aux_params = mx.model.load_checkpoint(trained(mx, folder), 0)
    inner = sym.get_internals()
    sym = inner[[name for name in inner.list_outputs() if "flatten" in name][-1]]
    model = mx.mod.Module(symbol=sym, context=mx.cpu(), label_names=None)
    model.bind(data_shapes=[("data", (4, 3, SIZE, SIZE))], for_training=False)
    model.set_params(arg_params, aux_params, allow_missing=True, allow_extra=True)
    embeddings = []
    for data in data_list:
        parts = []
        for start in range(0, len(bins), 4):
            batch = mx.nd.slice_axis(data, axis=0, begin=start, end=start + 4)
            model.forward(mx.io.DataBatch(data=(batch / 255,), label=(mx.nd.ones((4,)),)), is_train=False)
            parts.append(model.get_outputs()[0].asnumpy())
        embeddings.append(np.concatenate(parts))
    both = embeddings[0] + embeddings[1]
    both /= np.linalg.norm(both, axis=1, keepdims=True)
    distance = np.sum((both[0::2] - both[1::2]) ** 2, axis=1)
    accuracy = [float(np.mean((distance < threshold) == issame_list)) for threshold in np.arange(2e-5, 4e-4, 5e-5)]
    return [[rows[:, ::16].tolist() for rows in embeddings], distance.tolist(), accuracy]


def packed(mx, folder: Path, labels=lambda number: float(number % 6)) -> dict:
    """A file of records and its index, as the keywords of an iterator."""
    paths = {"path_imgrec": str(folder / "val.rec"), "path_imgidx": str(folder / "val.idx")}
    write = mx.recordio.MXIndexedRecordIO(paths["path_imgidx"], paths["path_imgrec"], "w")
    for number, body in enumerate(contents()):
        write.write_idx(number, mx.recordio.pack(mx.recordio.IRHeader(0, labels(number), number, 0), body))
    write.close()
    return paths


def score(mx, folder: Path, data) -> list:
    """The metrics of a module on batches, the number of images, and all outputs."""
    sym, arg_params, aux_params = mx.model.load_checkpoint(trained(mx, folder), 0)
    label = mx.sym.var("softmax_label")
    mod = mx.mod.Module(mx.sym.SoftmaxOutput(sym, label, name="softmax"), context=[mx.cpu()])
    mod.bind(for_training=False, data_shapes=data.provide_data, label_shapes=data.provide_label)
    mod.set_params(arg_params, aux_params)
    metrics = [mx.metric.create("acc"), mx.metric.create("top_k_accuracy", top_k=5)]
    count = 0
    for batch in data:
        mod.forward(batch, is_train=False)
        for metric in metrics:
            mod.update_metric(metric, batch.label)
        count += batch.data[0].shape[0] - batch.pad
    return [count, [[m.get()[0], [float(m.get()[1])]] for m in metrics], rounded(mod.predict(data))]


@program
def score_with_an_image_iter(mx, folder: Path) -> list:
    data = mx.image.ImageIter(
        *(3, (3, SIZE, SIZE)),
        **packed(mx, folder),
        resize=28,
        mean=np.array([123.68, 116.779, 103.939]),
        std=np.array([58.4, 57.1, 57.4]),
        inter_method=1,
    )
    return score(mx, folder, data)


@program
def score_with_an_image_record_iter(mx, folder: Path) -> list:
    """The iterator of MXNet's ``score.py``: decoded and cut by its own threads."""
    data = mx.io.ImageRecordIter(
        path_imgrec=packed(mx, folder)["path_imgrec"],
        label_width=1,
        preprocess_threads=2,
        batch_size=3,
        data_shape=(3, SIZE, SIZE),
        label_name="softmax_label",
        rand_crop=False,
        rand_mirror=False,
        mean_r=123.68,
        mean_g=116.779,
        mean_b=103.939,
        scale=1 / 58.0,
    )
    return score(mx, folder, data)


@program
def records_through_a_loader(mx, folder: Path) -> list:
    """A data set of records, transformed in worker processes, and read again by key."""
    paths = packed(mx, folder, lambda number: [number, 0.5])
    transforms = mx.gluon.data.vision.transforms
    dataset = mx.gluon.data.vision.ImageRecordDataset(paths["path_imgrec"])
    ready = dataset.transform_first(transforms.Compose([transforms.CenterCrop(8), transforms.ToTensor()]))
    loader = mx.gluon.data.DataLoader(ready, batch_size=3, shuffle=False, last_batch="rollover", num_workers=1)
    batches = [
        [list(image.shape), [float(image.mean().asscalar())], label.asnumpy().tolist()] for image, label in loader
    ]
    again = mx.recordio.MXIndexedRecordIO(paths["path_imgidx"], paths["path_imgrec"], "r")
    header, body = mx.recordio.unpack(again.read_idx(5))
    return [batches, [float(v) for v in header.label], body == contents()[5], list(again.keys)]


@program
def layer_in_python_within_a_module(mx, folder: Path) -> list:
    """The softmax of MXNet's examples that is written in Python, as the last layer of a network
    that is saved, loaded and scored.
    """

    class Softmax(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], mx.nd.array(softmaxed(in_data[0].asnumpy())))

    @mx.operator.register("programs_softmax")
    class SoftmaxProp(mx.operator.CustomOpProp):
        def __init__(self):
            super().__init__(need_top_grad=False)

        def list_arguments(self):
            return ["data", "label"]

        def list_outputs(self):
            return ["output"]

        def infer_shape(self, in_shape):
            return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

        def create_operator(self, ctx, shapes, dtypes):
            return Softmax()

    fc = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
    net = mx.sym.Custom(data=fc, name="softmax", op_type="programs_softmax")
    net.save(str(folder / "net-symbol.json"))
    net = mx.sym.load(str(folder / "net-symbol.json"))
    x = np.linspace(-1, 1, 60).reshape(12, 5).astype("float32")
    batches = mx.io.NDArrayIter(x, np.arange(12) % 4, batch_size=5, label_name="softmax_label")
    mod = mx.mod.Module(net)
    mod.bind(batches.provide_data, batches.provide_label, for_training=False)
    weight = np.cos(np.arange(20)).reshape(4, 5)
    mod.set_params({"fc_weight": mx.nd.array(weight), "fc_bias": mx.nd.array([0.1, 0, -0.1, 0])}, {})
    score = mod.score(batches, ["acc", "ce"])
    mod.forward(mx.io.DataBatch([mx.nd.array(x[:5])], [mx.nd.zeros(5)]), is_train=False)
    return [
        rounded(mod.predict(batches)),
        [[name, [float(value)]] for name, value in score],
        rounded(mod.get_outputs()),
    ]


@program
def detections_against_boxes(mx, folder: Path) -> list:
    """Batches with boxes, and how well what a network might have found overlaps them."""
    rows = []
    for number, body in enumerate(contents()[:4]):
        (folder / f"{number}.png").write_bytes(body)
        boxes = [[number % 3, 0.1, 0.2, 0.5, 0.6], [1, 0.3, 0.1, 0.9, 0.8]][: 1 + number % 2]
        rows.append([2, 5, *np.ravel(boxes).tolist(), f"{number}.png"])
    batches = mx.image.ImageDetIter(2, (3, 16, 16), imglist=rows, path_root=str(folder), inter_method=1, mean=True)
    found = []
    for batch in batches:
        label = batch.label[0]
        kind, edges = label[:, :, 0:1], label[:, :, 1:5]
        shifted = mx.nd.concat(kind, mx.nd.ones_like(kind) * 0.7, edges + 0.02, dim=2)
        kept = mx.nd.contrib.box_nms(shifted, overlap_thresh=0.5, valid_thresh=0.01, coord_start=2, score_index=1)
        overlap = mx.nd.contrib.box_iou(kept[:, :, 2:6], edges, format="corner")
        found.append([list(label.shape), batch.pad, rounded(overlap[0, 0]), rounded(batch.data[0][:, :, ::7, ::7])])
    return found
