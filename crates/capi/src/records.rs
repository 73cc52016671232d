//! Files of records.

use crate::border::c_functions;
use crate::handles::{RecordIOHandle, free, get, hold, take};
use crate::pointers::{list, put, text};
use crate::returned::{self, ResultPlace};
use mxrt::internal::ForkSafeMutex;
use mxrt::internal::io::recordio::{RecordReader, RecordWriter};
use std::ffi::c_char;

/// Reads records one after the other.
pub(crate) struct Reader(ForkSafeMutex<RecordReader>);

/// Writes records, in the process that opened the file.
pub(crate) struct Writer {
    writer: ForkSafeMutex<Option<RecordWriter>>,
    process: u32,
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.lock().take()
            && self.process != std::process::id()
        {
            writer.abandon();
        }
    }
}

/// An error of a writer that was freed while another thread used it.
fn gone() -> crate::border::Error {
    crate::border::Error::value("the writer was freed before")
}

c_functions! {
    /// Makes a file of records, in place of one that may be there.
    fn MXRecordIOWriterCreate(uri: *const c_char, out: *mut RecordIOHandle) {
        let uri = text(uri, "uri")?;
        put(out, std::ptr::null_mut(), "out")?;
        let writer = ForkSafeMutex::new(Some(RecordWriter::create(uri)?));
        put(out, hold(Writer { writer, process: std::process::id() }), "out")
    }

    /// Hands everything to the system and closes the file.
    fn MXRecordIOWriterFree(handle: RecordIOHandle) {
        let writer = take::<Writer>(handle)?;
        if writer.process == std::process::id()
            && let Some(mut writer) = writer.writer.lock().take()
        {
            writer.flush()?;
        }
        Ok(())
    }

    /// Appends a record.
    fn MXRecordIOWriterWriteRecord(handle: RecordIOHandle, buf: *const c_char, size: usize) {
        let writer = get::<Writer>(handle)?;
        let record = list(buf.cast::<u8>(), size, "buf")?;
        Ok(writer.writer.lock().as_mut().ok_or_else(gone)?.write(record)?)
    }

    /// Position of the next record.
    fn MXRecordIOWriterTell(handle: RecordIOHandle, pos: *mut usize) {
        let position = get::<Writer>(handle)?.writer.lock().as_ref().ok_or_else(gone)?.position();
        put(pos, position as usize, "pos")
    }

    /// Opens a file of records.
    fn MXRecordIOReaderCreate(uri: *const c_char, out: *mut RecordIOHandle) {
        let uri = text(uri, "uri")?;
        put(out, std::ptr::null_mut(), "out")?;
        put(out, hold(Reader(ForkSafeMutex::new(RecordReader::open(uri)?))), "out")
    }

    /// Closes the file.
    fn MXRecordIOReaderFree(handle: RecordIOHandle) {
        free::<Reader>(handle)
    }

    /// Reads the next record, into memory that belongs to the thread; `*buf` is null after the
    /// last. An empty record has an address and the size 0.
    fn MXRecordIOReaderReadRecord(handle: RecordIOHandle, buf: *mut *const c_char, size: *mut usize) {
        let reader = get::<Reader>(handle)?;
        put(buf, std::ptr::null(), "buf")?;
        put(size, 0, "size")?;
        let record = reader.0.lock().read()?;
        let Some(mut record) = record else { return Ok(()) };
        put(size, record.len(), "size")?;
        if record.is_empty() {
            // An address: null is the end of the file.
            record.push(0);
        }
        put(buf, returned::list(ResultPlace::of_object("record", handle), record)?.cast_const().cast(), "buf")
    }

    /// Goes to the record at a position.
    fn MXRecordIOReaderSeek(handle: RecordIOHandle, pos: usize) {
        Ok(get::<Reader>(handle)?.0.lock().seek(pos as u64)?)
    }

    /// Position of the next record.
    fn MXRecordIOReaderTell(handle: RecordIOHandle, pos: *mut usize) {
        put(pos, get::<Reader>(handle)?.0.lock().position() as usize, "pos")
    }
}
