#!/usr/bin/env bash
# The crate mxrt as programs of others build it: without features, with each alone, with the oldest
# Rust that Cargo.toml names, and from the example in a workspace of its own.
#
#   scripts/check_crate.sh
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"

# In the workspace the tests turn all features on: each alone is seen here only.
features=$(sed -n '/^\[features\]/,/^$/s/^\([a-z]*\) = .*/\1/p' crates/mxrt/Cargo.toml | grep -v '^default$')
for feature in '' $features; do
  cargo check --quiet --locked -p mxrt --lib --no-default-features --features "$feature"
  echo "mxrt compiles with ${feature:-no feature}"
done

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
case $(rustc --version) in
*" $oldest."*) echo "this is the oldest Rust, $oldest" ;;
*)
  if command -v rustup >/dev/null && rustup run "$oldest" rustc --version >/dev/null 2>&1; then
    rustup run "$oldest" cargo check --quiet --locked -p mxrt --lib --all-features
    echo "mxrt compiles with Rust $oldest"
  else
    echo "skip: Rust $oldest is not installed"
  fi
  ;;
esac

cargo check --quiet --manifest-path examples/rust/async_axum/Cargo.toml
echo "the example with axum compiles"
