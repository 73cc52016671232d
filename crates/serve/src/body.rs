//! Reading of request bodies as they arrive.

use crate::account::{Account, Charge};
use crate::encoding::{Encoded, Encoding, decode};
use crate::protocol::WriteError;
pub(crate) use crate::refusal::room;
use crate::refusal::{Cause, Refusal, no_memory};
use crate::settings::Config;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Bytes, Frame, Incoming};
use hyper::{HeaderMap, Request, Version};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// Bytes of a body for which the client gets one second more.
const BYTES_PER_SECOND: u64 = 256 << 10;
/// Longest refused body, in bytes, that is read to its end, so that the client gets the response
/// and can use its connection again.
const PASSED_OVER: u64 = 1 << 20;
/// Largest body, in bytes, of a call other than inference.
const SMALL: u64 = 64 << 10;
/// Bytes of such a body that need no room in the queue, so that small calls are answered under
/// load.
const FREE: u64 = 1 << 10;

/// Largest number of short chunks of a body. Each costs as much as a long one.
const MOST_CHUNKS: usize = 65_536;
/// Bytes below which a chunk is short. What one packet of a long chunk has is longer.
const SHORT_CHUNK: usize = 1 << 10;

/// Channel for the unread rest of a body, which is kept until the response is written.
pub(crate) type Rest = oneshot::Receiver<Incoming>;

/// Body that arrives on a connection.
pub(crate) struct Received {
    /// none when all of it has been read
    from: Option<Incoming>,
    /// whether it comes in chunks of HTTP/1.1
    in_chunks: bool,
    rest: Option<oneshot::Sender<Incoming>>,
}

impl Received {
    /// Replaces the body of a request, and returns the channel for its unread rest.
    pub(crate) fn of(request: Request<Incoming>) -> (Request<Received>, Rest) {
        let (sender, rest) = oneshot::channel();
        let is_http1 = request.version() == Version::HTTP_11;
        let received = |from: Incoming| {
            let in_chunks = is_http1 && from.size_hint().exact().is_none();
            Received { from: Some(from).filter(|b| !b.is_end_stream()), in_chunks, rest: Some(sender) }
        };
        (request.map(received), rest)
    }

    fn announced(&self) -> Option<u64> {
        self.from.as_ref().map_or(Some(0), |from| from.size_hint().exact())
    }

    async fn frame(&mut self) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        let frame = self.from.as_mut()?.frame().await;
        if frame.as_ref().is_none_or(Result::is_err) {
            self.from = None;
        }
        frame
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        let Some((from, rest)) = self.from.take().zip(self.rest.take()) else { return };
        if !from.is_end_stream() {
            // The receiver is gone if the response has been written already.
            let _ = rest.send(from);
        }
    }
}

/// Makes the refusal of a response that could not be written.
pub(crate) fn unwritten(error: WriteError) -> Refusal {
    match error {
        WriteError::Wrong(words) => Refusal::invalid(words),
        WriteError::Memory(bytes) => no_memory(bytes),
    }
}

/// Request body with its limits of size and time.
pub(crate) struct RequestBody {
    from: Received,
    /// bytes that have arrived and were not taken
    chunk: Bytes,
    /// length that the head of the request gives
    announced: Option<u64>,
    /// decoder, if the body is encoded
    encoded: Option<Encoded>,
    /// bytes that have arrived, as they were sent
    arrived: u64,
    /// number of short chunks that have arrived
    short_chunks: usize,
    /// bytes that have been read, after decoding
    read: u64,
    limit: u64,
    /// bytes that need no room in the queue
    free: u64,
    /// deadline of a body without bytes
    least: Instant,
    deadline: Instant,
    charge: Charge,
}

impl RequestBody {
    /// Refuses a body that announces too many bytes before any of it is read.
    pub(crate) fn new(from: Received, config: &Config, account: &Account) -> Result<RequestBody, Refusal> {
        let announced = from.announced();
        let limit = config.max_body as u64;
        if announced.is_some_and(|bytes| bytes > limit) {
            return Err(too_large(limit));
        }
        let least = Instant::now() + config.body_timeout;
        Ok(RequestBody {
            from,
            chunk: Bytes::new(),
            announced,
            encoded: None,
            arrived: 0,
            short_chunks: 0,
            read: 0,
            limit,
            free: 0,
            least,
            deadline: least + time_of(announced.unwrap_or(limit)),
            charge: account.charge(0)?,
        })
    }

    /// Decodes what follows, if the head of the request says that the body is encoded. The limit
    /// counts for the bytes as they are sent, and as they are decoded.
    pub(crate) fn decode_by(&mut self, headers: &HeaderMap, account: &Account) -> Result<(), Refusal> {
        self.encoded = Encoding::of_body(headers)?.map(|encoding| Encoded::new(encoding, account)).transpose()?;
        Ok(())
    }

    /// Begins the small body of a call other than inference. Most of these need no room in the
    /// queue.
    pub(crate) fn small(from: Received, config: &Config, account: &Account) -> Result<RequestBody, Refusal> {
        let mut body = RequestBody::new(from, config, account)?;
        body.make_small();
        if body.announced.is_some_and(|bytes| bytes > body.limit) { Err(too_large(body.limit)) } else { Ok(body) }
    }

    /// Applies the limits of a call other than inference to the body.
    pub(crate) fn make_small(&mut self) {
        self.make_short();
        self.deadline = self.deadline.min(self.least + time_of(self.limit));
    }

    /// Applies the limits of size of such a call, but not those of time: a client may keep a stream
    /// of messages open.
    pub(crate) fn make_short(&mut self) {
        (self.limit, self.free) = (self.limit.min(SMALL), FREE);
    }

    /// Returns the length of the body if its head gives it, which it does not if the body is
    /// encoded.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.announced.filter(|_| self.encoded.is_none())
    }

    /// Waits until `chunk` holds bytes. Returns false at the end of the body.
    async fn more(&mut self) -> Result<bool, Refusal> {
        while self.chunk.is_empty() {
            if let Some(part) = self.encoded.as_mut().map(Encoded::part).transpose()?.flatten() {
                self.add(part)?;
                // A short encoded body may be a long one.
                tokio::task::yield_now().await;
                continue;
            }
            let Some(data) = self.arriving().await? else {
                let last = self.encoded.as_mut().map(Encoded::last).transpose()?.flatten();
                let Some(last) = last else { return Ok(false) };
                self.add(last)?;
                continue;
            };
            match &mut self.encoded {
                Some(encoded) => encoded.feed(data),
                None => self.add(data)?,
            }
        }
        Ok(true)
    }

    /// Waits for the next bytes of the connection. Returns `None` at the end of the body.
    async fn arriving(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let frame = timeout_at(self.deadline, self.from.frame()).await.map_err(|_| {
                let message = "the body of the request took too long to come";
                Refusal::new(Cause::SlowBody, message).closing()
            })?;
            let Some(frame) = frame else { return Ok(None) };
            let Ok(data) = frame.map_err(|error| broken(&error))?.into_data() else { continue };
            self.arrived += data.len() as u64;
            self.count_chunk(data.len())?;
            if self.arrived > self.limit {
                return Err(too_large(self.limit));
            }
            return Ok(Some(data));
        }
    }

    /// Refuses a body of too many short chunks. Clients of Triton compare the words.
    fn count_chunk(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.short_chunks += usize::from(self.from.in_chunks && (1..SHORT_CHUNK).contains(&bytes));
        if self.short_chunks <= MOST_CHUNKS {
            return Ok(());
        }
        let limit = format!("Chunked request body exceeds maximum of {MOST_CHUNKS} non-empty chunks.");
        let advice = format!("Send fewer or larger HTTP chunks. Chunks of {SHORT_CHUNK} bytes or more do not count.");
        Err(Refusal::invalid(format!("{limit} {advice}")).closing())
    }

    /// Charges the next bytes, and makes them the chunk.
    fn add(&mut self, data: Bytes) -> Result<(), Refusal> {
        self.read += data.len() as u64;
        if self.read > self.limit {
            return Err(too_large(self.limit));
        }
        if self.read > self.free {
            self.charge.grow(data.len())?;
        }
        self.chunk = data;
        Ok(())
    }

    /// Reads the next `bytes` into memory that grows as they arrive. The account keeps them.
    pub(crate) async fn arrived(&mut self, bytes: usize) -> Result<Vec<u8>, Refusal> {
        let mut taken = Vec::new();
        while taken.len() < bytes {
            if !self.more().await? {
                return Err(ends_early(bytes - taken.len()));
            }
            let part = self.chunk.split_to(self.chunk.len().min(bytes - taken.len()));
            room(&mut taken, part.len())?;
            taken.extend_from_slice(&part);
            self.charge.keep(part.len());
        }
        Ok(taken)
    }

    /// Fills `to` from the body.
    pub(crate) async fn read_into(&mut self, to: &mut [u8]) -> Result<(), Refusal> {
        let mut filled = 0;
        while filled < to.len() {
            if !self.more().await? {
                return Err(ends_early(to.len() - filled));
            }
            let part = self.chunk.split_to(self.chunk.len().min(to.len() - filled));
            to[filled..filled + part.len()].copy_from_slice(&part);
            filled += part.len();
            self.charge.keep(part.len());
        }
        Ok(())
    }

    /// Charges another account from now on. Nothing has been read yet.
    pub(crate) fn pays(&mut self, account: &Account) -> Result<(), Refusal> {
        self.charge = account.charge(0)?;
        Ok(())
    }

    /// Returns the charge for bytes that were taken: they are freed, or charged in another way.
    pub(crate) fn forget(&mut self) {
        self.charge.shrink_to(self.chunk.len());
    }

    /// Reads the next `bytes` of the body, or all that is left of it.
    pub(crate) async fn take(&mut self, bytes: Option<usize>) -> Result<Vec<u8>, Refusal> {
        let mut taken = Vec::new();
        let wanted = bytes.unwrap_or(usize::MAX);
        while taken.len() < wanted && self.more().await? {
            let part = self.chunk.split_to(self.chunk.len().min(wanted - taken.len()));
            room(&mut taken, part.len())?;
            taken.extend_from_slice(&part);
        }
        match bytes {
            Some(bytes) if taken.len() < bytes => {
                let message = format!("the head says that the JSON has {bytes} bytes; the body has {}", taken.len());
                Err(Refusal::invalid(message))
            }
            _ => Ok(taken),
        }
    }

    /// Refuses a number of bytes that is larger than the limit.
    pub(crate) fn check_size(&self, bytes: usize) -> Result<(), Refusal> {
        if bytes as u64 > self.limit { Err(too_large(self.limit)) } else { Ok(()) }
    }

    /// Reads the next `bytes` of the body. Returns `None` at its end.
    pub(crate) async fn exactly(&mut self, bytes: usize) -> Result<Option<Vec<u8>>, Refusal> {
        let mut taken = Vec::new();
        while taken.len() < bytes && self.more().await? {
            let part = self.chunk.split_to(self.chunk.len().min(bytes - taken.len()));
            room(&mut taken, part.len())?;
            taken.extend_from_slice(&part);
        }
        match taken.len() {
            length if length == bytes => Ok(Some(taken)),
            0 => Ok(None),
            length => Err(Refusal::invalid(format!("the body ends after {length} of {bytes} bytes of its message"))),
        }
    }

    /// Decodes a message of the body.
    pub(crate) async fn decoded(&mut self, encoding: Encoding, message: Vec<u8>) -> Result<Vec<u8>, Refusal> {
        let encoded = Encoded::new(encoding, self.charge.account())?;
        let (charge, limit, mut length) = (&mut self.charge, self.limit, 0);
        let grow = |bytes: usize| {
            length += bytes as u64;
            if length > limit { Err(too_large(limit)) } else { charge.grow(bytes) }
        };
        decode(encoded, message.into(), grow).await
    }

    /// Fails if bytes are left.
    pub(crate) async fn end(&mut self) -> Result<(), Refusal> {
        if self.more().await? {
            return Err(Refusal::invalid("the body continues after its data"));
        }
        Ok(())
    }

    /// Reads and discards the rest of the body, unless it may be long.
    pub(crate) async fn pass_over(mut self) {
        if self.announced.is_none_or(|bytes| bytes > PASSED_OVER) {
            return;
        }
        while let Ok(Some(Ok(_))) = timeout_at(self.deadline, self.from.frame()).await {}
    }
}

/// Makes the refusal of a body that ends before the data that its JSON names.
fn ends_early(bytes: usize) -> Refusal {
    Refusal::invalid(format!("the body ends {bytes} bytes before the data that its JSON names"))
}

/// Returns the time that the client gets for a number of bytes.
fn time_of(bytes: u64) -> Duration {
    Duration::from_secs(bytes / BYTES_PER_SECOND)
}

/// Makes the refusal of a body that cannot be read, or that ends early.
fn broken(error: &hyper::Error) -> Refusal {
    let gone = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
    let cause = if gone { Cause::BrokenBody } else { Cause::Invalid };
    Refusal::new(cause, format!("the body of the request: {error}")).closing()
}

/// Makes the refusal of a body that is longer than the limit.
pub(crate) fn too_large(limit: u64) -> Refusal {
    let message = format!("the body of the request is larger than {limit} bytes, the limit of this server");
    Refusal::new(Cause::TooLarge, message).closing()
}
