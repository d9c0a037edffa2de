#!/usr/bin/python3
"""Draws README's picture from a real run: `make-readme-picture.py PIPELINE OUT.png`.

Makes a synthetic slide, analyses it, and puts its thumbnail, its map of window means and its histogram side by side.
Needs python3-numpy, python3-pil, fonts-dejavu-core and vips (libvips-tools).
"""

import csv
import pathlib
import subprocess
import sys
import tempfile

import numpy
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 8192, 6144
PANEL_WIDTH, PANEL_HEIGHT = 520, 390
MARGIN, TITLE, FOOT = 24, 40, 72
INK, FAINT, BAR = (36, 41, 47), (208, 215, 222), (49, 104, 142)
# Points of viridis, evenly spaced.
VIRIDIS = numpy.array([
    (68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141), (39, 173, 129), (92, 200, 99),
    (170, 220, 50), (253, 231, 37)], float)


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


def main(arguments):
    if len(arguments) != 2:
        print("usage: make-readme-picture.py PIPELINE OUT.png", file=sys.stderr)
        return 2
    pipeline, out = arguments
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        slide, results, thumbnail = folder / "slide.svs", folder / "results", folder / "thumbnail.png"
        subprocess.run([pipeline, "synth", "--out", slide, "--size", f"{WIDTH}x{HEIGHT}"], check=True)
        subprocess.run([pipeline, slide, "--out", results, "--maps", "npy"], check=True)
        subprocess.run(["vips", "thumbnail", slide, thumbnail, str(PANEL_WIDTH), "--height", str(PANEL_HEIGHT)],
                       check=True)
        means = numpy.load(results / "maps" / "slide.npy")[:, :, 0]
        histogram = numpy.load(results / "histograms.npy")[0].astype(float)
        with open(results / "slides.csv", newline="", encoding="utf-8") as file:
            row = next(csv.DictReader(file))

        picture = Image.new("RGB", (3 * PANEL_WIDTH + 4 * MARGIN, TITLE + PANEL_HEIGHT + FOOT), "white")
        draw = ImageDraw.Draw(picture)
        lefts = [MARGIN + i * (PANEL_WIDTH + MARGIN) for i in range(3)]
        titles = (f"a slide, {WIDTH} x {HEIGHT} pixels",
                  f"mean of each of its {int(row['windows']):,} windows' spectra",
                  f"all {int(histogram.sum()):,} coefficients")
        for left, title in zip(lefts, titles):
            centred(draw, left + PANEL_WIDTH / 2, TITLE / 2, title, 17)
        picture.paste(Image.open(thumbnail).convert("RGB"), (lefts[0], TITLE))
        draw.rectangle((lefts[0], TITLE, lefts[0] + PANEL_WIDTH - 1, TITLE + PANEL_HEIGHT - 1), outline=FAINT)
        draw_map(picture, draw, lefts[1], means)
        draw_histogram(draw, lefts[2], histogram, 120)
        pathlib.Path(out).parent.mkdir(parents=True, exist_ok=True)
        picture.save(out, optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
