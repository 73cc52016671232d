//! `LibSVMIter`: rows of numbered values as batches.

use super::batch::{SampleError, Samples};
use super::csr::StoredRow;
use super::decimal::{float, whole};
use super::lines::{LineReader, files};
use super::rows::RowReader;
use super::{IterDef, Source, dtype, extents, part};
use crate::DataError;
use mxrt_engine::Engine;
use mxrt_tensor::DType;
use mxrt_tensor::attrs::{AttrDef, AttrKind, Attrs};

const NAME: &str = "LibSVMIter";

pub(super) static LIBSVM_ITER: IterDef = IterDef {
    name: NAME,
    doc: "Batches of rows of LibSVM files, read ahead in the background. Data are csr matrices of the values in the \
        lines.",
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
        AttrDef::new("dense", AttrKind::Bool, "False", "Give dense batches. MXNet does not have this."),
    ]],
    omits: &[],
    source,
};

fn source(parameters: &Attrs) -> Result<Source, DataError> {
    let dtype = dtype(NAME, parameters, &[DType::F32])?;
    let data_shape = extents(NAME, parameters, "data_shape")?;
    let label_shape = extents(NAME, parameters, "label_shape")?;
    let data_libsvm = parameters.str("data_libsvm").to_owned();
    let given = Some(parameters.str("label_libsvm")).filter(|uri| !matches!(*uri, "NULL" | "None"));
    let label_libsvm = given.map(str::to_owned);
    let labels: usize = label_shape.iter().product();
    let part = part(parameters);
    check(&data_shape, labels, label_libsvm.is_some(), part.0)
        .map_err(|problem| DataError::Argument(format!("{NAME}: {problem}")))?;
    let (numbers, dense) = (data_shape[0], parameters.bool("dense"));
    let open = move |engine: &'static Engine| {
        let lines = |uri: &str, numbers: usize| {
            let uri = uri.to_owned();
            move || Ok(LineReader::new(files(&uri)?, numbers, part)?.without_comments())
        };
        let rows = |uri: &str, numbers: usize| {
            RowReader::new(engine, numbers.saturating_mul(size_of::<f32>()), lines(uri, numbers), dense_row)
        };
        let stored = move |line: &[u8], _: &mut [u8]| stored_row(line, numbers);
        let samples = LibSvmSamples {
            data: match dense {
                true => DataRows::Dense(rows(&data_libsvm, numbers)?),
                false => DataRows::Stored(RowReader::new(engine, 0, lines(&data_libsvm, numbers), stored)?),
            },
            row: StoredRow::default(),
            label: label_libsvm.as_ref().map(|uri| rows(uri, labels)).transpose()?,
            number: 0,
        };
        Ok(Box::new(samples) as Box<dyn Samples>)
    };
    Ok(Source { dtype, label_dtype: dtype, data_shape, label_shape, open: Box::new(open) })
}

/// Refuses shapes and parts that do not go with each other, or with files of labels.
fn check(data_shape: &[usize], labels: usize, label_files: bool, parts: u64) -> Result<(), &'static str> {
    if data_shape.len() != 1 {
        return Err("dimension of data_shape is expected to be 1");
    }
    if label_files && labels == 1 {
        return Err("label_shape is not expected to be (1,) when label_libsvm is set");
    }
    if !label_files && labels != 1 {
        return Err("label_shape is expected to be (1,) when label_libsvm is not given");
    }
    if parts > 1 && label_files {
        return Err("num_parts cannot be used with label_libsvm: rows and labels are divided by bytes");
    }
    Ok(())
}

/// The rows of LibSVM files, with labels of their own or from other files.
struct LibSvmSamples {
    data: DataRows,
    /// the row that was read last, if it is not dense
    row: StoredRow,
    label: Option<RowReader<f32>>,
    number: u64,
}

/// Rows of data, with the label of each line.
enum DataRows {
    Dense(RowReader<f32>),
    Stored(RowReader<(f32, StoredRow)>),
}

impl DataRows {
    /// Reads the next row into one of the two, and gives the label of its line.
    fn next(&mut self, dense: &mut [u8], stored: &mut StoredRow) -> Result<Option<f32>, SampleError> {
        match self {
            DataRows::Dense(rows) => rows.next(dense),
            DataRows::Stored(rows) => {
                let found = rows.next(&mut [])?;
                Ok(found.map(|(label, row)| {
                    *stored = row;
                    label
                }))
            }
        }
    }

    fn place(&self) -> String {
        match self {
            DataRows::Dense(rows) => rows.place(),
            DataRows::Stored(rows) => rows.place(),
        }
    }

    fn rewind(&mut self) -> Result<(), DataError> {
        match self {
            DataRows::Dense(rows) => rows.rewind(),
            DataRows::Stored(rows) => rows.rewind(),
        }
    }
}

impl Samples for LibSvmSamples {
    fn computes(&self) -> bool {
        false
    }

    fn next(&mut self, data: &mut [u8], label: &mut [u8]) -> Result<Option<u64>, SampleError> {
        let own = self.data.next(data, &mut self.row);
        if own == Ok(None) {
            return Ok(None);
        }
        // A label is read for a damaged row, too: the next one is that of the next row.
        if let Some(labels) = &mut self.label {
            if labels.next(label)?.is_none() {
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
        } else if let Ok(Some(own)) = own {
            label.copy_from_slice(&own.to_ne_bytes());
        }
        self.number += 1;
        own.map(|_| Some(self.number - 1))
    }

    fn stored(&mut self) -> StoredRow {
        std::mem::take(&mut self.row)
    }

    fn rewind(&mut self, _pass: u64) -> Result<(), DataError> {
        self.number = 0;
        self.data.rewind()?;
        self.label.as_mut().map_or(Ok(()), RowReader::rewind)
    }
}

/// Place for the values of a line.
trait LineValues {
    /// Makes all numbers zero.
    fn clear(&mut self);
    /// Stores the number at an index, which is above those before and below the number of them.
    /// False if there is no memory.
    fn put(&mut self, index: usize, number: f32) -> bool;
}

impl LineValues for &mut [u8] {
    fn clear(&mut self) {
        self.fill(0);
    }

    fn put(&mut self, index: usize, number: f32) -> bool {
        let width = size_of::<f32>();
        self[index * width..][..width].copy_from_slice(&number.to_ne_bytes());
        true
    }
}

impl LineValues for StoredRow {
    fn clear(&mut self) {
        StoredRow::clear(self);
    }

    fn put(&mut self, index: usize, number: f32) -> bool {
        self.push(index, number)
    }
}

/// Writes the values of a line into `to`, zeros between them, and gives its label.
fn dense_row(line: &[u8], mut to: &mut [u8]) -> Result<f32, String> {
    let count = to.len() / size_of::<f32>();
    row(line, count, &mut to)
}

/// Reads the label of a line and its values, whose indices are below `count`.
fn stored_row(line: &[u8], count: usize) -> Result<(f32, StoredRow), String> {
    let mut stored = StoredRow::default();
    Ok((row(line, count, &mut stored)?, stored))
}

/// Stores the values of a line, whose indices are below `count`, and gives its label.
fn row(line: &[u8], count: usize, to: &mut impl LineValues) -> Result<f32, String> {
    to.clear();
    if let Some(label) = usual(line, count, to) {
        return Ok(label);
    }
    to.clear();
    parse(line, count, to)
}

/// Parses a line, like [`row`], that consists only of a label and pairs of usual numbers.
fn usual(line: &[u8], count: usize, to: &mut impl LineValues) -> Option<f32> {
    let (label, used) = float(line.trim_ascii_start())?;
    let mut rest = &line.trim_ascii_start()[used..];
    let mut next = 0;
    while let Some(pair) = Some(rest.trim_ascii_start()).filter(|pair| !pair.is_empty()) {
        let (index, used) = whole(pair).filter(|_| pair.len() < rest.len())?;
        let index = usize::try_from(index).ok().filter(|index| (next..count).contains(index))?;
        let value = pair[used..].strip_prefix(b":")?;
        let (number, used) = float(value)?;
        if !to.put(index, number) {
            return None;
        }
        (rest, next) = (&value[used..], index + 1);
    }
    Some(label)
}

/// Parses any line, like [`row`], into zeros; the error describes the problem.
fn parse(line: &[u8], count: usize, to: &mut impl LineValues) -> Result<f32, String> {
    let Ok(text) = std::str::from_utf8(line) else {
        return Err("found bytes that are no text; is this a LibSVM file?".to_owned());
    };
    let text = text.trim_start_matches('\u{feff}').split('#').next().unwrap_or_default();
    // A weight after the label is accepted and not used, as in MXNet.
    let Pair { index: label, rest: mut text, .. } = pair(text);
    let label = label
        .parse::<f32>()
        .map_err(|_| format!("found {:?}, expected a number as the label in front of the line", shortened(label)))?;
    let mut last = None;
    while !text.is_empty() {
        let Pair { index, value, whole, rest } = pair(text);
        text = rest;
        if index == "qid" {
            continue;
        }
        let Ok(value) = value.unwrap_or("1").parse::<f32>() else {
            return Err(format!("found {:?}, expected index:value with a number", shortened(whole)));
        };
        let place = match index.parse::<i64>() {
            Err(_) => return Err(format!("found {:?}, expected index:value", shortened(whole))),
            Ok(index @ ..0) => return Err(format!("the index {index} is negative; indices count from 0")),
            Ok(index) if index as u64 >= count as u64 => {
                return Err(format!("the index {index} is outside of data_shape ({count},); indices count from 0"));
            }
            Ok(index) => index as usize,
        };
        if let Some(last) = last.filter(|last| *last >= place) {
            return Err(format!("the index {place} follows {last}; indices have to ascend"));
        }
        last = Some(place);
        if !to.put(place, value) {
            return Err("there is no memory for the row".to_owned());
        }
    }
    Ok(label)
}

/// The first pair of a text without blanks around it.
struct Pair<'a> {
    index: &'a str,
    value: Option<&'a str>,
    /// the text of both
    whole: &'a str,
    /// the text after it, without blanks in front
    rest: &'a str,
}

/// Divides a text after `index:value`. As in MXNet, blanks may be around the colon, and an index may be
/// alone.
fn pair(text: &str) -> Pair<'_> {
    let text = text.trim_ascii_start();
    let up_to = |text: &'_ str, colon: bool| {
        text.find(|c: char| c.is_ascii_whitespace() || (colon && c == ':')).unwrap_or(text.len())
    };
    let (index, after) = text.split_at(up_to(text, true));
    let (value, after) = match after.trim_ascii_start().strip_prefix(':').map(str::trim_ascii_start) {
        Some(after) => {
            let (value, after) = after.split_at(up_to(after, false));
            (Some(value), after)
        }
        None => (None, after),
    };
    let whole = &text[..text.len() - after.len()];
    Pair { index, value, whole, rest: after.trim_ascii_start() }
}

/// The beginning of a text, for messages.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
