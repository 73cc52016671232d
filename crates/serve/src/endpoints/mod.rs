//! Endpoints of the server. Each is one file, and one row of a table here.

mod absent;
mod arrays;
mod call;
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
use crate::answer::Answer;
use crate::body::{Received, RequestBody};
use crate::refusal::{Cause, Refusal};
use crate::service::Service;
use crate::shared::Shared;
use call::{Endpoint, EndpointCall, done};
use hyper::{Method, Request};
use std::sync::Arc;

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
    Endpoint {
        method: Method::GET,
        path: "/v2/models/{model}[/versions/{version}]/plan",
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
    Endpoint {
        method: Method::GET,
        path: "/v2/models/{model}[/versions/{version}]",
        answer: |call| done(model_metadata::answer(&call)),
    },
    Endpoint {
        method: Method::GET,
        path: "/v2/models/{model}[/versions/{version}]/config",
        answer: |call| done(model_config::answer(&call)),
    },
    Endpoint {
        method: Method::GET,
        path: "/v2/models/{model}[/versions/{version}]/ready",
        answer: |call| done(model_ready::answer(&call)),
    },
    Endpoint {
        method: Method::GET,
        path: "/v2/models/{model}[/versions/{version}]/stats",
        answer: |call| done(statistics::answer(&call)),
    },
    Endpoint {
        method: Method::POST,
        path: "/v2/models/{model}[/versions/{version}]/infer",
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
    Endpoint {
        method: Method::POST,
        path: "/models/{model}[/versions/{version}]/infer",
        answer: |call| Box::pin(arrays::infer(call)),
    },
    Endpoint { method: Method::POST, path: "/predictions/{model}", answer: |call| Box::pin(arrays::predictions(call)) },
    // What `curl -T image.jpg` sends.
    Endpoint { method: Method::PUT, path: "/predictions/{model}", answer: |call| Box::pin(arrays::predictions(call)) },
    Endpoint { method: Method::GET, path: "/metrics", answer: |call| Box::pin(metrics::answer(call)) },
];

/// Finds the endpoint of a request's path, and answers with it.
pub(crate) async fn route(shared: Arc<Shared>, request: Request<Received>, paths: Paths) -> Result<Answer, Refusal> {
    let words = path_words(request.uri().path())?;
    let mut others: Vec<&str> = Vec::new();
    let admin = if paths == Paths::Admin { ADMIN } else { &[] };
    let of_sagemaker = sagemaker::endpoints(shared.service.config.sagemaker);
    for endpoint in ENDPOINTS.iter().chain(admin).chain(of_sagemaker) {
        let Some((model, version)) = matched(endpoint.path, &words) else { continue };
        if endpoint.method == request.method() || (endpoint.method == Method::GET && request.method() == Method::HEAD) {
            let open = endpoint.path.starts_with("/v2/health/") || endpoint.path == sagemaker::PING;
            if let Err(refusal) = if open { Ok(()) } else { shared.check_token(request.headers()) } {
                pass_over_body(&shared.service, request).await;
                return Err(refusal);
            }
            return (endpoint.answer)(EndpointCall { shared, request, model, version }).await;
        }
        let takes: &[&str] = match endpoint.method {
            Method::GET => &["GET", "HEAD"],
            Method::DELETE => &["DELETE"],
            Method::PUT => &["PUT"],
            _ => &["POST"],
        };
        for method in takes {
            if !others.contains(method) {
                others.push(*method);
            }
        }
    }
    if others.is_empty() {
        return Err(Refusal::not_found(absent::words(&words)));
    }
    let takes = others.join(", ");
    let message = format!("this path takes {takes}, not {}", request.method());
    let refusal = Refusal::new(Cause::WrongMethod, message);
    Err(Refusal { allow: Some(takes), ..refusal })
}

/// The decoded words between the slashes of a path, which may end with one.
fn path_words(path: &str) -> Result<Vec<String>, Refusal> {
    let words: Option<Vec<String>> = path.split('/').skip(1).map(decoded).collect();
    let mut words = words.ok_or_else(|| Refusal::invalid("the path is not text of UTF-8"))?;
    words.pop_if(|last| last.is_empty());
    Ok(words)
}

/// Reads the body of a refused request. Otherwise the connection would end while the client still
/// writes.
async fn pass_over_body(service: &Service, request: Request<Received>) {
    if let Ok(body) = RequestBody::new(request.into_body(), &service.config, &Account::open(&service.small)) {
        body.pass_over().await;
    }
}

/// Returns the model and version in a path that matches the pattern; `None` if it does not match.
fn matched(pattern: &str, words: &[String]) -> Option<(Option<String>, Option<String>)> {
    let Some((before, rest)) = pattern.split_once('[') else { return matched_segments(segments(pattern), words) };
    let (optional, after) = rest.split_once(']')?;
    let with = || segments(before).chain(segments(optional)).chain(segments(after));
    matched_segments(segments(before).chain(segments(after)), words).or_else(|| matched_segments(with(), words))
}

/// Returns the segments of a pattern, each of which begins with a slash.
fn segments(pattern: &str) -> impl Iterator<Item = &str> {
    pattern.split('/').skip(1)
}

fn matched_segments<'a>(
    pattern: impl Iterator<Item = &'a str>,
    words: &[String],
) -> Option<(Option<String>, Option<String>)> {
    let (mut model, mut version) = (None, None);
    let mut given = words.iter();
    for wanted in pattern {
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
    use crate::settings::SageMaker;

    fn words(path: &str) -> Vec<String> {
        path.split('/').skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn paths_are_matched_word_by_word() {
        let pattern = "/v2/models/{model}[/versions/{version}]/infer";
        let found = |path: &str| matched(pattern, &words(path));
        let model = || Some("a b".to_owned());
        assert_eq!(found("/v2/models/a b/versions/3/infer"), Some((model(), Some("3".to_owned()))));
        assert_eq!(found("/v2/models/a b/infer"), Some((model(), None)));
        for path in ["/v2/models/a/versions/3", "/v2/models/a/versions/infer", "/v2/models/a/versions/3/infer/x", "/"] {
            assert_eq!(found(path), None, "{path}");
        }
        let pattern = "/v2/models/{model}[/versions/{version}]";
        assert_eq!(matched(pattern, &words("/v2/models/a b")), Some((model(), None)));
        assert_eq!(matched(pattern, &words("/v2/models/a b/versions/3")), Some((model(), Some("3".to_owned()))));
        assert_eq!(matched(pattern, &words("/v2/models/a b/versions")), None);
        assert_eq!(matched("/predictions/{model}", &words("/predictions/a b")), Some((model(), None)));
    }

    #[test]
    fn a_row_with_a_version_has_the_path_without_it_too() {
        let tables = [ENDPOINTS, ADMIN, sagemaker::endpoints(SageMaker::Models)];
        let versioned = |endpoint: &&Endpoint| endpoint.path.contains("{version}");
        let rows: Vec<&Endpoint> = tables.into_iter().flatten().filter(versioned).collect();
        assert!(!rows.is_empty());
        for row in rows {
            assert!(row.path.contains("[/versions/{version}]"), "{}: one row with an optional version", row.path);
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
