//! Plans of models, on the port for operators.

use super::call::{EndpointCall, number};
use crate::answer::Answer;
use crate::background::JobKind;
use crate::refusal::Refusal;

/// Largest number of rows for which a plan is given.
const MOST_ROWS: usize = 4096;

/// Answers with the plan for a number of rows (`?rows=8`), as text.
pub(super) async fn answer(call: EndpointCall) -> Result<Answer, Refusal> {
    let rows = number(&call.request, "rows", 1, 1..=MOST_ROWS)?;
    let name = call.model.unwrap_or_default();
    let model = call.shared.service.repository.catalog().find(&name, call.version.as_deref())?;
    // The plan may have to be built first.
    let text = call.shared.service.background.run(JobKind::Looking, None, move || model.plan(rows)).await?;
    Ok(Answer::text(text.into_bytes(), "text/plain; charset=utf-8"))
}
