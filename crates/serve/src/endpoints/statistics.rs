//! What was counted for models, as the protocol's extension has it.

use super::Call;
use crate::metrics::Histogram;
use crate::model::Model;
use crate::refusal::{Outcome, Refusal};
use crate::server::Answer;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn answer(call: &Call) -> Result<Answer, Refusal> {
    let models: Vec<&Arc<Model>> = match (call.model.as_deref(), call.version.as_deref()) {
        (None, _) => call.shared.repository.all().collect(),
        (Some(name), None) => call.shared.repository.versions(name)?.iter().collect(),
        (Some(name), version) => vec![call.shared.repository.find(name, version)?],
    };
    let stats: Vec<Value> = models.into_iter().map(|model| of_model(model)).collect();
    Ok(Answer::json(&json!({ "model_stats": stats })))
}

fn of_model(model: &Model) -> Value {
    let metrics = &model.metrics;
    let successes = metrics.count(Outcome::Success);
    json!({
        "name": model.name,
        "version": model.version,
        "last_inference": metrics.last(),
        "inference_count": successes,
        "execution_count": successes,
        "inference_stats": {
            "success": totals(&metrics.total),
            "fail": totals(&metrics.unsuccessful),
            "compute_input": totals(&metrics.decode),
            "compute_infer": totals(&metrics.compute),
            "compute_output": totals(&metrics.encode),
        },
    })
}

fn totals(histogram: &Histogram) -> Value {
    let (count, ns) = histogram.totals();
    json!({ "count": count, "ns": ns })
}
