#!/bin/bash
# Makes a folder that runs where nothing is installed: `bundle.sh [--parts LIST] [--test-data DIR] [BUILD_DIR] [OUT_DIR]`.
# LIST names what goes in: program, and of what gpu-check.sh runs there, tests and benchmarks. Without it all three, but
# for what BUILD_DIR hasn't got, and a line says what that is. DIR is a folder with `data/` and `oracle/`, for the tests that
# want real slides. BUILD_DIR is build/cuda and OUT_DIR build/bundle unless named. The libtiff in it is built by
# build-libtiff.sh, which needs the network the first time: the distribution's links JBIG-KIT, which is under the GPL.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=scripts/passed-on.sh
source "$root/scripts/passed-on.sh"

trap 'echo "bundle.sh: line $LINENO failed" >&2' ERR

# Folder of the libraries, as seen from a program: cmake/Targets.cmake links programs with it.
# shellcheck disable=SC2016  # the loader's word, not the shell's
library_path='$ORIGIN/../lib'
# glibc comes with the machine and fits its kernel; libcuda comes with the driver.
left_to_the_machine='^(linux-vdso|ld-linux-[^/]*|libc|libm|libpthread|libdl|librt|libresolv|libutil|libcuda)\.so'
# What programs have in them of other projects' sources, by the packages that have their licences.
compiled_in=(libcli11-dev libconcurrentqueue-dev libhdf5-dev libjs-chart.js libjs-leaflet nlohmann-json3-dev)
marker=.slidestream-bundle

fail() { echo "bundle.sh: $*" >&2; exit 1; }
usage() { echo "usage: $0 [--parts program,tests,benchmarks] [--test-data DIR] [BUILD_DIR] [OUT_DIR]" >&2; exit 2; }

parts=
test_data=
places=()
while (($#)); do
  case "$1" in
    --parts) (($# > 1)) || usage; parts="$2"; shift ;;
    --test-data) (($# > 1)) || usage; test_data="$2"; shift ;;
    -*) usage ;;
    *) places+=("$1") ;;
  esac
  shift
done
((${#places[@]} <= 2)) || usage
build="${places[0]:-$root/build/cuda}"
out="${places[1]:-$root/build/bundle}"

chosen="$parts"
IFS=, read -r -a wanted <<<"${chosen:=program,tests,benchmarks}"
for part in "${wanted[@]}"; do
  [[ "$part" =~ ^(program|tests|benchmarks)$ ]] || usage
done
has() { [[ ",$chosen," == *",$1,"* ]]; }
[[ -f "$build/CMakeCache.txt" ]] || fail "$build holds no build: cmake --preset cuda && ninja -C build/cuda"
if [[ -e "$out" && ! -e "$out/$marker" ]] && [[ -n "$(ls -A "$out")" ]]; then
  fail "$out is there and is no bundle: name another folder, or remove it"
fi
[[ -z "$test_data" || -d "$test_data/data" ]] || fail "$test_data has no folder data/"

# What gpu-check.sh runs: programs with tests that want a GPU, and the benchmarks whose figures it judges.
gpu_tests() { "$root/scripts/gpu-check.sh" --list-tests "$build"; }
gpu_benchmarks() {
  sed -n "s|^\([a-z0-9_]*_bench\) .*|$build/bench/\1|p" "$root/bench/gpu_figures.txt" | uniq |
    while read -r file; do if [[ -x "$file" ]]; then echo "$file"; fi; done
}
have_cuda=
if has_cuda "$build"; then have_cuda=yes; fi

programs=()
if has program; then
  [[ -x "$build/pipeline" ]] || fail "$build/pipeline is missing: ninja -C $build pipeline"
  programs+=("$build/pipeline")
fi
left_out=()
for part in tests benchmarks; do
  has "$part" || continue
  found=()
  [[ -z "$have_cuda" ]] || mapfile -t found < <("gpu_$part")
  if ((${#found[@]})); then
    programs+=("${found[@]}")
    continue
  fi
  why="$build has none for a GPU"
  [[ -n "$have_cuda" ]] || why="$build is without CUDA"
  [[ -z "$parts" ]] || fail "no $part to bundle: $why; leave them out with --parts"
  left_out+=("$part")
  chosen=",$chosen,"
  chosen="${chosen/,$part,/,}"
done
((${#left_out[@]} == 0)) || echo "bundle.sh: left out, as $why: ${left_out[*]}" >&2

libtiff="$("$root/scripts/build-libtiff.sh")" || exit 1

stage="$(mktemp -d "$(mkdir -p "$(dirname "$out")" && cd "$(dirname "$out")" && pwd)/.bundle.XXXXXX")"
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
mkdir "$stage/bin" "$stage/lib" "$stage/licences"
touch "$stage/$marker"

for program in "${programs[@]}"; do
  name="$(basename "$program")"
  [[ ! -e "$stage/bin/$name" ]] || fail "two programs are called $name"
  readelf -dW "$program" | grep -F '(RPATH)' | grep -qF "[$library_path]" ||
    fail "$program doesn't look for libraries in $library_path: configure $build again and rebuild it"
  strip -o "$stage/bin/$name" "$program" # a quarter of a program; kernels keep their names and lines
done

# Libraries that programs name, theirs included: `SONAME => FILE (address)`.
libraries_of() { ldd "$@" | sed -n 's/^\t\([^ /]*\) => \(.*\)$/\1 \2/p' | sort -u; }
add_library() {
  local soname="$1" file="$2" package
  [[ -e "$stage/lib/$soname" ]] && return
  cp -L "$file" "$stage/lib/$soname"
  chmod 644 "$stage/lib/$soname"
  package="$(package_of "$file")"
  add_licence "$package" "/usr/share/doc/$package/copyright"
  origin+=("lib/$soname|$package $(dpkg-query -W -f='${Version}' "$package" 2>/dev/null)")
}
origin=()
add_licence() {
  [[ -f "$2" ]] || fail "the licence of ${1:-a library} is not on this machine ($2)"
  cp -L "$2" "$stage/licences/$1"
  chmod 644 "$stage/licences/$1"
}
while read -r soname file _; do
  [[ "$soname" =~ $left_to_the_machine || "$soname" == libjbig.* ]] && continue
  [[ "$file" == /* ]] || fail "$soname is not found on this machine"
  [[ ! "$soname" =~ $under_the_gpl ]] || fail "$soname is under the GPL, and is not passed on: build without it"
  if [[ "$soname" == libtiff.* ]]; then
    [[ "$soname" == "${libtiff##*/}" ]] || fail "the programs want $soname, and build-libtiff.sh made ${libtiff##*/}"
    cp "$libtiff" "$stage/lib/$soname"
    chmod 644 "$stage/lib/$soname"
    add_licence libtiff "${libtiff%/*}/copyright"
    origin+=("lib/$soname|tiff $(cat "${libtiff%/*}/source-version"), built without JBIG (licences/libtiff)")
    continue
  fi
  add_library "$soname" "$file"
done < <(libraries_of "${programs[@]}")

# CUPTI is loaded when a trace is asked for, and CUDA installations without developers' tools lack it.
if [[ -n "$have_cuda" ]]; then
  cupti="$(cached "$build" CUDA_cupti_LIBRARY)"
  if [[ -f "$cupti" ]]; then
    soname="$(readelf -dW "$cupti" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')"
    cp -L "$cupti" "$stage/lib/$soname"
    chmod 644 "$stage/lib/$soname"
    origin+=("lib/$soname|CUDA's CUPTI (licences/cuda)")
  fi
  # Its runtime is in the programs.
  add_licence cuda "$(cuda_licence "$build")"
fi
if has tests; then compiled_in+=(doctest-dev); fi
for package in "${compiled_in[@]}"; do add_licence "$package" "/usr/share/doc/$package/copyright"; done
if [[ -n "$have_cuda" ]]; then compiled_in+=("cuda (its runtime)"); fi

# What is in the bundle finds all that it looks for there, or on any machine.
for file in "$stage"/bin/* "$stage"/lib/*; do
  while read -r soname; do
    [[ "$soname" =~ $left_to_the_machine || -e "$stage/lib/$soname" ]] ||
      fail "${file#"$stage/"} wants $soname, which is not in the bundle"
  done < <(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
done

cp -r "$root/configs" "$stage/configs"
if has program; then
  cp "$root/scripts/slurm/slidestream-submit" "$stage/bin/"
  # `man` finds it where bin/ is on the PATH.
  mkdir -p "$stage/share/man/man1"
  "$build/pipeline" --help-man >"$stage/share/man/man1/pipeline.1"
fi
cp "$root/LICENSE" "$stage/LICENSE"
if has tests || has benchmarks; then
  cp "$root/scripts/gpu-check.sh" "$root/scripts/gpu_check_table.py" "$stage/bin/"
fi
if has benchmarks; then
  mkdir -p "$stage/bench/python"
  cp -r "$root/bench/published" "$stage/bench/published"
  cp "$root/bench/four_gpus.sh" "$stage/bench/"
  cp "$root/bench/python/gpu_tiles_bench.py" "$stage/bench/python/"
  find "$stage/bench" -name __pycache__ -prune -exec rm -r {} +
  cp "$root/bench/gpu_figures.txt" "$root/scripts/make-models.py" "$stage/bench/"
fi
if has tests; then
  # CTest knows which tests want a GPU, and isn't on the node.
  gpu_tests | sed 's|.*/||' >"$stage/gpu-tests.txt"
fi
if [[ -n "$test_data" ]]; then
  mkdir "$stage/test-data"
  cp -rL "$test_data/data" "$stage/test-data/"
  [[ ! -d "$test_data/oracle" ]] || cp -rL "$test_data/oracle" "$stage/test-data/"
  chmod -R u+w "$stage/test-data"
fi

glibc="$(objdump -T "${programs[@]}" "$stage"/lib/* | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)"
cat >"$stage/README" <<EOF_README
slidestream, as a folder that needs no installation. Copy it anywhere; its programs find lib/ beside them.

  bin/pipeline --help
  bin/pipeline synth --out demo.svs && bin/pipeline demo.svs --out results
  bin/pipeline --config configs/h100.toml slides/ --out results
  bin/slidestream-submit --help     with Slurm; needs python3
  man share/man/man1/pipeline.1     all options and keys

Needs: Linux on $(uname -m), glibc ${glibc#GLIBC_} or newer (ldd --version). No root, no LD_LIBRARY_PATH. For the GPU, NVIDIA's
driver for CUDA 13 (580 or newer); without one, or without a GPU, everything runs on the CPU.

cuFFT (libcufft.so, 286 MB) is not in here. It is loaded when windows are not 256 x 256, and then comes from the CUDA on
the machine: in the loader's standard folders, or in a folder that LD_LIBRARY_PATH names. CUPTI, for traces of the GPU,
is in lib/.

bin/gpu-check.sh, where tests and benchmarks were bundled, runs both on a machine with a GPU, the tests under
compute-sanitizer too, and writes a table of figures and verdicts; it needs python3 and, for the sanitizer, CUDA's
compute-sanitizer. Tests that want real slides find them in test-data/ here, else in the folder that
SLIDESTREAM_TEST_DATA names, else are skipped.

slidestream is under the Apache License 2.0 (LICENSE). licences/ has the terms of everything else, by the distribution's
package: of the libraries in lib/, and of what is compiled into the programs:
$(printf '  %s\n' "${compiled_in[@]}")
None is under the GPL alone: libgcc and libstdc++ are with the exception for programs that use them, and libtiff is built
without JBIG-KIT, so that it refuses files with JBIG compression.

$(printf '%s\n' "${origin[@]}" | sort -u | awk -F'|' '{printf "  %-26s %s\n", $1, $2}')
EOF_README

# Kernels are there once for each architecture, in each program.
IFS=';' read -r -a architectures <<<"$(cached "$build" SLIDESTREAM_CUDA_COMPILED_FOR)"
limit_mib=$((88 + 12 * (${#architectures[@]} > 1 ? ${#architectures[@]} : 1)))
bytes="$(du -sb --exclude=test-data "$stage" | cut -f1)"
if ((bytes > limit_mib << 20)); then
  echo "bundle.sh: $(((bytes >> 20) + 1)) MiB, more than $limit_mib; the largest files:" >&2
  (cd "$stage" && find . -type f -printf '%s %P\n' | sort -rn | head -n 15 |
    awk '{printf "  %6.1f MiB  %s\n", $1 / 1048576, $2}') >&2
  echo "bundle.sh: leave something out with --parts, or compile for fewer GPUs (SLIDESTREAM_CUDA_ARCHITECTURES)" >&2
  exit 1
fi
rm -rf "$out"
mv "$stage" "$out"
trap - EXIT
awk -v out="$out" -v bytes="$bytes" -v programs="${#programs[@]}" -v glibc="${glibc#GLIBC_}" \
  'BEGIN {printf "%s: %d programs, %.1f MiB, for glibc %s or newer\n", out, programs, bytes / 1048576, glibc}'
