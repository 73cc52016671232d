"""Sums over axes, products of matrices, linear algebra."""

from __future__ import annotations

import numpy as np

from .table import Array, add, cube, definite, given, integers, line, square, uniform

# ---- over axes ----

_SUMS = "sum mean max min prod nansum nanprod"
add(_SUMS, lambda n: given(uniform(square(n), 0.9, 1.1)))
add("sum:rows mean:rows max:rows prod:rows nansum:rows", lambda n: given(uniform(square(n), 0.9, 1.1), axis=1))
add("sum:columns mean:columns max:columns", lambda n: given(uniform(square(n), 0.9, 1.1), axis=0))
add("norm", lambda n: given(uniform(square(n))))
add("norm:rows", lambda n: given(uniform(square(n)), axis=1))
add("moments", lambda n: given(uniform(square(n)), axes=(1,)))
add("argmax argmin", lambda n: given(uniform(square(n)), axis=1))
add("argmax:columns", lambda n: given(uniform(square(n)), axis=0))
add("argmax_channel", lambda n: given(uniform(square(n))))
add("_np_sum _np_prod _np_max _np_min _npi_mean _npi_std _npi_var", lambda n: given(uniform(square(n), 0.9, 1.1)))
_ROWS = "_np_sum:rows _np_max:rows _npi_mean:rows _npi_std:rows _npi_var:rows"
add(_ROWS, lambda n: given(uniform(square(n)), axis=(1,)))
add("_np_any _np_all", lambda n: given(integers(square(n), 2)))
add("_npi_argmax _npi_argmin", lambda n: given(uniform(square(n)), axis=1))
add("_npi_average", lambda n: given(uniform(square(n)), uniform(square(n), 0.5, 1), weighted=True))
add("_np_cumsum", lambda n: given(uniform(square(n)), axis=1))
add("_np_cumsum:columns", lambda n: given(uniform(square(n)), axis=0))
add("_npi_diff", lambda n: given(uniform(square(n)), n=1, axis=1))
add("_npi_ediff1d", lambda n: given(uniform(line(n))))
add("_npi_polyval", lambda n: given(uniform(5), uniform(line(n))))
add("_npi_norm", lambda n: given(uniform(square(n)), ord=2, axis=(1,), flag=1))
add("all_finite", lambda n: given(uniform(line(n))))
add("multi_all_finite", lambda n: given(uniform(n // 2), uniform(n // 2), num_arrays=2))
add("multi_sum_sq", lambda n: given(uniform(n // 2), uniform(n // 2), num_arrays=2))

# ---- products; the side of a square of 2 ** 22 elements is 2048 ----

add("dot _np_dot _npi_matmul", lambda n: given(uniform(square(n)), _other(n)), most=1 << 20)
add("dot:turned", lambda n: given(uniform(square(n)), uniform(square(n)), transpose_b=True), most=1 << 20)
add("dot:vector _np_dot:vector _npi_matmul:vector", lambda n: given(uniform(square(n)), uniform(square(n)[1])))
add("dot:vectors _np_dot:vectors", lambda n: given(uniform(line(n)), uniform(line(n))))
add("batch_dot _npi_matmul:batch", lambda n: given(uniform(_batch(n)), uniform(_batch(n))), most=1 << 22)
add("_npi_tensordot_int_axes", lambda n: given(uniform(square(n)), _other(n), axes=1), most=1 << 20)
_AXES = {"a_axes_summed": (1,), "b_axes_summed": (0,)}
add("_npi_tensordot", lambda n: given(uniform(square(n)), _other(n), **_AXES), most=1 << 20)
_EINSUM = {"subscripts": "ij,jk->ik", "optimize": 0, "num_args": 2}
add("_npi_einsum", lambda n: given(uniform(square(n)), _other(n), **_EINSUM), most=1 << 18)
add("khatri_rao", lambda n: given(uniform((square(n)[0] // 4, square(n)[1] // 4)), uniform((16, square(n)[1] // 4))))


def _other(n: int) -> Array:
    return uniform(square(n)[::-1])


def _batch(n: int) -> tuple[int, int, int]:
    count, rows, _ = cube(n)
    return count, rows, rows


# ---- linear algebra: batches for the middle size, one matrix of 1024 rows for the large one ----


def _matrices(n: int) -> Array:
    return definite(*((1, int(n**0.5)) if n != 1 << 18 else (64, 64)))


def _skewed(n: int) -> Array:
    """Matrices that are not symmetric, whose eigenvalues are real: those of symmetric ones."""
    made = _matrices(n)
    scale = np.linspace(1, 2, made.shape[-1], dtype="float32")
    return made * scale[:, None] / scale


def _factors(n: int) -> Array:
    return np.linalg.cholesky(_matrices(n)).astype("float32")


_MOST = 1 << 20
_OF_MATRICES = "_linalg_potrf _linalg_inverse _linalg_det _linalg_slogdet _linalg_sumlogdiag _npi_cholesky"
add(_OF_MATRICES, lambda n: given(_matrices(n)), most=_MOST)
add("_linalg_potri", lambda n: given(_factors(n)), most=_MOST)
add("_linalg_syevd", lambda n: given(_matrices(n)), most=1 << 18)
_EIGEN = "_npi_eigh _npi_eigvalsh"
add(_EIGEN, lambda n: given(_matrices(n), UPLO="L"), most=1 << 18)
add("_npi_eig _npi_eigvals", lambda n: given(_skewed(n)), most=1 << 16)
add("_npi_svd", lambda n: given(_matrices(n)), most=1 << 16)
add("_npi_pinv_scalar_rcond", lambda n: given(_matrices(n), rcond=1e-6, hermitian=False), most=1 << 16)
add(
    "_npi_pinv",
    lambda n: given(_matrices(n), np.full(_matrices(n).shape[0], 1e-6, "float32"), hermitian=False),
    1 << 16,
)
add("_npi_solve", lambda n: given(_matrices(n), uniform(_matrices(n).shape)), most=_MOST)
add("_npi_tensorinv", lambda n: given(_matrices(min(n, 1 << 16))[0], ind=1), most=1 << 16)
add("_npi_tensorsolve", lambda n: given(_matrices(min(n, 1 << 16))[0], uniform(int(n**0.5)), a_axes=()), most=1 << 16)
add("_linalg_gelqf", lambda n: given(uniform((1, square(n)[0] // 2, square(n)[1]))), most=1 << 18)
add("_linalg_gemm", lambda n: given(_matrices(n), _matrices(n), _matrices(n)), most=_MOST)
add("_linalg_gemm2", lambda n: given(_matrices(n), _matrices(n)), most=_MOST)
add("_linalg_trmm _linalg_trsm", lambda n: given(_factors(n), uniform(_factors(n).shape)), most=_MOST)
add("_linalg_syrk", lambda n: given(_matrices(n)), most=_MOST)
add(
    "_linalg_extractdiag _linalg_extracttrian",
    lambda n: given(uniform((8, *square(n // 8)))[:, : square(n // 8)[0], : square(n // 8)[0]].copy()),
)
add("_linalg_makediag", lambda n: given(uniform((max(1, n // 64**2), 64))))
add("_linalg_maketrian", lambda n: given(uniform((max(1, n // 64**2), 64 * 65 // 2))))
add("_contrib_fft", lambda n: given(uniform((n // 64, 64))), most=1 << 18)
add("_contrib_ifft", lambda n: given(uniform((n // 128, 128))), most=1 << 18)
