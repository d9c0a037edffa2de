"""scripts/make-pictures.py over small slides: `PIPELINE=path/to/pipeline make_pictures_test.py`."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "report"))
from browser import find_browser  # noqa: E402

# The script's own, which has the distribution's packages.
PYTHON = "/usr/bin/python3"
# Width and height of the picture of colours, and how far the two scanners' panels are apart: as they are, and converted.
DIFFERENCES = """
import sys, numpy
from PIL import Image
pixels = numpy.asarray(Image.open(sys.argv[1])).astype(int)
print(pixels.shape[1], pixels.shape[0])
for top in 40, 470:
    print(numpy.abs(pixels[top:top + 390, 24:544] - pixels[top:top + 390, 568:1088]).mean())
"""


def lacking():
    """What isn't here, or None."""
    packages = subprocess.run([PYTHON, "-c", "import numpy, PIL"], capture_output=True, check=False)
    if packages.returncode != 0:
        return "NumPy and Pillow"
    return next((what for what, there in (("Chromium", find_browser()), ("vips", shutil.which("vips"))) if not there), None)


def make(*arguments):
    return subprocess.run([PYTHON, "-B", ROOT / "scripts" / "make-pictures.py", os.environ["PIPELINE"], *arguments],
                          capture_output=True, text=True, timeout=240, check=False)


@unittest.skipIf(lacking(), f"needs {lacking()}")
class Pictures(unittest.TestCase):
    def test_all_of_them(self):
        with tempfile.TemporaryDirectory() as folder:
            made = make("--out", folder, "--size", "1024x768", "--repeat", "1")
            self.assertEqual(made.returncode, 0, made.stderr)
            sizes = {}
            colours = subprocess.run([PYTHON, "-c", DIFFERENCES, pathlib.Path(folder) / "colours.jpg"], capture_output=True,
                                     text=True, check=True)
            width, height, before, after = map(float, colours.stdout.split())
            self.assertEqual((width, height), (1112, 884))
            self.assertGreater(before, 5)
            self.assertLess(after, 2)
            for file in pathlib.Path(folder).glob("*.png"):
                sizes[file.name] = struct.unpack(">II", file.read_bytes()[16:24])
                self.assertGreater(file.stat().st_size, 15_000, f"{file.name} is empty")
            self.assertEqual(sizes.pop("result.png"), (1656, 502))
            self.assertEqual(sizes.pop("report.png"), (1280, 1720))
            self.assertEqual(sizes.pop("writing.png"), (770, 602))
            # As wide as the page's window, twice as fine, and no more than the section.
            self.assertEqual(set(sizes), {"sweep.png", "timeline.png"})
            for name, window in ("sweep.png", 720), ("timeline.png", 880):
                width, height = sizes[name]
                self.assertTrue(1.8 * window < width <= 2 * window, sizes)
                self.assertTrue(400 < height < 1400, sizes)
            self.assertRegex(made.stdout, r"# Measured \S+ on .*1 slide, page cache warm")

    def test_a_picture_that_there_is_not(self):
        made = make("--only", "sweep,sweeps")
        self.assertEqual(made.returncode, 2)
        self.assertIn("sweeps: no such picture", made.stderr)


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if program.result.skipped:
        print("SKIPPED: " + program.result.skipped[0][1])
    sys.exit(not program.result.wasSuccessful())
