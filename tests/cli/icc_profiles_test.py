"""ICC profiles of slides, and colours that are converted to sRGB: `PIPELINE=path icc_profiles_test.py [CLASS ...]`."""

import base64
import io
import json
import re
import struct
import unittest

from colours_test import picture, tiles
from convert_test import Case, run

try:
    import numpy
    import tifffile
    from PIL import Image, ImageCms
except ImportError:
    numpy = None

from tagged_tiff import UNDEFINED, Directory, write


def profile(size):
    """Of sRGB, with a text that makes it so large."""
    made = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes().ljust(size, b"\0")
    return struct.pack(">I", len(made)) + made[4:]


@unittest.skipUnless(numpy, "no NumPy, Pillow or tifffile")
class DeepZoomProfile(Case):
    def tiles(self, icc):
        image = picture(300, 280)
        stored = (tile.tobytes() for tile in tiles(image))
        slide = write(self.folder / "slide.tif", Directory(280, 300, stored).set(34675, UNDEFINED, icc))
        result = self.assertDone(run("convert", slide, "--to", "dzi", "--out", self.out))
        made = sorted((self.out / "images").glob("slide.identity_files/*/*.jpg"))
        self.assertGreater(len(made), 10)
        return [Image.open(each) for each in made], result.stderr

    def test_each_tile_has_it(self):
        icc = profile(0)
        found, messages = self.tiles(icc)
        for tile in found:
            self.assertEqual(tile.info["icc_profile"], icc)
            self.assertEqual(tile.info["jfif"], 0x101)
            tile.load()
        self.assertNotIn("ICC", messages)

    def test_a_large_one_is_left_out_and_told(self):
        found, messages = self.tiles(profile(20000))
        self.assertTrue(all("icc_profile" not in tile.info for tile in found))
        self.assertEqual(messages.count("the ICC profile of 20000 bytes isn't put into Deep Zoom tiles"), 1)


def other_profile():
    """sRGB with the primaries of red and green changed over, as far as a third."""
    made = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    places = {}
    for i in range(struct.unpack_from(">I", made, 128)[0]):
        name, offset, size = struct.unpack_from(">4sII", made, 132 + 12 * i)
        places[name] = (offset, size)
    red, green = (struct.unpack_from(">3i", made, places[name][0] + 8) for name in (b"rXYZ", b"gXYZ"))
    for name, own, other in ((b"rXYZ", red, green), (b"gXYZ", green, red)):
        struct.pack_into(">3i", made, places[name][0] + 8, *((2 * a + b) // 3 for a, b in zip(own, other)))
    return bytes(made)


@unittest.skipUnless(numpy, "no NumPy, Pillow or tifffile")
class Srgb(Case):
    """`input.colour = "srgb"`, beside Pillow's transform."""

    def setUp(self):
        super().setUp()
        self.icc = other_profile()
        self.image = picture(600, 700)
        self.slide = self.write("slide.tif", self.icc)

    def write(self, name, icc):
        directory = Directory(700, 600, (tile.tobytes() for tile in tiles(self.image)))
        return write(self.folder / name, directory.set(34675, UNDEFINED, icc) if icc else directory)

    def expected(self):
        source = ImageCms.ImageCmsProfile(io.BytesIO(self.icc))
        return numpy.asarray(ImageCms.profileToProfile(Image.fromarray(self.image), source, ImageCms.createProfile("sRGB"),
                                                       renderingIntent=1)).astype(int)

    def test_images_have_converted_colours_and_their_profile(self):
        file = self.folder / "made.ome.tif"
        self.assertDone(run("convert", self.slide, file, "--set", "input.colour=srgb"))
        with tifffile.TiffFile(file) as made:
            page = made.pages[0]
            profile = ImageCms.ImageCmsProfile(io.BytesIO(page.tags[34675].value))
        self.assertIn("sRGB", ImageCms.getProfileDescription(profile))
        plain = self.folder / "plain.ome.tif"
        self.assertDone(run("convert", self.slide, plain, "--compression", "none", "--set", "input.colour=srgb"))
        found = tifffile.imread(plain).astype(int)
        expected = self.expected()
        self.assertGreater(numpy.abs(expected - self.image).max(), 30)
        # Pillow's has 8 bits on the way.
        self.assertLessEqual(numpy.abs(found - expected).max(), 2)
        self.assertLess((found != expected).mean(), 0.15)

    def assertConverted(self, found, tolerance):
        """An image with a loss is that of the converted picture, and not that of the file's."""
        size = found.size
        found = numpy.asarray(found.convert("RGB")).astype(int)

        def mean_difference(image):
            small = Image.fromarray(image.astype(numpy.uint8)).resize(size, Image.BOX)
            return numpy.abs(found - numpy.asarray(small).astype(int)).mean()

        self.assertLess(mean_difference(self.expected()), tolerance)
        self.assertGreater(mean_difference(self.image), 2 * tolerance)

    def test_deep_zoom_has_converted_colours_and_their_profile(self):
        made = {}
        for colour in "auto", "srgb", "file":
            file = self.folder / f"{colour}.dzi"
            result = run("convert", self.slide, file, "--tile", 1024, "--quality", 95, "--set", f"input.colour={colour}")
            self.assertDone(result)
            said = f'{self.slide}: its colours are converted to sRGB for browsers; input.colour = "file" keeps them'
            self.assertEqual(result.stderr.count(said), colour == "auto", result.stderr)
            made[colour] = max((self.folder / f"{colour}_files").glob("*/0_0.jpg"), key=lambda file: int(file.parent.name))
        tile = Image.open(made["auto"])
        self.assertEqual(tile.size, (700, 600))
        self.assertIn("sRGB", ImageCms.getProfileDescription(ImageCms.ImageCmsProfile(io.BytesIO(tile.info["icc_profile"]))))
        self.assertConverted(tile, 1.5)
        self.assertEqual(made["auto"].read_bytes(), made["srgb"].read_bytes())
        self.assertEqual(Image.open(made["file"]).info["icc_profile"], self.icc)

    def test_deep_zoom_of_srgb_slides_and_of_other_results_has_the_slides_own_colours(self):
        slide = self.write("srgb.tif", ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
        for path, operators in (slide, "identity"), (self.slide, "identity,spectrum"):
            tiles = {}
            for colour in "auto", "file":
                self.out = self.folder / f"{path.stem}.{colour}"
                result = run(path, "--operators", operators, "--set", "image.format=dzi", "--set", f"input.colour={colour}",
                             "--out", self.out)
                self.assertDone(result)
                self.assertNotIn("sRGB", result.stderr)
                tiles[colour] = {file.relative_to(self.out): file.read_bytes() for file in self.out.glob("images/*_files/*/*")}
            self.assertTrue(tiles["auto"])
            self.assertEqual(tiles["auto"], tiles["file"])

    def test_thumbnails_of_reports_are_converted(self):
        for colour in "file", "srgb":
            self.out = self.folder / colour
            self.assertDone(run(self.slide, "--out", self.out, "--set", f"input.colour={colour}"))
            page = self.folder / f"{colour}.html"
            self.assertDone(run("report", self.out, "--html", page))
            images = [Image.open(io.BytesIO(base64.b64decode(part + "=" * (-len(part) % 4))))
                      for part in re.findall(r"/9j/[A-Za-z0-9+/]+", page.read_text(encoding="utf-8"))]
            self.assertEqual(len(images), 1)
            self.assertConverted(images[0], 3)

    def test_spectra_are_those_of_the_converted_image(self):
        converted = self.folder / "converted.ome.tif"
        self.assertDone(run("convert", self.slide, converted, "--compression", "none", "--set", "input.colour=srgb"))
        means = []
        for slide, colour in ((self.slide, "srgb"), (converted, "file"), (self.slide, "file")):
            self.out = self.folder / f"out{len(means)}"
            self.assertDone(run(slide, "--out", self.out, "--set", f"input.colour={colour}"))
            means.append(self.rows()[0]["mean_db"])
        self.assertEqual(means[0], means[1])
        self.assertNotEqual(means[0], means[2])

    def test_slides_that_stay_are_marked(self):
        self.write("without.tif", None)
        result = run(self.folder / "slide.tif", self.folder / "without.tif", "--out", self.out, "--set", "input.colour=srgb")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("colours aren't converted to sRGB"), 1)
        self.assertIn("without.tif: its colours aren't converted to sRGB: it has no ICC profile", result.stderr)
        self.assertEqual([row["srgb"] for row in self.rows()], ["1", "0"])
        # The setting decides.
        again = run(self.folder / "slide.tif", self.folder / "without.tif", "--out", self.out)
        self.assertOneLine(again, 2, "input.colour")

    def test_a_reference_that_stays_is_refused(self):
        reference = self.write("reference.tif", None)
        words = ("--operators", "stain", "--set", "image.format=ome-tiff", "--set", "input.mpp_default=0.5", "--set",
                 f"stain.reference={reference}", "--out", self.out)
        result = run(self.slide, *words, "--set", "input.colour=srgb")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"stain.reference: {reference}: its colours aren't converted to sRGB: it has no ICC profile; set "
                      'input.colour to "file", or name another reference', result.stderr)
        self.assertDone(run(self.slide, *words, "--fresh"))

    def test_tiles_that_are_copied_stay_as_they_are(self):
        result = run("convert", self.slide, self.folder / "a.ome.tif", "--compression", "copy", "--set", "input.colour=srgb")
        self.assertOneLine(result, 2, 'input.colour = "srgb" converts')

    def damaged(self):
        """A slide whose profile has a curve of a kind that doesn't exist."""
        icc = bytearray(self.icc)
        entries = range(132, 132 + 12 * int.from_bytes(icc[128:132], "big"), 12)
        [curve] = {int.from_bytes(icc[at + 4:at + 8], "big") for at in entries if icc[at:at + 4] == b"rTRC"}
        icc[curve:curve + 4] = b"none"
        return self.write("damaged.tif", bytes(icc))

    def test_a_slide_that_stays_as_it_is_gets_a_warning(self):
        slide = self.damaged()
        for number, words in enumerate((("-q",), ("--log-level", "warn"), ())):
            result = run("convert", slide, self.folder / f"{number}.ome.tif", "--set", "input.colour=srgb", *words)
            self.assertDone(result)
            self.assertEqual(result.stderr.count(f"warning: {slide}: its colours aren't converted to sRGB: "), 1, result.stderr)
        # What is done by itself is no warning.
        result = run("convert", self.slide, self.folder / "own.dzi", "-q")
        self.assertDone(result)
        self.assertEqual(result.stderr, "")

    def test_the_profile_has_a_name(self):
        shown = self.assertDone(run("info", self.slide)).stdout
        self.assertIn("bytes, RGB, sRGB built-in\n", shown)
        found = json.loads(run("info", "--json", self.slide).stdout)
        self.assertEqual((found["icc_name"], found["srgb_fault"]), ("sRGB built-in", None))

    def test_a_profile_that_cant_be_used_is_named(self):
        slide = self.damaged()
        fault = json.loads(self.assertDone(run("info", "--json", slide)).stdout)["srgb_fault"]
        self.assertTrue(fault)
        self.assertIn(f"bytes, RGB, sRGB built-in; can't be converted to sRGB: {fault}\n", run("info", slide).stdout)
        result = run("convert", slide, self.folder / "made.ome.tif", "--set", "input.colour=srgb", "-q")
        self.assertIn(f"its colours aren't converted to sRGB: {fault}\n", result.stderr)
        without = json.loads(run("info", "--json", self.write("without.tif", None)).stdout)
        self.assertEqual(without["srgb_fault"], "it has no ICC profile")


if __name__ == "__main__":
    unittest.main()
