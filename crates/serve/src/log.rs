//! What a server says of itself, on the standard error: lines of text, or of JSON.

use crate::refusal::Outcome;
use serde_json::{Map, Value};
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The form of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogForm {
    /// for people
    #[default]
    Text,
    /// an object each
    Json,
}

/// Writes lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Log {
    pub(crate) form: LogForm,
    /// a line for each request
    pub(crate) requests: bool,
}

/// A request that has ended.
pub(crate) struct Ended<'a> {
    pub(crate) model: &'a str,
    pub(crate) version: &'a str,
    /// as the client named it
    pub(crate) id: Option<&'a str>,
    /// header `traceparent` of the client
    pub(crate) trace: Option<&'a str>,
    pub(crate) outcome: Outcome,
    pub(crate) time: Duration,
}

impl Log {
    pub(crate) fn line(self, words: &str) {
        self.write(words, &[]);
    }

    /// Of a model.
    pub(crate) fn model(self, name: &str, words: &str) {
        match self.form {
            LogForm::Text => self.line(&format!("model '{name}': {words}")),
            LogForm::Json => self.write(words, &[("model", name.into())]),
        }
    }

    /// Of a request, where each has a line.
    pub(crate) fn request(self, of: &Ended<'_>) {
        if !self.requests {
            return;
        }
        let mut facts: Vec<(&str, Value)> = vec![
            ("model", of.model.into()),
            ("version", of.version.into()),
            ("outcome", of.outcome.name().into()),
            ("seconds", of.time.as_secs_f64().into()),
        ];
        facts.extend(of.id.map(|id| ("request", id.into())));
        facts.extend(of.trace.map(|trace| ("traceparent", trace.into())));
        self.write("request", &facts);
    }

    fn write(self, words: &str, facts: &[(&str, Value)]) {
        let line = self.made(words, facts, SystemTime::now());
        // Who closed it does not want to read.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn made(self, words: &str, facts: &[(&str, Value)], now: SystemTime) -> String {
        match self.form {
            LogForm::Text => {
                let facts: String = facts.iter().map(|(name, value)| format!(" {name}={value}")).collect();
                format!("mxrt serve: {words}{facts}\n")
            }
            LogForm::Json => {
                let mut line = Map::new();
                line.insert("time".to_owned(), time(now).into());
                line.insert("message".to_owned(), words.into());
                line.extend(facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
                format!("{}\n", Value::Object(line))
            }
        }
    }
}

/// The time of day in UTC, as RFC 3339 writes it.
fn time(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Years begin in March here, so that the day that is not always there is the last one.
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
        let line = |form| Log { form, requests: true }.made("loaded", &facts, UNIX_EPOCH);
        assert_eq!(line(LogForm::Text), "mxrt serve: loaded model=\"a\\\"b\"\n");
        assert_eq!(
            line(LogForm::Json),
            "{\"time\":\"1970-01-01T00:00:00.000Z\",\"message\":\"loaded\",\"model\":\"a\\\"b\"}\n"
        );
    }
}
