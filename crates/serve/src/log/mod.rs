//! Log of a server on the standard error: lines of text, or of JSON.

mod sink;

use crate::refusal::{Cause, Outcome};
use crate::status;
use serde_json::{Map, Value};
use sink::Sink;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogForm {
    /// text for people
    #[default]
    Text,
    /// one JSON object per line
    Json,
}

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// normal operation
    Info,
    /// an operator should look at it
    Warning,
    /// something does not work
    Error,
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// Log whose lines are written by a thread of its own, so that callers do not wait.
#[derive(Clone)]
pub(crate) struct Log {
    form: LogForm,
    /// whether each request has a line
    requests: bool,
    sink: Arc<LogWriter>,
}

/// Handle that ends the thread of the log when its last clone is dropped.
struct LogWriter(Arc<Sink>);

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Request that has ended.
pub(crate) struct Ended<'a> {
    pub(crate) model: &'a str,
    pub(crate) version: &'a str,
    /// id that the client gave it
    pub(crate) id: Option<&'a str>,
    /// header `traceparent` of the client
    pub(crate) trace: Option<&'a str>,
    /// cause of its refusal; none: it has results
    pub(crate) cause: Option<Cause>,
    /// message of the refusal
    pub(crate) reason: Option<&'a str>,
    pub(crate) time: Duration,
}

impl Ended<'_> {
    fn outcome(&self) -> Outcome {
        self.cause.map_or(Outcome::Success, Cause::outcome)
    }

    /// Returns the HTTP status, also for calls over gRPC.
    fn status(&self) -> u16 {
        self.cause.map_or(200, |cause| status::of_http(cause).as_u16())
    }

    fn level(&self) -> Level {
        match self.outcome() {
            Outcome::Success | Outcome::Invalid | Outcome::Cancelled => Level::Info,
            Outcome::Rejected | Outcome::Late | Outcome::Unavailable | Outcome::Memory => Level::Warning,
            Outcome::Failed | Outcome::Device | Outcome::Hook => Level::Error,
        }
    }
}

impl Log {
    pub(crate) fn new(form: LogForm, requests: bool) -> io::Result<Log> {
        Ok(Log { form, requests, sink: Arc::new(LogWriter(Sink::start(form)?)) })
    }

    pub(crate) fn line(&self, level: Level, words: &str) {
        self.sink.0.put(made(self.form, level, words, &[], SystemTime::now()));
    }

    /// Writes a line about a model.
    pub(crate) fn model(&self, level: Level, name: &str, words: &str) {
        self.sink.0.put(of_model(self.form, level, name, words));
    }

    /// Writes the line of a request, if requests are logged.
    pub(crate) fn request(&self, of: &Ended<'_>) {
        if !self.requests {
            return;
        }
        let mut facts: Vec<(&str, Value)> = vec![
            ("model", of.model.into()),
            ("version", of.version.into()),
            ("outcome", of.outcome().name().into()),
            ("status", of.status().into()),
            ("seconds", of.time.as_secs_f64().into()),
        ];
        facts.extend(of.reason.map(|reason| ("reason", reason.into())));
        facts.extend(of.id.map(|id| ("request", id.into())));
        facts.extend(of.trace.map(|trace| ("traceparent", trace.into())));
        self.sink.0.put(made(self.form, of.level(), "request", &facts, SystemTime::now()));
    }

    /// Waits until all lines are written, for at most this time.
    pub(crate) fn flush(&self, patience: Duration) {
        self.sink.0.flush(patience);
    }
}

/// Formats a line like those of a server, for programs that start one. The line is about a model if
/// one is named.
pub fn log_line(form: LogForm, level: Level, model: Option<&str>, words: &str) -> String {
    match model {
        Some(name) => of_model(form, level, name, words),
        None => made(form, level, words, &[], SystemTime::now()),
    }
}

fn of_model(form: LogForm, level: Level, name: &str, words: &str) -> String {
    let now = SystemTime::now();
    match form {
        LogForm::Text => made(form, level, &format!("model '{name}': {words}"), &[], now),
        LogForm::Json => made(form, level, words, &[("model", name.into())], now),
    }
}

fn made(form: LogForm, level: Level, words: &str, facts: &[(&str, Value)], now: SystemTime) -> String {
    match form {
        LogForm::Text => {
            let facts: String = facts.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            format!("mxrt serve: {words}{facts}\n")
        }
        LogForm::Json => {
            let mut line = Map::new();
            line.insert("time".to_owned(), time(now).into());
            line.insert("level".to_owned(), level.name().into());
            line.insert("message".to_owned(), words.into());
            line.extend(facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            format!("{}\n", Value::Object(line))
        }
    }
}

/// Formats a time in UTC, as RFC 3339 requires.
fn time(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Years begin in March here, so that a leap day is the last day of a year.
    let from_march = days + 719_468;
    let era = from_march / 146_097;
    let of_era = from_march % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let at = |seconds: u64| time(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7));
        assert_eq!(at(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59.007Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.007Z");
        assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59.007Z");
    }

    #[test]
    fn lines_have_the_form_that_is_wanted() {
        let facts = [("model", Value::from("a\"b"))];
        let line = |form| made(form, Level::Info, "loaded", &facts, UNIX_EPOCH);
        assert_eq!(line(LogForm::Text), "mxrt serve: loaded model=\"a\\\"b\"\n");
        assert_eq!(
            line(LogForm::Json),
            "{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"message\":\"loaded\",\"model\":\"a\\\"b\"}\n"
        );
    }
}
