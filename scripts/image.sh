#!/usr/bin/env bash
# The image of `mxrt serve`, from the wheel in dist/.
#
#   scripts/image.sh build   deploy/Dockerfile by docker or podman; IMAGE=mxrt PYTHON_IMAGE=docker.io/library/python:3.13-slim
#   scripts/image.sh check   that, and whether containers of it do as docs/serving-operation.md says
#
# Where no registry of images is in reach and no base is named, `check` makes one of Debian's own
# Python by debootstrap, which wants root, and says so.
set -euo pipefail
cd "$(dirname "$0")/.."
action=${1:?build or check}
python=$PWD/.venv/bin/python
image=${IMAGE:-mxrt}
base=${PYTHON_IMAGE:-docker.io/library/python:3.13-slim}
work=$PWD/build/image
mkdir -p "$work"

if [ -z "${CONTAINERS:-}" ]; then
  if docker info >/dev/null 2>&1; then
    CONTAINERS=docker
  elif command -v podman >/dev/null; then
    CONTAINERS=podman
  else
    echo "an image is built by docker, whose daemon must run, or by podman: install one of them"
    exit 1
  fi
fi

# What podman needs where root may not raise limits and where a container of its own is no process
# of systemd: the limits that there are, and runc, which knows both versions of cgroups.
if [ "$CONTAINERS" = podman ]; then
  cat >"$work/containers.conf" <<EOF
[containers]
default_ulimits = ["nofile=$(ulimit -Sn):$(ulimit -Hn)", "nproc=1024:4096"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
EOF
  export CONTAINERS_CONF=$work/containers.conf
fi

# own_base: Debian's Python as an image of the name in $base.
own_base() {
  tail -1 "$work/pull.log"
  if [ -n "${PYTHON_IMAGE:-}" ]; then
    echo "the base image $PYTHON_IMAGE cannot be pulled; without PYTHON_IMAGE one is made here"
    exit 1
  fi
  echo "$base cannot be pulled: the base is Debian's Python, by debootstrap"
  base=localhost/mxrt-python:bookworm
  rm -rf "$work/debian"
  debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$work/debian" \
    http://deb.debian.org/debian >"$work/debootstrap.log" || { tail -5 "$work/debootstrap.log"; exit 1; }
  ln -s python3 "$work/debian/usr/bin/python"
  tar -C "$work/debian" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists --exclude=./usr/share/doc \
    --exclude=./usr/share/man --exclude=./usr/share/locale -c . | "$CONTAINERS" import - "$base" >/dev/null
  rm -rf "$work/debian"
}

# build OPTION...
build() {
  ls dist/mxrt-*.whl >/dev/null || exit 1
  "$CONTAINERS" build "$@" -f deploy/Dockerfile -t "$image" --build-arg "PYTHON_IMAGE=$base" .
  echo "built the image $image"
}

# The certificates and the index that pip uses here, for pip in the build.
host_pip() {
  printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >"$work/pip.conf"
  if index=$("$python" -m pip config get global.index-url 2>/dev/null); then
    printf 'index-url = %s\n' "$index" >>"$work/pip.conf"
  fi
  echo --volume "$work/pip.conf:/etc/pip.conf:ro" \
    --volume /etc/ssl/certs/ca-certificates.crt:/etc/ssl/certs/ca-certificates.crt:ro
}

case $action in
build)
  # Images in Docker's format have a health check.
  if [ "$CONTAINERS" = podman ]; then build --format docker; else build; fi
  ;;
check)
  timeout 300 "$CONTAINERS" pull --quiet "$base" 2>"$work/pull.log" || own_base
  if [ "$CONTAINERS" = podman ]; then
    # shellcheck disable=SC2046  # options without spaces in them
    build --format docker --isolation chroot --network host $(host_pip)
  else
    build
  fi
  MXRT_CONTAINERS=$CONTAINERS MXRT_IMAGE=$image "$python" -m pytest -q -o timeout=300 tests/clients/check_image.py
  ;;
*)
  echo "unknown: $action; known: build, check"
  exit 1
  ;;
esac
