"""DICOM slides from outside: `PIPELINE=path dicom_test.py [CLASS ...]`. What OpenSlide and wsidicomizer say is asked where
they are (scripts/install-deps.sh --tests puts them into build/python)."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import dicom_file

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import quick_storage  # noqa: E402,F401
from time_limits import time_limit  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build" / "python" / "bin" / "python3"
# Packages of PyPI have a Python of their own.
if "DICOM_TEST" not in os.environ and PYTHON.exists():
    os.execve(PYTHON, [str(PYTHON), "-B", *sys.argv], {**os.environ, "DICOM_TEST": "1"})

try:
    import numpy
    import openslide_bin  # noqa: F401
    import openslide
except ImportError:
    openslide = None

PIPELINE = os.environ["PIPELINE"]
CHECK_PRIVACY = ROOT / "scripts" / "check-privacy.py"
DATA = pathlib.Path(os.environ.get("SLIDESTREAM_TEST_DATA", ROOT.parent / "shared")) / "data"


def run(*arguments, **options):
    return subprocess.run([PIPELINE, *map(str, arguments)], capture_output=True, text=True, timeout=time_limit(200),
                          env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "dumb"}, stdin=subprocess.DEVNULL, check=False,
                          **options)


class Case(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))

    def assertDone(self, result):
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result

    def series(self, codec="jpeg420", size="700x530", **options):
        """A synthetic slide, and the same as DICOM."""
        slide = self.folder / f"{codec}.svs"
        self.assertDone(run("synth", "--out", slide, "--size", size, "--codec", codec, "--tile", "128"))
        return slide, dicom_file.write_series(slide, self.folder / codec, **options)


class Results(Case):
    def test_results_are_those_of_the_same_tiles_in_a_tiff(self):
        for codec in ("jpeg420", "rgb", "jpeg2000", "none"):
            with self.subTest(codec):
                slide, levels = self.series(codec)
                numbers = []
                for name, path in ("tiff", slide), ("dicom", levels[-1]):
                    out = self.folder / f"out-{codec}-{name}"
                    self.assertDone(run(path, "--operators", "spectrum,tissue", "--out", out, "--set",
                                        "analysis.window=64", "--set", "input.mpp=0.25"))
                    corpus = json.loads((out / "corpus.json").read_text())
                    totals = {key: value for key, value in corpus["totals"].items() if key != "file_bytes"}
                    self.assertGreater(totals["windows"], 0)
                    numbers.append((totals, corpus["histogram"]))
                self.assertEqual(*numbers)

    def test_converted_images_have_the_same_pixels(self):
        slide, levels = self.series("jpeg420")
        made = []
        for path in (slide, levels[0]):
            out = self.folder / f"{path.stem}.ome.tif"
            self.assertDone(run("convert", path, out, "--compression", "none"))
            described = next(dicom_file.directories(out.read_bytes()))
            content = out.read_bytes()
            made.append([content[at:at + length] for at, length in zip(described[324], described[325])])
        self.assertEqual(*made)

    def test_tiles_are_copied(self):
        slide, levels = self.series("jpeg420")
        copies = []
        for path in (slide, levels[0]):
            out = self.folder / f"copy-{path.stem}.ome.tif"
            self.assertDone(run("convert", path, out, "--compression", "copy"))
            raw = self.folder / f"raw-{path.stem}.ome.tif"
            self.assertDone(run("convert", out, raw, "--compression", "none"))
            content = raw.read_bytes()
            described = next(dicom_file.directories(content))
            copies.append([content[at:at + length] for at, length in zip(described[324], described[325])])
        self.assertEqual(*copies)

    def test_high_throughput_jpeg_2000_without_loss_has_the_pixels_that_were_coded(self):
        encoder = shutil.which("ojph_compress")
        if encoder is None:
            self.skipTest("SKIPPED: ojph_compress isn't there")
        slide = self.folder / "plain.svs"
        self.assertDone(run("synth", "--out", slide, "--size", "300x200", "--codec", "none", "--tile", "128", "--levels", "1"))
        tags = next(dicom_file.directories(slide.read_bytes()))
        plain = [slide.read_bytes()[at:at + length] for at, length in zip(tags[324], tags[325])]
        # Without a component transform the samples are what the label says, as those without compression are.
        for transform, photometric in ("true", "RGB"), ("false", "RGB"), ("false", "YBR_FULL"):
            coded = []
            for tile in plain:
                (self.folder / "tile.ppm").write_bytes(b"P6\n128 128\n255\n" + tile)
                subprocess.run([encoder, "-i", "tile.ppm", "-o", "tile.j2c", "-reversible", "true", "-colour_trans", transform],
                               cwd=self.folder, check=True, capture_output=True)
                coded.append((self.folder / "tile.j2c").read_bytes())
            made = []
            for name, tiles, syntax in ("plain", plain, dicom_file.EXPLICIT), ("coded", coded, "1.2.840.10008.1.2.4.201"):
                source = self.folder / f"{name}-{transform}-{photometric}" / "level.dcm"
                source.parent.mkdir()
                source.write_bytes(dicom_file.dicom(tiles, 300, 200, 128, syntax, photometric))
                out = source.with_suffix(".ome.tif")
                self.assertDone(run("convert", source, out, "--compression", "none"))
                content = out.read_bytes()
                described = next(dicom_file.directories(content))
                made.append([content[at:at + length] for at, length in zip(described[324], described[325])])
            with self.subTest(transform=transform, photometric=photometric):
                self.assertEqual(*made)


class Inputs(Case):
    def test_info_says_what_the_series_is(self):
        _, levels = self.series()
        for path in levels:
            found = json.loads(self.assertDone(run("info", "--json", path)).stdout)
            self.assertEqual((found["format"], found["container"], len(found["levels"])), ("dicom", "DICOM", len(levels)))
            self.assertAlmostEqual(found["mpp"], 0.25)
            self.assertEqual(found["magnification"], 40.0)

    def test_a_folder_of_several_series_has_as_many_slides(self):
        slide, first = self.series()
        folder = self.folder / "mixed"
        dicom_file.write_series(slide, folder, series="1.2.3")
        for path in dicom_file.write_series(slide, self.folder / "other", series="1.2.4"):
            # Without a suffix, too.
            path.rename(folder / f"other-{path.stem}")
        (folder / "slide.svs").write_bytes(slide.read_bytes())
        (folder / "notes.txt").write_text("no slide")
        out = self.folder / "out"
        self.assertDone(run(folder, "--out", out, "--operators", "tissue"))
        self.assertEqual(json.loads((out / "corpus.json").read_text())["totals"]["slides_done"], 3)
        # Each file of a series names the same slide.
        result = self.assertDone(run(*first, "--dry-run"))
        self.assertIn("counted once", result.stderr)

    def test_files_of_other_classes_beside_a_slide_are_passed_over(self):
        _, levels = self.series()
        folder = levels[0].parent
        for number, (name, uid) in enumerate((("ann", "1.2.840.10008.5.1.4.1.1.91.1"), ("seg", "1.2.840.10008.5.1.4.1.1.66.4"))):
            (folder / f"{name}.dcm").write_bytes(dicom_file.dicom(
                [bytes(64)], 8, 8, 8, dicom_file.EXPLICIT, "MONOCHROME2", samples=1, series=f"1.2.9{number}",
                instance=f"1.2.9{number}.1", more={0x00080016: ("UI", uid)}))
        out = self.folder / "out"
        result = self.assertDone(run(folder, "--out", out, "--operators", "tissue"))
        self.assertIn(f"{folder / 'ann.dcm'}: is no image of a slide: it is passed over, as is 1 more of its folder",
                      result.stderr)
        self.assertEqual(json.loads((out / "corpus.json").read_text())["totals"]["slides_done"], 1)
        alone = run(folder / "seg.dcm", "--out", self.folder / "alone", "--operators", "tissue")
        self.assertEqual(alone.returncode, 1, alone.stderr)
        self.assertIn("seg.dcm: source: SOPClassUID (0008,0016) isn't that of whole-slide images", alone.stdout + alone.stderr)

    def test_a_run_that_resumes_looks_at_all_levels(self):
        slide, levels = self.series()
        out = self.folder / "out"
        self.assertDone(run(levels[0], "--out", out, "--operators", "tissue"))
        again = self.assertDone(run(levels[0], "--out", out, "--operators", "tissue"))
        self.assertIn("skipped as done: 1 of 1 slides", again.stderr)
        other = dicom_file.write_series(slide, self.folder / "again", power="20")
        levels[1].write_bytes(other[1].read_bytes())
        changed = run(levels[0], "--out", out, "--operators", "tissue")
        self.assertIn("has changed since it was done", changed.stderr)


class Untrusted(Case):
    def test_what_is_wrong_is_one_line_and_other_slides_are_done(self):
        slide, levels = self.series()
        whole = levels[0].read_bytes()
        bad = self.folder / "bad"
        bad.mkdir()
        (bad / "short.dcm").write_bytes(whole[:2000])
        (bad / "text.dcm").write_text("not a slide at all\n" * 20)
        out = self.folder / "out"
        result = run(bad, slide, "--out", out, "--operators", "tissue")
        self.assertEqual(result.returncode, 1, result.stderr)
        told = result.stdout + result.stderr
        self.assertIn("short.dcm", told)
        self.assertRegex(told, r"text\.dcm: .*isn't a DICOM file: byte 128 isn't the beginning of DICM")
        self.assertNotIn("TIFF", told)
        self.assertEqual(json.loads((out / "corpus.json").read_text())["totals"]["slides_done"], 1)

    def test_nothing_of_a_patient_reaches_an_output(self):
        secrets = {tag: (vr, f"SECRET{i:02}") for i, (tag, vr) in enumerate((
            (0x00080050, "SH"), (0x00080080, "LO"), (0x00080090, "PN"), (0x00081030, "LO"), (0x00100010, "PN"),
            (0x00100020, "LO"), (0x00104000, "LT"), (0x00200010, "SH"), (0x00400512, "LO"), (0x00091001, "LO"),
            (0x00480107, "ST")))}
        _, levels = self.series(more=secrets)
        out = self.folder / "out"
        told = ""
        for result in (run("info", levels[0]), run("info", "--json", levels[0]),
                       run(levels[0], "--operators", "spectrum,tissue,identity", "--out", out, "--set", "analysis.window=64",
                           "--trace", self.folder / "trace.json"),
                       run("report", out, "--html", out / "report.html")):
            told += self.assertDone(result).stdout + result.stderr
        self.assertNotIn("SECRET", told)
        values = self.folder / "values"
        values.write_text("".join(f"{value}\n" for _, value in secrets.values()))
        check = [CHECK_PRIVACY, "--values", values, out, self.folder / "trace.json"]
        searched = subprocess.run(check, capture_output=True, text=True)
        self.assertEqual(searched.returncode, 0, searched.stdout + searched.stderr)
        # And what is there is found, however it is packed.
        with zipfile.ZipFile(out / "packed.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inside", "A letter to secret03.")
        (out / "wide").write_bytes("SECRET10".encode("utf-16-le"))
        searched = subprocess.run(check, capture_output=True, text=True)
        self.assertEqual(searched.returncode, 1)
        self.assertIn("packed.zip/inside: has value 4 of 11\n", searched.stdout)
        self.assertIn("wide: has value 11 of 11\n", searched.stdout)
        self.assertNotIn("SECRET", searched.stdout.upper())


class OtherReaders(Case):
    """OpenSlide 4 decides what pixels are."""

    def setUp(self):
        super().setUp()
        if openslide is None:
            self.skipTest("SKIPPED: OpenSlide 4 isn't there")

    def pixels(self, path, level):
        out = self.folder / f"level-{level}.ome.tif"
        out.unlink(missing_ok=True)
        self.assertDone(run("convert", path, out, "--compression", "none", "--level", level))
        with openslide.OpenSlide(out) as slide:
            return numpy.asarray(slide.read_region((0, 0), 0, slide.level_dimensions[0]).convert("RGB"))

    def assertSamePixels(self, path):
        with openslide.OpenSlide(path) as slide:
            self.assertEqual(slide.detect_format(path), "dicom")
            for level, size in enumerate(slide.level_dimensions):
                expected = numpy.asarray(slide.read_region((0, 0), level, size).convert("RGB"))
                self.assertTrue((self.pixels(path, level) == expected).all(), f"{path} level {level}")
            return slide.level_count

    def test_whole_levels_of_generated_slides(self):
        # Every codec, and every way to say where tiles lie with two of them: how they are found is one thing, and how they
        # are decoded another.
        basic, sparse, extended = {"table": "basic"}, {"table": "none", "sparse": True}, {"table": "extended"}
        for codec, tables in (("jpeg420", (basic, sparse, extended)), ("jpeg422", (basic,)), ("jpeg444", (extended,)),
                              ("rgb", (sparse,)), ("jpeg2000", (basic, sparse, extended)), ("none", (basic, sparse))):
            for options in tables:
                with self.subTest(codec=codec, **options):
                    _, levels = self.series(codec, "500x300", **options)
                    self.assertGreaterEqual(self.assertSamePixels(levels[0]), 1)

    def test_whole_levels_of_real_slides(self):
        try:
            import wsidicomizer  # here, as it takes seconds
        except (ImportError, OSError):
            wsidicomizer = None
        if wsidicomizer is None or not DATA.exists():
            self.skipTest("SKIPPED: wsidicomizer or the test data aren't there")
        # Of each kind of table there is a generated slide above.
        for table in ("bot", "eot", "empty") if "SLIDESTREAM_TEST_WIDE" in os.environ else ("eot",):
            with self.subTest(table):
                folder = self.folder / table
                folder.mkdir()
                with wsidicomizer.WsiDicomizer.open(str(DATA / "cmu-1-small-region.svs")) as slide:
                    files = slide.save(folder, offset_table=table)
                for path in files:
                    named = json.loads(self.assertDone(run("info", "--json", path)).stdout)
                    self.assertEqual((named["levels"][0]["width"], named["levels"][0]["height"]), (2220, 2967))
                self.assertSamePixels(files[0])


if __name__ == "__main__":
    unittest.main()
