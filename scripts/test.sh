#!/bin/bash
# Builds and runs the tests: Release by g++, the example against an installed package, and the tests within one process
# under AddressSanitizer + UBSan. Those labelled `slow` are left to scripts/check-deep.sh. `test.sh [--no-install]`; build
# folders are build/release and build/asan.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
  '') scripts/install-deps.sh --tests ;;
  --no-install) ;;
  *) echo "usage: $0 [--no-install]" >&2; exit 2 ;;
esac

jobs="$(nproc)"
configure_options=()
# Objects are found again by another clone of the same sources.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
if command -v ccache >/dev/null; then configure_options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache); fi

step() { printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"; }
# build PRESET [TARGET...], as a build for tests that keeps no option of an earlier one
build() {
  cmake --preset "$1" --log-level=WARNING -DBUILD_TESTING=ON "${configure_options[@]}" >/dev/null
  ninja -C "build/$1" -j "$jobs" --quiet "${@:2}"
}
# One more at a time than there are cores: many wait, for a disk or for a time to pass.
run_tests() { ctest --output-on-failure --no-tests=error -j "$((jobs + 1))" "$@" </dev/null; }

step 'Release: build'
# nanobind, which the Python package is built with, comes from PyPI: older releases of the distribution have no package.
# scikit-build-core makes the source distribution, of which a test looks at the list of files.
python_env="$PWD/build/python-env"
has_nanobind() { "$python_env/bin/python" -c 'import nanobind, scikit_build_core' 2>/dev/null; }
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
# Kernels for one architecture: those for the others are made of the same sources.
cmake --preset release --log-level=WARNING -DSLIDESTREAM_CUDA_ARCHITECTURES=90-real "${python_options[@]}" \
  "${configure_options[@]}" >/dev/null
build release
step 'Release: tests'
run_tests --test-dir build/release -LE slow
# Why, of those that CTest only calls skipped.
grep -h '^SKIPPED: ' build/release/Testing/Temporary/LastTest.log || true

step 'Installed package: the example'
rm -rf build/prefix
cmake --install build/release --prefix build/prefix >/dev/null
cmake -S examples/strip_means -B build/example -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$PWD/build/prefix" >/dev/null
ninja -C build/example --quiet
build/prefix/bin/pipeline synth --out build/example/slide.svs --size 1024x768
build/example/strip_means build/example/slide.svs | tee build/example/output.txt
grep -q '^35 windows, mean ' build/example/output.txt

step 'AddressSanitizer + UBSan: build'
build asan
step 'AddressSanitizer + UBSan: tests'
UBSAN_OPTIONS=print_stacktrace=1 run_tests --test-dir build/asan -LE slow -R '^[a-z0-9_]+_test:'

printf '\nAll of it passed in %d s.\n' "$SECONDS"
