#!/bin/bash
# Builds the distribution's libtiff without JBIG-KIT, which is under the GPL and which Debian's own links, for
# scripts/bundle.sh: `build-libtiff.sh` prints the path of the library, in build/libtiff-VERSION/, VERSION being that of
# the installed libtiff-dev. Made once: the second call only prints. The first takes the source package that the
# distribution's archive has for this release (apt checks its signature and hashes), so it needs the network, and nothing
# of the system is changed; needs dpkg-dev and libtiff-dev, which scripts/install-deps.sh installs. Every other codec of
# the distribution's library stays, and so do its name and the versions of its symbols.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=scripts/source-package.sh
source "$root/scripts/source-package.sh"

fail() { echo "build-libtiff.sh: $*" >&2; exit 1; }
(($# == 0)) || { echo "usage: $0" >&2; exit 2; }
need_tools cmake ninja
version="$(dpkg-query -W -f='${source:Version}' libtiff-dev 2>/dev/null)" ||
  fail 'libtiff-dev is missing: scripts/install-deps.sh installs it'
installed="$(dpkg-query -L libtiff-dev | grep '/libtiff\.so$')"
installed="$(readlink -f "$installed")"
needed_by() { readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort; }
# Names and versions of the functions that a library gives.
symbols_of() { objdump -T "$1" | awk '$2 == "g" && $4 != "*UND*" && $4 != "*ABS*" {print $NF, $(NF - 1)}' | sort -u; }
soname="$(soname_of "$installed")"
made="$root/build/libtiff-$version"
if [[ -f "$made/$soname" ]]; then echo "$made/$soname"; exit; fi

mkdir -p "$root/build"
work="$(mktemp -d "$root/build/.libtiff.XXXXXX")"
trap 'rm -rf "$work"' EXIT
fetch_source tiff "$version"
cd "$work"
# The version script gives symbols the versions that the distribution's have.
step cmake -S source -B built -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -Djbig=OFF \
  -Dld-version-script=ON -Dtiff-tools=OFF -Dtiff-tests=OFF -Dtiff-contrib=OFF -Dtiff-docs=OFF -Dtiff-opengl=OFF -Dcxx=OFF \
  -DCMAKE_C_FLAGS_RELEASE='-O2 -DNDEBUG -fstack-protector-strong -D_FORTIFY_SOURCE=2' \
  -DCMAKE_SHARED_LINKER_FLAGS='-Wl,-z,relro -Wl,-z,now -Wl,--as-needed'
step ninja -C built tiff
library="$(readlink -f "built/libtiff/$soname")"
[[ -f "$library" ]] || fail "what was built has another name than $soname"

# The same library but for JBIG: programs that were linked with the distribution's find all that they look for.
missing="$(comm -23 <(symbols_of "$installed") <(symbols_of "$library") | head -n 3 | paste -sd' ')"
[[ -z "$missing" ]] || fail "what was built lacks $missing"
differs="$(comm -3 <(needed_by "$installed" | grep -v '^libjbig\.') <(needed_by "$library") | tr -d '\t' | paste -sd' ')"
[[ -z "$differs" ]] || fail "what was built and the distribution's link other libraries: $differs"

mkdir "$work/made"
strip --strip-unneeded -o "$work/made/$soname" "$library"
keep_made "libtiff-$version"
echo "$made/$soname"
