//! JPEG and PNG: any bytes give pixels, as many as the file says, or an error.

use mxrt::internal::io::image::{Channels, decode};

pub(super) fn run(bytes: &[u8]) {
    for (channels, count) in [(Channels::Rgb, 3), (Channels::Grey, 1), (Channels::Rgba, 4)] {
        let Ok(image) = decode(bytes, channels) else { continue };
        assert_eq!(image.channels, count);
        assert_eq!(image.values.len(), image.height * image.width * count);
        assert!(!image.values.is_empty());
    }
}
