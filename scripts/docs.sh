#!/bin/bash
# Builds the documents and the API references of C++ and Python as one site: `docs.sh [OUT]`. OUT is build/site unless it is
# given. It needs doxygen (install-deps.sh --docs), and PyPI once for mkdocs and pdoc, which go into build/docs-env.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
if (($# > 1)) || [[ "${1:-}" == -* ]]; then
  echo "usage: $0 [OUT]" >&2
  exit 2
fi
out="$(realpath -m "${1:-$root/build/site}")"
env="$root/build/docs-env"
if [[ -e "$out" && ! -e "$out/search/search_index.json" ]]; then
  echo "docs.sh: $out exists and isn't a site that this script built: name another folder" >&2
  exit 1
fi

packages=(mkdocs==1.6.1 pdoc==16.0.0 numpy==2.4.6
  click==8.5.1 ghp-import==2.1.0 jinja2==3.1.6 markdown==3.11.3 markdown2==2.5.5 markupsafe==3.0.4 mergedeep==1.3.4
  mkdocs-get-deps==0.2.2 packaging==26.3 pathspec==1.1.1 platformdirs==4.14.8 pygments==2.21.0 python-dateutil==4.0.0
  pyyaml==6.0.4 pyyaml_env_tag==1.1 watchdog==7.1.0)

if ! command -v doxygen >/dev/null; then
  echo "docs.sh: doxygen is missing: run scripts/install-deps.sh --docs" >&2
  exit 1
fi
if [[ "$(cat "$env/packages" 2>/dev/null)" != "${packages[*]}" ]]; then
  echo "Installing mkdocs and pdoc into $env"
  python3 -m venv --clear "$env"
  "$env/bin/pip" install -q --disable-pip-version-check "${packages[@]}"
  echo "${packages[*]}" >"$env/packages"
fi

# mkdocs and doxygen read a copy, which has the pages side by side with the generated references.
work="$(mktemp -d "${TMPDIR:-/tmp}/slidestream-docs.XXXXXX")"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/pages/docs" "$work/pages/api"
cp "$root"/{README,ARCHITECTURE,CONTRIBUTING}.md "$work/pages"
cp -r "$root"/docs/*.md "$root/docs/images" "$work/pages/docs"
cp "$root"/docs/site/{reference.md,site.css} "$work/pages"
mkdir "$work/site"
cp "$root"/docs/site/{mkdocs.yml,hooks.py} "$work/site"

version="$(sed -n 's/^project(slidestream VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")"
(cd "$root" && doxygen <(cat docs/site/Doxyfile; echo "OUTPUT_DIRECTORY = $work/pages/api"; echo "PROJECT_NUMBER = $version"))
"$env/bin/python3" -B "$root/docs/site/python_api.py" "$root/python" "$work/pages/api/python"

# Whole or not at all.
if ! "$env/bin/mkdocs" build --strict -f "$work/site/mkdocs.yml" -d "$work/built" >"$work/said" 2>&1; then
  cat "$work/said" >&2
  exit 1
fi
rm -rf "$out"
mkdir -p "$(dirname "$out")"
mv "$work/built" "$out"
echo "$out/index.html; search needs a web server: python3 -m http.server -d $out"
