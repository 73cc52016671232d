//! Values that are read from files, and read again when the files change.

use crate::log::{Level, Log};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Interval at which the files are checked for changes.
const LOOK: Duration = Duration::from_secs(1);

/// Time and size of each file: equal while the files have not changed.
type Stamp = Vec<Option<(SystemTime, u64)>>;

/// Value with the files that it comes from.
pub(crate) struct Watched<T> {
    files: Vec<PathBuf>,
    read: fn(&[PathBuf]) -> Result<T, String>,
    state: Mutex<WatchedState<T>>,
    log: Log,
}

struct WatchedState<T> {
    value: Arc<T>,
    stamp: Stamp,
    looked: Instant,
}

impl<T> Watched<T> {
    /// Reads the files for the first time.
    pub(crate) fn new(
        files: Vec<PathBuf>,
        read: fn(&[PathBuf]) -> Result<T, String>,
        log: &Log,
    ) -> Result<Watched<T>, String> {
        let stamp = stamp(&files);
        let value = Arc::new(read(&files)?);
        Ok(Watched {
            files,
            read,
            state: Mutex::new(WatchedState { value, stamp, looked: Instant::now() }),
            log: log.clone(),
        })
    }

    /// Returns the value of the files, at most a second old. If the files can no longer be read,
    /// the value stays, and a log line gives the reason.
    pub(crate) fn get(&self) -> Arc<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() >= LOOK {
            state.looked = Instant::now();
            let now = stamp(&self.files);
            if now != state.stamp {
                state.stamp = now;
                match (self.read)(&self.files) {
                    Ok(value) => state.value = Arc::new(value),
                    Err(error) => self.log.line(Level::Error, &format!("{error}; what was read before stays in use")),
                }
            }
        }
        state.value.clone()
    }
}

fn stamp(files: &[PathBuf]) -> Stamp {
    let of = |file: &PathBuf| {
        let about = std::fs::metadata(file).ok()?;
        Some((about.modified().ok()?, about.len()))
    };
    files.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::LogForm;

    #[test]
    fn a_changed_file_is_read_again_and_a_bad_one_changes_nothing() {
        let file = std::env::temp_dir().join(format!("mxrt-watched-{}", std::process::id()));
        let read = |files: &[PathBuf]| -> Result<u32, String> {
            std::fs::read_to_string(&files[0]).map_err(|e| e.to_string())?.parse().map_err(|_| "no number".to_owned())
        };
        std::fs::write(&file, "1").expect("a file");
        let log = Log::new(LogForm::Text, false).expect("a thread");
        let watched = Watched::new(vec![file.clone()], read, &log).expect("a number");
        std::fs::write(&file, "22").expect("a file");
        assert_eq!(*watched.get(), 1, "it is looked at once a second");
        let later = |wanted: u32| {
            let begin = Instant::now();
            while *watched.get() != wanted && begin.elapsed() < 5 * LOOK {
                std::thread::sleep(LOOK / 10);
            }
            assert_eq!(*watched.get(), wanted);
        };
        later(22);
        std::fs::write(&file, "none").expect("a file");
        std::thread::sleep(LOOK + LOOK / 5);
        assert_eq!(*watched.get(), 22);
        std::fs::write(&file, "333").expect("a file");
        later(333);
        std::fs::remove_file(&file).expect("a file");
        std::thread::sleep(LOOK + LOOK / 5);
        assert_eq!(*watched.get(), 333);
        assert!(Watched::new(vec![file], read, &log).is_err());
    }
}
