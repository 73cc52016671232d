//! One op: how it is described, its block in memory, what its closure sees while it runs, where it
//! was pushed, and how it is cancelled.

pub(crate) mod block;
pub(crate) mod cancel;
pub(crate) mod ctx;
pub(crate) mod origin;
pub(crate) mod spec;
