//! Files of images.

use crate::border::{Error, c_functions};
use crate::handles::{NDArrayHandle, hold};
use crate::pointers::{list, put};
use crate::runtime::engine;
use mxrt::internal::io::image::{Channels, Pixels, decode};
use mxrt::types::TensorType;
use mxrt::{Context, DType, NDArray, Shape};
use std::ffi::{c_int, c_void};

c_functions! {
    /// The pixels of a JPEG or PNG file as an array (height, width, channels) of uint8. `flag`: 1
    /// for three channels, 0 for one. `to_rgb`: whether red is the first channel, otherwise blue.
    fn MXRTImageDecode(data: *const c_void, size: usize, flag: c_int, to_rgb: c_int, out: *mut NDArrayHandle) {
        let channels = match flag {
            0 => Channels::Grey,
            1 if to_rgb != 0 => Channels::Rgb,
            1 => Channels::Bgr,
            _ => return Err(Error::value(format!("the argument flag is {flag}; expected 0 (grey) or 1 (colour)"))),
        };
        let Pixels { height, width, channels, values } = decode(list(data.cast::<u8>(), size, "data")?, channels)?;
        let tensor = TensorType::new(DType::U8, Shape::new(&[height, width, channels]));
        let array = NDArray::from_bytes(engine()?, Context::cpu(0), tensor, &values)?;
        put(out, std::ptr::null_mut(), "out")?;
        put(out, hold(array), "out")
    }
}
