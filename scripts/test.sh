#!/usr/bin/env bash
# Makes all parts of `make test`, and says what each costs. MAKE is make.
#
# The wheel is built while the sources are checked and tested: each of both waits on one core for its
# longest crate.
set -u
cd "$(dirname "$0")/.." || exit
costs=()
wheel=
log=build/wheel.log
# Ended early, the build of the wheel is ended, too.
trap '[ -z "$wheel" ] || kill -- "-$wheel" 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# cost BEGIN PART: notes the seconds that a part took.
cost() {
  costs+=("$(printf '%6d s  make %s' $((SECONDS - $1)) "$2")")
}

# failed PART: ends with the sentence that names it.
failed() {
  echo "make test: make $1 failed"
  exit 1
}

parts() {
  local part begin
  for part in "$@"; do
    begin=$SECONDS
    "$MAKE" "$part" || failed "$part"
    cost "$begin" "$part"
  done
}

mkdir -p build
begin=$SECONDS
# Both use the environment.
"$MAKE" build/stamps/test-tools || failed build/stamps/test-tools
echo "the wheel is built meanwhile; $log has the words of its build"
# A process group of its own, which can be ended as a whole.
set -m
"$MAKE" wheel >"$log" 2>&1 &
wheel=$!
set +m
parts lint mutants-check test-rust test-scenarios loom
wait "$wheel" || {
  wheel=
  cat "$log"
  failed wheel
}
wheel=
parts install test-python check-types
printf '%s\n' "${costs[@]}"
printf '%6d s  all of it\n' $((SECONDS - begin))
echo "make test: all passed"
