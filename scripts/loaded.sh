#!/bin/bash
# The tests of `.ci/run` again and again beside four busy processes, to find those that a busy machine makes fail.
# `loaded.sh COUNT`, at most 1000 times. `.ci/run` comes first, in the same checkout, and leaves the builds that this uses. Ends at the first
# failure, or by naming tests that failed once and then passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
[[ "${1:-}" =~ ^([1-9][0-9]{0,2}|1000)$ && $# == 1 ]] || { echo "usage: $0 COUNT (1 to 1000)" >&2; exit 2; }
# shellcheck source=scripts/building.sh
source scripts/building.sh
for build in release asan; do
  [[ -f "build/$build/build.ninja" ]] || { echo "$0: build/$build is missing: .ci/run makes it" >&2; exit 2; }
done
busy=()
trap 'kill "${busy[@]}"' EXIT
for _ in 1 2 3 4; do
  while :; do :; done &
  busy+=($!)
done
: >build/loaded.unsteady
for ((pass = 1; pass <= $1; ++pass)); do
  step "Pass $pass of $1"
  release_tests
  release_system_tests
  cat build/release-system-tests.unsteady >>build/loaded.unsteady
  asan_tests
done
step ''
if [[ -s build/loaded.unsteady ]]; then
  echo 'Unsteady, with the number of passes in which they failed once and then passed:'
  sort build/loaded.unsteady | uniq -c | sort -rn
fi
echo "$1 passes, beside four busy processes, without a failure."
