#!/usr/bin/env python3
"""Made-up slides with known tissue: intersection over union of the program's masks and of others' rules.

    python3 bench/tissue/scenes.py --pipeline build/release/pipeline

Needs the packages numpy, scipy, tifffile and imagecodecs, which reads masks. The others' rules are made again from their descriptions, on the same pixels of 8
micrometres:

- before: Otsu's threshold on saturation, at least 15; all holes filled; regions below 16,384 square micrometres dropped;
- CLAM: its defaults (create_patches_fp.py): saturation, median of 7 x 7, threshold 8, closing by 4 x 4, regions up to 100
  and holes up to 16 reference patches (512 pixels of 0.25 micrometres) dropped and filled, at most 8 holes each;
- Otsu: the same with Otsu's threshold (use_otsu).

--picture FILE.png draws the masks on the scenes.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
import tempfile
from typing import Dict, List

import imagecodecs  # noqa: F401  without it tifffile fails at the first mask, minutes later
import numpy
import tifffile
from scipy import ndimage

import made_scenes

FOUR = ndimage.generate_binary_structure(2, 1)
EIGHT = numpy.ones((3, 3), bool)
REFERENCE_PIXELS = (512 * 0.25 / 8.0) ** 2


def saturation(rgb: numpy.ndarray) -> numpy.ndarray:
    most, least = rgb.max(2).astype(int), rgb.min(2).astype(int)
    return (255 * (most - least) + most // 2) // numpy.maximum(most, 1)


def otsu(values: numpy.ndarray) -> int:
    counts = numpy.bincount(values.reshape(-1), minlength=256).astype(float)
    number, total = numpy.cumsum(counts), numpy.cumsum(counts * numpy.arange(256))
    with numpy.errstate(divide="ignore", invalid="ignore"):
        apart = (number[-1] * total - total[-1] * number) ** 2 / (number * (number[-1] - number))
    return int(numpy.nan_to_num(apart)[:255].argmax())


def before(rgb: numpy.ndarray) -> numpy.ndarray:
    black = ndimage.binary_dilation(rgb.max(2) <= 3, EIGHT)
    values = ndimage.median_filter(numpy.where(black, 0, saturation(rgb)), 3)
    tissue = ndimage.binary_fill_holes(values > max(otsu(values), 15))
    labels, _ = ndimage.label(tissue, EIGHT)
    large = numpy.bincount(labels.reshape(-1)) >= 256
    large[0] = False
    return ndimage.binary_fill_holes(large[labels]) & ~black


def clam(rgb: numpy.ndarray, use_otsu: bool = False) -> numpy.ndarray:
    values = ndimage.median_filter(saturation(rgb), 7)
    tissue = values > (otsu(values) if use_otsu else 8)
    square = numpy.ones((4, 4), bool)
    tissue = ndimage.binary_erosion(ndimage.binary_dilation(tissue, square), square, border_value=1)
    labels, _ = ndimage.label(tissue, EIGHT)
    found = numpy.zeros_like(tissue)
    for label, size in enumerate(numpy.bincount(labels.reshape(-1))):
        if label == 0 or size <= 100 * REFERENCE_PIXELS:
            continue
        region = labels == label
        whole = ndimage.binary_fill_holes(region)
        holes, _ = ndimage.label(whole & ~region, FOUR)
        sizes = numpy.bincount(holes.reshape(-1))
        sizes[0] = 0
        kept = [hole for hole in numpy.argsort(-sizes)[:8] if sizes[hole] > 16 * REFERENCE_PIXELS]
        found |= whole & ~numpy.isin(holes, kept)
    return found


def overlap(mask: numpy.ndarray, truth: numpy.ndarray) -> float:
    both = (mask | truth).sum()
    return 1.0 if both == 0 else float((mask & truth).sum() / both)


def masks_of(pipeline: str, slides: List[pathlib.Path], out: pathlib.Path) -> Dict[str, numpy.ndarray]:
    """What the program finds, by the slide's name."""
    command = [pipeline, "tissue", *map(str, slides), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return {slide.stem: tifffile.imread(out / "images" / f"{slide.stem}.tissue.ome.tif") > 0 for slide in slides}


def outlined(rgb: numpy.ndarray, mask: numpy.ndarray) -> numpy.ndarray:
    inside = ndimage.binary_erosion(mask, FOUR, border_value=1)
    drawn = rgb.copy()
    drawn[mask & ~inside] = (0, 160, 0)
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", default="build/release/pipeline")
    parser.add_argument("--picture", help="a PNG of all scenes with the program's masks")
    parser.add_argument("--check", action="store_true", help="fail below 0.95 a scene, 0.98 in the mean")
    options = parser.parse_args()
    rows: List[List[float]] = []
    drawn: List[numpy.ndarray] = []
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        scenes = {}
        for number, name in enumerate(made_scenes.SCENES):
            scenes[name] = made_scenes.make(name)
            per_centimetre = 10000.0 / 8.0
            tifffile.imwrite(place / f"{number}.tif", scenes[name][0], tile=(256, 256), photometric="rgb",
                             resolution=(per_centimetre, per_centimetre), resolutionunit="CENTIMETER")  # fmt: skip
        slides = [place / f"{number}.tif" for number in range(len(scenes))]
        masks = masks_of(options.pipeline, slides, place / "out")
    print("| scene | slidestream | before | CLAM | Otsu |\n|---|---|---|---|---|")
    for number, (name, (rgb, truth)) in enumerate(scenes.items()):
        mask = masks[str(number)]
        rows.append([overlap(found, truth) for found in (mask, before(rgb), clam(rgb), clam(rgb, True))])
        print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in rows[-1]) + " |")
        drawn.append(outlined(rgb, mask)[::3, ::3])
    means = numpy.mean(rows, 0)
    print("| mean | " + " | ".join(f"{value:.3f}" for value in means) + " |")
    if options.picture:
        from PIL import Image

        strips = [numpy.concatenate(drawn[first : first + 6], 1) for first in range(0, len(drawn), 6)]
        Image.fromarray(numpy.concatenate(strips)).save(options.picture)
    if options.check:
        worst = [name for name, row in zip(scenes, rows) if row[0] < 0.95 or row[0] < max(row) - 0.01]
        if worst or means[0] < 0.98:
            sys.exit(f"below what is wanted: {', '.join(worst) or 'the mean'}")


if __name__ == "__main__":
    main()
