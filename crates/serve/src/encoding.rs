//! Content encodings of requests and responses: gzip and deflate.

use crate::account::{Account, Charge};
use crate::answers::{AnswerCharge, Answers};
use crate::background::{Background, JobKind, LONG};
use crate::preferences::preferences;
use crate::refusal::{Cause, Refusal, room};
use flate2::Compression;
use flate2::write::{GzEncoder, MultiGzDecoder, ZlibDecoder, ZlibEncoder};
use hyper::HeaderMap;
use hyper::body::{Buf, Bytes};
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use std::io::{self, Write};
use std::sync::Arc;

/// Shortest response, in bytes, that is compressed.
const LEAST: usize = 1 << 10;
/// Encoded bytes that are decoded in one step. A step makes at most a thousand times as many.
const STEP: usize = 256;
/// Decoded bytes after which a decoder lets other requests continue.
const PART: usize = 64 << 10;
/// Encoded bytes after which it does, whatever they decode to: a gzip member without content takes
/// as long as one with some KiB.
const ENCODED_PART: usize = 8 << 10;
/// Most encoded bytes for each decoded one, apart from the first bytes of a body.
const MOST_ENCODED: u64 = 16;
const FIRST: u64 = 256 << 10;
/// Bytes that a decoder keeps while it works.
const DECODER: usize = 80 << 10;

/// Content encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Gzip,
    /// the format of zlib
    Deflate,
}

impl Encoding {
    const ALL: [Encoding; 2] = [Encoding::Gzip, Encoding::Deflate];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Encoding::Gzip => "gzip",
            Encoding::Deflate => "deflate",
        }
    }

    /// Returns the encoding of this name; `None` for `identity`.
    pub(crate) fn named(name: &str) -> Result<Option<Encoding>, Refusal> {
        let name = name.trim().to_ascii_lowercase();
        let known = Encoding::ALL.into_iter().find(|known| name == known.name());
        match known {
            None if name == "x-gzip" => Ok(Some(Encoding::Gzip)),
            None if !name.is_empty() && name != "identity" => {
                let name = crate::protocol::short(&name);
                let message = format!("the encoding '{name}' is not supported: send gzip, deflate or identity");
                Err(Refusal::new(Cause::UnsupportedContent, message))
            }
            known => Ok(known),
        }
    }

    /// Returns the encoding in which the body of a request is sent.
    pub(crate) fn of_body(headers: &HeaderMap) -> Result<Option<Encoding>, Refusal> {
        let names: Vec<_> = headers.get_all(CONTENT_ENCODING).iter().collect();
        match names[..] {
            [] => Ok(None),
            [name] => Encoding::named(&String::from_utf8_lossy(name.as_bytes())),
            _ => Err(Refusal::invalid("the head gives Content-Encoding more than once")),
        }
    }

    /// Returns the encoding that the client prefers for the response; `None` if it accepts none.
    pub(crate) fn accepted(headers: &HeaderMap) -> Option<Encoding> {
        let named = |(name, weight)| {
            let name = if name == "*" { "gzip" } else { name };
            Encoding::named(name).ok().flatten().map(|found| (found, weight))
        };
        let wanted: Vec<_> = preferences(headers, ACCEPT_ENCODING).into_iter().filter_map(named).collect();
        let (first, most) = *wanted.first()?;
        Some(if wanted.contains(&(Encoding::Gzip, most)) { Encoding::Gzip } else { first })
    }
}

enum Decoder {
    Gzip(MultiGzDecoder<Vec<u8>>),
    Deflate(ZlibDecoder<Vec<u8>>),
}

impl Decoder {
    fn write(&mut self, encoded: &[u8]) -> io::Result<()> {
        match self {
            Decoder::Gzip(decoder) => decoder.write_all(encoded),
            Decoder::Deflate(decoder) => decoder.write_all(encoded),
        }
    }

    fn decoded(&mut self) -> &mut Vec<u8> {
        match self {
            Decoder::Gzip(decoder) => decoder.get_mut(),
            Decoder::Deflate(decoder) => decoder.get_mut(),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Decoder::Gzip(decoder) => decoder.try_finish(),
            Decoder::Deflate(decoder) => decoder.try_finish(),
        }
    }
}

/// Encoded body of a request, decoded in parts of bounded size.
pub(crate) struct Encoded {
    encoding: Encoding,
    decoder: Decoder,
    /// bytes that have arrived and were not decoded
    waiting: Bytes,
    ended: bool,
    /// bytes that were decoded, and those that they became
    lengths: [u64; 2],
    _charge: Charge,
}

impl Encoded {
    pub(crate) fn new(encoding: Encoding, account: &Account) -> Result<Encoded, Refusal> {
        let decoder = match encoding {
            Encoding::Gzip => Decoder::Gzip(MultiGzDecoder::new(Vec::new())),
            Encoding::Deflate => Decoder::Deflate(ZlibDecoder::new(Vec::new())),
        };
        let _charge = account.charge(DECODER)?;
        Ok(Encoded { encoding, decoder, waiting: Bytes::new(), ended: false, lengths: [0; 2], _charge })
    }

    /// Takes the next bytes. Those before them have been decoded.
    pub(crate) fn feed(&mut self, bytes: Bytes) {
        debug_assert!(self.waiting.is_empty(), "bytes before these have not been decoded");
        self.waiting = bytes;
    }

    /// Decodes some of the bytes that have arrived, perhaps to none. Returns `None` if no bytes are
    /// left.
    pub(crate) fn part(&mut self) -> Result<Option<Bytes>, Refusal> {
        let mut left = ENCODED_PART.min(self.waiting.len());
        while left > 0 && self.decoder.decoded().len() < PART {
            let step = self.waiting.split_to(left.min(STEP));
            left -= step.len();
            self.lengths[0] += step.len() as u64;
            self.decoder.write(&step).map_err(|error| wrong(self.encoding, &error))?;
        }
        let decoded = std::mem::take(self.decoder.decoded());
        self.lengths[1] += decoded.len() as u64;
        self.check_lengths()?;
        Ok(if decoded.is_empty() && self.waiting.is_empty() { None } else { Some(decoded.into()) })
    }

    /// Refuses bodies that cost more time than their content is worth.
    fn check_lengths(&self) -> Result<(), Refusal> {
        let [encoded, decoded] = self.lengths;
        if encoded <= FIRST + MOST_ENCODED * decoded {
            return Ok(());
        }
        let name = self.encoding.name();
        let words = format!("{encoded} bytes of {name} in the body become {decoded} bytes: send them without encoding");
        Err(Refusal::invalid(words).closing())
    }

    /// Returns the last part after all bytes have been decoded; `None` after that. Fails if the
    /// encoded body ends early.
    pub(crate) fn last(&mut self) -> Result<Option<Bytes>, Refusal> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(None);
        }
        self.decoder.finish().map_err(|error| wrong(self.encoding, &error))?;
        self.part()
    }
}

fn wrong(encoding: Encoding, error: &io::Error) -> Refusal {
    Refusal::invalid(format!("the body of the request is no complete {}: {error}", encoding.name())).closing()
}

/// Body of a response with its charge.
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    pub(crate) charge: AnswerCharge,
    /// encoding of the bytes; `None` if they were not compressed
    pub(crate) encoding: Option<Encoding>,
}

/// Compresses the bytes of a response from `begin` on. A short response, or one that does not
/// become shorter, is not changed; neither is one for whose compressed bytes there is no room.
pub(crate) async fn compressed(
    (answers, background): (&Arc<Answers>, &Background),
    encoding: Option<Encoding>,
    bytes: Vec<u8>,
    charge: AnswerCharge,
    begin: usize,
) -> Result<Written, Refusal> {
    let Some(encoding) = encoding.filter(|_| bytes.len() >= LEAST) else {
        return Ok(Written { bytes, charge, encoding: None });
    };
    let Ok(room_for_it) = answers.reserve(bytes.len()) else {
        return Ok(Written { bytes, charge, encoding: None });
    };
    let long = bytes.len() > LONG;
    let job = move || {
        Ok(match compress(encoding, &bytes, begin) {
            Some(shorter) => {
                let charge = room_for_it.settle(shorter.len())?;
                Written { bytes: shorter, charge, encoding: Some(encoding) }
            }
            None => Written { bytes, charge, encoding: None },
        })
    };
    if long { background.run(JobKind::Coding, None, job).await } else { job() }
}

/// Compresses bytes from `begin` on into a buffer of their length. Returns `None` if they do not
/// become shorter, or if there is no memory.
fn compress(encoding: Encoding, bytes: &[u8], begin: usize) -> Option<Vec<u8>> {
    let mut to = Vec::new();
    room(&mut to, bytes.len()).ok()?;
    to.extend_from_slice(&bytes[..begin]);
    let to = Bounded { to, most: bytes.len() - 1 };
    let written = match encoding {
        Encoding::Gzip => {
            let mut encoder = GzEncoder::new(to, Compression::fast());
            encoder.write_all(&bytes[begin..]).and_then(|()| encoder.finish())
        }
        Encoding::Deflate => {
            let mut encoder = ZlibEncoder::new(to, Compression::fast());
            encoder.write_all(&bytes[begin..]).and_then(|()| encoder.finish())
        }
    };
    written.ok().map(|written| written.to)
}

/// Buffer that refuses to grow beyond a length.
struct Bounded {
    to: Vec<u8>,
    most: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.to.len() + bytes.len() > self.most {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.to.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Decodes a whole message in parts, between which other requests continue. `grow` is asked before
/// each part is kept.
pub(crate) async fn decode(
    mut encoded: Encoded,
    message: Bytes,
    mut grow: impl FnMut(usize) -> Result<(), Refusal>,
) -> Result<Vec<u8>, Refusal> {
    let mut decoded = Vec::new();
    encoded.feed(message);
    loop {
        let part = match encoded.part()? {
            None => encoded.last()?,
            part => part,
        };
        let Some(part) = part else { return Ok(decoded) };
        grow(part.len())?;
        room(&mut decoded, part.remaining())?;
        decoded.extend_from_slice(&part);
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Queue;
    use hyper::header::HeaderValue;

    fn accepted(lists: &[&'static str]) -> Option<Encoding> {
        let mut headers = HeaderMap::new();
        for list in lists {
            headers.append(ACCEPT_ENCODING, HeaderValue::from_static(list));
        }
        Encoding::accepted(&headers)
    }

    #[test]
    fn the_encoding_that_a_client_prefers_is_chosen() {
        let (gzip, deflate) = (Some(Encoding::Gzip), Some(Encoding::Deflate));
        for (lists, wanted) in [
            (&["gzip"][..], gzip),
            (&["gzip, deflate, br"], gzip),
            (&["deflate, gzip"], gzip),
            (&["deflate"], deflate),
            (&["br", "x-gzip;q=0.5"], gzip),
            (&["gzip;q=0.2, deflate;q=0.9"], deflate),
            (&["gzip;q=0"], None),
            (&["gzip;q=wrong"], None),
            (&["*"], gzip),
            (&["identity", "br, zstd"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(accepted(lists), wanted, "{lists:?}");
        }
    }

    #[test]
    fn what_is_compressed_is_read_again_and_nothing_grows() {
        let text: Vec<u8> = (0..50_000u32).flat_map(|number| number.to_string().into_bytes()).collect();
        let queue = Queue::new("the queue", 1, 1 << 20);
        for encoding in Encoding::ALL {
            let shorter = compress(encoding, &text, 5).expect("shorter");
            assert_eq!(&shorter[..5], &text[..5], "what comes before stays");
            assert!(shorter.len() < text.len());
            let account = Account::open(&queue);
            let mut encoded = Encoded::new(encoding, &account).expect("room");
            let mut decoded = Vec::new();
            for piece in shorter[5..].chunks(1000) {
                encoded.feed(Bytes::copy_from_slice(piece));
                while let Some(part) = encoded.part().expect("right") {
                    assert!(part.len() <= PART + 1032 * STEP);
                    decoded.extend_from_slice(&part);
                }
            }
            decoded.extend_from_slice(&encoded.last().expect("complete").unwrap_or_default());
            assert!(encoded.last().expect("ended").is_none());
            assert!(decoded == text[5..]);
        }
        assert!(compress(Encoding::Gzip, &[7, 1, 200, 3], 0).is_none(), "it would be longer");
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn members_that_decode_to_nothing_are_decoded_a_few_in_a_step_and_then_refused() {
        let mut member = GzEncoder::new(Vec::new(), Compression::fast());
        member.flush().expect("a member");
        let body = member.finish().expect("a member").repeat(20_000);
        let queue = Queue::new("the queue", 1, 1 << 20);
        let mut encoded = Encoded::new(Encoding::Gzip, &Account::open(&queue)).expect("room");
        encoded.feed(body.into());
        let refusal = loop {
            let before = encoded.waiting.len();
            match encoded.part() {
                Ok(part) => assert!(part.is_some_and(|part| part.is_empty())),
                Err(refusal) => break refusal,
            }
            assert!((1..=ENCODED_PART).contains(&(before - encoded.waiting.len())));
        };
        assert!(refusal.message.contains("send them without encoding"), "{}", refusal.message);
    }

    #[test]
    fn damaged_and_cut_bodies_are_refused() {
        let text = vec![7; 10_000];
        let queue = Queue::new("the queue", 1, 1 << 20);
        for encoding in Encoding::ALL {
            let right = compress(encoding, &text, 0).expect("shorter");
            let mut damaged = right.clone();
            let last = damaged.len() - 1;
            damaged[last] ^= 1;
            let trailing = [&right[..], b"more"].concat();
            for bytes in [&right[..right.len() - 1], &right[..3], &damaged, &trailing, b"no such thing", b""] {
                let mut encoded = Encoded::new(encoding, &Account::open(&queue)).expect("room");
                encoded.feed(Bytes::copy_from_slice(bytes));
                let mut all = || -> Result<(), Refusal> {
                    while encoded.part()?.is_some() {}
                    encoded.last().map(|_| ())
                };
                let refusal = all().expect_err("not right");
                assert_eq!(refusal.cause, Cause::Invalid, "{bytes:?}");
                assert!(refusal.message.contains(encoding.name()), "{}", refusal.message);
            }
        }
    }
}
