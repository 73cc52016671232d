//! Open Inference Protocol over gRPC. The framing is simple, so it is written and read here, on top
//! of hyper. prost encodes and decodes the messages.
//!
//! | module | does |
//! | --- | --- |
//! | `call` | the frame of a call: its head, messages, status |
//! | `infer` | `ModelInfer` |
//! | `request`, `contents`, `fields` | its request, read in place |
//! | `models` | the other methods of `inference.GRPCInferenceService` |
//! | `health`, `reflection` | `grpc.health.v1`, and what tells clients the protocol |
//! | `generated` | messages, and descriptions of the files in `proto` |

mod call;
mod contents;
pub(crate) mod fields;
#[rustfmt::skip]
#[allow(clippy::all, missing_docs, dead_code)]
mod generated;
mod health;
mod infer;
mod models;
mod reflection;
mod request;

use crate::answer::AnswerBody;
use crate::body::Received;
use crate::connection::Busy;
use crate::refusal::{Cause, Refusal};
use crate::shared::Shared;
use call::{Answering, GrpcCall, unary};
use hyper::{Request, Response};
use std::sync::Arc;

/// Method of a service, and its handler.
struct Method {
    path: &'static str,
    answer: fn(GrpcCall) -> Answering,
}

/// All methods of all services.
static METHODS: &[Method] = &[
    Method { path: "/inference.GRPCInferenceService/ModelInfer", answer: |call| Box::pin(infer::answer(call)) },
    Method { path: "/inference.GRPCInferenceService/ServerLive", answer: |call| unary(call, models::server_live) },
    Method { path: "/inference.GRPCInferenceService/ServerReady", answer: |call| unary(call, models::server_ready) },
    Method { path: "/inference.GRPCInferenceService/ModelReady", answer: |call| unary(call, models::model_ready) },
    Method { path: "/inference.GRPCInferenceService/ServerMetadata", answer: |call| unary(call, models::metadata) },
    Method {
        path: "/inference.GRPCInferenceService/ModelMetadata",
        answer: |call| unary(call, models::model_metadata),
    },
    Method { path: "/inference.GRPCInferenceService/ModelConfig", answer: |call| unary(call, models::model_config) },
    Method { path: "/inference.GRPCInferenceService/ModelStatistics", answer: |call| unary(call, models::statistics) },
    Method { path: "/inference.GRPCInferenceService/RepositoryIndex", answer: |call| unary(call, models::index) },
    Method { path: "/inference.GRPCInferenceService/RepositoryModelLoad", answer: |call| Box::pin(models::load(call)) },
    Method {
        path: "/inference.GRPCInferenceService/RepositoryModelUnload",
        answer: |call| Box::pin(models::unload(call)),
    },
    Method { path: "/grpc.health.v1.Health/Check", answer: |call| unary(call, health::check) },
    Method { path: "/grpc.health.v1.Health/Watch", answer: |call| Box::pin(health::watch(call)) },
    Method {
        path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        answer: |call| Box::pin(reflection::answer(call)),
    },
    // The only version that the Python package grpcio-reflection uses.
    Method {
        path: "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        answer: |call| Box::pin(reflection::answer(call)),
    },
];

/// Finds the method of a call's path, and answers with it.
pub(crate) async fn answer(
    shared: Arc<Shared>,
    request: Result<Request<Received>, Refusal>,
    busy: Busy,
) -> Response<AnswerBody> {
    let service = shared.service.clone();
    let request = match request {
        Ok(request) => request,
        Err(refusal) => return call::refused(&refusal, busy),
    };
    let encoding = call::encoding(request.headers()).ok().flatten().filter(|_| service.config.compress);
    match route(shared, request).await {
        Ok(reply) => reply.respond(&service, encoding, busy).await,
        Err(refusal) => call::refused(&refusal, busy),
    }
}

async fn route(shared: Arc<Shared>, request: Request<Received>) -> Result<call::Reply, Refusal> {
    let path = request.uri().path();
    if !path.starts_with("/grpc.health.v1.Health/") {
        shared.check_token(request.headers())?;
    }
    let Some(method) = METHODS.iter().find(|method| method.path == path) else {
        let name = path.rsplit('/').next().unwrap_or_default();
        let instead = match name {
            "ModelStreamInfer" => "streaming inference is not supported; use ModelInfer",
            _ if name.contains("SharedMemory") => "send the elements in the message",
            "TraceSetting" => "the option --traces of mxrt serve sends spans to a collector",
            "LogSettings" => "the options --logs and --log-requests of mxrt serve say what is logged",
            _ => "the server reflection lists the methods",
        };
        let name = crate::protocol::short(path.trim_start_matches('/'));
        let message = format!("this server has no method '{name}': {instead}");
        return Err(Refusal::new(Cause::Unimplemented, message));
    };
    (method.answer)(GrpcCall::new(shared, request)?).await
}
