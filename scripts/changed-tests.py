#!/usr/bin/env python3
"""Which of a build's tests are those of changed files: `changed-tests.py BUILD <FILES`, a file a line.

Prints a regular expression for CTest with the cases of test programs that have such a file, and the tests that run such a
script; an empty line where there are none. What is left out is named on standard error: files that no program has for itself,
such as those of tests/support/, helpers of scripts, data, and CMake's files. BUILD must be current.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def programs_by_object(build):
    """Paths of programs that each object is linked into; libraries' objects aren't among them."""
    found = {}
    for line in (build / "build.ninja").read_text(encoding="utf-8").splitlines():
        edge = re.match(r"build (\S+)[^:]*: CXX_EXECUTABLE_LINKER\S* (.*)", line)
        if edge:
            for name in edge[2].split(" | ")[0].split(" || ")[0].split():
                found.setdefault(name, set()).add(str(build / edge[1]))
    if not found:
        sys.exit(f"changed-tests.py: {build / 'build.ninja'} links no program that this script knows")
    return found


def programs_by_file(build):
    """Paths of programs that are compiled of each file, headers among them."""
    linked, found, programs = programs_by_object(build), {}, ()
    for line in output("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line.startswith(" "):
            if programs:
                found.setdefault(os.path.normpath(build / line.strip()), set()).update(programs)
        elif line:
            programs = linked.get(line.split(": #deps")[0], ())
    return found


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    by_file = programs_by_file(build)
    tests = json.loads(output("ctest", "--test-dir", str(build), "--show-only=json-v1", "-LE", "slow"))["tests"]
    chosen, left_out = set(), []
    for file in sys.stdin.read().splitlines():
        if not (ROOT / file).exists():
            continue
        path = str(ROOT / file)
        of_all = file.startswith("tests/support/")
        # Of tests of a folder the command names that.
        folders = {str(folder) for folder in pathlib.Path(path).parents if ROOT / "tests" in folder.parents}
        wanted = {path} | folders if file.endswith(".py") else by_file.get(path, set())
        names = set() if of_all else {test["name"] for test in tests if wanted.intersection(test.get("command", []))}
        # All cases of a program by its name: a program may have hundreds.
        chosen |= {re.match(r"\w+_test:", name)[0] if re.match(r"\w+_test:", name) else name + "$" for name in names}
        if not names:
            left_out.append(file)
    if left_out:
        print("Left out, as no test is theirs alone:", *left_out, file=sys.stderr)
    escaped = (re.sub(r"([^\w :/,$-])", r"\\\1", name) for name in sorted(chosen))
    print(f"^({'|'.join(escaped)})" if chosen else "")


if __name__ == "__main__":
    main()
