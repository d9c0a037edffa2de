#!/bin/bash
# The tests of `.ci/run` again and again beside four busy processes, to find those that a busy machine makes fail.
# `loaded.sh COUNT`. `.ci/run` comes first, in the same checkout, and leaves the builds that this uses. Ends at the first
# failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
[[ "${1:-}" =~ ^[1-9][0-9]*$ && $# == 1 ]] || { echo "usage: $0 COUNT" >&2; exit 2; }
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
for ((pass = 1; pass <= $1; ++pass)); do
  step "Pass $pass of $1"
  release_tests
  release_system_tests
  asan_tests
done
step ''
echo "$1 passes, beside four busy processes, without a failure."
