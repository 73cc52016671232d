#!/usr/bin/env bash
# The tests of the engine, or of the kernels, under a sanitizer, on the stable compiler.
#
#   scripts/sanitize.sh thread [SECONDS]     ThreadSanitizer: unordered accesses
#   scripts/sanitize.sh address [SECONDS]    AddressSanitizer: use after free, double free, overflow
#   scripts/sanitize.sh memcheck             valgrind on a few tests, with the ordinary build
#   scripts/sanitize.sh address-kernels      the kernels' tests on every instruction set there is
#   scripts/sanitize.sh memcheck-kernels     those of them that take seconds; valgrind knows no
#                                            AVX-512
#
# First a mistake made on purpose must be found (tests/deliberate_mistakes.rs). Then the engine's tests run, then
# random programs for 20 seconds. With SECONDS all runs together take that long, builds not counted:
# tests for which there is no time are named, and random programs take what is left. Kernels start
# no threads, so ThreadSanitizer has nothing to see in them. Anything reported ends the script with
# status 1; the reports are in build/sanitize/. Where the compiler has no sanitizers the script says
# so and ends with status 0.
set -euo pipefail
# The cache of the backtrace is behind a lock of the prebuilt standard library, which
# ThreadSanitizer does not see.
export RUST_BACKTRACE=0
cd "$(dirname "$0")/.."
name=${1:?thread, address, memcheck, address-kernels or memcheck-kernels}
kind=${name%-kernels}
budget=${2:-}
programs=${budget:-20}
jobs=${JOBS:-$(nproc)}
target=$(rustc -vV | sed -n 's/^host: //p')
spent=0
logs=build/sanitize
mkdir -p "$logs"
# Files of tests, those likeliest to find something first: there may not be time for all.
tests=(races guards waiting bulk parameter_gate resumable order failures corner_cases leaks idle memory basics serial_order)
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
export CARGO_PROFILE_DEV_DEBUG=line-tables-only
[ "$kind" = memcheck ] || CARGO_TARGET_DIR+="/sanitize-$kind"
found=66

case $kind in
thread)
  [ "$name" = "$kind" ] || { echo "unknown: $name; kernels start no threads"; exit 1; }
  canary=a_data_race
  says='data race'
  export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
  export TSAN_OPTIONS="exitcode=$found suppressions='$PWD/scripts/tsan.supp'"
  ;;
address)
  canary=a_use_after_free
  says='heap-use-after-free'
  export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer"
  # What an engine holds lives as long as the process, so leaks are a matter of tests/leaks.rs.
  export ASAN_OPTIONS="exitcode=$found detect_leaks=0 detect_stack_use_after_return=1"
  ;;
memcheck)
  canary=a_use_after_free
  says='Invalid read'
  tests=(basics leaks)
  programs=0
  command -v valgrind >/dev/null || { echo "missing: valgrind (Debian, Ubuntu: sudo apt-get install valgrind)"; exit 1; }
  ;;
*)
  echo "unknown: $name; known: thread, address, memcheck, address-kernels, memcheck-kernels"
  exit 1
  ;;
esac

# The compiler brings what has to be linked, or does not.
if [ "$kind" != memcheck ]; then
  runtime=$(rustc --print sysroot)/lib/rustlib/$target/lib/librustc-*_rt.${kind:0:1}san.a
  if ! compgen -G "$runtime" >/dev/null; then
    echo "skip: this Rust has no ${kind} sanitizer for $target (x86_64 and aarch64 Linux have it)"
    exit 0
  fi
fi

# executable PACKAGE WHICH...: path of a test program, such as `mxrt-engine --test rules` or
# `mxrt-kernels --lib`.
executable() {
  local package=$1
  # With a target scripts of dependencies are built without the sanitizer. Valgrind takes the
  # programs of `make test`, which have the features that all crates together ask of others.
  local which=(-p "$package" --target "$target")
  [ "$kind" = memcheck ] && which=(--workspace)
  shift
  cargo test -q -j "$jobs" --locked "${which[@]}" "$@" --no-run --message-format=json | grep -F "#$package@" |
    grep -o '"executable":"[^"]*"' | tail -n 1 | cut -d'"' -f4
}

# run NAME EXECUTABLE ARGUMENTS...: status of the program, output in a file.
run() {
  local log="$logs/$kind-$1.log"
  shift
  local checker=()
  [ "$kind" = memcheck ] && checker=(valgrind -q --error-exitcode=$found --fair-sched=yes)
  local begin=$SECONDS status=0
  (cd crates/engine && timeout --kill-after=10 900 "${checker[@]}" "$@") >"$log" 2>&1 || status=$?
  spent=$((spent + SECONDS - begin))
  return $status
}

# Whether there is time for another test.
time_left() {
  [ -z "$budget" ] || [ $spent -lt "$budget" ]
}

status=0
run canary "$(executable mxrt-engine --test deliberate_mistakes)" --ignored --exact $canary || status=$?
if [ $status -eq 0 ] || ! grep -q "$says" "$logs/$kind-canary.log"; then
  echo "$kind: the mistake made on purpose was NOT found (status $status, $logs/$kind-canary.log)"
  exit 1
fi
echo "$kind: the mistake made on purpose is found"

bad=0
check() {
  local name=$1 status=0
  shift
  run "$name" "$@" || status=$?
  echo "$kind: $name: status $status, $(grep -cE 'WARNING: ThreadSanitizer|ERROR: AddressSanitizer|^==[0-9]+== (Invalid|Conditional|Use of)' "$logs/$kind-$name.log" || true) reports"
  if [ $status -ne 0 ]; then
    bad=1
    grep -E '^SUMMARY|Invalid|Conditional|panicked|HANG' "$logs/$kind-$name.log" | cut -c1-200 | sort | uniq -c | head -n 20 || true
  fi
}
if [ "$name" != "$kind" ]; then
  some=()
  # Instrumented code has functions that are inlined otherwise, which this test looks for.
  [ "$kind" = address ] && some=(--skip no_instruction_is_called_as_a_function)
  [ "$kind" = memcheck ] && some=(real_networks one_dimensional nan_and_infinity plain_layout without_a_copy)
  kernels=$(executable mxrt-kernels --lib)
  check kernels "$kernels" "${some[@]}"
  exit $bad
fi
# The thread that waits for events of a GPU: seconds, and nothing else has its locks.
[ "$kind" = thread ] && check cuda "$(executable mxrt-cuda --lib)" completion
for test in "${tests[@]}"; do
  time_left || { echo "$kind: $test: left out, the $budget seconds are used up"; continue; }
  # Many files are modules of one program.
  program=$test words=()
  [ -f "crates/engine/tests/rules/$test.rs" ] && program=rules words=("$test::")
  check "$test" "$(executable mxrt-engine --test $program)" "${words[@]}" ${MXRT_SANITIZE_ARGS:-}
done
if [ -n "$budget" ] && [ "$programs" -gt 0 ]; then
  programs=$((budget > spent ? budget - spent : 0))
fi
if [ "$programs" -gt 0 ]; then
  export MXRT_SOAK_SECONDS=$programs
  check soak "$(executable mxrt-engine --test soak)" --nocapture
fi
exit $bad
