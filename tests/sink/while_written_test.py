"""Images as readers find them while they are written: `WRITE_IMAGE=path FAULTY_STORAGE=path while_written_test.py [CLASS ...]`.

Every change to storage is written down once; readers then open what was there after each of them. And they loop over
images that are being written. Whatever they find, each tile is as in the end, or placeholder. The packages tifffile and
zarr are asked where the Python that runs this has them, vips and OpenSlide where they are installed."""

import itertools
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest

from folders_test import FORMATS, FAULTY_STORAGE, Case, finish, has  # the distribution's Python, where this one has no NumPy

import numpy
from PIL import Image

from big_tiff import BigTiff
from folder_image import zarr_arrays
from written_image import WRITE_IMAGE, Made, write

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import image_libraries  # noqa: E402
from image_libraries import OpenSlide, vips_pixels  # noqa: E402
from storage_records import records, states  # noqa: E402

SIDE = 64
WIDTH, HEIGHT, TILES = 140, 70, 9  # 3 x 2, 2 x 1 and 1 x 1
SIZES = [(140, 70), (70, 35), (35, 18)]


# Readers: of an image the levels as arrays of (height, width, channels).

def plain_tiff(file):
    with BigTiff(file) as tiff:
        levels = []
        for chain in (tiff.chain, tiff.subs):
            for directory in chain:
                if directory.number("compression") == 1:
                    shape = -1, SIDE, SIDE, directory.number("samples")
                    pixels = numpy.empty((directory.rows * SIDE, directory.columns * SIDE, shape[3]), "u1")
                    for at, (offset, length) in enumerate(zip(directory["offsets"], directory["lengths"])):
                        y, x = (SIDE * part for part in divmod(at, directory.columns))
                        pixels[y:y + SIDE, x:x + SIDE] = numpy.frombuffer(tiff.read(offset, length), "u1").reshape(shape)[0]
                    levels.append(pixels[:directory.number("height"), :directory.number("width")])
                else:
                    levels.append(jpeg_level(tiff, directory))
    return levels


def jpeg_level(tiff, directory):
    class Level:
        chain = [directory]
        tiles = staticmethod(lambda _: [(offset, tiff.read(offset, length)) for offset, length in
                                        zip(directory["offsets"], directory["lengths"])])
    return Made.decoded(Level, 0)


def vips(file):
    return [vips_pixels(file, f"page={page}") for page in range(len(SIZES))]


def openslide(file):
    with OpenSlide(file) as slide:
        return [slide.level(level) for level in range(len(slide.sizes))]


def openslide_package(file):
    import openslide
    try:
        with openslide.OpenSlide(file) as slide:
            return [numpy.asarray(slide.read_region((0, 0), level, size))[..., :3]
                    for level, size in enumerate(slide.level_dimensions)]
    except openslide.OpenSlideError as error:
        raise OSError(f"{file}: {error}") from error


def tifffile(file):
    import tifffile
    with tifffile.TiffFile(file) as tiff:
        levels = [level.asarray() for level in tiff.series[0].levels]
    return levels + [tifffile.imread(file, key=page, is_ome=False) for page in range(len(SIZES))]


def plain_zarr(file):
    return [pixels.transpose(1, 2, 0) for _, pixels in zarr_arrays(file)]


def zarr(file):
    import zarr
    group = zarr.open_group(str(file), mode="r")
    return [group[str(level)][...].transpose(1, 2, 0) for level in range(3)]


def ome_zarr(file):
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader
    place = parse_url(str(file))
    if place is None:
        raise OSError(f"{file}: no image")
    node = next(iter(Reader(place)()), None)
    if node is None:
        raise OSError(f"{file}: no image yet")
    return [numpy.asarray(level).transpose(1, 2, 0) for level in node.data]


def zarr_packages():
    return ([zarr] if has("zarr") else []) + ([ome_zarr] if has("ome_zarr") else [])


def plain_dzi(file):
    """White where a file isn't there. As the page does, it looks for tiles under their final name last."""
    levels = []
    tiles = file.with_name(file.stem + "_files")
    if not tiles.exists():
        tiles = file.with_name(file.stem.replace(".partial", "") + "_files")
    for level, (width, height) in zip((8, 7, 6), SIZES):
        pixels = numpy.full((height, width, 3), 255, "u1")
        for jpeg in (tiles / str(level)).glob("*.jpg"):
            x, y = (SIDE * int(part) for part in jpeg.stem.split("_"))
            with Image.open(jpeg) as image:
                pixels[y:y + image.height, x:x + image.width] = numpy.asarray(image)
        levels.append(pixels)
    if not tiles.exists():
        raise OSError(f"{tiles} was renamed meanwhile")
    return levels


def is_new_openslide():
    import openslide
    return int(openslide.__library_version__.split(".")[0]) >= 4


def tiff_readers(compression):
    yield from [plain_tiff] if compression != "zstd" else []
    yield from [vips] if image_libraries.vips() and compression != "none" else []
    # OpenSlide 3.4.1 on libtiff 4.5.0 shifts tiles that are larger than the image, in other compressions than JPEG.
    yield from [openslide] if image_libraries.openslide() and compression == "jpeg" else []
    yield from [openslide_package] if has("openslide") and (compression == "jpeg" or is_new_openslide()) else []
    yield from [tifffile] if has("tifffile") and (compression == "none" or has("imagecodecs")) else []


def is_tiff(files):
    return any(path.endswith(".ome.tif") for path in files)


class WrittenCase(Case):
    def assertTiles(self, found, final, seen):
        """Each tile is final or white, and one that was final stays so. `seen` holds those. Returns how many there are."""
        self.assertEqual([level.shape for level in found], [level.shape for level in final])
        for number, (level, last) in enumerate(zip(found, final)):
            for y, x in itertools.product(range(0, level.shape[0], SIDE), range(0, level.shape[1], SIDE)):
                part, end = level[y:y + SIDE, x:x + SIDE], last[y:y + SIDE, x:x + SIDE]
                # In zarr each channel has chunks of its own.
                for channel in range(level.shape[2]):
                    if numpy.array_equal(part[..., channel], end[..., channel]):
                        seen.add((number, y, x, channel))
                    else:
                        self.assertTrue((part[..., channel] == 255).all(), f"level {number}: neither final nor white at {x}, {y}")
                        self.assertNotIn((number, y, x, channel), seen, "it was there before")
        return len(seen)

    def lay_out(self, files, root, folder):
        """Files of a state below another root."""
        shutil.rmtree(folder, ignore_errors=True)
        for path, content in files.items():
            file = folder / pathlib.Path(path).relative_to(root)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def recorded(self, file, *options):
        """The changes that writing it makes."""
        report = self.folder / "report"
        write(file, WIDTH, HEIGHT, f"tile={SIDE}", *options, environment={
            "LD_PRELOAD": FAULTY_STORAGE, "FAULTY": "record", "FAULTY_ROOT": str(file.parent), "FAULTY_REPORT": str(report)})
        return list(records(report.read_bytes()))

    def check_states(self, changes, file, name, readers, is_image):
        """All readers after every change. Returns how often the picture changed for them."""
        here = self.folder / "state"
        final = {reader: reader(file) for reader in readers}
        seen = {reader: set() for reader in readers}
        counts = {reader: set() for reader in readers}
        last = None
        for number, (operation, files) in enumerate(states(changes)):
            files = {path: content for path, content in files.items() if "unfinished" not in path and "/.slidestream-" not in path}
            if files == last or not is_image(files):
                continue
            last = files
            self.lay_out(files, file.parent, here)
            if file.suffix == ".dzi" and not any("_files/" in path for path in files):
                # Records have no folders. That of the tiles is there before its page.
                (here / (pathlib.Path(name).stem + "_files")).mkdir()
            image = here / file.name if any(file.name in pathlib.Path(path).parts for path in files) else here / name
            for reader in readers:
                try:
                    there = self.assertTiles(reader(image), final[reader], seen[reader])
                except (OSError, ValueError, SyntaxError, KeyError, AttributeError, struct.error) as error:
                    self.fail(f"{reader.__name__} after change {number}, {operation}: {error!r}")
                counts[reader].add(there)
        return [len(each) for each in counts.values()]


@unittest.skipUnless(FAULTY_STORAGE, "no FAULTY_STORAGE")
class EveryWrite(WrittenCase):
    def test_tiff(self):
        for compression in "none", "jpeg", "zstd":
            with self.subTest(compression):
                file = self.folder / compression / "a.ome.tif"
                file.parent.mkdir()
                changes = self.recorded(file, f"compression={compression}")
                readers = list(tiff_readers(compression))
                shown = self.check_states(changes, file, "a.partial.ome.tif", readers, is_tiff)
                # White, and one more after each of the tiles.
                self.assertTrue(all(count >= TILES + 1 for count in shown), shown)

    def test_folders(self):
        for name, (suffix, asked) in FORMATS.items():
            for compression in ("jpeg",) if name == "dzi" else ("none", "blosc-lz4"):
                with self.subTest(name, compression=compression):
                    readers = [plain_dzi] if name == "dzi" else [plain_zarr] if compression == "none" else []
                    readers += zarr_packages() if name != "dzi" else []
                    file = self.folder / name / compression / f"a{suffix}"
                    file.parent.mkdir(parents=True)
                    changes = self.recorded(file, *asked, f"compression={compression}")
                    if name == "dzi":
                        # The page says whose the files are.
                        renamed = [os.fsdecode(data[numbers[0]:]) for operation, numbers, data in changes if operation == "rename"]
                        page, image = (next(at for at, path in enumerate(renamed) if path.endswith(end))
                                       for end in ("/a.partial.view.html", "/a.partial.dzi"))
                        self.assertLess(page, image)
                    else:
                        # The first file says whose the folder is, and names no image.
                        first = next(os.fsdecode(data[numbers[0]:]) for operation, numbers, data in changes if operation == "rename")
                        mark = next(files[first] for _, files in states(changes) if first in files)
                        self.assertEqual(first, str(file.with_name(f"a.partial{suffix}") / ("zarr.json" if name == "zarr 3" else ".zattrs")))
                        self.assertIn(b'"slidestream":', mark)
                        self.assertNotIn(b"multiscales", mark)
                    last = {"zarr 2": ".zgroup", "zarr 3": f"{suffix}/zarr.json", "dzi": "partial.dzi"}[name]
                    shown = self.check_states(changes, file, f"a.partial{suffix}", readers,
                                              lambda files: any(path.endswith((last, f"a{suffix}")) and (
                                                  name != "zarr 3" or b"multiscales" in files[path]) for path in files))
                    # Rows of level 0, and of other levels.
                    self.assertTrue(all(count >= 4 for count in shown), shown)

    def test_other_orders_of_updates_are_seen(self):
        """That the checks above can fail: each order but the right one is found by them."""
        file = self.folder / "out" / "a.ome.tif"
        file.parent.mkdir()
        changes = self.recorded(file, "compression=jpeg")
        with BigTiff(file) as tiff:
            tables = {}
            for directory in tiff.chain + tiff.subs:
                for table in "offsets", "lengths":
                    for at in range(len(directory[table])):
                        tables[directory.places[table] + 8 * at] = table
        groups = []
        head = [change for change in changes if change[0] != "write" or change[1][1] == 0]
        for change in changes:
            if change[0] == "write" and change[1][1] > 0:
                kind = tables.get(change[1][1], "data")
                if kind == "data":
                    groups.append({"data": [], "lengths": [], "offsets": []})
                groups[-1][kind].append(change)
        self.assertEqual(len(groups), TILES)
        self.assertTrue(all(all(group.values()) for group in groups))
        begin = next(at for at, change in enumerate(head) if change[0] == "rename") + 1
        for order in itertools.permutations(("data", "lengths", "offsets")):
            changed = [change for group in groups for kind in order for change in group[kind]]

            def check():
                self.check_states([*head[:begin], *changed, *head[begin:]], file, "a.partial.ome.tif", [plain_tiff],
                                  is_tiff)
            if order[-1] == "offsets":
                check()  # whether lengths or data come first makes no difference: nobody looks there yet
            else:
                self.assertRaises(AssertionError, check)

    def test_files_that_are_written_under_their_names_are_seen(self):
        for name, (suffix, asked) in FORMATS.items():
            with self.subTest(name):
                file = self.folder / name / f"a{suffix}"
                file.parent.mkdir()
                changes = self.recorded(file, *asked, "compression=" + ("jpeg" if name == "dzi" else "none"))
                names = {}
                for operation, numbers, data in changes:
                    if operation == "rename":
                        names.setdefault(os.fsdecode(data[:numbers[0]]), []).append(os.fsdecode(data[numbers[0]:]))
                direct = []
                for operation, numbers, data in changes:
                    if operation == "create" and os.fsdecode(data) in names:
                        direct.append((operation, numbers, os.fsencode(names[os.fsdecode(data)].pop(0))))
                    elif operation != "rename" or b"unfinished" not in data:
                        direct.append((operation, numbers, data))
                reader = plain_dzi if name == "dzi" else plain_zarr
                last = "partial.dzi" if name == "dzi" else "/0/0/0/0" if name == "zarr 2" else "/0/c/0/0/0"
                with self.assertRaises(AssertionError):
                    self.check_states(direct, file, f"a.partial{suffix}", [reader],
                                      lambda files: any(path.endswith(last) for path in files))


class Loops(WrittenCase):
    def test_readers_that_loop(self):
        for name, suffix, asked, readers in (
                ("jpeg", ".ome.tif", ["compression=jpeg"], list(tiff_readers("jpeg"))),
                ("none", ".ome.tif", ["compression=none"], list(tiff_readers("none"))),
                *((name, suffix, [*asked, "compression=" + ("jpeg" if name == "dzi" else "none")],
                   [plain_dzi] if name == "dzi" else [plain_zarr] + zarr_packages())
                  for name, (suffix, asked) in FORMATS.items())):
            with self.subTest(name):
                here = self.folder / name
                here.mkdir()
                options = [f"tile={SIDE}", "band=8", *asked]
                write(here / f"whole{suffix}", WIDTH, HEIGHT, *options)
                final = {reader: reader(here / f"whole{suffix}") for reader in readers}
                # How many looks there are is a question of the machine, and of the pause between two bands.
                for pause in 200, 1000, 5000:
                    again = here / str(pause)
                    again.mkdir()
                    if self.looks(again, name, suffix, [*options, f"pause={pause}"], final) > 0:
                        break
                else:
                    self.fail("nobody looked while it was written")

    def looks(self, here, name, suffix, options, final):
        """How often the readers saw some of an image that was being written."""
        seen = {reader: set() for reader in final}
        process = subprocess.Popen([WRITE_IMAGE, here / f"a{suffix}", str(WIDTH), str(HEIGHT), *options],
                                   stdout=subprocess.DEVNULL)
        looks = 0
        while process.poll() is None:
            for reader in final:
                try:
                    self.assertTiles(reader(here / f"a.partial{suffix}"), final[reader], seen[reader])
                    looks += 1
                except (OSError, KeyError, ValueError, struct.error, AssertionError) as error:
                    # libvips asks for the file's length once, and reads places of tiles later. Tiles that came meanwhile
                    # lie behind that length.
                    if "bad seek to" in str(error):
                        continue
                    # Not begun yet, or the image got its final name during the read. A Deep Zoom image has two
                    # names, and its folder of tiles is renamed first.
                    names = [f"a.partial{suffix}"] + (["a.partial_files"] if name == "dzi" else [])
                    if seen[reader] and all((here / name).exists() for name in names):
                        raise
        self.assertEqual(process.wait(), 0)
        for reader in final:
            self.assertTiles(reader(here / f"a{suffix}"), final[reader], seen[reader])
        return looks


if __name__ == "__main__":
    finish()
