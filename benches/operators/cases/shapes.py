"""Copies, transposes, joins, parts, and elements that indices choose."""

from __future__ import annotations

import numpy as np

from .table import SIZES, Stored, add, cube, given, image, integers, line, sequence, square, uniform

# ---- copies of whole arrays ----

add("Reshape", lambda n: given(uniform(square(n)), shape=(-1,)), streams=True)
add("Reshape:reverse", lambda n: given(uniform(cube(n)), shape=(-1, 0), reverse=True), streams=True)
add("_np_reshape", lambda n: given(uniform(square(n)), newshape=(-1,)), streams=True)
add("_npx_reshape", lambda n: given(uniform(cube(n)), newshape=(-2, -1)), streams=True)
add("Flatten", lambda n: given(uniform(image(n))), streams=True)
add("reshape_like", lambda n: given(uniform(square(n)), uniform(line(n))), streams=True)
add("expand_dims", lambda n: given(uniform(square(n)), axis=1), streams=True)
add("squeeze _np_squeeze", lambda n: given(uniform((1, *square(n)))), streams=True)
add("_np_atleast_1d _np_atleast_2d _np_atleast_3d", lambda n: given(uniform(line(n)), num_args=1), streams=True)
add("shape_array size_array", lambda n: given(uniform(line(n))))
add("reverse", lambda n: given(uniform(square(n)), axis=1), streams=True)
add("reverse:rows", lambda n: given(uniform(square(n)), axis=0), streams=True)
add("_npi_flip", lambda n: given(uniform(square(n)), axis=(1,)), streams=True)
add("_np_roll", lambda n: given(uniform(square(n)), shift=(3,), axis=(1,)), streams=True)
add("_npi_rot90", lambda n: given(uniform(square(n)), k=1, axes=(0, 1)), streams=True)
add("_npi_tril", lambda n: given(uniform(square(n)), k=0), streams=True)

# ---- transposes ----

add("transpose _np_transpose", lambda n: given(uniform(square(n))), streams=True)
add("transpose:batch", lambda n: given(uniform(cube(n)), axes=(0, 2, 1)), streams=True)
add("transpose:channels_last", lambda n: given(uniform(image(n)), axes=(0, 2, 3, 1)), streams=True)
add("transpose:heads", lambda n: given(uniform((*cube(n)[:2], 2, cube(n)[2] // 2)), axes=(0, 2, 1, 3)), streams=True)
add("SwapAxis", lambda n: given(uniform(cube(n)), dim1=0, dim2=1), streams=True)
add("_np_moveaxis", lambda n: given(uniform(cube(n)), source=(0,), destination=(2,)), streams=True)
add("depth_to_space space_to_depth", lambda n: given(uniform(image(n)), block_size=2), streams=True)

# ---- joins and parts ----

add("Concat", lambda n: given(*_halves(n), dim=1, num_args=2), streams=True)
add("Concat:rows", lambda n: given(*_halves(n), dim=0, num_args=2), streams=True)
add("stack", lambda n: given(*_halves(n), axis=1, num_args=2), streams=True)
add("_npi_concatenate", lambda n: given(*_halves(n), axis=1, num_args=2), streams=True)
add("_npi_stack", lambda n: given(*_halves(n), axis=1, num_args=2), streams=True)
add("_npi_hstack _npi_vstack _npi_dstack _npi_column_stack", lambda n: given(*_halves(n), num_args=2), streams=True)
add("_rnn_param_concat", lambda n: given(*(uniform(n // 2) for _ in range(2)), dim=0, num_args=2), streams=True)
add("SliceChannel", lambda n: given(uniform(square(n)), num_outputs=2, axis=1), streams=True)
add("_split_v2", lambda n: given(uniform(square(n)), indices=(), axis=1, sections=2), streams=True)
add("_npi_hsplit", lambda n: given(uniform(square(n)), indices=(), axis=1, sections=2), streams=True)
add("_npi_dsplit", lambda n: given(uniform(cube(n)), indices=(), axis=2, sections=2), streams=True)
add("slice", lambda n: given(uniform(square(n)), begin=(1, 1), end=(-1, -1)), streams=True)
add("slice:step", lambda n: given(uniform(square(n)), begin=(0, 0), end=square(n), step=(2, 2)))
add("slice_axis", lambda n: given(uniform(square(n)), axis=1, begin=1, end=-1), streams=True)
add("slice_like", lambda n: given(uniform(square(n)), uniform((square(n)[0] // 2, square(n)[1] // 2))), streams=True)
add("Crop", lambda n: given(uniform(image(n)), h_w=(image(n)[2] // 2,) * 2, num_args=1), streams=True)
_INNER = {"begin": (1, 1), "end": (-1, -1), "step": ()}
add("_slice_assign", lambda n: given(uniform(square(n)), uniform(tuple(i - 2 for i in square(n))), **_INNER))
add("_slice_assign_scalar", lambda n: given(uniform(square(n)), scalar=2.5, **_INNER))
add("_npi_delete", lambda n: given(uniform(square(n)), int_ind=1, axis=0))
add("_npi_insert_scalar", lambda n: given(uniform(square(n)), val=7, int_ind=1))
add("_npi_insert_slice", lambda n: given(*_inserted(n), start=0, stop=2, step=1, axis=0))
add("_npi_insert_tensor", lambda n: given(*_inserted(n), np.array([0, 2]), axis=0))


def _halves(n: int) -> tuple[object, object]:
    return uniform(square(n // 2)), uniform(square(n // 2))


def _inserted(n: int) -> tuple[object, object]:
    return uniform(square(n)), uniform((2, square(n)[1]))


# ---- copies into larger arrays ----

add("tile", lambda n: given(uniform(square(n // 4)), reps=(2, 2)), streams=True)
add("repeat", lambda n: given(uniform(square(n // 2)), repeats=2, axis=1), streams=True)
add("broadcast_to _npi_broadcast_to", lambda n: given(uniform((1, square(n)[1])), shape=square(n)), streams=True)
add("broadcast_to:column", lambda n: given(uniform((square(n)[0], 1)), shape=square(n)), streams=True)
add("broadcast_axis", lambda n: given(uniform((square(n)[0], 1)), axis=1, size=square(n)[1]), streams=True)
add("broadcast_like", lambda n: given(uniform((1, square(n)[1])), uniform(square(n))), streams=True)
_BORDER = (0, 0, 0, 0, 1, 1, 1, 1)
add("Pad", lambda n: given(uniform(image(n)), mode="constant", pad_width=_BORDER, constant_value=1.5), streams=True)
add("Pad:edge", lambda n: given(uniform(image(n)), mode="edge", pad_width=_BORDER), streams=True)
add("Pad:reflect", lambda n: given(uniform(image(n)), mode="reflect", pad_width=_BORDER), streams=True)
add("_npi_pad", lambda n: given(uniform(square(n)), pad_width=((1, 2), (3, 0)), mode="constant"), streams=True)

# ---- diagonals ----

add("diag _np_diag _np_diagonal _np_trace", lambda n: given(uniform(square(n))))
add("_np_diagflat", lambda n: given(uniform(square(n)[0])))
add("_npi_diag_indices_from", lambda n: given(uniform((square(n)[0],) * 2)))

# ---- by index ----

add("take", lambda n: given(uniform((1000, 64)), integers((n // 64,), 1000)), streams=True)
add("take:column", lambda n: given(uniform((n // 64, 64)), integers((64,), 64), axis=1))
add("Embedding", lambda n: given(integers((n // 64,), 1000), uniform((1000, 64)), input_dim=1000, output_dim=64))
add("gather_nd", lambda n: given(uniform(square(n)), _places(n)))
add("_contrib_SparseEmbedding", lambda n: given(*_looked_up(n), input_dim=1000, output_dim=64))
add("gather_nd:rows", lambda n: given(uniform((1000, 64)), integers((1, n // 64), 1000)))
add("scatter_nd", lambda n: given(uniform(n // 4), _places(n), shape=square(n)))
_SET = "_scatter_set_nd"
add(_SET, lambda n: given(uniform(square(n)), uniform(n // 4), _places(n), shape=square(n)), in_place=True)
add("_onehot_encode", lambda n: given(integers((n // 64,), 64), uniform((n // 64, 64))))
add("one_hot", lambda n: given(integers((n // 64,), 64), depth=64))
add("pick", lambda n: given(uniform((n // 64, 64)), integers((n // 64,), 64)))
add("batch_take", lambda n: given(uniform((n // 64, 64)), integers((n // 64,), 64, "int32")))
add("fill_element_0index", lambda n: given(uniform((n // 64, 64)), uniform(n // 64), integers((n // 64,), 64)))
add("_contrib_boolean_mask", lambda n: given(uniform((n // 16, 16)), integers(n // 16, 2), axis=0))
add("_contrib_index_copy", lambda n: given(uniform((n // 16, 16)), np.arange(0, n // 16, 2), uniform((n // 32, 16))))
add("_ravel_multi_index", lambda n: given(integers((2, n // 2), 100), shape=(100, 100)))
add("_unravel_index", lambda n: given(integers(n, 10000), shape=(100, 100)))
add("_npx_nonzero", lambda n: given(integers(square(n), 2)), most=1 << 22)
_MASK = "_npi_boolean_mask_assign_scalar"
add(_MASK, lambda n: given(uniform(line(n)), integers(n, 2).astype(bool), value=7.0), in_place=True)
add("_npi_boolean_mask_assign_tensor", lambda n: given(uniform(line(n)), _half(n), uniform(n // 2)), in_place=True)


def _looked_up(n: int) -> tuple[object, object]:
    return integers((n // 64,), 1000), Stored(uniform((1000, 64)), "row_sparse")


def _places(n: int) -> object:
    return integers((2, n // 4), square(n)[0])


def _half(n: int) -> object:
    return np.arange(n) % 2 == 0


# ---- sequences ----

_LENGTHS = {"use_sequence_length": True}
add("SequenceMask SequenceLast SequenceReverse", lambda n: given(*_sequence(n), **_LENGTHS))


def _sequence(n: int) -> tuple[object, object]:
    shape = sequence(n)
    return uniform(shape), 1 + integers(shape[1], shape[0])


# ---- order ----

add("sort argsort", lambda n: given(uniform(square(n))), most=1 << 22)
add("sort:one_row argsort:one_row", lambda n: given(uniform(line(n))), most=1 << 20)
add("topk", lambda n: given(uniform(square(n)), k=5), most=1 << 22)
add("topk:both", lambda n: given(uniform(square(n)), k=5, ret_typ="both"), most=1 << 22)
add("_npi_unique", lambda n: given(integers(n, 1000)), most=1 << 20)
add("_npi_bincount", lambda n: given(integers(n, 1000, "int32"), minlength=0, has_weights=False), most=SIZES["large"])
add("_histogram", lambda n: given(uniform(n, 0, 4), bin_cnt=16, range=(0.0, 4.0)))
add("_npi_percentile", lambda n: given(uniform(square(n)), number_of_percent(), axis=(1,)), most=1 << 20)


def number_of_percent() -> object:
    """Three percentages."""
    return np.array([10, 50, 90], "float32")
