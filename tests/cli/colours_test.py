"""Slides as other programs write their colours: `PIPELINE=path colours_test.py [CLASS ...]`."""

import io
import json
import unittest

from convert_test import Case, run

try:
    import numpy
    import tifffile
    from PIL import Image, features
except ImportError:
    numpy = None

from tagged_tiff import SHORT, Directory, write

RGB, YCBCR, GREY = 2, 6, 1
JPEG, JPEG2000_YCBCR = 7, 33003
SIDE = 256
ADOBE_RGB = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0"


def picture(height, width):
    """Pink and violet patches on nearly white glass."""
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float32)
    image = numpy.full((height, width, 3), 242, numpy.float32)
    for cy, cx, r, colour in ((0.3, 0.3, 0.2, (214, 120, 170)), (0.6, 0.5, 0.25, (120, 70, 150)), (0.4, 0.8, 0.15, (190, 90, 140))):
        image[((y / height - cy) ** 2 + (x / width - cx) ** 2) < r * r] = colour
    return numpy.clip(image + (14 * numpy.sin(x / 7) * numpy.cos(y / 9))[..., None], 0, 255).astype(numpy.uint8)


def tiles(image):
    for y in range(0, image.shape[0], SIDE):
        for x in range(0, image.shape[1], SIDE):
            part = image[y:y + SIDE, x:x + SIDE]
            tile = numpy.full((SIDE, SIDE, *image.shape[2:]), 255, numpy.uint8)
            tile[:part.shape[0], :part.shape[1]] = part
            yield tile


def coded(tile, *arguments, **options):
    out = io.BytesIO()
    Image.fromarray(tile).save(out, *arguments, **options)
    return out.getvalue()


def joined(parts, height, width):
    """Tiles as the whole image."""
    parts = iter(parts)
    rows = [numpy.concatenate([next(parts) for _ in range(0, width, SIDE)], axis=1) for _ in range(0, height, SIDE)]
    return numpy.concatenate(rows)[:height, :width]


def ome(channels, planes=""):
    return ('<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels '
            'ID="Pixels:0" DimensionOrder="XYCZT" Type="uint8" SizeX="700" SizeY="600" SizeC="3" SizeZ="1" SizeT="1" '
            f'PhysicalSizeX="0.5" PhysicalSizeY="0.5">{channels}{planes}</Pixels></Image></OME>')


ONE_CHANNEL = ome('<Channel ID="Channel:0:0" SamplesPerPixel="3"/>')


@unittest.skipUnless(numpy, "no NumPy, Pillow or tifffile")
class Colours(Case):
    def setUp(self):
        super().setUp()
        self.image = picture(600, 700)

    def pixels(self, slide, *options, fails=None):
        """Of a conversion without loss, as tifffile reads them."""
        out = self.folder / "converted.ome.tif"
        out.unlink(missing_ok=True)
        result = run("convert", slide, out, "--compression", "none", *options)
        if fails is not None:
            self.assertNotEqual(result.returncode, 0)
            self.assertFalse(out.exists())
            lines = [line for line in result.stderr.splitlines() if fails in line]
            self.assertTrue(lines and slide.name in lines[0], result.stderr)
            return None
        self.assertDone(result)
        return tifffile.TiffFile(out).pages[0].asarray()

    def jfif(self, photometric, **options):
        stored = [coded(tile, "JPEG", quality=90, **options) for tile in tiles(self.image)]
        slide = write(self.folder / "jfif.ome.tif", Directory(700, 600, stored, photometric=photometric, compression=JPEG,
                                                              description=ONE_CHANNEL))
        return slide, stored

    def test_jfif_tiles_under_a_tag_that_says_rgb(self):
        for photometric in RGB, YCBCR:
            slide, stored = self.jfif(photometric, subsampling=2)
            decoded = joined((numpy.asarray(Image.open(io.BytesIO(tile))) for tile in stored), 600, 700)
            level, = json.loads(self.assertDone(run("info", "--json", slide)).stdout)["levels"]
            self.assertEqual((level["colour"], level["said_colour"]), ("ycbcr", {RGB: "rgb", YCBCR: "ycbcr"}[photometric]))
            self.assertEqual("ycbcr, said to be rgb" in run("info", slide).stdout, photometric == RGB)
            found = self.pixels(slide)
            self.assertLess(numpy.abs(found.astype(int) - decoded).max(), 3)
            self.assertLess(numpy.abs(found.astype(int) - self.image).mean(), 4)
            self.assertDone(run("convert", slide, self.folder / "copy.ome.tif", "--compression", "copy"))
            with tifffile.TiffFile(self.folder / "copy.ome.tif") as copy:
                page = copy.pages[0]
                self.assertEqual((page.photometric, page.tags[530].value), (YCBCR, (2, 2)))
                copy.filehandle.seek(page.dataoffsets[0])
                self.assertEqual(copy.filehandle.read(page.databytecounts[0]).rstrip(b"\0"), stored[0].rstrip(b"\0"))
            self.assertTrue((self.pixels(self.folder / "copy.ome.tif") == found).all())
            (self.folder / "copy.ome.tif").unlink()

    def test_ycbcr_tiles_without_a_marker_under_a_tag_that_says_rgb(self):
        stored = [coded(tile, "JPEG", quality=90, subsampling=0) for tile in tiles(self.image)]
        decoded = joined((numpy.asarray(Image.open(io.BytesIO(tile))) for tile in stored), 600, 700)
        without_jfif = [tile[:2] + tile[2 + 18:] for tile in stored]
        slide = write(self.folder / "bare.tif", Directory(700, 600, without_jfif, photometric=RGB, compression=JPEG))
        found = self.pixels(slide)
        self.assertLess(numpy.abs(found.astype(int) - decoded).max(), 3)
        self.assertLess(numpy.abs(found.astype(int) - self.image).mean(), 4)
        copied = self.folder / "copy.ome.tif"
        self.assertDone(run("convert", slide, copied, "--compression", "copy"))
        with tifffile.TiffFile(copied) as copy:
            page = copy.pages[0]
            self.assertEqual((page.photometric, page.tags[530].value), (YCBCR, (1, 1)))
        self.assertTrue((self.pixels(copied) == found).all())

    def test_rgb_tiles_with_adobes_marker(self):
        # Pillow takes red, green and blue for Y, Cb and Cr, and leaves them as they are.
        as_ycbcr = [Image.merge("YCbCr", Image.fromarray(tile).split()) for tile in tiles(self.image)]
        stored = []
        for tile in as_ycbcr:
            out = io.BytesIO()
            tile.save(out, "JPEG", quality=90, subsampling=0)
            stored.append(out.getvalue()[:2] + ADOBE_RGB + out.getvalue()[2 + 18:])
        for photometric in RGB, YCBCR:
            slide = write(self.folder / "adobe.tif", Directory(700, 600, stored, photometric=photometric, compression=JPEG))
            self.assertLess(numpy.abs(self.pixels(slide).astype(int) - self.image).mean(), 4)

    def test_contradictory_marks_are_refused(self):
        slide, stored = self.jfif(RGB, subsampling=2)
        marked = [tile[:2] + ADOBE_RGB + tile[2:] for tile in stored]
        write(slide, Directory(700, 600, marked, compression=JPEG, description=ONE_CHANNEL))
        self.pixels(slide, fails="PhotometricInterpretation says RGB, the JPEG frame's JFIF header YCbCr, its Adobe marker RGB")

    def test_jpeg_2000(self):
        if not features.check("jpg_2000"):
            self.skipTest("this Pillow has no JPEG 2000")

        def slide(image, transform, photometric, description):
            stored = [coded(tile, "JPEG2000", no_jp2=True, mct=transform, irreversible=False) for tile in tiles(image)]
            return write(self.folder / "slide.ome.tif", Directory(700, 600, stored, photometric=photometric,
                                                                  compression=JPEG2000_YCBCR, description=description))
        for transform in 1, 0:
            with self.subTest(transform=transform):
                self.assertTrue((self.pixels(slide(self.image, transform, RGB, ONE_CHANNEL)) == self.image).all())
        ycbcr = numpy.asarray(Image.fromarray(self.image).convert("YCbCr"))
        aperio = "Aperio Image Library v12.0.15 \r\n700x600 [0,0 700x600] (256x256) J2K/YUV16 Q=70|AppMag = 20|MPP = 0.5"
        for photometric in RGB, YCBCR:
            found = self.pixels(slide(ycbcr, 0, photometric, aperio)).astype(int)
            self.assertLess(numpy.abs(found - self.image).max(), 4)

    def test_orientation(self):
        for value in range(1, 9):
            slide = write(self.folder / "turned.tif",
                          Directory(700, 600, map(numpy.ndarray.tobytes, tiles(self.image))).set(274, SHORT, value))
            if value == 1:
                self.assertTrue((self.pixels(slide) == self.image).all())
                continue
            self.pixels(slide, fails=f"Orientation {value} isn't supported")
            self.assertOneLine(run("info", slide), 1, "turned.tif", f"Orientation {value}")

    def planes(self, image, names):
        channels = "".join(f'<Channel ID="Channel:0:{i}" Name="{name}" SamplesPerPixel="1"/>' for i, name in enumerate(names))
        pages = [Directory(700, 600, (tile.tobytes() for tile in tiles(image[..., i])), samples=1, photometric=GREY,
                           **({"description": ome(channels)} if i == 0 else {})) for i in range(len(names))]
        return write(self.folder / "planes.ome.tif", *pages)

    def test_colours_as_grey_planes(self):
        for names in ["DAPI", "FITC", "Cy3"], ["Red", "Green", "Green"]:
            text = f"has 3 channels ({', '.join(names)}); set input.channel to choose one, 0 to 2"
            self.pixels(self.planes(self.image, names), fails=text)
        for names in ["R", "G", "B"], ["Red", "Green", "Blue"]:
            slide = self.planes(self.image, names)
            self.assertTrue((self.pixels(slide) == self.image).all())
        for names, order in (["Blue", "Green", "Red"], [2, 1, 0]), (["g", "b", "r"], [1, 2, 0]):
            other = self.planes(self.image[..., order], names)
            self.assertTrue((self.pixels(other) == self.image).all())
        slide = self.planes(self.image, ["Red", "Green", "Blue"])
        found = self.pixels(slide, "-s", "identity.colour=luminance")
        plain = write(self.folder / "plain.tif", Directory(700, 600, map(numpy.ndarray.tobytes, tiles(self.image))))
        self.assertTrue((found == self.pixels(plain, "-s", "identity.colour=luminance")).all())
        for channel in range(3):
            found = self.pixels(slide, "-s", f"input.channel={channel}", "-s", "identity.colour=luminance")
            self.assertTrue((found == self.image[..., channel]).all())

    def assertPlanes(self, slide, image):
        """Every way to pixels gives what tifffile reads."""
        with tifffile.TiffFile(slide) as file:
            self.assertTrue((file.pages[0].asarray().transpose(1, 2, 0) == image).all())
        self.assertTrue((self.pixels(slide) == image).all())
        grey = self.pixels(slide, "-s", "identity.colour=luminance")
        twin = self.folder / "twin.tif"
        if not twin.exists():
            write(twin, Directory(image.shape[1], image.shape[0], map(numpy.ndarray.tobytes, tiles(image))))
            self.luminance = self.pixels(twin, "-s", "identity.colour=luminance")
        self.assertTrue((grey == self.luminance).all())
        shown = self.assertDone(run("info", slide)).stdout
        self.assertRegex(shown, r"samples +planes apart: tiles of red, of green and of blue\n")
        self.assertEqual(json.loads(run("info", "--json", slide).stdout)["levels"][0]["codec"], "planes")

    def test_planes_as_tifffile_writes_them(self):
        apart = self.image.transpose(2, 0, 1)
        options = {"photometric": "rgb", "planarconfig": "separate"}
        tiled, strips, whole = {"tile": (SIDE, SIDE)}, {"rowsperstrip": 64}, {"rowsperstrip": 600}
        for compression, layout in ((None, tiled), (None, strips), (None, whole), ("zlib", tiled), ("zlib", strips),
                                    ("lzma", whole)):
            with self.subTest(compression=compression, **layout):
                slide = self.folder / "apart.tif"
                tifffile.imwrite(slide, apart, compression=compression, **layout, **options)
                self.assertPlanes(slide, self.image)

    def test_planes_as_pillow_reads_them(self):
        """Of libtiff's codecs, as Pillow can't write planes and tifffile can't compress by itself."""
        for name, number in ("tiff_lzw", 5), ("packbits", 32773):
            strips = []
            for plane in range(3):
                for y in range(0, 600, 64):
                    out = io.BytesIO()
                    Image.fromarray(self.image[y:y + 64, :, plane]).save(out, "TIFF", compression=name)
                    with tifffile.TiffFile(io.BytesIO(out.getvalue())) as one:
                        self.assertEqual(len(one.pages[0].dataoffsets), 1)
                        at, length = one.pages[0].dataoffsets[0], one.pages[0].databytecounts[0]
                        strips.append(out.getvalue()[at:at + length])
            slide = write(self.folder / "apart.tif",
                          Directory(700, 600, strips, rows=64, compression=number).set(284, SHORT, 2))
            self.assertTrue((numpy.asarray(Image.open(slide)) == self.image).all(), name)
            self.assertTrue((self.pixels(slide) == self.image).all(), name)

    def test_a_pyramid_of_planes(self):
        """As bfconvert writes it: OME-XML, smaller levels as SubIFDs, samples apart in all."""
        levels = [self.image, self.image[::2, ::2], self.image[::4, ::4]]
        slide = self.folder / "apart.ome.tif"
        options = {"photometric": "rgb", "planarconfig": "separate", "tile": (SIDE, SIDE), "compression": "zlib"}
        with tifffile.TiffWriter(slide, bigtiff=True) as file:
            file.write(levels[0].transpose(2, 0, 1), subifds=2, **options,
                       metadata={"axes": "CYX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5})
            for level in levels[1:]:
                file.write(level.transpose(2, 0, 1), subfiletype=1, **options)
        self.assertPlanes(slide, self.image)
        found = json.loads(run("info", "--json", slide).stdout)
        self.assertEqual([(level["width"], level["codec"]) for level in found["levels"]],
                         [(700, "planes"), (350, "planes"), (175, "planes")])
        self.assertEqual((found["format"], found["mpp"], found["channels"]), ("ome-tiff", 0.5, []))
        for number, level in enumerate(levels):
            self.assertTrue((self.pixels(slide, "--level", number) == level).all(), number)
        result = run("convert", slide, self.folder / "copy.ome.tif", "--compression", "copy")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("its tiles can't be copied: they are planes, not JPEG", result.stderr)

    def test_planes_of_jpeg(self):
        stored = [coded(tile, "JPEG", quality=90) for i in range(3) for tile in tiles(self.image[..., i])]
        slide = write(self.folder / "apart.tif", Directory(700, 600, stored, compression=JPEG).set(284, SHORT, 2))
        decoded = [numpy.asarray(Image.open(io.BytesIO(tile))) for tile in stored]
        expected = numpy.stack([joined(decoded[9 * i:9 * i + 9], 600, 700) for i in range(3)], axis=2)
        self.assertTrue((self.pixels(slide) == expected).all())
        # DICOM says what the pixels went through.
        made = self.folder / "made.dicom"
        self.assertDone(run("convert", slide, made, "--compression", "none", "-s", "input.mpp=0.5"))
        content = (made / "level-0.dcm").read_bytes()
        for element in b"\x28\0\x10\x21CS\x02\x0001", b"\x28\0\x14\x21CS\x0c\0ISO_10918_1 ":
            self.assertIn(element, content)

    def test_the_tag_says_how_samples_lie(self):
        """Whatever OME-XML calls interleaved, and however many samples it gives a channel."""
        three = "".join(f'<Channel ID="Channel:0:{i}" SamplesPerPixel="1"/>' for i in range(3))
        for xml in ONE_CHANNEL, ome(three):
            for said in "true", "false":
                text = xml.replace("<Pixels ", f'<Pixels Interleaved="{said}" ')
                chunky = Directory(700, 600, map(numpy.ndarray.tobytes, tiles(self.image)), description=text)
                apart = Directory(700, 600, (tile.tobytes() for i in range(3) for tile in tiles(self.image[..., i])),
                                  description=text).set(284, SHORT, 2)
                for directory in chunky, apart:
                    slide = write(self.folder / "said.ome.tif", directory)
                    self.assertTrue((self.pixels(slide) == self.image).all(), (text, directory is apart))

    def test_planes_that_do_not_fit(self):
        stored = [tile.tobytes() for i in range(3) for tile in tiles(self.image[..., i])]
        slide = self.folder / "apart.tif"
        for count in 9, 26, 28:
            write(slide, Directory(700, 600, (stored + stored)[:count]).set(284, SHORT, 2))
            self.assertOneLine(run("info", slide), 1, "apart.tif",
                               f"TileOffsets has {count} values, expected 27 for 3 planes of 3 x 3 tiles")
        write(slide, Directory(700, 600, [*stored[:12], stored[12][:99], *stored[13:]]).set(284, SHORT, 2))
        self.pixels(slide, fails="tile 3 (column 0, row 1) is bad: its green plane: 99 bytes of samples, expected 65536")

    def test_a_file_of_a_set(self):
        channels = "".join(f'<Channel ID="Channel:0:{i}" Name="{name}" SamplesPerPixel="1"/>' for i, name in enumerate("ABC"))
        data = "".join(f'<TiffData IFD="0" FirstC="{i}" PlaneCount="1"><UUID FileName="{name}.tif">urn:uuid:{i}</UUID></TiffData>'
                       for i, name in enumerate("abc"))
        slide = write(self.folder / "b.tif", Directory(700, 600, (tile.tobytes() for tile in tiles(self.image[..., 1])), samples=1,
                                                       photometric=GREY, description=ome(channels, data)))
        self.pixels(slide, fails="of which the file holds 1, and 0 lies in a.tif, 2 in c.tif; set input.channel to choose one, 1")
        found = self.pixels(slide, "-s", "input.channel=1", "-s", "identity.colour=luminance")
        self.assertTrue((found == self.image[..., 1]).all())
        self.pixels(slide, "-s", "input.channel=2", fails="input.channel is 2, which lies in c.tif; this file holds 1")
        self.assertIn("3, of which input.channel chooses one: A, B, C (the file holds only number 1)\n", run("info", slide).stdout)
        found = json.loads(run("info", "--json", slide).stdout)
        self.assertEqual((found["channels"], found["held_channels"]), (["A", "B", "C"], [1]))


if __name__ == "__main__":
    unittest.main()
