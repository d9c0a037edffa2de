#!/usr/bin/env python3
"""A table of lines and branches that tests run, by folder: `coverage_table.py SUMMARY.json`, of what `llvm-cov export
-summary-only` wrote. Sources of this repository count, but for tests."""

import collections
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def folder_of(name):
    """Below src/ and cuda/ the first folder, else None."""
    path = pathlib.Path(name)
    if not path.is_relative_to(ROOT):
        return None
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:-1][:2]) if parts[0] in ("src", "cuda") else None


def share(covered, count):
    return f"{100 * covered / count:.1f} %" if count else ""


def main():
    sums = collections.defaultdict(lambda: [0] * 4)
    for file in json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))["data"][0]["files"]:
        folder = folder_of(file["filename"])
        if folder is None:
            continue
        figures = [file["summary"][kind][what] for kind in ("lines", "branches") for what in ("covered", "count")]
        for name in (folder, "all"):
            sums[name] = [a + b for a, b in zip(sums[name], figures)]
    print("| folder | lines | run | branches | taken |\n|---|---|---|---|---|")
    for name in sorted(sums, key=lambda name: (name == "all", name)):
        run, lines, taken, branches = sums[name]
        print(f"| {name} | {lines:,} | {share(run, lines)} | {branches:,} | {share(taken, branches)} |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} SUMMARY.json")
    main()
