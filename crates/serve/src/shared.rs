//! State that all connections of a server share.

use crate::heads::Heads;
use crate::refusal::Refusal;
use crate::service::Service;
use crate::tokens::Tokens;
use hyper::HeaderMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

/// Stage of a server's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum LifeStage {
    Serving,
    /// refuses new requests
    Draining,
    /// ends connections
    Closing,
}

/// State that all connections share.
pub(crate) struct Shared {
    pub(crate) service: Arc<Service>,
    tokens: Option<Tokens>,
    pub(crate) stage: watch::Sender<LifeStage>,
    pub(crate) connections: AtomicUsize,
    pub(crate) heads: Arc<Heads>,
}

impl Shared {
    pub(crate) fn new(service: Arc<Service>, tokens: Option<Tokens>) -> Shared {
        let stage = watch::Sender::new(LifeStage::Serving);
        Shared { service, tokens, stage, connections: AtomicUsize::new(0), heads: Arc::default() }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns whether connections end.
    pub(crate) fn is_closing(&self) -> bool {
        *self.stage.borrow() == LifeStage::Closing
    }

    /// Waits until connections end.
    pub(crate) async fn closing(&self) {
        let mut stage = self.stage.subscribe();
        let _ = stage.wait_for(|stage| *stage == LifeStage::Closing).await;
    }

    /// Refuses requests without a valid token, if the server requires tokens.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        self.tokens.as_ref().map_or(Ok(()), |tokens| tokens.check(headers))
    }
}
