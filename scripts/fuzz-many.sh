#!/bin/bash
# Many executions of a fuzz target, also on a machine where nothing is installed:
#   fuzz-many.sh --pack TARGET FOLDER        builds TARGET to be fast, and puts it with its libraries, a corpus and this
#                                            script into FOLDER, which must not be there
#   FOLDER/fuzz-many.sh PROCESSES SECONDS    runs so many beside each other, each with a seed of its own, and says how
#                                            many executions there were; what breaks one stays in FOLDER/findings/
# Exit 1: something was found. scripts/fuzz.sh also looks for undefined behaviour, at half the speed.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

usage() { echo "usage: $0 --pack TARGET FOLDER | PROCESSES SECONDS" >&2; exit 2; }
fail() { echo "fuzz-many.sh: $*" >&2; exit 2; }

pack() {
  local target="$1" folder="$2" build=build/fuzz-many name file
  [[ ! -e "$folder" ]] || fail "$folder is there already"
  mkdir -p "$folder/lib"
  folder="$(cd "$folder" && pwd)"
  cd "$here/.."
  export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
  local -a options=()
  if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake --preset release --log-level=WARNING "${options[@]}" >/dev/null
  ninja -C build/release --quiet pipeline
  cmake --preset fuzz -B "$build" --log-level=WARNING -DSLIDESTREAM_SANITIZE=address -DBUILD_TESTING=OFF \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO='-O2 -g1' "${options[@]}" >/dev/null
  ninja -C "$build" --quiet "${target}_fuzzer"
  scripts/make-fuzz-corpus.py build/release/pipeline "$build/corpus" >/dev/null 2>&1
  cp "$build/fuzz/${target}_fuzzer" "$folder/fuzzer"
  cp -r "$build/corpus/$target" "$folder/corpus"
  while read -r name file; do
    [[ "$name" =~ ^(libc|libm|libpthread|libdl|librt)\.so ]] || cp -L "$file" "$folder/lib/$name"
  done < <(ldd "$folder/fuzzer" | sed -n 's/^\t\([^ /]*\) => \(\/.*\) (.*$/\1 \2/p')
  cp scripts/fuzz-many.sh "$folder/"
}

if [[ "${1:-}" == --pack && $# == 3 ]]; then
  pack "$2" "$3"
  exit
fi
[[ $# == 2 && "$1" =~ ^[1-9][0-9]*$ && "$2" =~ ^[1-9][0-9]*$ ]] || usage
[[ -x "$here/fuzzer" ]] || fail "no fuzzer in $here: make a folder with --pack"

mkdir -p "$here/findings" "$here/found" "$here/logs"
rm -f "$here"/logs/*
# What is new to one is read by the others.
for ((i = 1; i <= $1; ++i)); do
  LD_LIBRARY_PATH="$here/lib" "$here/fuzzer" -seed="$i" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="$here/findings/" "$here/found" "$here/corpus" \
    >"$here/logs/$i" 2>&1 </dev/null &
done
status=0
for job in $(jobs -p); do wait "$job" || status=1; done
sed -n 's/^stat::number_of_executed_units: *//p' "$here"/logs/* |
  awk -v processes="$1" '{sum += $1} END {printf "%d executions in %d of %d processes\n", sum, NR, processes}'
for finding in "$here"/findings/*; do
  if [[ -e "$finding" ]]; then echo "found: $finding"; fi
done
if ((status)); then
  echo "fuzz-many.sh: a process failed; the end of its log:" >&2
  tail -n 30 "$(grep -LE '^Done [0-9]+ runs' "$here"/logs/* | head -n 1)" >&2
fi
exit "$status"
