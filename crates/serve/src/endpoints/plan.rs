//! How a model computes: at the port of those who run the server.

use super::{Call, number};
use crate::background::Work;
use crate::refusal::Refusal;
use crate::server::Answer;

/// Rows that a plan is asked for at most.
const MOST_ROWS: usize = 4096;

/// The plan for so many rows (`?rows=8`), as text.
pub(super) async fn answer(call: Call) -> Result<Answer, Refusal> {
    let rows = number(&call.request, "rows", 1, 1..=MOST_ROWS)?;
    let name = call.model.unwrap_or_default();
    let model = call.shared.service.repository.catalog().find(&name, call.version.as_deref())?;
    // It may be built for this.
    let text = call.shared.service.background.run(Work::Looking, None, move || model.plan(rows)).await?;
    Ok(Answer::text(text.into_bytes(), "text/plain; charset=utf-8"))
}
