"""Writes TIFF files tag by tag, as it is told, however wrong."""

import struct

BYTE, ASCII, SHORT, LONG, RATIONAL, UNDEFINED = 1, 2, 3, 4, 5, 7
_FORMATS = {SHORT: "H", LONG: "I", RATIONAL: "I"}


class Directory:
    """An image: tags as {number: (type, values)}, and its tiles or strips in order."""

    def __init__(self, width, height, tiles, *, samples=3, photometric=2, compression=1, tile=256, subs=(), **texts):
        self.tiles, self.subs = list(tiles), list(subs)
        self.tags = {256: (LONG, [width]), 257: (LONG, [height]), 258: (SHORT, [8] * samples), 259: (SHORT, [compression]),
                     262: (SHORT, [photometric]), 277: (SHORT, [samples]), 322: (LONG, [tile]), 323: (LONG, [tile])}
        if "description" in texts:
            self.tags[270] = (ASCII, texts["description"].encode() + b"\0")

    def set(self, tag, kind, *values):
        self.tags[tag] = (kind, values[0] if isinstance(values[0], bytes) else list(values))
        return self


def write(path, *directories):
    """The directories as one chain, each with its `subs` as SubIFDs."""
    out = bytearray(struct.pack("<2sHI", b"II", 42, 0))

    def place(data):
        out.extend(bytes(len(out) % 2))
        out.extend(data)
        return len(out) - len(data)

    def packed(kind, values):
        if isinstance(values, bytes):
            return values, len(values)
        numbers = [part for value in values for part in (value, 1)] if kind == RATIONAL else values
        return struct.pack(f"<{len(numbers)}{_FORMATS[kind]}", *numbers), len(values)

    def put(directory):
        tags = dict(directory.tags)
        if directory.subs:
            tags[330] = (LONG, [put(sub)[0] for sub in directory.subs])
        tags[324] = (LONG, [place(tile) for tile in directory.tiles])
        tags[325] = (LONG, [len(tile) for tile in directory.tiles])
        entries = []
        for tag, (kind, values) in sorted(tags.items()):
            data, count = packed(kind, values)
            field = data.ljust(4, b"\0") if len(data) <= 4 else struct.pack("<I", place(data))
            entries.append(struct.pack("<HHI", tag, kind, count) + field)
        at = place(struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4))
        return at, len(out) - 4

    link = 4
    for directory in directories:
        at, following = put(directory)
        struct.pack_into("<I", out, link, at)
        link = following
    path.write_bytes(out)
    return path
