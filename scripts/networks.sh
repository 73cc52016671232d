#!/usr/bin/env bash
# Networks of GluonCV, MXNet and GluonNLP: MXNet's answers, then ours beside them.
#
#   scripts/networks.sh
#
# NETWORKS_PYTHON   an interpreter with MXNet 1.9.1, GluonCV, GluonNLP and this mxrt (none)
# NETWORKS_FOLDER   where answers are kept; a run goes on where the last one stopped (build/networks)
# NETWORKS          names such as mxnet/resnet18_v1 (all)
#
# Where there is no interpreter the script says how to get one and ends with status 0.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${NETWORKS_PYTHON:-}
[ -n "$python" ] || {
  echo "skip: NETWORKS_PYTHON names no interpreter. With Python 3.11 it is got by"
  echo "    python3.11 -m venv peers && peers/bin/pip install numpy==1.23.5 'setuptools<70' wheel cython"
  echo "    peers/bin/pip install --no-deps mxnet==1.9.1 gluoncv==0.10.5 graphviz==0.8.4 dist/mxrt-*.whl"
  echo "    peers/bin/pip install --no-deps --no-build-isolation gluonnlp==0.10.0"
  echo "    peers/bin/pip install numpy==1.23.5 yacs 'pandas<2.1' 'scipy<1.12' 'matplotlib<3.9' 'contourpy<1.2' \\"
  echo "        opencv-python-headless==4.5.5.64 tqdm requests portalocker Pillow autocfg"
  echo "    make check-networks NETWORKS_PYTHON=\$PWD/peers/bin/python"
  exit 0
}
folder=${NETWORKS_FOLDER:-build/networks}
read -ra names <<<"${NETWORKS:-}"
"$python" scripts/networks.py record "$folder" "${names[@]}"
status=0
"$python" scripts/networks.py check "$folder" "${names[@]}" || status=$?
"$python" scripts/networks.py table "$folder"
exit "$status"
