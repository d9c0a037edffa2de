#!/bin/bash
# What each further GPU of a machine brings, as a Markdown table:
#   bench/four_gpus.sh [--dir FOLDER] [--out FILE.md] [--small] [BUILD_DIR]
# BUILD_DIR is a build with CUDA (build/cuda unless named). In a bundle with benchmarks it is the bundle. Slides are made in FOLDER
# (/dev/shm/slidestream-four-gpus unless named), which takes 210 GB in the page cache, and are removed at the end.
# --small makes few small slides, to see that all of it runs.
#
# 256 headline slides and 1,536 mixed ones go from start to end on 1, 2, 4 ... GPUs with configs/h200x4.toml, and headline
# slides with configs/a40x4.toml on as many as there are: medians of three runs. Results must have equal bytes. Then come
# gpu_bench's rows. Exit 0: all of it ran, and bytes were equal; 1: they weren't, or something failed; 2: nothing was run.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
fail() { echo "four_gpus.sh: $*" >&2; exit 2; }

folder=/dev/shm/slidestream-four-gpus out=/dev/stdout build="$root/build/cuda" side=65664x43264 headline=256 mixed=192
while (($#)); do
  case "$1" in
    --dir) (($# > 1)) || fail '--dir takes a folder'; folder="$2"; shift ;;
    --out) (($# > 1)) || fail '--out takes a file'; out="$2"; shift ;;
    --small) side=2048x1536 headline=4 mixed=2 ;;
    -*) fail "usage: $0 [--dir FOLDER] [--out FILE.md] [--small] [BUILD_DIR]" ;;
    *) build="$1" ;;
  esac
  shift
done
configs="$root/configs" pipeline="$build/pipeline" bench="$build/bench/gpu_bench"
if [[ -e "$root/.slidestream-bundle" ]]; then pipeline="$root/bin/pipeline" bench="$root/bin/gpu_bench"; fi
for program in "$pipeline" "$bench"; do [[ -x "$program" ]] || fail "$program isn't there"; done
gpus="$(nvidia-smi -L 2>/dev/null | wc -l)" || gpus=0
((gpus > 0)) || fail 'no GPU is here'
[[ ! -e "$folder" ]] || fail "$folder is there already"
mkdir -p "$folder"
trap 'rm -rf "$folder"' EXIT

# Copies, as the program counts a file under two names once.
copies() { # STEM WxH COUNT
  "$pipeline" synth --out "$folder/$1.svs" --size "$2" --distinct 300 --levels 1 >"$folder/log"
  mkdir -p "$folder/$1"
  seq "$3" | xargs -P "$(nproc)" -I{} cp "$folder/$1.svs" "$folder/$1/{}.svs"
  rm "$folder/$1.svs"
}
echo "four_gpus.sh: making slides in $folder" >&2
width=${side%x*} height=${side#*x}
side_of() { local part=$(($1 * $2 / 1600 * 16)); echo $((part > 512 ? part : 512)); } # WHOLE PERCENT
mixes=()
copies whole "$side" "$mixed"
mixes+=("$folder/whole")
copies more "$side" $((headline > mixed ? headline - mixed : 0))
for share in 5 80 10 60 15 40 25; do
  copies "of-$share" "$(side_of "$width" "$share")x$(side_of "$height" "$share")" "$mixed"
  mixes+=("$folder/of-$share")
done

# Seconds of a run and of its process, its peak memory, and the digest of what it found.
cat >"$folder/measure.py" <<'PY'
import hashlib, json, pathlib, resource, shutil, subprocess, sys, time
out, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
runs = []
for _ in range(3):
    shutil.rmtree(out, ignore_errors=True)
    begin = time.monotonic()
    done = subprocess.run([*command, "--out", out, "--quiet"], capture_output=True, text=True, check=False)
    process = time.monotonic() - begin
    if done.returncode:
        sys.exit(f"four_gpus.sh: {' '.join(command[:3])} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    corpus = json.loads((out / "corpus.json").read_text())
    runs.append((corpus["seconds"], process))
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 << 20)
found = hashlib.sha256((out / "histograms.npy").read_bytes() + json.dumps(corpus["totals"], sort_keys=True).encode())
run, process = sorted(runs)[1]
print(f"{run:.2f} {process:.2f} {peak:.2f} {found.hexdigest()[:16]}")
PY
counts=() ordinals=''
for ((count = 1; count <= gpus; count *= 2)); do counts+=("$count"); done
status=0
{
  echo "$(nvidia-smi --query-gpu=name --format=csv,noheader | sort | uniq -c | sed 's/^ *//; s/ / x /'), $(nproc)" \
    "processors, driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1), $(date -I)," \
    "\`$("$pipeline" --version)\`"
  echo
  echo '| what | GPUs | seconds of the run | of the process | slides a second | of the ideal | memory, GiB | results |'
  echo '|---|---|---|---|---|---|---|---|'
} >"$folder/table"
row() { # NAME CONFIG SLIDES COUNT FOLDERS...
  local name="$1" config="$2" slides="$3" count="$4" seconds process peak digest
  shift 4
  ordinals="$(seq -s, 0 $((count - 1)))"
  read -r seconds process peak digest < <(python3 -B "$folder/measure.py" "$folder/results" "$pipeline" \
    --config "$configs/$config" --set "gpu.devices=[$ordinals]" "$@") || { status=1; return; }
  if ((count == 1)); then one="$seconds" first="$digest"; fi
  if [[ "$digest" != "$first" ]]; then status=1; fi
  awk -v s="$seconds" -v c="$count" -v k="$slides" -v o="$one" \
    'BEGIN {printf "%.1f | %.0f %%\n", k / s, 100 * o / (c * s)}' >"$folder/rate"
  echo "| $name | $count | $seconds | $process | $(<"$folder/rate") | $peak | \`$digest\` |" >>"$folder/table"
}
for count in "${counts[@]}"; do
  row "$headline headline slides" h200x4.toml "$headline" "$count" "$folder/whole" "$folder/more"
done
for count in "${counts[@]}"; do
  row "$((8 * mixed)) mixed slides" h200x4.toml $((8 * mixed)) "$count" "${mixes[@]}"
done
for count in "${counts[@]}"; do
  row "$mixed headline slides, a40x4.toml" a40x4.toml "$mixed" "$count" "$folder/whole"
done
rm -rf "$folder"/of-* "$folder/more" "$folder/whole"
{
  echo
  echo '| `gpu_bench` | figure | unit |'
  echo '|---|---|---|'
} >>"$folder/table"
size=()
[[ "$side" == 65664x43264 ]] || size=(--size "$side")
"$bench" --only several_gpus,one_slide,archive --dir "$folder/bench" --json "$folder/bench.json" "${size[@]}" >"$folder/log" 2>&1 ||
  { status=1; tail -n 5 "$folder/log" >&2; }
python3 -B - "$folder/bench.json" >>"$folder/table" <<'PY'
import json, sys
for figure in json.load(open(sys.argv[1]))["figures"]:
    print(f"| {figure['name']} | {figure['value']:.4g} | {figure['unit']} |")
PY
cat "$folder/table" >"$out"
((status == 0)) || echo 'four_gpus.sh: results differ between numbers of GPUs, or a part failed' >&2
exit "$status"
