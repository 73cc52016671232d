//! mxrt io
