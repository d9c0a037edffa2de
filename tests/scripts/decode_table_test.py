"""bench/decode_table.py with programs that are made up: which rows it makes, and what it says of them."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench" / "decode_table.py"
BENCH = """#!/bin/sh
tiles= report= output=
while [ $# -gt 0 ]; do
  case $1 in --json) report=$2 ;; --format) output=$2 ;; --tiles) tiles=$2 ;; esac
  shift
done
rate=160
if [ "$output" = both ]; then rate=$BOTH; fi
echo "[{\\"tile\\": [256, 256], \\"mean_bytes\\": 9500, \\"gpx_per_s\\": $rate, \\"wrong\\": $WRONG, \\"flagged\\": 0,
  \\"tiles\\": $tiles}]" >"$report"
echo "$(basename "$0") $tiles" >>"$CALLS"
"""


class DecodeTable(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in (("pipeline", "#!/bin/sh\n"), ("jpeg_gpu_bench", BENCH), ("jpeg2000_gpu_bench", BENCH)):
            (self.folder / name).write_text(text, encoding="utf-8")
            (self.folder / name).chmod(0o755)

    def run_script(self, *arguments, both=150, wrong=0):
        environment = {**os.environ, "BOTH": str(both), "WRONG": str(wrong), "CALLS": str(self.folder / "calls")}
        return subprocess.run([sys.executable, "-B", SCRIPT, "--pipeline", self.folder / "pipeline", "--bench", self.folder,
                               *arguments], capture_output=True, text=True, env=environment, check=False)

    def test_a_row_for_each_combination(self):
        done = self.run_script("--sides", "256,512", "--out", self.folder / "table.md", "cmu.svs")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 2 + 6 * 2 + 1)
        self.assertIn("| JPEG | RGB | 256 x 256 | 9.5 KB | 160 | 160 | 150 |  |", lines)
        self.assertTrue(lines[-1].startswith("| JPEG | cmu | "))
        self.assertEqual((self.folder / "table.md").read_text(encoding="utf-8"), done.stdout)
        calls = (self.folder / "calls").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(calls), 3 * 13)
        self.assertEqual(calls.count("jpeg2000_gpu_bench 43348"), 3)
        self.assertEqual(calls.count("jpeg_gpu_bench 0"), 3 * 11)

    def test_a_cliff_is_marked(self):
        done = self.run_script("--codecs", "rgb", "--sides", "256", both=34)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| 160 | 160 | 34 | cliff |", done.stdout)

    def test_wrong_tiles_are_a_failure(self):
        done = self.run_script("--codecs", "grey", "--sides", "256", wrong=2)
        self.assertEqual(done.returncode, 1)
        self.assertIn("wrong or flagged tiles: grey_256.svs to luminance", done.stderr)
        self.assertEqual(self.run_script("--codecs", "gray").returncode, 2)


if __name__ == "__main__":
    unittest.main()
