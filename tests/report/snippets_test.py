"""Runs the snippets of docs/using-results.md over a real run, and looks at maps with other readers of TIFF:
`PIPELINE=path/to/pipeline snippets_test.py [CLASS ...]`.

NAPARI_PYTHON names a Python that has napari, BIOFORMATS a bioformats_package.jar; without them their tests are skipped.
"""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from program_test import Case, run  # noqa: E402

# The distribution's Python has the distribution's packages.
PYTHON = "/usr/bin/python3"
NAPARI_PYTHON = os.environ.get("NAPARI_PYTHON", PYTHON)
BIOFORMATS = os.environ.get("BIOFORMATS")

# In place of napari's own loop: where the layers lie, by slide pixels, and what the window shows.
LOOK = """
import json
import napari

def look():
    viewer = napari.current_viewer()
    slide, mean = viewer.layers
    viewer.window.resize(900, 700)
    viewer.reset_view()
    shown = viewer.screenshot("napari.png", canvas_only=True)
    print("LAYERS " + json.dumps({
        "slide": [list(slide.data_to_world((at, at)))[-2:] for at in (-0.5, slide.data.shape[0] - 0.5)],
        "mean": [list(mean.data_to_world(at)) for at in ((0, 0), (3, 1))],
        "colours": len({tuple(one) for one in shown.reshape(-1, 4)[::7].tolist()})}))

napari.run = look
"""


@functools.cache
def lacks(python, *packages):
    if shutil.which(python) is None:
        return True
    found = subprocess.run([python, "-c", f"import {', '.join(packages)}"], capture_output=True, check=False)
    return found.returncode != 0


def snippets(kind):
    text = (ROOT / "docs" / "using-results.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.S | re.M)


class SnippetCase(Case):
    def analysed(self, size, maps):
        slides = self.folder / "slides"
        slides.mkdir()
        for seed in ("1", "2"):
            made = run("synth", "--out", slides / f"{seed}.svs", "--size", size, "--seed", seed)
            self.assertEqual(made.returncode, 0, made.stderr)
        (slides / "broken.svs").write_text("no slide")
        further = ("-s", "analysis.radial=true", "-s", "analysis.split=true")
        self.assertEqual(run(slides, "--out", self.folder / "results", "--maps", maps, *further).returncode, 1)

    def execute(self, command, text):
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=self.folder, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Python(SnippetCase):
    @unittest.skipIf(lacks(PYTHON, "pandas", "numpy", "matplotlib"), "needs pandas, NumPy and Matplotlib")
    def test_all_in_order(self):
        self.analysed("1024x768", "npy")
        found = snippets("python")
        self.assertGreaterEqual(len(found), 5)
        printed = self.execute([PYTHON, "-"], "\n".join(found))
        self.assertIn("broken.svs", printed)
        self.assertRegex(printed, r"the highest mean, \d+\.\d\d dB")
        self.assertTrue((self.folder / "distribution.png").stat().st_size > 1000)


class Napari(SnippetCase):
    @unittest.skipIf(lacks(NAPARI_PYTHON, "napari", "tifffile", "imagecodecs", "pandas", "numpy", "matplotlib"),
                     "needs napari, tifffile, imagecodecs, pandas and Matplotlib in one Python: NAPARI_PYTHON")
    @unittest.skipUnless(os.environ.get("DISPLAY") or shutil.which("xvfb-run"), "needs a display, or xvfb-run")
    def test_a_map_over_its_slide(self):
        self.analysed("2048x1536", "npy")
        found = snippets("python napari")
        self.assertEqual(len(found), 1)
        screen = [] if os.environ.get("DISPLAY") else ["xvfb-run", "-a"]
        printed = self.execute([*screen, NAPARI_PYTHON, "-"], "\n".join([LOOK, *snippets("python"), *found]))
        layers = json.loads(re.search("^LAYERS (.*)$", printed, re.M).group(1))
        # Both in the slide's pixels, of which the first one's middle is 0: the picture covers it, windows their middles.
        self.assertEqual(layers["slide"][0], [-0.5, -0.5])
        self.assertEqual(layers["slide"][1][0], 1535.5)
        self.assertEqual(layers["mean"], [[127.5, 127.5], [127.5 + 3 * 128, 127.5 + 128]])
        self.assertGreater(layers["colours"], 50, "an empty window?")


class Maps(SnippetCase):
    """What others read from a TIFF map."""

    def setUp(self):
        super().setUp()
        self.analysed("1024x768", "tiff")
        self.map = self.folder / "results" / "maps" / "1.tif"
        again = self.folder / "again"
        self.assertEqual(run(self.folder / "slides" / "1.svs", "--out", again, "--maps", "npy").returncode, 0)
        self.values = again / "maps" / "1.npy"

    @unittest.skipIf(lacks(PYTHON, "tifffile", "numpy"), "needs tifffile and NumPy")
    def test_tifffile(self):
        self.execute([PYTHON, "-"], f"""
import numpy, tifffile
with tifffile.TiffFile({str(self.map)!r}) as file:
    page, = file.pages
    values = numpy.load({str(self.values)!r})
    assert (file.series[0].axes, file.series[0].shape, file.series[0].dtype) == ("YXS", (5, 7, 2), "float32")
    assert (page.asarray() == values).all()
    tags = {{tag.name: tag.value for tag in page.tags.values()}}
    # 10,000 micrometres by 128 pixels of 0.25.
    assert tags["ResolutionUnit"] == 3, tags
    assert tags["XResolution"] == tags["YResolution"] == (625, 2), tags
    assert tags["SampleFormat"] in (3, (3, 3)) and tags["BitsPerSample"] == (32, 32), tags
    assert tags["PhotometricInterpretation"] == 1 and tags["ExtraSamples"] in (0, (0,)), tags
    assert tags["PlanarConfiguration"] == 1 and tags["Compression"] == 1, tags
""")

    @unittest.skipUnless(BIOFORMATS and shutil.which("java"), "needs Java, and BIOFORMATS, bioformats_package.jar's path")
    @unittest.skipIf(lacks(PYTHON, "tifffile", "numpy"), "needs tifffile and NumPy")
    def test_bio_formats(self):
        java = ["java", "-Djava.awt.headless=true", "-cp", BIOFORMATS]
        told = self.execute([*java, "loci.formats.tools.ImageInfo", "-nopix", "-omexml", "-no-upgrade", self.map], "")
        self.assertIn("Series count = 1", told)
        self.assertIn("Pixel type = float", told)
        self.assertRegex(told, r"SizeC = 2\b")
        for side in "XY":
            self.assertIn(f'PhysicalSize{side}="32.0" PhysicalSize{side}Unit="µm"', told)
        copy = self.folder / "copy.ome.tif"
        self.execute([*java, "loci.formats.tools.ImageConverter", "-no-upgrade", self.map, copy], "")
        self.execute([PYTHON, "-"], f"""
import numpy, tifffile
channels = tifffile.imread({str(copy)!r})
assert (numpy.moveaxis(channels, 0, -1) == numpy.load({str(self.values)!r})).all()
""")


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if program.result.skipped and program.result.testsRun == len(program.result.skipped):
        print("SKIPPED: " + program.result.skipped[0][1])
    sys.exit(not program.result.wasSuccessful())
