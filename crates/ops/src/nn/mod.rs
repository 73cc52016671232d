//! Layers of neural networks.

pub mod activation;
pub mod dropout;
pub mod leaky_relu;
