"""The pictures and texts of models, arrays, errors and figures; warnings and their lines."""

from __future__ import annotations

import html.parser
import pickle
import warnings
from pathlib import Path

import pytest

from support import block_of, run_python


class Text(html.parser.HTMLParser):
    """The text of HTML whose elements are balanced."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""
        self.inner = ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.inner += dict(attrs).get("srcdoc") or ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(value) -> str:
    return Text(value._repr_html_()).text


def shown_ready(array) -> str:
    array.wait_to_read()
    return shown(array)


def test_a_model_names_its_inputs_with_shapes_and_the_size_of_its_parameters(mx) -> None:
    net = block_of(mx)
    for text in (repr(net), shown(net)):
        assert "input data" in text and "(N, 1, H, W)" in text
        assert "47, 0.31 MB of float32" in text
        assert "digitsnet_dense0_fwd_output" in text
    assert repr(net).startswith("SymbolBlock(\n<Symbol digitsnet_dense0_fwd> : 1 -> 1\n"), "as MXNet begins"


def test_a_model_whose_parameters_have_no_shape_yet_is_shown(mx) -> None:
    data = mx.sym.var("data")
    net = mx.gluon.SymbolBlock(mx.sym.FullyConnected(data, num_hidden=3, name="fc"), [data])
    assert "input data: of any shape" in repr(net) and "parameters: 2, 0.00 MB" in repr(net)
    net.initialize()
    net(mx.nd.ones((2, 5)))
    assert "input data: (N, 5)" in repr(net)


def test_a_model_that_is_a_program_shows_its_layers_and_the_size_of_its_parameters(mx) -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4, in_units=500), mx.gluon.nn.Dense(2, prefix="<last>"))
    text = shown(net)
    assert "HybridSequential" in text and "4, 0.01 MB of float32" in text and "Dense(500 -> 4, linear)" in text
    assert "Dense(None -> 2, linear)" in text, "a shape that is not known yet is no error"


def test_a_sparse_array_shows_how_many_values_it_stores(mx) -> None:
    csr = mx.nd.sparse.csr_matrix(([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
    text = shown_ready(csr)
    assert "csr" in text and "(2, 3)" in text and "(3,)" in text
    rows = mx.nd.sparse.row_sparse_array(([[1.0, 2.0]], [1]), shape=(4, 2))
    assert "row_sparse" in shown_ready(rows) and "(1, 2)" in shown(rows)


def test_a_summary_has_a_line_for_each_layer_and_computes_nothing(mx, capsys) -> None:
    net = block_of(mx)
    net.summary(mx.nd.zeros((2, 1, 8, 8)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "32 layers, 78,426 parameters, 1.5 million multiplications"
    (dense,) = (line.split() for line in lines if line.startswith("digitsnet_dense0_fwd"))
    assert dense[1:] == ["FullyConnected", "(2,", "10)", "650", "0.00"]
    with pytest.raises(mx.base.MXNetShapeError):
        net.summary(mx.nd.zeros((2, 3, 8, 8)))
    with pytest.raises(mx.base.MXNetTypeError, match="called without input"):
        net.summary()


def test_an_array_shows_its_value_and_one_that_failed_its_error(mx) -> None:
    ones = shown_ready(mx.nd.ones((2, 3)))
    assert "(2, 3)" in ones and "1." in ones

    class Failing(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            raise ValueError("not <today>")

    @mx.operator.register("failing_in_a_notebook")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Failing()

    bad = mx.nd.Custom(mx.nd.ones((2,)), op_type="failing_in_a_notebook")
    with pytest.raises(mx.MXNetError):
        bad.wait_to_read()
    assert "failed" in shown(bad) and "not <today>" in shown(bad)


def test_an_array_that_is_being_computed_is_waited_for_only_a_moment(mx) -> None:
    result = run_python("""
        import threading
        import mxrt as mx
        begun, go = threading.Event(), threading.Event()
        class Slow(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                begun.set(); go.wait()
                self.assign(out_data[0], req[0], in_data[0])
        @mx.operator.register("slow")
        class Prop(mx.operator.CustomOpProp):
            def create_operator(self, ctx, shapes, dtypes):
                return Slow()
        y = mx.nd.Custom(mx.nd.ones((2,)), op_type="slow")
        begun.wait()
        print("is being computed" in y._repr_html_())
        go.set()
        y.wait_to_read()
        print("is being computed" in y._repr_html_())
        mx._output.html._PATIENCE = 60
        begun.clear(); go.clear()
        z = mx.nd.Custom(mx.nd.ones((2,)), op_type="slow")
        begun.wait()
        threading.Timer(0.05, go.set).start()
        print("is being computed" in z._repr_html_())
    """)
    assert (result.stdout.split(), result.returncode) == (["True", "False", "False"], 0), result.stderr


def test_an_error_shows_all_that_it_knows_as_text(mx) -> None:
    with pytest.raises(mx.base.MXNetShapeError) as caught:
        block_of(mx)(mx.nd.zeros((2, 3, 8, 8)))
    text = shown(caught.value)
    for word in ("MXNetShapeError", "digitsnet_conv0_fwd", "wanted", "(2, 1, 8, 8)"):
        assert word in text
    assert "<script>" in shown(mx.MXNetError("<script>")), "as text"


def test_a_symbol_and_figures_of_memory_are_tables(mx) -> None:
    net = block_of(mx)
    text = shown(net._symbol)
    assert "9 Convolution" in text and "digitsnet_dense0_fwd_output" in text
    net(mx.nd.zeros((1, 1, 8, 8))).wait_to_read()
    for figures in (mx.cpu().memory_info(), net.plan_cache_info()):
        assert isinstance(figures, dict) and " MB (" in shown(figures)
        assert pickle.loads(pickle.dumps(figures)) == figures


def test_a_plan_is_text_and_in_a_notebook_a_page(mx) -> None:
    plan = block_of(mx).plan(mx.nd.zeros((1, 1, 8, 8)), measure=False)
    assert isinstance(plan, str) and plan.startswith("plan for float32(1, 1, 8, 8)")
    page = Text(plan._repr_html_()).inner
    assert page.startswith("<!doctype html>") and "digitsnet_conv0_fwd" in page
    assert str(pickle.loads(pickle.dumps(plan))) == str(plan)


# ---- warnings ------------------------------------------------------------------------------------


def test_warnings_are_of_own_classes_and_name_the_line_of_the_program(mx, tmp_path: Path) -> None:
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    file = str(tmp_path / "dense.params")
    net.save_parameters(file)
    x = mx.nd.ones((1,))
    calls = [
        (lambda: net.load_params(file), mx.base.MXNetWarning),
        (lambda: x.copyto(x), mx.base.MXNetRuntimeWarning),
        (lambda: mx.log.getLogger("x"), mx.base.MXNetDeprecationWarning),
    ]
    for call, kind in calls:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        assert [one.category for one in seen][:1] == [kind], (kind, [str(one.message) for one in seen])
        assert seen[0].filename == __file__, seen[0]
        assert seen[0].lineno == call.__code__.co_firstlineno
    assert issubclass(mx.base.MXNetDeprecationWarning, DeprecationWarning)
    assert issubclass(mx.base.MXNetRuntimeWarning, RuntimeWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error", mx.base.MXNetWarning)
        with pytest.raises(mx.base.MXNetWarning):
            net.load_params(file)
