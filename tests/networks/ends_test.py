"""The program with networks that are stopped, killed, or too slow: `PIPELINE=path MODELS=folder TEST_PYTHON=path
ends_test.py [CLASS ...]`, as models_test.py."""

import contextlib
import csv
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from models_case import ENVIRONMENT, PIPELINE, Models, run, settings_of
from time_limits import time_limit  # noqa: E402

import numpy
from big_tiff import BigTiff


class Ends(Models):
    """Runs that are stopped, killed or too slow while a network is at work."""

    # A row of tiles of the image is whole after eight tiles of the network, some hundredths of a second each.
    SLOW = ("image.format=ome-tiff", "image.tile=64", "model.sessions=1")
    WIDTH, HEIGHT = 508, 308  # 8 x 5 tiles

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slide.unlink()
        cls.must("synth", "--out", cls.slide, "--size", f"{cls.WIDTH}x{cls.HEIGHT}", "--levels", "1")

    def undisturbed(self):
        """The folder of a strict run that nothing stopped, which several tests compare with."""
        out = self.folder / "undisturbed"
        if not out.exists():
            self.must(self.slide, "-o", out, *settings_of("slow", *self.SLOW, "model.sessions=4"))
        return out

    def begin(self, out, *settings):
        process = subprocess.Popen([PIPELINE, str(self.slide), "-o", str(out), *settings], env=ENVIRONMENT, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, process, what):
        while not what():
            self.assertIsNone(process.poll(), "it has ended")
            time.sleep(0.005)

    @staticmethod
    def status(out):
        with sqlite3.connect(out / "run.sqlite") as ledger:
            return [row[0] for row in ledger.execute("SELECT state FROM slides")]

    def tiles(self, image, whole):
        """How many tiles of an image that isn't whole are those of the whole one; all others must be its placeholder."""
        with BigTiff(image) as tiff:
            levels = [list(zip(directory["offsets"], directory["lengths"])) for directory in tiff.chain]
        # After the tables: while it is written, a table names what was there before it.
        content = image.read_bytes()
        there = 0
        for directory, (expected, wanted) in zip(levels, whole):
            for (offset, length), (place, size) in zip(directory, wanted):
                if offset == place:
                    there += 1
                    self.assertEqual(content[offset:offset + length], expected[place:place + size])
                else:
                    self.assertLess(offset, place)
                    self.assertEqual(content[offset:offset + 2], b"\xff\xd8")
                    self.assertIn(b"\xff\xd9", content[offset:offset + length])
        return there

    @staticmethod
    def whole(image):
        content = image.read_bytes()
        with BigTiff(image) as tiff:
            return [(content, list(zip(directory["offsets"], directory["lengths"]))) for directory in tiff.chain]

    def look(self, image):
        """As viewers do."""
        made = self.folder / "looked.png"
        for command in (["openslide-write-png", image, "0", "0", "0", self.WIDTH, self.HEIGHT, made], ["vips", "avg", image]):
            if shutil.which(command[0]) is None:
                continue
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=time_limit(60), check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)

    def test_a_signal_ends_what_a_network_is_at_and_the_same_command_makes_its_slide(self):
        whole = self.undisturbed() / "images" / "slide.model.ome.tif"
        out = self.folder / "stopped"
        command = settings_of("slow", *self.SLOW)
        partial = out / "images" / "slide.model.partial.ome.tif"
        expected = self.whole(whole)
        all_tiles = sum(len(places) for _, places in expected)
        process = self.in_the_middle(out, lambda: partial.exists() and 0 < self.tiles(partial, expected) < all_tiles,
                                     self.slide, *command)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate(timeout=time_limit(100))
        self.assertEqual(process.returncode, 143, said)
        self.assertNotIn(self.status(out), (["done"], ["failed"]))
        self.assertEqual(self.table(out, "failures.csv"), [])
        self.look(partial)
        self.must(self.slide, "-o", out, *command)
        self.assertEqual(self.status(out), ["done"])
        self.assertEqual((out / "images" / "slide.model.ome.tif").read_bytes(), whole.read_bytes())
        self.assertFalse(partial.exists())

    def test_a_network_that_comes_to_no_end_is_ended_by_a_signal_and_by_the_time_limit(self):
        out = self.folder / "endless"
        process = self.begin(out, *settings_of("endless", "image.format=ome-tiff"))
        self.wait_for(process, (out / "images" / "slide.model.partial.ome.tif").exists)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=time_limit(100))
        self.assertEqual(process.returncode, 143, said)
        # On a busy machine a short limit may be over before the network begins.
        for limit in 1, 5, 20:
            out = self.folder / f"limit-{limit}"
            done = run(self.slide, "-o", out, *settings_of("endless", "image.format=ome-tiff", f"input.max_seconds={limit}"))
            self.assertEqual(done.returncode, 1, done.stderr)
            [row] = self.table(out, "failures.csv")
            if row["stage"] == "model":
                break
        self.assertEqual((row["stage"], row["cause"]), ("model", f"took longer than input.max_seconds = {limit}"))

    def test_an_image_is_watched_while_the_run_is_killed(self):
        tiles = self.pixels().astype(float)
        means = sorted(tiles[y:y + 64, x:x + 64].mean() / 255 for y in range(0, self.HEIGHT - 63, 64)
                       for x in range(0, self.WIDTH - 63, 64))
        # A third of the tiles are too light for the second network.
        scale = 0.5 / means[2 * len(means) // 3]
        for mode, model in (("strict", "slow"), ("lenient", "holes")):
            if mode == "strict":
                code, expected, command = 0, self.undisturbed(), settings_of(model, *self.SLOW)
            else:
                code, expected = 1, self.folder / "watched"
                command = settings_of(model, *self.SLOW, "stitch.mode=lenient", f"model.scale={scale}",
                                      f"model.range=[0.0,{scale}]")
                done = run(self.slide, "-o", expected, *command, "-s", "model.sessions=4")
                self.assertEqual(done.returncode, code, done.stderr)
            name = "slide.model.ome.tif" if mode == "strict" else "slide.model.partial.ome.tif"
            whole = self.whole(expected / "images" / name)
            all_tiles = sum(len(places) for _, places in whole)
            out = self.folder / f"killed-{mode}"
            partial = out / "images" / "slide.model.partial.ome.tif"
            # However long the viewers take, the run is in the middle when it is killed.
            process = self.in_the_middle(out, lambda: partial.exists() and 0 < self.tiles(partial, whole) < all_tiles,
                                         self.slide, *command)
            self.look(partial)
            before = self.tiles(partial, whole)
            process.kill()
            process.communicate(timeout=time_limit(100))
            after = self.tiles(partial, whole)
            self.assertLessEqual(before, after)
            self.assertLess(after, all_tiles)
            self.look(partial)
            self.assertNotIn(self.status(out), (["done"], ["failed"]))
            again = run(self.slide, "-o", out, *command, "-s", "model.sessions=4")
            self.assertEqual(again.returncode, code, again.stderr)
            self.assertEqual((out / "images" / name).read_bytes(), (expected / "images" / name).read_bytes())
            self.look(out / "images" / name)
            absent = out / "images" / "slide.model.partial.csv"
            self.assertEqual(absent.exists(), mode == "lenient")
            if mode == "strict":
                continue
            with open(absent, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self.assertTrue(5 < len(rows) < 27, rows)
            made = self.read(out / "images" / name)
            for row in rows:
                x, y, width, height = (int(row[key]) for key in ("x", "y", "width", "height"))
                self.assertEqual((width, height), (64, 64))
                self.assertGreater(tiles[y:y + 64, x:x + 64].mean() / 255 * scale, 0.499)
                self.assertIn("isn't a finite number", row["cause"])
                # The moved last ones lie over others.
                if x % 64 == 0 and y % 64 == 0 and x + 128 <= self.WIDTH and y + 128 <= self.HEIGHT:
                    self.assertEqual(made[y:y + 64, x:x + 64].min(), 255)
            [failure] = self.table(out, "failures.csv")
            self.assertIn(f"{len(rows)} of 40 tiles absent: ", failure["cause"])

    @staticmethod
    def read(image):
        from PIL import Image

        with Image.open(image) as file:
            return numpy.asarray(file)

    def test_a_slide_with_holes_is_made_again_and_the_table_of_them_goes(self):
        out = self.folder / "again"
        partial = out / "images" / "slide.model.partial.ome.tif"
        # On a busy machine a short time may have passed before the network is at work.
        for seconds, patience in (2, 20), (8, 200):
            command = settings_of("slow", *self.SLOW, "stitch.mode=lenient", f"stitch.deadline_seconds={seconds}")
            # Until there is a tile of it beside the placeholder: then the network is at work.
            process = self.in_the_middle(out, lambda: partial.exists() and len(set(self.whole(partial)[0][1])) > 1,
                                         self.slide, *command, patience=patience)
            if process is not None:
                break
        time.sleep(seconds + 0.5)
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate(timeout=time_limit(100))
        self.assertEqual(process.returncode, 1, said)
        [failure] = self.table(out, "failures.csv")
        self.assertIn("stitch.deadline_seconds had passed", failure["cause"])
        table = out / "images" / "slide.model.partial.csv"
        self.assertTrue(table.exists() and partial.exists())
        # Without being told to, nothing is done again.
        self.assertEqual(run(self.slide, "-o", out, *command).returncode, 1)
        # It goes when the slide is begun again, however that ends.
        before = partial.stat().st_mtime_ns
        process = self.begin(out, *command, "-s", "stitch.deadline_seconds=0", "--retry-failed")
        begun = False
        while process.poll() is None and not begun:
            time.sleep(0.005)
            with contextlib.suppress(FileNotFoundError):
                begun = partial.stat().st_mtime_ns != before
        process.kill()
        process.communicate(timeout=time_limit(100))
        self.assertFalse(table.exists())
        self.must(self.slide, "-o", out, *command, "-s", "model.sessions=4", "-s", "stitch.mode=strict", "--retry-failed")
        self.assertEqual(self.status(out), ["done"])
        self.assertFalse(table.exists() or partial.exists())
        self.assertTrue((out / "images" / "slide.model.ome.tif").exists())


if __name__ == "__main__":
    unittest.main()
