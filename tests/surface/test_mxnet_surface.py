"""Tests that mxrt has what programs find in MXNet 1.9.1 and what packages built on it use: names of
modules, attributes of objects, and the modules of Python that an import brings.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings

import numpy as np
import pytest

from support import ROOT, recorded, run_python
from surface_objects import MAKERS, inside

sys.path.append(str(ROOT / "scripts"))
from surface_of_packages import value_of

SURFACE = recorded("surface")
PACKAGES = recorded("packages")

TRAINING = "belongs to training"
SPARSE = "sparse arrays are not part of this build"
CALIBRATION = "mx.contrib.quantization computes it itself"
NUMPY = "internal to MXNet's numpy interface"
INTERNAL = "internal to MXNet: its C interface, and how it makes functions of it"
TESTING = "a helper of MXNet's own tests"
OPENCV = "mxrt does without OpenCV, h5py, scipy and scikit-learn"
ONNX = "of ONNX there is `export_model` alone"

# Public names of modules that are missing, by reason. A name stands for all modules that have it,
# one that ends with _ for all that begin with it.
MISSING: dict[str, str] = {
    TRAINING: (
        "adagrad_update adam_update adamw_update ftml_update ftrl_update group_adagrad_update lamb_update_phase1 "
        "lamb_update_phase2 mp_adamw_update mp_lamb_update_phase1 mp_lamb_update_phase2 mp_nag_mom_update "
        "mp_sgd_mom_update mp_sgd_update multi_lamb_update multi_lars multi_mp_lamb_update multi_mp_sgd_mom_update "
        "multi_mp_sgd_update multi_sgd_mom_update multi_sgd_update nag_mom_update preloaded_multi_ reset_arrays "
        "rmsprop_update rmspropalex_update sgd_mom_update sgd_update signsgd_update signum_update "
        "IdentityAttachKLSparseReg backward_ TestStore KVStoreServer kvstore_server set_kvstore_handle "
        "profiler_kvstore_handle DataParallelExecutorManager LossScaler loss_scaler "
        "svrg_optimization"
    ),
    SPARSE: "dgl_ edge_id gs_retain count_sketch spsp",
    CALIBRATION: "stats",
    NUMPY: "numpy_op_fallback numpy_op_signature np_ufunc_legal_option wrap_np_ bfloat16",
    ONNX: "export_model_ get_model_metadata_ import_model_ import_to_gluon_ onnx2mx mx2onnx get_operator_support",
    OPENCV: "cv2 h5py ss copyMakeBorder SKLEARN_INSTALLED",
    INTERNAL: (
        "api c_handle_array c2pyerror ctypes2buffer ctypes2numpy_shared get_last_ffi_error mx_float_p gen_ register "
        "MXCallbackList add_fileline_to_docstring DLContext DLDataType DLManagedTensor DLTensor DeleterFunc "
        "PyCapsuleDestructor dl_managed_tensor_deleter CudaKernel find_conf_path fetcher_loop_v1 worker_loop_v1 "
        "DataLoaderV1 ConnectionWrapper Queue SimpleQueue rebuild_ reduce_ndarray reduce_np_ndarray "
        "get_indexing_dispatch_code get_oshape_of_gather_nd_op indexing_key_expand_implicit_axes "
        "check_boolean_array_dimension py_array py_sum sparse_array sym_load apache_repo_url densenet_spec vgg_spec "
        "APACHE_REPO_URL FAST_TEXT_ GLOVE_PRETRAINED_ cython misc space ndarray_doc symbol_doc "
        "notebook tvmop th torch C hawkesll"
    ),
    TESTING: "checkShapes download_model get_im2rec_path get_mnist_pkl locationError",
}
# Modules that are missing, with all in them.
ABSENT = {
    INTERNAL: (
        "_api_internal _ctypes _cy3 _ffi _global_var _numpy_op_doc api cython misc ndarray.register ndarray_doc "
        "notebook space symbol.register symbol_doc torch tvmop"
    ),
    TRAINING: "contrib.amp.loss_scaler contrib.svrg_optimization kvstore.kvstore_server",
    ONNX: "contrib.onnx.onnx2mx onnx.mx2onnx",
}


def listed(table: dict[str, str]) -> list[str]:
    return [name for names in table.values() for name in names.split()]


def excused(name: str, names: list[str]) -> bool:
    return name in names or any(one.endswith("_") and name.startswith(one) for one in names)


def kind(value: object) -> str:
    if inspect.ismodule(value):
        return "module"
    if inspect.isclass(value):
        return "class"
    return "function" if callable(value) else "value"


def same_kind(wanted: str, value: object) -> bool:
    """A class may take the place of a function that makes its objects."""
    return kind(value) == wanted or {kind(value), wanted} == {"class", "function"}


def our(name: str) -> str:
    return name.replace("mxnet", "mxrt", 1)


def test_every_module_of_mxnet_is_there_or_has_a_reason(mx) -> None:
    absent = [f"mxnet.{name}" for name in listed(ABSENT)]
    for name in SURFACE["modules"]:
        if any(name == one or name.startswith(f"{one}.") for one in absent):
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module(our(name))
        else:
            importlib.import_module(our(name))


def test_public_names_of_modules_are_there_or_have_a_reason(mx) -> None:
    excuses, lost, other = listed(MISSING), [], []
    absent = tuple(f"mxnet.{name}" for name in listed(ABSENT))
    for module, kinds in SURFACE["modules"].items():
        if module.startswith(absent):
            continue
        ours = importlib.import_module(our(module))
        for wanted, names in kinds.items():
            for name in names:
                if hasattr(ours, name):
                    if not same_kind(wanted, getattr(ours, name)):
                        other.append((module, name, wanted))
                elif not name.startswith("_") and name != "requests" and not excused(name, excuses):
                    lost.append(f"{module}.{name}")
    assert lost == []
    assert other == [], "these are of another kind"


def test_a_reason_is_of_a_name_that_is_missing_somewhere(mx) -> None:
    missing = set()
    for module, kinds in SURFACE["modules"].items():
        try:
            ours = importlib.import_module(our(module))
        except ModuleNotFoundError:
            continue
        missing |= {name for names in kinds.values() for name in names if not hasattr(ours, name)}
    idle = [one for one in listed(MISSING) if not any(excused(name, [one]) for name in missing)]
    assert idle == []


@pytest.mark.parametrize(
    "statement",
    [
        "from mxnet.metric import ndarray, math, OrderedDict",
        "from mxnet.context import check_call, classproperty",
        "from mxnet.gluon.data.dataloader import multiprocessing, is_np_array",
        "import mxnet; mxnet.module.module.cpu(), mxnet.model.mx_real_t",
    ],
)
def test_names_that_a_module_of_mxnet_imports_are_found_in_it(statement: str) -> None:
    done = run_python(f"import mxrt; mxrt.install_as_mxnet(); {statement}")
    assert done.returncode == 0, done.stderr


def test_importing_mxnet_brings_the_modules_of_python_that_it_brought() -> None:
    """Programs use `multiprocessing.pool` without an import of their own."""
    code = "import sys, mxrt; mxrt.install_as_mxnet(); import mxnet; print(*sys.modules)"
    there = set(run_python(code).stdout.split())
    # Those below a package that a program may have imported alone.
    wanted = [n for n in SURFACE["standard"] if "." in n and not any(p.startswith("_") for p in n.split("."))]
    no_longer = ("distutils", "typing.", "re.", "encodings.", "importlib.")
    assert [name for name in wanted if name not in there and not name.startswith(no_longer)] == []


# ---- objects -----------------------------------------------------------------------------------

# Attributes that objects do not have, by reason; those of training are what optimizers, trainers
# and stores keep.
WITHOUT = {
    INTERNAL: "handle _tvm_handle _tvm_tcode _fresh_grad _old_ctx default_ctx current _old_size _monitor_callback",
    "iterators read ahead in the engine": "data_ready data_taken next_batch prefetch_threads started",
    "loaders make workers for each pass": "_iter _worker_pool",
    "worked out where it is needed": (
        "_prev _num_gates metrics _metrics _train_metrics _val_metrics _average instance _data_shapes _meta_keys "
        "skip_states "
        "drop_inputs_mask drop_outputs_mask drop_states_mask _enter_is_np_shape _prev_is_np_shape"
    ),
}
OF_TRAINING = ("gluon.Trainer", "optimizer.", "kvstore.")


def made(mx, folder) -> dict[str, object]:
    with inside(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: make(mx) for name, make in MAKERS.items()}


def test_what_mxnet_lets_programs_set_can_be_set(mx, tmp_path) -> None:
    """Every attribute of every object is assigned to itself."""
    excuses, lost, fixed = set(listed(WITHOUT)), [], []
    for kind_of, thing in made(mx, tmp_path).items():
        for name in SURFACE["objects"][kind_of]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if not hasattr(thing, name):
                    if name not in excuses and not kind_of.startswith(OF_TRAINING):
                        lost.append(f"{kind_of}.{name}")
                    continue
                try:
                    setattr(thing, name, getattr(thing, name))
                except Exception as error:
                    fixed.append(f"{kind_of}.{name}: {error}")
    assert fixed == []
    assert lost == []


# Public functions that objects do not have, by reason.
WITHOUT_FUNCTIONS = {
    "a SequentialRNNCell runs its cells": "hybrid_forward",
    "iterators read ahead in the engine": "debug_skip_load",
    "worked out where it is needed": "reset_micro update_cov update_variance",
    "deprecated in MXNet, where it raises an error": "set_lr_scale",
    "features have their order": "move_to_end",
}


def test_public_functions_of_objects_are_there(mx, tmp_path) -> None:
    excuses, lost = set(listed(WITHOUT_FUNCTIONS)), []
    for kind_of, thing in made(mx, tmp_path).items():
        names = {*dir(thing), *excuses}
        lost += [f"{kind_of}.{name}" for name in SURFACE["methods"][kind_of] if name not in names]
    assert lost == []


def test_a_module_computes_as_before_when_all_that_it_holds_was_set_to_itself(mx, tmp_path) -> None:
    for kind_of in ("mod.Module", "mod.Module of two contexts", "mod.BucketingModule"):
        with inside(tmp_path):
            module = MAKERS[kind_of](mx)
        for name in SURFACE["objects"][kind_of]:
            if hasattr(module, name):
                setattr(module, name, getattr(module, name))
        module.forward(mx.io.DataBatch([mx.nd.full((2, 3), 2)], bucket_key=3, provide_data=[("data", (2, 3))]))
        assert module.get_outputs()[0].asnumpy().tolist() == [[6, 6]] * 2, kind_of


def test_a_module_in_python_has_what_modules_have(mx, tmp_path) -> None:
    module = mx.mod.PythonLossModule(grad_func=print)
    assert module.symbol is None and module._labels is None and module._scores_grad is None
    module.bind([("data", (1, 2))], [("softmax_label", (1,))])
    module.init_params()
    path = str(tmp_path / "nothing.params")
    module.save_params(path)
    module.load_params(path)
    module.set_states()
    with pytest.raises(AssertionError, match="no states"):
        module.set_states(value=1)
    data, label = mx.nd.array([[1, 2]]), mx.nd.array([3])
    module.forward(mx.io.DataBatch([data], [label]), is_train=False)
    assert module._labels is None
    module.forward(mx.io.DataBatch([data], [label]))
    assert module._labels is label and module.get_outputs() == [data]


def test_the_scope_of_a_block_knows_the_names_inside(mx) -> None:
    outer, inner = mx.gluon.nn.HybridSequential(prefix="out_"), mx.gluon.nn.HybridSequential(prefix="in_")
    current = mx.gluon.block._BlockScope._current
    with outer.name_scope(), inner.name_scope():
        assert outer._scope._name_scope._prefix == "out_" and outer._scope._old_scope is None
        assert inner._scope._name_scope._prefix == "in_" and inner._scope._old_scope._block is outer
        assert current.value._block is inner
    assert inner._scope._name_scope is None and getattr(current, "value", None) is None


def test_a_hybridised_block_keeps_its_flags_as_pairs(mx) -> None:
    net = mx.gluon.nn.Dense(2)
    assert net._flags == []
    net.hybridize(static_alloc=True)
    assert net._flags == [("static_alloc", True), ("static_shape", False), ("inline_limit", 2)]
    net.initialize()
    assert net(mx.nd.ones((1, 3))).shape == (1, 2)


def test_a_block_infers_attributes_of_its_parameters(mx) -> None:
    net = mx.gluon.nn.Dense(2, dtype=None)
    net._infer_attrs("infer_shape", "shape", mx.nd.ones((1, 3)))
    net._infer_attrs("infer_type", "dtype", mx.nd.ones((1, 3), dtype="float16"))
    assert net.weight.shape == (2, 3) and net.weight.dtype is np.float16


@pytest.mark.parametrize("everything", [False, True])
def test_a_graph_shows_what_its_operators_make(mx, everything: bool) -> None:
    data = mx.sym.var("data")
    graph = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=2, name="fc"), act_type="relu", name="act")
    op, seen = mx.ndarray.CachedOp(graph), []
    op._register_op_hook(lambda name, kind, array: seen.append((name, kind, array.asnumpy().tolist())), everything)
    arrays = mx.nd.ones((1, 3)), mx.nd.ones((2, 3)), mx.nd.array([0, -9])
    assert op(*arrays).asnumpy().tolist() == [[3, 0]]
    fc, act = (b"fc_output", b"FullyConnected", [[3, -6]]), (b"act_output", b"Activation", [[3, 0]])
    if everything:
        assert [name for name, *_ in seen[:3]] == [b"fc_data", b"fc_weight", b"fc_bias"]
        assert seen[3:] == [fc, (b"act_input0", b"Activation", [[3, -6]]), act]
        return
    assert seen == [fc, act]
    out = mx.nd.zeros((1, 2))
    assert op(*arrays, out=out) is out and out.asnumpy().tolist() == [[3, 0]] and len(seen) == 4
    op._register_op_hook(None)
    assert op(*arrays).asnumpy().tolist() == [[3, 0]] and len(seen) == 4


def test_an_updater_says_whether_it_would_update_several_parameters_at_once(mx) -> None:
    for optimizer, several in ((mx.optimizer.SGD(), True), (mx.optimizer.Adam(), False)):
        assert mx.optimizer.get_updater(optimizer).aggregate_updates is several


# ---- packages ----------------------------------------------------------------------------------

# Names that the packages reach, and that are missing.
UNREACHED = {
    NUMPY: "mxnet.np. mxnet.npx. mxnet.numpy.",
}
# Attributes of objects whose names they touch.
UNTOUCHED = {
    **WITHOUT,
    TRAINING: "_init_params",
    "symbols are not changed in place": "__iadd__",
    "a SequentialRNNCell runs its cells": "hybrid_forward",
    "worked out when a vocabulary is made": "_index_counter_keys",
}


def test_names_that_packages_above_mxnet_reach_are_there(mx) -> None:
    excuses = tuple(listed(UNREACHED))
    lost = []
    for name, wanted in PACKAGES["names"].items():
        try:
            if not same_kind(wanted, value_of(our(name))):
                lost.append(f"{name} is no {wanted}")
        except AttributeError:
            if not name.startswith(excuses):
                lost.append(name)
    assert lost == []


def test_attributes_that_packages_above_mxnet_touch_are_there(mx, tmp_path) -> None:
    excuses = set(listed(UNTOUCHED))
    lost = []
    things = made(mx, tmp_path)
    for kind_of, touched in PACKAGES["members"].items():
        names = set(dir(things[kind_of]))
        for name in touched:
            if name not in names and name not in excuses and not kind_of.startswith(OF_TRAINING):
                lost.append(f"{kind_of}.{name}")
    assert lost == []
