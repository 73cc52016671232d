"""Numbers for tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

__all__ = ["Vocabulary"]


class Vocabulary:
    """Numbers tokens: first the unknown one, then those reserved, then those counted, the most
    frequent first.

    Of tokens counted equally often the smaller one is first. `most_freq_count` bounds how many
    counted tokens are numbered, `min_freq` how often they must occur.
    """

    def __init__(
        self,
        counter: Counter[Any] | None = None,
        most_freq_count: int | None = None,
        min_freq: int = 1,
        unknown_token: Hashable = "<unk>",
        reserved_tokens: list[Any] | None = None,
    ) -> None:
        if min_freq <= 0:
            raise AssertionError("`min_freq` must be set to a positive value.")
        reserved = list(reserved_tokens or [])
        if unknown_token in reserved:
            raise AssertionError("`reserved_token` cannot contain `unknown_token`.")
        if len(set(reserved)) != len(reserved):
            raise AssertionError("`reserved_tokens` cannot contain duplicate reserved tokens.")
        self._unknown_token = unknown_token
        self._reserved_tokens = None if reserved_tokens is None else reserved
        self._idx_to_token: list[Any] = [unknown_token, *reserved]
        if counter is not None:
            if not isinstance(counter, Counter):
                raise AssertionError("`counter` must be an instance of collections.Counter.")
            self._idx_to_token += self._chosen(counter, most_freq_count, min_freq)
        self._token_to_idx = {token: place for place, token in enumerate(self._idx_to_token)}

    def _chosen(self, counter: Counter[Any], most: int | None, least: int) -> list[Any]:
        taken = set(self._idx_to_token)
        ordered = sorted(sorted(counter), key=lambda token: counter[token], reverse=True)
        found = [token for token in ordered if counter[token] >= least and token not in taken]
        return found if most is None or most < 0 else found[:most]

    def __len__(self) -> int:
        return len(self._idx_to_token)

    @property
    def token_to_idx(self) -> dict[Any, int]:
        """The number of every token."""
        return self._token_to_idx

    @property
    def idx_to_token(self) -> list[Any]:
        """The tokens in the order of their numbers."""
        return self._idx_to_token

    @property
    def unknown_token(self) -> Hashable:
        """The token that stands for all that are not numbered; its number is 0."""
        return self._unknown_token

    @property
    def reserved_tokens(self) -> list[Any] | None:
        """The tokens that are numbered in any case."""
        return self._reserved_tokens

    def to_indices(self, tokens: Any) -> Any:
        """The number of a token, or a list of numbers for a list of tokens; 0 for unknown ones."""
        if not isinstance(tokens, list):
            return self._token_to_idx.get(tokens, 0)
        return [self._token_to_idx.get(token, 0) for token in tokens]

    def to_tokens(self, indices: Any) -> Any:
        """The token of a number, or a list of tokens for a list of numbers; ValueError for one that
        is too large.
        """
        if isinstance(indices, list):
            return [self.to_tokens(index) for index in indices]
        if not isinstance(indices, int) or indices >= len(self):
            raise ValueError(f"Token index {indices} in the provided `indices` is invalid.")
        return self._idx_to_token[indices]
