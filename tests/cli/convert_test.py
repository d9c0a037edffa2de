"""`pipeline convert` from outside: `PIPELINE=path WRITE_IMAGE=path convert_test.py [CLASS ...]`.
What other programs read of its files is asked by tests/sink/readers_test.py."""

import contextlib
import csv
import fcntl
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sink"))
from big_tiff import BigTiff  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import quick_storage  # noqa: E402,F401
from time_limits import time_limit  # noqa: E402

# The distribution's Python has NumPy and Pillow, whichever comes first on the PATH; one test wants them.
DISTRIBUTION = "/usr/bin/python3"
try:
    import numpy
    from PIL import Image
except ImportError:
    if sys.executable != DISTRIBUTION and os.path.exists(DISTRIBUTION) and "CONVERT" not in os.environ:
        os.execve(DISTRIBUTION, [DISTRIBUTION, "-B", *sys.argv], {**os.environ, "CONVERT": "1"})
    numpy = None

PIPELINE = os.environ["PIPELINE"]
WRITE_IMAGE = os.environ.get("WRITE_IMAGE", "")
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "dumb"}
# Columns of a slide that one thread converts for some seconds.
LARGE = 16384


def run(*arguments, **options):
    return subprocess.run([PIPELINE, *map(str, arguments)], capture_output=True, text=True, timeout=time_limit(120), env=ENVIRONMENT,
                          stdin=subprocess.DEVNULL, check=False, **options)


def info(file):
    return json.loads(run("info", "--json", file).stdout)


class Case(unittest.TestCase):
    _slides = tempfile.TemporaryDirectory()

    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.out = self.folder / "out"

    def slide(self, name="small", size="700x530", *options):
        file = pathlib.Path(self._slides.name, f"{name}.svs")
        if not file.exists():
            self.assertDone(run("synth", "--out", file, "--size", size, *options))
        return file

    def large_slide(self):
        return self.slide("large", f"{LARGE}x4096", "--distinct", 64, "--levels", 1)

    def assertDone(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def assertOneLine(self, result, status, *parts):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    def rows(self):
        with (self.out / "slides.csv").open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def files(self, folder=None):
        folder = folder or self.folder
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    def start(self, *arguments):
        """A conversion that goes on for a while, once some of it is written. A signal doesn't end strips that are in flight:
        these are few of many."""
        process = subprocess.Popen([PIPELINE, *map(str, arguments), "--threads", "1", "-s", "pipeline.strip_height=128"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        end = time.monotonic() + time_limit(60)
        while not any(path.stat().st_size > 1 << 20 for path in self.folder.rglob("*.partial.ome.tif")):
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        return process


class Folder(Case):
    def test_results_are_what_was_made(self):
        result = self.assertDone(run("convert", self.slide(), self.slide("second", "300x900"), "--to", "ome-tiff", "--out", self.out, "--stats"))
        self.assertEqual(self.files(self.out), ["artifacts.csv", "corpus.json", "failures.csv", "images/second.identity.ome.tif",
                                                "images/small.identity.ome.tif", "run.sqlite", "slides.csv"])
        rows = self.rows()
        self.assertEqual([(row["status"], row["width"], row["height"]) for row in rows],
                         [("done", "700", "530"), ("done", "300", "900")])
        self.assertEqual(set(rows[0]) & {"windows", "mean_db", "p50", "clipped"}, set())
        self.assertTrue(all(None not in row and None not in row.values() for row in rows))
        corpus = json.loads((self.out / "corpus.json").read_text())
        self.assertNotIn("histogram", corpus)
        self.assertNotIn("windows", corpus["totals"])
        self.assertEqual(corpus["totals"]["slides_done"], 2)
        self.assertNotIn("windows", result.stdout)
        self.assertNotIn("histograms", result.stdout)
        self.assertRegex(result.stdout, r"slide +size +files +bytes +time\n")
        self.assertIn("700 x 530", result.stdout)

    def test_the_summary_counts_what_was_made(self):
        result = self.assertDone(run("convert", self.slide(), self.slide("second", "300x900"), "--out", self.out))
        self.assertEqual(len(result.stdout.splitlines()), 4)
        written = sum(file.stat().st_size for file in (self.out / "images").iterdir())
        self.assertRegex(result.stdout, rf"done +2 slides, 2 files of {written / 1e3:.0f} kB\n"
                                        rf"where +{self.out}: .* images/, artifacts.csv\n")

    def test_joined_parts_keep_their_images(self):
        for number in 1, 2:
            self.assertDone(run("convert", self.slide(), self.slide("second", "300x900"), "--out", self.folder / f"part-{number}",
                                "--shard", f"{number}/2"))
        merged = self.assertDone(run("merge", self.folder / "part-1", self.folder / "part-2", "--out", self.out))
        self.assertRegex(merged.stdout, r"2 files of \d+ kB\n.*, files where artifacts.csv says\n")
        self.assertNotIn("windows", merged.stdout)
        self.assertNotIn("histograms.npy", self.files(self.out))
        self.assertEqual(len(self.rows()), 2)

    def test_a_run_with_the_spectrum_says_both(self):
        result = self.assertDone(run(self.slide(), "--out", self.out, "-s", 'operators.run=["spectrum", "sobel"]', "-s",
                                     "image.format=ome-tiff"))
        self.assertIn("windows", result.stdout)
        self.assertIn("histograms.npy", self.files(self.out))
        self.assertIn("images/small.sobel.ome.tif", self.files(self.out))

    def test_options_are_settings(self):
        slide = self.slide("levels", "2100x1100")
        self.assertDone(run("convert", slide, "--out", self.out, "--compression", "zstd", "--tile", 128, "--levels", 2, "--level", 1))
        with BigTiff(self.out / "images" / "levels.identity.ome.tif") as tiff:
            self.assertEqual(len(tiff.chain), 2)
            base = tiff.chain[0]
            self.assertEqual((base.number("width"), base.number("height")), (525, 275))
            self.assertEqual((base.number("tile_width"), base.number("compression")), (128, 50000))
        self.assertAlmostEqual(info(self.out / "images" / "levels.identity.ome.tif")["mpp"], info(slide)["mpp"] * 4, 9)
        sizes = []
        for quality in 30, 90:
            self.assertDone(run("convert", slide, self.folder / "a.tif", "-Q", quality))
            sizes.append((self.folder / "a.tif").stat().st_size)
        self.assertLess(sizes[0] * 1.5, sizes[1])
        printed = self.assertDone(run("convert", "--print-config", "--tile", 512)).stdout
        for line in 'run = ["identity"]', 'format = "ome-tiff"', "tile = 512":
            self.assertIn(line, printed)

    def test_the_same_command_goes_on(self):
        command = ["convert", self.slide(), self.slide("second", "300x900"), "--out", self.out]
        self.assertDone(run(*command))
        before = {name: (self.out / name).stat().st_mtime_ns for name in self.files(self.out) if "images" in name}
        again = self.assertDone(run(*command))
        self.assertIn("skipped as done: 2 of 2 slides", again.stderr)
        self.assertEqual({name: (self.out / name).stat().st_mtime_ns for name in before}, before)
        self.assertDone(run(*command, "--fresh"))
        self.assertIn("images/small.identity.ome.tif", self.files(self.out))

    def test_an_interrupted_one_goes_on(self):
        slide = self.large_slide()
        process = self.start("convert", slide, self.slide(), "--out", self.out)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=time_limit(60))
        self.assertEqual(process.returncode, 130)
        image = self.out / "images" / "large.identity.ome.tif"
        partial = self.out / "images" / "large.identity.partial.ome.tif"
        self.assertFalse(image.exists())
        self.assertEqual(info(partial)["levels"][0]["width"], LARGE)
        self.assertDone(run("convert", slide, self.slide(), "--out", self.out))
        self.assertFalse(partial.exists())
        self.assertDone(run("convert", slide, self.folder / "large.ome.tif"))
        self.assertEqual(image.read_bytes(), (self.folder / "large.ome.tif").read_bytes())

    def test_a_slide_that_fails_leaves_the_others(self):
        result = run("convert", self.slide(), self.folder / "missing.svs", "--out", self.out)
        self.assertEqual(result.returncode, 1)
        self.assertIn("missing.svs: ", result.stderr)
        self.assertEqual([row["status"] for row in self.rows()], ["done", "failed"])

    def test_images_among_the_inputs_are_left_out(self):
        shutil.copy(self.slide(), self.folder / "a.svs")
        self.assertDone(run("convert", self.folder, "--out", self.folder / "a"))
        shutil.copy(self.slide(), self.folder / "b.svs")
        result = self.assertDone(run("convert", self.folder, "--out", self.folder / "a"))
        self.assertIn(f"{self.folder}/a/images: has results of an earlier run; 1 file in it named like slides passed over", result.stderr)
        self.assertEqual(self.files(self.folder / "a" / "images"), ["a.identity.ome.tif", "b.identity.ome.tif"])

    def test_storage_that_is_full_ends_with_3_and_keeps_results(self):
        self.slide("medium", "4096x4096", "--distinct", 16)
        command = ["bash", "-c", 'trap "" XFSZ; ulimit -f 1000; exec "$@"', "-", PIPELINE, "convert", self.slide(),
                   self.slide("medium"), "--out", self.out, "--compression", "none", "--threads", 1]
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=ENVIRONMENT, timeout=time_limit(60))
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("partial.ome.tif: File too large", result.stderr)
        self.assertTrue((self.out / "slides.csv").exists())
        self.assertFalse((self.out / "images" / "medium.identity.ome.tif").exists())


class OneFile(Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "small.ome.tif"

    def test_it_is_all_that_is_written(self):
        for name in "small.ome.tif", "small.OME.TIFF", "small.tif", "small.Tiff":
            file = self.folder / name
            result = self.assertDone(run("convert", self.slide(), file, cwd=self.folder))
            self.assertEqual(self.files(), [name])
            self.assertIn(f"{file}: 700 x 530 pixels, ", result.stdout)
            self.assertEqual(info(file)["properties"]["name"], "small")
            file.unlink()

    def test_it_is_what_a_folder_would_hold(self):
        self.assertDone(run("convert", self.slide(), self.file))
        self.assertDone(run("convert", self.slide(), "--out", self.out))
        self.assertEqual((self.out / "images" / "small.identity.ome.tif").read_bytes(), self.file.read_bytes())

    def test_the_same_bytes_whatever_the_cut(self):
        slide = self.slide("cut", "1500x1300")
        contents = set()
        for settings in ([], ["-t", 1], ["-s", "pipeline.strip_height=1"], ["-s", "pipeline.queue_depth=1", "-t", 3],
                         ["-s", "pipeline.memory_mib=16"]):
            self.assertDone(run("convert", slide, self.file, *settings))
            contents.add(self.file.read_bytes())
        self.assertEqual(len(contents), 1)

    def test_two_slides_that_a_pattern_names_stay(self):
        for name in "a", "b":
            self.assertDone(run("convert", self.slide(), self.folder / f"{name}.ome.tif"))
        before = {file: (self.folder / file).read_bytes() for file in self.files()}
        other = self.folder / "b.TIFF"
        other.write_bytes(before["b.ome.tif"])
        for first, second in (("a.ome.tif", "b.ome.tif"), ("b.ome.tif", "a.ome.tif"), ("a.ome.tif", "b.TIFF")):
            self.assertOneLine(run("convert", self.folder / first, self.folder / second), 2,
                               f"{self.folder / second}: is there already, and may be a slide that a pattern named")
        self.assertEqual({file: (self.folder / file).read_bytes() for file in before}, before)
        self.assertEqual(other.read_bytes(), before["b.ome.tif"])
        # A name that isn't there yet.
        self.assertDone(run("convert", self.folder / "a.ome.tif", self.folder / "c.ome.tif"))
        self.assertDone(run("convert", self.folder / "a.ome.tif", self.folder / "b.ome.tif", "--overwrite"))

    def test_what_was_there_is_replaced_by_a_whole_one_alone(self):
        self.file.write_bytes(b"before")
        bad = self.slide("bad", "1024x1024", "--defects", "corrupt=1")
        self.assertEqual(run("convert", bad, self.file, "--overwrite").returncode, 1)
        self.assertEqual(self.file.read_bytes(), b"before")
        process = self.start("convert", self.large_slide(), self.file, "--overwrite")
        process.kill()
        process.wait(timeout=time_limit(60))
        self.assertEqual(self.file.read_bytes(), b"before")
        self.assertEqual(info(self.folder / "small.partial.ome.tif")["levels"][0]["width"], LARGE)
        self.assertDone(run("convert", self.slide(), self.file, "--overwrite"))
        self.assertEqual(self.files(), ["small.ome.tif"])
        self.assertEqual(info(self.file)["levels"][0]["width"], 700)

    def test_a_signal(self):
        for number in signal.SIGINT, signal.SIGTERM:
            process = self.start("convert", self.large_slide(), self.file)
            process.send_signal(number)
            _, messages = process.communicate(timeout=time_limit(60))
            self.assertEqual(process.returncode, 128 + number)
            self.assertIn(f"interrupted: {self.file} isn't written", messages)
            self.assertEqual(self.files(), ["small.partial.ome.tif"])
            (self.folder / "small.partial.ome.tif").unlink()

    def test_what_is_refused_before_anything_is_written(self):
        slide = self.slide()
        content = slide.read_bytes()
        (self.folder / "folder.ome.tif").mkdir()
        os.mkfifo(self.folder / "pipe.ome.tif")
        os.link(shutil.copy(slide, self.folder / "slide.svs"), self.folder / "same.ome.tif")
        (self.folder / "link.ome.tif").symlink_to("slide.svs")
        (self.folder / "two.list").write_text(f"{slide}\nslide.svs\n")
        own = self.folder / "slide.svs"
        before = self.files()
        for arguments, message in (
                ((own, self.folder), "it is a folder"),
                ((own, self.folder / "folder.ome.tif"), "it is a folder"),
                ((own, self.folder / "pipe.ome.tif"), "it isn't a regular file"),
                ((own, "/dev/null"), "it isn't a regular file"),
                ((own, self.folder / "same.ome.tif"), "it is the slide itself"),
                ((own, self.folder / "link.ome.tif"), "it is the slide itself"),
                ((own, own), ".ome.zarr or .zarr for ome-zarr, .dzi for dzi and .dicom for dicom"),
                ((own, self.folder / "a.unknown"), ".ome.zarr or .zarr for ome-zarr, .dzi for dzi and .dicom for dicom"),
                ((own, self.folder / ".ome.tif"), ".ome.zarr or .zarr for ome-zarr, .dzi for dzi and .dicom for dicom"),
                ((own, self.folder / "a.dzi", "--to", "ome-tiff"), "ends in .ome.tif, .ome.tiff, .tif or .tiff"),
                ((own, self.folder / "none" / "a.tif"), "No such file or directory"),
                ((self.folder / "two.list", self.folder / "a.tif"), "one file holds one slide, and there are 2"),
                ((own, self.folder / "a.tif", "--fresh"), "are for a folder"),
                ((own, self.folder / "a.tif", "--shard", "1/2"), "are for a folder"),
                ((own,), "Name a folder with --out DIR"),
                ((own, slide, self.folder / "a.tif"), "Name a folder with --out DIR"),
                ((), "Name a folder with --out DIR"),
                ((own, self.folder / "a.tif", "--to", "none"), "--to"),
                ((own, self.folder / "a.tif", "-s", "operators.run=sobel"), "operators.run can't be set here"),
                ((own, self.folder / "a.tif", "--tile", "100"), "image.tile"),
                ((own, self.folder / "a.tif", "--compresion", "none"), "did you mean '--compression'?"),
                ((own, self.folder / "a.tif", "--level", "7"), None)):
            with self.subTest(arguments=arguments):
                result = run("convert", *arguments)
                if message:
                    self.assertOneLine(result, 2, message)
                else:
                    self.assertEqual(result.returncode, 1)
                self.assertEqual(self.files(), before)
        self.assertEqual(own.read_bytes(), content)

    def test_the_partial_file_is_never_the_slide(self):
        slide = pathlib.Path(self.slide())
        content = slide.read_bytes()
        os.link(slide, self.folder / "a.partial.ome.tif")
        result = run("convert", slide, self.folder / "a.ome.tif", "--overwrite")
        self.assertOneLine(result, 2, "a.partial.ome.tif would be written, and is this slide")
        # A folder is emptied before it is written.
        for folder, file, why in (
                ("b.partial.ome.zarr", "b.ome.zarr", "b.partial.ome.zarr would be written, and holds this slide"),
                ("c.partial_files", "c.dzi", "it would be emptied, and holds s.svs")):
            inside = self.folder / folder / "s.svs"
            inside.parent.mkdir()
            shutil.copyfile(slide, inside)
            self.assertOneLine(run("convert", inside, self.folder / file, "--overwrite"), 2, why)
            self.assertEqual(inside.read_bytes(), content)
            # Nor is anybody else's file in the way.
            self.assertOneLine(run("convert", slide, self.folder / file), 2, "it would be emptied, and holds s.svs")
            self.assertEqual(inside.read_bytes(), content)
        self.assertEqual(slide.read_bytes(), content)

    def test_no_finished_image_has_the_name_of_an_unfinished_one(self):
        slide = self.slide()
        for name in ("a.partial.ome.tif", "a.Partial.OME.TIFF", "a.partial.tif", "a.ome.PARTIAL.tiff", "a.partial.ome.zarr",
                     "a.partial.zarr", "a.partial.dicom", "a.partial.dzi", "a.partial.ome.dzi"):
            file = self.folder / name
            for options in [], ["--overwrite"]:
                self.assertOneLine(run("convert", slide, file, *options), 2,
                                   f"{file}: names of unfinished images end in .partial: choose another")
        self.assertEqual(self.files(), [])
        self.assertDone(run("convert", slide, self.folder / "partial.ome.tif"))

    def test_images_that_are_not_whole_are_no_inputs(self):
        partial = self.folder / "a.partial.ome.tif"
        shutil.copyfile(self.slide(), partial)
        result = run("convert", partial, self.folder / "b.ome.tif")
        self.assertEqual(result.returncode, 2)
        self.assertIn("not whole, and left out", result.stderr)

    def test_an_image_has_one_writer(self):
        for name, held in (("a.ome.tif", "a.partial.ome.tif"), ("a.ome.zarr", "a.partial.ome.zarr"),
                           ("a.dzi", "a.partial_files")):
            path = self.folder / held
            if held.endswith(".tif"):
                path.touch()
            else:
                path.mkdir()
            descriptor = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                result = run("convert", self.slide(), self.folder / name)
            finally:
                os.close(descriptor)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"{held}: somebody is writing it", result.stderr)
            self.assertEqual([file for file in os.listdir(self.folder) if file.startswith(".")], [])
            self.assertDone(run("convert", self.slide(), self.folder / name))

    def test_storage_that_is_full(self):
        self.file.write_bytes(b"before")
        command = ["bash", "-c", 'trap "" XFSZ; ulimit -f 200; exec "$@"', "-", PIPELINE, "convert", self.slide(), self.file,
                   "--overwrite", "--compression", "none"]
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=ENVIRONMENT, timeout=time_limit(60))
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("small.partial.ome.tif: File too large", result.stderr)
        self.assertEqual(self.file.read_bytes(), b"before")

    def test_a_dry_run_and_a_trace(self):
        trace = self.folder / "trace.json"
        result = self.assertDone(run("convert", self.slide(), self.file, "--dry-run"))
        self.assertIn(f"results  {self.file}\n", result.stdout)
        self.assertIn("for images", result.stdout)
        self.assertEqual(self.files(), [])
        self.assertDone(run("convert", self.slide(), self.file, "--trace", trace))
        names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"}
        self.assertLessEqual({"encode", "write"}, names)

    def test_one_that_fails_says_why_and_nothing_else(self):
        slide = self.slide("corrupt", "700x530", "--defects", "corrupt=1")
        result = run("convert", slide, self.file)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("is bad: ", result.stderr)

    def test_quiet(self):
        result = self.assertDone(run("convert", self.slide(), self.file, "--quiet"))
        self.assertEqual((result.stdout, result.stderr), ("", ""))


class Info(Case):
    def test_what_was_written_is_shown(self):
        slide = self.slide("levels", "2100x1100")
        file = self.folder / "a <b>.ome.tif"
        for compression, codec, colour in (("none", "none", "rgb"), ("jpeg", "jpeg", "ycbcr"), ("zstd", "zstd", "rgb")):
            self.assertDone(run("convert", slide, file, "--compression", compression))
            found = info(file)
            sizes = [(level["width"], level["height"]) for level in found["levels"]]
            self.assertEqual(sizes, [(2100, 1100), (1050, 550), (525, 275), (263, 138), (132, 69)])
            for level in found["levels"]:
                self.assertEqual((level["codec"], level["colour"], level["tile_width"]), (codec, colour, 256))
            source = info(slide)
            self.assertEqual((found["mpp"], found["magnification"]), (source["mpp"], source["magnification"]))
            self.assertEqual((found["format"], found["container"], found["associated"]), ("ome-tiff", "BigTIFF", []))
            properties = found["properties"]
            self.assertEqual(properties["creator"], run("--version").stdout.strip())
            self.assertEqual((properties["name"], properties["identity.colour"]), ("a <b>", '"rgb"'))
            self.assertNotIn("description", properties)
        shown = self.assertDone(run("info", file)).stdout
        self.assertEqual(shown.count("256 x 256"), 5)
        self.assertIn("creator", shown)

    def test_nothing_of_the_source_gets_into_it(self):
        slide = self.slide("secret-name")
        self.assertDone(run("convert", slide, self.folder / "a.ome.tif"))
        content = (self.folder / "a.ome.tif").read_bytes()
        for text in b"secret-name", b"Aperio", b"Date", str(self.folder).encode():
            self.assertNotIn(text, content)


class Spectrum(Case):
    def histogram(self, file):
        shutil.rmtree(self.out, ignore_errors=True)
        self.assertDone(run(file, "--out", self.out))
        return (self.out / "histograms.npy").read_bytes()

    def test_of_an_exact_conversion_is_that_of_the_slide(self):
        slide = self.slide("raw", "1500x1100", "--codec", "none")
        expected = self.histogram(slide)
        for compression in "none", "zstd":
            self.assertDone(run("convert", slide, self.folder / "a.tif", "--compression", compression))
            self.assertEqual(self.histogram(self.folder / "a.tif"), expected)
        self.assertNotEqual(self.histogram(self.slide("other", "1500x1100", "--codec", "none", "--seed", 9)), expected)

    def test_of_a_conversion_with_loss_is_that_of_its_luminance(self):
        if numpy is None:
            self.skipTest("needs NumPy and Pillow")
        if not WRITE_IMAGE:
            self.skipTest("no WRITE_IMAGE")
        self.assertDone(run("convert", self.slide("raw", "1500x1100", "--codec", "none"), self.folder / "a.tif"))
        with BigTiff(self.folder / "a.tif") as tiff:
            base = tiff.chain[0]
            whole = numpy.empty((base.rows * 256, base.columns * 256), "u1")
            for index, (_, tile) in enumerate(tiff.tiles(0)):
                image = Image.open(io.BytesIO(base["jpeg_tables"][:-2] + tile[2:]))
                image.draft("L", image.size)
                y, x = divmod(index, base.columns)
                whole[y * 256:(y + 1) * 256, x * 256:(x + 1) * 256] = numpy.asarray(image)
        whole[:1100, :1500].tofile(self.folder / "raw")
        subprocess.run([WRITE_IMAGE, self.folder / "plain.tif", "1500", "1100", "format=grey8", f"raw={self.folder / 'raw'}"],
                       check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.histogram(self.folder / "a.tif"), self.histogram(self.folder / "plain.tif"))


class Tissue(Case):
    """What a slide and its lossless pyramid have in common, and where glass goes."""

    def made(self, slide, name, *settings):
        out = self.folder / name
        self.assertDone(run(slide, "--out", out, "-s", "operators.run=tissue,stain", "-s", "image.compression=none",
                            *settings))
        with open(out / "slides.csv", newline="", encoding="utf-8") as file:
            row, = csv.DictReader(file)
        return out / "images", {key: value for key, value in row.items() if key.startswith(("tissue.", "stain."))}

    def test_a_pyramid_has_the_mask_and_the_stains_of_its_slide(self):
        # 0.499 um: neither the small level nor the blocks are whole halvings.
        slide = self.slide("alone", "2220x2967", "--mpp", "0.499", "--levels", "1")
        pyramid = self.folder / "alone.ome.tif"
        self.assertDone(run("convert", slide, pyramid, "--compression", "none"))
        before, figures = self.made(slide, "slide")
        after, of_pyramid = self.made(pyramid, "pyramid")
        self.assertEqual(figures, of_pyramid)
        self.assertEqual(len(figures), 12)
        outlines, = before.glob("*.geojson")
        others, = after.glob("*.geojson")
        self.assertEqual(outlines.read_bytes(), others.read_bytes())

    def glass(self, image):
        """The median of pixels that are bright in all channels."""
        with BigTiff(image) as tiff:
            tiles = numpy.stack([numpy.frombuffer(tile, "u1") for _, tile in tiff.tiles(0)]).reshape(-1, 3)
        return numpy.median(tiles[tiles.min(axis=1) >= 215], axis=0)

    def test_glass_becomes_the_glass_of_the_reference(self):
        if numpy is None:
            self.skipTest("needs NumPy")
        data = pathlib.Path(os.environ.get("SLIDESTREAM_TEST_DATA", pathlib.Path(__file__).parents[3] / "shared")) / "data"
        real = [path for path in (data / "cmu-1-small-region.svs", data / "tcga-cr-7395.svs") if path.exists()]
        slides = [self.slide("glass", "1536x1280", "--mpp", "0.5"), *real]
        # It has few enough pixels one level down.
        smaller = {data / "tcga-cr-7395.svs": ["-s", "input.level=1"]}
        for reference in slides[:2]:
            _, figures = self.made(reference, f"of-{reference.stem}")
            white = [float(figures[f"stain.white_{channel}"]) for channel in ("red", "green", "blue")]
            for slide in slides:
                if slide == reference:
                    continue
                # The slowest one.
                if slide in smaller and "SLIDESTREAM_TEST_WIDE" not in os.environ:
                    continue
                with self.subTest(slide=slide.name, reference=reference.name):
                    images, _ = self.made(slide, f"{slide.stem}-as-{reference.stem}", "-s", f"stain.reference={reference}",
                                          *smaller.get(slide, []))
                    image, = images.glob("*.stain.ome.tif")
                    self.assertLessEqual(numpy.abs(self.glass(image) - white).max(), 3)


def profile(space=b"RGB ", size=600):
    return (size.to_bytes(4, "big") + bytes(12) + space + b"XYZ " + bytes(12) + b"acsp").ljust(size, b"p")


@unittest.skipUnless(WRITE_IMAGE, "no WRITE_IMAGE")
class ColourProfile(Case):
    def slide_with(self, icc):
        (self.folder / "some.icc").write_bytes(icc)
        subprocess.run([WRITE_IMAGE, self.folder / "slide.tif", "600", "300", f"icc={self.folder / 'some.icc'}"], check=True,
                       stdout=subprocess.DEVNULL)
        return self.folder / "slide.tif"

    def converted(self, icc):
        """The profile, and the messages."""
        result = self.assertDone(run("convert", self.slide_with(icc), self.folder / "a.ome.tif"))
        with BigTiff(self.folder / "a.ome.tif") as tiff:
            return tiff.chain[0].get("icc"), result.stderr

    def test_it_is_kept(self):
        self.assertEqual(self.converted(profile())[0], profile())
        self.assertEqual(info(self.folder / "a.ome.tif")["icc_bytes"], 600)
        self.assertIn("600 bytes, RGB", run("info", self.folder / "a.ome.tif").stdout)

    def test_one_that_is_of_no_use_is_left_out_and_told(self):
        for icc, message in ((profile(b"GRAY"), "the ICC profile is for other colours than RGB, and isn't kept"),
                             (profile()[:100], "the ICC profile has 100 bytes, supported are 128 to 16777216"),
                             (profile()[:500], "the ICC profile of 500 bytes is damaged"),
                             (bytes(600), "the ICC profile of 600 bytes is damaged")):
            found, messages = self.converted(icc)
            self.assertIsNone(found)
            self.assertIn(f"{self.folder / 'slide.tif'}: {message}", messages)

    def test_sobel_has_none(self):
        self.assertDone(run(self.slide_with(profile()), "--out", self.out, "-s", "operators.run=sobel", "-s",
                            "image.format=ome-tiff"))
        with BigTiff(self.out / "images" / "slide.sobel.ome.tif") as tiff:
            self.assertNotIn("icc", tiff.chain[0])


if __name__ == "__main__":
    unittest.main()
