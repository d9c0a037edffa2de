#!/bin/bash
# From a fresh clone to spectral statistics of a slide: installs what is missing, builds, makes a slide, analyses it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

demo=slidestream-demo
log="$PWD/$demo/quickstart.log"
mkdir -p "$demo"
: >"$log"

# step WHAT COMMAND...: one line on the terminal, everything else into the log.
step() {
  local since=$SECONDS
  printf '%-44s' "$1 ..."
  if ! "${@:2}" >>"$log" 2>&1; then
    printf 'failed\n'
    echo "quickstart.sh: $(grep -v '^$' "$log" | tail -n 1); all of it is in $log" >&2
    exit 1
  fi
  printf 'done, %d s\n' "$((SECONDS - since))"
}

# sudo may ask for a password, so this one keeps the terminal's standard input.
step 'Installing what is missing' scripts/install-deps.sh
step 'Configuring' cmake --preset release -DBUILD_TESTING=OFF -DSLIDESTREAM_BENCHMARKS=OFF
step 'Building (5 min on 2 cores)' cmake --build --preset release
pipeline=build/release/pipeline
step 'Making a slide of 8192 x 6144 pixels' \
  "$pipeline" synth --out "$demo/demo.svs" --size 8192x6144
echo
"$pipeline" --config configs/demo.toml "$demo/demo.svs" --out "$demo/results"
echo
echo "The slide is   $PWD/$demo/demo.svs"
echo "Its results:   $PWD/$demo/results"
ls "$demo/results" | sed 's/^/               /'
echo "Your slides:   $PWD/$pipeline SLIDE.svs --out results"
