"""Slides for tests that OpenSlide reads and slidestream doesn't: the smallest files that it takes for a Zeiss CZI, a
Philips, Trestle or Ventana TIFF, a Hamamatsu NDPI, a Leica SCN, a 3DHISTECH MIRAX. Those of TIFF need the package tifffile, all need
numpy."""

import struct

import numpy


def picture(width, height):
    """height x width x 3 bytes without flat areas."""
    y, x = numpy.mgrid[0:height, 0:width]
    return numpy.stack([x * 3 + y, y * 2 + x // 3, x ^ y], -1).astype(numpy.uint8)


def _segment(name, content):
    room = (len(content) + 31) // 32 * 32
    return struct.pack("<16sqq", name, room, len(content)) + content.ljust(room, b"\0")


def write_czi(path, tiles, mpp=0.25, metadata=""):
    """tiles: (x, y, factor, pixels) each; x and y in pixels of level 0, pixels height x width x 3 of the level that is
    smaller by the factor. Uncompressed."""
    width = max(x + pixels.shape[1] * factor for x, _, factor, pixels in tiles)
    height = max(y + pixels.shape[0] * factor for _, y, factor, pixels in tiles)
    xml = (f'<?xml version="1.0"?><ImageDocument><Metadata>{metadata}<Information><Image><SizeX>{width}</SizeX><SizeY>{height}</SizeY></Image>'
           f'<Instrument><Objectives><Objective Id="Objective:1"><NominalMagnification>20</NominalMagnification>'
           f'</Objective></Objectives></Instrument></Information>'
           f'<Scaling><Items><Distance Id="X"><Value>{mpp * 1e-6:.9g}</Value></Distance>'
           f'<Distance Id="Y"><Value>{mpp * 1e-6:.9g}</Value></Distance></Items></Scaling>'
           f'</Metadata></ImageDocument>').encode()
    header_bytes = 32 + 512
    body = b""
    entries = []
    for number, (x, y, factor, pixels) in enumerate(tiles):
        height, width = pixels.shape[:2]
        dimensions = b"".join(struct.pack("<4siifi", name, start, size, 0.0, stored) for name, start, size, stored in (
            (b"X", x, width * factor, width), (b"Y", y, height * factor, height), (b"C", 0, 1, 1), (b"M", number, 1, 1)))
        entry = struct.pack("<2siqiib5xi", b"DV", 3, header_bytes + len(body), 0, 0, 0 if factor == 1 else 1,
                            4) + dimensions
        entries.append(entry)
        data = numpy.ascontiguousarray(pixels[..., ::-1]).tobytes()
        # What precedes the pixels: sizes and the entry, in 256 bytes or more.
        body += _segment(b"ZISRAWSUBBLOCK", (struct.pack("<iiq", 0, 0, len(data)) + entry).ljust(256, b"\0") + data)
    directory_at = header_bytes + len(body)
    body += _segment(b"ZISRAWDIRECTORY", struct.pack("<i124x", len(entries)) + b"".join(entries))
    metadata_at = header_bytes + len(body)
    body += _segment(b"ZISRAWMETADATA", struct.pack("<ii248x", len(xml), 0) + xml)
    attachments_at = header_bytes + len(body)
    body += _segment(b"ZISRAWATTDIR", struct.pack("<i252x", 0))
    header = struct.pack("<iiii16s16siqqiq", 1, 0, 0, 0, b"p" * 16, b"p" * 16, 0, directory_at, metadata_at, 0,
                         attachments_at)
    path.write_bytes(_segment(b"ZISRAWFILE", header.ljust(512, b"\0")) + body)


def write_czi_pyramid(path, pixels, side=300, levels=3, without=()):
    """The picture in tiles of a side, with levels halved by leaving out pixels; tiles of level 0 in `without` are left
    out."""
    tiles = []
    for level in range(levels):
        factor = 2**level
        small = pixels[::factor, ::factor]
        for y in range(0, small.shape[0], side):
            for x in range(0, small.shape[1], side):
                if level == 0 and (x // side, y // side) in without:
                    continue
                tiles.append((x * factor, y * factor, factor, small[y:y + side, x:x + side]))
    write_czi(path, tiles)


def _write_tiff(path, images, tags):
    import tifffile
    with tifffile.TiffWriter(path) as file:
        for number, (pixels, description, extra) in enumerate(images):
            # No rows of numbers of tifffile's own.
            file.write(pixels, tile=(tags.get("tile", 256),) * 2, photometric="rgb", compression="jpeg",
                       compressionargs={"level": 90}, metadata=None, description=description,
                       software=tags["software"] if number == 0 and "software" in tags else False, extratags=extra,
                       subfiletype=0 if number == 0 else tags.get("subfiletype", 1))


def write_philips(path, pixels, levels=3):
    write_philips_pages(path, [(pixels[::2**level, ::2**level], None) for level in range(levels)])


def write_philips_pages(path, pages):
    """pages: (pixels, description or None) of each level, which are smaller by the ratio of their widths."""
    factors = [pages[0][0].shape[1] / pixels.shape[1] for pixels, _ in pages]
    spacing = "".join(
        f'<DataObject ObjectType="PixelDataRepresentation">'
        f'<Attribute Name="DICOM_PIXEL_SPACING" Group="0x0028" Element="0x0030" PMSVR="IDoubleArray">'
        f'&quot;{0.00025 * factor:.6f}&quot; &quot;{0.00025 * factor:.6f}&quot;</Attribute>'
        f'<Attribute Name="PIIM_PIXEL_DATA_REPRESENTATION_NUMBER" Group="0x1001" Element="0x8B02" PMSVR="IUInt16">'
        f'{level}</Attribute></DataObject>' for level, factor in enumerate(factors))
    xml = ('<?xml version="1.0" encoding="UTF-8" ?><DataObject ObjectType="DPUfsImport">'
           '<Attribute Name="PIM_DP_SCANNED_IMAGES" Group="0x301D" Element="0x1003" PMSVR="IDataObjectArray"><Array>'
           '<DataObject ObjectType="DPScannedImage">'
           '<Attribute Name="PIM_DP_IMAGE_TYPE" Group="0x301D" Element="0x1004" PMSVR="IString">WSI</Attribute>'
           '<Attribute Name="DICOM_PIXEL_SPACING" Group="0x0028" Element="0x0030" PMSVR="IDoubleArray">'
           '&quot;0.000250&quot; &quot;0.000250&quot;</Attribute>'
           '<Attribute Name="PIIM_PIXEL_DATA_REPRESENTATION_SEQUENCE" Group="0x1001" Element="0x8B01" '
           f'PMSVR="IDataObjectArray"><Array>{spacing}</Array></Attribute>'
           '</DataObject></Array></Attribute></DataObject>')
    _write_tiff(path, [(pixels, xml if level == 0 else text or "", []) for level, (pixels, text) in enumerate(pages)],
                {"software": "Philips DP v1.0", "tile": 512})


def write_trestle(path, pixels, overlap=16, background="E0D8C0"):
    """A level whose tiles of 256 overlap; what is beyond the picture has no pixels."""
    write_trestle_pages(path, [(pixels, None)], overlap, background)


def write_trestle_pages(path, pages, overlap=0, background="E0D8C0"):
    """pages: (pixels, description or None) of each level."""
    text = (f"Background Color={background};White Balance=FFFFFF;Objective Power=10;JPEG Quality=90;"
            "OverlapsXY=" + " ".join([str(overlap)] * (2 * len(pages))))
    _write_tiff(path, [(pixels, text if level == 0 else said or "", []) for level, (pixels, said) in enumerate(pages)],
                {"software": "MedScan"})


def write_ndpi(path, pixels):
    """A level of 250 nm, the same halved, and a macro image; each is one JPEG without restart markers."""
    import tifffile
    images = (pixels, 20.0), (pixels[::2, ::2], 10.0), (picture(200, 100), -1.0)
    with tifffile.TiffWriter(path) as file:
        for image, lens in images:
            tags = [(271, 2, 0, "Hamamatsu", False), (65420, 4, 1, 1, False), (65421, 11, 1, lens, False)]
            tags += [(tag, 9, 1, 0, False) for tag in (65422, 65423, 65424)]
            file.write(numpy.ascontiguousarray(image), photometric="rgb", compression="jpeg",
                       compressionargs={"level": 90}, rowsperstrip=image.shape[0], metadata=None, software=False,
                       description="", resolution=(40000, 40000), resolutionunit=3, extratags=tags)


def write_leica(path, pixels, macro):
    """A collection of 1000 x 1000 pixels of 250 nm with the picture, halved once, at (100, 200); and a macro image."""
    height, width = pixels.shape[:2]
    small = pixels[::2, ::2]
    nm = 250
    xml = ('<?xml version="1.0"?><scn xmlns="http://www.leica-microsystems.com/scn/2010/10/01">'
           f'<collection name="c" sizeX="{1000 * nm}" sizeY="{1000 * nm}">'
           f'<image name="macro"><pixels sizeX="{macro.shape[1]}" sizeY="{macro.shape[0]}">'
           f'<dimension sizeX="{macro.shape[1]}" sizeY="{macro.shape[0]}" r="0" ifd="0"/></pixels>'
           f'<view sizeX="{1000 * nm}" sizeY="{1000 * nm}" offsetX="0" offsetY="0"/>'
           '<scanSettings><objectiveSettings><objective>1</objective></objectiveSettings><illuminationSettings>'
           '<illuminationSource>brightfield</illuminationSource></illuminationSettings></scanSettings></image>'
           f'<image name="main"><pixels sizeX="{width}" sizeY="{height}">'
           f'<dimension sizeX="{width}" sizeY="{height}" r="0" ifd="1"/>'
           f'<dimension sizeX="{small.shape[1]}" sizeY="{small.shape[0]}" r="1" ifd="2"/></pixels>'
           f'<view sizeX="{width * nm}" sizeY="{height * nm}" offsetX="{100 * nm}" offsetY="{200 * nm}"/>'
           '<scanSettings><objectiveSettings><objective>20</objective></objectiveSettings><illuminationSettings>'
           '<illuminationSource>brightfield</illuminationSource></illuminationSettings></scanSettings></image>'
           '</collection></scn>')
    _write_tiff(path, [(macro, xml, []), (pixels, "", []), (small, "", [])], {})


def write_ventana(path, pixels):
    """A level in tiles of 256, without overlaps, and a thumbnail."""
    rows, columns = (pixels.shape[0] + 255) // 256, (pixels.shape[1] + 255) // 256
    start = b'<?xml version="1.0"?><iScan Magnification="20" ScanRes="0.25" Z-layers="1"/>'
    joints = "".join(f'<TileJointInfo FlagJoined="1" Confidence="100" Direction="{direction}" Tile1="{first}" '
                     f'Tile2="{second}" OverlapX="0" OverlapY="0"/>'
                     for first, second, direction in _joints(columns, rows))
    origin = '<AOI0 OriginX="0" OriginY="0"/>'
    xml = (f'<?xml version="1.0"?><EncodeInfo Ver="2"><SlideStitchInfo><ImageInfo AOIScanned="1" AOIIndex="0" '
           f'NumRows="{rows}" NumCols="{columns}" Width="256" Height="256" Pos-X="0" Pos-Y="0">'
           f'{joints}</ImageInfo></SlideStitchInfo><AoiOrigin>{origin}</AoiOrigin></EncodeInfo>').encode()
    _write_tiff(path, [(pixels[::8, ::8], "Label Image", [(700, 1, len(start), start, False)]),
                       (pixels, "level=0 mag=20 quality=90", [(700, 1, len(xml), xml, False)])], {})


def _joints(columns, rows):
    """Neighbours, as the scanner numbers tiles: from the bottom up, each second row from the right."""
    def number(column, row):
        return row * columns + (column if row % 2 == 0 else columns - 1 - column) + 1
    for row in range(rows):
        for column in range(columns):
            if column + 1 < columns:
                yield number(column, row), number(column + 1, row), "RIGHT"
            if row + 1 < rows:
                yield number(column, row), number(column, row + 1), "UP"


def write_mirax(path, pixels, without=(), overlap=16, fill=0xD0F0E8):
    """A MIRAX slide with its folder: photos of 256 x 256 pixels whose neighbours overlap, and the same halved. Photos in
    `without` are left out. `fill` is the background as blue, green, red."""
    import io

    from PIL import Image
    side, step = 256, 256 - overlap
    columns, rows = (pixels.shape[1] - overlap) // step // 2 * 2, (pixels.shape[0] - overlap) // step // 2 * 2
    photos = {(x, y): pixels[y * step:y * step + side, x * step:x * step + side]
              for y in range(rows) for x in range(columns) if (x, y) not in without}
    halves = {}
    for y in range(0, rows, 2):
        for x in range(0, columns, 2):
            image = numpy.zeros((side, side, 3), numpy.uint8)
            for (dx, dy) in ((0, 0), (1, 0), (0, 1), (1, 1)):
                if (x + dx, y + dy) in photos:
                    image[dy * 128:dy * 128 + 128, dx * 128:dx * 128 + 128] = photos[x + dx, y + dy][::2, ::2]
            halves[x, y] = image
    folder = path.with_suffix("")
    folder.mkdir()
    path.write_bytes(b"\xff\xd8\xff")
    data, pages = b"data", []
    for images in photos, halves:
        page = []
        for (x, y), image in images.items():
            coded = io.BytesIO()
            Image.fromarray(image).save(coded, "PNG")
            page.append(struct.pack("<iiii", y * columns + x, len(data), len(coded.getvalue()), 0))
            data += coded.getvalue()
        pages.append(struct.pack("<ii", len(page), 0) + b"".join(page))
    (folder / "Data0000.dat").write_bytes(data)
    identifier = "0123456789ABCDEF"
    index = f"01.02{identifier}".encode()
    roots_at = len(index)
    pointers_at = roots_at + 8
    lists_at = pointers_at + 8
    pages_at = [lists_at + 16, lists_at + 16 + len(pages[0])]
    index += struct.pack("<ii", pointers_at, 0) + struct.pack("<ii", lists_at, lists_at + 8)
    index += b"".join(struct.pack("<ii", 0, at) for at in pages_at) + b"".join(pages)
    (folder / "Index.dat").write_bytes(index)
    levels = "".join(
        f"[LEVEL_{level}]\nOVERLAP_X={shown}\nOVERLAP_Y={shown}\nMICROMETER_PER_PIXEL_X={0.25 * 2**level}\n"
        f"MICROMETER_PER_PIXEL_Y={0.25 * 2**level}\nIMAGE_FORMAT=PNG\nIMAGE_FILL_COLOR_BGR={fill}\n"
        f"DIGITIZER_WIDTH={side}\nDIGITIZER_HEIGHT={side}\nIMAGE_CONCAT_FACTOR={level}\n"
        for level, shown in ((0, overlap), (1, 0)))
    (folder / "Slidedat.ini").write_text(
        f"[GENERAL]\nSLIDE_ID={identifier}\nIMAGENUMBER_X={columns}\nIMAGENUMBER_Y={rows}\n"
        f"OBJECTIVE_MAGNIFICATION=20\nCameraImageDivisionsPerSide=1\n"
        f"[HIERARCHICAL]\nINDEXFILE=Index.dat\nHIER_COUNT=1\nNONHIER_COUNT=0\nHIER_0_NAME=Slide zoom level\n"
        f"HIER_0_COUNT=2\nHIER_0_VAL_0_SECTION=LEVEL_0\nHIER_0_VAL_1_SECTION=LEVEL_1\n"
        f"[DATAFILE]\nFILE_COUNT=1\nFILE_0=Data0000.dat\n{levels}")
