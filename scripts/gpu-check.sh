#!/bin/bash
# Tests, sanitizer and benchmarks of the GPU backend on a machine with a GPU, and a table of what came of them:
#   gpu-check.sh [--quick] [--only tests|sanitizer|bench] [--out FILE.md] [--logs DIR] [BUILD_DIR]
# Runs in a folder that bundle.sh made, or on a build (build/cuda unless named). --quick leaves out all of the sanitizer
# but memcheck, and the benchmarks of whole slides. Exit 0: every row of the table passed; 1: a row failed, or what it
# shows is missing; 2: nothing was run.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

# Test cases that the sanitizer need not see: the same kernels on more pixels, tens of times slower under it.
large_cases='*(large)*'
# racecheck is slower again by a power of ten.
racecheck_large_cases='*(large)*,*(many)*'
# Benchmarks that --quick leaves out.
slow_benchmarks='gpu_bench published published_jpeg2000 published_networks python_tiles'
test_seconds=300
sanitizer_seconds=900
bench_seconds=600

fail() { echo "gpu-check.sh: $*" >&2; exit 2; }
usage() {
  echo "usage: $0 [--quick] [--only tests|sanitizer|bench] [--out FILE.md] [--logs DIR] [BUILD_DIR]" >&2
  exit 2
}

# The programs of a build with tests that CTest knows to want a GPU.
gpu_tests_of_build() {
  ctest --test-dir "$1" -N -V -L '^gpu$' |
    sed -n 's|^[0-9]*: Test command: "\{0,1\}\([^"]*[^" ]\)"\{0,1\} "--test-case=.*|\1|p' | sort -u
}

command_line="$(basename "$0") $*"
quick=
only=
out=
logs=
build=
while (($#)); do
  case "$1" in
    --quick) quick=yes ;;
    --only) [[ "${2:-}" =~ ^(tests|sanitizer|bench)$ ]] || usage; only="$2"; shift ;;
    --out) (($# > 1)) || usage; out="$2"; shift ;;
    --logs) (($# > 1)) || usage; logs="$2"; shift ;;
    --list-tests) (($# > 1)) || usage; gpu_tests_of_build "$2"; exit ;;
    -*) usage ;;
    *) [[ -z "$build" ]] || usage; build="$1" ;;
  esac
  shift
done
wants() { [[ -z "$only" || "$only" == "$1" ]]; }

if [[ -e "$here/../.slidestream-bundle" ]]; then
  bundle="$(cd "$here/.." && pwd)"
  figures="$bundle/bench/gpu_figures.txt"
  root="$bundle"
  pipeline="$bundle/bin/pipeline"
  program_path() { echo "$bundle/bin/$1"; }
  tests=()
  while read -r name; do tests+=("$bundle/bin/$name"); done < <(cat "$bundle/gpu-tests.txt" 2>/dev/null)
  if [[ -z "${SLIDESTREAM_TEST_DATA:-}" && -d "$bundle/test-data" ]]; then
    export SLIDESTREAM_TEST_DATA="$bundle/test-data"
  fi
else
  build="$(cd "${build:-$here/../build/cuda}" && pwd)" || fail "no build in ${build:-build/cuda}: name one"
  figures="$here/../bench/gpu_figures.txt"
  root="$here/.."
  pipeline="$build/pipeline"
  program_path() { echo "$build/bench/$1"; }
  mapfile -t tests < <(gpu_tests_of_build "$build")
fi

command -v python3 >/dev/null || fail 'python3 is missing'
device="$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sort | uniq -c |
  sed 's/^ *\([0-9]*\) /\1 x /' | paste -sd, )" || true
[[ -n "$device" ]] || fail 'no GPU: nvidia-smi is missing, or finds none'
gpus="$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)"
driver="$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
sanitizer=
if wants sanitizer; then
  for candidate in compute-sanitizer /usr/local/cuda/bin/compute-sanitizer; do
    if sanitizer="$(command -v "$candidate")"; then break; fi
  done
  [[ -n "$sanitizer" ]] || fail 'compute-sanitizer is missing (it comes with CUDA): put it on the PATH, or choose with --only'
fi
if wants tests || wants sanitizer; then
  ((${#tests[@]})) || fail 'no program here has tests for a GPU'
fi
logs="${logs:-$PWD/gpu-check-logs}"
rm -rf "$logs"/{tests,memcheck,initcheck,synccheck,racecheck,bench}
mkdir -p "$logs"
table=(python3 "$here/gpu_check_table.py")
reports=()

step() { printf '== %s (%d s so far)\n' "$*" "$SECONDS" >&2; }
# run_tests FOLDER SECONDS EXCLUDED [WRAPPER...]: every program with tests for a GPU, one after the other. A wrapper
# finds the program's name in $name. doctest's report, what tests print, and at the end the status: NAME.out
run_tests() {
  local folder="$logs/$1" seconds="$2" excluded="$3" program name status
  local -a wrapper
  shift 3
  mkdir -p "$folder"
  for program in "${tests[@]}"; do
    name="$(basename "$program")"
    wrapper=("${@//@NAME@/$folder/$name}")
    status=0
    timeout -k 10 "$seconds" "${wrapper[@]}" "$program" --reporters=xml --test-case-exclude="$excluded" \
      >"$folder/$name.out" 2>"$folder/$name.err" </dev/null || status=$?
    printf '\nEXIT %d\n' "$status" >>"$folder/$name.out"
  done
}

if wants tests; then
  step "tests: ${#tests[@]} programs"
  run_tests tests "$test_seconds" ''
  "${table[@]}" tests "$logs/tests" >"$logs/tests.json"
  reports+=("$logs/tests.json")
fi

if wants sanitizer; then
  tools=(memcheck)
  [[ -n "$quick" ]] || tools+=(initcheck synccheck racecheck)
  for tool in "${tools[@]}"; do
    step "compute-sanitizer: $tool"
    excluded="$large_cases"
    if [[ "$tool" == racecheck ]]; then excluded="$racecheck_large_cases"; fi
    run_tests "$tool" "$sanitizer_seconds" "$excluded" \
      "$sanitizer" --tool "$tool" --log-file "@NAME@.findings"
    "${table[@]}" sanitizer "$logs/$tool" >"$logs/$tool.json"
    reports+=("$logs/$tool.json")
  done
fi

data="${SLIDESTREAM_TEST_DATA:-$here/../../shared}/data"
# Arguments of a benchmark that wants some: the slides whose tiles jpeg_gpu_bench and encode_gpu_bench repeat.
arguments=()
prepare() {
  local folder="$logs/slides"
  local real="$data/cmu-1-small-region.svs"
  arguments=()
  if [[ "$1" == read_bench ]]; then
    arguments=(--dir "$folder")
    return 0
  fi
  if [[ "$1" == jpeg2000_gpu_bench ]]; then
    mkdir -p "$folder"
    "$pipeline" synth --out "$folder/lossless.svs" --size 4096x4096 --codec jpeg2000 --quality 100 --levels 1 >&2
    arguments=("$data/tcga-cr-7395.svs" "$folder/lossless.svs")
    return 0
  fi
  [[ "$1" == jpeg_gpu_bench || "$1" == encode_gpu_bench ]] || return 0
  mkdir -p "$folder"
  if [[ "$1" == encode_gpu_bench ]]; then
    # A real slide's tiles where there is one: how much is in them is what the rate depends on.
    if [[ -e "$real" ]]; then arguments=("$real"); return 0; fi
    "$pipeline" synth --out "$folder/encode.svs" --size 4096x4096 --levels 1 >&2
    arguments=("$folder/encode.svs")
    return 0
  fi
  "$pipeline" synth --out "$folder/ycc420.svs" --size 16384x16384 --distinct 300 --levels 1 >&2
  "$pipeline" synth --out "$folder/tiles1024.svs" --size 16384x16384 --tile 1024 --distinct 64 --levels 1 >&2
  arguments=("$folder/ycc420.svs" "$folder/tiles1024.svs" --tiles '0,16384,1024')
  if [[ -e "$real" ]]; then arguments+=("$real"); fi
}

# The published architectures and the program on the headline slide, one after the other; where Python lacks what the
# former need, a row that says so.
run_published() {
  local report="$1" folder="$logs/slides" status=0
  mkdir -p "$folder"
  [[ -e "$folder/headline.svs" ]] ||
    "$pipeline" synth --out "$folder/headline.svs" --size 65664x43264 --distinct 300 --levels 1 >&2
  python3 "$root/bench/published/compare.py" "$folder/headline.svs" --pipeline "$pipeline" --only own,B+,B --json \
    --own-slides 96 --config "$root/configs/h100.toml" >"$report" || status=$?
  skip_where_python_lacks "$report" "$status" best_over_own compare.py
}
# Decoders of JPEG 2000 on a real slide's tiles, the same way.
run_published_jpeg2000() {
  local report="$1" status=0
  python3 "$root/bench/published/jpeg2000.py" "$data/tcga-cr-7395.svs" --bench "$(program_path jpeg2000_gpu_bench)" \
    --json >"$report" || status=$?
  skip_where_python_lacks "$report" "$status" own_over_nvjpeg2k jpeg2000.py
}
# Networks alone, in the program, and by a loader. All figures that are expected are skipped where that can't be.
run_published_networks() {
  local report="$1" status=0
  local -a names
  python3 "$root/bench/published/networks.py" --pipeline "$pipeline" --only alone,own,loader,bits --json \
    >"$report" || status=$?
  mapfile -t names < <(sed -n 's/^published_networks \([a-z0-9_]*\).*/\1/p' "$figures")
  skip_where_python_lacks "$report" "$status" "${names[*]}" networks.py
}
# Windows as tensors by the Python package, which is a build's, or installed.
run_python_tiles() {
  local report="$1" folder="$logs/slides" status=0
  mkdir -p "$folder"
  [[ -e "$folder/headline.svs" ]] ||
    "$pipeline" synth --out "$folder/headline.svs" --size 65664x43264 --distinct 300 --levels 1 >&2
  PYTHONPATH="${build:+$build/python:}${PYTHONPATH:-}" timeout -k 10 "$bench_seconds" \
    python3 "$root/bench/python/gpu_tiles_bench.py" "$folder/headline.svs" --json "$report" || status=$?
  skip_where_python_lacks "$report" "$status" tiles_256_gpx gpu_tiles_bench.py
}
# skip_where_python_lacks REPORT STATUS FIGURES SCRIPT
skip_where_python_lacks() {
  local report="$1" status="$2" name rows=
  if ((status != 2)); then return "$status"; fi
  for name in $3; do
    rows+="${rows:+, }{\"name\": \"$name\", \"value\": null, \"skipped\": \"$4 says what it lacks\"}"
  done
  printf '{"figures": [%s]}\n' "$rows" >"$report"
}

expected=/dev/null
if wants bench; then
  mkdir -p "$logs/bench"
  expected="$logs/bench/expected.txt"
  awk -v quick="$quick" -v slow=" $slow_benchmarks " \
    '/^[^#]/ && !(quick && index(slow, " " $1 " "))' "$figures" >"$expected"
  while read -r name; do
    step "benchmark: $name"
    report="$logs/bench/$name.json"
    status=0
    if [[ "$name" == published ]]; then
      run_published "$report" >"$logs/bench/$name.out" 2>&1 </dev/null || status=$?
    elif [[ "$name" == published_jpeg2000 ]]; then
      run_published_jpeg2000 "$report" >"$logs/bench/$name.out" 2>&1 </dev/null || status=$?
    elif [[ "$name" == published_networks ]]; then
      run_published_networks "$report" >"$logs/bench/$name.out" 2>&1 </dev/null || status=$?
    elif [[ "$name" == python_tiles ]]; then
      run_python_tiles "$report" >"$logs/bench/$name.out" 2>&1 </dev/null || status=$?
    else
      prepare "$name" || echo "gpu-check.sh: no slides for $name" >&2
      timeout -k 10 "$bench_seconds" "$(program_path "$name")" --json "$report" "${arguments[@]}" \
        >"$logs/bench/$name.out" 2>&1 </dev/null || status=$?
    fi
    if ((status)); then
      printf '{"figures": [{"name": "exit_status", "value": %d, "unit": "", "target": 0, "direction": "at_most"}]}\n' \
        "$status" >"$logs/bench/$name.status.json"
      reports+=("$logs/bench/$name.status.json")
      tail -n 3 "$logs/bench/$name.out" >&2
    fi
    if [[ -e "$report" ]]; then reports+=("$report"); fi
  done < <(cut -d' ' -f1 "$expected" | uniq)
fi

step 'done'
status=0
"${table[@]}" table --device "$device" --driver "$driver" --command "$command_line" --gpus "$gpus" \
  --expected "$expected" "${reports[@]}" >"$logs/table.md" || status=$?
cat "$logs/table.md"
if [[ -n "$out" ]]; then cp "$logs/table.md" "$out"; fi
if ((status)); then echo "gpu-check.sh: not all rows passed; logs are in $logs" >&2; fi
exit "$status"
