"""Names that MXNet's modules have only because they import them, and that programs use:
``from mxnet.metric import ndarray``.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

__all__ = ["attach"]

# Where names are, by the module that defines them. "" has modules, and what is called otherwise
# where it is defined.
_DEFINED = {
    "": (
        "BASE_ESTIMATOR=builtins:object CudaKernelHandle=ctypes:c_void_p "
        "CudaModuleHandle=ctypes:c_void_p DLPackHandle=ctypes:c_void_p "
        "DataIterCreatorHandle=ctypes:c_void_p DataIterHandle=ctypes:c_void_p "
        "ExecutorHandle=ctypes:c_void_p FunctionHandle=ctypes:c_void_p "
        "KVStoreHandle=ctypes:c_void_p Lock=_thread:allocate_lock NDArrayHandle=ctypes:c_void_p "
        "ProfileHandle=ctypes:c_void_p RecordIOHandle=ctypes:c_void_p RtcHandle=ctypes:c_void_p "
        "SymbolHandle=ctypes:c_void_p _array=mxrt.ndarray:array _empty_ndarray=mxrt.ndarray:empty "
        "_internal=mxrt.ndarray._internal _mx_np=mxrt.numpy _mx_npx=mxrt.numpy_extension "
        "_name=mxrt.name _np=numpy _numpy=numpy _sampler=mxrt.gluon.data.sampler "
        "_zeros_ndarray=mxrt.ndarray:zeros atexit autograd=mxrt.autograd base=mxrt.base "
        "basestring=builtins:str bisect bz2 collections context=mxrt.context contextlib copy "
        "ctx=mxrt.context ctypes dataset=mxrt.gluon.data.dataset errno functools "
        "gluon_loss=mxrt.gluon.loss:Loss gzip hashlib image=mxrt.image init=mxrt.initializer "
        "initializer=mxrt.initializer inspect io=mxrt.io json kvs=mxrt.kvstore "
        "libinfo=mxrt.libinfo logging long=builtins:int math metric=mxrt.metric "
        "metric_loss=mxrt.metric:Loss multiprocessing mx=mxrt mx_int=ctypes:c_int "
        "mx_int64=ctypes:c_int64 mx_real_t=numpy:float32 mx_uint=ctypes:c_uint "
        "native_array=array:array nd=mxrt.ndarray nd_load=mxrt.ndarray:load "
        "nd_save=mxrt.ndarray:save ndarray=mxrt.ndarray nn=mxrt.gluon.nn np=numpy numbers numpy "
        "op=mxrt.ndarray.op operator opt=mxrt.optimizer os pickle platform "
        "py_slice=builtins:slice random re recordio=mxrt.recordio registry=mxrt.registry requests "
        "rnn_cell=mxrt.gluon.rnn.rnn_cell sampler=mxrt.gluon.data.sampler shutil signal struct "
        "sym=mxrt.symbol symbol=mxrt.symbol symbol_contrib=mxrt.symbol.contrib sys tarfile "
        "tempfile text=mxrt.contrib.text threading time traceback trainer=mxrt.gluon.trainer "
        "utils=mxrt.gluon.contrib.estimator.utils uuid vocab=mxrt.contrib.text.vocab warnings "
        "zipfile"
    ),
    "_functools": "reduce",
    "array": "array",
    "collections": "OrderedDict defaultdict namedtuple",
    "ctypes": "CFUNCTYPE POINTER c_int c_void_p cast",
    "math": "cos floor pi sqrt",
    "multiprocessing.pool": "ThreadPool",
    "multiprocessing.process": "current_process",
    "mxrt._mxrt": "NDArrayBase SymbolBase",
    "mxrt.attribute": "AttrScope",
    "mxrt.base": (
        "MXNetError NotSupportedForSparseNDArray _Null _as_list c_array c_array_buf c_str "
        "c_str_array check_call classproperty integer_types numeric_types py_str register_error "
        "string_types with_metaclass"
    ),
    "mxrt.callback": "LogValidationMetricsCallback",
    "mxrt.context": "Context cpu current_context gpu num_gpus",
    "mxrt.executor": "Executor",
    "mxrt.executor_manager": "_load_data _load_label _split_input_slice",
    "mxrt.gluon": "tensor_types",
    "mxrt.gluon.block": "Block HybridBlock _flatten _regroup",
    "mxrt.gluon.contrib.estimator.event_handler": (
        "GradientUpdateHandler StoppingHandler TrainBegin TrainEnd ValidationHandler"
    ),
    "mxrt.gluon.contrib.estimator.utils": "_check_metrics",
    "mxrt.gluon.loss": "SoftmaxCrossEntropyLoss",
    "mxrt.gluon.nn.activations": "LeakyReLU",
    "mxrt.gluon.parameter": "ParameterDict",
    "mxrt.gluon.rnn.rnn_cell": (
        "HybridRecurrentCell SequentialRNNCell _format_sequence _get_begin_state _mask_sequence_variable_length"
    ),
    "mxrt.gluon.utils": (
        "_brief_print_list _get_repo_file_url _indent check_sha1 download replace_file split_and_load"
    ),
    "mxrt.image.image": (
        "Augmenter CastAug ColorJitterAug ColorNormalizeAug ForceResizeAug HueJitterAug ImageIter "
        "LightingAug RandomGrayAug RandomOrderAug ResizeAug fixed_crop"
    ),
    "mxrt.initializer": "InitDesc Uniform _create",
    "mxrt.io.io": "DataBatch DataDesc DataIter",
    "mxrt.io.utils": "_getdata_by_idx _has_instance _init_data",
    "mxrt.kvstore.kvstore": "KVStore",
    "mxrt.metric": "Accuracy CompositeEvalMetric EvalMetric",
    "mxrt.model": "load_checkpoint load_params save_checkpoint",
    "mxrt.module.bucketing_module": "BucketingModule",
    "mxrt.module.executor_group": "DataParallelExecutorGroup",
    "mxrt.module.module": "Module",
    "mxrt.ndarray": (
        "arange cast_storage concat empty eye full histogram imdecode linspace maximum minimum "
        "ones power split_v2 tile zeros zeros_like"
    ),
    "mxrt.ndarray.ndarray": (
        "NDArray _DTYPE_MX_TO_NP _DTYPE_NP_TO_MX _GRAD_REQ_MAP _STORAGE_TYPE_CSR "
        "_STORAGE_TYPE_DEFAULT _STORAGE_TYPE_ROW_SPARSE _STORAGE_TYPE_STR_TO_ID "
        "_STORAGE_TYPE_UNDEFINED"
    ),
    "mxrt.ndarray.random": "uniform",
    "mxrt.ndarray.sparse": "CSRNDArray",
    "mxrt.optimizer": "register",
    "mxrt.runtime": "Features",
    "mxrt.symbol": "hypot pow",
    "mxrt.symbol.symbol": "Symbol load_json",
    "mxrt.util": "get_cuda_compute_capability is_np_array is_np_shape np_array np_shape set_np",
    "numbers": "Number",
}
# The names of each module; one with = is meant otherwise there.
_NAMES = {
    "mxrt.attribute": "classproperty string_types threading warnings with_metaclass",
    "mxrt.autograd": (
        "CFUNCTYPE Lock NDArray NDArrayHandle POINTER Symbol SymbolHandle _GRAD_REQ_MAP array "
        "c_array c_array_buf c_int c_void_p cast check_call ctypes mx_uint string_types traceback"
    ),
    "mxrt.base": (
        "CudaKernelHandle CudaModuleHandle DLPackHandle DataIterCreatorHandle DataIterHandle "
        "FunctionHandle KVStoreHandle ProfileHandle RecordIOHandle RtcHandle _np atexit "
        "basestring inspect libinfo long mx_int64 platform"
    ),
    "mxrt.context": "check_call classproperty ctypes threading warnings with_metaclass",
    "mxrt.contrib.amp.amp": (
        "BucketingModule NDArray Symbol SymbolHandle _DTYPE_MX_TO_NP _DTYPE_NP_TO_MX array base "
        "c_array_buf c_str_array check_call contextlib ctypes gpu logging mx_uint ndarray np opt "
        "symbol symbol_contrib trainer"
    ),
    "mxrt.contrib.autograd": (
        "NDArray NDArrayHandle _GRAD_REQ_MAP array c_array c_array_buf check_call ctypes "
        "functools mx_uint string_types zeros_like"
    ),
    "mxrt.contrib.io": "nd",
    "mxrt.contrib.quantization": (
        "Context DataBatch DataDesc DataIter Module NDArray NDArrayHandle Symbol SymbolHandle "
        "c_array c_str c_str_array check_call cpu ctypes logging mx_uint nd_load nd_save ndarray "
        "np os py_str shutil warnings"
    ),
    "mxrt.contrib.tensorboard": "logging",
    "mxrt.contrib.text.embedding": "_mx_np _mx_npx base is_np_array logging tarfile vocab zipfile",
    "mxrt.contrib.text.utils": "collections",
    "mxrt.contrib.text.vocab": "collections",
    "mxrt.engine": "check_call ctypes",
    "mxrt.error": "register register_error",
    "mxrt.executor": (
        "ExecutorHandle NDArrayHandle SymbolHandle _load_data _load_label _split_input_slice "
        "c_array_buf c_str_array check_call copy ctypes mx_int mx_uint ndarray py_str"
    ),
    "mxrt.executor_manager": "DataDesc DataParallelExecutorGroup cpu logging mx_real_t nd np",
    "mxrt.gluon.block": (
        "MXNetError NDArray Symbol _brief_print_list _mx_np _mx_npx _name copy defaultdict "
        "initializer is_np_array json load_json mx_real_t ndarray np np_array np_shape "
        "np_symbol=mxrt.symbol.numpy symbol "
        "threading"
    ),
    "mxrt.gluon.contrib.cnn.conv_layers": "numeric_types symbol",
    "mxrt.gluon.contrib.data.sampler": "sampler",
    "mxrt.gluon.contrib.data.text": "_get_repo_file_url base check_sha1 dataset download nd shutil text zipfile",
    "mxrt.gluon.contrib.estimator": "utils",
    "mxrt.gluon.contrib.estimator.batch_processor": "autograd",
    "mxrt.gluon.contrib.estimator.estimator": (
        "GradientUpdateHandler StoppingHandler TrainBegin TrainEnd ValidationHandler "
        "_check_metrics cpu gluon_loss gpu metric_loss num_gpus split_and_load"
    ),
    "mxrt.gluon.contrib.estimator.event_handler": "_check_metrics metric_loss os warnings",
    "mxrt.gluon.contrib.estimator.utils": "Accuracy CompositeEvalMetric EvalMetric SoftmaxCrossEntropyLoss",
    "mxrt.gluon.contrib.nn.basic_layers": "context nd warnings",
    "mxrt.gluon.contrib.rnn.conv_rnn_cell": "HybridRecurrentCell floor numeric_types",
    "mxrt.gluon.contrib.rnn.rnn_cell": (
        "SequentialRNNCell _as_list _format_sequence _get_begin_state _mask_sequence_variable_length tensor_types"
    ),
    "mxrt.gluon.data.dataloader": (
        "ThreadPool _mx_np _sampler context io=io is_np_array is_np_shape multiprocessing nd "
        "pickle set_np signal sys threading"
    ),
    "mxrt.gluon.data.dataset": "ndarray recordio",
    "mxrt.gluon.data.vision.datasets": (
        "_get_repo_file_url _mx_np base check_sha1 dataset download image is_np_array nd recordio struct"
    ),
    "mxrt.gluon.data.vision.transforms": "image is_np_array",
    "mxrt.gluon.loss": "is_np_array np",
    "mxrt.gluon.model_zoo.model_store": "base download logging replace_file shutil tempfile uuid zipfile",
    "mxrt.gluon.model_zoo.vision.alexnet": "HybridBlock base cpu nn os",
    "mxrt.gluon.model_zoo.vision.densenet": "HybridBlock base cpu nn os",
    "mxrt.gluon.model_zoo.vision.inception": "HybridBlock base cpu nn os",
    "mxrt.gluon.model_zoo.vision.mobilenet": "base cpu nn os",
    "mxrt.gluon.model_zoo.vision.resnet": "base cpu is_np_array nn os",
    "mxrt.gluon.model_zoo.vision.squeezenet": "HybridBlock base cpu nn os",
    "mxrt.gluon.model_zoo.vision.vgg": "HybridBlock base cpu nn os",
    "mxrt.gluon.nn.activations": "initializer is_np_array",
    "mxrt.gluon.nn.basic_layers": "_indent is_np_array nd np sym",
    "mxrt.gluon.nn.conv_layers": "is_np_array symbol",
    "mxrt.gluon.parameter": (
        "OrderedDict _brief_print_list _indent _mx_np autograd context defaultdict initializer "
        "is_np_array is_np_shape mx_real_t ndarray symbol tensor_types"
    ),
    "mxrt.gluon.rnn.rnn_cell": (
        "Block HybridBlock LeakyReLU _indent ndarray numeric_types string_types symbol tensor_types"
    ),
    "mxrt.gluon.rnn.rnn_layer": "is_np_array rnn_cell tensor_types",
    "mxrt.gluon.trainer": "KVStore ParameterDict opt",
    "mxrt.gluon.utils": ("_mx_np collections hashlib is_np_array is_np_shape ndarray np requests sys uuid warnings"),
    "mxrt.image": "Number io json logging nd np numeric_types os random recordio sys warnings",
    "mxrt.image.detection": (
        "Augmenter CastAug ColorJitterAug ColorNormalizeAug ForceResizeAug HueJitterAug ImageIter "
        "LightingAug RandomGrayAug RandomOrderAug ResizeAug _mx_np fixed_crop io is_np_array json "
        "logging nd np numeric_types random warnings"
    ),
    "mxrt.image.image": ("Number _internal _mx_np io json logging nd np numeric_types os random recordio sys warnings"),
    "mxrt.initializer": "_mx_np is_np_array ndarray random=mxrt.random sqrt string_types warnings",
    "mxrt.io": "_getdata_by_idx _has_instance _init_data",
    "mxrt.io.io": (
        "CSRNDArray DataIterHandle NDArrayHandle c_str_array check_call concat ctypes logging "
        "mx_real_t mx_uint py_str sys threading tile"
    ),
    "mxrt.io.utils": "CSRNDArray NDArray OrderedDict array=mxrt.ndarray:array np",
    "mxrt.kvstore.base": (
        "KVStoreHandle NDArray array c_array c_array_buf c_str c_str_array check_call ctypes string_types warnings"
    ),
    "mxrt.kvstore.kvstore": (
        "KVStoreHandle NDArray NDArrayHandle c_str check_call ctypes mx_uint opt os pickle py_str"
    ),
    "mxrt.libinfo": "logging os platform",
    "mxrt.library": "MXNetError check_call ctypes mx_uint os sys",
    "mxrt.lr_scheduler": "cos pi",
    "mxrt.metric": "OrderedDict _create math ndarray numeric_types numpy registry string_types",
    "mxrt.model": (
        "BASE_ESTIMATOR DataDesc LogValidationMetricsCallback Uniform _load_data io kvs logging "
        "metric mx_real_t namedtuple nd opt os sym time"
    ),
    "mxrt.module.base_module": "DataDesc Uniform _as_list cpu metric ndarray time warnings",
    "mxrt.module.bucketing_module": "Uniform ctx load_params nd np sym warnings",
    "mxrt.module.executor_group": "OrderedDict _DTYPE_MX_TO_NP ctx",
    "mxrt.module.module": "DataParallelExecutorGroup InitDesc Uniform ctx nd opt zeros",
    "mxrt.module.python_module": "Uniform nd",
    "mxrt.module.sequential_module": "Uniform",
    "mxrt.monitor": "NDArrayHandle ctypes ndarray py_str sqrt",
    "mxrt.name": "classproperty threading warnings with_metaclass",
    "mxrt.ndarray": "_DTYPE_MX_TO_NP _DTYPE_NP_TO_MX _GRAD_REQ_MAP",
    "mxrt.ndarray.contrib": (
        "_as_list _flatten _regroup current_context math mx ndarray=mxrt.ndarray.ndarray np uniform"
    ),
    "mxrt.ndarray.ndarray": (
        "DLPackHandle Features NDArrayBase NDArrayHandle _internal c_array c_array_buf c_str "
        "check_call ctypes imdecode integer_types is_np_array mx_int mx_int64 mx_real_t mx_uint "
        "native_array numeric_types op operator reduce"
    ),
    "mxrt.ndarray.random": "_Null _internal numeric_types",
    "mxrt.ndarray.sparse": (
        "Context NDArray NDArrayHandle NotSupportedForSparseNDArray _DTYPE_MX_TO_NP "
        "_DTYPE_NP_TO_MX _STORAGE_TYPE_CSR _STORAGE_TYPE_DEFAULT _STORAGE_TYPE_ROW_SPARSE "
        "_STORAGE_TYPE_STR_TO_ID _STORAGE_TYPE_UNDEFINED _array _internal _zeros_ndarray "
        "c_array_buf check_call ctypes current_context integer_types mx_real_t native_array np "
        "numeric_types op operator py_slice warnings"
    ),
    "mxrt.ndarray.utils": (
        "NDArrayHandle _array _empty_ndarray _zeros_ndarray array=mxrt.ndarray:array c_array "
        "c_str c_str_array check_call ctypes empty mx_uint py_str string_types zeros"
    ),
    "mxrt.profiler": "KVStoreHandle ProfileHandle c_str c_str_array check_call ctypes py_str",
    "mxrt.random": "Context check_call ctypes integer_types",
    "mxrt.recordio": "RecordIOHandle c_str check_call ctypes current_process",
    "mxrt.registry": "string_types",
    "mxrt.rnn": (
        "bisect functools init load_checkpoint ndarray np numeric_types random save_checkpoint "
        "string_types symbol warnings"
    ),
    "mxrt.rnn.io": "ndarray",
    "mxrt.rnn.rnn_cell": "functools init ndarray numeric_types string_types symbol warnings",
    "mxrt.rtc": (
        "CudaKernelHandle CudaModuleHandle NDArray _DTYPE_MX_TO_NP _DTYPE_NP_TO_MX array c_array "
        "c_array_buf c_str c_str_array check_call ctypes mx_uint np numeric_types re string_types"
    ),
    "mxrt.runtime": "check_call collections ctypes",
    "mxrt.symbol.contrib": (
        "AttrScope Symbol SymbolHandle _as_list _flatten _regroup check_call copy ctypes math "
        "symbol=mxrt.symbol.symbol uniform=mxrt.symbol.random:uniform"
    ),
    "mxrt.symbol.random": "_Null _internal=mxrt.symbol._internal numeric_types",
    "mxrt.symbol.symbol": (
        "AttrScope Executor ExecutorHandle MXNetError NDArray NDArrayHandle Number SymbolBase "
        "SymbolHandle _DTYPE_MX_TO_NP _DTYPE_NP_TO_MX _GRAD_REQ_MAP _STORAGE_TYPE_STR_TO_ID "
        "_internal=mxrt.symbol._internal _numpy arange array c_array c_array_buf c_str "
        "c_str_array check_call ctypes eye full histogram hypot integer_types is_np_shape "
        "linspace maximum minimum mx_int mx_int64 mx_uint numeric_types ones op=mxrt.symbol.op "
        "pow power py_slice py_str split_v2 string_types zeros"
    ),
    "mxrt.test_utils": (
        "Features OrderedDict _STORAGE_TYPE_STR_TO_ID bz2 errno get_cuda_compute_capability gzip "
        "np_symbol=mxrt.symbol.numpy:_Symbol numbers platform requests struct traceback zipfile"
    ),
    "mxrt.util": "ctypes functools inspect threading",
    "mxrt.visualization": "copy",
}


def _targets() -> dict[str, str]:
    """Returns the target of each name: a module, or ``module:attribute``."""
    found = {}
    for module, names in _DEFINED.items():
        for name in names.split():
            name, _, target = name.partition("=")
            found[name] = target or (f"{module}:{name}" if module else name)
    return found


_TARGETS = _targets()
_CONTENT = vars(ModuleType)["__dict__"]


def _found(target: str) -> Any:
    module, _, attribute = target.partition(":")
    # That module imports this one.
    from . import load

    found = load(module) if module.startswith("mxrt") else importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def attach(module: ModuleType) -> None:
    """Gives a module the names that its row lists, to be looked up when they are asked for."""
    names = _NAMES.get(module.__name__)
    if names is None:
        return
    listed = dict(one.partition("=")[::2] for one in names.split())
    # A WholeModule makes all of its functions where its own `__dict__` is asked for.
    content: dict[str, Any] = _CONTENT.__get__(module)
    own = content.get("__getattr__")

    def find(name: str) -> Any:
        target = listed.get(name)
        if target is not None:
            try:
                return _found(target or _TARGETS[name])
            except ModuleNotFoundError:  # such as requests, which mxrt does not need
                pass
        if own is not None:
            return own(name)
        raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")

    content["__getattr__"] = find
