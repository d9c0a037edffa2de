#!/usr/bin/env python3
"""Writes src/output/case_folding.hpp: `make-case-folding.py > src/output/case_folding.hpp`.

The table is Unicode's full case folding (CaseFolding.txt, status C and F) of a code point's canonical decomposition, and
the decomposition of that: one form of names that file systems may take for the same. Hangul syllables aren't in it, as
arithmetic decomposes them. `--check FILE` tells whether FILE is what this Python would write; a Python with another
version of Unicode has another table."""

import sys
import unicodedata

HEAD = """#pragma once

#include <array>
#include <cstdint>
#include <string_view>

/// \\file
/// Unicode {version}'s full case folding (CaseFolding.txt, status C and F) and canonical decomposition, but for Hangul
/// syllables. scripts/make-case-folding.py writes it.

namespace slidestream {{

/// Each `step`-th code point of a range is folded to the one that is `by` away.
struct FoldedRange {{
  char32_t first;
  char32_t last;
  std::int32_t step;
  std::int32_t by;
}};

/// A code point that is folded to several.
struct FoldedLetter {{
  char32_t point;
  std::string_view to;  ///< UTF-8
}};

// clang-format off
"""


def folded():
    found = {}
    for point in range(0x110000):
        if 0xD800 <= point < 0xE000 or 0xAC00 <= point < 0xD7A4:
            continue
        apart = unicodedata.normalize("NFD", unicodedata.normalize("NFD", chr(point)).casefold())
        if apart != chr(point):
            found[point] = apart
    return found


def ranges(pairs):
    runs = []
    for point, to in pairs:
        if runs and runs[-1][3] == to - point and point - runs[-1][1] in (1, 2) and runs[-1][2] in (0, point - runs[-1][1]):
            runs[-1][1:3] = point, point - runs[-1][1]
        else:
            runs.append([point, point, 0, to - point])
    return [f"{{0x{first:x}, 0x{last:x}, {max(1, step)}, {by}}}" for first, last, step, by in runs]


def escaped(text):
    return "".join(c if c.isascii() else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in text)


def array(kind, name, entries, per_line):
    lines = [", ".join(entries[i:i + per_line]) for i in range(0, len(entries), per_line)]
    return f"inline constexpr std::array<{kind}, {len(entries)}> {name} = {{{{\n  " + ",\n  ".join(lines) + "\n}};\n"


def text():
    letters = folded()
    single = [(point, ord(to)) for point, to in letters.items() if len(to) == 1]
    several = [f'{{0x{point:x}, "{escaped(to)}"}}' for point, to in letters.items() if len(to) > 1]
    return (HEAD.format(version=unicodedata.unidata_version) + array("FoldedRange", "folded_ranges", ranges(single), 4) + "\n"
            + array("FoldedLetter", "folded_letters", several, 4) + "// clang-format on\n\n}  // namespace slidestream\n")


def main():
    if sys.argv[1:2] != ["--check"]:
        sys.stdout.write(text())
        return 0
    with open(sys.argv[2], encoding="utf-8") as file:
        return int(file.read() != text())


if __name__ == "__main__":
    sys.exit(main())
