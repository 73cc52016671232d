"""Operators of MXNet that belong to training, for the error that says so.

Names are those of the registry: ``_sparse_sgd_update`` is ``mx.nd.sparse.sgd_update``. A name that
is here and in the registry is found there first.
"""

from __future__ import annotations

__all__ = ["is_training"]

# Steps of optimizers, and what else only training needs.
TRAINING = frozenset(
    """
    IdentityAttachKLSparseReg _adamw_update _contrib_group_adagrad_update _mp_adamw_update
    _multi_adamw_update _multi_lamb_update _multi_mp_adamw_update _multi_mp_lamb_update
    _sparse_adagrad_update _sparse_adam_update _sparse_ftrl_update
    _sparse_sgd_mom_update _sparse_sgd_update adam_update ftml_update ftrl_update
    lamb_update_phase1 lamb_update_phase2 mp_lamb_update_phase1 mp_lamb_update_phase2
    mp_nag_mom_update mp_sgd_mom_update mp_sgd_update multi_lars multi_mp_sgd_mom_update
    multi_mp_sgd_update multi_sgd_mom_update multi_sgd_update nag_mom_update
    preloaded_multi_mp_sgd_mom_update preloaded_multi_mp_sgd_update
    preloaded_multi_sgd_mom_update preloaded_multi_sgd_update reset_arrays rmsprop_update
    rmspropalex_update sgd_mom_update sgd_update signsgd_update signum_update
    """.split()
)


def is_training(name: str) -> bool:
    """Whether an operator belongs to training; those that compute gradients do."""
    return name in TRAINING or "_backward_" in name
