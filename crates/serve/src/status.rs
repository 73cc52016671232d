//! Status of calls over gRPC, in the trailers of a response.

use crate::refusal::{Outcome, Refusal};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, StatusCode};
use std::fmt::Write;

/// Returns the status code of gRPC for a refusal.
fn code(refusal: &Refusal) -> u8 {
    match (refusal.outcome, refusal.status) {
        (Outcome::Invalid, StatusCode::NOT_FOUND) => 5,
        (Outcome::Invalid, StatusCode::PAYLOAD_TOO_LARGE) | (Outcome::Rejected | Outcome::Memory, _) => 8,
        (Outcome::Invalid, StatusCode::REQUEST_TIMEOUT) | (Outcome::Late, _) => 4,
        (Outcome::Invalid, StatusCode::UNAUTHORIZED) => 16,
        (
            Outcome::Invalid,
            StatusCode::NOT_IMPLEMENTED | StatusCode::METHOD_NOT_ALLOWED | StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ) => 12,
        (Outcome::Invalid, _) => 3,
        (Outcome::Cancelled, _) => 1,
        (Outcome::Unavailable | Outcome::Device, _) => 14,
        (Outcome::Success | Outcome::Failed | Outcome::Hook, _) => 13,
    }
}

/// Returns the trailers that follow the messages of a response.
pub(crate) fn trailers(refusal: Option<&Refusal>) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(refusal.map_or(0, |refusal| u16::from(code(refusal)))));
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
    fn every_refusal_has_its_status() {
        let refusal = |status: u16, outcome| {
            code(&Refusal::new(StatusCode::from_u16(status).expect("a status"), outcome, "words"))
        };
        assert_eq!(refusal(400, Outcome::Invalid), 3);
        assert_eq!(refusal(404, Outcome::Invalid), 5);
        assert_eq!(refusal(413, Outcome::Invalid), 8);
        assert_eq!(refusal(429, Outcome::Rejected), 8);
        assert_eq!(code(&Refusal::late()), 4);
        assert_eq!(code(&Refusal::draining()), 14);
        assert_eq!(refusal(503, Outcome::Memory), 8);
        assert_eq!(refusal(500, Outcome::Failed), 13);
        let trailers = trailers(Some(&Refusal::draining()));
        assert_eq!(trailers["grpc-retry-pushback-ms"], "1000");
        assert_eq!(trailers["mxrt-code"], "MX-BUSY");
    }

    #[test]
    fn words_of_a_status_are_ascii() {
        assert_eq!(escaped("100 % of 'é'\n"), "100 %25 of '%C3%A9'%0A");
    }
}
