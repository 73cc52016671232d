//! Responses of endpoints, and the body of a response.

use crate::answers::AnswerCharge;
use crate::begun::Begun;
use crate::connection::Busy;
use crate::progress::OpenAnswer;
use crate::refusal::Refusal;
use crate::status::trailers;
use hyper::HeaderMap;
use hyper::body::{Body, Buf, Bytes, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;

/// Largest piece of a response over HTTP/2, in bytes. The next piece follows when the client has
/// room for it.
const PIECE: usize = 256 << 10;

/// Response of an endpoint: a body of text, JSON or bytes, with its headers.
pub(crate) struct Answer {
    pub(crate) body: Vec<u8>,
    /// charge for the body, if it was charged before it was written
    pub(crate) charge: Option<AnswerCharge>,
    /// guard of the inference request that it answers
    pub(crate) begun: Option<Begun>,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Answer {
    pub(crate) fn json(value: &serde_json::Value) -> Answer {
        Answer::text(value.to_string().into_bytes(), "application/json")
    }

    pub(crate) fn text(body: Vec<u8>, content_type: &'static str) -> Answer {
        Answer { body, charge: None, begun: None, content_type, headers: Vec::new() }
    }

    /// Makes a response without a body, for endpoints that answer by their status.
    pub(crate) fn empty() -> Answer {
        Answer::text(Vec::new(), "text/plain")
    }
}

enum BodySource {
    Bytes(Bytes),
    /// messages of gRPC; the trailers follow after the last one
    Messages(mpsc::Receiver<Result<Vec<u8>, Refusal>>),
}

/// Body of a response. The connection counts as busy until it and its pieces are dropped.
pub(crate) struct AnswerBody {
    source: BodySource,
    /// mark of the bytes that are left, shared with the pieces before
    open: Option<Arc<OpenAnswer>>,
    trailers: Option<HeaderMap>,
    busy: Busy,
}

/// Piece of a response. Bytes count as taken by the client when the transport has passed them on.
pub(crate) struct AnswerPiece {
    bytes: Bytes,
    open: Option<Arc<OpenAnswer>>,
}

impl AnswerPiece {
    fn of(bytes: Bytes) -> AnswerPiece {
        AnswerPiece { bytes, open: None }
    }
}

impl Buf for AnswerPiece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(open) = &self.open {
            open.took(count);
        }
        if !self.bytes.has_remaining() {
            // The transport may keep the empty piece until it writes again.
            *self = AnswerPiece::of(Bytes::new());
        }
    }
}

impl AnswerBody {
    /// Makes the body of a response. The bytes hold their own charge, see [`crate::answers`].
    pub(crate) fn new(bytes: Bytes, busy: Busy) -> AnswerBody {
        let open = (!bytes.is_empty()).then(|| Arc::new(busy.open_answer()));
        AnswerBody { source: BodySource::Bytes(bytes), open, trailers: None, busy }
    }

    pub(crate) fn stream(messages: mpsc::Receiver<Result<Vec<u8>, Refusal>>, busy: Busy) -> AnswerBody {
        AnswerBody { source: BodySource::Messages(messages), open: None, trailers: None, busy }
    }

    pub(crate) fn with_trailers(mut self, trailers: HeaderMap) -> AnswerBody {
        self.trailers = Some(trailers);
        self
    }

    fn last(&mut self) -> Option<Result<Frame<AnswerPiece>, Infallible>> {
        self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers)))
    }
}

impl Body for AnswerBody {
    type Data = AnswerPiece;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<AnswerPiece>, Infallible>>> {
        let http2 = self.busy.is_http2();
        match &mut self.source {
            BodySource::Bytes(bytes) if bytes.is_empty() => Poll::Ready(self.last()),
            BodySource::Bytes(bytes) => {
                let piece = if http2 { bytes.len().min(PIECE) } else { bytes.len() };
                let (bytes, is_last) = (bytes.split_to(piece), piece == bytes.len());
                let open = if is_last { self.open.take() } else { self.open.clone() };
                Poll::Ready(Some(Ok(Frame::data(AnswerPiece { bytes, open }))))
            }
            BodySource::Messages(messages) => {
                let refusal = match ready!(messages.poll_recv(cx)) {
                    Some(Ok(message)) => return Poll::Ready(Some(Ok(Frame::data(AnswerPiece::of(message.into()))))),
                    Some(Err(refusal)) => Some(refusal),
                    None => None,
                };
                self.source = BodySource::Bytes(Bytes::new());
                self.trailers = Some(trailers(refusal.as_ref()));
                Poll::Ready(self.last())
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.trailers.is_none() && matches!(&self.source, BodySource::Bytes(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            BodySource::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodySource::Messages(_) => SizeHint::default(),
        }
    }
}
