//! mxrt graph
