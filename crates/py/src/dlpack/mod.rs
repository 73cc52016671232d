//! DLPack: arrays shared with other libraries without copying.
//!
//! `export` makes the capsule that another library takes, `import` takes one. What crosses is in
//! [`mxrt_tensor::dlpack`].

mod export;
mod import;

pub(crate) use export::{dlpack_device, export_dlpack};
pub(crate) use import::{import_dlpack, share_numpy};
