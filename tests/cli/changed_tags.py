"""Changes TIFF files by one tag at a time: value, type, count, order, presence."""

import struct

SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
UNSIGNED = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 18: "Q"}
SUB_IFDS = 330
# Tags that say something of pixels, levels or sizes: (type, values). They are added where they are missing.
ADDED = {254: (4, (0, 1, 2, 4, 8)), 255: (3, (1, 2, 3)), 262: (3, (0, 1, 2, 3, 5, 6, 8)), 266: (3, (1, 2)),
         274: (3, tuple(range(10))), 278: (4, (1, 7, 16)), 282: (4, (300, 20000)), 283: (4, (300, 20000)), 284: (3, (1, 2)),
         292: (4, (1, 4)), 296: (3, (1, 2, 3, 5)), 301: (3, (0, 255)), 317: (3, (1, 2, 3, 34892)), 320: (3, (0, 65535)),
         322: (4, (16, 64)), 323: (4, (16, 64)), 332: (3, (1, 2)), 336: (3, (0, 128)), 338: (3, (0, 1, 2)),
         339: (3, (1, 2, 3, 4)), 340: (1, (0, 16)), 341: (1, (200, 255)), 347: (7, (0, 255)), 529: (3, (1, 2)),
         530: (3, (1, 2)), 531: (3, (1, 2)), 532: (3, (0, 16)), 32997: (4, (1, 2)), 32998: (4, (1, 2)), 34675: (7, (0,))}


class Entry:
    def __init__(self, at, tag, kind, count, values_at):
        self.at, self.tag, self.kind, self.count, self.values_at = at, tag, kind, count, values_at

    @property
    def bytes(self):
        return SIZES.get(self.kind, 0) * self.count


class Ifd:
    """`role`: "slide", "level" or "other"; `link_at`: where the file says its place, in the format `link`."""

    def __init__(self, at, link_at, link, entries):
        self.at, self.link_at, self.link, self.entries, self.role = at, link_at, link, entries, "other"

    def first(self, data, form, tag):
        for entry in self.entries:
            if entry.tag == tag:
                return struct.unpack_from(form + UNSIGNED[entry.kind], data, entry.values_at)[0]
        return 0


class Tiff:
    """A sound file. `widths` are those of its levels, which say which directory is what."""

    def __init__(self, data, widths):
        self.data = bytes(data)
        self.order = "<" if data[:2] == b"II" else ">"
        self.big = struct.unpack_from(self.order + "H", data, 2)[0] == 43
        self.word, self.number = ("Q", "Q") if self.big else ("I", "H")
        self.ifds = []
        link = 8 if self.big else 4
        while True:
            at = self.read(self.word, link)
            if at == 0:
                break
            link = self.add(at, link, self.word)
        for ifd in self.ifds:
            width = ifd.first(self.data, self.order, 256)
            if width in widths:
                ifd.role = "slide" if width == widths[0] else "level"

    def read(self, form, at):
        return struct.unpack_from(self.order + form, self.data, at)[0]

    def add(self, at, link_at, link):
        count = self.read(self.number, at)
        step, word = (20, 8) if self.big else (12, 4)
        first = at + struct.calcsize(self.number)
        entries = []
        for place in range(first, first + step * count, step):
            tag, kind, values = struct.unpack_from(f"{self.order}HH{self.word}", self.data, place)
            entry = Entry(place, tag, kind, values, place + 4 + word)
            if entry.bytes > word:
                entry.values_at = self.read(self.word, place + 4 + word)
            entries.append(entry)
        self.ifds.append(Ifd(at, link_at, link, entries))
        for entry in entries:
            if entry.tag == SUB_IFDS:
                form = UNSIGNED[entry.kind]
                for i in range(entry.count):
                    place = entry.values_at + SIZES[entry.kind] * i
                    self.add(self.read(form, place), place, form)
        return first + step * count


class Change:
    """What was changed: `kind` of the `tags` of a directory, in words for whoever looks at a failure."""

    def __init__(self, kind, ifd, text, *tags):
        self.kind, self.role, self.text, self.tags = kind, ifd.role, text, tags

    def __str__(self):
        return f"{self.role}, {self.kind} of {self.tags[0]}: {self.text}"


def changed(tiff, random):
    """(bytes, Change): one tag of one directory is another."""
    while True:
        ifd = random.choice(tiff.ifds)
        kind = random.choice(("value", "value", "value", "type", "count", "order", "absent", "added"))
        entry = random.choice(ifd.entries)
        data = bytearray(tiff.data)
        if kind == "added":
            tag = random.choice(sorted(set(ADDED) - {other.tag for other in ifd.entries}))
            value_type, values = ADDED[tag]
            value = random.choice(values)
            _add(tiff, ifd, data, tag, value_type, value)
            return data, Change(kind, ifd, f"it is {value}, of type {value_type}", tag)
        make = {"value": _value, "type": _type, "count": _count, "order": _order, "absent": _absent}[kind]
        text, *others = make(tiff, ifd, entry, data, random)
        if data != tiff.data:
            return data, Change(kind, ifd, text, entry.tag, *others)


def _add(tiff, ifd, data, tag, kind, value):
    """The directory is written again behind all, with one tag more."""
    step, word = (20, 8) if tiff.big else (12, 4)
    field = struct.pack(tiff.order + {1: "B", 3: "H", 4: "I", 7: "B"}[kind], value).ljust(word, b"\0")
    entries = [(entry.tag, bytes(tiff.data[entry.at:entry.at + step])) for entry in ifd.entries]
    entries.append((tag, struct.pack(f"{tiff.order}HH{tiff.word}", tag, kind, 1) + field))
    end = ifd.at + struct.calcsize(tiff.number) + step * len(ifd.entries)
    data.extend(bytes(-len(data) % 8))
    at = len(data)
    data.extend(struct.pack(tiff.order + tiff.number, len(entries)) + b"".join(entry for _, entry in sorted(entries)))
    data.extend(tiff.data[end:end + word])
    struct.pack_into(tiff.order + ifd.link, data, ifd.link_at, at)


def _value(tiff, _, entry, data, random):
    form = UNSIGNED.get(entry.kind)
    if form is None:
        # A byte of a text, of tables or of a fraction.
        at = random.randrange(max(1, entry.bytes))
        old = data[entry.values_at + at]
        new = random.choice((0, 255, old ^ 1 << random.randrange(8)))
        data[entry.values_at + at] = new
        return (f"byte {at} was {old} and is {new}",)
    index = random.randrange(entry.count)
    at = entry.values_at + SIZES[entry.kind] * index
    old, = struct.unpack_from(tiff.order + form, data, at)
    most = (1 << 8 * SIZES[entry.kind]) - 1
    new = random.choice((0, 1, old + 1, old - 1, 2 * old, old // 2, random.randrange(10), random.randrange(300),
                         random.randrange(len(tiff.data)), most, random.randrange(most))) & most
    struct.pack_into(tiff.order + form, data, at, new)
    return (f"value {index} was {old} and is {new}",)


def _type(tiff, _, entry, data, random):
    new = random.choice([kind for kind in (0, *SIZES, 14, 99) if kind != entry.kind])
    struct.pack_into(tiff.order + "H", data, entry.at + 2, new)
    return (f"type {entry.kind} is {new}",)


def _count(tiff, _, entry, data, random):
    most = (1 << 8 * struct.calcsize(tiff.word)) - 1
    new = random.choice((0, 1, 2, 3, entry.count + 1, entry.count - 1, 2 * entry.count, entry.count // 2, most,
                         random.randrange(100000))) & most
    struct.pack_into(tiff.order + tiff.word, data, entry.at + 4, new)
    return (f"count {entry.count} is {new}",)


def _order(tiff, ifd, entry, data, random):
    size = SIZES[entry.kind]
    if entry.count > 1 and entry.kind in UNSIGNED and random.random() < 0.5:
        i, j = random.sample(range(entry.count), 2)
        a, b = (slice(entry.values_at + size * k, entry.values_at + size * (k + 1)) for k in (i, j))
        data[a], data[b] = data[b], data[a]
        return (f"values {i} and {j} change places",)
    other = random.choice(ifd.entries)
    step = 20 if tiff.big else 12
    if random.random() < 0.3:
        # It stands twice, and another is gone.
        struct.pack_into(tiff.order + "H", data, other.at, entry.tag)
        return f"{other.tag} is called so, too", other.tag
    a, b = (slice(place.at, place.at + step) for place in (entry, other))
    data[a], data[b] = data[b], data[a]
    return f"it and {other.tag} change places", other.tag


def _absent(tiff, _, entry, data, __):
    struct.pack_into(tiff.order + "H", data, entry.at, 65100)
    return ("it is missing",)
