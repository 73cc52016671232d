//! Writing files: whole or not at all.

use crate::FileError;
use crate::file::local_path;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Links followed before a name is given up.
const MAX_LINKS: usize = 40;

/// Characters of a file's name that the temporary one has: names may be as long as the file system
/// allows already.
const NAME_CHARS: usize = 40;

/// Writes a file that appears whole or not at all: `write` gets another file in the same directory,
/// which is then renamed. Links are followed, and still are links afterwards. A device such as
/// `/dev/stdout` is written directly.
///
/// What processes that were killed while they wrote this file have left behind is removed.
pub(crate) fn write_whole<E: From<FileError>>(
    path: &Path,
    write: impl FnOnce(File) -> Result<File, E>,
) -> Result<(), E> {
    let path = local_path(path);
    let shown = path.to_string_lossy();
    let failed = |error: io::Error| FileError::open(&shown, &error);
    let existing = std::fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|m| m.is_dir()) {
        return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "Is a directory")).into());
    }
    if existing.as_ref().is_some_and(|m| !m.is_file()) {
        return write(OpenOptions::new().write(true).open(path).map_err(failed)?).map(drop);
    }
    let target = followed(path).map_err(failed)?;
    let (file, temporary) = Temporary::beside(&target).map_err(failed)?;
    let file = write(file)?;
    let finish = || {
        if let Some(existing) = &existing {
            file.set_permissions(existing.permissions())?;
        }
        file.sync_all()?;
        temporary.rename_to(&target)
    };
    Ok(finish().map_err(|e| FileError::io("writing", &shown, &e))?)
}

/// Writes a file that appears whole or not at all.
pub fn write_file(path: impl AsRef<Path>, content: &[u8]) -> Result<(), FileError> {
    let path = path.as_ref();
    write_whole(path, |mut file| {
        file.write_all(content).map_err(|e| FileError::io("writing", &path.to_string_lossy(), &e))?;
        Ok(file)
    })
}

/// The target of a path, which need not exist, without links in its last part.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match std::fs::read_link(&target) {
            // A relative link is relative to where it is.
            Ok(next) => target = target.parent().map_or(next.clone(), |folder| folder.join(&next)),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("Too many levels of symbolic links"))
}

/// A file that is removed unless it is renamed to its real name. It is locked while its process
/// lives.
struct Temporary(Option<PathBuf>);

impl Temporary {
    fn beside(target: &Path) -> io::Result<(File, Temporary)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = target.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "Not a file name"))?;
        let start = format!(".{}.", name.to_string_lossy().chars().take(NAME_CHARS).collect::<String>());
        remove_abandoned(target, &start);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = target.with_file_name(format!("{start}{}-{number}.tmp", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    // A process that takes it for abandoned before it is locked removes it: then
                    // another is made. Not every file system has locks.
                    let locked = !matches!(file.try_lock(), Err(TryLockError::WouldBlock));
                    if locked && path.exists() {
                        return Ok((file, Temporary(Some(path))));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn rename_to(mut self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.0 {
            std::fs::rename(path, target)?;
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Nothing is to be done if it cannot be removed; the error that led here is the one to
            // report.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes temporary files for a target that no process has locked: theirs have ended. Errors leave
/// them where they are.
fn remove_abandoned(target: &Path, start: &str) {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| is_temporary(name, start))
            && let Ok(file) = OpenOptions::new().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether a file is called `START`, a process's number, `-`, another number, `.tmp`.
fn is_temporary(name: &str, start: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let middle = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(".tmp"));
    middle.and_then(|middle| middle.split_once('-')).is_some_and(|(process, count)| number(process) && number(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("mxrt-whole-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder is made");
        folder
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_being_written_stays() {
        let folder = folder("abandoned");
        let left = folder.join(".a.params.999999-0.tmp");
        std::fs::write(&left, "half").expect("a file is written");
        let busy = folder.join(".a.params.999998-0.tmp");
        let held = File::create(&busy).expect("a file is made");
        held.lock().expect("it is locked");
        let other = folder.join(".b.params.999999-0.tmp");
        std::fs::write(&other, "half").expect("a file is written");
        write_file(folder.join("a.params"), b"whole").expect("the file is written");
        assert_eq!((left.exists(), busy.exists(), other.exists()), (false, true, true));
        assert_eq!(std::fs::read(folder.join("a.params")).expect("it is read"), b"whole");
        std::fs::remove_dir_all(folder).expect("the folder is removed");
    }

    #[test]
    fn a_link_to_nothing_is_followed_and_stays_a_link() {
        let folder = folder("dangling");
        std::fs::create_dir_all(folder.join("far")).expect("the folder is made");
        let link = folder.join("latest.params");
        std::os::unix::fs::symlink("far/model.params", &link).expect("the link is made");
        write_file(&link, b"whole").expect("the file is written");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(folder.join("far/model.params")).expect("it is read"), b"whole");
        assert_eq!(std::fs::read_dir(folder.join("far")).expect("it is listed").count(), 1);
        let round = folder.join("round");
        std::os::unix::fs::symlink(&round, &round).expect("the link is made");
        assert!(write_file(&round, b"whole").is_err());
        std::fs::remove_dir_all(folder).expect("the folder is removed");
    }
}
