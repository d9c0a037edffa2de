#!/bin/bash
# Says how much of the sources the tests run: `coverage.sh [--all]`. Builds build/coverage, runs all tests but those labelled
# `slow` or `system`, with --all these too, and prints lines and branches by folder. What a test that fails has run counts;
# its name is printed. Needs llvm-cov and llvm-profdata of the compiler's version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
[[ "$*" == '' || "$*" == --all ]] || { echo "usage: $0 [--all]" >&2; exit 2; }
selection=(-LE 'slow|system')
if (($#)); then selection=(); fi
mkdir -p build
# shellcheck source=scripts/building.sh
source scripts/building.sh

profiles="$PWD/build/coverage/profiles"
step 'Coverage: build'
configure coverage
build coverage
step 'Coverage: tests'
rm -rf "$profiles"
# Processes of one program add to one file.
LLVM_PROFILE_FILE="$profiles/%2m.profraw" run_tests coverage coverage-tests "${selection[@]}" || true
step 'Coverage: table'
llvm-profdata merge -sparse "$profiles"/*.profraw -o build/coverage/tests.profdata
objects=()
while IFS= read -r program; do objects+=(-object "$program"); done < <(
  find build/coverage -type f -perm -u+x \( -name '*.so' -o -name '*_test' -o -name pipeline \) | sort)
llvm-cov export -summary-only -instr-profile build/coverage/tests.profdata "${objects[@]}" >build/coverage/summary.json
scripts/coverage_table.py build/coverage/summary.json
step ''
