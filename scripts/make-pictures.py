#!/usr/bin/python3
"""Takes the documents' pictures from real runs: `make-pictures.py PIPELINE [--only NAME,...] [--out DIR]`.

result    a synthetic slide, the map of its windows' means, and its histogram, drawn side by side
report    the upper part of a report of synthetic slides of two kinds
sweep     the heat map of a sweep over strip height and queue depth, from the report
timeline  the stages of a run with --trace over time, from the report
writing   a slide that is being converted, half of it written, in the viewer that is written beside it
colours   one piece of tissue as two scanners' files have it, and converted by their profiles

Needs python3-numpy, python3-pil, fonts-dejavu-core, libvips-tools and chromium. A sweep takes minutes, and means
something on a machine that does nothing else.
"""

import argparse
import csv
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import numpy
from PIL import Image, ImageCms, ImageDraw, ImageFont

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "report"))
from browser import Browser, find_browser  # noqa: E402

PANEL_WIDTH, PANEL_HEIGHT = 520, 390
MARGIN, TITLE, FOOT = 24, 40, 72
INK, FAINT, BAR = (36, 41, 47), (208, 215, 222), (49, 104, 142)
# Points of viridis, evenly spaced.
VIRIDIS = numpy.array([
    (68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141), (39, 173, 129), (92, 200, 99),
    (170, 220, 50), (253, 231, 37)], float)

# XYZ of red, green and blue at full light, of sRGB and of two made-up scanners that see more colours (D50).
SRGB = numpy.array([(0.43607, 0.22249, 0.01392), (0.38515, 0.71687, 0.09708), (0.14307, 0.06061, 0.71410)])
SCANNERS = {"one scanner": numpy.array([(0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457)]),
            "another": numpy.array([(0.79767, 0.28804, 0.0), (0.13519, 0.71188, 0.0), (0.03134, 0.00009, 0.82491)])}

# These look the same with a palette, and take less than half the bytes.
FEW_COLOURS = {"sweep.png", "timeline.png", "writing.png"}


def font(size):
    return ImageFont.truetype("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", size)


def coloured(values):
    """Values from 0 to 1 as RGB."""
    place = values * (len(VIRIDIS) - 1)
    below = numpy.minimum(place.astype(int), len(VIRIDIS) - 2)
    part = (place - below)[..., None]
    return (VIRIDIS[below] * (1 - part) + VIRIDIS[below + 1] * part + 0.5).astype(numpy.uint8)


def centred(draw, x, y, text, size):
    draw.text((x, y), text, INK, font(size), anchor="mm")


def draw_map(picture, draw, left, means):
    low, high = means.min(), means.max()
    image = Image.fromarray(coloured((means - low) / (high - low)))
    picture.paste(image.resize((PANEL_WIDTH, PANEL_HEIGHT), Image.NEAREST), (left, TITLE))
    top = TITLE + PANEL_HEIGHT + 12
    ramp = Image.fromarray(coloured(numpy.linspace(0, 1, PANEL_WIDTH)[None].repeat(14, 0)))
    picture.paste(ramp, (left, top))
    draw.text((left, top + 30), f"{low:.0f} dB", INK, font(14), anchor="lm")
    draw.text((left + PANEL_WIDTH, top + 30), f"{high:.0f} dB", INK, font(14), anchor="rm")


def draw_histogram(draw, left, histogram, last):
    """Share of all values in bins of 1 dB, from 0 to `last` dB."""
    shares = histogram.reshape(-1, 10).sum(1)[:last] / histogram.sum()
    highest = shares.max() * 1.05
    bottom = TITLE + PANEL_HEIGHT
    for decibel in range(0, last + 1, 20):
        x = left + PANEL_WIDTH * decibel / last
        draw.line((x, TITLE, x, bottom + 5), FAINT)
        centred(draw, x, bottom + 18, str(decibel), 14)
    for i, share in enumerate(shares):
        x0, x1 = (left + PANEL_WIDTH * (i + part) / last for part in (0.1, 0.9))
        draw.rectangle((x0, bottom - PANEL_HEIGHT * share / highest, x1, bottom), BAR)
    draw.line((left, bottom, left + PANEL_WIDTH, bottom), INK)
    centred(draw, left + PANEL_WIDTH / 2, bottom + 42, "20 log10(1 + |F|), dB", 14)


def profile_of(primaries):
    """sRGB's profile with other primaries."""
    made = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    for i in range(struct.unpack_from(">I", made, 128)[0]):
        name, offset = struct.unpack_from(">4sI", made, 132 + 12 * i)
        if name in (b"rXYZ", b"gXYZ", b"bXYZ"):
            struct.pack_into(">3i", made, offset + 8, *(round(65536 * each) for each in primaries[b"rgb".index(name[:1])]))
    return bytes(made)


def numbers_for(primaries, pixels):
    """What a file with these primaries and sRGB's curve has for pixels of sRGB."""
    codes = pixels / 255
    light = numpy.where(codes <= 0.04045, codes / 12.92, ((codes + 0.055) / 1.055) ** 2.4)
    light = numpy.clip(light @ SRGB @ numpy.linalg.inv(primaries), 0, 1)
    codes = numpy.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return (255 * codes + 0.5).astype(numpy.uint8)


class Studio:
    """Runs the program in a folder of its own and keeps the pictures."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder

    def run(self, *arguments, statuses=(0,)):
        done = subprocess.run([self.options.pipeline, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL,
                              check=False)
        if done.returncode not in statuses:
            raise RuntimeError(f"pipeline {arguments[0]} ended with status {done.returncode}")

    def slide(self, name, size, *options):
        if not (self.folder / name).exists():
            self.run("synth", "--out", name, "--size", size, *options)
        return name

    def report(self, name, *arguments):
        self.run("report", *arguments, "--html", name)
        return self.folder / name

    def keep(self, name):
        picture = Image.open(self.folder / name).convert("RGB")
        if name in FEW_COLOURS:
            picture = picture.quantize(256, method=Image.Quantize.MEDIANCUT, kmeans=5, dither=Image.Dither.NONE)
        self.options.out.mkdir(parents=True, exist_ok=True)
        file = self.options.out / name
        picture.save(file, optimize=True, quality=85, subsampling=0)  # the last two for JPEG
        print(f"{file}: {picture.width} x {picture.height}, {file.stat().st_size // 1000} kB")

    def result(self):
        slide = self.slide("slide.svs", self.options.size or "8192x6144")
        self.run(slide, "--out", "results", "--maps", "npy")
        subprocess.run(["vips", "thumbnail", slide, "thumbnail.png", str(PANEL_WIDTH), "--height", str(PANEL_HEIGHT)],
                       cwd=self.folder, check=True)
        results = self.folder / "results"
        means = numpy.load(results / "maps" / "slide.npy")[:, :, 0]
        histogram = numpy.load(results / "histograms.npy")[0].astype(float)
        with open(results / "slides.csv", newline="", encoding="utf-8") as file:
            row = next(csv.DictReader(file))
        picture = Image.new("RGB", (3 * PANEL_WIDTH + 4 * MARGIN, TITLE + PANEL_HEIGHT + FOOT), "white")
        draw = ImageDraw.Draw(picture)
        lefts = [MARGIN + i * (PANEL_WIDTH + MARGIN) for i in range(3)]
        titles = (f"a slide, {row['width']} x {row['height']} pixels",
                  f"mean of each of its {int(row['windows']):,} windows' spectra",
                  f"all {int(histogram.sum()):,} coefficients")
        for left, title in zip(lefts, titles):
            centred(draw, left + PANEL_WIDTH / 2, TITLE / 2, title, 17)
        thumbnail = Image.open(self.folder / "thumbnail.png").convert("RGB")
        picture.paste(thumbnail, (lefts[0], TITLE))
        draw.rectangle((lefts[0], TITLE, lefts[0] + PANEL_WIDTH - 1, TITLE + PANEL_HEIGHT - 1), outline=FAINT)
        draw_map(picture, draw, lefts[1], means)
        draw_histogram(draw, lefts[2], histogram, 120)
        picture.save(self.folder / "result.png")

    def report_page(self):
        (self.folder / "slides").mkdir()
        rows = ["path,quality"]
        for seed in range(1, 13):
            # A low quality stands for a scanner that loses the finest detail.
            quality = "60" if seed % 3 == 0 else "85"
            slide = self.slide(f"slides/case-{seed:02}.svs", self.options.size or f"{5000 + 300 * seed}x{4200 + 100 * seed}",
                               "--seed", seed, "--quality", quality)
            rows.append(f"{slide},quality {quality}")
        (self.folder / "cohort.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        # One slide fails, on purpose.
        whole = (self.folder / "slides" / "case-01.svs").read_bytes()
        (self.folder / "slides" / "case-13.svs").write_bytes(whole[:100_000])
        self.run("slides", "--out", "results-of-cohort", "--maps", "npy", statuses=(1,))
        html = self.report("report.html", "results-of-cohort", "--manifest", "cohort.csv", "--cohort", "quality")
        with Browser(find_browser()) as browser:
            browser.open(html, 1280, 1720)
            browser.screenshot(self.folder / "report.png", whole=False)

    def sweep(self):
        slide = self.slide("large.svs", self.options.size or "16384x16384")
        # The page shows it.
        name = "strip height and queue depth"
        self.run("sweep", slide, "--over", "pipeline.strip_height=256,512,1024,2048", "--over",
                 "pipeline.queue_depth=1,2,4,8", "--repeat", self.options.repeat, "--out", name)
        html = self.report("sweep.html", name)
        with Browser(find_browser()) as browser:
            browser.open(html, 720, scale=2)
            browser.picture_of("#sweeps h2, #sweep-list", self.folder / "sweep.png")
        # What the caption must say.
        print("".join(line for line in (self.folder / name / "tuned.toml").read_text().splitlines(True)
                      if line.startswith("#")), end="")

    def timeline(self):
        slide = self.slide("large.svs", self.options.size or "16384x16384")
        self.run(slide, "--out", "traced", "--trace", "trace.json")
        html = self.report("timeline.html", "traced", "--trace", "trace.json")
        with Browser(find_browser()) as browser:
            browser.open(html, 880, scale=2)
            browser.picture_of("#timeline h2, #timeline-lead, #timeline-rows", self.folder / "timeline.png")


    def half_written(self, slide):
        """Starts to convert it, and holds the process still when half of the tiles are there."""
        tile = 64
        width, height = (int(side) for side in (self.options.size or "8192x6144").split("x"))
        half = -(-width // tile) * (-(-height // tile) // 2 + 1)  # with the rows of levels that half of it completes
        tiles = self.folder / "writing.partial_files" / str((max(width, height) - 1).bit_length())
        for _ in range(50):
            process = subprocess.Popen([self.options.pipeline, "convert", slide, "writing.dzi", "--tile", str(tile),
                                        "--quiet"], cwd=self.folder, stdin=subprocess.DEVNULL)
            while process.poll() is None and not (tiles.exists() and len(os.listdir(tiles)) >= half):
                time.sleep(0.001)
            process.send_signal(signal.SIGSTOP)
            if process.poll() is None and tiles.exists():
                return process
            process.kill()
            process.wait()
            for made in self.folder.glob("writing[._]*"):
                shutil.rmtree(made) if made.is_dir() else made.unlink()
        raise RuntimeError("converting was over before half of it was seen")

    def writing(self):
        process = self.half_written(self.slide("slide.svs", self.options.size or "8192x6144"))
        try:
            with Browser(find_browser()) as browser:
                browser.open(self.folder / "writing.partial.view.html", 1100, 860)
                browser.evaluate("new Promise((done) => setTimeout(done, 1500))")  # tiles fade in
                browser.screenshot(self.folder / "writing.png", whole=False)
            with Image.open(self.folder / "writing.png") as screen:
                screen.convert("RGB").resize((770, 602), Image.LANCZOS).save(self.folder / "writing.png")
        finally:
            process.kill()
            process.wait()


    def colours(self):
        slide = self.slide("small.svs", "2048x1536")
        subprocess.run(["vips", "extract_area", slide, "scene.png", "700", "520", str(PANEL_WIDTH), str(PANEL_HEIGHT)],
                       cwd=self.folder, check=True)
        scene = numpy.asarray(Image.open(self.folder / "scene.png").convert("RGB"))
        panels = {}
        for i, (scanner, primaries) in enumerate(SCANNERS.items()):
            Image.fromarray(numbers_for(primaries, scene)).save(self.folder / "numbers.png")
            (self.folder / "scanner.icc").write_bytes(profile_of(primaries))
            subprocess.run(["vips", "tiffsave", "numbers.png", f"{i}.tif", "--tile", "--tile-width", "256", "--tile-height",
                            "256", "--compression", "deflate", "--profile", "scanner.icc"], cwd=self.folder, check=True)
            for colours, what in ("file", "as its file has it"), ("srgb", "converted"):
                self.run("convert", f"{i}.tif", f"{i}-{colours}.ome.tif", "--compression", "none", "--quiet", "--set",
                         f"input.colour={colours}")
                subprocess.run(["vips", "copy", f"{i}-{colours}.ome.tif", f"{i}-{colours}.png"], cwd=self.folder, check=True)
                panels[f"{scanner}, {what}"] = Image.open(self.folder / f"{i}-{colours}.png").convert("RGB")
        picture = Image.new("RGB", (2 * PANEL_WIDTH + 3 * MARGIN, 2 * (TITLE + PANEL_HEIGHT) + MARGIN), "white")
        draw = ImageDraw.Draw(picture)
        for i, (title, panel) in enumerate(panels.items()):
            left, top = MARGIN + i // 2 * (PANEL_WIDTH + MARGIN), TITLE + i % 2 * (PANEL_HEIGHT + TITLE)
            centred(draw, left + PANEL_WIDTH / 2, top - TITLE / 2, title, 17)
            picture.paste(panel, (left, top))
        picture.save(self.folder / "colours.jpg", quality=100, subsampling=0)


PICTURES = {"result": Studio.result, "report": Studio.report_page, "sweep": Studio.sweep, "timeline": Studio.timeline,
            "writing": Studio.writing, "colours": Studio.colours}
WITHOUT_BROWSER = {"result", "colours"}


def main():
    parser = argparse.ArgumentParser(description="Takes the documents' pictures from real runs.")
    parser.add_argument("pipeline", metavar="PIPELINE", type=os.path.abspath)
    parser.add_argument("--only", metavar="NAME,...", default=",".join(PICTURES), help="of " + ", ".join(PICTURES))
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, default=ROOT / "docs" / "images")
    parser.add_argument("--size", metavar="WxH", help="of the slides, for trying")
    parser.add_argument("--repeat", metavar="N", default="5", help="runs of each of the sweep's combinations")
    options = parser.parse_args()
    names = options.only.split(",")
    for name in names:
        if name not in PICTURES:
            parser.error(f"{name}: no such picture; there are {', '.join(PICTURES)}")
    if not find_browser() and not WITHOUT_BROWSER.issuperset(names):
        parser.error("Chromium is missing: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        studio = Studio(options, pathlib.Path(folder))
        for name in names:
            PICTURES[name](studio)
            studio.keep("colours.jpg" if name == "colours" else f"{name}.png")


if __name__ == "__main__":
    try:
        main()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"make-pictures.py: {error}")
