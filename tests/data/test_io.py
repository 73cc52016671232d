"""Batches: NDArrayIter, CSVIter and what they hand out."""

from __future__ import annotations

import gc
import inspect
import os
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from support import PEAK_KIB, last_json, run_python


def batches(iterator) -> list:
    return [(batch.data[0].asnumpy(), batch.label, batch.pad) for batch in iterator]


def test_ndarrayiter_pads_the_last_batch_from_the_beginning(mx) -> None:
    data = np.arange(14, dtype=np.float32).reshape(7, 2)
    iterator = mx.io.NDArrayIter({"data": data}, batch_size=3, last_batch_handle="pad")
    seen = batches(iterator)
    assert [pad for _, _, pad in seen] == [0, 0, 2]
    assert np.array_equal(np.concatenate([d for d, _, _ in seen]), np.concatenate([data, data[:2]]))
    iterator.reset()
    assert len(batches(iterator)) == 3


def test_ndarrayiter_may_discard_the_last_batch_and_carries_labels(mx) -> None:
    data, label = np.zeros((7, 2), np.float32), np.arange(7, dtype=np.float32)
    iterator = mx.io.NDArrayIter(data, label, batch_size=3, last_batch_handle="discard")
    assert [d.name for d in iterator.provide_data] == ["data"]
    assert [d.name for d in iterator.provide_label] == ["softmax_label"]
    assert iterator.provide_data[0].shape == (3, 2)
    assert [batch.label[0].asnumpy().tolist() for batch in iterator] == [[0, 1, 2], [3, 4, 5]]


def test_matrices_with_the_interface_of_scipy_become_csr(mx) -> None:
    class Matrix:
        """[[0, 2], [1, 0]]"""

        format, nnz, shape, dtype, has_canonical_format = "csr", 2, (2, 2), np.dtype("float32"), True
        data, indices, indptr = np.array([2, 1], "float32"), np.array([1, 0]), np.array([0, 1, 2])

        def toarray(self) -> np.ndarray:
            raise AssertionError("a dense copy")

    for make in (mx.nd.array, mx.nd.sparse.array, mx.nd.sparse.csr_matrix):
        made = make(Matrix())
        assert made.stype == "csr" and made.asnumpy().tolist() == [[0, 2], [1, 0]]
    iterator = mx.io.NDArrayIter({"words": Matrix()}, np.zeros(2), 1, last_batch_handle="discard")
    assert [batch.data[0].asnumpy().tolist() for batch in iterator] == [[[0, 2]], [[1, 0]]]


def test_datadesc_is_a_name_and_a_shape(mx) -> None:
    desc = mx.io.DataDesc("data", (4, 3), "float32")
    name, shape = desc
    assert (name, shape) == ("data", (4, 3))
    assert np.dtype(desc.dtype) == np.float32


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{k},{k + 0.5},{-k},1e{k}\n" for k in range(5)))
    return path


def test_csviter_reads_rows_in_their_shape(mx, csv: Path) -> None:
    iterator = mx.io.CSVIter(data_csv=str(csv), data_shape=(2, 2), batch_size=2)
    seen = batches(iterator)
    want = np.array([[k, k + 0.5, -k, 10.0**k] for k in range(5)], np.float32).reshape(5, 2, 2)
    assert [pad for _, _, pad in seen] == [0, 0, 1]
    assert np.allclose(np.concatenate([d for d, _, _ in seen])[:5], want)


@pytest.mark.parametrize(
    ("content", "shape", "words"),
    [
        ("1,2,3,4\n2,3,4,5\n", (4, 10), ["4", "[4,10]"]),
        ("1,2\n3,4\n5\n", (2,), ["3"]),
        ("1,2\n3,four\n", (2,), ["four", "2"]),
    ],
    ids=["rows of another size", "one short row", "a word"],
)
def test_csviter_names_the_row_that_is_wrong(mx, tmp_path: Path, content: str, shape, words: list[str]) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text(content)
    with pytest.raises(mx.base.MXNetError) as caught:
        for batch in mx.io.CSVIter(data_csv=str(path), data_shape=shape, batch_size=1):
            batch.data[0].asnumpy()
    for word in ["wrong.csv", *words]:
        assert word in str(caught.value)


def test_csviter_names_a_missing_file(mx, tmp_path: Path) -> None:
    with pytest.raises(mx.base.MXNetError, match=r"nowhere\.csv"):
        for _ in mx.io.CSVIter(data_csv=str(tmp_path / "nowhere.csv"), data_shape=(2,), batch_size=1):
            pass


def test_an_iterator_is_a_class_with_signature_and_documentation(mx, csv: Path) -> None:
    cls = mx.io.CSVIter
    assert issubclass(cls, mx.io.MXDataIter) and issubclass(cls, mx.io.DataIter)
    assert (cls.__name__, cls.__module__) == ("CSVIter", "mxrt.io")
    parameters = inspect.signature(cls).parameters
    assert list(parameters)[:5] == ["data_csv", "data_shape", "label_csv", "label_shape", "batch_size"]
    assert parameters["data_csv"].default is inspect.Parameter.empty
    assert parameters["round_batch"].default is True
    assert parameters["prefetch_buffer"].default == 4
    assert parameters["data_name"].default == "data"
    assert "data_shape : Shape(tuple), required\n    Extents of one sample" in cls.__doc__
    assert "CSVIter" in mx.io.__all__


def test_csviter_describes_its_batches_and_numbers_its_rows(mx, csv: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("".join(f"{k}\n" for k in range(5)))
    iterator = mx.io.CSVIter(csv, (2, 2), labels, batch_size=2, dtype=np.float32, data_name="x", label_name="y")
    assert iterator.batch_size == 2
    assert [(d.name, d.shape, d.dtype) for d in iterator.provide_data] == [("x", (2, 2, 2), np.float32)]
    assert [(d.name, d.shape) for d in iterator.provide_label] == [("y", (2,))]
    batch = next(iterator)
    assert batch.index.dtype == np.uint64
    assert batch.index.tolist() == [0, 1]
    assert batch.label[0].asnumpy().tolist() == [0, 1]
    with pytest.raises(mx.base.MXNetError, match="there is no current batch"):
        mx.io.CSVIter(csv, 4, batch_size=2).getdata()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"batch_size": 0}, "batch_size must be a positive number, not 0"),
        ({}, r"Required parameter batch_size of int \(non-negative\) is not presented"),
        ({"batch_size": 1, "data_shape": (2, 0)}, r"CSVIter: the shape \(2, 0\) must consist of positive numbers"),
        ({"batch_size": 1, "data_shape": "x"}, "Invalid Parameter format for data_shape expect Shape"),
        ({"batch_size": 1, "shuffle": True}, "Cannot find argument 'shuffle'"),
        ({"batch_size": 1, "num_parts": 0}, "value 0 for Parameter num_parts should be greater equal to 1"),
        ({"batch_size": 1, "dtype": "float16"}, "float16 is not supported for CSVIter; supported: float32, int32"),
        ({"batch_size": 2**40}, "a batch of .* could not be made"),
    ],
)
def test_csviter_names_the_argument_that_is_wrong(mx, csv: Path, arguments: dict, expected: str) -> None:
    with pytest.raises(mx.base.MXNetError, match=expected):
        mx.io.CSVIter(data_csv=csv, **{"data_shape": (4,), **arguments})


def test_csviter_says_a_positional_argument_twice(mx, csv: Path) -> None:
    with pytest.raises(TypeError, match="multiple values for argument 'data_csv'"):
        mx.io.CSVIter(csv, (4,), data_csv=csv, batch_size=1)
    with pytest.raises(TypeError, match="takes at most"):
        mx.io.CSVIter(*[1] * 20)


def test_batches_count_against_the_memory_limit(csv: Path) -> None:
    code = """
    import json, sys
    import mxrt as mx
    mx._mxrt.set_memory_limit(100 << 20)
    before = peak_kib()
    try:
        mx.io.CSVIter(data_csv=sys.argv[1], data_shape=(1000_000_000,), batch_size=1)
        text = "no error"
    except MemoryError as error:
        text = str(error)
    print(json.dumps([text, peak_kib() - before]))
    """
    text, grown_kib = last_json(run_python(PEAK_KIB + textwrap.dedent(code), csv))
    assert "a batch of float32(1, 1000000000) could not be made" in text
    assert grown_kib < 50_000


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder"])
@pytest.mark.parametrize(
    "call",
    [
        "mx.nd.load(path)",
        "mx.sym.load(path)",
        "mx.gluon.SymbolBlock.imports(path, ['data'])",
        "next(mx.io.CSVIter(data_csv=path, data_shape=(1,), batch_size=1))",
    ],
    ids=["nd.load", "sym.load", "imports", "CSVIter"],
)
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path: Path, call: str, kind: str) -> None:
    path = {"a pipe": tmp_path / "pipe", "a device": Path("/dev/zero"), "a folder": tmp_path}[kind]
    if kind == "a pipe":
        os.mkfifo(path)
    code = f"""
    import json, sys
    import mxrt as mx
    path = sys.argv[1]
    try:
        {call}
        text = "no error"
    except mx.base.MXNetError as error:
        text = str(error)
    print(json.dumps(text))
    """
    text = last_json(run_python(code, path, timeout=30))
    wanted = {"a pipe": "Not an ordinary file", "a device": "Not an ordinary file", "a folder": "director"}[kind]
    assert wanted in text or (kind == "a folder" and "Cannot find any files" in text)
    assert str(path) in text


# ---- PrefetchingIter -----------------------------------------------------------------------------


class Counting:
    """Batches with one number; batch `fails` raises, and so does `reset` where it is told to."""

    def __init__(self, mx, count: int, fails: int | None = None) -> None:
        self.mx, self.count, self.fails, self.at = mx, count, fails, 0
        self.batch_size = 1
        self.provide_data = [("data", (1,))]
        self.provide_label = [("label", (1,))]
        self.fails_to_reset = False

    def next(self):
        number, self.at = self.at, self.at + 1
        if number == self.fails:
            raise OSError(f"batch {number}")
        if number >= self.count:
            raise StopIteration
        return self.mx.io.DataBatch([self.mx.nd.array([number])], [self.mx.nd.array([-number])], pad=0)

    def reset(self) -> None:
        if self.fails_to_reset:
            raise OSError("no way back")
        self.at = 0


def numbers_of(batches) -> list[list[float]]:
    return [[float(array.asnumpy()[0]) for array in batch.data] for batch in batches]


def test_batches_are_made_ahead_and_iterators_joined(mx) -> None:
    one = mx.io.PrefetchingIter(Counting(mx, 3))
    for _ in range(2):
        assert numbers_of(one) == [[0], [1], [2]]
        with pytest.raises(StopIteration):
            one.next()
        one.reset()
    one.next()
    one.reset()  # in the middle
    assert numbers_of(one) == [[0], [1], [2]]
    two = mx.io.PrefetchingIter(
        [Counting(mx, 2), Counting(mx, 2)],
        rename_data=[{"data": "a"}, {"data": "b"}],
        rename_label=[{"label": "x"}, {"label": "y"}],
    )
    assert [desc.name for desc in two.provide_data + two.provide_label] == ["a", "b", "x", "y"]
    assert two.batch_size == 1 and numbers_of(two) == [[0, 0], [1, 1]]
    rows = mx.io.NDArrayIter(np.arange(6).reshape(3, 2), np.arange(3), batch_size=2)
    batches = list(mx.io.PrefetchingIter(rows))
    assert [batch.pad for batch in batches] == [0, 1]
    assert batches[1].data[0].asnumpy().tolist() == [[4, 5], [0, 1]]


def test_a_failure_ahead_comes_in_its_place(mx) -> None:
    batches = mx.io.PrefetchingIter(Counting(mx, 5, fails=2))
    assert numbers_of([batches.next(), batches.next()]) == [[0], [1]]
    with pytest.raises(OSError, match="batch 2"):
        batches.next()
    assert numbers_of(batches) == [[3], [4]]
    batches.reset()
    assert numbers_of([batches.next()]) == [[0]]
    batches.iters[0].fails_to_reset = True
    with pytest.raises(OSError, match="no way back"):
        batches.reset()
    batches.iters[0].fails_to_reset = False
    batches.reset()
    assert numbers_of([batches.next()]) == [[0]]
    uneven = mx.io.PrefetchingIter([Counting(mx, 1), Counting(mx, 2)])
    uneven.next()
    for expected in (mx.MXNetError, AssertionError):  # MXNet asserts
        with pytest.raises(expected, match="Number of entry mismatches"):
            uneven.next()
        uneven.reset()
        # As in MXNet, the last batch stays until there is another one.
        assert numbers_of([uneven.current_batch]) == [[0, 0]]
        uneven.next()
    with pytest.raises(AssertionError):
        mx.io.PrefetchingIter([])


def test_prefetching_starts_anew_in_a_fork(mx) -> None:
    batches = mx.io.PrefetchingIter(Counting(mx, 5))
    batches.next()
    child = os.fork()
    if child == 0:
        try:
            batches.next()
        except mx.MXNetError as error:
            batches.reset()
            os._exit(7 if "call reset" in str(error) and numbers_of(batches)[0] == [0] else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert numbers_of(batches) == [[1], [2], [3], [4]]


def test_files_that_are_not_local_are_fetched_by_fsspec(mx, csv: Path, monkeypatch) -> None:
    with pytest.raises(mx.base.MXNetError, match=r"only local files can be read, not memory://, unless .* fsspec"):
        monkeypatch.setitem(sys.modules, "fsspec", None)
        mx.io.CSVIter("memory://rows.csv", (2, 2), batch_size=2)
    opened = []

    def fetch(path: str, mode: str):
        opened.append((path, mode))
        if "missing" in path:
            raise FileNotFoundError(path)
        return csv.open(mode)

    monkeypatch.setitem(sys.modules, "fsspec", SimpleNamespace(open=fetch))
    want = next(mx.io.CSVIter(str(csv), (2, 2), batch_size=2)).data[0].asnumpy()
    iterator = mx.io.CSVIter(f"memory://rows.csv;{csv}", (2, 2), batch_size=2)
    copies = iterator._copies.folder
    assert opened == [("memory://rows.csv", "rb")] and os.listdir(copies) == ["1-rows.csv"]
    assert (next(iterator).data[0].asnumpy() == want).all()
    del iterator
    gc.collect()
    assert not os.path.exists(copies)
    with pytest.raises(mx.base.MXNetError, match=r"'memory://missing.csv' cannot be fetched: FileNotFoundError"):
        mx.io.CSVIter("memory://missing.csv", (2, 2), batch_size=2)


def test_an_iterator_of_a_program_defines_what_its_batches_have(mx) -> None:
    class Twice(mx.io.DataIter):
        left = 2

        def iter_next(self) -> bool:
            self.left -= 1
            return self.left >= 0

        def getdata(self):
            return [mx.nd.ones((1, 2))]

    batches = list(Twice(1))
    assert [batch.data[0].shape for batch in batches] == [(1, 2)] * 2
    assert [(batch.label, batch.pad, batch.index) for batch in batches] == [(None, None, None)] * 2
    assert list(mx.io.DataIter()) == []


def test_an_ndarrayiter_says_where_it_is(mx) -> None:
    rows = mx.io.NDArrayIter({"a": np.zeros((5, 2)), "b": np.zeros((5, 1))}, np.arange(5), batch_size=2)
    assert rows.data[0][0] == "a" and rows.label[0][1].asnumpy().tolist() == [0, 1, 2, 3, 4]
    assert rows.num_source == 3 and [values.shape for values in rows.data_list] == [(5, 2), (5, 1), (5,)]
    assert [rows.cursor, *[rows.cursor for _ in rows]] == [-2, 0, 2, 4]
