"""Sound TIFF files with one tag changed: `PIPELINE=path changed_tags_test.py [CLASS ...]`. A changed file is refused with a
line, or it shows the same picture, or what differs is what the tag says.

CHANGES    how many changes (300)
SEED       another series of them
BACKEND    cuda: the same files go through a GPU, too, whose verdicts and pictures must be the CPU's
SOUND      folder of the sound files; made there where it lacks them, which takes NumPy and Pillow
LISTED     a file that gets a line about each change
"""

import collections
import hashlib
import io
import json
import lzma
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib

import changed_tags
from tagged_tiff import ASCII, LONG, RATIONAL, SHORT, UNDEFINED, Directory, write

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sink"))
from big_tiff import BigTiff  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import quick_storage  # noqa: E402,F401
from time_limits import time_limit  # noqa: E402

DISTRIBUTION = "/usr/bin/python3"
try:
    import numpy
    from PIL import Image
except ImportError:
    if sys.executable != DISTRIBUTION and os.path.exists(DISTRIBUTION) and "CHANGED_TAGS" not in os.environ:
        os.execve(DISTRIBUTION, [DISTRIBUTION, "-B", *sys.argv], {**os.environ, "CHANGED_TAGS": "1"})
    numpy = None

PIPELINE = os.environ["PIPELINE"]
CHANGES = int(os.environ.get("CHANGES", "300"))
SEED = os.environ.get("SEED", "tags")
BATCH = 1000
WIDTH, HEIGHT, SIDE = 150, 110, 64
LZW, JPEG, DEFLATE, PACKBITS, LZMA, J2K_YCBCR, J2K_RGB = 5, 7, 8, 32773, 34925, 33003, 33005
GREY, RGB, YCBCR = 1, 2, 6
ADOBE_RGB = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0"
APERIO = "Aperio Image Library v11\n150x110 [0,0 150x110] (64x64) JPEG/RGB Q=90|AppMag = 20|MPP = 0.5000"


def picture(width, height):
    """Patches on glass, with a little of everything else."""
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float32)
    image = numpy.full((height, width, 3), 236, numpy.float32)
    for cy, cx, r, colour in ((0.3, 0.3, 0.2, (214, 120, 170)), (0.6, 0.5, 0.25, (120, 70, 150)), (0.4, 0.8, 0.2, (190, 90, 40))):
        image[((y / height - cy) ** 2 + (x / width - cx) ** 2) < r * r] = colour
    waves = numpy.sin(60 * x / width) * numpy.cos(50 * y / height)
    return numpy.clip(image + (14 * waves)[..., None], 0, 255).astype(numpy.uint8)


def half(image):
    image = image[:image.shape[0] // 2 * 2, :image.shape[1] // 2 * 2].astype(numpy.uint16)
    return ((image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2] + 2) // 4).astype(numpy.uint8)


def tiles(image, side=SIDE):
    for y in range(0, image.shape[0], side):
        for x in range(0, image.shape[1], side):
            part = image[y:y + side, x:x + side]
            below, right = side - part.shape[0], side - part.shape[1]
            yield numpy.pad(part, ((0, below), (0, right)) + ((0, 0),) * (image.ndim - 2), mode="edge")


def coded(tile, *arguments, **options):
    out = io.BytesIO()
    Image.fromarray(tile).save(out, *arguments, **options)
    return out.getvalue()


def segments(jpeg):
    """(tables, the rest without JFIF header and tables), both as JPEG streams."""
    tables, rest, at = b"\xff\xd8", b"\xff\xd8", 2
    while jpeg[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(jpeg[at + 2:at + 4], "big")
        if jpeg[at + 1] in (0xDB, 0xC4):
            tables += jpeg[at:end]
        elif jpeg[at + 1] != 0xE0:
            rest += jpeg[at:end]
        at = end
    return tables + b"\xff\xd9", rest + jpeg[at:]


def without_jfif(jpeg, marker=b""):
    return jpeg[:2] + marker + jpeg[4 + int.from_bytes(jpeg[4:6], "big"):]


def lzw(data):
    """Codes of nine bits for single bytes, with a clear code before the table grows."""
    bits = 0
    count = 0
    for start in range(0, len(data), 250):
        for code in (256, *data[start:start + 250]):
            bits, count = bits << 9 | code, count + 9
    bits, count = bits << 9 | 257, count + 9
    return (bits << -count % 8).to_bytes(-(-count // 8), "big")


def packbits(data):
    return b"".join(bytes((len(data[i:i + 128]) - 1,)) + data[i:i + 128] for i in range(0, len(data), 128))


def predicted(tile):
    """Differences along rows."""
    result = tile.copy()
    result[:, 1:] -= tile[:, :-1]
    return result


def levels(make, count=2):
    """A directory by `make` for each level."""
    image, found = picture(WIDTH, HEIGHT), []
    for _ in range(count):
        found.append(make(image))
        image = half(image)
    return found


def tiled(image, stored, **options):
    return Directory(image.shape[1], image.shape[0], stored, tile=SIDE, **options)


def half_micrometre(directory):
    return directory.set(282, RATIONAL, 20000).set(283, RATIONAL, 20000).set(296, SHORT, 3)


def svs(path):
    tables = []

    def make(image):
        parts = [segments(coded(tile, "JPEG", quality=90, subsampling=1)) for tile in tiles(image)]
        tables.append(parts[0][0])
        directory = tiled(image, [rest for _, rest in parts], photometric=YCBCR, compression=JPEG, description=APERIO)
        return directory.set(347, UNDEFINED, parts[0][0]).set(530, SHORT, 2, 1)
    base, level = levels(make)
    small = half(half(picture(WIDTH, HEIGHT)))
    thumbnail = Directory(small.shape[1], small.shape[0], [small.tobytes()], rows=small.shape[0])
    label = Directory(30, 20, [bytes(range(200)) * 9], rows=20, description="Aperio Image Library\nlabel 30x20").set(254, LONG, 1)
    return write(path, base, thumbnail, level, label)


def jfif(path):
    def make(image):
        return half_micrometre(tiled(image, [coded(tile, "JPEG", quality=90, subsampling=2) for tile in tiles(image)],
                                     photometric=RGB, compression=JPEG))
    return write(path, *levels(make))


def adobe(path):
    def make(image):
        stored = []
        for tile in tiles(image):
            planes = Image.merge("YCbCr", Image.fromarray(tile).split())
            out = io.BytesIO()
            planes.save(out, "JPEG", quality=90, subsampling=0)
            stored.append(without_jfif(out.getvalue(), ADOBE_RGB))
        return tiled(image, stored, photometric=RGB, compression=JPEG)
    return write(path, *levels(make), order=">")


def ycbcr(path):
    """Without any marker: tag and sampling alone."""
    def make(image):
        stored = [without_jfif(coded(tile, "JPEG", quality=90, subsampling=2)) for tile in tiles(image)]
        directory = tiled(image, stored, photometric=YCBCR, compression=JPEG).set(530, SHORT, 2, 2).set(531, SHORT, 1)
        return half_micrometre(directory).set(532, RATIONAL, 0, 255, 128, 255, 128, 255)
    return write(path, *levels(make), big=True)


def jpeg2000(compression, transform):
    def file(path):
        def make(image):
            stored = []
            for tile in tiles(image):
                whole = numpy.asarray(Image.fromarray(tile).convert("YCbCr")) if compression == J2K_YCBCR else tile
                stored.append(coded(whole, "JPEG2000", no_jp2=True, mct=transform, irreversible=False))
            return tiled(image, stored, photometric=RGB, compression=compression, description=APERIO)
        return write(path, *levels(make))
    return file


def ome(path):
    """Deflate with a predictor, its levels as SubIFDs, and a label of its own."""
    def make(image):
        stored = [zlib.compress(predicted(tile).tobytes()) for tile in tiles(image)]
        return tiled(image, stored, compression=DEFLATE).set(317, SHORT, 2)
    base, *smaller = levels(make, 3)
    base.subs = smaller
    image = ('<Image ID="Image:{0}" Name="{1}"><Pixels ID="Pixels:{0}" DimensionOrder="XYCZT" Type="uint8" SizeX="{2}" '
             'SizeY="{3}" SizeC="3" SizeZ="1" SizeT="1"{4}><Channel ID="Channel:{0}:0" SamplesPerPixel="3"/>'
             '<TiffData IFD="{0}" PlaneCount="1"/></Pixels></Image>')
    xml = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">' +
           image.format(0, "slide", WIDTH, HEIGHT, ' PhysicalSizeX="0.5" PhysicalSizeY="0.5"') +
           image.format(1, "label", 30, 20, "") + "</OME>")
    base.set(270, ASCII, xml.encode() + b"\0")
    label = Directory(30, 20, [zlib.compress(bytes(range(200)) * 9)], compression=DEFLATE, rows=20)
    return write(path, base, label, big=True)


def lzw_strips(path):
    image = picture(WIDTH, HEIGHT)
    strips = [lzw(image[y:y + 16].tobytes()) for y in range(0, HEIGHT, 16)]
    return write(path, half_micrometre(Directory(WIDTH, HEIGHT, strips, compression=LZW, rows=16)))


def alpha(path):
    """Uncompressed, big-endian, with an opacity."""
    def make(image):
        whole = numpy.dstack([image, numpy.full(image.shape[:2], 255, numpy.uint8)])
        directory = tiled(whole, [tile.tobytes() for tile in tiles(whole)], samples=4)
        return half_micrometre(directory).set(338, SHORT, 2).set(284, SHORT, 1).set(274, SHORT, 1)
    return write(path, *levels(make, 3), order=">")


def grey_planar(path):
    """One sample a pixel, called planar; white is 0."""
    def make(image):
        grey = 255 - image[:, :, 1]
        return tiled(grey, [tile.tobytes() for tile in tiles(grey)], samples=1, photometric=0).set(284, SHORT, 2)
    return write(path, *levels(make))


def grey_packbits(path):
    image = picture(WIDTH, HEIGHT)[:, :, 1]
    strips = [packbits(image[y:y + 22].tobytes()) for y in range(0, HEIGHT, 22)]
    return write(path, Directory(WIDTH, HEIGHT, strips, samples=1, photometric=GREY, compression=PACKBITS, rows=22)
                 .set(339, SHORT, 1).set(266, SHORT, 1), order=">", big=True)


def uncompressed_strips(path):
    image = picture(WIDTH, HEIGHT)
    strips = [image[y:y + 32].tobytes() for y in range(0, HEIGHT, 32)]
    return write(path, half_micrometre(Directory(WIDTH, HEIGHT, strips, rows=32)).set(284, SHORT, 1))


def lzma_tiles(path):
    def make(image):
        return tiled(image, [lzma.compress(tile.tobytes()) for tile in tiles(image)], compression=LZMA).set(317, SHORT, 1)
    return write(path, *levels(make))


SOUND = {"svs": svs, "jfif": jfif, "adobe": adobe, "ycbcr": ycbcr, "j2k-rgb": jpeg2000(J2K_RGB, 1),
         "j2k-ycbcr": jpeg2000(J2K_YCBCR, 0), "ome": ome, "lzw": lzw_strips, "alpha": alpha, "grey-planar": grey_planar,
         "packbits": grey_packbits, "strips": uncompressed_strips, "lzma": lzma_tiles}


class Batch:
    """Files that one process looks at, and what it says of each by its stem."""

    def __init__(self, folder, files, backend):
        self.folder, self.files, self.backend = folder, files, backend
        self.found = {}

    def look(self):
        """{name: {aspect: value}}; a refused one has "refused" alone."""
        listed = self.run("info", "--json", self.list_of(self.files))
        lines = self.lines(listed, ("warning: ", "error: "))
        infos = {pathlib.Path(one["path"]).name: one for one in json.loads(listed.stdout or "[]") if one}
        for name in self.files:
            refused = [line for line in lines.get(name, []) if line.startswith("error: ")]
            if (name in infos) == bool(refused) or len(refused) > 1:
                raise AssertionError(f"{name} is neither read nor refused in one line: {refused}")
            self.found[name] = self.aspects(infos[name], lines.get(name, [])) if name in infos else {"refused": refused[0]}
        for level in range(max((len(one["levels"]) for one in infos.values()), default=0)):
            self.convert(level, [name for name in self.files if "levels" in self.found[name] and
                                 (level == 0 or level <= len(self.found[name]["levels"]))])
        return self.found

    @staticmethod
    def aspects(one, lines):
        sizes = [(level["width"], level["height"]) for level in one["levels"]]
        return {"size": sizes[0], "levels": sizes[1:], "mpp": (one["mpp"], one["mpp_y"]), "magnification": one["magnification"],
                "associated": one["associated"], "channels": one["channels"], "icc": one["icc_bytes"],
                "said": sorted(lines), "format": one["format"]}

    def convert(self, level, names):
        if not names:
            return
        out = self.folder / f"{self.backend}-{level}"
        result = self.run("convert", self.list_of(names), "--out", out, "--compression", "none", "--levels", "1", "--tile", SIDE,
                          "--level", level, "--backend", self.backend, "-q")
        lines = self.lines(result, ("error: ",))
        for name in names:
            file = out / "images" / f"{pathlib.Path(name).stem}.identity.ome.tif"
            refused = lines.get(name, [])
            if file.exists() == bool(refused) or len(refused) > 1:
                raise AssertionError(f"{name} is neither converted nor refused in one line: {refused}\n{result.stderr[-2000:]}")
            if refused and level == 0:
                self.found[name] = {"refused": refused[0]}
            elif "refused" not in self.found[name]:
                self.found[name][f"pixels {level}"] = refused[0] if refused else self.digest(file)
            file.unlink(missing_ok=True)

    @staticmethod
    def digest(file):
        with BigTiff(file) as image:
            directory = image.chain[0]
            pixels = b"".join(data for _, data in image.tiles(0))
            return directory.number("width"), directory.number("height"), directory.number("samples"), \
                hashlib.sha256(pixels).hexdigest()[:16]

    def list_of(self, names):
        path = self.folder / "slides.list"
        path.write_text("".join(f"{name}\n" for name in names))
        return path

    def lines(self, result, kinds):
        """{name: its lines of stderr}."""
        found = {}
        for line in result.stderr.splitlines():
            text = line[line.index(" ") + 1:] if line[:2] == "20" else line
            for kind in kinds:
                if text.startswith(kind):
                    name, _, said = text[len(kind):].partition(": ")
                    name = pathlib.Path(name).name
                    if name in self.files:
                        if not said or not said.isprintable() or len(said) > 400:
                            raise AssertionError(f"not a clear line: {line!r}")
                        found.setdefault(name, []).append(kind + said)
        return found

    def run(self, *arguments):
        try:
            result = subprocess.run([PIPELINE, *map(str, arguments)], capture_output=True, encoding="utf-8",
                                    errors="backslashreplace", timeout=time_limit(300),
                                    env={**os.environ, "LC_ALL": "C.UTF-8"}, stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{arguments[0]} hangs: {error.stderr}") from error
        if result.returncode not in (0, 1):
            raise AssertionError(f"{arguments[0]} ended with {result.returncode}: {result.stderr[-2000:]}")
        return result


# What a tag may change without a line: in the slide's directory, in a level's, in another one.
LEVELS = {"levels", "associated"}
OF_SIZE = {"size", "levels", "associated", "pixels"}
MEANS = {
    254: (set(), LEVELS, {"associated"}),         # of which kind an image is
    256: (OF_SIZE, LEVELS, set()),                # the width; only another one that can be read
    257: (OF_SIZE, LEVELS, set()),
    259: ({"pixels"}, set(), set()),              # samples as they are, whatever they are
    262: ({"pixels"}, LEVELS, {"associated"}),    # which end of grey is white, or that it is a mask
    270: ({"mpp", "magnification", "format", "associated"}, set(), {"associated"}),
    273: ({"pixels"}, set(), set()),              # where samples lie
    278: ({"pixels"}, set(), set()),              # rows of a strip
    279: ({"pixels"}, set(), set()),              # 0 bytes: a strip that isn't there
    282: ({"mpp"}, set(), set()),
    283: ({"mpp"}, set(), set()),
    296: ({"mpp"}, set(), set()),
    317: ({"pixels"}, set(), set()),              # whether samples are differences
    324: ({"pixels"}, set(), set()),
    325: ({"pixels"}, set(), set()),
    330: ({"levels", "associated"}, set(), set()),
}
# Those whose values alone mean something else: where they can't be read, a line says so.
BY_VALUE = {256, 257}
# What a line explains.
LINES = (
    (r"no level|it isn't read|the directory counts|, is read$", {"size", "levels", "associated"}),
    (r"resolution|ResolutionUnit|XResolution|YResolution|MPP|AppMag|OME-XML|ImageDescription",
     {"mpp", "magnification", "associated", "format"}),
    (r"may be the slide's label$", {"associated"}),
    (r"aren't multiples of 16|ReferenceBlackWhite", {"pixels"}),
)


def unexplained(change, before, after):
    """Aspects that differ, and neither the tag nor a line says why."""
    differing = {aspect for aspect in before.keys() | after.keys() if before.get(aspect) != after.get(aspect)} - {"said"}
    new_lines = [line for line in after["said"] if line not in before["said"]]
    means = set().union(*(MEANS.get(tag, (set(), set(), set()))[("slide", "level", "other").index(change.role)]
                          for tag in change.tags if tag not in BY_VALUE or change.kind in ("value", "type")))
    for line in new_lines:
        means = means.union(*(what for pattern, what in LINES if re.search(pattern, line)))
    if change.role == "level" and change.tags[0] in MEANS and "pixels" in MEANS[change.tags[0]][0]:
        means.add("pixels of levels")
    found = set()
    for aspect in differing:
        kind, _, level = aspect.partition(" ")
        if kind != "pixels":
            found |= {aspect} - means
            continue
        # A level that is refused says so, and levels that moved have other numbers.
        is_refused = str(after.get(aspect)).startswith("error: ")
        is_moved = level != "0" and "levels" in differing and "levels" in means
        is_own = "pixels" in means if level == "0" else means & {"pixels", "pixels of levels"}
        if not (is_refused or is_moved or is_own):
            found.add(aspect)
    return found


@unittest.skipIf(numpy is None and "SOUND" not in os.environ, "SKIPPED: NumPy and Pillow aren't there")
class Changes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        place = pathlib.Path(os.environ.get("SOUND", cls.folder / "sound"))
        place.mkdir(exist_ok=True)
        (cls.folder / "plain").mkdir()
        cls.names = [f"{name}.tif" for name in SOUND]
        for name, make in SOUND.items():
            file = place / f"{name}.tif"
            if not file.exists():
                make(file)
            (cls.folder / "plain" / file.name).write_bytes(file.read_bytes())
        cls.sound = Batch(cls.folder / "plain", cls.names, "cpu").look()
        cls.listed = os.environ.get("LISTED")

    def test_the_sound_files_show_one_picture(self):
        for name, found in self.sound.items():
            self.assertEqual((found.get("size"), found.get("said")), ((WIDTH, HEIGHT), []), (name, found))
        for level in "pixels 0", "pixels 1":
            for same in (("ome.tif", "alpha.tif", "lzma.tif", "j2k-rgb.tif"), ("jfif.tif", "ycbcr.tif")):
                self.assertEqual(len({self.sound[name][level] for name in same}), 1)
        self.assertEqual(len({self.sound[name]["pixels 0"] for name in ("ome.tif", "lzw.tif", "strips.tif")}), 1)
        self.assertEqual(self.sound["grey-planar.tif"]["pixels 0"], self.sound["packbits.tif"]["pixels 0"])

    def test_a_changed_tag(self):
        tiffs = {name: changed_tags.Tiff((self.folder / "plain" / name).read_bytes(),
                                         [width for width, _ in [found["size"], *found["levels"]]])
                 for name, found in self.sound.items()}
        verdicts, wrong = collections.Counter(), []
        for first in range(0, CHANGES, BATCH):
            self.look_at(range(first, min(first + BATCH, CHANGES)), tiffs, verdicts, wrong)
        print(f"{CHANGES} changes:", ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
        self.assertEqual(wrong, [], "\n".join(wrong[:50]))
        # Neither kind is all that comes out.
        self.assertGreater(verdicts["equal"], CHANGES // 10)
        self.assertGreater(verdicts["refused"], CHANGES // 10)

    def look_at(self, numbers, tiffs, verdicts, wrong):
        folder = self.folder / f"from-{numbers[0]}"
        folder.mkdir()
        changes = {}
        for number in numbers:
            source = self.names[number % len(self.names)]
            data, change = changed_tags.changed(tiffs[source], random.Random(f"{SEED} {number}"))
            name = f"{number:05}-{source}"
            (folder / name).write_bytes(data)
            changes[name] = source, change
        found = Batch(folder, list(changes), "cpu").look()
        other = Batch(folder, list(changes), os.environ["BACKEND"]).look() if "BACKEND" in os.environ else found
        lines = []
        for name, (source, change) in changes.items():
            before, after = self.sound[source], found[name]
            if "refused" in after:
                verdict = "refused"
            elif before == after:
                verdict = "equal"
            elif why := unexplained(change, before, after):
                verdict = "unexplained"
                wrong.append(f"{name}: {change}: {', '.join(sorted(why))}: {before}, then {after}")
            else:
                verdict = "said in a line" if before["said"] != after["said"] else "explained by the tag"
            if other[name] != after:
                wrong.append(f"{name}: {change}: {os.environ['BACKEND']} differs: {after}, and {other[name]}")
                verdicts[f"differ with {os.environ['BACKEND']}"] += 1
            verdicts[verdict] += 1
            lines.append(f"{name} | {change} | {verdict} | {after}\n")
        if self.listed:
            with pathlib.Path(self.listed).open("a", encoding="utf-8") as file:
                file.writelines(lines)
        shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main()
