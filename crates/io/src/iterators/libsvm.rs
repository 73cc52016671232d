//! `LibSVMIter`: rows of numbered values as batches.

use super::batch::{SampleError, Samples};
use super::lines::{Lines, files};
use super::{IterDef, Source, dtype, extents, part};
use crate::DataError;
use mxrt_engine::Engine;
use mxrt_tensor::DType;
use mxrt_tensor::attrs::{AttrDef, AttrKind, Attrs};

const NAME: &str = "LibSVMIter";

pub(super) static LIBSVM_ITER: IterDef = IterDef {
    name: NAME,
    doc: "Batches of rows of LibSVM files, read ahead in the background. Batches are dense: mxrt has no csr arrays.",
    parameters: &[&[
        AttrDef::required(
            "data_libsvm",
            AttrKind::Str,
            "A file, a directory of files, or several of them with ';' between. A line is a label and pairs \
             index:value; indices count from 0 and ascend.",
        ),
        AttrDef::required("data_shape", AttrKind::Shape, "Numbers in one sample, as a shape with one extent."),
        AttrDef::new(
            "label_libsvm",
            AttrKind::Str,
            "NULL",
            "The same for labels, whose pairs are the label; without it a sample has the label in front of its line.",
        ),
        AttrDef::new("label_shape", AttrKind::Shape, "(1,)", "Extents of one label."),
    ]],
    omits: &[],
    source,
};

fn source(parameters: &Attrs) -> Result<Source, DataError> {
    let dtype = dtype(NAME, parameters, &[DType::F32])?;
    let data_shape = extents(NAME, parameters, "data_shape")?;
    let label_shape = extents(NAME, parameters, "label_shape")?;
    let refused = |problem: &str| Err(DataError::Argument(format!("{NAME}: {problem}")));
    if data_shape.len() != 1 {
        return refused("dimension of data_shape is expected to be 1");
    }
    let data_libsvm = parameters.str("data_libsvm").to_owned();
    let given = Some(parameters.str("label_libsvm")).filter(|uri| !matches!(*uri, "NULL" | "None"));
    let label_libsvm = given.map(str::to_owned);
    let labels: usize = label_shape.iter().product();
    match label_libsvm {
        Some(_) if labels == 1 => {
            return refused("label_shape is not expected to be (1,) when label_libsvm is set");
        }
        None if labels != 1 => return refused("label_shape is expected to be (1,) when label_libsvm is not given"),
        _ => {}
    }
    let part = part(parameters);
    if part.0 > 1 && label_libsvm.is_some() {
        return refused("num_parts cannot be used with label_libsvm: rows and labels are divided by bytes");
    }
    let numbers = data_shape[0];
    let open = move |_: &'static Engine| {
        let lines = |uri: &str, numbers: usize| Lines::new(files(uri)?, numbers, part);
        let samples = LibSvmSamples {
            data: lines(&data_libsvm, numbers)?,
            label: label_libsvm.as_ref().map(|uri| lines(uri, labels)).transpose()?,
            number: 0,
        };
        Ok(Box::new(samples) as Box<dyn Samples>)
    };
    Ok(Source { dtype, label_dtype: dtype, data_shape, label_shape, open: Box::new(open) })
}

/// The rows of LibSVM files, with labels of their own or from other files.
struct LibSvmSamples {
    data: Lines,
    label: Option<Lines>,
    number: u64,
}

impl Samples for LibSvmSamples {
    fn next(&mut self, data: &mut [u8], label: &mut [u8]) -> Result<Option<u64>, SampleError> {
        if !self.data.next()? {
            return Ok(None);
        }
        let mut sample = parse(&self.data, data);
        if let Some(labels) = &mut self.label {
            if !labels.next()? {
                let error = DataError::Content {
                    place: labels.place(),
                    problem: format!(
                        "Data LibSVM's row is smaller than the number of rows in label_libsvm: no label for the row \
                         at {}",
                        self.data.place()
                    ),
                };
                return Err(error.into());
            }
            sample = sample.and_then(|own| parse(labels, label).map(|_| own));
        } else if let Ok(own) = sample {
            label.copy_from_slice(&own.to_ne_bytes());
        }
        self.number += 1;
        sample.map(|_| Some(self.number - 1)).map_err(SampleError::Sample)
    }

    fn rewind(&mut self, _pass: u64) -> Result<(), DataError> {
        self.number = 0;
        self.data.rewind();
        if let Some(labels) = &mut self.label {
            labels.rewind();
        }
        Ok(())
    }
}

/// Writes the values of a line into `to`, zeros between them, and gives its label.
fn parse(lines: &Lines, to: &mut [u8]) -> Result<f32, DataError> {
    let wrong = |problem: String| DataError::Content { place: lines.place(), problem };
    let Ok(text) = std::str::from_utf8(lines.text()) else {
        return Err(wrong("found bytes that are no text; is this a LibSVM file?".to_owned()));
    };
    let text = text.trim_start_matches('\u{feff}').split('#').next().unwrap_or_default();
    to.fill(0);
    let width = size_of::<f32>();
    let count = to.len() / width;
    let mut fields = text.split_ascii_whitespace();
    // A weight behind the label is accepted and not used, as in MXNet.
    let label = fields.next().unwrap_or_default();
    let label = label.split(':').next().and_then(|label| label.parse::<f32>().ok()).ok_or_else(|| {
        wrong(format!("found {:?}, expected a number as the label in front of the line", shortened(label)))
    })?;
    let mut last = None;
    for field in fields.filter(|field| !field.starts_with("qid:")) {
        let (index, value) = field.split_once(':').unwrap_or((field, "1"));
        let Ok(value) = value.parse::<f32>() else {
            return Err(wrong(format!("found {:?}, expected index:value with a number", shortened(field))));
        };
        let place = match index.parse::<i64>() {
            Err(_) => return Err(wrong(format!("found {:?}, expected index:value", shortened(field)))),
            Ok(index @ ..0) => return Err(wrong(format!("the index {index} is negative; indices count from 0"))),
            Ok(index) if index as u64 >= count as u64 => {
                return Err(wrong(format!(
                    "the index {index} is outside of data_shape ({count},); indices count from 0"
                )));
            }
            Ok(index) => index as usize,
        };
        if let Some(last) = last.filter(|last| *last >= place) {
            return Err(wrong(format!("the index {place} comes behind {last}; indices have to ascend")));
        }
        last = Some(place);
        to[place * width..][..width].copy_from_slice(&value.to_ne_bytes());
    }
    Ok(label)
}

/// The beginning of a text, for messages.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
