#!/usr/bin/env bash
# Makes all parts of `make test`, and says what each costs. MAKE is make.
#
# The wheel is built and installed and the models of the engine run while the sources are checked and
# tested: builds wait for their longest crate on one core, and tests wait much of their time. Types are
# checked while Python tests run.
set -u
cd "$(dirname "$0")/.." || exit
costs=()
# The process group of parts that are made in the background, and the file that has their words.
group=
log=
# Ended early, they are ended, too.
trap '[ -z "$group" ] || kill -- "-$group" 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# cost BEGIN PART: the seconds that a part took.
cost() {
  printf '%6d s  make %s\n' $((SECONDS - $1)) "$2"
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
    costs+=("$(cost "$begin" "$part")")
  done
}

# meanwhile PART...: begins to make parts in the background, one after the other.
meanwhile() {
  log=build/$1.log
  : >"$log.costs"
  echo "meanwhile: make $*; $log has the words"
  # A process group of its own, which can be ended as a whole.
  set -m
  (
    set +m
    for part in "$@"; do
      echo "$part" >"$log.part"
      begin=$SECONDS
      "$MAKE" "$part" || exit
      cost "$begin" "$part, meanwhile" >>"$log.costs"
    done
  ) >"$log" 2>&1 &
  group=$!
  set +m
}

# joined: waits for them.
joined() {
  wait "$group" || {
    group=
    cat "$log"
    failed "$(<"$log.part")"
  }
  group=
  mapfile -t -O ${#costs[@]} costs <"$log.costs"
}

mkdir -p build
begin=$SECONDS
# The wheel needs no more of the environment, to which checking the sources adds its tools.
"$MAKE" build/stamps/build-tools || failed build/stamps/build-tools
meanwhile wheel install compile-tests loom
parts lint mutants-check test-rust test-scenarios
joined
meanwhile check-types
parts test-python
joined
printf '%s\n' "${costs[@]}"
printf '%6d s  all of it\n' $((SECONDS - begin))
echo "make test: all passed"
