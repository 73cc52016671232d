//! Layers of neural networks.

pub mod activation;
pub mod batch_norm;
pub mod convolution;
pub(crate) mod convolution_kernel;
pub mod deconvolution;
pub mod dropout;
pub mod embedding;
pub mod fully_connected;
pub(crate) mod fully_connected_kernel;
pub mod group_norm;
pub mod instance_norm;
pub mod l2_normalization;
pub mod layer_norm;
pub mod leaky_relu;
pub mod lrn;
pub mod make_loss;
pub mod pooling;
pub mod pooling_v1;
pub mod regression_output;
pub mod softmax;
pub mod softmax_activation;
pub mod softmax_cross_entropy;
pub mod softmax_output;
pub mod svm_output;
