"""Folders of chunks or tiles that write_image makes, with what their levels are to hold."""

import json
import pathlib
import struct

import numpy

from written_image import TYPES, levels_of, write


class MadeFolder:
    """An image of `to`, written from the pattern of write_image."""

    def __init__(self, folder, to, suffix, width, height, form="rgb8", compression="none", labels=False, **options):
        self.file = folder / f"{form}-{compression}-{width}x{height}{suffix}"
        raw = folder / "pixels.raw"
        write(self.file, width, height, f"to={to}", f"format={form}", f"compression={compression}", f"labels={int(labels)}",
              f"save={raw}", *(f"{key}={value}" for key, value in options.items()))
        kind, channels = TYPES[form] if form in TYPES else ("u1", int(form[5:]))
        self.pixels = numpy.fromfile(raw, kind).reshape(height, width, channels)
        self.levels, self.more_levels = [], levels_of(self.pixels, labels)
        self.form, self.compression, self.labels, self.options = form, compression, labels, options

    def level(self, number):
        """(height, width, channels) by the definition."""
        while len(self.levels) <= number:
            self.levels.append(next(self.more_levels))
        return self.levels[number]


def zarr_arrays(image):
    """A plain reader of what isn't compressed: (metadata, array of (channels, height, width)) of each level."""
    image = pathlib.Path(image)
    sharded = (image / "zarr.json").exists()
    attributes = json.loads((image / ("zarr.json" if sharded else ".zattrs")).read_text())
    scales = (attributes["attributes"]["ome"] if sharded else attributes)["multiscales"][0]
    for dataset in scales["datasets"]:
        folder = image / dataset["path"]
        array = json.loads((folder / ("zarr.json" if sharded else ".zarray")).read_text())
        yield array, (whole_array_3 if sharded else whole_array_2)(folder, array)


def put(found, chunk, channel, row, column, side):
    part = found[channel, row * side:(row + 1) * side, column * side:(column + 1) * side]
    part[...] = chunk[:part.shape[0], :part.shape[1]]
    chunk = chunk.copy()
    chunk[:part.shape[0], :part.shape[1]] = 0
    return chunk  # what lies beyond the image


def whole_array_2(folder, array):
    side = array["chunks"][2]
    found = numpy.full(array["shape"], array["fill_value"], array["dtype"])
    for file in folder.glob("*/*/*"):
        channel, row, column = map(int, file.relative_to(folder).parts)
        chunk = numpy.frombuffer(file.read_bytes(), array["dtype"]).reshape(side, side)
        beyond = put(found, chunk, channel, row, column, side)
        assert ((beyond == 0) | (beyond == array["fill_value"])).all()
    return found


def whole_array_3(folder, array):
    sharding = array["codecs"][0]["configuration"]
    side = sharding["chunk_shape"][2]
    columns = array["chunk_grid"]["configuration"]["chunk_shape"][2] // side
    kind = numpy.dtype(array["data_type"]).newbyteorder("<")
    found = numpy.full(array["shape"], array["fill_value"], kind)
    for file in folder.glob("c/*/*/*"):
        _, channel, row, last = file.relative_to(folder).parts
        assert last == "0"
        shard = file.read_bytes()
        index = struct.unpack_from(f"<{2 * columns}Q", shard, len(shard) - 4 - 16 * columns)
        for column in range(columns):
            offset, length = index[2 * column:2 * column + 2]
            chunk = numpy.frombuffer(shard[offset:offset + length], kind).reshape(side, side)
            put(found, chunk, int(channel), int(row), column, side)
    return found
