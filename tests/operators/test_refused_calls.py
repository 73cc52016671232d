"""Calls that MXNet 1.9.1 refuses, with the class that it raises, and some that it answers."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

import mxrt as mx

A = mx.nd.array([[1, 2, 3], [4, 5, 6]])
X, Y = mx.sym.var("x"), mx.sym.var("y")

REFUSED = """
IndexError len(mx.nd.array(3))
IndexError list(mx.nd.array(3))
ValueError A[[0, 1], [0, 1, 2]]
KeyError A.astype('uint16')
KeyError A.astype('complex64')
TypeError A.astype('float31')
TypeError A.reshape((2.0, 3.0))
MXNetError mx.nd.arange(0)
MXNetError mx.nd.arange(1, 1)
MXNetError mx.nd.arange('x')
MXNetError mx.nd.arange(None, 5)
MXNetError mx.nd.arange(0, 3, None)
MXNetError mx.nd.arange(3, repeat=2.0)
MXNetError mx.nd.linspace(0, 1, 2.5)
MXNetError mx.nd.eye(2.5)
MXNetError mx.nd.eye((2,))
MXNetError mx.nd.zeros((2,), bogus=1)
MXNetError mx.nd.ones((2,), bogus=1)
MXNetError mx.nd.eye(2, bogus=1)
MXNetError mx.nd.zeros((2,), dtype='complex64')
MXNetError mx.nd.eye(2, dtype='complex64')
KeyError mx.nd.full((2,), 1, dtype='complex64')
OverflowError mx.nd.empty(-1)
OverflowError mx.nd.full((2, -1), 3)
AssertionError mx.nd.concatenate([])
AssertionError mx.nd.concatenate([A, A.astype('int32')])
AssertionError mx.nd.concatenate([A, mx.nd.ones((2, 4))])
AssertionError mx.nd.concatenate([A, mx.nd.ones((2,))])
IndexError mx.nd.concatenate([A, A], axis=2)
ZeroDivisionError mx.nd.split_v2(A, 0)
MXNetError mx.nd.load_frombuffer('x')
MXNetError mx.nd.random.normal(0, 1, bogus=1)
MXNetError mx.nd.random.randint(0, 9, bogus=1)
ValueError mx.nd.random.normal('a', 1)
AssertionError mx.nd.random.normal(1, 'a')
AssertionError mx.nd.random.normal(1, A)
AssertionError mx.nd.random.gamma(A, 1)
AssertionError mx.nd.random.shuffle([1])
AssertionError mx.nd.random.multinomial(True)
ValueError mx.sym.random.normal('a', 1)
AssertionError mx.sym.random.normal(X, 1)
AssertionError mx.sym.random.uniform(1, 'a')
RuntimeError (X * 2).simple_bind(mx.cpu(), grad_req='bogus', x=(2, 3))
ValueError (X * 2).bind(mx.cpu(), [A], grad_req='bogus')
ValueError mx.gluon.SymbolBlock(3, [X])
KeyError (X * 2).bind(mx.cpu(), [A], grad_req=['bogus'])
TypeError (X * 2).bind(mx.cpu(), A)
TypeError X.infer_shape(x=(2.0, 3))
MXNetError mx.nd.reshape_like(mx.nd.ones((6, 4)), A, lhs_begin=1, lhs_end=1, rhs_begin=1, rhs_end=1)
MXNetError mx.nd.contrib.index_copy(mx.nd.ones((5, 3)), mx.nd.array([[1, 2]], dtype='int64'), A)
MXNetError mx.nd.clip(A, a_min='2 ', a_max=4)
MXNetError mx.nd.cast_storage()
MXNetError mx.nd.cast_storage(A)
MXNetError mx.nd.cast_storage(A, stype='csr', bogus=1)
AssertionError mx.nd.cast_storage([1], stype='csr')
AssertionError mx.nd.sparse.array(A)
AttributeError mx.nd.contrib.isinf(3)
AttributeError mx.nd.contrib.isfinite('x')
MXNetError mx.nd.Dropout(A, axes=(5,))
MXNetError mx.nd.dot(A[0], A[0], transpose_a=True)
MXNetError mx.nd.InstanceNorm(A, mx.nd.ones((3,)), mx.nd.ones((3,)))
MXNetError mx.nd.image.normalize(mx.nd.ones((3, 2, 2)))
MXNetError mx.nd.image.normalize(mx.nd.ones((3, 2, 2)), mean=0.5)
MXNetError mx.nd.image.normalize(mx.nd.ones((3, 2, 2)), mean=(1, 2, 3, 4), std=1)
MXNetError mx.nd.softmax(A, temperature='1.5f')
MXNetError (X + Y).simple_bind(mx.cpu(), grad_req='null', x=(2, 3)).reshape(z=(4, 3), x=(0, 3))
"""


@pytest.mark.parametrize("row", REFUSED.strip().split("\n"))
def test_a_call_raises_the_class_of_mxnet(row: str) -> None:
    name, code = row.split(" ", 1)
    expected = mx.MXNetError if name == "MXNetError" else getattr(builtins, name)
    with pytest.raises(expected):
        eval(code)


ANSWERED: dict[str, Any] = {
    "A.reshape(3, 2, shape=(6,)).shape": (3, 2),
    "mx.nd.array([[5]]).asscalar().shape": (),
    "mx.nd.array([5]).asscalar().shape": (),
    "mx.nd.array(5).asscalar().shape": (),
    "bool(mx.nd.array([[5]]))": True,
    "mx.nd.array([[5]]).item()": 5.0,
    "mx.nd.eye('2', ' 3').asnumpy().tolist()": [[1, 0, 0], [0, 1, 0]],
    "mx.nd.zeros((2,), name='z').shape": (2,),
    "mx.nd.clip(A, a_min=' 2', a_max='4.0f').asnumpy().tolist()": [[2, 2, 3], [4, 4, 4]],
    "mx.nd.random.normal(0, 1, (2,), name='z').shape": (2,),
    "mx.nd.onehot_encode(mx.nd.array([0, 5, -1]), mx.nd.ones((3, 2))).asnumpy().tolist()": [[1, 0], [0, 0], [0, 0]],
}


@pytest.mark.parametrize("code", ANSWERED)
def test_a_call_answers_as_mxnet(code: str) -> None:
    assert eval(code) == ANSWERED[code]
