#!/bin/bash
# From a fresh clone to spectral statistics of a slide: installs what is missing, builds, makes a slide, analyses it.
# `quickstart.sh [--cuda]`: kernels for GPUs are compiled where a GPU is, for that GPU. --cuda compiles them anywhere: where
# no GPU is, for all that are supported.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cuda=(-DSLIDESTREAM_CUDA=AUTO -DSLIDESTREAM_CUDA_ARCHITECTURES="${CUDAARCHS:-}")
case "${1:-}" in
  '') ;;
  --cuda)
    cuda[0]=-DSLIDESTREAM_CUDA=ON
    if [[ -z "${CUDAARCHS:-}" ]] && nvidia-smi -L >/dev/null 2>&1; then cuda[1]+=native; fi ;;
  *) echo "usage: $0 [--cuda]" >&2; exit 2 ;;
esac

demo=slidestream-demo
log="$PWD/$demo/quickstart.log"
mkdir -p "$demo"
: >"$log"

# step WHAT COMMAND...: one line on the terminal, everything else into the log. A command may show its progress on 3.
step() {
  local since=$SECONDS
  printf '%-44s' "$1 ..."
  if ! "${@:2}" 3>&1 >>"$log" 2>&1; then
    printf 'failed\n'
    # CMake's last line only names other logs.
    cause="$(awk '/^CMake Error/ { ++errors } errors == 1 && NF && ++lines <= 5 { $1 = $1; printf "%s ", $0 }' "$log")"
    echo "quickstart.sh: ${cause:-$(grep -v '^$' "$log" | tail -n 1)}; all of it is in $log" >&2
    exit 1
  fi
  printf 'done, %d s\n' "$((SECONDS - since))"
}

# build SECONDS: says on a terminal how far it is. The time left is a guess from SECONDS until a quarter is done, then
# from what that took.
build() {
  local since=$SECONDS line left shown=
  cmake --build --preset release | while read -r line; do
    echo "$line"
    [[ -t 3 && "$line" =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    local done_=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]} gone=$((SECONDS - since))
    if ((4 * done_ < all)); then left=$(($1 - gone)); else left=$((gone * (all - done_) / done_)); fi
    shown="$done_ of $all, about $((left > 10 ? left : 10)) s left"
    printf '%-32s%s' "$shown" "$(printf '\b%.0s' {1..32})" >&3
  done
  local status=${PIPESTATUS[0]}
  if [[ -t 3 ]]; then printf '%-32s%s' '' "$(printf '\b%.0s' {1..32})" >&3; fi
  return "$status"
}

# sudo may ask for a password, so this one keeps the terminal's standard input.
step 'Installing what is missing' scripts/install-deps.sh
step 'Configuring' cmake --preset release -DBUILD_TESTING=OFF -DSLIDESTREAM_BENCHMARKS=OFF "${cuda[@]}"
sed -n 's/^-- slidestream: /  for /p' "$log" | tail -n 1
# Seconds of one processor, for the program alone and with kernels for one architecture: 5 to 6 minutes were measured on two
# cores at 2.5 GHz, for the program alone.
seconds=600
if grep -q '^-- slidestream: CPU and GPU' "$log"; then seconds=$((seconds + 400)); fi
seconds=$((seconds / $(nproc) + 20))
step "Building (about $(((seconds + 59) / 60)) min on $(nproc) processors)" build "$seconds"
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
