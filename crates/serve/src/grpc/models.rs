//! Methods that report on the server and its models, or load and unload models.

use super::call::{GrpcCall, Reply};
use super::generated::inference as wire;
use crate::model::{ConfigTensor, ModelConfig, NamedTensor, PLATFORM};
use crate::refusal::Refusal;
use crate::service::{Change, ModelStatistics, NAME, VERSION};

/// Returns the version that a message names; `None` if the text is empty.
pub(super) fn version(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[allow(clippy::unnecessary_wraps)]
pub(super) fn server_live(_: &GrpcCall, _: wire::ServerLiveRequest) -> Result<wire::ServerLiveResponse, Refusal> {
    Ok(wire::ServerLiveResponse { live: true })
}

#[allow(clippy::unnecessary_wraps)]
pub(super) fn server_ready(call: &GrpcCall, _: wire::ServerReadyRequest) -> Result<wire::ServerReadyResponse, Refusal> {
    Ok(wire::ServerReadyResponse { ready: call.shared.service.check_ready().is_ok() })
}

/// Says whether a model serves. One that does not exist is not ready, as Triton answers: clients
/// ask until a model is there.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn model_ready(call: &GrpcCall, of: wire::ModelReadyRequest) -> Result<wire::ModelReadyResponse, Refusal> {
    let ready = call.shared.service.model_ready(&of.name, version(&of.version)).is_ok();
    Ok(wire::ModelReadyResponse { ready })
}

#[allow(clippy::unnecessary_wraps)]
pub(super) fn metadata(
    call: &GrpcCall,
    _: wire::ServerMetadataRequest,
) -> Result<wire::ServerMetadataResponse, Refusal> {
    Ok(wire::ServerMetadataResponse {
        name: NAME.to_owned(),
        version: VERSION.to_owned(),
        extensions: call.shared.service.extensions().into_iter().map(str::to_owned).collect(),
    })
}

pub(super) fn model_metadata(
    call: &GrpcCall,
    of: wire::ModelMetadataRequest,
) -> Result<wire::ModelMetadataResponse, Refusal> {
    let (model, versions) = call.shared.service.metadata(&of.name, version(&of.version))?;
    let tensor = |of: &NamedTensor| wire::model_metadata_response::TensorMetadata {
        name: of.name.clone(),
        datatype: of.datatype.name().to_owned(),
        shape: of.extents(),
    };
    Ok(wire::ModelMetadataResponse {
        name: model.name.clone(),
        versions,
        platform: PLATFORM.to_owned(),
        inputs: model.offered.inputs.iter().map(tensor).collect(),
        outputs: model.offered.outputs.iter().map(tensor).collect(),
    })
}

pub(super) fn model_config(
    call: &GrpcCall,
    of: wire::ModelConfigRequest,
) -> Result<wire::ModelConfigResponse, Refusal> {
    let (model, _) = call.shared.service.metadata(&of.name, version(&of.version))?;
    let config = ModelConfig::of(&model);
    let input = |tensor: ConfigTensor| wire::ModelInput {
        name: tensor.name,
        data_type: wire::DataType::from_str_name(&tensor.data_type).unwrap_or_default().into(),
        dims: tensor.dims,
    };
    let output = |tensor: ConfigTensor| {
        let wire::ModelInput { name, data_type, dims } = input(tensor);
        wire::ModelOutput { name, data_type, dims }
    };
    Ok(wire::ModelConfigResponse {
        config: Some(wire::ModelConfig {
            name: config.name,
            platform: config.platform.to_owned(),
            backend: config.backend.to_owned(),
            max_batch_size: config.max_batch_size,
            input: config.input.into_iter().map(input).collect(),
            output: config.output.into_iter().map(output).collect(),
        }),
    })
}

pub(super) fn statistics(
    call: &GrpcCall,
    of: wire::ModelStatisticsRequest,
) -> Result<wire::ModelStatisticsResponse, Refusal> {
    let found = call.shared.service.statistics(version(&of.name), version(&of.version))?;
    Ok(wire::ModelStatisticsResponse { model_stats: found.into_iter().map(of_model).collect() })
}

fn of_model(of: ModelStatistics) -> wire::ModelStatistics {
    let times = of.inference_stats;
    let duration = |count, ns| Some(wire::StatisticDuration { count, ns });
    wire::ModelStatistics {
        name: of.name,
        version: of.version,
        last_inference: of.last_inference,
        inference_count: of.inference_count,
        execution_count: of.execution_count,
        inference_stats: Some(wire::InferStatistics {
            success: duration(times.success.count, times.success.ns),
            fail: duration(times.fail.count, times.fail.ns),
            queue: duration(times.queue.count, times.queue.ns),
            compute_input: duration(times.compute_input.count, times.compute_input.ns),
            compute_infer: duration(times.compute_infer.count, times.compute_infer.ns),
            compute_output: duration(times.compute_output.count, times.compute_output.ns),
            ..Default::default()
        }),
        ..Default::default()
    }
}

#[allow(clippy::unnecessary_wraps)]
pub(super) fn index(
    call: &GrpcCall,
    of: wire::RepositoryIndexRequest,
) -> Result<wire::RepositoryIndexResponse, Refusal> {
    let entries = call.shared.service.index().into_iter().filter(|entry| !of.ready || entry.state == "READY");
    let models = entries.map(|entry| wire::repository_index_response::ModelIndex {
        name: entry.name,
        version: entry.version,
        state: entry.state.to_owned(),
        reason: entry.reason,
    });
    Ok(wire::RepositoryIndexResponse { models: models.collect() })
}

pub(super) async fn load(mut call: GrpcCall) -> Result<Reply, Refusal> {
    let of: wire::RepositoryModelLoadRequest = call.only().await?;
    if let Some(name) = of.parameters.keys().next() {
        return Err(no_parameter(name));
    }
    call.shared.service.change(of.model_name, Change::Load).await?;
    Ok(Reply::message(&wire::RepositoryModelLoadResponse {}))
}

pub(super) async fn unload(mut call: GrpcCall) -> Result<Reply, Refusal> {
    let of: wire::RepositoryModelUnloadRequest = call.only().await?;
    // Clients always send it. Models do not depend on each other here.
    if let Some(name) = of.parameters.keys().find(|name| *name != "unload_dependents") {
        return Err(no_parameter(name));
    }
    call.shared.service.change(of.model_name, Change::Unload).await?;
    Ok(Reply::message(&wire::RepositoryModelUnloadResponse {}))
}

fn no_parameter(name: &str) -> Refusal {
    Refusal::invalid(format!("the parameter '{}' is not supported", crate::protocol::short(name)))
}
