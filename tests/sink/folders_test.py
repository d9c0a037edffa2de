"""Images that are folders, as others read them, and as they are when writing fails:
`WRITE_IMAGE=path FAULTY_STORAGE=path folders_test.py [CLASS ...]`.

Run by a Python that has them, the script uses its packages zarr and ome_zarr; what isn't there is skipped. Without NumPy
it goes on with the distribution's Python."""

import base64
import contextlib
import hashlib
import importlib.util
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

DISTRIBUTION = "/usr/bin/python3"
try:
    import numpy
    from PIL import Image
except ImportError:
    if sys.executable == DISTRIBUTION or not os.path.exists(DISTRIBUTION) or "READERS" in os.environ:
        print("SKIPPED: needs NumPy and Pillow")
        sys.exit(0)
    os.execve(DISTRIBUTION, [DISTRIBUTION, "-B", *sys.argv], {**os.environ, "READERS": "1"})

from folder_image import MadeFolder, zarr_arrays  # noqa: E402
from written_image import WRITE_IMAGE, level_of, write  # noqa: E402

FAULTY_STORAGE = os.environ.get("FAULTY_STORAGE", "")
# In memory, where there is room for that: all these files are synced.
TEMPORARY = "/dev/shm" if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 1 << 30 else None
# How each is asked for, and what its names end with.
FORMATS = {"zarr 2": (".ome.zarr", ["to=ome-zarr", "zarr_version=2"]), "zarr 3": (".ome.zarr", ["to=ome-zarr", "zarr_version=3"]),
           "dzi": (".dzi", ["to=dzi", "compression=jpeg"])}


def has(module):
    return importlib.util.find_spec(module) is not None


def content(image):
    """The files of an image: bytes by name, as they are called in the end."""
    name = image.name.split(".")[0] + (".partial" if ".partial." in image.name else "")
    files = {}
    for path in image.parent.iterdir():
        if not path.name.startswith((f"{name}.", f"{name}_")) or (".partial" not in name and ".partial" in path.name):
            continue
        for file in path.rglob("*") if path.is_dir() else [path]:
            if file.is_file():
                files[str(file.relative_to(image.parent)).replace(".partial", "", 1)] = file.read_bytes()
    return files


class Case(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=TEMPORARY)))

    def assertSamePixels(self, found, expected, what):
        """Of (channels, height, width) and (height, width, channels)."""
        self.assertEqual(found.shape, expected.transpose(2, 0, 1).shape, what)
        self.assertTrue(numpy.array_equal(found, expected.transpose(2, 0, 1)), what)


class ZarrCase(Case):
    def all_kinds(self, *compressions):
        """Images of every kind of pixels and odd size, in both versions."""
        for version in 2, 3:
            def made(*arguments, **options):
                return MadeFolder(self.folder, "ome-zarr", f".{version}.ome.zarr", *arguments, zarr_version=version, **options)
            for form in "rgb8", "grey8", "rgb16", "grey16", "float32", "any8:5":
                for compression in compressions:
                    yield made(350, 265, form, compression, tile=64, mpp=0.25)
            for compression in compressions:
                yield made(1, 1, "rgb8", compression)
                yield made(100, 700, "rgb8", compression, tile=256)  # narrower than a chunk
                yield made(300, 200, "grey8", compression, levels=3)  # smaller than a chunk, levels of one
                yield made(128, 256, "grey8", compression, tile=128)  # whole chunks
                yield made(300, 210, "grey8", compression, labels=True, tile=64)
            yield made(70000, 20, "rgb8", compressions[-1], tile=1024)


class Zarr(ZarrCase):
    def test_pixels_straight_from_the_files(self):
        for made in self.all_kinds("none"):
            with self.subTest(made.file.name):
                for level, (array, found) in enumerate(zarr_arrays(made.file)):
                    self.assertSamePixels(found, made.level(level), f"level {level}")
                self.assertFalse([file for file in made.file.rglob("*") if "unfinished" in file.name])

    def test_metadata_is_what_was_given_and_nothing_else(self):
        profile = self.folder / "some.icc"
        profile.write_bytes(bytes(range(200)))
        for version in 2, 3:
            file = self.folder / f"secret-place-{version}.ome.zarr"
            write(file, 600, 300, "to=ome-zarr", f"zarr_version={version}", "name=a <b> \"é\"\x01", "mpp=0.25",
                  "magnification=20", "tile=128", f"icc={profile}", "setting=operators.run:identity", "creator=it")
            files = content(file)
            self.assertGreater(len(files), 3)
            for bytes_ in files.values():
                self.assertNotIn(b"secret-place", bytes_)
            text = json.loads((file / ("zarr.json" if version == 3 else ".zattrs")).read_text())
            text = text["attributes"] if version == 3 else text
            image = text["ome"] if version == 3 else text
            scales, = image["multiscales"]
            self.assertEqual((image if version == 3 else scales)["version"], "0.5" if version == 3 else "0.4")
            self.assertEqual(scales["name"], "a <b> \"é\"\x01")
            self.assertEqual([axis["name"] for axis in scales["axes"]], ["c", "y", "x"])
            self.assertEqual([axis.get("unit") for axis in scales["axes"]], [None, "micrometer", "micrometer"])
            self.assertEqual([each["coordinateTransformations"][0]["scale"] for each in scales["datasets"]],
                             [[1, 0.25 * 2 ** level, 0.25 * 2 ** level] for level in range(4)])
            self.assertEqual([each["coordinateTransformations"][1] for each in scales["datasets"]],
                             [{"type": "translation", "translation": [0, shift, shift]}
                              for shift in (0.25 * (2 ** level - 1) / 2 for level in range(4))])
            self.assertEqual([channel["color"] for channel in image["omero"]["channels"]], ["FF0000", "00FF00", "0000FF"])
            self.assertEqual(text["slidestream"], {
                "creator": "it", "magnification": 20, "settings": {"operators.run": "identity"},
                "icc_profile": base64.b64encode(bytes(range(200))).decode()})

    def test_windows_show_the_values(self):
        for version in 2, 3:
            for form, scale in ("float32", 255), ("float32", -3), ("float32", 0), ("grey16", 1):
                with self.subTest(version=version, form=form, scale=scale):
                    file = self.folder / f"{form}-{scale}.{version}.ome.zarr"
                    raw = self.folder / "pixels.raw"
                    write(file, 300, 170, "to=ome-zarr", f"zarr_version={version}", f"format={form}", "tile=64",
                          f"scale={scale}", f"save={raw}")
                    attributes = json.loads((file / ("zarr.json" if version == 3 else ".zattrs")).read_text())
                    image = attributes["attributes"]["ome"] if version == 3 else attributes
                    channel, = image["omero"]["channels"]
                    pixels = numpy.fromfile(raw, "<f4" if form == "float32" else "<u2")
                    least, most = (float(pixels.min()), float(pixels.max())) if form == "float32" else (0, 65535)
                    most = most if most > least else least + 1  # a window has a width
                    self.assertEqual(channel["window"], {"min": least, "max": most, "start": least, "end": most})
                    self.assertFalse([each for each in file.rglob("*") if "unfinished" in each.name])

    def test_labels_that_are_not_there_yet(self):
        for version in 2, 3:
            file = self.folder / f"labels.{version}.ome.zarr"
            write(file, 300, 200, "to=ome-zarr", f"zarr_version={version}", "format=grey8", "labels=1", "blank=7", "tile=64")
            for array, _ in zarr_arrays(file):
                self.assertEqual(array["fill_value"], 7)

    def test_what_does_not_go_together(self):
        file = self.folder / "a.ome.zarr"
        self.assertIn("compression must be blosc-lz4, none or zstd in this format, not jpeg",
                      write(file, 9, 9, "to=ome-zarr", "compression=jpeg", status=1))
        self.assertIn("compression must be jpeg, none or zstd in this format, not blosc-lz4",
                      write(file, 9, 9, "compression=blosc-lz4", status=1))
        self.assertEqual(list(self.folder.iterdir()), [])


@unittest.skipUnless(has("zarr"), "no package zarr")
class ZarrPackage(ZarrCase):
    def test_levels(self):
        import zarr
        new = int(zarr.__version__.split(".")[0]) >= 3
        for made in self.all_kinds("none", "zstd", "blosc-lz4"):
            if made.options["zarr_version"] == 3 and not new:
                continue
            with self.subTest(made.file.name):
                group = zarr.open_group(str(made.file), mode="r")
                count = len(list(group.array_keys()))
                self.assertGreaterEqual(count, 1)
                attributes = group.attrs["ome"] if made.options["zarr_version"] == 3 else group.attrs
                scales = [each["coordinateTransformations"][0]["scale"] for each in attributes["multiscales"][0]["datasets"]]
                pixel = made.options.get("mpp", 1)
                self.assertEqual(scales, [[1, pixel * 2 ** level, pixel * 2 ** level] for level in range(count)])
                for level in range(count):
                    self.assertSamePixels(group[str(level)][...], made.level(level), f"level {level}")


@unittest.skipUnless(has("ome_zarr"), "no package ome_zarr")
class OmeZarrPackage(ZarrCase):
    def test_levels_and_scales(self):
        from ome_zarr.io import parse_url
        from ome_zarr.reader import Reader
        for made in self.all_kinds("zstd"):
            with self.subTest(made.file.name):
                node = next(iter(Reader(parse_url(str(made.file)))()))
                for level, found in enumerate(node.data):
                    self.assertSamePixels(numpy.asarray(found), made.level(level), f"level {level}")
                self.assertEqual([axis["name"] for axis in node.metadata["axes"]], ["c", "y", "x"])
                scale = node.metadata["coordinateTransformations"][-1][0]["scale"]
                pixel = made.options.get("mpp", 1) * 2 ** (len(node.data) - 1)
                self.assertEqual(scale, [1, pixel, pixel])


class Unfinished(Case):
    """What has its name is whole, whenever writing ends."""

    def formats(self, *options):
        for name, (suffix, asked) in FORMATS.items():
            with self.subTest(name):
                here = self.folder / name
                (here / "whole").mkdir(parents=True)
                whole = here / "whole" / f"file{suffix}"
                write(whole, *options, *asked)
                yield here, here / f"file{suffix}", here / f"file.partial{suffix}", content(whole), [*options, *asked]

    def assertPart(self, found, whole):
        """Each file of an image that isn't whole is one of the whole image. Returns how many there are."""
        count = 0
        for file, bytes_ in found.items():
            if ".unfinished-" in file:
                continue
            # What a try before left is moved aside before it is removed.
            file = file.replace(".earlier/", "/")
            # The mark of a folder, until the levels are there.
            if file.endswith((".ome.zarr/.zattrs", ".ome.zarr/zarr.json")) and b"multiscales" not in bytes_:
                self.assertIn(b'"slidestream": {}', bytes_)
                continue
            self.assertEqual(bytes_, whole[file], file)
            count += 1
        return count

    def assertWhole(self, file, whole):
        self.assertEqual(content(file), whole)

    def test_a_stop_after_any_number_of_tiles(self):
        for here, file, partial, whole, options in self.formats(300, 200, "tile=64"):
            counts = []
            for stop in range(0, 29, 4):
                write(file, *options, f"stop={stop}")
                self.assertFalse(file.exists())
                counts.append(self.assertPart(content(partial), whole))
            self.assertEqual(counts, sorted(counts))
            self.assertLess(counts[0], counts[-1])
            # An earlier try doesn't matter.
            write(file, *options)
            self.assertWhole(file, whole)
            self.assertFalse(partial.exists())

    def test_the_same_files_whatever_threads_and_bands(self):
        for name, (suffix, asked) in FORMATS.items():
            digests = set()
            for threads, band in ((1, 64), (1, 1000), (2, 7), (3, 64), (5, 129)):
                file = self.folder / f"same{suffix}"
                write(file, 3000, 330, "tile=64", *asked, f"threads={threads}", f"band={band}")
                digests.add(hashlib.sha256(repr(sorted(content(file).items())).encode()).hexdigest())
            self.assertEqual(len(digests), 1, name)

    def test_kills(self):
        for here, file, partial, whole, options in self.formats(2000, 2000, "tile=64", "threads=2"):
            begin = time.monotonic()
            write(here / f"again{file.suffix}", *options)
            taken = time.monotonic() - begin
            chance = random.Random(5)
            for _ in range(6):
                process = subprocess.Popen([WRITE_IMAGE, file, *map(str, options)], stdout=subprocess.DEVNULL)
                time.sleep(taken * chance.random())
                process.send_signal(signal.SIGKILL)
                process.wait()
                if file.exists():  # whole, or it was whole before
                    self.assertWhole(file, whole)
                self.assertPart(content(partial), whole)
            write(file, *options)
            self.assertWhole(file, whole)

    @unittest.skipUnless(FAULTY_STORAGE, "no FAULTY_STORAGE")
    def test_every_write_sync_and_rename_that_fails(self):
        for here, file, partial, whole, options in self.formats(300, 200, "tile=64"):
            report = self.folder / "report"

            def faulty(fault, status):
                environment = {"LD_PRELOAD": FAULTY_STORAGE, "FAULTY": fault, "FAULTY_ROOT": str(file.with_name("file")),
                               "FAULTY_REPORT": str(report)}
                return write(file, *options, status=status, environment=environment)

            faulty("count", 0)
            counts = {name: int(number) for name, number in (line.split() for line in report.read_text().splitlines())}
            self.assertGreater(counts["full"], 30)
            self.assertGreaterEqual(counts["sync"], 1)
            # One each time a file gets its name, and the image.
            self.assertGreater(counts["rename"], 10)
            self.assertWhole(file, whole)
            for kind, reason in ("full", "No space left on device"), ("sync", "Input/output error"), ("rename", "Input/output error"):
                # Each file and each folder is synced: some of them, and the last ones.
                numbers = range(1, counts[kind] + 1)
                for number in numbers if kind != "sync" else {*numbers[:-8:9], *numbers[-8:]}:
                    with self.subTest(kind=kind, number=number):
                        error = faulty(f"{kind}:{number}", 1)
                        self.assertRegex(error, rf"\Awrite_image: {here}/file[^:]*: {reason}\n\Z")
                        # The image that was there before is there still.
                        self.assertWhole(file, whole)
                        self.assertPart(content(partial), whole)
            faulty("count", 0)
            self.assertWhole(file, whole)
            self.assertFalse(partial.exists())


@unittest.skipUnless(os.environ.get("LARGE"), "runs with LARGE=1, for some minutes, and takes 8 GB of $TMPDIR")
class Large(unittest.TestCase):
    """More than 4 GiB of pixels: 70,000 x 66,000 of them."""

    WIDTH, HEIGHT = 70000, 66000

    def pattern(self, x, y, width, height):
        """Pixels of write_image, in grey."""
        x, y = numpy.arange(x, x + width, dtype="u8")[None, :], numpy.arange(y, y + height, dtype="u8")[:, None]
        with numpy.errstate(over="ignore"):
            found = (x * numpy.uint64(0x9E3779B97F4A7C15) + y) ^ numpy.uint64(1 << 32)
            found = (found ^ found >> numpy.uint64(29)) * numpy.uint64(0xBF58476D1CE4E5B9)
            found = (found ^ found >> numpy.uint64(32)) * numpy.uint64(0x94D049BB133111EB)
        smooth = (x * numpy.uint64(2) + y * numpy.uint64(3)) // numpy.uint64(5) % numpy.uint64(224)
        found = ((smooth << numpy.uint64(8)) + (found >> numpy.uint64(51))) >> numpy.uint64(8)
        blank = (x // numpy.uint64(512) % numpy.uint64(3) == 2) & (y // numpy.uint64(512) % numpy.uint64(3) == 2)
        return numpy.where(blank, 0xF3, found).astype("u1")

    def check(self, side, tile_of, tolerance):
        """Some tiles of some levels, the last ones among them."""
        for level in 0, 1, 4:
            step = 1 << level
            columns, rows = (-(-of // step // side) for of in (self.WIDTH, self.HEIGHT))
            for column, row in {(0, 0), (columns - 1, 0), (columns // 2, rows // 2), (0, rows - 1), (columns - 1, rows - 1)}:
                x, y = column * side * step, row * side * step
                pixels = self.pattern(x, y, min(side * step, self.WIDTH - x), min(side * step, self.HEIGHT - y))
                expected = level_of(pixels[..., None], level)[..., 0].astype(int)
                found = tile_of(level, column, row)[:expected.shape[0], :expected.shape[1]]
                self.assertLessEqual(abs(found - expected).mean(), tolerance, (level, column, row))

    def test_chunks(self):
        for version in 2, 3:
            with tempfile.TemporaryDirectory() as folder:
                image = pathlib.Path(folder) / "a.ome.zarr"
                write(image, self.WIDTH, self.HEIGHT, "to=ome-zarr", f"zarr_version={version}", "format=grey8", "tile=1024",
                      "threads=2")
                self.assertGreater(sum(file.stat().st_size for file in image.rglob("*") if file.is_file()), 5 << 30)

                def chunk(level, column, row):
                    if version == 2:
                        return numpy.fromfile(image / f"{level}/0/{row}/{column}", "u1").reshape(1024, 1024)
                    shard = image / f"{level}/c/0/{row}/0"
                    columns = -(-self.WIDTH // (1 << level) // 1024)
                    index = numpy.frombuffer(shard.read_bytes()[-4 - 16 * columns:-4], "<u8")
                    return numpy.fromfile(shard, "u1", 1 << 20, offset=int(index[2 * column])).reshape(1024, 1024)
                self.check(1024, chunk, 0)

    def test_tiles(self):
        with tempfile.TemporaryDirectory() as folder:
            image = pathlib.Path(folder) / "a.dzi"
            write(image, self.WIDTH, self.HEIGHT, "to=dzi", "compression=jpeg", "format=grey8", "tile=512", "quality=90",
                  "threads=2")

            def tile(level, column, row):
                with Image.open(image.with_name("a_files") / f"{17 - level}/{column}_{row}.jpg") as jpeg:
                    return numpy.asarray(jpeg).astype(int)
            self.check(512, tile, 8)


def finish():
    program = unittest.main(exit=False)
    if program.result.skipped and program.result.testsRun == len(program.result.skipped):
        print("SKIPPED: " + program.result.skipped[0][1])
    sys.exit(not program.result.wasSuccessful())


if __name__ == "__main__":
    finish()
