//! Layers of neural networks.

pub mod activation;
pub mod batch_norm;
pub mod dropout;
pub mod embedding;
pub mod l2_normalization;
pub mod layer_norm;
pub mod leaky_relu;
pub mod lrn;
pub mod outputs;
pub mod pooling;
pub mod softmax;
pub mod softmax_activation;
pub mod softmax_output;
