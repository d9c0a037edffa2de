#!/bin/bash
# Makes what people install of a version, tries it in clean roots, and lists it with SHA-256 sums:
# `release.sh [--cpu-only] [--python PYTHON]... [OUT_DIR]`. OUT_DIR is build/release-VERSION unless named. --cpu-only leaves
# out what has kernels for GPUs, which needs CUDA's compiler. The wheels are for PYTHON, which is python3 unless named.
# What is committed is released: another tree is refused. Needs root for the clean roots, mmdebstrap, and the network.
# docs/releasing.md tells the rest.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=scripts/passed-on.sh
source "$root/scripts/passed-on.sh"

fail() { echo "release.sh: $*" >&2; exit 1; }
usage() { echo "usage: $0 [--cpu-only] [--python PYTHON]... [OUT_DIR]" >&2; exit 2; }
cuda=yes
pythons=()
out=
while (($#)); do
  case "$1" in
    --cpu-only) cuda= ;;
    --python) (($# > 1)) || usage; pythons+=(--python "$2"); shift ;;
    -*) usage ;;
    *) [[ -z "$out" ]] || usage; out="$1" ;;
  esac
  shift
done

cd "$root"
[[ -z "$(git status --porcelain)" ]] || fail 'there are changes that are not committed; a release is what is committed'
for tool in mmdebstrap cpack dpkg-shlibdeps file xz python3; do
  command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install mmdebstrap file, and scripts/install-deps.sh"
done
[[ "$(id -u)" == 0 ]] || fail 'needs root, as it makes clean roots with chroot; run it in a container'
[[ -z "$cuda" ]] || command -v nvcc >/dev/null || fail 'nvcc is missing: put it on the PATH, or leave GPUs out with --cpu-only'

version="$(sed -n 's/^project(slidestream VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)"
name="slidestream-$version"
machine="$(uname -m)"
out="$(mkdir -p "${out:-build/release-$version}" && cd "${out:-build/release-$version}" && pwd)"
[[ -z "$(ls -A "$out")" ]] || fail "$out isn't empty"
mkdir -p build
work="$(mktemp -d "$root/build/.release.XXXXXX")"
trap 'rm -rf --one-file-system "$work"' EXIT
step() { printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"; }
quietly() { "$@" >"$work/log" 2>&1 </dev/null || { tail -n 30 "$work/log" >&2; fail "$1 failed"; }; }
tried=() # FILE|HOW
note() { tried+=("${1##*/}|$2"); }

step "Version $version"
python3 -B tests/scripts/release_test.py -q Version
quietly python3 -m venv "$work/env"
quietly "$work/env/bin/pip" install -q --disable-pip-version-check cffconvert
"$work/env/bin/cffconvert" --validate -i CITATION.cff

# A root of the machine's distribution with man and nothing of ours; others are copies of it.
step 'A clean root'
# shellcheck source=/dev/null
codename="$(. /etc/os-release && echo "$VERSION_CODENAME")"
quietly mmdebstrap --variant=minbase --include=man-db,ca-certificates,xz-utils "$codename" "$work/clean.tar"
new_root() {
  mkdir "$work/$1"
  tar -C "$work/$1" -xf "$work/clean.tar"
  cp -L /etc/resolv.conf "$work/$1/etc/resolv.conf"
  cp scripts/try-install.sh "$work/$1/"
}
# inside ROOT COMMAND...: in the root's /root, with processes of its own.
inside() {
  # shellcheck disable=SC2016  # expanded inside
  unshare --mount --pid --fork --kill-child --mount-proc="$work/$1/proc" chroot "$work/$1" /usr/bin/env -i \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    sh -c 'cd /root && exec "$@"' - "${@:2}"
}

step 'Source archive, and the Debian package that a clean root builds of it'
source_archive="$out/$name-source.tar.xz"
git archive --format=tar --prefix="$name/" HEAD | xz -T0 >"$source_archive"
new_root source
tar -C "$work/source/root" -xf "$source_archive"
quietly inside source apt-get update
quietly inside source "$name/scripts/install-deps.sh"
quietly inside source apt-get install -y --no-install-recommends file
# build_package PRESET [OPTION...]: in the tree in which `run` runs commands.
build_package() {
  quietly "${run[@]}" cmake --preset "$1" -DBUILD_TESTING=OFF -DSLIDESTREAM_BENCHMARKS=OFF "${@:2}"
  quietly "${run[@]}" cmake --build "build/$1"
  quietly "${run[@]}" cpack -G DEB --config "build/$1/CPackConfig.cmake" -B packages
}
run=(inside source env -C "$name")
build_package release -DSLIDESTREAM_CUDA=OFF
build="$work/source/root/$name/build/release"
cp "$work/source/root/$name"/packages/slidestream_*.deb "$out/"
note "$source_archive" 'built in a clean root'

if [[ -n "$cuda" ]]; then
  step 'The Debian package with CUDA, for all GPUs'
  tree="$work/$name"
  tar -C "$work" -xf "$source_archive"
  run=(env -C "$tree")
  quietly "${run[@]}" cmake --preset cuda # finds the compiler, which leads to the licence
  build_package cuda "-DSLIDESTREAM_CUDA_LICENCE=$(cuda_licence "$tree/build/cuda")"
  build="$tree/build/cuda"
  cp "$tree"/packages/slidestream-cuda_*.deb "$out/"
fi

step 'Debian packages in a clean root'
new_root packages
quietly inside packages apt-get update
for file in "$out"/*.deb; do
  cp "$file" "$work/packages/root/"
  quietly inside packages apt-get install -y --no-install-recommends "./${file##*/}"
  inside packages sh /try-install.sh "$version"
  note "$file" 'installed by apt-get, run, and removed in a clean root'
done
quietly inside packages apt-get purge -y '^slidestream'
[[ ! -e "$work/packages/usr/bin/pipeline" ]] || fail 'the package leaves its program when it is removed'

step 'Bundle'
bundle="$name-linux-$machine${cuda:+-cuda}"
quietly scripts/bundle.sh --parts program "$build" "$work/$bundle"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -cf - "$bundle" |
  xz -T0 >"$out/$bundle.tar.xz"
new_root bundle
tar -C "$work/bundle/root" -xf "$out/$bundle.tar.xz"
inside bundle env PATH="/root/$bundle/bin:/usr/bin:/bin" sh /try-install.sh "$version"
note "$out/$bundle.tar.xz" 'unpacked and run in a clean root'

step 'Wheels'
[[ -n "$cuda" ]] || export SKBUILD_CMAKE_DEFINE=SLIDESTREAM_CUDA=OFF
quietly scripts/build-wheel.sh "${pythons[@]}" "$out"
scripts/test-wheel.sh "${pythons[@]}" "$out" "$build"
for file in "$out"/*.whl; do note "$file" "installed by pip, and run where nothing but Python is"; done

step 'Release'
(cd "$out" && sha256sum -- *.tar.xz *.deb *.whl >SHA256SUMS && sha256sum --quiet -c SHA256SUMS)
for line in "${tried[@]}"; do
  printf '%8.1f MiB  %s: %s\n' "$(du -b "$out/${line%%|*}" | awk '{print $1 / 1048576}')" "${line%%|*}" "${line#*|}"
done
echo "$out holds version $version, and SHA256SUMS"
