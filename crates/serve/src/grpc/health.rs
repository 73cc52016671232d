//! Service `grpc.health.v1`: health of the server under the empty name, and of each model by name.

use super::call::{GrpcCall, Reply, framed};
use super::generated::health::health_check_response::ServingStatus;
use super::generated::health::{HealthCheckRequest, HealthCheckResponse};
use crate::refusal::Refusal;
use crate::shared::Shared;
use std::time::Duration;
use tokio::sync::mpsc;

const SERVICE: &str = "inference.GRPCInferenceService";
/// Interval at which changes are sent to a client that watches.
const LOOK: Duration = Duration::from_millis(250);

fn status(shared: &Shared, name: &str) -> Result<ServingStatus, Refusal> {
    let service = &shared.service;
    let ready = match name {
        "" | SERVICE => service.check_ready().is_ok(),
        model => service.is_model_ready(model, None)?,
    };
    Ok(if ready { ServingStatus::Serving } else { ServingStatus::NotServing })
}

pub(super) fn check(call: &GrpcCall, of: HealthCheckRequest) -> Result<HealthCheckResponse, Refusal> {
    let status = status(&call.shared, &of.service)?;
    Ok(HealthCheckResponse { status: status.into() })
}

pub(super) async fn watch(mut call: GrpcCall) -> Result<Reply, Refusal> {
    let of: HealthCheckRequest = call.only().await?;
    let shared = call.shared;
    let (sender, messages) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut before = None;
        while !shared.is_closing() && !sender.is_closed() {
            let now = status(&shared, &of.service).unwrap_or(ServingStatus::ServiceUnknown);
            if before != Some(now) {
                before = Some(now);
                let message = framed(&HealthCheckResponse { status: now.into() });
                if sender.send(Ok(message)).await.is_err() {
                    return;
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    });
    Ok(Reply::Stream(messages))
}
