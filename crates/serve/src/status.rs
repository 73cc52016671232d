//! Status of a refusal over each transport: of HTTP, and of gRPC in the trailers of a response.

use crate::refusal::{Cause, Refusal};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, StatusCode};
use std::fmt::Write;

/// Status of HTTP of responses to a client that has gone, for the log. No response has it.
const CLIENT_GONE: u16 = 499;

/// Returns the status of HTTP for a cause.
pub(crate) fn of_http(cause: Cause) -> StatusCode {
    match cause {
        Cause::Invalid | Cause::BrokenBody => StatusCode::BAD_REQUEST,
        Cause::Unauthenticated => StatusCode::UNAUTHORIZED,
        Cause::NotFound => StatusCode::NOT_FOUND,
        Cause::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
        Cause::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        Cause::SlowBody => StatusCode::REQUEST_TIMEOUT,
        Cause::Conflict | Cause::InUse => StatusCode::CONFLICT,
        Cause::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Cause::UnsupportedContent => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Cause::Full => StatusCode::TOO_MANY_REQUESTS,
        Cause::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        Cause::ClientGone => StatusCode::from_u16(CLIENT_GONE).unwrap_or(StatusCode::BAD_REQUEST),
        Cause::Failed | Cause::Hook | Cause::Cancelled => StatusCode::INTERNAL_SERVER_ERROR,
        Cause::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Cause::Unavailable | Cause::Memory | Cause::Device | Cause::TooManyOpen => StatusCode::SERVICE_UNAVAILABLE,
        Cause::Late => StatusCode::GATEWAY_TIMEOUT,
        Cause::NoRoom => StatusCode::INSUFFICIENT_STORAGE,
    }
}

/// Returns the status code of gRPC for a cause.
fn of_grpc(cause: Cause) -> u8 {
    match cause {
        Cause::Cancelled | Cause::BrokenBody | Cause::ClientGone => 1,
        Cause::Invalid | Cause::NotAcceptable | Cause::Conflict | Cause::HeadTooLarge => 3,
        Cause::Late | Cause::SlowBody => 4,
        Cause::NotFound => 5,
        Cause::Full | Cause::TooManyOpen | Cause::InUse | Cause::TooLarge | Cause::Memory | Cause::NoRoom => 8,
        Cause::Unimplemented | Cause::WrongMethod | Cause::UnsupportedContent => 12,
        Cause::Failed | Cause::Hook => 13,
        Cause::Unavailable | Cause::Device => 14,
        Cause::Unauthenticated => 16,
    }
}

/// Returns the trailers that follow the messages of a response.
pub(crate) fn trailers(refusal: Option<&Refusal>) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(refusal.map_or(0, |refusal| u16::from(of_grpc(refusal.cause)))));
    let Some(refusal) = refusal else { return trailers };
    if let Ok(message) = HeaderValue::from_str(&escaped(&refusal.message)) {
        trailers.insert("grpc-message", message);
    }
    trailers.insert("mxrt-code", HeaderValue::from_static(refusal.code));
    if let Some(seconds) = refusal.retry_after {
        trailers.insert("grpc-retry-pushback-ms", HeaderValue::from(seconds.saturating_mul(1000)));
    }
    trailers
}

/// Escapes a text for `grpc-message`: bytes that are not printable ASCII, and `%`, become `%XX`.
fn escaped(text: &str) -> String {
    /// Largest number of bytes of a text, as some clients accept no larger heads.
    const LONGEST: usize = 4096;
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes().take(LONGEST) {
        match byte {
            b' '..=b'~' if byte != b'%' => escaped.push(char::from(byte)),
            _ => {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_status() {
        let of = |cause| (of_http(cause).as_u16(), of_grpc(cause));
        assert_eq!(of(Cause::Invalid), (400, 3));
        assert_eq!(of(Cause::BrokenBody), (400, 1));
        assert_eq!(of(Cause::Unauthenticated), (401, 16));
        assert_eq!(of(Cause::NotFound), (404, 5));
        assert_eq!(of(Cause::WrongMethod), (405, 12));
        assert_eq!(of(Cause::NotAcceptable), (406, 3));
        assert_eq!(of(Cause::SlowBody), (408, 4));
        assert_eq!(of(Cause::Conflict), (409, 3));
        assert_eq!(of(Cause::InUse), (409, 8));
        assert_eq!(of(Cause::TooLarge), (413, 8));
        assert_eq!(of(Cause::UnsupportedContent), (415, 12));
        assert_eq!(of(Cause::Full), (429, 8));
        assert_eq!(of(Cause::HeadTooLarge), (431, 3));
        assert_eq!(of(Cause::ClientGone), (499, 1));
        assert_eq!(of(Cause::Failed), (500, 13));
        assert_eq!(of(Cause::Hook), (500, 13));
        assert_eq!(of(Cause::Cancelled), (500, 1));
        assert_eq!(of(Cause::Unimplemented), (501, 12));
        assert_eq!(of(Cause::Unavailable), (503, 14));
        assert_eq!(of(Cause::Device), (503, 14));
        assert_eq!(of(Cause::Memory), (503, 8));
        assert_eq!(of(Cause::TooManyOpen), (503, 8));
        assert_eq!(of(Cause::Late), (504, 4));
        assert_eq!(of(Cause::NoRoom), (507, 8));
    }

    #[test]
    fn trailers_have_the_status_the_code_and_the_time_of_another_try() {
        let trailers = trailers(Some(&Refusal::draining()));
        assert_eq!(trailers["grpc-status"], "14");
        assert_eq!(trailers["grpc-retry-pushback-ms"], "1000");
        assert_eq!(trailers["mxrt-code"], "MX-BUSY");
    }

    #[test]
    fn words_of_a_status_are_ascii() {
        assert_eq!(escaped("100 % of 'é'\n"), "100 %25 of '%C3%A9'%0A");
    }
}
