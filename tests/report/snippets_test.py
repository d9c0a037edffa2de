"""Runs the Python snippets of docs/using-results.md over a real run: `PIPELINE=path/to/pipeline snippets_test.py`."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from program_test import Case, run  # noqa: E402

# The distribution's Python has the distribution's packages.
PYTHON = "/usr/bin/python3"


def has_packages():
    found = subprocess.run([PYTHON, "-c", "import matplotlib, numpy, pandas"], capture_output=True, check=False)
    return found.returncode == 0


class Snippets(Case):
    @unittest.skipUnless(has_packages(), "needs pandas, NumPy and Matplotlib")
    def test_all_in_order(self):
        slides = self.folder / "slides"
        slides.mkdir()
        for seed in ("1", "2"):
            made = run("synth", "--out", slides / f"{seed}.svs", "--size", "1024x768", "--seed", seed)
            self.assertEqual(made.returncode, 0, made.stderr)
        (slides / "broken.svs").write_text("no slide")
        self.assertEqual(run(slides, "--out", self.folder / "results", "--maps", "npy").returncode, 1)
        text = (ROOT / "docs" / "using-results.md").read_text(encoding="utf-8")
        snippets = re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
        self.assertGreaterEqual(len(snippets), 5)
        done = subprocess.run([PYTHON, "-"], input="\n".join(snippets), capture_output=True, text=True, cwd=self.folder,
                              timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("broken.svs", done.stdout)
        self.assertRegex(done.stdout, r"the highest mean, \d+\.\d\d dB")
        self.assertTrue((self.folder / "distribution.png").stat().st_size > 1000)


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if program.result.skipped:
        print("SKIPPED: " + program.result.skipped[0][1])
    sys.exit(not program.result.wasSuccessful())
