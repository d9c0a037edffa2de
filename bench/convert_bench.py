#!/usr/bin/env python3
"""Slides to images on processors, here and with libvips, in turns:
`convert_bench.py PIPELINE [JPEG_FLOOR] [--size 16384x12288] [--rounds 5] [--threads 2] [--folder /dev/shm] [--set SETTING]
[--only NAME,...] [--slides 16] [--at-once 1 2]`.

tiff    `pipeline convert` to OME-TIFF beside `vips tiffsave`: JPEG tiles of 256, quality 75, all levels
dzi     `pipeline convert` to Deep Zoom beside `vips dzsave`, the same
copy    encoding all tiles beside `--compression copy`, with smaller levels as exact means and with shrink-on-load
archive `pipeline convert` of a folder of --slides slides beside `vips tiffsave` of as many, some processes at a time: each
        number of --at-once, of which the best counts; every process has its share of the threads
sobel   the operator `sobel` to a grey JPEG pyramid beside libvips' (grey, sobel, tiffsave; the package pyvips), and beside
        what libjpeg-turbo alone takes to decode the slide's tiles to grey and to encode the image's (JPEG_FLOOR is
        build/release/bench/jpeg_floor)

libvips reads a copy of the slide that calls itself no Aperio file, so that it takes libtiff, by which it is faster than by
OpenSlide. Figures are of whole processes: medians of the wall clock's and the processors' seconds, and medians of the
rounds' ratios. What ran while other processes took more than a tenth of the processors is run again, at most --tries
times. The folder should be on a RAM disk.
"""

import argparse
import concurrent.futures
import importlib.util
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from image_bench import timed

# Of the processors' time: what others may take before a measurement is made again.
MOST_OF_OTHERS = 0.1


def processors_busy():
    """Seconds of all processors since the start of the machine, but for idle ones."""
    user, nice, system, _, _, irq, soft, steal = (int(ticks) for ticks in
                                                  pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


VIPS_TIFF = "tile,tile-width=256,tile-height=256,pyramid,subifd,bigtiff,compression=jpeg,Q=75"
VIPS_SOBEL = """
import sys, pyvips
slide = pyvips.Image.tiffload(sys.argv[1], access="sequential")
slide.colourspace("b-w").sobel().tiffsave(sys.argv[2], tile=True, tile_width=256, tile_height=256, pyramid=True, subifd=True,
                                          bigtiff=True, compression="jpeg", Q=75)
"""


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.slide = folder / "slide.svs"
        self.plain = folder / "plain.tif"
        subprocess.run([options.pipeline, "synth", "--out", self.slide, "--size", options.size, "--levels", "1", "--distinct",
                        "1000"], check=True, stdout=subprocess.DEVNULL)
        self.plain.write_bytes(self.slide.read_bytes().replace(b"Aperio", b"Xperio"))

    def clear(self):
        for made in self.folder.glob("made*"):
            shutil.rmtree(made) if made.is_dir() else made.unlink()

    def ours(self, *arguments):
        settings = [word for setting in self.options.set for word in ("--set", setting)]
        return [self.options.pipeline, *arguments, *settings, "--quiet", "--threads", str(self.options.threads)]

    def compare(self, name, here, others):
        """Rounds of `here` and of each of the `others`: commands, or functions that give seconds of both kinds."""
        rounds = []
        self.disturbed = 0
        for number in range(self.options.rounds + 1):
            figures = {}
            for who, command in {"slidestream": here, **others}.items():
                figures[who] = self.undisturbed(command)
            if number > 0:  # the first warms up
                rounds.append(figures)
        self.clear()
        if self.disturbed:
            print(f"{name:6} {self.disturbed} of the measurements were disturbed")
        for who in rounds[0]:
            wall, processors = (statistics.median(figures[who][kind] for figures in rounds) for kind in (0, 1))
            line = f"{name:6} {who:28} {wall:7.3f} s  {processors:7.3f} s of processors"
            if who != "slidestream":
                ratios = [statistics.median(figures["slidestream"][kind] / figures[who][kind] for figures in rounds)
                          for kind in (0, 1)]
                line += f"  ratio {ratios[0]:.3f}  of processors {ratios[1]:.3f}"
            print(line, flush=True)

    def undisturbed(self, command):
        for _ in range(self.options.tries):
            self.clear()
            busy, begin = processors_busy(), time.monotonic()
            whole = resource.getrusage(resource.RUSAGE_CHILDREN)
            found = command() if callable(command) else timed(command, {"VIPS_CONCURRENCY": str(self.options.threads)})
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            own = after.ru_utime + after.ru_stime - whole.ru_utime - whole.ru_stime
            others = processors_busy() - busy - own
            if others < MOST_OF_OTHERS * os.cpu_count() * (time.monotonic() - begin):
                return found
            time.sleep(1)
        self.disturbed += 1
        return found

    def tiff(self):
        self.compare("tiff", self.ours("convert", self.slide, self.folder / "made.ome.tif", "-Q", "75"), {
            "vips tiffsave": ["vips", "tiffload", "--access", "sequential", self.plain,
                              f"{self.folder}/made-vips.tif[{VIPS_TIFF}]"]})

    def dzi(self):
        self.compare("dzi", self.ours("convert", self.slide, self.folder / "made.dzi", "-Q", "75"), {
            "vips dzsave": ["vips", "dzsave", f"{self.plain}[access=sequential]", self.folder / "made-vips", "--suffix",
                            ".jpg[Q=75]", "--tile-size", "256", "--overlap", "0"]})

    def copy(self):
        def convert(*more):
            return self.ours("convert", self.slide, self.folder / "made.ome.tif", "-Q", "75", *more)

        copied = ("--compression", "copy")
        self.compare("copy", convert(), {"exact": convert(*copied),
                                         "shrink-on-load": convert(*copied, "--set", "image.copy_levels=shrink-on-load")})

    def archive(self):
        """A file for each slide is there at the end of it. What the folder's memory takes to be had the first time is nobody's."""
        folder = self.folder / "slides"
        folder.mkdir()
        for number in range(self.options.slides):
            shutil.copyfile(self.slide, folder / f"{number}.svs")
        def seconds(slides):
            """Of the second of two runs."""
            for _ in range(2):
                self.clear()
                found = timed(self.ours("convert", slides, "--to", "ome-tiff", "--out", self.folder / "made", "-Q", "75"))
            self.clear()
            return found[0]
        alone, whole, figures = seconds(self.slide), seconds(folder), {}
        for at_once in self.options.at_once:
            def one(number):
                subprocess.run(["vips", "tiffload", "--access", "sequential", self.plain,
                                f"{self.folder}/made-{number}.tif[{VIPS_TIFF}]"], check=True, stdout=subprocess.DEVNULL,
                               env={**os.environ, "VIPS_CONCURRENCY": str(max(1, self.options.threads // at_once))})
            begin = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                list(pool.map(one, range(max(at_once, self.options.peer_slides))))
            figures[f"vips, {at_once} at once"] = (time.monotonic() - begin) / max(at_once, self.options.peer_slides)
            self.clear()
        ours = whole / self.options.slides
        more = (whole - alone) / (self.options.slides - 1)
        print(f"archive slidestream                  {ours:7.3f} s a slide, of {self.options.slides}; one alone {alone:.3f} s, "
              f"each one more {more:.3f} s")
        for who, found in figures.items():
            print(f"archive {who:28} {found:7.3f} s a slide  ratio {found / ours:.1f}, after start-up {found / more:.1f}",
                  flush=True)

    def sobel(self):
        here = self.ours(self.slide, "--out", self.folder / "made", "--set", "operators.run=sobel", "--set",
                         "image.format=ome-tiff", "--set", "image.quality=75")
        others = {}
        if importlib.util.find_spec("pyvips"):
            others["vips sobel and tiffsave"] = [sys.executable, "-c", VIPS_SOBEL, self.plain, self.folder / "made-vips.tif"]
        if self.options.jpeg_floor:
            image = self.folder / "sobel.ome.tif"
            subprocess.run(here, check=True)
            shutil.move(next((self.folder / "made" / "images").iterdir()), image)

            def floor(*steps):
                def seconds():
                    text = subprocess.run([self.options.jpeg_floor, self.slide, image, str(self.options.threads)], check=True,
                                          capture_output=True, text=True).stdout
                    found = {line.split()[0]: [float(part) for part in line.split()[1:]] for line in text.splitlines()}
                    return [sum(found[step][kind] for step in steps) for kind in (0, 1)]
                return seconds
            others["libjpeg-turbo, level 0"] = floor("decode", "encode")
            others["libjpeg-turbo, all levels"] = floor("decode", "encode", "levels")
        self.compare("sobel", here, others)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline", type=os.path.abspath)
    parser.add_argument("jpeg_floor", type=os.path.abspath, nargs="?")
    parser.add_argument("--size", default="16384x12288")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], metavar="SETTING", help="of slidestream, such as "
                        "pipeline.strip_height=512")
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--only", default="tiff,dzi,copy,sobel")
    parser.add_argument("--slides", type=int, default=16, help="of the archive")
    parser.add_argument("--peer-slides", type=int, default=1, help="of it that libvips makes, at least")
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 2], help="processes of libvips")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench = Bench(options, pathlib.Path(folder))
        for name in options.only.split(","):
            getattr(bench, name)()


if __name__ == "__main__":
    main()
