"""Models with sparse inputs and weights: MXNet 1.9.1 wrote the files and computed the results
(tests/recorded/record_sparse.py).
"""

from __future__ import annotations

import sys
import threading
import warnings

import numpy as np
import pytest

from support import RECORDED, in_threads, last_json, run_python

FOLDER = RECORDED / "sparse"
MODELS = ["machine", "sagemaker_machine", "learner", "wide_and_deep", "embedding", "layers"]
FEATURES = 1000


def opened(mx, name: str):
    """Symbol, parameters, inputs and what was recorded."""
    kept = np.load(FOLDER / f"{name}.npz")
    symbol, arguments, _ = mx.model.load_checkpoint(str(FOLDER / name), 0)
    parts = tuple(kept[f"csr_{part}"] for part in ("values", "columns", "pointers"))
    inputs = {
        one: mx.nd.array(kept[one])
        if one in kept
        else mx.nd.sparse.csr_matrix(parts, shape=(len(parts[2]) - 1, FEATURES))
        for one in kept["names"].tolist()
    }
    return symbol, arguments, inputs, kept


def with_labels(mx, symbol, given: dict) -> dict:
    """The arguments that are given, and zeros for all others."""
    shapes = symbol.infer_shape(**{name: array.shape for name, array in given.items()})[0]
    return {
        name: given.get(name, mx.nd.zeros(shape)) for name, shape in zip(symbol.list_arguments(), shapes, strict=True)
    }


def check(outputs, kept) -> None:
    for i, output in enumerate(outputs):
        assert output.stype == str(kept[f"stype{i}"])
        np.testing.assert_allclose(output.asnumpy(), kept[f"output{i}"], rtol=1e-4, atol=1e-5)


@pytest.fixture
def quiet():
    """Without warnings of dense copies."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "\nStorage type fallback")
        yield


@pytest.mark.parametrize("name", MODELS)
def test_an_executor_computes_what_mxnet_did_with_its_storage_types(mx, name, quiet) -> None:
    symbol, arguments, inputs, kept = opened(mx, name)
    executor = symbol.bind(mx.cpu(), with_labels(mx, symbol, {**arguments, **inputs}))
    check(executor.forward(), kept)


@pytest.mark.parametrize("name", MODELS)
def test_a_module_computes_what_mxnet_did(mx, name, quiet) -> None:
    symbol, arguments, inputs, kept = opened(mx, name)
    labels = [one for one in symbol.list_arguments() if one.endswith("label")]
    module = mx.mod.Module(symbol, data_names=list(inputs), label_names=labels or None)
    module.bind([(one, array.shape) for one, array in inputs.items()], None, for_training=False)
    module.set_params(arguments, {})
    module.forward(mx.io.DataBatch(list(inputs.values())), is_train=False)
    check(module.get_outputs(), kept)


@pytest.mark.parametrize("name", MODELS)
def test_simple_bind_makes_arrays_with_the_storage_types_of_variables(mx, name, quiet) -> None:
    symbol, arguments, inputs, kept = opened(mx, name)
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", **{one: array.shape for one, array in inputs.items()})
    for one, array in {**arguments, **inputs}.items():
        assert executor.arg_dict[one].stype == array.stype
    executor.copy_params_from(arguments)
    check(executor.forward(**inputs), kept)


@pytest.mark.parametrize("name", ["machine", "sagemaker_machine", "learner", "wide_and_deep", "embedding"])
def test_sixty_four_threads_compute_at_once_and_wrong_rows_fail_alone(mx, name, quiet) -> None:
    symbol, arguments, inputs, kept = opened(mx, name)
    held = with_labels(mx, symbol, {**arguments, **inputs})
    wrong = {} if name == "embedding" else {"data": damaged(mx)}

    def call(number: int) -> None:
        executor = symbol.bind(mx.cpu(), held)
        for turn in range(10):
            if wrong and (number + turn) % 4 == 0:
                with pytest.raises(mx.base.MXNetError, match=f"column {FEATURES}"):
                    symbol.bind(mx.cpu(), {**held, **wrong}).forward()[0].asnumpy()
            check(executor.forward(), kept)

    in_threads(64, call)


def test_sagemakers_artifacts_are_modules_whose_weights_are_read_by_their_names(mx) -> None:
    machine = mx.mod.Module.load(str(FOLDER / "sagemaker_machine"), 0, False, label_names=["out_label"])
    shapes = {name: machine._arg_params[name].asnumpy().shape for name in ("v", "w1_weight", "w0_weight")}
    assert shapes == {"v": (FEATURES, 8), "w1_weight": (FEATURES, 1), "w0_weight": (1,)}
    learner = mx.mod.Module.load(str(FOLDER / "learner"), 0, label_names=["out_label"])
    assert learner._arg_params["fc0_weight"].shape == (3, FEATURES)
    _, _, inputs, kept = opened(mx, "learner")
    learner.bind([("data", (6, FEATURES))], [("out_label", (6,))], for_training=False)
    learner.forward(mx.io.DataBatch([inputs["data"]]), is_train=False)
    check(learner.get_outputs(), kept)


def damaged(mx):
    """A matrix with a column that does not exist."""
    return mx.nd.sparse.csr_matrix(([1.0], [FEATURES], [0] + [1] * 6), shape=(6, FEATURES))


def test_threads_share_a_machine_while_its_weights_change(mx) -> None:
    symbol, arguments, inputs, kept = opened(mx, "machine")
    held = with_labels(mx, symbol, {**arguments, **inputs})
    wrong = []

    def call() -> None:
        executor = symbol.bind(mx.cpu(), held)
        for _ in range(20):
            found = executor.forward()[0].asnumpy()
            if not np.allclose(found, kept["output0"], rtol=1e-4, atol=1e-5):
                wrong.append(found)

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        held["v"][:] = arguments["v"].copy()
    for thread in threads:
        thread.join()
    assert not wrong
    held["v"][:] = mx.nd.sparse.zeros("row_sparse", held["v"].shape)
    linear = inputs["data"].asnumpy() @ held["w"].asnumpy() + held["bias"].asnumpy()
    found = symbol.bind(mx.cpu(), held).forward()[0].asnumpy()
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-linear)), rtol=1e-4, atol=1e-5)


def test_a_node_without_a_kernel_for_sparse_arrays_warns_as_mxnet_does(mx, monkeypatch) -> None:
    monkeypatch.setattr(sys.modules["mxrt.ndarray._sparse_arrays"], "_WARNED", {})
    symbol, arguments, inputs, _ = opened(mx, "layers")
    with pytest.warns(mx.base.MXNetRuntimeWarning) as found:
        symbol.bind(mx.cpu(), {**arguments, **inputs}).forward()[0].wait_to_read()
    [one] = [str(warning.message) for warning in found]
    assert "\noperator = softmax\ninput storage types = [csr, ]\noutput storage types = [default, ]\n" in one
    assert '\nparams = {"axis" : 1, }\ncontext.dev_mask = cpu\n' in one


def test_damaged_positions_are_the_error_of_a_graph(mx) -> None:
    symbol, arguments, inputs, kept = opened(mx, "machine")
    held = with_labels(mx, symbol, {**arguments, "data": damaged(mx)})
    with pytest.raises(mx.base.MXNetError, match=f"column {FEATURES}"):
        symbol.bind(mx.cpu(), held).forward()[0].asnumpy()
    check(symbol.bind(mx.cpu(), {**held, **inputs}).forward(), kept)


def test_arrays_of_a_million_columns_need_no_dense_copy() -> None:
    code = """
    import json
    import numpy as np
    import mxrt as mx
    columns, factors = 1_000_000, 16
    x, v = mx.sym.var("data", stype="csr"), mx.sym.var("v", stype="row_sparse")
    net = mx.sym.sum(mx.sym.square(mx.sym.dot(x, v)) - mx.sym.dot(mx.sym.square(x), mx.sym.square(v)), axis=1)
    rows = np.arange(0, columns, 1000)
    given = {
        "data": mx.nd.sparse.csr_matrix(([1.0, 2.0], [1000, 5000], [0, 2] + [2] * 999), shape=(1000, columns)),
        "v": mx.nd.sparse.row_sparse_array((np.ones((len(rows), factors), "float32"), rows), shape=(columns, factors)),
    }
    mx.set_memory_limit(40 << 20)
    print(json.dumps(net.bind(mx.cpu(), given).forward()[0].asnumpy()[:2].tolist()))
    """
    assert last_json(run_python(code)) == [16 * (9 - 5), 0]


def test_wrong_storage_is_refused_with_the_node(mx) -> None:
    data = mx.sym.var("data")
    net = mx.sym.sparse.retain(data, mx.sym.var("rows"), name="kept")
    given = {"data": mx.nd.ones((2, 2)).tostype("csr"), "rows": mx.nd.array([1])}
    with pytest.raises(mx.base.MXNetError, match=r"'kept': retain takes a row_sparse array"):
        net.bind(mx.cpu(), given).forward()


# ---- storage of results --------------------------------------------------------------------------


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_a_variable_that_is_a_result_is_stored_as_its_array(mx, stype: str) -> None:
    value = mx.nd.array([[0, 1], [2, 0]]).tostype(stype)
    x = mx.sym.var("x", stype=stype)
    assert [one.stype for one in mx.sym.Group([x, x * 2]).eval(x=value)] == [stype, stype]
    (copied,) = x.eval(x=value)
    assert copied is not value and copied.asnumpy().tolist() == [[0, 1], [2, 0]]


def test_results_of_executors_are_stored_before_the_first_forward_as_after_it(mx) -> None:
    x = mx.sym.var("x", stype="csr")
    executor = (x + x).simple_bind(mx.cpu(), "null", x=(2, 2))
    (early,) = executor.outputs
    assert early.stype == "csr" and not early.asnumpy().any()
    executor.forward(x=mx.nd.array([[0, 1], [2, 0]]).tostype("csr"))
    assert early.stype == executor.outputs[0].stype == "csr"
    assert early.asnumpy().tolist() == executor.outputs[0].asnumpy().tolist() == [[0, 2], [4, 0]]


def test_parameters_of_a_module_are_stored_as_their_variables_ask(mx, tmp_path) -> None:
    weight = mx.sym.var("weight", stype="row_sparse", shape=(2, 2))
    net = mx.sym.dot(mx.sym.var("data", stype="csr"), weight)
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (1, 2))], for_training=False)
    dense = mx.nd.array([[1, 2], [3, 4]])
    for value in (dense, dense.tostype("row_sparse")):
        module.set_params({"weight": value}, {})
        held = module.get_params()[0]["weight"]
        assert held.stype == "row_sparse" and held.asnumpy().tolist() == [[1, 2], [3, 4]]
        module.forward(mx.io.DataBatch([mx.nd.array([[0, 1]]).tostype("csr")]))
        assert module.get_outputs()[0].asnumpy().tolist() == [[3, 4]]
    module.save_params(str(tmp_path / "p.params"))
    assert mx.nd.load(str(tmp_path / "p.params"))["arg:weight"].stype == "row_sparse"


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_parameters_of_blocks_are_dense_whatever_the_file_stores(mx, tmp_path, stype: str) -> None:
    names = [str(tmp_path / name) for name in ("m-symbol.json", "m-0000.params")]
    mx.sym.dot(mx.sym.Variable("data"), mx.sym.Variable("w")).save(names[0])
    mx.nd.save(names[1], {"arg:w": mx.nd.array(np.eye(3)).tostype(stype)})
    block = mx.gluon.SymbolBlock.imports(names[0], ["data"], names[1])
    (weight,) = block.collect_params().values()
    assert weight.data().stype == "default" and weight.data().asnumpy().tolist() == np.eye(3).tolist()
    assert block(mx.nd.ones((2, 3))).stype == "default"
    block.save_parameters(names[1])
    assert [array.stype for array in mx.nd.load(names[1]).values()] == ["default"]


def test_operators_in_python_say_how_their_results_are_stored(mx) -> None:
    class Square(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            x = in_data[0]
            seen.append((x.stype, out_data[0].stype))
            if x.stype == "csr":
                x = mx.nd.sparse.csr_matrix((x.data * x.data, x.indices, x.indptr), shape=x.shape)
                self.assign(out_data[0], req[0], x)
            else:
                self.assign(out_data[0], req[0], x * x)

    @mx.operator.register("stored_square")
    class SquareProp(mx.operator.CustomOpProp):
        def infer_storage_type(self, in_stype):
            return in_stype, [in_stype[0]], []

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Square()

    @mx.operator.register("wrongly_stored")
    class WrongProp(SquareProp):
        def infer_storage_type(self, in_stype):
            return in_stype, ["thin"], []

    seen: list = []
    dense = mx.nd.array([[0, 3], [0, 0]])
    for stype in ("default", "csr", "row_sparse"):
        made = mx.nd.Custom(dense.tostype(stype), op_type="stored_square")
        assert made.stype == stype and made.asnumpy().tolist() == [[0, 9], [0, 0]]
    assert seen == [(stype, stype) for stype in ("default", "csr", "row_sparse")]
    out = mx.nd.sparse.zeros("csr", (2, 2))
    mx.nd.Custom(data=dense.tostype("csr"), op_type="stored_square", out=out)
    assert out.asnumpy().tolist() == [[0, 9], [0, 0]]
    with pytest.raises(ValueError, match="thin"):
        mx.nd.Custom(dense.tostype("csr"), op_type="wrongly_stored")


def test_a_call_runs_an_operator_in_python_once_whatever_comes_after_it(mx) -> None:
    """The layers after it take too long for a call that holds the interpreter's lock."""
    calls = []

    class Counted(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            calls.append(None)
            self.assign(out_data[0], req[0], in_data[0])

    @mx.operator.register("t_counted")
    class CountedProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Counted()

    x = mx.sym.var("x")
    hidden = mx.sym.Custom(mx.sym.sparse.dot(x, mx.sym.var("w", shape=(8, 64))), op_type="t_counted")
    hidden = mx.sym.sparse.dot(mx.sym.cast_storage(hidden, "csr"), mx.sym.var("v", shape=(64, 64)))
    for layer in range(12):
        hidden = mx.sym.FullyConnected(hidden, mx.sym.var(f"w{layer}", shape=(64, 64)), num_hidden=64, no_bias=True)
    net = mx.gluon.SymbolBlock(hidden, [x])
    net.initialize()
    data = mx.nd.array(np.eye(4, 8)).tostype("csr")
    for turn in range(1, 4):
        net(data).wait_to_read()
        assert len(calls) == turn
