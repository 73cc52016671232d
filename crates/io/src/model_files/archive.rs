//! Archives of models: `.zip`, `.mar`, `.tar`, `.tar.gz`. Their contents are not trusted: names
//! stay inside the folder, only files and folders are made, and archives that are too large are
//! refused.

use super::FindError;
use crate::error::reason;
use crate::foreign::{HEAD, recognise};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use zip::result::ZipError;

/// Largest number of files and folders in an archive.
const MOST_ENTRIES: usize = 10_000;
/// Largest number of bytes of a tar header that says its own length.
const LARGEST_HEADER: u64 = 1 << 16;
/// Number of bytes that are unpacked between two questions whether to continue.
const PIECE: usize = 1 << 20;
/// Number of bytes that are read together.
const BUFFER: usize = 1 << 16;
/// Endings of names of archives, and their formats.
const ENDINGS: [(&str, Kind); 5] =
    [(".zip", Kind::Zip), (".mar", Kind::Zip), (".tar.gz", Kind::TarGz), (".tgz", Kind::TarGz), (".tar", Kind::Tar)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Zip,
    Tar,
    TarGz,
}

/// Returns the name of an archive without its ending; `None` if it is no name of an archive.
pub fn stem(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    ENDINGS.iter().find_map(|(ending, _)| name.strip_suffix(ending)).filter(|stem| !stem.is_empty())
}

/// Whether a file is an archive, by its content or else by its name.
pub(super) fn is_one(path: &Path) -> bool {
    path.is_file() && (stem(path).is_some() || head(path).is_ok_and(|head| of_content(&head).is_some()))
}

/// Reads the first bytes of a file.
pub(super) fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Returns the format of a file that begins so.
fn of_content(head: &[u8]) -> Option<Kind> {
    match head {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Kind::Zip),
        [0x1f, 0x8b, ..] => Some(Kind::TarGz),
        _ if head.get(257..262) == Some(b"ustar") => Some(Kind::Tar),
        _ => None,
    }
}

/// Returns the format of an archive, or says what the file is.
fn kind(path: &Path) -> Result<Kind, FindError> {
    let head = head(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FindError::Path("does not exist".to_owned()),
        _ => FindError::Path(format!("cannot be read: {}", reason(&error))),
    })?;
    if let Some(kind) = of_content(&head) {
        return Ok(kind);
    }
    if head.is_empty() {
        return Err(refused("is empty: copy or download it again"));
    }
    if let Some(advice) = recognise(&head) {
        return Err(refused(format!("is no archive. {advice}")));
    }
    // Old tar files have no mark.
    match head.len() == HEAD && path.to_str().is_some_and(|name| name.ends_with(".tar")) {
        true => Ok(Kind::Tar),
        false => Err(refused("is no archive: copy or download it again")),
    }
}

fn refused(words: impl Into<String>) -> FindError {
    FindError::Content(words.into())
}

/// Folder with the files of an archive.
#[derive(Debug)]
pub(super) struct Unpacked {
    archive: PathBuf,
    /// everything that was unpacked
    whole: PathBuf,
    /// place of the model's files, inside the other
    folder: PathBuf,
    /// whether the folder is removed when this is dropped
    is_own: bool,
    /// number of bytes that may be unpacked, and of those that still may
    limit: usize,
    left: u64,
}

impl Unpacked {
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Replaces an archive in the folder by a folder with its files, and turns to them.
    pub(super) fn unpack_inner(&mut self, path: &Path, poll: Poll<'_>) -> Result<(), FindError> {
        let mut folder = path.as_os_str().to_owned();
        folder.push(".d");
        self.folder = PathBuf::from(folder);
        self.fill(path, poll).map_err(|error| error.map(|words| self.shown(words)))
    }

    /// Unpacks an archive into the folder, which is new.
    fn fill(&mut self, path: &Path, poll: Poll<'_>) -> Result<(), FindError> {
        let named = |error: FindError| error.map(|words| format!("'{}' {words}", path.display()));
        let kind = kind(path).map_err(named)?;
        let opened = File::open(path);
        let file = opened.map_err(|error| named(FindError::Path(format!("cannot be read: {}", reason(&error)))))?;
        let (folder, left, limit) = (self.folder.as_path(), self.left, self.limit);
        let mut room = Room { folder, left, entries: MOST_ENTRIES, limit, poll };
        room.begin().map_err(named)?;
        let done = match kind {
            Kind::Zip => zip(file, &mut room),
            Kind::Tar => tar(BufReader::new(file), &mut room),
            Kind::TarGz => tar(MultiGzDecoder::new(BufReader::new(file)), &mut room),
        };
        self.left = room.left;
        done.map_err(named)
    }

    /// Names the archive in place of the folder.
    pub(super) fn shown(&self, words: &str) -> String {
        words.replace(&self.whole.display().to_string(), &self.archive.display().to_string())
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        if self.is_own {
            // A folder that cannot be removed stays among the temporary files.
            let _ = std::fs::remove_dir_all(&self.whole);
        }
    }
}

/// Tells whether to continue.
type Poll<'a> = &'a mut dyn FnMut() -> bool;

/// Unpacks an archive, at most `limit` bytes, into a new folder: a temporary one if none is given.
pub(super) fn unpack(path: &Path, limit: usize, folder: Option<&Path>, poll: Poll<'_>) -> Result<Unpacked, FindError> {
    let whole = folder.map_or_else(temporary_folder, Path::to_owned);
    let (is_own, left) = (folder.is_none(), limit as u64);
    let mut unpacked = Unpacked { archive: path.to_owned(), folder: whole.clone(), whole, is_own, limit, left };
    unpacked.fill(path, poll)?;
    Ok(unpacked)
}

/// Returns the path of a temporary folder for one archive.
fn temporary_folder() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("mxrt-{}-{number}", std::process::id()));
        // An earlier process with the same id may have left one.
        if folder.symlink_metadata().is_err() {
            return folder;
        }
    }
}

/// Says that the content of an archive is wrong.
fn damaged(error: &io::Error) -> FindError {
    refused(format!("is a damaged archive, or ends too early ({}): copy or download it again", reason(error)))
}

/// Says why the content of an entry cannot be read.
fn unreadable(name: &Path, error: &io::Error) -> FindError {
    match error.kind() {
        io::ErrorKind::Unsupported => not_here(&format!("'{}': {}", short(name), reason(error))),
        _ => damaged(error),
    }
}

/// Says that another program can unpack an archive.
fn not_here(why: &str) -> FindError {
    refused(format!("cannot be unpacked ({why}): unpack it, and name the folder"))
}

/// Destination of unpacked files, and how much more may be unpacked.
struct Room<'a> {
    folder: &'a Path,
    left: u64,
    entries: usize,
    limit: usize,
    poll: Poll<'a>,
}

impl Room<'_> {
    /// Makes the folder, which other users cannot read.
    fn begin(&self) -> Result<(), FindError> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().mode(0o700).create(self.folder).map_err(|error| self.no_room(&error))
    }

    /// Says where archives are unpacked, and how to choose another place.
    fn no_room(&self, error: &io::Error) -> FindError {
        let place = self.folder.parent().unwrap_or(self.folder).display();
        refused(format!(
            "cannot be unpacked into '{place}': {}; free some space there, set TMPDIR to another folder, or name an \
             unpacked folder",
            reason(error)
        ))
    }

    /// Says why an entry cannot be made.
    fn of_entry(&self, name: &Path, error: &io::Error) -> FindError {
        match error.kind() {
            io::ErrorKind::InvalidInput => damaged(error),
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
                refused(format!("has '{}' twice", short(name)))
            }
            io::ErrorKind::InvalidFilename => {
                refused(format!("has an entry whose name is too long: '{}...'", short(name)))
            }
            _ => self.no_room(error),
        }
    }

    /// Returns the path for an entry. A name that leaves the folder is an error.
    fn place(&mut self, name: &Path) -> Result<PathBuf, FindError> {
        let left = self.entries.checked_sub(1);
        self.entries = left.ok_or_else(|| refused(format!("has more than {MOST_ENTRIES} entries")))?;
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let bytes = name.as_os_str().as_encoded_bytes();
        if bytes.contains(&b'\\') {
            return Err(refused(format!(
                "has an entry '{}', whose name has a backslash, as some programs on Windows write it; expected / between \
                 folders: pack it again with another program, or unpack it, and name the folder",
                short(name)
            )));
        }
        if !name.components().all(inside) || bytes.is_empty() || bytes.contains(&0) {
            return Err(refused(format!("has an entry '{}', which leaves the folder of the archive", short(name))));
        }
        Ok(self.folder.join(name))
    }

    fn make_folder(&mut self, name: &Path) -> Result<(), FindError> {
        let place = self.place(name)?;
        std::fs::create_dir_all(place).map_err(|error| self.of_entry(name, &error))
    }

    fn make_file(&mut self, name: &Path, mut from: impl Read) -> Result<(), FindError> {
        let place = self.place(name)?;
        let parent = place.parent().unwrap_or(self.folder);
        let made = std::fs::create_dir_all(parent).and_then(|()| File::create_new(&place));
        let mut to = made.map_err(|error| self.of_entry(name, &error))?;
        let mut buffer = vec![0; BUFFER];
        loop {
            if !(self.poll)() {
                return Err(FindError::Interrupted);
            }
            let mut copied = 0;
            while copied < PIECE {
                let count = match from.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(unreadable(name, &error)),
                };
                to.write_all(&buffer[..count]).map_err(|error| self.no_room(&error))?;
                copied += count;
            }
            if copied == 0 {
                return to.flush().map_err(|error| self.no_room(&error));
            }
            self.left = self.left.checked_sub(copied as u64).ok_or_else(|| self.too_large())?;
        }
    }

    /// Says that an archive has more bytes than may be unpacked.
    fn too_large(&self) -> FindError {
        refused(format!(
            "unpacks to more than {} bytes: unpack it, and name the folder (mxrt serve: max_unpacked allows more)",
            self.limit
        ))
    }
}

/// Returns the beginning of a name that may be long.
fn short(name: &Path) -> String {
    name.to_string_lossy().chars().take(200).collect()
}

/// Says that an archive has something that is no file.
fn no_file(name: &Path) -> FindError {
    refused(format!("has '{}', which is no plain file", short(name)))
}

fn zip(file: File, room: &mut Room<'_>) -> Result<(), FindError> {
    const TYPE: u32 = 0o170_000;
    const FILE_OR_FOLDER: [u32; 3] = [0, 0o100_000, 0o040_000];
    let words = |error: ZipError| match error {
        ZipError::UnsupportedArchive(_) | ZipError::CompressionMethodNotSupported(_) => not_here(&error.to_string()),
        error => damaged(&io::Error::from(error)),
    };
    let mut archive = zip::ZipArchive::new(file).map_err(words)?;
    // Before anything is written; what an entry has beyond that is counted as it is unpacked.
    if archive.decompressed_size().is_some_and(|size| size > room.left.into()) {
        return Err(room.too_large());
    }
    for number in 0..archive.len() {
        let entry = archive.by_index(number).map_err(words)?;
        let name = entry.name().map_err(|error| refused(format!("has an entry without a name ({error})")))?;
        let name = PathBuf::from(name.into_owned());
        if !FILE_OR_FOLDER.contains(&(entry.unix_mode().unwrap_or(0) & TYPE)) {
            return Err(no_file(&name));
        }
        if entry.is_dir() { room.make_folder(&name)? } else { room.make_file(&name, entry)? }
    }
    Ok(())
}

/// Unpacks a tar file. The library would read headers that say their own length in one piece,
/// however long, so that they are read here.
fn tar(from: impl Read, room: &mut Room<'_>) -> Result<(), FindError> {
    let words = |error: io::Error| damaged(&error);
    let mut archive = tar::Archive::new(from);
    let (mut long_name, mut headers) = (None, 0);
    for entry in archive.entries().map_err(words)?.raw(true) {
        let mut entry = entry.map_err(words)?;
        let kind = entry.header().entry_type();
        let is_global = kind.is_pax_global_extensions();
        if kind.is_gnu_longname() || kind.is_gnu_longlink() || kind.is_pax_local_extensions() || is_global {
            headers += 1;
            if entry.size() > LARGEST_HEADER || headers > MOST_ENTRIES {
                return Err(refused("has a header that is too long"));
            }
            if is_global {
                continue;
            }
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(words)?;
            let name = if kind.is_pax_local_extensions() { name_in_pax(&content)? } else { name_in_gnu(&content) };
            if !kind.is_gnu_longlink() {
                long_name = name.or(long_name);
            }
            continue;
        }
        let name = match long_name.take() {
            Some(name) => name,
            None => entry.path().map_err(words)?.into_owned(),
        };
        if kind.is_dir() {
            room.make_folder(&name)?;
        } else if kind.is_file() {
            room.make_file(&name, entry)?;
        } else {
            return Err(no_file(&name));
        }
    }
    Ok(())
}

/// Returns the name that a header of GNU gives to the next entry.
fn name_in_gnu(content: &[u8]) -> Option<PathBuf> {
    let name = content.split(|byte| *byte == 0).next()?;
    Some(path_of(name))
}

/// Returns the name that a header of POSIX gives to the next entry. One that gives it another size
/// is refused: files of that size are too large.
fn name_in_pax(content: &[u8]) -> Result<Option<PathBuf>, FindError> {
    let mut name = None;
    for extension in tar::PaxExtensions::new(content) {
        let extension = extension.map_err(|error| damaged(&error))?;
        match extension.key_bytes() {
            b"path" => name = Some(path_of(extension.value_bytes())),
            b"size" => return Err(refused("has an entry of more than 8 GiB")),
            _ => {}
        }
    }
    Ok(name)
}

fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tar file with one entry.
    fn tar_of(name: &str, kind: tar::EntryType, content: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_entry_type(kind);
        header.set_mode(0o644);
        // `append_data` would refuse the names that are to be refused here.
        header.as_gnu_mut().expect("a header").name[..name.len()].copy_from_slice(name.as_bytes());
        if kind == tar::EntryType::Symlink {
            header.set_link_name("/etc/passwd").expect("a name");
        }
        header.set_cksum();
        let mut builder = tar::Builder::new(Vec::new());
        builder.append(&header, content).expect("an entry");
        builder.into_inner().expect("a file")
    }

    fn unpacked(name: &str, bytes: &[u8], limit: usize) -> Result<Unpacked, String> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("mxrt-archive-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join(name);
        std::fs::write(&file, bytes).expect("a file");
        let made = unpack(&file, limit, None, &mut || true).map_err(|error| error.to_string());
        std::fs::remove_dir_all(folder).expect("a folder");
        made
    }

    #[test]
    fn files_come_out_and_go_away_again() {
        let made = unpacked("m.tar", &tar_of("a/b.txt", tar::EntryType::Regular, b"hello"), 5).expect("files");
        let folder = made.folder().to_owned();
        assert_eq!(std::fs::read(folder.join("a/b.txt")).expect("a file"), b"hello");
        drop(made);
        assert!(!folder.exists());
    }

    #[test]
    fn what_leaves_the_folder_or_is_no_file_is_refused() {
        for (name, kind) in [
            ("../x", tar::EntryType::Regular),
            ("a/../../x", tar::EntryType::Regular),
            ("/tmp/x", tar::EntryType::Regular),
            ("x", tar::EntryType::Symlink),
            ("x", tar::EntryType::Link),
            ("x", tar::EntryType::Fifo),
        ] {
            assert!(unpacked("m.tar", &tar_of(name, kind, b""), 100).is_err(), "{name} {kind:?}");
        }
    }

    /// A zip file with one entry, by another method where one is given.
    fn zip_of(name: &str, content: &[u8], method: Option<u8>) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        writer.start_file(name, stored).expect("an entry");
        writer.write_all(content).expect("bytes");
        let mut bytes = writer.finish().expect("a file").into_inner();
        for (mark, at) in [(b"PK\x03\x04", 8), (b"PK\x01\x02", 10)] {
            let begin = bytes.windows(4).position(|four| four == mark).expect("a header");
            bytes[begin + at] = method.unwrap_or(0);
        }
        bytes
    }

    #[test]
    fn a_zip_file_that_cannot_be_read_is_not_one_that_cannot_be_written() {
        let error = unpacked("m.zip", &zip_of("a", b"hello", Some(14)), 100).expect_err("LZMA");
        assert!(error.contains("cannot be unpacked (") && error.contains("unpack it, and name the folder"), "{error}");
        assert!(!error.contains("free some space"), "{error}");
        let error = unpacked("m.zip", &zip_of("x\\d-symbol.json", b"{}", None), 100).expect_err("a backslash");
        assert!(error.contains("whose name has a backslash") && error.contains("expected /"), "{error}");
        let mut damaged = zip_of("a", b"hello", None);
        let content = damaged.windows(5).position(|five| five == b"hello").expect("the content");
        damaged[content] = b'j';
        let error = unpacked("m.zip", &damaged, 100).expect_err("a wrong sum");
        assert!(error.contains("is a damaged archive"), "{error}");
    }

    #[test]
    fn a_zip_file_that_says_that_it_is_too_large_is_refused_before_it_is_unpacked() {
        let bytes = zip_of("a", &[0; 4096], None);
        let folder = std::env::temp_dir().join(format!("mxrt-too-large-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("m.zip"), bytes).expect("a file");
        let mut pieces = 0;
        let mut poll = || {
            pieces += 1;
            true
        };
        let given = unpack(&folder.join("m.zip"), 4095, Some(&folder.join("to")), &mut poll);
        assert!(given.expect_err("too large").to_string().contains("more than 4095 bytes"));
        assert_eq!(pieces, 0, "nothing is unpacked");
        std::fs::remove_dir_all(folder).expect("a folder");
    }

    #[test]
    fn what_unpacks_too_large_is_refused() {
        let bytes = tar_of("zeros", tar::EntryType::Regular, &[0; 4096]);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&bytes).expect("bytes");
        let packed = encoder.finish().expect("bytes");
        assert!(unpacked("m.tar.gz", &packed, 4096).is_ok());
        let error = unpacked("m.tar.gz", &packed, 4095).expect_err("too large");
        assert!(error.contains("more than 4095 bytes"), "{error}");
        for cut in [0, 1, packed.len() / 2] {
            assert!(unpacked("m.tgz", &packed[..cut], 1 << 20).is_err() || cut == 0, "{cut}");
        }
        assert!(unpacked("m.zip", &packed, 1 << 20).is_ok(), "the content counts, and not the name");
    }

    #[test]
    fn names_of_any_form_are_read_and_long_headers_refused() {
        let long = format!("{}/m", "d".repeat(150));
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, &long, &b"{}"[..]).expect("an entry");
        let pax = "p".repeat(120);
        builder.append_pax_extensions([("path", pax.as_bytes()), ("mtime", b"1.5")]).expect("a header");
        builder.append_data(&mut header, "other", &b"[]"[..]).expect("an entry");
        let bytes = builder.into_inner().expect("a file");
        let made = unpacked("m.tar", &bytes, 4).expect("files");
        assert_eq!(std::fs::read(made.folder().join(long)).expect("a file"), b"{}");
        assert_eq!(std::fs::read(made.folder().join(pax)).expect("a file"), b"[]");
        // A gigabyte of zeros takes a megabyte.
        for kind in [tar::EntryType::GNULongName, tar::EntryType::XHeader, tar::EntryType::XGlobalHeader] {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(1 << 30);
            header.set_cksum();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(header.as_bytes()).expect("bytes");
            let error = unpacked("m.tar.gz", &encoder.finish().expect("bytes"), 1 << 31).expect_err("too long");
            assert!(error.contains("has a header that is too long"), "{kind:?} {error}");
        }
        let mut builder = tar::Builder::new(Vec::new());
        header.set_cksum();
        builder.append_data(&mut header, "n".repeat(300), &b"{}"[..]).expect("an entry");
        let error = unpacked("m.tar", &builder.into_inner().expect("a file"), 100).expect_err("too long");
        assert!(error.contains("has an entry whose name is too long"), "{error}");
    }

    #[test]
    fn unpacking_asks_before_each_piece_whether_to_continue() {
        let bytes = tar_of("zeros", tar::EntryType::Regular, &vec![0; PIECE * 3]);
        let folder = std::env::temp_dir().join(format!("mxrt-interrupted-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("m.tar"), bytes).expect("a file");
        let mut pieces = 0;
        let mut poll = || {
            pieces += 1;
            pieces < 3
        };
        let to = folder.join("to");
        let given = unpack(&folder.join("m.tar"), 1 << 30, Some(&to), &mut poll);
        assert_eq!(given.err(), Some(FindError::Interrupted));
        assert_eq!(pieces, 3, "it asks before each piece");
        std::fs::remove_dir_all(folder).expect("a folder");
    }

    #[test]
    fn an_archive_in_an_archive_has_what_is_left() {
        let inner = tar_of("zeros", tar::EntryType::Regular, &[0; 4096]);
        let outer = tar_of("inner.tar", tar::EntryType::Regular, &inner);
        for (limit, fits) in [(inner.len() + 4096, true), (inner.len() + 4095, false)] {
            let mut made = unpacked("m.tar", &outer, limit).expect("files");
            let inner = made.folder().join("inner.tar");
            let done = made.unpack_inner(&inner, &mut || true);
            assert_eq!(done.is_ok(), fits, "{limit} {done:?}");
            let words = format!("m.tar/inner.tar' unpacks to more than {limit} bytes");
            assert!(done.is_ok() || done.expect_err("too large").to_string().contains(&words));
        }
    }

    #[test]
    fn a_file_that_is_no_archive_is_named_by_what_it_is() {
        let tar = tar_of("a", tar::EntryType::Regular, b"hello");
        for (name, bytes, words) in [
            ("m.tar.gz", &b""[..], "is empty"),
            ("m.tar.gz", b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"),
            ("m.zip", b"<!DOCTYPE html><html>", "It is HTML"),
            ("m.mar", b"\x1f\x8b\x08", "is a damaged archive, or ends too early"),
            ("m.tar", b"hello", "is no archive"),
            ("m.zip", b"PK\x03\x04", "is a damaged archive, or ends too early"),
            ("m.tar", &tar[..514], "is a damaged archive, or ends too early"),
        ] {
            let error = unpacked(name, bytes, 100).expect_err("an error");
            assert!(error.contains(words), "{name} {words}: {error}");
        }
    }

    #[test]
    fn names_of_archives_have_a_stem() {
        assert_eq!(stem(Path::new("a/b.tar.gz")), Some("b"));
        assert_eq!(stem(Path::new("b.mar")), Some("b"));
        assert_eq!(stem(Path::new("b.params")), None);
        assert_eq!(stem(Path::new(".zip")), None);
    }
}
