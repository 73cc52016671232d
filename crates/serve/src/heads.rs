//! Memory of the heads of open requests. See ACCOUNTING.md.

use crate::refusal::{Cause, Refusal};
use hyper::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most header fields of a request.
pub(crate) const MOST_FIELDS: usize = 64;
/// Most bytes of the heads of all open requests.
const MOST_BYTES: usize = 128 << 20;
/// Memory of an open request, and of a field in addition to its name and value.
const REQUEST: usize = 10 << 10;
const FIELD: usize = 128;

/// Bytes of the heads of all open requests.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    held: AtomicUsize,
    /// most bytes that were held since the last call of `take_peak`, and those of heads with too
    /// many fields, which the transport may have held together
    peak: AtomicUsize,
}

/// Bytes of one head, held until this is dropped.
#[derive(Debug)]
pub(crate) struct HeadCharge {
    of: Arc<Heads>,
    bytes: usize,
}

impl Heads {
    /// Returns the number of bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that were held since the last call.
    pub(crate) fn take_peak(&self) -> usize {
        self.peak.swap(0, Ordering::Relaxed)
    }

    /// Charges the head of a request, and refuses one with too many fields, or for which there is
    /// no room. The charge covers the refusal as well.
    pub(crate) fn charge<B>(self: &Arc<Heads>, request: &Request<B>) -> (HeadCharge, Result<(), Refusal>) {
        let fields = request.headers().len();
        let text: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
        let bytes = REQUEST + fields * FIELD + text + path;
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(held, Ordering::Relaxed);
        let checked = match () {
            () if fields > MOST_FIELDS => {
                self.peak.fetch_add(bytes, Ordering::Relaxed);
                let words = format!("the head has {fields} header fields; this server takes at most {MOST_FIELDS}");
                Err(Refusal::new(Cause::HeadTooLarge, words).closing())
            }
            () if held > MOST_BYTES => {
                let words = "the server holds the heads of too many open requests: try again in 1 s, or another server";
                let refusal = Refusal::new(Cause::TooManyOpen, words);
                Err(refusal.retry_after(1).closing())
            }
            () => Ok(()),
        };
        (HeadCharge { of: self.clone(), bytes }, checked)
    }
}

impl Drop for HeadCharge {
    fn drop(&mut self) {
        self.of.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: usize, length: usize) -> Request<()> {
        let mut request = Request::builder().uri("/v2/health/live");
        for field in 0..fields {
            request = request.header(format!("h{field}"), "v".repeat(length));
        }
        request.body(()).expect("a request")
    }

    #[test]
    fn heads_are_charged_until_they_are_dropped_and_have_a_bound() {
        let heads = Arc::new(Heads::default());
        let (held, checked) = heads.charge(&request(MOST_FIELDS, 10));
        assert!(checked.is_ok() && heads.bytes() > REQUEST + 64 * (FIELD + 12));
        let (many, checked) = heads.charge(&request(MOST_FIELDS + 1, 1));
        assert_eq!(checked.expect_err("too many fields").cause, Cause::HeadTooLarge);
        drop((held, many));
        assert_eq!(heads.bytes(), 0);
        assert!(heads.take_peak() > REQUEST && heads.take_peak() == 0);
        let large = request(1, 1 << 20);
        let open: Vec<_> = (0..MOST_BYTES >> 20).map(|_| heads.charge(&large)).collect();
        assert!(open[0].1.is_ok() && open.last().is_some_and(|(_, checked)| checked.is_err()));
        let full = heads.charge(&request(0, 0)).1.expect_err("no room");
        assert_eq!((full.cause, full.retry_after), (Cause::TooManyOpen, Some(1)));
        drop(open);
        assert!(heads.charge(&large).1.is_ok());
    }
}
