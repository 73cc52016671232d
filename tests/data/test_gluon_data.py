"""Data sets, samplers and loaders: ``mx.gluon.data``."""

from __future__ import annotations

import gc
import gzip
import io
import multiprocessing
import os
import pickle
import signal
import struct
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from support import run_python

WORKERS = [{}, {"num_workers": 2}, {"num_workers": 2, "thread_pool": True}]
BACKGROUND = WORKERS[1:]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# ---- data sets -----------------------------------------------------------------------------------


def test_arrays_are_data_sets(mx) -> None:
    data = mx.gluon.data
    x, y = mx.nd.arange(12).reshape((4, 3)), mx.nd.array([3, 2, 1, 0])
    pairs = data.ArrayDataset(x, y)
    assert len(pairs) == 4
    assert pairs[1][0].asnumpy().tolist() == [3, 4, 5]
    assert pairs[1][1] == 2.0 and isinstance(pairs[1][1], np.float32)
    assert data.ArrayDataset([5, 6])[1] == 6
    with pytest.raises(AssertionError, match="same length"):
        data.ArrayDataset([1, 2], [1])
    with pytest.raises(AssertionError, match="at least 1"):
        data.ArrayDataset()


def test_data_sets_are_transformed_cut_and_filtered(mx) -> None:
    data = mx.gluon.data
    numbers = data.SimpleDataset(list(range(10)))
    calls = []

    def double(x):
        calls.append(x)
        return 2 * x

    lazy = numbers.transform(double)
    assert calls == [] and lazy[3] == 6 and calls == [3]
    assert list(numbers.transform(double, lazy=False)._data) == list(range(0, 20, 2))
    pairs = data.ArrayDataset([1, 2, 3], [4, 5, 6])
    assert pairs.transform(lambda a, b: a + b)[2] == 9
    assert pairs.transform_first(lambda a: -a)[1] == (-2, 5)
    assert pickle.loads(pickle.dumps(pairs.transform_first(abs)))[1] == (2, 5)

    def listed(dataset):
        return [dataset[i] for i in range(len(dataset))]

    assert [listed(numbers.shard(3, i)) for i in range(3)] == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert listed(numbers.take(3)) == [0, 1, 2] and len(numbers.take(None)) == 10 and len(numbers.take(99)) == 10
    assert listed(numbers.filter(lambda x: x % 4 == 1)) == [1, 5, 9]
    assert listed(numbers.sample(data.SequentialSampler(3, 4))) == [4, 5, 6]
    with pytest.raises(AssertionError, match="Shard index of out bound"):
        numbers.shard(3, 3)
    with pytest.raises(TypeError, match="Invalid sampler type"):
        numbers.sample([1, 2])


def test_samplers(mx) -> None:
    data = mx.gluon.data
    np.random.seed(3)
    order = list(data.RandomSampler(6))
    # MXNet 1.9.1 after the same seed.
    assert order == [3, 5, 4, 1, 0, 2] and len(data.RandomSampler(6)) == 6
    assert list(data.FilterSampler(lambda x: x > 4, [1, 7, 3, 9])) == [1, 3]
    assert list(data.IntervalSampler(7, 3)) == [0, 3, 6, 1, 4, 2, 5]
    skipping = data.IntervalSampler(7, 3, rollover=False)
    assert list(skipping) == [0, 3, 6] and len(skipping) == 3
    with pytest.raises(ValueError, match="Interval 8"):
        data.IntervalSampler(7, 8)


def test_batches_of_positions(mx) -> None:
    data = mx.gluon.data
    ten = data.SequentialSampler(10)
    kept = data.BatchSampler(ten, 3, "keep")
    assert list(kept) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]] and len(kept) == 4
    discarded = data.BatchSampler(ten, 3, "discard")
    assert list(discarded) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]] and len(discarded) == 3
    rolled = data.BatchSampler(ten, 4, "rollover")
    assert len(rolled) == 2 and list(rolled) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert len(rolled) == 3 and next(iter(rolled)) == [8, 9, 0, 1]
    with pytest.raises(ValueError, match="last_batch must be one of"):
        list(data.BatchSampler(ten, 3, "drop"))


# ---- loaders -------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_are_those_of_the_samples_in_order(mx, workers) -> None:
    data = mx.gluon.data
    rows = np.random.RandomState(0).rand(50, 3).astype("float32")
    loader = data.DataLoader(data.ArrayDataset(mx.nd.array(rows), np.arange(50)), 8, **workers)
    assert len(loader) == 7
    for _ in range(2):
        batches = list(loader)
        assert [len(batch[0]) for batch in batches] == [8] * 6 + [2]
        assert np.array_equal(np.concatenate([batch[0].asnumpy() for batch in batches]), rows)
        labels = [batch[1] for batch in batches]
        assert labels[0].dtype == np.int64
        assert np.array_equal(np.concatenate([label.asnumpy() for label in labels]), np.arange(50))
    batches[0][0][:] = 1  # arrays of a batch are ordinary ones
    assert batches[0][0].asnumpy().sum() == 24


@pytest.mark.parametrize("workers", WORKERS)
def test_a_shuffled_epoch_has_each_sample_once(mx, workers) -> None:
    loader = mx.gluon.data.DataLoader(list(range(20)), 6, shuffle=True, last_batch="rollover", **workers)
    np.random.seed(0)
    first = np.concatenate([batch.asnumpy() for batch in loader])
    second = np.concatenate([batch.asnumpy() for batch in loader])
    assert len(first) == 18 and len(second) == 18 and len(set(first)) == 18 and list(first) != sorted(first)


def test_functions_that_make_batches(mx) -> None:
    make = mx.gluon.data.batchify
    assert make.Stack()([[1, 2], [3, 4]]).asnumpy().tolist() == [[1, 2], [3, 4]]
    assert make.Stack("int32")([1, 2]).dtype == np.int32
    assert make.Stack()([mx.nd.ones((2,)), mx.nd.zeros((2,))]).asnumpy().tolist() == [[1, 1], [0, 0]]
    assert make.Stack()(np.arange(3)).dtype == np.int64
    padded = make.Pad(val=-1)([[1, 2, 3], [4]])
    assert padded.asnumpy().tolist() == [[1, 2, 3], [4, -1, -1]] and padded.dtype == np.float32
    assert make.Pad(round_to=4)([np.ones((2, 3)), np.ones((1, 5))]).shape == (2, 4, 8)
    with pytest.raises(ValueError, match="different numbers of axes"):
        make.Pad()([np.ones(2), np.ones((1, 2))])
    assert [a.shape for a in make.Append()([[1, 2], [3]])] == [(1, 2), (1, 1)]
    pair = make.Group(make.Stack(), make.AsList())([([1, 2], "a"), ([3, 4], "b")])
    assert pair[0].shape == (2, 2) and pair[1] == ["a", "b"]
    with pytest.raises(AssertionError, match="samples have 2 elements but there are 1 functions"):
        make.Group(make.Stack())([(1, 2)])


class Troubled:
    """Sample 5 raises, sample 9 is a StopIteration, 12 fails when its array is read; others are
    numbers.
    """

    def __init__(self, mx) -> None:
        self.mx = mx

    def __len__(self) -> int:
        return 16

    def __getitem__(self, i: int):
        if i == 5:
            raise KeyError("five")
        if i == 9:
            raise StopIteration
        if i == 12:
            return (
                self.mx.testing.fail(self.mx.nd.zeros((1,)), "twelve") if hasattr(self.mx.testing, "fail") else {}[12]
            )
        return i


@pytest.mark.parametrize("workers", WORKERS)
def test_a_failure_comes_from_the_next_that_would_have_returned_the_batch(mx, workers) -> None:
    batches = iter(mx.gluon.data.DataLoader(Troubled(mx), 2, batchify_fn=list, **workers))
    assert [next(batches), next(batches)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="five") as caught:
        next(batches)
    if workers and "thread_pool" not in workers:
        assert "in __getitem__" in str(caught.value.__cause__), "the traceback of the worker is its cause"
    assert next(batches) == [6, 7], "the iterator goes on behind it"
    with pytest.raises(mx.MXNetError, match="raised StopIteration"):
        next(batches)
    assert next(batches) == [10, 11]
    with pytest.raises((mx.MXNetError, KeyError)):
        batch = next(batches)
        batch[0].asnumpy()
    assert list(batches) == [[14, 15]]


@pytest.mark.parametrize("workers", WORKERS)
def test_a_failure_of_the_sampler_comes_behind_the_batches_before_it(mx, workers) -> None:
    class Sampler:
        def __iter__(self):
            yield [0, 1]
            yield [2]
            raise OSError("no more")

    batches = iter(mx.gluon.data.DataLoader([7, 8, 9], batch_sampler=Sampler(), batchify_fn=list, **workers))
    assert [next(batches), next(batches)] == [[7, 8], [9]]
    with pytest.raises(OSError, match="no more"):
        next(batches)
    with pytest.raises(StopIteration):
        next(batches)


class Killing(list):
    def __getitem__(self, i):
        if i == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        if i == 9:
            os._exit(3)
        return super().__getitem__(i)


def test_a_worker_process_that_dies_fails_its_batch_alone(mx) -> None:
    loader = mx.gluon.data.DataLoader(Killing(range(14)), 2, num_workers=2, batchify_fn=list)
    for _ in range(2):
        batches = iter(loader)
        assert [next(batches), next(batches)] == [[0, 1], [2, 3]]
        with pytest.raises(mx.base.MXNetDataError, match=r"was killed by signal 9 \(SIGKILL\) while it made batch 2"):
            next(batches)
        assert next(batches) == [6, 7]
        with pytest.raises(mx.base.MXNetDataError, match="ended with status 3 while it made batch 4"):
            next(batches)
        assert list(batches) == [[10, 11], [12, 13]]


def test_exceptions_that_cannot_be_pickled_come_as_text(mx) -> None:
    class Local(Exception):
        pass

    class Dataset(list):
        def __getitem__(self, i):
            raise Local(f"sample {i}")

    with pytest.raises(mx.base.MXNetDataError, match="batch 0: Local: sample 0"):
        next(iter(mx.gluon.data.DataLoader(Dataset([1]), 1, num_workers=1)))
    with pytest.raises((AttributeError, pickle.PicklingError), match="local object"):
        next(iter(mx.gluon.data.DataLoader([lambda: 1, 2], 2, num_workers=1, batchify_fn=lambda x: [lambda: x])))


@pytest.mark.parametrize("workers", BACKGROUND)
def test_a_batch_that_takes_too_long_can_be_waited_for_again(mx, workers, tmp_path: Path) -> None:
    gate = tmp_path / "open"

    class Waits(list):
        def __getitem__(self, i):
            while not gate.exists():
                time.sleep(0.01)
            return i

    batches = iter(mx.gluon.data.DataLoader(Waits([0, 1]), 1, timeout=0.2, batchify_fn=list, **workers))
    with pytest.raises(mx.base.MXNetTimeoutError, match=r"batch 0 was not made within 0.2 seconds"):
        next(batches)
    gate.touch()
    found = []
    while len(found) < 2:
        try:
            found.append(next(batches))
        except TimeoutError:
            pass
    assert found == [[0], [1]]
    with pytest.raises(AssertionError, match="timeout must be positive"):
        mx.gluon.data.DataLoader([1], 1, timeout=0)


@pytest.mark.parametrize("workers", BACKGROUND)
def test_loaders_leave_nothing_behind(mx, workers) -> None:
    loader = mx.gluon.data.DataLoader(np.zeros((64, 3), "float32"), 4, **workers)
    next(iter(loader))
    gc.collect()
    before = descriptors()
    for _ in range(20):
        batches = iter(loader)  # stops early
        next(batches)
        del batches
        for _ in loader:
            pass
    del loader
    left = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        gc.collect()  # tracebacks of earlier tests
        left = [t.name for t in threading.enumerate() if t.name.startswith("mxrt-data")]
        left += [p.name for p in multiprocessing.active_children() if p.name == "mxrt-data"]
        if not left and descriptors() <= before:
            break
        time.sleep(0.01)
    assert left == []
    assert descriptors() <= before


@pytest.mark.parametrize("workers", WORKERS)
def test_threads_may_share_an_iterator(mx, workers) -> None:
    batches = iter(mx.gluon.data.DataLoader(list(range(200)), 2, batchify_fn=list, **workers))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: next(batches), range(100)))
    assert sorted(found) == [[i, i + 1] for i in range(0, 200, 2)]


@pytest.mark.parametrize("workers", WORKERS)
def test_iterators_of_one_loader_are_independent(mx, workers) -> None:
    loader = mx.gluon.data.DataLoader(list(range(6)), 2, batchify_fn=list, **workers)
    pairs = [(a, b) for a in loader for b in loader]
    assert len(pairs) == 9 and pairs[1] == ([0, 1], [2, 3])


@pytest.mark.parametrize("workers", WORKERS)
def test_a_forked_process_makes_an_iterator_of_its_own(mx, workers) -> None:
    loader = mx.gluon.data.DataLoader(list(range(6)), 2, batchify_fn=list, **workers)
    batches = iter(loader)
    assert next(batches) == [0, 1]
    child = os.fork()
    if child == 0:
        try:
            next(batches)
        except mx.MXNetError as error:
            assert "belongs to the process" in str(error)
            del batches
            os._exit(7 if len(list(loader)) == 3 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert list(batches) == [[2, 3], [4, 5]]


class Drawn(list):
    """Samples that are random numbers."""

    def __getitem__(self, i):
        return np.random.randint(1 << 30)


def test_random_numbers_of_processes_depend_on_the_seed_and_the_batch_alone(mx) -> None:
    def epochs(count: int):
        np.random.seed(5)
        loader = mx.gluon.data.DataLoader(Drawn(range(12)), 3, num_workers=count)
        return [[batch.asnumpy().tolist() for batch in loader] for _ in range(2)]

    one, two = epochs(1), epochs(3)
    assert one == two
    flat = [number for epoch in one for batch in epoch for number in batch]
    assert len(set(flat)) == len(flat), "batches, workers and epochs have numbers of their own"


def test_arguments_of_loaders(mx) -> None:
    data = mx.gluon.data
    with pytest.raises(ValueError, match="batch_size must be specified"):
        data.DataLoader([1])
    with pytest.raises(ValueError, match="shuffle must not be specified if sampler"):
        data.DataLoader([1], 1, shuffle=True, sampler=data.SequentialSampler(1))
    with pytest.raises(ValueError, match="must not be specified if batch_sampler"):
        data.DataLoader([1], 1, batch_sampler=[[0]])
    pinned = next(iter(data.DataLoader([1.0, 2.0], 2, pin_memory=True)))
    assert pinned.context == mx.cpu_pinned(0)
    made = []
    eager = data.DataLoader(
        data.SimpleDataset([0, 1]).transform(made.append),
        1,
        batchify_fn=list,
        num_workers=1,
        thread_pool=True,
        auto_reload=True,
    )
    deadline = time.monotonic() + 60
    while len(made) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sorted(made) == [0, 1], "auto_reload makes batches before the first iteration"
    assert len(list(eager)) == 2


def test_samples_are_taken_as_they_are_needed_without_workers(mx) -> None:
    made = []
    batches = iter(
        mx.gluon.data.DataLoader(mx.gluon.data.SimpleDataset([1, 2, 3]).transform(made.append), 1, batchify_fn=list)
    )
    assert made == []
    next(batches)
    assert made == [1]


def test_arrays_go_through_multiprocessing_in_shared_memory(mx) -> None:
    assert mx.gluon.data is not None
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(mx.nd.ones, ((2, 3),)).asnumpy().tolist() == [[1] * 3] * 2
        assert pool.apply(mx.nd.array, ([],)).shape == (0,)


def test_exit_with_live_iterators(mx) -> None:
    code = """
        import mxrt as mx, time
        data = list(range(1000))
        a = iter(mx.gluon.data.DataLoader(data, 2, num_workers=2))
        b = iter(mx.gluon.data.DataLoader(data, 2, num_workers=2, thread_pool=True))
        print(next(a).asnumpy().tolist(), next(b).asnumpy().tolist())
    """
    done = run_python(code)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[0, 1] [0, 1]", "")


def test_ctrl_c_ends_the_wait_for_a_batch(mx) -> None:
    code = """
        import os, signal, threading, time
        import mxrt as mx
        class Slow(list):
            def __getitem__(self, i):
                time.sleep(30)
        for kind in ({}, {"thread_pool": True}):
            batches = iter(mx.gluon.data.DataLoader(Slow([1]), 1, num_workers=1, **kind))
            try:
                threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
                next(batches)
            except KeyboardInterrupt:
                print("interrupted")
    """
    done = run_python(code)
    assert (done.returncode, done.stdout) == (0, "interrupted\ninterrupted\n"), done.stderr


# ---- images of files -----------------------------------------------------------------------------


def idx_file(values: np.ndarray) -> bytes:
    return struct.pack(f">{values.ndim + 1}I", 0x800 + values.ndim, *values.shape) + values.tobytes()


def test_mnist_is_read_from_its_files(mx, tmp_path: Path) -> None:
    vision = mx.gluon.data.vision
    with pytest.raises(mx.base.MXNetDataError, match=r"train-labels-idx1-ubyte.gz'.*training labels.*nothing"):
        vision.MNIST(str(tmp_path))
    images = np.random.RandomState(1).randint(0, 256, (5, 28, 28)).astype("uint8")
    labels = np.arange(5, dtype="uint8")
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_file(images)))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_file(labels))
    for kind in (vision.MNIST, vision.FashionMNIST):
        digits = kind(str(tmp_path))
        image, label = digits[3]
        assert len(digits) == 5 and image.shape == (28, 28, 1) and image.dtype == np.uint8
        assert np.array_equal(image.asnumpy()[..., 0], images[3]) and label == 3 and label.dtype == np.int32
    assert vision.MNIST(str(tmp_path), transform=lambda x, y: y + 1)[3] == 4
    for content, message in (
        (b"\x1f\x8b rubbish", "cannot be read"),
        (gzip.compress(b"text"), "is no IDX file of images"),
        (gzip.compress(idx_file(images)[:-1]), "has 3919 bytes of images, but its header says"),
        (gzip.compress(idx_file(images[:4])), r"images have shape \(4, 28, 28\), expected \(5, 28, 28\)"),
    ):
        (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(content)
        with pytest.raises(mx.base.MXNetDataError, match=message):
            vision.MNIST(str(tmp_path))


def test_cifar_is_read_from_its_files_or_archive(mx, tmp_path: Path) -> None:
    vision = mx.gluon.data.vision
    with pytest.raises(mx.base.MXNetDataError, match=r"data_batch_1.bin'.*cifar-10-binary.tar.gz"):
        vision.CIFAR10(str(tmp_path))
    rows = np.random.RandomState(1).randint(0, 256, (4, 3073)).astype("uint8")
    (tmp_path / "test_batch.bin").write_bytes(rows.tobytes())
    ten = vision.CIFAR10(str(tmp_path), train=False)
    image, label = ten[2]
    assert len(ten) == 4 and image.shape == (32, 32, 3) and label == rows[2, 0]
    assert image.asnumpy()[5, 7].tolist() == [rows[2, 1 + 1024 * c + 32 * 5 + 7] for c in range(3)]
    content = np.random.RandomState(2).randint(0, 20, (3, 3074)).astype("uint8")
    with tarfile.open(tmp_path / "cifar-100-binary.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("cifar-100-binary/train.bin")
        member.size = content.nbytes
        archive.addfile(member, io.BytesIO(content.tobytes()))
    assert vision.CIFAR100(str(tmp_path))[1][1] == content[1, 0]
    assert vision.CIFAR100(str(tmp_path), fine_label=True)[1][1] == content[1, 1]
    with pytest.raises(mx.base.MXNetDataError, match=r"has no file 'test.bin'"):
        vision.CIFAR100(str(tmp_path), train=False)
    (tmp_path / "test_batch.bin").write_bytes(b"123")
    with pytest.raises(mx.base.MXNetDataError, match="has 3 bytes, expected a multiple of 3073"):
        vision.CIFAR10(str(tmp_path), train=False)


def test_records_are_a_data_set_for_all_workers(mx, tmp_path: Path) -> None:
    path = tmp_path / "x.rec"
    with mx.recordio.MXIndexedRecordIO(str(tmp_path / "x.idx"), str(path), "w") as writer:
        for i in range(40):
            writer.write_idx(i, f"record {i}".encode())
    dataset = mx.gluon.data.RecordFileDataset(str(path))
    for workers in WORKERS:
        batches = list(mx.gluon.data.DataLoader(dataset, 8, batchify_fn=list, **workers))
        assert [record for batch in batches for record in batch] == [f"record {i}".encode() for i in range(40)]


def test_positions_come_from_samplers_without_a_length(mx) -> None:
    class Odd(mx.gluon.data.Sampler):
        def __iter__(self):
            return iter([3, 1])

    letters = mx.gluon.data.SimpleDataset("abcd")
    assert letters.sample(Odd())[0] == "d"
    # As in MXNet, where a negative count is none.
    assert letters.take(-1)._indices == []


def test_samples_are_tested_and_transformed_in_the_order_of_iteration(mx) -> None:
    data = mx.gluon.data
    assert list(data.FilterSampler(str.isupper, (letter for letter in "aBcD"))) == [1, 3]

    class Unknown(data.Dataset):
        def __getitem__(self, idx):
            return "aBcD"[idx]

    assert list(Unknown().filter(str.isupper)) == ["B", "D"]
    longer = data.SimpleDataset("aBcD").sample(data.SequentialSampler(6))
    assert list(longer.transform(str.lower, lazy=False)) == ["a", "b", "c", "d"]

    class Endless(Unknown):
        def __getitem__(self, idx):
            return idx

        def __len__(self):
            return 3

    assert list(data.FilterSampler(bool, Endless())) == [1, 2]


def test_what_to_do_with_a_short_batch_matters_where_there_is_one(mx) -> None:
    data = mx.gluon.data
    whole, short = (data.BatchSampler(range(count), 2, "no such word") for count in (4, 3))
    assert list(map(list, whole)) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="last_batch must be one of"):
        list(map(list, short))
