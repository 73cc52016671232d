"""Arrays from Python: indexing against numpy, views, assignment, conversion, failures that
travel.
"""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

SHAPES = [(5,), (3, 4), (2, 3, 4), (0, 3), (1, 1)]
PARTS = [0, -1, slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(1, 1), None, Ellipsis]


def keys(rank: int):
    """Every combination of up to `rank` parts that numpy accepts."""
    for count in range(rank + 2):
        for key in itertools.product(PARTS, repeat=count):
            axes = [part for part in key if part is not None and part is not Ellipsis]
            if key.count(Ellipsis) <= 1 and len(axes) <= rank:
                yield key


def pick(values: np.ndarray, key):
    """The elements that numpy picks; None if it raises."""
    try:
        return values[key]
    except IndexError:
        return None


def same(got, want: np.ndarray, scalar_is_row: bool) -> bool:
    """MXNet gives a single element the shape (1,)."""
    shape = want.shape or ((1,) if scalar_is_row else ())
    return got.shape == shape and np.array_equal(got.asnumpy(), want.reshape(shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_basic_index_picks_what_numpy_picks(mx, shape) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    array = mx.nd.array(values)
    for key in keys(min(len(shape), 2)):
        want = pick(values, key)
        if want is None:
            with pytest.raises(IndexError):
                array[key]
        else:
            assert same(array[key], want, True), key


@pytest.mark.parametrize("shape", SHAPES)
def test_every_basic_assignment_changes_what_numpy_changes(mx, shape) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for key in keys(min(len(shape), 2)):
        want, array = values.copy(), mx.nd.array(values)
        if pick(values, key) is None:
            continue
        part = -1.0 - np.arange(want[key].size, dtype=np.float32).reshape(want[key].shape)
        want[key] = part
        array[key] = part
        assert np.array_equal(array.asnumpy(), want), key
        want[key] = 7
        array[key] = 7
        assert np.array_equal(array.asnumpy(), want), key


ALL = slice(None)
# Keys, values and what MXNet 1.9.1 makes of [[0, 1], [3, 4]], by `mx.nd` and `mx.np`.
NEW_AXES = [
    ((ALL, ALL, None), [[7], [9]], [[7, 7], [9, 9]]),
    ((..., None), [7, 9], [[7, 9], [7, 9]]),
    ((..., None), [[[7], [8]], [[9], [5]]], [[7, 8], [9, 5]]),
    ((ALL, None), [[7], [9]], [[7, 7], [9, 9]]),
    ((ALL, None), [[7, 9]], [[7, 9], [7, 9]]),
    ((ALL, None, 0), [7, 9], [[7, 1], [9, 4]]),
    ((0, ALL, None), [7, 8], [[7, 8], [3, 4]]),
    ((0, ALL, None), [[7], [8]], [[7, 8], [3, 4]]),
    ((None, ALL, None), [[7, 8], [1, 2]], [[7, 8], [1, 2]]),
    (([0, 1], None), [[7, 8], [9, 5]], [[7, 8], [9, 5]]),
    (None, [[[5, 6], [7, 8]]], [[5, 6], [7, 8]]),
]


@pytest.mark.parametrize("numpy", [False, True])
@pytest.mark.parametrize(("key", "value", "wanted"), NEW_AXES)
def test_an_assignment_leaves_new_axes_out_as_mxnet_does(mx, key, value, wanted, numpy: bool) -> None:
    make = mx.np.array if numpy else mx.nd.array
    array = make([[0, 1], [3, 4]])
    array[key] = make(value)
    assert array.asnumpy().tolist() == wanted


def test_lists_and_arrays_as_indices_pick_what_numpy_picks(mx) -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    array = mx.nd.array(values)
    for key in ([0, 1, 1], ([0, 1], [2, 0]), (slice(None), [0, 2]), ([[0, 1], [1, 0]],), ([0, 1], slice(None), [1, 2])):
        assert np.array_equal(array[key].asnumpy(), values[key]), key
        want = values.copy()
        want[key] = -1
        changed = array.copy()
        changed[key] = -1
        assert np.array_equal(changed.asnumpy(), want), key
    assert np.array_equal(array[mx.nd.array([1, 0])].asnumpy(), values[[1, 0]])


def test_a_comparison_as_index_counts_as_numbers_not_as_a_mask(mx) -> None:
    array = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    assert array[array > 2].shape == (2, 3, 3)


def test_contiguous_parts_are_views_and_others_are_copies(mx) -> None:
    array = mx.nd.zeros((3, 4))
    for key in (0, slice(1, 3), (slice(1, 2), slice(1, 3)), None, Ellipsis):
        assert array[key]._shares_storage(array), key
    for key in ((slice(None), 0), slice(None, None, 2), [0, 1]):
        assert not array[key]._shares_storage(array), key
    array[1][2:] = 5
    assert array.asnumpy()[1].tolist() == [0, 0, 5, 5]


def test_the_transpose_of_less_than_two_axes_is_the_array_itself(mx) -> None:
    array = mx.nd.zeros((3,))
    assert array.T is array
    square = mx.nd.zeros((2, 2))
    square.T[0] = 1
    assert square.asnumpy().sum() == 0


def test_true_and_false_next_to_integers_are_one_and_zero(mx) -> None:
    array = mx.nd.array([[1, 2], [3, 4]])
    assert array[True].asnumpy().tolist() == [3, 4]
    assert array[False].asnumpy().tolist() == [1, 2]
    assert array[1, False].asscalar() == 3


@pytest.mark.parametrize("key", [np.s_[:, True], np.s_[:, False], np.s_[..., True], np.s_[True, None], np.s_[1:, True]])
def test_a_boolean_next_to_slices_is_a_mask(mx, key) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert same(mx.nd.array(values)[key], values[key], True)


@pytest.mark.parametrize("key", [True, False, np.s_[:, True], np.s_[:, False], np.s_[1, True], np.s_[True, True]])
def test_a_boolean_is_a_mask_where_a_part_is_assigned(mx, key) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    array = mx.nd.array(values)
    array[key] = 9
    values[key] = 9
    assert np.array_equal(array.asnumpy(), values)


def test_an_array_may_be_assigned_from_its_own_parts(mx) -> None:
    values = np.arange(6, dtype=np.float32)
    array = mx.nd.array(values)
    array[1:] = array[:-1]
    assert array.asnumpy().tolist() == [0, 0, 1, 2, 3, 4]
    array[::-1] = array
    assert array.asnumpy().tolist() == [4, 3, 2, 1, 0, 0]


def test_indices_outside_of_the_array_are_index_errors(mx) -> None:
    array = mx.nd.zeros((2, 3))
    for key in (2, -3, (0, 3), (0, 0, 0), [2], ([0], [5])):
        with pytest.raises(IndexError):
            array[key].wait_to_read()
        with pytest.raises(IndexError):
            array[key] = 1


def test_values_that_do_not_fit_are_refused(mx) -> None:
    array = mx.nd.zeros((2, 3))
    with pytest.raises(ValueError, match="broadcast"):
        array[:] = mx.nd.ones((4, 5))
    with pytest.raises(ValueError, match="broadcast"):
        array[0] = np.ones(2)
    with pytest.raises(TypeError):
        array[0] = "text"
    assert array.asnumpy().sum() == 0


def test_whatever_numpy_makes_an_array_of_can_be_assigned(mx) -> None:
    array = mx.nd.zeros(3)
    for value in (range(3), memoryview(np.arange(3.0)), bytearray(b"\x00\x01\x02")):
        array[:] = value
        assert array.asnumpy().tolist() == [0.0, 1.0, 2.0]
        array[:] = 7
        mx.init.Constant(value)(mx.init.InitDesc("a_weight"), array)
        assert array.asnumpy().tolist() == [0.0, 1.0, 2.0]
    array[:] = None
    assert np.isnan(array.asnumpy()).all()
    for value in ({1}, object(), "text"):
        with pytest.raises(TypeError, match="non-array-like object"):
            array[:] = value


def test_an_array_is_filled_with_what_can_be_assigned(mx) -> None:
    nd = mx.nd
    for value in (np.arange(3), nd.arange(3), [0, 1, 2], range(3)):
        assert nd.full((2, 3), value).asnumpy().tolist() == [[0.0, 1.0, 2.0]] * 2
    assert np.isnan(nd.full((2,), None).asnumpy()).all()
    with pytest.raises(TypeError, match="non-array-like"):
        nd.full((2,), "text")
    assert nd.full((2,), 0.0, out=nd.ones(2)).asnumpy().tolist() == [0.0, 0.0]
    assert mx.sym.full((2, 3), np.array([2])).eval()[0].asnumpy().tolist() == [[2.0] * 3] * 2


def test_an_array_without_axes_is_a_shape(mx) -> None:
    assert mx.nd.zeros(np.array(2)).shape == mx.nd.ones(np.array(2)).shape == (2,)
    assert mx.sym.zeros(np.array(2)).eval()[0].shape == (2,)


def test_arrays_of_numpy_that_cannot_be_shared_are_copied(mx) -> None:
    swapped = mx.nd.from_numpy(np.array([1, 2], ">f4"), zero_copy=False)
    assert swapped.asnumpy().tolist() == [1.0, 2.0] and swapped.dtype == np.float32
    number = mx.nd.from_numpy(np.float64(3), zero_copy=False)
    assert number.dtype == np.float64 and number.asnumpy() == 3
    with pytest.raises(TypeError, match="numpy array"):
        mx.nd.from_numpy(np.float64(3))


def test_reshape_knows_mxnets_codes(mx) -> None:
    array = mx.nd.zeros((2, 3, 4))
    for codes, want in {
        (4, 0, 2): (4, 3, 2),
        (6, 1, -1): (6, 1, 4),
        (-2,): (2, 3, 4),
        (2, -2): (2, 3, 4),
        (-3, 4): (6, 4),
        (0, -3): (2, 12),
        (-4, 1, 2, -2): (1, 2, 3, 4),
        (2, -4, -1, 3, -2): (2, 1, 3, 4),
    }.items():
        assert array.reshape(codes).shape == want, codes
    assert mx.nd.zeros((10, 5, 4)).reshape((-1, 0), reverse=True).shape == (50, 4)
    for codes in ((5, 5), (-1, -1), (0, 0, 0, 0), (7, -1), (-5,), (-4, 5, 5, -2)):
        with pytest.raises(mx.base.MXNetError):
            array.reshape(codes)


def test_a_reshaped_array_shares_its_elements(mx) -> None:
    array = mx.nd.zeros((2, 3))
    array.reshape((3, 2))[0] = 9
    assert array.asnumpy().tolist() == [[9, 9, 0], [0, 0, 0]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int8", "int32", "int64", "bool"])
def test_elements_of_every_type_survive_the_way_in_and_out(mx, dtype: str) -> None:
    values = (np.arange(12).reshape(3, 4) % 3).astype(dtype)
    array = mx.nd.array(values, dtype=dtype)
    assert np.dtype(array.dtype).name == dtype
    assert np.array_equal(array.asnumpy(), values)
    assert np.array_equal(pickle.loads(pickle.dumps(array)).asnumpy(), values)
    assert np.array_equal(array[:, 1].asnumpy(), values[:, 1])


def test_a_number_as_type_stands_for_its_own_type(mx) -> None:
    x = mx.nd.ones((2,))
    for number in (np.float16(3), np.int8(3), np.float32(3), np.float64(3)):
        assert x.astype(number).dtype == number.dtype
        assert mx.nd.zeros(2, dtype=number).dtype == number.dtype
    with pytest.raises(TypeError):
        x.astype(3)


def test_attributes_of_operators_on_float64_have_its_precision(mx) -> None:
    x = mx.nd.array([0.1, 3.0], dtype="float64")
    found = mx.nd.smooth_l1(x, scalar=1.3).asnumpy()
    assert np.abs(found - [0.5 * (1.3 * 0.1) ** 2, 3 - 0.5 / 1.3**2]).max() < 1e-15


def test_large_arrays_survive_too(mx) -> None:
    values = np.random.RandomState(0).rand(700, 301).astype(np.float32)
    array = mx.nd.array(values)
    assert np.array_equal(array.asnumpy(), values)
    assert np.array_equal(array[:, 5].asnumpy(), values[:, 5])
    array[:, 1:300:7] = 0
    values[:, 1:300:7] = 0
    assert np.array_equal(array.asnumpy(), values)


def test_arrays_that_numpy_cannot_describe_are_refused(mx) -> None:
    for source in ([[1, 2], [3]], "text", [1 + 2j], np.array([1, "a"], dtype=object)):
        with pytest.raises((TypeError, ValueError)):
            mx.nd.array(source)


def test_a_numpy_array_on_either_side_is_refused_as_mxnet_does(mx) -> None:
    array = mx.nd.ones((2, 3))
    for operation in (
        lambda: array + np.ones((2, 3)),
        lambda: np.ones((2, 3)) + array,
        lambda: array == None,  # noqa: E711
        lambda: array * "x",
        lambda: array // 2,
    ):
        with pytest.raises(TypeError):
            operation()


def test_numbers_of_numpy_count_as_numbers(mx) -> None:
    array = mx.nd.ones((2,))
    assert (np.float32(2) * array + np.int64(1)).asnumpy().tolist() == [3, 3]


def test_in_place_operators_keep_the_array(mx) -> None:
    array = mx.nd.ones((2,))
    same_one = array
    array += 2
    array *= array
    array /= 3
    array -= 1
    assert same_one is array
    assert array.asnumpy().tolist() == [2, 2]


def test_contexts_are_per_thread_and_nest(mx) -> None:
    import threading

    seen = []
    with mx.cpu(1):
        with mx.cpu(2):
            assert mx.nd.ones((1,)).context == mx.cpu(2)
        thread = threading.Thread(target=lambda: seen.append(mx.current_context()))
        thread.start()
        thread.join()
        assert mx.nd.ones((1,)).context == mx.cpu(1)
    assert seen == [mx.cpu(0)]
    with pytest.raises(KeyError):
        mx.Context("tpu")
    with pytest.raises(mx.base.MXNetError, match="gpu"):
        mx.nd.ones((2,), ctx=mx.gpu(0))


def test_a_failed_array_raises_for_every_reader_until_it_is_overwritten(mx) -> None:
    bad = mx.nd.random.normal(0, -1, (2, 3))
    depends = bad + 1
    for array in (depends, bad, depends, bad):
        with pytest.raises(mx.base.MXNetError):
            array.asnumpy()
    part = mx.nd.zeros((2, 3))
    part[0] = bad[0]
    with pytest.raises(mx.base.MXNetError):
        part.asnumpy()
    part[1] = 3
    with pytest.raises(mx.base.MXNetError):
        part.asnumpy()
    part[:] = 4
    assert part.asnumpy().tolist() == [[4] * 3] * 2
    with pytest.raises(mx.base.MXNetError):
        bad.wait_to_read()
    mx.nd.waitall()


def test_several_failures_are_raised_together_by_waitall(mx) -> None:
    bad = [mx.nd.random.normal(0, -1, (2,)) for _ in range(3)]
    with pytest.raises(mx.base.MultipleErrors) as caught:
        mx.nd.waitall()
    assert len(caught.value.errors) == len(bad)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    mx.nd.waitall()


def test_errors_are_what_a_python_program_expects_too(mx) -> None:
    base = mx.base
    for error, builtin in (
        (base.MXNetValueError, ValueError),
        (base.MXNetShapeError, ValueError),
        (base.MXNetTypeError, TypeError),
        (base.MXNetIndexError, IndexError),
        (base.MXNetKeyError, KeyError),
        (base.MXNetNotImplementedError, NotImplementedError),
        (base.MXNetMemoryError, MemoryError),
        (base.MXNetTimeoutError, TimeoutError),
    ):
        made = error("what went wrong", op="relu", node="r0", shapes=((2, 3),), attrs={"a": "1"})
        assert isinstance(made, builtin)
        assert isinstance(made, base.MXNetError)
        again = pickle.loads(pickle.dumps(made))
        assert type(again) is error
        assert (str(again), again.op, again.node, again.shapes, again.attrs) == (
            f"what went wrong [{made.code}]",
            "relu",
            "r0",
            ((2, 3),),
            {"a": "1"},
        )


def test_out_overwrites_and_is_returned(mx) -> None:
    target = mx.nd.zeros((2,))
    assert mx.nd.relu(mx.nd.array([-1, 2]), out=target) is target
    assert target.asnumpy().tolist() == [0, 2]
    with pytest.raises(mx.base.MXNetError):
        mx.nd.relu(mx.nd.ones((3,)), out=target)


def test_wrong_arguments_of_operators_are_named(mx) -> None:
    array = mx.nd.ones((2, 3))
    with pytest.raises(AssertionError, match="data"):
        mx.nd.relu(np.ones(2))
    with pytest.raises(AssertionError, match="Positional"):
        mx.nd.concat([array, array], dim=0)
    with pytest.raises(TypeError, match="num_hidden"):
        mx.nd.FullyConnected(array, array, array, 2, num_hidden=3)
    with pytest.raises(mx.base.MXNetError, match="axes"):
        mx.nd.softmax(array, axes=1)
    with pytest.raises(mx.base.MXNetError, match="num_hidden"):
        mx.nd.FullyConnected(array, array, array)
    with pytest.raises(AttributeError, match="no_such_operator"):
        mx.nd.no_such_operator(array)


def test_printing_a_failed_array_raises_its_failure(mx) -> None:
    with pytest.raises(mx.base.MXNetError):
        repr(mx.nd.random.normal(0, -1, (2,)))


def test_ranges_of_integers_count_by_whole_numbers(mx) -> None:
    """MXNet 1.9.1 does the same: as many elements as the range has, from a whole number by whole
    numbers.
    """
    for dtype in ("int32", "int64", "uint8"):
        assert mx.nd.arange(0.5, 9.9, 0.7, dtype=dtype).asnumpy().tolist() == [0] * 14
        assert mx.nd.arange(10, 0, -1.5, dtype=dtype).asnumpy().tolist() == [10, 9, 8, 7, 6, 5, 4]
    assert mx.nd.arange(1.3, 6.6, 1.3, dtype="int32").asnumpy().tolist() == [1, 2, 3, 4, 5]
    assert mx.nd.arange(0, 2, 0.5).asnumpy().tolist() == [0, 0.5, 1, 1.5]


def test_zipfian_draws_follow_their_distribution(mx) -> None:
    """The expected counts are MXNet's formula; the drawn ones come close to them."""
    mx.random.seed(5)
    count, top = 20000, 8
    true = mx.nd.array([3, 0])
    drawn, expected, of_drawn = mx.nd.contrib.rand_zipfian(true, count, top)
    assert drawn.dtype == np.int64 and drawn.shape == of_drawn.shape == (count,)
    ranks = np.arange(1, top + 1)
    want = np.log((ranks + 1) / ranks) / np.log(top + 1) * count
    np.testing.assert_allclose(expected.asnumpy(), want[[3, 0]], rtol=1e-12)
    np.testing.assert_allclose(of_drawn.asnumpy(), want[drawn.asnumpy()], rtol=1e-12)
    assert np.abs(np.bincount(drawn.asnumpy(), minlength=top) - want).max() < 5 * np.sqrt(want.max())
    symbol = mx.sym.Group(mx.sym.contrib.rand_zipfian(mx.sym.var("true"), count, top))
    drawn, expected, of_drawn = symbol.eval(true=true)
    np.testing.assert_allclose(expected.asnumpy(), want[[3, 0]], rtol=1e-12)
    np.testing.assert_allclose(of_drawn.asnumpy(), want[drawn.asnumpy()], rtol=1e-12)


def test_a_histogram_over_all_values_is_that_of_numpy(mx) -> None:
    found = mx.nd.histogram(mx.nd.array([0, 1, 1, 4]), 2)
    assert isinstance(found, tuple) and [part.dtype for part in found] == [np.float32, np.float32]
    assert [part.asnumpy().tolist() for part in found] == [[3, 1], [0, 2, 4]]
    counts, edges = mx.nd.histogram(mx.nd.array([0, 1, 1, 4]), 2, range=(0, 2))
    assert counts.asnumpy().tolist() == [1, 2] and edges.asnumpy().tolist() == [0, 1, 2]


def test_contexts_of_the_host_are_one_memory(mx) -> None:
    a, b = mx.nd.ones((2,), ctx=mx.cpu(0)), mx.nd.ones((2,), ctx=mx.cpu(1))
    assert (a + b).asnumpy().tolist() == [2, 2]
    assert [(a + b).context, (b + a).context] == [mx.cpu(0), mx.cpu(1)]
    assert mx.nd.concat(b, a, dim=0).context == mx.cpu(1)


def test_the_method_broadcast_to_adds_axes_before_the_first(mx) -> None:
    x = mx.nd.array([[1, 2, 3]])
    assert np.array_equal(x.broadcast_to((2, 4, 3)).asnumpy(), np.broadcast_to(x.asnumpy(), (2, 4, 3)))
    assert x.broadcast_to((5, 1, 3)).shape == (5, 1, 3)
    assert x.broadcast_to((1, 3)).shape == (1, 3)
    assert x.broadcast_like(mx.nd.ones((2, 2, 3))).shape == (2, 2, 3)
    for shape in ((3,), (1, 4), (2, 2, 1), (0, 0)):
        with pytest.raises(ValueError, match="could not be broadcast together with remapped shapes"):
            x.broadcast_to(shape)


def test_shapes_that_are_not_known_say_what_makes_empty_arrays(mx) -> None:
    for make in (mx.nd.ones, mx.nd.zeros):
        with pytest.raises(mx.base.MXNetError, match=r"the shape \(0, 3\) has an extent of 0.*mx.nd.empty\(\(0, 3\)\)"):
            make((0, 3))
        with pytest.raises(mx.base.MXNetError, match=r"the shape \(\) has no axes.*mx.nd.empty\(\(\)\)"):
            make(())
    assert mx.nd.empty((0, 3)).shape == (0, 3)
    assert mx.nd.empty(()).shape == ()


@pytest.mark.parametrize("shape", [(), (0, 3), (6,), (2, 3), (600, 700)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "int64"])
def test_arrays_of_numpy_own_their_elements(mx, shape: tuple[int, ...], dtype: str) -> None:
    values = (np.arange(np.prod(shape, dtype=int)) % 7).reshape(shape).astype(dtype)
    found = mx.nd.array(values, dtype=dtype).asnumpy() if values.size else mx.nd.empty(shape, dtype=dtype).asnumpy()
    shape = found.shape  # without np-shape, one element of no axes has one
    assert found.base is None and found.flags.owndata and found.flags.c_contiguous and found.flags.writeable
    assert found.dtype == np.dtype(dtype) and np.array_equal(found, values.reshape(shape))
    found.resize((found.size + 10,), refcheck=False)
    assert np.array_equal(found, np.concatenate([values.ravel(), np.zeros(10, dtype)]))


def test_a_negative_number_of_a_context_is_the_first(mx) -> None:
    first, last = mx.cpu(0), mx.cpu(-1)
    assert mx.nd.zeros(1, ctx=last).context == first
    assert mx.nd.array([1], ctx=last).context == first
    assert mx.nd.ones(1).as_in_context(last).context == first
