//! Counters and histograms, and their text for Prometheus.

use crate::refusal::Outcome;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Upper bounds of the buckets, in seconds.
const BOUNDS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// Times, by size.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Histogram {
    pub(crate) fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        if let Some(bucket) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos(time), Ordering::Relaxed);
    }

    /// How many, and their sum in nanoseconds.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.count.load(Ordering::Relaxed), self.nanos.load(Ordering::Relaxed))
    }

    fn write(&self, name: &str, labels: &str, to: &mut String) {
        let mut below = 0;
        for (bound, bucket) in BOUNDS.iter().zip(&self.buckets) {
            below += bucket.load(Ordering::Relaxed);
            let _ = writeln!(to, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
        }
        let (count, nanos) = self.totals();
        let _ = writeln!(to, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", count.max(below));
        let _ = writeln!(to, "{name}_sum{{{labels}}} {}", nanos as f64 / 1e9);
        let _ = writeln!(to, "{name}_count{{{labels}}} {}", count.max(below));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What is counted for one version of a model.
#[derive(Debug, Default)]
pub(crate) struct ModelMetrics {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    /// from the head of a request to its answer
    pub(crate) total: Histogram,
    /// of requests that were not answered with results
    pub(crate) unsuccessful: Histogram,
    /// reading JSON
    pub(crate) decode: Histogram,
    /// waiting for a core, and computing
    pub(crate) compute: Histogram,
    /// writing answers
    pub(crate) encode: Histogram,
    /// calls with the rows of several requests, and those rows
    batches: AtomicU64,
    batched_rows: AtomicU64,
    /// milliseconds since 1970
    last: AtomicU64,
}

impl ModelMetrics {
    /// A request has ended.
    pub(crate) fn ended(&self, outcome: Outcome, time: Duration) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
        let histogram = if outcome == Outcome::Success { &self.total } else { &self.unsuccessful };
        histogram.add(time);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last.store(u64::try_from(now.as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    /// A call with so many rows of several requests has ended.
    pub(crate) fn batch_rows(&self, rows: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.batched_rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Requests that ended so.
    pub(crate) fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].load(Ordering::Relaxed)
    }

    /// When the last request ended, in milliseconds since 1970.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }
}

/// One number of the process.
pub(crate) struct Gauge {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) value: f64,
}

/// A histogram of every model: its name, what it measures, and where it is.
type ModelHistogram = (&'static str, &'static str, fn(&ModelMetrics) -> &Histogram);

const HISTOGRAMS: [ModelHistogram; 4] = [
    ("mxrt_request_seconds", "From the head of a request to its results.", |m| &m.total),
    ("mxrt_decode_seconds", "Reading the JSON of a request.", |m| &m.decode),
    ("mxrt_compute_seconds", "Waiting for a core, and computing.", |m| &m.compute),
    ("mxrt_encode_seconds", "Writing the body of an answer.", |m| &m.encode),
];

/// A counter of every model: its name, what it counts, and where it is.
type ModelCounter = (&'static str, &'static str, fn(&ModelMetrics) -> &AtomicU64);

const COUNTERS: [ModelCounter; 2] = [
    ("mxrt_batches_total", "Calls with the rows of several requests.", |m| &m.batches),
    ("mxrt_batched_rows_total", "Rows of such calls.", |m| &m.batched_rows),
];

/// The text of all metrics. `models` are names, versions and what is counted; names may hold any
/// characters.
pub(crate) fn text<'a>(
    models: impl Iterator<Item = (&'a str, &'a str, &'a ModelMetrics)> + Clone,
    gauges: &[Gauge],
) -> String {
    let mut to = String::new();
    let labels = |model: &str, version: &str| format!("model=\"{}\",version=\"{}\"", escaped(model), escaped(version));
    head(&mut to, "mxrt_requests_total", "counter", "Inference requests that ended, by outcome.");
    for (model, version, metrics) in models.clone() {
        for outcome in Outcome::ALL {
            let (labels, name, count) = (labels(model, version), outcome.name(), metrics.count(outcome));
            let _ = writeln!(to, "mxrt_requests_total{{{labels},outcome=\"{name}\"}} {count}");
        }
    }
    for (name, help, of) in HISTOGRAMS {
        head(&mut to, name, "histogram", help);
        for (model, version, metrics) in models.clone() {
            of(metrics).write(name, &labels(model, version), &mut to);
        }
    }
    for (name, help, of) in COUNTERS {
        head(&mut to, name, "counter", help);
        for (model, version, metrics) in models.clone() {
            let _ = writeln!(to, "{name}{{{}}} {}", labels(model, version), of(metrics).load(Ordering::Relaxed));
        }
    }
    for gauge in gauges {
        head(&mut to, gauge.name, "gauge", gauge.help);
        let _ = writeln!(to, "{} {}", gauge.name, gauge.value);
    }
    to
}

fn head(to: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(to, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up() {
        let metrics = ModelMetrics::default();
        for micros in [50, 200, 200, 90_000_000] {
            metrics.compute.add(Duration::from_micros(micros));
        }
        metrics.ended(Outcome::Late, Duration::from_secs(1));
        let text = text([("a\"b", "1", &metrics)].into_iter(), &[]);
        for line in [
            "mxrt_compute_seconds_bucket{model=\"a\\\"b\",version=\"1\",le=\"0.0001\"} 1",
            "mxrt_compute_seconds_bucket{model=\"a\\\"b\",version=\"1\",le=\"0.00025\"} 3",
            "mxrt_compute_seconds_bucket{model=\"a\\\"b\",version=\"1\",le=\"60\"} 3",
            "mxrt_compute_seconds_bucket{model=\"a\\\"b\",version=\"1\",le=\"+Inf\"} 4",
            "mxrt_compute_seconds_count{model=\"a\\\"b\",version=\"1\"} 4",
            "mxrt_requests_total{model=\"a\\\"b\",version=\"1\",outcome=\"late\"} 1",
            "mxrt_requests_total{model=\"a\\\"b\",version=\"1\",outcome=\"success\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
