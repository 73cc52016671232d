#!/usr/bin/env bash
# The fuzz targets (fuzz/src/targets) on the stable compiler: libFuzzer, guided by the coverage that
# LLVM counts.
#
#   scripts/fuzz.sh SECONDS [TARGET...]   each target for so long, on all cores
#
# What a run finds new grows in fuzz/corpus/TARGET. An input that breaks a target ends the script
# with status 1 and stays in fuzz/artifacts/TARGET, where `make fuzz-replay` shows it again.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?SECONDS [TARGET...]}
shift
mapfile -t known < <(cd fuzz/src/targets && ls -- *.rs | sed 's/\.rs$//' | grep -v '^mod$')
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=("${known[@]}")
for target in "${targets[@]}"; do
  [[ " ${known[*]} " == *" $target "* ]] || {
    echo "unknown target: $target; known: ${known[*]}"
    exit 1
  }
done
command -v c++ >/dev/null || { echo "missing: a C++ compiler (c++), for libFuzzer (Debian, Ubuntu: sudo apt-get install g++)"; exit 1; }

host=$(rustc -vV | sed -n 's/^host: //p')
target_dir=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
# What cargo-fuzz passes, without its sanitizer, which only the nightly compiler knows. With a target
# build scripts are left alone.
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks"
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none
cargo build -p mxrt-fuzz --features libfuzzer --release --locked --target "$host" --target-dir "$target_dir"

bad=0
for target in "${targets[@]}"; do
  corpus=fuzz/corpus/$target artifacts=fuzz/artifacts/$target
  mkdir -p "$corpus" "$artifacts"
  begin=$SECONDS status=0
  FUZZ_TARGET=$target FUZZ_CORPUS=$corpus "$target_dir/$host/release/fuzz" \
    -artifact_prefix="$artifacts/" -timeout=10 -rss_limit_mb=4096 -verbosity=0 -print_final_stats=0 \
    -max_len=4096 -fork="$(nproc)" -ignore_crashes=0 -max_total_time="$seconds" "$corpus" || status=$?
  echo "fuzz $target: status $status, $(find "$corpus" -type f | wc -l) inputs, $((SECONDS - begin)) s"
  [ $status -eq 0 ] || bad=1
done
exit $bad
