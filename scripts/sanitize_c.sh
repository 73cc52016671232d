#!/usr/bin/env bash
# The C and C++ programs of the tests of the C interface under a checker of memory or of threads.
#
#   scripts/sanitize_c.sh address    compiled with AddressSanitizer and UndefinedBehaviorSanitizer
#   scripts/sanitize_c.sh thread     those in C, and the library with all that it consists of, compiled
#                                    with ThreadSanitizer; C++ uses a library that is not
#   scripts/sanitize_c.sh memcheck   those under valgrind that infer no shapes: of an unknown shape the
#                                    compiler reads the length before it asks whether there is one
#
# The checkers watch the memory that the library gives to programs and takes from them, and all of
# what programs do with it. First a mistake made on purpose must be found. Where the compiler has no
# sanitizer, or there is no valgrind, the script says so and ends with status 0.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:?address, thread or memcheck}
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/canary.c" <<'EOF'
#include <stdlib.h>
int main(void) {
  volatile int *memory = malloc(16);
  free((void *)memory);
  return memory[1] & 1;
}
EOF
printf 'int main(void) { return 0; }\n' >"$work/empty.c"
tests=()
build=()

case $kind in
thread)
  flags="-fsanitize=thread -g"
  # shellcheck disable=SC2086 # flags are words
  "${CC:-cc}" $flags "$work/empty.c" -o "$work/empty" 2>/dev/null || {
    echo "skip: this C compiler has no ThreadSanitizer"
    exit 0
  }
  # Without the source of the standard library the sanitizer would not see what its locks order.
  timeout 120 rustup component add rust-src >/dev/null 2>&1 || {
    echo "skip: rustup cannot add the source of the standard library"
    exit 0
  }
  cat >"$work/canary.c" <<'EOF'
#include <pthread.h>
static int shared;
static void *write_it(void *nothing) {
  shared++;
  return nothing;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, write_it, 0);
  write_it(0);
  pthread_join(other, 0);
  return 0;
}
EOF
  # LLVM calls these where GCC, whose runtime the programs have, instruments accesses alone.
  cat >"$work/llvm.c" <<'EOF'
#include <string.h>
void __tsan_read_range(const void *at, size_t bytes);
void __tsan_write_range(void *at, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes) {
  __tsan_read_range(from, bytes);
  __tsan_write_range(to, bytes);
  return memcpy(to, from, bytes);
}
void *__tsan_memmove(void *to, const void *from, size_t bytes) {
  __tsan_read_range(from, bytes);
  __tsan_write_range(to, bytes);
  return memmove(to, from, bytes);
}
void *__tsan_memset(void *to, int value, size_t bytes) {
  __tsan_write_range(to, bytes);
  return memset(to, value, bytes);
}
EOF
  "${CC:-cc}" -O1 -fPIC -c "$work/llvm.c" -o "$work/llvm.o"
  # shellcheck disable=SC2086
  "${CC:-cc}" $flags "$work/canary.c" -o "$work/canary" -lpthread
  export MXRT_TEST_CFLAGS="$flags $work/llvm.o" TSAN_OPTIONS="exitcode=66"
  export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread" CARGO_TARGET_DIR+="/sanitize-c-thread"
  export CARGO_PROFILE_DEV_DEBUG=line-tables-only
  says='data race'
  # Kernels start no threads: they need not be fast, and take minutes to compile so.
  build=(-Zbuild-std --target "$(rustc -vV | sed -n 's/^host: //p')" --config profile.dev.package.mxrt-kernels.opt-level=1)
  tests=(--test clients -- engine:: c_program:: predict::)
  ;;
address)
  flags="-fsanitize=address,undefined -fno-sanitize-recover=all -g"
  # shellcheck disable=SC2086 # flags are words
  "${CC:-cc}" $flags "$work/empty.c" -o "$work/empty" 2>/dev/null || {
    echo "skip: this C compiler has no AddressSanitizer"
    exit 0
  }
  # shellcheck disable=SC2086
  "${CC:-cc}" -w $flags "$work/canary.c" -o "$work/canary"
  # What an engine holds lives as long as the process.
  export MXRT_TEST_CFLAGS=$flags ASAN_OPTIONS="detect_leaks=0 detect_stack_use_after_return=1"
  says='heap-use-after-free'
  ;;
memcheck)
  command -v valgrind >/dev/null || {
    echo "skip: valgrind is not installed"
    exit 0
  }
  "${CC:-cc}" -w -g "$work/canary.c" -o "$work/canary"
  export MXRT_TEST_RUNNER="valgrind -q --error-exitcode=66 --fair-sched=yes"
  says='Invalid read'
  tests=(--test clients -- exchange:: engine::)
  ;;
*)
  echo "unknown: $kind; known: address, thread, memcheck"
  exit 1
  ;;
esac

status=0
# shellcheck disable=SC2086 # a command and its arguments
${MXRT_TEST_RUNNER:-} "$work/canary" >"$work/log" 2>&1 || status=$?
if [ $status -eq 0 ] || ! grep -q "$says" "$work/log"; then
  cat "$work/log"
  echo "$kind: the mistake made on purpose was NOT found (status $status)"
  exit 1
fi
echo "$kind: the mistake made on purpose is found"
# Where everything has been built for `make test`, that is what runs.
if [ ${#build[@]} -eq 0 ] && [ -n "${CI:-}" ] && cargo nextest --version >/dev/null 2>&1; then
  cargo nextest run --workspace --locked -E 'package(mxrt-capi)' "${tests[@]:---tests}"
else
  cargo test -q --locked "${build[@]}" -p mxrt-capi "${tests[@]:---tests}"
fi
echo "$kind: the programs are clean"
