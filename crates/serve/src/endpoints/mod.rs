//! Endpoints of the server. Each is one file, and one row of a table here.

mod arrays;
mod exchange;
mod health;
mod infer;
mod metrics;
mod model_config;
mod model_metadata;
mod model_ready;
mod plan;
mod profile;
mod repository;
mod sagemaker;
mod server_metadata;
mod statistics;

use crate::account::Account;
use crate::body::{Received, RequestBody};
use crate::protocol::short;
use crate::refusal::{Outcome, Refusal};
use crate::server::{Answer, Shared};
use hyper::{Method, Request, StatusCode};
use serde_json::Value;
use std::fmt::Display;
use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

/// Path of the server, and its handler.
struct Endpoint {
    method: Method,
    /// pattern in which `{model}` and `{version}` stand for any segment
    path: &'static str,
    answer: fn(EndpointCall) -> Answering,
}

type Answering = Pin<Box<dyn Future<Output = Result<Answer, Refusal>> + Send>>;

/// Request to an endpoint, with the segments of its path.
struct EndpointCall {
    shared: Arc<Shared>,
    request: Request<Received>,
    model: Option<String>,
    version: Option<String>,
}

/// Set of paths that a port serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paths {
    /// the paths for clients
    Open,
    /// the paths for clients and for operators
    Admin,
}

/// Endpoints for operators, served on the admin port.
static ADMIN: &[Endpoint] = &[
    Endpoint { method: Method::GET, path: "/v2/models/{model}/plan", answer: |call| Box::pin(plan::answer(call)) },
    Endpoint {
        method: Method::GET,
        path: "/v2/models/{model}/versions/{version}/plan",
        answer: |call| Box::pin(plan::answer(call)),
    },
    Endpoint { method: Method::POST, path: "/v2/profile", answer: |call| Box::pin(profile::answer(call)) },
];

/// Endpoints for clients.
static ENDPOINTS: &[Endpoint] = &[
    Endpoint { method: Method::GET, path: "/v2/health/live", answer: |call| done(health::live(&call)) },
    Endpoint { method: Method::GET, path: "/v2/health/ready", answer: |call| done(health::ready(&call)) },
    Endpoint { method: Method::GET, path: "/v2", answer: |call| done(server_metadata::answer(&call)) },
    Endpoint { method: Method::GET, path: "/v2/models/stats", answer: |call| done(statistics::answer(&call)) },
    Endpoint { method: Method::GET, path: "/v2/models/{model}", answer: |call| done(model_metadata::answer(&call)) },
    Endpoint {
        method: Method::GET,
        path: "/v2/models/{model}/versions/{version}",
        answer: |call| done(model_metadata::answer(&call)),
    },
    Endpoint {
        method: Method::GET,
        path: "/v2/models/{model}/config",
        answer: |call| done(model_config::answer(&call)),
    },
    Endpoint {
        method: Method::GET,
        path: "/v2/models/{model}/versions/{version}/config",
        answer: |call| done(model_config::answer(&call)),
    },
    Endpoint { method: Method::GET, path: "/v2/models/{model}/ready", answer: |call| done(model_ready::answer(&call)) },
    Endpoint {
        method: Method::GET,
        path: "/v2/models/{model}/versions/{version}/ready",
        answer: |call| done(model_ready::answer(&call)),
    },
    Endpoint { method: Method::GET, path: "/v2/models/{model}/stats", answer: |call| done(statistics::answer(&call)) },
    Endpoint {
        method: Method::GET,
        path: "/v2/models/{model}/versions/{version}/stats",
        answer: |call| done(statistics::answer(&call)),
    },
    Endpoint { method: Method::POST, path: "/v2/models/{model}/infer", answer: |call| Box::pin(infer::answer(call)) },
    Endpoint {
        method: Method::POST,
        path: "/v2/models/{model}/versions/{version}/infer",
        answer: |call| Box::pin(infer::answer(call)),
    },
    Endpoint { method: Method::POST, path: "/v2/repository/index", answer: |call| Box::pin(repository::index(call)) },
    Endpoint {
        method: Method::POST,
        path: "/v2/repository/models/{model}/load",
        answer: |call| Box::pin(repository::load(call)),
    },
    Endpoint {
        method: Method::POST,
        path: "/v2/repository/models/{model}/unload",
        answer: |call| Box::pin(repository::unload(call)),
    },
    Endpoint { method: Method::POST, path: "/models/{model}/infer", answer: |call| Box::pin(arrays::infer(call)) },
    Endpoint {
        method: Method::POST,
        path: "/models/{model}/versions/{version}/infer",
        answer: |call| Box::pin(arrays::infer(call)),
    },
    Endpoint { method: Method::POST, path: "/predictions/{model}", answer: |call| Box::pin(arrays::predictions(call)) },
    Endpoint { method: Method::GET, path: "/metrics", answer: |call| Box::pin(metrics::answer(call)) },
];

fn done(answer: Result<Answer, Refusal>) -> Answering {
    Box::pin(std::future::ready(answer))
}

/// Finds the endpoint of a request's path, and answers with it.
pub(crate) async fn route(shared: Arc<Shared>, request: Request<Received>, paths: Paths) -> Result<Answer, Refusal> {
    let path = request.uri().path();
    let words: Option<Vec<String>> = path.split('/').skip(1).map(decoded).collect();
    let words = words.ok_or_else(|| Refusal::invalid("the path is not text of UTF-8"))?;
    let words = match words.split_last() {
        Some((last, before)) if last.is_empty() => before,
        _ => &words[..],
    };
    let mut others: Vec<&str> = Vec::new();
    let admin = if paths == Paths::Admin { ADMIN } else { &[] };
    let of_sagemaker = sagemaker::endpoints(shared.service.config.sagemaker);
    for endpoint in ENDPOINTS.iter().chain(admin).chain(of_sagemaker) {
        let Some((model, version)) = matched(endpoint.path, words) else { continue };
        if endpoint.method == request.method() || (endpoint.method == Method::GET && request.method() == Method::HEAD) {
            let open = endpoint.path.starts_with("/v2/health/") || endpoint.path == sagemaker::PING;
            if let Err(refusal) = if open { Ok(()) } else { shared.check_token(request.headers()) } {
                // Otherwise the connection would end while the client still writes.
                let service = &shared.service;
                if let Ok(body) = RequestBody::new(request.into_body(), &service.config, &Account::open(&service.small))
                {
                    body.pass_over().await;
                }
                return Err(refusal);
            }
            return (endpoint.answer)(EndpointCall { shared, request, model, version }).await;
        }
        let takes: &[&str] = match endpoint.method {
            Method::GET => &["GET", "HEAD"],
            Method::DELETE => &["DELETE"],
            _ => &["POST"],
        };
        for method in takes {
            if !others.contains(method) {
                others.push(*method);
            }
        }
    }
    if others.is_empty() {
        return Err(Refusal::not_found("there is no such path; GET /v2 says what this server is"));
    }
    let takes = others.join(", ");
    let message = format!("this path takes {takes}, not {}", request.method());
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, Outcome::Invalid, message);
    Err(Refusal { allow: Some(takes), ..refusal })
}

/// Reads a number from the query of a request; `usual` if the query does not have it.
fn number<T: FromStr + PartialOrd + Display>(
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

/// Reads the body of a request as JSON. An empty body gives null.
async fn json_body(shared: &Shared, request: Request<Received>) -> Result<Value, Refusal> {
    let service = &shared.service;
    let account = Account::open(&service.small);
    let (head, body) = request.into_parts();
    let mut body = RequestBody::small(body, &service.config, &account)?;
    body.decode_by(&head.headers, &account)?;
    let bytes = body.take(None).await?;
    match bytes.len() {
        0 => Ok(Value::Null),
        _ => serde_json::from_slice(&bytes).map_err(|error| Refusal::invalid(format!("the body is no JSON: {error}"))),
    }
}

/// Returns the model and version in a path that matches the pattern; `None` if it does not match.
fn matched(pattern: &str, words: &[String]) -> Option<(Option<String>, Option<String>)> {
    let (mut model, mut version) = (None, None);
    let mut given = words.iter();
    for wanted in pattern.split('/').skip(1) {
        let word = given.next()?;
        match wanted {
            "{model}" => model = Some(word.clone()),
            "{version}" => version = Some(word.clone()),
            _ if wanted == word => {}
            _ => return None,
        }
    }
    given.next().is_none().then_some((model, version))
}

/// Decodes the escapes of a path segment. Returns `None` if an escape is wrong, or the result is
/// not UTF-8.
fn decoded(word: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_word_by_word() {
        let words = |path: &str| path.split('/').skip(1).map(str::to_owned).collect::<Vec<_>>();
        let pattern = "/v2/models/{model}/versions/{version}/infer";
        let found = matched(pattern, &words("/v2/models/a b/versions/3/infer"));
        assert_eq!(found, Some((Some("a b".to_owned()), Some("3".to_owned()))));
        for path in ["/v2/models/a/infer", "/v2/models/a/versions/3", "/v2/models/a/versions/3/infer/x", "/"] {
            assert_eq!(matched(pattern, &words(path)), None, "{path}");
        }
    }

    #[test]
    fn escapes_of_a_path_are_read_or_refused() {
        assert_eq!(decoded("a%20b%2Fc").as_deref(), Some("a b/c"));
        for word in ["%", "%2", "%zz", "%+1", "%ff", "a%c3"] {
            assert_eq!(decoded(word), None, "{word}");
        }
    }
}
