"""Runs that write images, in every format: `PIPELINE=path formats_test.py [CLASS ...]`."""

import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from convert_test import ENVIRONMENT, PIPELINE, Case, info, run

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("SLIDESTREAM_TEST_DATA", SOURCE.parent / "shared")) / "data"
# How each is asked for, what its names end with, and how many entries of the folder an image has.
FORMATS = {"ome-tiff": (["--to", "ome-tiff"], ".ome.tif", 1),
           "copy": (["--to", "ome-tiff", "--compression", "copy"], ".ome.tif", 1),
           "ome-zarr": (["--to", "ome-zarr", "--tile", "256"], ".ome.zarr", 1),
           "ome-zarr 3": (["--to", "ome-zarr", "--tile", "256", "--set", "image.zarr_version=3"], ".ome.zarr", 1),
           "dzi": (["--to", "dzi"], ".dzi", 3),
           "dicom": (["--to", "dicom"], ".dicom", 1),
           "dicom copy": (["--to", "dicom", "--compression", "copy"], ".dicom", 1)}
WIDE = "SLIDESTREAM_TEST_WIDE" in os.environ
# Others are written by the same classes as these.
FEW = FORMATS if WIDE else ("ome-tiff", "ome-zarr", "dzi", "dicom copy")


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Formats(Case):
    def formats(self, names=FEW):
        for name in names:
            with self.subTest(name):
                self.out = self.folder / name
                yield FORMATS[name]

    def test_a_run_goes_on_where_it_stopped(self):
        slides = self.slide(), self.slide("second", "300x900")
        for options, suffix, entries in self.formats():
            command = ["convert", *slides, "--out", self.out, *options]
            self.assertDone(run(*command))
            images = self.out / "images"
            whole = content(images)
            self.assertEqual(len(list(images.iterdir())), 2 * entries)
            with (self.out / "artifacts.csv").open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self.assertEqual(len(rows), 2 * entries)
            for row in rows:
                path = self.out / row["file"]
                files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
                self.assertEqual(sum(each.stat().st_size for each in files), int(row["bytes"]))
            self.assertIn("skipped as done: 2 of 2 slides", run(*command).stderr)
            self.assertEqual(content(images), whole)
            # A file that is gone, or is longer.
            some = sorted(path for path in images.rglob("*") if path.is_file() and "second" in str(path))[-1]
            for damage in some.unlink, lambda: some.write_bytes(whole[str(some.relative_to(images))] + b"x"):
                damage()
                result = self.assertDone(run(*command))
                self.assertIn("second.identity", result.stderr)
                self.assertEqual(content(images), whole)
            # From the beginning, with what was there kept.
            self.assertDone(run(*command, "--fresh"))
            self.assertEqual(content(images), whole)
            self.assertEqual(content(self.out / "earlier-1" / "images"), whole)

    def test_a_kill(self):
        # One thread takes its time with few pixels.
        slide = self.slide("kill", "1024x1024", "--distinct", 16, "--levels", 1)
        for options, suffix, entries in self.formats():
            command = ["convert", slide, "--out", self.out, "--threads", 1, *options]
            self.assertDone(run("convert", slide, "--out", self.folder / "whole", *options))
            whole = content(self.folder / "whole" / "images")
            shutil.rmtree(self.folder / "whole")
            for wait in 0, 0.02:
                process = subprocess.Popen([PIPELINE, *map(str, command)], stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL, env=ENVIRONMENT)
                end = time.monotonic() + 60
                while process.poll() is None and not list(self.out.glob("images/*.partial*")):
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.005)
                time.sleep(wait)
                process.send_signal(signal.SIGKILL)
                process.wait()
                if not (self.out / "images" / f"kill.identity{suffix}").exists():
                    self.assertTrue(list(self.out.glob("images/*.partial*")))
            self.assertDone(run(*command))
            self.assertEqual(content(self.out / "images"), whole)
            # What was begun of it goes aside with the run.
            (self.out / "images" / f"kill.identity.partial{suffix}").mkdir()
            self.assertDone(run("convert", self.slide(), "--out", self.out, *options, "--fresh", "--level", 0))
            self.assertTrue((self.out / "earlier-1" / "images" / f"kill.identity.partial{suffix}").exists())

    def test_one_image_and_nothing_else(self):
        for options, suffix, entries in self.formats():
            self.out.mkdir()
            # The name says the format.
            self.assertDone(run("convert", self.slide(), self.out / f"a{suffix}", *options[2:]))
            self.assertEqual(len(list(self.out.iterdir())), entries)
            before = content(self.out)
            again = run("convert", self.slide(), self.out / f"a{suffix}", *options[2:])
            if suffix == ".ome.tif":
                self.assertDone(again)
            else:
                self.assertOneLine(again, 2, "it is there already, and " + (
                    "--overwrite replaces the image" if suffix == ".dzi" else "a folder isn't replaced"))
            self.assertEqual(content(self.out), before)
            self.assertOneLine(run("convert", self.slide(), self.out / "a.unknown", *options), 2,
                               "its suffix names no format that is written; there are .ome.tif")
            other = "a.dzi" if suffix != ".dzi" else "a.ome.zarr"
            self.assertOneLine(run("convert", self.slide(), self.out / other, *options), 2, f"ends in {suffix}")
            self.assertOneLine(run("convert", self.slide(), "", *options), 2, "name of the file to write is empty")

    def test_what_does_not_go_together(self):
        for options, error in ((["--to", "ome-zarr", "--compression", "jpeg"], "isn't in ome-zarr; use auto, blosc-lz4, none or zstd"),
                               (["--to", "dzi", "--compression", "zstd"], "isn't in dzi; use auto or jpeg"),
                               (["--to", "dicom", "--compression", "zstd"], "isn't in dicom; use auto, jpeg or none"),
                               (["--to", "dzi", "--levels", "2"], "image.levels must be 0 for dzi"),
                               (["--compression", "blosc-lz4"], "isn't in ome-tiff; use auto, jpeg, none or zstd")):
            self.assertOneLine(run("convert", self.slide(), "--out", self.out, *options), 2, error)
            self.assertFalse((self.out / "images").exists())

    def test_what_is_in_the_way_fails_its_slide_alone(self):
        slides = self.slide(), self.slide("second", "300x900")
        images = self.out / "images"
        for options, names, why in (
                (["--to", "ome-zarr"], ["small.identity.ome.zarr"], "it isn't a folder"),
                (["--to", "dicom"], ["small.identity.dicom"], "it isn't a folder"),
                (["--to", "dicom"], ["small.identity.dicom/level-x.dcm"], "holds level-x.dcm"),
                (["--to", "dzi"], ["small.identity_files"], "it isn't a folder"),
                (["--to", "dzi"], ["small.identity.view.html"], "this program didn't write it"),
                (["--to", "dzi"], ["small.identity_files/12/", "small.identity_files/notes.txt"], "holds notes.txt"),
                (["--to", "ome-zarr"], ["small.identity.ome.zarr/notes.txt"], "holds notes.txt"),
                (["--to", "ome-tiff"], ["small.identity.ome.tif/"], "it isn't a regular file")):
            with self.subTest(names=names):
                shutil.rmtree(self.out, ignore_errors=True)
                for name in names:
                    (images / name).parent.mkdir(parents=True, exist_ok=True)
                    (images / name).mkdir() if name.endswith("/") else (images / name).write_text("somebody's")
                before = content(self.out)
                result = run("convert", *slides, "--out", self.out, "--quiet", *options)
                self.assertOneLine(result, 1, f"{slides[0]}: source: {images / names[0].split('/')[0]}: ", why)
                self.assertEqual([row["status"] for row in self.rows()], ["failed", "done"])
                for name, bytes_ in before.items():
                    self.assertEqual((self.out / name).read_bytes(), bytes_)

    def test_a_page_of_its_own_is_replaced(self):
        for _ in range(2):
            self.assertDone(run("convert", self.slide(), "--out", self.out, "--to", "dzi"))
            (self.out / "images" / "small.identity.dzi").unlink()

    def test_long_names(self):
        for suffix, most in ((".ome.tif", 241), (".ome.zarr", 239), (".dicom", 239), (".dzi", 237)):
            for length in (most, most + 1, 247, 255):
                file = self.folder / ("n" * (length - len(suffix)) + suffix)
                result = run("convert", self.slide(), file, "--quiet")
                if length == most:
                    self.assertDone(result)
                else:
                    self.assertOneLine(result, 1, f"a name of {length} bytes, and at most {most} are possible")

    def test_settings_of_jpeg_that_decide_nothing_are_told(self):
        for options, told in (("--compression=zstd", "image.compression = \"zstd\" is without loss"),
                              ("--compression=none", "image.compression = \"none\" is without loss"),
                              ("--to=ome-zarr", "ome-zarr is without loss"), ("--compression=copy", ""), ("--to=dzi", "")):
            for settings in (["-Q", "70"], ["--set", "image.quality=70"], ["--subsampling", "4:4:4"],
                             ["-Q", "70", "--subsampling=4:2:0"], []):
                shutil.rmtree(self.out, ignore_errors=True)
                result = self.assertDone(run("convert", self.slide(), "--out", self.out, "--quiet", options, *settings))
                text = " ".join(settings)
                for key, named in ("image.quality", "70" in text), ("image.subsampling", ":" in text):
                    self.assertEqual(result.stderr.count(f"{key} is JPEG's, and decides nothing here"),
                                     1 if told and named else 0, result.stderr)
                self.assertIn(told if settings else "", result.stderr)

    def test_info_says_what_other_images_are(self):
        slide = self.slide()
        for name, options, told in (("a.ome.zarr", [], "an OME-Zarr image (zarr 2)"), ("a.dzi", [], "a Deep Zoom image"),
                                    ("b.ome.zarr", ["--set", "image.zarr_version=3"], "an OME-Zarr image (zarr 3)")):
            self.assertDone(run("convert", slide, self.folder / name, *options))
            self.assertOneLine(run("info", self.folder / name), 1, f"{self.folder / name}: {told}, which isn't read here; ")
            both = run("info", "--json", self.folder / name, slide)
            self.assertOneLine(both, 1, told)
            self.assertIn('"format": "aperio"', both.stdout)

    def test_info_shows_the_pixel_size_of_a_list(self):
        slides = self.slide(), self.slide("listed")
        table = self.folder / "slides.csv"
        table.write_text(f"path,mpp\n{slides[0]},0.3\n{slides[1]},\n", encoding="utf-8")
        found = json.loads(self.assertDone(run("info", "--json", table)).stdout)
        self.assertEqual(found[0]["mpp"], 0.3)
        self.assertAlmostEqual(found[0]["magnification"], 10 / 0.3)
        self.assertEqual(found[1]["mpp"], info(slides[1])["mpp"])
        self.assertNotEqual(found[1]["mpp"], 0.3)
        self.assertIn("0.3 micrometres", self.assertDone(run("info", table)).stdout)

    def test_names_that_look_like_options(self):
        shutil.copyfile(self.slide(), self.folder / "-a.svs")
        self.assertDone(run("convert", "--quiet", "--", "-a.svs", "-b.ome.tif", cwd=self.folder))
        self.assertIn("ome-tiff", self.assertDone(run("info", "--", "-b.ome.tif", cwd=self.folder)).stdout)

    @unittest.skipUnless(shutil.which("openslide-show-properties"), "no openslide-show-properties (openslide-tools)")
    def test_nothing_that_a_slide_says_of_itself_gets_into_it(self):
        made_up = self.slide("secret-name")
        real = sorted(DATA.glob("*.svs"))
        for slide in [made_up, *(real if WIDE else real[:1])]:
            shown = subprocess.run(["openslide-show-properties", slide], capture_output=True, text=True, check=True).stdout
            properties = re.findall(r"^([^:]+): '(.*)'$", shown, re.MULTILINE)
            secrets = {value for key, value in properties if len(value) > 4 and not key.startswith("openslide.level")
                       and "mpp" not in key.lower() and key not in ("openslide.vendor", "aperio.OriginalWidth", "aperio.OriginalHeight")}
            # Its parts as well: a description is several things in one.
            secrets |= {part.strip() for secret in secrets for part in re.split(r"[|;\r\n]", secret) if len(part.strip()) > 6}
            # The colour profile is kept, and some descriptions have its name.
            secrets = {secret for secret in secrets if "sRGB" not in secret}
            self.assertTrue(secrets)
            # What it says is of the slide, and the fewest pixels are enough.
            levels = info(slide)["levels"]
            for options, suffix, entries in self.formats(FORMATS):
                if "copy" in options and levels[0]["codec"] != "jpeg":
                    continue
                # Real slides take longest: of these the formats that can hold metadata or the tiles of a slide.
                if slide != made_up and suffix in (".ome.zarr", ".dzi") and not WIDE:
                    continue
                shutil.rmtree(self.out, ignore_errors=True)
                self.out.mkdir()
                self.assertDone(run("convert", slide, self.out / f"a{suffix}", *options, "--set", "input.mpp_default=0.25",
                                    "--level", len(levels) - 1))
                for name, bytes_ in content(self.out).items():
                    for secret in {*secrets, slide.stem, str(slide.parent), str(self.out), "Aperio"}:
                        self.assertFalse(secret.encode() in bytes_, f"{slide.name}: {name}: {secret}")


if __name__ == "__main__":
    unittest.main()
