//! `CSVIter`: rows of comma-separated numbers as batches.

use super::batch::Samples;
use super::{IterDef, Source, dtype, extents};
use crate::{DataError, FileError, open_file};
use mxrt_tensor::attrs::{AttrDef, AttrKind, Attrs};
use mxrt_tensor::{DType, Shape};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

const NAME: &str = "CSVIter";

pub(super) static CSV_ITER: IterDef = IterDef {
    name: NAME,
    doc: "Batches of rows of CSV files, read ahead in the background.",
    parameters: &[
        AttrDef::required(
            "data_csv",
            AttrKind::Str,
            "A file, a directory of files, or several of them with ';' between.",
        ),
        AttrDef::required("data_shape", AttrKind::Shape, "Extents of one sample; a row has as many numbers."),
        AttrDef::new("label_csv", AttrKind::Str, "NULL", "The same for labels; without it labels are 0."),
        AttrDef::new("label_shape", AttrKind::Shape, "(1,)", "Extents of one label."),
    ],
    source,
};

fn source(parameters: &Attrs) -> Result<Source, DataError> {
    let dtype = dtype(NAME, parameters, &[DType::F32, DType::I32, DType::I64])?;
    let data_shape = extents(NAME, parameters, "data_shape")?;
    let label_shape = extents(NAME, parameters, "label_shape")?;
    let data_csv = parameters.str("data_csv").to_owned();
    let label_csv = Some(parameters.str("label_csv")).filter(|uri| !matches!(*uri, "NULL" | "None")).map(str::to_owned);
    let (data, label) = (data_shape.clone(), label_shape.clone());
    let open = move || {
        let rows = |uri: &str, shape: &Shape| Ok::<_, DataError>(Rows::new(files(uri)?, shape.clone(), dtype));
        let samples = CsvSamples {
            data: rows(&data_csv, &data)?,
            label: label_csv.as_ref().map(|uri| rows(uri, &label)).transpose()?,
            number: 0,
        };
        Ok(Box::new(samples) as Box<dyn Samples>)
    };
    Ok(Source { dtype, data_shape, label_shape, open: Box::new(open) })
}

/// The rows of CSV files, with labels from other CSV files.
struct CsvSamples {
    data: Rows,
    label: Option<Rows>,
    number: u64,
}

impl Samples for CsvSamples {
    fn next(&mut self, data: &mut [u8], label: &mut [u8]) -> Result<Option<u64>, DataError> {
        if !self.data.next(data)? {
            return Ok(None);
        }
        if let Some(labels) = &mut self.label
            && !labels.next(label)?
        {
            return Err(DataError::Content {
                place: labels.place(),
                problem: format!(
                    "Data CSV's row is smaller than the number of rows in label_csv: no label for \
                     the row at {}",
                    self.data.place()
                ),
            });
        }
        self.number += 1;
        Ok(Some(self.number - 1))
    }

    fn rewind(&mut self) -> Result<(), DataError> {
        self.number = 0;
        self.data.rewind();
        if let Some(labels) = &mut self.label {
            labels.rewind();
        }
        Ok(())
    }
}

/// The ordinary files that a `;`-separated list of paths stands for.
fn files(uri: &str) -> Result<Vec<PathBuf>, DataError> {
    let mut found = Vec::new();
    for part in uri.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let local = part.strip_prefix("file://").unwrap_or(part);
        if let Some((scheme, _)) = local.split_once("://") {
            return Err(DataError::Unsupported(format!("'{part}': only local files can be read, not {scheme}://")));
        }
        let path = Path::new(local);
        if path.is_dir() {
            found.extend(files_in(path)?);
        } else if path.exists() {
            // Pipes and devices are refused now, not when the first row is asked for.
            open_file(path)?;
            found.push(path.to_owned());
        } else {
            return Err(DataError::NoFiles(part.to_owned()));
        }
    }
    if found.is_empty() {
        return Err(DataError::NoFiles(uri.to_owned()));
    }
    Ok(found)
}

/// The files of a directory, by name, so that the order of samples does not depend on the file
/// system.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, DataError> {
    let failed = |error: std::io::Error| FileError::io("reading", &directory.to_string_lossy(), &error);
    let mut found = Vec::new();
    for entry in directory.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads rows of numbers from one file after the other.
struct Rows {
    files: Vec<PathBuf>,
    shape: Shape,
    dtype: DType,
    /// How many of the files were opened.
    opened: usize,
    reader: Option<BufReader<File>>,
    /// The line read last.
    text: Vec<u8>,
    line: u64,
    /// The last line ended in a carriage return; a newline behind it belongs to it.
    after_return: bool,
    /// Bytes that a line may have: far more than its numbers need. What is longer is no line of
    /// numbers.
    longest: usize,
}

impl Rows {
    fn new(files: Vec<PathBuf>, shape: Shape, dtype: DType) -> Rows {
        let longest = shape.iter().fold(64_usize, |bytes, n| bytes.saturating_mul(*n)).saturating_add(1 << 20);
        let text = Vec::new();
        Rows { files, shape, dtype, opened: 0, reader: None, text, line: 0, after_return: false, longest }
    }

    fn rewind(&mut self) {
        self.opened = 0;
        self.reader = None;
        self.line = 0;
    }

    /// The file and line read last, for messages.
    fn place(&self) -> String {
        match self.files.get(self.opened.saturating_sub(1)) {
            Some(path) => format!("{} line {}", path.display(), self.line),
            None => "before the first line".to_owned(),
        }
    }

    /// Parses the next row into `to`; false at the end.
    fn next(&mut self, to: &mut [u8]) -> Result<bool, DataError> {
        while self.read_line()? {
            if !self.text.trim_ascii().is_empty() {
                self.parse(to)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the next line without its end into `text`, from the next file if need be; false behind
    /// the last one.
    fn read_line(&mut self) -> Result<bool, DataError> {
        loop {
            if self.reader.is_some() && self.read_line_of_file()? {
                return Ok(true);
            }
            let Some(path) = self.files.get(self.opened) else { return Ok(false) };
            self.reader = Some(BufReader::with_capacity(1 << 16, open_file(path)?.0));
            self.opened += 1;
            self.line = 0;
            self.after_return = false;
        }
    }

    /// As `read_line`; false at the end of the file.
    fn read_line_of_file(&mut self) -> Result<bool, DataError> {
        let Some(reader) = &mut self.reader else { return Ok(false) };
        let path = &self.files[self.opened - 1];
        self.text.clear();
        let mut begun = false;
        loop {
            let failed = |error| FileError::io("reading", &path.to_string_lossy(), &error);
            let mut bytes = reader.fill_buf().map_err(failed)?;
            let skipped = usize::from(std::mem::take(&mut self.after_return) && bytes.first() == Some(&b'\n'));
            bytes = &bytes[skipped..];
            if bytes.is_empty() && skipped == 0 {
                self.line += u64::from(begun);
                return Ok(begun);
            }
            let end = bytes.iter().position(|b| matches!(b, b'\r' | b'\n'));
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.text.len() + part.len() > self.longest {
                let problem = format!(
                    "the line is longer than {} bytes, which no row of this data_shape is; is this \
                     a CSV file?",
                    self.longest
                );
                return Err(DataError::Content {
                    place: format!("{} line {}", path.display(), self.line + 1),
                    problem,
                });
            }
            self.text.try_reserve(part.len()).map_err(|_| {
                DataError::Memory(format!("{} line {}: there is no memory for it", path.display(), self.line + 1))
            })?;
            self.text.extend_from_slice(part);
            begun |= !part.is_empty() || end.is_some();
            self.after_return = end.is_some_and(|end| bytes[end] == b'\r');
            let used = skipped + part.len() + usize::from(end.is_some());
            reader.consume(used);
            if end.is_some() {
                self.line += 1;
                return Ok(true);
            }
        }
    }

    fn parse(&self, to: &mut [u8]) -> Result<(), DataError> {
        let line = self.text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.text);
        let width = self.dtype.size();
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
            match number(self.dtype, cell, slot) {
                true => numbers += 1,
                false => bad = bad.or(Some((columns, cell))),
            }
        }
        if numbers * width == to.len() && bad.is_none() {
            return Ok(());
        }
        let dims: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let mut problem = format!(
            "The data size in CSV do not match size of shape: specified shape=[{}], the csv \
             row-length={numbers}",
            dims.join(",")
        );
        if let Some((column, cell)) = bad {
            let cell = String::from_utf8_lossy(&cell[..cell.len().min(40)]).into_owned();
            problem += &format!(" (column {column}, {cell:?}, is not a number of type {})", self.dtype);
        }
        Err(DataError::Content { place: self.place(), problem })
    }
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
