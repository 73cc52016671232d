//! A request to a model over HTTP, from its head to its end.

use super::Call;
use crate::body::RequestBody;
use crate::model::Model;
use crate::refusal::Refusal;
use crate::server::Answer;
use crate::service::{Inference, Service};
use hyper::http::request::Parts;
use std::sync::Arc;
use std::time::Instant;

/// What a request to a model holds while it is answered.
pub(super) struct Exchange {
    pub(super) service: Arc<Service>,
    pub(super) head: Parts,
    pub(super) body: RequestBody,
    pub(super) inference: Inference,
}

impl Exchange {
    /// Begins, with the model that the path names if it may be asked.
    pub(super) async fn begin(call: Call) -> Result<(Exchange, Result<Arc<Model>, Refusal>), Refusal> {
        let Call { shared, request, model, version } = call;
        let service = shared.service.clone();
        let mut inference = service.begin(Instant::now());
        let (head, body) = request.into_parts();
        inference.traced(&head.headers);
        let body = match RequestBody::new(body, &service.config, inference.account()) {
            Ok(body) => body,
            Err(refusal) => {
                inference.end(Some(&refusal));
                return Err(refusal);
            }
        };
        let model = inference.choose(model.as_deref().unwrap_or_default(), version.as_deref()).await;
        Ok((Exchange { service, head, body, inference }, model))
    }

    /// Ends it. What is left of a body is read, so that the next request of the connection is found.
    pub(super) async fn end(self, result: Result<Answer, Refusal>) -> Result<Answer, Refusal> {
        let Exchange { body, inference, .. } = self;
        if result.as_ref().is_err_and(|refusal| !refusal.close) {
            body.pass_over().await;
        }
        inference.end(result.as_ref().err());
        result
    }
}
