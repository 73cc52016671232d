"""Mixed precision: models for float16; training with it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ...base import MXNetNotImplementedError, no_training
from ...context import gpu
from ...gluon import HybridBlock, SymbolBlock
from ...module import BucketingModule
from ...ndarray import NDArray
from ...ndarray._codes import _DTYPE_MX_TO_NP
from ...symbol import Symbol
from . import lists
from ._graph import OperatorLists, reduced

__all__ = ["convert_bucketing_module", "convert_hybrid_block", "convert_model", "convert_symbol", "init"]
__all__ += ["init_trainer", "list_conditional_fp32_ops", "list_fp32_ops", "list_loss_output_functions"]
__all__ += ["list_lp16_fp32_ops", "list_lp16_ops", "list_lp16_use_fp32_params", "list_widest_type_cast"]
__all__ += ["scale_loss", "unscale"]

# Programs ask for it before they use what init sets up.
_amp_initialized = False


def init(target_dtype: str = "float16", *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: it changes operators for training in mixed precision."""
    raise no_training("contrib.amp.init")


def init_trainer(optimizer_or_trainer: Any) -> NoReturn:
    """Refused: mxrt does not train."""
    raise no_training("contrib.amp.init_trainer")


def scale_loss(loss: Any, optimizer_or_trainer: Any) -> NoReturn:
    """Refused: mxrt does not train."""
    raise no_training("contrib.amp.scale_loss")


def unscale(optimizer_or_trainer: Any) -> NoReturn:
    """Refused: mxrt does not train."""
    raise no_training("contrib.amp.unscale")


# ---- lists of operators --------------------------------------------------------------------------


def list_lp16_ops(target_dtype: Any) -> list[str]:
    """The operators that compute in float16, or bfloat16."""
    return lists.symbol_bf16.BF16_FUNCS if _bfloat16(target_dtype) else lists.symbol_fp16.FP16_FUNCS


def list_fp32_ops(target_dtype: Any) -> list[str]:
    """The operators that compute in float32."""
    return lists.symbol_bf16.FP32_FUNCS if _bfloat16(target_dtype) else lists.symbol_fp16.FP32_FUNCS


def list_lp16_fp32_ops(target_dtype: Any) -> list[str]:
    """The operators that compute in the type of their inputs."""
    return lists.symbol_bf16.BF16_FP32_FUNCS if _bfloat16(target_dtype) else lists.symbol_fp16.FP16_FP32_FUNCS


def list_conditional_fp32_ops(target_dtype: Any) -> list[tuple[str, str, list[str]]]:
    """The operators that compute in float32 if an attribute has one of some values: the operator,
    the attribute and these values.
    """
    if _bfloat16(target_dtype):
        return lists.symbol_bf16.CONDITIONAL_FP32_FUNCS
    return lists.symbol_fp16.CONDITIONAL_FP32_FUNCS


def list_widest_type_cast(target_dtype: Any) -> list[str]:
    """The operators that compute in the widest type among their inputs."""
    return lists.symbol_bf16.WIDEST_TYPE_CASTS if _bfloat16(target_dtype) else lists.symbol_fp16.WIDEST_TYPE_CASTS


def list_loss_output_functions(target_dtype: Any) -> list[str]:
    """The operators of losses."""
    if _bfloat16(target_dtype):
        return lists.symbol_bf16.LOSS_OUTPUT_FUNCTIONS
    return lists.symbol_fp16.LOSS_OUTPUT_FUNCTIONS


def list_lp16_use_fp32_params(target_dtype: Any) -> dict[str, list[str]] | None:
    """The parameters that stay in float32, by operator; None for float16."""
    return lists.symbol_bf16.BF16_USE_FP32_PARAMS if _bfloat16(target_dtype) else None


def _bfloat16(target_dtype: Any) -> bool:
    """Whether a type is bfloat16; AssertionError unless it is that or float16."""
    if isinstance(target_dtype, np.dtype) and target_dtype == _DTYPE_MX_TO_NP[12]:
        return True
    name = target_dtype if isinstance(target_dtype, str) else getattr(target_dtype, "__name__", str(target_dtype))
    _need(name in ("float16", "bfloat16"), f"target_dtype must be float16 or bfloat16, got {target_dtype!r}")
    return bool(name == "bfloat16")


# ---- conversion ----------------------------------------------------------------------------------


def convert_symbol(
    sym: Symbol,
    target_dtype: Any = "float16",
    target_dtype_ops: list[str] | None = None,
    fp32_ops: list[str] | None = None,
    conditional_fp32_ops: list[tuple[str, str, list[str]]] | None = None,
    excluded_sym_names: list[str] | None = None,
    data_names: Sequence[str] | None = None,
    cast_optional_params: bool = False,
) -> Symbol:
    """The graph of a model of float32 that computes in float16 where that is accurate enough.

    Casts between types are nodes `amp_cast` and `amp_multicast`. The results are float32. MXNet
    reads the graph, too: save it with ``sym.save(file, remove_amp_cast=False)``.

    Parameters
    ----------
    sym : the graph
    target_dtype : float16
    target_dtype_ops, fp32_ops : operators that compute in float16, and in float32
    conditional_fp32_ops : operators that compute in float32 if an attribute has one of some values
    excluded_sym_names : nodes that stay in float32
    data_names : inputs that are float32; without it those whose variables have no type
    cast_optional_params : parameters that only operators of float16 read have that type

    Raises
    ------
    AssertionError : lists that name other operators than the default ones, or one twice
    MXNetNotImplementedError (a NotImplementedError) : bfloat16
    """
    _need(isinstance(sym, Symbol), f"sym must be a Symbol, got {type(sym).__name__}")
    chosen = _chosen_lists(target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names)
    typed = {name for name, attrs in sym.attr_dict().items() if "__dtype__" in attrs}
    inputs = sym.list_inputs()
    data = [name for name in inputs if name not in typed] if data_names is None else list(data_names)
    return reduced(sym, chosen, data, set(inputs) - set(data), cast_optional_params)


def _chosen_lists(target_dtype: Any, half: Any, single: Any, conditional: Any, excluded: Any) -> OperatorLists:
    """The lists that a program gave, completed by the default ones and checked."""
    if _bfloat16(target_dtype):
        raise MXNetNotImplementedError(
            "contrib.amp: graphs are rewritten for float16, not for bfloat16: pass target_dtype='float16', or run the "
            "model of float32 with hybridize(precision='bf16'), which rounds what layers multiply to bfloat16; a "
            "model that MXNet converted to bfloat16 runs as it is"
        )
    known = lists.symbol_fp16
    half = known.FP16_FUNCS if half is None else half
    single = known.FP32_FUNCS if single is None else single
    conditional = known.CONDITIONAL_FP32_FUNCS if conditional is None else conditional
    excluded = [] if excluded is None else excluded
    for name, given in (("target_dtype_ops", half), ("fp32_ops", single), ("excluded_sym_names", excluded)):
        _need(isinstance(given, list), f"{name} should be a list of strs, got {given!r}")
    _need(
        isinstance(conditional, list)
        and all(len(one) == 3 and isinstance(one[1], str) and isinstance(one[2], list) for one in conditional),
        f"conditional_fp32_ops should be a list of (str, str, list of str), got {conditional!r}",
    )
    by_attribute = [one[0] for one in conditional]
    for names, one, other in (
        ("target_dtype_ops and fp32_ops", half, single),
        ("target_dtype_ops and conditional_fp32_ops", half, by_attribute),
        ("fp32_ops and conditional_fp32_ops", single, by_attribute),
    ):
        common = sorted(set(one) & set(other))
        _need(not common, f"Ops cannot be in two or more lists. Common ops in {names}: {common}")
    allowed = {*known.FP16_FUNCS, *known.FP32_FUNCS, *known.FP16_FP32_FUNCS}
    allowed.update(one[0] for one in known.CONDITIONAL_FP32_FUNCS)
    illegal = sorted({*half, *single, *by_attribute} - allowed)
    _need(
        not illegal,
        f"{illegal} cannot be chosen: target_dtype_ops, fp32_ops and conditional_fp32_ops take operators of "
        "amp.list_lp16_ops, list_fp32_ops, list_lp16_fp32_ops and list_conditional_fp32_ops",
    )
    return OperatorLists(half, single, conditional, known.WIDEST_TYPE_CASTS, excluded)


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(f"contrib.amp: {otherwise}")


def _of_their_types(sym: Symbol, values: dict[str, NDArray], names: list[str]) -> None:
    """Casts parameters to the types that their variables have."""
    for name in names:
        dtype = _asked_type(sym.attr_dict().get(name, {}))
        if dtype is not None:
            values[name] = values[name].astype(dtype)


def _asked_type(attrs: dict[str, str]) -> Any:
    code = attrs.get("__dtype__", "-1")
    return None if code == "-1" else _DTYPE_MX_TO_NP[int(code)]


def convert_model(
    sym: Symbol,
    arg_params: dict[str, NDArray],
    aux_params: dict[str, NDArray],
    target_dtype: Any = "float16",
    target_dtype_ops: list[str] | None = None,
    fp32_ops: list[str] | None = None,
    conditional_fp32_ops: list[tuple[str, str, list[str]]] | None = None,
    excluded_sym_names: list[str] | None = None,
    cast_optional_params: bool = False,
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """A model of float32 as one of mixed precision: graph, arguments and auxiliary states.

    The dictionaries are those that were given, with values of other types in them. The other
    parameters and the errors are those of :func:`convert_symbol`.
    """
    _need(isinstance(sym, Symbol), f"sym must be a Symbol, got {type(sym).__name__}")
    for name, given in (("arg_params", arg_params), ("aux_params", aux_params)):
        _need(isinstance(given, dict), f"{name} should be a dict of name to NDArray, got {type(given).__name__}")
    data = [name for name in sym.list_inputs() if name not in arg_params and name not in aux_params]
    made = convert_symbol(
        sym,
        target_dtype,
        target_dtype_ops,
        fp32_ops,
        conditional_fp32_ops,
        excluded_sym_names,
        data,
        cast_optional_params,
    )
    _of_their_types(made, arg_params, made.list_arguments())
    _of_their_types(made, aux_params, made.list_auxiliary_states())
    return made, arg_params, aux_params


def convert_hybrid_block(
    block: HybridBlock,
    target_dtype: Any = "float16",
    target_dtype_ops: list[str] | None = None,
    fp32_ops: list[str] | None = None,
    conditional_fp32_ops: list[tuple[str, str, list[str]]] | None = None,
    excluded_sym_names: list[str] | None = None,
    ctx: Any = gpu(0),  # noqa: B008 (the default of MXNet)
    cast_optional_params: bool = False,
) -> SymbolBlock:
    """A block of float32 as one of mixed precision.

    Parameters
    ----------
    block : a block that was hybridized and called
    ctx : the context of the parameters: as in MXNet a GPU, unless you give another

    The other parameters and the errors are those of :func:`convert_symbol`. RuntimeError if the
    block was not called.
    """
    _need(isinstance(block, HybridBlock), f"block should be a HybridBlock, got {type(block).__name__}")
    if not block._cached_graph:
        raise RuntimeError(
            "Please first call block.hybridize() and then run forward with this block at least once before calling "
            "convert_hybrid_block."
        )
    inputs, sym = block._cached_graph
    made = convert_symbol(
        sym,
        target_dtype,
        target_dtype_ops,
        fp32_ops,
        conditional_fp32_ops,
        excluded_sym_names,
        [one.name for one in inputs],
        cast_optional_params,
    )
    arguments, attrs, values = set(made.list_arguments()), made.attr_dict(), {}
    for name, parameter in block.collect_params().items():
        value = parameter._reduce()
        dtype = _asked_type(attrs.get(name, {}))
        kind = "arg" if name in arguments else "aux"
        values[f"{kind}:{name}"] = value if dtype is None else value.astype(dtype)
    found = SymbolBlock(made, inputs)
    for name, parameter in found.collect_params().items():
        held = values.get(f"arg:{name}", values.get(f"aux:{name}"))
        if held is not None and parameter.dtype != held.dtype:
            parameter.cast(held.dtype)
    found.collect_params().load_dict(values, ctx=ctx)
    return found


def convert_bucketing_module(
    bucketing_mod: BucketingModule,
    target_dtype: Any = "float16",
    target_dtype_ops: list[str] | None = None,
    fp32_ops: list[str] | None = None,
    conditional_fp32_ops: list[tuple[str, str, list[str]]] | None = None,
    excluded_sym_names: list[str] | None = None,
    cast_optional_params: bool = False,
) -> BucketingModule:
    """A module of buckets of float32 as one of mixed precision, to be bound again: with the buckets
    that there are.

    The other parameters and the errors are those of :func:`convert_symbol`.
    """
    _need(isinstance(bucketing_mod, BucketingModule), "module should be an instance of BucketingModule")
    _need(len(bucketing_mod._buckets) > 0, "the BucketingModule has no buckets: bind it first")
    _need(bucketing_mod.params_initialized, "the parameters of the BucketingModule have no values")
    args, aux = bucketing_mod.get_params()
    symbols = {}
    for key, module in bucketing_mod._buckets.items():
        symbols[key], args, aux = convert_model(
            module.symbol,
            args,
            aux,
            target_dtype,
            target_dtype_ops,
            fp32_ops,
            conditional_fp32_ops,
            excluded_sym_names,
            cast_optional_params,
        )
    return BucketingModule.load_dict(
        symbols,
        bucketing_mod._sym_gen,
        bucketing_mod._default_bucket_key,
        args,
        aux,
        fixed_param_names=bucketing_mod._fixed_param_names,
        compression_params=bucketing_mod._compression_params,
        **bucketing_mod._settings,
    )
