//! Server reflection, for clients that have no copy of the protocol's files.

use super::call::{GrpcCall, Reply, decoded, framed};
use super::generated::reflection as wire;
use super::generated::{FILES, ProtocolFile};
use crate::protocol::short;
use crate::refusal::Refusal;
use hyper::body::Bytes;
use tokio::sync::mpsc;
use wire::server_reflection_request::MessageRequest;
use wire::server_reflection_response::MessageResponse;

const NOT_FOUND: i32 = 5;
const INVALID: i32 = 3;

pub(super) async fn answer(mut call: GrpcCall) -> Result<Reply, Refusal> {
    let (sender, messages) = mpsc::channel(1);
    call.body.make_short();
    tokio::spawn(async move {
        loop {
            let answer = match call.message().await {
                Ok(None) => return,
                Ok(Some(message)) => decoded(message).map(|asked| framed(&answered(asked))),
                Err(refusal) => Err(refusal),
            };
            let last = answer.is_err();
            if sender.send(answer).await.is_err() || last {
                return;
            }
        }
    });
    Ok(Reply::Stream(messages))
}

fn answered(asked: wire::ServerReflectionRequest) -> wire::ServerReflectionResponse {
    let answer = match &asked.message_request {
        Some(MessageRequest::FileByFilename(name)) => described(FILES.iter().find(|file| file.name == name), name),
        Some(MessageRequest::FileContainingSymbol(name)) => {
            described(FILES.iter().find(|file| file.symbols.contains(&name.as_str())), name)
        }
        Some(MessageRequest::ListServices(_)) => {
            let services = FILES.iter().flat_map(|file| file.services);
            let service = services.map(|name| wire::ServiceResponse { name: (*name).to_owned() }).collect();
            MessageResponse::ListServicesResponse(wire::ListServiceResponse { service })
        }
        Some(MessageRequest::AllExtensionNumbersOfType(name)) => {
            if FILES.iter().any(|file| file.symbols.contains(&name.as_str())) {
                let base_type_name = name.clone();
                let extension_number = Vec::new();
                let found = wire::ExtensionNumberResponse { base_type_name, extension_number };
                MessageResponse::AllExtensionNumbersResponse(found)
            } else {
                described(None, name)
            }
        }
        Some(MessageRequest::FileContainingExtension(of)) => described(None, &of.containing_type),
        None => failed(INVALID, "the message asks for nothing".to_owned()),
    };
    wire::ServerReflectionResponse {
        valid_host: asked.host.clone(),
        original_request: Some(asked),
        message_response: Some(answer),
    }
}

fn failed(error_code: i32, error_message: String) -> MessageResponse {
    MessageResponse::ErrorResponse(wire::ErrorResponse { error_code, error_message })
}

/// Returns the descriptors of a file and of those that it imports.
fn described(file: Option<&ProtocolFile>, name: &str) -> MessageResponse {
    let Some(file) = file else { return failed(NOT_FOUND, format!("there is no '{}' here", short(name))) };
    let imports = FILES.iter().filter(|other| file.imports.contains(&other.name));
    let descriptors = std::iter::once(file).chain(imports).map(|file| Bytes::from_static(file.descriptor));
    MessageResponse::FileDescriptorResponse(wire::FileDescriptorResponse {
        file_descriptor_proto: descriptors.collect(),
    })
}
