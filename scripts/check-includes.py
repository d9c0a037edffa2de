#!/usr/bin/env python3
"""Checks that includes go the allowed way, and that no two headers have types of one name: `check-includes.py [ROOT]`.

Prints one line a violation, and exits 1 when there is any.
"""

import pathlib
import re
import sys

# What the sources of a folder may include of the project, besides their own folder. "public" is include/slidestream/.
ALLOWED = {
    "include": {"public"},
    "src/runtime": set(),  # knows nothing of slides
    "src/image": {"public"},
    "src/codec": {"public", "image"},  # what the CPU's and the GPU's decoders ask alike, and tile encoders
    "src/sink": {"public", "image", "codec"},  # knows neither slides nor graphs
    "src/slide": {"public", "codec"},  # knows nothing of graphs
    "src/statistics": {"public"},
    "src/spectrum": {"public", "image", "statistics"},
    "src/config": {"public"},
    "src/stitch": {"public", "image"},
    "src/output": {"public", "config", "sink"},  # corpus.json lists the settings
    "src/synth": {"public", "codec", "sink"},
    "cuda/spectrum": {"public", "runtime", "spectrum", "statistics"},
    "cuda/operators": {
        "public", "runtime", "image", "operators", "operators/gaussian", "operators/sobel", "operators/stain"},
    "cuda/tiles": {"public", "runtime", "image", "codec"},
    "cuda/networks": {"public", "runtime"},
    "cuda/encode": {"public", "runtime", "codec"},
    "cuda/pyramid": {"public", "runtime", "image"},
    "cuda/jpeg": {"public", "runtime", "codec"},  # knows nothing of slides and graphs
    "cuda/jpeg2000": {"public", "runtime", "codec", "cuda/jpeg"},  # as it; what both need lies there
    # Operators know nothing of graphs, and of each other only that stains are of tissue.
    "src/operators": {
        "public", "image", "statistics", "spectrum", "operators/gaussian", "operators/identity", "operators/model",
        "operators/sobel", "operators/stain", "operators/tissue"},
    "src/operators/gaussian": {"public", "image", "operators"},
    "src/operators/identity": {"public", "image", "operators"},
    "src/operators/model": {"public", "operators", "networks", "sink"},  # writes features
    "src/operators/sobel": {"public", "image", "operators"},
    "src/operators/stain": {"public", "image", "operators", "operators/tissue"},
    "src/operators/tissue": {"public", "image", "codec", "sink", "operators"},  # writes its mask
    # Windows in batches, for Python; on devices by the decoders of the GPU's lane, and as it divides memory.
    "src/tiling": {"public", "runtime", "image", "codec", "slide", "stages", "cuda", "operators/tissue"},
    # With src/tiling the only one that knows runtime and slide both.
    "src/stages": {
        "public", "runtime", "image", "codec", "sink", "slide", "statistics", "spectrum", "operators", "config",
        "cuda", "operators/tissue"},  # networks may get tissue alone
    "src/networks": {"public", "runtime", "config", "cuda", "sink"},  # digests of files
    "src/ledger": {"public", "config", "output", "sink", "networks"},
    "src/sweep": {"public", "runtime", "config", "output", "ledger", "sink"},  # what a sweep computes must stay the same
    "src/compare": {"public", "config", "output", "ledger"},
    "src/report": {"public", "config", "output", "ledger", "sweep"},  # what a sweep's times tell
    "src/cli": {"public", "config", "output", "ledger", "synth", "sweep", "compare", "report"},
    # What Python calls.
    "python": {"public", "config", "runtime", "tiling", "cli", "ledger", "output"},
    "examples": {"public"},
    "fuzz": {"codec", "config", "ledger", "public", "slide", "cuda"},
}
# Tests and benchmarks look inside everything.
UNCHECKED = {"bench", "tests"}

SUFFIXES = {".hpp", ".cpp", ".h", ".c", ".cu", ".cuh", ".inl"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def folder_of(path):
    """The key of ALLOWED that a source belongs to, or None."""
    for depth in (3, 2, 1):
        key = "/".join(path.parts[:depth])
        if len(path.parts) > depth and key in ALLOWED:
            return key
    return None


def target_of(quote, name, modules):
    """What an include leads to: "public", a module, or None when it isn't the project's."""
    first = name.split("/")[0]
    if name in ("slidestream/error.hpp", "slidestream/trace.hpp"):
        return None  # everybody throws, and every stage is traced
    if first == "slidestream":
        return "public"
    if first == "cuda":
        return "cuda"
    if "/".join(name.split("/")[:2]) in modules:
        return "/".join(name.split("/")[:2])
    return first if first in modules and (quote == '"' or "/" in name) else None


def violations(root):
    modules = {key.removeprefix("src/") for key in ALLOWED if key.startswith("src/")}
    sources = sorted(
        path for top in ("include", "src", "cuda", "python", "examples", "fuzz", "bench", "tests")
        for path in (root / top).rglob("*") if path.suffix in SUFFIXES
    )
    for path in sources:
        relative = path.relative_to(root)
        if relative.parts[0] in UNCHECKED:
            continue
        folder = folder_of(relative)
        if folder is None:
            yield f"{relative}: in no folder that scripts/check-includes.py knows; add it to the table there"
            continue
        if folder == "src/operators" and len(relative.parts) > 3 and relative.parts[2] != "spectrum":
            yield f"{relative}: an operator's folder has a line of its own in scripts/check-includes.py"
            continue
        own = folder.removeprefix("src/") if folder.startswith("src/") else folder.split("/")[-1]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, name = match.groups()
            if ".." in name.split("/"):
                yield f"{relative}:{number}: includes {name}: name it from src/ or include/, without .."
                continue
            target = target_of(quote, name, modules)
            if target is not None and target != own and target != relative.parts[0] and target not in ALLOWED[folder]:
                allowed = ", ".join(sorted(ALLOWED[folder])) or "nothing else of the project"
                yield f"{relative}:{number}: includes {name}, but {folder} may use {allowed}"


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
