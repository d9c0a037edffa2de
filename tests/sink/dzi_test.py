"""Deep Zoom images, and the page beside them in a browser: `WRITE_IMAGE=path dzi_test.py [CLASS ...]`.

Without NumPy and Pillow it goes on with the distribution's Python. Page needs Chromium and is skipped without."""

import io
import json
import os
import pathlib
import shutil
import sys
import time
import unittest
import xml.etree.ElementTree

from folders_test import Case, finish  # the distribution's Python, where this one has no NumPy

import numpy
from PIL import Image

from folder_image import MadeFolder
from written_image import write

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "report"))
from browser import Browser, find_browser  # noqa: E402


def pillow_jpeg(pixels, quality):
    """What libjpeg makes of them, decoded again."""
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(file, "jpeg", quality=quality, subsampling=2)
    return decoded(file)


def decoded(file):
    with Image.open(file) as image:
        return numpy.asarray(image).reshape(image.height, image.width, -1)


class Dzi(Case):
    def made(self, *arguments, **options):
        return MadeFolder(self.folder, "dzi", ".dzi", *arguments, compression="jpeg", **options)

    def test_levels_down_to_one_pixel_of_cropped_tiles(self):
        for made in (self.made(700, 530, tile=128), self.made(700, 530, "grey8", tile=128, quality=40), self.made(1, 1),
                     self.made(256, 256), self.made(257, 256), self.made(100, 700), self.made(70000, 20)):
            with self.subTest(made.file.name):
                root = xml.etree.ElementTree.parse(made.file).getroot()
                size, = root
                height, width, _ = made.pixels.shape
                side = made.options.get("tile", 256)
                self.assertEqual(root.attrib, {"Format": "jpg", "Overlap": "0", "TileSize": str(side)})
                self.assertEqual(size.attrib, {"Width": str(width), "Height": str(height)})
                tiles = made.file.with_name(made.file.stem + "_files")
                largest = (max(width, height) - 1).bit_length()  # the level of one pixel is 0
                self.assertEqual({path.name for path in tiles.iterdir()}, {str(level) for level in range(largest + 1)})
                for number in range(largest + 1):
                    expected = made.level(largest - number)
                    rows, columns = (-(-of // side) for of in expected.shape[:2])
                    self.assertEqual({path.name for path in (tiles / str(number)).iterdir()},
                                     {f"{x}_{y}.jpg" for x in range(columns) for y in range(rows)})
                    for y in range(rows):
                        for x in range(columns):
                            part = expected[y * side:(y + 1) * side, x * side:(x + 1) * side]
                            found = decoded(tiles / str(number) / f"{x}_{y}.jpg")
                            self.assertTrue(numpy.array_equal(found, pillow_jpeg(part, made.options.get("quality", 85))))

    def test_what_is_written_says_nothing_of_where_it_lies(self):
        file = self.folder / "a.dzi"
        write(file, 300, 200, "to=dzi", "compression=jpeg", "name=</script>&<b>", "mpp=0.25")
        for path in self.folder.rglob("*"):
            if path.is_file():
                self.assertNotIn(str(self.folder).encode(), path.read_bytes())
        page = (self.folder / "a.view.html").read_text()
        self.assertEqual(page.count("</script>"), page.count("<script"))
        self.assertIn("<title>&lt;/script>&amp;&lt;b></title>", page)
        self.assertIn("Redistribution and use in source and binary forms", page)


    def test_names_of_any_bytes_are_percent_encoded_in_the_page(self):
        for name, encoded in ((b"M\xfcller", "M%FCller"), ("M\u00fcller".encode(), "M%C3%BCller"), (b"a #1%?&b", "a%20%231%25%3F%26b"),
                              (b"</script>'\"\\"[2:], "script%3E%27%22%5C")):
            file = self.folder / (os.fsdecode(name) + ".dzi")
            write(file, 300, 200, "to=dzi", "compression=jpeg")
            page = file.with_name(file.stem + ".view.html").read_bytes().decode()  # UTF-8, whatever the name
            what = json.loads(page.split('id="what">')[1].split("</script>")[0])
            self.assertEqual((what["folder"], what["partial"]), (f"{encoded}_files", f"{encoded}.partial_files"))


# Twenty odd names, as bytes: not UTF-8, of several scripts, with what has a meaning in URLs, HTML or JSON.
ODD_NAMES = [b"M\xfcller", b"\xff\xfe", b"caf\xe9 \x80", b"\xe2\x82", b"\xc3\xbc ber", b"a b", b"a#b", b"a%41", b"100%", b"a?b=c", b"a&amp;b",
             b"<i>", b"'q' \"q\"", b"back\\slash", b"+plus+", b"semi;colon", b"tab\there", b"line\nbreak", b"\xe7\x97\x85\xe7\x90\x86",
             b"\xf0\x9f\x94\xac", b"a.partial.view", b"\xef\xbf\xbd", b"%FC", b"{}[]|^`~"]


@unittest.skipUnless(find_browser(), "no Chromium")
class Page(Case):
    def setUp(self):
        super().setUp()
        self.browser = Browser(find_browser()).__enter__()
        self.addCleanup(self.browser.__exit__, None, None, None)

    def wait(self, condition, seconds=20):
        until = time.monotonic() + seconds
        while not self.browser.evaluate(condition):
            self.assertLess(time.monotonic(), until, condition + ": " + self.browser.evaluate("document.body.innerText"))
            time.sleep(0.1)

    def at_level(self, level):
        """A level as it is, in place of what fits into the window."""
        self.browser.evaluate(f"view.map.setZoom({level}, {{animate: false}}); 0")
        self.browser.evaluate("new Promise((done) => setTimeout(done, 600))")  # the old level goes

    def shown_rect(self):
        """Where on the screen the image is: left, top, right, bottom."""
        return self.browser.evaluate("""(() => {
          const image = JSON.parse(document.getElementById('what').textContent);
          const [a, b] = [[0, 0], [image.width, image.height]].map((at) => view.map.latLngToContainerPoint(view.map.unproject(at, image.levels - 1)));
          return [a.x, a.y, b.x, b.y];
        })()""")

    def assertFills(self, width, height):
        left, top, right, bottom = self.shown_rect()
        self.assertLess(min(width - (right - left), height - (bottom - top)), 2)
        for side in left, top, width - right, height - bottom:
            self.assertGreater(side, -2)
        self.assertLess(abs(left - (width - right)), 3)
        self.assertLess(abs(top - (height - bottom)), 3)

    def test_the_image_fills_the_window(self):
        for number, size in enumerate(((1000, 700), (300, 2000), (3000, 100))):
            write(self.folder / f"{number}.dzi", *size, "to=dzi", "compression=jpeg")
            self.browser.open(self.folder / f"{number}.view.html")
            self.wait("view.missing.size === 0 && document.querySelectorAll('#image img').length > 0")
            self.assertFills(1280, 900)
            for width, height in (700, 800), (1500, 500):
                self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
                self.wait(f"view.map.getSize().x === {width} && view.map.getSize().y === {height}")
                self.browser.evaluate("new Promise((done) => setTimeout(done, 100))")
                self.assertFills(width, height)
        # Somebody who looks at a part goes on looking at it, until they ask for the whole.
        self.at_level(12)
        self.browser.call("Emulation.setDeviceMetricsOverride", width=900, height=900, deviceScaleFactor=1, mobile=False)
        self.wait("view.map.getSize().x === 900")
        self.assertEqual(self.browser.evaluate("view.map.getZoom()"), 12)
        self.browser.press("0", "0")
        self.assertFills(900, 900)
        self.browser.evaluate("document.querySelector('.leaflet-control-zoom-in').click()")
        self.wait("Number.isInteger(view.map.getZoom())")
        self.assertEqual(self.browser.complaints(), [])

    def test_images_with_odd_names_are_shown(self):
        for name in ODD_NAMES:
            with self.subTest(name):
                file = self.folder / (os.fsdecode(name) + ".dzi")
                write(file, 300, 200, "to=dzi", "compression=jpeg")
                self.browser.open(file.with_name(file.stem + ".view.html"))
                self.wait("view.missing.size === 0 && document.querySelectorAll('#image img').length > 0")
                self.assertEqual(self.browser.complaints(), [])

    def test_no_seams_between_tiles(self):
        write(self.folder / "a.dzi", 1000, 700, "to=dzi", "compression=jpeg", "save=" + str(self.folder / "pixels.raw"))
        self.browser.open(self.folder / "a.view.html")
        self.wait("view.missing.size === 0 && document.querySelectorAll('#image img').length >= 12")
        self.browser.evaluate("new Promise((done) => setTimeout(done, 600))")
        left, top, right, bottom = self.shown_rect()
        self.assertGreater(right - left, 1200)  # between levels
        screen = self.screen()
        pixels = Image.fromarray(numpy.fromfile(self.folder / "pixels.raw", "u1").reshape(700, 1000, 3))
        middle = (bottom - top) / 700
        for tile in 1, 2, 3:  # around each edge there is nothing else than beside it
            edge = round(left + tile * 256 * (right - left) / 1000)
            part = screen[100:800, edge - 12:edge + 12]
            rows = [min(int((y - top) / middle), 699) for y in range(100, 800)]
            columns = [min(int((x - left) / middle), 999) for x in range(edge - 12, edge + 12)]
            wrong = abs(part - numpy.asarray(pixels).astype(int)[rows][:, columns]).mean((0, 2))
            self.assertLess(wrong.max(), wrong.mean() + 6, wrong)

    def test_a_scale_bar_where_the_pixel_size_is_known(self):
        for name, mpp, level, text, width in (("a", 0.25, 10, "20 µm", 80), ("b", 0.25, 8, "100 µm", 100),
                                              ("c", 20, 10, "2 mm", 100), ("d", 0.002, 10, "0.2 µm", 100)):
            write(self.folder / f"{name}.dzi", 1000, 700, "to=dzi", "compression=jpeg", f"mpp={mpp}")
            self.browser.open(self.folder / f"{name}.view.html")
            self.assertGreater(self.browser.evaluate("document.querySelector('#scale div').getBoundingClientRect().width"), 50)
            self.at_level(level)
            self.assertEqual(self.browser.evaluate("document.querySelector('#scale span').textContent"), text)
            self.assertAlmostEqual(self.browser.evaluate("document.querySelector('#scale div').getBoundingClientRect().width"), width, delta=0.1)
        write(self.folder / "none.dzi", 1000, 700, "to=dzi", "compression=jpeg")
        self.browser.open(self.folder / "none.view.html")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#scale').length"), 0)
        self.assertEqual(self.browser.complaints(), [])

    def test_dark_and_light(self):
        write(self.folder / "a.dzi", 1000, 700, "to=dzi", "compression=jpeg")

        def paper():
            return self.browser.evaluate("getComputedStyle(document.getElementById('image')).backgroundColor")

        for dark in False, True:
            self.browser.open(self.folder / "a.view.html", dark=dark)
            colours = {False: "rgb(255, 255, 255)", True: "rgb(17, 20, 24)"}
            self.assertEqual(paper(), colours[dark])
            self.browser.press("d", "d")
            self.assertEqual(paper(), colours[not dark])
            self.browser.evaluate("document.getElementById('theme').click()")
            self.assertEqual(paper(), colours[dark])
            self.assertEqual(self.browser.complaints(), [])

    def test_full_screen(self):
        write(self.folder / "a.dzi", 1000, 700, "to=dzi", "compression=jpeg")
        self.browser.open(self.folder / "a.view.html")
        self.browser.press("f", "f")
        self.wait("document.fullscreenElement === document.documentElement")
        self.browser.press("f", "f")
        self.wait("document.fullscreenElement === null")

    def assertShown(self, tiles):
        """What is on the screen is what is in the files. Returns how many tiles there are."""
        self.browser.evaluate("new Promise((done) => setTimeout(done, 500))")  # tiles fade in
        self.browser.screenshot(self.folder / "screen.png", whole=False)
        with Image.open(self.folder / "screen.png") as image:
            screen = numpy.asarray(image.convert("RGB")).astype(int)
        pictures = self.browser.evaluate("""[...document.querySelectorAll("#image img")].filter((one) => !one.hidden)
            .map((one) => { const {left, top, right, bottom} = one.getBoundingClientRect();
                return [one.src.split("?")[0].split("/").slice(-2).join("/"), left, top, right, bottom]; })""")
        for place, *edges in pictures:
            left, top, right, bottom = map(round, edges)
            expected = decoded(tiles / place).astype(int)
            self.assertEqual(expected.shape[:2], (bottom - top, right - left), place)
            covered = top < 120 and (left < 60 or right > screen.shape[1] - 60)
            if covered or left < 0 or bottom > screen.shape[0] - 60 or right > screen.shape[1]:
                continue  # cut off, or below a button
            self.assertLess(abs(screen[top:bottom, left:right] - expected).mean(), 1, place)
        return len(pictures)

    def test_the_pyramid_from_disk(self):
        write(self.folder / "a b#%.dzi", 1000, 700, "to=dzi", "compression=jpeg", "name=some <image>")
        self.browser.open(self.folder / "a b#%.view.html")
        self.wait("document.querySelectorAll('#image img').length >= 12 && view.missing.size === 0 && "
                  "[...document.querySelectorAll('#image img')].every((one) => !one.hidden)")
        self.at_level(10)
        self.assertEqual(self.assertShown(self.folder / "a b#%_files"), 12)
        self.assertEqual(self.browser.complaints(), [])
        self.assertIn("some <image> · 1000 × 700", self.browser.evaluate("document.getElementById('state').textContent"))
        # A level above.
        self.browser.evaluate("view.map.setZoom(9, {animate: false}); 0")
        self.wait("[...document.querySelectorAll('#image img')].filter((one) => one.src.includes('/9/') && !one.hidden).length == 4")
        self.browser.evaluate("new Promise((done) => setTimeout(done, 600))")  # the old level goes
        self.assertEqual(self.assertShown(self.folder / "a b#%_files"), 4)
        self.assertEqual(self.browser.complaints(), [])

    def test_tiles_that_are_not_there_yet_are_asked_for_again(self):
        file = self.folder / "a.dzi"
        arguments = file, 1000, 700, "to=dzi", "compression=jpeg"
        write(*arguments, "stop=6")
        self.browser.open(self.folder / "a.partial.view.html")
        self.wait("view.missing.size === 6")
        self.at_level(10)
        self.assertEqual(self.assertShown(self.folder / "a.partial_files"), 6)
        self.assertIn("6 tiles aren't there yet", self.browser.evaluate("document.getElementById('state').textContent"))
        # It is finished, and has another name now.
        write(*arguments)
        self.assertFalse((self.folder / "a.partial_files").exists())
        self.wait("view.missing.size === 0")
        self.assertEqual(self.assertShown(self.folder / "a_files"), 12)
        self.assertOnlyFiles()

    def test_a_page_that_has_seen_no_tile_shows_the_image_that_is_finished(self):
        # Of the level that fits the window no tile is there before the last moment.
        file = self.folder / "flat.dzi"
        arguments = file, 6000, 200, "to=dzi", "compression=jpeg"
        for stop in "0", "3":
            write(*arguments, "stop=" + stop)
            self.browser.open(self.folder / "flat.partial.view.html")
            self.wait("view.missing.size > 0")
            self.browser.evaluate("view.tryAgain(); 0")
            self.browser.evaluate("new Promise((done) => setTimeout(done, 300))")
            write(*arguments)
            self.wait("view.missing.size === 0 && document.querySelectorAll('#image img[src*=flat_files]').length > 0")
            self.assertOnlyFiles()
            for path in self.folder.glob("flat*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def test_where_no_tile_of_a_level_is_there_yet_larger_levels_are_shown(self):
        # 24 columns of the largest level's tiles; the level that fits the window has 3 x 2 and comes with the 8th row.
        file = self.folder / "a.dzi"
        arguments = file, 6000, 3000, "to=dzi", "compression=jpeg", "save=" + str(self.folder / "pixels.raw")
        write(*arguments, "stop=55")  # two rows of the largest level, and 7 of the 12 of the next one
        self.browser.open(self.folder / "a.partial.view.html")
        self.wait("view.missing.size > 0")
        self.at_level(10)
        shown = "[...document.querySelectorAll('#image img')].filter((one) => !one.hidden && one.naturalWidth)"
        # 7 of the next level, and 2 x 10 of the largest where that has none.
        self.wait(f"{shown}.length >= 27")
        self.browser.evaluate("view.tryAgain(); 0")  # what is there isn't taken twice
        self.browser.evaluate("new Promise((done) => setTimeout(done, 500))")
        places = self.browser.evaluate(shown + ".map((one) => one.src.split('?')[0].split('/').slice(-2).join('/'))")
        self.assertEqual((len(places), len(set(places))), (27, 27))
        self.assertEqual({place.split("/")[0] for place in places}, {"12", "13"})
        self.assertLookLikeTheImage(rows=64)  # the two rows are 64 pixels high here
        self.assertRegex(self.browser.evaluate("document.getElementById('state').textContent"), "tiles aren't there yet")
        # The rest of the image is grey.
        left, top = self.corner()
        self.assertEqual(set(self.screen()[top + 300, left + 5:left + 740].reshape(-1)), {0xe5, 0xe7, 0xeb})
        # It is finished: the level's own tiles alone are shown.
        write(*arguments)
        self.wait("view.missing.size === 0")
        self.browser.evaluate("new Promise((done) => setTimeout(done, 500))")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#image img').length"), 6)
        self.assertEqual(self.assertShown(self.folder / "a_files"), 6)
        self.assertOnlyFiles()

    def screen(self):
        self.browser.screenshot(self.folder / "screen.png", whole=False)
        with Image.open(self.folder / "screen.png") as image:
            return numpy.asarray(image.convert("RGB")).astype(int)

    def corner(self):
        at = self.browser.evaluate("(({x, y}) => [x, y])(view.map.latLngToContainerPoint(view.map.unproject([0, 0], 13)))")
        return [round(part) for part in at]

    def assertLookLikeTheImage(self, rows):
        left, top = self.corner()
        pixels = numpy.fromfile(self.folder / "pixels.raw", "u1").reshape(-1, 6000, 3).astype(int)
        expected = pixels[:rows * 8, :].reshape(rows, 8, 750, 8, 3).mean((1, 3))
        screen = self.screen()
        end = min(rows, screen.shape[0] - top - 60)
        start = 60 - top if top < 60 else 0
        self.assertLess(abs(screen[top + start:top + end, left:left + 750] - expected[start:end]).mean(), 6)

    def assertOnlyFiles(self):
        requests = [event["params"]["request"]["url"] for event in self.browser.events
                    if event.get("method") == "Network.requestWillBeSent"]
        self.assertTrue(all(url.startswith(("file:", "data:")) for url in requests))


if __name__ == "__main__":
    finish()
