//! Paths of Amazon SageMaker: `/ping` and `/invocations`, and, for an endpoint of several models,
//! the calls below `/models` by which the platform loads, lists and unloads them.

use super::arrays::{self, ResponseFormat};
use super::call::{Answering, Endpoint, EndpointCall, done, json_body, number};
use super::exchange::Exchange;
use super::health;
use super::infer::{self, LengthOfJson};
use crate::answer::Answer;
use crate::background::{JobKind, LONG};
use crate::model::Model;
use crate::preferences::preferences;
use crate::protocol::request::InferRequest;
use crate::protocol::{forms, recordio, short};
use crate::refusal::{Cause, Refusal};
use crate::service::{Change, Schedule};
use crate::settings::SageMaker;
use hyper::header::ACCEPT;
use hyper::{HeaderMap, Method};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// Path that is answered without a token.
pub(super) const PING: &str = "/ping";
/// Number of models that a page of the list has if the request gives none, and at most.
const PAGE: usize = 100;
const LARGEST_PAGE: usize = 1000;

/// Endpoints of a container with one model.
static ONE: &[Endpoint] = &[
    Endpoint { method: Method::GET, path: PING, answer: |call| done(health::ready(&call)) },
    Endpoint { method: Method::POST, path: "/invocations", answer: |call| invocations(call) },
    Endpoint { method: Method::POST, path: "/models", answer: |call| Box::pin(refuse_load(call)) },
];

/// Endpoints of a container whose models come and go.
static MANY: &[Endpoint] = &[
    Endpoint { method: Method::GET, path: PING, answer: |call| done(health::ready(&call)) },
    Endpoint { method: Method::GET, path: "/models", answer: |call| done(list(&call)) },
    Endpoint { method: Method::POST, path: "/models", answer: |call| Box::pin(load(call)) },
    Endpoint { method: Method::GET, path: "/models/{model}", answer: |call| done(describe(&call)) },
    Endpoint { method: Method::DELETE, path: "/models/{model}", answer: |call| Box::pin(unload(call)) },
    Endpoint { method: Method::POST, path: "/models/{model}/invoke", answer: |call| Box::pin(invoke(call)) },
];

/// Returns the endpoints that a server has for SageMaker.
pub(super) fn endpoints(role: SageMaker) -> &'static [Endpoint] {
    match role {
        SageMaker::Off => &[],
        SageMaker::Model => ONE,
        SageMaker::Models => MANY,
    }
}

fn invocations(mut call: EndpointCall) -> Answering {
    let catalog = call.shared.service.repository.catalog();
    let mut names = catalog.models.keys();
    match (names.next(), names.next()) {
        (Some(only), None) => call.model = Some(only.clone()),
        _ => {
            let words = "the server has several models, and /invocations names none: serve one model";
            return done(Err(Refusal::invalid(words)));
        }
    }
    drop(catalog);
    Box::pin(invoke(call))
}

async fn invoke(call: EndpointCall) -> Result<Answer, Refusal> {
    let (mut exchange, model) = Exchange::begin(call).await?;
    let result = match model {
        Ok(model) => invoked(&mut exchange, model).await,
        Err(refusal) => Err(refusal),
    };
    exchange.end(result).await
}

/// Answers a request of the protocol, as clients of Triton send it, or a file.
async fn invoked(exchange: &mut Exchange, model: Arc<Model>) -> Result<Answer, Refusal> {
    const LENGTH: LengthOfJson = LengthOfJson::ContentType;
    if infer::is_binary_json(exchange.content_type()) {
        return infer::from_body(exchange, model, LENGTH).await;
    }
    // A hook may write what the server does not.
    let form = match wanted(&exchange.head.headers) {
        Err(refusal) if !model.hooks_bodies => return Err(refusal),
        form => form,
    };
    let is_json = forms::is_json(exchange.content_type());
    let body = exchange.body.take(None).await?;
    if model.hooks_bodies || !is_json {
        return arrays::from_bytes(exchange, model, body, form).await;
    }
    let (body, is_request) = detect_request(exchange, body).await?;
    if is_request {
        infer::from_json(exchange, model, LENGTH, body, true).await
    } else {
        arrays::from_bytes(exchange, model, body, form).await
    }
}

/// Returns JSON, and whether it is a request of the protocol.
async fn detect_request(exchange: &Exchange, json: Vec<u8>) -> Result<(Vec<u8>, bool), Refusal> {
    let (inference, of_model) = (&exchange.inference, Schedule::default());
    let is_long = json.len() > LONG;
    let detect = move || {
        let is_request = InferRequest::is_in(&json);
        Ok((json, is_request))
    };
    if !is_long {
        return detect();
    }
    inference.admit(of_model)?;
    inference.background(JobKind::Coding, of_model, detect).await
}

/// Returns the form of the response that the client prefers.
fn wanted(headers: &HeaderMap) -> Result<ResponseFormat, Refusal> {
    let Some(accept) = headers.get(ACCEPT) else { return Ok(ResponseFormat::Lists) };
    let accept = accept.to_str().unwrap_or_default();
    let kinds = preferences(headers, ACCEPT);
    let form = kinds.into_iter().find_map(|(kind, _)| match kind.to_ascii_lowercase().as_str() {
        "" | "*/*" | "application/*" | "application/json" => Some(ResponseFormat::Lists),
        "application/x-npy" => Some(ResponseFormat::Numpy),
        "text/*" | "text/csv" => Some(ResponseFormat::Csv),
        kind if recordio::is_recordio(kind) => Some(ResponseFormat::Records),
        _ => None,
    });
    form.ok_or_else(|| {
        let words = "the answer is there as application/json, application/x-npy, text/csv or";
        let message = format!("{words} {}, and not as '{}' (Accept)", recordio::CONTENT_TYPE, short(accept));
        Refusal::new(Cause::NotAcceptable, message)
    })
}

fn list(call: &EndpointCall) -> Result<Answer, Refusal> {
    let from = number(&call.request, "next_page_token", 0, 0..=usize::MAX)?;
    let most = number(&call.request, "limit", PAGE, 1..=LARGEST_PAGE)?;
    let all = call.shared.service.repository.given_paths();
    let page: Vec<Value> = all.iter().skip(from).take(most).map(described).collect();
    let next = from.saturating_add(page.len());
    let mut answer = json!({ "models": page });
    if next < all.len() {
        answer["nextPageToken"] = json!(next.to_string());
    }
    Ok(Answer::json(&answer))
}

/// Describes a model. The platform's folder of a model has its name and is listed as it was loaded,
/// which clients of SageMaker's toolkit compare. Of others, the last part `model` is left out, which
/// those of Triton compare.
fn described((name, path): &(String, PathBuf)) -> Value {
    let outer = path.parent().filter(|_| path.ends_with("model"));
    let folder = outer.filter(|outer| !outer.ends_with(name)).unwrap_or(path);
    json!({ "modelName": name, "modelUrl": folder.display().to_string() })
}

fn describe(call: &EndpointCall) -> Result<Answer, Refusal> {
    let name = call.model.as_deref().unwrap_or_default();
    let all = call.shared.service.repository.given_paths();
    let found = all.iter().find(|(known, _)| known == name);
    let found = found.ok_or_else(|| Refusal::not_found(format!("the model '{}' is not loaded", short(name))))?;
    Ok(Answer::json(&described(found)))
}

async fn load(call: EndpointCall) -> Result<Answer, Refusal> {
    let asked = json_body(&call.shared, call.request).await?;
    let text = |key: &str| {
        let value = asked.get(key).and_then(Value::as_str).filter(|value| !value.is_empty());
        value.map(str::to_owned).ok_or_else(|| Refusal::invalid(format!("expected an object with a text '{key}'")))
    };
    let (name, url) = (text("model_name")?, text("url")?);
    let path = PathBuf::from(url.strip_prefix("file://").unwrap_or(&url));
    call.shared.service.change(name.clone(), Change::Take(path.clone())).await?;
    let mut answer = described(&(name, path));
    // The words of MXNet Model Server, which clients of SageMaker's toolkit compare.
    answer["status"] = json!("Workers scaled");
    Ok(Answer::json(&answer))
}

/// Refuses another model, after a check of the request.
async fn refuse_load(call: EndpointCall) -> Result<Answer, Refusal> {
    json_body(&call.shared, call.request).await?;
    let message = "this container serves one model; with SAGEMAKER_MULTI_MODEL=true it loads others";
    Err(Refusal::new(Cause::Conflict, message))
}

async fn unload(call: EndpointCall) -> Result<Answer, Refusal> {
    let name = call.model.unwrap_or_default();
    call.shared.service.change(name.clone(), Change::Forget).await?;
    Ok(Answer::json(&json!({ "status": format!("Model \"{name}\" unregistered") })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn clients_of_the_toolkit_and_of_triton_find_the_addresses_that_they_compare() {
        let listed = |name: &str, path: &str| described(&(name.into(), path.into()))["modelUrl"].clone();
        assert_eq!(listed("resnet_152", "/opt/ml/models/resnet_152/model"), "/opt/ml/models/resnet_152/model");
        assert_eq!(listed("sm_mme_model_1", "/opt/ml/models/123abc/model"), "/opt/ml/models/123abc");
        assert_eq!(listed("a", "/models/b"), "/models/b");
    }

    #[test]
    fn a_client_gets_the_form_that_it_prefers() {
        let form = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            wanted(&headers)
        };
        assert!(matches!(wanted(&HeaderMap::new()), Ok(ResponseFormat::Lists)));
        assert!(matches!(form("*/*"), Ok(ResponseFormat::Lists)));
        assert!(matches!(form("image/png, application/X-NPY;q=0.5"), Ok(ResponseFormat::Numpy)));
        assert!(matches!(form("text/csv"), Ok(ResponseFormat::Csv)));
        assert!(matches!(form("text/csv;q=0.5, application/json"), Ok(ResponseFormat::Lists)));
        assert!(matches!(form("text/csv;q=0, application/x-npy;q=0.1"), Ok(ResponseFormat::Numpy)));
        assert_eq!(form("image/png").err().map(|refusal| refusal.cause), Some(Cause::NotAcceptable));
    }
}
