#!/bin/bash
# Tests what build-wheel.sh made where none of the distribution's libraries are:
# `test-wheel.sh [--python PYTHON]... [--sdist] [WHEELS_DIR [BUILD_DIR]]`. PYTHON is python3, WHEELS_DIR build/wheels and
# BUILD_DIR, whose pipeline says what is right, build/release unless named. The wheels' licences are looked at. Then each
# Python gets a virtual environment with the wheel and h5py, and a root of its own that holds these, that Python, glibc,
# the runtime of C and C++, and zlib alone; there tests/scripts/wheel_check.py runs. With --sdist the source distribution is
# made, too, and installed by the first Python; that links the machine's libraries, and takes minutes. Needs the network for
# pip, and a kernel that lets users have namespaces.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

fail() { echo "test-wheel.sh: $*" >&2; exit 1; }
usage() { echo "usage: $0 [--python PYTHON]... [--sdist] [WHEELS_DIR [BUILD_DIR]]" >&2; exit 2; }
pythons=()
sdist=
places=()
while (($#)); do
  case "$1" in
    --python) (($# > 1)) || usage; pythons+=("$2"); shift ;;
    --sdist) sdist=yes ;;
    -*) usage ;;
    *) places+=("$1") ;;
  esac
  shift
done
((${#places[@]} <= 2)) || usage
((${#pythons[@]})) || pythons=(python3)
wheels="$(realpath "${places[0]:-$root/build/wheels}")"
pipeline="${places[1]:-$root/build/release}/pipeline"
compgen -G "$wheels/slidestream-*.whl" >/dev/null || fail "$wheels holds no wheel: scripts/build-wheel.sh makes one"
[[ -x "$pipeline" ]] || fail "$pipeline is missing: cmake --preset release && ninja -C build/release pipeline"
unshare --user --map-root-user --mount true || fail 'the kernel lets nobody have namespaces here'

"${pythons[0]}" -B "$root/tests/scripts/wheel_check.py" licences "$wheels"/slidestream-*.whl

mkdir -p "$root/build"
work="$(mktemp -d "$root/build/.test-wheel.XXXXXX")"
trap 'rm -rf "$work"' EXIT
cp "$root/tests/scripts/wheel_check.py" "$work/"
"${pythons[0]}" "$work/wheel_check.py" prepare "$pipeline" "$work/expected"

# What a wheel may look for on any Linux: glibc, the runtime of C and C++, and zlib (PEP 600 has the list).
runtime='/(libc|libm|libpthread|libdl|librt|libutil|libstdc\+\+|libgcc_s|libz)\.so\.'

# check_in_bare_root ENV PYTHON
check_in_bare_root() {
  local bare="$1.root" prefix place library
  prefix="$("$2" -c 'import sys; print(sys.base_prefix)')"
  for place in "$prefix" "$1" "$work/expected" /proc /dev; do mkdir -p "$bare$place"; done
  mkdir -p "$bare/tmp"
  while read -r library; do
    mkdir -p "$bare$(dirname "$library")"
    cp -Lu "$library" "$bare$library"
  done < <(/sbin/ldconfig -p | sed -n 's/.*(libc6,x86-64.*) => //p' | grep -E "$runtime"
    readelf -lW "$(realpath "$1/bin/python")" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')
  cp "$work/wheel_check.py" "$bare/"
  # shellcheck disable=SC2016  # expanded inside
  env -i PATH="$PATH" unshare --user --map-root-user --mount bash -euc '
    bare="$1"
    for place in "${@:4}" /proc /dev; do mount --rbind "$place" "$bare$place"; done
    HOME=/tmp exec chroot "$bare" "$2/bin/python" -B /wheel_check.py check "$3" /tmp --bare "$2" "$4"
  ' - "$bare" "$1" "$work/expected" "$prefix" "$1" "$work/expected"
}

for number in "${!pythons[@]}"; do
  python="${pythons[number]}"
  env="$work/env-$number"
  "$python" -m venv "$env"
  "$env/bin/pip" install -q --no-index --no-deps --find-links "$wheels" slidestream
  "$env/bin/pip" install -q --only-binary :all: numpy h5py
  check_in_bare_root "$env" "$python"
  echo "test-wheel.sh: passed with $("$python" -V) where nothing else is"
done

[[ -n "$sdist" ]] || exit 0
env="$work/env-sdist"
"${pythons[0]}" -m venv "$env"
"$env/bin/pip" install -q build numpy h5py
"$env/bin/python" -m build --sdist --outdir "$work/sdist" "$root" >"$work/log" 2>&1 || { tail "$work/log" >&2; fail 'no sdist'; }
"$env/bin/pip" install -q "$work"/sdist/slidestream-*.tar.gz
"$env/bin/python" -B "$work/wheel_check.py" check "$work/expected" "$work"
echo "test-wheel.sh: the source distribution passed with $("${pythons[0]}" -V)"
