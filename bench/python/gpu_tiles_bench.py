#!/usr/bin/env python3
"""Windows of a slide as tensors on a GPU, beside cuCIM where it is installed:
`gpu_tiles_bench.py SLIDE [--passes 8] [--rounds 3] [--only NAMES] [--threads N ...] [--cucim-windows 12000] [--json FILE]`.

Each loop walks the slide PASSES times, and makes a PyTorch tensor of every batch, where PyTorch is there. A rate counts
from the first batch to the last, whose pixels are on the GPU then; how long the first one took stands beside it. It is
the best of ROUNDS, which take turns. Regions lie at random places, one after the other; a time ends when the pixels are
on the GPU. cuCIM reads the slide's first windows with several settings, to the GPU, by its own decoder or the CPU's; its
best counts. The slide should be in the page cache. Exit status 2: the package isn't there, or can't use a GPU.
"""

import argparse
import json
import pathlib
import random
import statistics
import sys
import time

import numpy

try:
    import slidestream
except ImportError as missing:
    print(f"gpu_tiles_bench.py: {missing}", file=sys.stderr)
    sys.exit(2)

try:
    import torch
except ImportError:
    torch = None
try:
    from cucim import CuImage
except ImportError:
    CuImage = None

WALKS = {
    "256": {"size": 256, "batch": 512},
    "256 nchw": {"size": 256, "batch": 512, "layout": "nchw"},
    "256, batches of 64": {"size": 256, "batch": 64},
    "256, lent": {"size": 256, "batch": 512, "copy": False},
    "224, across tiles": {"size": 224, "batch": 512},
    "512, half over": {"size": 512, "step": 256, "batch": 128},
    "1024": {"size": 1024, "batch": 32},
    "256, pixels of 1.6 x 1.6": {"size": 256, "batch": 512, "slide_mpp": 0.5, "mpp": 0.8},
}


def to_tensor(array):
    return array if torch is None else torch.from_dlpack(array)


def walk(slide, passes, **options):
    """Pixels of tensors a second behind the first batch, and the seconds until that was there."""
    begin = time.perf_counter()
    windows = 0
    first = None
    for batch in slidestream.tiles([slide] * passes, device="cuda", **options):
        tensor = to_tensor(batch.pixels)
        if first is None:
            first = time.perf_counter()
        else:
            windows += batch.count
    end = time.perf_counter()
    size = options["size"]
    assert tensor is not None and windows > 0
    return windows * size * size / (end - first), first - begin


def region_times(read, places):
    times = []
    for place in places:
        begin = time.perf_counter()
        read(place)
        times.append(time.perf_counter() - begin)
    return times[len(times) // 10 :]


def cucim_walks(slide, coords, size):
    """Pixels a second by what cuCIM was told."""
    image = CuImage(slide)
    rates = {}
    for device in ("cpu", "cuda"):
        for workers in (8, 16, 32):
            for batch in (64, 256):
                some = coords if device == "cpu" else coords[: len(coords) // 4]
                begin = time.perf_counter()
                count = 0
                try:
                    for tiles in image.read_region(some, (size, size), 0, num_workers=workers, batch_size=batch,
                                                   device=device):
                        if torch is not None and device == "cpu":
                            torch.from_numpy(numpy.asarray(tiles)).cuda()
                        count += batch
                    if torch is not None:
                        torch.cuda.synchronize()
                except Exception as error:  # what it can't do is said, and is no figure
                    print(f"cuCIM {device} {workers} x {batch}: {type(error).__name__}: {error}")
                    continue
                rates[f"{device}, {workers} workers, batches of {batch}"] = (
                    min(count, len(some)) * size * size / (time.perf_counter() - begin))
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("slide")
    parser.add_argument("--passes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="walks, with semicolons between them")
    parser.add_argument("--threads", type=int, nargs="*", default=[0])
    parser.add_argument("--memory-mib", type=int, nargs="*", default=[None])
    parser.add_argument("--regions", type=int, default=300)
    parser.add_argument("--cucim-windows", type=int, default=12000)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    slide = slidestream.Slide(options.slide)
    try:
        slide.read_region((0, 0), device="cuda")
    except slidestream.CudaError as error:
        print(f"gpu_tiles_bench.py: {error}", file=sys.stderr)
        sys.exit(2)
    width, height = slide.dimensions
    chosen = [name for name in WALKS if not options.only or name in options.only.split(";")]
    print(f"{width} x {height}, {slide.codec}, {options.passes} passes a round")
    found = {}
    for _ in range(options.rounds):
        for name in chosen:
            for threads in options.threads:
                for memory in options.memory_mib:
                    keywords = dict(WALKS[name], threads=threads, memory_mib=memory)
                    key = name + (f", {threads} threads" if threads else "") + (f", {memory} MiB" if memory else "")
                    found.setdefault(key, []).append(walk(options.slide, options.passes, **keywords))
    figures = {}
    for name, values in found.items():
        best, first = max(values)
        figures[f"tiles {name}"] = best
        print(f"{name:32} {best / 1e9:8.2f} Gpx/s   (of {[round(rate / 1e9, 1) for rate, _ in values]};"
              f" first batch after {first * 1e3:.0f} ms)")
    chooser = random.Random(1)
    places = [(chooser.randrange(width - 1024), chooser.randrange(height - 1024)) for _ in range(options.regions)]
    for device in ("cuda", "cpu"):
        times = region_times(lambda place: slide.read_region(place, 0, 1024, device), places)
        figures[f"region {device} s"] = statistics.median(times)
        print(f"read_region 1024 x 1024, {device}: median {statistics.median(times) * 1e3:.3f} ms, "
              f"95 % within {sorted(times)[len(times) * 95 // 100] * 1e3:.3f} ms")
    if CuImage is not None:
        coords = [(x * 256, y * 256) for y in range(height // 256) for x in range(width // 256)]
        coords = coords[: options.cucim_windows]
        rates = cucim_walks(options.slide, coords, 256)
        for name, rate in rates.items():
            print(f"cuCIM {name}: {rate / 1e9:.3f} Gpx/s")
        image = CuImage(options.slide)
        for device in ("cuda", "cpu"):
            try:
                times = region_times(lambda place: image.read_region(place, (1024, 1024), 0, device=device), places[:6])
                print(f"cuCIM read_region 1024 x 1024, {device}: median {statistics.median(times) * 1e3:.3f} ms")
                figures[f"cuCIM region {device} s"] = statistics.median(times)
            except Exception as error:
                print(f"cuCIM read_region {device}: {type(error).__name__}: {error}")
        if rates:
            figures["cuCIM"] = max(rates.values())
    if options.json:
        rows = [("tiles_256_gpx", figures.get("tiles 256", 0) / 1e9, "Gpx/s", 50, "at_least"),
                ("region_1024_ms", figures["region cuda s"] * 1e3, "ms", None, "report"),
                ("tiles_over_cucim", figures.get("tiles 256", 0) / figures["cuCIM"] if figures.get("cuCIM") else None,
                 "x", None, "report")]
        names = ("name", "value", "unit", "target", "direction")
        report = [dict(zip(names, row)) for row in rows]
        for row in report:
            if row["value"] is None:
                row["skipped"] = "cuCIM isn't installed"
        options.json.write_text(json.dumps({"slide": options.slide, "all": figures, "figures": report}) + "\n")


if __name__ == "__main__":
    main()
