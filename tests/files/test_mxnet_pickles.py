"""Pickles of MXNet 1.9.1 are read, and files that are no models are named."""

from __future__ import annotations

import base64
import pickle

import numpy as np
import pytest

from support import recorded, run_python

PICKLES = recorded("pickles")


@pytest.fixture
def read(mx):
    """Reads a pickle of MXNet, by the names that its modules have."""

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> object:
            return super().find_class(module.replace("mxnet", "mxrt", 1), name)

    def read(name: str) -> object:
        import io

        return Reader(io.BytesIO(base64.b64decode(PICKLES[name])), encoding="latin1").load()

    return read


def test_arrays_that_mxnet_pickled_are_read(mx, read) -> None:
    for protocol in (0, 2, 4):
        array = read(f"array, protocol {protocol}")
        assert isinstance(array, mx.nd.NDArray) and array.asnumpy().tolist() == [[1, 2], [3, 4]]
    assert (read("array, protocol 2") + 1).asnumpy().tolist() == [[2, 3], [4, 5]]
    held = read("array of int8")
    assert held.dtype is np.int8 and held.asnumpy().tolist() == [1, -2]
    first, second = read("list of arrays")
    assert first.shape == (2, 2) and second.asnumpy().tolist() == [1]
    params = read("dict of arrays")
    assert list(params) == ["w", "b"] and params["b"].dtype is np.float16 and params["b"].asscalar() == 5


def test_an_array_that_was_on_a_gpu_is_read_without_one(mx) -> None:
    """The state of ``mx.nd.arange(1, ctx=mx.gpu())`` under MXNet."""
    state = "c9fa93f90000000001000000010000000000000002000000000000000000000000000000"
    array = mx.nd.ones(3)
    array.__setstate__({"handle": bytearray.fromhex(state)})
    assert array.asnumpy().tolist() == [0] and array.context == mx.cpu()


def test_a_csr_matrix_without_storage_is_read_empty(mx, tmp_path) -> None:
    """The record of ``mx.nd.abs(mx.nd.sparse.zeros('csr', (3, 2)))`` under MXNet."""
    record = bytes.fromhex(
        "c9fa93f90200000001000000000000000000000002000000030000000000000002000000000000000100000000000000"
        "00000000060000000100000000000000000000000600000001000000" + "00" * 8
    )
    array = mx.nd.sparse.zeros("csr", (1, 1))
    array.__setstate__({"handle": bytearray(record)})
    (tmp_path / "x.params").write_bytes(b"\x12\1" + bytes(14) + b"\1" + bytes(7) + record + bytes(8))
    (loaded,) = mx.nd.load(str(tmp_path / "x.params"))
    for one in (array, loaded):
        assert one.stype == "csr" and one.asnumpy().tolist() == [[0, 0]] * 3
        assert one.indptr.asnumpy().tolist() == [0, 0, 0, 0]


def test_an_array_has_the_state_that_mxnet_pickles(mx) -> None:
    state = mx.nd.arange(1).__getstate__()
    # As MXNet 1.9.1 gives it.
    assert state["handle"].hex() == "c9fa93f90000000001000000010000000000000001000000000000000000000000000000"
    for array in (mx.nd.ones((2, 3), dtype="int8"), mx.np.array(3.0), mx.nd.ones((2, 3)).tostype("csr")):
        again = array * 0
        with mx.util.np_shape(True):
            again.__setstate__(array.__getstate__())
        assert again.dtype == array.dtype and again.stype == array.stype
        assert np.array_equal(again.asnumpy(), array.asnumpy())


def test_a_scalar_of_mx_np_is_read_in_np_shape_semantics(mx) -> None:
    """The state of ``mx.np.array(3.0)`` under MXNet, outside of its np mode."""
    state = {"handle": bytearray.fromhex("c9fa93f9000000000000000001000000000000000000000000004040")}
    array = mx.nd.ones(1)
    with pytest.raises(mx.base.MXNetDataError, match=r"a scalar of mx\.np.*np_shape\(True\)"):
        array.__setstate__(state)
    with mx.util.np_shape(True):
        array.__setstate__(state)
    assert array.shape == () and array.asnumpy() == 3


def test_an_array_becomes_another_one_once(mx, read) -> None:
    array = read("array, protocol 2")
    with pytest.raises(RuntimeError, match="already"):
        array._become(mx.nd.ones(1))


def test_symbols_and_contexts_that_mxnet_pickled_are_read(mx, read) -> None:
    symbol = read("symbol")
    assert symbol.list_arguments() == ["data", "fc_weight", "fc_bias"]
    held = symbol.bind(mx.cpu(), [mx.nd.ones((1, 3)), mx.nd.ones((2, 3)), mx.nd.ones((2,))])
    assert held.forward()[0].asnumpy().tolist() == [[4, 4]]
    assert read("context") == mx.Context("gpu", 1) and read("context of the host") == mx.cpu()


def test_parameters_that_mxnet_pickled_are_read(mx, read) -> None:
    weight = read("Parameter")
    assert weight.name == "d_weight" and weight.data().asnumpy().tolist() == [[1, 1, 1]] * 2
    params = read("ParameterDict")
    assert list(params) == ["d_weight", "d_bias"] and params["d_bias"].data().asnumpy().tolist() == [0, 0]


def test_pickles_are_read_where_mxrt_stands_in_for_mxnet() -> None:
    code = """
        import base64, pickle, sys
        import mxrt
        mxrt.install_as_mxnet()
        print(pickle.loads(base64.b64decode(sys.argv[1])).asnumpy().tolist())
    """
    assert run_python(code, PICKLES["array, protocol 2"]).stdout.strip() == "[[1.0, 2.0], [3.0, 4.0]]"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4000000\n", "git lfs pull"),
        (b"<!DOCTYPE html><html>404</html>", "HTML"),
        (b"\n<html><body>moved</body></html>", "HTML"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "XML"),
        (b"\x1f\x8b\x08\0" + b"a" * 30, "gzip"),
        (b"PK\x03\x04" + b"a" * 30, "zip archive"),
        (b"PK\x03\x04" + bytes(22) + b"\x10\0\0\0archive/data.pkl", r"torch\.load"),
        (b"PK\x03\x04" + bytes(22) + b"\x09\0\0\0arr_0.npy", r"numpy\.load"),
        (b"\x08\x07\x12\x07pytorch\x1a\x03" + b"a" * 30, "ONNX"),
        (b"\x89HDF\r\n\x1a\n" + b"a" * 30, "HDF5"),
        (b"\x80\x04\x95" + b"a" * 30, "pickle"),
        (b"\x93NUMPY\x01\0" + b"a" * 30, r"numpy\.load"),
        (b"\xfd7zXZ\0" + b"a" * 30, "xz"),
        (b"\x18\0\0\0TFL3" + b"a" * 30, "TensorFlow Lite"),
        (b"\x20\0\0\0\0\0\0\0" + b'{"a":{}}' + b" " * 30, "safetensors"),
        (b"\xef\xbb\xbf" + b'{"nodes": []}', "byte order mark"),
        (b"<center>403 Forbidden</center>", "HTML"),
        (b"404: Not Found", "download that failed"),
        (b'{"message":"Not Found","status":"404"}', "download that failed"),
        (b"archive/" + bytes(249) + b"ustar\x0000" + bytes(250), "tar archive"),
    ],
)
def test_files_that_are_no_models_are_named(mx, tmp_path, content: bytes, words: str) -> None:
    path = tmp_path / "m-0000.params"
    path.write_bytes(content)
    for load in (mx.nd.load, mx.sym.load):
        with pytest.raises(mx.base.MXNetDataError, match=words):
            load(str(path))


@pytest.mark.parametrize("address", ["s3://bucket/m-0000.params", "https://host/m-symbol.json"])
def test_an_address_is_no_path(mx, address: str) -> None:
    for load in (mx.nd.load, mx.sym.load):
        with pytest.raises(FileNotFoundError, match="download the file first"):
            load(address)
