#!/usr/bin/env python3
"""Sobel of a whole slide into uncompressed Zarr as cuCIM's example `gds_whole_slide` goes about it, for comparison:

    whole_slide.py SLIDE OUT.zarr [--threads 16] [--rounds 3]

SLIDE is a TIFF file of uncompressed RGB tiles (the example converts slides beforehand; `pipeline synth --codec none` makes
one). KvikIO reads its tiles into the GPU's memory with several threads, without GPUDirect Storage; cuCIM makes grey and Sobel of
the whole image, and KvikIO writes it in chunks of 1,024. There are no levels, and what is written is 8 bits of one channel, a
twelfth of what the example writes. Prints the seconds of each round and the median, the files in the page cache.
Needs a GPU and the packages cucim-cu13, kvikio-cu13, cupy-cuda13x and tifffile.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import time

CHUNK = 1024


def read(path, buffers):
    """The image in the GPU's memory: rows x columns x 3."""
    import cupy
    import kvikio
    import tifffile

    with tifffile.TiffFile(path) as tiff, kvikio.CuFile(str(path), "r") as file:
        page = tiff.pages[0]
        if page.compression != 1 or not page.is_tiled:
            raise SystemExit(f"{path}: its tiles are compressed, or there are none")
        height, width = page.imagelength, page.imagewidth
        rows, columns = page.tilelength, page.tilewidth
        image = cupy.empty((-(-height // rows) * rows, -(-width // columns) * columns, 3), cupy.uint8)
        across = image.shape[1] // columns
        tiles = cupy.empty((buffers, rows, columns, 3), cupy.uint8)
        for first in range(0, len(page.dataoffsets), buffers):
            places = page.dataoffsets[first:first + buffers]
            futures = [file.pread(tiles[i], file_offset=place) for i, place in enumerate(places)]
            for i, future in enumerate(futures):
                future.get()
                row, column = divmod(first + i, across)
                image[row * rows:(row + 1) * rows, column * columns:(column + 1) * columns] = tiles[i]
            cupy.cuda.get_current_stream().synchronize()  # before the buffers are filled again
    return image[:height, :width]


def sobel(image, band=8192):
    """Grey, then Sobel's magnitude in 8 bits; in bands of rows, as whole float images take many times the memory."""
    import cupy
    from cucim.skimage.color import rgb2gray
    from cucim.skimage.filters import sobel as magnitude

    out = cupy.empty(image.shape[:2], cupy.uint8)
    for top in range(0, len(image), band):
        above = max(0, top - 1)
        part = magnitude(rgb2gray(image[above:top + band + 1]).astype(cupy.float32))[top - above:][:band]
        out[top:top + len(part)] = cupy.rint(part * 255).astype(cupy.uint8)
    return out


def write(image, path, buffers):
    import cupy
    import kvikio

    path.mkdir()
    (path / ".zarray").write_text(json.dumps({
        "zarr_format": 2, "shape": list(image.shape), "chunks": [CHUNK, CHUNK], "dtype": "|u1", "compressor": None,
        "fill_value": 0, "order": "C", "filters": None, "dimension_separator": "."}))
    chunks = cupy.zeros((buffers, CHUNK, CHUNK), cupy.uint8)
    under_way = []
    for row in range(-(-image.shape[0] // CHUNK)):
        for column in range(-(-image.shape[1] // CHUNK)):
            if len(under_way) == buffers:
                finish(under_way)
            chunk = chunks[len(under_way)]
            part = image[row * CHUNK:(row + 1) * CHUNK, column * CHUNK:(column + 1) * CHUNK]
            chunk[:part.shape[0], :part.shape[1]] = part
            file = kvikio.CuFile(str(path / f"{row}.{column}"), "w")
            cupy.cuda.get_current_stream().synchronize()
            under_way.append((file, file.pwrite(chunk)))
    finish(under_way)


def finish(under_way):
    for file, future in under_way:
        future.get()
        file.close()
    under_way.clear()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("slide", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    import cupy
    import kvikio.defaults

    kvikio.defaults.set({"num_threads": options.threads, "compat_mode": kvikio.CompatMode.ON, "task_size": 4 << 20})
    seconds = []
    for _ in range(options.rounds + 1):
        shutil.rmtree(options.out, ignore_errors=True)
        begin = time.monotonic()
        image = read(options.slide, 256)
        cupy.cuda.Device().synchronize()
        loaded = time.monotonic()
        result = sobel(image)
        cupy.cuda.Device().synchronize()
        computed = time.monotonic()
        write(result, options.out, 64)
        seconds.append(time.monotonic() - begin)
        print(f"{seconds[-1]:.3f} s: reading {loaded - begin:.3f}, computing {computed - loaded:.3f}, writing "
              f"{time.monotonic() - computed:.3f}", flush=True)
        del image, result
    print(f"median {statistics.median(seconds[1:]):.3f} s")  # the first compiles kernels


if __name__ == "__main__":
    main()
