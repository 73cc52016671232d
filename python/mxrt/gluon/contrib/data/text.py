"""Texts for language models, from local files: ``mx.gluon.contrib.data.text``."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np

from ....base import MXNetDataError, MXNetFileNotFoundError, MXNetValueError, data_dir
from ....contrib.text.utils import count_tokens_from_str
from ....contrib.text.vocab import Vocabulary
from ....ndarray import NDArray, array
from ...data.dataset import Dataset

__all__ = ["WikiText2", "WikiText103"]

_END_OF_LINE = "<eos>"
_SEGMENTS = {"train": "wiki.train.tokens", "validation": "wiki.valid.tokens", "test": "wiki.test.tokens"}


class _WikiText(Dataset):
    _FOLDER: str

    def __init__(
        self, root: str | None = None, segment: str = "train", vocab: Vocabulary | None = None, seq_len: int = 35
    ) -> None:
        if segment not in _SEGMENTS:
            raise MXNetValueError(f"segment is '{segment}'; expected one of {', '.join(_SEGMENTS)}")
        folder = os.path.join(data_dir(), "datasets", self._FOLDER) if root is None else os.path.expanduser(root)
        content = _read(os.path.join(folder, _SEGMENTS[segment]), type(self).__name__)
        self._frequencies: Counter[str] = count_tokens_from_str(content)
        self._vocabulary = vocab or Vocabulary(self._frequencies, reserved_tokens=[_END_OF_LINE])
        lines = [line.split() for line in content.splitlines()]
        tokens = [token for line in lines if line for token in (*line, _END_OF_LINE)]
        numbers = np.array(self._vocabulary.to_indices(tokens), dtype=np.int32)
        rows = max(0, len(numbers) - 1) // seq_len
        self._data = array(numbers[: rows * seq_len].reshape(rows, seq_len), dtype=np.int32)
        self._label = array(numbers[1 : rows * seq_len + 1].reshape(rows, seq_len), dtype=np.int32)

    @property
    def vocabulary(self) -> Vocabulary:
        """The numbers of the tokens."""
        return self._vocabulary

    @property
    def frequencies(self) -> Counter[str]:
        """How often each token occurs."""
        return self._frequencies

    def __getitem__(self, idx: Any) -> tuple[NDArray, NDArray]:
        return self._data[idx], self._label[idx]

    def __len__(self) -> int:
        return len(self._label)


class WikiText2(_WikiText):
    """Articles of Wikipedia, about 2 million tokens. A sample is `seq_len` tokens by number, int32,
    and as many that come one later. Lines end with ``<eos>``.

    Parameters
    ----------
    root : directory of the files ``wiki.train.tokens``, ``wiki.valid.tokens`` and
        ``wiki.test.tokens``; ``$MXNET_HOME/datasets/wikitext-2`` without it
    segment : ``train``, ``validation`` or ``test``
    vocab : numbers of tokens; made of the file without it
    seq_len : tokens of a sample

    MXNetFileNotFoundError, which says where the file belongs, if it is missing: nothing is
    downloaded.
    """

    _FOLDER = "wikitext-2"


class WikiText103(_WikiText):
    """Articles of Wikipedia, about 103 million tokens; the rest is as for :class:`WikiText2`."""

    _FOLDER = "wikitext-103"


def _read(path: str, name: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise MXNetFileNotFoundError(
            f"there is no file '{os.path.abspath(path)}', of {name}. mxrt downloads nothing: put the file there"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise MXNetDataError(f"'{path}' cannot be read: {error}") from error
