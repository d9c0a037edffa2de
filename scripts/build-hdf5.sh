#!/bin/bash
# Builds the distribution's HDF5 as an archive for shared libraries, for scripts/build-wheel.sh: `build-hdf5.sh` prints
# the path of the archive, in build/hdf5-VERSION/, VERSION being that of the installed libhdf5-dev. It has what writes and
# reads files on this machine, and no filters: the distribution's shared library brings libcurl and some thirty more along, for
# files in the cloud, and its archive is for programs alone. Made once: the second call only prints. The first takes the
# source package that the distribution's archive has, as build-libtiff.sh does.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=scripts/source-package.sh
source "$root/scripts/source-package.sh"

fail() { echo "build-hdf5.sh: $*" >&2; exit 1; }
(($# == 0)) || { echo "usage: $0" >&2; exit 2; }
need_tools make
version="$(dpkg-query -W -f='${source:Version}' libhdf5-dev 2>/dev/null)" ||
  fail 'libhdf5-dev is missing: scripts/install-deps.sh installs it'
made="$root/build/hdf5-$version"
if [[ -f "$made/libhdf5.a" ]]; then echo "$made/libhdf5.a"; exit; fi

mkdir -p "$root/build"
work="$(mktemp -d "$root/build/.hdf5.XXXXXX")"
trap 'rm -rf "$work"' EXIT
# HDF5's own sources alone: the distribution's patches are for other uses than this, and under the GPL.
fetch_source hdf5 "$version" --skip-patches
mkdir "$work/built" "$work/made"
cd "$work/built"
# The source's own build: its CMake files don't get through the distribution's compiler.
CFLAGS='-O2 -DNDEBUG -fstack-protector-strong -D_FORTIFY_SOURCE=2' step ../source/configure --disable-shared --with-pic \
  --disable-hl --disable-tools --disable-tests --without-zlib --without-szip --enable-build-mode=production
step make -C src -j "$(nproc)" libhdf5.la
strip --strip-debug -o "$work/made/libhdf5.a" src/.libs/libhdf5.a
keep_made "hdf5-$version"
echo "$made/libhdf5.a"
