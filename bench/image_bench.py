#!/usr/bin/env python3
"""How long it takes to make a JPEG pyramid of raw pixels, here and with `vips tiffsave`:
`image_bench.py WRITE_IMAGE [--size 16384x12288] [--rounds 5] [--threads 2] [--folder /dev/shm] [--json FILE]`.

WRITE_IMAGE is build/release/tests/sink/write_image. Both make the same levels of the same tiles at quality 75 from a file
of pixels, in turns; times are of whole processes, wall clock and of the CPU. The folder should be on a RAM disk.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time


def timed(command, environment=None):
    """Seconds of the wall clock and of the CPU."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    wall = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("write_image", type=pathlib.Path)
    parser.add_argument("--size", default="16384x12288")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    width, height = options.size.split("x")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        pixels, ours, theirs = folder / "pixels.raw", folder / "a.ome.tif", folder / "b.tif"
        subprocess.run([options.write_image, ours, width, height, f"save={pixels}"], check=True, stdout=subprocess.DEVNULL)
        here = [options.write_image, ours, width, height, f"raw={pixels}", "compression=jpeg", "quality=75",
                f"threads={options.threads}"]
        vips = ["vips", "rawload", pixels, f"{theirs}[tile,tile-width=256,tile-height=256,pyramid,subifd,bigtiff,"
                "compression=jpeg,Q=75]", width, height, "3"]
        rounds = []
        for _ in range(options.rounds):
            for file in (ours, theirs):
                file.unlink(missing_ok=True)
            rounds.append((*timed(here), *timed(vips, {"VIPS_CONCURRENCY": str(options.threads)})))
    medians = [statistics.median(column) for column in zip(*rounds)]
    figures = dict(zip(("wall_s", "cpu_s", "vips_wall_s", "vips_cpu_s"), medians))
    figures["wall_ratio"] = statistics.median(a / c for a, _, c, _ in rounds)
    figures["cpu_ratio"] = statistics.median(b / d for _, b, _, d in rounds)
    for key, value in figures.items():
        print(f"{key:12} {value:.3f}")
    if options.json:
        options.json.write_text(json.dumps({"size": options.size, "rounds": rounds, **figures}) + "\n")


if __name__ == "__main__":
    main()
