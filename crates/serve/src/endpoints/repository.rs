//! Index of the repository, and loading and unloading of its models.

use super::call::{EndpointCall, json_body};
use crate::answer::Answer;
use crate::protocol::short;
use crate::refusal::Refusal;
use crate::service::Change;
use serde_json::{Map, Value, json};

/// Answers with all models and their state. With `{"ready": true}` lists only those that serve.
pub(super) async fn index(call: EndpointCall) -> Result<Answer, Refusal> {
    let asked = json_body(&call.shared, call.request).await?;
    let ready = match asked.get("ready") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(ready)) => *ready,
        Some(other) => return Err(wrong_member("ready", "true or false", other)),
    };
    let mut entries = call.shared.service.index();
    entries.retain(|entry| !ready || entry.state == "READY");
    Ok(Answer::json(&json!(entries)))
}

pub(super) async fn load(call: EndpointCall) -> Result<Answer, Refusal> {
    change(call, Change::Load, &[]).await
}

pub(super) async fn unload(call: EndpointCall) -> Result<Answer, Refusal> {
    // Clients always send it. Models do not depend on each other here.
    change(call, Change::Unload, &["unload_dependents"]).await
}

async fn change(call: EndpointCall, change: Change, parameters: &[&str]) -> Result<Answer, Refusal> {
    let asked = json_body(&call.shared, call.request).await?;
    let none = Map::new();
    let given = match asked.get("parameters") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(given)) => given,
        Some(other) => return Err(wrong_member("parameters", "an object", other)),
    };
    if let Some(name) = given.keys().find(|name| !parameters.contains(&name.as_str())) {
        return Err(Refusal::invalid(format!("the parameter '{}' is not supported", short(name))));
    }
    call.shared.service.change(call.model.unwrap_or_default(), change).await?;
    Ok(Answer::json(&json!({})))
}

fn wrong_member(name: &str, expected: &str, given: &Value) -> Refusal {
    Refusal::invalid(format!("'{name}' has to be {expected}, not {}", short(&given.to_string())))
}
