"""The models of `models.py` in torch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import models


class Basic(nn.Module):
    """Two convolutions and what goes past them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.past = past(inputs, outputs, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.past(x))


class Bottleneck(nn.Module):
    """Three convolutions, the first with the stride and all of 1x1 with a bias, as in version 1."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        inner = outputs // 4
        self.body = nn.Sequential(
            nn.Conv2d(inputs, inner, 1, stride),
            nn.BatchNorm2d(inner),
            nn.ReLU(inplace=True),
            nn.Conv2d(inner, inner, 3, 1, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(inplace=True),
            nn.Conv2d(inner, outputs, 1),
            nn.BatchNorm2d(outputs),
        )
        self.past = past(inputs, outputs, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.past(x))


def past(inputs: int, outputs: int, stride: int) -> nn.Module:
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


def resnet(name: str) -> nn.Module:
    """resnet18_v1 or resnet50_v1, with the parameters of the zoo: both list them in one order."""
    kind, sizes, counts = {
        "resnet18_v1": (Basic, (64, 128, 256, 512), (2, 2, 2, 2)),
        "resnet50_v1": (Bottleneck, (256, 512, 1024, 2048), (3, 4, 6, 3)),
    }[name]
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for stage, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        for block in range(count):
            layers.append(kind(inputs, size, 2 if stage and not block else 1))
            inputs = size
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))
    values = models.zoo_values(name)
    fill(net, values)
    return net


def fill(net: nn.Module, values: dict[str, np.ndarray]) -> None:
    """Gives layers their parameters, by kind and in order."""
    names = list(values)
    number = {name: int(re.sub(r".*(?:conv|batchnorm)(\d+)_.*|.*", r"\1", name) or -1) for name in names}
    # Convolutions of a stage are numbered in their order, which a block's other path takes part in.
    names.sort(key=lambda name: (name.rpartition("_")[0].rpartition("_")[0], number[name]))
    convolutions = iter([n for n in names if "conv" in n and n.endswith("weight")])
    norms = iter([n for n in names if n.endswith("gamma")])
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            name = next(convolutions)
            layer.weight.data.copy_(torch.from_numpy(values[name]))
            if layer.bias is not None:
                layer.bias.data.copy_(torch.from_numpy(values[name.replace("weight", "bias")]))
        elif isinstance(layer, nn.BatchNorm2d):
            name = next(norms)
            layer.weight.data.copy_(torch.from_numpy(values[name]))
            layer.bias.data.copy_(torch.from_numpy(values[name.replace("gamma", "beta")]))
            layer.running_mean.copy_(torch.from_numpy(values[name.replace("gamma", "running_mean")]))
            layer.running_var.copy_(torch.from_numpy(values[name.replace("gamma", "running_var")]))
        elif isinstance(layer, nn.Linear):
            (name,) = [n for n in names if "dense" in n and n.endswith("weight")]
            layer.weight.data.copy_(torch.from_numpy(values[name]))
            layer.bias.data.copy_(torch.from_numpy(values[name.replace("weight", "bias")]))


class Encoder(nn.Module):
    """The encoder; data of (batch, STEPS, WIDTH)."""

    def __init__(self) -> None:
        super().__init__()
        w = models.WIDTH
        sizes = {"qkv": (w, 3 * w), "out": (w, w), "up": (w, 4 * w), "down": (4 * w, w)}
        self.layers = nn.ModuleList()
        values = {key: torch.from_numpy(value) for key, value in models.encoder_values().items()}
        for number in range(models.LAYERS):
            layer = nn.ModuleDict({name: nn.Linear(*size) for name, size in sizes.items()})
            layer.update({name: nn.LayerNorm(w) for name in ("norm1", "norm2")})
            for name, part in layer.items():
                ends = ("gamma", "beta") if name.startswith("norm") else ("weight", "bias")
                part.weight.data.copy_(values[f"l{number}_{name}_{ends[0]}"])
                part.bias.data.copy_(values[f"l{number}_{name}_{ends[1]}"])
            self.layers.append(layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, steps, width = x.shape
        for layer in self.layers:
            # Heads of interleaved queries, keys and values.
            qkv = layer["qkv"](x).view(batch, steps, models.HEADS, 3, -1)
            q, k, v = (qkv[:, :, :, n].transpose(1, 2) for n in range(3))
            mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, steps, width)
            x = layer["norm1"](x + layer["out"](mixed))
            x = layer["norm2"](x + layer["down"](F.gelu(layer["up"](x))))
        return x


def model(name: str, dtype: torch.dtype) -> nn.Module:
    """A model on the GPU; convolutions in the layout that torch recommends."""
    net = (Encoder() if name == "encoder" else resnet(name)).eval().cuda().to(dtype)
    return net if name == "encoder" else net.to(memory_format=torch.channels_last)


def captured(net: Any, x: torch.Tensor) -> Any:
    """A call as one CUDA graph, over copies of its data."""
    place = x.clone()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            net(place)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = net(place)

    def call(x: torch.Tensor) -> torch.Tensor:
        place.copy_(x)
        graph.replay()
        return result

    return call
