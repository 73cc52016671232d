//! Counters, histograms and gauges as text for Prometheus.

use super::Call;
use crate::metrics::{Gauge, text};
use crate::refusal::Refusal;
use crate::server::Answer;

#[allow(clippy::unnecessary_wraps)]
pub(super) fn answer(call: &Call) -> Result<Answer, Refusal> {
    let (shared, service) = (&call.shared, &call.shared.service);
    let memory = service.engine.memory().stats();
    let gauge = |name, help, value: usize| Gauge { name, help, value: value as f64 };
    let gauges = [
        gauge("mxrt_ready", "1 while requests are taken.", usize::from(!service.is_draining())),
        gauge("mxrt_queue_requests", "Requests that wait or compute.", service.queue.requests()),
        gauge("mxrt_queue_bytes", "Bytes of request bodies that are held.", service.queue.bytes()),
        gauge("mxrt_connections", "Open connections.", shared.connections()),
        gauge("mxrt_cores", "Threads that may compute.", service.engine.cores()),
        gauge("mxrt_memory_bytes", "Memory of arrays, plans and running requests.", memory.in_use),
    ];
    let models = service.repository.all();
    let models = models.iter().map(|m| (m.name.as_str(), m.version.as_str(), &m.metrics));
    let text = text(models.chain([("", "", &service.nameless)]), &gauges);
    Ok(Answer::text(text.into_bytes(), "text/plain; version=0.0.4; charset=utf-8"))
}
