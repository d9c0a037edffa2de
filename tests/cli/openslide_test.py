"""Slides that OpenSlide reads, from outside: `PIPELINE=path openslide_test.py [CLASS ...]`. OpenSlide 4, openslide-python and
tifffile are asked where they are (scripts/install-deps.sh --tests puts them into build/python)."""

import contextlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import quick_storage  # noqa: E402,F401
from time_limits import time_limit  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build" / "python" / "bin" / "python3"
# Packages of PyPI have a Python of their own.
if "OPENSLIDE_TEST" not in os.environ and PYTHON.exists():
    os.execve(PYTHON, [str(PYTHON), "-B", *sys.argv], {**os.environ, "OPENSLIDE_TEST": "1"})

try:
    import numpy
    import openslide_bin
    import openslide
    import tifffile
    LIBRARY = next(pathlib.Path(openslide_bin.__file__).parent.glob("libopenslide.so*"))
except ImportError:
    openslide = None

if openslide:
    import openslide_files

PIPELINE = os.environ["PIPELINE"]
# Files are cut at every third place, or at all where SLIDESTREAM_TEST_WIDE is set.
STEP = 1 if "SLIDESTREAM_TEST_WIDE" in os.environ else 3


class Case(unittest.TestCase):
    def setUp(self):
        if openslide is None:
            self.skipTest("SKIPPED: OpenSlide 4 isn't there")
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))

    def run_with(self, library, *arguments, **environment):
        """The program where SLIDESTREAM_OPENSLIDE names a library; None: it isn't set."""
        inherited = {name: value for name, value in os.environ.items() if name != "SLIDESTREAM_OPENSLIDE"}
        named = {} if library is None else {"SLIDESTREAM_OPENSLIDE": str(library)}
        return subprocess.run([PIPELINE, *map(str, arguments)], capture_output=True, text=True, timeout=time_limit(200),
                              env={**inherited, "LC_ALL": "C.UTF-8", "TERM": "dumb", **named, **environment},
                              stdin=subprocess.DEVNULL, check=False)

    def pipeline(self, *arguments, **environment):
        return self.run_with(LIBRARY, *arguments, **environment)

    def assertDone(self, result):
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result

    def assertRefused(self, result, *words):
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def info(self, path, **options):
        return json.loads(self.assertDone(self.pipeline("info", "--json", path, **options)).stdout)

    def czi(self, name="slide.czi", size=(1200, 900), **options):
        path = self.folder / name
        openslide_files.write_czi_pyramid(path, openslide_files.picture(*size), **options)
        return path

    def slides(self):
        """One of each kind that can be written."""
        picture = openslide_files.picture
        self.czi(without=((1, 1), (3, 2)))
        openslide_files.write_philips(self.folder / "philips.tiff", picture(2048, 1536))
        openslide_files.write_trestle(self.folder / "trestle.tif", picture(1200, 900))
        openslide_files.write_leica(self.folder / "leica.scn", picture(600, 500), picture(200, 200))
        openslide_files.write_ndpi(self.folder / "hamamatsu.ndpi", picture(1024, 768))
        openslide_files.write_mirax(self.folder / "mirax.mrxs", picture(1300, 1000), without=((1, 1), (2, 2)))
        openslide_files.write_ventana(self.folder / "ventana.bif", picture(1024, 768))
        return {"zeiss": self.folder / "slide.czi", "philips": self.folder / "philips.tiff",
                "trestle": self.folder / "trestle.tif", "leica": self.folder / "leica.scn",
                "mirax": self.folder / "mirax.mrxs", "hamamatsu": self.folder / "hamamatsu.ndpi", "ventana": self.folder / "ventana.bif"}

    def expected(self, path, level):
        """The pixels of a level by openslide-python, over the slide's background."""
        with openslide.OpenSlide(path) as slide:
            self.assertEqual(slide.level_downsamples[level], 2**level)
            read = numpy.asarray(slide.read_region((0, 0), level, slide.level_dimensions[level]))
            colour = slide.properties.get("openslide.background-color", "FFFFFF")
        self.assertTrue(numpy.isin(read[..., 3], (0, 255)).all())
        return numpy.where(read[..., 3:] == 0, numpy.frombuffer(bytes.fromhex(colour), numpy.uint8), read[..., :3])

    def converted(self, path, level):
        out = self.folder / "level.ome.tif"
        out.unlink(missing_ok=True)
        self.assertDone(self.pipeline("convert", path, out, "--compression", "none", "--level", level))
        with openslide.OpenSlide(out) as slide:
            return numpy.asarray(slide.read_region((0, 0), 0, slide.level_dimensions[0]).convert("RGB"))


class Pixels(Case):
    def test_whole_levels_are_those_of_openslide_python(self):
        gaps = set()
        for vendor, path in self.slides().items():
            described = self.info(path)
            self.assertEqual((described["format"], described["container"]), (vendor, "OpenSlide"))
            for level in range(len(described["levels"])):
                with self.subTest(vendor=vendor, level=level):
                    expected = self.expected(path, level)
                    self.assertTrue((self.converted(path, level) == expected).all())
                    if (expected == 255).all(-1).any():
                        gaps.add(vendor)
        self.assertLessEqual({"zeiss", "leica"}, gaps)

    def test_places_without_pixels_have_the_slide_s_own_background(self):
        path = self.folder / "mirax.mrxs"
        openslide_files.write_mirax(path, openslide_files.picture(1300, 1000), without=((1, 1),), fill=0xD0F0E8)
        gap = self.converted(path, 0)[260:470, 260:470]
        self.assertTrue((gap == (0xE8, 0xF0, 0xD0)).all())

    def test_tiles_of_a_level_between_pixels_begin_at_the_nearest_one(self):
        path = self.folder / "odd.ndpi"
        openslide_files.write_ndpi(path, openslide_files.picture(2219, 700))
        level = self.info(path)["levels"][1]
        self.assertEqual((level["width"], level["tile_width"], level["rows"]), (1110, 1024, 1))
        with openslide.OpenSlide(path) as slide:
            factor = slide.level_downsamples[1]
            self.assertNotEqual(factor, round(factor))
            expected = numpy.concatenate(
                [numpy.asarray(slide.read_region((round(x * factor), 0), 1, (width, 350)))
                 for x, width in ((0, 1024), (1024, 86))], 1)
        # At the level's edge OpenSlide interpolates with what isn't there; openslide-python divides by alpha.
        whole = expected[..., 3] == 255
        self.assertGreater(whole.mean(), 0.99)
        self.assertTrue((self.converted(path, 1) == expected[..., :3])[whole].all())

    def test_a_written_picture_comes_back(self):
        path = self.czi()
        self.assertTrue((self.converted(path, 0) == openslide_files.picture(1200, 900)).all())

    def test_places_without_pixels_are_white(self):
        gap = self.czi("gap.czi", without=((1, 1),))
        self.assertTrue((self.converted(gap, 0)[300:600, 300:600] == 255).all())

    def test_operators_see_the_pixels_of_the_same_picture_in_a_tiff(self):
        slide = self.czi(without=((1, 1),))
        flat = self.folder / "flat.tif"
        import tifffile
        tifffile.imwrite(flat, self.expected(slide, 0), tile=(512, 512), photometric="rgb", metadata=None)
        numbers = []
        for path in slide, flat:
            for threads in 1, 5:
                out = self.folder / f"{path.stem}-{threads}"
                self.assertDone(self.pipeline(path, "--operators", "spectrum", "--out", out, "-s", "analysis.window=64",
                                         "-s", f"pipeline.threads={threads}"))
                corpus = json.loads((out / "corpus.json").read_text())
                numbers.append((corpus["totals"]["windows"], corpus["histogram"]))
        self.assertGreater(numbers[0][0], 0)
        self.assertEqual(numbers.count(numbers[0]), 4)


class Library(Case):
    def test_what_reads_a_slide_is_said_once_per_run_and_by_info(self):
        first, second = self.czi(), self.czi("second.czi")
        result = self.assertDone(self.pipeline(first, second, "--operators", "spectrum", "--out", self.folder / "out", "-s",
                                          "analysis.window=64"))
        self.assertEqual(result.stderr.count(f"is read by OpenSlide 4.0.1, {LIBRARY}"), 1, result.stderr)
        self.assertIn(f"read by        OpenSlide 4.0.1, {LIBRARY}", self.pipeline("info", first).stdout)
        self.assertEqual(self.info(first)["library"], f"OpenSlide 4.0.1, {LIBRARY}")

    def test_where_it_is_found(self):
        slide = self.czi()
        out = self.folder / "out"
        def done(library, *settings, **environment):
            shutil.rmtree(out, ignore_errors=True)
            return self.run_with(library, slide, "--operators", "spectrum", "--out", out, "-s", "analysis.window=64",
                                 *settings, **environment)
        self.assertDone(done(LIBRARY))
        self.assertDone(done(LIBRARY.parent))
        self.assertDone(done(None, "-s", f"input.openslide={LIBRARY}"))
        self.assertDone(done("/none.so", "-s", f"input.openslide={LIBRARY.parent}"))
        # Python's package is the last place: only where the system has no library.
        if not any(pathlib.Path("/usr/lib").rglob("libopenslide.so.*")):
            path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
            self.assertDone(done(None, PATH=path))

    def test_a_library_beside_the_working_directory_is_not_taken(self):
        slide = self.czi()
        trap = self.folder / "openslide_bin"
        trap.mkdir()
        (trap / "__init__.py").write_text("raise SystemExit('loaded')")
        (trap / "libopenslide.so.1").write_bytes(b"no library")
        result = subprocess.run([PIPELINE, "info", str(slide)], capture_output=True, text=True, timeout=time_limit(60),
                                cwd=self.folder, check=False,
                                env={**os.environ, "SLIDESTREAM_OPENSLIDE": "", "PYTHONPATH": str(self.folder)})
        self.assertNotIn(str(trap), result.stdout + result.stderr)

    def test_never_refuses_with_the_key(self):
        out = self.folder / "out"
        for vendor, path in self.slides().items():
            with self.subTest(vendor):
                result = self.pipeline(path, "--operators", "spectrum", "--out", out, "-s", "input.openslide=never")
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr, r'which OpenSlide reads: input\.openslide is "never"')
                shutil.rmtree(out)

    def test_a_library_that_is_none_is_one_line(self):
        slide = self.czi()
        other = next(pathlib.Path("/lib").rglob("libz.so.1"))
        cut = self.folder / "libopenslide.so.1"
        cut.write_bytes(LIBRARY.read_bytes()[:5000])
        text = self.folder / "text.so"
        text.write_text("no library")
        empty = self.folder / "empty"
        empty.mkdir()
        for library, word in ((other, "isn't OpenSlide: it has no openslide_get_version"), (cut, "it is cut off"),
                              (text, "SLIDESTREAM_OPENSLIDE: OpenSlide can't be loaded"),
                              (self.folder / "none.so", "SLIDESTREAM_OPENSLIDE: OpenSlide can't be loaded"),
                              (empty, "holds no libopenslide.so"), (self.folder, "it is cut off")):
            with self.subTest(library=library.name):
                self.assertRefused(self.run_with(library, "info", slide), f"{slide}: is Zeiss CZI", word)

    def test_other_slides_want_no_library(self):
        slide = self.folder / "slide.svs"
        self.assertDone(self.pipeline("synth", "--out", slide, "--size", "700x530"))
        self.assertDone(self.run_with("/none.so", "info", slide))


class Inputs(Case):
    def test_folders_are_searched_for_them(self):
        slides = self.slides()
        # The data of a MIRAX slide are no slides.
        (self.folder / "m.mrxs").write_bytes(b"\xff\xd8\xff")
        (self.folder / "m").mkdir()
        (self.folder / "m" / "Slidedat.ini").write_text("[GENERAL]\n")
        shutil.copy(slides["zeiss"], self.folder / "m" / "inside.czi")
        out = self.folder / "out"
        result = self.pipeline(self.folder, "--operators", "tissue", "--out", out, "-s", "input.mpp=0.5")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(json.loads((out / "corpus.json").read_text())["totals"]["slides_done"], len(slides))
        self.assertRegex((out / "failures.csv").read_text(), r"m\.mrxs.*is 3DHISTECH MIRAX, which OpenSlide reads: OpenSlide")
        self.assertNotIn("inside", (out / "failures.csv").read_text() + (out / "slides.csv").read_text())

    def test_a_run_resumes(self):
        slide = self.czi()
        out = self.folder / "out"
        arguments = (slide, "--operators", "spectrum", "--out", out, "-s", "analysis.window=64")
        self.assertDone(self.pipeline(*arguments))
        self.assertIn("skipped as done: 1 of 1 slides", self.assertDone(self.pipeline(*arguments)).stderr)
        self.czi(size=(1200, 901))
        self.assertIn("has changed since it was done", self.pipeline(*arguments).stderr)

    def test_a_run_that_resumes_looks_at_all_files_of_a_mirax_slide(self):
        path = self.folder / "slide.mrxs"
        openslide_files.write_mirax(path, openslide_files.picture(1300, 1000))
        size = sum(file.stat().st_size for file in (path, *(self.folder / "slide").iterdir()))
        self.assertEqual(self.info(path)["file_size"], size)
        out = self.folder / "out"
        arguments = (path, "--operators", "spectrum", "--out", out, "-s", "analysis.window=64")
        self.assertDone(self.pipeline(*arguments))
        self.assertIn("skipped as done: 1 of 1 slides", self.assertDone(self.pipeline(*arguments)).stderr)
        data = self.folder / "slide" / "Data0000.dat"
        data.write_bytes(data.read_bytes() + b"more")
        self.assertIn("has changed since it was done", self.pipeline(*arguments).stderr)

    def test_memory_is_forecast(self):
        slide = self.czi()
        forecast = self.assertDone(self.pipeline(slide, "--operators", "spectrum", "--dry-run", "-s", "analysis.window=64"))
        self.assertIn("openslide", forecast.stdout + forecast.stderr)

    def test_info_has_what_the_file_says(self):
        slides = self.slides()
        self.assertAlmostEqual(self.info(slides["zeiss"])["mpp"], 0.25)
        self.assertEqual(self.info(slides["trestle"])["magnification"], 10)
        leica = self.info(slides["leica"])
        self.assertEqual((leica["levels"][0]["width"], leica["levels"][0]["height"]), (1000, 1000))
        self.assertEqual((leica["associated"], leica["magnification"]), (["macro"], 20))
        self.assertEqual(leica["levels"][0]["codec"], "openslide")


class Untrusted(Case):
    def test_a_damaged_file_is_one_line_with_the_cause(self):
        for vendor, path in self.slides().items():
            whole = path.read_bytes()
            for part in range(1, 20, STEP):
                with self.subTest(vendor=vendor, part=part):
                    path.write_bytes(whole[:len(whole) * part // 20])
                    result = self.pipeline("info", path)
                    self.assertIn(result.returncode, (0, 1))
                    if result.returncode == 1:
                        self.assertRefused(result, f"{path}: ")
            path.write_bytes(whole)

    def test_a_damaged_file_of_several_is_one_line_with_the_cause(self):
        path = self.folder / "slide.mrxs"
        openslide_files.write_mirax(path, openslide_files.picture(1300, 1000))
        out = self.folder / "out"
        for file in sorted((self.folder / "slide").iterdir()):
            whole = file.read_bytes()
            for part in range(0, 10, STEP):
                with self.subTest(file=file.name, part=part):
                    file.write_bytes(whole[:len(whole) * part // 10])
                    result = self.pipeline(path, "--operators", "spectrum", "--out", out, "-q", "-s", "analysis.window=64")
                    self.assertEqual(result.returncode, 1, result.stderr)
                    lines = [line for line in result.stderr.splitlines() if str(path) in line]
                    self.assertEqual(len(lines), 1, result.stderr)
                    self.assertRegex(lines[0], r"slide\.mrxs: .*OpenSlide 4\.0\.1: ")
                    shutil.rmtree(out)
            file.write_bytes(whole)

    def test_a_bad_tile_fails_its_slide_or_is_white(self):
        size = (2200, 1500)
        slide = self.czi(size=size)
        content = bytearray(slide.read_bytes())
        # The second subblock of level 0: OpenSlide reads its header when it reads the tile.
        at = content.index(b"ZISRAWSUBBLOCK", content.index(b"ZISRAWSUBBLOCK") + 1)
        content[at:at + 14] = b"ZISRAWDAMAGED!"
        slide.write_bytes(content)
        out = self.folder / "out"
        arguments = (slide, "--operators", "spectrum", "--out", out, "-s", "analysis.window=64")
        result = self.pipeline(*arguments)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"slide\.czi: .*tile 0 .* is bad: OpenSlide 4\.0\.1: ")
        shutil.rmtree(out)
        self.assertDone(self.pipeline(*arguments, "-s", "decode.on_bad_tile=white"))
        self.assertEqual(json.loads((out / "corpus.json").read_text())["totals"]["bad_tiles"], 1)
        white = self.folder / "white.ome.tif"
        self.assertDone(self.pipeline("convert", slide, white, "--compression", "none", "-s", "decode.on_bad_tile=white"))
        with openslide.OpenSlide(white) as image:
            pixels = numpy.asarray(image.read_region((0, 0), 0, size).convert("RGB"))
        written = openslide_files.picture(*size).copy()
        written[:1024, :1024] = 255
        self.assertTrue((pixels == written).all())

    def test_other_files_keep_their_reader_s_words(self):
        text = self.folder / "text.svs"
        text.write_text("no slide")
        self.assertRefused(self.pipeline("info", text), "has no TIFF header")
        slide = self.folder / "slide.svs"
        self.assertDone(self.pipeline("synth", "--out", slide, "--size", "700x530"))
        content = slide.read_bytes()
        for part in range(1, 20, STEP):
            slide.write_bytes(content[:len(content) * part // 20])
            results = [self.run_with(library, "info", slide) for library in (LIBRARY, "/none.so")]
            self.assertEqual(results[0].stderr, results[1].stderr)
            self.assertNotIn("OpenSlide", results[0].stderr)


class Contradictions(Case):
    """TIFF that OpenSlide reads by its tags alone."""

    def written(self):
        for write, name, size in ((openslide_files.write_philips, "philips.tiff", (1024, 1024)),
                                  (openslide_files.write_trestle, "trestle.tif", (700, 600))):
            path = self.folder / name
            write(path, openslide_files.picture(*size))
            yield path

    def with_tag(self, path, level, tag, value):
        """Overwrites the number of a tag."""
        with tifffile.TiffFile(path, mode="r+") as file:
            file.pages[level].tags[tag].overwrite(value)

    def test_an_orientation_is_refused(self):
        for path in self.written():
            with self.subTest(path.name):
                self.assertDone(self.pipeline("info", path))
                # In the place of XResolution.
                content = bytearray(path.read_bytes())
                at = content.index(struct.pack("<HHI", 282, 5, 1))
                content[at:at + 12] = struct.pack("<HHIHH", 274, 3, 1, 3, 0)
                path.write_bytes(content)
                self.assertRefused(self.pipeline("info", path),
                                   f"{path}: level 0: Orientation 3 isn't applied by OpenSlide, which reads this file")

    def test_a_tag_that_its_tiles_contradict_is_refused(self):
        for path in self.written():
            with self.subTest(path.name):
                with tifffile.TiffFile(path) as file:
                    last = len(file.pages) - 1
                self.with_tag(path, last, "PhotometricInterpretation", 2)
                self.assertRefused(self.pipeline("info", path), f"{path}: level {last}: tile 0 is YCbCr by its markers",
                                   "OpenSlide, which reads this file, follows PhotometricInterpretation 2 RGB")


class Levels(Case):
    """TIFF of which OpenSlide takes each tiled directory for a level."""

    def written(self, pages):
        """Both kinds, with these pages of (pixels, description) behind level 0 of 1024 x 1024 pixels."""
        for name, write in (("philips.tiff", openslide_files.write_philips_pages),
                            ("trestle.tif", openslide_files.write_trestle_pages)):
            path = self.folder / name
            write(path, [(openslide_files.picture(1024, 1024), None), *pages])
            with openslide.OpenSlide(path) as slide:
                self.assertEqual(slide.level_count, 1 + len(pages))
            yield path

    @staticmethod
    def label(width, height):
        pixels = numpy.full((height, width, 3), 245, numpy.uint8)
        for top in range(20, height - 20, 40):
            pixels[top:top + 12, 20:width - 20:16] = 0
        return pixels

    def widths(self, path, line):
        result = self.assertDone(self.pipeline("info", "--json", path))
        self.assertEqual([text for text in result.stderr.splitlines() if "no level" in text],
                         [f"warning: {path}: {line}"] if line else [], result.stderr)
        described = json.loads(result.stdout)
        self.assertEqual(len(described["associated"]), 1 if line else 0)
        return [level["width"] for level in described["levels"]]

    def test_a_label_is_no_level(self):
        small = openslide_files.picture(1024, 1024)[::4, ::4]
        for path in self.written([(self.label(512, 512), "Label"), (small, None)]):
            with self.subTest(path.name):
                self.assertEqual(self.widths(path, "the image of 512 x 512 pixels isn't like the slide: it is no level"),
                                 [1024, 256])
                # Level 1 is the library's level 2.
                with openslide.OpenSlide(path) as slide:
                    expected = numpy.asarray(slide.read_region((0, 0), 2, (256, 256)).convert("RGB"))
                self.assertTrue((self.converted(path, 1) == expected).all())

    def test_an_image_of_another_shape_is_no_level(self):
        # Of Philips' images OpenSlide takes the part that has the slide's shape.
        lines = "256 x 256 pixels isn't like the slide", "256 x 512 pixels hasn't the size of a level"
        for path, line in zip(self.written([(self.label(256, 512), None)]), lines):
            with self.subTest(path.name):
                self.assertEqual(self.widths(path, f"the image of {line}: it is no level"), [1024])

    def test_levels_that_show_the_slide_stay(self):
        pixels = openslide_files.picture(1024, 1024)
        for path in self.written([(pixels[::2, ::2], "Label"), (pixels[::4, ::4], None)]):
            with self.subTest(path.name):
                self.assertEqual(self.widths(path, ""), [1024, 512, 256])


class Check(Case):
    """`info --check`."""

    def slide(self, name, *options):
        path = self.folder / name
        self.assertDone(self.run_with(None, "synth", "--out", path, "--size", "1000x700", "--tile", "256", *options))
        return path

    def test_both_agree(self):
        for name, options in (("jpeg.svs", ["--codec", "jpeg420"]), ("rgb.svs", ["--codec", "rgb"]),
                              ("jpeg2000.svs", ["--codec", "jpeg2000"])):
            with self.subTest(name):
                path = self.slide(name, *options)
                self.assertRegex(self.assertDone(self.pipeline("info", "--check", path)).stdout,
                                 rf"^{path}: agrees with OpenSlide 4\.[0-9.]+: \d levels, (mpp, )?100 regions\n$")

    def test_a_difference_gives_a_line_and_a_status(self):
        good, path = self.slide("a.svs"), self.folder / "b.tif"
        # What OpenSlide reads by its tags, and OME-XML says otherwise.
        xml = ('<OME><Image><Pixels SizeX="512" SizeY="512" PhysicalSizeX="0.25" PhysicalSizeY="0.25">'
               '<TiffData IFD="0"/></Pixels></Image></OME>')
        tifffile.imwrite(path, openslide_files.picture(512, 512), tile=(256, 256), photometric="rgb", metadata=None,
                         resolution=(20000, 20000), resolutionunit="CENTIMETER", description=xml)
        result = self.pipeline("info", "--check", path, good)
        self.assertEqual(result.returncode, 1, result.stderr)
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], rf"^{path}: differs from OpenSlide 4\S+: mpp is 0.25 here, 0.5 there$")
        self.assertIn("agrees with", lines[1])
        self.assertEqual(len(lines), 2)

    def test_without_openslide(self):
        result = self.run_with("/nowhere/libopenslide.so", "info", "--check", self.slide("a.svs"))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)


if __name__ == "__main__":
    unittest.main()
