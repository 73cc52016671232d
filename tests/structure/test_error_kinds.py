"""The kinds of failure: the table in Rust and the classes of ``mxrt.base`` say the same."""

from __future__ import annotations

import builtins
import importlib
import pickle
import pkgutil

import pytest

import mxrt
from mxrt import _mxrt, base
from mxrt._output.codes import CODES

KINDS = _mxrt.failure_kinds()
# Kinds of errors that Python code alone raises.
OF_PYTHON = {"key", "multiple"}


@pytest.mark.parametrize(("kind", "name", "built_in", "code"), KINDS)
def test_a_kind_has_a_class_that_callers_expect(kind: str, name: str, built_in: str, code: str) -> None:
    found = getattr(base, name)
    assert name in base.__all__
    assert issubclass(found, base.MXNetError)
    assert issubclass(found, getattr(builtins, built_in))
    assert CODES[kind] == code, "the code of Rust and C"
    error = found("what", kind=kind)
    assert (error.kind, error.message, str(error)) == (kind, "what", f"what [{CODES[kind]}]")
    again = pickle.loads(pickle.dumps(error))
    assert (again.kind, str(again)) == (kind, str(error))


def test_an_error_that_quotes_another_ends_with_its_own_code_alone() -> None:
    inner = base.MXNetShapeError("shapes differ")
    outer = base.MXNetDataError(f"file 'a': {inner}; write it again")
    assert str(outer) == "file 'a': shapes differ; write it again [MX-DATA]"
    several = base.MultipleErrors([inner, outer])
    assert str(several).splitlines()[1:] == [f"  {inner}", f"  {outer} [MX-MULTIPLE]"]
    assert str(pickle.loads(pickle.dumps(several))) == str(several)


def test_every_error_that_mxrt_raises_has_a_code_that_can_be_explained() -> None:
    classes = [base.MXNetError]
    for known in classes:
        classes += [one for one in known.__subclasses__() if one.__module__.partition(".")[0] == "mxrt"]
    assert [one for one in classes if one.kind not in CODES] == []
    assert base.MXNetError("what", kind="of a program").code == "MX-OPERATOR"


def test_every_class_belongs_to_a_kind() -> None:
    classes = [found for name in base.__all__ if isinstance(found := getattr(base, name), type)]
    known = {kind for kind, *_ in KINDS} | OF_PYTHON
    assert {found.kind for found in classes if issubclass(found, base.MXNetError)} <= known


def test_every_class_of_the_package_is_printed_as_an_mxnet_error_and_can_be_pickled() -> None:
    for found in pkgutil.walk_packages(mxrt.__path__, "mxrt."):
        if not found.name.startswith(("mxrt.bench", "mxrt.__main__")):
            importlib.import_module(found.name)
    classes = [base.MXNetError]
    for known in classes:
        classes += known.__subclasses__()
    own = [one for one in classes if one.__module__.partition(".")[0] == "mxrt"]
    assert len(own) > 20
    for one in own:
        assert "MXNetError" in one.__qualname__
        assert pickle.loads(pickle.dumps(one)) is one


def test_classes_of_programs_keep_their_names() -> None:
    class Mine(base.MXNetError):
        pass

    assert Mine.__qualname__.endswith("<locals>.Mine")
    assert not hasattr(base.MXNetError, "Mine")


def test_an_error_names_the_input_that_is_to_blame(mx) -> None:
    data = mx.sym.var("data")
    net = mx.gluon.SymbolBlock(mx.sym.FullyConnected(data, num_hidden=4, name="fc"), data)
    net.initialize()
    net(mx.nd.ones((2, 3)))
    with pytest.raises(mx.base.MXNetError) as raised:
        net(mx.nd.ones((2, 5))).wait_to_read()
    error = raised.value
    assert (error.input, error.got, error.wanted) == ("data", "(2, 5)", "(2, 3)")
    again = pickle.loads(pickle.dumps(error))
    assert (again.input, again.got, again.wanted) == (error.input, error.got, error.wanted)
    with pytest.raises(mx.base.MXNetError) as raised:
        mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))
    assert (raised.value.input, raised.value.got, raised.value.wanted) == (None, None, None)


def test_a_call_of_a_whole_graph_is_named_as_a_call(mx) -> None:
    large = mx.sym.UpSampling(mx.sym.var("data"), scale=512, sample_type="nearest")
    net = mx.gluon.SymbolBlock(mx.sym.Pooling(large, global_pool=True, kernel=(1, 1), name="last"), mx.sym.var("data"))
    x = mx.nd.ones((1, 1, 4, 4))
    mx.cpu().set_memory_limit(mx.cpu().memory_info()["in_use"] + (1 << 20))
    try:
        with pytest.raises(MemoryError, match=r"^CachedOp\(last_output\): allocating"):
            net(x).wait_to_read()
    finally:
        mx.cpu().set_memory_limit(None)
