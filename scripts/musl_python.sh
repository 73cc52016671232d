#!/usr/bin/env bash
# A CPython for musl, from sources of Debian: its musl, python3.11, zlib and libffi.
#
#   scripts/musl_python.sh   makes build/musl-python where it is not there (three minutes of two
#   idle cores), and prints the path of the interpreter
#
# The archive is the one that apt uses on this machine. It wants no root: lists and files of apt are
# in build/. Debian 12 has musl 1.2.3, which crashes at libraries with packed relocations (RELR), as
# those in numpy's wheels. So musl is that of Debian 13 (1.2.5), in build/musl-python/musl.
# Modules whose libraries are not there for musl are left out: _ssl, _hashlib, _sqlite3, _bz2,
# _lzma, readline, curses. Where Python cannot be made, the last line of the errors says why.
set -euo pipefail
cd "$(dirname "$0")/.."
home=$PWD/build/musl-python
interpreter=$home/bin/python3.11
work=$home/work
log=$home/build.log

# fail REASON...
fail() {
  echo "$*" >&2
  exit 1
}

# logged NAME COMMAND...: its output goes to the log; where it fails, its end is shown.
logged() {
  local name=$1
  shift
  "$@" >>"$log" 2>&1 || { tail -20 "$log" >&2; fail "$name failed ($log)"; }
}

# sources: the archives of the sources, checked by apt, in $work.
sources() {
  local archive options
  # shellcheck disable=SC2016 # apt's own variables
  archive=$(apt-get indextargets --format '$(ORIGIN)/$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
    sed -n 's,^Debian/Debian ,,p' | head -n 1)
  [ -n "$archive" ] || fail "apt knows no archive of Debian (apt-get update)"
  mkdir -p "$work/lists/partial"
  printf 'deb-src %s %s main\n' "$archive" bookworm "$archive" trixie >"$work/sources.list"
  # As root, apt downloads as another user, who may not write here.
  options=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" -o APT::Sandbox::User=root)
  cd "$work"
  logged "apt-get update" timeout 120 apt-get "${options[@]}" --error-on=any update
  # Without Debian's own changes, which are for glibc.
  logged "apt-get source" timeout 300 apt-get "${options[@]}" source --download-only --tar-only \
    musl/trixie python3.11/bookworm zlib/bookworm libffi/bookworm
  for archive in musl python3.11 zlib libffi; do
    mkdir "$archive"
    tar -xf "$archive"_*.orig.tar.* -C "$archive" --strip-components=1
  done
}

# compiler: musl, and gcc for it.
compiler() {
  cd "$work/musl"
  logged "configure of musl" ./configure --prefix="$home/musl" \
    --syslibdir="$home/musl/lib" --enable-wrapper=gcc
  logged "musl" make -j2 install
  # Linux's own headers.
  ln -s /usr/include/linux /usr/include/asm-generic \
    "/usr/include/$(gcc -print-multiarch)/asm" "$home/musl/include"
  # Python looks for libraries in the folder of this name, which would be that of glibc's.
  cat >"$work/musl-cc" <<EOF
#!/bin/sh
case \$* in
-print-multiarch | --print-multiarch) echo $machine-linux-musl ;;
*) exec "$home/musl/bin/musl-gcc" "\$@" ;;
esac
EOF
  chmod +x "$work/musl-cc"
}

libraries() {
  cd "$work/zlib"
  logged "configure of zlib" env CFLAGS="-O2 -fPIC" ./configure --static --prefix="$work/deps"
  logged "zlib" make -j2 install
  cd "$work/libffi"
  logged "configure of libffi" ./configure --build="$machine-linux-musl" --prefix="$work/deps" \
    --libdir="$work/deps/lib" --disable-shared --with-pic --disable-docs
  logged "libffi" make -j2 install
}

python() {
  local missing=() name
  # The machine's own libraries are for glibc.
  for name in _ssl _hashlib _sqlite3 _bz2 _lzma _uuid _dbm _gdbm _tkinter nis _crypt; do
    missing+=("py_cv_module_$name=n/a")
  done
  cd "$work/python3.11"
  # Threads have 128 KiB of stack under musl. The images of Python for Alpine give them a megabyte.
  logged "configure of Python" ./configure --build="$machine-linux-musl" --prefix="$home" \
    --disable-test-modules --without-ensurepip --with-readline=no "${missing[@]}" \
    OPT="-DNDEBUG -fwrapv -O2 -DTHREAD_STACK_SIZE=0x100000"
  logged "Python" make -j2
  logged "installation of Python" make bininstall libinstall sharedinstall inclinstall
}

if [ ! -e "$home/made" ]; then
  machine=$(uname -m)
  for tool in apt-get gcc make tar; do
    command -v "$tool" >/dev/null || fail "$tool is not here"
  done
  rm -rf "$home"
  mkdir -p "$work"
  unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR PREFIX LIBDIR PYTHONPATH PYTHONHOME
  unset CC CFLAGS CPPFLAGS LDFLAGS
  (sources)
  (compiler)
  export CC=$work/musl-cc PKG_CONFIG_LIBDIR=$work/deps/lib/pkgconfig
  export CPPFLAGS=-I$work/deps/include LDFLAGS=-L$work/deps/lib
  (libraries)
  (python)
  logged "the interpreter" "$interpreter" -c \
    'import _blake2, _ctypes, _multiprocessing, _socket, math, mmap, select, zlib'
  rm -rf "$work"
  touch "$home/made"
fi
echo "$interpreter"
