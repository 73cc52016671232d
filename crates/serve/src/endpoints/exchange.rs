//! Requests to models over HTTP, from their heads to their ends.

use super::call::EndpointCall;
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::model::Model;
use crate::refusal::Refusal;
use crate::service::{Inference, Service};
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use std::sync::Arc;
use std::time::Instant;

/// Request to a model, with everything that it holds until it is answered.
pub(super) struct Exchange {
    pub(super) service: Arc<Service>,
    pub(super) head: Parts,
    pub(super) body: RequestBody,
    pub(super) inference: Inference,
}

impl Exchange {
    /// Begins a request, and chooses the model that the path names if it serves.
    pub(super) async fn begin(call: EndpointCall) -> Result<(Exchange, Result<Arc<Model>, Refusal>), Refusal> {
        let EndpointCall { shared, request, model, version } = call;
        let service = shared.service.clone();
        let mut inference = service.begin(Instant::now());
        let (head, body) = request.into_parts();
        inference.traced(&head.headers);
        let mut body = match RequestBody::new(body, &service.config, inference.account()) {
            Ok(body) => body,
            Err(refusal) => {
                inference.end(Some(&refusal));
                return Err(refusal);
            }
        };
        if let Err(refusal) = body.decode_by(&head.headers, inference.account()) {
            let exchange = Exchange { service, head, body, inference };
            return Err(exchange.refused(refusal).await);
        }
        let model = inference.choose(model.as_deref().unwrap_or_default(), version.as_deref()).await;
        Ok((Exchange { service, head, body, inference }, model))
    }

    /// Returns the content type of the body; empty if the head does not give it.
    pub(super) fn content_type(&self) -> &str {
        self.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Ends a request that was refused.
    async fn refused(self, refusal: Refusal) -> Refusal {
        let Exchange { body, inference, .. } = self;
        if !refusal.close {
            body.pass_over().await;
        }
        inference.end(Some(&refusal));
        refusal
    }

    /// Ends the request. Reads the rest of its body, so that the connection can take the next
    /// request.
    pub(super) async fn end(self, result: Result<Answer, Refusal>) -> Result<Answer, Refusal> {
        match result {
            Ok(answer) => Ok(Answer { begun: self.inference.end(None), ..answer }),
            Err(refusal) => Err(self.refused(refusal).await),
        }
    }
}
