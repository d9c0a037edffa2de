#!/bin/bash
# Builds and runs the tests on one Release build, and the examples against the package that it installs.
# `test.sh [--no-install] [--cuda]`: kernels for GPUs are compiled where a GPU is, for that GPU; --cuda compiles them
# anywhere, for one architecture. The build folder is build/release, which scripts/quickstart.sh has, too.
# Tests labelled `slow` or `long`, or named so, run in scripts/check-deep.sh alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

install=yes
cuda=(-DSLIDESTREAM_CUDA=AUTO -DSLIDESTREAM_CUDA_ARCHITECTURES=)
for option in "$@"; do
  case "$option" in
    --no-install) install= ;;
    # Kernels for other architectures are made of the same sources.
    --cuda) cuda=(-DSLIDESTREAM_CUDA=ON -DSLIDESTREAM_CUDA_ARCHITECTURES=90-real) ;;
    *) echo "usage: $0 [--no-install] [--cuda]" >&2; exit 2 ;;
  esac
done
if [[ -n "$install" ]]; then scripts/install-deps.sh --tests; fi
mkdir -p build

# shellcheck source=scripts/building.sh
source scripts/building.sh

step 'Release: build'
if ! has_nanobind; then
  # The distribution's Python, as its packages have what the tests import.
  /usr/bin/python3 -m venv --clear --system-site-packages "$python_env" &&
    "$python_env/bin/pip" install -q nanobind scikit-build-core || true
fi
if has_nanobind; then
  python_options=(-DSLIDESTREAM_PYTHON=ON "-DPython_EXECUTABLE=$python_env/bin/python")
else
  echo 'SKIPPED: the Python package, as nanobind could not be installed from PyPI'
  python_options=(-DSLIDESTREAM_PYTHON=OFF)
fi
configure release "${cuda[@]}" "${python_options[@]}"
build release

step 'Release: tests'
release_tests
step 'Release: tests of servers, browsers, disks and kills'
release_system_tests

step 'Installed package: the examples'
rm -rf build/prefix
cmake --install build/release --prefix build/prefix >/dev/null
build_example() {
  cmake -S "examples/$1" -B "build/example/$1" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$PWD/build/prefix" >/dev/null &&
    ninja -C "build/example/$1" --quiet
}
example() { "build/example/$1/$1" "${@:2}" | tee "build/example/$1.txt"; }
mkdir -p build/example
# An example that fails leaves nothing running.
trap wait EXIT
build_example strip_means & building=$!
build_example own_operator
wait "$building"
build/prefix/bin/pipeline synth --out build/example/slide.svs --size 1024x768
example strip_means build/example/slide.svs
grep -q '^35 windows, mean ' build/example/strip_means.txt
example own_operator build/example/contrast build/example/slide.svs
grep -q '^images/slide.contrast.ome.tif: ' build/example/own_operator.txt
build/prefix/bin/pipeline info build/example/contrast/images/slide.contrast.ome.tif >/dev/null
step ''

printf '\nAll tests passed in %d s.\n' "$SECONDS"
left_out release-tests release-system-tests
