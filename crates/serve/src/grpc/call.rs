//! Framing of calls: head, messages and status.

use crate::account::Account;
use crate::answer::AnswerBody;
use crate::answers::AnswerCharge;
use crate::begun::Begun;
use crate::body::{Received, RequestBody};
use crate::connection::Busy;
use crate::encoding::{Encoding, Written, compressed};
use crate::refusal::{Cause, Refusal};
use crate::service::Service;
use crate::shared::Shared;
use crate::status::trailers;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, Response};
use prost::Message;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Bytes before each message: one for compression and four for the length.
pub(super) const PREFIX: usize = 5;
/// Header with the encoding of compressed messages.
const ENCODING: &str = "grpc-encoding";

pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Reply, Refusal>> + Send>>;

/// Call whose head has arrived.
pub(super) struct GrpcCall {
    pub(super) shared: Arc<Shared>,
    pub(super) body: RequestBody,
    pub(super) began: Instant,
    pub(super) headers: HeaderMap,
    /// time that the client allows for the call, from `began`
    pub(super) timeout: Option<Duration>,
    /// encoding of compressed messages
    encoding: Result<Option<Encoding>, Refusal>,
}

/// Message with its prefix.
pub(super) struct Payload {
    pub(super) bytes: Vec<u8>,
    /// charge for the bytes, if they were charged before they were written
    pub(super) charge: Option<AnswerCharge>,
    /// guard of the inference request that it answers
    pub(super) begun: Option<Begun>,
}

/// Reply to a call.
pub(super) enum Reply {
    Message(Payload),
    /// messages with their prefixes; the call succeeds when the sender is dropped
    Stream(mpsc::Receiver<Result<Vec<u8>, Refusal>>),
}

impl GrpcCall {
    pub(super) fn new(shared: Arc<Shared>, request: Request<Received>) -> Result<GrpcCall, Refusal> {
        let (head, body) = request.into_parts();
        let kind = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("application/grpc") || kind.starts_with("application/grpc-web") {
            let message = "this port speaks gRPC over HTTP/2 alone: the content type is application/grpc";
            return Err(Refusal::new(Cause::UnsupportedContent, message));
        }
        let service = &shared.service;
        let timeout = timeout(&head)?;
        let encoding = encoding(&head.headers);
        let body = RequestBody::new(body, &service.config, &Account::open(&service.small))?;
        Ok(GrpcCall { body, began: Instant::now(), headers: head.headers, timeout, encoding, shared })
    }

    /// Reads the next message. Returns `None` at the end.
    pub(super) async fn message(&mut self) -> Result<Option<Bytes>, Refusal> {
        let Some(prefix) = self.body.exactly(PREFIX).await? else { return Ok(None) };
        let [compressed, length @ ..] = &prefix[..] else { return Ok(None) };
        let encoding = match (compressed, &self.encoding) {
            (0, _) => None,
            (_, Ok(Some(encoding))) => Some(*encoding),
            (_, Ok(None)) => return Err(Refusal::invalid("a message is compressed; grpc-encoding does not say how")),
            (_, Err(refusal)) => {
                let message = refusal.message.clone();
                return Err(Refusal::new(Cause::Unimplemented, message));
            }
        };
        let length = length.iter().fold(0usize, |length, byte| (length << 8) | usize::from(*byte));
        self.body.check_size(length)?;
        let cut = || Refusal::invalid("the request ends inside of its message");
        let message = self.body.exactly(length).await?.ok_or_else(cut)?;
        let message = match encoding {
            Some(encoding) => self.body.decoded(encoding, message).await?,
            None => message,
        };
        Ok(Some(message.into()))
    }

    /// Reads the only message of the call, as bytes.
    pub(super) async fn only_bytes(&mut self) -> Result<Bytes, Refusal> {
        let message = self.message().await?.ok_or_else(|| Refusal::invalid("the call has no message"))?;
        self.body.end().await?;
        Ok(message)
    }

    /// Reads the only message of a call other than inference.
    pub(super) async fn only<M: Message + Default>(&mut self) -> Result<M, Refusal> {
        self.body.make_small();
        decoded(self.only_bytes().await?)
    }
}

/// Returns the encoding that compresses the messages of a call.
pub(super) fn encoding(headers: &HeaderMap) -> Result<Option<Encoding>, Refusal> {
    let name = headers.get(ENCODING).map(|name| String::from_utf8_lossy(name.as_bytes()));
    name.map_or(Ok(None), |name| Encoding::named(&name))
}

pub(super) fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M, Refusal> {
    M::decode(bytes).map_err(|error| Refusal::invalid(format!("the message: {error}")))
}

/// Answers a call of one message with one message.
pub(super) fn unary<Q, A>(mut call: GrpcCall, answer: fn(&GrpcCall, Q) -> Result<A, Refusal>) -> Answering
where
    Q: Message + Default + 'static,
    A: Message + 'static,
{
    Box::pin(async move {
        let question = call.only::<Q>().await?;
        answer(&call, question).map(|answer| Reply::message(&answer))
    })
}

/// Encodes a message with its prefix.
pub(super) fn framed(message: &impl Message) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX + message.encoded_len());
    bytes.resize(PREFIX, 0);
    message.encode_raw(&mut bytes);
    set_length(&mut bytes);
    bytes
}

/// Writes the length of a message into its prefix.
pub(super) fn set_length(framed: &mut [u8]) {
    let length = (framed.len() - PREFIX) as u32;
    framed[1..PREFIX].copy_from_slice(&length.to_be_bytes());
}

/// Reads the time that the client allows for the call.
fn timeout(head: &Parts) -> Result<Option<Duration>, Refusal> {
    let Some(value) = head.headers.get("grpc-timeout") else { return Ok(None) };
    let parsed = value.to_str().ok().and_then(parse_timeout);
    let wrong = || Refusal::invalid("grpc-timeout is no time: expected up to 8 digits and one of H, M, S, m, u, n");
    parsed.map(Some).ok_or_else(wrong)
}

fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

fn response(body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// Makes the response of a call that was refused.
pub(super) fn refused(refusal: &Refusal, busy: Busy) -> Response<AnswerBody> {
    let mut response = response(AnswerBody::new(Bytes::new(), busy));
    response.headers_mut().extend(trailers(Some(refusal)));
    response
}

impl Reply {
    /// Makes a reply of one short message.
    pub(super) fn message(message: &impl Message) -> Reply {
        Reply::Message(Payload { bytes: framed(message), charge: None, begun: None })
    }

    /// Makes the response. A message is compressed if those of the call were.
    pub(super) async fn respond(
        self,
        service: &Service,
        encoding: Option<Encoding>,
        busy: Busy,
    ) -> Response<AnswerBody> {
        match self {
            Reply::Message(Payload { bytes, charge, begun }) => match written(service, encoding, bytes, charge).await {
                Ok(Written { bytes, charge, encoding }) => {
                    let body = AnswerBody::new(charge.pay(bytes, begun), busy).with_trailers(trailers(None));
                    let mut response = response(body);
                    if let Some(encoding) = encoding {
                        response.headers_mut().insert(ENCODING, HeaderValue::from_static(encoding.name()));
                    }
                    response
                }
                Err(refusal) => refused(&refusal, busy),
            },
            Reply::Stream(messages) => response(AnswerBody::stream(messages, busy)),
        }
    }
}

async fn written(
    service: &Service,
    encoding: Option<Encoding>,
    bytes: Vec<u8>,
    charge: Option<AnswerCharge>,
) -> Result<Written, Refusal> {
    let charge = charge.map_or_else(|| service.answers.reserve(bytes.len()), Ok)?;
    let mut written = compressed((&service.answers, &service.background), encoding, bytes, charge, PREFIX).await?;
    if written.encoding.is_some() {
        written.bytes[0] = 1;
        set_length(&mut written.bytes);
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_clients_are_read_or_refused() {
        assert_eq!(parse_timeout("1S"), Some(Duration::from_secs(1)));
        assert_eq!(parse_timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        assert_eq!(parse_timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse_timeout("7u"), Some(Duration::from_micros(7)));
        assert_eq!(parse_timeout("0n"), Some(Duration::ZERO));
        for wrong in ["", "S", "1", "1s", "-1S", "+1S", "123456789S", "1.5S", "1SS", "1é"] {
            assert_eq!(parse_timeout(wrong), None, "{wrong}");
        }
    }
}
