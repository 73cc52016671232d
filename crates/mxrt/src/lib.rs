//! mxrt for Rust programs: one facade over the workspace crates.
