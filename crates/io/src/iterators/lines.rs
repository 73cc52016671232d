//! Lines of text files, for iterators whose samples are lines.

use crate::file::local_path;
use crate::{DataError, FileError, open_file};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The ordinary files that a `;`-separated list of paths stands for.
pub(super) fn files(uri: &str) -> Result<Vec<PathBuf>, DataError> {
    let mut found = Vec::new();
    for part in uri.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let path = local_path(Path::new(part));
        if let Some((scheme, _)) = part.split_once("://").filter(|_| path == Path::new(part)) {
            return Err(DataError::Unsupported(format!("'{part}': only local files can be read, not {scheme}://")));
        }
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

/// The position of a line.
#[derive(Clone, Copy, Default)]
pub(super) struct LinePosition {
    /// How many files were opened until it was read.
    opened: usize,
    /// Position of the line's beginning in the concatenation of all files.
    begin: u64,
    /// The line's number in its file, if that is known: a part may begin anywhere.
    line: Option<u64>,
}

/// The files that lines come from.
pub(super) struct Files {
    paths: Vec<PathBuf>,
    /// Beginnings of the files in the concatenation of all, and the end of the last.
    starts: Vec<u64>,
}

impl Files {
    /// A place in words, for messages.
    pub(super) fn say(&self, place: LinePosition) -> String {
        let Some(number) = place.opened.checked_sub(1) else { return "before the first line".to_owned() };
        let path = self.paths[number].display();
        match place.line {
            Some(line) => format!("{path} line {line}"),
            None => format!("{path} line at byte {}", place.begin - self.starts[number]),
        }
    }
}

/// Reads lines that are not blank, from one file after the other.
pub(super) struct LineReader {
    files: Arc<Files>,
    /// The range to read: lines that begin after the first position and not after the second.
    range: (u64, u64),
    /// How many of the files were opened.
    opened: usize,
    reader: Option<BufReader<File>>,
    /// Beginning of the next line.
    position: u64,
    /// Beginning of the line read last.
    begin: u64,
    /// The line read last.
    text: Vec<u8>,
    /// Number of the line read last in its file.
    line: Option<u64>,
    /// Whether the last line ended in a carriage return; a newline after it belongs to it.
    after_return: bool,
    /// Bytes that a line may have: far more than its numbers need. What is longer is no line of
    /// numbers.
    longest: usize,
    /// Whether lines that begin with `#` are left out, as blank ones are.
    skips_comments: bool,
}

impl LineReader {
    /// The lines of part number `part.1` of `part.0` of the files; a line has about `numbers`
    /// numbers.
    ///
    /// Parts are equally many bytes, and a line belongs to the part of the byte in front of it; the
    /// first line of a file to that of its own first byte.
    pub(super) fn new(files: Vec<PathBuf>, numbers: usize, part: (u64, u64)) -> Result<LineReader, DataError> {
        let mut starts = vec![0];
        let mut total = 0;
        for path in &files {
            total += open_file(path)?.1;
            starts.push(total);
        }
        let step = total.div_ceil(part.0);
        let bound = |part: u64| step.saturating_mul(part).min(total);
        // A file that grows is read to its end.
        let end = if part.1 + 1 == part.0 { u64::MAX } else { bound(part.1 + 1) };
        let longest = numbers.saturating_mul(64).saturating_add(1 << 20);
        let mut lines = LineReader {
            files: Arc::new(Files { paths: files, starts }),
            range: (bound(part.1), end),
            opened: 0,
            reader: None,
            position: 0,
            begin: 0,
            text: Vec::new(),
            line: Some(0),
            after_return: false,
            longest,
            skips_comments: false,
        };
        lines.rewind();
        Ok(lines)
    }

    /// Lines without those that are only a comment.
    pub(super) fn without_comments(self) -> LineReader {
        LineReader { skips_comments: true, ..self }
    }

    /// Goes back to the first line.
    pub(super) fn rewind(&mut self) {
        self.reader = None;
        self.position = self.range.0;
        // The file that the part begins in is the next one to be opened.
        self.opened = self.files.starts[1..].iter().take_while(|end| **end <= self.range.0).count();
    }

    /// The line read last, without its end.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The position of the line read last.
    pub(super) fn place(&self) -> LinePosition {
        LinePosition { opened: self.opened, begin: self.begin, line: self.line }
    }

    /// The files, which say places.
    pub(super) fn files(&self) -> &Arc<Files> {
        &self.files
    }

    /// Whether what begins at this position belongs to a later part.
    fn is_behind(&self, position: u64) -> bool {
        let end = self.range.1;
        position > end || position == end && self.files.starts[..self.files.paths.len()].contains(&end)
    }

    /// Reads the next line that is not blank; false after the last one.
    pub(super) fn next(&mut self) -> Result<bool, DataError> {
        loop {
            if self.reader.is_some() && self.read_line_of_file()? {
                if !self.has_content() {
                    continue;
                }
                return Ok(true);
            }
            if self.opened == self.files.paths.len() || self.is_behind(self.position) {
                return Ok(false);
            }
            self.open()?;
        }
    }

    /// Whether the line read last is neither blank nor a comment that is to be left out.
    fn has_content(&self) -> bool {
        let text = self.text.trim_ascii();
        let marked = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text).trim_ascii_start();
        !(text.is_empty() || self.skips_comments && marked.starts_with(b"#"))
    }

    /// Opens the next file.
    fn open(&mut self) -> Result<(), DataError> {
        let path = &self.files.paths[self.opened];
        let mut file = open_file(path)?.0;
        let skipped = self.position.saturating_sub(self.files.starts[self.opened]);
        if skipped > 0 {
            let failed = |error| FileError::io("reading", &path.to_string_lossy(), &error);
            file.seek(SeekFrom::Start(skipped)).map_err(failed)?;
        }
        self.position = self.files.starts[self.opened] + skipped;
        self.reader = Some(BufReader::with_capacity(1 << 16, file));
        self.opened += 1;
        self.line = (skipped == 0).then_some(0);
        self.after_return = false;
        if skipped > 0 {
            // What is left of a line of the part before.
            self.read_line_of_file()?;
        }
        Ok(())
    }

    /// Reads the next line of this file; false at its end, or that of the part.
    fn read_line_of_file(&mut self) -> Result<bool, DataError> {
        let Some(mut reader) = self.reader.take() else { return Ok(false) };
        let found = self.read_line_from(&mut reader)?;
        if found {
            self.reader = Some(reader);
        } else if let Some(end) = self.files.starts.get(self.opened) {
            // A file that changed its size does not move the others.
            self.position = self.position.max(*end);
        }
        Ok(found)
    }

    fn read_line_from(&mut self, reader: &mut BufReader<File>) -> Result<bool, DataError> {
        self.text.clear();
        if std::mem::take(&mut self.after_return) && self.bytes_of(reader)?.first() == Some(&b'\n') {
            reader.consume(1);
            self.position += 1;
        }
        if self.is_behind(self.position) {
            return Ok(false);
        }
        self.begin = self.position;
        self.line = self.line.map(|line| line + 1);
        let mut begun = false;
        loop {
            let bytes = self.bytes_of(reader)?;
            if bytes.is_empty() {
                return Ok(begun);
            }
            begun = true;
            let end = line_end(bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            self.append(part)?;
            self.after_return = end.is_some_and(|end| bytes[end] == b'\r');
            let used = part.len() + usize::from(end.is_some());
            reader.consume(used);
            self.position += used as u64;
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// The bytes of the open file that come next; none at its end.
    fn bytes_of<'a>(&self, reader: &'a mut BufReader<File>) -> Result<&'a [u8], DataError> {
        reader.fill_buf().map_err(|error| {
            let path = &self.files.paths[self.opened - 1];
            DataError::from(FileError::io("reading", &path.to_string_lossy(), &error))
        })
    }

    /// Adds bytes to the line that is being read.
    fn append(&mut self, part: &[u8]) -> Result<(), DataError> {
        if self.text.len() + part.len() > self.longest {
            let problem = format!(
                "the line is longer than {} bytes, which no row of this data_shape is; is this a text file of numbers?",
                self.longest
            );
            return Err(DataError::Content { place: self.files.say(self.place()), problem });
        }
        if self.text.try_reserve(part.len()).is_err() {
            let place = self.files.say(self.place());
            return Err(DataError::Memory(format!("{place}: there is no memory for it")));
        }
        self.text.extend_from_slice(part);
        Ok(())
    }
}

/// The end of the first line.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| *byte == b'\n' || *byte == b'\r';
    // Blocks without an end are passed over many bytes at a time.
    let without = bytes.chunks_exact(32).take_while(|block| !block.iter().fold(false, |found, b| found | is_end(b)));
    let passed = 32 * without.count();
    bytes[passed..].iter().position(is_end).map(|place| passed + place)
}
