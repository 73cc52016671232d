#!/usr/bin/env bash
# The fuzz targets (fuzz/fuzz_targets) on the stable compiler: libFuzzer, guided by the coverage
# that LLVM counts.
#
#   scripts/fuzz.sh run SECONDS [TARGET...]   each target for so long, in parallel on all cores
#   scripts/fuzz.sh replay [TARGET...]        each target once over the seeds and earlier findings
#
# Seeds are files of the tests; what a run finds new grows in fuzz/corpus/TARGET. An input that
# breaks a target ends the script with status 1 and stays in fuzz/artifacts/TARGET; `replay` shows
# it again.
set -euo pipefail
cd "$(dirname "$0")/.."
action=${1:?run SECONDS or replay}
shift
if [ "$action" = run ]; then
  seconds=${1:?SECONDS}
  shift
fi
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=($(cd fuzz/fuzz_targets && ls -- *.rs | sed 's/\.rs$//'))
for target in "${targets[@]}"; do
  [ -e "fuzz/fuzz_targets/$target.rs" ] || {
    echo "unknown target: $target; known: $(cd fuzz/fuzz_targets && ls -- *.rs | sed 's/\.rs$//' | tr '\n' ' ')"
    exit 1
  }
done
command -v c++ >/dev/null || { echo "missing: a C++ compiler (c++), for libFuzzer (Debian, Ubuntu: sudo apt-get install g++)"; exit 1; }

host=$(rustc -vV | sed -n 's/^host: //p')
target_dir=${CARGO_TARGET_DIR:-$PWD/target}
build=(cargo build --manifest-path fuzz/Cargo.toml --locked)
if [ "$action" = run ]; then
  # What cargo-fuzz passes, without its sanitizer, which only the nightly compiler knows. With a
  # target build scripts are left alone.
  export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks"
  "${build[@]}" --release --target "$host" --target-dir "$target_dir/fuzz"
  programs=$target_dir/fuzz/$host/release
else
  # Nothing is counted here, and little is computed.
  "${build[@]}" --target-dir "$target_dir/fuzz-replay"
  programs=$target_dir/fuzz-replay/debug
fi

# seeds TARGET: the files of the tests that the target begins with.
seeds() {
  case $1 in
  params) ls tests/conformance/data/graphs/*.params tests/models/digits_cnn/*.params ;;
  symbol) ls tests/conformance/data/graphs/*-symbol.json tests/models/*/*-symbol.json ;;
  # Of csv: four bytes of parameters, then the file.
  csv | csv_parts | image | index | infer_request | libsvm | mnist | records | settings) ls fuzz/seeds/"$1"/* ;;
  # Any bytes make something.
  *) true ;;
  esac
}

bad=0
for target in "${targets[@]}"; do
  corpus=fuzz/corpus/$target artifacts=fuzz/artifacts/$target
  mkdir -p "$corpus" "$artifacts"
  mapfile -t files < <(seeds "$target")
  for file in "${files[@]}"; do cp -n "$file" "$corpus/"; done
  case $target in
  calls | graphs)
    # Any bytes make something; without an input libFuzzer would look for some until it is ended.
    for i in $(seq 100); do
      [ -e "$corpus/seed-$i" ] || for k in 1 2 3 4; do echo "$i $k" | sha512sum; done >"$corpus/seed-$i"
    done
    ;;
  esac
  program=$programs/$target
  common=(-artifact_prefix="$artifacts/" -timeout=10 -rss_limit_mb=4096 -verbosity=0 -print_final_stats=0)
  begin=$SECONDS status=0
  if [ "$action" = run ]; then
    "$program" "${common[@]}" -max_len=4096 -fork="$(nproc)" -ignore_crashes=0 -max_total_time="$seconds" "$corpus" || status=$?
  else
    mapfile -t found < <(find "$corpus" "$artifacts" -type f | sort)
    "$program" "${common[@]}" "${found[@]}" >/dev/null || status=$?
  fi
  echo "fuzz $target: status $status, $(find "$corpus" -type f | wc -l) inputs, $((SECONDS - begin)) s"
  [ $status -eq 0 ] || bad=1
done
exit $bad
