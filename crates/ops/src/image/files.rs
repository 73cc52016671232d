//! Reading files of images. Operators know no files: whoever puts the library together says what
//! reads them ([`set_image_files`]).

use crate::prelude::*;
use mxrt_engine::ForkSafeOnce;

/// Reads files of images.
pub trait ImageFiles: Send + Sync {
    /// The content of a file on disk.
    fn read(&self, name: &str) -> Result<Vec<u8>, OpError>;
    /// Height and width of the pixels of a file.
    fn size(&self, file: &[u8]) -> Result<[usize; 2], OpError>;
    /// The pixels of a file, one byte for each of one or three channels.
    fn pixels(&self, file: &[u8], channels: ImageChannels) -> Result<Vec<u8>, OpError>;
}

/// The channels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageChannels {
    /// One.
    Grey,
    /// Three, red first.
    Rgb,
    /// Three, blue first.
    Bgr,
}

static FILES: ForkSafeOnce<&'static dyn ImageFiles> = ForkSafeOnce::new();

/// Says what reads files of images. The first call counts.
pub fn set_image_files(files: &'static dyn ImageFiles) {
    FILES.get_or_init(|| files);
}

/// The reader of files of images; an error if the program has none.
pub(super) fn files() -> Result<&'static dyn ImageFiles, OpError> {
    let missing = || not_implemented("this program reads no images: call mxrt_ops::set_image_files first");
    FILES.get().copied().ok_or_else(missing)
}
