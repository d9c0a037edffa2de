"""Long runs from outside: `PIPELINE=path/to/pipeline archive_test.py [CLASS ...]`."""

import contextlib
import csv
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from program_test import ENVIRONMENT, LONG, PIPELINE, Case, run
from time_limits import time_limit  # noqa: E402


def ubsan_lacks_a_pipe(result):
    """UBSan opens a pipe to look at a type, and takes want of descriptors for a fault of the type."""
    return "UndefinedBehaviorSanitizer" in result.stderr and "invalid vptr" in result.stderr


def results(folder):
    """What must be the same for every run over the same slides, by file. What a run took (times, threads, stages)
    isn't, nor are the settings that name places and decide nothing."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if not path.is_file() or name.startswith(("run.sqlite", "earlier-", "part-")):
            continue
        content = path.read_bytes()
        if name == "slides.csv":
            with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
                content = [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(file)]
        elif name == "corpus.json":
            corpus = json.loads(content)
            content = {key: corpus.get(key) for key in ("totals", "histogram", "maps", "artifacts")}
            content["analysis"] = corpus["settings"]["analysis"]
        found[name] = content
    return found


# Files that operators make of slides.
MAKE_IMAGES = ["--set", 'operators.run=["spectrum","sobel","tissue"]', "--set", "image.format=ome-tiff"]


class ArchiveCase(Case):
    def tiny_slides(self, count=12, size="384x320"):
        """Copies of a few slides of their own content."""
        folder = self.folder / "slides"
        folder.mkdir()
        for number in range(count):
            source = self.slide(f"tiny-{number % 4}-{size}", size, "--seed", str(number % 4 + 1), "--tile", "128")
            shutil.copy(source, folder / f"slide-{number:03}.svs")
        return folder

    def sql(self, text, folder=None):
        database = sqlite3.connect((folder or self.out) / "run.sqlite")
        try:
            return database.execute(text).fetchall()
        finally:
            database.commit()
            database.close()

    def assertSameResults(self, one, other):
        first, second = results(one), results(other)
        self.assertEqual(first.keys(), second.keys())
        for name in first:
            self.assertEqual(first[name], second[name], name)


class Resume(ArchiveCase):
    def test_what_is_done_is_skipped(self):
        slides = self.tiny_slides()
        first = run(slides, "--out", self.out, "--maps", "npy")
        self.assertEqual(first.returncode, 0, first.stderr)
        before = {path: path.read_bytes() for path in self.out.rglob("*.npy")}
        again = run(slides, "--out", self.out, "--maps", "npy")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("skipped as done: 12 of 12 slides", again.stderr)
        self.assertIn("12 slides (12 before)", again.stdout)
        self.assertEqual(before, {path: path.read_bytes() for path in self.out.rglob("*.npy")})
        self.assertEqual({row[0] for row in self.sql("SELECT attempts FROM slides")}, {1})

    def test_more_slides_and_lost_files(self):
        slides = self.tiny_slides(6)
        names = sorted(slides.iterdir())
        self.assertEqual(run(*names[:3], "--out", self.out, "--maps", "tiff").returncode, 0)
        (self.out / "slides.csv").unlink()
        (self.out / "maps/slide-001.tif").unlink()
        result = run(*reversed(names), "--out", self.out, "--maps", "tiff")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("skipped as done: 3 of 6 slides", result.stderr)
        whole = self.folder / "whole"
        self.assertEqual(run(*reversed(names), "--out", whole, "--maps", "tiff").returncode, 0)
        self.assertSameResults(self.out, whole)
        fewer = run(names[0], "--out", self.out, "--maps", "tiff")
        self.assertIn("5 slides of earlier runs", fewer.stderr)
        self.assertEqual(len(self.rows()), 1)

    def test_maps_keep_their_names_when_the_list_grows(self):
        for name in "a", "b":
            (self.folder / name).mkdir()
            shutil.copy(self.slide(f"map-{name}", "512x512", "--seed", {"a": 3, "b": 4}[name]), self.folder / name / "x.svs")
        a, b = self.folder / "a/x.svs", self.folder / "b/x.svs"
        whole = self.folder / "whole"
        self.assertEqual(run(b, "--out", self.out, "--maps", "npy").returncode, 0)
        self.assertEqual(run(a, b, "--out", self.out, "--maps", "npy").returncode, 0)
        self.assertEqual(run(a, b, "--out", whole, "--maps", "npy").returncode, 0)
        maps = {}
        for folder, plain in (self.out, b), (whole, a):
            rows = list(csv.DictReader((folder / "slides.csv").read_text(encoding="utf-8").splitlines()))
            self.assertEqual([row["path"] for row in rows if row["map"] == "x.npy"], [str(plain)])
            self.assertEqual(sorted(row["map"] for row in rows), sorted(path.name for path in (folder / "maps").iterdir()))
            maps[folder] = {row["path"]: (folder / "maps" / row["map"]).read_bytes() for row in rows}
        self.assertEqual(maps[self.out], maps[whole])
        self.assertNotEqual(maps[whole][str(a)], maps[whole][str(b)])

    def test_failed_ones_are_tried_again_when_asked(self):
        slides = self.tiny_slides(3)
        bad = slides / "slide-001.svs"
        good = bad.read_bytes()
        bad.write_bytes(good[:3000])
        self.assertEqual(run(slides, "--out", self.out).returncode, 1)
        result = run(slides, "--out", self.out)
        self.assertEqual(result.returncode, 1)
        self.assertIn("skipped as failed: 1 of 3 slides; --retry-failed", result.stderr)
        with open(self.out / "failures.csv", newline="") as file:
            (failure,) = csv.DictReader(file)
        self.assertEqual((failure["path"], failure["stage"]), (str(bad), "source"))
        bad.write_bytes(good)
        result = run(slides, "--out", self.out, "--retry-failed")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.out / "failures.csv").read_bytes(), b"path,stage,tile,cause\r\n")
        self.assertEqual(self.sql("SELECT attempts FROM slides ORDER BY path"), [(1,), (2,), (1,)])

    def test_failures_name_stage_and_tile(self):
        bad = self.slide("defects", "1024x768", "--defects", "missing=2,corrupt=1")
        self.assertEqual(run(bad, "--out", self.out).returncode, 1)
        with open(self.out / "failures.csv", newline="") as file:
            (failure,) = csv.DictReader(file)
        self.assertEqual(failure["stage"], "decode")
        self.assertTrue(failure["tile"].isdigit(), failure)
        self.assertIn(f"tile {failure['tile']} ", failure["cause"])

    def test_a_changed_slide_is_done_again(self):
        slides = self.tiny_slides(3)
        self.assertEqual(run(slides, "--out", self.out).returncode, 0)
        shutil.copy(slides / "slide-002.svs", slides / "slide-000.svs")
        result = run(slides, "--out", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("slide-000.svs: has changed since it was done or failed: done again", result.stderr)
        rows = self.rows()
        self.assertEqual(rows[0]["mean_db"], rows[2]["mean_db"])

    def test_a_failed_slide_whose_file_was_mended_is_done_again(self):
        slides = self.tiny_slides(3)
        bad = slides / "slide-001.svs"
        good = bad.read_bytes()
        bad.write_bytes(good[:3000])
        self.assertEqual(run(slides, "--out", self.out).returncode, 1)
        bad.write_bytes(good)
        result = run(slides, "--out", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("slide-001.svs: has changed", result.stderr)

    def test_a_result_whose_file_is_gone_is_kept_and_said(self):
        slides = self.tiny_slides(2)
        named = sorted(slides.iterdir())
        self.assertEqual(run(*named, "--out", self.out).returncode, 0)
        named[0].unlink()
        result = run(*named, "--out", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("slide-000.svs: can't be found any more; its result of an earlier run is kept", result.stderr)

    def test_a_file_that_is_gone_with_its_slide_is_never_taken_for_done(self):
        slides = self.tiny_slides(2)
        named = sorted(slides.iterdir())
        command = [*named, "--operators", "spectrum,identity", "--out", self.out]
        self.assertEqual(run(*command).returncode, 0)
        content = named[0].read_bytes()
        named[0].unlink()
        image = next((self.out / "images").glob("slide-000*"))
        was = image.read_bytes()
        for left in None, was[:100]:
            image.unlink(missing_ok=True)
            if left is not None:
                image.write_bytes(left)
            for more in (), ("--retry-failed",):
                with self.subTest(left=left is not None, more=more):
                    result = run(*command, *more)
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertRegex(result.stderr, r"slide-000\.svs: .*: the slide can't be found any more; what else "
                                                    r"there is of its result is kept")
                    self.assertIn("1 slide can't be found any more and lacks files of earlier results", result.stderr)
                    self.assertEqual([row["status"] for row in self.rows()], ["done", "done"])
        named[0].write_bytes(content)
        result = run(*command, "--overwrite")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(image.read_bytes(), was)

    def test_a_content_hash_is_taken_at_the_first_start_that_asks_for_it(self):
        slides = self.tiny_slides(2)
        self.assertEqual(run(slides, "--out", self.out).returncode, 0)
        always = ("--set", "input.content_hash=always")
        self.assertEqual(run(slides, "--out", self.out, *always).returncode, 0)
        file = slides / "slide-000.svs"
        status = file.stat()
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.assertIn("slide-000.svs: has changed", run(slides, "--out", self.out, *always).stderr)

    def test_fresh_moves_a_damaged_ledger_aside(self):
        slides = self.tiny_slides(2)
        self.assertEqual(run(slides, "--out", self.out).returncode, 0)
        (self.out / "run.sqlite").write_text("no ledger")
        self.assertEqual(run(slides, "--out", self.out).returncode, 2)
        result = run(slides, "--out", self.out, "--fresh")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.out / "earlier-1/run.sqlite").read_text(), "no ledger")

    def test_other_settings_are_refused_unless_fresh(self):
        slides = self.tiny_slides(2)
        self.assertEqual(run(slides, "--out", self.out).returncode, 0)
        result = run(slides, "--out", self.out, "--set", "analysis.bins=1499", "--set", "analysis.value=db")
        self.assertOneLine(result, 2, "analysis.value is \"db\" here and was \"log1p_db\"")
        before = results(self.out)
        for setting in "pipeline.strip_height=128", "pipeline.memory_mib=64", "pipeline.threads=1":
            self.assertEqual(run(slides, "--out", self.out, "--set", setting).returncode, 0)
        self.assertEqual(run(slides, "--out", self.out, "--set", "analysis.value=db", "--fresh").returncode, 0)
        self.assertEqual(results(self.out / "earlier-1"), before)
        self.assertNotEqual(results(self.out)["histograms.npy"], before["histograms.npy"])

    def test_another_reference_is_refused(self):
        slide = self.slide("stained", "1024x768", "--mpp", "1")
        reference = self.folder / "reference.svs"
        shutil.copy(self.slide("reference-1", "1024x768", "--mpp", "1", "--seed", "5"), reference)
        settings = ("-s", "operators.run=stain", "-s", "image.format=ome-tiff", "-s", f"stain.reference={reference}")
        first = run(slide, "--out", self.out, *settings)
        self.assertEqual(first.returncode, 0, first.stderr)
        shutil.copy(self.slide("reference-2", "1024x768", "--mpp", "1", "--seed", "6"), reference)
        again = run(slide, "--out", self.out, *settings)
        self.assertEqual(again.returncode, 2, again.stderr)
        self.assertIn("the digest of the stain reference is", again.stderr)

    def test_damaged_rows_and_maps_are_done_again(self):
        slides = self.tiny_slides(4)
        arguments = slides, "--out", self.out, "--maps", "npy"
        self.assertEqual(run(*arguments).returncode, 0)
        before = results(self.out)
        self.sql("UPDATE slides SET value_sum = value_sum || '1' WHERE position = 1")
        self.sql("UPDATE maps SET bytes = zeroblob(length(bytes)) WHERE slide = (SELECT id FROM slides WHERE position = 2)")
        (self.out / "maps/slide-002.npy").unlink()
        (self.out / "maps/slide-003.npy").write_bytes((self.out / "maps/slide-003.npy").read_bytes()[:-1])
        result = run(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"run.sqlite: damaged: the row of {slides}/slide-001.svs isn't what was written: done again", result.stderr)
        self.assertIn(f"run.sqlite: damaged: the map of {slides}/slide-002.svs isn't what was written: done again", result.stderr)
        self.assertIn("skipped as done: 2 of 4 slides", result.stderr)
        self.assertEqual(results(self.out), before)

    def test_a_row_that_somebody_deleted_is_told(self):
        slides = self.tiny_slides(3)
        arguments = slides, "--out", self.out, "--maps", "npy"
        self.assertEqual(run(*arguments).returncode, 0)
        before = results(self.out)
        self.sql("DELETE FROM slides WHERE position = 1")
        line = f"{self.out}/run.sqlite: damaged: the list of slides isn't what was written: slides without a row are done again"
        result = run(*arguments)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(line, result.stderr)
        # As the line says.
        result = run(*arguments, "--overwrite")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn(line, result.stderr)
        self.assertEqual(results(self.out), before)

    def test_maps_that_were_cut_off_are_written_again(self):
        slides = self.tiny_slides(2)
        for kind, suffix in ("npy", "npy"), ("tiff", "tif"):
            out = self.folder / kind
            self.assertEqual(run(slides, "--out", out, "--maps", kind).returncode, 0)
            file = out / f"maps/slide-001.{suffix}"
            whole = file.read_bytes()
            for size in 0, 1, 100, len(whole) // 2, len(whole) - 1:
                file.write_bytes(whole[:size])
                result = run(slides, "--out", out, "--maps", kind)
                self.assertEqual((result.returncode, file.read_bytes() == whole), (0, True), f"{kind} {size}")

    def test_results_without_a_ledger_are_not_written_over(self):
        slides = self.tiny_slides(2)
        self.assertEqual(run(slides, "--out", self.out, "--maps", "npy").returncode, 0)
        before = results(self.out)
        (self.out / "run.sqlite").unlink()
        self.assertOneLine(run(slides, "--out", self.out), 2, "has slides.csv, but no run.sqlite", "--fresh")
        (self.out / "run.sqlite").touch()
        self.assertOneLine(run(slides, "--out", self.out), 2, "run.sqlite is empty")
        result = run(slides, "--out", self.out, "--maps", "npy", "--fresh")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(results(self.out / "earlier-1"), before)
        self.assertEqual(results(self.out), before)

    def test_a_start_with_nothing_to_do_keeps_the_times_of_the_last(self):
        slides = self.tiny_slides(2)
        self.assertEqual(run(slides, "--out", self.out).returncode, 0)
        before = (self.out / "corpus.json").read_bytes()
        self.assertGreater(json.loads(before)["seconds"], 0)
        self.assertEqual(run(slides, "--out", self.out).returncode, 0)
        self.assertEqual((self.out / "corpus.json").read_bytes(), before)
        (self.out / "corpus.json").write_text("[1")
        self.assertEqual(run(slides, "--out", self.out).returncode, 0)
        self.assertEqual(json.loads((self.out / "corpus.json").read_text())["totals"], json.loads(before)["totals"])

    def test_a_file_beyond_the_limit_is_an_error_of_one_line(self):
        slides = self.tiny_slides(2)
        limited = subprocess.run(["bash", "-c", 'ulimit -f 20; exec "$0" "$@"', PIPELINE, slides, "--out", self.out],
                                 capture_output=True, text=True, env=ENVIRONMENT, timeout=time_limit(60))
        self.assertIn(limited.returncode, (2, 3), limited.stderr)
        self.assertEqual(len([line for line in limited.stderr.splitlines() if " error: " in line]), 1, limited.stderr)
        self.assertIn("File too large", limited.stderr)
        self.assertEqual(run(slides, "--out", self.out).returncode, 0)

    def test_a_dry_run_knows_what_is_done(self):
        slides = self.tiny_slides(4)
        (slides / "slide-000.svs").write_text("no slide")
        self.assertEqual(run(slides, "--out", self.out).returncode, 1)
        os.utime(slides / "slide-003.svs", (1, 1))
        before = {path.name: path.read_bytes() for path in self.out.iterdir()}
        result = run(slides, "--out", self.out, "--dry-run")
        self.assertIn("out: 2 done by an earlier run and skipped, 1 failed before and skipped (--retry-failed tries again), "
                      "1 done again, for the file isn't what it was\n", result.stdout)
        self.assertEqual(before, {path.name: path.read_bytes() for path in self.out.iterdir()})
        result = run(slides, "--out", self.out, "--dry-run", "--set", "analysis.stride=64")
        self.assertOneLine(result, 2, "analysis.stride is 64 here and was 128")
        self.assertNotIn("earlier run", run(slides, "--out", self.folder / "new", "--dry-run").stdout)
        self.assertNotIn("earlier run", run(slides, "--out", self.out, "--dry-run", "--fresh").stdout)

    def test_checkpoints_show_what_is_done(self):
        process = subprocess.Popen([PIPELINE, str(self.slide()), str(self.large_slide()), "--out", str(self.out), "--set",
                                    "output.checkpoint_seconds=1", *LONG], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        # The first may come before the small slide is done.
        self.wait_until(lambda: (self.out / "slides.csv").exists() and self.rows())
        self.assertEqual([row["status"] for row in self.rows()], ["done"])
        self.wait_until((self.out / "histograms.npy").exists)
        self.wait_until(lambda: json.loads(run("status", self.out, "--json").stdout)["running"] == 1)
        self.assertIsNone(process.poll())
        status = json.loads(run("status", self.out, "--json").stdout)
        self.assertEqual((status["done"], status["running"], status["owner"]["alive"]), (1, 1, True))
        self.assertIn("large.svs", run("status", self.out).stdout)


class SideInputs(ArchiveCase):
    """What is read besides slides: a file in its place is another input."""

    STAIN = ("-s", "operators.run=stain", "-s", "image.format=ome-tiff")

    def square(self, file, side):
        """An outline from (0, 0)."""
        corners = [[0, 0], [side, 0], [side, side], [0, side], [0, 0]]
        pathlib.Path(file).write_text(json.dumps({"type": "Polygon", "coordinates": [corners]}), encoding="utf-8")

    def test_outlines_of_a_slide(self):
        slides = self.tiny_slides(3)
        for slide in slides.iterdir():
            self.square(slide.with_suffix(".geojson"), 128)
        command = (slides, "--out", self.out, "-s", "operators.run=tissue", "-s", "tissue.source=geojson", "-s",
                   "input.mpp=8")
        self.assertEqual(run(*command).returncode, 0)
        before = [float(row["tissue.share"]) for row in self.rows()]
        self.square(slides / "slide-001.geojson", 256)
        self.assertIn("2 done by an earlier run and skipped, 1 done again", run(*command, "--dry-run").stdout)
        again = run(*command)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("skipped as done: 2 of 3 slides", again.stderr)
        self.assertIn("slide-001.svs: its outlines, or its mpp in the list, have changed since it was done or failed: done "
                      "again", again.stderr)
        after = [float(row["tissue.share"]) for row in self.rows()]
        self.assertEqual((after[0], after[2]), (before[0], before[2]))
        self.assertAlmostEqual(after[1], 4 * before[1], delta=0.01)
        self.assertIn("skipped as done: 3 of 3 slides", run(*command).stderr)
        # One that lacked its outlines is tried when they are there.
        (slides / "slide-002.geojson").unlink()
        self.assertEqual(run(*command).returncode, 1)
        self.square(slides / "slide-002.geojson", 128)
        self.assertEqual(run(*command).returncode, 0)

    def test_outlines_of_the_reference(self):
        slide = self.slide("stained", "1024x768", "--mpp", "1")
        reference = self.folder / "reference.svs"
        shutil.copy(self.slide("reference-1", "1024x768", "--mpp", "1", "--seed", "5"), reference)
        self.square(reference.with_suffix(".geojson"), 700)
        copied = self.folder / "slide.svs"
        shutil.copy(slide, copied)
        self.square(copied.with_suffix(".geojson"), 700)
        command = (copied, "--out", self.out, *self.STAIN, "-s", "tissue.source=geojson", "-s",
                   f"stain.reference={reference}")
        first = run(*command)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.square(reference.with_suffix(".geojson"), 600)
        again = run(*command)
        self.assertEqual(again.returncode, 2, again.stderr)
        self.assertIn("the digest of the stain reference's outlines is", again.stderr)

    def test_pixel_sizes_in_a_list(self):
        slides = self.tiny_slides(3)
        manifest = self.folder / "sizes.csv"
        command = (manifest, "--out", self.out, "-s", "operators.run=identity", "-s", "image.format=ome-tiff")
        manifest.write_text("path,mpp\nslides/slide-000.svs,0.5\nslides/slide-001.svs,\nslides/slide-002.svs,1\n",
                            encoding="utf-8")
        first = run(*command)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("the list gives 2 slides a pixel size: the magnification is 10 / mpp", first.stderr)
        self.assertEqual([row["mpp"] for row in self.rows()], ["0.5", "0.25", "1"])
        image = (self.out / "images/slide-002.identity.ome.tif").read_bytes()
        self.assertIn(b'PhysicalSizeX="1"', image)
        self.assertIn(b'NominalMagnification="10"', image)
        manifest.write_text("path,mpp\nslides/slide-000.svs,0.5\nslides/slide-001.svs,\nslides/slide-002.svs,2\n",
                            encoding="utf-8")
        again = run(*command)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("skipped as done: 2 of 3 slides", again.stderr)
        self.assertIn("slide-002.svs: its mpp in the list has changed since it was done or failed: done again", again.stderr)
        self.assertEqual([row["mpp"] for row in self.rows()], ["0.5", "0.25", "2"])
        # Sizes of a key are settings.
        self.assertOneLine(run(*command, "-s", "input.mpp_default=0.5"), 2, "input.mpp_default is 0.5 here and was 0.0")
        self.assertOneLine(run(*command, "-s", "input.mpp=0.5"), 2, "input.mpp is 0.5 here and was 0.0")
        self.assertOneLine(run(*command, "-s", "input.channel=0"), 2, "input.channel is 0 here and was -1")


class Deaths(ArchiveCase):
    def states(self):
        """Of each slide: its state, and how often it was tried; with starts that no commit has entered."""
        with contextlib.suppress(sqlite3.OperationalError, FileNotFoundError):
            if (self.out / "run.sqlite").exists():
                notes = (self.out / "run.sqlite-started").read_text().split() if (self.out / "run.sqlite-started").exists() else []
                rows = {number: row for number, *row in self.sql("SELECT id, CAST(path AS TEXT), state, attempts FROM slides")}
                entered = self.sql("SELECT CAST(value AS TEXT) FROM meta WHERE name = 'started'")
                token, count = entered[0][0].split() if entered else ("", 0)
                for number in map(int, filter(str.isdigit, notes[1 + int(count) * (notes[:1] == [token]):])):
                    if number > 0:  # else its files are noted
                        rows[number][1:] = "running", rows[number][2] + 1
                return {path: row for path, *row in rows.values()}
        return {}

    def die_at(self, arguments, slide, alone, note=""):
        """Starts a run, and kills it while it works on the slide, and on no other if `alone`; with a note, as if it had
        written that."""
        tried = self.states().get(str(slide), ["", 0])[1]
        process = subprocess.Popen([PIPELINE, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True, env=ENVIRONMENT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + time_limit(100)
        while True:
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll())
            time.sleep(0.02)
            states = self.states()
            others = {state for path, (state, _) in states.items() if path != str(slide)}
            if states.get(str(slide)) == ["running", tried + 1] and not (alone and "running" in others):
                break
        if note:
            with open(self.out / "run.sqlite-started", "a") as notes:
                notes.write(note)
        process.kill()
        return process.communicate()[1]

    def test_a_slide_that_kills_every_start_stops_no_other(self):
        slides = sorted(self.tiny_slides(6).iterdir())
        deadly = self.large_slide()
        arguments = [deadly, *slides, "--out", self.out, "--threads", 2, "--set", "analysis.stride=32", "--maps", "npy"]
        self.die_at(arguments, deadly, alone=False)
        self.die_at(arguments, deadly, alone=False)
        # Alone, behind those that nobody suspects.
        error = self.die_at(arguments, deadly, alone=True)
        self.assertIn(f"{deadly}: two processes died while they worked on it: it is tried alone, behind all others", error)
        # Who asks for failed slides gets it tried, also by the start that finds the third death.
        error = self.die_at([*arguments, "--retry-failed"], deadly, alone=True)
        self.assertIn(f"{deadly}: 3 processes died while they worked on it: it is tried alone, behind all others", error)
        result = run(*arguments)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"{deadly}: source: the process died twice while it worked on this slide, and again on it alone; "
                      "--retry-failed tries it again", result.stderr)
        with open(self.out / "failures.csv", newline="") as file:
            (failure,) = csv.DictReader(file)
        self.assertEqual(failure["path"], str(deadly))
        self.assertEqual(len(self.rows()), 7)
        # It stays failed, as any other does.
        again = run(*arguments)
        self.assertEqual(again.returncode, 1)
        self.assertIn("skipped as failed: 1 of 7 slides; --retry-failed", again.stderr)

    def test_a_slide_that_every_start_lacks_memory_for_stops_no_other(self):
        slides = sorted(self.tiny_slides(6).iterdir())
        hungry = self.large_slide()
        arguments = [hungry, *slides, "--out", self.out, "--threads", 2, "--set", "analysis.stride=32"]
        note = "\nshortage\n"
        self.die_at(arguments, hungry, alone=False, note=note)
        # Behind the others, which end.
        self.die_at(arguments, hungry, alone=False, note=note)
        error = self.die_at(arguments, hungry, alone=True, note=note)
        self.assertIn(f"{hungry}: two starts ended as memory or threads lacked while they worked on it: "
                      "it is tried alone, behind all others", error)
        result = run(*arguments)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"{hungry}: source: memory or threads lacked in two starts that worked on this slide, and in one that "
                      "had it alone; raise the limit of memory, or lower pipeline.memory_mib and pipeline.threads; "
                      "--retry-failed tries it again", result.stderr)
        with open(self.out / "failures.csv", newline="") as file:
            (failure,) = csv.DictReader(file)
        self.assertEqual(failure["path"], str(hungry))
        self.assertEqual(len(self.rows()), 7)

    def test_a_slide_whose_image_cannot_be_written_stops_no_other(self):
        slides = sorted(self.tiny_slides(5).iterdir())
        large = self.slide("unwritable", "4096x4096", "--distinct", "16")
        arguments = ["convert", large, *slides, "--out", self.out, "--threads", "1", "--compression", "none"]

        def start():
            return subprocess.run(["bash", "-c", 'trap "" XFSZ; ulimit -f 2000; exec "$0" "$@"', PIPELINE, *map(str, arguments)],
                                  capture_output=True, text=True, env=ENVIRONMENT, timeout=time_limit(120))

        first = start()
        self.assertEqual(first.returncode, 3, first.stderr)
        self.assertEqual(self.states()[str(large)][0], "pending")
        second = start()
        self.assertEqual(second.returncode, 3, second.stderr)
        self.assertIn(f"{large}: an earlier run ended as a file of it couldn't be written: it is tried alone, behind all others",
                      second.stderr)
        states = self.states()
        self.assertEqual(states.pop(str(large))[0], "pending")
        self.assertEqual({state for state, _ in states.values()}, {"done"})
        # There is room now.
        third = run(*arguments)
        self.assertEqual(third.returncode, 0, third.stderr)
        self.assertIn("it is tried alone", third.stderr)
        again = run(*arguments)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertNotIn("it is tried alone", again.stderr)

    def test_a_death_after_a_signal_is_the_stops(self):
        slide = self.large_slide()
        arguments = [slide, "--out", self.out, "--threads", 1, "--maps", "npy", "--set", "analysis.stride=16"]
        notes = self.out / "run.sqlite-started"
        for _ in range(3):
            process = subprocess.Popen([PIPELINE, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=ENVIRONMENT)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            deadline = time.monotonic() + time_limit(100)
            def is_at_work():
                # Those of the process before are removed at any moment.
                with contextlib.suppress(FileNotFoundError):
                    text = notes.read_text()
                    return len(text.split()) > 1 and "stop" not in text
                return False

            while not is_at_work():
                self.assertLess(time.monotonic(), deadline)
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            self.assertIn(process.wait(timeout=time_limit(100)), (130, 143))
        # Died of the slide three times, it would have been given up.
        status = subprocess.run([PIPELINE, *map(str, [*arguments, "--set", "input.max_seconds=0.1"])], capture_output=True,
                                text=True, env=ENVIRONMENT, timeout=time_limit(100))
        self.assertNotIn("died", status.stderr)
        self.assertEqual(self.sql("SELECT CAST(value AS TEXT) FROM meta WHERE name = 'deaths'"), [("",)])

    def test_files_of_a_slide_that_fails_behind_a_stopped_start_move_aside(self):
        slides = self.tiny_slides(2)
        names = sorted(slides.iterdir())
        good = [name.read_bytes() for name in names]
        for shard in [], ["--shard", "1/1"]:
            with self.subTest(shard):
                out, place = self.out, self.out / "earlier-failed"
                shutil.rmtree(out, ignore_errors=True)
                arguments = [slides, "--out", out, "--maps", "npy", *MAKE_IMAGES, *LONG, *shard]
                first = run(*arguments)
                self.assertEqual(first.returncode, 0, first.stderr)
                before = results(out)
                of_slides = {name: content for name, content in before.items() if name.startswith(("images/", "maps/"))}
                self.assertGreater(len(of_slides), 4)
                for name in names:
                    shutil.copy(self.large_slide(), name)
                self.assertIn("has changed", self.die_at(arguments, names[0], alone=False))
                for name, content in zip(names, good):
                    name.write_bytes(content[:3000])
                failed = run(*arguments)
                self.assertEqual(failed.returncode, 1, failed.stderr)
                for name in names:
                    self.assertIn(f"{name}: files of its earlier result are in {place}\n", failed.stderr)
                self.assertEqual(results(place), of_slides)
                self.assertFalse(of_slides.keys() & results(out).keys())
                for name, content in zip(names, good):
                    name.write_bytes(content)
                mended = run(*arguments)
                self.assertEqual(mended.returncode, 0, mended.stderr)
                self.assertEqual(results(out), before)

    def test_a_slide_that_is_tried_alone_can_be_done(self):
        slides = sorted(self.tiny_slides(4).iterdir())
        slow = self.slide("slow", "4096x2048", "--distinct", "16")
        # So many windows take seconds, in which it is found at work.
        settings = ["--threads", 1, "--maps", "npy", "--set", "analysis.stride=16"]
        arguments = [slow, *slides, "--out", self.out, *settings]
        self.die_at(arguments, slow, alone=False)
        self.die_at(arguments, slow, alone=False)
        result = run(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("it is tried alone", result.stderr)
        whole = self.folder / "whole"
        self.assertEqual(run(slow, *slides, "--out", whole, *settings).returncode, 0)
        self.assertSameResults(self.out, whole)


class Owners(ArchiveCase):
    def start(self, *arguments):
        process = subprocess.Popen([PIPELINE, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True, env=ENVIRONMENT)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertRegex(process.stderr.readline(), "transforms: |the run computes on the CPU")
        return process

    def test_two_processes_on_one_folder(self):
        first = self.start(self.large_slide(), "--out", self.out, *LONG)
        second = run(self.slide(), "--out", self.out, *LONG)
        self.assertOneLine(second, 2, f"belongs to a run on {os.uname().nodename}, process {first.pid}")
        self.assertOneLine(run(self.slide(), "--out", self.out, *LONG, "--fresh"), 2, f"process {first.pid}")
        first.kill()
        first.wait()
        third = run(self.slide(), "--out", self.out, *LONG)
        self.assertEqual(third.returncode, 0, third.stderr)

    def test_a_process_that_stands_still_is_named_and_a_dead_one_has_no_speed(self):
        first = self.start(self.slide(), self.large_slide(), "--out", self.out, *LONG)
        self.wait_until_done(1)
        first.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        self.assertOneLine(run(self.slide(), "--out", self.out, *LONG), 2, f"process {first.pid}")
        self.assertLess(time.monotonic() - begin, 50)
        self.assertGreater(json.loads(run("status", self.out, "--json").stdout)["bytes_per_second"], 0)
        first.kill()
        first.wait()
        status = json.loads(run("status", self.out, "--json").stdout)
        self.assertEqual((status["owner"]["alive"], status["bytes_per_second"], status["seconds_left"]), (False, 0, None))
        text = run("status", self.out).stdout
        self.assertIn("dead: the same command goes on from here", text)
        self.assertNotIn("ETA", text)

    def test_a_folder_that_goes_away_ends_the_run(self):
        for how in "moved", "deleted", "replaced":
            with self.subTest(how):
                out = self.folder / how
                elsewhere = self.folder / f"{how} elsewhere"
                process = self.start(self.large_slide(), "--out", out, *LONG, "--log-level", "info")
                other = {}
                if how == "deleted":
                    shutil.rmtree(out)
                else:
                    out.rename(elsewhere)
                if how == "replaced":
                    self.assertEqual(run(self.slide(), "--out", out).returncode, 0)
                    other = results(out)
                _, errors = process.communicate(timeout=time_limit(120))
                self.assertEqual(process.returncode, 3)
                lines = [line for line in errors.splitlines() if "error" in line]
                self.assertEqual(len(lines), 1, errors)
                self.assertIn("run.sqlite: was moved, replaced or deleted while it was in use", lines[0])
                self.assertEqual(results(out) if out.exists() else {}, other)

    def test_a_folder_that_goes_away_while_files_are_written(self):
        # Many slides that are done: all that is left is to write.
        slides = self.folder / "many"
        slides.mkdir()
        small = self.slide("tiny-1-384x320", "384x320", "--seed", "2", "--tile", "128")
        for number in range(1500):
            shutil.copy(small, slides / f"{number}.svs")
        self.assertEqual(run(slides, "--out", self.out, "-q", timeout=time_limit(250)).returncode, 0)
        for number, delay in enumerate((0, 0.1, 0.2, 0.3, 0.4, 0.5)):
            elsewhere = self.folder / f"elsewhere-{number}"
            started = self.out / "run.sqlite-started"

            def token():
                try:
                    return started.read_bytes()
                except FileNotFoundError:
                    return b""

            # Of the run before, which lost its folder.
            left = token()
            process = subprocess.Popen([PIPELINE, str(slides), "--out", str(self.out), "-q"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
            # The file is there while a run is at work. One that began in the other folder would do all slides again.
            self.wait_until(lambda: token() not in (b"", left) or process.poll() is not None)
            time.sleep(delay)
            self.out.rename(elsewhere)
            self.out.mkdir()
            _, errors = process.communicate(timeout=time_limit(120))
            if process.returncode == 0:
                # It had ended, or was about to.
                self.assertIn(sorted(path.name for path in self.out.iterdir())[:1], ([], ["corpus.json"]))
            else:
                self.assertEqual(len(errors.splitlines()), 1, errors)
                self.assertEqual([path.name for path in self.out.iterdir()], [], f"after {delay} s: {errors}")
            shutil.rmtree(self.out)
            elsewhere.rename(self.out)

    def test_a_start_waits_for_one_that_was_asked_to_stop(self):
        first = self.start(self.slide(), self.large_slide(), "--out", self.out, *LONG)
        self.wait_until_done(1)
        first.send_signal(signal.SIGTERM)

        def is_stopping():
            try:
                return b"\nstop\n" in (self.out / "run.sqlite-started").read_bytes()
            except FileNotFoundError:
                return False

        self.wait_until(lambda: is_stopping() or first.poll() is not None)
        second = run(self.slide(), "--out", self.out, *LONG)
        self.assertEqual(second.returncode, 0, second.stderr)
        self.assertEqual(first.wait(timeout=time_limit(100)), 143)

    def test_a_first_signal_gives_the_ledger_back(self):
        process = self.start(self.slide(), self.large_slide(), "--out", self.out, *LONG)
        self.wait_until_done(1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=time_limit(100)), 143)
        self.assertEqual(self.sql("SELECT count(*) FROM owner"), [(0,)])
        self.assertEqual(self.sql("SELECT state FROM slides ORDER BY position"), [("done",), ("pending",)])
        self.assertIn("stopped", run("status", self.out).stdout)


class Limits(ArchiveCase):
    def test_a_slide_that_takes_too_long_fails_and_the_rest_goes_on(self):
        # A busy machine may take longer than a short limit for the small slide, too.
        for limit in 1, 5, 25:
            out = self.folder / str(limit)
            result = run(self.large_slide(), self.slide(), "--out", out, "--set", f"input.max_seconds={limit}", *LONG)
            rows = self.rows(out)
            if [row["status"] for row in rows] == ["failed", "done"]:
                break
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual([row["status"] for row in rows], ["failed", "done"])
        self.assertIn(f"took longer than input.max_seconds = {limit}", rows[0]["error"])

    def test_too_few_descriptors_end_the_start_with_one_line(self):
        slides = self.tiny_slides(2)
        for most in range(8, 12):
            for name, words in ("folder", [slides, "--out"]), ("file", ["convert", slides / "slide-000.svs"]):
                out = self.folder / f"{name}-{most}.ome.tif"
                with self.subTest(most=most, name=name):
                    result = run(*words, out, timeout=time_limit(100),
                                 preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
                    if ubsan_lacks_a_pipe(result):
                        continue
                    if name == "folder" or result.returncode != 0:
                        # Below that SQLite has words of its own.
                        self.assertOneLine(result, 2, "raise the limit of open files (ulimit -n)" if most > 9 else "")
                        self.assertNotIn("progress.json", result.stderr)
                    self.assertEqual(run(*words, out).returncode, 0)

    def test_images_that_are_folders_need_more_descriptors(self):
        slides = self.tiny_slides(2)
        command = [slides, "--operators", "spectrum,identity", "--set", "image.format=ome-zarr", "--out"]
        for most in 16, 20, 32, 48:
            out = self.folder / str(most)
            with self.subTest(most=most):
                result = run(*command, out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
                if ubsan_lacks_a_pipe(result):
                    continue
                self.assertOneLine(result, 2, "a run needs 56; raise the limit of open files (ulimit -n)")
                self.assertFalse((out / "images").exists())
                self.assertEqual(run(*command, out).returncode, 0)

    def test_no_slide_fails_for_want_of_descriptors(self):
        slides = self.tiny_slides(3)
        told = 0
        for most in range(6, 40, 1 if "SLIDESTREAM_TEST_WIDE" in os.environ else 3):
            out = self.folder / f"few {most}"
            result = run(slides, "--out", out, "--threads", 1, "--set", "input.retries=0",
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
            if ubsan_lacks_a_pipe(result):
                told += 1
                continue
            self.assertIn(result.returncode, (0, 1, 2, 3, 127), result.stderr)
            self.assertNotIn("internal", result.stderr)
            if "raise the limit of open files (ulimit -n)" in result.stderr:
                told += 1
                self.out = out
                self.assertEqual(self.sql("SELECT count(*) FROM slides WHERE state = 'failed'"), [(0,)])
                self.assertEqual(run(slides, "--out", out).returncode, 0)
        self.assertGreater(told, 0)

    def test_too_many_failures_stop_the_run(self):
        slides = self.tiny_slides(10)
        for number in range(5):
            (slides / f"slide-{number:03}.svs").write_text("no slide")
        for limit, stops in ("2", True), ("20%", True), ("6", False), ("60%", False):
            result = run(slides, "--out", self.out, "--max-failures", limit, "--fresh")
            self.assertEqual(result.returncode, 3 if stops else 1)
            self.assertEqual("stopped by --max-failures" in result.stderr, stops, result.stderr)
            if not stops:
                self.assertEqual(len(self.rows()), 10)
            else:
                self.assertEqual([row["status"] for row in self.rows()].count("failed"), 2)
        result = run(slides, "--out", self.folder / "all fail", "--max-failures", 5, "--threads", 1)
        if len(self.rows(self.folder / "all fail")) == 10:
            self.assertNotIn("stopped by", result.stderr)
        # The same command again goes on: failures are counted anew.
        shutil.rmtree(self.out)
        for start in range(4):
            result = run(slides, "--out", self.out, "--max-failures", 3, "--threads", 1)
            self.assertEqual(result.returncode, 3 if "stopped by" in result.stderr else 1)
            if "stopped by" not in result.stderr:
                break
        self.assertIn("skipped as failed: ", result.stderr)
        self.assertEqual(len(self.rows()), 10)
        for wrong in "0", "-1", "x", "0%", "101%", "5%%":
            self.assertOneLine(run(slides, "--out", self.out, "--max-failures", wrong), 2, "--max-failures")


class Images(ArchiveCase):
    """Files that operators make of slides."""

    settings = [*MAKE_IMAGES, "--set", 'operators.run=["sobel","tissue"]']

    def artifacts(self, folder=None):
        with open((folder or self.out) / "artifacts.csv", newline="", encoding="utf-8", errors="surrogateescape") as file:
            return list(csv.DictReader(file))

    def images(self, folder=None):
        return {path.name: path.read_bytes() for path in ((folder or self.out) / "images").iterdir()}

    def test_what_is_there_is_kept_and_what_is_missing_is_made_again(self):
        slides = self.tiny_slides(3)
        first = run(slides, "--out", self.out, *self.settings)
        self.assertEqual(first.returncode, 0, first.stderr)
        whole = self.images()
        rows = self.artifacts()
        self.assertEqual(set(whole), {pathlib.Path(row["file"]).name for row in rows})
        for row in rows:
            self.assertEqual(int(row["bytes"]), (self.out / row["file"]).stat().st_size)
        self.assertIn("tissue.share", self.rows()[0])
        self.assertIn(f"made      {len(rows)} files", run("status", self.out).stdout)
        self.assertEqual(json.loads(run("status", self.out, "--json").stdout)["artifact_bytes"],
                         sum(map(len, whole.values())))
        again = run(slides, "--out", self.out, *self.settings)
        self.assertIn("skipped as done: 3 of 3 slides", again.stderr)
        missing, short = self.out / "images/slide-000.sobel.ome.tif", self.out / "images/slide-002.sobel.ome.tif"
        missing.unlink()
        os.truncate(short, 1000)
        plan = run(slides, "--out", self.out, *self.settings, "--dry-run")
        self.assertIn("2 done again", plan.stdout)
        result = run(slides, "--out", self.out, *self.settings)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"slide-000.svs: {missing} is missing: done again", result.stderr)
        self.assertIn(f"{short} has 1000 bytes and had {len(whole[short.name])}: done again", result.stderr)
        self.assertIn("skipped as done: 1 of 3 slides", result.stderr)
        self.assertEqual(self.images(), whole)
        self.assertEqual(self.artifacts(), rows)

    def test_slides_of_one_name_have_images_of_their_own_in_any_order(self):
        paths = []
        for number, name in enumerate(("a/x.svs", "b/X.svs", "c/x.svs")):
            paths.append(self.folder / name)
            paths[-1].parent.mkdir()
            shutil.copy(self.slide(f"name-{number}", "384x320", "--seed", str(number + 1)), paths[-1])
        self.assertEqual(run(paths[2], "--out", self.out, *self.settings).returncode, 0)
        before = {row["path"]: row["file"] for row in self.artifacts()}
        result = run(*paths, "--out", self.out, *self.settings)
        self.assertEqual(result.returncode, 0, result.stderr)
        files = {row["path"]: row["file"] for row in self.artifacts()}
        self.assertEqual(files[str(paths[2])], before[str(paths[2])])
        names = {row["file"].lower() for row in self.artifacts()}
        self.assertEqual(len(names), len(self.artifacts()))
        self.assertEqual({name.lower() for name in self.images()}, {pathlib.Path(name).name for name in names})

    def test_a_results_folder_among_the_inputs_and_fresh(self):
        slides = self.tiny_slides(2)
        out = slides / "out"
        for _ in range(2):
            result = run(slides, "--out", out, *self.settings)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(self.rows(out)), 2)
        self.assertIn("has results of an earlier run; ", result.stderr)
        whole = self.images(out)
        (out / "images/mine.ome.tif").write_bytes(b"mine")
        refused = run(slides, "--out", out, *self.settings, "--set", "image.quality=50")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("image.quality is 50 here and was 85; name another folder, or use --fresh", refused.stderr)
        result = run(slides, "--out", out, *self.settings, "--fresh")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.images(out / "earlier-1"), whole)
        self.assertEqual(self.images(out), {**whole, "mine.ome.tif": b"mine"})

    def test_parts_are_joined_with_their_images(self):
        slides = self.tiny_slides(6)
        self.assertEqual(run(slides, "--out", self.folder / "whole", *self.settings).returncode, 0)
        parts = [self.folder / "1", self.folder / "2"]
        for number, part in enumerate(parts, 1):
            self.assertEqual(run(slides, "--out", part, *self.settings, "--shard", f"{number}/2").returncode, 0)
        image = self.folder / "x.dicom"
        self.assertEqual(run("convert", self.slide(), image, "-s", "input.mpp=0.25").returncode, 0)
        for within in image, image / "new":
            self.assertOneLine(run("merge", *parts, "--out", within), 2, "an image of this program; name another")
        self.assertEqual(run("merge", *parts, "--out", self.out).returncode, 0)
        self.assertFalse((self.out / "images").exists())
        joined = self.artifacts()
        self.assertEqual([row["digest"] for row in joined], [row["digest"] for row in self.artifacts(self.folder / "whole")])
        for row in joined:
            self.assertEqual((self.out / row["file"]).stat().st_size, int(row["bytes"]))
        again = run(slides, "--out", self.out, *self.settings)
        self.assertIn("skipped as done: 6 of 6 slides", again.stderr)
        same = run("compare", self.out, self.folder / "whole", "--tolerance", "0")
        self.assertEqual(same.returncode, 0, same.stderr)
        self.assertIn("6 equal to the bit", same.stdout)
        self.assertEqual(run("report", self.out, "--html", self.folder / "report.html").returncode, 0)
        self.assertIn('"artifacts":' + str(len(joined)), (self.folder / "report.html").read_text().replace(" ", ""))
        other = run(slides, "--out", self.folder / "other", *self.settings, "--set", "image.quality=50")
        self.assertEqual(other.returncode, 0, other.stderr)
        differs = run("compare", self.out, self.folder / "other", "--tolerance", "0")
        self.assertEqual(differs.returncode, 1)
        self.assertRegex(differs.stdout, r"slide-000\.svs: sobel \w+: [0-9a-f]{16}, then [0-9a-f]{16}")
        self.assertIn("0 equal to the bit", differs.stdout)


class Shards(ArchiveCase):
    def test_parts_in_any_order_are_the_whole(self):
        slides = self.tiny_slides(24)
        (slides / "bad.svs").write_text("no slide")
        self.assertEqual(run(slides, "--out", self.out, "--maps", "npy").returncode, 1)
        for by in "path", "size":
            parts = []
            for number in range(1, 5):
                parts.append(self.folder / f"{by}-{number}")
                result = run(slides, "--out", parts[-1], "--maps", "npy", "--shard", f"{number}/4", "--shard-by", by)
                self.assertIn(result.returncode, (0, 1), result.stderr)
            self.assertEqual(sum(len(self.rows(part)) for part in parts), 25)
            for name, order in ("forth", parts), ("back", parts[::-1]):
                merged = run("merge", *order, "--out", self.folder / f"{by}-{name}")
                self.assertEqual(merged.returncode, 1, merged.stderr)
                self.assertIn("done     24 slides", merged.stdout)
                self.assertIn("failed   1 of 25\n", merged.stdout)
                self.assertSameResults(self.folder / f"{by}-{name}", self.out)
            for name in "slides.csv", "histograms.npy", "failures.csv":
                self.assertEqual(*[(self.folder / f"{by}-{order}" / name).read_bytes() for order in ("forth", "back")])
            corpora = [(self.folder / f"{by}-{order}/corpus.json").read_text() for order in ("forth", "back")]
            self.assertEqual(corpora[0].replace(f"{by}-forth", ""), corpora[1].replace(f"{by}-back", ""))

    def test_missing_slides_are_named(self):
        slides = self.tiny_slides(40)  # so many that no shard is empty, wherever they lie
        for number in 1, 2:
            run(slides, "--out", self.folder / str(number), "--shard", f"{number}/3")
        missing = run("merge", self.folder / "1", self.folder / "2", "--out", self.out)
        self.assertEqual(missing.returncode, 3)
        whole = {str(path) for path in slides.iterdir()}
        there = {row["path"] for row in self.rows()}
        for path in whole - there:
            self.assertIn(f"{path}: done in none of the folders", missing.stderr)
        self.assertIn(f"{len(whole - there)} slides are still to do, and have no rows in slides.csv", missing.stderr)
        self.assertIn(f"done     {len(there)} of 40 slides, ", missing.stdout)
        self.assertTrue(missing.stdout.endswith(
            f"missing  {len(whole - there)} of 40 slides: still to do\n"), missing.stdout)
        status = json.loads(run("status", self.out, "--json").stdout)
        self.assertEqual((status["slides"], status["pending"]), (40, len(whole - there)))
        self.assertTrue(json.loads((self.out / "corpus.json").read_text())["interrupted"])

    def test_other_results_and_settings_are_refused(self):
        slides = self.tiny_slides(2)
        self.assertEqual(run(slides, "--out", self.folder / "1").returncode, 0)
        self.assertEqual(run(slides, "--out", self.folder / "2", "--set", "analysis.stride=64").returncode, 0)
        result = run("merge", self.folder / "1", self.folder / "2", "--out", self.out)
        self.assertOneLine(result, 2, "2: analysis.stride is 64 there, and 128 in", "/1")
        shutil.copy(slides / "slide-001.svs", slides / "slide-000.svs")
        self.assertEqual(run(slides, "--out", self.folder / "3").returncode, 0)
        result = run("merge", self.folder / "1", self.folder / "3", "--out", self.out)
        self.assertOneLine(result, 2, "slide-000.svs: has another result in")

    def test_folders_of_more_shards_than_now_are_refused(self):
        slides = self.tiny_slides(6)
        for number in 1, 2, 3:
            self.assertEqual(run(slides, "--out", self.folder / f"part-{number}", "--shard", f"{number}/3").returncode, 0)
        (slides / "slide-005.svs").unlink()
        for number in 1, 2:
            result = run(slides, "--out", self.folder / f"part-{number}", "--shard", f"{number}/2", "--fresh")
            self.assertEqual(result.returncode, 0, result.stderr)
        parts = [self.folder / f"part-{number}" for number in (1, 2, 3)]
        result = run("merge", *parts, "--out", self.out)
        self.assertOneLine(result, 2, f"{parts[2]}: has a shard of 3, and {parts[0]} one of 2; leave out the folders")
        self.assertFalse((self.out / "slides.csv").exists())
        self.assertEqual(run("merge", *parts[:2], "--out", self.out).returncode, 0)
        self.assertEqual(len(self.rows()), 5)

    def test_a_slide_is_what_its_own_shard_says(self):
        slides = self.tiny_slides(20)  # so many that no shard is empty, wherever they lie
        parts = [self.folder / "1", self.folder / "2"]
        self.assertEqual(run(slides, "--out", parts[0]).returncode, 0)
        for number, part in enumerate(parts, 1):
            self.assertEqual(run(slides, "--out", part, "--shard", f"{number}/2").returncode, 0)
        earlier = self.folder / "earlier"
        self.assertEqual(run("merge", *parts, "--out", earlier).returncode, 0)
        self.sql("UPDATE slides SET state = 'pending' WHERE position = (SELECT min(position) FROM slides WHERE mine)",
                 parts[1])
        path = self.sql("SELECT path FROM slides WHERE state = 'pending' AND mine", parts[1])[0][0]
        path = path.decode() if isinstance(path, bytes) else path
        merged = run("merge", *parts, "--out", self.out)
        self.assertEqual(merged.returncode, 3, merged.stderr)
        self.assertIn(f"{path}: still to do, as another folder says; the result in {parts[0]} doesn't count", merged.stderr)
        self.assertNotIn(f"{path}: done in none", merged.stderr)
        self.assertNotIn(path, [row["path"] for row in self.rows()])
        # Nor is it a slide that was never done.
        merged = run("merge", parts[1], "--out", self.folder / "alone")
        self.assertEqual(merged.returncode, 3, merged.stderr)
        self.assertIn(f"{path}: still to be repeated; its earlier result doesn't count", merged.stderr)
        # Joined earlier, it counts for no more, whether that folder is joined or joined into.
        for command in (["merge", earlier, *parts, "--out", self.folder / "again"], ["merge", *parts, "--out", earlier]):
            merged = run(*command)
            self.assertEqual(merged.returncode, 3, merged.stderr)
            self.assertNotIn(path, [row["path"] for row in self.rows(command[-1])])
        self.assertEqual(run(slides, "--out", parts[1], "--shard", "2/2").returncode, 0)
        self.assertEqual(run("merge", *parts, "--out", self.out).returncode, 0)
        self.assertEqual(len(self.rows()), 20)

    def test_a_repeated_merge_has_what_the_folders_have(self):
        slides = self.tiny_slides(20)
        parts = [self.folder / "1", self.folder / "2"]
        for number, part in enumerate(parts, 1):
            run(slides, "--out", part, "--shard", f"{number}/2")
        self.assertEqual(run("merge", *parts, "--out", self.out).returncode, 0)
        before = results(self.out)
        self.assertOneLine(run("merge", parts[0], "--out", self.out), 2, "of an earlier joining that none of the folders has")
        self.assertOneLine(run("merge", parts[0], "--out", parts[1]), 2, "of a run of its own")
        self.assertEqual(results(self.out), before)
        # What a merge that was killed left is cleared away; what a living process has isn't.
        left = self.out / ".slidestream-4000000-1.tmp"
        living = self.out / f".slidestream-{os.getpid()}-1.tmp"
        for file in left, living:
            file.write_bytes(b"half")
        self.assertEqual(run("merge", *parts, "--out", self.out).returncode, 0)
        self.assertEqual((left.exists(), living.exists()), (False, True))
        living.unlink()
        # A run that has nothing to do leaves them joined.
        self.assertNotIn("joined", run(slides, "--out", self.out).stderr)
        self.assertEqual(run("merge", *parts, "--out", self.out).returncode, 0)
        self.assertEqual(run("merge", *parts, "--out", self.out, "-q").stdout, "")
        # A slide that was changed and done again.
        shutil.copy(slides / "slide-001.svs", slides / "slide-000.svs")
        for number, part in enumerate(parts, 1):
            run(slides, "--out", part, "--shard", f"{number}/2")
        self.assertEqual(run("merge", *parts, "--out", self.out).returncode, 0)
        self.assertEqual(run(slides, "--out", self.folder / "whole").returncode, 0)
        self.assertSameResults(self.out, self.folder / "whole")
        shutil.copy(slides / "slide-002.svs", slides / "slide-000.svs")
        self.assertIn("holds joined results", run(slides, "--out", self.out).stderr)
        self.assertOneLine(run("merge", *parts, "--out", self.out), 2, "of a run of its own")

    def test_another_shard_in_the_same_folder_is_said_to_leave_slides_out(self):
        slides = self.tiny_slides(12)
        done = []
        for number in 1, 2:
            result = run(slides, "--out", self.out, "--shard", f"{number}/2")
            self.assertEqual(result.returncode, 0, result.stderr)
            done.append(len(self.rows()))
        self.assertEqual(sum(done), 12)
        self.assertRegex(result.stderr, rf"{done[0]} slides? of earlier runs in {self.out} (is another shard's|are other shards') now")
        self.assertNotIn("among these inputs", result.stderr)

    def test_one_slide_is_spoken_of_as_one(self):
        slides = self.tiny_slides(2)
        self.assertEqual(run(slides / "slide-000.svs", "--out", self.out).returncode, 0)
        result = run(slides / "slide-001.svs", "--out", self.out)
        self.assertIn(f"1 slide of earlier runs in {self.out} isn't among these inputs: it stays in run.sqlite, and in no "
                      "table of results\n", result.stderr)
        merged = run("merge", self.out, "--out", self.folder / "merged")
        self.assertIn(f"{self.out}: 1 slide of its earlier runs wasn't among its last inputs, and is left out\n", merged.stderr)

    def test_a_merge_of_what_an_earlier_run_left_is_not_whole(self):
        slides = self.tiny_slides(20)  # so many that no shard is empty, wherever they lie
        part = self.folder / "1"
        self.assertEqual(run(slides, "--out", part).returncode, 0)
        self.assertEqual(run(slides, "--out", part, "--shard", "1/2").returncode, 0)
        merged = run("merge", part, "--out", self.out)
        self.assertEqual(merged.returncode, 3, merged.stderr)
        self.assertIn("no folder's shard has this to do", merged.stderr)
        self.assertEqual(len(self.rows()), 20)

    def test_an_empty_shard_is_well(self):
        result = run(self.slide(), "--out", self.out, "--shard", "1/2")
        other = run(self.slide(), "--out", self.folder / "other", "--shard", "2/2")
        self.assertEqual((result.returncode, other.returncode), (0, 0), result.stderr + other.stderr)
        self.assertEqual(len(self.rows()) + len(self.rows(self.folder / "other")), 1)

    def test_a_folder_whose_start_died_holds_no_run(self):
        slides = self.tiny_slides(2)
        part = self.folder / "1"
        self.assertEqual(run(slides, "--out", part).returncode, 0)
        dead = self.folder / "2"
        self.assertEqual(run(slides, "--out", dead).returncode, 0)
        self.sql("DELETE FROM slides", dead)
        for command in (["merge", part, dead, "--out", self.out], ["merge", dead, "--out", self.out], ["status", dead],
                        ["verify", dead], ["report", dead, "--html", self.folder / "a.html"], ["compare", part, dead]):
            self.assertOneLine(run(*command), 2, "holds no run")

    def test_wrong_shards(self):
        for wrong in "0/4", "5/4", "1", "a/b":
            self.assertOneLine(run(self.slide(), "--out", self.out, "--shard", wrong), 2, "--shard is")


class Watching(ArchiveCase):
    def test_status(self):
        slides = self.tiny_slides(4)
        (slides / "bad.svs").write_text("no slide")
        run(slides, "--out", self.out)
        text = run("status", self.out)
        self.assertEqual((text.returncode, text.stderr), (0, ""))
        self.assertIn("4 of 5 done, 1 failed", text.stdout)
        self.assertIn("bad.svs: source: ", text.stdout)
        status = json.loads(run("status", "--json", self.out).stdout)
        self.assertEqual((status["slides"], status["done"], status["failed"], status["pending"]), (5, 4, 1, 0))
        self.assertEqual(status["bytes"], sum(path.stat().st_size for path in slides.iterdir()))
        self.assertIsNone(status["owner"])
        self.assertOneLine(run("status", self.folder), 2, "run.sqlite: No such file or directory")

    def test_status_says_what_is_damaged(self):
        run(self.tiny_slides(3), "--out", self.out)
        self.assertEqual(json.loads(run("status", "--json", self.out).stdout)["damage"], [])
        self.sql("UPDATE slides SET value_sum = value_sum || '1' WHERE position = 1")
        line = "rows of slides that aren't what was written"
        text = run("status", self.out)
        self.assertEqual((text.returncode, text.stderr), (1, ""))
        self.assertIn("3 of 3 done", text.stdout)
        self.assertIn(f"damaged   {line}: 1\n", text.stdout)
        document = run("status", "--json", self.out)
        self.assertEqual(document.returncode, 1)
        status = json.loads(document.stdout)
        self.assertEqual((status["damage"], status["unchecked"]), ([{"what": line, "count": 1}], 0))

    def test_status_of_a_ledger_that_cannot_be_read(self):
        run(self.slide(), "--out", self.out)
        ledger = self.out / "run.sqlite"
        whole = ledger.read_bytes()
        for content, cause in ((whole[:4096] + b"\xff" * (len(whole) - 4096), "database disk image is malformed"),
                               (b"no database" + whole[11:], "file is not a database")):
            with self.subTest(cause):
                ledger.write_bytes(content)
                line = f"{ledger}: {cause}; the command that made it, with --fresh, moves it aside and starts anew"
                self.assertOneLine(run("status", self.out), 1, line)
                document = run("status", "--json", self.out)
                self.assertOneLine(document, 1, line)
                self.assertEqual(json.loads(document.stdout), {"error": line})
                self.assertOneLine(run("merge", self.out, "--out", self.folder / "merged"), 2, line)
        # What another version made isn't damaged.
        ledger.write_bytes(whole)
        self.sql("PRAGMA user_version = 99")
        document = run("status", "--json", self.out)
        self.assertOneLine(document, 2, "has schema version 99")
        self.assertIsNone(json.loads(document.stdout))

    def test_status_changes_nothing(self):
        run(self.slide(), "--out", self.out)
        before = {path.name: path.read_bytes() for path in self.out.iterdir() if path.is_file()}
        run("status", self.out)
        self.assertEqual(before, {path.name: path.read_bytes() for path in self.out.iterdir() if path.is_file()})

    def test_metrics(self):
        slides = self.tiny_slides(3)
        (slides / "bad.svs").write_text("no slide")
        file = self.folder / "node/slidestream.prom"
        file.parent.mkdir()
        run(slides, "--out", self.out, "--metrics", file)
        text = file.read_text()
        values = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                name, labels, value = re.fullmatch(r'(\w+)\{(.*)\} (\S+)', line).groups()
                self.assertTrue(labels.startswith(f'out="{self.out}"'))
                values[name + "".join(re.findall(r'state="(\w+)"', labels))] = float(value)
        self.assertEqual((values["slidestream_slidesdone"], values["slidestream_slidesfailed"]), (3, 1))
        self.assertEqual((values["slidestream_slidesleft"], values["slidestream_running"]), (0, 0))
        self.assertEqual(values["slidestream_file_bytes_left"], 0)
        self.assertEqual([path.name for path in file.parent.iterdir()], [file.name])
        for name in set(re.findall(r"^(\w+)\{", text, re.MULTILINE)):
            self.assertEqual(len(re.findall(rf"^# TYPE {name} (gauge|counter)$", text, re.MULTILINE)), 1, name)
        self.assertOneLine(run(slides, "--out", self.out, "--metrics", self.slide()), 2, "must end in .prom")
        # What ended early comes to no end.
        early = run(slides / "bad.svs", slides, "--out", self.folder / "early", "--threads", 1, "--metrics", file, "--max-failures", 1)
        if early.returncode == 3:
            self.assertNotIn("slidestream_left_seconds{", file.read_text())
        for wrong in self.folder / "none/x.prom", self.folder / "folder.prom":
            (self.folder / "folder.prom").mkdir(exist_ok=True)
            self.assertOneLine(run(slides, "--out", self.out, "--metrics", wrong), 2, str(wrong))


class Manifests(ArchiveCase):
    def test_whatever_a_list_holds(self):
        slides = self.tiny_slides(4)
        os.rename(slides / "slide-003.svs", os.fsencode(slides) + b"/\xff\xfe.svs")
        manifest = self.folder / "odd.list"
        manifest.write_bytes(b"\xef\xbb\xbf# a comment\r\n\r\n   \nslides/slide-000.svs\r\n" + bytes(slides) +
                             b"/slide-000.svs\nslides/../slides/slide-001.svs\n#slides/none.svs\nslides/\xff\xfe.svs\n"
                             b"slides/gone.svs\nslides/slide-002.svs")
        result = subprocess.run([PIPELINE, str(manifest), "--out", str(self.out)], capture_output=True, timeout=time_limit(60))
        self.assertEqual(result.returncode, 1, result.stderr)
        with open(self.out / "slides.csv", "rb") as file:
            rows = file.read().split(b"\r\n")[1:-1]
        names = [row.split(b",")[0].rsplit(b"/", 1)[-1] for row in rows]
        self.assertEqual(names, [b"slide-000.svs", b"slide-001.svs", b"\xff\xfe.svs", b"gone.svs", b"slide-002.svs"])
        self.assertEqual([row.split(b",")[1] for row in rows], [b"done", b"done", b"done", b"failed", b"done"])
        self.assertIn(b"counted once", result.stderr)
        again = subprocess.run([PIPELINE, str(manifest), "--out", str(self.out)], capture_output=True, timeout=time_limit(60))
        self.assertIn(b"skipped as done: 4 of 5 slides", again.stderr)

    def test_a_line_that_is_no_path_and_a_folder_that_is_not_there(self):
        manifest = self.folder / "wrong.list"
        manifest.write_text("a.svs\n" + "x" * 50_000_000)
        result = run(manifest, "--out", self.out)
        self.assertOneLine(result, 2, "wrong.list:2: 50000000 bytes; no path is as long")
        self.assertOneLine(run(self.folder / "slidse", "--out", self.out), 2, "slidse: No such file or directory")
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    unittest.main()
