#!/usr/bin/env python3
"""Checks that includes go the allowed way, and that no two headers have types of one name: `check-includes.py [ROOT]`.

Prints one line a violation, and exits 1 when there is any.
"""

import pathlib
import re
import sys

# The rooms of the project, floor by floor from the bottom up. A folder that isn't listed belongs to the room that it is
# in. A room may include its own headers and those of the floors below it.
FLOORS = [
    ["include"],
    ["src/system"],
    ["src/runtime", "src/image", "src/statistics", "src/config"],
    ["src/codec", "src/libraries", "src/colour", "src/spectrum", "src/stitch", "cuda/device", "cuda/networks"],
    ["cuda/colour"],
    ["src/sink", "src/slide", "cuda/jpeg", "cuda/spectrum", "cuda/tiles"],
    ["src/inputs", "src/output", "src/synth", "src/networks", "src/operators/common", "cuda/encode", "cuda/jpeg2000", "cuda/pyramid"],
    ["src/operators/identity", "src/operators/sobel", "src/operators/gaussian", "src/operators/tissue"],
    ["src/operators/spectrum", "src/operators/stain", "src/operators/model"],
    ["src/operators", "src/ledger", "cuda/operators"],
    ["src/planning"],
    ["src/stages/run", "src/stages/network", "src/tiling"],
    ["src/stages/images"],
    ["src/stages/gpu"],
    ["src/stages", "src/sweep", "src/compare"],
    ["src/volume"],
    ["src/report"],
    ["src/cli"],
    ["python", "examples", "fuzz"],
]
# What a room doesn't know, although it is on a floor below: (room and all in it, room and all in it).
APART = [
    ("src/runtime", "include"),  # knows nothing of slides; errors and traces aside
    ("src/sink", "src/runtime"),
    ("src/slide", "src/runtime"),  # opening and decoding know nothing of threads and devices
    ("src/operators", "src/runtime"),
    ("src/operators", "src/slide"),  # operators see slides by the public header
    ("src/planning", "src/runtime"),
    ("cuda", "src/slide"),  # kernels know nothing of slides and files
    ("cuda", "src/sink"),
    ("src/ledger", "src/operators"),
    ("src/cli", "src/stages"),  # the program uses the library as others do
    ("examples", "src"),
    ("examples", "cuda"),
]
# Tests and benchmarks look inside everything.
UNCHECKED = {"bench", "tests"}

SUFFIXES = {".hpp", ".cpp", ".h", ".c", ".cu", ".cuh", ".inl"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


ROOMS = {room: number for number, floor in enumerate(FLOORS) for room in floor}


def room_of(path):
    """The room that a file belongs to: the longest listed folder that it is in. None where there is none."""
    for depth in range(len(path.parts) - 1, 0, -1):
        room = "/".join(path.parts[:depth])
        if room in ROOMS:
            return room
    return None


def is_in(room, of):
    return room == of or room.startswith(of + "/")


def target_of(name, source, known):
    """The path of the header that an include means, of the `known` ones; None where it isn't the project's."""
    if name in ("slidestream/error.hpp", "slidestream/trace.hpp"):
        return None  # every room throws, and every stage is traced
    for folder in (f"{source.parent}/", "src/", "include/", "python/src/", ""):
        if folder + name in known:
            return pathlib.Path(folder + name)
    # A header that isn't there is judged by its name.
    tops = ["include"] if name.startswith("slidestream/") else ["src", ""]
    return next((pathlib.Path(top) / name for top in tops if room_of(pathlib.Path(top) / name) is not None), None)


def violations(root):
    sources = sorted(
        path for top in ("include", "src", "cuda", "python", "examples", "fuzz", "bench", "tests")
        for path in (root / top).rglob("*") if path.suffix in SUFFIXES
    )
    known = {str(path.relative_to(root)) for path in sources}
    for path in sources:
        relative = path.relative_to(root)
        if relative.parts[0] in UNCHECKED:
            continue
        room = room_of(relative)
        if room is None:
            yield f"{relative}: is in no room that scripts/check-includes.py lists; add its folder to a floor there"
            continue
        if room == "src/operators" and len(relative.parts) > 3:
            yield f"{relative}: an operator's folder is a room of its own in scripts/check-includes.py"
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            name = match.group(2)
            if ".." in name.split("/"):
                yield f"{relative}:{number}: includes {name}: name it from src/ or include/, without .."
                continue
            header = target_of(name, relative, known)
            target = room_of(header) if header is not None else None
            if target is None or target == room:
                continue
            if ROOMS[target] >= ROOMS[room]:
                yield f"{relative}:{number}: includes {name}, but {target} isn't on a floor below {room}"
            elif any(is_in(room, one) and is_in(target, other) for one, other in APART):
                yield f"{relative}:{number}: includes {name}, but {room} knows nothing of {target}"


def names_twice(root):
    """Types of one name in one namespace, of two headers: a program that has both is broken, and no compiler says so."""
    found = {}
    headers = sorted(path for top in ("include", "src", "cuda", "python") for path in (root / top).rglob("*.hpp"))
    for path in headers:
        namespace = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            opened = re.match(r"namespace ([\w:]+) \{$", line)
            if opened:
                namespace = opened.group(1)
            # At the beginning of a line: members of others are indented.
            type_ = re.match(r"(?:struct|class|enum class) (?:alignas\([^)]*\) )?(\w+)(?! *::)\b[^;]*\{", line)
            if type_ is None or namespace is None:
                continue
            here = f"{path.relative_to(root)}:{number}"
            first = found.setdefault((namespace, type_.group(1)), here)
            if first.split(":")[0] != here.split(":")[0]:
                yield f"{here}: {namespace}::{type_.group(1)} is in {first}, too"


def main(arguments):
    if len(arguments) > 1:
        print("usage: check-includes.py [ROOT]", file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    found = [*violations(root), *names_twice(root)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
