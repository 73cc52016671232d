//! Counters and histograms, and their text for Prometheus.

use crate::refusal::Outcome;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Upper bounds of the buckets of times, in seconds.
const SECONDS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];
/// Upper bounds of the buckets of rows.
const ROWS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
/// Largest number of buckets of a histogram.
const MOST: usize = 16;

/// Distribution of times or numbers of rows.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// size of one unit of the sum
    unit: f64,
    buckets: [AtomicU64; MOST],
    count: AtomicU64,
    sum: AtomicU64,
}

impl Histogram {
    fn of_times() -> Histogram {
        Histogram::new(&SECONDS, 1e-9)
    }

    fn of_rows() -> Histogram {
        Histogram::new(&ROWS, 1.0)
    }

    fn new(bounds: &'static [f64], unit: f64) -> Histogram {
        Histogram { bounds, unit, buckets: Default::default(), count: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    /// Adds a time.
    pub(crate) fn add(&self, time: Duration) {
        self.put(time.as_secs_f64(), nanos(time));
    }

    /// Adds a number of rows.
    pub(crate) fn add_rows(&self, rows: usize) {
        self.put(rows as f64, rows as u64);
    }

    fn put(&self, value: f64, units: u64) {
        if let Some(bucket) = self.bounds.iter().position(|bound| value <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(units, Ordering::Relaxed);
    }

    /// Returns the number of values and their sum. The unit of times is a nanosecond.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.count.load(Ordering::Relaxed), self.sum.load(Ordering::Relaxed))
    }

    fn write(&self, name: &str, labels: &str, to: &mut String) {
        let mut below = 0;
        for (bound, bucket) in self.bounds.iter().zip(&self.buckets) {
            below += bucket.load(Ordering::Relaxed);
            let _ = writeln!(to, "{name}_bucket{{{labels},le=\"{bound:?}\"}} {below}");
        }
        let (count, sum) = self.totals();
        let _ = writeln!(to, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", count.max(below));
        let _ = writeln!(to, "{name}_sum{{{labels}}} {}", sum as f64 * self.unit);
        let _ = writeln!(to, "{name}_count{{{labels}}} {}", count.max(below));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Counters and histograms of one version of a model.
#[derive(Debug)]
pub(crate) struct ModelMetrics {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    /// rows of successful requests
    rows: AtomicU64,
    /// time from the head of a successful request to its response
    pub(crate) total: Histogram,
    /// time of requests that were not answered with results
    pub(crate) unsuccessful: Histogram,
    /// time for decoding requests
    pub(crate) decode: Histogram,
    /// time of waiting for a permit, and for other requests to join
    pub(crate) queue: Histogram,
    /// time of calls of the model
    pub(crate) compute: Histogram,
    /// numbers of rows of calls that joined several requests
    pub(crate) batch: Histogram,
    /// time for encoding responses
    pub(crate) encode: Histogram,
    /// time at which the last request ended, in milliseconds since 1970
    last: AtomicU64,
}

impl Default for ModelMetrics {
    fn default() -> ModelMetrics {
        ModelMetrics {
            outcomes: Default::default(),
            rows: AtomicU64::new(0),
            total: Histogram::of_times(),
            unsuccessful: Histogram::of_times(),
            decode: Histogram::of_times(),
            queue: Histogram::of_times(),
            compute: Histogram::of_times(),
            batch: Histogram::of_rows(),
            encode: Histogram::of_times(),
            last: AtomicU64::new(0),
        }
    }
}

impl ModelMetrics {
    /// Counts a request of `rows` rows that has ended.
    pub(crate) fn ended(&self, outcome: Outcome, rows: usize, time: Duration) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
        if outcome == Outcome::Success {
            self.rows.fetch_add(rows as u64, Ordering::Relaxed);
            self.total.add(time);
        } else {
            self.unsuccessful.add(time);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last.store(u64::try_from(now.as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    /// Returns the number of requests that ended with this outcome.
    pub(crate) fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].load(Ordering::Relaxed)
    }

    /// Returns the rows of successful requests.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Returns the time at which the last request ended, in milliseconds since 1970.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }
}

/// Gauge of the whole process.
pub(crate) struct Gauge {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) value: f64,
}

/// Row of a histogram that every model has: its name, its help text, and its field.
type ModelHistogram = (&'static str, &'static str, fn(&ModelMetrics) -> &Histogram);

const HISTOGRAMS: [ModelHistogram; 6] = [
    ("mxrt_request_seconds", "From the head of a request to its results.", |m| &m.total),
    ("mxrt_decode_seconds", "Reading the JSON of a request.", |m| &m.decode),
    ("mxrt_queue_seconds", "Waiting for a turn, and for others where requests are joined.", |m| &m.queue),
    ("mxrt_compute_seconds", "Calls of the model.", |m| &m.compute),
    ("mxrt_encode_seconds", "Writing the body of an answer.", |m| &m.encode),
    ("mxrt_batch_rows", "Rows of calls with the rows of several requests.", |m| &m.batch),
];

/// Exposition format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    /// text format of Prometheus
    Prometheus,
    /// text format of OpenMetrics
    OpenMetrics,
}

impl MetricsFormat {
    /// Returns the format that a client prefers by its header `Accept`.
    pub(crate) fn accepted(accept: &str) -> MetricsFormat {
        if accept.contains("application/openmetrics-text") {
            MetricsFormat::OpenMetrics
        } else {
            MetricsFormat::Prometheus
        }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            MetricsFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    fn head(self, to: &mut String, name: &str, kind: &str, help: &str) {
        let name = match self {
            MetricsFormat::Prometheus => name,
            MetricsFormat::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
        };
        let _ = writeln!(to, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }
}

/// Writes all metrics as text. `models` gives names, versions and metrics. Names may have any
/// characters.
pub(crate) fn text<'a>(
    form: MetricsFormat,
    models: impl Iterator<Item = (&'a str, &'a str, &'a ModelMetrics)> + Clone,
    gauges: &[Gauge],
) -> String {
    let mut to = String::new();
    let labels = |model: &str, version: &str| format!("model=\"{}\",version=\"{}\"", escaped(model), escaped(version));
    form.head(&mut to, "mxrt_requests_total", "counter", "Inference requests that ended, by outcome.");
    for (model, version, metrics) in models.clone() {
        for outcome in Outcome::ALL {
            let (labels, name, count) = (labels(model, version), outcome.name(), metrics.count(outcome));
            let _ = writeln!(to, "mxrt_requests_total{{{labels},outcome=\"{name}\"}} {count}");
        }
    }
    form.head(&mut to, "mxrt_rows_total", "counter", "Rows of inference requests that were answered with results.");
    for (model, version, metrics) in models.clone() {
        let _ = writeln!(to, "mxrt_rows_total{{{}}} {}", labels(model, version), metrics.rows());
    }
    for (name, help, of) in HISTOGRAMS {
        form.head(&mut to, name, "histogram", help);
        for (model, version, metrics) in models.clone() {
            of(metrics).write(name, &labels(model, version), &mut to);
        }
    }
    for gauge in gauges {
        form.head(&mut to, gauge.name, "gauge", gauge.help);
        let _ = writeln!(to, "{} {}", gauge.name, gauge.value);
    }
    if form == MetricsFormat::OpenMetrics {
        to.push_str("# EOF\n");
    }
    to
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
        metrics.ended(Outcome::Late, 2, Duration::from_secs(1));
        metrics.ended(Outcome::Success, 3, Duration::from_secs(1));
        let text = text(MetricsFormat::Prometheus, [("a\"b", "1", &metrics)].into_iter(), &[]);
        for line in [
            "mxrt_compute_seconds_bucket{model=\"a\\\"b\",version=\"1\",le=\"0.0001\"} 1",
            "mxrt_compute_seconds_bucket{model=\"a\\\"b\",version=\"1\",le=\"0.00025\"} 3",
            "mxrt_compute_seconds_bucket{model=\"a\\\"b\",version=\"1\",le=\"60.0\"} 3",
            "mxrt_compute_seconds_bucket{model=\"a\\\"b\",version=\"1\",le=\"+Inf\"} 4",
            "mxrt_compute_seconds_count{model=\"a\\\"b\",version=\"1\"} 4",
            "mxrt_requests_total{model=\"a\\\"b\",version=\"1\",outcome=\"late\"} 1",
            "mxrt_requests_total{model=\"a\\\"b\",version=\"1\",outcome=\"success\"} 1",
            "mxrt_rows_total{model=\"a\\\"b\",version=\"1\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn openmetrics_has_its_own_names_and_an_end() {
        let metrics = ModelMetrics::default();
        metrics.batch.add_rows(3);
        let text = text(
            MetricsFormat::accepted("application/openmetrics-text; version=1.0.0"),
            [("m", "1", &metrics)].into_iter(),
            &[],
        );
        assert!(text.contains("# TYPE mxrt_requests counter\nmxrt_requests_total{"), "{text}");
        assert!(text.contains("mxrt_batch_rows_bucket{model=\"m\",version=\"1\",le=\"4.0\"} 1\n"), "{text}");
        assert!(text.contains("mxrt_batch_rows_sum{model=\"m\",version=\"1\"} 3\n"), "{text}");
        assert!(text.ends_with("\n# EOF\n"));
        assert_eq!(MetricsFormat::accepted("*/*"), MetricsFormat::Prometheus);
    }
}
