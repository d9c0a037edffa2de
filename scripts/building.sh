# shellcheck shell=bash
# What the scripts that build for tests have in common; to be sourced in the repository's root.

jobs="$(nproc)"
# Objects are found again by another clone of the same sources, precompiled headers or not.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

# step NAME: begins a step, and says what the one before it took.
step_name=
step() {
  if [[ -n "$step_name" ]]; then printf -- '-- %s: %d s\n' "$step_name" "$((SECONDS - step_since))"; fi
  step_name="$1" step_since="$SECONDS"
  if [[ -n "$1" ]]; then printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"; fi
}

# configure PRESET [OPTION...]: as a build for tests that keeps no option of an earlier one. Says which GPUs it is for.
configure() {
  local options=()
  # Looked for here, as this file may be read before they are installed.
  if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache); fi
  # A link takes a quarter of the time, and there are two hundred programs.
  if command -v ld.lld >/dev/null; then options+=(-DCMAKE_{EXE,SHARED,MODULE}_LINKER_FLAGS=-fuse-ld=lld); fi
  cmake --preset "$1" -DBUILD_TESTING=ON "${options[@]}" "${@:2}" >"build/$1.log" 2>&1 ||
    { cat "build/$1.log" >&2; return 1; }
  grep -h -A 5 '^CMake Warning' "build/$1.log" || true
  sed -n 's/^-- slidestream: \(CPU.*\)/For \1/p' "build/$1.log"
}
# build PRESET [TARGET...]: says on a terminal how far it is.
build() {
  if [[ -t 1 ]]; then
    NINJA_STATUS='[%f of %t, %e s] ' ninja -C "build/$1" -j "$jobs" "${@:2}"
  else
    ninja -C "build/$1" -j "$jobs" --quiet "${@:2}"
  fi
}

# test_programs PRESET FOLDER...: the test programs of folders below tests/ that a configured build has.
test_programs() {
  local folder
  for folder in "${@:2}"; do
    ninja -C "build/$1" -t targets all | sed -n "s,^tests/$folder/\([a-z0-9_]*_test\): CXX_EXECUTABLE_LINKER.*,\1,p"
  done | sort -u
}
# Names of the tests within one process, as a regular expression for CTest: doctest programs and their cases.
in_process='^[a-z0-9_]+_test:'
# Those of them that take longer with sanitizers than so many seconds, which run in the deep check alone.
long_seconds=2
long='\(long\)$'
# A test that expects a program to fail expects 1 to 3: what a sanitizer ends is never taken for that.
export ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=exitcode=99:print_stacktrace=1
# times LOG: a line per test that ran: seconds and name.
times() {
  # After `***Exception: SegFault` a time of three digits has no space before it.
  sed -n 's/.*Test *#[0-9]*: \(.*[^ ]\) \.\.\.*.*[^0-9.]\([0-9.]*\) sec$/\2 s  \1/p' "build/$1.log"
}
# unnamed_long LOG: a line that names the tests within one process that took too long for their names. Nothing where none
# did.
unnamed_long() {
  local names
  names="$(times "$1" | awk -v most="$long_seconds" -v within="$in_process" '
    { seconds = $1; sub(/^[^ ]+ s  /, "") }
    seconds > most && $0 ~ within && !/\(long\)$/ { printf "%s%s (%s s)", before, $0, seconds; before = ", " }')"
  [[ -z "$names" ]] || echo "Took more than $long_seconds s: shorten them, or end their names in (long): $names"
}
# run_tests PRESET LOG [OPTION...]: the tests of a build, four more at a time than there are cores, as many wait for a disk
# or for a time to pass. Prints those that fail, why others were skipped, and the five slowest; all that CTest prints is in
# build/LOG.log.
run_tests() {
  local log="build/$2.log" told="build/$1/Testing/Temporary/LastTest.log" status=0
  rm -f "$told"
  ctest --test-dir "build/$1" --output-on-failure --no-tests=error -j "$((jobs + 4))" "${@:3}" </dev/null >"$log" 2>&1 ||
    status=$?
  if ((status != 0)); then grep -v ' Passed \| Start  *[0-9]*:' "$log" || true; fi
  sed -n '/^[0-9]*% tests passed/p' "$log"
  sed -n '/^SKIPPED[: ]/p' "$told" 2>/dev/null | sort -u || true
  echo 'Slowest:'
  times "$2" | sort -rn | sed -n '1,5s/^/  /p'
  return "$status"
}
# run_cases PRESET LOG [OPTION...]: tests within one process, many of them in each, as sanitizers make a start slow.
run_cases() { scripts/run-cases.py "build/$1" "$((jobs + 2))" "build/$2.log" "${@:3}" </dev/null; }
# run_system_tests PRESET LOG [OPTION...]: the tests labelled `system`, which need servers, browsers, disks or kills. Each may
# fail once. Names those that did, in build/LOG.unsteady, too; more than two of them are a failure, and so is one that was
# skipped at its second try.
run_system_tests() {
  local unsteady skipped
  run_tests "$1" "$2" -L system --repeat until-pass:2 "${@:3}" || return
  # How a process ended may stand before the stars: `...Subprocess aborted***Exception`.
  unsteady="$(sed -n '/\*\*\*Skipped/d; s/.*Test *#[0-9]*: \(.*[^ ]\) \.\.\.*[^*]*\*\*\*.*/\1/p' "build/$2.log" | sort -u)"
  printf '%s' "${unsteady:+$unsteady$'\n'}" >"build/$2.unsteady"
  [[ -n "$unsteady" ]] || return 0
  skipped="$(sed -n 's/.*Test *#[0-9]*: \(.*[^ ]\) \.\.\.*\*\*\*Skipped.*/\1/p' "build/$2.log" | sort -u |
    comm -12 - <(echo "$unsteady"))"
  if [[ -n "$skipped" ]]; then printf 'Failed once and was skipped then:\n%s\n' "$skipped"; return 1; fi
  printf 'Unsteady: failed once and then passed:\n%s\n' "$unsteady"
  (($(wc -l <<<"$unsteady") <= 2))
}

# nanobind, which the Python package is built with, comes from PyPI: older releases of the distribution have no package.
# scikit-build-core makes the source distribution, of which a test looks at the list of files.
python_env="$PWD/build/python-env"
has_nanobind() { "$python_env/bin/python" -c 'import nanobind, scikit_build_core' 2>/dev/null; }
# left_out LOG...: for the end of a check, a line that says how many tests of these calls of run_tests were skipped, and which
# of PyPI's packages are missing. Nothing where all tests ran.
left_out() {
  local log number count=0 what missing=()
  for log in "$@"; do
    number="$(grep -c '\*\*\*Skipped ' "build/$log.log")" || true
    count=$((count + number))
  done
  what="$count skipped tests"
  mapfile -t missing < <(scripts/install-deps.sh --missing)
  # Only the release build has the Python package.
  if [[ " $* " == *' release-tests '* ]] && ! has_nanobind; then
    missing+=(nanobind scikit-build-core)
    what+=' and the tests of the Python package'
  elif ((count == 0)); then
    return 0
  fi
  if ((${#missing[@]} > 0)); then
    echo "Left out: $what. Packages of PyPI that are missing: ${missing[*]}."
  else
    echo "Left out: $what, for the reasons above."
  fi
}

# The tests that `.ci/run` asks for.
release_tests() { run_tests release release-tests -LE 'slow|system|long' -E "$long"; }
release_system_tests() { run_system_tests release release-system-tests -LE 'slow|long'; }
asan_tests() { run_cases asan asan-tests -LE slow -R "$in_process" -E "$long"; }
