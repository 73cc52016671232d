#!/usr/bin/env bash
# What the Makefile needs before it builds anything: the tools, and a virtual environment in .venv.
#
#   scripts/setup.sh check        names what is missing or cannot work, and what to do about it;
#   changes nothing scripts/setup.sh venv STAMP   makes .venv, or makes it again where PYTHON is
#   another interpreter; touches STAMP then scripts/setup.sh clean        removes .venv
#
# PYTHON in the environment chooses the interpreter. Without it the interpreter of .venv stays, or
# the first one found that is new enough makes it. A .venv that the Makefile did not make is never
# changed or removed.
set -euo pipefail
cd "$(dirname "$0")/.."
python_minimum=3.10
rust_minimum=1.95
venv=.venv
mark=$venv/made-by-make

# usable PYTHON: is it new enough, and can it make virtual environments?
usable() {
  "$1" -c 'import sys
if sys.version_info < (3, 10): sys.exit(1)
import ensurepip, venv' 2>/dev/null
}

# identity PYTHON: version and home of the interpreter below any virtual environment.
identity() {
  "$1" -c 'import sys; print(sys.version.split()[0], sys.base_prefix)' 2>/dev/null
}

# Did the Makefile make .venv? Its stamp is the sign of a .venv from before there was a mark.
is_ours() {
  [ -e "$mark" ] || { [ -e build/stamps/venv ] && [ ! -L "$venv" ]; }
}

# The interpreter that .venv is to have.
chosen() {
  local python
  if [ -n "${PYTHON:-}" ]; then
    echo "$PYTHON"
    return
  fi
  for python in "$venv/bin/python" python3 python3.{11,12,13,14,10}; do
    if usable "$python"; then
      echo "$python"
      return
    fi
  done
}

# What is wrong, with what to do about it, on two lines each.
problems() {
  local have python
  case $PWD in *:*) problem "this folder cannot be built in: cargo and Python refuse a path with a colon" "$PWD" ;; esac
  [ -w . ] || problem "this folder cannot be written to" "$PWD"
  if ! command -v cargo >/dev/null || ! rustc --version >/dev/null 2>&1; then
    problem "missing: Rust $rust_minimum or newer" "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
  else
    have=$(rustc --version | cut -d' ' -f2)
    [ "$(printf '%s\n' "$rust_minimum" "$have" | sort -V | head -n 1)" = "$rust_minimum" ] ||
      problem "missing: Rust $rust_minimum or newer (this one is $have)" "rustup update stable"
  fi
  command -v cc >/dev/null || problem "missing: a C compiler and linker (cc)" \
    "Debian, Ubuntu: sudo apt-get install build-essential; Fedora: sudo dnf install gcc"
  python=$(chosen)
  if [ -n "${PYTHON:-}" ] && ! usable "$python"; then
    have=$(identity "$python") || have="not an interpreter that runs"
    problem "PYTHON=$python cannot be used ($have)" \
      "name one that is $python_minimum or newer and has the modules venv and ensurepip"
  elif [ -z "$python" ]; then
    problem "missing: Python $python_minimum or newer with its venv module" \
      "Debian, Ubuntu: sudo apt-get install python3 python3-venv; or make PYTHON=/path/to/python3"
  fi
  if [ -e "$venv" ] || [ -L "$venv" ]; then
    is_ours || problem ".venv is there and was not made by this Makefile, which leaves it alone" \
      "move it away or remove it, then run make again"
  fi
}

problem() {
  found=1
  printf '%s\n         %s\n' "$1" "$2"
}

check() {
  found=0
  problems
  [ $found = 0 ] || { echo "Nothing was changed. Mend this and run make again."; return 1; }
}

make_venv() {
  local stamp=$1 python
  check
  python=$(chosen)
  if [ -e "$stamp" ] && [ "$(identity "$venv/bin/python")" = "$(identity "$python")" ]; then
    return
  fi
  # The interpreter of .venv is about to be removed; the one that made it is not.
  [ "$python" = "$venv/bin/python" ] && python=$("$python" -c 'import sys; print(sys._base_executable)')
  rm -rf "$venv"
  mkdir -p "$venv" "$(dirname "$stamp")"
  : >"$mark"
  echo "making .venv with $python"
  "$python" -m venv "$venv"
  touch "$stamp"
}

case ${1:-} in
check) check ;;
venv) make_venv "$2" ;;
clean) if [ -e "$venv" ] && is_ours; then rm -rf "$venv"; fi ;;
*) echo "unknown: ${1:-nothing}; known: check, venv STAMP, clean" && exit 1 ;;
esac
