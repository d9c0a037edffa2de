#!/usr/bin/env python3
"""Decoders of JPEG 2000 beside each other: one slide's tiles, one machine, one after the other:

    jpeg2000.py SLIDE [--bench PATH] [--json]

The program's kernels and OpenJPEG on all cores, both by jpeg2000_gpu_bench; nvJPEG2000 by its C interface, with several
threads and tiles under way in each; nvImageCodec by its Python interface, batch by batch. Each of these two keeps what
was the fastest of its settings. Its pixels may differ from OpenJPEG's a little; how much is said. Needs a GPU and
these Python packages: nvidia-nvjpeg2k-cu13, nvidia-nvimgcodec-cu13, numpy.
"""

import argparse
import ctypes
import importlib.util
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = {"nvidia.nvjpeg2k": "nvidia-nvjpeg2k-cu13", "nvidia.nvimgcodec": "nvidia-nvimgcodec-cu13", "numpy": "numpy"}
LEAST_RATIO = 200
CHECKED = 16  # tiles whose pixels are compared


def folder_of(name):
    """Where a package lies, or None."""
    try:
        found = importlib.util.find_spec(name)
    except ImportError:
        return None
    return pathlib.Path(next(iter(found.submodule_search_locations))) if found else None


def missing_packages():
    return [name for name in PACKAGES if folder_of(name) is None]


class Tiles:
    """What jpeg2000_gpu_bench --write-tiles wrote: compressed tiles, and the pixels that OpenJPEG makes of them."""

    def __init__(self, file):
        data = pathlib.Path(file).read_bytes()
        self.width, self.height, self.channels = struct.unpack_from("<3I", data)
        self.compressed, self.pixels = [], []
        at, pixel_bytes = 12, self.width * self.height * self.channels
        while at < len(data):
            length, = struct.unpack_from("<I", data, at)
            self.compressed.append(data[at + 4:at + 4 + length])
            at += 4 + length
            self.pixels.append(data[at:at + pixel_bytes])
            at += pixel_bytes
        if not self.compressed or at != len(data):
            raise ValueError(f"{file} is cut off")

    def checked(self):
        """(compressed, pixels) of some tiles from all over the slide."""
        return list(zip(self.compressed, self.pixels))[::max(1, len(self.compressed) // CHECKED)]

    @property
    def pixels_each(self):
        return self.width * self.height


def mean_difference(one, other):
    if len(one) != len(other):
        raise ValueError(f"{len(one)} bytes of pixels instead of {len(other)}")
    return sum(abs(a - b) for a, b in zip(one, other)) / len(one)


class Driver:
    """As much of CUDA's driver as is needed, without packages. All threads share the device's primary context."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.enter()

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} gives {status}")

    def enter(self):
        """For every thread."""
        self.call("cuCtxSetCurrent", self.context)

    def allocate(self, count):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(count))
        return address

    def fetch(self, address, count):
        data = ctypes.create_string_buffer(count)
        self.call("cuMemcpyDtoH_v2", data, address, ctypes.c_size_t(count))
        return data.raw

    def stream(self):
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream


class Jpeg2kImage(ctypes.Structure):
    """nvjpeg2kImage_t."""

    _fields_ = [("pixel_data", ctypes.POINTER(ctypes.c_void_p)), ("pitch", ctypes.POINTER(ctypes.c_size_t)),
                ("pixel_type", ctypes.c_int), ("components", ctypes.c_uint32)]


class NvJpeg2000:
    def __init__(self, driver, tiles):
        self.driver, self.tiles = driver, tiles
        self.library = ctypes.CDLL(str(folder_of("nvidia.nvjpeg2k") / "lib" / "libnvjpeg2k.so.0"))
        self.handle = ctypes.c_void_p()
        self.call("nvjpeg2kCreateSimple", ctypes.byref(self.handle))

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} gives {status}")

    class Place:
        """A tile under way."""

        def __init__(self, owner):
            tiles, driver = owner.tiles, owner.driver
            self.stream = driver.stream()
            self.state, self.parsed = ctypes.c_void_p(), ctypes.c_void_p()
            owner.call("nvjpeg2kDecodeStateCreate", owner.handle, ctypes.byref(self.state))
            owner.call("nvjpeg2kStreamCreate", ctypes.byref(self.parsed))
            self.pixels = driver.allocate(tiles.pixels_each * tiles.channels)
            self.planes = (ctypes.c_void_p * tiles.channels)(
                *(self.pixels.value + c * tiles.pixels_each for c in range(tiles.channels)))
            self.pitches = (ctypes.c_size_t * tiles.channels)(*[tiles.width] * tiles.channels)
            self.image = Jpeg2kImage(self.planes, self.pitches, 0, tiles.channels)

    def decode(self, place, compressed):
        """Returns when the tile is under way; the one before in the place is done."""
        self.driver.call("cuStreamSynchronize", place.stream)
        self.call("nvjpeg2kStreamParse", self.handle, compressed, ctypes.c_size_t(len(compressed)), 0, 0, place.parsed)
        self.call("nvjpeg2kDecodeImage", self.handle, place.state, place.parsed, None, ctypes.byref(place.image),
                  place.stream)

    def difference(self):
        place, tiles = self.Place(self), self.tiles
        each = []
        for compressed, expected in tiles.checked():
            self.decode(place, compressed)
            self.driver.call("cuStreamSynchronize", place.stream)
            planes = self.driver.fetch(place.pixels, len(expected))
            pixels = bytearray(len(expected))
            for c in range(tiles.channels):
                pixels[c::tiles.channels] = planes[c * tiles.pixels_each:(c + 1) * tiles.pixels_each]
            each.append(mean_difference(pixels, expected))
        return sum(each) / len(each)

    def rate(self, threads, depth, seconds):
        """Gpx/s of so many threads, with so many tiles under way in each."""
        taken, failures = [0] * threads, []
        ready, begin = threading.Barrier(threads + 1), threading.Event()
        stop = threading.Event()

        def work(number):
            waits = True
            try:
                self.driver.enter()
                places = [self.Place(self) for _ in range(depth)]
                for place in places:  # warms up
                    self.decode(place, self.tiles.compressed[0])
                    self.driver.call("cuStreamSynchronize", place.stream)
                waits = False
                ready.wait()
                begin.wait()
                count = 0
                while not stop.is_set():
                    tile = (number + count * threads) % len(self.tiles.compressed)
                    self.decode(places[count % depth], self.tiles.compressed[tile])
                    count += 1
                for place in places:
                    self.driver.call("cuStreamSynchronize", place.stream)
                taken[number] = count
            except Exception as error:
                failures.append(error)
                if waits:
                    ready.wait()

        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        ready.wait()
        before = time.perf_counter()
        begin.set()
        time.sleep(seconds)
        stop.set()
        for worker in workers:
            worker.join()
        passed = time.perf_counter() - before
        if failures:
            raise failures[0]
        return sum(taken) * self.tiles.pixels_each / passed / 1e9


def measure_nvjpeg2k(tiles, seconds):
    decoder = NvJpeg2000(Driver(), tiles)
    difference = decoder.difference()
    rates = {}
    for threads in sorted({1, 4, os.cpu_count() or 1}):
        for depth in (1, 4):
            rates[f"{threads} threads, {depth} tiles in each"] = decoder.rate(threads, depth, seconds)
    return rates, difference


def measure_nvimgcodec(tiles, seconds):
    import numpy
    from nvidia import nvimgcodec

    def batches(decoder, count):
        chosen = [tiles.compressed[i % len(tiles.compressed)] for i in range(count)]
        decoder.decode([nvimgcodec.CodeStream(tile) for tile in chosen])  # warms up
        before, done = time.perf_counter(), 0
        while time.perf_counter() - before < seconds:
            images = decoder.decode([nvimgcodec.CodeStream(tile) for tile in chosen])
            if any(image is None for image in images):
                raise RuntimeError("a tile isn't decoded")
            done += count
        Driver().call("cuCtxSynchronize")
        return done * tiles.pixels_each / (time.perf_counter() - before) / 1e9

    each = []
    decoder = nvimgcodec.Decoder()
    for compressed, expected in tiles.checked():
        image = decoder.decode(nvimgcodec.CodeStream(compressed))
        if image is None:
            raise RuntimeError("a tile isn't decoded")
        each.append(mean_difference(numpy.asarray(image.cpu()).tobytes(), expected))
    rates = {}
    for options in ("", ":num_cuda_streams=16"):
        decoder = nvimgcodec.Decoder(max_num_cpu_threads=os.cpu_count() or 1, options=options)
        for count in (64, 512):
            rates[f"batches of {count}{', ' + options[1:] if options else ''}"] = batches(decoder, count)
    return rates, sum(each) / len(each)


MEASURES = {"nvjpeg2k": measure_nvjpeg2k, "nvimgcodec": measure_nvimgcodec}


def output_of(command, timeout):
    """Standard output. Raises RuntimeError with a line that says why there is none."""
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                             timeout=timeout)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not done after {timeout:g} s") from None
    if run.returncode:
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        raise RuntimeError(lines[-1] if lines else f"status {run.returncode}")
    return run.stdout


def own_rates(options, folder):
    """Rates by name, of the program's kernels and of OpenJPEG; and the tiles."""
    rates = {}
    for kind in ("luminance", "rgb"):
        report, tiles = folder / f"{kind}.json", folder / "tiles"
        output_of([options.bench, options.slide, "--format", kind, "--tiles", options.tiles, "--openjpeg",
                   "--write-tiles", tiles, "--json", report], options.timeout)
        for row in json.loads(report.read_text(encoding="utf-8")):
            rates[f"{'openjpeg' if row['slide'].endswith('_openjpeg') else 'own'}_{kind}"] = row["gpx_per_s"]
    return rates, folder / "tiles"


def peer_rate(name, tiles, options):
    """(the best rate or None, a note); a process of its own for each, so that none has another's memory in its way."""
    command = [sys.executable, __file__, tiles, "--measure", name, "--seconds", str(options.seconds)]
    try:
        rates, difference = json.loads(output_of(command, options.timeout).splitlines()[-1])
    except RuntimeError as error:
        return None, str(error)
    best = max(rates, key=rates.get)
    return rates[best], (f"with {best}; mean difference from OpenJPEG's samples {difference:.3g}; "
                         + ", ".join(f"{setting}: {rate:.4g}" for setting, rate in rates.items()))


def figures_of(rates, peers):
    """Figures as gpu_check_table.py takes them. Both peers decode three components, whatever is wanted."""
    def figure(name, value, unit="Gpx/s", note=None, target=None):
        made = {"name": name, "value": value, "unit": unit, "target": target,
                "direction": "report" if target is None else "at_least"}
        return {**made, "note": note} if note else made

    figures = [figure(f"{name}_gpx_per_s", rates.get(name))
               for name in ("own_luminance", "own_rgb", "openjpeg_luminance", "openjpeg_rgb")]
    for name, (rate, note) in peers.items():
        figures.append(figure(f"{name}_gpx_per_s", rate, note=note))
    theirs = peers["nvjpeg2k"][0]

    def over(name):
        return rates[name] / theirs if theirs and rates.get(name) else None

    figures.append(figure("own_over_nvjpeg2k", over("own_luminance"), "x", target=LEAST_RATIO))
    figures.append(figure("own_rgb_over_nvjpeg2k", over("own_rgb"), "x"))
    return figures


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slide")
    parser.add_argument("--bench", help="jpeg2000_gpu_bench; default: of a bundle, else of build/cuda")
    parser.add_argument("--tiles", default="42000", help="tiles a launch; default 42000")
    parser.add_argument("--json", action="store_true", help="figures for gpu_check_table.py instead of lines")
    parser.add_argument("--seconds", type=float, default=2, metavar="S", help="for each of a peer's settings; default 2")
    parser.add_argument("--timeout", type=float, default=120, metavar="S", help="for each decoder; default 120 s")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    built = ROOT / "bin" / "jpeg2000_gpu_bench"
    options.bench = options.bench or (built if built.exists() else ROOT / "build" / "cuda" / "bench" / built.name)
    return options


def main(arguments):
    options = parse(arguments)
    if options.measure:
        print(json.dumps(MEASURES[options.measure](Tiles(options.slide), options.seconds)))
        return 0
    why = None
    if not os.path.isfile(options.slide):
        why = f"{options.slide}: no such file"
    elif not os.access(options.bench, os.X_OK):
        why = f"{options.bench} is no program: name it with --bench"
    elif missing_packages():
        why = "missing Python packages: " + ", ".join(f"{PACKAGES[name]} (pip install {PACKAGES[name]})"
                                                      for name in missing_packages())
    if why:
        print(f"jpeg2000.py: {why}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        try:
            rates, tiles = own_rates(options, pathlib.Path(name))
        except RuntimeError as error:
            print(f"jpeg2000.py: {options.bench}: {error}", file=sys.stderr)
            return 1
        peers = {peer: peer_rate(peer, tiles, options) for peer in MEASURES}
    figures = figures_of(rates, peers)
    if options.json:
        print(json.dumps({"figures": figures}, indent=1))
    else:
        for entry in figures:
            value = "-" if entry["value"] is None else f"{entry['value']:.4g} {entry['unit']}"
            print(f"{entry['name']}: {value}" + (f" ({entry['note']})" if entry.get("note") else ""))
    return 1 if any(entry["value"] is None for entry in figures) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
