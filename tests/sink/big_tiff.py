"""A plain reader of BigTIFF files, for looking at what a writer wrote."""

import io
import pathlib
import struct

FORMATS = {1: "B", 2: "B", 3: "H", 4: "I", 5: "II", 7: "B", 16: "Q", 18: "Q"}
TAGS = {254: "subfile", 256: "width", 257: "height", 258: "bits", 259: "compression", 262: "photometric",
        270: "description", 277: "samples", 282: "x_resolution", 283: "y_resolution", 284: "planar", 296: "unit",
        322: "tile_width", 323: "tile_height", 324: "offsets", 325: "lengths", 330: "sub_ifds", 338: "extra",
        339: "sample_format", 347: "jpeg_tables", 530: "subsampling", 34675: "icc"}


class Directory(dict):
    """Values by the names of TAGS: tuples of numbers, or bytes. `places` says where a tag's values lie."""

    def __init__(self, data, at):
        super().__init__()
        self.places = {}
        count, = struct.unpack_from("<Q", data, at)
        for entry in range(at + 8, at + 8 + 20 * count, 20):
            tag, kind, values = struct.unpack_from("<HHQ", data, entry)
            form = FORMATS[kind]
            size = struct.calcsize("<" + form) * values
            place = entry + 12 if size <= 8 else struct.unpack_from("<Q", data, entry + 12)[0]
            content = data[place:place + size]
            self.places[TAGS[tag]] = place
            self[TAGS[tag]] = bytes(content) if form == "B" else struct.unpack(f"<{len(form) * values}{form[0]}", content)
        self.next, = struct.unpack_from("<Q", data, at + 8 + 20 * count)

    def number(self, name):
        return self[name][0]

    @property
    def columns(self):
        return -(-self.number("width") // self.number("tile_width"))

    @property
    def rows(self):
        return -(-self.number("height") // self.number("tile_height"))


class BigTiff:
    """`chain`: directories of the main chain; `subs`: the first one's SubIFDs."""

    def __init__(self, file):
        # Files beyond 4 GiB are mostly a hole.
        self.file = pathlib.Path(file).open("rb")
        self.size = self.file.seek(0, io.SEEK_END)
        head = self.read(0, min(self.size, 1 << 22))
        assert head[:8] == b"II" + struct.pack("<HHH", 43, 8, 0)
        at, = struct.unpack_from("<Q", head, 8)
        self.chain = []
        while at:
            self.chain.append(Directory(head, at))
            at = self.chain[-1].next
        self.subs = [Directory(head, place) for place in self.chain[0].get("sub_ifds", ())]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def read(self, at, length):
        self.file.seek(at)
        return self.file.read(length)

    def tiles(self, level):
        """Row by row: (offset, bytes)."""
        directory = self.chain[level]
        return [(offset, self.read(offset, length)) for offset, length in zip(directory["offsets"], directory["lengths"])]
