#!/usr/bin/env bash
# Random calls of operators under MXNet 1.9.1 and under mxrt, compared (tests/operators/random_calls.py).
#
#   scripts/random_mxnet.sh [CALLS]
#
# MXNET_PYTHON   an interpreter with MXNet 1.9.1 (none)
# FIRST          number of the first call (0)
#
# Where there is no interpreter the script says how to get one and ends with status 0.
set -euo pipefail
cd "$(dirname "$0")/.."
calls=${1:-5000}
first=${FIRST:-0}
theirs=${MXNET_PYTHON:-}
[ -n "$theirs" ] || {
  echo "skip: MXNET_PYTHON names no interpreter. With Python 3.11 it is got by"
  echo "    python3.11 -m venv mxnet && mxnet/bin/pip install numpy==1.23.5 requests"
  echo "    mxnet/bin/pip install --no-deps mxnet==1.9.1 graphviz==0.8.4"
  echo "    make random-mxnet MXNET_PYTHON=\$PWD/mxnet/bin/python"
  exit 0
}
folder=build/random-mxnet
mkdir -p "$folder"
OMP_NUM_THREADS=1 "$theirs" tests/operators/random_calls.py answer --module mxnet --first "$first" --calls "$calls" \
  --out "$folder/theirs" 2>"$folder/theirs.log"
.venv/bin/python tests/operators/random_calls.py answer --first "$first" --calls "$calls" --out "$folder/ours"
.venv/bin/python tests/operators/random_calls.py compare "$folder/theirs" "$folder/ours"
