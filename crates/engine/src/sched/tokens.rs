//! Core tokens: the right to compute. There are as many as cores; a token also names the scratch
//! memory of its core.

use crate::sync::atomic::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// The free tokens, as bits.
pub(crate) struct Tokens {
    words: Box<[CachePadded<AtomicU64>]>,
    len: usize,
    /// Preferred token of each processor number.
    by_cpu: Box<[u32]>,
}

impl Tokens {
    pub fn new(len: usize) -> Self {
        let tokens = Tokens {
            words: (0..len.div_ceil(64)).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
            len,
            by_cpu: preferred_tokens(len),
        };
        tokens.reset(None);
        tokens
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Makes all tokens free except one.
    pub fn reset(&self, except: Option<usize>) {
        for (i, word) in self.words.iter().enumerate() {
            let here = (self.len - i * 64).min(64);
            let mut bits = if here == 64 { u64::MAX } else { (1 << here) - 1 };
            if let Some(token) = except.filter(|t| t / 64 == i) {
                bits &= !(1 << (token % 64));
            }
            word.store(bits, Ordering::SeqCst);
        }
    }

    /// How many tokens are free.
    pub fn free(&self) -> usize {
        self.words.iter().map(|w| w.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// Whether a token may be free.
    pub fn any_free(&self) -> bool {
        self.words.iter().any(|w| w.load(Ordering::SeqCst) != 0)
    }

    /// Takes a free token: that of the processor this thread runs on if it is free, so that scratch
    /// memory and what is in that core's caches belong together.
    pub fn take(&self) -> Option<usize> {
        self.take_near(self.preferred())
    }

    fn preferred(&self) -> usize {
        if self.len == 1 {
            return 0;
        }
        #[cfg(not(miri))]
        // SAFETY: a plain query without arguments.
        let cpu = unsafe { libc::sched_getcpu() };
        #[cfg(miri)]
        let cpu = 0;
        usize::try_from(cpu).ok().and_then(|cpu| self.by_cpu.get(cpu)).map_or(0, |t| *t as usize)
    }

    pub fn take_near(&self, preferred: usize) -> Option<usize> {
        let first = preferred / 64;
        for k in 0..self.words.len() {
            let index = (first + k) % self.words.len();
            let word = &self.words[index];
            let mut free = word.load(Ordering::SeqCst);
            while free != 0 {
                let wish = 1u64 << (preferred % 64);
                let bit = if k == 0 && free & wish != 0 { wish } else { free & free.wrapping_neg() };
                match word.compare_exchange_weak(free, free & !bit, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(_) => return Some(index * 64 + bit.trailing_zeros() as usize),
                    Err(now) => free = now,
                }
            }
        }
        None
    }

    /// Gives a token back. SeqCst: a thread that gives back looks at the queue afterwards, one that
    /// queues looks at the tokens.
    pub fn put(&self, token: usize) {
        let before = self.words[token / 64].fetch_or(1 << (token % 64), Ordering::SeqCst);
        debug_assert!(before & (1 << (token % 64)) == 0, "token {token} given back twice");
    }
}

/// Token `i` for the `i`-th processor of the affinity mask.
fn preferred_tokens(len: usize) -> Box<[u32]> {
    let mut by_cpu = Vec::new();
    #[cfg(not(miri))]
    {
        // SAFETY: the set is plain memory of the size passed, which the call fills.
        let set = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            let ok = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) == 0;
            ok.then_some(set)
        };
        if let Some(set) = set {
            let mut next = 0;
            for cpu in 0..libc::CPU_SETSIZE as usize {
                // SAFETY: `cpu` is below the size of the set.
                let allowed = unsafe { libc::CPU_ISSET(cpu, &set) };
                by_cpu.push((next % len) as u32);
                next += allowed as usize;
            }
        }
    }
    by_cpu.into()
}
