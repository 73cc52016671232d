"""Operators that enlarge or normalise images as ONNX, for segmentation networks and detectors."""

from __future__ import annotations

import numpy as np

from .onnx_writer import Attrs, Rule, Untranslatable, Writer

__all__ = ["RULES"]


def _deconvolution(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    if not attrs.word("layout", "None").startswith(("None", "NC")):
        raise Untranslatable(f"layout {attrs['layout']}")
    if attrs.numbers("target_shape", ()):
        raise Untranslatable("target_shape, which overrides pad and adj")
    kernel = attrs.numbers("kernel", ())
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    pad = attrs.numbers("pad", zeros)
    w.add(
        "ConvTranspose",
        inputs,
        name,
        kernel_shape=kernel,
        strides=attrs.numbers("stride", ones),
        pads=pad + pad,
        dilations=attrs.numbers("dilate", ones),
        output_padding=attrs.numbers("adj", zeros),
        group=attrs.integer("num_group", 1),
    )


def _resized(w: Writer, name: str, data: str, **attributes: str) -> None:
    """Resizes to the extents that the graph has there."""
    sizes = w.constant(f"{name}#sizes", np.array(w.found[name], "int64"))
    w.add("Resize", [data, "", "", sizes], name, **attributes)


def _bilinear(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    corners = attrs.flag("align_corners", True)
    # One pixel has no corners to align: MXNet then reads the first one.
    if corners and 1 in w.found[name][2:]:
        raise Untranslatable("align_corners where one pixel is made")
    mode = "align_corners" if corners else "half_pixel"
    _resized(w, name, inputs[0], mode="linear", coordinate_transformation_mode=mode)


def _upsampling(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    if attrs.word("sample_type") != "nearest" or len(inputs) != 1:
        raise Untranslatable("only sample_type nearest of one input")
    _resized(
        w, name, inputs[0], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )  # fmt: skip


def _l2_normalization(w: Writer, name: str, attrs: Attrs, inputs: list[str]) -> None:
    axes = {"channel": (1,), "instance": tuple(range(1, len(w.found[name])))}.get(attrs.word("mode", "instance"))
    if axes is None:
        raise Untranslatable(f"mode {attrs['mode']}")
    squares = w.add("Mul", [inputs[0], inputs[0]], f"{name}#squares")
    axis = w.constant(f"{name}#axes", np.array(axes, "int64"))
    total = w.add("ReduceSum", [squares, axis], f"{name}#total", keepdims=1)
    total = w.add("Add", [total, w.scalar(f"{name}#eps", attrs.real("eps", 1e-10))], f"{name}#bounded")
    w.add("Div", [inputs[0], w.add("Sqrt", [total], f"{name}#root")], name)


RULES: dict[str, Rule] = {
    "Deconvolution": _deconvolution,
    "L2Normalization": _l2_normalization,
    "UpSampling": _upsampling,
    "_contrib_BilinearResize2D": _bilinear,
}
