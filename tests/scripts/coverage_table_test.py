"""scripts/coverage_table.py over a made-up summary."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]


def file(name, lines, branches):
    kinds = {kind: dict(zip(("covered", "count"), pair)) for kind, pair in (("lines", lines), ("branches", branches))}
    return {"filename": str(name), "summary": kinds}


class Table(unittest.TestCase):
    def test_folders_are_summed(self):
        files = [file(ROOT / "src" / "slide" / "tiff" / "a.cpp", (90, 100), (3, 4)),
                 file(ROOT / "src" / "slide" / "b.cpp", (9, 20), (0, 4)),
                 file(ROOT / "cuda" / "jpeg" / "c.hpp", (1000, 1080), (0, 0)),
                 file(ROOT / "tests" / "d.cpp", (5, 5), (5, 5)), file("/usr/include/e.h", (1, 2), (1, 2))]
        with tempfile.TemporaryDirectory() as folder:
            summary = pathlib.Path(folder) / "summary.json"
            summary.write_text(json.dumps({"data": [{"files": files}]}), encoding="utf-8")
            table = subprocess.run([sys.executable, "-B", ROOT / "scripts" / "coverage_table.py", summary], capture_output=True,
                                   text=True, check=True).stdout
        self.assertEqual(table.splitlines()[2:], [
            "| cuda/jpeg | 1,080 | 92.6 % | 0 |  |",
            "| src/slide | 120 | 82.5 % | 8 | 37.5 % |",
            "| all | 1,200 | 91.6 % | 8 | 37.5 % |"])


if __name__ == "__main__":
    unittest.main()
