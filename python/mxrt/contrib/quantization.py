"""Makes models of 8-bit integers out of float32 ones.

The results run here and in MXNet 1.9.1. What differs from MXNet: what it cannot compute on integers
stays in float32 instead of failing when the model is bound. These are convolutions and poolings of
one spatial axis, convolutions with groups that are not fused, poolings without a kernel, and
BatchNorm along another axis than the second.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import ndarray
from .._system import temporary
from ..context import Context, cpu
from ..io import DataBatch, DataIter
from ..module import Module
from ..ndarray import NDArray
from ..ndarray._handles import handled as _handled
from ..symbol import Group, Symbol, load
from . import _fuse_graph, _quantize_graph
from ._calibrated_blocks import Batches, described_inputs, exported, renamed
from ._calibration import LayerHistogramCollector as _LayerHistogramCollector
from ._calibration import LayerOutputMinMaxCollector as _LayerOutputMinMaxCollector
from ._calibration import best_threshold_of as _get_optimal_threshold  # noqa: F401 (programs call it)
from ._calibration import combine_histogram
from ._calibration import smooth as _smooth_distribution  # noqa: F401
from ._calibration import thresholds as _get_optimal_thresholds

__all__ = [
    "calib_graph",
    "combine_histogram",
    "quantize_graph",
    "quantize_model",
    "quantize_model_mkldnn",
    "quantize_net",
    "quantize_net_v2",
]

Params = dict[str, NDArray]


def _check(quantized_dtype: str, quantize_mode: str, granularity: str, ctx: Any, **lists: Any) -> None:
    choices = [
        ("quantized_dtype", quantized_dtype, ("int8", "uint8", "auto")),
        ("quantize_mode", quantize_mode, ("smart", "full")),
        ("quantize_granularity", granularity, ("tensor-wise", "channel-wise")),
    ]
    for name, value, known in choices:
        if value not in known:
            raise ValueError(f"unknown {name} {value} received, expected " + ", ".join(f"`{k}`" for k in known))
    _check_context(ctx)
    check_names(**lists)


def _check_context(ctx: Any) -> None:
    if not isinstance(ctx, Context):
        raise ValueError(f"currently only supports single ctx, while received {ctx}")


def check_names(**lists: Any) -> None:
    """ValueError for an argument that is no list of names, a text for example."""
    for name, value in lists.items():
        if value is not None and not isinstance(value, list):
            raise ValueError(f"{name} must be a list of strings, while received type {type(value)}")
        other = next((one for one in value or [] if not isinstance(one, str)), None)
        if other is not None:
            raise ValueError(f"{name} must be a list of strings, while it holds {other!r} of type {type(other)}")


def _load_symbol(sym: str | Symbol) -> Symbol:
    if isinstance(sym, Symbol):
        return sym
    if isinstance(sym, str | os.PathLike):
        return load(os.fspath(sym))
    raise ValueError(f"sym must be a Symbol or the path of a symbol file, while received type {type(sym)}")


def _quantize_symbol(
    sym: Symbol,
    ctx: Context,
    excluded_symbols: list[str] | None = None,
    excluded_operators: list[str] | None = None,
    offline_params: Iterable[str] | None = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
) -> tuple[Symbol, list[str]]:
    """The quantized symbol, and the names of the float32 values that calibrate it.

    Parameters in `offline_params` become variables that hold integers.
    """
    _check(
        quantized_dtype, quantize_mode, quantize_granularity, ctx,
        excluded_sym_names=excluded_symbols, excluded_op_names=excluded_operators,
    )  # fmt: skip
    heads, names = _quantize_graph.quantize(
        _quantize_graph.read(sym),
        set(excluded_symbols or []),
        set(excluded_operators or []),
        set(offline_params or []),
        quantized_dtype,
        quantize_mode,
        quantize_granularity,
    )
    return _quantize_graph.write(heads), names


def _calibrate_quantized_sym(qsym: Symbol, th_dict: dict[str, tuple[float, float]]) -> Symbol:
    heads = _quantize_graph.read(qsym)
    _quantize_graph.calibrate(heads, th_dict)
    return _quantize_graph.write(heads)


def _quantize_params(qsym: Symbol, params: Params, th_dict: Mapping[str, tuple[float, float]]) -> Params:
    """The parameters that a quantized symbol takes: integers with their ranges, and what stays.

    `th_dict` has ranges of outputs, for arguments that hold one.
    """
    made: Params = {}
    fixed = _quantize_graph.fixed_gammas(_quantize_graph.read(qsym))
    for name in qsym.list_arguments():
        original = name.removesuffix("_quantize")
        if name.endswith("_quantize") and original in params:
            param = params[original].astype("float32")
            made[name], made[f"{name}_min"], made[f"{name}_max"] = ndarray.contrib.quantize(
                param, ndarray.min(param), ndarray.max(param), out_type="int8"
            )
        elif name in params:
            made[name] = ndarray.ones_like(params[name]) if name in fixed else params[name]
        elif name not in made and name.endswith(("_min", "_max")) and name[:-4] in th_dict:
            made[name] = ndarray.array([th_dict[name[:-4]][name.endswith("_max")]])
    return made


def _collector(calib_mode: str, quantized_dtype: str, names: list[str], own: Any, logger: Any) -> Any:
    """The collector of the values; None where nothing is calibrated."""
    match calib_mode:
        case "none" | None:
            return None
        case "naive":
            return _LayerOutputMinMaxCollector(quantized_dtype, set(names), logger)
        case "entropy":
            return _LayerHistogramCollector(include_layer=set(names), logger=logger)
        case "customize" if own is not None:
            return own
    raise ValueError(f"unknown calibration mode {calib_mode} received, expected `none`, `naive`, or `entropy`")


def _ranges(collector: Any, calib_mode: str, quantized_dtype: str) -> dict[str, tuple[float, float]]:
    if calib_mode == "entropy":
        return _get_optimal_thresholds(collector.hist_dict, quantized_dtype)
    return dict(collector.min_max_dict)


def _collect(
    sym: Symbol,
    names: list[str],
    params: tuple[Params, Params],
    data: Any,  # a DataIter, which says what its batches have
    described: Sequence[Any],  # what a batch has, under the names of the network
    label_names: Any,
    ctx: Context,
    limit: int | None,
    collector: Any,
) -> int:
    """Shows the collector the values with these names; returns the number of samples."""
    if limit is not None and limit < 1:
        raise ValueError(f"num_calib_examples={limit} must be at least 1, or None for all")
    internals = sym.get_internals()
    wanted = set(names)
    shown = [value for value in internals if value.list_outputs()[0] in wanted]
    # MXNet shows an input to a collector as often as it is read, which a histogram counts.
    nodes = _quantize_graph.order(_quantize_graph.read(sym))
    reads = Counter(source.name for node in nodes for source, _ in node.inputs if source.op == "null")
    # What is shown may need fewer inputs than the network.
    part = Group(shown or list(sym))
    inputs = set(part.list_inputs())
    arrays = [place for place, one in enumerate(described) if one[0] in inputs]
    provided = data.provide_label if label_names else []
    labels = [place for place, one in enumerate(provided) if one[0] in inputs]
    module = Module(
        part,
        data_names=[described[place][0] for place in arrays],
        label_names=[provided[place][0] for place in labels] or None,
        context=ctx,
    )
    module.bind(
        for_training=False,
        data_shapes=[described[place] for place in arrays],
        label_shapes=[provided[place] for place in labels] or None,
    )
    module.set_params(*params, allow_missing=False, allow_extra=True, force_init=True)
    examples = 0
    for batch in data:
        kept = [batch.data[place] for place in arrays]
        kept_labels = [batch.label[place] for place in labels] or None
        module.forward(DataBatch(data=kept, label=kept_labels, pad=batch.pad), is_train=False)
        # Where nothing is calibrated the model runs all the same, so that wrong data are found.
        for value, array in zip(shown, module.get_outputs() if shown else [], strict=True):
            seen = _handled(array)  # named, so that its handle is valid as long as collect() runs
            name = value.list_outputs()[0]
            for _ in range(reads.get(name, 1)):
                collector.collect(name, seen)
        examples += data.batch_size
        if limit is not None and examples >= limit:
            break
    if not examples:
        raise ValueError("calib_data gave no batch; give data of at least one batch, and reset() an iterator before")
    return examples


def quantize_model(
    sym: str | Symbol,
    arg_params: Params,
    aux_params: Params,
    data_names: Sequence[str] = ("data",),
    label_names: Iterable[str] | None = ("softmax_label",),
    ctx: Context | None = None,
    excluded_sym_names: list[str] | None = None,
    excluded_op_names: list[str] | None = None,
    calib_mode: str = "entropy",
    calib_data: DataIter | None = None,
    num_calib_examples: int | None = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: logging.Logger | None = None,
) -> tuple[Symbol, Params, Params]:
    """The symbol and the parameters of a model on 8-bit integers.

    `calib_mode` says where ranges come from: `naive` takes the least and largest value of each
    layer for `calib_data`, `entropy` clips so that least is lost, `none` finds ranges when the
    model runs. `quantize_mode` is `smart`, which quantizes operators between quantized layers, or
    `full`, all that can be. `quantized_dtype` is that of activations: int8, uint8 or auto (uint8
    where no value is negative). Nodes and operators can be excluded by name.

    Raises ValueError for an unknown mode, data that are missing, empty, or give NaN.
    """
    ctx = ctx or cpu()
    sym = _load_symbol(sym)
    qsym, names = _quantize_symbol(
        sym, ctx, excluded_sym_names, excluded_op_names, arg_params, quantized_dtype, quantize_mode,
        quantize_granularity,
    )  # fmt: skip
    collector = _collector(calib_mode, quantized_dtype, names, None, logger)
    ranges: dict[str, tuple[float, float]] = {}
    if collector is not None:
        if not isinstance(calib_data, DataIter):
            what = "must be provided" if calib_data is None else f"must be a DataIter, not {type(calib_data)},"
            raise ValueError(f"calib_data {what} when calib_mode={calib_mode}")
        labels = None if label_names is None else list(label_names)
        # Refuses names that the network does not have.
        Module(sym, data_names=data_names, label_names=labels, context=ctx)
        provided: Any = calib_data  # a DataIter has these where a subclass sets them
        given = [one[0] for one in provided.provide_data]
        if sorted(given) != sorted(data_names):
            raise ValueError(f"calib_data has {given}, but data_names are {list(data_names)}; give the same names")
        examples = _collect(
            sym, names, (arg_params, aux_params), calib_data, provided.provide_data, labels, ctx,
            num_calib_examples, collector,
        )  # fmt: skip
        if logger:
            logger.info(f"Collected the outputs of {len(names)} layers for {examples} examples")
        ranges = _ranges(collector, calib_mode, quantized_dtype)
        qsym = _calibrate_quantized_sym(qsym, ranges)
    return qsym, _quantize_params(qsym, arg_params, ranges), aux_params


def quantize_model_mkldnn(
    sym: str | Symbol,
    arg_params: Params,
    aux_params: Params,
    data_names: Sequence[str] = ("data",),
    label_names: Iterable[str] | None = ("softmax_label",),
    ctx: Context | None = None,
    excluded_sym_names: list[str] | None = None,
    excluded_op_names: list[str] | None = None,
    calib_mode: str = "entropy",
    calib_data: DataIter | None = None,
    num_calib_examples: int | None = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: logging.Logger | None = None,
) -> tuple[Symbol, Params, Params]:
    """:func:`quantize_model` with layers fused as MXNet's backend of oneDNN fuses them: BatchNorm,
    sum and relu become part of a convolution, whose weights stay float32 in the file.
    """
    ctx = ctx or cpu()
    _check_context(ctx)
    if ctx.device_type != "cpu":
        raise ValueError("quantize_model_mkldnn only supports cpu; quantize_model makes graphs without fused nodes")
    sym = _fused(_load_symbol(sym))
    qsym, args, auxs = quantize_model(
        sym, arg_params, aux_params, data_names, label_names, ctx, excluded_sym_names, excluded_op_names,
        calib_mode, calib_data, num_calib_examples, quantized_dtype, quantize_mode, quantize_granularity, logger,
    )  # fmt: skip
    return _joined(qsym), args, auxs


def _fused(sym: Symbol) -> Symbol:
    return _quantize_graph.write(_fuse_graph.fuse(_quantize_graph.read(sym)))


def _joined(qsym: Symbol) -> Symbol:
    heads = _fuse_graph.finish(_quantize_graph.read(qsym))
    for node in _quantize_graph.order(heads):
        has_range = "min_calib_range" in node.attrs or node.flag("enable_float_output")
        if node.flag("channel_wise_quantize") and not has_range:
            raise ValueError(
                f"quantize_granularity='channel-wise': '{node.name}' has no calibrated range, and its sums, with a "
                "scale for each channel, have none of their own. Give calib_data with calib_mode='naive' or 'entropy', "
                "or use quantize_granularity='tensor-wise'"
            )
    return _quantize_graph.write(heads)


def quantize_graph(
    sym: str | Symbol,
    arg_params: Params,
    aux_params: Params,
    ctx: Context | None = None,
    excluded_sym_names: list[str] | None = None,
    excluded_op_names: list[str] | None = None,
    calib_mode: str = "entropy",
    quantized_dtype: str = "int8",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    LayerOutputCollector: Any = None,
    logger: logging.Logger | None = None,
) -> tuple[Symbol, Params, Params, Any]:
    """The symbol and the parameters of a model on integers without ranges, and a collector.

    Give ``collector.collect`` to the executor of the float32 model (``set_monitor_callback`` with
    ``monitor_all=True``), run it over data, and pass the collector to :func:`calib_graph`.
    """
    ctx = ctx or cpu()
    qsym, names = _quantize_symbol(
        _load_symbol(sym), ctx, excluded_sym_names, excluded_op_names, arg_params, quantized_dtype, quantize_mode,
        quantize_granularity,
    )  # fmt: skip
    collector = _collector(calib_mode, quantized_dtype, names, LayerOutputCollector, logger)
    return qsym, _quantize_params(qsym, arg_params, {}), aux_params, collector


def calib_graph(
    qsym: Symbol,
    arg_params: Params,
    aux_params: Params,
    collector: Any,
    calib_mode: str = "entropy",
    quantized_dtype: str = "int8",
    logger: Any = logging,
) -> tuple[Symbol, Params, Params]:
    """Writes the ranges of a collector into a quantized symbol; `arg_params` are those of the
    float32 model. A symbol without quantized layers, all of which were excluded, is unchanged.
    """
    if calib_mode not in ("naive", "entropy", "customize"):
        raise ValueError("please set calibration mode to naive or entropy.")
    ranges = _ranges(collector, calib_mode, quantized_dtype)
    if not ranges and _takes_ranges(qsym):
        raise ValueError("the collector has seen no layer; run the float32 model with it over data first")
    qsym = _calibrate_quantized_sym(qsym, ranges)
    return qsym, _quantize_params(qsym, arg_params, ranges), aux_params


def _takes_ranges(qsym: Symbol) -> bool:
    """Whether a quantized symbol has nodes that are calibrated."""
    nodes = _quantize_graph.order(_quantize_graph.read(qsym))
    return any(_quantize_graph.calibrating(node) is not None for node in nodes)


def quantize_net_v2(
    network: Any,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    exclude_layers: list[str] | None = None,
    exclude_layers_match: list[str] | None = None,
    exclude_operators: list[str] | None = None,
    calib_data: Any = None,
    data_shapes: Any = None,
    calib_mode: str = "none",
    num_calib_examples: int | None = None,
    ctx: Context | None = None,
    LayerOutputCollector: Any = None,
    logger: logging.Logger | None = None,
) -> Any:
    """A SymbolBlock on 8-bit integers made of a hybrid block, with fused layers.

    `calib_data` is a DataIter or any iterable of batches (a gluon DataLoader); without it
    `data_shapes` has a DataDesc for each input. Where a block takes single images, or volumes, a
    loader may give clips of them. `exclude_layers_match` excludes layers whose names
    contain a text. The other options are those of :func:`quantize_model`.
    """
    from ..gluon import SymbolBlock

    ctx = ctx or cpu()
    if calib_data is not None and not isinstance(calib_data, DataIter):
        calib_data = Batches(calib_data)
    described = described_inputs(data_shapes or (calib_data.provide_data if calib_data is not None else []))
    if not described:
        raise ValueError("data_shapes required: a DataDesc for each input, or calib_data")
    if isinstance(calib_data, Batches) and data_shapes:
        more = len(calib_data.provide_data[0].shape) > len(described[0].shape)
        calib_data = (calib_data.of_clips() if more else None) or calib_data
    try:
        sym, args, auxs, inputs = exported(network, [ndarray.zeros(one.shape) for one in described])
    except ValueError:
        clips = calib_data.of_clips() if isinstance(calib_data, Batches) and not data_shapes else None
        if clips is None:
            raise
        calib_data = clips
        sym, args, auxs, inputs = exported(network, [ndarray.zeros(one[1]) for one in clips.provide_data])
    check_names(exclude_layers=exclude_layers, exclude_layers_match=exclude_layers_match)
    excluded = list(exclude_layers or [])
    for text in exclude_layers_match or []:
        excluded += [name for name in (one.name for one in sym.get_internals()) if text in name]
    sym = _fused(sym)
    qsym, qargs, auxs, collector = quantize_graph(
        sym, args, auxs, ctx, excluded, exclude_operators, calib_mode, quantized_dtype, quantize_mode,
        quantize_granularity, LayerOutputCollector, logger,
    )  # fmt: skip
    if collector is not None:
        if calib_data is None:
            raise ValueError(f"calib_data must be provided when calib_mode={calib_mode}")
        data = [renamed(one, name) for name, one in zip(inputs, calib_data.provide_data, strict=False)]
        names = _included(collector, list(sym.get_internals().list_outputs()))
        _collect(sym, names, (args, auxs), calib_data, data, None, ctx, num_calib_examples, collector)
        qsym, qargs, auxs = calib_graph(qsym, args, auxs, collector, calib_mode, quantized_dtype)
    with temporary.folder() as folder:
        path = os.path.join(folder, "quantized")
        _joined(qsym).save(f"{path}-symbol.json")
        saved = {f"arg:{k}": v for k, v in qargs.items()} | {f"aux:{k}": v for k, v in auxs.items()}
        ndarray.save(f"{path}-0000.params", saved)
        return SymbolBlock.imports(f"{path}-symbol.json", inputs, f"{path}-0000.params", ctx=ctx)


def _included(collector: Any, names: list[str]) -> list[str]:
    """The values that a collector asks for: by a set of names, a function of a name, or all."""
    include = getattr(collector, "include_layer", None)
    if callable(include):
        return [name for name in names if include(name)]
    return sorted(include) if include else names


def quantize_net(
    network: Any,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    exclude_layers: list[str] | None = None,
    exclude_layers_match: list[str] | None = None,
    exclude_operators: list[str] | None = None,
    calib_data: Any = None,
    data_shapes: Any = None,
    calib_mode: str = "none",
    num_calib_examples: int | None = None,
    ctx: Context | None = None,
    logger: logging.Logger | None = None,
) -> Any:
    """:func:`quantize_net_v2` with a range for each array."""
    return quantize_net_v2(
        network, quantized_dtype, quantize_mode, "tensor-wise", exclude_layers, exclude_layers_match,
        exclude_operators, calib_data, data_shapes, calib_mode, num_calib_examples, ctx, None, logger,
    )  # fmt: skip
