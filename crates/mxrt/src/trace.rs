//! Spans of requests, with the feature `tracing`; nothing without it.

use crate::Error;

/// The span of a request: `mxrt.request` at level debug, with the name of the model. Its end is an
/// event, of level warn for an error.
pub(crate) struct RequestSpan {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

#[cfg(feature = "tracing")]
impl RequestSpan {
    pub fn new(model: &str) -> RequestSpan {
        RequestSpan { span: tracing::debug_span!("mxrt.request", model) }
    }

    /// Runs `f` as a part of the request.
    pub fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        self.span.in_scope(f)
    }

    /// The request is over.
    pub fn end<T>(&self, done: &Result<T, Error>) {
        self.within(|| match done {
            Ok(_) => tracing::debug!("answered"),
            Err(error) => {
                tracing::warn!(kind = error.kind().name(), operator = error.operator(), node = error.node(), "{error}")
            }
        });
    }
}

#[cfg(not(feature = "tracing"))]
impl RequestSpan {
    pub fn new(_: &str) -> RequestSpan {
        RequestSpan {}
    }

    pub fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    pub fn end<T>(&self, _: &Result<T, Error>) {}
}
