//! Counters, histograms and gauges as text for Prometheus or OpenMetrics.

use super::call::EndpointCall;
use crate::answer::Answer;
use crate::background::JobKind;
use crate::metrics::{Gauge, MetricsFormat, text};
use crate::refusal::Refusal;
use hyper::header::ACCEPT;

/// Answers with all metrics. The text is written in the background, as it is long if there are many
/// models.
pub(super) async fn answer(call: EndpointCall) -> Result<Answer, Refusal> {
    let service = call.shared.service.clone();
    service.background.run(JobKind::Coding, None, move || Ok(written(&call))).await
}

fn written(call: &EndpointCall) -> Answer {
    let (shared, service) = (&call.shared, &call.shared.service);
    let memory = service.engine.memory().stats();
    let gauge = |name, help, value: usize| Gauge { name, help, value: value as f64 };
    let mut gauges = vec![
        gauge("mxrt_ready", "1 while GET /v2/health/ready answers 200.", usize::from(service.check_ready().is_ok())),
        gauge("mxrt_waiting_calls", "Requests that wait for a turn.", service.repository.waiting()),
        gauge("mxrt_queue_requests", "Requests that wait or compute.", service.queue.requests()),
        gauge("mxrt_queue_bytes", "Bytes that requests hold.", service.queue.bytes()),
        gauge("mxrt_call_bytes", "Bytes of messages of calls other than inference.", service.small.bytes()),
        gauge("mxrt_answer_bytes", "Bytes of answers that clients have not taken.", service.answers.bytes()),
        gauge("mxrt_head_bytes", "Bytes of the heads of open requests.", shared.heads.bytes()),
        gauge("mxrt_connections", "Open connections.", shared.connections()),
        gauge("mxrt_cores", "Threads that may compute.", service.engine.cores()),
        gauge("mxrt_memory_bytes", "Memory of arrays, plans and running requests.", memory.in_use),
    ];
    if let Some(lost) = service.traces.lost() {
        gauges.push(gauge("mxrt_spans_lost", "Spans that nobody took in time, since the start.", lost as usize));
    }
    let catalog = service.repository.catalog();
    let models = catalog.versions_of_all().map(|(name, of)| (name, of.version.as_str(), &*of.metrics));
    let accept = call.request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let form = MetricsFormat::accepted(accept);
    let text = text(form, models.chain([("", "", &service.unknown_model_metrics)]), &gauges);
    Answer::text(text.into_bytes(), form.content_type())
}
