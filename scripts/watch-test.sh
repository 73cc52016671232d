#!/usr/bin/env bash
# Runs a program; a test binary that hangs is ended, after what its threads and engines do was
# printed.
#
# cargo and cargo-nextest run everything through this script (.cargo/config.toml). A test is looked
# at every 100 seconds where it has a process of its own (nextest), a whole binary every 600;
# MXRT_TEST_SECONDS sets another time, 0 none. It hangs if it used less than a thousandth of that
# time on a processor, or has not ended at the tenth look: on a busy machine a test whose threads
# hand over to each other waits for the scheduler most of the time, and needs less than a second of
# a processor in all. Stacks come from gdb or eu-stack; where neither is installed, or may not look
# into the process, there are each thread's name, state and system call. An engine's own account
# comes from the signal that MXRT_DEBUG makes it listen to.
set -u
limit=${MXRT_TEST_SECONDS:-$([ -n "${NEXTEST:-}" ] && echo 100 || echo 600)}
# Only what cargo builds as a test lies there, and benchmarks, which take their time.
case $1 in
*/deps/*) [[ " $* " == *" --bench "* || " $* " == *" --list "* ]] && limit=0 ;;
*) limit=0 ;;
esac
[ "$limit" = 0 ] && exec "$@"

export MXRT_DEBUG=${MXRT_DEBUG-1}
"$@" &
child=$!
told=''
trap 'told=1; kill -TERM $child 2>/dev/null' TERM INT HUP

# Whether the process has a handler for SIGUSR1, the tenth signal.
listens() {
  local mask
  mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$child/status" 2>/dev/null)
  [ -n "$mask" ] && (((0x$mask >> 9) & 1))
}

by_debugger() {
  case ${MXRT_TEST_DEBUGGER:-any} in
  any | gdb) command -v gdb >/dev/null && timeout 60 gdb -q -nx -batch -p $child -ex 'thread apply all backtrace 40' 2>/dev/null | grep -E '^(Thread|#)' && return ;;
  esac
  case ${MXRT_TEST_DEBUGGER:-any} in
  any | eu-stack) command -v eu-stack >/dev/null && timeout 60 eu-stack -p $child 2>/dev/null && return ;;
  esac
  return 1
}

# What the kernel says of every thread. Reading it is allowed to this process, the parent, where it
# may not be to others.
by_kernel() {
  local task name state call line
  for task in /proc/$child/task/*; do
    name='' state='' call='' line=''
    read -r name <"$task/comm"
    while read -r line; do [[ $line == State:* ]] && state=${line#State:[[:space:]]} && break; done <"$task/status"
    { read -r call <"$task/syscall"; } 2>/dev/null
    echo "thread ${task##*/} $name: $state, in system call ${call%% *}"
    { while read -r line; do echo "    $line"; done <"$task/stack"; } 2>/dev/null
  done
}

# The programs that a process started, and those that they did.
started_by() {
  local pid
  for pid in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
    echo "$pid"
    started_by "$pid"
  done
}

# Hundredths of a second of processors that a process and its programs used.
worked() {
  local pid line used=0
  for pid in "$1" $(started_by "$1"); do
    { read -r line <"/proc/$pid/stat"; } 2>/dev/null || continue
    # State and numbers follow the name, which may have spaces.
    set -- ${line##*) }
    used=$((used + ${12} + ${13} + ${14} + ${15}))
  done
  echo $used
}

look=0
used=0
while :; do
  sleep "$limit" &
  timer=$!
  wait -n
  status=$?
  if [ -n "$told" ] || ! kill -0 $child 2>/dev/null; then
    kill $timer 2>/dev/null
    # 127: the first wait has taken its status already.
    wait $child
    last=$?
    [ $last -eq 127 ] && last=$status
    exit $last
  fi
  before=$used used=$(worked $child) look=$((look + 1))
  [ $(((used - before) * 10)) -ge "$limit" ] && [ $look -lt 10 ] || break
done
{
  echo "HANG: $* has not ended after $((look * limit)) s"
  if listens; then
    kill -USR1 $child
    sleep 1
  else
    echo "(its engines do not listen to SIGUSR1)"
  fi
  by_debugger || { echo "no stacks: neither gdb nor eu-stack is there and may look"; by_kernel; }
} >&2
# Programs that the test started would go on, and keep cores from the tests after it.
{ kill -KILL $child $(started_by $child) && wait $child; } 2>/dev/null
exit 124
