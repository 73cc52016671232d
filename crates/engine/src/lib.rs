//! mxrt engine
