#!/bin/bash
# What takes too long to be asked before every step: slow tests, scripts under AddressSanitizer, ThreadSanitizer,
# clang-tidy over everything, fuzzing. Runs after `.ci/run` in the same checkout, whose builds it uses.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

jobs="$(nproc)"
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
configure_options=()
if command -v ccache >/dev/null; then configure_options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache); fi
step() { printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"; }
# Sources by suffix, of what git knows.
sources() { git ls-files -z -- "$@"; }
run_tests() { ctest --output-on-failure --no-tests=error -j "$((jobs + 1))" "$@"; }

step 'Release: slow tests'
run_tests --test-dir build/release -L slow

step 'AddressSanitizer + UBSan: scripts'
UBSAN_OPTIONS=print_stacktrace=1 run_tests --test-dir build/asan -LE slow -E '^[a-z0-9_]+_test:'

# ThreadSanitizer wants the address space laid out as it knows it; newer kernels randomise more of it.
fixed_addresses=(setarch "$(uname -m)" --addr-no-randomize)
if ! "${fixed_addresses[@]}" true 2>/dev/null; then fixed_addresses=(); fi
# A longer history: what is left out is known by stacks, which a short one forgets.
export TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp history_size=7"
step 'ThreadSanitizer: build'
cmake --preset tsan --log-level=WARNING "${configure_options[@]}" >/dev/null
"${fixed_addresses[@]}" ninja -C build/tsan -j "$jobs" --quiet runtime_test stages_test network_test fake_gpu_test
step 'ThreadSanitizer: tests'
"${fixed_addresses[@]}" ctest --output-on-failure --no-tests=error -j "$((jobs + 1))" -LE slow \
  -R '^(runtime|stages|network|fake_gpu)_test:' --test-dir build/tsan

step 'clang-tidy'
# Most of the time goes into headers, so sources that the sanitizers' build compiles as one are looked at as one, too. What
# those files include is theirs.
tidy() { xargs -0 -n 1 -P "$(nproc)" timeout 300 clang-tidy --quiet "$@" 2>>build/lint.log || { tail -n 20 build/lint.log; exit 1; }; }
: >build/lint.log
find build/asan/src -name 'unity_*_cxx.cxx' -print0 >build/lint-together.list
xargs -0 sed -n "s,^#include \"$PWD/\(.*\)\"$,\\1,p" <build/lint-together.list | sort >build/lint-together.sources
tidy --checks=-bugprone-suspicious-include --header-filter='/(include/slidestream|src)/.*\.[hc]pp$' -p build/asan \
  <build/lint-together.list
# The others. The example and the fuzz targets are built elsewhere; the release build's flags for their kind do for them.
sources 'src/*.cpp' 'fuzz/*.cpp' 'bench/*.cpp' 'examples/*.cpp' | tr '\0' '\n' | sort |
  comm -23 - build/lint-together.sources | tr '\n' '\0' | tidy --extra-arg="-I$PWD" -p build/release

step 'Fuzzing'
scripts/fuzz.sh 30

printf '\nAll deep checks passed in %d s.\n' "$SECONDS"
