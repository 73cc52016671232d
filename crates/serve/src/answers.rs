//! Bytes of responses that clients have not yet taken. See ACCOUNTING.md.

use crate::begun::Begun;
use crate::refusal::{Cause, Refusal};
use hyper::body::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest response, in bytes, that may use the part of the bound that is reserved for small
/// responses.
const SMALL: usize = 64 << 10;
/// Divisor of the bound that gives the reserved part: an eighth of it.
const FOR_SMALL: usize = 8;

/// Bytes that responses hold, of one part of the bound.
#[derive(Debug)]
struct BoundPart {
    limit: usize,
    /// whether a response may have more than the limit while no other one is held
    one_may_exceed: bool,
    held: AtomicUsize,
}

impl BoundPart {
    /// Changes the bytes of a response. Returns whether they fit.
    fn resize(&self, from: usize, to: usize) -> bool {
        let fits = |held, sum| sum <= self.limit || (self.one_may_exceed && held == from);
        let resized = |held: usize| (held - from).checked_add(to).filter(|sum| fits(held, *sum));
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, resized).is_ok()
    }

    fn release(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bound on the bytes of all responses, and the bytes that are held now.
#[derive(Debug)]
pub(crate) struct Answers {
    limit: usize,
    /// part for all responses
    shared: BoundPart,
    /// part for small responses that have no room in the shared one
    reserved: BoundPart,
    /// most bytes that were held since the last call of `take_peak`
    peak: AtomicUsize,
}

/// Part of the bound that a response is charged to.
#[derive(Clone, Copy, Debug)]
enum Room {
    Shared,
    Reserved,
}

/// Bytes of one response, held until this charge is dropped.
#[derive(Debug)]
pub(crate) struct AnswerCharge {
    of: Arc<Answers>,
    room: Room,
    bytes: usize,
}

/// Bytes of a response, charged until the last slice of them is dropped. So long the shutdown waits
/// for the inference request that they answer.
struct Paid {
    bytes: Vec<u8>,
    _charge: AnswerCharge,
    _begun: Option<Begun>,
}

impl AsRef<[u8]> for Paid {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answers {
    pub(crate) fn new(limit: usize) -> Arc<Answers> {
        let part = |limit, one_may_exceed| BoundPart { limit, one_may_exceed, held: AtomicUsize::new(0) };
        let small = limit / FOR_SMALL;
        let (shared, reserved) = (part(limit - small, true), part(small, false));
        Arc::new(Answers { limit, shared, reserved, peak: AtomicUsize::new(0) })
    }

    fn part(&self, room: Room) -> &BoundPart {
        match room {
            Room::Shared => &self.shared,
            Room::Reserved => &self.reserved,
        }
    }

    /// Returns the number of bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.shared.held.load(Ordering::Relaxed) + self.reserved.held.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that were held since the last call.
    pub(crate) fn take_peak(&self) -> usize {
        self.peak.swap(0, Ordering::Relaxed)
    }

    /// Charges the bytes of a response. A response larger than the bound is accepted only while no
    /// other one is held; small ones have room even then.
    pub(crate) fn reserve(self: &Arc<Answers>, bytes: usize) -> Result<AnswerCharge, Refusal> {
        let parts: &[Room] = if bytes <= SMALL { &[Room::Shared, Room::Reserved] } else { &[Room::Shared] };
        let room = parts.iter().copied().find(|room| self.part(*room).resize(0, bytes));
        let Some(room) = room else { return Err(self.refusal(bytes)) };
        self.peak.fetch_max(self.bytes(), Ordering::Relaxed);
        Ok(AnswerCharge { of: self.clone(), room, bytes })
    }

    fn refusal(&self, bytes: usize) -> Refusal {
        let message = format!(
            "the answer of {bytes} bytes does not fit: clients have not taken {} bytes of others, and the server \
             holds {} (answer_bytes): try again in 1 s, or another server",
            self.bytes(),
            self.limit
        );
        Refusal::new(Cause::Full, message).retry_after(1)
    }

    /// Charges the few bytes of a refusal, which is sent even when the bound is reached.
    pub(crate) fn count(self: &Arc<Answers>, bytes: usize) -> AnswerCharge {
        self.reserved.held.fetch_add(bytes, Ordering::Relaxed);
        AnswerCharge { of: self.clone(), room: Room::Reserved, bytes }
    }
}

impl AnswerCharge {
    /// Corrects the charge to the actual size of the response, which may differ from the estimate.
    pub(crate) fn settle(mut self, bytes: usize) -> Result<AnswerCharge, Refusal> {
        if !self.of.part(self.room).resize(self.bytes, bytes) {
            return Err(self.of.refusal(bytes));
        }
        self.bytes = bytes;
        Ok(self)
    }

    /// Attaches the charge to the bytes, and the guard of the request that they answer. Both end
    /// when the last slice of the bytes is dropped.
    pub(crate) fn pay(self, bytes: Vec<u8>, begun: Option<Begun>) -> Bytes {
        Bytes::from_owner(Paid { bytes, _charge: self, _begun: begun })
    }
}

impl Drop for AnswerCharge {
    fn drop(&mut self) {
        self.of.part(self.room).release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_answers_have_room_where_large_ones_have_none() {
        let answers = Answers::new(8 << 20);
        let large = answers.reserve(7 << 20).expect("room");
        assert!(answers.reserve(SMALL + 1).is_err_and(|refusal| refusal.cause == Cause::Full));
        let small: Vec<_> = (0..16).map(|_| answers.reserve(SMALL).expect("room")).collect();
        assert!(answers.reserve(1).is_err());
        drop((large, small));
        assert_eq!(answers.bytes(), 0);
    }

    #[test]
    fn small_answers_have_room_beside_one_that_is_larger_than_the_bound() {
        let answers = Answers::new(8 << 20);
        let only = answers.reserve(100 << 20).expect("nothing else is held");
        assert!(answers.reserve(SMALL + 1).is_err());
        let small: Vec<_> = (0..16).map(|_| answers.reserve(SMALL).expect("room")).collect();
        assert!(answers.reserve(1).is_err());
        let only = only.settle(101 << 20).expect("it has no others to wait for");
        drop((only, small));
        assert_eq!(answers.bytes(), 0);
    }

    #[test]
    fn one_answer_may_be_larger_than_the_bound() {
        let answers = Answers::new(100);
        let only = answers.reserve(1000).expect("nothing else is held");
        assert!(answers.reserve(88).is_err());
        drop(only);
        let made = answers.reserve(10).expect("room").settle(50).expect("room").settle(20).expect("less");
        assert_eq!(answers.bytes(), 20);
        let (bytes, refusal) = (made.pay(vec![7; 20], None), answers.count(90));
        assert_eq!(answers.bytes(), 110, "refusals are answered in any case");
        drop(refusal);
        let part = bytes.slice(19..);
        drop(bytes);
        assert_eq!((answers.bytes(), &part[..]), (20, &[7][..]), "a part holds all of them");
        drop(part);
        assert_eq!(answers.bytes(), 0);
    }
}
