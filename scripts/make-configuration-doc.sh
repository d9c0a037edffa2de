#!/bin/bash
# Writes docs/configuration.md from what the program says: `make-configuration-doc.sh PIPELINE`.
set -euo pipefail
pipeline="$(realpath "${1:?usage: $0 PIPELINE}")"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
{
  echo '# Configuration'
  echo
  echo 'Every key with its default, as `pipeline --print-config` writes it. A file needs only what it changes. `--config FILE`'
  echo 'overrides defaults, `--set SECTION.KEY=VALUE` the file, and options of their own, such as `--out`, both.'
  echo
  echo '```toml'
  "$pipeline" --print-config
  echo '```'
} >docs/configuration.md
