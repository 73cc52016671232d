#!/usr/bin/env bash
# The public interface of the crate mxrt as text, crates/mxrt/api.txt: a review sees what a change adds,
# changes or takes away.
#
#   scripts/api.sh check    compares the text with the source
#   scripts/api.sh write    writes it
#   scripts/api.sh semver REVISION   whether programs that were written for that revision, the last
#                                    published one, still compile (cargo-semver-checks; minutes)
#
# TOOLCHAIN   a Rust whose rustdoc writes JSON (nightly)
#
# Where there is no such Rust, or no cargo-public-api, the script says how to get them and ends with
# status 0.
set -euo pipefail
cd "$(dirname "$0")/.."
action=${1:-check}
toolchain=${TOOLCHAIN:-nightly}
file=crates/mxrt/api.txt
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/api"
if [ "$action" = semver ]; then
  cargo semver-checks --version >/dev/null 2>&1 || {
    echo "skip: cargo install --locked cargo-semver-checks"
    exit 0
  }
  exec cargo semver-checks check-release -p mxrt --all-features --baseline-rev "${2:?the revision to compare with}"
fi
cargo public-api --version >/dev/null 2>&1 && cargo "+$toolchain" --version >/dev/null 2>&1 || {
  echo "skip: cargo install --locked cargo-public-api@0.52.0; rustup toolchain install $toolchain"
  exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo "+$toolchain" public-api -p mxrt --all-features -sss >"$work/api.txt"
case $action in
write) cp "$work/api.txt" "$file" ;;
check)
  diff -u "$file" "$work/api.txt" || {
    echo "api: the public interface is another one than $file says; if this is meant: scripts/api.sh write" >&2
    exit 1
  }
  echo "api: $(wc -l <"$file") items, as $file says"
  ;;
*)
  echo "unknown: $action; known: check, write, semver" >&2
  exit 1
  ;;
esac
