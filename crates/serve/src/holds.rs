//! Holds of a call: what is kept until the engine has ended it.

use std::sync::Arc;

/// Things that are kept until a call has ended, even if nobody waits for the call any more.
pub(crate) trait Kept: Send + Sync {
    /// Reports that the call has ended, and whether it succeeded.
    fn ended(&self, _well: bool) {}
}

impl Kept for () {}

pub(crate) type Holds = Arc<dyn Kept>;
