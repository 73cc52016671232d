//! mxrt kernels
