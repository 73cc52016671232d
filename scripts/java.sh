#!/usr/bin/env bash
# Calls networks from Java through JNA, as engines for Java do (crates/capi/tests/java/Predict.java).
#
#   scripts/java.sh
#
# Needs a JDK of 11 or later, and JNA's jar: /usr/share/java/jna.jar (Debian: libjna-java), or the
# file that JNA names. Says what is missing otherwise, with exit status 1.

set -euo pipefail
cd "$(dirname "$0")/.."

jar=${JNA:-/usr/share/java/jna.jar}
missing=()
command -v java >/dev/null && java --list-modules 2>/dev/null | grep -q '^jdk.compiler' ||
    missing+=("a JDK (Debian: default-jdk-headless)")
[ -f "$jar" ] || missing+=("JNA (Debian: libjna-java, or JNA=/path/to/jna.jar)")
if [ ${#missing[@]} -gt 0 ]; then
    printf 'not run, missing: %s\n' "${missing[@]}" >&2
    exit 1
fi

target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --locked -p mxrt-capi
java -cp "$jar" crates/capi/tests/java/Predict.java "$target/debug/libmxrt_capi.so" tests/models
