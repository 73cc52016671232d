//! Files of images.

use crate::ndarray::wrap;
use crate::{convert, errors, runtime};
use mxrt_engine::OpError;
use mxrt_io::DataError;
use mxrt_io::image::{self, Channels, Format, Pixels};
use mxrt_tensor::{DType, NDArray, Shape, TensorType};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

fn raised(py: Python<'_>, error: DataError) -> PyErr {
    errors::from_op(py, &OpError::from(error))
}

fn unknown(what: &str, name: &str) -> DataError {
    DataError::Argument(format!("unknown {what} '{name}'"))
}

/// The pixels of a JPEG or PNG file as an array (height, width, channels) of uint8; `channels` is
/// grey, rgb or bgr.
#[pyfunction]
pub(crate) fn decode_image<'py>(py: Python<'py>, file: &[u8], channels: &str) -> PyResult<Bound<'py, PyAny>> {
    let context = convert::context(("cpu", 0)).map_err(|e| errors::from_op(py, &e))?;
    let engine = runtime::runtime()?.engine;
    let channels = match channels {
        "grey" => Channels::Grey,
        "rgb" => Channels::Rgb,
        "bgr" => Channels::Bgr,
        other => return Err(raised(py, unknown("channels", other))),
    };
    let made = py.detach(|| {
        let Pixels { height, width, channels, values } = image::decode(file, channels)?;
        let tensor = TensorType::new(DType::U8, Shape::new(&[height, width, channels]));
        NDArray::from_bytes(engine, context, tensor, &values)
    });
    wrap(py, made.map_err(|e| errors::from_op(py, &e))?)
}

/// Rows and columns that the head of an image file says to `decode_image`.
#[pyfunction]
pub(crate) fn image_size(py: Python<'_>, file: &[u8]) -> PyResult<(usize, usize)> {
    let head = py.detach(|| image::head(file)).map_err(|e| raised(py, e))?;
    Ok(head.size.into())
}

/// The file of an image of `shape` (height, width, channels), red first. `format` is
/// jpeg, with a quality from 1 to 100, or png, with a compression from 0 to 9.
#[pyfunction]
pub(crate) fn encode_image<'py>(
    py: Python<'py>,
    shape: [usize; 3],
    values: &[u8],
    format: &str,
    level: u8,
) -> PyResult<Bound<'py, PyBytes>> {
    let format = match format {
        "jpeg" => Format::Jpeg { quality: level.clamp(1, 100) },
        "png" => Format::Png { compression: level },
        other => return Err(raised(py, unknown("format", other))),
    };
    let [height, width, channels] = shape;
    let image = Pixels { height, width, channels, values: values.to_vec() };
    let file = py.detach(|| image::encode(&image, format)).map_err(|e| raised(py, e))?;
    Ok(PyBytes::new(py, &file))
}
