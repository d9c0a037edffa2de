#!/usr/bin/env python3
"""Windows of a slide as NumPy arrays, beside libjpeg-turbo alone and OpenSlide on as many threads:
`tiles_bench.py SLIDE JPEG_FLOOR [--rounds 5] [--threads 2] [--regions 100] [--openslide-windows 2000] [--json FILE]`.

JPEG_FLOOR is build/release/bench/jpeg_floor, which decodes every tile once and does nothing else; for regions its time
is that of as many tiles as they touch. All take turns, and a ratio is the median over the rounds: of wall clock, and of
processor time, which others on the machine disturb less (`chrt -r 10` in front keeps them off, where it is allowed).
OpenSlide reads as many windows, spread over the slide, as are asked for, and its time is scaled to all. The slide should
be in the page cache, its tiles JPEG, and slidestream and openslide-python installed.
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import statistics
import subprocess
import time

import numpy

import slidestream

try:
    import openslide
except ImportError:
    openslide = None


def timed(work):
    """Seconds of the wall clock and of the processors."""
    begin = (time.perf_counter(), time.process_time())
    work()
    return time.perf_counter() - begin[0], time.process_time() - begin[1]


def floor_seconds(program, slide, threads):
    text = subprocess.run([program, slide, str(threads)], check=True, capture_output=True, text=True).stdout
    return tuple(map(float, text.split()[1:3]))


def walk(slide, threads, **options):
    for batch in slidestream.tiles(slide, threads=threads, **options):
        assert batch.count


def openslide_windows(slide, coords, size, threads):
    local = [openslide.OpenSlide(slide) for _ in range(threads)]

    def read(thread):
        for x, y in coords[thread::threads]:
            numpy.asarray(local[thread].read_region((int(x), int(y)), 0, (size, size)))

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, range(threads)))


def regions(slide, places, size):
    for place in places:
        slide.read_region(place, 0, size)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("slide")
    parser.add_argument("floor", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--regions", type=int, default=100)
    parser.add_argument("--openslide-windows", type=int, default=2000)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    slide = slidestream.Slide(options.slide)
    width, height = slide.dimensions
    level = slide.levels[0]
    pixels = width * height
    cases = {
        "tiles 256": {"size": 256, "batch": 64},
        "tiles 256 nchw": {"size": 256, "batch": 64, "layout": "nchw"},
        "tiles 256, lent": {"size": 256, "batch": 64, "copy": False},
        "tiles 224": {"size": 224, "batch": 64},
        "tiles 512": {"size": 512, "batch": 16},
    }
    chooser = random.Random(1)
    coords = [(x * 256, y * 256) for y in range(height // 256) for x in range(width // 256)]
    some = sorted(chooser.sample(coords, min(len(coords), options.openslide_windows)), key=lambda place: place[::-1])
    places = [(chooser.randrange(width - 1024), chooser.randrange(height - 1024)) for _ in range(options.regions)]
    touched = sum(((x + 1023) // level.tile_width - x // level.tile_width + 1)
                  * ((y + 1023) // level.tile_height - y // level.tile_height + 1) for x, y in places)
    touched_share = touched / (level.columns * level.rows)
    seconds = {name: [] for name in ("libjpeg-turbo", *cases, "regions 1024", "openslide 256", "openslide regions 1024")}
    region_floors = []
    for _ in range(options.rounds):
        # Regions take about as long as what they are compared with, and stand between two of it: machines drift.
        before = floor_seconds(options.floor, options.slide, options.threads)
        seconds["regions 1024"].append(tuple(value / 4 for value in timed(lambda: regions(slide, 4 * places, 1024))))
        seconds["libjpeg-turbo"].append(floor_seconds(options.floor, options.slide, options.threads))
        region_floors.append([touched_share * statistics.mean(two) for two in zip(before, seconds["libjpeg-turbo"][-1])])
        for name, keywords in cases.items():
            seconds[name].append(timed(lambda keywords=keywords: walk(options.slide, options.threads, **keywords)))
        if openslide is not None:
            scale = len(coords) / len(some)
            found = timed(lambda: openslide_windows(options.slide, some, 256, options.threads))
            seconds["openslide 256"].append(tuple(scale * value for value in found))
            seconds["openslide regions 1024"].append(
                timed(lambda: openslide_windows(options.slide, places, 1024, options.threads)))
    figures = {}
    for name, values in seconds.items():
        if not values:
            continue
        peers = seconds["openslide regions 1024" if "regions" in name else "openslide 256"]
        figures[name] = {}
        for i, clock in enumerate(("wall", "cpu")):
            own = [value[i] for value in values]
            figures[name][f"{clock} s"] = statistics.median(own)
            floors = [floor[i] for floor in (region_floors if "regions" in name else seconds["libjpeg-turbo"])]
            ratios = [floor / value for floor, value in zip(floors, own)]
            figures[name][f"of libjpeg-turbo's speed ({clock})"] = statistics.median(ratios)
            if peers:
                figures[name][f"x OpenSlide ({clock})"] = statistics.median(a[i] / b for a, b in zip(peers, own))
    print(f"{width} x {height}, {pixels / 1e6:.0f} Mpx, {level.codec}, {options.threads} threads")
    for name, row in figures.items():
        print(f"{name:24}" + "  ".join(f"{key} {value:.3f}" for key, value in row.items()))
    if options.json:
        options.json.write_text(json.dumps({"slide": options.slide, "seconds": seconds, **figures}) + "\n")


if __name__ == "__main__":
    main()
