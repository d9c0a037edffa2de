#!/bin/bash
# The tests of `.ci/run` again and again beside four busy processes, to find those that a busy machine makes fail.
# `loaded.sh COUNT [--at-once N]`, at most 1000 times. With --at-once N runs share the passes, each on two processors of its
# own, with a /tmp, a /dev/shm, a network and a build/ that nobody else sees; needs root, and a checkout outside /tmp. What
# run N prints is in build/loaded-N.log.
# `.ci/run` comes first, in the same checkout, and leaves the builds that this uses. Ends at the first
# failure, or by naming tests that failed once and then passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
usage() { echo "usage: $0 COUNT [--at-once N] (1 to 1000 passes)" >&2; exit 2; }
[[ "${1:-}" =~ ^([1-9][0-9]{0,2}|1000)$ ]] || usage
if (($# != 1)); then [[ $# == 3 && "$2" == --at-once && "$3" =~ ^[1-9][0-9]{0,2}$ ]] || usage; fi
# shellcheck source=scripts/building.sh
source scripts/building.sh
for build in release asan; do
  [[ -f "build/$build/build.ninja" ]] || { echo "$0: build/$build is missing: .ci/run makes it" >&2; exit 2; }
done
if (($# == 3)); then
  mapfile -t cores < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
  ((2 * $3 <= ${#cores[@]} && $3 <= $1)) ||
    { echo "$0: $3 runs at once need $((2 * $3)) processors, of ${#cores[@]}, and a pass each" >&2; exit 2; }
  unshare --mount --net --ipc true || { echo "$0: namespaces need root" >&2; exit 2; }
  own="$(mktemp -d "${TMPDIR:-/tmp}/loaded.XXXXXX")"
  runs=()
  trap 'kill "${runs[@]}" 2>/dev/null || true; wait; rm -rf "$own"' EXIT
  for ((run = 1; run <= $3; ++run)); do
    mkdir -m 1777 "$own/$run"
    # What is written to build/ goes to memory; it is little.
    # shellcheck disable=SC2016  # for the other shell
    taskset -c "${cores[2 * run - 2]},${cores[2 * run - 1]}" unshare --mount --net --ipc bash -euc '
      mount -t tmpfs tmpfs /dev/shm
      mkdir /dev/shm/up /dev/shm/work
      mount -t overlay overlay -o "lowerdir=$PWD/build,upperdir=/dev/shm/up,workdir=/dev/shm/work" build
      mount -t tmpfs tmpfs /dev/shm
      mount --bind "$1" /tmp
      [[ -d "$PWD/scripts" ]] || { echo "the checkout lies below /tmp, which every run has for itself"; exit 2; }
      ip link set lo up
      unset TMPDIR
      exec scripts/loaded.sh "$2"' run "$own/$run" "$(($1 / $3 + (run <= $1 % $3)))" >"build/loaded-$run.log" 2>&1 &
    runs+=($!)
  done
  failed=0
  for ((run = 1; run <= $3; ++run)); do
    if wait "${runs[run - 1]}"; then word=passed; else word=FAILED failed=$((failed + 1)); fi
    echo "Run $run of $3 $word: $(tail -n 1 "build/loaded-$run.log")"
    sed -n '/^Unsteady, with/,/^ *[0-9]* passes/{/^ /p}' "build/loaded-$run.log"
  done
  runs=()
  echo "$1 passes in $3 runs at once, in $SECONDS s: $failed runs failed."
  exit "$((failed > 0))"
fi
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
