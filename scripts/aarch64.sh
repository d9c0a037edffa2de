#!/bin/bash
# Cross-compiles for 64-bit Arm by Debian's toolchain, runs the tests that need no other program under QEMU, and compares
# results with this machine's: `aarch64.sh [PIPELINE]`. PIPELINE is this machine's program, build/release/pipeline unless
# named. The build is build/aarch64, beside Debian's arm64 libraries in build/aarch64-sysroot; the package lists of this
# machine stay as they are. Takes an hour on two cores, so .ci/run doesn't call it.
# docs/releasing.md says what it shows and what it doesn't.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "aarch64.sh: $*" >&2; exit 1; }
[[ $# -le 1 && "${1:-}" != -* ]] || { echo "usage: $0 [PIPELINE]" >&2; exit 2; }
pipeline="$(realpath -m "${1:-build/release/pipeline}")"
[[ -x "$pipeline" ]] || fail "$pipeline is missing: cmake --preset release && ninja -C build/release pipeline"
for tool in mmdebstrap aarch64-linux-gnu-g++ qemu-aarch64-static; do
  command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install mmdebstrap g++-aarch64-linux-gnu qemu-user-static"
done
mkdir -p build
# shellcheck source=scripts/building.sh
source scripts/building.sh
export SLIDESTREAM_SYSROOT="$PWD/build/aarch64-sysroot"

step 'Libraries for arm64'
if [[ ! -d "$SLIDESTREAM_SYSROOT" ]]; then
  # Unpacked only: nothing of them runs.
  wanted="libc6-dev,libstdc++-$(aarch64-linux-gnu-g++ -dumpversion)-dev,doctest-dev"
  for package in $(scripts/install-deps.sh --list); do
    if [[ "$package" =~ ^(lib|nlohmann) ]]; then wanted+=",$package"; fi
  done
  # shellcheck source=/dev/null
  mmdebstrap --quiet --architectures=arm64 --variant=extract --include="$wanted" \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$SLIDESTREAM_SYSROOT.partial"
  mv -T "$SLIDESTREAM_SYSROOT.partial" "$SLIDESTREAM_SYSROOT"
fi

step 'Build'
configure release -B build/aarch64 "-DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/aarch64.cmake" -DSLIDESTREAM_CUDA=OFF \
  -DSLIDESTREAM_BENCHMARKS=OFF -DSLIDESTREAM_TEST_PYTHON=none # its ONNX Runtime is this machine's
build aarch64

step 'Tests that need no other program, under QEMU'
# doctest's programs; what CTest starts by Python runs other programs, too. Left out: QEMU ignores a limit of the address
# space, takes / for the libraries' folder, has no io_uring, and is too slow for a time limit that a test sets; Debian's
# OpenJPEG for Arm gives other last bits than x86's.
elsewhere='when a thread can.t be started|links to folders above the first|what the system refuses is said|'
elsewhere+='storage is away at its opening|TCGA-CR-7395: JPEG 2000, two levels'
run_tests --test-dir build/aarch64 -R '^[a-z0-9_]+_test:' -E "$elsewhere"

step 'Results beside those of this machine'
work="$(mktemp -d build/.aarch64.XXXXXX)"
trap 'rm -rf "$work"' EXIT
mkdir "$work/slides"
# JPEG 2000 without loss, as each processor's OpenJPEG decodes the other kind to pixels of its own.
for codec in jpeg420 rgb jpeg2000; do
  quality=80
  [[ "$codec" != jpeg2000 ]] || quality=100
  "$pipeline" synth --out "$work/slides/$codec.svs" --size 1536x1024 --tile 256 --codec "$codec" --quality "$quality" >"$work/log"
done
make_results() { "${@:2}" "$work/slides" --out "$1" --quiet --backend cpu --operators spectrum,tissue,stain,sobel,gaussian; }
make_results "$work/here" "$pipeline"
make_results "$work/arm" qemu-aarch64-static -L "$SLIDESTREAM_SYSROOT" build/aarch64/pipeline
# The bound that GPUs and processors are promised to agree within, in dB; images must be the same bytes.
"$pipeline" compare "$work/here" "$work/arm" --tolerance 0.0001
echo "Passed in $SECONDS s."
