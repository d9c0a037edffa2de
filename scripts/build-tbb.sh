#!/bin/bash
# Builds the distribution's oneTBB for ThreadSanitizer, for scripts/check-deep.sh: `build-tbb.sh` prints the folder of the
# library, build/tbb-tsan-VERSION/, VERSION being that of the installed libtbb-dev. The distribution's own library hides the
# order that its task queues make. Programs take this one by LD_LIBRARY_PATH. Made once: the second call only prints. The
# first takes the source package from the distribution's archive, so it needs the network.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=scripts/source-package.sh
source "$root/scripts/source-package.sh"

fail() { echo "build-tbb.sh: $*" >&2; exit 1; }
(($# == 0)) || { echo "usage: $0" >&2; exit 2; }
need_tools cmake ninja
version="$(dpkg-query -W -f='${source:Version}' libtbb-dev 2>/dev/null)" ||
  fail 'libtbb-dev is missing: scripts/install-deps.sh installs it'
installed="$(readlink -f "$(dpkg-query -L libtbb-dev | grep '/libtbb\.so$')")"
soname="$(soname_of "$installed")"
made="$root/build/tbb-tsan-$version"
if [[ -f "$made/$soname" ]]; then echo "$made"; exit; fi

mkdir -p "$root/build"
work="$(mktemp -d "$root/build/.tbb.XXXXXX")"
trap 'rm -rf "$work"' EXIT
fetch_source onetbb "$version"
cd "$work"
# As CMakePresets.json has it for the program.
step cmake -S source -B built -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO='-O1 -g1' \
  -DCMAKE_CXX_FLAGS=-fsanitize=thread -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF
step ninja -C built tbb
library="$(find built -name "$soname" -print -quit)"
[[ -n "$library" ]] || fail "what was built has another name than $soname"
mkdir made
cp "$(readlink -f "$library")" "made/$soname"
keep_made "$(basename "$made")"
echo "$made"
