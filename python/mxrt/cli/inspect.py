"""`mxrt inspect`: what is in a model, without running it."""

from __future__ import annotations

import argparse
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._graphs.layers import layers_of
from .._system import temporary
from ..base import MXNetError
from ..gluon.parameter_dict import named_arrays, strip_kind
from ..ndarray import NDArray
from ._errors import BAD, GOOD, ModelError, UsageError
from ._model import Files, add_model_arguments, find, load
from ._out import megabytes, print_json, shape_text, style, table
from ._shapes import data_inputs, input_shapes, needs_parameters
from ._written import written

__all__ = ["add_arguments", "main"]

_MOST_LAYERS = 10
# A parameter file of another model leaves hundreds of inputs open.
_MOST_INPUTS = 12
# The number that begins an array in a parameter file, by the version of the format.
_FORMATS = {0xF993FAC8: "V1", 0xF993FAC9: "V2", 0xF993FACA: "V3"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    add_model_arguments(parser, params=False)
    parser.add_argument(
        "--params",
        nargs="?",
        const="",
        metavar="FILE",
        help="least, greatest and mean value of each parameter, and its NaNs; with FILE of a parameter file of another "
        "name",
    )
    parser.add_argument("--layers", action="store_true", help=f"all layers, not the {_MOST_LAYERS} that compute most")
    parser.add_argument("--diff", metavar="OTHER", help="what is different in another model; status 1 if anything is")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Runs the command; 1 where the model does not run."""
    files = find(args.model, args.params or None, args.epoch)
    if args.diff is not None:
        return _diff(args, files, find(args.diff))
    report = inspected(files, args.shape, weights=args.params is not None)
    if args.json:
        print_json(report)
    else:
        print(_as_text(report, args.layers))
    return GOOD if report["runs"] else BAD


def inspected(files: Files, given: list[str], weights: bool = False) -> dict[str, Any]:
    """Collects all facts about a model, as plain data."""
    content = written(files.symbol)
    held = _parameters(files)
    report: dict[str, Any] = {
        "name": files.name,
        "symbol": files.shown(files.symbol),
        "symbol_bytes": files.symbol.stat().st_size,
        "mxnet_version": content.version,
        "parameters_file": files.shown(files.params) if files.params else None,
        "parameters_bytes": files.params.stat().st_size if files.params else 0,
        "parameters_format": _format(files.params) if files.params else None,
        "epoch": _epoch(files.params),
        "parameters": {"arrays": len(held), "numbers": sum(one.size for one in held.values())},
        "dtypes": sorted({one._dtype_name for one in held.values()}),
        "operators": {
            name: {"count": count, "supported": name not in content.unsupported, "gpu": None}
            for name, count in content.operators.most_common()
        },
        "inputs": [],
        "outputs": [],
        "layers": [],
        "notes": [],
        "runs": False,
        "why_not": None,
    }
    if weights:
        report["weights"] = [_statistics(name, array) for name, array in held.items()]
    try:
        _with_graph(report, files, held, given, content.nodes)
    except (UsageError, MXNetError, ModelError) as error:
        if isinstance(error, UsageError) and given:
            raise
        report["why_not"] = temporary.shown(str(error))
        report["runs"] = None if isinstance(error, UsageError) and files.params is not None else False
    report["runs"] = report["runs"] is None or report["runs"]
    return report


def _parameters(files: Files) -> dict[str, NDArray]:
    if files.params is None:
        return {}
    return {strip_kind(name): array for name, array in named_arrays(str(files.params)).items()}


def _with_graph(
    report: dict[str, Any],
    files: Files,
    held: Mapping[str, NDArray],
    given: list[str],
    nodes: Sequence[Mapping[str, Any]],
) -> None:
    """Adds what needs the graph, and whether the model runs."""
    graph = load(files)
    known = {name: array.shape for name, array in held.items()}
    unknown = files.params is None and needs_parameters(graph, given)
    names = data_inputs(graph, None if unknown else known)
    report["inputs"] = [{"name": name, "shape": None, "dtype": None} for name in names]
    report["outputs"] = [{"name": name, "shape": None, "dtype": None} for name in graph.list_outputs()]
    if unknown:
        raise ModelError("no parameter file was found; --params names one")
    shapes, assumed = input_shapes(files, graph, given, held=known)
    if assumed:
        report["notes"].append(assumed)
    inputs, of_graph = set(graph.list_inputs()), graph.list_arguments()
    own = {name: shape for name, shape in known.items() if name in inputs}
    spare = sorted(known.keys() - own.keys())
    if spare:
        report["notes"].append(f"{len(spare)} arrays of the parameter file are not used: {', '.join(spare[:5])}")
    argument_shapes, outputs, aux_shapes = graph.infer_shape(**{**own, **shapes})
    types = {name: held[name].dtype for name in own.keys() & set(of_graph)}
    arguments, made, aux_types = graph.infer_type_partial(**types)
    of = dict(zip(of_graph, arguments or (), strict=False))
    for one in report["inputs"]:
        one["shape"] = shapes.get(one["name"])
        one["dtype"] = _type(of.get(one["name"]))
    for one, shape, dtype in zip(report["outputs"], outputs or (), made or (None,) * len(outputs or ()), strict=False):
        one["shape"], one["dtype"] = tuple(shape), _type(dtype)
    report["layers"] = [vars(one) for one in layers_of(graph, shapes, own)]
    states = graph.list_auxiliary_states()
    inferred = {
        **dict(zip(of_graph, zip(argument_shapes or (), arguments or (), strict=False), strict=False)),
        **dict(zip(states, zip(aux_shapes or (), aux_types or (), strict=False), strict=False)),
    }
    _add_gpu(report["operators"], graph, nodes, inferred)
    report["runs"] = True


def _add_gpu(
    operators: dict[str, dict[str, Any]],
    graph: Any,
    nodes: Sequence[Mapping[str, Any]],
    inferred: Mapping[str, tuple[Any, Any]],
) -> None:
    """Adds whether a GPU has kernels for each operator and these types: yes, no, or some of its
    nodes. No GPU is needed to know it.
    """
    names = graph.list_inputs()
    if any(not inferred.get(name, (None,))[0] for name in names):
        return
    types = [(tuple(inferred[name][0]), _type(inferred[name][1])) for name in names]
    lacking = set(graph._nodes_not_on_gpu(types))
    of_operator: dict[str, list[bool]] = {}
    for node in nodes:
        if node["op"] != "null":
            of_operator.setdefault(node["op"], []).append(node["name"] not in lacking)
    for name, found in of_operator.items():
        operators[name]["gpu"] = "yes" if all(found) else "some" if any(found) else "no"


def _type(dtype: Any) -> str:
    from .._values.dtypes import dtype_name

    return "float32" if dtype is None else dtype_name(dtype)


def _format(params: Path) -> str:
    """The version of the format of a parameter file."""
    with params.open("rb") as file:
        head = file.read(28)
    number = struct.unpack_from("<I", head, 24)[0] if len(head) == 28 else 0
    return _FORMATS.get(number, "V0")


def _epoch(params: Path | None) -> int | None:
    digits = params.stem.rpartition("-")[2] if params else ""
    return int(digits) if digits.isdigit() else None


def _statistics(name: str, array: NDArray) -> dict[str, Any]:
    import numpy as np

    values = array.asnumpy()
    numbers = values.astype("float64") if values.dtype.kind != "V" else array.astype("float32").asnumpy()
    finite = numbers[np.isfinite(numbers)]
    some = finite.size > 0
    return {
        "name": name,
        "shape": array.shape,
        "dtype": array._dtype_name,
        "min": float(finite.min()) if some else None,
        "max": float(finite.max()) if some else None,
        "mean": float(finite.mean()) if some else None,
        "nan": int(np.isnan(numbers).sum()),
        "infinite": int(np.isinf(numbers).sum()),
    }


# ---- text ----------------------------------------------------------------------------------------


def _as_text(report: dict[str, Any], every_layer: bool) -> str:
    wrote = f"MXNet {report['mxnet_version']}" if report["mxnet_version"] else "a version of MXNet that says no number"
    lines = [
        style(report["name"], "bold"),
        f"  symbol      {report['symbol']} ({megabytes(report['symbol_bytes'])}), written by {wrote}",
    ]
    if report["parameters_file"]:
        counts = report["parameters"]
        lines.append(
            f"  parameters  {report['parameters_file']} ({megabytes(report['parameters_bytes'])}, format "
            f"{report['parameters_format']}): {counts['numbers']:,} numbers in {counts['arrays']} arrays of "
            f"{', '.join(report['dtypes'])}"
        )
    for title in ("inputs", "outputs"):
        for one in report[title][:_MOST_INPUTS]:
            shape = shape_text(one["shape"]) if one["shape"] else "of a shape that depends on --shape"
            lines.append(f"  {title[:-1]:10s}  {one['name']} {shape} {one['dtype'] or ''}".rstrip())
        if (more := len(report[title]) - _MOST_INPUTS) > 0:
            lines.append(f"  {'':10s}  and {more} more {title} (--json: all)")
    lines += ["", *_operators_text(report["operators"])]
    lines += _layers_text(report["layers"], every_layer)
    if "weights" in report:
        titles = ("parameter", "shape", "dtype", "min", "max", "mean", "NaN", "inf")
        rows = [
            (
                one["name"],
                shape_text(one["shape"]),
                one["dtype"],
                *("-" if one[key] is None else f"{one[key]:.4g}" for key in ("min", "max", "mean")),
                one["nan"],
                one["infinite"],
            )
            for one in report["weights"]
        ]
        lines += ["", table(titles, rows)]
    lines += [f"note: {text}" for text in report["notes"]]
    lines += ["", _verdict(report)]
    return "\n".join(lines)


def _operators_text(operators: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows = [
        (name, one["count"], "yes" if one["supported"] else "no", one["gpu"] or "?") for name, one in operators.items()
    ]
    lines = [table(("operator", "count", "CPU", "GPU"), rows)]
    if missing := [name for name, one in operators.items() if not one["supported"]]:
        lines.append(style(f"not supported: {', '.join(missing)}", "red"))
    if hosted := [name for name, one in operators.items() if one["gpu"] in ("no", "some")]:
        lines.append(f"without a kernel for GPUs: {', '.join(hosted)} (fallback=True runs them on the host)")
    return lines


def _layers_text(layers: list[dict[str, Any]], every: bool) -> list[str]:
    if not layers:
        return []
    total = sum(one["macs"] or 0 for one in layers)
    shown = layers if every else sorted(layers, key=lambda one: one["macs"] or 0, reverse=True)[:_MOST_LAYERS]
    rows = [
        (
            one["name"],
            one["operator"],
            shape_text(one["output"]) if one["output"] else "?",
            one["parameters"],
            "?" if one["macs"] is None else f"{one['macs'] / 1e6:.2f}",
            f"{100 * (one['macs'] or 0) / total:.1f}" if total else "-",
        )
        for one in shown
    ]
    what = (
        "layers"
        if every or len(layers) <= _MOST_LAYERS
        else f"the {len(shown)} layers that compute most (--layers: all)"
    )
    return ["", f"{what}; {total / 1e6:.1f} million multiplications in all:", table(_TITLES, rows)]


_TITLES = ("layer", "operator", "output", "parameters", "M mult", "%")


def _verdict(report: dict[str, Any]) -> str:
    if report["why_not"] is None:
        return style("runs: yes", "green") + " (mxrt check runs it)"
    if report["runs"]:
        return f"runs: not known yet: {report['why_not']}"
    return style("runs: no", "red") + f": {report['why_not']}"


# ---- differences ---------------------------------------------------------------------------------


def _diff(args: argparse.Namespace, files: Files, other: Files) -> int:
    """Says what is different in another model; 1 where anything is."""
    rows = differences(files, other)
    if args.json:
        print_json({"model": str(files.symbol), "other": str(other.symbol), "differences": rows})
    elif rows:
        print(table(("what", "name", files.name, f"{other.name} (other)"), [tuple(row.values()) for row in rows], ""))
    else:
        print("no difference: the same layers, and the same values of all parameters")
    return BAD if rows else GOOD


def differences(files: Files, other: Files) -> list[dict[str, Any]]:
    """Layers and parameters that differ: what, name, and what each model has."""
    rows: list[dict[str, Any]] = []

    def add(what: str, name: str, left: object, right: object) -> None:
        rows.append({"what": what, "name": name, "model": left, "other": right})

    graphs = written(files.symbol), written(other.symbol)
    left, right = ({node["name"]: node for node in graph.nodes} for graph in graphs)

    def add_sources(what: str, name: str, *sources: Sequence[str]) -> None:
        """Adds a row where those of both models differ; the others have rows of their own."""
        of_both = left.keys() & right.keys()
        kept = [[one for one in some if one.partition("[")[0] in of_both] for some in sources]
        if kept[0] != kept[1]:
            add(what, name, *(", ".join(some) or "-" for some in kept))

    for name in [*left, *(name for name in right if name not in left)]:
        if name not in left or name not in right:
            add("layer", name, _kind(left.get(name)), _kind(right.get(name)))
            continue
        one, two = left[name], right[name]
        if one["op"] != two["op"]:
            add("operator", name, _kind(one), _kind(two))
        add_sources("inputs", name, graphs[0].inputs(one), graphs[1].inputs(two))
        attrs, others = _attrs(one), _attrs(two)
        for key in sorted(attrs.keys() | others.keys()):
            if attrs.get(key) != others.get(key):
                add(f"attribute {key}", name, attrs.get(key, "-"), others.get(key, "-"))
    add_sources("outputs", "", graphs[0].outputs, graphs[1].outputs)
    values, others_values = _parameters(files), _parameters(other)
    for name in [*values, *(name for name in others_values if name not in values)]:
        one_array, two_array = values.get(name), others_values.get(name)
        if one_array is None or two_array is None or _described(one_array) != _described(two_array):
            add("parameter", name, _described(one_array), _described(two_array))
        else:
            _add_values(add, name, one_array, two_array)
    return rows


def _kind(node: Mapping[str, Any] | None) -> str:
    """The operator of a node, and what files call null."""
    return "-" if node is None else "variable" if node["op"] == "null" else node["op"]


def _attrs(node: Mapping[str, Any]) -> dict[str, str]:
    attrs = node.get("attrs") or node.get("param") or node.get("attr") or {}
    return {key: str(value) for key, value in attrs.items() if not key.startswith("__")}


def _described(array: NDArray | None) -> str:
    return "-" if array is None else f"{array._dtype_name}{shape_text(array.shape)}"


def _add_values(add: Any, name: str, one: NDArray, two: NDArray) -> None:
    import numpy as np

    left, right = one.asnumpy(), two.asnumpy()
    if left.tobytes() == right.tobytes():
        return
    if left.dtype.kind == "V":
        add("values", name, "", "differ")
        return
    worst = float(np.fmax.reduce(np.abs(left.astype("float64") - right.astype("float64")), axis=None, initial=0))
    add("values", name, f"largest {np.abs(left).max():.4g}", f"differ by at most {worst:.4g}")
