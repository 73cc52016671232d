//! Operators of MXNet that belong to training, for the error that says so.
//!
//! Names are those of MXNet's registry: `_sparse_sgd_update` is `mx.nd.sparse.sgd_update`. A name
//! that is here and in the registry is found there first.

/// Steps of optimizers, and what else only training needs.
const TRAINING: &[&str] = &[
    "IdentityAttachKLSparseReg",
    "_adamw_update",
    "_contrib_group_adagrad_update",
    "_mp_adamw_update",
    "_multi_adamw_update",
    "_multi_lamb_update",
    "_multi_mp_adamw_update",
    "_multi_mp_lamb_update",
    "_sparse_adagrad_update",
    "_sparse_adam_update",
    "_sparse_ftrl_update",
    "_sparse_sgd_mom_update",
    "_sparse_sgd_update",
    "adam_update",
    "ftml_update",
    "ftrl_update",
    "lamb_update_phase1",
    "lamb_update_phase2",
    "mp_lamb_update_phase1",
    "mp_lamb_update_phase2",
    "mp_nag_mom_update",
    "mp_sgd_mom_update",
    "mp_sgd_update",
    "multi_lars",
    "multi_mp_sgd_mom_update",
    "multi_mp_sgd_update",
    "multi_sgd_mom_update",
    "multi_sgd_update",
    "nag_mom_update",
    "preloaded_multi_mp_sgd_mom_update",
    "preloaded_multi_mp_sgd_update",
    "preloaded_multi_sgd_mom_update",
    "preloaded_multi_sgd_update",
    "reset_arrays",
    "rmsprop_update",
    "rmspropalex_update",
    "sgd_mom_update",
    "sgd_update",
    "signsgd_update",
    "signum_update",
];

/// Whether an operator belongs to training; those that compute gradients do.
pub fn belongs_to_training(name: &str) -> bool {
    TRAINING.binary_search(&name).is_ok() || name.contains("_backward_")
}

/// The error message for such an operator.
pub fn training_message(name: &str) -> String {
    format!(
        "{name} belongs to training, which mxrt does not support: it runs trained models. Train with MXNet and load \
         the exported files here."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_optimizers_and_gradients_belong_to_training() {
        assert!(TRAINING.is_sorted());
        assert!(
            ["sgd_update", "_backward_Convolution", "IdentityAttachKLSparseReg"].iter().all(|n| belongs_to_training(n))
        );
        assert!(!belongs_to_training("Convolution") && !belongs_to_training("update"));
    }
}
