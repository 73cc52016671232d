//! `CSVIter`: rows of comma-separated numbers as batches.

use super::batch::{SampleError, Samples};
use super::decimal::float;
use super::lines::{LineReader, files};
use super::rows::RowReader;
use super::{IterDef, Source, dtype, extents, part};
use crate::DataError;
use mxrt_engine::Engine;
use mxrt_tensor::attrs::{AttrDef, AttrKind, Attrs};
use mxrt_tensor::{DType, Shape};

const NAME: &str = "CSVIter";

pub(super) static CSV_ITER: IterDef = IterDef {
    name: NAME,
    doc: "Batches of rows of CSV files, read ahead in the background.",
    parameters: &[&[
        AttrDef::required(
            "data_csv",
            AttrKind::Str,
            "A file, a directory of files, or several of them with ';' between.",
        ),
        AttrDef::required("data_shape", AttrKind::Shape, "Extents of one sample; a row has as many numbers."),
        AttrDef::new("label_csv", AttrKind::Str, "NULL", "The same for labels; without it labels are 0."),
        AttrDef::new("label_shape", AttrKind::Shape, "(1,)", "Extents of one label."),
    ]],
    omits: &[],
    source,
};

fn source(parameters: &Attrs) -> Result<Source, DataError> {
    let dtype = dtype(NAME, parameters, &[DType::F32, DType::I32, DType::I64])?;
    let data_shape = extents(NAME, parameters, "data_shape")?;
    let label_shape = extents(NAME, parameters, "label_shape")?;
    let data_csv = parameters.str("data_csv").to_owned();
    let label_csv = Some(parameters.str("label_csv")).filter(|uri| !matches!(*uri, "NULL" | "None")).map(str::to_owned);
    let (data, label) = (data_shape.clone(), label_shape.clone());
    let part = part(parameters);
    if part.0 > 1 && label_csv.is_some() {
        let message = format!("{NAME}: num_parts cannot be used with label_csv: rows and labels are divided by bytes");
        return Err(DataError::Argument(message));
    }
    let open = move |engine: &'static Engine| {
        let rows = |uri: &str, shape: &Shape| {
            let numbers: usize = shape.iter().product();
            let (uri, shape) = (uri.to_owned(), shape.clone());
            let open = move || LineReader::new(files(&uri)?, numbers, part);
            let parse = move |line: &[u8], to: &mut [u8]| row(line, dtype, &shape, to);
            RowReader::new(engine, numbers.saturating_mul(dtype.size()), open, parse)
        };
        let samples = CsvSamples {
            data: rows(&data_csv, &data)?,
            label: label_csv.as_ref().map(|uri| rows(uri, &label)).transpose()?,
            number: 0,
        };
        Ok(Box::new(samples) as Box<dyn Samples>)
    };
    Ok(Source { dtype, label_dtype: dtype, data_shape, label_shape, open: Box::new(open) })
}

/// The rows of CSV files, with labels from other CSV files.
struct CsvSamples {
    data: RowReader<()>,
    label: Option<RowReader<()>>,
    number: u64,
}

impl Samples for CsvSamples {
    fn computes(&self) -> bool {
        false
    }

    fn next(&mut self, data: &mut [u8], label: &mut [u8]) -> Result<Option<u64>, SampleError> {
        let sample = self.data.next(data);
        if sample == Ok(None) {
            return Ok(None);
        }
        // A label is read for a damaged row, too: the next one is that of the next row.
        if let Some(labels) = &mut self.label
            && labels.next(label)?.is_none()
        {
            let error = DataError::Content {
                place: labels.place(),
                problem: format!(
                    "Data CSV's row is smaller than the number of rows in label_csv: no label for the row at {}",
                    self.data.place()
                ),
            };
            return Err(error.into());
        }
        self.number += 1;
        sample.map(|_| Some(self.number - 1))
    }

    fn rewind(&mut self, _pass: u64) -> Result<(), DataError> {
        self.number = 0;
        self.data.rewind()?;
        self.label.as_mut().map_or(Ok(()), RowReader::rewind)
    }
}

/// Parses a row into `to`.
fn row(text: &[u8], dtype: DType, shape: &Shape, to: &mut [u8]) -> Result<(), String> {
    if dtype == DType::F32 && floats(text, to) {
        return Ok(());
    }
    let line = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let width = dtype.size();
    let (mut columns, mut numbers, mut bad) = (0, 0, None);
    // A comma at the very end does not begin another column.
    for cell in line.strip_suffix(b",").unwrap_or(line).split(|b| *b == b',') {
        columns += 1;
        let place = numbers * width;
        let mut beyond = [0; 8];
        let slot = match to.get_mut(place..place + width) {
            Some(slot) => slot,
            None => &mut beyond[..width],
        };
        match number(dtype, cell, slot) {
            true => numbers += 1,
            false => bad = bad.or(Some((columns, cell))),
        }
    }
    if numbers * width == to.len() && bad.is_none() {
        return Ok(());
    }
    let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
    let mut problem = format!(
        "The data size in CSV do not match size of shape: specified shape=[{}], the csv row-length={numbers}",
        dims.join(",")
    );
    if let Some((column, cell)) = bad {
        let cell = String::from_utf8_lossy(&cell[..cell.len().min(40)]).into_owned();
        problem += &format!(" (column {column}, {cell:?}, is not a number of type {dtype})");
    }
    Err(problem)
}

/// Parses a row of nothing but usual numbers; whether it was one.
fn floats(line: &[u8], to: &mut [u8]) -> bool {
    let mut rest = line;
    let mut behind_comma = true;
    for slot in to.chunks_exact_mut(size_of::<f32>()) {
        let Some((value, used)) = float(rest.trim_ascii_start()).filter(|_| behind_comma) else { return false };
        slot.copy_from_slice(&value.to_ne_bytes());
        rest = rest.trim_ascii_start()[used..].trim_ascii_start();
        behind_comma = rest.first() == Some(&b',');
        rest = &rest[usize::from(behind_comma)..];
    }
    // A comma at the very end does not begin another column.
    rest.is_empty()
}

/// Parses one cell into `to`; false when it is not a number of that type.
fn number(dtype: DType, cell: &[u8], to: &mut [u8]) -> bool {
    let Ok(text) = std::str::from_utf8(cell.trim_ascii()) else { return false };
    match dtype {
        DType::I32 => integer(text).and_then(|v| i32::try_from(v).ok()).map(|v| to.copy_from_slice(&v.to_ne_bytes())),
        DType::I64 => integer(text).map(|v| to.copy_from_slice(&v.to_ne_bytes())),
        _ => text.parse::<f32>().ok().map(|v| to.copy_from_slice(&v.to_ne_bytes())),
    }
    .is_some()
}

/// Whole numbers, also when they are written like `3.0` or `1e3`.
fn integer(text: &str) -> Option<i64> {
    let exactly = |v: f64| (v.fract() == 0.0 && v.abs() < 9_007_199_254_740_992.0).then_some(v as i64);
    text.parse().ok().or_else(|| text.parse().ok().and_then(exactly))
}
