#!/usr/bin/env bash
# mxrt as a library for C and C++.
#
#   scripts/embedding.sh install          libmxrt.so.0 and its link, libmxrt.a, headers, mxrt.pc and
#                                         the files for CMake
#   scripts/embedding.sh install-compat   libmxnet.so for programs that were linked to MXNet, and
#                                         libmxnet_predict.so, a link to it
#   scripts/embedding.sh check            installs both into an empty folder, looks at what they
#                                         export and need, builds the examples by pkg-config, CMake
#                                         and with the static library, and runs them
#   scripts/embedding.sh tarball PYTHON   both as dist/mxrt-VERSION-PROCESSOR-glibc2.17.tar.gz, linked
#                                         by the zig that this Python has, for older systems
#
# DESTDIR (none), PREFIX (/usr/local) and LIBDIR (lib) say where; CAPI_PROFILE (release) is cargo's
# profile. What is installed may be moved as a whole.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
action=${1:?install, install-compat, check or tarball}
profile=${CAPI_PROFILE:-release}
prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-lib}
target=${CARGO_TARGET_DIR:-$PWD/target}
crate=crates/capi
# What the standard library of Rust needs of the system.
libraries="-lgcc_s -lpthread -lm -ldl -lc"
limit=17600000
# An image of 8 x 8 pixels.
digit="iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAAQElEQVR42mNgYMhf/76fAQTev7dfbw+k9df7M8jPBzLy64Ec
IGaIBxL2IIY/kKj3BzL498vznwfr8v9/X5+BAQB8zBCOLldIfgAAAABJRU5ErkJggg=="

# The static library, from which the shared ones are linked: cargo can set neither their names nor
# the version of their symbols.
build() {
  cargo rustc --locked --profile "$profile" -p mxrt-capi --lib --crate-type staticlib
  local folder=$profile
  [ "$profile" = dev ] && folder=debug
  archive=$target/$folder/libmxrt_capi.a
}

# Options by which functions with the same code are kept once, where the linker that comes with Rust
# is there and the compiler takes it. Rust promises no function an address of its own.
fold() {
  local rust
  rust=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/gcc-ld
  local options=(-fuse-ld=lld "-B$rust" -Wl,--icf=all)
  if [ -x "$rust/ld.lld" ] && echo 'int one(void) { return 1; }' |
    "${CC:-cc}" "${options[@]}" -shared -x c - -o /dev/null 2>/dev/null; then
    printf '%s\n' "${options[@]}"
  fi
}

# link SONAME FILE
link() {
  local options
  mapfile -t options < <(fold)
  # shellcheck disable=SC2086 # libraries are words
  "${CC:-cc}" "${options[@]}" -shared -s -o "$2" -Wl,-soname,"$1" -Wl,--version-script="$crate/mxrt.map" \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -Wl,--gc-sections -Wl,-O2 \
    -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,--as-needed $libraries
}

# template FILE: on standard output, with its variables.
template() {
  local up=.. rest=$libdir
  while [[ $rest == */* ]]; do up=../$up rest=${rest%/*}; done
  sed -e "s|@VERSION@|$version|g" -e "s|@LIBDIR@|$libdir|g" -e "s|@UP@|../$up|g" \
    -e "s|@LIBS@|$libraries|g" -e "s|@CMAKE_LIBS@|gcc_s;m;dl|g" "$1"
}

install_c() {
  local to=${DESTDIR:-}$prefix
  mkdir -p "$to/$libdir/pkgconfig" "$to/$libdir/cmake/mxrt" "$to/include"
  build
  link libmxrt.so.0 "$to/$libdir/libmxrt.so.0"
  ln -sf libmxrt.so.0 "$to/$libdir/libmxrt.so"
  cp "$archive" "$to/$libdir/libmxrt.a"
  strip --strip-debug "$to/$libdir/libmxrt.a"
  cp -R "$crate/include/." "$to/include"
  template "$crate/mxrt.pc.in" >"$to/$libdir/pkgconfig/mxrt.pc"
  template "$crate/mxrt-config.cmake.in" >"$to/$libdir/cmake/mxrt/mxrt-config.cmake"
  template "$crate/mxrt-config-version.cmake.in" >"$to/$libdir/cmake/mxrt/mxrt-config-version.cmake"
  echo "installed mxrt $version for C and C++ in $to"
}

install_compat() {
  local to=${DESTDIR:-}$prefix/$libdir
  mkdir -p "$to"
  build
  link libmxnet.so "$to/libmxnet.so"
  ln -sf libmxnet.so "$to/libmxnet_predict.so"
  echo "installed libmxnet.so and libmxnet_predict.so in $to"
}

fail() {
  echo "embedding: $*" >&2
  exit 1
}

# look FILE SONAME: name, size, needed libraries and exported names.
look() {
  local file=$1 soname needed size
  soname=$(readelf -d "$file" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
  [ "$soname" = "$2" ] || fail "$file has the SONAME '$soname'; expected $2"
  needed=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libm|libgcc_s|libpthread|libdl|ld-linux-[a-z0-9-]+)\.so\.[0-9]+$' || true)
  [ -z "$needed" ] || fail "$file needs $needed"
  size=$(stat -c %s "$file")
  [ "$profile" != release ] || [ "$size" -le "$limit" ] || fail "$file has $size bytes; $limit are allowed"
  nm -D --defined-only "$file" | awk '{print $3}' | sort >"$work/exported"
  if grep -vE '^(MX|NN)[A-Za-z0-9_]*@@MXRT_0$|^MXRT_0(@@MXRT_0)?$' "$work/exported" >&2; then
    fail "$file exports these names, or without the version MXRT_0"
  fi
  sed 's/@@.*//' "$work/exported" | sort | comm -13 - <(sort "$crate/tests/recorded/libmxnet_exports.txt") >"$work/missing"
  [ ! -s "$work/missing" ] || fail "$file lacks $(tr '\n' ' ' <"$work/missing")"
  echo "$(basename "$file"): $size bytes, $(grep -c @@MXRT_0 "$work/exported") names of version MXRT_0"
}

# try FOLDER: runs the examples that were built there.
try() {
  local model=$PWD/tests/models/digits_cnn/digits_cnn folder=$1
  cp "$work/digit.png" "$folder/a digit.png"
  (
    cd "$folder"
    ./predict "$model-symbol.json" "$model-0000.params" data 3,1,8,8 | grep -q 'all equal' || fail "predict in $folder"
    ./image_classification "$model" "a digit.png" 1,8,8 | grep -q '^class [0-9], score' ||
      fail "image_classification in $folder"
    ./multi_threaded_inference "$model" 0 --shape 1,1,8,8 --threads 16 --requests 50 | tee "$work/answer"
    grep -q '16 threads, 800 requests, 0 wrong' "$work/answer" || fail "multi_threaded_inference in $folder"
    ./multi_threaded_inference "$model" 0 "a digit.png" --shape 1,1,8,8 | grep -q 'a digit.png: class' ||
      fail "multi_threaded_inference in $folder with an image"
  )
}

# compile FOLDER FLAGS...: the examples, as a user's own programs.
compile() {
  local folder=$1
  shift
  mkdir -p "$folder"
  "${CC:-cc}" -O1 examples/c/predict.c -o "$folder/predict" "$@" -lpthread
  "${CC:-cc}" -O1 examples/c/image_classification.c -o "$folder/image_classification" "$@"
  "${CXX:-c++}" -std=c++17 -O1 examples/cpp/multi_threaded_inference.cpp -o "$folder/multi_threaded_inference" "$@" -lpthread
}

check() {
  local stage
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  base64 -d <<<"$digit" >"$work/digit.png"
  stage=$work/stage
  (DESTDIR=$work prefix=/first && install_c && install_compat)
  # What is installed may be moved.
  mv "$work/first" "$stage"
  look "$stage/$libdir/libmxrt.so.0" libmxrt.so.0
  look "$stage/$libdir/libmxnet.so" libmxnet.so

  if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$stage/$libdir/pkgconfig
    # shellcheck disable=SC2046 # flags are words
    compile "$work/shared" $(pkg-config --cflags --libs mxrt)
    LD_LIBRARY_PATH=$stage/$libdir try "$work/shared"
    # shellcheck disable=SC2046
    compile "$work/static" $(pkg-config --cflags mxrt) "$stage/$libdir/libmxrt.a" \
      $(sed -n 's/^Libs.private: //p' "$PKG_CONFIG_PATH/mxrt.pc")
    readelf -d "$work/static/predict" | grep -q 'mxrt' && fail "the static example needs the shared library"
    try "$work/static"
  else
    echo "skip: pkg-config is not installed"
  fi

  # A program that was linked to MXNet's library finds ours under the name.
  compile "$work/mxnet" -I"$stage/include" -L"$stage/$libdir" -lmxnet
  LD_LIBRARY_PATH=$stage/$libdir try "$work/mxnet"

  if command -v cmake >/dev/null; then
    cmake -S examples -B "$work/cmake" -DCMAKE_PREFIX_PATH="$stage" >"$work/cmake.log" || { cat "$work/cmake.log"; fail "cmake"; }
    cmake --build "$work/cmake" >>"$work/cmake.log" || { cat "$work/cmake.log"; fail "cmake --build"; }
    try "$work/cmake"
  else
    echo "skip: cmake is not installed"
  fi
  echo "embedding: all examples run"
}

# tarball PYTHON
tarball() {
  local glibc=2.17 name newest python=$1
  name=mxrt-$version-$(uname -m)-glibc$glibc
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # zig brings the libraries of any glibc, and the one that unwinds.
  printf '#!/bin/sh\nexec "%s" -m ziglang cc -target %s-linux-gnu.%s "$@"\n' "$python" "$(uname -m)" "$glibc" >"$work/cc"
  chmod +x "$work/cc"
  (
    export CC=$work/cc
    libraries=${libraries/-lgcc_s/-lunwind}
    DESTDIR=$work prefix=/$name
    install_c
    install_compat
  )
  look "$work/$name/$libdir/libmxrt.so.0" libmxrt.so.0
  look "$work/$name/$libdir/libmxnet.so" libmxnet.so
  newest=$(readelf -V "$work/$name/$libdir/libmxrt.so.0" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
  [ "$(printf '%s\n' "GLIBC_$glibc" "$newest" | sort -V | tail -n 1)" = "GLIBC_$glibc" ] ||
    fail "the library needs $newest; expected at most GLIBC_$glibc"
  compile "$work/examples" -I"$work/$name/include" -L"$work/$name/$libdir" -lmxrt
  base64 -d <<<"$digit" >"$work/digit.png"
  LD_LIBRARY_PATH=$work/$name/$libdir try "$work/examples"
  mkdir -p dist
  tar -C "$work" -czf "dist/$name.tar.gz" "$name"
  echo "dist/$name.tar.gz: $(stat -c %s "dist/$name.tar.gz") bytes, newest symbol $newest"
}

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
case $action in
install) install_c ;;
install-compat) install_compat ;;
check) check ;;
tarball) tarball "${2:?a Python with the package ziglang}" ;;
*) fail "unknown: $action; known: install, install-compat, check, tarball" ;;
esac
