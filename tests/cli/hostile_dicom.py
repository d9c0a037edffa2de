#!/usr/bin/env python3
"""DICOM slides that are made to harm: `hostile_dicom.py FOLDER` writes them all.

Each takes 8 to 16 KiB on the disk. `OPENING`: by name, a function that writes a file, and what the program says of it.
"""

import pathlib
import struct
import sys

from dicom_file import EXPLICIT, dicom, elements

IMPLICIT = "1.2.840.10008.1.2"
HOLE = 1 << 28  # elements of zeros in it: 2^25
PREAMBLE = 128


def implicit(tag, value=b"", length=None):
    return struct.pack("<HHI", tag >> 16, tag & 0xFFFF, len(value) if length is None else length) + value


def meta(syntax):
    body = elements({0x00020010: ("UI", syntax)})
    return bytes(PREAMBLE) + b"DICM" + body


def write(path, *parts):
    """Parts: bytes, or the size of a hole."""
    with open(path, "wb") as file:
        for part in parts:
            if isinstance(part, int):
                file.truncate(file.seek(0, 2) + part)
            else:
                file.seek(0, 2)
                file.write(part)


def zeros(path):
    """A hole is 2^25 elements without a value."""
    write(path, meta(IMPLICIT), HOLE)


def zeros_in_a_sequence(path):
    item = struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)
    write(path, meta(IMPLICIT), implicit(0x00081140, item, 0xFFFFFFFF), HOLE)


def zeros_among_frames(path):
    """Behind what tells the series: its siblings don't read it, and its own opening does."""
    head = b"".join(implicit(tag, value + b"\0" * (len(value) % 2)) for tag, value in
                    [(0x00080016, b"1.2.840.10008.5.1.4.1.1.77.1.6"), (0x00080018, b"1.2.9.1"), (0x0020000E, b"1.2.9")])
    item = struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)
    write(path, meta(IMPLICIT), head, implicit(0x52009230, item, 0xFFFFFFFF), HOLE)


def far_elements(path):
    """Each header is 64 KiB behind the one before: as many reads as headers. They are real, 64 of them."""
    one = implicit(0x00091001, b"", (1 << 16) - 8)
    write(path, meta(IMPLICIT), *[part for _ in range(2) for part in (one, (1 << 16) - 8)], HOLE)


def shared_frames(path):
    """An extended table of two million frames, all of them the same hole."""
    tiles = 1 << 20
    data = dicom([b"\0" * 4], 64 << 10, 64 << 10, 64, "1.2.840.10008.1.2.4.50", "YBR_FULL_422")
    at = data.index(b"\x28\x00\x08\x00IS")
    data = data[:at] + elements({0x00280008: ("IS", str(tiles))}) + data[at + 8 + 2:]
    at = data.index(b"\xe0\x7f\x10\x00")
    tables = [struct.pack("<HH2sHI", 0x7FE0, number, b"OV", 0, 8 * tiles) for number in (1, 2)]
    write(path, data[:at], tables[0], 8 * tiles, tables[1], 8 * tiles, data[at:])


OPENING = {
    "zeros": (zeros, "zeros at byte"),
    "zeros-in-a-sequence": (zeros_in_a_sequence, "zeros at byte"),
    "zeros-among-frames": (zeros_among_frames, "zeros at byte"),
    "far-elements": (far_elements, "zeros at byte"),
    "shared-frames": (shared_frames, "entry 2 of ExtendedOffsetTable"),
}


def sound(path, **options):
    """A slide of four tiles without a codec, which is done."""
    tiles = [bytes([200, 150, 180]) * 64 * 64] * 4
    path.write_bytes(dicom(tiles, 128, 128, 64, EXPLICIT, "RGB", **options))


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, _) in OPENING.items():
        make(folder / f"{name}.dcm")
