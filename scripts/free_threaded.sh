#!/usr/bin/env bash
# Tests on a Python without the global lock: builds a wheel for it, installs it apart with what the
# tests need and has wheels there, and runs them.
#
#   scripts/free_threaded.sh PYTHON [ARGUMENTS OF PYTEST...]
#
# Without arguments those of tests/engine, tests/gluon, tests/data and tests/serve. PROFILE names the
# profile of Cargo; demo, which is built in half the time, without it.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:?a Python without the global lock}
shift
work=build/free-threaded
"$python" -c 'import sys, sysconfig
sys.exit(0 if sysconfig.get_config_var("Py_GIL_DISABLED") else "this Python has the global lock")'
rm -rf "$work"/*.whl python/mxrt/_mxrt*.so
.venv/bin/python -m maturin build --profile "${PROFILE:-demo}" --locked -i "$(command -v "$python")" --out "$work"
[ -x "$work/venv/bin/python" ] || "$python" -m venv "$work/venv"
pip() { "$work/venv/bin/python" -m pip install --quiet --only-binary :all: "$@"; }
pip numpy pytest pytest-timeout pytest-xdist pytest-benchmark
for one in matplotlib protobuf onnx opentelemetry-sdk opentelemetry-exporter-otlp-proto-http; do
  pip "$(sed -nE "s/^($one==[^; ]+).*/\1/p" requirements/test.txt | head -1)" 2>/dev/null ||
    echo "without $one, which has no wheel for this Python"
done
pip --force-reinstall --no-deps "$work"/mxrt-*.whl
[ $# -gt 0 ] || set -- tests/engine tests/gluon tests/data tests/serve
"$work/venv/bin/python" -m pytest -q "$@"
