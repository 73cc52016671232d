"""NDArrayIter: where its epochs begin and end, its order, and its axis of samples.

The values are those of MXNet 1.9.1.
"""

from __future__ import annotations

import numpy as np
import pytest

ROWS = np.arange(30, dtype=np.float32).reshape(10, 3)
LABELS = np.arange(10, dtype=np.float32)


def labels(iterator) -> list:
    return [batch.label[0].asnumpy().tolist() for batch in iterator]


def rolling(mx, batch_size: int = 4):
    return mx.io.NDArrayIter(ROWS, LABELS, batch_size, last_batch_handle="roll_over")


def test_rows_roll_over_only_if_the_end_was_reached(mx) -> None:
    iterator = rolling(mx)
    iterator.next()
    iterator.next()
    iterator.reset()
    assert labels(iterator) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    iterator.reset()
    assert labels(iterator) == [[8, 9, 0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]


def test_a_second_reset_drops_the_rows_that_roll_over(mx) -> None:
    iterator = rolling(mx)
    labels(iterator)
    iterator.reset()
    iterator.reset()
    assert labels(iterator) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    iterator.hard_reset()
    assert labels(iterator) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_batch_of_more_rows_than_there_are_rolls_over(mx) -> None:
    iterator = rolling(mx, 25)
    assert labels(iterator) == []
    iterator.reset()
    assert labels(iterator) == []
    iterator.reset()
    assert labels(iterator) == [[*range(10), *range(10), *range(5)]]


def test_the_cursor_is_that_of_mxnet(mx) -> None:
    iterator = rolling(mx)
    seen = [iterator.cursor]
    for _ in range(2):
        seen += [iterator.cursor for _ in iterator]
        seen.append(iterator.cursor)
        iterator.reset()
        seen.append(iterator.cursor)
    assert seen == [-4, 0, 4, 8, -6, -2, 2, 6, 10, -4]
    padded = mx.io.NDArrayIter(ROWS, LABELS, 4)
    assert labels(padded)[-1] == [8, 9, 0, 1]
    assert (padded.cursor, padded.iter_next(), padded.cursor) == (12, False, 16)
    padded.cursor = 2
    assert labels(padded) == [[6, 7, 8, 9]]


def test_shuffled_arrays_can_be_read_in_the_order_of_the_epoch(mx) -> None:
    np.random.seed(5)
    iterator = mx.io.NDArrayIter(ROWS, LABELS, 5, shuffle=True)
    for order in ([9, 5, 2, 4, 7, 1, 0, 8, 6, 3], [2, 5, 9, 7, 0, 1, 8, 6, 4, 3]):
        assert np.concatenate(labels(iterator)).tolist() == order
        assert dict(iterator.label)["softmax_label"].asnumpy().tolist() == order
        assert dict(iterator.data)["data"].asnumpy()[:, 0].tolist() == [3 * row for row in order]
        iterator.reset()
    iterator.data = [("data", ROWS + 100)]
    assert dict(iterator.data)["data"].asnumpy().tolist() == (ROWS + 100).tolist()
    assert next(iterator).data[0].asnumpy().tolist() == (ROWS[:5] + 100).tolist()


def by_hand(iterator) -> list:
    """The batches of a program that goes from one to the next by ``iter_next``."""
    seen = []
    while iterator.iter_next():
        data, label = iterator.getdata()[0], iterator.getlabel()[0].asnumpy().tolist()
        assert data.shape == (len(label), 3) and data.asnumpy()[:, 0].tolist() == [3 * row for row in label]
        seen.append((label, iterator.getpad(), iterator.getindex()))
    return seen


WHOLE = [([0, 1, 2, 3], 0, None), ([4, 5, 6, 7], 0, None)]


@pytest.mark.parametrize(
    ("handle", "last"),
    [
        ("pad", ([8, 9, 0, 1], 2, None)),
        ("discard", ([8, 9], 0, None)),
        ("roll_over", ([8, 9], 0, None)),
        ("no such word", ([8, 9], 0, None)),
    ],
)
def test_iter_next_goes_to_a_short_batch_too(mx, handle: str, last: tuple) -> None:
    iterator = mx.io.NDArrayIter(ROWS, LABELS, 4, last_batch_handle=handle)
    for _ in range(2):
        assert by_hand(iterator) == [*WHOLE, last] and iterator.cursor == 12
        assert not iterator.iter_next()
        with pytest.raises(AssertionError, match=r"DataIter needs reset\."):
            iterator.getdata()
        # The end was passed, so that nothing rolls over.
        iterator.reset()
        assert iterator.cursor == -4


@pytest.mark.parametrize("handle", ["discard", "no such word"])
def test_next_ends_at_a_short_batch_which_can_still_be_read(mx, handle: str) -> None:
    iterator = mx.io.NDArrayIter(ROWS, LABELS, 4, last_batch_handle=handle)
    for _ in range(2):
        assert labels(iterator) == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert (iterator.cursor, iterator.getpad(), iterator.getlabel()[0].asnumpy().tolist()) == (8, 0, [8, 9])
        iterator.reset()
        assert iterator.cursor == -4


def test_only_next_keeps_a_short_batch_for_the_next_epoch(mx) -> None:
    iterator = rolling(mx)
    while iterator.iter_next() and iterator.getlabel()[0].shape == (4,):
        pass
    iterator.reset()
    assert iterator.cursor == -6 and iterator.iter_next() and iterator.getpad() == 2
    with pytest.raises(AssertionError, match="next epoch should have cached data"):
        iterator.getdata()
    iterator.hard_reset()
    assert labels(iterator) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    iterator.reset()
    assert by_hand(iterator) == [([8, 9, 0, 1], 2, None), ([2, 3, 4, 5], 0, None), ([6, 7, 8, 9], 0, None)]


def test_short_batches_of_csr_matrices(mx) -> None:
    csr = mx.nd.array(ROWS).tostype("csr")
    iterator = mx.io.NDArrayIter(csr, LABELS, 4, last_batch_handle="discard")
    assert by_hand(iterator) == [*WHOLE, ([8, 9], 0, None)]
    iterator.reset()
    assert labels(iterator) == [[0, 1, 2, 3], [4, 5, 6, 7]] and iterator.getdata()[0].shape == (2, 3)
    for handle in ("pad", "roll_over", "no such word"):
        with pytest.raises(NotImplementedError, match="discard"):
            mx.io.NDArrayIter(csr, LABELS, 4, last_batch_handle=handle)


def test_next_leaves_out_what_a_subclass_cuts(mx) -> None:
    class Cut(mx.io.NDArrayIter):
        def getdata(self) -> list:
            return [one[: 4 if self.cursor < 4 else 3] for one in super().getdata()]

        def getindex(self) -> list:
            return [1]

    iterator = Cut(ROWS, LABELS, 4)
    batch = iterator.next()
    assert batch.data[0].shape == (4, 3) and batch.index is None
    with pytest.raises(StopIteration):
        iterator.next()


@pytest.mark.parametrize(
    ("handle", "expected"),
    [
        ("pad", [([0, 1, 2], 0), ([3, 0, 1], 2)]),
        ("discard", [([0, 1, 2], 0)]),
        ("roll_over", [([0, 1, 2], 0)]),
    ],
)
def test_layout_names_the_axis_of_samples(mx, handle: str, expected: list) -> None:
    steps, targets = np.arange(32, dtype=np.float32).reshape(4, 4, 2), np.arange(16, dtype=np.float32).reshape(4, 4)
    iterator = mx.io.NDArrayIter(steps, targets, 3, last_batch_handle=handle, layout="TNC")
    assert [(d.name, d.shape, d.layout) for d in iterator.provide_data] == [("data", (4, 3, 2), "TNC")]
    assert [(d.name, d.shape, d.layout) for d in iterator.provide_label] == [("softmax_label", (4, 3), "TNC")]
    seen = list(iterator)
    assert len(seen) == len(expected)
    for batch, (samples, pad) in zip(seen, expected, strict=True):
        assert batch.data[0].asnumpy().tolist() == steps[:, samples].tolist()
        assert batch.label[0].asnumpy().tolist() == targets[:, samples].tolist()
        assert batch.pad == pad


def test_samples_are_counted_along_their_axis(mx) -> None:
    # MXNet counts along the first axis: it fails here, and omits samples where steps are fewer.
    steps = np.arange(30, dtype=np.float32).reshape(5, 3, 2)
    iterator = mx.io.NDArrayIter(steps, None, 2, layout="TNC")
    assert iterator.num_data == 3
    assert [batch.data[0].shape for batch in iterator] == [(5, 2, 2), (5, 2, 2)]
    with pytest.raises(ValueError, match="layout is 'TC'; expected a letter for each axis, and N for samples"):
        mx.io.NDArrayIter(steps, None, 2, layout="TC")
    with pytest.raises(
        ValueError, match=r"layout 'TNC' has its samples on axis 1, which 'softmax_label' of shape \(3,"
    ):
        mx.io.NDArrayIter(steps, np.zeros(3), 2, layout="TNC")


def test_sizes_from_numpy_become_numbers_of_python(mx) -> None:
    iterator = mx.io.NDArrayIter(ROWS, LABELS, np.int64(4))
    assert type(iterator.batch_size) is int
    assert repr(iterator.provide_label[0]) == "DataDesc[softmax_label,(4,),<class 'numpy.float32'>,NCHW]"


def test_a_resized_iterator_keeps_the_key_of_the_default_bucket(mx) -> None:
    iterator = rolling(mx)
    assert not hasattr(mx.io.ResizeIter(iterator, 3), "default_bucket_key")
    iterator.default_bucket_key = 7
    assert mx.io.ResizeIter(iterator, 3).default_bucket_key == 7


def test_a_subclass_may_move_the_cursor_itself(mx) -> None:
    class TwoBatches(mx.io.NDArrayIter):
        def iter_next(self) -> bool:
            self.cursor += self.batch_size
            return self.cursor < 8

    iterator = TwoBatches(ROWS, LABELS, 4)
    assert labels(iterator) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    iterator.cursor = 7
    assert iterator.getlabel()[0].asnumpy().tolist() == [7, 8, 9, 0] and iterator.getpad() == 1
    iterator.cursor = 10
    with pytest.raises(AssertionError, match=r"DataIter needs reset\."):
        iterator.getdata()
    iterator.reset()
    with pytest.raises(mx.MXNetError, match=r"there is no current batch; call next\(\) first"):
        iterator.getdata()


def test_the_constructor_resets(mx) -> None:
    class Counted(mx.io.NDArrayIter):
        resets = 0

        def reset(self) -> None:
            super().reset()
            self.resets += 1

    assert Counted(ROWS, LABELS, 4).resets == 1


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float64", "float16"])
def test_shuffled_arrays_become_float32(mx, dtype: str) -> None:
    kinds = [
        mx.io.NDArrayIter(mx.nd.array(ROWS, dtype=dtype), mx.nd.array(LABELS, dtype=dtype), 5, shuffle=shuffle)
        for shuffle in (False, True)
    ]
    found = [(one.provide_data[0].dtype, one.provide_label[0].dtype, next(one).data[0].dtype) for one in kinds]
    assert found == [(np.dtype(dtype).type,) * 3, (np.float32,) * 3]
    kinds[1].label = [("softmax_label", mx.nd.array(LABELS, dtype=dtype))]
    assert kinds[1].provide_label[0].dtype is np.dtype(dtype).type
    kinds[1].reset()
    assert kinds[1].provide_label[0].dtype is np.float32


def test_a_shuffled_csr_matrix_keeps_its_type(mx) -> None:
    rows = mx.nd.array(ROWS, dtype="float64").tostype("csr")
    iterator = mx.io.NDArrayIter(rows, LABELS, 5, shuffle=True, last_batch_handle="discard")
    assert iterator.provide_data[0].dtype is np.float64 and next(iterator).data[0].stype == "csr"


def test_there_is_data_but_need_not_be_labels(mx) -> None:
    for nothing in (None, []):
        with pytest.raises(AssertionError):
            mx.io.NDArrayIter(nothing, LABELS)
    iterator = mx.io.NDArrayIter(ROWS, batch_size=4)
    assert iterator.getlabel() == []
    with pytest.raises(mx.MXNetError, match="call next"):
        iterator.getdata()
