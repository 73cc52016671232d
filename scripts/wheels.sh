#!/usr/bin/env bash
# The wheels of a release, linked by zig: for each system one for every Python with the global lock,
# one for Python 3.14 without it, and one for every later Python, with and without it.
#
#   scripts/wheels.sh build [TARGET...]   into dist/release; without TARGET for all four
#   scripts/wheels.sh check WHEEL...      what each needs and exports, its tag and its interface; those
#   for this machine are installed for every Python that is found, and answer with a model
#
# The Python of .venv has maturin, zig, abi3audit and auditwheel. A wheel for aarch64 is used under
# QEMU (Debian: qemu-user or qemu-user-static), with the Python of a Debian system for that processor:
# $QEMU_LD_PREFIX, or build/aarch64, which debootstrap makes (a minute). A wheel for musl is used with a
# Python for musl, which scripts/musl_python.sh makes (minutes). Wheels for Pythons without the lock
# need no such Python to be built, and are used where there is one; those for musl are resolved by
# musl's loader.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD python=$PWD/.venv/bin/python
action=${1:?build or check}
shift
targets=(x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl)
# The second gets the stable interface (abi3t), which begins with 3.15.
without_lock=(python3.14t python3.15t)
# Calls, threads, processes, exits and servers: what a C library decides. A minute.
musl_tests=(tests/files/test_bad_input.py tests/structure/test_import.py
  tests/engine/test_threads.py tests/engine/test_processes.py tests/engine/test_process_end.py
  tests/serve/test_serve.py tests/serve/test_serve_ends.py)

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
  local target tag one
  # A module in the source tree would be taken for part of the package.
  rm -f python/mxrt/_mxrt*.so
  for target in "${@:-${targets[@]}}"; do
    tag=$(policy "$target")
    rustup target add "$target"
    for one in "" "${without_lock[@]}"; do
      PATH="$root/.venv/bin:$PATH" "$python" -m maturin build --release --locked --zig --target "$target" \
        --compatibility "$tag" --out dist/release ${one:+-i "$one"}
    done
  done
  ls -l dist/release
}

# lockless WHEEL: names the Python without the global lock that a wheel is for, the oldest; fails for
# wheels that are for none.
lockless() {
  [[ $1 =~ -cp3([0-9]+)-(cp3[0-9]+t|abi3\.abi3t)- ]] && echo "python3.${BASH_REMATCH[1]}t"
}

# named WHEEL: names every Python that the wheel is for.
named() {
  case $1 in
  *-abi3.abi3t-*) echo python3.15{,t} ;;
  *-abi3-*) echo python3.{10..15} "$python" ;;
  *) lockless "$1" ;;
  esac
}

# interpreters WHEEL: every Python that the wheel is for and that makes virtual environments.
interpreters() {
  local one free
  for one in $(named "$1"); do
    free=0
    [[ $one != *t ]] || free=1
    command -v "$one" >/dev/null && "$one" -c "import ensurepip, sys, sysconfig, venv
sys.exit(bool(sysconfig.get_config_var('Py_GIL_DISABLED')) != $free)" 2>/dev/null && echo "$one"
  done
  true
}

# use WHEEL: installed apart, imported without warnings, and asked.
use() {
  local one work found
  found=$(interpreters "$1")
  [ -n "$found" ] || echo "skip: $(lockless "$1") is not here"
  for one in $found; do
    work=$(mktemp -d)
    "$one" -m venv "$work/venv"
    "$work/venv/bin/python" -m pip install --quiet "$1"
    (
      cd "$work"
      "$work/venv/bin/python" -W error -c 'import mxrt, numpy, sys, sysconfig
print("used:", sys.version.split()[0] + sys.abiflags, numpy.__version__)
assert not sysconfig.get_config_var("Py_GIL_DISABLED") or not sys._is_gil_enabled()'
      "$work/venv/bin/mxrt" demo --quick >"$work/demo.log" || { cat "$work/demo.log"; exit 1; }
    )
    rm -rf "$work"
  done
}

# system_of_aarch64: names the folder of a Debian system for that processor with its Python.
system_of_aarch64() {
  local system=${QEMU_LD_PREFIX:-$root/build/aarch64} package
  if [ ! -x "$system/usr/bin/python3" ]; then
    command -v debootstrap >/dev/null || return 1
    rm -rf "$system"
    # Its second stage would run programs of the other processor. Unpacking needs none.
    debootstrap --foreign --arch=arm64 --variant=minbase --include=python3-minimal,libpython3-stdlib \
      "${DEBIAN:-bookworm}" "$system" >&2
    for package in "$system"/var/cache/apt/archives/*.deb; do
      dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$system"
    done
  fi
  echo "$system"
}

# use_emulated WHEEL: imported without warnings and asked, under QEMU.
use_emulated() {
  local qemu system version site=$root/build/aarch64-site
  if lockless "$1" >/dev/null; then
    echo "skip: it is for another processor, and Debian has no $(lockless "$1")"
    return
  fi
  if ! qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || ! system=$(system_of_aarch64); then
    echo "skip: it is for another processor, and QEMU, or debootstrap and QEMU_LD_PREFIX, are not here"
    return
  fi
  run() { PYTHONPATH=$site "$qemu" -L "$system" "$system/usr/bin/python3" "$@"; }
  version=$(run -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  rm -rf "$site"
  "$python" -m pip install --quiet --target "$site" --python-version "$version" --only-binary :all: \
    --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 "$1"
  run -W error -c 'import mxrt, numpy, platform; print("used:", platform.machine(), numpy.__version__)'
  # The demo takes more than a quarter of an hour there.
  run -m mxrt check "$site/mxrt/demo/data/digits_cnn" --shape 1,1,8,8
  run -m mxrt doctor --no-test
}

# use_musl WHEEL: imported without warnings and asked, under a Python for musl; tests that need nothing
# else.
use_musl() {
  local venv=$root/build/musl-venv errors=$root/build/musl-python.log interpreter site
  if [[ $1 != *_"$(uname -m)".whl ]]; then
    echo "skip: it is for another processor"
    return
  fi
  mkdir -p build
  if ! interpreter=$(scripts/musl_python.sh 2>"$errors"); then
    echo "skip: there is no Python for musl: $(tail -n 1 "$errors")"
    return
  fi
  if lockless "$1" >/dev/null; then
    resolve "$1" "${interpreter%/bin/*}/musl/lib/libc.so"
    return
  fi
  rm -rf "$venv"
  "$interpreter" -m venv --without-pip "$venv"
  site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  # Its own pip would need the module ssl.
  "$python" -m pip install --quiet --target "$site" --python-version 3.11 --only-binary :all: \
    --platform "musllinux_1_2_$(uname -m)" --constraint requirements/test.txt "$1" numpy pytest pytest-timeout
  sed "1s,.*,#!$venv/bin/python," "$site/bin/mxrt" >"$venv/bin/mxrt"
  chmod +x "$venv/bin/mxrt"
  "$venv/bin/python" -W error -c 'import mxrt, numpy, sys, sysconfig
print("used:", sys.version.split()[0], sysconfig.get_config_var("SOABI"), numpy.__version__)'
  "$venv/bin/mxrt" demo --quick >"$venv/demo.log" || { cat "$venv/demo.log"; return 1; }
  "$venv/bin/mxrt" check "$site/mxrt/demo/data/digits_cnn" --shape 1,1,8,8
  "$venv/bin/mxrt" doctor --no-test
  "$venv/bin/python" -m pytest -q -p no:cacheprovider "${musl_tests[@]}"
}

# resolve WHEEL LOADER: whether musl has every function that the module needs, other than Python's own.
resolve() {
  local loader=$2 work found missing
  work=$(mktemp -d)
  "$python" -m zipfile -e "$1" "$work"
  # It ends with an error, as nothing has Python's functions.
  found=$("$loader" --list "$work"/mxrt/_mxrt.*.so 2>&1 || true)
  rm -rf "$work"
  missing=$(grep -vE '=> |\(0x|: _?Py[A-Z_]\w*: symbol not found$' <<<"$found" || true)
  if [ -n "$missing" ] || [[ $found != *"libc.so => "* ]]; then
    echo "the loader of musl says: ${missing:-$found}"
    return 1
  fi
  echo "resolved: musl has every function that the module needs, other than Python's own"
}

# audit_3_15 WHEEL: whether the module calls the stable interface of Python 3.15 alone. abi3audit takes
# the function that this Python asks a module for as one that the module calls, and ends with 1.
audit_3_15() {
  { "$python" -m abi3audit --report "$1" || true; } | "$python" -c 'import json, sys
(found,) = json.load(sys.stdin)["specs"].values()
results = [module["result"] for module in found["wheel"]]
good = ["3.15", ["PyModExport__mxrt"], {}]
keys = "computed", "non_abi3_symbols", "future_abi3_objects"
sys.exit(None if [[one[key] for key in keys] for one in results] == [good] else f"not the interface of 3.15: {results}")'
}

check() {
  local wheel
  for wheel in "$@"; do
    wheel=$(realpath "$wheel")
    echo "== ${wheel##*/}"
    case $wheel in
    *-abi3-*) "$python" -m abi3audit --strict --summary "$wheel" ;;
    *-abi3.abi3t-*) audit_3_15 "$wheel" ;;
    esac
    "$python" scripts/check_wheel.py "$wheel"
    # auditwheel looks for libraries of musl among those of this machine.
    case $wheel in *manylinux*) "$python" -m auditwheel show "$wheel" ;; esac
    case $wheel in
    *musllinux*) use_musl "$wheel" ;;
    *"$(uname -m)".whl) use "$wheel" ;;
    *aarch64.whl) use_emulated "$wheel" ;;
    *) echo "skip: it is for another processor" ;;
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
