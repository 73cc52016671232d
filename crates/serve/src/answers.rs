//! Bytes of responses that clients have not yet taken. See ACCOUNTING.md.

use crate::refusal::{Outcome, Refusal};
use hyper::StatusCode;
use hyper::body::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest response, in bytes, that may use the part of the bound that is reserved for small
/// responses.
const SMALL: usize = 64 << 10;
/// Divisor of the bound that gives the reserved part: an eighth of it.
const FOR_SMALL: usize = 8;

/// Bound on the bytes of all responses, and the bytes that are held now.
#[derive(Debug)]
pub(crate) struct Answers {
    limit: usize,
    held: AtomicUsize,
    /// most bytes that were held since the last call of `take_peak`
    peak: AtomicUsize,
}

/// Bytes of one response, held until this charge is dropped.
#[derive(Debug)]
pub(crate) struct AnswerCharge {
    of: Arc<Answers>,
    bytes: usize,
}

/// Bytes of a response, charged until the last slice of them is dropped.
struct Paid {
    bytes: Vec<u8>,
    _charge: AnswerCharge,
}

impl AsRef<[u8]> for Paid {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answers {
    pub(crate) fn new(limit: usize) -> Arc<Answers> {
        Arc::new(Answers { limit, held: AtomicUsize::new(0), peak: AtomicUsize::new(0) })
    }

    /// Returns the number of bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that were held since the last call.
    pub(crate) fn take_peak(&self) -> usize {
        self.peak.swap(0, Ordering::Relaxed)
    }

    /// Charges the bytes of a response. A response larger than the bound is accepted only while no
    /// other one is held.
    pub(crate) fn reserve(self: &Arc<Answers>, bytes: usize) -> Result<AnswerCharge, Refusal> {
        let limit = if bytes <= SMALL { self.limit } else { self.limit - self.limit / FOR_SMALL };
        let grown = |held: usize| held.checked_add(bytes).filter(|sum| held == 0 || *sum <= limit);
        match self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(AnswerCharge { of: self.clone(), bytes })
            }
            Err(held) => {
                let message = format!(
                    "the answer of {bytes} bytes does not fit: clients have not taken {held} bytes of others, and the \
                     server holds {} (answer_bytes): try again in 1 s, or another server",
                    self.limit
                );
                Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, Outcome::Rejected, message).retry_after(1))
            }
        }
    }

    /// Charges the few bytes of a refusal, which is sent even when the bound is reached.
    pub(crate) fn count(self: &Arc<Answers>, bytes: usize) -> AnswerCharge {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        AnswerCharge { of: self.clone(), bytes }
    }
}

impl AnswerCharge {
    /// Corrects the charge to the actual size of the response, which may differ from the estimate.
    pub(crate) fn settle(self, bytes: usize) -> Result<AnswerCharge, Refusal> {
        if bytes > self.bytes {
            let mut more = self.of.reserve(bytes - self.bytes)?;
            more.bytes = 0;
        } else {
            self.of.held.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        let mut settled = self;
        settled.bytes = bytes;
        Ok(settled)
    }

    /// Attaches the charge to the bytes. It is returned when the last slice of them is dropped.
    pub(crate) fn pay(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Paid { bytes, _charge: self })
    }
}

impl Drop for AnswerCharge {
    fn drop(&mut self) {
        self.of.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_answers_have_room_where_large_ones_have_none() {
        let answers = Answers::new(8 << 20);
        let large = answers.reserve(7 << 20).expect("room");
        assert!(answers.reserve(SMALL + 1).is_err_and(|refusal| refusal.status.as_u16() == 429));
        let small: Vec<_> = (0..16).map(|_| answers.reserve(SMALL).expect("room")).collect();
        assert!(answers.reserve(1).is_err());
        drop((large, small));
        assert_eq!(answers.bytes(), 0);
    }

    #[test]
    fn one_answer_may_be_larger_than_the_bound() {
        let answers = Answers::new(100);
        let only = answers.reserve(1000).expect("nothing else is held");
        assert!(answers.reserve(1).is_err());
        drop(only);
        let made = answers.reserve(10).expect("room").settle(50).expect("room").settle(20).expect("less");
        assert_eq!(answers.bytes(), 20);
        let (bytes, refusal) = (made.pay(vec![7; 20]), answers.count(90));
        assert_eq!(answers.bytes(), 110, "refusals are answered in any case");
        drop(refusal);
        let part = bytes.slice(19..);
        drop(bytes);
        assert_eq!((answers.bytes(), &part[..]), (20, &[7][..]), "a part holds all of them");
        drop(part);
        assert_eq!(answers.bytes(), 0);
    }
}
