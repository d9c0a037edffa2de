#!/bin/bash
# Installs from the distribution's packages what is missing: `install-deps.sh [--tests]`.
# Does nothing, and needs no rights, when everything is there.
set -euo pipefail

# To build, run and bundle, with the tests that a bundle has for GPUs.
packages=(
  g++ cmake ninja-build pkg-config
  libtbb-dev libtiff-dev libjpeg-dev libopenjp2-7-dev libkissfft-dev libhwy-dev
  libconcurrentqueue-dev libspdlog-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev
  libsqlite3-dev libzstd-dev libblosc-dev libhdf5-dev libjs-chart.js libjs-leaflet doctest-dev dpkg-dev
)
# To test: scripts/test.sh, .ci/run and scripts/fuzz.sh. A `?` marks what some releases have inside another package,
# or not at all.
test_packages=(
  libbenchmark-dev libfftw3-dev ccache git python3 python3-numpy openslide-tools libvips-tools
  'chromium?' fonts-dejavu-core python3-pandas python3-matplotlib python3-pil
  python3-skimage python3-scipy python3-h5py
  'python3-tifffile?'
  clang clang-format clang-tidy 'libclang-rt-dev?'
  'slurm-wlm?' 'munge?'
)

case "${1:-}" in
  '') ;;
  --tests) packages+=("${test_packages[@]}") ;;
  *) echo "usage: $0 [--tests]" >&2; exit 2 ;;
esac

installed() { [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]; }

if ! command -v dpkg-query apt-get >/dev/null; then
  echo "install-deps.sh: no apt-get here; install what these Debian packages hold: ${packages[*]%\?}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  installed "${package%\?}" || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if [[ "$(id -u)" != 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install-deps.sh: missing ${missing[*]%\?}; run this as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# Lists may be old or absent; when they can't be renewed, the packages may still be had.
"${as_root[@]}" apt-get update -q || echo "install-deps.sh: apt-get update failed; going on with the lists there are" >&2

wanted=()
for package in "${missing[@]}"; do
  if [[ "$package" == *\? ]]; then
    package="${package%\?}"
    apt-cache show "$package" >/dev/null 2>&1 || continue
  fi
  wanted+=("$package")
done
((${#wanted[@]})) || exit 0
echo "Installing ${wanted[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${wanted[@]}" </dev/null
