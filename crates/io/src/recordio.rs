//! RecordIO: files of consecutive records, as `im2rec` and `MXRecordIO` write them.
//!
//! A record is stored as one part, or, where the magic number occurs in it at a multiple of four
//! bytes, as several: the number is left out between them and put back when reading.

use crate::file::{local_path, open_file, read_file};
use crate::{DataError, FileError, foreign, recognise};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: u32 = 0xCED7_230A;
/// Bytes in front of the content of a part: the magic number, then its kind and length.
const HEAD: u64 = 8;
/// Lengths are 29 bits; the three above them tell which part of a record it is.
const LENGTH_BITS: u32 = 29;

/// Kinds of a part: the whole record, or its first, a middle, or its last part.
const WHOLE: u32 = 0;
const FIRST: u32 = 1;
const MIDDLE: u32 = 2;
const LAST: u32 = 3;

/// Bytes read at once when records are read in order, and when they are read by position.
const IN_ORDER: u64 = 1 << 16;
const BY_POSITION: u64 = 1 << 12;

/// A file of records, read by position: from any number of threads, and in forked processes too, as
/// nothing is shared but the open file.
#[derive(Debug)]
pub struct RecordFile {
    path: String,
    file: File,
    size: u64,
}

impl RecordFile {
    /// Opens a file of records.
    pub fn open(path: impl AsRef<Path>) -> Result<RecordFile, DataError> {
        let path = path.as_ref();
        let (file, size) = open_file(path)?;
        Ok(RecordFile { path: path.to_string_lossy().into_owned(), file, size })
    }

    /// The record that begins at a position, and the position after it; `None` at the end of the
    /// file.
    pub fn read(&self, position: u64) -> Result<Option<(Vec<u8>, u64)>, DataError> {
        let mut window = Window::new(position, BY_POSITION);
        Ok(self.next(&mut window)?.map(|record| (record, window.position)))
    }

    /// Bytes of the file when it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The beginning of the first record at or after a position, which is a multiple of four; the
    /// end of the file if there is none.
    pub fn find(&self, position: u64) -> Result<u64, DataError> {
        let mut window = Window::new(position, IN_ORDER);
        while window.position + HEAD <= self.size {
            let start = window.position;
            let mut head = [0; HEAD as usize];
            self.fill(start, &mut window, &mut head)?;
            let (magic, kind, _) = parse_head(head);
            if magic == MAGIC && matches!(kind, WHOLE | FIRST) {
                return Ok(start);
            }
            window.position = start + 4;
        }
        Ok(self.size)
    }

    /// The beginnings of the records between two positions, the first of which is that of a record.
    pub fn positions(&self, from: u64, to: u64) -> Result<Vec<u64>, DataError> {
        let mut positions = Vec::new();
        let mut window = Window::new(from, BY_POSITION);
        let end = to.min(self.size);
        while window.position < end {
            let start = window.position;
            let (kind, length) = self.head(start, &mut window)?;
            if matches!(kind, WHOLE | FIRST) {
                positions.push(start);
            }
            self.need(start, window.position, length.next_multiple_of(4) as u64)?;
            window.position += length.next_multiple_of(4) as u64;
        }
        Ok(positions)
    }

    fn next(&self, window: &mut Window) -> Result<Option<Vec<u8>>, DataError> {
        let start = window.position;
        if start >= self.size {
            if start == self.size {
                return Ok(None);
            }
            return Err(self.damaged(start, format!("the file has only {} bytes", self.size)));
        }
        let mut record = Vec::new();
        match self.part(start, window, &mut record)? {
            WHOLE => return Ok(Some(record)),
            FIRST => {}
            _ => return Err(self.damaged(start, "it begins with a later part of a divided record".to_owned())),
        }
        loop {
            record.extend(MAGIC.to_le_bytes());
            match self.part(start, window, &mut record)? {
                MIDDLE => {}
                LAST => return Ok(Some(record)),
                _ => return Err(self.damaged(start, "a divided record is not finished".to_owned())),
            }
        }
    }

    /// Appends the content of the next part to `record` and gives its kind.
    fn part(&self, start: u64, window: &mut Window, record: &mut Vec<u8>) -> Result<u32, DataError> {
        let (kind, length) = self.head(start, window)?;
        let padded = length.next_multiple_of(4);
        self.need(start, window.position, padded as u64)?;
        let old = record.len();
        record
            .try_reserve(padded)
            .map_err(|_| DataError::Memory(format!("there is no memory for the {} bytes of a record", old + padded)))?;
        record.resize(old + padded, 0);
        self.fill(start, window, &mut record[old..])?;
        record.truncate(old + length);
        Ok(kind)
    }

    /// Kind and length of the next part.
    fn head(&self, start: u64, window: &mut Window) -> Result<(u32, usize), DataError> {
        let mut head = [0; HEAD as usize];
        self.fill(start, window, &mut head)?;
        let (magic, kind, length) = parse_head(head);
        if magic != MAGIC {
            return Err(self.damaged(start, self.no_record(start, magic)));
        }
        Ok((kind, length))
    }

    /// Describes what is in the place of a record's head. A file that does not begin with a record
    /// may be of another kind.
    fn no_record(&self, start: u64, found: u32) -> String {
        let problem = format!("Invalid RecordIO File: found {found:#x} where the magic number {MAGIC:#x} should be");
        let mut beginning = vec![0; self.size.min(foreign::HEAD as u64) as usize];
        if start != 0 || self.file.read_exact_at(&mut beginning, 0).is_err() {
            return problem;
        }
        let advice = recognise(&beginning).unwrap_or("Pass a .rec file, as im2rec and mx.recordio write them");
        format!("{problem}. {advice}")
    }

    fn need(&self, start: u64, position: u64, bytes: u64) -> Result<(), DataError> {
        let left = self.size.saturating_sub(position);
        if bytes <= left {
            return Ok(());
        }
        Err(self.damaged(start, format!("the file is truncated: {bytes} bytes are needed but {left} are left")))
    }

    /// The next bytes of the file.
    fn fill(&self, start: u64, window: &mut Window, to: &mut [u8]) -> Result<(), DataError> {
        self.need(start, window.position, to.len() as u64)?;
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                self.damaged(start, "the file became shorter after it was opened".to_owned())
            }
            _ => FileError::io("reading", &self.path, &e).into(),
        };
        let mut at = window.position;
        window.position += to.len() as u64;
        let known = window.take(at, to);
        at += known as u64;
        let rest = &mut to[known..];
        if rest.len() as u64 >= window.size {
            return self.file.read_exact_at(rest, at).map_err(failed);
        }
        if !rest.is_empty() {
            window.start = at;
            window.content.resize(window.size.min(self.size - at) as usize, 0);
            let read = self.file.read_exact_at(&mut window.content, at);
            read.inspect_err(|_| window.content.clear()).map_err(failed)?;
            window.take(at, rest);
        }
        Ok(())
    }

    fn damaged(&self, start: u64, problem: String) -> DataError {
        DataError::Content { place: format!("{}: record at byte {start}", self.path), problem }
    }
}

/// Magic number, kind and length in front of a part.
fn parse_head(head: [u8; HEAD as usize]) -> (u32, u32, usize) {
    let [m0, m1, m2, m3, l0, l1, l2, l3] = head;
    let word = u32::from_le_bytes([l0, l1, l2, l3]);
    (u32::from_le_bytes([m0, m1, m2, m3]), word >> LENGTH_BITS, (word & ((1 << LENGTH_BITS) - 1)) as usize)
}

/// A position in a file, and some of its bytes that were read already.
#[derive(Debug)]
struct Window {
    position: u64,
    start: u64,
    content: Vec<u8>,
    size: u64,
}

impl Window {
    fn new(position: u64, size: u64) -> Window {
        Window { position, start: position, content: Vec::new(), size }
    }

    /// Copies what there is of the bytes from `at`, and gives their number.
    fn take(&self, at: u64, to: &mut [u8]) -> usize {
        let from = at.checked_sub(self.start).and_then(|from| self.content.get(usize::try_from(from).ok()?..));
        let from = from.unwrap_or(&[]);
        let count = from.len().min(to.len());
        to[..count].copy_from_slice(&from[..count]);
        count
    }
}

/// Reads records in order, or from any position a record begins at.
#[derive(Debug)]
pub struct RecordReader {
    file: RecordFile,
    window: Window,
}

impl RecordReader {
    /// Opens a file of records.
    pub fn open(path: impl AsRef<Path>) -> Result<RecordReader, DataError> {
        Ok(RecordReader { file: RecordFile::open(path)?, window: Window::new(0, IN_ORDER) })
    }

    /// The next record, or `None` at the end of the file. A file that ends inside a record is an
    /// error.
    pub fn read(&mut self) -> Result<Option<Vec<u8>>, DataError> {
        self.file.next(&mut self.window)
    }

    /// Position of the next record.
    pub fn position(&self) -> u64 {
        self.window.position
    }

    /// Goes to a position, which must be one that a record begins at.
    pub fn seek(&mut self, position: u64) -> Result<(), DataError> {
        if position > self.file.size {
            return Err(self.file.damaged(position, format!("the file has only {} bytes", self.file.size)));
        }
        self.window.position = position;
        Ok(())
    }
}

/// Writes records one after the other.
#[derive(Debug)]
pub struct RecordWriter {
    path: String,
    file: BufWriter<File>,
    position: u64,
}

impl RecordWriter {
    /// Makes a new file, in place of one that may be there.
    pub fn create(path: impl AsRef<Path>) -> Result<RecordWriter, DataError> {
        let path = local_path(path.as_ref());
        let shown = path.to_string_lossy().into_owned();
        let file = File::create(path).map_err(|error| FileError::open(&shown, &error))?;
        Ok(RecordWriter { path: shown, file: BufWriter::new(file), position: 0 })
    }

    /// The beginning of the next record.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Appends a record.
    pub fn write(&mut self, record: &[u8]) -> Result<(), DataError> {
        if record.len() >= 1 << LENGTH_BITS {
            let message = format!("a record of {} bytes is too long: the format holds less than 512 MiB", record.len());
            return Err(DataError::Argument(message));
        }
        let whole = record.len() / 4 * 4;
        let mut from = 0;
        let mut divided = false;
        for at in (0..whole).step_by(4).filter(|at| record[*at..*at + 4] == MAGIC.to_le_bytes()) {
            self.part(if divided { MIDDLE } else { FIRST }, &record[from..at])?;
            divided = true;
            from = at + 4;
        }
        self.part(if divided { LAST } else { WHOLE }, &record[from..])
    }

    /// Hands everything to the system. Dropping the writer does too, but cannot report an error.
    pub fn flush(&mut self) -> Result<(), DataError> {
        Ok(self.file.flush().map_err(|error| FileError::io("writing", &self.path, &error))?)
    }

    /// Drops what was not handed to the system yet, as a forked process must: its parent has that
    /// too and writes it.
    pub fn abandon(self) {
        let _ = self.file.into_parts();
    }

    fn part(&mut self, kind: u32, content: &[u8]) -> Result<(), DataError> {
        let word = kind << LENGTH_BITS | content.len() as u32;
        let padding = &[0; 3][..content.len().next_multiple_of(4) - content.len()];
        for bytes in [&MAGIC.to_le_bytes()[..], &word.to_le_bytes(), content, padding] {
            self.file.write_all(bytes).map_err(|error| FileError::io("writing", &self.path, &error))?;
            self.position += bytes.len() as u64;
        }
        Ok(())
    }
}

/// Reads an `.idx` file: the key and position of each record, in the order of the file.
pub fn read_index(path: impl AsRef<Path>) -> Result<Vec<(u64, u64)>, DataError> {
    let shown = path.as_ref().to_string_lossy();
    let text = read_file(&path)?;
    let mut index = Vec::new();
    for (i, line) in text.split(|b| *b == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty()) {
        let fields = std::str::from_utf8(line).ok().and_then(|line| line.split_once('\t'));
        let entry = fields.and_then(|(key, at)| Some((key.trim().parse().ok()?, at.trim().parse().ok()?)));
        index.push(entry.ok_or_else(|| DataError::Content {
            place: format!("{shown} line {}", i + 1),
            problem: format!("found {:?}, expected a key, a tab and a position", String::from_utf8_lossy(line)),
        })?);
    }
    Ok(index)
}

/// The line of an `.idx` file for one record.
pub fn index_line(key: u64, position: u64) -> String {
    format!("{key}\t{position}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("mxrt-recordio-{}-{name}", std::process::id()))
    }

    const MAGIC_BYTES: [u8; 4] = MAGIC.to_le_bytes();

    /// The records and bytes that MXNet 1.9.1 wrote.
    fn example() -> (Vec<Vec<u8>>, Vec<u8>) {
        let m = MAGIC_BYTES;
        let records: Vec<Vec<u8>> = vec![
            b"abc".to_vec(),
            Vec::new(),
            b"12345678".to_vec(),
            m.to_vec(),
            [&b"ab"[..], &m].concat(),
            [&b"abcd"[..], &m, b"ef"].concat(),
            [m, m].concat(),
            [&b"wxyz"[..], &m].concat(),
        ];
        let hex = "0a23d7ce 03000000 61626300 0a23d7ce 00000000 0a23d7ce 08000000 31323334 35363738 0a23d7ce 00000020 \
                   0a23d7ce 00000060 0a23d7ce 06000000 61620a23 d7ce0000 0a23d7ce 04000020 61626364 0a23d7ce 02000060 \
                   65660000 0a23d7ce 00000020 0a23d7ce 00000040 0a23d7ce 00000060 0a23d7ce 04000020 7778797a 0a23d7ce \
                   00000060";
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        (records, digits.chunks(2).map(byte).collect())
    }

    #[test]
    fn records_are_written_as_mxnet_writes_them() {
        let (records, bytes) = example();
        let path = temporary("write");
        let mut writer = RecordWriter::create(&path).unwrap();
        let mut index = String::new();
        for (i, record) in records.iter().enumerate() {
            index += &index_line(i as u64 * 10, writer.position());
            writer.write(record).unwrap();
        }
        writer.flush().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert_eq!(index, "0\t0\n10\t12\n20\t20\n30\t36\n40\t52\n50\t68\n60\t92\n70\t116\n");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn records_that_mxnet_wrote_are_read() {
        let (records, bytes) = example();
        let path = temporary("read");
        std::fs::write(&path, bytes).unwrap();
        let mut reader = RecordReader::open(&path).unwrap();
        for record in &records {
            assert_eq!(reader.read().unwrap().as_ref(), Some(record));
        }
        assert_eq!(reader.read().unwrap(), None);
        reader.seek(68).unwrap();
        assert_eq!(reader.read().unwrap().as_ref(), Some(&records[5]));
        let file = RecordFile::open(&path).unwrap();
        assert_eq!(file.read(68).unwrap(), Some((records[5].clone(), 92)));
        assert_eq!(file.read(0).unwrap(), Some((records[0].clone(), 12)));
        assert!(file.read(16).unwrap_err().to_string().contains("byte 16"));
        assert!(file.read(1 << 40).unwrap_err().to_string().contains("only"));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn records_of_every_size_around_what_is_read_at_once_come_back() {
        let path = temporary("sizes");
        let mut writer = RecordWriter::create(&path).unwrap();
        let sizes: Vec<usize> = (0..40).map(|i| i * 1777 % 9001).chain([65_520, 65_528, 70_000, 3, 200_000]).collect();
        let records: Vec<Vec<u8>> =
            sizes.iter().map(|size| (0..*size).map(|i| (i * 31 + size) as u8).collect()).collect();
        let positions: Vec<u64> = records
            .iter()
            .map(|record| {
                let at = writer.position();
                writer.write(record).unwrap();
                at
            })
            .collect();
        writer.flush().unwrap();
        let mut reader = RecordReader::open(&path).unwrap();
        let file = RecordFile::open(&path).unwrap();
        for (record, at) in records.iter().zip(positions) {
            assert_eq!(reader.position(), at);
            assert_eq!(reader.read().unwrap().as_ref(), Some(record));
            assert_eq!(file.read(at).unwrap(), Some((record.clone(), reader.position())));
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_truncated_file_gives_its_intact_records_and_then_an_error() {
        let (records, bytes) = example();
        let path = temporary("cut");
        for cut in 0..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let mut reader = RecordReader::open(&path).unwrap();
            let mut read = 0;
            let end = loop {
                match reader.read() {
                    Ok(Some(record)) => {
                        assert_eq!(record, records[read]);
                        read += 1;
                    }
                    Ok(None) => break true,
                    Err(error) => {
                        assert!(error.to_string().contains("truncated"), "{error}");
                        break false;
                    }
                }
            };
            let whole = [0, 12, 20, 36, 52, 68, 92, 116].contains(&cut);
            assert_eq!(end, whole, "cut at {cut}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_no_record_file_is_refused() {
        let path = temporary("bad");
        std::fs::write(&path, b"just some text, not records").unwrap();
        let error = RecordReader::open(&path).unwrap().read().unwrap_err().to_string();
        assert!(error.contains("Invalid RecordIO File") && error.contains("byte 0"), "{error}");
        assert!(error.contains("Pass a .rec file"), "{error}");
        for (content, word) in
            [(&b"version https://git-lfs.github.com/spec/v1\n"[..], "git lfs pull"), (b"<html>404</html>", "HTML")]
        {
            std::fs::write(&path, content).unwrap();
            let error = RecordReader::open(&path).unwrap().read().unwrap_err().to_string();
            assert!(error.contains("Invalid RecordIO File") && error.contains(word), "{error}");
        }
        std::fs::write(&path, [&MAGIC_BYTES[..], &[0, 0, 0, 0x60]].concat()).unwrap();
        assert!(RecordReader::open(&path).unwrap().read().unwrap_err().to_string().contains("later part"));
        std::fs::write(&path, "1 2\n").unwrap();
        assert!(read_index(&path).unwrap_err().to_string().contains("line 1"));
        std::fs::remove_file(path).unwrap();
    }
}
