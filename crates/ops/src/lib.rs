//! mxrt ops
