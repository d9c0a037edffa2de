#!/bin/bash
# What takes too long to be asked before every step; `.ci/run` comes first, in the same checkout, and leaves the builds that
# this makes current and uses. `check-deep.sh [PART...]`: all parts, or those that are named. Every part runs, whether or not
# the one before it passed. Ends with a line per part and a verdict, which names the commit.
#
#   slow      the slow tests of the Release build and its long scripts, with storms of kills
#   long      the long tests within one process, in the Release build and under AddressSanitizer and UBSan
#   scripts   the tests that run the program, under the same sanitizers
#   threads   the tests labelled `graph` under ThreadSanitizer, with a oneTBB that is built for it
#   units     every source compiles alone, tests among them
#   lint      clang-tidy over the sources of src, fuzz, bench and examples, and of cuda and python where the release build
#             has them
#   fuzzing   every fuzz target for 30 seconds
#   changed   the tests whose program or script differs from that of the commit BASE, 20 times each. BASE is main unless
#             set, and where that is checked, the commit that main was at before. Names changed files that choose no test,
#             such as data and CMake's files. See scripts/changed-tests.py
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
parts=(slow long scripts threads units lint fuzzing changed)

# On a disk, where there is time for it: see tests/support/quick_storage.py.
export TMPDIR="${TMPDIR:-/tmp}"

# shellcheck source=scripts/building.sh
source scripts/building.sh
# Sources by suffix, of what git knows.
sources() { git ls-files -z -- "$@"; }

part_slow() { run_tests release deep-slow -L 'slow|long'; }

part_long() {
  run_tests release deep-long -LE slow -R "$in_process.*$long"
  run_cases asan deep-long-asan -LE slow -R "$in_process.*$long"
}

part_scripts() { run_tests asan deep-scripts -LE 'slow|release' -E "$in_process"; }

part_threads() {
  local tbb fixed_addresses=(setarch "$(uname -m)" --addr-no-randomize)
  # ThreadSanitizer wants the address space laid out as it knows it; newer kernels randomise more of it.
  if ! "${fixed_addresses[@]}" true 2>/dev/null; then fixed_addresses=(); fi
  tbb="$(scripts/build-tbb.sh)"
  configure tsan
  # The build asks the programs for their tests.
  export LD_LIBRARY_PATH="$tbb" TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp history_size=7"
  "${fixed_addresses[@]}" ninja -C build/tsan -j "$jobs" --quiet graph_tests
  "${fixed_addresses[@]}" bash -c 'source scripts/building.sh; run_tests tsan deep-threads -LE slow -L "^graph\$"'
}

part_units() { scripts/check-units.py build/asan build/release; }

# Most of the time goes into headers, so sources that the sanitizers' build compiles as one are looked at as one, too. What
# those files include is theirs.
tidy() { xargs -0 -n 1 -P "$jobs" timeout 300 clang-tidy --quiet "$@" 2>>build/lint.log || { tail -n 20 build/lint.log; return 1; }; }
part_lint() {
  : >build/lint.log
  find build/asan/src -name 'unity_*_cxx.cxx' -print0 >build/lint-together.list
  xargs -0 sed -n "s,^#include \"$PWD/\(.*\)\"$,\\1,p" <build/lint-together.list | sort >build/lint-together.sources
  tidy --checks=-bugprone-suspicious-include --header-filter='/(include/slidestream|src)/.*\.[hc]pp$' -p build/asan \
    <build/lint-together.list
  # The others, by the release build's flags, or those of a neighbour: it has the parts for GPUs where nvcc is, and the
  # Python package where nanobind is. Without the headers for them nothing can be said of the sources of either.
  scripts/lint-flags.py build/release build/lint >build/lint.sources
  sort -o build/lint.sources build/lint.sources
  sources 'cuda/*.cpp' 'python/src/*.cpp' | tr '\0' '\n' | sort >build/lint-parts.sources
  comm -23 build/lint-parts.sources build/lint.sources |
    awk 'END { if (NR) print "SKIPPED: " NR " sources of cuda and python, which the release build has not" }'
  { sources 'src/*.cpp' 'fuzz/*.cpp' 'bench/*.cpp' | tr '\0' '\n'; comm -12 build/lint-parts.sources build/lint.sources; } |
    sort | comm -23 - build/lint-together.sources | tr '\n' '\0' | tidy --extra-arg="-I$PWD" -p build/lint
  # No build of ours has the examples, and without one there are no flags.
  mkdir -p build/no-flags
  sources 'examples/*.cpp' | tidy --extra-arg=-std=c++20 --extra-arg="-I$PWD/include" -p build/no-flags
}

part_fuzzing() { scripts/fuzz.sh 30; }

# What the part `changed` looks at: tests, and what decides how they are built.
changeable=(tests cmake CMakePresets.json '*CMakeLists.txt')

# The commit that changes are counted from.
base_commit() {
  local base head
  head="$(git rev-parse HEAD)" || return
  git rev-parse --quiet --verify "${BASE:-main}^{commit}" >/dev/null ||
    { echo "$0: git knows no commit ${BASE:-main}: set BASE to the one that changes are counted from" >&2; return 1; }
  base="$(git merge-base "${BASE:-main}" HEAD)" ||
    { echo "$0: ${BASE:-main} and what is checked have no commit in common: set BASE" >&2; return 1; }
  # Where main is what is checked, nothing would differ.
  if [[ "$base" == "$head" && -z "${BASE:-}" ]]; then
    base="$(git rev-parse --quiet --verify 'main@{1}^{commit}' 2>/dev/null)" || base="$head"
  fi
  if [[ "$base" == "$head" && -z "$(git status --porcelain -- "${changeable[@]}")" ]]; then
    echo "$0: nothing can differ from ${BASE:-main}, as that is what is checked: set BASE to an earlier commit" >&2
    return 1
  fi
  echo "$base"
}
part_changed() {
  local base files tests
  base="$(base_commit)"
  # With files that git doesn't know yet.
  files="$(git diff --name-only "$base" -- "${changeable[@]}" &&
    git ls-files --others --exclude-standard -- "${changeable[@]}")"
  tests="$(scripts/changed-tests.py build/release <<<"$files")"
  [[ -n "$tests" ]] || { echo "no test differs from $(git rev-parse --short "$base")"; return; }
  run_tests release deep-changed --repeat until-fail:20 -LE slow -R "$tests"
}

is_part() {
  local part
  for part in "${parts[@]}"; do [[ "$part" != "$1" ]] || return 0; done
  return 1
}
for part in "$@"; do
  is_part "$part" || { echo "$0: no part is called $part; there are ${parts[*]}" >&2; exit 2; }
done
if (($#)); then parts=("$@"); fi
for build in release asan; do
  [[ -f "build/$build/build.ninja" ]] || { echo "$0: build/$build is missing: .ci/run makes it" >&2; exit 2; }
done
# What is checked: the commit and what isn't in it.
checked() { git rev-parse HEAD && git status --porcelain && git diff HEAD; }
before="$(checked)" || { echo "$0: git can't say which commit this is" >&2; exit 2; }
commit="$(git rev-parse --short HEAD)"
if [[ -n "$(git status --porcelain)" ]]; then commit+=' with uncommitted changes'; fi
step 'build'
{ build release && build asan; } || { echo "The deep check failed at $commit, which doesn't build."; exit 1; }
verdict=0
told=()
for part in "${parts[@]}"; do
  step "$part"
  since=$SECONDS
  # In a shell of its own, whose -e counts: behind `if` or `||` it wouldn't.
  set +e
  (set -e; "part_$part")
  status=$?
  set -e
  if ((status == 0)); then word=passed; else word=FAILED verdict=1; fi
  told+=("$(printf '%-8s %-7s %5d s' "$part" "$word" "$((SECONDS - since))")")
done
step ''
printf '\n'
printf '%s\n' "${told[@]}"
if [[ "$(checked)" != "$before" ]]; then echo "$0: sources changed while they were checked" >&2; verdict=1; fi
case $# in 0) what='The deep check' ;; 1) what="Part $1" ;; *) what="Parts $*" ;; esac
if ((verdict)); then echo "$what failed at $commit."; else echo "$what passed at $commit in $SECONDS s."; fi
exit "$verdict"
