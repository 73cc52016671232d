"""Graphs that MXNet quantized or fused, here and under MXNet: integers of layers, best classes.

    python benches/quantized_graphs.py FOLDER --mxnet PYTHON [NAME or family ...] [--list]

Families: `gluoncv`, the 22 quantized graphs that GluonCV ships, with computed weights; `bert`,
GluonNLP's BERT, quantized in both modes; `fused`, the ten float32 networks of tests/models, fused
for oneDNN. PYTHON has MXNet 1.9.1, scikit-learn for its digits, and the files of GluonCV
(`pip install --no-deps gluoncv==0.10.5.post0`), which is not imported. FOLDER keeps what was made.
A graph took from half a minute to five minutes on two busy cores.

Each layer in 8 bits is given the inputs that it has in MXNet, and its integers are compared. Then
both engines compute whole graphs, and the best classes of images, pixels or boxes are compared.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import subprocess
import sys
import time
import zlib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve()
TESTS = HERE.parents[1] / "tests"
# Images or clips that weights are computed with, and those that are compared. Networks that class
# pixels or boxes class thousands of them in each image.
IMAGES, CLIPS, PIXELS, BOXES = (200, 500), (60, 100), (16, 40), (4, 8)
SENTENCES = 500
FUSED = "alexnet densenet121 inceptionv3 mobilenet1.0 mobilenetv2_1.0 resnet18_v1 resnet50_v1 resnet50_v2".split()
FUSED += ["squeezenet1.1", "vgg11_bn"]
BERT = {"smart": "channel-wise", "full": "tensor-wise"}
# The networks of the 22 graphs, by family of their names.
GLUONCV = [
    *("mobilenet1.0", "resnet50_v1"),
    *(f"ssd_{name}_voc" for name in ("300_vgg16_atrous", "512_mobilenet1.0", "512_resnet50_v1", "512_vgg16_atrous")),
    *(f"{name}_resnet101_{data}" for name in ("fcn", "psp", "deeplab") for data in ("voc", "coco")),
    *(f"simple_pose_resnet{name}" for name in ("18_v1b", "50_v1b", "50_v1d", "101_v1b", "101_v1d")),
    *("vgg16_ucf101", "inceptionv3_ucf101"),
    *(f"{name}_kinetics400" for name in ("resnet18_v1b", "resnet50_v1b", "inceptionv3")),
]
FAMILIES = {
    "gluoncv": [f"{name}_int8" for name in GLUONCV],
    "bert": [f"bert-{mode}" for mode in BERT],
    "fused": [f"fused-{name}" for name in FUSED],
}


def amounts(name: str, frames: int) -> tuple[int, int]:
    """How many images or clips a graph is fitted to, and how many others are compared."""
    if name.startswith("ssd"):
        return BOXES
    if name.startswith(("fcn", "psp", "deeplab", "simple_pose")):
        return PIXELS
    return CLIPS if frames > 1 else IMAGES


def shipped(name: str) -> dict[str, Any]:
    """A quantized graph of GluonCV: a file, or a compressed text in its module."""
    package = importlib.util.find_spec("gluoncv")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("this interpreter has no GluonCV: pip install --no-deps gluoncv==0.10.5.post0")
    folder = Path(package.submodule_search_locations[0]) / "model_zoo" / "quantized"
    file = folder / f"{name}-symbol.json"
    if file.exists():
        return json.loads(file.read_text())
    for node in ast.parse((folder / "quantized.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            texts = ast.literal_eval(node.value)
            if name in texts:
                return json.loads(zlib.decompress(b64decode(texts[name])))
    raise SystemExit(f"GluonCV in {folder.parents[1]} has no graph {name}")


def prepared(name: str) -> tuple[dict[str, Any], int, int]:
    """A graph with its image size and the frames of a clip.

    Networks that label each pixel take 64 pixels instead of 480, Inception 128 instead of 299. A
    detector also gives the classes of its boxes.
    """
    graph = shipped(name)
    size = 128 if name.startswith("inception") else int(name.split("_")[1]) if name.startswith("ssd") else 64
    frames = 1
    for at, node in enumerate(graph["nodes"]):
        attrs = node.get("attrs", {})
        if node["op"] == "_contrib_BilinearResize2D":
            for side in ("height", "width"):
                attrs[side] = str(int(attrs[side]) * size // 480)
        elif attrs.get("kernel") == "(8, 8)":
            attrs["kernel"] = "(2, 2)"
        elif node["op"] == "Reshape" and attrs["shape"].startswith("(-1, ") and attrs["shape"].count(",") == 2:
            frames = int(attrs["shape"].split(",")[1])
        elif node["name"].endswith(("weight", "bias")):
            attrs.pop("__shape__", None)
        elif node["op"] == "softmax":
            graph["heads"].append([at, 0, 0])
    return graph, size, frames


def pictures(first: int, last: int, size: int, frames: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Digits as noisy images or clips, whose frames move by two pixels; their ink; their labels.

    The first channel is 0: oneDNN does not multiply int8 data by 127 without VNNI.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.images))[first:last]
    places = np.arange(size) * 8 // size
    inks = digits.images[order][:, places][:, :, places].astype(np.float32) / 16
    moved = np.stack([np.roll(inks, 2 * frame, 2) for frame in range(frames)], 1).reshape(-1, 1, size, size)
    images = 4 * moved - 2 + np.random.RandomState(first).normal(0, 0.2, (len(moved), 3, size, size))
    images[:, 0] = 0
    return images.clip(-2.1, 2.6).astype(np.float32), inks, digits.target[order]


def make(mx: Any, folder: Path, name: str) -> None:
    """Writes the files of a graph and its inputs, under MXNet."""
    if name.startswith("bert"):
        make_bert(mx, folder, name)
        return
    if name.startswith("fused"):
        symbol, arguments, states = mx.model.load_checkpoint(str(folder / name.removeprefix("fused-")), 0)
        symbol = symbol.optimize_for("MKLDNN")
        assert "_sg_mkldnn_conv" in symbol.tojson()
        mx.model.save_checkpoint(str(folder / name), 0, symbol, arguments, states)
        np.savez(folder / f"{name}-inputs.npz", data=np.load(folder / f"{name.removeprefix('fused-')}-input.npy"))
        return
    from quantized_weights import fit

    graph, size, frames = prepared(name)
    (folder / f"{name}-symbol.json").write_text(json.dumps(graph))
    fitted, tested = amounts(name, frames)
    mx.nd.save(str(folder / f"{name}-0000.params"), fit(mx, graph, *pictures(0, fitted, size, frames)))
    images, _, labels = pictures(fitted, fitted + tested, size, frames)
    np.savez(folder / f"{name}-inputs.npz", data=images, labels=labels)


def make_bert(mx: Any, folder: Path, name: str) -> None:
    """Quantizes a BERT as GluonNLP's scripts do, and writes sentences."""
    sys.path.insert(0, str(TESTS / "precision"))
    import bert_blocks

    mode = name.removeprefix("bert-")
    made = bert_blocks.batches(5 + SENTENCES // bert_blocks.BATCH)
    net = mx.contrib.quantization.quantize_net_v2(
        bert_blocks.make(mx),
        quantize_mode=mode,
        quantize_granularity=BERT[mode],
        calib_data=bert_blocks.iterator(mx, made[:5]),
        calib_mode="naive",
    )
    net(*[mx.nd.array(array) for array in made[-1]])
    net.export(str(folder / name), epoch=0)
    parts = [np.concatenate(arrays) for arrays in zip(*made[5:], strict=True)]
    np.savez(folder / f"{name}-inputs.npz", **{f"data{i}": part for i, part in enumerate(parts)})


def given(folder: Path, name: str) -> dict[str, np.ndarray]:
    """The inputs of a graph."""
    with np.load(folder / f"{name}-inputs.npz") as arrays:
        return {key: arrays[key] for key in arrays if key != "labels"}


def results(mx: Any, folder: Path, name: str) -> list[np.ndarray]:
    """Each output of a graph, for all inputs."""
    inputs = given(folder, name)
    prefix = str(folder / name)
    net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", list(inputs), f"{prefix}-0000.params")
    parts = next(n for n in (50, 4) if len(next(iter(inputs.values()))) % n == 0)
    outputs = []
    for part in zip(*[np.split(array, parts) for array in inputs.values()], strict=True):
        made = net(*[mx.nd.array(array) for array in part])
        outputs.append([array.asnumpy() for array in (made if isinstance(made, list | tuple) else [made])])
    return [np.concatenate(arrays) for arrays in zip(*outputs, strict=True)]


def in_8_bits(node: dict[str, Any]) -> bool:
    """Whether a node computes or makes 8-bit integers."""
    return "_contrib_quantize" in node["op"] or str(node.get("attrs", {}).get("quantized")).lower() == "true"


def alone(mx: Any, graph: dict[str, Any], at: int) -> Any:
    """A symbol of one node, whose inputs are variables with names of their places."""
    node = graph["nodes"][at]
    count = len(node["inputs"])
    nodes = [{"op": "null", "name": f"in{i}", "inputs": []} for i in range(count)]
    nodes.append({**node, "inputs": [[i, 0, 0] for i in range(count)]})
    whole = {"nodes": nodes, "arg_nodes": list(range(count)), "heads": [[count, 0, 0]], "attrs": graph["attrs"]}
    return mx.sym.load_json(json.dumps({**whole, "node_row_ptr": list(range(count + 2))}))


def layers(mx: Any, folder: Path, name: str) -> None:
    """Saves what the layers in 8 bits read and make for the first inputs, under MXNet."""
    graph = json.loads((folder / f"{name}-symbol.json").read_text())
    nodes = graph["nodes"]
    wanted = {(at, 0) for at, node in enumerate(nodes) if in_8_bits(node)}
    wanted |= {(i, n) for at, _ in wanted for i, n, *_ in nodes[at]["inputs"] if nodes[i]["op"] != "null"}
    inner = mx.sym.load(str(folder / f"{name}-symbol.json")).get_internals()
    keys, found = sorted(wanted), []
    for at, number in keys:
        outputs = alone(mx, graph, at).get_internals().list_outputs()[len(nodes[at]["inputs"]) :]
        found.append(inner[outputs[number]])
    group = mx.sym.Group(found)
    saved = mx.nd.load(str(folder / f"{name}-0000.params"))
    values = {key.partition(":")[2]: array for key, array in saved.items()}
    inputs = given(folder, name)
    with np.load(folder / f"{name}-inputs.npz") as arrays:
        frames = len(inputs["data"]) // len(arrays["labels"]) if "labels" in arrays else 1
    inputs = {key: array[: max(frames, 2)] for key, array in inputs.items()}
    values |= {key: mx.nd.array(array) for key, array in inputs.items()}
    bound = group.bind(
        mx.cpu(),
        {key: values[key] for key in group.list_arguments()},
        aux_states={key: values[key] for key in group.list_auxiliary_states()},
        grad_req="null",
    )
    made = [array.asnumpy() for array in bound.forward(is_train=False)]
    kept = {f"{i}.{n}": array for (i, n), array in zip(keys, made, strict=True)}
    np.savez(folder / f"{name}-layers.npz", **kept, **{f"in.{key}": array for key, array in inputs.items()})


def compared(mx: Any, folder: Path, name: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Each layer in 8 bits with its operator: the results here and MXNet's, of MXNet's inputs."""
    graph = json.loads((folder / f"{name}-symbol.json").read_text())
    nodes = graph["nodes"]
    saved = mx.nd.load(str(folder / f"{name}-0000.params"))
    values = {key.partition(":")[2]: array for key, array in saved.items()}
    with np.load(folder / f"{name}-layers.npz") as arrays:
        kept = dict(arrays)
    for at, node in enumerate(nodes):
        if not in_8_bits(node):
            continue
        symbol = alone(mx, graph, at)
        inputs = {}
        for place, (i, n, *_) in enumerate(node["inputs"]):
            if nodes[i]["op"] != "null":
                inputs[f"in{place}"] = mx.nd.array(kept[f"{i}.{n}"], dtype=kept[f"{i}.{n}"].dtype)
            elif f"in.{nodes[i]['name']}" in kept:
                inputs[f"in{place}"] = mx.nd.array(kept[f"in.{nodes[i]['name']}"])
            else:
                inputs[f"in{place}"] = values[nodes[i]["name"]]
        states = {key: inputs.pop(key) for key in symbol.list_auxiliary_states()}
        made = symbol.bind(mx.cpu(), inputs, aux_states=states, grad_req="null").forward()[0].asnumpy()
        yield node["name"], made, kept[f"{at}.0"]


def best(arrays: list[np.ndarray]) -> np.ndarray:
    """The best class of each image or pixel, or of each box of a detector."""
    return arrays[-1].argmax(-1) if len(arrays) > 2 else arrays[0].argmax(1)


def under_mxnet(python: str, folder: Path, name: str) -> None:
    """Makes a graph in a child with MXNet, and keeps MXNet's results."""
    command = [python, str(HERE), str(folder), name, "--task"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: MXNet's part failed:\n{done.stdout[-3000:]}")


def run_task(folder: Path, name: str) -> None:
    """Does the work of a child: files, results, and layers where there are any in 8 bits."""
    import mxnet as mx

    make(mx, folder, name)
    if not name.startswith("fused"):
        layers(mx, folder, name)
    arrays = results(mx, folder, name)
    np.savez(folder / f"{name}-mxnet.npz", **{str(i): array for i, array in enumerate(arrays)})


def layer_cells(mx: Any, folder: Path, name: str) -> str:
    """How many layers give MXNet's results, and how far integers of the others are from them.

    Prints the layers that differ. Results in float32 may differ by 1e-5 of the largest.
    """
    total = equal = unequal = integers = farthest = 0
    for layer, made, wanted in compared(mx, folder, name):
        total += 1
        distance = abs(made.astype(np.float64) - wanted)
        real = made.dtype == np.float32
        if distance.max() <= (1e-5 * abs(wanted).max() if real else 0):
            equal += 1
        elif not real:
            far, part = int(distance.max()), (distance > 0).mean()
            print(f"    {layer}: {part:.2%} of its integers differ, by {far} at most", flush=True)
            farthest = max(farthest, far)
        if not real:
            unequal, integers = unequal + int((distance > 0).sum()), integers + distance.size
    return f"{equal} of {total} | " + (f"{unequal / integers:.2%}, by {farthest}" if unequal else "")


def report(folder: Path, python: str, name: str) -> str:
    """The row of a graph."""
    import mxrt as mx

    if not (folder / f"{name}-mxnet.npz").exists():
        if name.startswith("fused"):
            command = [sys.executable, str(TESTS / "models" / "make_zoo.py"), str(folder), name.removeprefix("fused-")]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        under_mxnet(python, folder, name)
    ours = results(mx, folder, name)
    with np.load(folder / f"{name}-mxnet.npz") as arrays:
        theirs = [arrays[key] for key in arrays]
    same = f"{(best(ours) == best(theirs)).mean():.1%} of {best(ours).size:,}"
    if name.startswith("fused"):
        far = max(float(abs(a - b).max() / abs(b).max()) for a, b in zip(ours, theirs, strict=True))
        return f"| {name} | {same} | {far:.1e} |"
    with np.load(folder / f"{name}-inputs.npz") as arrays:
        labels = arrays.get("labels")
    right = ""
    if labels is not None and labels.shape == best(ours).shape:
        right = f"{(best(theirs) == labels).mean():.1%} / {(best(ours) == labels).mean():.1%}"
    return f"| {name} | {layer_cells(mx, folder, name)} | {same} | {right} |"


def main() -> None:
    """Reads the command line, and reports each graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="graphs or families (all)")
    parser.add_argument("--mxnet", metavar="PYTHON")
    parser.add_argument("--list", action="store_true", help="print the names, and end")
    parser.add_argument("--task", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = [name for given in options.names or FAMILIES for name in FAMILIES.get(given, [given])]
    if options.list:
        print("\n".join(names))
        return
    unknown = set(names).difference(*FAMILIES.values())
    if unknown:
        parser.error(f"unknown graphs: {', '.join(sorted(unknown))}; --list prints the names")
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.task:
        run_task(options.folder, names[0])
        return
    if not options.mxnet:
        parser.error("--mxnet PYTHON is needed: an interpreter with MXNet 1.9.1, scikit-learn and GluonCV's files")
    rows = []
    for name in names:
        start = time.monotonic()
        rows.append(report(options.folder, options.mxnet, name))
        print(f"{rows[-1]}  {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
