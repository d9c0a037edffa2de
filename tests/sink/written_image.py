"""Files that write_image makes, or `pipeline convert` of real slides, with what their levels are to hold, made of the same
pixels with NumPy."""

import functools
import io
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys

import numpy
from PIL import Image

from big_tiff import BigTiff

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from image_libraries import OpenSlide, openslide  # noqa: E402
from time_limits import time_limit  # noqa: E402

WRITE_IMAGE = os.environ["WRITE_IMAGE"]
PIPELINE = os.environ.get("PIPELINE", "")
SOURCE = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("SLIDESTREAM_TEST_DATA", SOURCE.parent / "shared")) / "data"

RGB_CODED = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"
TYPES = {"rgb8": ("u1", 3), "grey8": ("u1", 1), "rgb16": ("<u2", 3), "grey16": ("<u2", 1), "float32": ("<f4", 1)}


def levels_of(pixels, labels=False):
    """Every level from the image, one after the other. Means of float32 are those of float64, rounded once."""
    floats = pixels.dtype.kind == "f"
    # Of eight bits and fewer than 2^23 pixels no sum comes to 2^32, nor twice a sum with its half.
    whole = "u4" if pixels.dtype == "u1" and pixels.shape[0] * pixels.shape[1] < 1 << 23 else "u8"
    total = None if labels else pixels.astype("f8" if floats else whole)
    for level in itertools.count():
        step = 1 << level
        if labels:
            yield pixels[::step, ::step]
            continue
        # Exact sums of the pixels of level 0, of which a level has those of two times two.
        if level > 0:
            height, width = total.shape[:2]
            rows = total[::2].copy()
            rows[:height // 2] += total[1::2]
            total = rows[:, ::2].copy()
            total[:, :width // 2] += rows[:, 1::2]
        inside = [numpy.minimum(step, size - numpy.arange(0, size, step)) for size in pixels.shape[:2]]
        count = (inside[0][:, None] * inside[1][None, :]).astype(whole)[:, :, None]
        yield (total / count if floats else (2 * total + count) // (2 * count)).astype(pixels.dtype)


def level_of(pixels, level, labels=False):
    return next(itertools.islice(levels_of(pixels, labels), level, None))


class Made:
    """A file that was written, with what its levels are to hold."""

    def __init__(self, folder, width, height, form="rgb8", compression="none", labels=False, **options):
        self.file = folder / f"{form}-{compression}-{width}x{height}.ome.tif"
        raw = folder / "pixels.raw"
        arguments = [f"{key}={value}" for key, value in options.items()]
        write(self.file, width, height, f"format={form}", f"compression={compression}", f"labels={int(labels)}",
              f"save={raw}", *arguments)
        kind, channels = TYPES[form] if form in TYPES else ("u1", int(form[5:]))
        self.pixels = numpy.fromfile(raw, kind).reshape(height, width, channels)
        self.compression = compression
        self.tile = options.get("tile", 256)
        self.mpp = options.get("mpp")
        with BigTiff(self.file) as tiff:
            if compression == "jpeg":
                # What libjpeg-turbo makes of the tiles.
                self.levels = [self.decoded(tiff, level) for level in range(len(tiff.chain))]
            else:
                self.levels = list(itertools.islice(levels_of(self.pixels, labels), len(tiff.chain)))

    @staticmethod
    def decoded(tiff, level):
        directory = tiff.chain[level]
        side = directory.number("tile_width")
        whole = numpy.empty((directory.rows * side, directory.columns * side, directory.number("samples")), "u1")
        for index, (_, tile) in enumerate(tiff.tiles(level)):
            # Without a marker of Adobe's three components are YCbCr for Pillow.
            adobe = RGB_CODED if directory.number("photometric") == 2 else b""
            stream = tile[:2] + adobe + directory.get("jpeg_tables", bytes(4))[2:-2] + tile[2:]
            y, x = divmod(index, directory.columns)
            image = Image.open(io.BytesIO(stream))
            whole[y * side:(y + 1) * side, x * side:(x + 1) * side] = numpy.asarray(image).reshape(side, side, -1)
        return whole[:directory.number("height"), :directory.number("width")]


@functools.lru_cache(maxsize=None)
def real_slides():
    """(file, its level to convert, levels that are to be written of it) of each that is here, where SLIDESTREAM_TEST_WIDE is
    set, and its level 0; else the smallest level of all, whose sizes are odd, too. Levels are as OpenSlide decodes them."""
    wide = "SLIDESTREAM_TEST_WIDE" in os.environ
    found = []
    for slide in sorted(DATA.glob("*.svs")) if openslide() else []:
        with OpenSlide(slide) as opened:
            number = 0 if wide else len(opened.sizes) - 1
            found.append((math.prod(opened.sizes[number]), slide, number))
    slides = []
    for _, slide, number in found if wide else sorted(found)[:1]:
        with OpenSlide(slide) as opened:
            pixels = opened.level(number)
        levels = []
        for level in levels_of(pixels):
            levels.append(level)
            if max(level.shape) <= 256:
                break
        slides.append((slide, number, levels))
    return slides


class Converted(Made):
    """What `pipeline convert` makes of a slide."""

    def __init__(self, folder, slide, number, levels, compression):
        self.file = folder / f"{slide.stem}-{compression}.ome.tif"
        info = json.loads(subprocess.run([PIPELINE, "info", "--json", slide], capture_output=True, check=True).stdout)
        self.mpp = info["mpp"] or 0.25
        done = subprocess.run([PIPELINE, "convert", slide, self.file, "--compression", compression, "--quiet", "--level",
                               str(number), "--set", f"input.mpp={self.mpp}"], capture_output=True, text=True, timeout=time_limit(120))
        self.mpp *= 2 ** number
        assert done.returncode == 0, done.stderr
        self.levels = levels
        self.compression = compression
        self.tile = 256
        if compression == "jpeg":
            with BigTiff(self.file) as tiff:
                self.levels = [self.decoded(tiff, level) for level in range(len(tiff.chain))]
            for found, expected in zip(self.levels, levels):
                difference = abs(found.astype(int) - expected).mean()
                assert difference < 8, f"{self.file}: {found.shape}: {difference}"
        self.pixels = self.levels[0]


class Copied(Made):
    """What `pipeline convert --compression copy` makes of a slide."""

    def __init__(self, folder, slide):
        self.file = folder / f"{slide.stem}-copy.ome.tif"
        self.mpp = 0.25
        done = subprocess.run([PIPELINE, "convert", slide, self.file, "--compression", "copy", "--quiet", "--set",
                               "input.mpp=0.25"], capture_output=True, text=True, timeout=time_limit(120))
        assert done.returncode == 0, done.stderr
        self.compression = "jpeg"
        with BigTiff(self.file) as tiff:
            self.tile = tiff.chain[0].number("tile_width")
            self.levels = [self.decoded(tiff, level) for level in range(len(tiff.chain))]
        self.pixels = self.levels[0]


def write(file, width, height, *options, status=0, environment=None):
    done = subprocess.run([WRITE_IMAGE, file, str(width), str(height), *options], capture_output=True, text=True,
                          timeout=time_limit(120), env={**os.environ, **(environment or {})})
    assert done.returncode == status, done.stderr
    return done.stderr
