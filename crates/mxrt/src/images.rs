//! Files of images, for operators.

use mxrt_engine::OpError;
use mxrt_io::image::{Channels, decode, upright_size};
use mxrt_ops::{ImageChannels, ImageFiles};

/// JPEG and PNG files, as `mxrt_io` reads them.
struct Files;

impl ImageFiles for Files {
    fn read(&self, name: &str) -> Result<Vec<u8>, OpError> {
        Ok(mxrt_io::read_file(name)?)
    }

    fn size(&self, file: &[u8]) -> Result<[usize; 2], OpError> {
        Ok(upright_size(file)?)
    }

    fn pixels(&self, file: &[u8], channels: ImageChannels) -> Result<Vec<u8>, OpError> {
        let channels = match channels {
            ImageChannels::Grey => Channels::Grey,
            ImageChannels::Rgb => Channels::Rgb,
            ImageChannels::Bgr => Channels::Bgr,
        };
        Ok(decode(file, channels)?.values)
    }
}

/// Lets operators read images.
pub(crate) fn register() {
    mxrt_ops::set_image_files(&Files);
}
