//! Labels of images in records, and lists of labels.

use crate::{DataError, read_text};
use std::collections::HashMap;

/// Bytes of the header: flag, label, and two halves of the image's number.
const HEADER: usize = 24;

/// The content of a record.
pub(super) struct ImageRecord<'a> {
    /// number of the image
    pub id: u64,
    /// labels, and whether there are as many as the record says (else it has one)
    pub labels: Vec<f32>,
    /// whether the record says how many labels it has
    pub counted: bool,
    /// the file of the image
    pub file: &'a [u8],
}

impl<'a> ImageRecord<'a> {
    /// Takes a record apart.
    pub(super) fn parse(record: &'a [u8]) -> Result<ImageRecord<'a>, String> {
        let Some((header, rest)) = record.split_at_checked(HEADER) else {
            return Err(format!("it has {} bytes, which is less than the header of an image", record.len()));
        };
        let [flag, label, low, high, _, _] = [0, 4, 8, 12, 16, 20].map(|at| {
            let mut word = [0; 4];
            word.copy_from_slice(&header[at..at + 4]);
            word
        });
        let count = u32::from_le_bytes(flag) as usize;
        let id = u64::from(u32::from_le_bytes(low)) | u64::from(u32::from_le_bytes(high)) << 32;
        if count == 0 {
            return Ok(ImageRecord { id, labels: vec![f32::from_le_bytes(label)], counted: false, file: rest });
        }
        let Some((labels, file)) = count.checked_mul(4).and_then(|bytes| rest.split_at_checked(bytes)) else {
            return Err(format!("it says that it has {count} labels, but has {} bytes for them", rest.len()));
        };
        let labels = labels.as_chunks::<4>().0.iter().map(|label| f32::from_le_bytes(*label)).collect();
        Ok(ImageRecord { id, labels, counted: true, file })
    }

    /// The labels, which must be `width` many.
    pub(super) fn labels(&self, width: usize) -> Result<&[f32], String> {
        match (self.counted, self.labels.len()) {
            (_, count) if count == width => Ok(&self.labels),
            (true, count) => {
                Err(format!("rec file provide {count}-dimensional label but label_width is set to {width}"))
            }
            (false, _) => Err(format!(
                "label_width must be 1 unless an imglist is provided or the rec file is packed with multi dimensional \
                 label; it is {width}"
            )),
        }
    }
}

/// Labels of images by their numbers, from a list as `im2rec` writes it.
pub(super) struct LabelList {
    path: String,
    labels: HashMap<u64, Vec<f32>>,
}

impl LabelList {
    /// Reads a list: lines of a number, labels and a path with tabs between. `width`: the labels that
    /// are read of each line, if these are equally many.
    pub(super) fn read(path: &str, width: Option<usize>) -> Result<LabelList, DataError> {
        let mut labels = HashMap::new();
        for (i, line) in read_text(path)?.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (id, found) = list_line(line, width)
                .map_err(|problem| DataError::Content { place: format!("{path} line {}", i + 1), problem })?;
            labels.insert(id, found);
        }
        Ok(LabelList { path: path.to_owned(), labels })
    }

    pub(super) fn find(&self, id: u64) -> Result<&[f32], String> {
        let found = self.labels.get(&id).map(Vec::as_slice);
        found.ok_or_else(|| format!("fail to find imagelist index {id}: it is not in {}", self.path))
    }

    /// Most labels of an image.
    pub(super) fn most(&self) -> usize {
        self.labels.values().map(Vec::len).max().unwrap_or(0)
    }
}

fn list_line(line: &str, width: Option<usize>) -> Result<(u64, Vec<f32>), String> {
    let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
    let expected = || format!("found {line:?}, expected a number, labels and a path with tabs between");
    let [id, labels @ .., _path] = fields.as_slice() else { return Err(expected()) };
    // Numbers are written as those of labels by some tools.
    let id = id.parse::<u64>().ok().or_else(|| id.parse::<f64>().ok().filter(|v| *v >= 0.0).map(|v| v as u64));
    let labels: Option<Vec<f32>> = labels.iter().map(|label| label.parse().ok()).collect();
    let (Some(id), Some(mut labels)) = (id, labels) else { return Err(expected()) };
    if let Some(width) = width {
        if labels.len() < width {
            return Err(format!("found {} labels, but label_width is set to {width}", labels.len()));
        }
        labels.truncate(width);
    }
    Ok((id, labels))
}
