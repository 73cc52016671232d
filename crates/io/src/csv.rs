//! `CSVIter`: rows of comma-separated numbers as batches.

use crate::batch::{BatchIter, BatchParams, Samples};
use crate::{DataError, FileError};
use mxrt_engine::Engine;
use mxrt_tensor::{DType, Shape};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The arguments of `CSVIter`.
#[derive(Clone, Debug)]
pub struct CsvParams {
    /// a file, a directory of files, or several of them with `;` between
    pub data_csv: String,
    /// extents of one sample
    pub data_shape: Shape,
    /// the same for labels; without, labels are 0
    pub label_csv: Option<String>,
    /// extents of one label
    pub label_shape: Shape,
    /// samples in a batch
    pub batch_size: usize,
    /// whether a last, short batch is filled up from the beginning
    pub round_batch: bool,
    /// batches made ahead
    pub prefetch_buffer: usize,
    /// float32 (also when not given), int32 or int64
    pub dtype: Option<DType>,
}

impl CsvParams {
    /// These files with everything else as MXNet's defaults are.
    pub fn new(data_csv: impl Into<String>, data_shape: impl Into<Shape>, batch_size: usize) -> CsvParams {
        CsvParams {
            data_csv: data_csv.into(),
            data_shape: data_shape.into(),
            label_csv: None,
            label_shape: Shape::from([1]),
            batch_size,
            round_batch: true,
            prefetch_buffer: 4,
            dtype: None,
        }
    }
}

/// Iterates over CSV files.
pub type CsvIter = BatchIter<CsvSamples>;

impl CsvIter {
    /// Starts reading. Missing files are reported here, errors in their content by `next`.
    pub fn new(engine: &'static Engine, params: CsvParams) -> Result<CsvIter, DataError> {
        let dtype = params.dtype.unwrap_or(DType::F32);
        if !matches!(dtype, DType::F32 | DType::I32 | DType::I64) {
            let message = format!("{dtype} is not supported for CSVIter; supported: float32, int32, int64");
            return Err(DataError::Unsupported(message));
        }
        let batch = BatchParams {
            batch_size: params.batch_size,
            round_batch: params.round_batch,
            prefetch_buffer: params.prefetch_buffer,
            dtype,
            data_shape: params.data_shape.clone(),
            label_shape: params.label_shape.clone(),
        };
        BatchIter::start(engine, batch, move || CsvSamples::open(&params, dtype))
    }
}

/// The rows of CSV files, with labels from other CSV files.
pub struct CsvSamples {
    data: Rows,
    label: Option<Rows>,
    number: u64,
}

impl CsvSamples {
    fn open(params: &CsvParams, dtype: DType) -> Result<CsvSamples, DataError> {
        let rows = |uri: &str, shape: &Shape| Ok::<_, DataError>(Rows::new(files(uri)?, shape.clone(), dtype));
        Ok(CsvSamples {
            data: rows(&params.data_csv, &params.data_shape)?,
            label: params.label_csv.as_ref().map(|uri| rows(uri, &params.label_shape)).transpose()?,
            number: 0,
        })
    }
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
                    "Data CSV's row is smaller than the number of rows in label_csv: no label for the row at {}",
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

/// The files of a directory, by name, so that the order of samples does not depend on the file system.
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
    /// What `reader` gave last: usually one line, more where lines end in a carriage return only.
    text: Vec<u8>,
    /// Where the next line starts in `text`.
    start: usize,
    line: u64,
}

impl Rows {
    fn new(files: Vec<PathBuf>, shape: Shape, dtype: DType) -> Rows {
        Rows { files, shape, dtype, opened: 0, reader: None, text: Vec::new(), start: 0, line: 0 }
    }

    fn rewind(&mut self) {
        self.opened = 0;
        self.reader = None;
        self.text.clear();
        self.start = 0;
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
        loop {
            while self.start < self.text.len() {
                let rest = &self.text[self.start..];
                let length = rest.iter().position(|b| matches!(b, b'\r' | b'\n')).unwrap_or(rest.len());
                let line = self.start..self.start + length;
                // A line may end in both; the empty line that seems to be between them is no line.
                let pair = rest.get(length..length + 2) == Some(b"\r\n");
                self.start += length + if pair { 2 } else { 1 };
                self.line += 1;
                if !self.text[line.clone()].trim_ascii().is_empty() {
                    self.parse(line, to)?;
                    return Ok(true);
                }
            }
            if !self.read_more()? {
                return Ok(false);
            }
        }
    }

    /// Refills `text`, from the next file if need be; false behind the last one.
    fn read_more(&mut self) -> Result<bool, DataError> {
        loop {
            self.text.clear();
            self.start = 0;
            if let Some(reader) = &mut self.reader {
                let path = &self.files[self.opened - 1];
                let failed = |error| FileError::io("reading", &path.to_string_lossy(), &error);
                if reader.read_until(b'\n', &mut self.text).map_err(failed)? > 0 {
                    return Ok(true);
                }
            }
            let Some(path) = self.files.get(self.opened) else { return Ok(false) };
            let failed = |error| FileError::open(&path.to_string_lossy(), &error);
            self.reader = Some(BufReader::with_capacity(1 << 16, File::open(path).map_err(failed)?));
            self.opened += 1;
            self.line = 0;
        }
    }

    fn parse(&self, line: std::ops::Range<usize>, to: &mut [u8]) -> Result<(), DataError> {
        let line = &self.text[line];
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
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
            "The data size in CSV do not match size of shape: specified shape=[{}], the csv row-length={numbers}",
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
