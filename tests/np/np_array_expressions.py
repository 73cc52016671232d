"""Expressions that make arrays of ``mx.np``, take parts of them and call methods (np_cases.py)."""

from __future__ import annotations

__all__ = ["ARRAYS"]

ARRAYS = """
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
""".split("\n")[1:-1]
