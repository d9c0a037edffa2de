#!/usr/bin/env python3
"""Checks that sources compile alone which builds compile several at a time (CMAKE_UNITY_BUILD) or, such as tests, with
precompiled headers: each includes what it uses. `check-units.py BUILD_DIR...`

Goes by the builds' compile_commands.json, of one build after the other, and doesn't look at a source twice. The compiler
makes no code. Prints what it says of each source that fails, and exits 1 when there is any.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

from compile_commands import flags_of, unity_sources


def units_of(build):
    """Sources that are compiled with others, or with precompiled headers, there: file and flags."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        sources = unity_sources(file)
        if sources is not None:
            for source in sources:
                yield source, flags_of(entry["command"])
        elif "cmake_pch.hxx" in entry["command"] and not file.name.startswith("cmake_pch."):
            yield str(file), flags_of(entry["command"])


def check(source, flags):
    done = subprocess.run([os.environ.get("CLANG", "clang++"), "-fsyntax-only", "-w", *flags, source], capture_output=True, text=True)
    return source, done.returncode, done.stderr


def main(builds):
    units = {}
    for build in builds:
        for source, flags in units_of(pathlib.Path(build)):
            # Their own definitions, which CMake gives to a source alone, keep a source out of what is compiled together.
            units.setdefault(source, flags)
    if not units:
        print(f"check-units.py: no build of {', '.join(builds)} compiles sources together or with precompiled headers",
              file=sys.stderr)
        return 1
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        for source, status, said in threads.map(lambda unit: check(*unit), units.items()):
            if status != 0:
                failed += 1
                print(f"{source} doesn't compile alone:\n{said}")
    print(f"{len(units)} sources, {failed} of which don't compile alone")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} BUILD_DIR...")
    sys.exit(main(sys.argv[1:]))
