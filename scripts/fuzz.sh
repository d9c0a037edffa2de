#!/bin/bash
# Runs every fuzz target for SECONDS, side by side: `fuzz.sh SECONDS`. What breaks one stays in build/fuzz-findings/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! [[ "${1:-}" =~ ^[1-9][0-9]*$ && $# == 1 ]]; then
  echo "usage: $0 SECONDS" >&2
  exit 2
fi

# shellcheck source=scripts/building.sh
source scripts/building.sh
mkdir -p build
# As they were configured before, where they were.
for preset in release fuzz; do [[ -f "build/$preset/build.ninja" ]] || configure "$preset"; done
build release pipeline
build fuzz slide_fuzzer config_fuzzer jpeg_fuzzer jpeg2000_fuzzer encode_fuzzer manifest_fuzzer ledger_fuzzer nifti_fuzzer

corpus=build/fuzz-corpus
scripts/make-fuzz-corpus.py build/release/pipeline "$corpus"

mkdir -p build/fuzz-findings
declare -A running
for target in slide dicom config jpeg jpeg2000 encode manifest ledger nifti; do
  # What opens slides opens them all.
  build/fuzz/fuzz/${target/dicom/slide}_fuzzer -max_total_time="$1" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build/fuzz-findings/$target-" "$corpus/$target" >"build/fuzz-$target.log" 2>&1 </dev/null &
  running[$target]=$!
done
status=0
for target in "${!running[@]}"; do
  if wait "${running[$target]}"; then
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz-$target.log") inputs, nothing found"
  else
    status=1
    echo "$target: failed"
    tail -n 60 "build/fuzz-$target.log"
  fi
done
exit "$status"
