//! Thread that writes log lines. If the reader of the standard error is stuck, lines are dropped
//! and counted, and no caller waits.

use super::{Level, LogForm, made};
use mxrt_engine::start_thread;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Bounds on the lines that wait to be written: their number, and below it their bytes.
const MOST_LINES: usize = 8192;
const MOST_BYTES: usize = 4 << 20;

/// Queue of lines for the thread.
pub(super) struct Sink {
    state: Mutex<SinkState>,
    /// notified when there are lines to write
    filled: Condvar,
    /// notified when lines have been written
    emptied: Condvar,
}

#[derive(Default)]
struct SinkState {
    lines: VecDeque<String>,
    bytes: usize,
    /// number of lines dropped since the thread last took lines
    lost: u64,
    writing: bool,
    ended: bool,
}

impl Sink {
    pub(super) fn start(form: LogForm) -> io::Result<Arc<Sink>> {
        Sink::start_with(form, |lines| {
            // An error means that the reader closed the standard error, so nobody misses the lines.
            let _ = io::stderr().write_all(lines);
        })
    }

    fn start_with(form: LogForm, write: impl Fn(&[u8]) + Send + 'static) -> io::Result<Arc<Sink>> {
        let sink = Arc::new(Sink { state: Mutex::default(), filled: Condvar::new(), emptied: Condvar::new() });
        let of_thread = sink.clone();
        let started = start_thread("mxrt-log", move || {
            while let Some(lines) = of_thread.take(form) {
                write(lines.as_bytes());
                of_thread.written();
            }
        });
        started.map(|_| sink).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    fn state(&self) -> MutexGuard<'_, SinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, line: String) {
        let mut state = self.state();
        if state.lines.len() >= MOST_LINES || state.bytes + line.len() > MOST_BYTES {
            state.lost += 1;
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line);
        self.filled.notify_one();
    }

    /// Waits for a line, and takes all lines that are queued. Returns `None` at the end.
    fn take(&self, form: LogForm) -> Option<String> {
        let mut state = self.state();
        while state.lines.is_empty() {
            if state.ended {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut all: String = state.lines.drain(..).collect();
        if state.lost > 0 {
            let words = format!("{} lines were lost: nobody read them in time", state.lost);
            all.push_str(&made(form, Level::Warning, &words, &[], SystemTime::now()));
        }
        (state.bytes, state.lost, state.writing) = (0, 0, true);
        Some(all)
    }

    fn written(&self) {
        self.state().writing = false;
        self.emptied.notify_all();
    }

    pub(super) fn flush(&self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut state = self.state();
        while !state.lines.is_empty() || state.writing {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.emptied.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the thread after it has written the queued lines.
    pub(super) fn end(&self) {
        self.state().ended = true;
        self.filled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn nobody_waits_where_lines_are_not_read() {
        let (written, lines) = mpsc::channel::<String>();
        let (begun, begins) = mpsc::channel::<()>();
        let (go, wait) = mpsc::channel::<()>();
        let sink = Sink::start_with(LogForm::Text, move |bytes| {
            let _ = begun.send(());
            let _ = wait.recv();
            let _ = written.send(String::from_utf8_lossy(bytes).into_owned());
        });
        let sink = sink.expect("a thread");
        sink.put("0\n".to_owned());
        begins.recv().expect("the thread");
        // The thread holds one line, so the others meet the same queue.
        for number in 1..3 * MOST_LINES {
            sink.put(format!("{number}\n"));
        }
        sink.flush(Duration::from_millis(1));
        go.send(()).expect("the thread");
        assert_eq!(lines.recv().expect("a line"), "0\n");
        go.send(()).expect("the thread");
        let rest = lines.recv().expect("lines");
        assert!(rest.starts_with("1\n2\n"), "those that came first are there");
        assert!(rest.contains(&format!("{} lines were lost", 2 * MOST_LINES - 1)), "{}", rest.lines().last().unwrap());
        sink.put("last\n".to_owned());
        go.send(()).expect("the thread");
        sink.flush(Duration::from_secs(60));
        assert_eq!(lines.recv().expect("a line"), "last\n");
        sink.end();
    }
}
