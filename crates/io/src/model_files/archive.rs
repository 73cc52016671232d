//! Archives of models: `.zip`, `.mar`, `.tar`, `.tar.gz`. Their contents are not trusted: names
//! stay inside the folder, only files and folders are made, and archives that are too large are
//! refused.

use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest number of files and folders in an archive.
const MOST_ENTRIES: usize = 10_000;
/// Endings of names of archives, and their formats.
const ENDINGS: [(&str, Kind); 5] =
    [(".zip", Kind::Zip), (".mar", Kind::Zip), (".tar.gz", Kind::TarGz), (".tgz", Kind::TarGz), (".tar", Kind::Tar)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Zip,
    Tar,
    TarGz,
}

/// Returns the name of an archive without its ending; `None` if it is no archive.
pub(crate) fn stem(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    ENDINGS.iter().find_map(|(ending, _)| name.strip_suffix(ending)).filter(|stem| !stem.is_empty())
}

/// Whether a file is an archive, by its name, or a zip archive by its content.
pub(crate) fn is_one(path: &Path) -> bool {
    path.is_file() && kind(path).is_some()
}

fn kind(path: &Path) -> Option<Kind> {
    let name = path.file_name()?.to_str()?;
    let named = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, kind)| *kind);
    named.or_else(|| begins_as_zip(path).then_some(Kind::Zip))
}

fn begins_as_zip(path: &Path) -> bool {
    let mut head = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *b"PK\x03\x04"
}

/// Folder with the files of an archive. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Unpacked {
    archive: PathBuf,
    folder: PathBuf,
}

impl Unpacked {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives the folder to another archive, which contains this one.
    pub(crate) fn named(mut self, archive: &Path) -> Unpacked {
        archive.clone_into(&mut self.archive);
        self
    }

    /// Names the archive in place of the folder.
    pub(crate) fn shown(&self, words: &str) -> String {
        words.replace(&self.folder.display().to_string(), &self.archive.display().to_string())
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // A folder that cannot be removed stays among the temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Unpacks an archive into a new folder, at most `limit` bytes.
pub(crate) fn unpack(path: &Path, limit: usize) -> Result<Unpacked, String> {
    let named = |words: String| format!("{}: {words}", path.display());
    let kind = kind(path).ok_or_else(|| named("it is no archive".to_owned()))?;
    let mut file = File::open(path).map_err(|error| named(error.to_string()))?;
    kind.check(&mut file).map_err(named)?;
    let unpacked = Unpacked { archive: path.to_owned(), folder: new_folder().map_err(named)? };
    let mut room = Room { folder: unpacked.folder.clone(), left: limit as u64, entries: MOST_ENTRIES, limit };
    let done = match kind {
        Kind::Zip => zip(file, &mut room),
        Kind::Tar => tar(file, &mut room),
        Kind::TarGz => tar(GzDecoder::new(file), &mut room),
    };
    done.map(|()| unpacked).map_err(named)
}

impl Kind {
    /// Checks that a file begins as one of this kind, and says what it is otherwise.
    fn check(self, file: &mut File) -> Result<(), String> {
        /// Bytes of the first header of a tar file.
        const HEAD: u64 = 512;
        let mut head = Vec::new();
        let read = file.take(HEAD).read_to_end(&mut head).and_then(|_| file.rewind());
        read.map_err(|error| error.to_string())?;
        let is_right = match self {
            Kind::Zip => head.starts_with(b"PK"),
            Kind::TarGz => head.starts_with(b"\x1f\x8b"),
            // Old ones have no mark.
            Kind::Tar => head.len() as u64 == HEAD,
        };
        match mxrt_io::recognise(&head) {
            _ if is_right => Ok(()),
            _ if head.is_empty() => Err("the file is empty: copy or download it again".to_owned()),
            Some(words) => Err(format!("it is no archive of this kind. {words}")),
            None => Err("it is no archive: copy or download it again".to_owned()),
        }
    }
}

/// Says that the content of an archive is wrong.
fn damaged(error: &io::Error) -> String {
    format!("{error}; it is damaged, or ends too early: copy or download it again")
}

/// Says why an entry of an archive cannot be read or written.
fn of_entry(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => damaged(error),
        _ => format!("{error}; {}", elsewhere()),
    }
}

/// Says where archives are unpacked, and how to choose another place.
fn elsewhere() -> String {
    format!(
        "archives are unpacked in '{}': free some space there, set TMPDIR to another folder, or name an unpacked folder",
        std::env::temp_dir().display()
    )
}

/// Makes a new folder that other users cannot read.
fn new_folder() -> Result<PathBuf, String> {
    use std::os::unix::fs::DirBuilderExt;
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let temporary = std::env::temp_dir();
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = temporary.join(format!("mxrt-serve-{}-{number}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            // An earlier process with the same id left the folder.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(format!("no folder can be made for its files ({error}); {}", elsewhere()));
            }
            Ok(()) => return Ok(folder),
        }
    }
}

/// Destination of unpacked files, and how much more may be unpacked.
struct Room {
    folder: PathBuf,
    left: u64,
    entries: usize,
    limit: usize,
}

impl Room {
    /// Returns the path for an entry. A name that leaves the folder is an error.
    fn place(&mut self, name: &Path) -> Result<PathBuf, String> {
        self.entries = self.entries.checked_sub(1).ok_or_else(|| format!("it has more than {MOST_ENTRIES} entries"))?;
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !name.components().all(inside) || name.as_os_str().is_empty() {
            return Err(format!("the name '{}' leaves the folder of the archive", name.display()));
        }
        Ok(self.folder.join(name))
    }

    fn make_folder(&mut self, name: &Path) -> Result<(), String> {
        let place = self.place(name)?;
        std::fs::create_dir_all(place).map_err(|error| error.to_string())
    }

    fn make_file(&mut self, name: &Path, from: impl Read) -> Result<(), String> {
        let place = self.place(name)?;
        let words = |error: io::Error| format!("'{}': {}", name.display(), of_entry(&error));
        if let Some(parent) = place.parent() {
            std::fs::create_dir_all(parent).map_err(words)?;
        }
        let mut to = File::create_new(&place).map_err(words)?;
        // One byte more than allowed shows that the archive is too large.
        let copied = io::copy(&mut from.take(self.left + 1), &mut to).map_err(words)?;
        self.left = self
            .left
            .checked_sub(copied)
            .ok_or_else(|| format!("it unpacks to more than {} bytes (max_unpacked)", self.limit))?;
        to.flush().map_err(words)
    }
}

fn zip(file: File, room: &mut Room) -> Result<(), String> {
    let words = |error: zip::result::ZipError| of_entry(&io::Error::from(error));
    let mut archive = zip::ZipArchive::new(file).map_err(words)?;
    for number in 0..archive.len() {
        let entry = archive.by_index(number).map_err(words)?;
        let name = PathBuf::from(entry.name().map_err(|error| error.to_string())?.into_owned());
        if entry.is_dir() {
            room.make_folder(&name)?;
        } else if entry.is_symlink() {
            return Err(format!("'{}' is a link; an archive has files and folders", name.display()));
        } else {
            room.make_file(&name, entry)?;
        }
    }
    Ok(())
}

fn tar(from: impl Read, room: &mut Room) -> Result<(), String> {
    let words = |error: io::Error| damaged(&error);
    let mut archive = tar::Archive::new(from);
    for entry in archive.entries().map_err(words)? {
        let entry = entry.map_err(words)?;
        let name = entry.path().map_err(words)?.into_owned();
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            room.make_folder(&name)?;
        } else if kind.is_file() {
            room.make_file(&name, entry)?;
        } else if !kind.is_pax_global_extensions() && !kind.is_pax_local_extensions() {
            return Err(format!("'{}' is a link or a device; an archive has files and folders", name.display()));
        }
    }
    Ok(())
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
        let made = unpack(&file, limit);
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
        assert!(unpacked("m.zip", &packed, 1 << 20).is_err());
    }

    #[test]
    fn a_file_that_is_no_archive_is_named_by_what_it_is() {
        let tar = tar_of("a", tar::EntryType::Regular, b"hello");
        for (name, bytes, words) in [
            ("m.tar.gz", &b""[..], "the file is empty"),
            ("m.tar.gz", b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"),
            ("m.zip", b"<!DOCTYPE html><html>", "It is HTML"),
            ("m.mar", b"\x1f\x8b\x08", "compressed by gzip"),
            ("m.tgz", &tar, "It is a tar archive"),
            ("m.tar", b"hello", "it is no archive"),
            ("m.zip", b"PK\x03\x04", "it is damaged, or ends too early"),
            ("m.tar", &tar[..514], "it is damaged, or ends too early"),
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
