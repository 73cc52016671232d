"""Vectors for tokens, read from local files."""

from __future__ import annotations

import os
import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Callable, Sequence
from typing import Any

from ... import ndarray as nd
from ... import registry
from ..._scopes.np_mode import made_here
from ...base import MXNetDataError, MXNetKeyError, data_dir, warn
from ...ndarray import NDArray
from ._constants import PRETRAINED_FILES
from .vocab import Vocabulary

__all__ = ["CompositeEmbedding", "CustomEmbedding", "FastText", "GloVe", "create", "get_pretrained_file_names"]
__all__ += ["register"]


class _TokenEmbedding(Vocabulary):
    """A vocabulary whose tokens have vectors; number 0 has the vector of all unknown ones."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._vec_len = 0
        self._idx_to_vec: NDArray | None = None

    @property
    def vec_len(self) -> int:
        """Length of a vector."""
        return self._vec_len

    @property
    def idx_to_vec(self) -> NDArray | None:
        """The vectors in the order of the tokens' numbers: shape (tokens, ``vec_len``), float32."""
        return None if self._idx_to_vec is None else made_here(self._idx_to_vec)

    def _vectors(self) -> NDArray:
        if self._idx_to_vec is None:
            raise AssertionError("The property `idx_to_vec` has not been properly set.")
        return self._idx_to_vec

    def _load_embedding(
        self, path: str, elem_delim: str, init_unknown_vec: Callable[..., NDArray], encoding: str = "utf8"
    ) -> None:
        """Reads a text file with a token and its vector in every line.

        A first line of two words is taken for a header. A token that comes again is left out, with
        a warning.
        """
        path = os.path.expanduser(path)
        if not os.path.isfile(path):
            raise ValueError(f"`pretrained_file_path` must be a valid path to the token embedding file, got {path!r}")
        rows: list[list[float]] = []
        unknown: list[float] | None = None
        with open(path, encoding=encoding) as lines:
            for number, line in enumerate(lines, 1):
                where = f"line {number} of the token embedding file {path}"
                token, *texts = line.rstrip().split(elem_delim)
                vector = _numbers(texts, where)
                if token == self.unknown_token and unknown is None:
                    unknown = vector
                elif token in self._token_to_idx:
                    warn(f"At {where}: token {token} has a vector already, skipped.")
                elif len(vector) == 1:
                    warn(f"At {where}: one number after {token} is likely a header, skipped.")
                else:
                    self._add(token, vector, rows, where)
        self._vec_len = len(rows[0]) if rows else len(unknown or [])
        first = nd.array(unknown) if unknown is not None else init_unknown_vec(shape=self._vec_len)
        found = nd.array([[0.0] * self._vec_len, *rows])
        found[0] = first
        self._idx_to_vec = found

    def _add(self, token: str, vector: list[float], rows: list[list[float]], where: str) -> None:
        if rows and len(vector) != len(rows[0]):
            raise AssertionError(
                f"At {where}: the dimension of token {token} is {len(vector)} but the dimension of previous tokens is "
                f"{len(rows[0])}. Dimensions of all the tokens must be the same."
            )
        rows.append(vector)
        self._token_to_idx[token] = len(self._idx_to_token)
        self._idx_to_token.append(token)

    def _follow(self, vocabulary: Vocabulary | None, embeddings: Sequence[_TokenEmbedding]) -> None:
        """Takes over the tokens of a vocabulary, with the vectors that the embeddings have for
        them, side by side.
        """
        if vocabulary is None:
            return
        if not isinstance(vocabulary, Vocabulary):
            raise AssertionError(f"`vocabulary` must be a Vocabulary, got {type(vocabulary)}")
        parts = []
        for embedding in embeddings:
            # The unknown token's own vector, whatever it is called there.
            first = embedding._vectors()[0:1]
            others = vocabulary.idx_to_token[1:]
            parts.append(nd.concatenate([first, embedding.get_vecs_by_tokens(others)]) if others else first)
        self._idx_to_vec = nd.concatenate(parts, axis=1)
        self._vec_len = int(self._idx_to_vec.shape[1])
        self._token_to_idx = dict(vocabulary.token_to_idx)
        self._idx_to_token = list(vocabulary.idx_to_token)
        self._unknown_token = vocabulary.unknown_token
        reserved = vocabulary.reserved_tokens
        self._reserved_tokens = None if reserved is None else list(reserved)

    def get_vecs_by_tokens(self, tokens: Any, lower_case_backup: bool = False) -> NDArray:
        """The vector of a token, or one row for each of a list of tokens; unknown ones have vector
        0.

        With `lower_case_backup` an unknown token is looked up in lower case.
        """
        asked = tokens if isinstance(tokens, list) else [tokens]
        places = [self._place(token, lower_case_backup) for token in asked]
        vectors = self._vectors()
        found: NDArray = nd.Embedding(
            nd.array(places), vectors, input_dim=vectors.shape[0], output_dim=vectors.shape[1]
        )
        return made_here(found if isinstance(tokens, list) else found[0])

    def _place(self, token: Any, lower_case_backup: bool) -> int:
        if token not in self._token_to_idx and lower_case_backup:
            token = token.lower()
        return self._token_to_idx.get(token, 0)

    def update_token_vectors(self, tokens: Any, new_vectors: NDArray) -> None:
        """Changes the vectors of known tokens; ValueError for an unknown one, AssertionError for
        vectors that are no array with a row for each token.
        """
        listed = tokens if isinstance(tokens, list) else [tokens]
        if not isinstance(new_vectors, NDArray):
            raise AssertionError(f"new_vectors is {type(new_vectors).__name__}, expected an NDArray")
        rows = new_vectors.reshape((1, -1)) if len(listed) == 1 and new_vectors.ndim == 1 else new_vectors
        if rows.shape != (len(listed), self.vec_len):
            raise AssertionError(
                f"new_vectors has shape {new_vectors.shape}, expected {(len(listed), self.vec_len)}: a row per token"
            )
        for token in listed:
            if token not in self._token_to_idx:
                raise ValueError(
                    f"Token {token} is unknown. To update the embedding vector for an unknown token, please specify it "
                    f"explicitly as the `unknown_token` {self.idx_to_token[0]} in `tokens`. This is to avoid "
                    "unintended updates."
                )
        vectors = self._vectors()
        for place, token in enumerate(listed):
            vectors[self._token_to_idx[token]] = rows[place]


def _numbers(texts: list[str], where: str) -> list[float]:
    if not texts:
        raise AssertionError(f"At {where}: expected a token and the numbers of its vector")
    try:
        return [float(text) for text in texts]
    except ValueError as error:
        raise MXNetDataError(f"At {where}: {error}") from None


_register = registry.get_register_func(_TokenEmbedding, "token embedding")
_create = registry.get_create_func(_TokenEmbedding, "token embedding")


def register(embedding_cls: type) -> Any:
    """Registers a class of embeddings under its lower-case name."""
    return _register(embedding_cls)


def create(embedding_name: str, **kwargs: Any) -> Any:
    """An embedding of a registered class, such as ``glove``, from a local file."""
    return _create(embedding_name, **kwargs)


def _folder(name: str, root: str | None) -> str:
    return os.path.join(os.path.expanduser(root or os.path.join(data_dir(), "embeddings")), name)


def get_pretrained_file_names(embedding_name: str | None = None) -> Any:
    """The files of an embedding that its authors give away, and others that are in
    ``$MXNET_HOME/embeddings/NAME``: a list for a name, else a dictionary of lists.

    KeyError for a name that is not registered.
    """
    known = registry.get_registry(_TokenEmbedding)
    if embedding_name is None:
        return {name: get_pretrained_file_names(name) for name in known}
    if embedding_name not in known:
        raise KeyError(f"Cannot find `embedding_name` {embedding_name}; known: {', '.join(known)}")
    folder = _folder(embedding_name, None)
    there = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    known_files = PRETRAINED_FILES.get(embedding_name, [])
    return [*known_files, *(name for name in there if name not in known_files)]


class _Local(_TokenEmbedding):
    """An embedding whose file has a known name and place."""

    def _read(
        self, name: str, root: str | None, init_unknown_vec: Callable[..., NDArray], vocabulary: Vocabulary | None
    ) -> None:
        path = os.path.join(_folder(type(self).__name__.lower(), root), name)
        if not os.path.isfile(path):
            known = PRETRAINED_FILES.get(type(self).__name__.lower(), [])
            raise (MXNetDataError if name in known else MXNetKeyError)(
                f"{type(self).__name__}: '{path}' does not exist, and mxrt downloads nothing; put the file there, or "
                "give its folder's parent as embedding_root"
            )
        self._load_embedding(path, " ", init_unknown_vec)
        self._follow(vocabulary, [self])


@register
class GloVe(_Local):
    """GloVe vectors, from a file in ``embedding_root/glove``; `embedding_root` is
    ``$MXNET_HOME/embeddings``.
    """

    def __init__(
        self,
        pretrained_file_name: str = "glove.840B.300d.txt",
        embedding_root: str | None = None,
        init_unknown_vec: Callable[..., NDArray] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._read(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary)


@register
class FastText(_Local):
    """fastText vectors, from a file in ``embedding_root/fasttext``; `embedding_root` is
    ``$MXNET_HOME/embeddings``.
    """

    def __init__(
        self,
        pretrained_file_name: str = "wiki.simple.vec",
        embedding_root: str | None = None,
        init_unknown_vec: Callable[..., NDArray] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._read(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary)


class CustomEmbedding(_TokenEmbedding):
    """Vectors from any text file that has a token and its numbers in every line, separated by
    `elem_delim`.

    With a vocabulary, its tokens and no others are numbered.
    """

    def __init__(
        self,
        pretrained_file_path: str,
        elem_delim: str = " ",
        encoding: str = "utf8",
        init_unknown_vec: Callable[..., NDArray] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._load_embedding(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        self._follow(vocabulary, [self])


class CompositeEmbedding(_TokenEmbedding):
    """The vectors that several embeddings have for the tokens of a vocabulary, side by side."""

    def __init__(self, vocabulary: Vocabulary, token_embeddings: Any) -> None:
        super().__init__()
        embeddings = token_embeddings if isinstance(token_embeddings, list) else [token_embeddings]
        for embedding in embeddings:
            if not isinstance(embedding, _TokenEmbedding):
                raise AssertionError(f"`token_embeddings` must be token embeddings, got {type(embedding)}")
        self._follow(vocabulary, embeddings)
