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
    /// stamp of the files from which the value was read
    stamp: Stamp,
    /// stamp of the files that could not be read, and the error
    failed: Option<(Stamp, String)>,
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
            state: Mutex::new(WatchedState { value, stamp, failed: None, looked: Instant::now() }),
            log: log.clone(),
        })
    }

    /// Returns the value of the files, at most a second old. If the files can no longer be read,
    /// the value stays, and a log line gives the reason.
    pub(crate) fn get(&self) -> Arc<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() >= LOOK {
            state.looked = Instant::now();
            if let Some(words) = self.refresh(&mut state) {
                self.log.line(Level::Error, &words);
            }
        }
        state.value.clone()
    }

    /// Reads the files if they differ from those of the value. What cannot be read now is read
    /// again the next time, as the reason may pass. Returns the line of a new error.
    fn refresh(&self, state: &mut WatchedState<T>) -> Option<String> {
        let now = stamp(&self.files);
        if now == state.stamp {
            state.failed = None;
            return None;
        }
        match (self.read)(&self.files) {
            Ok(value) => {
                (state.value, state.stamp, state.failed) = (Arc::new(value), now, None);
                None
            }
            Err(error) => {
                let failed = Some((now, error));
                if state.failed == failed {
                    return None;
                }
                state.failed = failed;
                let (_, error) = state.failed.as_ref()?;
                Some(format!("{error}; what was read before stays in use"))
            }
        }
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
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether reading fails although the file is right, as without free descriptors.
    static FAILS: AtomicBool = AtomicBool::new(false);

    fn number(files: &[PathBuf]) -> Result<u32, String> {
        if FAILS.load(Ordering::Relaxed) {
            return Err("no free descriptor".to_owned());
        }
        std::fs::read_to_string(&files[0]).map_err(|e| e.to_string())?.parse().map_err(|_| "no number".to_owned())
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_bad_one_changes_nothing() {
        let file = std::env::temp_dir().join(format!("mxrt-watched-{}", std::process::id()));
        std::fs::write(&file, "1").expect("a file");
        let log = Log::new(LogForm::Text, false).expect("a thread");
        let begin = Instant::now();
        let watched = Watched::new(vec![file.clone()], number, &log).expect("a number");
        std::fs::write(&file, "22").expect("a file");
        let soon = *watched.get();
        // A machine that held the test up for a second says nothing of this.
        assert!(soon == 1 || begin.elapsed() >= LOOK, "it is looked at once a second");
        while *watched.get() != 22 && begin.elapsed() < 60 * LOOK {
            std::thread::sleep(LOOK / 10);
        }
        assert_eq!(*watched.get(), 22);
        // The value, and whether there is a line for the log.
        let looked = || {
            let mut state = watched.state.lock().expect("no panic");
            let line = watched.refresh(&mut state);
            (*state.value, line.is_some())
        };
        std::fs::write(&file, "none").expect("a file");
        assert_eq!([looked(), looked()], [(22, true), (22, false)]);
        std::fs::write(&file, "333").expect("a file");
        FAILS.store(true, Ordering::Relaxed);
        assert_eq!([looked(), looked()], [(22, true), (22, false)]);
        FAILS.store(false, Ordering::Relaxed);
        assert_eq!(looked(), (333, false), "the reason has passed, and the file is the same");
        std::fs::remove_file(&file).expect("a file");
        assert_eq!([looked(), looked()], [(333, true), (333, false)]);
        assert!(Watched::new(vec![file], number, &log).is_err());
    }
}
