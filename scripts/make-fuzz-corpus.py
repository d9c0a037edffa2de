#!/usr/bin/env python3
"""Writes seeds for the fuzz targets: `make-fuzz-corpus.py PIPELINE FOLDER`.

FOLDER/slide gets tiny synthetic slides in every codec, TIFFs that are odd by hand, and beginnings of real slides where
test data are there, and the small ones of tests/cli/hostile_slides.py; FOLDER/dicom gets small ones as DICOM; FOLDER/config gets configurations, FOLDER/manifest lists and FOLDER/ledger ledgers; FOLDER/jpeg gets single tiles of the synthetic slides with their
tables, whole, cut short and with a restart interval that their data don't have. FOLDER/encode gets small images,
FOLDER/nifti small volumes.
"""

import gzip
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cli"))

import dicom_file  # noqa: E402
import hostile_slides  # noqa: E402

JPEG_CODECS = ("jpeg420", "jpeg422", "jpeg444", "rgb", "grey")
CODECS = (*JPEG_CODECS, "jpeg2000", "none")

# Field types of TIFF: number and the letter of struct.
SHORT, LONG, LONG8 = (3, "H"), (4, "I"), (16, "Q")


def tiff(fields, data=b"", next_directory=0, order="<"):
    """A classic TIFF of one directory: (tag, type, values) in ascending order. Values that aren't in the entry itself
    and `data` follow the directory; `data` begins at byte 1024."""
    entries = b""
    outside = b""
    outside_at = 8 + 2 + 12 * len(fields) + 4
    for tag, (number, letter), values in fields:
        value = struct.pack(f"{order}{len(values)}{letter}", *values)
        if len(value) > 4:
            value, place = struct.pack(f"{order}I", outside_at + len(outside)), value
            outside += place
        entries += struct.pack(f"{order}HHI", tag, number, len(values)) + value.ljust(4, b"\0")
    magic = b"II" if order == "<" else b"MM"
    head = magic + struct.pack(f"{order}HI", 42, 8) + struct.pack(f"{order}H", len(fields)) + entries
    head += struct.pack(f"{order}I", next_directory) + outside
    assert len(head) <= 1024
    return head.ljust(1024, b"\0") + data


def image(width=40, height=24, compression=1, photometric=1, samples=1, tile=16, offsets=None, counts=None, more=()):
    """The fields of a tiled image whose tiles lie one after another from byte 1024."""
    tiles = -(-width // tile) * -(-height // tile) if tile else 1
    size = tile * tile * samples
    fields = [
        (256, LONG, [width]), (257, LONG, [height]), (258, SHORT, [8] * samples), (259, SHORT, [compression]),
        (262, SHORT, [photometric]), (277, SHORT, [samples]), (322, SHORT, [tile]), (323, SHORT, [tile]),
        (324, LONG, offsets if offsets is not None else [1024 + i * size for i in range(tiles)]),
        (325, LONG, counts if counts is not None else [size] * tiles), *more,
    ]
    return sorted(fields)


def odd_tiffs():
    pixels = bytes(i * 7 % 256 for i in range(6 * 768))
    yield "grey", tiff(image(), pixels)
    yield "grey-big-endian", tiff(image(), pixels, order=">")
    yield "rgb", tiff(image(photometric=2, samples=3), pixels)
    yield "white-is-zero", tiff(image(photometric=0), pixels)
    yield "palette", tiff(image(photometric=3), pixels)
    yield "packbits", tiff(image(compression=32773, counts=[4] * 6), b"\x81\x40\x81\x80" * 512)
    yield "deflate", tiff(image(compression=8), pixels)
    yield "lzw", tiff(image(compression=5), pixels)
    yield "old-jpeg", tiff(image(compression=6), pixels)
    yield "jpeg-garbage", tiff(image(compression=7), b"\xff\xd8\xff\xdb" * 1024)
    yield "jpeg2000-garbage", tiff(image(compression=33005), b"\xff\x4f\xff\x51" * 1024)
    yield "missing-tiles", tiff(image(counts=[0] * 6), pixels)
    yield "outside-file", tiff(image(offsets=[2**31] * 6), pixels)
    yield "offset-zero", tiff(image(offsets=[0] * 6), pixels)
    yield "too-few-offsets", tiff(image(offsets=[1024], counts=[256]), pixels)
    yield "tile-zero", tiff(image(tile=0, offsets=[1024], counts=[256]), pixels)
    yield "tile-17", tiff(image(tile=17), pixels)
    yield "absurd-size", tiff(image(width=2**31, height=2**31, offsets=[1024], counts=[256]), pixels)
    yield "loop", tiff(image(), pixels, next_directory=8)
    yield "sub-directory-loop", tiff(image(more=[(330, LONG, [8])]), pixels)
    yield "strips", tiff([
        (256, LONG, [40]), (257, LONG, [24]), (258, SHORT, [8]), (259, SHORT, [1]), (262, SHORT, [1]),
        (273, LONG, [1024, 1344, 1664]), (277, SHORT, [1]), (278, LONG, [8]), (279, LONG, [320, 320, 320])], pixels)
    yield "16-bit", tiff([(tag, kind, [16] if tag == 258 else values) for tag, kind, values in image()], pixels)
    apart = {"photometric": 2, "samples": 3, "more": [(284, SHORT, [2])]}
    yield "planar-too-few-offsets", tiff(image(**apart), pixels)
    apart |= {"offsets": [1024 + i * 256 for i in range(18)], "counts": [256] * 18}
    yield "planar", tiff(image(**apart), pixels)
    yield "planar-packbits", tiff(image(compression=32773, **apart), b"\x81\x40\x81\x80" * 1152)
    yield "text", b"not a slide\n"
    yield "header-only", b"II*\0\x08\0\0\0"
    yield "big-tiff-header", b"II+\0\x08\0\0\0" + struct.pack("<QQ", 16, 0)


def write_slides(pipeline, folder):
    for codec in CODECS:
        for width, height in ((96, 64), (300, 280)):
            subprocess.run(
                [pipeline, "synth", "--out", folder / f"{codec}-{width}.svs", "--codec", codec, "--width", str(width),
                 "--height", str(height), "--tile", "64", "--quality", "40"],
                check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name, content in odd_tiffs():
        (folder / f"{name}.tif").write_bytes(content)
    for name, write in hostile_slides.OPENING.items():
        file = folder / f"{name}.tif"
        write(file)
        if file.stat().st_size > 1 << 20:
            file.unlink()
    for name, make in hostile_slides.CODECS.items():
        hostile_slides.tiles(make, 256, 2)(folder / f"hostile-{name}.tif")
    for name, (make, side) in hostile_slides.DEADLY.items():
        hostile_slides.tiles(make, side)(folder / f"{name}.tif")
    data = pathlib.Path(os.environ.get("SLIDESTREAM_TEST_DATA", ROOT.parent / "shared")) / "data"
    for slide in sorted(data.glob("*.svs")):
        content = slide.read_bytes()
        (folder / f"{slide.stem}-head.svs").write_bytes(content[:65536])


# 16 x 16 pixels of RGB as JPEG-LS, pixel by pixel.
JPEGLS = bytes.fromhex(
    "ffd8fff70011080010001003011100021100031100ffda000c0301000200030000020000071b2364da555fff7fff7f952bff7fff7fff15"
    "2bff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7f"
    "ff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7fff7ffeffd9")


def write_dicom(slides, folder):
    """Small slides as DICOM: with each kind of table, and with frames that say where they are."""
    for slide in slides:
        with tempfile.TemporaryDirectory() as made:
            for table in ("none", "basic", "extended"):
                for sparse in (False, True):
                    first = dicom_file.write_series(slide, made, table=table, sparse=sparse)[0]
                    (folder / f"{slide.stem}-{table}{'-sparse' if sparse else ''}").write_bytes(first.read_bytes())
    (folder / "jpegls").write_bytes(dicom_file.dicom([JPEGLS] * 4, 32, 30, 16, "1.2.840.10008.1.2.4.80", "RGB"))


def write_configurations(folder):
    for file in sorted((ROOT / "configs").glob("*.toml")):
        (folder / file.name).write_bytes(file.read_bytes())
    for number, text in enumerate((
            "", "[analysis]\nwindow = 64\n", "[analysis]\nwindw = 64\n", "analysis.range = [0.0, 1e3]\n", "[output",
            "[input]\nslides = ['a.svs', \"b\\u00e9.svs\"]\n", "[gpu]\ndevices = [0, 1]\n", "[pipeline]\nthreads = -1\n",
            "analysis.window=128", "output.maps=npy", "input.slides=a.svs", "pipeline.backend=cuda")):
        (folder / f"by-hand-{number}.toml").write_text(text, encoding="utf-8")


def write_tiles(slides, folder):
    """What jpeg_fuzzer takes: a byte that says the slide's colour, how the frame fits the tile and whether RGB is wanted,
    and a JPEG with its tables, which may also come first, after their length."""
    for slide in slides:
        content = slide.read_bytes()
        tags = next(dicom_file.directories(content))
        tables = bytes(tags.get(347, b"\xff\xd8\xff\xd9"))[2:-2]
        for number, (offset, length) in enumerate(list(zip(tags[324], tags[325]))[:3]):
            tile = content[offset:offset + length]
            colour = {6: 0, 2: 1, 1: 2, 0: 3}[tags[262][0]]
            whole = bytes([colour])
            for name, head in (("", b""), ("-restarts", b"\xff\xdd\0\4\0\2")):
                (folder / f"{slide.stem}-{number}{name}").write_bytes(whole + tile[:2] + head + tables + tile[2:])
            (folder / f"{slide.stem}-{number}-rgb").write_bytes(bytes([colour | 1 << 7]) + tile[:2] + tables + tile[2:])
            (folder / f"{slide.stem}-{number}-short").write_bytes(whole + tile[:2] + tables + tile[2:length // 2])
            outside = b"\xff\xd8" + tables + b"\xff\xd9"
            at_edge = bytes([colour | 1 << 2 | 1 << 4 | 1 << 6])
            (folder / f"{slide.stem}-{number}-tables").write_bytes(
                at_edge + struct.pack(">H", len(outside)) + outside + tile)


def write_images(folder):
    """Format and alignment, quality, size of tiles, width and height, and the pixels that are repeated."""
    for number, (options, quality, side, width, height) in enumerate((
            (0, 74, 0, 15, 15), (1, 74, 0, 15, 15), (0, 99, 1, 40, 33), (1, 99, 1, 40, 33), (3, 0, 2, 60, 3),
            (16, 89, 3, 63, 63), (17, 89, 3, 63, 63))):
        head = bytes([options, quality, side, width, height])
        (folder / f"flat-{number}").write_bytes(head + b"\xc8")
        (folder / f"stripes-{number}").write_bytes(head + b"\0\xff")
        (folder / f"noise-{number}").write_bytes(head + bytes(i * i * 31 >> 3 & 255 for i in range(500)))


def write_jpeg2000_tiles(slides, folder):
    """What jpeg2000_fuzzer takes: a byte that says the slide's colour, how the frame fits the tile and what is
    wanted of it, and a tile."""
    for slide in slides:
        content = slide.read_bytes()
        tags = next(dicom_file.directories(content))
        for number, (offset, length) in enumerate(list(zip(tags[324], tags[325]))[:3]):
            for colour in (0, 1, 2, 3, 64, 65, 66, 67):
                (folder / f"{slide.stem}-{number}-{colour}").write_bytes(
                    bytes([colour]) + content[offset:offset + length])
            # Code-blocks of other styles; what they hold means something else then.
            tile = bytearray(content[offset:offset + length])
            for style in (2, 8, 32, 42):
                tile[tile.index(b"\xff\x52") + 12] = style
                (folder / f"{slide.stem}-{number}-style-{style}").write_bytes(b"\0" + tile)


def write_manifests(folder):
    for number, text in enumerate((
            b"a.svs\nb.svs\n", b"\xef\xbb\xbf# comment\r\n\r\n  \na b.svs\r\n", b"path\na.svs\n", b"id,path\n1,\"a,\"\"b.svs\"\n",
            b'"open', b'"a"b,c\n', b"id\n1\n2", b"a\0b\n", b"\xff\xfe.svs\n", b"x,path\n1\n", b"\r\r\n\n", b"")):
        (folder / f"by-hand-{number}").write_bytes(text)


def write_ledgers(pipeline, slides, folder):
    """Two ledgers as files, each behind an R, and changes to one: whether it is sealed, then statement, type, length, value;
    behind a V the same to one of the first version."""
    for name, options in ("plain", ()), ("maps", ("--maps", "npy")):
        with tempfile.TemporaryDirectory() as out:
            subprocess.run([pipeline, *slides, "--out", out, "--set", "analysis.bins=3", "--set", "analysis.window=32",
                            *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            (folder / name).write_bytes(b"R" + pathlib.Path(out, "run.sqlite").read_bytes())
    for statement in range(28):
        for kind in range(4):
            change = bytes([kind, statement, kind, 2]) + b"17"
            (folder / f"change-{statement}-{kind}").write_bytes(change)
            (folder / f"version-1-change-{statement}-{kind}").write_bytes(b"V" + change)


def write_volumes(pipeline, folder):
    """Small volumes, plain, of either version and byte order, cut short, and with fields that lie."""
    with tempfile.TemporaryDirectory() as out:
        file = pathlib.Path(out, "head.nii.gz")
        subprocess.run([pipeline, "synth", "--volume", "3x4x5", "--out", file], check=True, stdout=subprocess.DEVNULL)
        head = gzip.decompress(file.read_bytes())
    (folder / "head").write_bytes(head)
    for length in (4, 100, 348, 352, len(head) - 1):
        (folder / f"cut-{length}").write_bytes(head[:length])
    for kind, bits in ((2, 8), (4, 16), (8, 32), (16, 32), (64, 64), (256, 8), (512, 16), (768, 32), (1024, 64), (128, 24),
                       (1792, 128)):
        typed = bytearray(head)
        struct.pack_into("<hh", typed, 70, kind, bits)
        (folder / f"type-{kind}").write_bytes(typed + bytes(60 * 8))
    for name, form, at, value in (("huge", "<8h", 40, (3, 32767, 32767, 32767, 1, 1, 1, 1)),
                                  ("none", "<8h", 40, (3, 0, 1, 1, 1, 1, 1, 1)),
                                  ("series", "<8h", 40, (4, 5, 4, 3, 2, 1, 1, 1)), ("offset", "<f", 108, (1e30,)),
                                  ("slope", "<2f", 112, (float("nan"), 1.0)), ("pair", "<4s", 344, (b"ni1\0",))):
        lies = bytearray(head)
        struct.pack_into(form, lies, at, *value)
        (folder / f"lies-{name}").write_bytes(lies)
    second = bytearray(544)
    struct.pack_into("<i8shh8q", second, 0, 540, b"n+2\0\r\n\x1a\n", 2, 8, 3, 3, 2, 2, 1, 1, 1, 1)
    struct.pack_into("<q", second, 168, 544)
    (folder / "second").write_bytes(second + bytes(range(12)))
    swapped = bytearray(544)
    struct.pack_into(">i8shh8q", swapped, 0, 540, b"n+2\0\r\n\x1a\n", 4, 16, 3, 3, 2, 2, 1, 1, 1, 1)
    struct.pack_into(">q", swapped, 168, 544)
    (folder / "swapped").write_bytes(swapped + bytes(range(24)))


def main(arguments):
    if len(arguments) != 2:
        print("usage: make-fuzz-corpus.py PIPELINE FOLDER", file=sys.stderr)
        return 2
    pipeline, folder = pathlib.Path(arguments[0]).resolve(), pathlib.Path(arguments[1])
    for name in ("slide", "dicom", "config", "jpeg", "jpeg2000", "encode", "manifest", "ledger", "nifti"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    write_slides(pipeline, folder / "slide")
    write_dicom(sorted((folder / "slide").glob("*-96.svs")), folder / "dicom")
    write_configurations(folder / "config")
    write_images(folder / "encode")
    write_manifests(folder / "manifest")
    write_ledgers(pipeline, sorted((folder / "slide").glob("jpeg420-*.svs")), folder / "ledger")
    write_tiles(sorted(file for codec in JPEG_CODECS for file in (folder / "slide").glob(f"{codec}-*.svs")),
                folder / "jpeg")
    write_jpeg2000_tiles(sorted((folder / "slide").glob("jpeg2000-*.svs")), folder / "jpeg2000")
    write_volumes(pipeline, folder / "nifti")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
