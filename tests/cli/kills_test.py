"""Conversions that are killed at random moments: `PIPELINE=path kills_test.py`. $KILLS is how often (12), $SLIDE the slide
(one that is made here), $SETTINGS more options of `pipeline convert`, such as "--backend cuda -Q 75", $SEED another series.

What a kill leaves of an image may hold placeholders and tiles, each whole, and nothing else; and a later run makes it anew.
"""

import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

from convert_test import ENVIRONMENT, PIPELINE, Case, run

from big_tiff import BigTiff

try:
    import openslide
except ImportError:
    openslide = None


def places(file):
    """Of each level: where its tiles lie, and how long they are."""
    with BigTiff(file) as tiff:
        return [list(zip(directory["offsets"], directory["lengths"])) for directory in tiff.chain]


class Kills(Case):
    def setUp(self):
        super().setUp()
        side = 8192 if "SLIDESTREAM_TEST_WIDE" in os.environ else 4096
        self.slide_file = pathlib.Path(os.environ["SLIDE"]) if "SLIDE" in os.environ else self.slide(
            "kills", f"{side}x{side}", "--distinct", 64, "--levels", 1)
        self.options = os.environ.get("SETTINGS", "").split()

    def test_what_is_left_can_be_read(self):
        image, whole = self.folder / "image.ome.tif", self.folder / "whole" / "image.ome.tif"
        whole.parent.mkdir()
        begin = time.monotonic()
        self.assertDone(run("convert", self.slide_file, whole, *self.options))
        # What kills are spread over: with others at work an image takes longer or shorter than it took once.
        taken = time.monotonic() - begin
        expected = whole.read_bytes()
        levels = places(whole)
        partial = self.folder / "image.partial.ome.tif"
        chance = random.Random(int(os.environ.get("SEED", "1")))
        met = collections.Counter()
        kills = int(os.environ.get("KILLS", "12"))
        while met.total() < kills or (met["parts"] == 0 and met.total() < 5 * kills):
            process = subprocess.Popen([PIPELINE, "convert", self.slide_file, image, *self.options], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
            time.sleep(taken * chance.random())
            process.send_signal(signal.SIGKILL)
            process.wait()
            if image.exists():
                what = "whole images"
                self.assertEqual(image.read_bytes(), expected)
                image.unlink()
            elif partial.exists():
                there, tiles = self.assertReadable(partial, levels, expected)
                what = "images that were begun" if there == 0 else "parts" if there < tiles else "images without a name"
            else:
                what = "nothing"
            met[what] += 1
            taken *= {"parts": 1, "whole images": 0.8, "images without a name": 0.8}.get(what, 1.25)
        print(", ".join(f"{count} {what}" for what, count in met.most_common()), file=sys.stderr)
        self.assertGreater(met["parts"], 0, met)
        self.assertDone(run("convert", self.slide_file, image, *self.options))
        self.assertEqual(image.read_bytes(), expected)

    def assertReadable(self, partial, levels, expected):
        """Each tile of the file is the placeholder or the whole image's. How many of them are there, and of how many."""
        content = partial.read_bytes()
        found = places(partial)
        self.assertEqual(len(found), len(levels))
        there = 0
        for directory, whole in zip(found, levels):
            for (offset, length), (place, size) in zip(directory, whole):
                if offset == place:
                    there += 1
                    self.assertEqual(length, size)
                    self.assertEqual(content[offset:offset + length], expected[place:place + size])
                else:
                    self.assertEqual(content[offset:offset + 2], b"\xff\xd8")
                    self.assertIn(b"\xff\xd9", content[offset:offset + length])
                    self.assertLess(offset, place)
                    self.assertGreaterEqual(len(content), offset + length)
        if openslide:
            with openslide.OpenSlide(partial) as slide:
                width, height = slide.level_dimensions[-1]
                slide.read_region((0, 0), slide.level_count - 1, (width, height))
                slide.read_region((0, 0), 0, (512, 512))
        return there, sum(map(len, levels))


if __name__ == "__main__":
    unittest.main()
