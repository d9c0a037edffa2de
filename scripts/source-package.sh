# shellcheck shell=bash
# For scripts that build one of the distribution's libraries in another way; to be sourced. Wants of the script `root`,
# which is the repository's, `fail`, and an empty folder `work`, in which what is said goes to `log`. Nothing of the system
# is changed.

# shellcheck disable=SC2154  # `work` is the script's
# step COMMAND...: runs it, and ends the script with the end of what it said where it fails.
step() { "$@" >>"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; fail "$1 failed"; }; }

# A library's name as the loader asks for it.
soname_of() { readelf -dW "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'; }

# fetch_source NAME VERSION [OPTION...]: the distribution's source package, that version if the archive still has it, as
# $work/source. apt checks its signature and hashes. Options are dpkg-source's, for how it is unpacked.
fetch_source() {
  local file
  mkdir -p "$work"/{etc,lists/partial,cache/archives/partial}
  # The archive's addresses, as this machine has them for packages, asked for sources.
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ ! -f "$file" ]] || sed -n 's/^[[:space:]]*deb\([[:space:]].*\)/deb-src\1/p' "$file" >>"$work/etc/all.list"
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    [[ ! -f "$file" ]] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/etc/$(basename "$file")"
  done
  # Others' archives may lack sources or not answer; what counts is whether this one is found.
  of_archive update >"$work/log" 2>&1 </dev/null || true
  (
    cd "$work"
    of_archive source --download-only "$1=$2" >>log 2>&1 </dev/null ||
      of_archive source --download-only "$1" >>log 2>&1 </dev/null
  ) || fail "no source package of $1 from the distribution's archive: $(grep -E '^[EW]: ' "$work/log" | tail -n 1)"
  # apt has checked the hashes, so that the packager's own signature need not be.
  step dpkg-source --no-check "${@:3}" -x "$work"/*.dsc "$work/source"
}

of_archive() {
  apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/etc" -o Dir::State::Lists="$work/lists" \
    -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" -o APT::Get::List-Cleanup=false \
    -o Acquire::Languages=none -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 "$@"
}

# need_tools TOOL...: those of the script, and the ones that the functions here run.
need_tools() {
  local tool
  for tool in apt-get dpkg-query dpkg-source "$@"; do
    command -v "$tool" >/dev/null || fail "$tool is missing: scripts/install-deps.sh installs it"
  done
}

# keep_made NAME: $work/made becomes build/NAME, with the licence and the source's version beside what was built.
keep_made() {
  cp "$work/source/debian/copyright" "$work/made/copyright"
  dpkg-parsechangelog -l "$work/source/debian/changelog" -S Version >"$work/made/source-version"
  # Another call may have been as fast.
  mv -T "$work/made" "$root/build/$1" 2>>"$work/log" || [[ -f "$root/build/$1/copyright" ]] ||
    fail "$root/build/$1 can't be written"
}
