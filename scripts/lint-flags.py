#!/usr/bin/env python3
"""Makes a compile_commands.json for clang-tidy of a build's. `lint-flags.py BUILD_DIR OUT_DIR`, in the repository's root.

A source that the build compiles has the flags that it has there; one that it compiles with others (CMAKE_UNITY_BUILD) has
those of the whole. Only what decides how a source is read is kept: GCC's precompiled headers and warnings mean nothing to
clang. Sources that aren't in it get the flags of a neighbour, as clang-tidy does. Prints the sources, relative to the
current folder, one a line.
"""

import json
import os
import pathlib
import sys

from compile_commands import flags_of, unity_sources


def sources_of(entry):
    """What is compiled by an entry: one source, or those that a unity file includes."""
    file = pathlib.Path(entry["directory"], entry["file"])
    sources = unity_sources(file)
    if sources is not None:
        return sources
    return [str(file)] if file.suffix == ".cpp" else []


def main(build, out):
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        for source in sources_of(entry):
            # A source of several targets has the flags of the first.
            found.setdefault(source, {"directory": entry["directory"], "file": source, "arguments": [
                "clang++", *flags_of(entry["command"]), "-c", source]})
    out.mkdir(parents=True, exist_ok=True)
    (out / "compile_commands.json").write_text(json.dumps(list(found.values()), indent=1))
    print(*sorted(os.path.relpath(source) for source in found), sep="\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} BUILD_DIR OUT_DIR")
    main(*map(pathlib.Path, sys.argv[1:]))
