#!/bin/bash
# Installs from the distribution's packages what is missing: `install-deps.sh [--tests] [--docs] [--list|--missing]`. With
# --tests also the packages of Python that networks are tested with, from PyPI: build/python becomes a link to a folder of the
# user's cache that has them. Without those their tests are skipped.
# With --docs also what scripts/docs.sh needs. --list prints the packages that a build needs, and installs nothing.
# --missing prints which of PyPI's packages for tests build/python doesn't have, and installs nothing either.
# Does nothing, and needs no rights, when everything is there.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

# To build, run and bundle, with the tests that a bundle has for GPUs, and to build the Python package.
packages=(
  g++ cmake ninja-build pkg-config
  libtbb-dev libtiff-dev libjpeg-dev libopenjp2-7-dev libcharls-dev libpugixml-dev liblcms2-dev libkissfft-dev libhwy-dev
  libconcurrentqueue-dev libspdlog-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev
  libsqlite3-dev liburing-dev zlib1g-dev libzstd-dev libblosc-dev libhdf5-dev libjs-chart.js libjs-leaflet doctest-dev dpkg-dev
  python3-dev python3-venv
)
# To test: scripts/test.sh, .ci/run and scripts/fuzz.sh. A `?` marks what some releases have inside another package,
# or not at all.
test_packages=(
  libbenchmark-dev libfftw3-dev ccache git python3 python3-numpy openslide-tools libvips-tools
  'chromium?' fonts-dejavu-core libturbojpeg0 python3-pandas python3-matplotlib python3-pil
  python3-skimage python3-scipy python3-pytest 'python3-openslide?'
  'python3-tifffile?' 'openjph-tools?'
  clang clang-format clang-tidy lld 'libclang-rt-dev?'
  'slurm-wlm?' 'munge?' 'dicom3tools?' 'dcmtk?'
)
docs_packages=(doxygen)

# NumPy comes with them.
python_packages=(onnx==1.23.2 onnxruntime==1.32.0 h5py==3.16.0 pillow==13.0.0 opencv-python-headless==4.11.0.86
  openslide-bin==4.0.1.2 openslide-python==1.4.7 wsidicomizer==0.26.1 nibabel==5.4.2)
# What is imported of each.
python_modules=(onnx onnxruntime h5py PIL cv2 openslide_bin openslide wsidicomizer nibabel)
tests=

missing_python_packages() {
  local i there
  # A Python that isn't there has none.
  there="$("$root/build/python/bin/python3" -c 'import importlib.util, sys
print(*(name for name in sys.argv[1:] if importlib.util.find_spec(name)))' "${python_modules[@]}" 2>/dev/null)" || true
  for i in "${!python_modules[@]}"; do
    [[ " $there " == *" ${python_modules[i]} "* ]] || echo "${python_packages[i]%%=*}"
  done
}

for option in "$@"; do
  case "$option" in
    --tests) packages+=("${test_packages[@]}"); tests=yes ;;
    --docs) packages+=("${docs_packages[@]}") ;;
    --list) printf '%s\n' "${packages[@]}"; exit 0 ;;
    --missing) missing_python_packages; exit 0 ;;
    *) echo "usage: $0 [--tests] [--docs] [--list|--missing]" >&2; exit 2 ;;
  esac
done

install_python_packages() {
  local python="$root/build/python" kept
  [[ -n "$tests" ]] || return 0
  has_python_packages "$python" && return 0
  # Kept for other clones and clean builds: to install them takes longer than most steps of a check.
  kept="${XDG_CACHE_HOME:-${HOME:-$root/build}/.cache}/slidestream"
  # A home that can't be written keeps nothing.
  mkdir -p "$kept" 2>/dev/null || kept="$root/build/.cache"
  mkdir -p "$kept" "$root/build"
  kept+="/python-$({ python3 --version; echo "${python_packages[@]}"; } | sha256sum | cut -c1-12)"
  exec 9>"$kept.lock"
  flock 9
  if ! has_python_packages "$kept"; then
    echo "Installing ${python_packages[*]} into $kept"
    if ! { python3 -m venv --clear "$kept" && "$kept/bin/pip" install -q --disable-pip-version-check "${python_packages[@]}"; }
    then
      echo "install-deps.sh: PyPI's packages can't be installed; tests of networks will be skipped" >&2
      return 0
    fi
  fi
  exec 9>&-
  rm -rf "$python"
  ln -s "$kept" "$python"
}
has_python_packages() {
  "$1/bin/python3" -c "import $(IFS=,; echo "${python_modules[*]}")" 2>/dev/null
}

installed() { [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]; }

if ! command -v dpkg-query apt-get >/dev/null; then
  echo "install-deps.sh: no apt-get here; install what these Debian packages hold: ${packages[*]%\?}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  installed "${package%\?}" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then install_python_packages; exit 0; fi

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
if ((${#wanted[@]} == 0)); then install_python_packages; exit 0; fi
echo "Installing ${wanted[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${wanted[@]}" </dev/null
install_python_packages
