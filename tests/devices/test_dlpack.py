"""Arrays are shared with other libraries through DLPack, here with numpy: without copies, and never
freed too early.
"""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

from support import run_python

DTYPES = "float32 float64 float16 uint8 int8 int16 int32 int64 uint16 uint32 uint64 bool".split()
NEW_NUMPY = tuple(int(n) for n in np.__version__.split(".")[:2]) >= (2, 1)
needs_new_numpy = pytest.mark.skipif(not NEW_NUMPY, reason="this numpy knows DLPack 0 only")


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_and_mxrt_share_the_elements(mx, dtype: str) -> None:
    values = np.arange(6).reshape(2, 3).astype(dtype)
    x = mx.nd.array(values, dtype=dtype)
    shared = np.from_dlpack(x)
    assert shared.dtype == values.dtype and np.array_equal(shared, values)
    x[:] = 0
    x.wait_to_read()
    assert not shared.any(), "a write of an operator is seen by numpy"
    source = values.copy()
    y = mx.nd.from_dlpack(source)
    assert y.dtype == values.dtype and np.array_equal(y.asnumpy(), values)
    source[1, 2] = 0
    assert y[1, 2].asscalar() == 0, "what numpy writes is seen by operators"


def test_views_are_shared_at_their_place(mx) -> None:
    x = mx.nd.arange(12).reshape((4, 3))
    assert np.array_equal(np.from_dlpack(x[1:3]), [[3, 4, 5], [6, 7, 8]])
    assert np.from_dlpack(x[2]).ctypes.data == np.from_dlpack(x).ctypes.data + 6 * 4


def test_a_consumer_gets_a_value_that_is_there(mx) -> None:
    x = mx.nd.ones((256, 256))
    for _ in range(50):
        x = mx.nd.dot(x, x) / 256
    assert (np.from_dlpack(x) == 1).all()


def test_a_failed_array_is_not_given_away(mx) -> None:
    bad = mx.nd.take(mx.nd.ones((2, 2)), mx.nd.array([9]), mode="raise")
    with pytest.raises(mx.base.MXNetError):
        np.from_dlpack(bad)
    with pytest.raises(mx.base.MXNetError):
        bad.to_dlpack_for_read()


def settled_memory(mx) -> int:
    """Bytes in use when what earlier tests left is gone."""
    gc.collect()
    mx.nd.waitall()
    return mx.runtime.info()["memory_in_use"]


def test_memory_outlives_the_array_until_the_consumer_lets_go(mx) -> None:
    before = settled_memory(mx)
    x = mx.nd.ones((1024, 1024))
    shared = np.from_dlpack(x)
    del x
    for _ in range(10):
        mx.nd.zeros((1024, 1024)).asnumpy()
    assert (shared == 1).all()
    assert settled_memory(mx) > before + 3 * 1024 * 1024
    del shared
    assert settled_memory(mx) < before + 4 * 1024 * 1024


def test_a_capsule_that_nobody_takes_frees_the_memory(mx) -> None:
    before = settled_memory(mx)
    for _ in range(20):
        x = mx.nd.ones((1024, 1024))
        x.__dlpack__()
        x.__dlpack__(max_version=(1, 0))
        x.to_dlpack_for_read()
        x.to_dlpack_for_write()
        del x
    assert settled_memory(mx) < before + 4 * 1024 * 1024


class Producer:
    """A library of its own: an array whose deleter can be watched."""

    class Tensor(ctypes.Structure):
        _fields_ = (
            ("data", ctypes.c_void_p),
            ("device", ctypes.c_int * 2),
            ("ndim", ctypes.c_int),
            ("dtype", ctypes.c_uint8 * 2),
            ("lanes", ctypes.c_uint16),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.POINTER(ctypes.c_int64)),
            ("byte_offset", ctypes.c_uint64),
        )

    Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    Managed = type(
        "Managed", (ctypes.Structure,), {"_fields_": [("t", Tensor), ("c", ctypes.c_void_p), ("d", Deleter)]}
    )

    def __init__(self, values: np.ndarray, device: tuple[int, int] = (1, 0), dtype: tuple[int, int] = (2, 32)) -> None:
        self.values = values
        self.deleted = 0
        item = values.dtype.itemsize
        self.shape = (ctypes.c_int64 * values.ndim)(*values.shape)
        self.strides = (ctypes.c_int64 * values.ndim)(*(n // item for n in values.strides))
        managed = self.Managed()
        tensor = managed.t
        # The byte offset counts, too.
        tensor.data, tensor.byte_offset = values.ctypes.data - 64, 64
        tensor.device[0], tensor.device[1] = device
        tensor.dtype[0], tensor.dtype[1], tensor.lanes = *dtype, 1
        tensor.ndim, tensor.shape, tensor.strides = values.ndim, self.shape, self.strides
        managed.d = self.Deleter(self._delete)
        self.managed = managed

    def _delete(self, _: int) -> None:
        self.deleted += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return tuple(self.managed.t.device)

    def __dlpack__(self) -> object:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


def test_the_producers_deleter_is_called_once_when_the_last_user_is_done(mx) -> None:
    producer = Producer(np.arange(8, dtype=np.float32))
    x = mx.nd.from_dlpack(producer)
    y = mx.nd.dot(x.reshape((1, 8)), x.reshape((8, 1)))
    view = x[2:4]
    del x
    assert producer.deleted == 0
    assert y.asscalar() == 140 and view.asnumpy().tolist() == [2, 3]
    del view, y
    mx.nd.waitall()
    mx.nd.zeros((1,)).asnumpy()  # a worker may have dropped the last handle: then it is called by the next visitor
    assert producer.deleted == 1


@pytest.mark.parametrize(
    "part",
    [np.s_[::2, 1:], np.s_[::-1], np.s_[:, ::-2], np.s_[1:2, ::3], np.s_[:0]],
    ids=["rows", "backwards", "columns", "one-row", "nothing"],
)
def test_elements_with_gaps_are_copied(mx, part: object) -> None:
    whole = np.arange(30, dtype=np.float32).reshape(5, 6)
    producer = Producer(whole[part])
    x = mx.nd.from_dlpack(producer)
    assert x.shape == whole[part].shape and np.array_equal(x.asnumpy(), whole[part])
    assert producer.deleted == 1, "a copy needs nothing of the producer"
    whole[:] = -1
    assert x.size == 0 or x.asnumpy().min() >= 0


def test_axes_of_one_element_may_have_any_stride(mx) -> None:
    values = np.lib.stride_tricks.as_strided(np.arange(4, dtype=np.float32), (1, 4), (64, 4))
    producer = Producer(values)
    x = mx.nd.from_dlpack(producer)
    assert producer.deleted == 0 and x.asnumpy().tolist() == [[0, 1, 2, 3]]


def test_wrong_arguments_are_named(mx) -> None:
    x = mx.nd.ones((2,))
    for stream in ("s", 1.5, [1]):
        with pytest.raises(TypeError, match="stream"):
            x.__dlpack__(stream=stream)
    for stream in (-1, 0, 1, 2, 2**40):
        with pytest.raises(ValueError, match="stream"):
            x.__dlpack__(stream=stream)
    for other in ([1, 2], object()):
        with pytest.raises(TypeError, match="__dlpack__"):
            mx.nd.from_dlpack(other)
    assert x.__dlpack_device__() == (1, 0)


def test_a_capsule_is_taken_once(mx) -> None:
    x = mx.nd.array([1, 2])
    capsule = mx.nd.to_dlpack_for_read(x)
    assert mx.nd.from_dlpack(capsule).asnumpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="taken"):
        mx.nd.from_dlpack(capsule)
    written = mx.nd.from_dlpack(mx.nd.to_dlpack_for_write(x))
    written[:] = 5
    written.wait_to_read()
    assert x.asnumpy().tolist() == [5, 5]


def test_what_cannot_be_an_array_is_refused_and_given_back(mx) -> None:
    for device in ((2, 0), (12, 3)):
        producer = Producer(np.ones(4, np.float32), device=device)
        with pytest.raises(mx.base.MXNetDeviceError, match="device"):
            mx.nd.from_dlpack(producer)
        assert producer.deleted == 0, "nothing was asked for, so nothing is to be given back"
        with pytest.raises(mx.base.MXNetDeviceError, match="device"):
            mx.nd.from_dlpack(producer.__dlpack__())
        assert producer.deleted == 1
    producer = Producer(np.ones(4, np.float32), dtype=(5, 64))
    with pytest.raises(TypeError, match="elements"):
        mx.nd.from_dlpack(producer)
    assert producer.deleted == 1


class _ForReading:
    """Gives an array to others only to be read."""

    def __init__(self, array: object) -> None:
        self.array = array

    def __dlpack__(self, max_version: tuple[int, int] | None = None, **_: object) -> object:
        return self.array.to_dlpack_for_read(max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@needs_new_numpy
def test_copies_and_read_only_memory_are_asked_for_by_version(mx) -> None:
    x = mx.nd.array([1, 2, 3])
    assert np.from_dlpack(x).flags.writeable
    own = np.from_dlpack(x, copy=True)
    own[0] = 9
    assert x.asnumpy().tolist() == [1, 2, 3]

    reader = np.from_dlpack(_ForReading(x))
    assert not reader.flags.writeable and reader.tolist() == [1, 2, 3]
    kept = mx.nd.from_dlpack(_ForReading(x))
    kept[:] = 7
    assert kept.asnumpy().tolist() == [7, 7, 7] and x.asnumpy().tolist() == [1, 2, 3], "read-only memory is copied"
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
    assert np.array_equal(np.from_dlpack(x, device="cpu"), [1, 2, 3])


def test_from_numpy_shares_and_locks_the_source(mx) -> None:
    source = np.arange(6, dtype=np.int32).reshape(2, 3)
    x = mx.nd.from_numpy(source)
    x[0] = 9
    x.wait_to_read()
    assert source.tolist() == [[9, 9, 9], [3, 4, 5]]
    with pytest.raises(ValueError, match="read-only"):
        source[:] = 0
    again = mx.nd.from_numpy(source)  # read-only now: shared until it is written
    again[:] = 0
    assert again.asnumpy().max() == 0 and source[0, 0] == 9
    with pytest.raises(ValueError, match="contiguous"):
        mx.nd.from_numpy(np.ones((3, 4))[:, ::2])
    kept = np.ones(3, np.float32)
    y = mx.nd.from_numpy(kept, zero_copy=False)
    kept[:] = 2
    assert y.asnumpy().tolist() == [1, 1, 1]
    del kept


def _read_only(values: list[float]) -> np.ndarray:
    """An array over bytes that no one may write."""
    return np.frombuffer(np.array(values, np.float32).tobytes(), np.float32)


@needs_new_numpy
def test_from_numpy_reads_read_only_elements_where_they_lie(mx) -> None:
    source = _read_only([1, 2, 3])
    x, y = mx.nd.from_numpy(source), mx.nd.from_numpy(source)
    for shared in (x, y):
        reader = np.from_dlpack(_ForReading(shared))
        assert reader.__array_interface__["data"][0] == source.__array_interface__["data"][0]
        assert (shared + 1).asnumpy().tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    "write, expected",
    [
        (lambda mx, x: x.__setitem__(slice(None), 7), [7, 7, 7]),
        (lambda mx, x: x.__setitem__(1, 7), [1, 7, 3]),
        (lambda mx, x: x[1:].__iadd__(7), [1, 9, 10]),
        (lambda mx, x: mx.nd.elemwise_add(x, x, out=x), [2, 4, 6]),
        (lambda mx, x: mx.nd.array([7, 8, 9]).copyto(x), [7, 8, 9]),
        pytest.param(lambda mx, x: np.from_dlpack(x).__setitem__(2, 7), [1, 2, 7], marks=needs_new_numpy),
        (lambda mx, x: mx.nd.array([7, 8, 9], ctx=mx.sim(0)).copyto(x), [7, 8, 9]),
    ],
)
def test_read_only_elements_are_left_alone_by_whoever_writes(mx, write, expected) -> None:
    source = _read_only([1, 2, 3])
    x, y = mx.nd.from_numpy(source), mx.nd.from_numpy(source)
    write(mx, x)
    assert x.asnumpy().tolist() == expected
    assert source.tolist() == [1, 2, 3] and y.asnumpy().tolist() == [1, 2, 3]
    x[:] = 5
    assert x.asnumpy().tolist() == [5, 5, 5], "its own by now"


def test_numpys_memory_outlives_numpys_name_for_it(mx) -> None:
    x = mx.nd.from_numpy(np.full((512, 512), 3.0, np.float32))
    y = mx.nd.from_dlpack(np.full((512, 512), 4.0, np.float32))
    gc.collect()
    [np.zeros((512, 512), np.float32) for _ in range(20)]
    assert (x + y).asnumpy().mean() == 7


def test_a_model_notices_parameters_written_from_outside(mx) -> None:
    data = mx.sym.var("data")
    net = mx.gluon.SymbolBlock(mx.sym.FullyConnected(data, num_hidden=2, no_bias=True, name="fc"), data)
    net.collect_params().initialize(mx.init.One())
    x = mx.nd.ones((1, 3))
    assert net(x).asnumpy().tolist() == [[3, 3]]
    shared = np.from_dlpack(net.collect_params()["fc_weight"].data())
    shared[:] = 2
    del shared
    assert net(x).asnumpy().tolist() == [[6, 6]]


def test_the_process_ends_quietly_while_memory_is_shared(mx) -> None:
    done = run_python(
        """
        import numpy as np, mxrt as mx
        given = np.from_dlpack(mx.nd.ones((64, 64)))
        taken = mx.nd.from_dlpack(np.ones((64, 64), np.float32))
        capsule = taken.__dlpack__()
        later = mx.nd.dot(taken, taken)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_tensor_that_is_too_large_is_said_to_be(mx) -> None:
    producer = Producer(np.zeros((1, 1), np.float32))
    producer.shape[:] = (1 << 62, 8)
    with pytest.raises(BufferError, match=r"float32\(4611686018427387904, 8\) is larger than the address space"):
        mx.nd.from_dlpack(producer)
