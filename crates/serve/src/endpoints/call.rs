//! Requests to endpoints, and what endpoints read from them.

use crate::account::Account;
use crate::answer::Answer;
use crate::body::{Received, RequestBody};
use crate::protocol::short;
use crate::refusal::Refusal;
use crate::shared::Shared;
use hyper::{Method, Request};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

/// Path of the server, and its handler.
pub(super) struct Endpoint {
    pub(super) method: Method,
    /// pattern in which `{model}` and `{version}` stand for any segment; a part in brackets may be
    /// left out
    pub(super) path: &'static str,
    pub(super) answer: fn(EndpointCall) -> Answering,
}

pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Answer, Refusal>> + Send>>;

/// Request to an endpoint, with the segments of its path.
pub(super) struct EndpointCall {
    pub(super) shared: Arc<Shared>,
    pub(super) request: Request<Received>,
    pub(super) model: Option<String>,
    pub(super) version: Option<String>,
}

/// Answers at once.
pub(super) fn done(answer: Result<Answer, Refusal>) -> Answering {
    Box::pin(std::future::ready(answer))
}

/// Reads a number from the query of a request; `usual` if the query does not have it.
pub(super) fn number<T: FromStr + PartialOrd + Display>(
    request: &Request<Received>,
    name: &str,
    usual: T,
    range: RangeInclusive<T>,
) -> Result<T, Refusal> {
    let mut parts = request.uri().query().unwrap_or_default().split('&').filter_map(|part| part.split_once('='));
    let Some((_, text)) = parts.find(|(said, _)| *said == name) else { return Ok(usual) };
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        Refusal::invalid(format!("{name} is '{}'; expected a number from {least} to {most}", short(text)))
    })
}

/// Reads the body of a request as an object of JSON. An empty body gives one without members.
pub(super) async fn json_body(shared: &Shared, request: Request<Received>) -> Result<Map<String, Value>, Refusal> {
    let service = &shared.service;
    let account = Account::open(&service.small);
    let (head, body) = request.into_parts();
    let mut body = RequestBody::small(body, &service.config, &account)?;
    body.decode_by(&head.headers, &account)?;
    let bytes = body.take(None).await?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(&bytes).map_err(|error| no_json(&bytes, &error))? {
        Value::Object(members) => Ok(members),
        other => Err(Refusal::invalid(format!("the body has to be a JSON object, not {}", short(&other.to_string())))),
    }
}

/// Makes the refusal of a body that is no JSON. Clients of Triton compare its first sentence, which
/// gives the place as a number of bytes.
fn no_json(body: &[u8], error: &serde_json::Error) -> Refusal {
    let lines = body.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    let at = lines.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
    let words = if error.is_eof() { "The document ends early." } else { "Invalid value." };
    Refusal::invalid(format!("failed to parse the request JSON buffer: {words} at {at} ({error})"))
}
