//! mxrt tensor
