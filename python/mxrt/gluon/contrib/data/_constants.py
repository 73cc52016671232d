"""The token that ends a sentence in data sets of language models."""

__all__ = ["EOS_TOKEN"]

EOS_TOKEN = "<eos>"
