#!/usr/bin/env bash
# Whether the source distribution is enough to build mxrt from.
#
#   scripts/sdist.sh check WHEEL   it has every Python file of the wheel, and its crates compile
#   scripts/sdist.sh build         a wheel is built from it, installed, and answers with a model
set -euo pipefail
cd "$(dirname "$0")/.."
action=${1:?check WHEEL or build}
root=$PWD python=$PWD/.venv/bin/python
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
work=$PWD/build/sdist
rm -rf "$work"
mkdir -p "$work"
"$python" -m maturin sdist --out "$work"

case $action in
check)
  wheel=${2:?the wheel to compare with}
  # With the time of now: files of the archive have all the same, by which cargo would take what
  # an earlier archive compiled to for theirs.
  tar -xzmf "$work"/mxrt-*.tar.gz -C "$work" --strip-components=1
  "$python" - "$wheel" "$work/python" <<'EOF'
import sys, zipfile
from pathlib import Path

wheel, sources = sys.argv[1], Path(sys.argv[2])
# What crates/py makes is in no source.
made = (".so", "libmxrt.a")
carried = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("mxrt/") and not name.endswith(made)}
missing = sorted(name for name in carried if not (sources / name).is_file())
print(f"sdist: {len(carried)} files of the package, {len(missing)} missing", *missing[:9])
sys.exit(bool(missing))
EOF
  # In its own folder: nothing of the checkout is seen. The lock names crates of tests, too, which
  # cargo takes out; offline it changes nothing else.
  (cd "$work" && cargo check --quiet --offline --manifest-path crates/py/Cargo.toml --features pyo3/abi3-py310)
  echo "sdist: its crates compile"
  ;;
build)
  "$python" -m pip wheel --quiet --no-deps --wheel-dir "$work" "$work"/mxrt-*.tar.gz
  "$python" -m venv "$work/venv"
  "$work/venv/bin/python" -m pip install --quiet "$work"/mxrt-*.whl
  (cd "$work" && venv/bin/python "$root/tests/models/check.py" --only digits_cnn)
  ;;
*)
  echo "unknown: $action; known: check, build"
  exit 1
  ;;
esac
