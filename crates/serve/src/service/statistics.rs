//! Statistics of models, in the form of the protocol's extension.

use crate::metrics::{Histogram, ModelMetrics};
use serde::Serialize;

/// Counts and times of one version of a model.
#[derive(Serialize)]
pub(crate) struct ModelStatistics {
    pub(crate) name: String,
    pub(crate) version: String,
    /// end of the last request, in milliseconds since 1970
    pub(crate) last_inference: u64,
    /// rows of successful requests
    pub(crate) inference_count: u64,
    /// calls of the model, each with the rows of one request or several
    pub(crate) execution_count: u64,
    pub(crate) inference_stats: InferenceStatistics,
}

/// Times of requests and of their parts.
#[derive(Serialize)]
pub(crate) struct InferenceStatistics {
    pub(crate) success: Totals,
    pub(crate) fail: Totals,
    pub(crate) queue: Totals,
    pub(crate) compute_input: Totals,
    pub(crate) compute_infer: Totals,
    pub(crate) compute_output: Totals,
}

/// Number of events, and the sum of their times.
#[derive(Serialize)]
pub(crate) struct Totals {
    pub(crate) count: u64,
    /// sum of times, in nanoseconds
    pub(crate) ns: u64,
}

impl Totals {
    fn of(histogram: &Histogram) -> Totals {
        let (count, ns) = histogram.totals();
        Totals { count, ns }
    }
}

impl ModelStatistics {
    pub(crate) fn of(name: &str, version: &str, metrics: &ModelMetrics) -> ModelStatistics {
        ModelStatistics {
            name: name.to_owned(),
            version: version.to_owned(),
            last_inference: metrics.last(),
            inference_count: metrics.rows(),
            execution_count: metrics.compute.totals().0,
            inference_stats: InferenceStatistics {
                success: Totals::of(&metrics.total),
                fail: Totals::of(&metrics.unsuccessful),
                queue: Totals::of(&metrics.queue),
                compute_input: Totals::of(&metrics.decode),
                compute_infer: Totals::of(&metrics.compute),
                compute_output: Totals::of(&metrics.encode),
            },
        }
    }
}
