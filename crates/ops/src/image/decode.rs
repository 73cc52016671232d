//! `_cvimdecode` and `_cvimread`: the pixels of JPEG and PNG files.

use super::files::{ImageChannels, files};
use crate::prelude::*;
use mxrt_tensor::TensorRef;
use std::borrow::Cow;

const FLAG: AttrDef = AttrDef::new("flag", AttrKind::Int, "1", "0 for one channel, 1 for three.");
const TO_RGB: AttrDef = AttrDef::new("to_rgb", AttrKind::Bool, "True", "Whether red is first, otherwise blue.");
const IMAGE: OpDef = OpDef {
    infer_shape: |shapes| {
        let channels = if channels(shapes.attrs)? == ImageChannels::Grey { 1 } else { 3 };
        shapes.set_output(0, PartialShape::from_dims([None, None, Some(channels)]))
    },
    infer_dtype: |dtypes| dtypes.set_output(0, DType::U8),
    bind,
    rewrites: &Rewrites { shapes_of_contents: Some(shapes_of_contents), ..Rewrites::NONE },
    ..OpDef::BASE
};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_cvimdecode",
        aliases: &["_npi_cvimdecode"],
        doc: "The pixels of the content of a JPEG or PNG file, (height, width, channels).",
        inputs: Inputs::Fixed(&["buf"]),
        attrs: &[FLAG, TO_RGB],
        ..IMAGE
    },
    OpDef {
        name: "_cvimread",
        aliases: &["_npi_cvimread"],
        doc: "The pixels of a JPEG or PNG file on disk, (height, width, channels). No file of a graph \
              may have it: a model does not choose files to read.",
        inputs: Inputs::Fixed(&[]),
        attrs: &[AttrDef::required("filename", AttrKind::Str, "The file."), FLAG, TO_RGB],
        reads_files: true,
        ..IMAGE
    },
];

fn channels(attrs: &Attrs) -> Result<ImageChannels, OpError> {
    match (attrs.int("flag"), attrs.bool("to_rgb")) {
        (0, _) => Ok(ImageChannels::Grey),
        (flag, _) if flag < 0 => Err(value_error(format!("flag is {flag}; expected 0 for grey or 1 for colour"))),
        (_, true) => Ok(ImageChannels::Rgb),
        (_, false) => Ok(ImageChannels::Bgr),
    }
}

/// The content of the file.
fn content<'a>(attrs: &Attrs, inputs: &[TensorRef<'a>]) -> Result<Cow<'a, [u8]>, OpError> {
    match inputs {
        [] => files()?.read(attrs.str("filename")).map(Cow::Owned),
        [buffer] if buffer.dtype == DType::U8 => Ok(Cow::Borrowed(buffer.bytes())),
        [buffer] => Err(type_error(format!("Input needs to be uint8 buffer, got {}", buffer.dtype))),
        _ => Err(wrong_arity()),
    }
}

fn shapes_of_contents(_: &dyn Par, attrs: &Attrs, inputs: &[TensorRef<'_>]) -> Result<Vec<Shape>, OpError> {
    let [height, width] = files()?.size(&content(attrs, inputs)?)?;
    let channels = if channels(attrs)? == ImageChannels::Grey { 1 } else { 3 };
    Ok(vec![Shape::new(&[height, width, channels])])
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (attrs, channels) = (attrs.clone(), channels(attrs)?);
    Ok(kernel_fn(signature, move |call| {
        let pixels = files()?.pixels(&content(&attrs, call.inputs)?, channels)?;
        let out = call.outputs[0].bytes_mut();
        if pixels.len() != out.len() {
            return Err(value_error("the file changed while it was read; read it again"));
        }
        out.copy_from_slice(&pixels);
        Ok(())
    }))
}
