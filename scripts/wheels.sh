#!/usr/bin/env bash
# The wheels of a release: one for each system, linked by zig.
#
#   scripts/wheels.sh build [TARGET...]   into dist/release; without TARGET all four
#   scripts/wheels.sh check WHEEL...      what each needs and exports, its tag and its interface; those
#   for this machine are installed for every Python that is found, and answer with a model
#
# The Python of .venv has maturin, zig, abi3audit and auditwheel. A wheel for another processor is used
# under qemu where qemu-aarch64 and a root of that system ($QEMU_LD_PREFIX) are there.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD python=$PWD/.venv/bin/python
action=${1:?build or check}
shift
targets=(x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl)

# policy TARGET: the oldest system that a wheel is for.
policy() {
  case $1 in
  *-linux-gnu) echo manylinux2014 ;;
  *-linux-musl) echo musllinux_1_2 ;;
  *)
    echo "unknown: $1; known: ${targets[*]}" >&2
    return 1
    ;;
  esac
}

build() {
  local target tag
  # A module in the source tree would be taken for part of the package.
  rm -f python/mxrt/_mxrt*.so
  for target in "${@:-${targets[@]}}"; do
    tag=$(policy "$target")
    rustup target add "$target"
    PATH="$root/.venv/bin:$PATH" "$python" -m maturin build --release --locked --zig --target "$target" \
      --compatibility "$tag" --out dist/release
  done
  ls -l dist/release
}

# interpreters: every Python that the wheel is for and that makes virtual environments.
interpreters() {
  local one
  for one in python3.{10..15} "$python"; do
    command -v "$one" >/dev/null && "$one" -c 'import ensurepip, venv' 2>/dev/null && echo "$one"
  done
}

# use WHEEL: installed apart, imported without warnings, and asked.
use() {
  local one work
  for one in $(interpreters); do
    work=$(mktemp -d)
    "$one" -m venv "$work/venv"
    "$work/venv/bin/python" -m pip install --quiet "$1"
    (
      cd "$work"
      "$work/venv/bin/python" -W error -c 'import mxrt, numpy, sys; print("used:", sys.version.split()[0], numpy.__version__)'
      "$work/venv/bin/mxrt" demo --quick >"$work/demo.log" || { cat "$work/demo.log"; exit 1; }
    )
    rm -rf "$work"
  done
}

check() {
  local wheel
  for wheel in "$@"; do
    wheel=$(realpath "$wheel")
    echo "== ${wheel##*/}"
    "$python" -m abi3audit --strict --summary "$wheel"
    "$python" -m auditwheel show "$wheel"
    case $wheel in
    *musllinux*) echo "skip: the C library of this wheel is musl's; it is not used here" ;;
    *"$(uname -m)".whl)
      "$python" scripts/check_wheel.py "$wheel"
      use "$wheel"
      ;;
    *)
      if command -v qemu-aarch64 >/dev/null && [ -n "${QEMU_LD_PREFIX:-}" ]; then
        qemu-aarch64 "$QEMU_LD_PREFIX/usr/bin/python3" -m venv "$root/build/qemu"
        qemu-aarch64 "$root/build/qemu/bin/python" -m pip install --quiet "$wheel"
        qemu-aarch64 "$root/build/qemu/bin/python" -m mxrt demo --quick
      else
        echo "skip: it is for another processor, and qemu-aarch64 with QEMU_LD_PREFIX is not here"
      fi
      ;;
    esac
  done
}

case $action in
build) build "$@" ;;
check) check "$@" ;;
*)
  echo "unknown: $action; known: build, check" >&2
  exit 2
  ;;
esac
