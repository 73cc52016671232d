//! The records of a file of images, in order or shuffled, whole or a part of them.

use super::super::prefetch::{Problem, Producer};
use crate::DataError;
use crate::recordio::{RecordFile, RecordReader, read_index};
use mxrt_kernels::random::permutation;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A record as it was read.
pub(super) struct PackedRecord {
    /// bytes of the record
    pub content: Vec<u8>,
    /// position of its first byte
    pub position: u64,
    /// number of the record in the pass over the records
    pub number: u64,
    /// the pass
    pub pass: u64,
}

/// The records that are read, and their order.
#[derive(Clone)]
pub(super) struct RecordOrder {
    pub path: String,
    /// the file of positions
    pub index: Option<String>,
    /// number of parts, and the one that is read
    pub part: (u64, u64),
    pub shuffle: bool,
    pub seed: u64,
}

/// Reads the records.
pub(super) struct Records {
    order: RecordOrder,
    source: RecordSource,
    /// The next pass, as the consumer counts them.
    next_pass: Arc<AtomicU64>,
    pass: u64,
    number: u64,
}

enum RecordSource {
    /// Reads from the first position up to the second.
    InOrder { reader: RecordReader, range: (u64, u64) },
    /// The records at these positions, in this order.
    Positions { file: RecordFile, positions: Vec<u64>, order: Vec<usize> },
}

impl Records {
    pub(super) fn open(order: &RecordOrder, next_pass: Arc<AtomicU64>) -> Result<Records, DataError> {
        let file = RecordFile::open(&order.path)?;
        let (parts, part) = order.part;
        let source = if let Some(index) = &order.index {
            let mut positions: Vec<u64> = read_index(index)?.into_iter().map(|(_, position)| position).collect();
            positions.sort_unstable();
            let step = positions.len().div_ceil(parts as usize);
            let bound = |part: u64| (part as usize).saturating_mul(step).min(positions.len());
            let mine = positions[bound(part)..bound(part + 1)].to_vec();
            RecordSource::Positions { file, order: (0..mine.len()).collect(), positions: mine }
        } else {
            // Parts are equally many bytes; a record belongs to the part that it begins in.
            let step = file.size().div_ceil(parts).next_multiple_of(4);
            let bound = |part: u64| match part {
                // A file that does not begin with a record is damaged: there is nothing to search for.
                0 => Ok(0),
                _ => file.find(step.saturating_mul(part)),
            };
            let range = (bound(part)?, if part + 1 == parts { u64::MAX } else { bound(part + 1)? });
            if order.shuffle {
                let positions = file.positions(range.0, range.1)?;
                RecordSource::Positions { file, order: (0..positions.len()).collect(), positions }
            } else {
                let mut reader = RecordReader::open(&order.path)?;
                reader.seek(range.0)?;
                RecordSource::InOrder { reader, range }
            }
        };
        let pass = next_pass.load(Ordering::Relaxed);
        let mut records = Records { order: order.clone(), source, next_pass, pass, number: 0 };
        records.begin()?;
        Ok(records)
    }

    /// Goes to the first record.
    fn begin(&mut self) -> Result<(), DataError> {
        self.number = 0;
        match &mut self.source {
            RecordSource::InOrder { reader, range } => reader.seek(range.0),
            RecordSource::Positions { order, .. } => {
                if self.order.shuffle {
                    permutation(self.order.seed, self.pass, order);
                }
                Ok(())
            }
        }
    }

    fn read(&mut self) -> Result<Option<(Vec<u8>, u64)>, DataError> {
        match &mut self.source {
            RecordSource::InOrder { reader, range } => {
                let position = reader.position();
                if position >= range.1 {
                    return Ok(None);
                }
                Ok(reader.read()?.map(|content| (content, position)))
            }
            RecordSource::Positions { file, positions, order } => {
                let Some(position) = order.get(self.number as usize).map(|i| positions[*i]) else { return Ok(None) };
                let read = file.read(position).map_err(|error| match (error, &self.order.index) {
                    (DataError::Content { place, problem }, Some(index)) => {
                        DataError::Content { place, problem: format!("{problem} (the position is that in {index})") }
                    }
                    (error, _) => error,
                })?;
                match read {
                    Some((content, _)) => Ok(Some((content, position))),
                    None => Err(DataError::Content {
                        place: format!("{}: record at byte {position}", self.order.path),
                        problem: "the file ends there; does the index belong to it?".to_owned(),
                    }),
                }
            }
        }
    }
}

impl Producer for Records {
    type Item = PackedRecord;
    type Error = DataError;

    fn next(&mut self) -> Result<Option<PackedRecord>, DataError> {
        let Some((content, position)) = self.read()? else { return Ok(None) };
        self.number += 1;
        Ok(Some(PackedRecord { content, position, number: self.number - 1, pass: self.pass }))
    }

    fn reset(&mut self, _delivered: u64) -> Result<(), DataError> {
        self.pass = self.next_pass.load(Ordering::Relaxed);
        self.begin()
    }

    fn failure(problem: Problem) -> DataError {
        DataError::Prefetch(problem)
    }
}
