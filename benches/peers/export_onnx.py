#!/usr/bin/env python3
"""Write models as ONNX: `export_onnx.py FOLDER [NAME ...]`, resnet18_v1 when no name is given.

FOLDER holds NAME-symbol.json, NAME-0000.params and NAME-input.npy; the graph is translated node by node, for the
operators that the zoo's convolutional networks have. Needs the onnx package only.
"""

from __future__ import annotations

import ast
import json
import struct
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def read_params(path: Path) -> dict[str, np.ndarray]:
    """float32 arrays of a `.params` file of version 2."""
    data = path.read_bytes()
    _, _, count = struct.unpack_from("<QQQ", data, 0)
    at, arrays = 24, []
    for _ in range(count):
        magic, _, ndim = struct.unpack_from("<IiI", data, at)
        assert magic == 0xF993FAC9, f"{path}: not a dense array of version 2"
        shape = struct.unpack_from(f"<{ndim}q", data, at + 12)
        at += 12 + 8 * ndim
        _, _, dtype = struct.unpack_from("<iii", data, at)
        assert dtype == 0, f"{path}: float32 expected"
        arrays.append(np.frombuffer(data, "<f4", int(np.prod(shape)), at + 12).reshape(shape))
        at += 12 + arrays[-1].nbytes
    at += 8
    names = []
    for _ in range(count):
        (length,) = struct.unpack_from("<Q", data, at)
        names.append(data[at + 8 : at + 8 + length].decode().split(":", 1)[1])
        at += 8 + length
    return dict(zip(names, arrays, strict=True))


def numbers(attrs: dict[str, str], key: str, default: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(ast.literal_eval(attrs[key])) if key in attrs else default


def windows(attrs: dict[str, str]) -> dict[str, object]:
    """Kernel, strides and padding as ONNX writes them."""
    pad = numbers(attrs, "pad", (0, 0))
    return {
        "kernel_shape": numbers(attrs, "kernel", ()),
        "strides": numbers(attrs, "stride", (1, 1)),
        "pads": pad + pad,
    }


def translate(op: str, attrs: dict[str, str], inputs: list[str], output: str) -> list[onnx.NodeProto]:
    """The ONNX nodes of one MXNet node."""
    if op == "Convolution":
        extra = {"group": int(attrs.get("num_group", 1)), "dilations": numbers(attrs, "dilate", (1, 1))}
        return [helper.make_node("Conv", inputs, [output], **windows(attrs), **extra)]
    if op == "BatchNorm":
        return [helper.make_node("BatchNormalization", inputs, [output], epsilon=float(attrs["eps"]))]
    if op == "clip":
        low, high = output + "_low", output + "_high"
        bounds = [
            helper.make_node("Constant", [], [name], value_float=float(attrs[key]))
            for name, key in ((low, "a_min"), (high, "a_max"))
        ]
        return [*bounds, helper.make_node("Clip", [*inputs, low, high], [output])]
    if op == "Concat":
        return [helper.make_node("Concat", inputs, [output], axis=int(attrs["dim"]))]
    if op == "Flatten":
        return [helper.make_node("Flatten", inputs, [output])]
    if op == "Dropout":
        return [helper.make_node("Identity", inputs, [output])]
    if op == "Activation" and attrs["act_type"] == "relu":
        return [helper.make_node("Relu", inputs, [output])]
    if op == "Pooling" and attrs["global_pool"] == "True" and attrs["pool_type"] == "avg":
        return [helper.make_node("GlobalAveragePool", inputs, [output])]
    if op == "Pooling" and attrs["pool_type"] in ("max", "avg") and attrs["global_pool"] == "False":
        extra = {"ceil_mode": int(attrs["pooling_convention"] == "full")}
        if attrs["pool_type"] == "max":
            return [helper.make_node("MaxPool", inputs, [output], **windows(attrs), **extra)]
        extra["count_include_pad"] = int(attrs.get("count_include_pad", "True") == "True")
        return [helper.make_node("AveragePool", inputs, [output], **windows(attrs), **extra)]
    if op == "elemwise_add":
        return [helper.make_node("Add", inputs, [output])]
    if op == "FullyConnected":
        flat = output + "_flat"
        return [
            helper.make_node("Flatten", inputs[:1], [flat]),
            helper.make_node("Gemm", [flat, *inputs[1:]], [output], transB=1),
        ]
    raise SystemExit(f"no translation of {op} {attrs}")


def export(folder: Path, name: str) -> None:
    graph = json.loads((folder / f"{name}-symbol.json").read_text())
    params = read_params(folder / f"{name}-0000.params")
    image = np.load(folder / f"{name}-input.npy", mmap_mode="r").shape[1:]
    names = [node["name"] for node in graph["nodes"]]
    nodes: list[onnx.NodeProto] = []
    for node in graph["nodes"]:
        if node["op"] != "null":
            inputs = [names[i] for i, _, _ in node["inputs"]]
            if node["op"] == "BatchNorm" and node.get("attrs", {}).get("fix_gamma", "True") == "True":
                params[inputs[1]] = np.ones_like(params[inputs[1]])
            nodes += translate(node["op"], node.get("attrs", {}), inputs, node["name"])
    last = names[graph["heads"][0][0]]
    built = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, ["N", *image])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["N", 1000])],
        [numpy_helper.from_array(value, key) for key, value in params.items()],
    )
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / f"{name}.onnx"))


def main() -> None:
    for name in sys.argv[2:] or ["resnet18_v1"]:
        export(Path(sys.argv[1]), name)


if __name__ == "__main__":
    main()
