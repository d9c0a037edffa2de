"""Writes DICOM whole-slide images for tests, from tiles that are coded already. `dicom_file.py SLIDE.svs FOLDER` makes a
series of a TIFF slide: its tiled images, with the same tiles."""

import pathlib
import struct
import sys

LONG_VRS = {"OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"}
JPEG = "1.2.840.10008.1.2.4.50"
JPEG2000 = "1.2.840.10008.1.2.4.91"
EXPLICIT = "1.2.840.10008.1.2.1"


def element(tag, vr, value):
    """One element. A list of data sets is a sequence of items."""
    if isinstance(value, list):
        value = b"".join(struct.pack("<HHI", 0xFFFE, 0xE000, len(item)) + item for item in value)
    elif isinstance(value, str):
        value = value.encode()
        value += (b"\0" if vr == "UI" else b" ") * (len(value) % 2)
    elif isinstance(value, int):
        value = struct.pack({"US": "<H", "UL": "<I", "SL": "<i"}[vr], value)
    head = struct.pack("<HH", tag >> 16, tag & 0xFFFF) + vr.encode()
    return head + (struct.pack("<HI", 0, len(value)) if vr in LONG_VRS else struct.pack("<H", len(value))) + value


def elements(values):
    return b"".join(element(tag, vr, value) for tag, (vr, value) in sorted(values.items()))


def frame_at(column, row):
    return elements({0x0048021A: ("SQ", [elements({0x0040074A: ("DS", "0"), 0x0048021E: ("SL", column), 0x0048021F: ("SL", row)})])})


def dicom(tiles, width, height, tile, syntax, photometric, *, samples=3, flavour="VOLUME", series="1.2.3",
          instance="1.2.3.1", table="basic", sparse=False, mm=0.00025, power="40", more=None):
    """A file as bytes. `tiles`: row by row; with `sparse` an empty one is left out. `table`: none, basic or extended.
    `more`: further elements, tag -> (VR, value)."""
    columns = -(-width // tile)
    frames = [(i, one) for i, one in enumerate(tiles) if one or not sparse]
    values = {
        0x00080008: ("CS", f"ORIGINAL\\PRIMARY\\{flavour}\\NONE"),
        0x00080016: ("UI", "1.2.840.10008.5.1.4.1.1.77.1.6"),
        0x00080018: ("UI", instance),
        0x0020000E: ("UI", series),
        0x00209311: ("CS", "TILED_SPARSE" if sparse else "TILED_FULL"),
        0x00280002: ("US", samples),
        0x00280004: ("CS", photometric),
        0x00280006: ("US", 0),
        0x00280008: ("IS", str(len(frames))),
        0x00280010: ("US", tile),
        0x00280011: ("US", tile),
        0x00280100: ("US", 8),
        0x00280101: ("US", 8),
        0x00280102: ("US", 7),
        0x00280103: ("US", 0),
        0x00480006: ("UL", width),
        0x00480007: ("UL", height),
        0x00480105: ("SQ", [elements({0x00480106: ("SH", "1"), 0x00480112: ("DS", power)})]),
        0x52009229: ("SQ", [elements({0x00289110: ("SQ", [elements({0x00280030: ("DS", f"{mm}\\{mm}")})])})]),
    }
    if sparse:
        values[0x52009230] = ("SQ", [frame_at(i % columns * tile + 1, i // columns * tile + 1) for i, _ in frames])
    values.update(more or {})
    items, offsets = [], []
    at = 0
    for _, one in frames:
        offsets.append(at)
        even = one + b"\0" * (len(one) % 2)
        items.append(struct.pack("<HHI", 0xFFFE, 0xE000, len(even)) + even)
        at += len(items[-1])
    if syntax != EXPLICIT and table == "extended":
        values[0x7FE00001] = ("OV", struct.pack(f"<{len(frames)}Q", *offsets))
        values[0x7FE00002] = ("OV", struct.pack(f"<{len(frames)}Q", *(len(one) for _, one in frames)))
    meta = elements({0x00020001: ("OB", b"\0\1"), 0x00020002: ("UI", "1.2.840.10008.5.1.4.1.1.77.1.6"),
                     0x00020003: ("UI", instance), 0x00020010: ("UI", syntax), 0x00020012: ("UI", "1.2.3.99")})
    whole = bytes(128) + b"DICM" + element(0x00020000, "UL", len(meta)) + meta + elements(values)
    if syntax == EXPLICIT:
        pixels = b"".join(one for _, one in frames)
        return whole + element(0x7FE00010, "OW", pixels + b"\0" * (len(pixels) % 2))
    basic = struct.pack(f"<{len(frames)}I", *offsets) if table == "basic" else b""
    whole += struct.pack("<HH2sHI", 0x7FE0, 0x0010, b"OB", 0, 0xFFFFFFFF)
    whole += struct.pack("<HHI", 0xFFFE, 0xE000, len(basic)) + basic
    return whole + b"".join(items) + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)


def directories(content):
    """The tags of a little-endian TIFF's directories, classic or big: number -> values, of whole numbers and bytes."""
    big = content[2:4] == b"+\0"
    kinds = {1: "B", 3: "H", 4: "I", 7: "B", 16: "Q"}
    at, = struct.unpack_from("<Q" if big else "<I", content, 8 if big else 4)
    while at:
        count, = struct.unpack_from("<Q" if big else "<H", content, at)
        at += 8 if big else 2
        size, word = (20, "Q") if big else (12, "I")
        tags = {}
        for entry in range(at, at + count * size, size):
            tag, kind, length = struct.unpack_from(f"<HH{word}", content, entry)
            if kind not in kinds:
                continue
            layout = f"<{length}{kinds[kind]}"
            place = entry + size - struct.calcsize(word)
            if struct.calcsize(layout) > struct.calcsize(word):
                place, = struct.unpack_from(f"<{word}", content, place)
            tags[tag] = struct.unpack_from(layout, content, place)
        at, = struct.unpack_from(f"<{word}", content, at + count * size)
        yield tags


def with_tables(tile, tables):
    """A JPEG that brings the tables that a TIFF keeps apart."""
    return tile[:2] + tables[2:-2] + tile[2:] if tile and tables else tile


def write_series(slide, folder, *, series="1.2.3", **options):
    """The tiled images of a TIFF slide as files level-0.dcm and so on; their paths. The tiles are the same bytes, but
    for JPEG's tables."""
    content = pathlib.Path(slide).read_bytes()
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    levels = [tags for tags in directories(content) if 322 in tags]
    for number, tags in enumerate(levels):
        compression, colour = tags[259][0], tags[262][0]
        syntax = {1: EXPLICIT, 7: JPEG, 33003: JPEG2000, 33005: JPEG2000}[compression]
        tables = bytes(tags.get(347, b""))
        tiles = [with_tables(content[at:at + length], tables) for at, length in zip(tags[324], tags[325])]
        width, height = tags[256][0], tags[257][0]
        photometric = {1: "MONOCHROME2", 2: "RGB", 6: "YBR_FULL_422"}[colour]
        if syntax == JPEG2000:
            photometric = "YBR_ICT"
        path = folder / f"level-{number}.dcm"
        mm = 0.00025 * levels[0][256][0] / width
        path.write_bytes(dicom(tiles, width, height, tags[322][0], syntax, photometric, samples=tags[277][0],
                               series=series, instance=f"{series}.{number}", mm=round(mm, 9), **options))
        paths.append(path)
    return paths


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: dicom_file.py SLIDE.svs FOLDER")
    for written in write_series(sys.argv[1], sys.argv[2]):
        print(written)
