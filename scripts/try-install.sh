#!/bin/sh
# Tries an installed program: `try-install.sh VERSION`. release.sh runs it in clean roots, so it needs no more than a shell,
# man and pipeline on the PATH. It works in a new folder below the current one.
set -eu
fail() { echo "try-install.sh: $*" >&2; exit 1; }
[ $# = 1 ] || { echo "usage: $0 VERSION" >&2; exit 2; }
said="$(pipeline --version)"
[ "$said" = "slidestream $1" ] || fail "pipeline is \"$said\" and not version $1"

folder="$(mktemp -d "$PWD/tried.XXXXXX")"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
pipeline synth --out slide.svs --size 1024x768 >synth.log
pipeline slide.svs --out results --quiet || fail 'the spectrum failed'
[ -s results/slides.csv ] || fail 'there are no results'
pipeline convert slide.svs slide.ome.tif --quiet || fail 'the conversion failed'
pipeline info slide.ome.tif | grep -q 1024 || fail 'the image is no slide'
# Without a terminal man prints plain text.
page="$(MANPAGER=cat MANWIDTH=100 LC_ALL=C man pipeline)" || fail 'there is no man page'
case "$page" in
  *"slidestream $1"*) ;;
  *) fail "the man page isn't of version $1" ;;
esac
