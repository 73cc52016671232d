//! Files of records.

use crate::errors;
use mxrt_engine::OpError;
use mxrt_io::DataError;
use mxrt_io::recordio;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A file of records, read by position from any thread and in forked processes.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct RecordFile {
    file: recordio::RecordFile,
}

#[pymethods]
impl RecordFile {
    /// Opens a file.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<RecordFile> {
        let file = py.detach(|| recordio::RecordFile::open(path)).map_err(|e| raised(py, e))?;
        Ok(RecordFile { file })
    }

    /// The record at a position and the position after it; `None` at the end of the file.
    fn read<'py>(&self, py: Python<'py>, position: u64) -> PyResult<Option<(Bound<'py, PyBytes>, u64)>> {
        let read = py.detach(|| self.file.read(position)).map_err(|e| raised(py, e))?;
        Ok(read.map(|(record, next)| (PyBytes::new(py, &record), next)))
    }
}

/// Writes records to a new file, in the process that opened it.
#[pyclass(module = "mxrt._mxrt")]
pub(crate) struct RecordWriter {
    writer: Option<recordio::RecordWriter>,
    process: u32,
}

#[pymethods]
impl RecordWriter {
    /// Makes a file, in place of one that may be there.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<RecordWriter> {
        let writer = recordio::RecordWriter::create(path).map_err(|e| raised(py, e))?;
        Ok(RecordWriter { writer: Some(writer), process: std::process::id() })
    }

    /// Position of the next record.
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<u64> {
        match &self.writer {
            Some(writer) => Ok(writer.position()),
            None => Err(closed(py)),
        }
    }

    /// Appends a record.
    fn write(&mut self, py: Python<'_>, record: &[u8]) -> PyResult<()> {
        match &mut self.writer {
            Some(writer) => writer.write(record).map_err(|e| raised(py, e)),
            None => Err(closed(py)),
        }
    }

    /// Hands everything to the system.
    fn flush(&mut self, py: Python<'_>) -> PyResult<()> {
        match &mut self.writer {
            Some(writer) if self.process == std::process::id() => writer.flush().map_err(|e| raised(py, e)),
            _ => Ok(()),
        }
    }

    /// Hands everything to the system and closes the file.
    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        let flushed = self.flush(py);
        self.release();
        flushed
    }
}

impl RecordWriter {
    fn release(&mut self) {
        if let Some(writer) = self.writer.take()
            && self.process != std::process::id()
        {
            writer.abandon();
        }
    }
}

impl Drop for RecordWriter {
    fn drop(&mut self) {
        self.release();
    }
}

fn raised(py: Python<'_>, error: DataError) -> PyErr {
    errors::from_op(py, &OpError::from(error))
}

fn closed(py: Python<'_>) -> PyErr {
    raised(py, DataError::Argument("the file of records is closed".to_owned()))
}
