//! How a model computes: at the port of those who run the server.

use super::{Call, in_background};
use crate::refusal::Refusal;
use crate::server::Answer;

/// Rows that a plan is asked for at most.
const MOST_ROWS: usize = 4096;

/// The plan for so many rows (`?rows=8`), as text.
pub(super) async fn answer(call: Call) -> Result<Answer, Refusal> {
    let rows = rows(call.request.uri().query().unwrap_or_default())?;
    let name = call.model.unwrap_or_default();
    let model = call.shared.service.repository.catalog().find(&name, call.version.as_deref())?;
    // It may be built for this.
    let text = in_background(move || model.plan(rows)).await?;
    Ok(Answer::text(text.into_bytes(), "text/plain; charset=utf-8"))
}

fn rows(query: &str) -> Result<usize, Refusal> {
    let Some(text) = query.split('&').find_map(|part| part.strip_prefix("rows=")) else { return Ok(1) };
    let rows = text.parse().ok().filter(|rows| (1..=MOST_ROWS).contains(rows));
    rows.ok_or_else(|| Refusal::invalid(format!("rows is no number from 1 to {MOST_ROWS}")))
}
