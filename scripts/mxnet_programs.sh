#!/usr/bin/env bash
# Programs over MXNet's own headers and library, run on ours.
#
#   scripts/mxnet_programs.sh
#
# MXNET_SOURCE    MXNet's source tree of version 1.9.1: cpp-package comes from there
# MXNET_INCLUDE   a folder with the headers mxnet/, nnvm/ and dmlc/ (MXNET_SOURCE/include, which needs
#                 the tree's submodules; the Python package of MXNet has them too, in mxnet/include)
# MXNET_LIBRARY   MXNet's libmxnet.so (none). With it programs are also linked to MXNet's library, run
#                 on it and then, unchanged, on ours, and the answers compared
# CAPI_LIBRARY    our library, such as an installed libmxnet.so (built here)
# CAPI_PROFILE    cargo's profile of the library that is built here (dev)
#
# op.h, the C++ functions of all operators, is made by MXNet's OpWrapperGenerator.py from our library.
# Where there are no headers the script says how to get them and ends with status 0.
set -euo pipefail
cd "$(dirname "$0")/.."
source_tree=${MXNET_SOURCE:-}
include=${MXNET_INCLUDE:-$source_tree/include}
profile=${CAPI_PROFILE:-dev}
target=${CARGO_TARGET_DIR:-$PWD/target}
for needed in "$source_tree/cpp-package/include/mxnet-cpp/MxNetCpp.h" "$include/mxnet/c_api.h" "$include/dmlc/optional.h"; do
  [ -f "$needed" ] || {
    echo "skip: there is no ${needed#/}. MXNet's headers are got by"
    echo "    git clone --depth 1 --branch 1.9.1 --recurse-submodules https://github.com/apache/mxnet"
    echo "    make check-mxnet-programs MXNET_SOURCE=\$PWD/mxnet"
    exit 0
  }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
library=${CAPI_LIBRARY:-}
if [ -z "$library" ]; then
  cargo build -q --locked --profile "$profile" -p mxrt-capi --lib
  folder=$profile
  [ "$profile" = dev ] && folder=debug
  library=$target/$folder/libmxrt_capi.so
fi
mkdir "$work/ours" "$work/files"
ln -s "$(readlink -f "$library")" "$work/ours/libmxnet.so"

model=tests/models/digits_cnn/digits_cnn
recorded=crates/capi/tests/recorded
files=("$model-symbol.json" "$model-0000.params" "$recorded/digits_b3_in.f32")
programs=crates/capi/tests/programs

# headers LIBRARY FOLDER: cpp-package's headers with the op.h of a library.
headers() {
  mkdir -p "$2/scripts"
  cp -R "$source_tree/cpp-package/include" "$2/include"
  rm -f "$2/include/mxnet-cpp/op.h"
  (cd "$2/scripts" && LD_LIBRARY_PATH=$(dirname "$1") python3 -W ignore "$source_tree/cpp-package/scripts/OpWrapperGenerator.py" "$1" >"$2/log" 2>&1) ||
    { cat "$2/log"; exit 1; }
  if grep -q 'unknown type' "$2/log"; then
    cat "$2/log"
    exit 1
  fi
  echo "op.h of $(readlink -f "$1" | xargs basename): $(grep -c '^inline Symbol' "$2/include/mxnet-cpp/op.h") functions"
}

# compile FOLDER-OF-HEADERS FOLDER-OF-LIBRARY OUTPUT: both programs.
compile() {
  mkdir -p "$3"
  "${CXX:-c++}" -std=c++14 -O0 -w "$programs/cpp_package.cpp" -o "$3/cpp_package" \
    -I"$1/include" -I"$include" -L"$2" -lmxnet -Wl,-rpath-link,"$2"
  "${CC:-cc}" -std=c11 -O1 -w "$programs/go_predict.c" -o "$3/go_predict" \
    -I"$include" -L"$2" -lmxnet -Wl,-rpath-link,"$2" -lpthread -lm
}

# run FOLDER-OF-LIBRARY FOLDER-OF-PROGRAMS OUTPUT THREADS
run() {
  LD_LIBRARY_PATH=$1 timeout 120 "$2/cpp_package" "${files[@]}" "$recorded/digits_b3_out.f32" "$work/files"
  LD_LIBRARY_PATH=$1 timeout 120 "$2/go_predict" "${files[@]}" - "$4" >"$3"
}

headers "$work/ours/libmxnet.so" "$work/headers"
compile "$work/headers" "$work/ours" "$work/programs"
run "$work/ours" "$work/programs" "$work/outputs" 8
echo "compiled with MXNet's headers, on our library: fine"

[ -n "${MXNET_LIBRARY:-}" ] || exit 0
theirs=$(dirname "$MXNET_LIBRARY")
headers "$MXNET_LIBRARY" "$work/their-headers"
compile "$work/their-headers" "$theirs" "$work/their-programs"
run "$theirs" "$work/their-programs" "$work/theirs" 1
run "$work/ours" "$work/their-programs" "$work/unchanged" 8
paste "$work/theirs" "$work/unchanged" | awk '
  { d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d }
  END { printf "linked to MXNet, run on our library: %d outputs, largest difference %.2g\n", NR, worst; exit !(NR == 30 && worst < 1e-5) }'
