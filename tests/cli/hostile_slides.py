#!/usr/bin/env python3
"""Slides that are made to harm: `hostile_slides.py FOLDER` writes them all.

Each is a few kilobytes on the disk, at most a few megabytes, and asks for gigabytes or minutes of whoever believes it.
`OPENING` are refused while they are opened, `huge` ones since a tile takes more memory than decoding may take, and `fat`
ones have tiles that are large and fit. With `pipeline.memory_mib = 256`.
"""

import lzma
import pathlib
import struct
import sys
import zlib

BYTE, ASCII, SHORT, LONG, RATIONAL, UNDEFINED = 1, 2, 3, 4, 5, 7
FORMATS = {BYTE: "B", SHORT: "H", LONG: "I"}

# Compression tags.
NONE, LZW, JPEG, DEFLATE, JPEG2000, LERC, LZMA, ZSTD, WEBP = 1, 5, 7, 8, 33005, 34887, 34925, 50000, 50001


class Values:
    """Values of a tag that lie at a place of the file's own."""

    def __init__(self, kind, count, at):
        self.kind, self.count, self.at = kind, count, at


class Tiff:
    """A classic TIFF that is written piece by piece. Holes are sparse."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.file.write(b"II*\0\0\0\0\0")
        self.next_at = 4

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def put(self, data):
        at = (self.file.seek(0, 2) + 1) // 2 * 2
        self.file.seek(at)
        self.file.write(data)
        return at

    def hole(self, size):
        at = self.file.seek(0, 2)
        self.file.truncate(at + size)
        return at

    def poke(self, at, data):
        self.file.seek(at)
        self.file.write(data)

    def directory(self, tags, linked=True):
        """Tags: {tag: (type, numbers) or Values or bytes}. Links it into the main chain, and returns where it is."""
        entries = b""
        for tag, value in sorted(tags.items()):
            if isinstance(value, Values):
                entries += struct.pack("<HHII", tag, value.kind, value.count, value.at)
                continue
            if isinstance(value, bytes):
                value = (ASCII, value)
            kind, numbers = value
            data = numbers if isinstance(numbers, bytes) else struct.pack(f"<{len(numbers)}{FORMATS[kind]}", *numbers)
            if len(data) > 4:
                data = struct.pack("<I", self.put(data))
            entries += struct.pack("<HHI", tag, kind, len(numbers)) + data.ljust(4, b"\0")
        at = self.put(struct.pack("<H", len(tags)) + entries + bytes(4))
        if linked:
            self.poke(self.next_at, struct.pack("<I", at))
            self.next_at = at + 2 + len(entries)
        return at


def level(width, height, tile, compression=NONE, samples=1, offsets=None, lengths=None, more=None):
    photometric = 1 if samples == 1 else 2
    return {256: (LONG, [width]), 257: (LONG, [height]), 258: (SHORT, [8] * samples), 259: (SHORT, [compression]),
            262: (SHORT, [photometric]), 277: (SHORT, [samples]), 322: (LONG, [tile]), 323: (LONG, [tile]),
            324: offsets, 325: lengths, **(more or {})}


def sound_level(tiff):
    at = tiff.put(bytes(range(256)) * 256)
    return level(512, 512, 256, offsets=(LONG, [at] * 4), lengths=(LONG, [65536] * 4))


def shared_tables(path):
    """12 levels of tiles of one pixel that share one sparse array."""
    with Tiff(path) as tiff:
        side = 4096
        at = tiff.hole(4 * side * side)
        for number in range(12):
            here = side - number
            tiff.directory(level(here, here, 1, offsets=Values(LONG, here * here, at),
                                 lengths=Values(LONG, here * here, at)))


def shared_small_tables(path):
    """The same of arrays that are small enough each."""
    with Tiff(path) as tiff:
        at = tiff.hole(4 * 1024 * 1024)
        for number in range(60):
            here = 1024 - number
            tiff.directory(level(here, here, 1, offsets=Values(LONG, here * here, at),
                                 lengths=Values(LONG, here * here, at)))


def unknown_tags(path):
    """256 SubIFDs to one directory of 4,096 unknown tags."""
    with Tiff(path) as tiff:
        sub = tiff.directory({40000 + i: (SHORT, [i]) for i in range(4096)}, linked=False)
        tiff.directory({**sound_level(tiff), 330: (LONG, [sub] * 256)})


def many_unknown_tags(path):
    """256 SubIFDs to directories of 1,000 unknown tags each."""
    with Tiff(path) as tiff:
        subs = [tiff.directory({40000 + i: (SHORT, [i]) for i in range(1000)}, linked=False) for _ in range(256)]
        tiff.directory({**sound_level(tiff), 330: (LONG, subs)})


def overlapping(path, directories=200, entries=1000):
    """Directories that begin 12 bytes after each other, so that each entry belongs to many."""
    with Tiff(path) as tiff:
        first = tiff.put(b"")
        data = bytearray(struct.pack("<H", entries))
        for number in range(entries + directories):
            # Behind the last entry of a directory stands where the next one is.
            if number < entries:
                head = struct.pack("<HH", 40000 + number % 20000, SHORT)
            elif number - entries + 1 < directories:
                head = struct.pack("<I", first + 12 * (number - entries + 1))
            else:
                head = bytes(4)
            data += head + struct.pack("<IHH", 1, 0, entries)
        tiff.put(bytes(data))
        tiff.poke(4, struct.pack("<I", first))


def chain(path):
    """65,535 directories of one tag."""
    with Tiff(path) as tiff:
        first = tiff.put(b"")
        each = [struct.pack("<HHHIII", 1, 256, LONG, 1, 1, first + 18 * (i + 1)) for i in range(65535)]
        tiff.put(b"".join(each)[:-4] + bytes(4))
        tiff.poke(4, struct.pack("<I", first))


def shared_descriptions(path):
    """51 directories with one description of 200 MB; a label each, so that all must be looked at."""
    with Tiff(path) as tiff:
        at = tiff.put(b"Aperio\nlevel ")
        tiff.hole(200_000_000)
        for number in range(51):
            tiff.directory({**sound_level(tiff), 256: (LONG, [512 - number]), 257: (LONG, [512 - number]),
                            270: Values(ASCII, 200_000_000, at), 324: (LONG, [at] * 4), 325: (LONG, [0] * 4)})


def many_values(path):
    """A BitsPerSample of 100 million values."""
    with Tiff(path) as tiff:
        at = tiff.hole(200_000_000)
        tiff.directory({**sound_level(tiff), 258: Values(SHORT, 100_000_000, at)})


def many_levels(path):
    """300 levels, each a pixel smaller than the one before."""
    with Tiff(path) as tiff:
        at = tiff.put(bytes(65536))
        for number in range(300):
            side = 4096 - 8 * number
            tiles = (-(-side // 1024)) ** 2
            tiff.directory(level(side, side, 1024, offsets=(LONG, [at] * tiles), lengths=(LONG, [0] * tiles)))


def shared_values(path):
    """Tags that libtiff knows as text, which share 100 MB, in a codec of libtiff's, in 20 levels."""
    with Tiff(path) as tiff:
        text = tiff.hole(100_000_000)
        data = tiff.put(zlib.compress(bytes(65536)))
        size = len(zlib.compress(bytes(65536)))
        for number in range(20):
            side = 512 - 8 * number
            tiff.directory(level(side, side, 256, DEFLATE, offsets=(LONG, [data] * 4), lengths=(LONG, [size] * 4),
                                 more={tag: Values(ASCII, 100_000_000, text)
                                       for tag in (269, 271, 272, 285, 305, 306, 315, 316, 33432)}))


def unnamed_codec(path):
    """A codec that libtiff has, and whose library ends the process where memory is short: JBIG."""
    with Tiff(path) as tiff:
        tiff.directory({**sound_level(tiff), 259: (SHORT, [34661])})


def endless_channels(path):
    """OME-XML with a thousand elements that don't end, before 4 MB of text."""
    with Tiff(path) as tiff:
        text = b"<OME <Pixels " + b"<Channel " * 1000
        tiff.directory({**sound_level(tiff), 270: text + b"N" * ((1 << 22) - 16 - len(text)) + b"\0"})


def wide_cells(path):
    """Tiles of one row, and a level whose least comparable place covers 2^28 pixels of them."""
    with Tiff(path) as tiff:
        width, height, factor = 1 << 18, 2048, 256
        at = tiff.put(bytes(range(256)) * (width // 256))
        tiff.directory({**level(width, height, width, offsets=(LONG, [at] * height), lengths=(LONG, [width] * height)),
                        323: (LONG, [1])})
        small = tiff.put(bytes(x * 7 % 251 for x in range(width // factor * height // factor)))
        tiff.directory({**level(width // factor, height // factor, width // factor, offsets=(LONG, [small]),
                                lengths=(LONG, [width // factor * height // factor])), 323: (LONG, [height // factor])})


# ---- Tiles. Each is (bytes, compression, samples, more tags) of a square.


def deflate(side):
    packer = zlib.compressobj(9)
    row = bytes(side)
    return b"".join(packer.compress(row) for _ in range(side)) + packer.flush(), DEFLATE, 1, {}


def lzma_tile(side):
    packer = lzma.LZMACompressor(format=lzma.FORMAT_XZ, preset=0)
    row = bytes(side * 16)
    return b"".join(packer.compress(row) for _ in range(side // 16)) + packer.flush(), LZMA, 1, {}


def zstd(side):
    """Blocks that say one byte 128 Ki times, in a frame whose window is 128 MiB."""
    left = side * side
    data = struct.pack("<IBB", 0xFD2FB528, 0, (27 - 10) << 3)
    while left > 0:
        now = min(left, 128 << 10)
        left -= now
        data += struct.pack("<I", (left == 0) | 1 << 1 | now << 3)[:3] + b"\x80"
    return data, ZSTD, 1, {}


def lzw(side):
    """Codes of strings that grow by a byte each."""
    bits, count, out, width = 0, 0, bytearray(), 9

    def put(code):
        nonlocal bits, count
        bits, count = bits << width | code, count + width
        while count >= 8:
            count -= 8
            out.append(bits >> count & 255)
        bits &= (1 << count) - 1

    left = side * side
    while left > 0:
        put(256)
        width = 9
        put(0)
        left -= 1
        code, length = 258, 2
        while left > 0 and code < 4094:
            put(code)
            left -= length
            length += 1
            code += 1
            if code in (511, 1023, 2047):  # TIFF's codes grow one too early
                width += 1
    put(257)
    out.append(bits << (8 - count) & 255 if count else 0)
    return bytes(out), LZW, 1, {}


def lossless_webp(side, bits):
    """A lossless picture whose stream begins with these bits, the first of a byte the lowest."""
    size = f"{side - 1:014b}"[::-1]
    text = "".join(["11110100", size, size, "0000", *bits])
    stream = int(text[::-1], 2).to_bytes(len(text) // 8 + 9, "little")
    stream += bytes(len(stream) % 2)
    chunk = b"VP8L" + struct.pack("<I", len(stream)) + stream
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk, WEBP, 3, {}


def webp(side):
    """A lossless picture whose codes have one symbol each, so that a pixel takes no bit."""
    return lossless_webp(side, ["000", *["1001"] * 5])


def lerc(side):
    """A picture of one value."""
    size = 6 + 4 + 4 * 6 + 3 * 8 + 4
    blob = b"Lerc2 " + struct.pack("<i6i3di", 2, side, side, side * side, 8, size, 1, 0.5, 7.0, 7.0, 0)
    return blob, LERC, 1, {50674: (LONG, [4, 0])}


def first_lerc(side):
    """LERC of the first kind, which claims 20,000 x 20,000 pixels of 8 bytes each."""
    blob = b"CntZImage " + struct.pack("<iiiid", 11, 8, 20000, 20000, 0.0)
    blob += struct.pack("<iiif", 0, 0, 0, 1.0) + struct.pack("<iiif", 1, 1, 1, 1.0)
    return blob + bytes(65), LERC, 1, {50674: (LONG, [4, 0])}


def fletcher(content):
    """LERC's checksum: Fletcher's, of words with the high byte first."""
    one, two = 0xFFFF, 0xFFFF
    content += bytes(len(content) % 2)
    for word in struct.unpack(f">{len(content) // 2}H", content):
        one += word
        two += one
    fold = lambda number: (number - 1) % 0xFFFF + 1
    return fold(two) << 16 | fold(one)


def short_lerc(side):
    """Blocks that say 64 pixels of no bits: liblerc 4.0 reads their values at address 0."""
    block = bytes([0, 255, 0, 0]) + bytes([1, 0, 0x80, 64]) * (side // 8) ** 2
    size = 6 + 8 + 7 * 4 + 3 * 8 + 4 + len(block)
    rest = struct.pack("<7i3di", side, side, 1, side * side, 8, size, 1, 0.5, 0.0, 255.0, 0) + block
    return b"Lerc2 " + struct.pack("<iI", 4, fletcher(rest)) + rest, LERC, 1, {50674: (LONG, [4, 0])}


def marker(kind, body=b""):
    return struct.pack(">BBH", 0xFF, kind, 2 + len(body)) + body


def progressive_jpeg(side):
    """A scan for each bit of each coefficient, in which nothing is coded."""
    blocks = (-(-side // 8)) ** 2
    frame = struct.pack(">BHHBBBB", 8, side, side, 1, 1, 0x11, 0)
    dc = bytes([0, 1, *[0] * 15, 0])
    # The one code: 2^14 blocks and more are at their end, or, where there aren't as many, one is.
    ac = bytes([0x10, 1, *[0] * 15, 0xE0 if blocks >= 1 << 14 else 0x00])
    data = b"\xff\xd8" + marker(0xDB, bytes([0]) + bytes([1] * 64)) + marker(0xC2, frame) + marker(0xC4, dc + ac)
    data += marker(0xDA, bytes([1, 1, 0x00, 0, 0, 0x00])) + bytes(-(-blocks // 8))
    ends = ""
    left = blocks
    while left >= 1 << 14:
        now = min(left, (1 << 15) - 1)
        ends += "0" + f"{now - (1 << 14):014b}"
        left -= now
    # What is less than 2^14 goes to the last but one.
    if blocks < 1 << 14:
        ends = "0" * blocks
    elif left > 0:
        ends = ""
        whole, rest = divmod(blocks, 1 << 14)
        for number in range(whole):
            ends += "0" + f"{rest if number == 0 else 0:014b}"
    ends += "1" * (-len(ends) % 8)
    scan = int(ends, 2).to_bytes(len(ends) // 8, "big").replace(b"\xff", b"\xff\x00")
    for passes in (0x01, 0x10):
        for coefficient in range(1, 64):
            data += marker(0xDA, bytes([1, 1, 0x00, coefficient, coefficient, passes])) + scan
    return data + b"\xff\xd9", JPEG, 1, {}


def jpeg2000(side):
    """A codestream of one packet, which is empty."""
    size = struct.pack(">HIIIIIIIIHBBB", 0, side, side, 0, 0, side, side, 0, 0, 1, 7, 1, 1)
    data = b"\xff\x4f" + marker(0x51, size) + marker(0x52, bytes([0, 0, 0, 1, 0, 0, 4, 4, 0, 1]))
    data += marker(0x5C, bytes([0x40, 0x40]))
    part = b"\xff\x93" + b"\0"
    data += marker(0x90, struct.pack(">HIBB", 0, 12 + len(part), 0, 1)) + part + b"\xff\xd9"
    return data, JPEG2000, 1, {}


def codestream_tile(side, tile_side, more, layers=1, style=0, packets=b"\0"):
    """A grey codestream of JPEG 2000. `more`: segments of its main header, `packets`: of each of its tiles."""
    size = struct.pack(">HIIIIIIIIHBBB", 0, side, side, 0, 0, tile_side, tile_side, 0, 0, 1, 7, 1, 1)
    coding = struct.pack(">BBHBBBBBB", 0, 0, layers, 0, 0, 4, 4, style, 1)
    data = b"\xff\x4f" + marker(0x51, size) + marker(0x52, coding) + marker(0x5C, bytes([0x40, 0x40])) + more
    part = b"\xff\x93" + packets
    for number in range((side // tile_side) ** 2):
        data += marker(0x90, struct.pack(">HIBB", number, 12 + len(part), 0, 1)) + part
    return data + b"\xff\xd9"


def component_transforms(side):
    """Transforms of components in the main header, 65 kB each, before 4,096 tiles."""
    more = b"".join(marker(0x74, struct.pack(">HHH", 0, number | 1 << 8, 0) + bytes(65000)) for number in range(16))
    return codestream_tile(side, side // 64, more), JPEG2000, 1, {}


def terminated_passes(side):
    """256 layers that may add 164 segments each to each code-block, and bits for 11 million of them."""
    return codestream_tile(side, side, b"", 256, 4, bytes(1 << 22)), JPEG2000, 1, {}


def stuffed_block(side):
    """Code-blocks of HTJ2K, of 7 bytes, whose MEL has FF before FF: OpenJPEG 2.5.0 has an assertion there."""
    packet = b"\xe7" + b"\xff" * 5 + b"\x07\0"
    return codestream_tile(side, 64, b"", 1, 0x40, packet), JPEG2000, 1, {}


def webp_tables(side):
    """A lossless picture whose blocks have codes of their own, 65,536 groups of five codes of one symbol."""
    exponent = (side // 256).bit_length() - 1
    eights = f"{8:04b}"[::-1] + "0" * 33 + "100"
    bits = ["001", f"{exponent - 2:03b}"[::-1], "0", "0", eights, "1", "110", f"{254:08b}"[::-1], "0", eights, "0"]
    bits += ["1001"] * 3 + [f"{number & 255:08b}{number >> 8:08b}" for number in range(1 << 16)]
    return lossless_webp(side, bits + ["1001" * 5] * (1 << 16))


def lzma_dictionary(side):
    """A dictionary of 1.5 GiB, for samples that need none."""
    data = bytearray(lzma_tile(side)[0])
    assert data[14:16] == b"\x21\x01"  # a filter of one byte
    data[16] = 37
    data[20:24] = struct.pack("<I", zlib.crc32(data[12:20]))
    return bytes(data), LZMA, 1, {}


CODECS = {"deflate": deflate, "lzma": lzma_tile, "zstd": zstd, "lzw": lzw, "webp": webp, "lerc": lerc,
          "progressive": progressive_jpeg, "jpeg2000": jpeg2000}
# Sides of tiles that take somewhat more than 64 MiB to decode, which is what up to 8 threads may take together.
SIDES = {"deflate": 8704, "lzma": 6144, "zstd": 6144, "lzw": 8704, "webp": 2816, "lerc": 3584, "progressive": 6144,
         "jpeg2000": 3072}


def tiles(make, side, columns=1):
    def write(path):
        data, compression, samples, more = make(side)
        with Tiff(path) as tiff:
            at = tiff.put(data)
            count = columns * columns
            tiff.directory(level(columns * side, columns * side, side, compression, samples, (LONG, [at] * count),
                                 (LONG, [len(data)] * count), more))

    return write


OPENING = {"shared-tables": shared_tables, "unknown-tags": unknown_tags, "many-unknown-tags": many_unknown_tags,
           "chain": chain, "many-values": many_values, "overlapping": overlapping,
           "unnamed-codec": unnamed_codec}
# Nothing is wrong with them, if one doesn't read 200 MB for each directory, nor the tables of what is no level.
HARMLESS = {"shared-descriptions": shared_descriptions, "shared-small-tables": shared_small_tables,
            "many-levels": many_levels, "shared-values": shared_values, "endless-channels": endless_channels,
            "wide-cells": wide_cells}


# Tiles whose records and tables, not their samples, would take the memory.
RECORDS = {"component-transforms": (component_transforms, 2048), "terminated-passes": (terminated_passes, 2048),
           "webp-tables": (webp_tables, 2048), "first-lerc": (first_lerc, 2048),
           "short-lerc": (short_lerc, 2048), "lzma-dictionary": (lzma_dictionary, 2048)}
# Tiles that a library would end the process for.
DEADLY = {"stuffed-block": (stuffed_block, 2048)}


def huge(name, times=1):
    """A slide of one tile, which takes somewhat more than 64 MiB `times` `times` to decode."""
    # OpenJPEG decodes at most 2^26 pixels.
    return tiles(CODECS[name], min(SIDES[name] * times, 8192) if name == "jpeg2000" else SIDES[name] * times)


def fat(name):
    """A slide of four tiles, which take about 20 MiB each."""
    return tiles(CODECS[name], SIDES[name] // 32 // 2 * 32, 2)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, write in {**OPENING, **HARMLESS}.items():
        write(folder / f"{name}.tif")
    for name, (make, side) in DEADLY.items():
        tiles(make, side)(folder / f"{name}.tif")
    for name in CODECS:
        huge(name)(folder / f"huge-{name}.tif")
        fat(name)(folder / f"fat-{name}.tif")


if __name__ == "__main__":
    main()
