#!/bin/bash
# Builds and runs the tests of folders below tests/, for daily work: `check.sh FOLDER...`, such as `check.sh slide sink`.
# Uses build/dev: no optimisation, no kernels, sources compiled one by one, so that a changed line is built soon. Programs
# alone; the scripts that run the program are in .ci/run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($#)) || { echo "usage: $0 FOLDER... (folders below tests/: $(cd tests && printf '%s\n' */CMakeLists.txt | cut -d/ -f1 | paste -sd' '))" >&2; exit 2; }
folders=()
for folder in "$@"; do
  folder="${folder#tests/}" folder="${folder%/}"
  [[ -f "tests/$folder/CMakeLists.txt" ]] || { echo "$0: tests/$folder/CMakeLists.txt is missing" >&2; exit 2; }
  folders+=("$folder")
done
mkdir -p build
# shellcheck source=scripts/building.sh
source scripts/building.sh
configure dev
programs=()
for folder in "${folders[@]}"; do
  found="$(test_programs dev "$folder")"
  [[ -n "$found" ]] || { echo "$0: tests/$folder has no test program" >&2; exit 2; }
  mapfile -t -O "${#programs[@]}" programs <<<"$found"
done
build dev "${programs[@]}"
run_tests dev check -LE slow -R "^($(IFS='|'; echo "${programs[*]}")):"
unnamed_long check
left_out check
