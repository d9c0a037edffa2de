"""Slides and lists as other programs write them: `PIPELINE=path other_programs_test.py [CLASS ...]`. Files are made with
tifffile, which is also what pixels are compared with."""

import io
import json
import os
import struct
import sys
import unittest
import zlib

import tagged_tiff
from convert_test import DISTRIBUTION, Case, info, run

try:
    import numpy
    import tifffile
    from PIL import Image
except ImportError:
    if sys.executable != DISTRIBUTION and os.path.exists(DISTRIBUTION) and "OTHER_PROGRAMS" not in os.environ:
        os.execve(DISTRIBUTION, [DISTRIBUTION, "-B", *sys.argv], {**os.environ, "OTHER_PROGRAMS": "1"})
    numpy = None

TILED = {"tile": (128, 128), "photometric": "rgb", "compression": "deflate", "metadata": None, "software": None}
HALF_MICROMETRE = {"resolution": (20000, 20000), "resolutionunit": "CENTIMETER"}
OME = '<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">'


def picture(height, width):
    """Blobs on glass whose halves are the same at half the size."""
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float32)
    image = numpy.full((height, width, 3), 242, numpy.uint8)
    for cy, cx, radius, colour in ((0.3, 0.3, 0.2, (214, 120, 170)), (0.6, 0.5, 0.25, (120, 70, 150)),
                                   (0.5, 0.8, 0.15, (190, 90, 140))):
        image[(y - cy * height) ** 2 + (x - cx * width) ** 2 < (radius * height) ** 2] = colour
    return image


def half(image):
    image = image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2].astype(numpy.uint16)
    return ((image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2] + 2) // 4).astype(numpy.uint8)


def plain(height, width, colour=(20, 120, 230)):
    image = numpy.full((height, width, 3), colour, numpy.uint8)
    image[:, ::7] = 250
    return image


def ome_image(number, name, shape, attributes="", before=""):
    return (f'<Image ID="Image:{number}" Name="{name}">{before}<Pixels ID="Pixels:{number}" DimensionOrder="XYCZT" '
            f'Type="uint8" SizeX="{shape[1]}" SizeY="{shape[0]}" SizeC="3" SizeZ="1" SizeT="1" {attributes}>'
            f'<Channel ID="Channel:{number}:0" SamplesPerPixel="3"/><TiffData IFD="{number}" PlaneCount="1"/></Pixels>'
            "</Image>")


@unittest.skipIf(numpy is None, "SKIPPED: NumPy and tifffile aren't there")
class Files(Case):
    def written(self, name, *images):
        """Each image is (pixels, options); SubIFDs are counted by `subifds`."""
        file = self.folder / name
        with tifffile.TiffWriter(file) as tif:
            for pixels, options in images:
                tif.write(pixels, **TILED, **options)
        return file

    def sizes(self, file):
        return [(level["width"], level["height"]) for level in info(file)["levels"]]


class Structure(Files):
    def test_a_label_and_a_macro_image_as_further_images_of_ome_tiff(self):
        image = picture(1000, 1000)
        label, macro = plain(125, 122), plain(107, 320)
        xml = OME + "".join(ome_image(i, name, pixels.shape) for i, (name, pixels) in
                            enumerate((("slide", image), ("label", label), ("macro", macro)))) + "</OME>"
        file = self.written("label.ome.tif", (image, {"subifds": 2, "description": xml.encode()}),
                            (half(image), {"subfiletype": 1}), (half(half(image)), {"subfiletype": 1}), (label, {}),
                            (macro, {}))
        self.assertEqual(self.sizes(file), [(1000, 1000), (500, 500), (250, 250)])
        self.assertEqual(info(file)["associated"], ["label", "macro"])
        self.assertEqual(self.shares(file, picture(250, 250)), self.shares_of_pixels(picture(250, 250)))

    def test_a_tiled_thumbnail_of_another_scale(self):
        image = picture(1024, 1024)
        levels = [(image, HALF_MICROMETRE), (half(image), {"subfiletype": 1}), (half(half(image)), {"subfiletype": 1})]
        thumbnail = (plain(130, 130), {"subfiletype": 1})
        for name, images in (("last", [*levels, thumbnail]), ("first", [thumbnail, *levels])):
            with self.subTest(name):
                file = self.written(f"{name}.tif", *images)
                self.assertEqual(self.sizes(file), [(1024, 1024), (512, 512), (256, 256)])
                self.assertEqual(len(info(file)["associated"]), 1)
                self.assertAlmostEqual(info(file)["mpp"], 0.5)
                self.assertEqual(self.shares(file, picture(256, 256)), self.shares_of_pixels(picture(256, 256)))

    def test_words_of_aperio_in_other_places(self):
        image = picture(512, 512)
        smaller = [(half(image), {"subfiletype": 1}), (half(half(image)), {"subfiletype": 1})]
        for text in ("macrophages, CD68", "CD68, macrophages", "macro", "Label-free"):
            with self.subTest(text):
                file = self.written("words.tif", (image, {"description": text, **HALF_MICROMETRE}), *smaller)
                self.assertEqual(self.sizes(file), [(512, 512), (256, 256), (128, 128)])
                self.assertAlmostEqual(info(file)["mpp"], 0.5)
        file = self.written("real.tif", (image, {"description": "CD68"}), smaller[0],
                            (plain(128, 128), {"subfiletype": 1, "description": "label 128x128"}),
                            (plain(100, 250), {"subfiletype": 9, "description": "macro 250x100"}))
        self.assertEqual(self.sizes(file), [(512, 512), (256, 256)])
        self.assertEqual(info(file)["associated"], ["label", "macro"])

    def test_a_pyramid_that_says_nothing_of_itself(self):
        """Levels of type 0, and one pixel a centimetre, as a program wrote that knew no size."""
        image = picture(640, 512)
        none = {"resolution": (1, 1), "resolutionunit": "CENTIMETER", "subfiletype": 0}
        file = self.written("plain.tif", (image, none), (half(image), {**none, "resolution": (0.5, 0.5)}),
                            (half(half(image)), {**none, "resolution": (0.25, 0.25)}))
        self.assertEqual(self.sizes(file), [(512, 640), (256, 320), (128, 160)])
        self.assertIsNone(info(file)["mpp"])
        self.assertEqual(run("info", file).stderr, "")

    def test_a_thumbnail_between_the_channels_levels(self):
        """Each channel of level 0, a thumbnail in colour, then each channel of level 1."""
        planes = [picture(512, 512)[:, :, 0] // step for step in (1, 2, 3)]
        file = self.folder / "channels.tif"
        options = {**TILED, "photometric": "minisblack"}
        with tifffile.TiffWriter(file) as tif:
            for plane in planes:
                tif.write(plane, **options)
            tif.write(picture(64, 64), **{**TILED, "tile": None})
            for plane in planes:
                tif.write(plane[::2, ::2], subfiletype=1, **options)
        result = run("convert", file, self.folder / "none.ome.tif")
        self.assertEqual(result.returncode, 1)
        self.assertIn("has 3 channels; set input.channel to choose one, 0 to 2", result.stderr)
        for channel, plane in enumerate(planes):
            for level, like in enumerate((plane, plane[::2, ::2])):
                out = self.folder / f"{channel}-{level}.ome.tif"
                self.assertDone(run("convert", file, out, "--compression", "none", "--level", level, "--set",
                                    f"input.channel={channel}"))
                self.assertTrue((tifffile.imread(out).reshape(*like.shape, -1)[:, :, 0] == like).all())

    def shares(self, file, like):
        """Pixels of each colour in the smallest level, as the program writes it."""
        out = self.folder / (file.name + ".out.ome.tif")
        self.assertDone(run("convert", file, out, "--compression", "none", "--level",
                            len(info(file)["levels"]) - 1))
        pixels = tifffile.imread(out)
        self.assertEqual(pixels.shape, like.shape)
        return self.shares_of_pixels(pixels)

    @staticmethod
    def shares_of_pixels(pixels):
        return [round(float((numpy.abs(pixels.astype(int) - colour).max(axis=2) < 9).mean()), 1)
                for colour in ((242, 242, 242), (120, 70, 150), (20, 120, 230))]


class Tiles(Files):
    """Tiles as they lie in a file, tag by tag."""

    def tiled(self, image, side, code=bytes, **options):
        """A file of such tiles. `code` makes a tile's bytes of its pixels."""
        width, height = side
        parts = []
        for y in range(0, image.shape[0], height):
            for x in range(0, image.shape[1], width):
                part = image[y:y + height, x:x + width]
                parts.append(code(numpy.pad(part, ((0, height - part.shape[0]), (0, width - part.shape[1]), (0, 0)), mode="edge")))
        directory = tagged_tiff.Directory(image.shape[1], image.shape[0], parts, **options)
        return directory.set(322, tagged_tiff.LONG, width).set(323, tagged_tiff.LONG, height)

    def pixels(self, file):
        out = self.folder / "pixels.ome.tif"
        out.unlink(missing_ok=True)
        result = self.assertDone(run("convert", file, out, "--compression", "none"))
        return tifffile.imread(out, key=0), result.stderr

    @staticmethod
    def jpeg(tile):
        out = io.BytesIO()
        Image.fromarray(tile).save(out, "JPEG", quality=95, subsampling=0)
        return out.getvalue()

    def test_a_tile_without_bytes_isn_t_the_one_before_it(self):
        image = picture(256, 384)
        directory = self.tiled(image, (128, 128), self.jpeg, photometric=6, compression=7)
        whole, _ = self.pixels(tagged_tiff.write(self.folder / "whole.tif", directory))
        self.assertLess(numpy.abs(whole.astype(int) - image).max(), 24)
        expected = whole.copy()
        expected[128:, 128:256] = 255
        directory.tiles[4] = b""
        file = tagged_tiff.write(self.folder / "missing.tif", directory)
        self.assertTrue((self.pixels(file)[0] == expected).all())
        self.assertDone(run(file, "--out", self.out, "--operators", "identity"))
        self.assertEqual(self.rows()[0]["missing_tiles"], "1")
        # A place outside the file is no missing tile.
        data = bytearray(file.read_bytes())
        with tifffile.TiffFile(file) as tif:
            tags = tif.pages[0].tags
            struct.pack_into("<I", data, tags[324].valueoffset + 16, len(data) + 5)
            struct.pack_into("<I", data, tags[325].valueoffset + 16, 99)
        file.write_bytes(data)
        result = run("convert", file, self.folder / "outside.ome.tif")
        self.assertEqual(result.returncode, 1)
        self.assertIn("tile 4 (column 1, row 1) is bad: its bytes lie outside the file", result.stderr)

    def test_sides_that_are_no_multiples_of_16(self):
        """Such as a program writes that makes tiles no larger than a small level."""
        image = picture(110, 150)
        for side in (75, 55), (150, 110), (33, 17):
            for code, compression in ((bytes, 1), (lambda tile: zlib.compress(bytes(tile)), 8)):
                file = tagged_tiff.write(self.folder / "odd.tif",
                                         self.tiled(image, side, code, compression=compression))
                pixels, lines = self.pixels(file)
                self.assertTrue((pixels == image).all())
                self.assertIn(f"TileWidth x TileLength {side[0]} x {side[1]} aren't multiples of 16", lines)
                # The same sides, but for what the bytes were written for.
                other = self.tiled(image, side, code, compression=compression).set(322, tagged_tiff.LONG, side[0] - 1)
                if compression == 1 and -(-150 // (side[0] - 1)) == -(-150 // side[0]):
                    file = tagged_tiff.write(self.folder / "other.tif", other)
                    self.assertOneLine(run("info", file), 1, "TileByteCounts of number 0 is ")

    def test_a_predictor_in_narrow_tiles(self):
        """Differences begin anew in each row of a tile, however narrow."""
        image = picture(96, 144)

        def code(tile):
            rows = tile.copy()
            rows[:, 1:] -= tile[:, :-1]
            return zlib.compress(bytes(rows))
        for side in (16, 16), (32, 48), (48, 16):
            directory = self.tiled(image, side, code, compression=8).set(317, tagged_tiff.SHORT, 2)
            file = tagged_tiff.write(self.folder / "narrow.tif", directory)
            self.assertTrue((self.pixels(file)[0] == image).all())
            self.assertTrue((numpy.asarray(Image.open(file)) == image).all())


class PixelSizes(Files):
    def test_several_objectives(self):
        instrument = ('<Instrument ID="Instrument:0"><Objective ID="Objective:0:0" NominalMagnification="2.0"/>'
                      '<Objective ID="Objective:0:1" NominalMagnification="20.0"/></Instrument>')
        image, overview = picture(256, 256), plain(50, 100)
        xml = OME + instrument + ome_image(
            0, "slide", image.shape, 'PhysicalSizeX="0.5" PhysicalSizeY="0.5"',
            '<InstrumentRef ID="Instrument:0"/><ObjectiveSettings ID="Objective:0:1"/>') + ome_image(
                1, "overview", overview.shape, 'PhysicalSizeX="0.016" PhysicalSizeXUnit="mm" PhysicalSizeY="0.016" '
                'PhysicalSizeYUnit="mm"', '<ObjectiveSettings ID="Objective:0:0"/>') + "</OME>"
        file = self.written("objectives.ome.tif", (image, {"description": xml.encode()}), (overview, {}))
        self.assertEqual((info(file)["mpp"], info(file)["magnification"]), (0.5, 20.0))
        # Written so, too.
        out = self.folder / "out.ome.tif"
        self.assertDone(run("convert", file, out))
        self.assertEqual((info(out)["mpp"], info(out)["magnification"]), (0.5, 20.0))

    def test_sizes_that_differ_a_little_are_both_kept(self):
        image = picture(256, 256)
        xml = OME + ome_image(0, "a", image.shape, 'PhysicalSizeX="0.25" PhysicalSizeY="0.251"') + "</OME>"
        file = self.written("nearly.ome.tif", (image, {"description": xml.encode()}))
        shown = self.assertDone(run("info", file))
        self.assertIn("0.25 x 0.251 micrometres per pixel at level 0, taken for square", shown.stdout)
        self.assertEqual(shown.stderr, "")
        out = self.folder / "out.ome.tif"
        self.assertDone(run("convert", file, out))
        for path in file, out:
            self.assertEqual((info(path)["mpp"], info(path)["mpp_y"]), (0.25, 0.251))

    def test_spellings_of_ome_xml(self):
        image = picture(128, 128)
        def size(unit, value="0.25"):
            return (f'PhysicalSizeX="{value}" PhysicalSizeXUnit="{unit}" PhysicalSizeY="{value}" '
                    f'PhysicalSizeYUnit="{unit}"')
        texts = {unit: OME + ome_image(0, "a", image.shape, size(unit)) + "</OME>"
                 for unit in ("\u00b5m", "&#181;m", "&#xB5;m", "&#956;m")}
        texts["metres"] = OME + ome_image(0, "a", image.shape, size("m", "2.5E-7")) + "</OME>"
        texts["no unit"] = OME + ome_image(0, "a", image.shape, 'PhysicalSizeX="0.25" PhysicalSizeY="0.25"') + "</OME>"
        texts["apostrophes"] = texts["\u00b5m"].replace('"', "'")
        texts["prefix"] = texts["\u00b5m"].replace("<", "<ome:").replace("<ome:/", "</ome:").replace(
            "<ome:?", "<?").replace("xmlns=", "xmlns:ome=")
        for name, text in texts.items():
            with self.subTest(name):
                file = self.written("spelling.ome.tif", (image, {"description": text.encode()}))
                self.assertAlmostEqual(info(file)["mpp"], 0.25)
                self.assertEqual(run("info", file).stderr, "")

    def test_a_list_of_keys_that_isn_t_aperios_with_tags_out_of_order(self):
        image = picture(600, 800)
        for mpp in ("0.257290", "0,257290"):
            images = [(level, {"description": f"Motic V1.0.0 \n800x600 [0,0 {level.shape[1]}x{level.shape[0]}] "
                               f"[128x128] JPEG/RGB Q = 75|AppMag = 40|MPP = {mpp}"})
                      for level in (image, half(image), half(half(image)))]
            file = self.written("motic.svs", *images)
            data = bytearray(file.read_bytes())
            at, = struct.unpack_from("<I", data, 4)
            while at:
                count, = struct.unpack_from("<H", data, at)
                entries = [bytes(data[at + 2 + 12 * i:at + 14 + 12 * i]) for i in range(count)]
                data[at + 2:at + 2 + 12 * count] = b"".join(reversed(entries))
                at, = struct.unpack_from("<I", data, at + 2 + 12 * count)
            file.write_bytes(data)
            self.assertEqual(len(self.sizes(file)), 3)
            self.assertAlmostEqual(info(file)["mpp"], 0.25729)
            self.assertEqual(info(file)["magnification"], 40)

    def test_imagejs_unit_beside_the_tags(self):
        """The text's unit counts before the tag's, unless only the tag's gives a slide's pixels."""
        image = picture(128, 128)
        for unit, tag, resolution, mpp in (("cm", "CENTIMETER", 20000, 0.5), ("cm", "NONE", 20000, 0.5),
                                           ("um", "CENTIMETER", 20000, 0.5), ("micron", "NONE", 2, 0.5), ("micron", "INCH", 2, 0.5),
                                           ("inch", "INCH", 50800, 0.5), ("pixel", "NONE", 2, None)):
            with self.subTest(f"{unit}, {tag}"):
                file = self.written("imagej.tif", (image, {"description": f"ImageJ=1.53c\nunit={unit}\n", "resolutionunit": tag,
                                                           "resolution": (resolution, resolution)}))
                self.assertEqual(info(file)["mpp"], mpp)

    def test_what_can_t_be_read_or_contradicts_gets_a_line(self):
        image = picture(128, 128)
        file = self.written("a.svs", (image, {"description": "Aperio\n|MPP = 0.25um|AppMag = 20"}))
        self.assertOneLine(run("info", file), 0, f"{file}: MPP is '0.25um', no positive number: it is passed over")
        text = OME + ome_image(0, "a", image.shape, 'PhysicalSizeX="0.25" PhysicalSizeY="0.25"') + "</OME>"
        file = self.written("b.ome.tif", (image, {"description": text.encode(), **HALF_MICROMETRE}))
        self.assertOneLine(run("info", file), 0, f"{file}: OME-XML says 0.25 micrometres per pixel, and the resolution "
                           "0.5: OME-XML counts")


class Outlines(Files):
    RING = [[100, 100], [600, 100], [600, 500], [100, 500], [100, 100]]
    FEATURE = {"type": "Feature", "id": "d0852662", "geometry": {"type": "Polygon", "coordinates": [RING]},
               "properties": {"objectType": "annotation", "classification": {"name": "Tumor", "color": [200, 0, 0]}}}
    POINT = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [50, 60]}}

    def analysed(self, text, *options):
        file = self.written("slide.tif", (picture(800, 1000), HALF_MICROMETRE))
        file.with_suffix(".geojson").write_text(text)
        return run(file, "--out", self.out, "--operators", "tissue", "--set", "tissue.source=geojson", *options)

    def test_a_bare_list_and_points_beside_polygons(self):
        for name, content in (("collection", {"type": "FeatureCollection", "features": [self.FEATURE]}),
                              ("list", [self.FEATURE]), ("one", self.FEATURE), ("point", [self.FEATURE, self.POINT])):
            with self.subTest(name):
                self.out = self.folder / name
                result = self.assertDone(self.analysed(json.dumps(content)))
                self.assertEqual("points and lines of its outlines are ignored, as they have no area: 1" in
                                 result.stderr, name == "point", result.stderr)
                self.assertAlmostEqual(float(self.rows()[0]["tissue.share"]), 0.25, 2)

    def test_points_and_other_planes_are_warnings_and_the_class_ignore_is_none(self):
        """With -q only warnings are shown."""
        ignored = {**self.FEATURE, "properties": {"classification": {"name": "Ignore*"}}}
        deep = {**self.FEATURE, "geometry": {**self.FEATURE["geometry"], "plane": {"c": -1, "z": 1, "t": 0}}}
        for name, feature, line in (
                ("points", self.POINT, "points and lines of its outlines are ignored, as they have no area: 1"),
                ("planes", deep, "outlines of planes whose z or t isn't 0 count as tissue: 1"), ("ignored", ignored, None)):
            with self.subTest(name):
                self.out = self.folder / f"quiet-{name}"
                result = self.assertDone(self.analysed(json.dumps([self.FEATURE, feature]), "-q"))
                self.assertEqual(result.stderr.count("utlines "), 1 if line else 0, result.stderr)
                self.assertIn(line or "", result.stderr)

    def test_what_isn_t_json_is_named_with_its_place(self):
        text = json.dumps([self.FEATURE], indent=1)
        result = self.analysed(text[: text.index("classification")])
        self.assertEqual(result.returncode, 1, result.stderr)
        line = text[: text.index("classification")].count("\n") + 1
        self.assertIn(f"slide.geojson: not usable as tissue outlines: is not JSON: wrong at line {line}, column ",
                      result.stderr)
        self.assertIn("where it ends", result.stderr)


class Shares(Files):
    def test_a_share_of_tissue_that_is_unlikely_gets_a_line(self):
        pink = numpy.full((1600, 1600, 3), (190, 90, 150), numpy.uint8)
        pink[::9, ::9] += 20
        half_pink = pink.copy()
        half_pink[800:] = 242
        for name, image in (("full", pink), ("half", half_pink), ("empty", numpy.full_like(pink, 242))):
            self.written(f"{name}.tif", (image, HALF_MICROMETRE))
        result = self.assertDone(run(*(self.folder / f"{name}.tif" for name in ("full", "half", "empty")), "--out", self.out,
                                     "--operators", "tissue"))
        lines = [line for line in result.stderr.splitlines() if " tissue" in line]
        self.assertEqual(len(lines), 2, result.stderr)
        self.assertIn("full.tif: 100.0 % of the slide are tissue; look at its mask, and set tissue.method or tissue.threshold if "
                      "it is wrong", result.stderr)
        self.assertIn("empty.tif: no tissue was found", result.stderr)
        self.assertEqual([round(float(row["tissue.share"]), 1) for row in self.rows()], [1.0, 0.5, 0.0])
        self.assertNotIn("grey", result.stderr)

    def test_ink_that_is_large_beside_the_tissue_gets_a_line(self):
        pink = numpy.full((1600, 1600, 3), 242, numpy.uint8)
        pink[:800] = (190, 90, 150)
        inked = pink.copy()
        inked[1008:1408] = (25, 50, 150)
        # Dark, which is no tissue with tissue.ink = "keep" either.
        framed = pink.copy()
        framed[:, :208] = (8, 6, 12)
        for name, image in (("plain", pink), ("inked", inked), ("framed", framed)):
            self.written(f"{name}.tif", (image, HALF_MICROMETRE))
        result = self.assertDone(run(*(self.folder / f"{name}.tif" for name in ("plain", "inked", "framed")), "--out",
                                     self.out, "--operators", "tissue"))
        # Of 25 rows of the mask those at the edges aren't even.
        self.assertIn("inked.tif: at least 23.0 % of the slide are left out as ink; look at its mask, and set "
                      'tissue.ink = "keep" if that is tissue', result.stderr)
        self.assertEqual(result.stderr.count("as ink"), 1, result.stderr)

    def test_a_slide_whose_colours_are_missing_is_called_grey(self):
        file = self.folder / "black.tif"
        with tifffile.TiffWriter(file) as tif:
            tif.write(numpy.ascontiguousarray(picture(800, 800)[..., 1]),
                      **{**TILED, **HALF_MICROMETRE, "photometric": "minisblack"})
        result = self.assertDone(run(file, "--out", self.out, "--operators", "tissue"))
        self.assertIn("black.tif: no tissue was found; the slide is grey\n", result.stderr)
        result = run(file, "--out", self.folder / "stained", "--operators", "stain")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("stained pixels of tissue in the blocks that were looked at; stains need 1000; the slide is grey",
                      result.stderr)


class Lists(Files):
    def test_a_list_as_trident_writes_it(self):
        self.written("a.tif", (picture(128, 128), {}))
        for text in ("wsi,mpp\na.tif,0.5\n", "wsi;mpp\na.tif;0,5\n", "wsi\tmpp\na.tif\t0.5\n"):
            with self.subTest(text):
                table = self.folder / "list.csv"
                table.write_text(text)
                result = self.assertDone(run("info", table))
                self.assertIn(f"{table}: the slides are those of column 'wsi'", result.stderr)
                self.assertIn("a.tif", result.stdout)


if __name__ == "__main__":
    unittest.main()
