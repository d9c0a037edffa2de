"""Batches as people run them who convert archives: `PIPELINE=path/to/pipeline batch_test.py [CLASS ...]`."""

import contextlib
import csv
import json
import os
import pathlib
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sink"))
from big_tiff import BigTiff  # noqa: E402
from program_test import ENVIRONMENT, PIPELINE, Case, run
from time_limits import time_limit  # noqa: E402


def run_with(preparation, *arguments, **options):
    """As `run`, in a process that `preparation` prepares."""
    return subprocess.run([PIPELINE, *map(str, arguments)], capture_output=True, text=True, timeout=time_limit(120), env=ENVIRONMENT,
                          input="", preexec_fn=preparation, **options)


def run_json(*arguments):
    return json.loads(run(*arguments).stdout)


class BatchCase(Case):
    def folder_of(self, *names, size="384x320"):
        """A folder with small slides of these names."""
        folder = self.folder / "slides"
        folder.mkdir(exist_ok=True)
        for number, name in enumerate(names):
            source = self.slide(f"batch-{number % 3}", size, "--seed", str(number % 3 + 1), "--tile", "128")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name)
        return folder

    def foreign_slide(self, name):
        """A slide that no program of ours says it made: the bytes of its description differ."""
        file = self.folder_of(name) / name
        content = file.read_bytes()
        self.assertIn(b"slidestream synth", content)
        file.write_bytes(content.replace(b"slidestream synth", b"scanner's program"))
        return file

    def assertDone(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return result


class Targets(BatchCase):
    """What is there already and isn't this program's is not replaced."""

    REFUSAL = "is there already, and this program didn't write it; --overwrite replaces it"

    def test_two_slides_are_no_slide_and_its_target(self):
        first, second = self.foreign_slide("a.tif"), self.foreign_slide("b.tif")
        before = second.read_bytes()
        self.assertOneLine(run("convert", first, second), 2, f"{second}: {self.REFUSAL}")
        self.assertEqual(second.read_bytes(), before)
        self.assertEqual(sorted(os.listdir(first.parent)), ["a.tif", "b.tif"])
        self.assertDone(run("convert", first, second, "--overwrite"))
        self.assertIn(b'Creator="slidestream ', second.read_bytes())

    def test_two_images_are_no_slide_and_its_target(self):
        slides = self.folder_of("a.svs", "b.svs")
        images = [self.folder / "a.tif", self.folder / "b.tiff", self.folder / "c.ome.tif"]
        for slide, image in zip(("a.svs", "b.svs", "b.svs"), images):
            for _ in range(2):
                self.assertDone(run("convert", slides / slide, image))
        for target in images[1:]:
            before = target.read_bytes()
            self.assertOneLine(run("convert", images[0], target), 2,
                               f"{target}: is there already, and may be a slide that a pattern named, as the slide is an image "
                               "of this program, too; --overwrite replaces it, and --out takes several slides")
            self.assertEqual(target.read_bytes(), before)
            self.assertDone(run("convert", images[0], target, "--overwrite"))
            self.assertNotEqual(target.read_bytes(), before)
        # One that is named after the slide, and one of a slide that another program wrote.
        for slide, name in (images[0], "a.ome.tif"), (self.foreign_slide("d.tif"), "e.ome.tif"):
            for _ in range(2):
                self.assertDone(run("convert", slide, self.folder / name))

    def test_a_page_of_others_beside_an_image(self):
        slide = self.folder_of("a.svs") / "a.svs"
        page = self.folder / "one.view.html"
        page.write_text("mine\n")
        self.assertOneLine(run("convert", slide, self.folder / "one.dzi"), 2, f"{page}: {self.REFUSAL}")
        self.assertEqual(page.read_text(), "mine\n")

    def test_what_it_wrote_itself_is_replaced(self):
        slide = self.folder_of("a.svs") / "a.svs"
        for target in "one.ome.tif", "one.dzi":
            file = self.folder / target
            self.assertDone(run("convert", slide, file))
            if target.endswith(".tif"):
                self.assertDone(run("convert", slide, file, "-Q", 50))
        # An empty file, such as mktemp makes, has nothing to lose.
        (self.folder / "empty.ome.tif").touch()
        self.assertDone(run("convert", slide, self.folder / "empty.ome.tif"))

    def test_files_of_other_programs(self):
        slide = self.folder_of("a.svs") / "a.svs"
        self.assertDone(run(slide, "--out", self.out))
        generator = b'<meta name="generator" content="slidestream report">\n'
        foreign = {"page.html": b"<!doctype html>\n<title>slidestream report</title>\n", "trace.json": b'{"traceEvents": []}',
                   "node.prom": b"# HELP node_load1 1m load average.\n", "made.svs": b"II*\0 something else",
                   # Of which this program is a part, or a subject.
                   "quote.html": b'<!doctype html>\n<html lang="en">\n<head>\n<title>On reports</title>\n<pre>\n' + generator,
                   "package.json": b'{\n  "dependencies": {\n    "slidestream": "1.0"\n  }\n}\n',
                   "settings.json": b'{\n  "settings": {\n    "slidestream": {"pid_space": 1}\n  }\n}\n',
                   "disk.prom": b"# HELP slidestream_disk_free MiB\nslidestream_disk_free 7\n"}
        for name, content in foreign.items():
            (self.folder / name).write_bytes(content)
        file = {name: self.folder / name for name in foreign}
        cases = [("page.html", ["report", self.out, "--html", file["page.html"]]),
                 ("trace.json", [slide, "--out", self.folder / "2", "--trace", file["trace.json"]]),
                 ("node.prom", [slide, "--out", self.folder / "3", "--metrics", file["node.prom"]]),
                 ("quote.html", ["report", self.out, "--html", file["quote.html"]]),
                 ("package.json", [slide, "--out", self.folder / "4", "--trace", file["package.json"]]),
                 ("settings.json", [slide, "--out", self.folder / "5", "--trace", file["settings.json"]]),
                 ("disk.prom", [slide, "--out", self.folder / "6", "--metrics", file["disk.prom"]]),
                 ("made.svs", ["synth", "--out", file["made.svs"], "--size", "256x256"])]
        for name, command in cases:
            with self.subTest(name):
                self.assertOneLine(run(*command), 2, f"{file[name]}: {self.REFUSAL}")
                self.assertEqual(file[name].read_bytes(), foreign[name])
                self.assertDone(run(*command, "--overwrite"))
                self.assertNotEqual(file[name].read_bytes(), foreign[name])
                self.assertDone(run(*command))  # its own by now

    def test_a_report_onto_a_page_that_the_run_lists(self):
        self.assertDone(run("convert", self.folder_of("a.svs"), "--out", self.out, "--to", "dzi"))
        page = self.out / "images/a.identity.view.html"
        before = page.read_bytes()
        for more in [], ["--overwrite"]:
            self.assertOneLine(run("report", self.out, "--html", page, *more), 2,
                               f"{page}: is a file of a slide that {self.out} lists; name another")
            self.assertEqual(page.read_bytes(), before)

    def test_files_of_another_run(self):
        other = self.folder / "other"
        slides = self.folder_of("a.svs", "b.svs")
        self.assertDone(run("convert", slides / "a.svs", "--out", other, "--trace", other / "trace.json"))
        image, table = other / "images/a.identity.ome.tif", other / "corpus.json"
        cases = [(image, "a file of a slide that {} lists", ["convert", slides / "b.svs", image]),
                 (image, "a file of a slide that {} lists", ["synth", "--out", image, "--size", "256x256"]),
                 (table, "a file of the run in {}", [slides / "b.svs", "--out", self.out, "--trace", table])]
        before = image.read_bytes(), table.read_bytes()
        for file, what, command in cases:
            for more in [], ["--overwrite"]:
                with self.subTest(command=command, more=more):
                    what_of_it = what.format(other.resolve())
                    self.assertOneLine(run(*command, *more), 2, f"{file}: is {what_of_it}; name another")
                    self.assertEqual((image.read_bytes(), table.read_bytes()), before)
        # What the ledger doesn't list.
        self.assertDone(run(slides / "b.svs", "--out", self.out, "--trace", other / "trace.json"))

    def test_files_within_an_image_that_is_a_folder(self):
        slides = self.folder_of("a.svs", "b.svs")
        own = self.folder / "own"
        own.mkdir()
        for kind, name, inner in ("dicom", "x.dicom", "x.dicom"), ("ome-zarr", "x.ome.zarr", "x.ome.zarr/0"), ("dzi", "x.dzi", "x_files/0"):
            other = self.folder / kind
            self.assertDone(run("convert", slides / "a.svs", "--out", other, "--to", kind, "-s", "input.mpp=0.25"))
            self.assertDone(run("convert", slides / "a.svs", own / name, "-s", "input.mpp=0.25"))
            for folder, begin, what in ((other / "images", "a.identity", f"a folder of a slide that {other.resolve()} lists"),
                                        (own, "x", "an image of this program")):
                within = folder / inner.replace("x", begin, 1)
                self.assertTrue(within.is_dir())
                for target in within / "b.ome.tif", within / "new/b.ome.tif":
                    for more in [], ["--overwrite"]:
                        with self.subTest(target=target, more=more):
                            self.assertOneLine(run("convert", slides / "b.svs", target, *more), 2, f"{target}: lies in ", what)
                            self.assertFalse(target.exists())
                self.assertOneLine(run(slides / "b.svs", "--out", within), 2, "an image of this program; name another")
        # Also where somebody put another file beside those of this program.
        for image in "made", "made.dicom":
            self.assertDone(run("synth", "--out", own / image, "--format", "dicom", "--size", "256x256"))
        for image in "x.dicom", "made", "made.dicom":
            within = own / image
            (within / "mine.dcm").write_text("k\n")
            before = sorted(within.iterdir())
            for arguments in (["convert", slides / "b.svs", within / "z.ome.tif"], [slides / "b.svs", "--out", within],
                              [slides / "b.svs", "--out", within / "o"],
                              [slides / "b.svs", "--out", self.out, "--trace", within / "t.json"]):
                with self.subTest(arguments=arguments):
                    self.assertOneLine(run(*arguments), 2, f"lies in {within.resolve()}, an image of this program")
                    self.assertEqual(sorted(within.iterdir()), before)
            # The marks are what counts, not the name.
            for file in within.glob("*.dcm"):
                file.write_text("k\n")
            self.assertDone(run("convert", slides / "b.svs", within / "z.ome.tif"))

    def test_a_report_and_the_page_of_an_image(self):
        slides = self.folder_of("a.svs")
        other = self.folder / "other"
        self.assertDone(run("convert", slides, "--out", other, "--to", "dzi"))
        self.assertDone(run(slides, "--out", self.out))
        listed = other / "images/a.identity.view.html"
        before = listed.read_bytes()
        self.assertOneLine(run("report", self.out, "--html", listed), 2,
                           f"{listed}: is a file of a slide that {other.resolve()} lists; name another")
        self.assertEqual(listed.read_bytes(), before)
        page = self.folder / "copy.view.html"
        page.write_bytes(before)
        self.assertOneLine(run("report", self.out, "--html", page), 2,
                           f"{page}: is the page of an image; --overwrite replaces it")
        self.assertEqual(page.read_bytes(), before)
        self.assertDone(run("report", self.out, "--html", page, "--overwrite"))
        # The other way round.
        report = self.folder / "b.view.html"
        for _ in range(2):
            self.assertDone(run("report", self.out, "--html", report))
        before = report.read_bytes()
        convert = ["convert", slides / "a.svs", self.folder / "b.dzi"]
        self.assertOneLine(run(*convert), 2, f"{report}: is a report; --overwrite replaces it")
        self.assertEqual(report.read_bytes(), before)
        self.assertDone(run(*convert, "--overwrite"))
        self.assertNotEqual(report.read_bytes(), before)

    def test_a_sweeps_tables(self):
        slide = self.folder_of("a.svs") / "a.svs"
        self.out.mkdir()
        for name in "sweep.csv", "tuned.toml":
            file = self.out / name
            file.write_text("mine\n")
            result = run("sweep", slide, "--over", "pipeline.threads=1,2", "--repeat", 1, "--out", self.out, "--fresh")
            self.assertOneLine(result, 2, f"{file}: {self.REFUSAL}")
            self.assertEqual(file.read_text(), "mine\n")
            file.unlink()

    def test_a_file_among_results_fails_its_slide_alone(self):
        slides = self.folder_of("a.svs", "b.svs")
        images = self.out / "images"
        images.mkdir(parents=True)
        other = images / "a.identity.ome.tif"
        other.write_bytes(self.foreign_slide("c.tif").read_bytes())
        (slides / "c.tif").unlink()
        before = other.read_bytes()
        result = run("convert", slides, "--out", self.out)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"{other}: {self.REFUSAL}", result.stderr)
        self.assertEqual(other.read_bytes(), before)
        self.assertEqual([row["status"] for row in self.rows()], ["failed", "done"])
        self.assertEqual(run("convert", slides, "--out", self.out).returncode, 1)
        # The line names this option alone.
        self.assertDone(run("convert", slides, "--out", self.out, "--overwrite"))
        self.assertNotEqual(other.read_bytes(), before)

    def test_a_folder_of_chunks_of_others(self):
        slides = self.folder_of("a.svs")
        image = self.out / "images/a.identity.ome.zarr"
        (image / "0").mkdir(parents=True)
        (image / ".zgroup").write_text('{"zarr_format": 2}')
        (image / ".zattrs").write_text('{"multiscales": [{"version": "0.4"}]}')
        result = run("convert", slides, "--out", self.out, "--to", "ome-zarr")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"{image}: {self.REFUSAL}", result.stderr)
        self.assertEqual((image / ".zgroup").read_text(), '{"zarr_format": 2}')
        self.assertDone(run("convert", slides, "--out", self.out, "--to", "ome-zarr", "--retry-failed", "--overwrite"))

    def test_maps_and_outlines_without_a_ledger(self):
        slides = self.folder_of("a.svs")
        (self.out / "maps").mkdir(parents=True)
        (self.out / "maps/a.npy").write_bytes(b"mine")
        self.assertOneLine(run(slides, "--out", self.out, "--maps", "npy"), 2, f"{self.out}/maps/a.npy: {self.REFUSAL}")
        self.assertEqual((self.out / "maps/a.npy").read_bytes(), b"mine")
        self.assertFalse((self.out / "run.sqlite").exists())
        self.assertDone(run(slides, "--out", self.out, "--maps", "npy", "--overwrite"))
        # The same run makes its own files again.
        (self.out / "maps/a.npy").write_bytes(b"cut off")
        self.assertDone(run(slides, "--out", self.out, "--maps", "npy"))
        self.assertGreater((self.out / "maps/a.npy").stat().st_size, 100)
        outlines = self.folder / "found/outlines/a.tissue.geojson"
        result = self.assertDone(run("tissue", slides, "--out", self.folder / "found"))
        outlines = next((self.folder / "found").rglob("*.geojson"))
        place = outlines.relative_to(self.folder / "found")
        drawn = self.folder / "drawn" / place
        drawn.parent.mkdir(parents=True)
        drawn.write_text('{"type": "FeatureCollection", "features": []}')
        # The folder has a ledger at the second start.
        for more in [], ["--retry-failed"]:
            result = run("tissue", slides, "--out", self.folder / "drawn", *more)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(f"{drawn}: {self.REFUSAL}", result.stderr)
            self.assertEqual(drawn.read_text(), '{"type": "FeatureCollection", "features": []}')
        self.assertDone(run("tissue", slides, "--out", self.folder / "drawn", "--retry-failed", "--overwrite"))


class Statuses(BatchCase):
    """1: some slides failed, and all else is done. 3: the run ended before its end."""

    def slides_with_failures(self):
        slides = self.folder_of(*(f"{number}.svs" for number in range(6)))
        for number in 0, 1:
            (slides / f"{number}.svs").write_bytes(b"no slide")
        return slides

    def test_a_merge_with_a_file_that_is_gone(self):
        slides, part = self.folder_of("a.svs"), self.folder / "part"
        self.assertDone(run("convert", slides, "--out", part))
        self.assertDone(run("merge", part, "--out", self.out))
        image = part / "images/a.identity.ome.tif"
        image.unlink()
        result = run("merge", part, "--out", self.out)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("1 file of slides isn't there", result.stderr)
        self.assertDone(run("convert", slides, "--out", part))
        self.assertDone(run("merge", part, "--out", self.out))

    def test_a_merge_with_an_image_that_is_there_in_name_only(self):
        slides, part = self.folder_of("a.svs"), self.folder / "part"
        command = ["convert", slides, "--out", part, "--to", "ome-zarr"]
        self.assertDone(run(*command))
        image = part / "images/a.identity.ome.zarr"
        shutil.rmtree(image)
        image.mkdir()
        result = run("merge", part, "--out", self.out)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(f"1 file of slides isn't as it was made: {image} has 0 bytes and had ", result.stderr)
        self.assertDone(run(*command))
        self.assertDone(run("merge", part, "--out", self.out))

    def test_failed_slides(self):
        result = run(self.slides_with_failures(), "--out", self.out)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(len(self.rows()), 6)

    def test_a_limit_of_failures(self):
        slides = self.slides_with_failures()
        result = run(slides, "--out", self.out, "--max-failures", 1, "--threads", 1)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("stopped by --max-failures 1", result.stderr)
        self.assertRegex(result.stderr, r"(1 slide|\d+ slides) failed, and (1 is|\d+ are) left\n")
        # Without the limit, the same command does the rest.
        self.assertEqual(run(slides, "--out", self.out).returncode, 1)
        # A limit that the last slide reaches has stopped nothing.
        only = self.folder / "only"
        only.mkdir()
        (only / "bad.svs").write_bytes(b"no slide")
        self.assertEqual(run(only, "--out", self.folder / "b", "--max-failures", 1).returncode, 1)

    def test_what_is_refused_makes_no_folder(self):
        slides = self.folder_of("a.svs")
        nowhere = self.folder / "nowhere/x.prom"
        for words, part in ((["--shard", "5/3"], "--shard is '5/3'"), (["--max-failures", 0], "--max-failures is '0'"),
                            (["--metrics", nowhere], f"{nowhere}: No such file or directory")):
            with self.subTest(part):
                self.assertOneLine(run(slides, "--out", self.out, *words), 2, part)
                self.assertFalse(self.out.exists())
        # In the folder that is to be made.
        self.assertDone(run(slides, "--out", self.out, "--metrics", self.out / "x.prom"))
        self.assertTrue((self.out / "x.prom").is_file())
        foreign = self.folder / "foreign"
        foreign.mkdir()
        (foreign / "run.sqlite").write_text("mine\n" * 1000)
        self.assertEqual(run(slides, "--out", foreign, "--maps", "npy").returncode, 2)
        self.assertEqual(os.listdir(foreign), ["run.sqlite"])

    def test_results_that_cannot_be_written(self):
        slides = self.folder_of("a.svs", "b.svs")
        self.assertDone(run("convert", slides / "a.svs", self.folder / "a.ome.tif"))

        def small_files():
            import resource
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        result = run_with(small_files, "convert", slides / "a.svs", self.folder / "b.ome.tif", "--compression", "none")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertFalse((self.folder / "b.ome.tif").exists())

    def test_a_merge_without_a_part(self):
        # Paths decide which shard has a slide: that one has them all is nearly impossible.
        slides = self.folder_of(*(f"{number}.svs" for number in range(16)))
        self.assertDone(run(slides, "--out", self.folder / "1", "--shard", "1/2"))
        result = run("merge", self.folder / "1", "--out", self.out)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertRegex(result.stderr, "(1 slide is|slides are) still to do, and")

    def merge_twice_at_once(self, out, *more):
        """One of them does it. The other is refused, or comes later and does it again."""
        both = [subprocess.Popen([PIPELINE, "merge", self.folder / "1", "--out", out, "-q", *more],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
                for _ in range(2)]
        errors = [process.communicate(timeout=time_limit(60))[1] for process in both]
        self.assertIn(0, [process.returncode for process in both], errors)
        for process, error in zip(both, errors):
            self.assertIn(process.returncode, (0, 2), errors)
            if process.returncode == 2:
                self.assertIn(f"{out}: belongs to a run on ", error)
        self.assertTrue((out / "run.sqlite").is_file())
        self.assertTrue((out / "slides.csv").is_file())

    def test_two_merges_at_once(self):
        slides = self.folder_of("a.svs", "b.svs")
        self.assertDone(run(slides, "--out", self.folder / "1"))
        for i in range(25):
            out = self.folder / f"merged-{i}"
            with self.subTest(i, fresh=False):
                self.merge_twice_at_once(out)
            with self.subTest(i, fresh=True):
                self.merge_twice_at_once(out, "--fresh")
                self.assertTrue((out / "earlier-1/run.sqlite").is_file())
                self.assertTrue((out / "earlier-1/slides.csv").is_file())

    def test_the_documents_say_it(self):
        self.assertRegex(run("--help").stdout, r"\n  3 +the run ended before its end")
        root = pathlib.Path(__file__).resolve().parents[2]
        for page in "README.md", "docs/results.md", "docs/clusters.md":
            with self.subTest(page):
                self.assertRegex((root / page).read_text(), r"\b3\b[^.]*ended before its end")


class OwnResults(BatchCase):
    """What a run made is no slide of the next one."""

    def test_results_among_slides(self):
        slides = self.folder_of("a.svs", "b.svs", "deep/c.svs")
        self.assertDone(run("convert", slides, "--out", slides / "converted"))
        self.assertDone(run(slides / "a.svs", "--out", slides / "deep/maps-of-a", "--maps", "tiff"))
        self.assertEqual(len(list((slides / "converted/images").iterdir())), 3)
        result = self.assertDone(run(slides, "--out", self.out))
        self.assertEqual([pathlib.Path(row["path"]).name for row in self.rows()], ["a.svs", "b.svs", "c.svs"])
        self.assertIn(f"{slides}/converted: has results of an earlier run; 3 files in it named like slides passed over",
                      result.stderr)
        self.assertIn(f"{slides}/deep/maps-of-a: has results of an earlier run; 1 file in it", result.stderr)

    def test_naming_them_works(self):
        slides = self.folder_of("a.svs")
        self.assertDone(run("convert", slides, "--out", slides / "converted"))
        image = slides / "converted/images/a.identity.ome.tif"
        for number, named in enumerate((image, image.parent)):
            out = self.folder / str(number)
            self.assertDone(run(named, "--out", out))
            self.assertEqual([row["path"] for row in self.rows(out)], [str(image)])

    def test_a_slide_beside_its_conversion_is_said_to_count_twice(self):
        slides = self.folder_of("a.svs")
        self.assertDone(run("convert", slides / "a.svs", slides / "b.ome.tif"))
        told = "1 of 2 slides is an image that slidestream wrote, perhaps of others of these slides"
        self.assertIn(told, self.assertDone(run(slides, "--out", self.out)).stderr)
        (slides / "a.svs").unlink()
        self.assertNotIn("slidestream wrote", self.assertDone(run(slides, "--out", self.folder / "alone")).stderr)

    def test_images_that_were_renamed_are_counted(self):
        slides = self.folder_of("a.svs", "b.svs", "c.svs")
        self.assertDone(run("convert", slides, "--out", slides / "converted"))
        # Without its ledger the folder is no run's.
        (slides / "converted/run.sqlite").rename(self.folder / "run.sqlite")
        images = slides / "converted/images"
        (images / "a.identity.ome.tif").rename(images / "a.identity.svs")
        (images / "b.identity.ome.tif").rename(images / "b.svs")
        result = self.assertDone(run(slides, "--out", self.out))
        self.assertEqual(len(self.rows()), 6)
        self.assertIn("3 of 6 slides are images that slidestream wrote", result.stderr)

    def test_conversions_of_every_format_are_said_to_count_twice(self):
        for number, (slide, image) in enumerate((("a.svs", "a.tif"), ("b.svs", "other.TIFF"), ("c.svs", "c.dicom"))):
            with self.subTest(image):
                slides = self.folder / f"{number}"
                slides.mkdir()
                shutil.copy(self.slide("converted", "384x320", "--mpp", "0.5"), slides / slide)
                self.assertDone(run("convert", slides / slide, slides / image))
                result = self.assertDone(run(slides, "--out", self.folder / f"out-{number}"))
                self.assertIn("1 of 2 slides is an image that slidestream wrote", result.stderr)
                self.assertIn(str(slides / image), result.stderr)
        # Slides that `synth` makes are nobody's conversions.
        slides = self.folder / "made"
        slides.mkdir()
        shutil.copy(self.slide("converted", "384x320", "--mpp", "0.5"), slides / "a.tif")
        self.assertDone(run("synth", "--out", slides / "b", "--format", "dicom", "--size", "256x256"))
        result = self.assertDone(run(slides, "--out", self.out))
        self.assertEqual(len(self.rows()), 2)
        self.assertNotIn("slidestream wrote", result.stderr)

    def test_an_image_that_is_not_whole_is_no_slide_whatever_its_format(self):
        slides = self.folder_of("a.svs", "scan.partial.svs")
        self.foreign_slide("other.partial.tif")
        for image in "b.tif", "c.dicom":
            self.assertDone(run("convert", self.slide("converted", "384x320", "--mpp", "0.5"), slides / image))
        (slides / "b.tif").rename(slides / "b.partial.tif")
        (slides / "c.dicom").rename(slides / "c.partial.dicom")
        result = self.assertDone(run(slides, "--out", self.out))
        self.assertIn("2 images named .partial among the inputs: not whole, and left out", result.stderr)
        self.assertEqual([pathlib.Path(row["path"]).name for row in self.rows()],
                         ["a.svs", "other.partial.tif", "scan.partial.svs"])

    def test_slides_beside_results_stay(self):
        slides = self.folder_of("a.svs")
        for _ in range(2):
            result = self.assertDone(run("convert", slides, "--out", slides))
            self.assertEqual([row["path"] for row in self.rows(slides)], [str(slides / "a.svs")])
        self.assertIn(f"{slides}/images: has results", result.stderr)

    def test_slides_in_the_results_folder_stay_where_it_lies_below_the_named_one(self):
        slides = self.folder_of("a.svs", "sub/b.svs", "sub/deep/images/c.svs")
        (slides / "link").symlink_to("sub")
        out = slides / "sub"
        taken = sorted(map(str, slides.rglob("*.svs")))
        for _ in range(2):
            result = self.assertDone(run("convert", slides, "--out", out))
            self.assertEqual(sorted(row["path"].replace("/link/", "/sub/") for row in self.rows(out)), taken)
            self.assertEqual(len(list((out / "images").iterdir())), 3)
        self.assertIn("/images: has results of an earlier run; 3 files in it named like slides", result.stderr)
        # Those of another run are passed over, its slides too.
        result = self.assertDone(run("convert", slides, "--out", self.out))
        self.assertEqual([row["path"] for row in self.rows()], [str(slides / "a.svs")])
        self.assertIn(f"{out}: has results of an earlier run; 5 files in it named like slides", result.stderr)

    def test_a_named_folder_within_the_results_folder_stays(self):
        slides = self.folder_of("mine/a.svs", "mine/images/b.svs")
        for _ in range(2):
            self.assertDone(run("convert", slides / "mine", "--out", slides))
            self.assertEqual([row["path"] for row in self.rows(slides)],
                             [str(slides / "mine/a.svs"), str(slides / "mine/images/b.svs")])

    def test_links_into_results_are_none(self):
        slides = self.folder_of("a.svs")
        self.assertDone(run("convert", slides, "--out", slides / "converted"))
        (slides / "latest").symlink_to("converted/images")
        other = self.folder / "other"
        other.mkdir()
        (other / "b.svs").symlink_to(slides / "a.svs")
        (other / "images").symlink_to(slides / "converted/images")
        for folder, link, slide in (slides, "latest", "a.svs"), (other, "images", "b.svs"):
            result = self.assertDone(run(folder, "--out", self.folder / link))
            self.assertEqual([row["path"] for row in self.rows(self.folder / link)], [str(folder / slide)])
            self.assertIn(f"{folder / link}: has results of an earlier run; 1 file in it named like slides passed over",
                          result.stderr)

    def test_files_of_failed_slides_are_none(self):
        slides = self.folder_of("a.svs", "b.svs")
        self.assertDone(run("convert", slides, "--out", slides))
        with open(slides / "b.svs", "r+b") as file:
            file.truncate(3000)
        self.assertEqual(run("convert", slides, "--out", slides).returncode, 1)
        failed = slides / "earlier-failed"
        self.assertEqual(os.listdir(failed / "images"), ["b.identity.ome.tif"])
        # To its own folder, and to another one.
        for out in slides, self.out:
            result = run("convert", slides, "--out", out)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual([row["path"] for row in self.rows(out)], [str(slides / "a.svs"), str(slides / "b.svs")])
            self.assertIn(f"{failed}: has results of an earlier run; 1 file in it named like slides passed over",
                          result.stderr)

    def test_slides_where_results_will_be_are_none_from_the_beginning(self):
        slides = self.folder_of("a.svs", "b.svs", "images/c.svs", "maps/d.svs", "earlier-failed/2/images/e.svs")
        self.assertDone(run("convert", slides / "b.svs", slides / "images/a.identity.ome.tif"))
        own = slides / "images/a.identity.ome.tif"
        before = own.read_bytes()
        for first in True, False:
            result = run("convert", slides, "--out", slides)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual([row["path"] for row in self.rows(slides)], [str(slides / "a.svs"), str(slides / "b.svs")])
            if first:
                self.assertIn(f"{slides}: 4 files in its folders of results, maps and images, left out", result.stderr)
                self.assertIn(f"{own}: is there already, and the folder had no ledger that lists it", result.stderr)
            self.assertEqual(own.read_bytes(), before)

    def test_named_slides_stay_wherever_they_lie(self):
        slides = self.folder_of("images/a.svs", "maps/b.svs", "c.svs", "images/d.svs")
        named = [slides / "images/a.svs", slides / "maps/b.svs"]
        (slides / "slides.list").write_text("c.svs\nimages/d.svs\n")
        for _ in range(2):
            self.assertDone(run(*named, slides / "slides.list", "--out", slides))
            self.assertEqual([row["path"] for row in self.rows(slides)],
                             [str(slide) for slide in (*named, slides / "c.svs", slides / "images/d.svs")])

    def test_images_without_their_ledger_stay(self):
        slides = self.folder_of("a.svs")
        self.assertDone(run("convert", slides, "--out", self.out))
        image = self.out / "images/a.identity.ome.tif"
        before = image.read_bytes()
        for file in self.out.iterdir():
            if file.is_file():
                file.unlink()
        result = run("convert", slides, "--out", self.out, "-Q", 30)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"{image}: is there already, and the folder had no ledger that lists it; --overwrite", result.stderr)
        self.assertEqual(image.read_bytes(), before)
        self.assertDone(run("convert", slides, "--out", self.out, "-Q", 30, "--overwrite", "--fresh"))
        self.assertNotEqual(image.read_bytes(), before)

    def test_a_database_of_others_hides_nothing(self):
        slides = self.folder_of("a.svs", "lab/b.svs")
        (slides / "lab/run.sqlite").write_bytes(b"SQLite format 3\0" + bytes(200))
        self.assertDone(run(slides, "--out", self.out))
        self.assertEqual(len(self.rows()), 2)


class Names(BatchCase):
    """Names of files on other systems."""

    def test_maps_whose_names_differ_by_case(self):
        slides = self.folder_of("1/S1.svs", "2/s1.svs")
        self.assertDone(run(slides, "--out", self.out, "--maps", "npy"))
        maps = [row["map"] for row in self.rows()]
        self.assertEqual(sorted(os.listdir(self.out / "maps")), sorted(maps))
        self.assertEqual(maps[0], "S1.npy")
        self.assertRegex(maps[1], r"^s1-[0-9a-f]{8}\.npy$")

    def test_maps_and_images_keep_their_names_as_a_list_grows(self):
        slides = self.folder_of("x/s.svs", "y/s.svs", "z/s.svs")
        names, contents = {}, {}
        for start in "y", "xy", "zxy":
            self.assertDone(run(*(slides / folder / "s.svs" for folder in start), "--out", self.out, "--maps", "npy",
                                "--operators", "spectrum,tissue"))
            maps = {row["path"]: row["map"] for row in self.rows()}
            self.assertEqual({path: maps[path] for path in names}, names)
            for path, content in contents.items():
                self.assertEqual((self.out / "maps" / maps[path]).read_bytes(), content)
            names, contents = maps, {path: (self.out / "maps" / name).read_bytes() for path, name in maps.items()}
        self.assertEqual(names[str(slides / "y/s.svs")], "s.npy")
        self.assertEqual(sorted(os.listdir(self.out / "maps")), sorted(names.values()))
        with open(self.out / "artifacts.csv", newline="", encoding="utf-8") as file:
            masks = {row["path"]: row["file"] for row in csv.DictReader(file) if row["product"] == "mask"}
        self.assertEqual(masks, {path: f"images/{name[:-4]}.tissue.ome.tif" for path, name in names.items()})
        mask = self.out / next(iter(masks.values()))
        self.assertTrue(json.loads(run("info", "--json", mask).stdout)["labels"])
        self.assertFalse(json.loads(run("info", "--json", next(iter(masks))).stdout)["labels"])
        self.assertRegex(run("info", mask).stdout, r"\n +labels +yes, of a network or a mask")
        refused = run("convert", mask, self.out.parent / "mask.tif", "--compression", "zstd")
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn(f"{mask}: ", refused.stderr)
        self.assertIn("holds labels of a network or a mask, and the operator identity takes them for colours", refused.stderr)

    def test_names_that_windows_cannot_have(self):
        slides = self.folder_of("a: b?.svs", "CON.svs", "aux .b.svs", "end..svs")
        command = [slides, "--out", self.out, "--maps", "npy", "--operators", "spectrum,sobel"]
        self.assertDone(run(*command))
        self.assertEqual(sorted(os.listdir(self.out / "maps")), ["CON_.npy", "a_ b_.npy", "aux _.b.npy", "end_.npy"])
        with open(self.out / "artifacts.csv", newline="", encoding="utf-8") as file:
            made = {pathlib.Path(row["path"]).name: row["file"] for row in csv.DictReader(file)}
        self.assertEqual(made, {"a: b?.svs": "images/a_ b_.sobel.ome.tif", "CON.svs": "images/CON_.sobel.ome.tif",
                                "aux .b.svs": "images/aux _.b.sobel.ome.tif", "end..svs": "images/end_.sobel.ome.tif"})
        as_they_are = self.folder / "as-they-are"
        self.assertDone(run(slides, "--out", as_they_are, "--maps", "npy", "-s", "output.portable_names=false"))
        self.assertEqual(sorted(os.listdir(as_they_are / "maps")), ["CON.npy", "a: b?.npy", "aux .b.npy", "end..npy"])


class Subsampling(BatchCase):
    """How exactly JPEG keeps colour."""

    def test_a_slide_with_whole_colour_keeps_it(self):
        slide = self.slide("whole-colour", "512x384", "--codec", "jpeg444", "--quality", 95)
        exact = self.pixels(slide)
        worst = {}
        for value in "4:2:0", "4:2:2", "4:4:4":
            file = self.folder / f"{value.replace(':', '')}.ome.tif"
            self.assertDone(run("convert", slide, file, "-Q", 100, "--subsampling", value))
            worst[value] = self.difference(self.pixels(file), exact)
            level, = run_json("info", "--json", file)["levels"][:1]
            self.assertEqual((level["width"], level["height"]), (512, 384))
        self.assertLessEqual(worst["4:4:4"], 4)
        self.assertGreater(worst["4:2:2"], worst["4:4:4"])
        self.assertGreater(worst["4:2:0"], worst["4:4:4"])
        # The default is what it was.
        (self.folder / "default").mkdir()
        self.assertDone(run("convert", slide, self.folder / "default/420.ome.tif", "-Q", 100))
        self.assertEqual((self.folder / "default/420.ome.tif").read_bytes(), (self.folder / "420.ome.tif").read_bytes())

    def test_formats_say_it(self):
        slide = self.slide("whole-colour", "512x384", "--codec", "jpeg444", "--quality", 95)
        for value, factors in (("4:2:2", (2, 1)), ("4:4:4", (1, 1))):
            file = self.folder / "a.ome.tif"
            self.assertDone(run("convert", slide, file, "--subsampling", value))
            with BigTiff(file) as tiff:
                pages = tiff.chain
            self.assertEqual({page["subsampling"] for page in pages}, {factors})
            folder = self.folder / value[-1]
            folder.mkdir()
            self.assertDone(run("convert", slide, folder / "a.dicom", "--subsampling", value))
            # DICOM has one name for all of them.
            self.assertIn(b"YBR_FULL_422", (folder / "a.dicom/level-0.dcm").read_bytes()[:4096])
        self.assertOneLine(run("convert", slide, file, "--subsampling", "4:1:1"), 2, "image.subsampling", "4:2:0, 4:2:2 or 4:4:4")
        self.assertRegex(run("convert", "--help").stdout, r"(?s)--subsampling.*default\s+4:2:0")

    def pixels(self, file):
        """Level 0 of an image, tile by tile."""
        plain = self.folder / "plain.ome.tif"
        self.assertDone(run("convert", file, plain, "--compression", "none", "--levels", 1, "--overwrite"))
        with BigTiff(plain) as tiff:
            return b"".join(data for _, data in tiff.tiles(0))

    @staticmethod
    def difference(one, other):
        return max(map(abs, map(int.__sub__, one, other)))


class Verify(BatchCase):
    """Files of a run against the digests of its ledger."""

    def setUp(self):
        super().setUp()
        slides = self.folder_of("a.svs", "b.svs")
        self.command = [slides, "--out", self.out, "--operators", "spectrum,identity,tissue", "--maps", "tiff",
                        "-s", "image.format=ome-zarr"]
        self.assertDone(run(*self.command))
        self.made = sorted(path.relative_to(self.out) for path in self.out.rglob("*") if path.is_file())

    def verify(self, *options):
        return run("verify", self.out, *options)

    def test_what_is_as_written(self):
        result = self.assertDone(self.verify())
        self.assertRegex(result.stdout, r"^(\d+) of \1 files of 2 slides are as written\n$")
        self.assertEqual(result.stderr, "")
        self.assertEqual(self.assertDone(self.verify("--quiet", "--jobs", 3)).stdout, "")
        self.assertEqual(sorted(path.relative_to(self.out) for path in self.out.rglob("*") if path.is_file()), self.made)

    def test_joined_results_that_were_moved(self):
        out, part = self.folder / "joined", self.folder / "joined/part-1"
        self.assertDone(run(self.folder / "slides", "--out", part, "--operators", "identity"))
        for more in [], ["--fresh"]:
            self.assertDone(run("merge", part, "--out", out, *more))
        for folder in out, out / "earlier-1":
            self.assertIn("2 of 2 files of 2 slides are as written\n", self.assertDone(run("verify", folder)).stdout)
        self.assertDone(run("merge", out / "earlier-1", "--out", self.folder / "again"))
        self.assertDone(run("verify", self.folder / "again"))
        image = part / "images/a.identity.ome.tif"
        image.unlink()
        result = run("verify", out / "earlier-1")
        self.assertOneLine(result, 1, f"{image}: is missing")
        # No command writes into it.
        self.assertNotIn("delete", result.stdout)

    def test_each_kind_of_damage_is_one_line(self):
        outlines = next(self.out.rglob("a.tissue.geojson"))
        chunk = max((self.out / "images/b.identity.ome.zarr/0").rglob("0"), key=lambda path: path.stat().st_size)
        map_file = self.out / "maps/b.tif"
        for file, part in ((outlines, "has the digest "), (chunk, "has the digest "), (map_file, "isn't what was written")):
            with self.subTest(file.name):
                content = file.read_bytes()
                file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
                result = self.verify()
                named = self.out / "images/b.identity.ome.zarr" if file == chunk else file
                self.assertOneLine(result, 1, f"{named}: {part}")
                self.assertIn("; delete the others, and the command that made them makes them again\n", result.stdout)
                file.write_bytes(content[:-1])
                self.assertOneLine(self.verify(), 1, f"{named}: ")
                file.write_bytes(content)
        outlines.unlink()
        self.assertOneLine(self.verify(), 1, f"{outlines}: is missing")
        outlines.mkdir()
        self.assertOneLine(self.verify(), 1, f"{outlines}: isn't a file\n")
        image = self.out / "images/b.identity.ome.zarr"
        shutil.rmtree(image)
        image.write_text("mine\n")
        self.assertIn(f"{image}: isn't a folder\n", self.verify().stderr)

    def test_links_are_not_followed(self):
        outlines = next(self.out.rglob("a.tissue.geojson"))
        image = self.out / "images/b.identity.ome.zarr"
        chunk = max((image / "0").rglob("0"), key=lambda path: path.stat().st_size)
        inside = chunk.relative_to(image)
        for file, line in ((outlines, f"{outlines}: is a link, which isn't followed"),
                           (chunk, f"{image}: has the link {inside}, which isn't followed"),
                           (image, f"{image}: is a link, which isn't followed"),
                           (self.out / "maps/b.tif", f"{self.out}/maps/b.tif: is a link, which isn't followed")):
            with self.subTest(line):
                # Bytes that are as written don't make it this run's file.
                moved = self.folder / "moved"
                file.rename(moved)
                file.symlink_to(moved)
                self.assertOneLine(self.verify(), 1, line)
                file.unlink()
                moved.rename(file)
        self.assertDone(self.verify())

    def test_what_cannot_be_read_is_not_to_be_deleted(self):
        images, elsewhere = self.out / "images", self.folder / "elsewhere"
        image = images / "b.identity.ome.zarr"
        chunk = max((image / "0").rglob("0"), key=lambda path: path.stat().st_size)
        disk = self.folder / "disk"
        for file in (image, chunk, self.out / "maps/b.tif", images):
            with self.subTest(file.name):
                file.rename(elsewhere)
                file.symlink_to(disk)
                result = self.verify()
                self.assertEqual(result.returncode, 1)
                lines = result.stderr.splitlines()
                named = file if file == images else "it"
                self.assertTrue(lines and all(line.endswith(f": can't be read: {named} is a link to {disk}, where nothing is")
                                              for line in lines), lines)
                self.assertNotIn("; delete", result.stdout)
                self.assertRegex(result.stdout, r"; \d+ files? can't be read: nothing to delete\n\Z")
                file.unlink()
                elsewhere.rename(file)
        # Beside one that differs.
        outlines = next(self.out.rglob("a.tissue.geojson"))
        self.damage(outlines)
        image.rename(elsewhere)
        image.symlink_to(disk)
        self.assertIn("; delete those that differ, and the command that made them makes them again; "
                      "1 file can't be read: nothing to delete\n", self.verify().stdout)

    def test_what_this_user_may_not_read(self):
        image = self.out / "images/b.identity.ome.zarr"
        chunk = max((image / "0").rglob("0"), key=lambda path: path.stat().st_size)
        other = None
        if os.geteuid() == 0:
            for file in [PIPELINE, self.out / "run.sqlite", *pathlib.Path(PIPELINE).parents]:
                if not os.stat(file).st_mode & 0o005:
                    self.skipTest(f"{file} isn't for everybody, and who runs this is the superuser")
            self.folder.chmod(0o755)
            other = lambda: (os.setgid(65534), os.setuid(65534))
        map_file = self.out / "maps/b.tif"
        for file, named in (chunk, image), (chunk.parent, image), (map_file, map_file):
            with self.subTest(file.name):
                mode = file.stat().st_mode & 0o777
                file.chmod(0)
                result = run_with(other, "verify", self.out)
                file.chmod(mode)
                self.assertOneLine(result, 1, f"{named}: can't be read: Permission denied")
                self.assertNotIn("; delete", result.stdout)

    def test_files_of_file_browsers_are_passed_over(self):
        image = self.out / "images/b.identity.ome.zarr"
        strays = [folder / name for folder in (image, image / "0")
                  for name in ("Thumbs.db", "desktop.ini", ".DS_Store", "._zarr.json", ".nfs0000000000a1b2c300000001")]
        for file in strays:
            file.write_text("somebody's\n")
        self.assertDone(self.verify())
        self.assertIn("skipped as done: 2 of 2 slides", self.assertDone(run(*self.command)).stderr)
        self.assertTrue(all(file.exists() for file in strays))
        # Others aren't.
        (image / "notes.txt").write_text("somebody's\n")
        self.assertOneLine(self.verify(), 1, f"{image}: has ")

    def record_of(self, path):
        """What an interrupted verification left: a file or folder that was found in order, as it is now."""
        name = str(path.relative_to(self.out))
        with open(self.out / "artifacts.csv", newline="", encoding="utf-8") as file:
            digest = next(row["digest"] for row in csv.DictReader(file) if row["file"] == name)
        all_of_it = [each.lstat() for each in (path, *path.rglob("*"))] if path.is_dir() else [path.lstat()]
        size = sum(about.st_size for about in all_of_it if not stat.S_ISDIR(about.st_mode))
        changed = max(about.st_ctime_ns for about in all_of_it)
        record = self.out / "verify.partial.list"
        record.write_text(f"{size} {changed // 10**9}.{changed % 10**9} {digest} {name}\n")
        return record

    @staticmethod
    def damage(file):
        about = file.stat()
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))

    def test_an_interrupted_verification_goes_on(self):
        # What is as it was then isn't read again, so that the damage isn't seen.
        outlines = next(self.out.rglob("a.tissue.geojson"))
        self.damage(outlines)
        record = self.record_of(outlines)
        result = self.assertDone(self.verify())
        self.assertIn("1 file was verified before an interruption", result.stderr)
        self.assertFalse(record.exists())
        # From the beginning, it is.
        self.assertOneLine(self.verify(), 1, f"{outlines}: has the digest ")

    def test_what_changed_since_an_interruption_is_read_again(self):
        image = self.out / "images/b.identity.ome.zarr"
        chunk = max((image / "0").rglob("0"), key=lambda path: path.stat().st_size)
        for path, file in ((image, chunk), *((each, each) for each in self.out.rglob("a.tissue.geojson"))):
            with self.subTest(path.name):
                self.record_of(path)
                self.damage(file)
                self.assertIn(f"{path}: has the digest ", self.verify().stderr)

    def test_what_stands_in_the_way_of_its_record_stays(self):
        record = self.out / "verify.partial.list"
        other = self.folder / "notes.txt"
        other.write_text("keep\n")
        for make, cause in ((lambda: record.symlink_to(other), "is a link"), (lambda: os.mkfifo(record), "not a regular file"),
                            (record.mkdir, "not a regular file"),
                            (lambda: record.write_text("keep\n"), "isn't what an interrupted verification leaves")):
            make()
            self.assertOneLine(self.verify(), 2, f"{record}: {cause}", "; move it away, and verify again")
            self.assertTrue(record.is_symlink() or record.exists())
            if record.is_dir():
                record.rmdir()
            else:
                record.unlink()
        os.link(other, record)
        self.assertOneLine(self.verify(), 2, f"{record}: isn't what")
        self.assertEqual(other.read_text(), "keep\n")

    def test_a_map_that_a_killed_run_had_not_written_is_not_missing(self):
        map_file = self.out / "maps/b.tif"
        map_file.unlink()
        database = sqlite3.connect(self.out / "run.sqlite")
        self.addCleanup(database.close)
        with database:
            database.execute("INSERT INTO owner VALUES(1, 'x', 'far', 'y', 'z', 7, 8, 9, 10, 11)")
        self.assertOneLine(self.verify(), 0, "1 map isn't written yet: the run is under way, or was killed")
        with database:
            database.execute("DELETE FROM owner")
        self.assertOneLine(self.verify(), 1, f"{map_file}: is missing")

    def test_a_map_that_is_no_file(self):
        map_file = self.out / "maps/b.tif"
        map_file.unlink()
        os.mkfifo(map_file)
        self.assertOneLine(self.verify(), 1, f"{map_file}: is missing, or has another size")

    def test_damaged_values_of_a_map(self):
        map_file = self.out / "maps/b.tif"
        content = map_file.read_bytes()
        database = sqlite3.connect(self.out / "run.sqlite")
        with database:
            database.execute("UPDATE maps SET bytes = zeroblob(length(bytes)) "
                             "WHERE slide = (SELECT id FROM slides WHERE CAST(path AS TEXT) LIKE '%/b.svs')")
        database.close()
        self.assertOneLine(self.verify(), 1, f"{map_file}: can't be compared: the ledger's values of it are damaged")
        self.assertOneLine(run("merge", self.out, "--out", self.folder / "merged"), 2,
                           "slides/b.svs isn't what was written; the command that made it does the slide again, once "
                           "maps/b.tif of its folder is deleted")
        # The file is as it was, and nothing else is left to do.
        again = self.assertDone(run(*self.command))
        self.assertIn("slides/b.svs isn't what was written: done again", again.stderr)
        self.assertEqual(map_file.read_bytes(), content)
        self.assertDone(self.verify())

    def test_a_ledger_that_is_a_link(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "run.sqlite").symlink_to(self.out / "run.sqlite")
        before = (self.out / "run.sqlite").read_bytes()
        for command in (["verify", other], ["status", other], ["report", other, "--html", self.folder / "page.html"],
                        [self.folder / "slides/a.svs", "--out", other]):
            self.assertOneLine(run(*command), 2, f"{other}/run.sqlite: is a link, which isn't followed")
        self.assertEqual((self.out / "run.sqlite").read_bytes(), before)

    def test_slides_of_other_shards_are_not_missed(self):
        part = self.folder / "part"
        self.assertDone(run(self.folder / "slides", "--out", part, "--operators", "tissue", "--shard", "1/2",
                            "--shard-by", "size"))
        result = self.assertDone(run("verify", part))
        self.assertEqual(result.stderr, "")
        self.assertRegex(result.stdout, r"^(\d+) of \1 files of 1 slide are as written\n$")
        database = sqlite3.connect(part / "run.sqlite")
        with database:
            database.execute("UPDATE slides SET state = 'pending' WHERE mine")
        database.close()
        # The status says nothing of slides that aren't done.
        result = self.assertDone(run("verify", part))
        self.assertIn("1 slide isn't done: nothing of it was verified", result.stderr)
        self.assertEqual(result.stdout, "0 of 0 files of 0 slides are as written\n")

    def test_slides_that_are_another_shard_s_now_are_passed_over(self):
        part = self.folder / "part"
        command = [self.folder / "slides", "--out", part, "--operators", "tissue"]
        self.assertDone(run(*command))
        self.assertDone(run(*command, "--shard", "1/2", "--shard-by", "size"))
        with contextlib.closing(sqlite3.connect(part / "run.sqlite")) as database:
            files = [row[0] for row in database.execute(
                "SELECT file FROM artifacts JOIN slides ON slides.id = slide WHERE NOT mine")]
        self.assertTrue(files)
        for file in files:
            (part / os.fsdecode(file)).unlink()
        result = self.assertDone(run("verify", part))
        self.assertIn("1 slide of earlier runs here is another shard's now: nothing of it was verified; verify that "
                      "shard's folder, or the merged folder", result.stderr)
        self.assertRegex(result.stdout, r"^(\d+) of \1 files of 1 slide are as written\n$")
        page = self.folder / "part.html"
        self.assertRegex(self.assertDone(run("report", part, "--html", page)).stdout, ": 1 slide\\b")

    def test_slides_that_failed_are_told(self):
        slides = self.folder / "slides"
        (slides / "c.svs").write_text("no slide")
        out = self.folder / "with-a-failure"
        self.assertEqual(run(slides, "--out", out, "--operators", "tissue").returncode, 1)
        self.assertOneLine(run("verify", out), 0, "1 slide isn't done (1 failed): nothing of it was verified")
        database = sqlite3.connect(out / "run.sqlite")
        with database:
            database.execute("UPDATE slides SET state = 'pending' WHERE position = 1")
        database.close()
        self.assertOneLine(run("verify", out), 0, "2 slides aren't done (1 failed): nothing of them was verified")
        result = self.assertDone(run("report", out, "--html", self.folder / "report.html"))
        self.assertIn(": 3 slides (1 done, 1 failed, 1 unfinished), ", result.stdout)

    def test_a_folder_without_a_run(self):
        (self.folder / "empty").mkdir()
        self.assertEqual(run("verify", self.folder / "empty").returncode, 2)


class Json(BatchCase):
    """Commands for programs: one strict document each."""

    def document(self, *arguments, status=0):
        result = run(*arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        strict = subprocess.run([sys.executable, "-m", "json.tool"], input=result.stdout, capture_output=True, text=True, check=False)
        self.assertEqual(strict.returncode, 0, strict.stderr)
        for word in "NaN", "Infinity":
            self.assertNotIn(word, result.stdout)
        return json.loads(result.stdout)

    def keys_of(self, command):
        """Keys that docs/results.md names."""
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/results.md").read_text()
        row = next(line for line in page.splitlines() if line.startswith(f"| `{command} --json`"))
        return set(re.findall(r"`(\w+)`", row.split("|")[2]))

    def test_each_command(self):
        slides = self.folder_of("a.svs", "b.svs")
        (slides / "bad.svs").write_bytes(b"no slide")
        for out in self.out, self.folder / "2":
            self.assertEqual(run(slides, "--out", out).returncode, 1)
        one = self.document("info", "--json", slides / "a.svs")
        self.assertEqual(set(one), self.keys_of("info"))
        self.assertEqual(len(self.document("info", "--json", slides, status=1)), 2)
        self.assertIsNone(self.document("info", "--json", slides / "bad.svs", status=1))
        self.assertEqual(self.document("info", "--json", slides / "bad.svs", slides / "bad.svs", status=1), [])
        self.assertEqual(set(self.document("status", "--json", self.out)), self.keys_of("status"))
        compared = self.document("compare", "--json", self.out, self.folder / "2", "--tolerance", 0, status=1)
        self.assertEqual(set(compared), self.keys_of("compare"))

    def test_what_is_refused_is_null(self):
        missing = self.folder / "missing"
        for words in (("info", "--json", missing), ("info", "--json"), ("info", "--json", "--bogus", missing),
                      ("status", "--json", missing), ("compare", "--json", missing, missing)):
            self.assertIsNone(self.document(*words, status=2))

    def test_names_that_are_no_text(self):
        slides = self.folder_of("M\\xfcller.svs", os.fsdecode(b"M\xfcller.svs"), os.fsdecode(b"M\xffller.svs"))
        for out in self.out, self.folder / "2":
            self.assertDone(run(slides, "--out", out))
        self.assertEqual(self.document("status", "--json", self.out)["done"], 3)
        names = ["M\\xfcller.svs", "M\\xfcller.svs'", "M\\xffller.svs"]
        self.assertEqual([pathlib.Path(one["path"]).name for one in self.document("info", "--json", slides)], names)
        compared = self.document("compare", "--json", self.out, self.folder / "2")
        self.assertEqual({pathlib.Path(one["first"]).name for one in compared["slides"]}, {names[0], names[2]})
        # What fails is told of with the bytes themselves.
        (slides / os.fsdecode(b"b\xe4d.svs")).write_bytes(b"no slide")
        subprocess.run([PIPELINE, str(slides), "--out", str(self.out)], capture_output=True, env=ENVIRONMENT, timeout=time_limit(120), check=False)
        failure, = self.document("status", "--json", self.out)["failures"]
        self.assertTrue(failure["path"].endswith("/b\\xe4d.svs"), failure)


class Permissions(BatchCase):
    """Two people of a group work in one folder."""

    def test_all_files_follow_the_umask(self):
        slides = self.folder_of("a.svs")
        for mask, mode in (0o002, 0o664), (0o027, 0o640):
            out = self.folder / f"{mask:o}"
            self.assertDone(run_with(lambda mask=mask: os.umask(mask), "convert", slides, "--out", out))
            for file in out.rglob("*"):
                if file.is_file():
                    self.assertEqual(stat.S_IMODE(file.stat().st_mode), mode, file)

    def test_a_ledger_that_others_own_is_named_with_its_permissions(self):
        slides = self.folder_of("a.svs")
        self.assertDone(run(slides, "--out", self.out))
        ledger = self.out / "run.sqlite"
        ledger.chmod(0o444)
        for folder in self.folder, self.out:
            folder.chmod(0o777)
        result = run_with(self.other(slides / "a.svs"), slides, "--out", self.out)
        self.assertOneLine(result, 2, str(ledger), "permissions 0444", "can't write")

    def test_who_cant_write_a_ledger_leaves_nothing_beside_it(self):
        slides, copy = self.folder_of("a.svs"), self.folder / "copy"
        self.assertDone(run(slides, "--out", self.out))
        ledger = self.out / "run.sqlite"
        ledger.chmod(0o444)
        for folder in self.folder, self.out:
            folder.chmod(0o777)
        shutil.copytree(self.out, copy)
        other = self.other(slides / "a.svs")
        before = sorted(os.listdir(self.out))
        for status, words in ((0, ["status", self.out]), (0, ["verify", self.out]), (0, ["compare", self.out, copy]),
                              (0, ["report", self.out, "--html", self.folder / "page.html"]),
                              (0, ["merge", self.out, "--out", self.folder / "merged"]),
                              (None, [slides, "--out", self.out, "--dry-run"]), (2, [slides, "--out", self.out])):
            with self.subTest(words=words):
                result = run_with(other, *words)
                self.assertIn(result.returncode, (0, 2) if status is None else (status,), result.stderr)
                for folder in self.out, copy:
                    self.assertEqual(sorted(os.listdir(folder)), before)
        ledger.chmod(0o644)
        self.assertDone(run(slides, "--out", self.out))

    def test_what_a_killed_run_left_is_read_by_who_cant_write_it_and_stays(self):
        slides, temporary = self.folder_of("a.svs"), self.folder / "temporary"
        temporary.mkdir()
        other = self.other(slides / "a.svs")
        die = "import os, signal, sqlite3, sys; database = sqlite3.connect(sys.argv[1], isolation_level=None); " \
              "[database.execute(line) for line in sys.argv[2:]]; os.kill(os.getpid(), signal.SIGKILL)"
        changes = {"wal": ["PRAGMA journal_mode = WAL", "UPDATE slides SET attempts = 7"],
                   "rollback": ["PRAGMA cache_size = 1", "BEGIN", "UPDATE slides SET state = 'running'",
                                "CREATE TABLE t AS SELECT zeroblob(1000000)"]}
        for journal, lines in changes.items():
            out = self.folder / journal
            self.assertDone(run(slides, "--out", out, "--set", f"output.journal={journal}"))
            subprocess.run([sys.executable, "-c", die, out / "run.sqlite", *lines], timeout=time_limit(120), check=False)
            self.assertTrue((out / f"run.sqlite-{'wal' if journal == 'wal' else 'journal'}").stat().st_size)
            for folder in self.folder, out, temporary:
                folder.chmod(0o777)
            (out / "run.sqlite").chmod(0o444)
            before = {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()}
            for words in ["status", out], ["verify", out], ["compare", out, out], ["merge", out, "--out", self.folder / f"{journal}-all"]:
                with self.subTest(journal, words=words):
                    result = subprocess.run([PIPELINE, *map(str, words)], capture_output=True, text=True, timeout=time_limit(120),
                                            env={**ENVIRONMENT, "TMPDIR": str(temporary)}, input="", preexec_fn=other)
                    self.assertDone(result)
                    self.assertEqual({file.name: file.read_bytes() for file in out.iterdir() if file.is_file()}, before)
                    self.assertEqual(os.listdir(temporary), [])
            (out / "run.sqlite").chmod(0o644)
            # Without a place for a copy one line says whose the file is.
            if os.geteuid() == 0 and journal == "rollback":
                result = subprocess.run([PIPELINE, "status", out], capture_output=True, text=True, timeout=time_limit(120), input="",
                                        env={**ENVIRONMENT, "TMPDIR": "/proc"}, preexec_fn=other)
                self.assertOneLine(result, 2, f"{out}/run.sqlite: ", "unfinished work", "permissions 0644", "can't write it")

    @unittest.skipIf(os.geteuid() != 0, "needs two users")
    def test_an_empty_log_that_others_left_is_removed_by_the_owner(self):
        slides = self.folder_of("a.svs")
        self.folder.chmod(0o777)
        owner = self.other(slides / "a.svs")
        self.assertDone(run_with(owner, slides, "--out", self.out))
        before = sorted(os.listdir(self.out))
        for name, content in ("run.sqlite-wal", b""), ("run.sqlite-shm", bytes(32768)):
            (self.out / name).write_bytes(content)
            (self.out / name).chmod(0o644)
        self.assertDone(run_with(owner, slides, "--out", self.out))
        self.assertEqual(sorted(os.listdir(self.out)), before)

    @unittest.skipIf(os.geteuid() != 0, "needs two users")
    def test_who_cant_move_images_aside_moves_nothing(self):
        slides = self.folder_of("a.svs", "b.svs")
        self.other(slides / "a.svs")
        group = 65534
        owner, member = (lambda user=user: (os.umask(0o002), os.setgroups([]), os.setgid(group), os.setuid(user))
                         for user in (65533, 65532))
        os.chown(self.folder, -1, group)
        self.folder.chmod(0o775)
        command = ["convert", slides, "--out", self.out]
        self.assertDone(run_with(owner, *command))
        images = self.out / "images"
        files = sorted(os.listdir(images))
        # Without the right to write in it, and as in /tmp, where the owner of a file alone may move it.
        for mode, denied in (0o755, f"Permission denied: {images} has"), (0o1775, f"not permitted: {images}/"):
            with self.subTest(mode=oct(mode)):
                images.chmod(mode)
                result = run_with(member, *command, "--fresh")
                self.assertOneLine(result, 2, denied, "the permissions", "this process is of user 65532, who can't")
                self.assertEqual(sorted(os.listdir(images)), files)
                self.assertFalse((self.out / ".slidestream-earlier").exists())
                self.assertIn("skipped as done: 2 of 2 slides", self.assertDone(run_with(owner, *command)).stderr)
        # What was moved before comes back.
        images.chmod(0o775)
        os.chown(images, 65533, group)
        images.chmod(0o1775)
        os.chown(images / files[0], 65532, group)
        self.assertOneLine(run_with(member, *command, "--fresh"), 2, f"{images / files[1]} has the permissions")
        self.assertEqual(sorted(os.listdir(images)), files)
        self.assertIn("skipped as done: 2 of 2 slides", self.assertDone(run_with(owner, *command)).stderr)

    def other(self, *files):
        """What makes a process somebody else's, where who runs this may do everything."""
        if os.geteuid() != 0:
            return None
        for file in [PIPELINE, *files, *pathlib.Path(PIPELINE).parents]:
            if not os.stat(file).st_mode & 0o005:
                self.skipTest(f"{file} isn't for everybody, and who runs this is the superuser")
        return lambda: (os.setgid(65534), os.setuid(65534))

    def test_a_folder_that_others_own_is_named_with_its_permissions(self):
        slides = self.folder_of("a.svs")
        self.folder.chmod(0o755)
        slide = slides / "a.svs"
        other = self.other(slide)
        for mode in (0o750, 0o700) if other else (0o500, 0o600):
            out = self.folder / f"{mode:o}"
            out.mkdir()
            out.chmod(mode)
            self.addCleanup(out.chmod, 0o700)
            rights = f": Permission denied: {out} has the permissions {mode:04o} and is of user {os.geteuid()} and group "
            for words, file in (([slides, "--out", out], out / "slides.csv"),
                                ([slides, "--out", out / "below"], out / "below"),
                                (["convert", slide, out / "a.ome.tif"], out / "a.ome.tif")):
                with self.subTest(mode=mode, words=words):
                    self.assertOneLine(run_with(other, *words), 2, f"{file}{rights}", "who can't ")
            for words, file in (([slides, "--out", out], out / "slides.csv"),
                                ([slides, "--out", out / "below"], out / "below/slides.csv"),
                                (["convert", slide, out / "a.ome.tif"], out / "a.ome.tif")):
                with self.subTest(mode=mode, forecast=words):
                    self.assertOneLine(run_with(other, *words, "--dry-run"), 2, f"{file}{rights}", "who can't ")
            self.assertOneLine(run_with(other, slides, "--out", out, "--fresh", "--dry-run"), 2, rights)

    def test_a_folder_for_images_is_looked_at_before_the_start(self):
        slides = self.folder_of("a.svs")
        images = self.out / "images"
        images.mkdir(parents=True)
        for folder in self.folder, self.out:
            folder.chmod(0o777)
        other = self.other(slides / "a.svs")
        images.chmod(0o555)
        self.addCleanup(images.chmod, 0o700)
        for more in [], ["--dry-run"]:
            with self.subTest(more):
                result = run_with(other, "convert", slides, "--out", self.out, *more)
                self.assertOneLine(result, 2, f"{images}: Permission denied: {images} has the permissions 0555")
                self.assertEqual(os.listdir(self.out), ["images"])
        # A run that writes no images doesn't ask.
        self.assertDone(run_with(other, slides, "--out", self.out))


if __name__ == "__main__":
    unittest.main()
