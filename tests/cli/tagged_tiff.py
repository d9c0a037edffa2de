"""Writes TIFF files tag by tag, as it is told, however wrong."""

import struct

BYTE, ASCII, SHORT, LONG, RATIONAL, UNDEFINED, LONG8 = 1, 2, 3, 4, 5, 7, 16
_FORMATS = {SHORT: "H", LONG: "I", RATIONAL: "I", LONG8: "Q"}


class Directory:
    """An image: tags as {number: (type, values)}, and its tiles, or strips of `rows` rows, in order."""

    def __init__(self, width, height, tiles, *, samples=3, photometric=2, compression=1, tile=256, rows=None, subs=(), **texts):
        self.tiles, self.subs = list(tiles), list(subs)
        self.tags = {256: (LONG, [width]), 257: (LONG, [height]), 258: (SHORT, [8] * samples), 259: (SHORT, [compression]),
                     262: (SHORT, [photometric]), 277: (SHORT, [samples])}
        self.tags |= {278: (LONG, [rows])} if rows else {322: (LONG, [tile]), 323: (LONG, [tile])}
        if "description" in texts:
            self.tags[270] = (ASCII, texts["description"].encode() + b"\0")

    def set(self, tag, kind, *values):
        self.tags[tag] = (kind, values[0] if isinstance(values[0], bytes) else list(values))
        return self


def write(path, *directories, order="<", big=False):
    """The directories as one chain, each with its `subs` as SubIFDs. `order` is that of bytes, `<` or `>`."""
    mark = b"II" if order == "<" else b"MM"
    out = bytearray(struct.pack(order + ("2sHHHQ" if big else "2sHI"), mark, *((43, 8, 0, 0) if big else (42, 0))))
    word = "Q" if big else "I"
    inside = struct.calcsize(word)

    def place(data):
        out.extend(bytes(len(out) % 2))
        out.extend(data)
        return len(out) - len(data)

    def packed(kind, values):
        if isinstance(values, bytes):
            return values, len(values)
        numbers = [part for value in values for part in (value, 1)] if kind == RATIONAL else values
        return struct.pack(f"{order}{len(numbers)}{_FORMATS[kind]}", *numbers), len(values)

    def put(directory):
        tags = dict(directory.tags)
        if directory.subs:
            tags[330] = (LONG, [put(sub)[0] for sub in directory.subs])
        offsets, lengths = (324, 325) if 322 in tags else (273, 279)
        tags[offsets] = (LONG8 if big else LONG, [place(tile) for tile in directory.tiles])
        tags[lengths] = (LONG, [len(tile) for tile in directory.tiles])
        entries = []
        for tag, (kind, values) in sorted(tags.items()):
            data, count = packed(kind, values)
            field = data.ljust(inside, b"\0") if len(data) <= inside else struct.pack(order + word, place(data))
            entries.append(struct.pack(f"{order}HH{word}", tag, kind, count) + field)
        at = place(struct.pack(order + ("Q" if big else "H"), len(entries)) + b"".join(entries) + bytes(inside))
        return at, len(out) - inside

    link = 8 if big else 4
    for directory in directories:
        at, following = put(directory)
        struct.pack_into(order + word, out, link, at)
        link = following
    path.write_bytes(out)
    return path
