#!/usr/bin/env bash
# Unit tests of packages above MXNet over mxrt: what MXNet 1.9.1 passes and mxrt does not.
#
#   scripts/packages.sh
#
# PACKAGES_PYTHON    an interpreter with the packages, MXNet 1.9.1 and this mxrt (none)
# PACKAGES_SOURCES   a folder with a checkout of each package, for its tests (none)
# PACKAGES_FOLDER    where outcomes and logs are kept (build/packages)
# PACKAGES           names such as sockeye (all)
#
# Where there is no interpreter the script says how to get one and ends with status 0.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PACKAGES_PYTHON:-}
[ -n "$python" ] && [ -n "${PACKAGES_SOURCES:-}" ] || {
  echo "skip: PACKAGES_PYTHON or PACKAGES_SOURCES is not set. With Python 3.11 they are got by"
  echo "    python3.11 -m venv peers && peers/bin/pip install numpy==1.23.5 'setuptools<70' wheel cython"
  echo "    peers/bin/pip install --no-deps mxnet==1.9.1 graphviz==0.8.4 gluoncv==0.10.5.post0 gluonts==0.11.12 \\"
  echo "        sockeye==2.3.24 dist/mxrt-*.whl"
  echo "    peers/bin/pip install --no-deps --no-build-isolation gluonnlp==0.10.0"
  echo "    peers/bin/pip install -r requirements/packages.txt"
  echo "    and checkouts of awslabs/sockeye at 2.3.24, awslabs/gluonts at v0.11.12, dmlc/gluon-nlp at v0.10.0 and"
  echo "    dmlc/gluon-cv at v0.10.0, in a folder of their own, called sockeye, gluonts, gluonnlp and gluoncv"
  echo "    make check-packages PACKAGES_PYTHON=\$PWD/peers/bin/python PACKAGES_SOURCES=FOLDER"
  exit 0
}
read -ra names <<<"${PACKAGES:-}"
exec "$python" tests/packages/run.py check "$PACKAGES_SOURCES" "${PACKAGES_FOLDER:-build/packages}" "${names[@]}"
