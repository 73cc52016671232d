//! Files that the processes of one user share: compiled kernels, packed weights.
//!
//! A file holds its key and the hash of its content, so that it is used for nothing else, and a
//! damaged one is as good as none. It is written under a random name that did not exist, then
//! renamed: nobody sees half of it, and a link that somebody put there is not followed. Folders and
//! files that other users own or can write are refused.

use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::time::{Duration, Instant, SystemTime};

/// The folder of this user's caches; `None` where the system names none.
pub fn user_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    caches.is_absolute().then(|| caches.join("mxrt"))
}

/// The first bytes of a file.
const MAGIC: &[u8; 16] = b"mxrt cache 2\n\0\0\0";
/// Bytes before the content: magic, key, hash, padding. A page, so that a mapped content is aligned.
const HEADER: usize = 4096;
/// Bits of a file's mode that let others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Time between two looks at a lock that another process holds.
const LOOKS_AT_LOCK: Duration = Duration::from_millis(1);

/// The name of a content: a hash of all that it depends on.
pub type CacheKey = [u8; 32];

/// A folder of files that are found by their keys.
#[derive(Clone, Debug)]
pub struct CacheFolder {
    path: PathBuf,
    /// the ending of the files' names
    ending: &'static str,
}

/// The reason why a folder is not used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The folder cannot be made or looked at.
    #[error("'{}' is not used as a cache: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
    /// Other users could have written what is in the folder.
    #[error(
        "'{}' is not used as a cache: {}. Name a folder of this user's own by MXRT_CACHE_DIR, or take the \
         permission away: chmod go-w",
        .0.display(),
        .1
    )]
    NotOurs(PathBuf, &'static str),
}

impl CacheFolder {
    /// Opens a folder, and makes it if it is absent. `ending` tells its files from those of other
    /// uses of the folder.
    pub fn open(path: &Path, ending: &'static str) -> Result<CacheFolder, CacheError> {
        let failed = |error| CacheError::Io(path.to_owned(), error);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let about = path.metadata().map_err(failed)?;
        match not_ours(&about) {
            Some(what) => Err(CacheError::NotOurs(path.to_owned(), what)),
            None => Ok(CacheFolder { path: path.to_owned(), ending }),
        }
    }

    /// Says why a folder is not used, without making it. One that is absent is no error.
    pub fn check(path: &Path) -> Result<(), CacheError> {
        match path.metadata() {
            Ok(about) => not_ours(&about).map_or(Ok(()), |what| Err(CacheError::NotOurs(path.to_owned(), what))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(CacheError::Io(path.to_owned(), error)),
        }
    }

    /// The content that was kept under a key, if there is one and it is whole.
    pub fn read(&self, key: &CacheKey) -> Option<Vec<u8>> {
        let (mut file, hash, length) = self.find(key)?;
        let mut content = Vec::new();
        content.try_reserve_exact(length).ok()?;
        file.read_to_end(&mut content).ok()?;
        (Sha256::digest(&content)[..] == hash).then_some(content)
    }

    /// The content as memory that all processes share, if it is there, whole, and `length` bytes
    /// long.
    pub fn map(&self, key: &CacheKey, length: usize) -> Option<SharedBytes> {
        let (file, hash, found) = self.find(key)?;
        if found != length {
            return None;
        }
        let bytes = SharedBytes::map(&file, length).ok()?;
        (Sha256::digest(bytes.as_slice())[..] == hash).then_some(bytes)
    }

    /// Opens the file of a key. Gives the hash and the length of its content.
    fn find(&self, key: &CacheKey) -> Option<(File, [u8; 32], usize)> {
        let path = self.path.join(self.name(key));
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path).ok()?;
        let about = file.metadata().ok()?;
        if !about.is_file() || not_ours(&about).is_some() {
            return None;
        }
        let mut header = [0; HEADER];
        file.read_exact(&mut header).ok()?;
        let (magic, rest) = header.split_at(MAGIC.len());
        let (found, rest) = rest.split_at(key.len());
        let hash = *rest.first_chunk()?;
        let length = usize::try_from(about.len()).ok()?.checked_sub(HEADER)?;
        (magic == MAGIC && found == key).then_some((file, hash, length))
    }

    /// Keeps a content under a key, in the place of an older one. Then deletes the files that were
    /// written longest ago until the others have at most `most` bytes.
    pub fn write(&self, key: &CacheKey, content: &[u8], most: u64) -> io::Result<()> {
        let temporary = self.path.join(format!(".{:016x}{:016x}.{}-new", random(), random(), self.ending));
        let written = new_file(&temporary, key, content)
            .and_then(|()| std::fs::rename(&temporary, self.path.join(self.name(key))));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written?;
        self.trim(most)
    }

    /// Takes the turn of this process among those that make files of the folder, so that what one
    /// makes is found by the others. `None`: another process still has it after `patience`.
    pub fn lock(&self, patience: Duration) -> Option<FolderTurn> {
        let path = self.path.join(format!(".{}-lock", self.ending));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(path).ok()?;
        let start = Instant::now();
        while file.try_lock().is_err() {
            if start.elapsed() >= patience {
                return None;
            }
            std::thread::sleep(LOOKS_AT_LOCK);
        }
        Some(FolderTurn(file))
    }

    fn name(&self, key: &CacheKey) -> String {
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{hex}.{}", self.ending)
    }

    fn trim(&self, most: u64) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        let (whole, half) = (format!(".{}", self.ending), format!(".{}-new", self.ending));
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // One that another process writes, or that a process left when it was killed.
            if name.ends_with(&whole) || name.ends_with(&half) {
                // Another process may have deleted it.
                let Ok(about) = entry.metadata() else { continue };
                files.push((about.modified()?, about.len(), entry.path()));
            }
        }
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, size, path) in files {
            if bytes <= most {
                break;
            }
            // Whoever has mapped it keeps it.
            let _ = std::fs::remove_file(path);
            bytes -= size;
        }
        Ok(())
    }
}

/// The turn of this process among those that make files of a folder.
pub struct FolderTurn(File);

impl Drop for FolderTurn {
    fn drop(&mut self) {
        // A forked process may have the file, too, so that closing it would not end the turn.
        let _ = self.0.unlock();
    }
}

fn new_file(path: &Path, key: &CacheKey, content: &[u8]) -> io::Result<()> {
    let mut header = [0; HEADER];
    let parts: [&[u8]; 3] = [MAGIC, key, &Sha256::digest(content)];
    let mut at = 0;
    for part in parts {
        header[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    let flags = libc::O_NOFOLLOW;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)?;
    file.write_all(&header)?;
    file.write_all(content)
}

/// A number that other processes cannot foresee.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// The reason why others could have written what this describes.
fn not_ours(about: &Metadata) -> Option<&'static str> {
    // SAFETY: no memory is passed.
    let user = unsafe { libc::geteuid() };
    match () {
        () if about.uid() != user => Some("it belongs to another user"),
        () if about.mode() & WRITABLE_BY_OTHERS != 0 => Some("other users can write it"),
        () => None,
    }
}

/// The content of a file as memory, read-only. Processes that map the same file share its pages.
pub struct SharedBytes {
    /// the file from its beginning
    at: NonNull<u8>,
    length: usize,
}

// SAFETY: nothing writes the memory.
unsafe impl Send for SharedBytes {}
// SAFETY: as above.
unsafe impl Sync for SharedBytes {}

impl SharedBytes {
    /// Maps a file of [`HEADER`] and `length` bytes.
    fn map(file: &File, length: usize) -> io::Result<SharedBytes> {
        let whole = HEADER.checked_add(length).ok_or(io::ErrorKind::InvalidData)?;
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: the system chooses the addresses; nothing is there before.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), whole, protection, flags, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(at.cast()).map(|at| SharedBytes { at, length }).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// The content.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: mapped by `map`, at least this long. The file belongs to this user, nobody else
        // may write it, and this crate replaces such files but never changes one.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().add(HEADER), self.length) }
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} bytes)", self.length)
    }
}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and nobody has a reference any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), HEADER + self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const KEY: CacheKey = [7; 32];
    const MANY: u64 = 1 << 20;

    /// A folder of a test, deleted at its end.
    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(name: &str) -> TestFolder {
            TestFolder(std::env::temp_dir().join(format!("mxrt-cache-{name}-{}", std::process::id())))
        }

        fn open(&self) -> CacheFolder {
            CacheFolder::open(&self.0, "test").expect("the folder is made")
        }

        fn files(&self) -> Vec<PathBuf> {
            std::fs::read_dir(&self.0).expect("it is there").map(|entry| entry.expect("an entry").path()).collect()
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_content_is_found_by_its_key_and_a_damaged_file_is_none() {
        let at = TestFolder::new("damaged");
        let (folder, content) = (at.open(), b"content".repeat(1000));
        assert_eq!(folder.read(&KEY), None);
        folder.write(&KEY, &content, MANY).expect("there is room");
        assert_eq!(folder.read(&KEY), Some(content.clone()));
        assert_eq!(folder.map(&KEY, content.len()).expect("it is there").as_slice(), content);
        assert!(folder.map(&KEY, content.len() + 1).is_none(), "another length");
        let [file] = &at.files()[..] else { panic!("one file") };
        let whole = std::fs::read(file).expect("it is there");
        let kept = |bytes: &[u8]| {
            std::fs::write(file, bytes).expect("there is room");
            folder.read(&KEY).is_some() || folder.map(&KEY, content.len()).is_some()
        };
        assert!(kept(&whole));
        for length in [0, 5, HEADER - 1, HEADER, whole.len() - 1] {
            assert!(!kept(&whole[..length]), "{length} bytes");
        }
        for place in [0, MAGIC.len(), MAGIC.len() + KEY.len(), HEADER, whole.len() - 1] {
            let mut other = whole.clone();
            other[place] ^= 1;
            assert!(!kept(&other), "byte {place}");
        }
        folder.write(&KEY, &content, MANY).expect("there is room");
        assert_eq!(folder.read(&KEY), Some(content));
    }

    #[test]
    fn the_file_of_another_key_is_none() {
        let at = TestFolder::new("swapped");
        let folder = at.open();
        folder.write(&KEY, b"square", MANY).expect("there is room");
        let [file] = &at.files()[..] else { panic!("one file") };
        std::fs::rename(file, at.0.join(folder.name(&[8; 32]))).expect("it is renamed");
        assert_eq!(folder.read(&[8; 32]), None);
    }

    #[test]
    fn what_others_can_write_is_refused_and_links_are_not_followed() {
        let at = TestFolder::new("others");
        let folder = at.open();
        let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(&at.0), 0o700);
        folder.write(&KEY, b"content", MANY).expect("there is room");
        let [file] = &at.files()[..] else { panic!("one file") };
        assert_eq!(mode(file), 0o600);
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        set(file, 0o620);
        assert_eq!(folder.read(&KEY), None, "the group can write the file");
        set(file, 0o600);
        let moved = at.0.join("moved");
        std::fs::rename(file, &moved).expect("it is renamed");
        symlink(&moved, file).expect("a link");
        assert_eq!(folder.read(&KEY), None, "a link");
        folder.write(&KEY, b"other", MANY).expect("there is room");
        assert_eq!(folder.read(&KEY).as_deref(), Some(&b"other"[..]), "the link is replaced");
        assert!(std::fs::read(&moved).expect("it is there").ends_with(b"content"), "its target stays");
        for mode in [0o720, 0o702] {
            set(&at.0, mode);
            let error = CacheFolder::open(&at.0, "test").expect_err("others can write").to_string();
            assert!(error.contains("other users can write it") && error.contains("chmod go-w"), "{error}");
            assert_eq!(CacheFolder::check(&at.0).expect_err("others can write").to_string(), error);
        }
        set(&at.0, 0o700);
        CacheFolder::check(&at.0).expect("it is ours");
        CacheFolder::check(&at.0.join("absent")).expect("it can be made");
    }

    #[test]
    fn the_oldest_files_go_where_there_are_too_many() {
        let at = TestFolder::new("oldest");
        let folder = at.open();
        let content = [0; 1000];
        for number in 0..5u8 {
            folder.write(&[number; 32], &content, 3 * (HEADER + content.len()) as u64).expect("there is room");
            let made = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 + u64::from(number));
            let file = File::options().write(true).open(at.0.join(folder.name(&[number; 32]))).expect("it is there");
            file.set_modified(made).expect("it is ours");
        }
        let present: Vec<u8> = (0..5).filter(|number| folder.read(&[*number; 32]).is_some()).collect();
        assert_eq!(present, [2, 3, 4]);
    }

    #[test]
    fn a_turn_excludes_others_until_it_ends() {
        let at = TestFolder::new("turn");
        let folder = at.open();
        let turn = folder.lock(Duration::ZERO).expect("nobody has it");
        assert!(folder.lock(Duration::ZERO).is_none());
        drop(turn);
        assert!(folder.lock(Duration::ZERO).is_some());
    }
}
