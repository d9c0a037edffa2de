"""Tiles put together, and images made smaller, beside NumPy and OpenCV: `STITCH_TOOL=path/to/stitch_tool stitch_test.py
[CLASS ...]`. NumPy has whole images in memory, and adds up what each tile weighs.
"""

import math
import os
import random
import subprocess
import sys
import unittest

# The Python that scripts/install-deps.sh --tests makes has OpenCV, too; else the distribution's has its packages,
# whichever comes first on the PATH.
TESTS = os.environ.get("TEST_PYTHON", "")
if os.path.exists(TESTS) and "STITCH_PYTHON" not in os.environ:
    os.execve(TESTS, [TESTS, "-B", *sys.argv], {**os.environ, "STITCH_PYTHON": "1"})
DISTRIBUTION = "/usr/bin/python3"
try:
    import numpy
except ImportError:
    if sys.executable == DISTRIBUTION or not os.path.exists(DISTRIBUTION):
        print("SKIPPED: numpy isn't here")
        sys.exit(0)
    os.execve(DISTRIBUTION, [DISTRIBUTION, "-B", *sys.argv], {**os.environ, "STITCH_PYTHON": "1"})

TOOL = os.environ.get("STITCH_TOOL", "")


def tool(size, data, *arguments, dtype=numpy.uint8):
    command = [TOOL, *map(str, size), *map(str, arguments)]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    return numpy.frombuffer(done.stdout, dtype=dtype)


def ramp(weights, overlap):
    t = numpy.arange(overlap)
    if weights == "tent":
        return (512 * t + 256 + overlap) // (2 * overlap) if overlap else t
    if weights == "none":
        return numpy.where(t < overlap // 2, 0, 256)
    first = numpy.rint(128 * (1 - numpy.cos(numpy.pi * (t + 0.5) / max(overlap, 1)))).astype(int)
    r = numpy.where(t < overlap / 2, first, 256 - first[::-1])
    if overlap % 2:
        r[overlap // 2] = 128
    return r


def axis(size, tile, overlap, edge, weights):
    """Where tiles begin, and what each weighs at every sample."""
    step = tile - overlap
    if edge == "shift":
        begins = [i * step for i in range(max(1, math.ceil((size - tile) / step) + 1))]
        begins[-1] = max(0, size - tile)
    else:
        begins = [i * step for i in range(max(1, math.ceil((size - overlap) / step)))]
    plain = numpy.zeros((len(begins), size + 2 * tile), dtype=numpy.int64)
    r = ramp(weights, overlap)
    for i in range(len(begins)):
        # In step, moved or not: from its blend with the one before to its blend with the one after.
        plain[i, i * step:i * step + step + overlap] = 256
        if i > 0:
            plain[i, i * step:i * step + overlap] = r
        if i + 1 < len(begins):
            plain[i, (i + 1) * step:(i + 1) * step + overlap] = 256 - r
        else:
            plain[i, i * step + overlap:] = 256
    return begins, plain[:, :size]


def stitched(tiles, present, columns, rows, size, kind, low, high):
    """What tiles (number x channels x side x side, float32) are together."""
    most = numpy.float32(255 if kind == "uint8" else 65535)
    low, high = numpy.float32(low), numpy.float32(high)
    scaled = numpy.rint((tiles - low) * (most / (high - low)))
    mapped = numpy.clip(scaled, 0, most).astype(numpy.int64)
    side, channels = tiles.shape[-1], tiles.shape[1]
    width, height = size
    total = numpy.zeros((height + 2 * side, width + 2 * side, channels), dtype=numpy.int64)
    weight = numpy.zeros(total.shape[:2], dtype=numpy.int64)
    for number in numpy.flatnonzero(present):
        row, column = divmod(int(number), len(columns[0]))
        y, x = rows[0][row], columns[0][column]
        down = numpy.pad(rows[1][row], (0, 2 * side))[y:y + side]
        across = numpy.pad(columns[1][column], (0, 2 * side))[x:x + side]
        w = down[:, None] * across[None, :]
        total[y:y + side, x:x + side] += w[:, :, None] * mapped[number].transpose(1, 2, 0)
        weight[y:y + side, x:x + side] += w
    total, weight = total[:height, :width], weight[:height, :width, None]
    fill = 255 if kind == "uint8" and channels == 3 else 0
    made = numpy.where(weight > 0, (2 * total + weight) // numpy.maximum(2 * weight, 1), fill)
    if kind == "classes":
        return numpy.where(weight[..., 0] > 0, total.argmax(axis=2), 255).astype(numpy.uint8)
    return made.astype(numpy.uint8 if kind == "uint8" else numpy.uint16)


class Stitch(unittest.TestCase):
    def test_images_are_what_numpy_makes_of_whole_ones(self):
        chance = random.Random(7)
        values = numpy.random.default_rng(7)
        for side in (4, 7, 16):
            for overlap in range(side // 2 + 1):
                for turn in range(4):
                    scale = 2 if side % 2 == 0 and overlap % 2 == 0 and turn % 2 else 1
                    edge = chance.choice(["shift", "mirror"])
                    weights = chance.choice(["tent", "cosine", "none"])
                    kind = chance.choice(["uint8", "uint16", "classes"])
                    channels = chance.choice([1, 3, 16])
                    size = [chance.randint(1, side if turn == 0 else 70) for _ in range(2)]
                    out = [-(-n // scale) for n in size]
                    columns, rows = (axis(n, side // scale, overlap // scale, edge, weights) for n in out)
                    count = len(columns[0]) * len(rows[0])
                    # Scores of classes are never clamped.
                    ends = (-1, 3) if kind == "classes" else (-1.5, 3.5)
                    tiles = values.uniform(*ends, (count, channels, side // scale, side // scale)).astype(numpy.float32)
                    present = numpy.ones(count, dtype=numpy.uint8)
                    if turn == 3:
                        present = values.integers(0, 2, count).astype(numpy.uint8)
                    dtype = numpy.uint16 if kind == "uint16" else numpy.uint8
                    made = tool(size, tiles.tobytes() + present.tobytes(), "stitch", side, overlap, scale, edge, weights,
                                channels, kind, -1, 3, dtype=dtype)
                    wanted = stitched(tiles, present, columns, rows, out, kind, -1, 3)
                    with self.subTest(side=side, overlap=overlap, size=size, edge=edge, weights=weights, kind=kind):
                        numpy.testing.assert_array_equal(made.reshape(wanted.shape), wanted)

    def test_tiles_are_cut_as_numpy_pads(self):
        chance = random.Random(8)
        values = numpy.random.default_rng(8)
        for turn in range(40):
            side = chance.randint(1, 20)
            overlap = chance.randint(0, side // 2)
            edge = chance.choice(["shift", "mirror"])
            width, height = (chance.randint(1, 50) for _ in range(2))
            image = values.integers(0, 256, (height, width, 3), dtype=numpy.uint8)
            columns, rows = (axis(n, side, overlap, edge, "none")[0] for n in (width, height))
            padded = numpy.pad(image, ((0, side), (0, side), (0, 0)), mode="symmetric")
            wanted = numpy.stack([padded[y:y + side, x:x + side] for y in rows for x in columns])
            made = tool((width, height), image.tobytes(), "cut", side, overlap, 1, edge)
            numpy.testing.assert_array_equal(made.reshape(wanted.shape), wanted)


class Area(unittest.TestCase):
    def test_areas_are_what_opencv_makes_of_them(self):
        try:
            import cv2
        except ImportError:
            self.skipTest("OpenCV isn't here")
        values = numpy.random.default_rng(9)
        for over, under in ((2, 1), (3, 2), (5, 4), (4, 1), (9, 4), (17, 8), (33, 2), (11, 8)):
            width, height = over * 12, over * 8
            image = values.integers(0, 256, (height, width, 3), dtype=numpy.uint8)
            made = tool((width, height), image.tobytes(), "area", 65536 * over // under)
            size = (width * under // over, height * under // over)
            wanted = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
            difference = made.reshape(wanted.shape).astype(int) - wanted
            self.assertLessEqual(abs(difference).max(), 1, (over, under))


if __name__ == "__main__":
    unittest.main()
