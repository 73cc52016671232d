"""Expressions over ``mx.np`` and ``mx.npx``: recorded/record_np.py evaluates them under MXNet
1.9.1, and test_np_recorded.py under mxrt.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as onp

__all__ = ["EXPRESSIONS", "described", "environment", "evaluated"]


def environment(mx: Any) -> dict[str, Any]:
    """The names that expressions use."""
    np = mx.np

    def put(x: Any, key: Any, value: Any) -> Any:
        x = x.copy()
        x[key] = value
        return x

    def inplace(name: str, x: Any, y: Any) -> Any:
        x = x.copy()
        made = getattr(operator, name)(x, y)
        assert made is x
        return x

    def into(function: Any, *args: Any, like: Any) -> Any:
        out = np.zeros(like.shape, dtype=like.dtype)
        assert function(*args, out=out) is out
        return out

    return {
        "mx": mx,
        "np": np,
        "npx": mx.npx,
        "onp": onp,
        "put": put,
        "inplace": inplace,
        "into": into,
        "half": np.array([0.5, -1.25, 3], dtype="float16"),
        "f": np.array([1.5, 2.5]),
        "g": np.array([-1.0, 0.5, 2.0]),
        "d": np.array([1.0, 2.0], dtype="float64"),
        "i": np.array([1, 2], dtype="int32"),
        "j": np.array([3, -4, 5], dtype="int64"),
        "i8": np.array([1, 2], dtype="int8"),
        "u8": np.array([200, 100, 3], dtype="uint8"),
        "b": np.array([True, False], dtype=bool),
        "c": np.array([True, False, True], dtype=bool),
        "z": np.array(3.0),
        "zi": np.array(1, dtype="int64"),
        "e": np.zeros((0, 3)),
        "m": np.arange(6).reshape(2, 3),
        "n": np.array([[2.0, 1.0], [1.0, 3.0]]),
        "k": np.arange(24, dtype="int32").reshape(2, 3, 4),
        "nd": mx.nd.array([1.0, 2.0]),
        "o": onp.array([1.0, 2.0]),
    }


def evaluated(expression: str, names: dict[str, Any]) -> dict[str, Any]:
    """The result of an expression: a described value, or the class of an error."""
    try:
        return described(eval(expression, dict(names)), names["np"].ndarray)
    except Exception as error:
        return {"error": next(one.__name__ for one in type(error).__mro__ if one.__module__ == "builtins")}


def described(value: Any, array: type) -> dict[str, Any]:
    """A value as JSON holds it."""
    if isinstance(value, array):
        host = value.asnumpy()
        return {"array": host.tolist(), "dtype": host.dtype.name, "shape": list(host.shape)}
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [described(one, array) for one in value]}
    if isinstance(value, (onp.generic, onp.ndarray)):
        return {"numpy": value.tolist()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    return {"object": type(value).__name__}


_UNARY = (
    "abs absolute fabs negative sign rint ceil floor trunc fix reciprocal square sqrt cbrt exp expm1 log log2 log10 "
    "log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees rad2deg radians deg2rad "
    "logical_not isnan isinf isposinf isneginf isfinite"
).split()
_BINARY = (
    "add subtract multiply divide true_divide mod remainder power maximum minimum copysign arctan2 hypot ldexp equal "
    "not_equal greater greater_equal less less_equal"
).split()
_FOLDS = "sum prod mean max min amax amin std var".split()
_SIGNS = "add sub mul truediv mod pow eq ne lt le gt ge".split()

EXPRESSIONS: list[str] = [
    *(f"np.{name}({x})" for name in _UNARY for x in ("f", "z", "e", "half")),
    *(f"np.{name}(0.5)" for name in _UNARY),
    *(f"np.{name}({x})" for name in ("bitwise_not", "invert") for x in ("i", "u8", "3")),
    *(f"np.{name}({args})" for name in _BINARY for args in ("f, f", "f, 2", "2, f", "z, f", "e, z", "1, 2")),
    *(
        f"np.{name}({args})"
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "lcm")
        for args in ("i, i", "i, 3")
    ),
    *(f"np.{name}({args})" for name in _FOLDS for args in ("m", "m, axis=0", "m, axis=(0, 1), keepdims=True", "k, 1")),
    *(f"m.{name}({args})" for name in ("sum", "mean", "max", "min", "std", "var", "prod") for args in ("", "axis=1")),
    *(f"onp.{name}(m)" for name in (*_FOLDS, "cumsum", "sin", "exp", "median", "ravel", "transpose")),
    *(f"inplace('i{name}', f, {y})" for name in ("add", "sub", "mul", "truediv", "mod", "pow") for y in ("f", "2")),
    *(
        f"getattr(__import__('operator'), '{name}')({x})"
        for name in _SIGNS
        for x in (
            "f, f",
            "f, 2",
            "2, f",
            "i, 2",
            "2, i",
            "i, f",
            "d, f",
            "b, 1",
            "z, m",
            "f, z",
            "i8, i",
            "f, nd",
            "f, o",
        )
    ),
]

EXPRESSIONS += """
np.array([1, 2])
np.array([[1, 2], [3, 4]], dtype='int32')
np.array(o)
np.array(onp.arange(3))
np.array(onp.array([True, False]))
np.array([True])
np.array(5)
np.array(onp.float64(3))
np.array(i)
np.array(f, dtype=int)
np.array(f, dtype='int8')
np.array([i, i])
np.array(nd)
np.array([1j])
np.array('x')
np.array([])
np.array([[]])
np.zeros(())
np.zeros(3)
np.zeros((2, 0))
np.zeros((2,), dtype='int32')
np.zeros((2,), dtype=bool)
np.zeros((-1,))
np.ones(3, dtype=int)
np.ones((2, 2))
np.ones((), dtype='float64')
np.empty((2, 3)).shape
np.empty_like(i).dtype.name
np.full((2,), 3)
np.full((2,), True)
np.full((2, 2), f)
np.full((2,), 1.5, dtype='int32')
np.full((), 7)
np.arange(3)
np.arange(1, 4, 0.5)
np.arange(5, 0, -2)
np.arange(3, dtype='int64')
np.arange(0)
np.arange(0, 5, 0)
np.linspace(0, 1, 5)
np.linspace(0, 1, 4, endpoint=False)
np.linspace(0, 1, 3, retstep=True)
np.linspace(f, 1, 3)
np.logspace(0, 2, 3)
np.eye(2)
np.eye(2, 3, 1)
np.identity(3)
np.identity(-1)
np.indices((2, 2))
np.hanning(4)
np.hamming(4)
np.blackman(4)
np.zeros_like(i)
np.ones_like(m, dtype='int32')
np.full_like(i, 2.5)
np.full_like(m, 2)
f.shape
z.shape
z.ndim
m.size
m.T
z.T
k.T.shape
len(m)
len(z)
bool(z)
bool(f)
float(z)
float(f)
int(z)
list(f)
f.item()
f.item(1)
m.item((1, 2))
m.tolist()
z.tolist()
str(m)
str(z)
repr(f)
repr(i)
repr(d)
repr(e)
repr(b)
repr(z)
repr(zi)
'{:.2f}'.format(z)
f == None
f.dtype.name
b.dtype.name
hash(f)
f in [f]
1.5 in f
round(f)
abs(-i)
~i
-f
-b
+f
~b
b & b
b + b
b - b
b * 2.5
b.mean()
np.linalg.norm(m, ord=1)
np.linalg.norm(m, ord=-1)
np.linalg.norm(m, ord='inf')
np.linalg.norm(g, ord=3)
f @ f
n @ n
m @ f
m.T @ m
i & 1
i | i
i ^ 3
i // 2
f // 2
i << 1
divmod(i, 2)
f + [1, 2]
[1, 2] + f
o + f
nd + f
m[0]
m[-1]
m[5]
m[0, 1]
m[-1, -1]
m[:, 1]
m[1:]
m[2:]
m[0:0]
m[::-1]
m[::2, 1]
m[..., 0]
m[None]
m[..., None]
m[:, None, 1:]
m[()]
z[()]
z[...]
z[None]
z[0]
m[0, 1, 2]
m[..., ...]
k[1, :, 2]
k[:, 1]
k[0, ::-1, ::2]
m[[0, 1]]
m[[0, 1], [1, 2]]
m[[[0], [1]], [1, 2]]
m[np.array([0, 1])]
m[np.array([1, 0], dtype='int64'), 1]
m[np.array([0, -1], dtype='int32')]
m[np.array(1)]
m[onp.array([1, 0])]
m[:, [2, 0]]
m[(0, 1), (1, 2)]
k[[0, 1], :, [1, 2]]
k[:, [0, 2], 1]
k[0, [0, 2]]
m[m > 2]
m[m > 10]
m[np.array([True, False], dtype=bool)]
m[onp.array([True, False])]
m[[True, False]]
m[True]
m[False]
f[b]
k[k % 2 == 0].shape
m['x']
m[1.5]
m[zi]
put(m, 0, 9)
put(m, (0, 1), 9)
put(m, (slice(None), 1), f)
put(m, slice(None), 5)
put(m, slice(None), g)
put(m, Ellipsis, 1)
put(m, (0, slice(0, 2)), [7, 8])
put(m, m > 2, 0)
put(m, [0, 1], 4)
put(m, ([0, 1], [1, 2]), f)
put(m, (slice(None), [0, 2]), -1)
put(m, (slice(None, None, -1), 0), f)
put(z, (), 4)
put(i, 0, 7.9)
put(m, 0, f)
put(m, 0, o)
put(m, 0, nd)
put(m, 0, 'x')
put(m, None, 3)
put(b, 0, False)
m.reshape(3, 2)
m.reshape((3, -1))
m.reshape(-1)
m.reshape([6])
m.reshape(4)
m.reshape(2, -1, -1)
z.reshape(1, 1)
np.ones((1,)).reshape(())
np.reshape(m, (3, 2))
np.reshape(m, -1)
m.flatten()
m.reshape_view(6)
m.transpose()
m.transpose(1, 0)
m.transpose((1, 0))
k.transpose(2, 0, 1).shape
m.swapaxes(0, 1)
m.squeeze()
np.ones((1, 2, 1)).squeeze(0).shape
np.ones((1, 2, 1)).squeeze().shape
m.squeeze(0)
m.repeat(2)
m.repeat(2, axis=0)
m.clip(1, 3)
m.take(np.array([0, 5]))
m.take(np.array([0, 1]), axis=1)
m.argsort()
m.sort()
m.cumsum()
m.cumsum(axis=1)
m.argmax()
m.argmax(axis=1)
m.argmin(axis=0)
m.round()
m.dot(m.T)
m.copy()
m.astype('float64')
m.astype(int)
m.astype(bool)
m.astype('int8')
m.astype('x')
m.broadcast_to((2, 2, 3))
m.all()
m.any(axis=0)
m.nonzero()
m.exp()
m.asscalar()
m.expand_dims(0)
m.view
m.as_nd_ndarray().shape
nd.as_np_ndarray()
m.as_np_ndarray() is m
np.expand_dims(m, 1)
np.expand_dims(z, 0)
np.swapaxes(m, 0, 1)
np.moveaxis(k, 0, 2).shape
np.squeeze(np.ones((1, 3)))
np.transpose(m)
np.transpose(k, (1, 0, 2)).shape
np.ravel(m)
np.ravel(3)
np.copy(m)
np.diag(f)
np.diag(m)
np.diag(m, k=1)
np.diagflat(f)
np.diagonal(k)
np.trace(m)
np.tril(m)
np.tril(m, -1)
np.roll(m, 1)
np.roll(m, 1, axis=1)
np.roll(m, (1, 1), (0, 1))
np.rot90(m)
np.rot90(m, 2)
np.flip(m)
np.flip(m, 0)
np.flip(m, (0, 1))
np.flipud(m)
np.fliplr(m)
np.repeat(m, 2)
np.repeat(m, 2, 1)
np.tile(m, 2)
np.tile(f, (2, 2))
np.broadcast_to(f, (2, 2))
np.broadcast_to(1, (2,))
np.broadcast_arrays(f, m[:, :2])
np.meshgrid(f, g)
np.meshgrid(f, g, indexing='ij')
np.meshgrid(f, sparse=True)
np.atleast_1d(z)
np.atleast_2d(f)
np.atleast_3d(f).shape
np.atleast_2d(f, z)
np.concatenate([m, m])
np.concatenate([m, m], axis=1)
np.concatenate([m, f], axis=None)
np.concatenate([])
np.concatenate([m, o])
np.append(f, g)
np.append(m, m, axis=0)
np.stack([f, f])
np.stack([f, f], axis=1)
np.stack([m, f])
np.vstack([f, f])
np.row_stack([f, f])
np.hstack([f, g])
np.dstack([f, f]).shape
np.column_stack([f, f])
np.split(m, 3, axis=1)
np.split(m, [1], axis=1)
np.split(f, 3)
np.array_split(g, [1, 2])
np.hsplit(m, 3)
np.hsplit(m, [1])
np.vsplit(m, 2)
np.vsplit(f, 2)
np.dsplit(k, 2)[0].shape
np.where(m > 2, m, 0)
np.where(m > 2, 1, 0)
np.where(m > 2, 0, m)
np.where(m > 2, m, -m)
np.where(m > 2)
np.where(True, 1, 2)
np.nonzero(m)
np.take(m, np.array([0, 1]), axis=1)
np.take(m, np.array([7]), mode='clip')
np.take(m, np.array([7]), mode='wrap')
np.take(m, np.array([0]), mode='x')
np.sort(g)
np.sort(m, axis=0)
np.argsort(g)
np.unique(np.array([1, 2, 1]))
np.unique(np.array([1, 2, 1]), return_index=True, return_inverse=True, return_counts=True)
np.delete(g, 0)
np.delete(m, 1, axis=1)
np.delete(g, slice(0, 2))
np.delete(g, np.array([0, 2], dtype='int64'))
np.delete(g, 'x')
np.insert(g, 1, 9)
np.insert(g, 1, np.array([7.0]))
np.insert(m, 0, 5, axis=1)
np.insert(g, slice(0, 2), 9)
np.insert(g, 1, 'x')
np.pad(m, ((1, 1), (0, 0)))
np.pad(m, ((1, 0), (0, 2)), mode='edge')
np.pad(m, ((1, 1), (1, 1)), mode='reflect')
np.pad(m, ((1, 1), (1, 1)), mode='symmetric')
np.pad(m, ((1, 1), (1, 1)), mode='wrap')
np.pad(m, 1)
np.unravel_index(np.array([3], dtype='int32'), (2, 3))
np.unravel_index(4, (2, 3))
np.diag_indices_from(n)
np.resize(f, (3,))
np.dot(f, f)
np.dot(m, m.T)
np.dot(f, 2)
np.inner(f, f)
np.outer(f, g)
np.vdot(f, f)
np.matmul(m, m.T)
np.matmul(f, f)
np.tensordot(m, m, axes=([1], [1]))
np.tensordot(m, n, axes=([0], [0]))
np.tensordot(f, g, 0)
np.tensordot(m, m.T, axes=1)
np.einsum('ij,kj->ik', m, m)
np.einsum('ii', n)
np.einsum('i,i->', f, f)
np.einsum('ij->ji', m)
np.einsum('...j,kj->...k', m, m)
np.einsum('ij,jk', m, m)
np.polyval(f, f)
np.polyval([1, 2], 3)
np.average(m)
np.average(m, axis=1)
np.average(m, axis=1, weights=g)
np.average(m, weights=m, returned=True)
np.percentile(m, 50)
np.percentile(m, 30, axis=1, interpolation='lower')
np.quantile(m, 0.5)
np.percentile(m, f)
np.median
np.histogram(g, bins=3, range=(-1, 2))
np.histogram(g, bins=np.array([-1.0, 0.0, 2.0]))
np.histogram(g)
np.bincount(np.array([1, 2, 2], dtype='int32'))
np.bincount(np.array([1, 2, 2], dtype='int32'), weights=g)
np.bincount(np.array([1], dtype='int32'), minlength=4)
np.bincount(np.array([1], dtype='int32'), minlength=-1)
np.diff(g)
np.diff(m, axis=0)
np.diff(g, n=2)
np.ediff1d(g)
np.ediff1d(g, to_end=9, to_begin=8)
np.ediff1d(g, to_end=f)
np.cumsum(m)
np.cumsum(i)
np.clip(m, None, 2)
np.clip(m, 1, None)
np.clip(m, None, None)
np.around(np.array([1.25, 2.35]), 1)
np.around(2.5)
np.round(f)
np.nan_to_num(np.array([onp.nan, onp.inf, 1.0]))
np.nan_to_num(np.array([onp.nan, 1.0]), nan=5.0)
np.nan_to_num(i)
np.shares_memory(m, m[0])
np.shares_memory(m, f)
np.may_share_memory(m, m[1:])
np.argmax(m, axis=5)
np.argmax(m, axis=-1)
np.all(m)
np.any(m, axis=1)
np.sum(i)
np.sum(b)
np.sum(i8)
np.sum(m, dtype='float64')
np.prod(i)
np.mean(i)
np.mean(m, dtype='float64')
np.max(e)
np.sum(e)
np.sum(e, axis=0)
np.std(m, ddof=1)
np.var(m, axis=0, keepdims=True)
np.sum(m, axis=3)
np.sum(m, foo=1)
np.sum()
np.add(m, m, where=True)
np.add(m, m, where=False)
np.add(m, m, foo=1)
np.add(m, m, dtype='float32')
np.sin([1.0])
np.sin(o)
np.sin(nd)
np.sin('x')
np.sin(i)
into(np.sin, f, like=f)
into(np.add, f, f, like=f)
into(np.add, f, 1, like=f)
into(np.exp, d, like=d)
into(np.concatenate, [f, f], like=np.zeros((4,)))
np.size(m)
np.ndim(m)
np.shape(m)
np.pi
np.newaxis
np.inf
np.float32.__name__
np.int32.__name__
np.allclose(m, m)
np.isclose(m, m)
np.array_equal(m, m)
np.count_nonzero(m)
np.argwhere(m)
np.flatnonzero(m)
np.nansum
np.nanmax(m, axis=0)
np.interp(f, g, g)
np.searchsorted(g, f)
np.take_along_axis(m, np.argsort(m, axis=1), 1)
np.intersect1d(f, f)
np.logical_and
np.triu
np.cross
np.foo
onp.concatenate([m, m])
onp.stack([f, f])
onp.add(m, 1)
onp.add(o, f)
onp.multiply(m, m)
onp.dot(m, m.T)
onp.where(m > 2, m, m)
onp.mean(m, axis=0)
onp.expand_dims(m, 0)
onp.linalg.norm(n)
onp.linalg.inv(n)
onp.isnan(f)
onp.logical_and(b, b)
np.linalg.norm(m)
np.linalg.norm(g)
np.linalg.norm(m, axis=1)
np.linalg.norm(m, axis=(0, 1))
np.linalg.norm(m, ord='fro')
np.linalg.norm(m, ord='inf', axis=(0, 1))
np.linalg.norm(m, ord=1, axis=(0, 1))
np.linalg.norm(g, ord=2, axis=0)
np.linalg.norm(m, axis=1, keepdims=True)
np.linalg.norm(m, ord='nuc', axis=(0, 1))
np.linalg.norm(m, axis='x')
np.linalg.inv(n)
np.linalg.det(n)
np.linalg.slogdet(n)
np.linalg.cholesky(n)
np.linalg.solve(n, f)
np.linalg.eigvalsh(n)
np.linalg.eigvals(n).shape
np.linalg.pinv(m)
np.linalg.svd(m)[1]
np.linalg.tensorinv(np.eye(4).reshape(2, 2, 2, 2)).shape
np.linalg.tensorsolve(np.eye(4).reshape(2, 2, 2, 2), n)
np.linalg.matrix_rank(n)
np.linalg.inv(m)
np.linalg.foo
np.random.uniform(size=(2, 3)).shape
np.random.uniform().shape
np.random.uniform(0, 1, 3).dtype.name
np.random.uniform(f, 5).shape
np.random.uniform(size=2, dtype='float64').dtype.name
np.random.normal(0, 1, (2, 2)).shape
np.random.normal(f, f).shape
np.random.normal(f, 1, (3, 2)).shape
np.random.randint(5, size=2).dtype.name
np.random.randint(2, 3, size=(2,))
np.random.randint(5).shape
np.random.randint(0, 5, dtype='int32', size=3).dtype.name
np.random.choice(5, 3).shape
np.random.choice(5).shape
np.random.choice(g, 2).dtype.name
np.random.choice(1, (2,))
np.random.gamma(2.0, 1.0, (3,)).shape
np.random.beta(1.0, 2.0, (3,)).dtype.name
np.random.chisquare(3.0, (2,)).shape
np.random.exponential(1.0, (2,)).shape
np.random.weibull(1.0, (2,)).shape
np.random.pareto(1.0, (2,)).shape
np.random.power(1.0, (2,)).shape
np.random.rayleigh(1.0, (2,)).shape
np.random.logistic(0.0, 1.0, (2,)).shape
np.random.gumbel(0.0, 1.0, (2,)).shape
np.random.lognormal(0.0, 1.0, (2,)).shape
np.random.rand(2, 3).shape
np.random.randn(2).shape
np.random.multinomial(5, [0.5, 0.5]).shape
np.random.multinomial(5, [0.0, 1.0])
np.random.multinomial(5, np.array([0.5, 0.5]), size=(2,)).shape
np.random.multivariate_normal(f, n, size=3).shape
np.random.shuffle(f)
np.random.foo
npx.relu(g)
npx.sigmoid(g)
npx.softmax(g)
npx.softmax(m, axis=0)
npx.log_softmax(m, axis=-1)
npx.one_hot(np.array([0, 1]), 3)
npx.topk(g)
npx.topk(g, k=2, ret_typ='value')
npx.pick(m, np.array([0, 1]))
npx.nonzero(m)
npx.reshape(k, (-2, -2, -1)).shape
npx.reshape(k, (-5, 4)).shape
npx.reshape_like(m, m.T)
npx.batch_dot(k.astype('float32'), k.astype('float32').transpose(0, 2, 1)).shape
npx.activation(g, act_type='relu')
npx.leaky_relu(g, act_type='leaky', slope=0.1)
npx.fully_connected(m, np.ones((2, 3)), np.zeros((2,)), num_hidden=2)
npx.fully_connected(m, np.ones((2, 3)), num_hidden=2, no_bias=True)
npx.convolution(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), kernel=(2, 2), num_filter=1, no_bias=True)
npx.pooling(np.ones((1, 1, 2, 2)), kernel=(2, 2), pool_type='sum')
npx.layer_norm(m, np.ones((3,)), np.zeros((3,)))
npx.embedding(np.array([0, 1]), n, input_dim=2, output_dim=2)
npx.gather_nd(m, np.array([[0, 1], [1, 2]]))
npx.sequence_mask(m, np.array([1, 2, 1]), use_sequence_length=True)
npx.arange_like(m)
npx.batch_flatten(k.astype('float32')).shape
npx.erf(g)
npx.erfinv(np.array([0.5]))
npx.gamma(np.array([3.0]))
npx.gammaln(np.array([3.0]))
npx.smooth_l1(g, scalar=1.0)
npx.dropout(g)
npx.cast(g, dtype='int32')
npx.slice(m, begin=(0, 1), end=(1, 3))
npx.shape_array(m)
npx.constraint_check(np.array([True], dtype=bool), 'x')
npx.relu(nd)
npx.relu(o)
npx.relu('x')
npx.foo
npx.random.bernoulli(0.5, size=(2,)).shape
npx.random.bernoulli(prob=1.0, size=(2,))
npx.random.bernoulli(prob=f - 1, logit=f)
npx.random.normal_n(f, f, batch_shape=(3,)).shape
npx.random.uniform_n(0.0, 1.0, batch_shape=(3,)).shape
""".split("\n")[1:-1]
