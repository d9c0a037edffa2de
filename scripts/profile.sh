#!/bin/bash
# Runs slides under Nsight Systems: `profile.sh CONFIG.toml SLIDE...`. The program is $PIPELINE, else a build of this
# tree, else the one on the PATH.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

if (($# < 2)); then
  echo "usage: $0 CONFIG.toml SLIDE..." >&2
  exit 2
fi
config="$1"
shift

pipeline="${PIPELINE:-}"
for candidate in "$root/build/cuda/pipeline" "$root/build/release/pipeline" "$root/bin/pipeline" \
  "$(command -v pipeline || true)"; do
  if [[ -z "$pipeline" && -x "$candidate" ]]; then pipeline="$candidate"; fi
done
if [[ -z "$pipeline" ]]; then
  echo "profile.sh: no pipeline in $root/build/cuda or build/release, nor on the PATH; name one with PIPELINE=" >&2
  exit 1
fi
if ! command -v nsys >/dev/null; then
  echo "profile.sh: nsys (Nsight Systems) isn't on the PATH; without it: $pipeline --config $config --trace trace.json $*, and open trace.json in ui.perfetto.dev" >&2
  exit 1
fi

report="slidestream-$(date +%Y%m%d-%H%M%S)"
# No sampling of the CPU: it needs rights that many machines don't give, and the stages' ranges say more.
status=0
nsys profile --trace=nvtx,cuda,osrt --sample=none --cpuctxsw=none --output="$report" \
  "$pipeline" --config "$config" "$@" || status=$?
if [[ ! -e "$report.nsys-rep" ]]; then
  echo "profile.sh: nsys left no $report.nsys-rep (status $status)" >&2
  exit 1
fi
cat <<END

The profile is $PWD/$report.nsys-rep
  nsys-ui $report.nsys-rep                 the timeline: rows NVTX, domain slidestream (a range's payload is the batch,
                                           its category the slide, from 1), and CUDA HW (kernels and copies)
  nsys stats $report.nsys-rep              tables of kernels, copies and ranges
END
exit "$status"
