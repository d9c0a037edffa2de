#!/bin/bash
# Builds the distribution's libtiff without JBIG-KIT, which is under the GPL and which Debian's own links, for
# scripts/bundle.sh: `build-libtiff.sh` prints the path of the library, in build/libtiff-VERSION/, VERSION being that of
# the installed libtiff-dev. Made once: the second call only prints. The first takes the source package that the
# distribution's archive has for this release (apt checks its signature and hashes), so it needs the network, and nothing
# of the system is changed; needs dpkg-dev and libtiff-dev, which scripts/install-deps.sh installs. Every other codec of
# the distribution's library stays, and so do its name and the versions of its symbols.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

fail() { echo "build-libtiff.sh: $*" >&2; exit 1; }
(($# == 0)) || { echo "usage: $0" >&2; exit 2; }
for tool in apt-get dpkg-query dpkg-source cmake ninja; do
  command -v "$tool" >/dev/null || fail "$tool is missing: scripts/install-deps.sh installs it"
done
version="$(dpkg-query -W -f='${source:Version}' libtiff-dev 2>/dev/null)" ||
  fail 'libtiff-dev is missing: scripts/install-deps.sh installs it'
installed="$(dpkg-query -L libtiff-dev | grep '/libtiff\.so$')"
installed="$(readlink -f "$installed")"
soname_of() { readelf -dW "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'; }
needed_by() { readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort; }
# Names and versions of the functions that a library gives.
symbols_of() { objdump -T "$1" | awk '$2 == "g" && $4 != "*UND*" && $4 != "*ABS*" {print $NF, $(NF - 1)}' | sort -u; }
soname="$(soname_of "$installed")"
made="$root/build/libtiff-$version"
if [[ -f "$made/$soname" ]]; then echo "$made/$soname"; exit; fi

mkdir -p "$root/build"
work="$(mktemp -d "$root/build/.libtiff.XXXXXX")"
trap 'rm -rf "$work"' EXIT
log="$work/log"
mkdir -p "$work"/{etc,lists/partial,cache/archives/partial}

# The archive's addresses, as this machine has them for packages, asked for sources.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [[ ! -f "$file" ]] || sed -n 's/^[[:space:]]*deb\([[:space:]].*\)/deb-src\1/p' "$file" >>"$work/etc/all.list"
done
for file in /etc/apt/sources.list.d/*.sources; do
  [[ ! -f "$file" ]] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/etc/$(basename "$file")"
done
apt() {
  apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/etc" -o Dir::State::Lists="$work/lists" \
    -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" -o APT::Get::List-Cleanup=false \
    -o Acquire::Languages=none -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 "$@"
}
# Others' archives may lack sources or not answer; what counts is whether libtiff's is found.
apt update >"$log" 2>&1 </dev/null || true
cd "$work"
apt source --download-only "tiff=$version" >>"$log" 2>&1 </dev/null ||
  apt source --download-only tiff >>"$log" 2>&1 </dev/null ||
  fail "no source package of libtiff from the distribution's archive: $(grep -E '^[EW]: ' "$log" | tail -n 1)"
# apt has checked the hashes, so that the packager's own signature need not be.
step() { "$@" >>"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "$1 failed"; }; }
step dpkg-source --no-check -x ./*.dsc source
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
cp source/debian/copyright "$work/made/copyright"
dpkg-parsechangelog -l source/debian/changelog -S Version >"$work/made/source-version"
# Another call may have been as fast.
mv -T "$work/made" "$made" 2>>"$log" || [[ -f "$made/$soname" ]] || fail "$made can't be written"
echo "$made/$soname"
